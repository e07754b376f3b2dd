/* scalar.c: the reference loops of scalar ops. The expression of each row is compiled here four times: for
 * double, float, int64 and uint64. Narrow integers are computed in int64 and wrap when stored; half types
 * are computed in float and rounded when stored. (-fwrapv makes integer overflow wrap, as in NumPy.) */
#include "op/op.h"
#include "op/special.h"
#include <math.h>

/* The macros that expressions of rows use; vector kernels define them differently. */
#define SEL(c, a, b) ((c) ? (a) : (b))
#define CLIP(a, b, c) ((a) < (b) ? (b) : (a) > (c) ? (c) : (a))
#define TURN(f, a) f(C(6.283185307179586477) * (a))
#define RAYLEIGH(f, g, a) f(C(-2) * g(C(1) - (a)))
#define NOT(c) (IS_BOOL ? !(c) : ~(c))
#define C(x) ((T)(x))
#define MINUS(x) (0 - (x))
#define LT(a, b) ((a) < (b))
#define LE(a, b) ((a) <= (b))
#define GT(a, b) ((a) > (b))
#define GE(a, b) ((a) >= (b))
#define EQ(a, b) ((a) == (b))
#define NE(a, b) ((a) != (b))

enum { CHUNK = 256 }; /* elements converted and computed at a time */

#define IS_BOOL is_bool
static inline float sigmoidf(float x) { return (float)mc_ref_sigmoid((double)x); }
static inline float softplusf(float x) { return (float)mc_ref_softplus((double)x); }
static inline float psif(float x) { return (float)mc_ref_psi((double)x); }
static inline float tri_gammaf(float x) { return (float)mc_ref_tri_gamma((double)x); }
#define floordiv mc_ref_floordiv
#define floordivf mc_ref_floordivf
#define floormod mc_ref_floormod
#define floormodf mc_ref_floormodf
static inline double sigmoid(double x) { return mc_ref_sigmoid(x); }
static inline double softplus(double x) { return mc_ref_softplus(x); }
static inline double psi(double x) { return mc_ref_psi(x); }
static inline double tri_gamma(double x) { return mc_ref_tri_gamma(x); }
#define BOTH_1(id)                                                                                 \
    static inline double id(double x) { return mc_ref_##id(x); }                                   \
    static inline float id##f(float x) { return (float)mc_ref_##id((double)x); }
#define BOTH_2(id)                                                                                 \
    static inline double id(double x, double y) { return mc_ref_##id(x, y); }                      \
    static inline float id##f(float x, float y) { return (float)mc_ref_##id((double)x, (double)y); }
#define BOTH_3(id)                                                                                 \
    static inline double id(double x, double y, double z) { return mc_ref_##id(x, y, z); }         \
    static inline float id##f(float x, float y, float z)                                           \
    {                                                                                              \
        return (float)mc_ref_##id((double)x, (double)y, (double)z);                                \
    }
MC_SPECIAL_1(BOTH_1)
MC_SPECIAL_2(BOTH_2)
MC_SPECIAL_3(BOTH_3)
/* The position of a row in the table. */
enum {
#define OP(name, ...) SCALAR_##name,
#define OPI OP
#include "op/ops.def"
#undef OP
#undef OPI
};

/* The loops of all rows, one function for each class of dtypes.  A table of all loops would be relocated when
 * the library is loaded.  In libmonochord-run, which is small, one loop selects the row of each element.
 * Unused operands alias a, so that every row may name a, b and c. */
#define LOOPS(cls)                                                                                           \
    static void cls##_loops(int op, const void *pa, const void *pb, const void *pc, void *py, int n,         \
                            int is_bool)
#ifdef MC_RUNTIME
#define ROWS for (int i = 0; i < n; i++) switch (op)
#define ELEMENTS
#else
#define ROWS switch (op)
#define ELEMENTS for (int i = 0; i < n; i++)
#endif
#define LOOP(name, R, ...) LOOP_(name, R, __VA_ARGS__)
#define LOOP_(name, R, ...)                                                                                  \
    case SCALAR_##name: {                                                                                    \
        __typeof__(R(0)) *y = py;                                                                            \
        ELEMENTS {                                                                                           \
            T a = va[i], b = vb[i], c = vc[i];                                                               \
            (void)a, (void)b, (void)c;                                                                       \
            y[i] = R(__VA_ARGS__);                                                                           \
        }                                                                                                    \
        break;                                                                                               \
    }

/* The conversion of the result, by the typing of the row. */
#define RESULT_SAME (T)
#define RESULT_NUMBER (T)
#define RESULT_POWER (T)
#define RESULT_FLOAT (T)
#define RESULT_DIV (T)
#define RESULT_WHERE (T)
#define RESULT_BITS (T)
#define RESULT_BOOL (int64_t)
#define RESULT_INT64(x) _Generic((x), float: whole_f64, double: whole_f64, default: whole_i64)(x)
static inline int64_t whole_i64(int64_t x) { return x; }
static inline int64_t whole_f64(double x)
{
    int64_t y;
    mc_convert(MC_INT64, &y, sizeof y, MC_FLOAT64, &x, sizeof x, 1);
    return y;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wfloat-equal"
#pragma GCC diagnostic ignored "-Wtype-limits"
#pragma GCC diagnostic ignored "-Wsign-compare"

typedef uint64_t u64;
#define T double
#define M(x) x
LOOPS(f64)
{
    const T *va = pa, *vb = pb, *vc = pc;
    (void)is_bool;
    ROWS
    {
#define OP(name, n, typing, flags, code, ...) LOOP(name, RESULT_##typing, code)
#define OPI OP
#include "op/ops.def"
    }
}
#undef T
#undef M
#undef OP
#undef OPI

#define T float
#define M(x) x##f
LOOPS(f32)
{
    const T *va = pa, *vb = pb, *vc = pc;
    (void)is_bool;
    ROWS
    {
#define OP(name, n, typing, flags, code, ...) LOOP(name, RESULT_##typing, code)
#define OPI OP
#include "op/ops.def"
    }
}
#undef T
#undef M
#undef OP
#undef OPI

#define M(x) never
#define OP(name, n, typing, flags, code, ...) LOOP(name, RESULT_##typing, code)
#define OPI(name, n, typing, flags, code, icode, ...) LOOP(name, RESULT_##typing, icode)

/* Rows for floats only are never run on integers. This function, which is never called, lets them compile
 * there. */
static inline int64_t never(int64_t x, ...) { return x; }
#define T int64_t
#define ipow mc_ref_ipow
LOOPS(i64)
{
    const T *va = pa, *vb = pb, *vc = pc;
    (void)is_bool;
    ROWS
    {
#include "op/ops.def"
    }
}
#undef T
#undef ipow
#define T uint64_t
#define ipow mc_ref_upow
LOOPS(u64)
{
    const T *va = pa, *vb = pb, *vc = pc;
    (void)is_bool;
    ROWS
    {
#include "op/ops.def"
    }
}
#undef OP
#undef OPI
#pragma GCC diagnostic pop

/* The dtype with the layout of a class; chunks are converted to it. */
static const mc_dtype class_dtype[MC_NCLASS] = {
    [CLASS_I64] = MC_INT64, [CLASS_U64] = MC_UINT64, [CLASS_F32] = MC_FLOAT32, [CLASS_F64] = MC_FLOAT64,
};

mc_status mc_scalar_infer(struct mc_infer *q)
{
    mc_dtype d = q->in[q->op->typing == TYPE_WHERE ? 1 : 0].dtype;
    q->out[0].dtype = q->op->typing == TYPE_BOOL ? MC_BOOL : q->op->typing == TYPE_INT64 ? MC_INT64 : d;
    return mc_broadcast_types(q->op, q->nin, q->in, &q->out[0]);
}

bool mc_op_linear(const struct mc_op *op, unsigned inputs)
{
    const unsigned in = op->flags / OP_LINEAR_A & 7, swapped = (in & 1) << 1 | in >> 1;
    return in && (inputs == in || (op->flags & OP_COMMUTES && inputs == swapped));
}

/* The size of the first operand that does not broadcast along the axis. */
mc_node *mc_scalar_size(mc_node *n, int item, int axis)
{
    (void)item;
    for (int i = 0; i < n->nin; i++) {
        if (n->in[i]->type.rank == n->type.rank && n->in[i]->type.dims[axis] != 1) {
            return mc_size_of(n->in[i], axis);
        }
    }
    return NULL;
}

mc_status mc_scalar_eval(const mc_node *n, mc_array *const *in, mc_array *const *out)
{
    const struct mc_op *op = n->op;
    mc_array *y = out[0];
    mc_dtype work = in[op->typing == TYPE_WHERE ? 1 : 0]->dtype;
    enum mc_class cls = mc_dtypes[work].cls;
    mc_dtype result = op->typing == TYPE_BOOL || op->typing == TYPE_INT64 ? MC_INT64 : class_dtype[cls];
    int64_t strides[3][MC_MAX_RANK] = { { 0 } };
    char *data[4];
    const int64_t *st[4];
    struct mc_walk w;
    _Alignas(64) char chunk[4][CHUNK * 8];

    for (int i = 0; i < n->nin; i++) {
        for (int k = 0; k < in[i]->rank; k++) {
            int axis = y->rank - in[i]->rank + k;
            strides[i][axis] = in[i]->dims[k] == 1 ? 0 : in[i]->strides[k];
        }
        data[i] = in[i]->data;
        st[i] = strides[i];
    }
    data[n->nin] = y->data;
    st[n->nin] = y->strides;
    if (!mc_walk_begin(&w, y->rank, y->dims, 1, n->nin + 1, data, st)) {
        return MC_OK;
    }
    int64_t inner = y->rank ? y->dims[y->rank - 1] : 1, step[4];
    for (int i = 0; i <= n->nin; i++) {
        step[i] = y->rank ? st[i][y->rank - 1] : 0;
    }
    do {
        for (int64_t at = 0; at < inner; at += CHUNK) {
            int m = (int)MC_MIN(inner - at, CHUNK);
            for (int i = 0; i < n->nin; i++) {
                mc_dtype d = class_dtype[cls];
                mc_convert(d, chunk[i], (int64_t)mc_dtypes[d].size, in[i]->dtype, w.p[i] + at * step[i],
                           step[i], m);
            }
            const void *a = chunk[0], *b = chunk[n->nin > 1 ? 1 : 0], *c = chunk[n->nin > 2 ? 2 : 0];
            switch (cls) {
            case CLASS_F64: f64_loops(op->index, a, b, c, chunk[3], m, work == MC_BOOL); break;
            case CLASS_F32: f32_loops(op->index, a, b, c, chunk[3], m, work == MC_BOOL); break;
            case CLASS_I64: i64_loops(op->index, a, b, c, chunk[3], m, work == MC_BOOL); break;
            case CLASS_U64: u64_loops(op->index, a, b, c, chunk[3], m, work == MC_BOOL); break;
            default: break;
            }
            mc_convert(y->dtype, w.p[n->nin] + at * step[n->nin], step[n->nin], result, chunk[3],
                       (int64_t)mc_dtypes[result].size, m);
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}
