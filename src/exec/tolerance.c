/* tolerance.c: how far two right ways to compute a node may differ, element by element.  The tolerance
 * follows from the summands, not from their sum: 1e6 - 1e6 may be off by the rounding of 1e6.
 *
 *   elementwise ops   the rounding of the result, and its change when an operand moves by its own
 *                     tolerance
 *   comparisons       1 where the operands differ by no more than their tolerances
 *   positions         of a largest element: any, where another element is within the tolerances
 *   other ops         the rounding of the same op over absolute values, and its change by the tolerances
 *     solver ops      may add in transformed domains: the largest of these for all elements
 *     neither solver op nor reduction, such as softmax: at least the change when the elements of an operand
 *     move by their tolerances with different signs
 *
 * Tolerances are arrays of float64 in C order; NULL: none.  MC_TOLERANCE_ANY: any value is right, because the
 * tolerance of an operand makes the result infinite.
 *
 * Invariant: values without a tolerance must be equal. */
#include "exec/function.h"
#include "op/pool.h"
#include <math.h>

static double at(const mc_array *a, int64_t i)
{
    return mc_load_f64(a->dtype, a->data + (size_t)i * mc_dtypes[a->dtype].size);
}

static void add(mc_array *tolerance, int64_t i, double more)
{
    double *s = (double *)(void *)tolerance->data + i;
    *s = fmin(*s + (isnan(more) ? 0 : more), MC_TOLERANCE_ANY);
}

/* A copy of a, or of |a|, plus `times` its tolerance.  A bool is flipped where this term is at least 1
 * in magnitude. */
static mc_array *perturbed(const mc_array *a, const mc_array *tolerance, double times, bool absolute)
{
    mc_array *m = mc_array_copy(a);
    const bool turns = m && m->dtype == MC_BOOL && tolerance;
    for (int64_t i = 0, n = m && (turns || mc_is_float(m->dtype)) ? mc_array_size(m) : 0; i < n; i++) {
        double x = at(m, i), by = tolerance ? times * ((const double *)(const void *)tolerance->data)[i] : 0;
        by = !turns ? by : fabs(by) < 1 ? 0 : x > 0 ? -1 : 1;
        mc_store_f64(m->dtype, m->data + (size_t)i * mc_dtypes[m->dtype].size, (absolute ? fabs(x) : x) + by);
    }
    return m;
}

/* The value of n over `in`, with operand `which` replaced by `other`.  NULL: error. */
static mc_array *eval_with(const mc_node *n, mc_array *const *in, int which, mc_array *other)
{
    mc_array *all[8] = { 0 }, *out[MC_MOST_RESULTS] = { 0 };
    memcpy(all, in, (size_t)n->nin * sizeof *all);
    all[which] = other;
    if (other && mc_eval_node(n, all, out) < 0) {
        return NULL;
    }
    for (int k = 1; k < n->nout; k++) {
        mc_array_unref(&out[k]);
    }
    return out[0];
}

static void propagate_operand(const mc_node *n, mc_array *const *in, int which, const mc_array *by,
                              const mc_array *value, mc_array *tolerance)
{
    mc_array *far[2] = { NULL, NULL };
    for (int k = 0; k < 2; k++) {
        mc_array *x = perturbed(in[which], by, k ? -1 : 1, false);
        far[k] = eval_with(n, in, which, x);
        mc_array_unref(&x);
    }
    for (int64_t i = 0, size = far[0] && far[1] ? mc_array_size(value) : 0; i < size; i++) {
        add(tolerance, i, fmax(fabs(at(far[0], i) - at(value, i)), fabs(at(far[1], i) - at(value, i))));
    }
    mc_array_unref(&far[0]);
    mc_array_unref(&far[1]);
}

/* The same, but each element moves up or down by its own sign: softmax does not change if all elements move
 * alike. */
static void perturb_operand(const mc_node *n, mc_array *const *in, int which, const mc_array *by,
                            const mc_array *value, mc_array *tolerance)
{
    mc_array *signs = mc_array_copy(by), *some = mc_array_new(MC_FLOAT64, value->rank, value->dims);
    for (int64_t i = 0, size = signs ? mc_array_size(signs) : 0; i < size; i++) {
        double *s = (double *)(void *)signs->data + i;
        *s = (uint32_t)i * UINT32_C(2654435761) >> 31 ? -*s : *s;
    }
    if (signs && some) {
        propagate_operand(n, in, which, signs, value, some);
    }
    for (int64_t i = 0, size = some ? mc_array_size(some) : 0; i < size; i++) {
        add(tolerance, i, fmax(at(some, i) - at(tolerance, i), 0));
    }
    mc_array_unref(&signs);
    mc_array_unref(&some);
}

/* The index into x, whose sizes are those of y or 1, of the element that element i of y is computed from. */
static int64_t element_in(const mc_array *x, const mc_array *y, int64_t i)
{
    int64_t element = 0, step = 1;
    for (int a = x->rank; a-- > 0; i /= y->dims[a], step *= x->dims[a]) {
        element += x->dims[a] == 1 ? 0 : i % y->dims[a] * step;
    }
    return element;
}

/* A comparison of in[0] and in[1] may change where they differ by no more than their tolerances. */
static void comparison_tolerance(mc_array *const *in, mc_array *const *tolerance, mc_array *to)
{
    mc_array *x[2] = { mc_array_copy(in[0]), mc_array_copy(in[1]) };
    for (int64_t i = 0, size = x[0] && x[1] && (tolerance[0] || tolerance[1]) ? mc_array_size(to) : 0;
         i < size; i++) {
        double v[2], may = 0;
        for (int k = 0; k < 2; k++) {
            const int64_t element = element_in(x[k], to, i);
            v[k] = at(x[k], element);
            may += tolerance[k] ? at(tolerance[k], element) : 0;
        }
        add(to, i, may > 0 && fabs(v[0] - v[1]) <= may ? 1 : 0);
    }
    mc_array_unref(&x[0]);
    mc_array_unref(&x[1]);
}

/* If several elements are within the tolerances of the largest, its position may be that of any element, not
 * of these alone.  best: the largest lower bound of any element. */
static void position_tolerance(const mc_node *n, const mc_array *x, const mc_array *tolerance, mc_array *to)
{
    int axis[MC_MAX_RANK];
    const int naxis = (int)mc_axes_of(n, 0, x->rank, axis), size = (int)mc_array_size(to);
    int64_t step[MC_MAX_RANK] = { 0 }, along = 1;
    mc_array *near = mc_array_copy(x);
    double *best = mc_alloc(((size_t)size + 1) * sizeof *best, "debug");
    int *many = mc_calloc((size_t)size + 1, sizeof *many, "debug");
    for (int a = x->rank, next = naxis; a-- > 0;) {
        const bool gone = next > 0 && axis[next - 1] == a;
        next -= gone;
        step[a] = gone ? 0 : along;
        along *= gone ? 1 : x->dims[a];
    }
    for (int64_t i = 0; i < size && best; i++) {
        best[i] = -HUGE_VAL;
    }
    for (int turn = 0; turn < 2 && near && best && many && naxis >= 0 && along == size; turn++) {
        for (int64_t i = 0, count = mc_array_size(x); i < count; i++) {
            int64_t element = 0, left = i;
            for (int a = x->rank; a-- > 0; left /= x->dims[a]) {
                element += left % x->dims[a] * step[a];
            }
            const double v = at(near, i), may = ((const double *)(const void *)tolerance->data)[i];
            best[element] = turn ? best[element] : fmax(best[element], v - may);
            many[element] += turn && v + may >= best[element];
        }
    }
    for (int64_t i = 0; i < size && many; i++) {
        add(to, i, many[i] > 1 ? (double)mc_array_size(x) : 0);
    }
    mc_array_unref(&near);
    mc_free(best);
    mc_free(many);
}

/* Keys of pooling are positions of largest elements, not summands. */
static bool is_summand(const mc_node *n, int i, const mc_array *a)
{
    int role[POOL_NARRAY];
    return mc_is_float(a->dtype) && !(mc_pool_roles(n, role) && i == role[POOL_KEY]);
}

static void over_absolute_values(const mc_node *n, mc_array *const *in, mc_array *const *tolerance,
                                 double tol, mc_array *to)
{
    mc_array *all[2][8] = { { 0 } }, *out[2][MC_MOST_RESULTS] = { { 0 } };
    mc_status s = MC_OK;
    for (int k = 0; k < 2 && s == MC_OK; k++) {
        for (int i = 0; i < n->nin && s == MC_OK; i++) {
            all[k][i] = is_summand(n, i, in[i]) ? perturbed(in[i], tolerance[i], k, true)
                                                : mc_array_ref(in[i]);
            s = all[k][i] ? MC_OK : mc_last_status();
        }
        s = s < 0 ? s : mc_eval_node(n, all[k], out[k]);
    }
    double most = 0;
    for (int64_t i = 0, size = s == MC_OK && mc_is_float(out[0][0]->dtype) ? mc_array_size(to) : 0; i < size;
         i++) {
        double a = fabs(at(out[0][0], i)), more = tol * a + fabs(fabs(at(out[1][0], i)) - a);
        most = isfinite(more) ? fmax(most, more) : most;
        add(to, i, more);
    }
    for (int64_t i = 0, size = n->op->flags & OP_HEAVY ? mc_array_size(to) : 0; i < size; i++) {
        add(to, i, most);
    }
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < 16; i++) {
            mc_array_unref(&out[k][i]);
            mc_array *x = i < 8 ? all[k][i] : NULL;
            mc_array_unref(&x);
        }
    }
}

/* The smallest positive number of a half type: below the normal range, values are rounded to multiples of it.
 * 0 for other types. */
static double smallest_step(mc_dtype d)
{
    return d == MC_FLOAT16 ? 0x1p-24 : d == MC_BFLOAT16 ? 0x1p-133 : 0;
}

/* Near a root or a pole, the error of these ops is the change by the last digit of their argument. */
static bool is_off_near_roots(const mc_node *n)
{
    return n->op->flags & OP_ROOTS;
}

mc_array *mc_tolerance_of(const mc_array *a, double tol)
{
    mc_array *near = mc_array_copy(a), *s = near ? mc_array_new(MC_FLOAT64, a->rank, a->dims) : NULL;
    for (int64_t i = 0, n = s ? mc_array_size(s) : 0; i < n; i++) {
        add(s, i, tol * fabs(at(near, i)));
    }
    mc_array_unref(&near);
    return s;
}

/* Of n's first result, which is `value`. */
mc_array *mc_tolerance(const mc_node *n, mc_array *const *in, mc_array *const *tolerance,
                       const mc_array *value, double tol)
{
    const bool again = !(n->op->flags & (OP_IMPURE | OP_RANDOM)) &&
                       (!n->op->custom || n->op->code); /* may it be computed again? */
    mc_array *to = n->nin <= 8 && again ? mc_array_new(MC_FLOAT64, value->rank, value->dims) : NULL;
    bool each = mc_is_elementwise(n);
    for (int64_t i = 0, size = to && each && mc_is_float(value->dtype) ? mc_array_size(to) : 0; i < size;
         i++) {
        add(to, i, tol * fabs(at(value, i)) + smallest_step(value->dtype));
    }
    mc_array *digit = to && is_off_near_roots(n) && !tolerance[0] ? mc_tolerance_of(in[0], tol / 16) : NULL;
    if (digit) {
        propagate_operand(n, in, 0, digit, value, to);
    }
    mc_array_unref(&digit);
    if (to && n->op->typing == TYPE_BOOL && n->op->arity == 2 && mc_is_float(in[0]->dtype)) {
        comparison_tolerance(in, tolerance, to);
        return to;
    }
    if (to && tolerance[0] && mc_dtypes[value->dtype].kind == KIND_INT && n->op->flags & OP_REDUCES &&
        mc_is_float(in[0]->dtype)) {
        position_tolerance(n, in[0], tolerance[0], to);
        return to;
    }
    for (int i = 0; i < n->nin && to && each; i++) {
        if (tolerance[i]) {
            propagate_operand(n, in, i, tolerance[i], value, to);
        }
    }
    /* 0 * 0 changes only if both operands move */
    if (to && each && n->nin == 2 && tolerance[0] && tolerance[1]) {
        mc_array *both[2] = { perturbed(in[0], tolerance[0], 1, false), in[1] };
        if (both[0]) {
            propagate_operand(n, both, 1, tolerance[1], value, to);
        }
        mc_array_unref(&both[0]);
    }
    if (to && !each) {
        over_absolute_values(n, in, tolerance, tol, to);
    }
    for (int i = 0; i < n->nin && to && !each && !(n->op->flags & (OP_HEAVY | OP_REDUCES)); i++) {
        if (tolerance[i]) {
            perturb_operand(n, in, i, tolerance[i], value, to);
        }
    }
    return to;
}
