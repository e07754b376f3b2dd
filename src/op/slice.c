/* slice.c: indices between [ and ]: numbers and slices, one axis of x after the other.
 *
 * Invariant: in a spec (graph.h), the numbers of bounds count as the inputs of subtensor do, where x is
 * input 0. In subtensor_update, the value y comes between x and the bounds, so the numbers in the spec are
 * one less than the node's own. Constants are never inputs, because folding writes them into the spec. */
#include "op/index.h"

/* ---- reading ---- */

bool mc_spec_is_whole(const int64_t *s)
{
    return !s[SPEC_INDEX] && !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && s[SPEC_STEP_KIND] != BOUND_INPUT &&
           (s[SPEC_STEP_KIND] == BOUND_NONE || s[SPEC_STEP] == 1);
}

/* Reads the bound with kind s[0] and number s[1]; false: unknown. *v is unchanged if the bound is absent. */
static bool read(const int64_t *s, const mc_array *const *value, int64_t *v)
{
    if (s[0] == BOUND_CONST) {
        *v = s[1];
    } else if (s[0] == BOUND_INPUT) {
        if (!value[s[1]]) {
            return false;
        }
        *v = mc_load_i64(value[s[1]]->dtype, value[s[1]]->data);
    }
    return true;
}

static int64_t clip(int64_t v, int64_t lo, int64_t hi)
{
    return v < lo ? lo : v > hi ? hi : v;
}

/* The range of one axis of n elements, with the semantics of Python slices. */
static struct mc_slice_range slice(const int64_t *s, int64_t n, int64_t start, int64_t stop, int64_t step)
{
    struct mc_slice_range c = { .step = step };
    int64_t lo = step > 0 ? 0 : -1, hi = step > 0 ? n : n - 1;
    start = !s[SPEC_START_KIND] ? (step > 0 ? lo : hi) : clip(start < 0 ? start + n : start, lo, hi);
    stop = !s[SPEC_STOP_KIND] ? (step > 0 ? hi : lo) : clip(stop < 0 ? stop + n : stop, lo, hi);
    if (step > 0 && stop > start) {
        c.count = (stop - start - 1) / step + 1;
    } else if (step < 0 && start > stop) {
        c.count = (int64_t)((uint64_t)(start - stop - 1) / (0 - (uint64_t)step) + 1);
    }
    c.start = c.count ? start : 0;
    c.step = c.count > 1 ? step : 1;
    return c;
}

/* value[i]: bound number i, NULL if unknown. A range whose size is unknown has count -1. */
static mc_status slice_ranges(const struct mc_attr *spec, int rank, const int64_t *dims,
                              const mc_array *const *value, struct mc_slice_range *range)
{
    for (int i = 0; i < rank; i++) {
        const int64_t *s = &spec->ints[i * SPEC_N];
        int64_t n = dims[i], start = 0, stop = 0, step = 1;
        bool known = read(&s[SPEC_START_KIND], value, &start);
        known = read(&s[SPEC_STOP_KIND], value, &stop) && known;
        bool stepped = read(&s[SPEC_STEP_KIND], value, &step);
        if (stepped && step == 0) {
            return mc_fail(MC_EINDEX, "the step of the slice is 0 on axis %d", i);
        }
        if (s[SPEC_INDEX]) {
            if (known && n >= 0 && (start < -n || start >= n)) {
                return mc_fail(MC_EINDEX, "index %lld is out of range for axis %d with size %lld",
                               (long long)start, i, (long long)n);
            }
            range[i] = (struct mc_slice_range){
                .start = start < 0 ? start + n : start, .count = 1, .step = 1, .index = true
            };
        } else if (n >= 0 && known && stepped) {
            range[i] = slice(s, n, start, stop, step);
        } else {
            bool all = !s[SPEC_START_KIND] && !s[SPEC_STOP_KIND] && stepped && (step == 1 || step == -1);
            range[i] = (struct mc_slice_range){ .count = all ? n : -1, .step = 1 };
        }
    }
    return MC_OK;
}

mc_status mc_slice_ranges(const mc_node *n, const int64_t *dims, const mc_array *const *in,
                          struct mc_slice_range *range)
{
    return slice_ranges(&n->attr[0], n->in[0]->type.rank, dims, in + n->op->sig->ntensor - 1, range);
}

/* Checks that the bounds are integers and computes the type of the region. */
mc_status mc_spec_infer(const struct mc_infer *q, int first, struct mc_type *out)
{
    const struct mc_type *x = &q->in[0];
    struct mc_slice_range range[MC_MAX_RANK];
    if (q->attr[0].n != x->rank * SPEC_N) {
        return mc_fail(MC_ESHAPE, "the index has %d numbers; rank %d needs %d", q->attr[0].n, x->rank,
                       x->rank * SPEC_N);
    }
    for (int i = first; i < q->nin; i++) {
        if (q->in[i].rank || !mc_is_int(q->in[i].dtype)) {
            return mc_fail(MC_ETYPE, "the bounds of a slice must be integers");
        }
    }
    for (int i = 0; i < q->attr[0].n; i++) {
        int at = i % SPEC_N;
        bool kind = at == SPEC_START_KIND || at == SPEC_STOP_KIND || at == SPEC_STEP_KIND;
        if (kind && q->attr[0].ints[i] == BOUND_INPUT &&
            (q->attr[0].ints[i + 1] < 1 || q->attr[0].ints[i + 1] + first - 1 >= q->nin)) {
            return mc_fail(MC_EARG, "bound %lld is out of range", (long long)q->attr[0].ints[i + 1]);
        }
    }
    TRY(slice_ranges(&q->attr[0], x->rank, x->dims, q->value + first - 1, range));
    *out = (struct mc_type){ .dtype = x->dtype };
    for (int i = 0; i < x->rank; i++) {
        if (!range[i].index) {
            out->dims[out->rank++] = range[i].count;
        }
    }
    return MC_OK;
}

/* The region as a view of x. */
mc_array *mc_spec_view(const mc_node *n, const mc_array *x, mc_array *const *in)
{
    struct mc_slice_range range[MC_MAX_RANK];
    int64_t dims[MC_MAX_RANK], strides[MC_MAX_RANK];
    int rank = 0;
    char *data = x->data;
    if (mc_slice_ranges(n, x->dims, (const mc_array *const *)in, range) < 0) {
        return NULL;
    }
    for (int i = 0; i < x->rank; i++) {
        data += range[i].start * x->strides[i];
        if (!range[i].index) {
            dims[rank] = range[i].count;
            strides[rank++] = x->strides[i] * range[i].step;
        }
    }
    return mc_array_view(x, rank, dims, strides, data);
}

/* Writes constant bounds into the spec and drops inputs that no bound names. Equal regions get equal
 * specs. */
int mc_spec_fold(const struct mc_attr *spec, mc_node *const *bound, int64_t *out, mc_node **left)
{
    int n = 0, count;
    int64_t v;
    for (int i = 0; i < spec->n; i++) {
        out[i] = spec->ints[i];
    }
    for (int i = 0; i < spec->n; i += SPEC_N) {
        for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
            int64_t *s = &out[i + k];
            if (s[0] != BOUND_INPUT) {
                s[1] = s[0] == BOUND_NONE ? 0 : s[1];
            } else if (mc_const_ints(bound[s[1]], &v, 1, &count)) {
                s[0] = BOUND_CONST;
                s[1] = v;
            } else {
                left[n] = bound[s[1]];
                s[1] = ++n;
            }
        }
        bool forward = out[i + SPEC_STEP_KIND] == BOUND_NONE ||
                       (out[i + SPEC_STEP_KIND] == BOUND_CONST && out[i + SPEC_STEP] > 0);
        if (forward && !out[i + SPEC_INDEX] && out[i + SPEC_START_KIND] == BOUND_CONST &&
            out[i + SPEC_START] == 0) {
            out[i + SPEC_START_KIND] = BOUND_NONE; /* x[0:3] is x[:3] */
        }
        if (!out[i + SPEC_INDEX] && out[i + SPEC_STEP_KIND] == BOUND_NONE) {
            out[i + SPEC_STEP_KIND] = BOUND_CONST;
            out[i + SPEC_STEP] = 1;
        }
    }
    return n;
}

/* Does the spec fit x, and do the bounds that it names exist? If not, infer reports why. */
bool mc_spec_is_sound(const struct mc_attr *spec, const mc_node *x, int nbound)
{
    bool ok = spec->n == x->type.rank * SPEC_N;
    for (int i = 0; ok && i < spec->n; i += SPEC_N) {
        for (int k = SPEC_START_KIND; k < SPEC_N; k += 2) {
            const int64_t *s = &spec->ints[i + k];
            ok &= s[0] >= BOUND_NONE && s[0] <= BOUND_INPUT &&
                  (s[0] != BOUND_INPUT || (s[1] >= 1 && s[1] <= nbound));
        }
    }
    return ok;
}

/* ---- printing ---- */

/* x needs parentheses if its text contains a space outside of brackets, because operators are printed with
 * spaces. */
void mc_print_indexed(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    size_t from = out->n, depth = 0;
    bool operates = false;
    arg(out, n, 0, ctx);
    for (size_t i = from; i < out->n; i++) {
        char c = out->s[i];
        depth += c == '(' || c == '[';
        depth -= (c == ')' || c == ']') && depth;
        operates |= !depth && (c == ' ' || (i == from && (c == '-' || c == '~')));
    }
    if (operates) {
        size_t size = out->n - from;
        mc_str_add(out, "()");
        if (!out->bad) {
            memmove(out->s + from + 1, out->s + from, size);
            out->s[from] = '(';
        }
    }
}

static void print_bound(struct mc_str *out, const mc_node *n, const int64_t *s, int shift,
                        print_arg *arg, void *ctx)
{
    if (s[0] == BOUND_CONST) {
        mc_str_addf(out, "%lld", (long long)s[1]);
    } else if (s[0] == BOUND_INPUT) {
        arg(out, n, (int)s[1] + shift, ctx);
    }
}

void mc_spec_print(struct mc_str *out, const mc_node *n, print_arg *arg, void *ctx)
{
    int rank = n->in[0]->type.rank, shift = n->op->sig->ntensor - 1;
    while (rank > 1 && mc_spec_is_whole(&n->attr[0].ints[(rank - 1) * SPEC_N])) {
        rank--;
    }
    mc_print_indexed(out, n, arg, ctx);
    for (int i = 0; i < rank; i++) {
        const int64_t *s = &n->attr[0].ints[i * SPEC_N];
        mc_str_add(out, i ? ", " : "[");
        print_bound(out, n, &s[SPEC_START_KIND], shift, arg, ctx);
        if (!s[SPEC_INDEX]) {
            mc_str_add(out, ":");
            print_bound(out, n, &s[SPEC_STOP_KIND], shift, arg, ctx);
            if (s[SPEC_STEP_KIND] == BOUND_INPUT || (s[SPEC_STEP_KIND] == BOUND_CONST && s[SPEC_STEP] != 1)) {
                mc_str_add(out, ":");
                print_bound(out, n, &s[SPEC_STEP_KIND], shift, arg, ctx);
            }
        }
    }
    mc_str_add(out, "]");
}
