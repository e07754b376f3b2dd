/* host_index.c: elements at index tensors, and arrays of which a part is set or increased.
 *
 * Invariant: all indices are checked before anything is written. */
#include "export/block.h"

/* The region that index tensors select: its axes are those of x before `at` that are not indexed, the axes
 * that the index tensors span, and the other axes of x that are not indexed. */
struct region {
    int first, n, nspan, at;        /* first: the input that is the first index tensor */
    int64_t span[MC_MAX_RANK];
    bool indexed[MC_MAX_RANK];
    const struct mc_export_value *x;
};

static struct region region_of(const struct mc_block *b, int first)
{
    const struct mc_attr *axes = &b->n->attr[0];
    struct region r = { .first = first, .n = axes->n, .at = mc_gather_axis(b->n), .x = &b->in[0] };
    for (int i = 0; i < r.n; i++) {
        r.indexed[axes->ints[i]] = true;
        r.nspan = MC_MAX(r.nspan, b->in[first + i].type.rank);
    }
    for (int k = 0; k < r.nspan; k++) {
        r.span[k] = 1;
        for (int i = 0; i < r.n; i++) {
            const struct mc_type *t = &b->in[first + i].type;
            const int axis = k - (r.nspan - t->rank);
            r.span[k] = axis >= 0 && t->dims[axis] != 1 ? t->dims[axis] : r.span[k];
        }
    }
    return r;
}

/* The axes of the region as three nests.  Arrays of the outer and the inner one: x, and the array of the
 * region's shape; of the middle one: that array, and up to three index tensors. */
struct nests { struct mc_nest outer, span, inner; };

static int64_t region_step(const struct mc_export_value *v, int axis)
{
    return v->type.dims[axis] == 1 ? 0 : mc_block_step(v, axis);
}

/* v: an array of the region's shape; its axes of size 1 are repeated. */
static struct nests nests_of(const struct mc_block *b, const struct region *r,
                             const struct mc_export_value *v)
{
    struct nests s = { .outer.arrays = 2, .span.arrays = 4, .inner.arrays = 2 };
    int axis = 0, nfree = 0;
    for (int i = 0; i <= r->x->type.rank; i++) {
        const bool free = i < r->x->type.rank && !r->indexed[i];
        if (nfree == r->at && axis == r->at && (free || i == r->x->type.rank)) {
            for (int k = 0; k < r->nspan; k++, axis++) {
                int64_t step[4] = { region_step(v, axis) };
                for (int j = 0; j < r->n && j < 3; j++) {
                    const struct mc_export_value *t = &b->in[r->first + j];
                    const int at = k - (r->nspan - t->type.rank);
                    step[1 + j] = at < 0 ? 0 : region_step(t, at);
                }
                mc_nest_add(&s.span, r->span[k], step);
            }
            nfree = -1;
        }
        if (free) {
            mc_nest_add(nfree < 0 ? &s.inner : &s.outer, r->x->type.dims[i],
                        (int64_t[]){ mc_block_step(r->x, i), region_step(v, axis) });
            nfree += nfree >= 0;
            axis++;
        }
    }
    mc_nest_join(&s.outer);
    mc_nest_join(&s.span);
    mc_nest_join(&s.inner);
    return s;
}

static bool spans_nothing(const struct region *r)
{
    bool none = false;
    for (int k = 0; k < r->nspan; k++) {
        none |= r->span[k] == 0;
    }
    return none;
}

/* Declares the index tensors and checks each of their elements. */
static void check_indices(struct mc_block *b, const struct region *r)
{
    for (int k = 0; k < r->n; k++) {
        const struct mc_export_value *t = &b->in[r->first + k];
        const int64_t size = r->x->type.dims[b->n->attr[0].ints[k]];
        struct mc_nest s = { .arrays = 1 };
        const int depth = b->c.depth;
        for (int i = 0; i < t->type.rank; i++) {
            mc_nest_add(&s, t->type.dims[i], (int64_t[]){ mc_block_step(t, i) });
        }
        mc_nest_join(&s);
        mc_block_in(b, r->first + k);
        if (s.n == 0) { /* a single index: its name is its own */
            LINE(b, "{");
            b->c.depth++;
        }
        mc_nest_open(b, &s, "i");
        LINE(b, "const int64_t k = (int64_t)in_%d[%s];", r->first + k, mc_nest_place(&s, 0, "i").s);
        LINE(b, "if (k < -%" PRId64 " || k >= %" PRId64 ") {", size, size);
        LINE(b, "    return 1;");
        LINE(b, "}");
        mc_c_close(&b->c, depth);
    }
}

/* Opens the loops over the index tensors and declares k0, k1, ...: the indices, from 0. */
static void open_span(struct mc_block *b, const struct region *r, const struct nests *s)
{
    mc_nest_open(b, &s->span, "s");
    for (int k = 0; k < r->n; k++) {
        const int64_t size = r->x->type.dims[b->n->attr[0].ints[k]];
        LINE(b, "int64_t k%d = (int64_t)in_%d[%s];", k, r->first + k, mc_nest_place(&s->span, 1 + k, "s").s);
        LINE(b, "k%d += k%d < 0 ? %" PRId64 " : 0;", k, k, size);
    }
}

/* The place in x, whose strides are those of `of`, without the inner axes. */
static struct mc_c_sum indexed_place(const struct mc_block *b, const struct region *r, const struct nests *s)
{
    struct mc_c_sum p = mc_nest_place(&s->outer, 0, "o");
    for (int k = 0; k < r->n; k++) {
        char name[16];
        mc_snprintf(name, sizeof name, "k%d", k);
        mc_c_add(&p, name, mc_block_step(r->x, (int)b->n->attr[0].ints[k]));
    }
    return p;
}

static struct mc_c_sum region_place(const struct nests *s)
{
    struct mc_c_sum p = mc_nest_place(&s->outer, 1, "o"), q = mc_nest_place(&s->span, 0, "s");
    if (strcmp(q.s, "0") != 0) {
        mc_c_add(&p, q.s, 1);
    }
    return p;
}

static struct mc_c_sum with_inner(struct mc_c_sum p, const struct mc_nest *inner, int array)
{
    for (int i = 0; i < inner->n; i++) {
        char name[16];
        mc_snprintf(name, sizeof name, "i%d", i);
        mc_c_add(&p, name, inner->step[array][i]);
    }
    return p;
}

static const char too_many[] = "more than three index tensors; index in two steps";

mc_status mc_block_gather(struct mc_block *b)
{
    const struct region r = region_of(b, 1);
    const mc_dtype d = b->result[0].type.dtype;
    if (r.n > 3) {
        return mc_block_refuse(b->n, too_many);
    }
    const struct nests s = nests_of(b, &r, &b->result[0]);
    mc_c_open(&b->c, "elements at indices");
    if (spans_nothing(&r)) {
        return MC_OK;
    }
    check_indices(b, &r);
    if (mc_nest_empty(&s.outer) || mc_nest_empty(&s.inner)) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    mc_nest_open(b, &s.outer, "o");
    open_span(b, &r, &s);
    const struct mc_c_sum from = indexed_place(b, &r, &s), to = region_place(&s);
    if (s.inner.n == 1 && s.inner.step[0][0] == 1 && s.inner.step[1][0] == 1 && d != MC_BOOL) {
        LINE(b, "memcpy(out_0 + (%s), in_0 + (%s), %" PRId64 " * sizeof *out_0);", to.s, from.s,
             s.inner.size[0]);
        return MC_OK;
    }
    mc_nest_open(b, &s.inner, "i");
    LINE(b, "out_0[%s] = in_0[%s]%s;", with_inner(to, &s.inner, 1).s, with_inner(from, &s.inner, 0).s,
         d == MC_BOOL ? " != 0" : "");
    return MC_OK;
}

/* ---- updates ---- */

/* out_0[to] = in_1[from], or +=; integers wrap. */
static void print_set(struct mc_block *b, bool set, const char *to, const char *from)
{
    const mc_dtype d = b->result[0].type.dtype;
    if (set) {
        LINE(b, "out_0[%s] = in_1[%s]%s;", to, from, d == MC_BOOL ? " != 0" : "");
    } else if (mc_is_float(d)) {
        LINE(b, "out_0[%s] += in_1[%s];", to, from);
    } else if (d == MC_BOOL) {
        LINE(b, "out_0[%s] = (out_0[%s] | in_1[%s]) != 0;", to, to, from);
    } else {
        LINE(b, "out_0[%s] = (%s)((uint64_t)out_0[%s] + (uint64_t)in_1[%s]);", to, mc_export_type(d), to,
             from);
    }
}

static mc_status refuse_update(const struct mc_block *b, bool set)
{
    return !set && mc_block_half(b->result[0].type.dtype)
               ? mc_block_refuse(b->n, "sums of half types; cast to float32 before and back after")
               : MC_OK;
}

/* Copies input 0 to the result. */
static void copy_whole(struct mc_block *b)
{
    struct mc_nest s = { .arrays = 2 };
    const struct mc_type *t = &b->result[0].type;
    for (int i = 0; i < t->rank; i++) {
        mc_nest_add(&s, t->dims[i],
                    (int64_t[]){ mc_block_step(&b->result[0], i), mc_block_step(&b->in[0], i) });
    }
    mc_block_copy(b, &s, 0, t->dtype, 0);
}

mc_status mc_block_gather_update(struct mc_block *b)
{
    struct region r = region_of(b, 2);
    const bool set = mc_attr_int(&b->n->attr[1]) != 0;
    TRY(refuse_update(b, set));
    if (r.n > 3) {
        return mc_block_refuse(b->n, too_many);
    }
    r.x = &b->result[0];
    const struct nests s = nests_of(b, &r, &b->in[1]);
    mc_c_open(&b->c,
              set ? "an array with elements at indices set" : "an array with elements at indices increased");
    if (!spans_nothing(&r)) {
        check_indices(b, &r);
    }
    if (mc_dims_count(r.x->type.rank, r.x->type.dims) == 0) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    copy_whole(b);
    if (spans_nothing(&r)) {
        return MC_OK;
    }
    mc_block_in(b, 1);
    mc_nest_open(b, &s.outer, "o");
    open_span(b, &r, &s);
    const struct mc_c_sum to = indexed_place(b, &r, &s), from = region_place(&s);
    mc_nest_open(b, &s.inner, "i");
    print_set(b, set, with_inner(to, &s.inner, 0).s, with_inner(from, &s.inner, 1).s);
    return MC_OK;
}

/* The input that gives the index of an axis, if its value is not known yet; else -1. */
static int index_input(const struct mc_block *b, const mc_array *const *value, int axis)
{
    const int64_t *s = &b->n->attr[0].ints[axis * SPEC_N];
    const int k = s[SPEC_INDEX] && s[SPEC_START_KIND] == BOUND_INPUT ? 1 + (int)s[SPEC_START] : -1;
    return k < 0 || value[k] ? -1 : k;
}

/* Declares kN, the index of axis N, where it is an operand, and checks it. */
static void declare_indices(struct mc_block *b, const mc_array *const *value)
{
    for (int i = 0; i < b->result[0].type.rank; i++) {
        const int64_t size = b->result[0].type.dims[i];
        const int k = index_input(b, value, i);
        if (k >= 0) {
            mc_block_in(b, k);
            LINE(b, "int64_t k%d = (int64_t)in_%d[0];", i, k);
            LINE(b, "if (k%d < -%" PRId64 " || k%d >= %" PRId64 ") {", i, size, i, size);
            LINE(b, "    return 1;");
            LINE(b, "}");
            LINE(b, "k%d += k%d < 0 ? %" PRId64 " : 0;", i, i, size);
        }
    }
}

mc_status mc_block_part_update(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *v = &b->in[1];
    const bool set = mc_attr_int(&b->n->attr[1]) != 0;
    struct mc_slice_range range[MC_MAX_RANK];
    const mc_array *value[2 + 3 * MC_MAX_RANK] = { NULL };
    struct mc_nest s = { .arrays = 2 };
    struct mc_c_sum indexed = { "" };
    int64_t start = 0;
    TRY(refuse_update(b, set));
    for (int k = 2; k < b->n->nin; k++) {
        value[k] = b->in[k].value ? b->in[k].value : b->n->in[k]->value;
    }
    TRY(mc_slice_ranges(b->n, y->type.dims, value, range));
    for (int i = 0, axis = 0; i < y->type.rank; i++) {
        char name[16];
        if (range[i].count < 0) {
            return mc_block_refuse(b->n, "a bound of a slice depends on data; use constant bounds, or a mask "
                                         "with where");
        }
        mc_snprintf(name, sizeof name, "k%d", i);
        mc_c_add(&indexed, name, index_input(b, value, i) < 0 ? 0 : mc_block_step(y, i));
        start += range[i].start * mc_block_step(y, i);
        if (!range[i].index) {
            mc_nest_add(&s, range[i].count,
                        (int64_t[]){ mc_block_step(y, i) * range[i].step, region_step(v, axis) });
            axis++;
        }
    }
    mc_c_open(&b->c, set ? "an array with a part set" : "an array with a part increased");
    declare_indices(b, value);
    if (mc_dims_count(y->type.rank, y->type.dims) == 0) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    copy_whole(b);
    if (!mc_nest_empty(&s)) {
        mc_nest_join(&s);
        mc_block_in(b, 1);
        mc_nest_open(b, &s, "i");
        struct mc_c_sum to = mc_nest_place(&s, 0, "i");
        if (indexed.s[0]) {
            mc_c_add(&to, indexed.s, 1);
        }
        mc_c_add(&to, "", start);
        print_set(b, set, to.s, mc_nest_place(&s, 1, "i").s);
    }
    return MC_OK;
}
