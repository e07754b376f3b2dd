/* host_make.c: random numbers, positions, joined and repeated arrays, products of integers, checks.
 *
 * Invariant: printers refuse before they print. */
#include "export/block.h"

/* ---- random_uniform: op/random.c has the algorithm ---- */

static void print_rounds(struct mc_block *b)
{
    LINE(b, "uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);");
    LINE(b, "uint32_t w[4] = { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step, "
            "(uint32_t)(step >> 32) };");
    LINE(b, "for (int round = 0; round < 10; round++) {");
    b->c.depth++;
    LINE(b, "const uint64_t p = UINT64_C(0xd2511f53) * w[0], q = UINT64_C(0xcd9e8d57) * w[2];");
    LINE(b, "w[0] = (uint32_t)(q >> 32) ^ w[1] ^ k0;");
    LINE(b, "w[1] = (uint32_t)q;");
    LINE(b, "w[2] = (uint32_t)(p >> 32) ^ w[3] ^ k1;");
    LINE(b, "w[3] = (uint32_t)p;");
    LINE(b, "k0 += UINT32_C(0x9e3779b9);");
    LINE(b, "k1 += UINT32_C(0xbb67ae85);");
    b->c.depth--;
    LINE(b, "}");
}

mc_status mc_block_uniform(struct mc_block *b)
{
    const struct mc_type *y = &b->result[0].type;
    const int64_t count = mc_dims_count(y->rank, y->dims), each = y->dtype == MC_FLOAT64 ? 2 : 4;
    const uint64_t stream = (uint64_t)mc_attr_int(&b->n->attr[0]);
    if (mc_block_half(y->dtype)) {
        return mc_block_refuse(b->n, "float32 and float64 only; draw float32 and cast the result");
    }
    if (!mc_block_contiguous(&b->result[0])) {
        return mc_block_refuse(b->n, "the result is not contiguous");
    }
    mc_c_open(&b->c, "random_uniform: Philox4x32-10; in_0 is the seed and the step");
    if (count == 0) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    LINE(b, "const uint64_t step = in_0[%" PRId64 "];", mc_block_step(&b->in[0], 0));
    LINE(b, "uint64_t key = in_0[0] + UINT64_C(0x%016" PRIx64 "); /* of stream %" PRIu64 " */",
         (stream + 1) * UINT64_C(0x9e3779b97f4a7c15), stream);
    LINE(b, "key = (key ^ (key >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);");
    LINE(b, "key = (key ^ (key >> 27)) * UINT64_C(0x94d049bb133111eb);");
    LINE(b, "key ^= key >> 31;");
    LINE(b, "for (int64_t i = 0; i < %" PRId64 "; i += %" PRId64 ") {", count, each);
    b->c.depth++;
    LINE(b, "const uint64_t block = (uint64_t)i / %" PRId64 ";", each);
    print_rounds(b);
    if (count % each == 0) {
        LINE(b, "for (int j = 0; j < %" PRId64 "; j++) {", each);
    } else {
        LINE(b, "for (int j = 0; j < %" PRId64 " && i + j < %" PRId64 "; j++) {", each, count);
    }
    b->c.depth++;
    if (each == 2) {
        LINE(b, "const uint64_t v = (uint64_t)w[2 * j + 1] << 32 | w[2 * j];");
        LINE(b, "out_0[i + j] = (double)(v >> 11) * 1.1102230246251565e-16; /* 2^-53 */");
    } else {
        LINE(b, "out_0[i + j] = (float)(w[j] >> 8) * 5.9604644775390625e-08f; /* 2^-24 */");
    }
    return MC_OK;
}

/* ---- arange, alloc ---- */

mc_status mc_block_arange(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0];
    const mc_dtype d = y->type.dtype;
    const char *type = mc_export_type(d);
    if (mc_block_half(d) || b->in[0].type.dtype != d || b->in[2].type.dtype != d) {
        return mc_block_refuse(b->n,
                               "start, stop and step must have the dtype of the result, and no half type");
    }
    mc_c_open(&b->c, "arange");
    if (y->type.dims[0] == 0) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_in(b, 2);
    mc_block_out(b);
    mc_c_loop(&b->c, "i", 0, y->type.dims[0]);
    struct mc_c_sum to = { "0" };
    mc_c_add(&to, "i", mc_block_step(y, 0));
    if (mc_is_float(d)) {
        LINE(b, "out_0[%s] = (%s)(in_0[0] + (double)i * in_2[0]);", to.s, type);
    } else {
        LINE(b, "out_0[%s] = (%s)((uint64_t)in_0[0] + (uint64_t)i * (uint64_t)in_2[0]);", to.s, type);
    }
    return MC_OK;
}

/* Adds the axes of the result, along which x, of a rank that may be smaller, is repeated. */
static void add_repeated(struct mc_nest *s, const struct mc_export_value *y, const struct mc_export_value *x)
{
    for (int i = 0; i < y->type.rank; i++) {
        const int k = i - (y->type.rank - x->type.rank);
        const bool moves = k >= 0 && x->type.dims[k] == y->type.dims[i];
        mc_nest_add(s, y->type.dims[i], (int64_t[]){ mc_block_step(y, i), moves ? mc_block_step(x, k) : 0 });
    }
}

/* The result is the first operand, perhaps repeated. */
static void print_same(struct mc_block *b)
{
    struct mc_nest s = { .arrays = 2 };
    add_repeated(&s, &b->result[0], &b->in[0]);
    if (!mc_nest_empty(&s)) {
        mc_block_in(b, 0);
        mc_block_out(b);
        mc_block_copy(b, &s, 0, b->result[0].type.dtype, 0);
    }
}

mc_status mc_block_alloc(struct mc_block *b)
{
    TRY(mc_alloc_fits(b->n, b->in[0].type.dims, b->result[0].type.dims));
    mc_c_open(&b->c, "alloc");
    print_same(b);
    return MC_OK;
}

/* ---- join, stack, reshape ---- */

mc_status mc_block_join(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0];
    int axis;
    int64_t at = 0;
    TRY(mc_axis_check("join", mc_attr_int(&b->n->attr[0]), y->type.rank, &axis));
    mc_c_open(&b->c, "join");
    if (mc_dims_count(y->type.rank, y->type.dims) > 0) {
        mc_block_out(b);
    }
    for (int k = 0; k < b->n->nin; k++) {
        const struct mc_export_value *x = &b->in[k];
        struct mc_nest s = { .arrays = 2 };
        for (int i = 0; i < y->type.rank; i++) {
            mc_nest_add(&s, x->type.dims[i], (int64_t[]){ mc_block_step(y, i), mc_block_step(x, i) });
        }
        if (!mc_nest_empty(&s)) {
            mc_block_in(b, k);
            mc_block_copy(b, &s, k, y->type.dtype, at * mc_block_step(y, axis));
        }
        at += x->type.dims[axis];
    }
    return MC_OK;
}

mc_status mc_block_stack(struct mc_block *b)
{
    mc_c_open(&b->c, "stack");
    if (b->n->nin > 0) {
        mc_block_out(b);
    }
    for (int k = 0; k < b->n->nin; k++) {
        struct mc_nest s = { .arrays = 2 };
        mc_block_in(b, k);
        mc_block_copy(b, &s, k, b->result[0].type.dtype, k * mc_block_step(&b->result[0], 0));
    }
    return MC_OK;
}

/* x in C order becomes the result in C order. */
mc_status mc_block_reshape(struct mc_block *b)
{
    const struct mc_export_value *x = &b->in[0];
    struct mc_nest s = { .arrays = 2 };
    int64_t next = mc_dims_count(x->type.rank, x->type.dims);
    if (!mc_block_contiguous(&b->result[0])) {
        return mc_block_refuse(b->n, "the result is not contiguous");
    }
    for (int i = 0; i < x->type.rank; i++) {
        next /= MC_MAX(x->type.dims[i], 1);
        mc_nest_add(&s, x->type.dims[i], (int64_t[]){ next, mc_block_step(x, i) });
    }
    mc_c_open(&b->c, "reshape");
    if (!mc_nest_empty(&s)) {
        mc_block_in(b, 0);
        mc_block_out(b);
        mc_block_copy(b, &s, 0, x->type.dtype, 0);
    }
    return MC_OK;
}

/* ---- products of integers ---- */

/* Sums wrap, as unsigned numbers do. */
mc_status mc_block_product(struct mc_block *b)
{
    const struct mc_export_value *x = &b->in[0], *v = &b->in[1], *y = &b->result[0];
    const int last = x->type.rank - 1;
    struct mc_c_sum px = { "0" }, pv = { "0" }, py = { "0" };
    if (mc_is_float(y->type.dtype)) {
        return mc_block_refuse(b->n, "a product of floats is a solver step, not a host step");
    }
    mc_c_open(&b->c, "a product of integers");
    if (mc_dims_count(y->type.rank, y->type.dims) == 0) {
        return MC_OK;
    }
    mc_block_out(b);
    if (x->type.dims[last] > 0) {
        mc_block_in(b, 0);
        mc_block_in(b, 1);
    }
    if (last == 2) {
        mc_c_loop(&b->c, "n", 0, y->type.dims[0]);
        mc_c_add(&px, "n", x->type.dims[0] == 1 ? 0 : mc_block_step(x, 0));
        mc_c_add(&pv, "n", v->type.dims[0] == 1 ? 0 : mc_block_step(v, 0));
        mc_c_add(&py, "n", mc_block_step(y, 0));
    }
    mc_c_add(&px, "i", mc_block_step(x, last - 1));
    mc_c_add(&px, "k", mc_block_step(x, last));
    mc_c_add(&pv, "k", mc_block_step(v, last - 1));
    mc_c_add(&pv, "j", mc_block_step(v, last));
    mc_c_add(&py, "i", mc_block_step(y, last - 1));
    mc_c_add(&py, "j", mc_block_step(y, last));
    mc_c_loop(&b->c, "i", 0, y->type.dims[last - 1]);
    mc_c_loop(&b->c, "j", 0, y->type.dims[last]);
    LINE(b, "uint64_t sum = 0;");
    if (x->type.dims[last] > 0) {
        mc_c_loop(&b->c, "k", 0, x->type.dims[last]);
        LINE(b, "sum += (uint64_t)in_0[%s] * (uint64_t)in_1[%s];", px.s, pv.s);
        mc_c_close(&b->c, b->c.depth - 1);
    }
    if (y->type.dtype == MC_BOOL) {
        LINE(b, "out_0[%s] = sum != 0;", py.s);
    } else {
        LINE(b, "out_0[%s] = (%s)sum;", py.s, mc_export_type(y->type.dtype));
    }
    return MC_OK;
}

/* ---- assert_ ---- */

mc_status mc_block_assert(struct mc_block *b)
{
    for (int k = 1; k < b->n->nin; k++) {
        if (mc_block_half(b->in[k].type.dtype)) {
            return mc_block_refuse(b->n, "a condition of a half type; compare it, so that it is bool");
        }
    }
    mc_c_open(&b->c, "assert_");
    for (int k = 1; k < b->n->nin; k++) {
        struct mc_nest s = { .arrays = 1 };
        const int depth = b->c.depth;
        for (int i = 0; i < b->in[k].type.rank; i++) {
            mc_nest_add(&s, b->in[k].type.dims[i], (int64_t[]){ mc_block_step(&b->in[k], i) });
        }
        mc_nest_join(&s);
        if (!mc_nest_empty(&s)) {
            mc_block_in(b, k);
            mc_nest_open(b, &s, "i");
            LINE(b, "if (in_%d[%s] == 0) {", k, mc_nest_place(&s, 0, "i").s);
            LINE(b, "    return 1;");
            LINE(b, "}");
            mc_c_close(&b->c, depth);
        }
    }
    print_same(b);
    return MC_OK;
}
