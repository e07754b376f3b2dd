/* t_ops_layouts.c: scalar ops on operands of every layout, that broadcast, and that are empty: against plain
 * arrays. */
#include "scalar_ops.h"

static mc_array *view_of(mc_array *a, int how)
{
    mc_array *v = NULL;
    if (how == 0) { /* (4, 3) seen as (3, 4) */
        v = mc_array_transpose(a, NULL);
    } else if (how == 1) { /* backwards */
        v = mc_array_slice(a, 1, 3, 4, -1);
    } else if (how == 2) { /* every other of 8 */
        v = mc_array_slice(a, 1, 1, 4, 2);
    } else { /* one row, three times */
        v = mc_array_view(a, 2, (int64_t[]){ 3, 4 }, (int64_t[]){ 0, a->strides[1] }, a->data);
    }
    return v;
}

TEST(every_op_on_strided_operands)
{
    static const int64_t whole[][2] = { { 4, 3 }, { 3, 4 }, { 3, 8 }, { 1, 4 } };
    EACH_SCALAR(op)
    {
        for (int how = 0; how < 4; how++) {
            mc_dtype d = op->typing == TYPE_BITS ? MC_INT32 : how & 1 ? MC_FLOAT32 : MC_FLOAT64;
            mc_array *base[3], *in[3], *plain[3], *y, *w;
            for (int i = 0; i < op->arity; i++) {
                int this = (how + i) % 4;
                base[i] = sample(operand(op, i, d), 2, whole[this], op->lo, op->hi);
                in[i] = view_of(base[i], this);
                plain[i] = mc_array_copy(in[i]);
            }
            y = apply(op, in);
            w = apply(op, plain);
            CHECK(y && w && mc_array_same_bits(y, w), "%s: views of kind %d give other results", op->name,
                  how);
            mc_array_unref(&y);
            mc_array_unref(&w);
            drop(base, op->arity);
            drop(in, op->arity);
            drop(plain, op->arity);
        }
    }
}

/* to a full matrix, in the test's own way */
static mc_array *spread(const mc_array *a, int64_t rows, int64_t cols)
{
    mc_array *m = mc_array_new(a->dtype, MC_SHAPE(rows, cols));
    size_t size = mc_dtypes[a->dtype].size;
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < cols; j++) {
            int64_t r = a->rank == 2 && a->dims[0] > 1 ? i : 0,
                    c = a->rank && a->dims[a->rank - 1] > 1 ? j : 0;
            int64_t from = a->rank == 2 ? r * a->dims[1] + c : c;
            memcpy(m->data + (size_t)(i * cols + j) * size, a->data + (size_t)from * size, size);
        }
    }
    return m;
}

TEST(every_op_broadcasts)
{
    EACH_SCALAR(op)
    {
        int combinations = op->arity == 1   ? NPATTERN
                           : op->arity == 2 ? NPATTERN * NPATTERN
                                            : NPATTERN * NPATTERN * NPATTERN;
        mc_dtype d = op->typing == TYPE_BITS ? MC_INT32 : MC_FLOAT64;
        for (int p = 0; p < combinations; p++) {
            mc_array *in[3], *full[3], *y, *w;
            int64_t rows = 1, cols = 1;
            int rank = 0;
            for (int i = 0, q = p; i < op->arity; i++, q /= NPATTERN) {
                in[i] = sample(operand(op, i, d), patterns[q % NPATTERN].rank, patterns[q % NPATTERN].dims,
                               op->lo, op->hi);
                rows = MC_MAX(rows, in[i]->rank == 2 ? in[i]->dims[0] : 1);
                cols = MC_MAX(cols, in[i]->rank ? in[i]->dims[in[i]->rank - 1] : 1);
                rank = MC_MAX(rank, in[i]->rank);
            }
            for (int i = 0; i < op->arity; i++) {
                full[i] = spread(in[i], rows, cols);
            }
            y = apply(op, in);
            w = apply(op, full);
            if (y && w &&
                CHECK(y->rank == rank && mc_array_size(y) == rows * cols,
                      "%s: pattern %d gives rank %d, %lld elements", op->name, p, y->rank,
                      (long long)mc_array_size(y))) {
                CHECK(memcmp(y->data, w->data, (size_t)mc_array_size(y) * mc_dtypes[y->dtype].size) == 0,
                      "%s: pattern %d gives other numbers", op->name, p);
            }
            mc_array_unref(&y);
            mc_array_unref(&w);
            drop(in, op->arity);
            drop(full, op->arity);
        }
    }
}

TEST(every_op_on_nothing)
{
    static const int64_t empty[][2] = { { 0, 4 }, { 3, 0 }, { 0, 0 } };
    EACH_SCALAR(op)
    {
        for (size_t e = 0; e < NELEM(empty); e++) {
            mc_dtype d = op->typing == TYPE_BITS ? MC_INT32 : MC_FLOAT32;
            mc_array *in[3], *y;
            for (int i = 0; i < op->arity; i++) {
                in[i] = mc_array_new(operand(op, i, d), 2, empty[e]);
            }
            y = apply(op, in);
            CHECK(y && mc_dims_equal(y->rank, y->dims, 2, empty[e]) && y->dtype == result_dtype(op, d),
                  "%s of nothing", op->name);
            mc_array_unref(&y);
            drop(in, op->arity);
        }
    }
}

/* Only a promised 1 broadcasts; an axis that turns out to have size 1 does not. */
TEST(broadcasting_is_what_the_graph_says)
{
    mc_graph *g = mc_graph_new();
    mc_node *x[2] = { mc_input(g, "x", MC_FLOAT32, 2), mc_input(g, "y", MC_FLOAT32, 2) };
    mc_node *z = mc_op(g, "add", 2, x, NULL);
    mc_array *v[2] = { mc_array_new(MC_FLOAT32, MC_SHAPE(3, 1)), mc_array_new(MC_FLOAT32, MC_SHAPE(3, 4)) },
             *out = NULL;
    CHECK(mc_eval(2, x, v, 1, &z, &out) == MC_ESHAPE, "it broadcast");
    CHECK(strstr(mc_last_error(), "declare the size 1"), "%s", mc_last_error());
    drop(v, 2);
    mc_graph_free(g);
}
