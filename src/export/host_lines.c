/* host_lines.c: ops on lines along an axis: running sums, recurrences, sorts, sums of channels. */
#include "export/block.h"

enum {
    ROW = 4096,     /* accumulators of a row, at most: 32 KiB of stack */
    LONGEST = 32768 /* elements of a line that is sorted, at most: 256 KiB of stack */
};

/* The axes of the result but `axis` and `other` (-1: none), for the arrays v[]. */
static struct mc_nest other_axes(const struct mc_export_value *const *v, int arrays, int axis, int other)
{
    struct mc_nest s = { .arrays = arrays };
    for (int i = 0; i < v[0]->type.rank; i++) {
        int64_t step[4] = { 0 };
        for (int k = 0; k < arrays; k++) {
            step[k] = mc_block_step(v[k], i);
        }
        if (i != axis && i != other) {
            mc_nest_add(&s, v[0]->type.dims[i], step);
        }
    }
    mc_nest_join(&s);
    return s;
}

static bool hollow(const struct mc_block *b)
{
    return mc_dims_count(b->result[0].type.rank, b->result[0].type.dims) == 0;
}

/* The place of element `name` of the line. */
static struct mc_c_sum line_place(const struct mc_nest *s, int array, const char *name, int64_t step)
{
    struct mc_c_sum p = mc_nest_place(s, array, "i");
    mc_c_add(&p, name, step);
    return p;
}

/* ---- cumsum, cumprod: floats in float64, integers in 64 bits that wrap; cummax, cummin: as they are ---- */

mc_status mc_block_running(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *x = &b->in[0], *v[2] = { y, x };
    const int axis = (int)mc_attr_int(&b->n->attr[0]), last = y->type.rank - 1;
    const bool real = mc_is_float(y->type.dtype), product = b->n->op->line == LINE_PRODUCTS;
    const bool row = axis < last && y->type.dims[last] > 1 && y->type.dims[last] <= ROW;
    const struct mc_nest s = other_axes(v, 2, axis, row ? last : -1);
    const char *best = b->n->op->line == LINE_MOST ? ">" : b->n->op->line == LINE_LEAST ? "<" : NULL;
    const char *acc = best ? mc_export_type(y->type.dtype) : real ? "double" : "uint64_t";
    const char *sum = row ? "sum[l]" : "sum";
    char term[32 + sizeof(struct mc_c_sum)];
    if (mc_block_half(x->type.dtype) || mc_block_half(y->type.dtype)) {
        return mc_block_refuse(b->n, "half types; cast to float32 before and back after");
    }
    mc_c_open(&b->c, best ? "running extremes" : product ? "running products" : "running sums");
    if (hollow(b)) {
        return MC_OK;
    }
    struct mc_c_sum to = line_place(&s, 0, "k", mc_block_step(y, axis)),
                    from = line_place(&s, 1, "k", mc_block_step(x, axis));
    if (row) {
        mc_c_add(&to, "l", mc_block_step(y, last));
        mc_c_add(&from, "l", mc_block_step(x, last));
    }
    mc_snprintf(term, sizeof term, "%sin_0[%s]%s", x->type.dtype == MC_BOOL ? "(" : "", from.s,
                x->type.dtype == MC_BOOL ? " != 0)" : "");
    mc_block_in(b, 0);
    mc_block_out(b);
    mc_nest_open(b, &s, "i");
    if (row) {
        LINE(b, "%s sum[%" PRId64 "];", acc, y->type.dims[last]);
        mc_c_loop(&b->c, "l", 0, y->type.dims[last]);
        LINE(b, "sum[l] = %d;", product);
        mc_c_close(&b->c, b->c.depth - 1);
    } else {
        LINE(b, "%s sum = %d;", acc, product);
    }
    mc_c_loop(&b->c, "k", 0, y->type.dims[axis]);
    if (row) {
        mc_c_loop(&b->c, "l", 0, y->type.dims[last]);
    }
    if (best) { /* a NaN stays */
        LINE(b, "const %s next = %s;", acc, term);
        LINE(b, "%s = k == 0 || next %s %s%s ? next : %s;", sum, best, sum, real ? " || next != next" : "",
             sum);
    } else {
        LINE(b, "%s %s= (%s)%s;", sum, product ? "*" : "+", acc, term);
    }
    LINE(b, "out_0[%s] = (%s)%s;", to.s, mc_export_type(y->type.dtype), sum);
    return MC_OK;
}

/* ---- recurrence: y[0] = start, y[k + 1] = x[k] * y[k] + v[k] ---- */

mc_status mc_block_recurrence(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *v[3] = { y, &b->in[0], &b->in[1] };
    const int axis = (int)mc_attr_int(&b->n->attr[0]);
    const bool back = mc_attr_int(&b->n->attr[2]) != 0;
    const struct mc_nest s = other_axes(v, 3, axis, -1);
    struct mc_str start = { 0 };
    if (mc_block_half(y->type.dtype)) {
        return mc_block_refuse(b->n, "half types; cast to float32 before and back after");
    }
    mc_c_open(&b->c, "a recurrence");
    if (hollow(b)) {
        return MC_OK;
    }
    mc_c_real(&start, b->n->attr[1].real);
    b->c.out->bad |= start.bad;
    mc_block_in(b, 0);
    mc_block_in(b, 1);
    mc_block_out(b);
    mc_nest_open(b, &s, "i");
    LINE(b, "double value = %s;", start.s ? start.s : "0");
    mc_str_free(&start);
    if (back) {
        LINE(b, "for (int64_t k = %" PRId64 "; k >= 0; k--) {", y->type.dims[axis] - 1);
        b->c.depth++;
    } else {
        mc_c_loop(&b->c, "k", 0, y->type.dims[axis]);
    }
    const struct mc_c_sum to = line_place(&s, 0, "k", mc_block_step(y, axis)),
                          x = line_place(&s, 1, "k", mc_block_step(v[1], axis)),
                          more = line_place(&s, 2, "k", mc_block_step(v[2], axis));
    const char *type = mc_export_type(y->type.dtype);
    LINE(b, "const double factor = in_0[%s], term = in_1[%s];", x.s, more.s);
    LINE(b, "out_0[%s] = (%s)value;", to.s, type);
    LINE(b, "value = factor * value + term;");
    return MC_OK;
}

/* ---- sort, argsort: a stable merge sort of runs of 1, 2, 4, ... ---- */

/* The loop that merges runs: `order` becomes the order of the line. */
static void print_merges(struct mc_block *b, int64_t n, const char *first, const char *second, bool real,
                         bool falls)
{
    LINE(b, "int32_t one[%" PRId64 "], two[%" PRId64 "], *order = one, *next = two;", n, n);
    LINE(b, "for (int32_t k = 0; k < %" PRId64 "; k++) {", n);
    LINE(b, "    order[k] = k;");
    LINE(b, "}");
    LINE(b, "for (int32_t run = 1; run < %" PRId64 "; run *= 2) {", n);
    b->c.depth++;
    LINE(b, "for (int32_t low = 0; low < %" PRId64 "; low += 2 * run) {", n);
    b->c.depth++;
    LINE(b, "const int32_t middle = low + run < %" PRId64 " ? low + run : %" PRId64 ";", n, n);
    LINE(b, "const int32_t high = middle + run < %" PRId64 " ? middle + run : %" PRId64 ";", n, n);
    LINE(b, "int32_t p = low, q = middle;");
    LINE(b, "for (int32_t k = low; k < high; k++) {");
    b->c.depth++;
    LINE(b, "int left = p < middle;");
    LINE(b, "if (left && q < high) {");
    LINE(b, "    left = in_0[%s] %s in_0[%s];", first, falls ? ">=" : "<=", second);
    if (real) {
        const char *nan = falls ? first : second;
        LINE(b, "    left |= in_0[%s] != in_0[%s]; /* NaN is %s */", nan, nan, falls ? "first" : "last");
    }
    LINE(b, "}");
    LINE(b, "next[k] = left ? order[p++] : order[q++];");
    mc_c_close(&b->c, b->c.depth - 2);
    LINE(b, "int32_t *const last = order;");
    LINE(b, "order = next;");
    LINE(b, "next = last;");
    mc_c_close(&b->c, b->c.depth - 1);
}

mc_status mc_block_sort(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *x = &b->in[0], *v[2] = { y, x };
    const bool places = b->n->op->line != LINE_SORTED, real = mc_is_float(x->type.dtype);
    int axis;
    TRY(mc_axis_check(b->n->op->name, mc_attr_int(&b->n->attr[0]), x->type.rank, &axis));
    const int64_t count = x->type.dims[axis], sx = mc_block_step(x, axis);
    const struct mc_nest s = other_axes(v, 2, axis, -1);
    if (mc_block_half(x->type.dtype)) {
        return mc_block_refuse(b->n, "half types; cast to float32 before and back after");
    }
    if (count > LONGEST) {
        return mc_block_refuse(b->n, "lines of more than 32768 elements; sort shorter lines");
    }
    mc_c_open(&b->c,
              places ? "the order of lines: a stable merge sort" : "sorted lines: a stable merge sort");
    if (hollow(b)) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    mc_nest_open(b, &s, "i");
    const struct mc_c_sum first = line_place(&s, 1, "order[p]", sx),
                          second = line_place(&s, 1, "order[q]", sx),
                          from = line_place(&s, 1, "order[k]", sx),
                          to = line_place(&s, 0, "k", mc_block_step(y, axis));
    print_merges(b, count, first.s, second.s, real, b->n->op->line == LINE_LAST);
    mc_c_loop(&b->c, "k", 0, y->type.dims[axis]);
    if (places) {
        LINE(b, "out_0[%s] = order[k];", to.s);
    } else {
        LINE(b, "out_0[%s] = in_0[%s];", to.s, from.s);
    }
    return MC_OK;
}

/* ---- permute_row_elements: y[k] = x[p[k]] in each line ---- */

mc_status mc_block_permute(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *v[3] = { y, &b->in[0], &b->in[1] };
    int axis;
    TRY(mc_axis_check(b->n->op->name, mc_attr_int(&b->n->attr[0]), y->type.rank, &axis));
    const struct mc_nest s = other_axes(v, 3, axis, -1);
    const int64_t count = y->type.dims[axis];
    const int depth = b->c.depth + 1;
    mc_c_open(&b->c, "permuted lines");
    if (hollow(b)) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_in(b, 1);
    mc_block_out(b);
    for (int check = 1; check >= 0; check--) {
        mc_nest_open(b, &s, "i");
        mc_c_loop(&b->c, "k", 0, count);
        LINE(b, "const int64_t at = (int64_t)in_1[%s];", line_place(&s, 2, "k", mc_block_step(v[2], axis)).s);
        if (check) {
            LINE(b, "if (at < 0 || at >= %" PRId64 ") {", count);
            LINE(b, "    return 1;");
            LINE(b, "}");
        } else {
            LINE(b, "out_0[%s] = in_0[%s];", line_place(&s, 0, "k", mc_block_step(y, axis)).s,
                 line_place(&s, 1, "at", mc_block_step(v[1], axis)).s);
        }
        mc_c_close(&b->c, depth);
    }
    return MC_OK;
}

/* ---- channel_sum: op/norm.h has the windows ---- */

mc_status mc_block_channels(struct mc_block *b)
{
    const struct mc_export_value *y = &b->result[0], *v[2] = { y, &b->in[0] };
    const struct mc_attr *attr = b->n->attr;
    const int64_t n = mc_attr_int(&attr[0]);
    const int axis = (int)mc_attr_int(&attr[1]);
    const bool blocked = mc_attr_int(&attr[2]) != 0, back = mc_attr_int(&attr[3]) != 0;
    const struct mc_nest s = other_axes(v, 2, axis, -1);
    if (mc_block_half(y->type.dtype)) {
        return mc_block_refuse(b->n, "half types; cast to float32 before and back after");
    }
    mc_c_open(&b->c, "sums of channels");
    if (hollow(b)) {
        return MC_OK;
    }
    mc_block_in(b, 0);
    mc_block_out(b);
    mc_nest_open(b, &s, "i");
    mc_c_loop(&b->c, "c", 0, y->type.dims[axis]);
    if (blocked) {
        LINE(b, "const int64_t first = c / %" PRId64 " * %" PRId64 ", end = first + %" PRId64 ";", n, n, n);
    } else {
        LINE(b, "const int64_t first = c - %" PRId64 ", end = first + %" PRId64 ";",
             back ? n - n / 2 - 1 : n / 2, n);
    }
    LINE(b, "double sum = 0;");
    LINE(b, "for (int64_t e = first < 0 ? 0 : first; e < end && e < %" PRId64 "; e++) {", y->type.dims[axis]);
    LINE(b, "    sum += in_0[%s];", line_place(&s, 1, "e", mc_block_step(v[1], axis)).s);
    LINE(b, "}");
    LINE(b, "out_0[%s] = (%s)sum;", line_place(&s, 0, "c", mc_block_step(y, axis)).s,
         mc_export_type(y->type.dtype));
    return MC_OK;
}
