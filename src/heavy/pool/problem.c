/* problem.c: the family of poolings: its keys, operands for timing, and the check against the reference.
 *
 *     pool f32 max forward marks i55x55 w3x3 s2x2 p0x0 o27x27 planes 12288
 *
 * Invariant: problems with equal keys differ at most in addresses. */
#include "heavy/pool/solver.h"
#include <inttypes.h>
#include <math.h>

static const char short_name[MC_NDTYPE][5] = {
    [MC_BOOL] = "b8", [MC_INT8] = "i8", [MC_INT16] = "i16", [MC_INT32] = "i32", [MC_INT64] = "i64",
    [MC_UINT8] = "u8", [MC_UINT16] = "u16", [MC_UINT32] = "u32", [MC_UINT64] = "u64",
    [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};
static const char *const mode_name[] = {
    [POOL_MAX] = "max", [POOL_SUM] = "sum", [POOL_AVERAGE_INC] = "average_inc_pad",
    [POOL_AVERAGE_EXC] = "average_exc_pad",
};
static const char *const pass_name[] = { [POOL_FORWARD] = "forward", [POOL_SPREAD] = "spread",
                                         [POOL_GATHER] = "gather" };
static const char *const array_name[] = { [POOL_X] = "x", [POOL_Y] = "y", [POOL_KEY] = "k" };
_Static_assert((int)POOL_NEXTENT <= (int)MC_PREPARED, "operands by number");

/* ---- key ---- */

static void sizes(struct mc_str *out, const char *name, const struct mc_pool_shape *s, const int64_t v[3])
{
    for (int i = 3 - s->nd; i < 3; i++) {
        mc_str_addf(out, "%s%" PRId64, i > 3 - s->nd ? "x" : name, v[i]);
    }
}

void mc_pool_key(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_pool_problem *p = pooling(p_);
    const struct mc_pool_shape *s = &p->s;
    struct mc_pool_grid g;
    mc_pool_grid(p, &g);
    mc_str_addf(out, "pool %s %s %s%s", short_name[p->dtype], mode_name[s->mode], pass_name[s->pass],
                s->key == POOL_KEY_X      ? " ties"
                : !mc_pool_keyed(p)       ? ""
                : s->key == POOL_KEY_BITS ? " bits"
                : s->mark == MC_UINT8     ? " marks"
                                          : " wide marks");
    sizes(out, " i", s, s->in);
    sizes(out, " w", s, s->w);
    sizes(out, " s", s, s->stride);
    sizes(out, " p", s, s->pad);
    sizes(out, " o", s, s->out);
    mc_str_add(out, s->mode == POOL_AVERAGE_INC && !s->whole ? " cut" : "");
    mc_str_addf(out, " planes %" PRId64, g.planes);
    if (g.lanes > 1) {
        mc_str_addf(out, " lanes %" PRId64, g.lanes);
    }
    if (p->has_bias) {
        mc_str_addf(out, " bias %d", p->channel);
    }
    mc_str_add(out, mc_act_names[p->act]);
    for (int r = 0; r < POOL_NARRAY; r++) { /* strides, if they are not those of a contiguous array */
        int64_t dense = g.lanes, far = 0;
        for (int i = 2; i >= 0; i--) {
            far |= s->axis[i] >= 0 && g.slot[r][i] != dense ? g.slot[r][i] : 0;
            dense *= r == POOL_X ? s->in[i] : s->out[i];
        }
        if (far && (r != POOL_KEY || mc_pool_keyed(p))) {
            mc_str_addf(out, " %s%" PRId64 "/%" PRId64 "/%" PRId64, array_name[r], g.slot[r][0], g.slot[r][1],
                        g.slot[r][2]);
        }
    }
}

/* ---- operands ---- */

/* low: offset of the lowest address from the first element; count: elements from the lowest to the highest */
struct extent { mc_dtype dtype; int64_t low, count; int64_t dims[MC_MAX_RANK]; };

static struct extent extent_of(const struct mc_pool_problem *p, int role)
{
    if (role == POOL_BIAS) {
        return (struct extent){ p->dtype, 0, p->has_bias ? p->s.dims[p->channel] : 0, { 0 } };
    }
    const bool marks = role == POOL_KEY && mc_pool_key_like_y(&p->s);
    struct extent e = { .dtype = marks ? p->s.mark : p->dtype, .count = 1 };
    memcpy(e.dims, p->s.dims, sizeof e.dims);
    for (int i = 0; i < 3 && (role == POOL_Y || marks); i++) {
        if (p->s.axis[i] >= 0) {
            e.dims[p->s.axis[i]] = p->s.out[i];
        }
    }
    for (int i = 0; i < p->s.rank; i++) {
        const int64_t reach = (e.dims[i] - 1) * p->at[role][i];
        e.low += reach < 0 ? reach : 0;
        e.count = e.dims[i] == 0 || e.count == 0 ? 0 : e.count + (reach < 0 ? -reach : reach);
    }
    return e;
}

void mc_pool_extents(const struct mc_pool_problem *p, struct mc_extent e[POOL_NEXTENT])
{
    for (int r = 0; r < POOL_NEXTENT; r++) {
        const struct extent all = extent_of(p, r);
        const bool present = all.count > 0 && (r != POOL_KEY || mc_pool_keyed(p));
        e[r] = present ? (struct mc_extent){ all.dtype, -all.low, all.count }
                       : (struct mc_extent){ all.dtype, 0, 0 };
    }
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    for (int r = 0; r < POOL_NEXTENT; r++) {
        const struct extent e = extent_of(pooling(p), r);
        if (operand[r]) {
            mc_free_pages((char *)operand[r] + e.low * (int64_t)mc_dtypes[e.dtype].size);
        }
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

/* Computes marks from X, so that they are valid for its windows. */
static mc_status mark(const struct mc_pool_problem *p, void *const *operand)
{
    struct mc_pool_problem forward = *p;
    forward.s.pass = POOL_FORWARD;
    forward.marks = true;
    struct mc_plan *plan = mc_plan_with(&forward.base, &mc_pool_reference);
    const mc_status s = plan ? plan->run(plan, operand, NULL, 0) : MC_EMEMORY;
    mc_plan_free(plan);
    return s;
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_pool_problem *p = pooling(p_);
    uint32_t seed = 12345;
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int r = 0; r < POOL_NEXTENT; r++) {
        const struct extent e = extent_of(p, r);
        const int64_t size = mc_dtypes[e.dtype].size;
        if (e.count == 0 || (r == POOL_KEY && !mc_pool_keyed(p))) {
            continue;
        }
        char *data = mc_alloc_pages((size_t)(e.count * size), "planner");
        if (!data) {
            discard(p_, operand);
            return MC_EMEMORY;
        }
        operand[r] = data - e.low * size;
        for (int64_t i = 0; i < e.count; i++) {
            seed = seed * 1664525u + 1013904223u;
            mc_store_f64(e.dtype, data + i * size,
                         (double)((int32_t)seed >> 22) *
                             /* few values, so that there are ties */
                             (mc_is_float(e.dtype) ? 0x1p-9 : 0x1p-3));
        }
    }
    const mc_status s = p->s.pass != POOL_FORWARD && mc_pool_key_like_y(&p->s) ? mark(p, operand) : MC_OK;
    if (s < 0) {
        discard(p_, operand);
    }
    return s;
}

/* ---- verification ---- */

/* The k-th role that a direction writes, or -1. */
static int written(const struct mc_pool_problem *p, int k)
{
    return p->s.pass == POOL_SPREAD                        ? (k ? -1 : POOL_X)
           : k == 0                                        ? POOL_Y
           : p->s.pass == POOL_FORWARD && mc_pool_keyed(p) ? POOL_KEY
                                                           : -1;
}

static mc_status compare(const struct mc_pool_problem *p, const struct mc_plan *plan, int role,
                         const char *got, const char *want)
{
    const struct extent e = extent_of(p, role);
    const double cells = (double)(p->s.w[0] * p->s.w[1] * p->s.w[2]), eps = mc_dtypes[e.dtype].eps;
    const bool exact = p->s.mode == POOL_MAX && p->s.pass != POOL_SPREAD && !p->has_bias &&
                       p->act == ACT_NONE;
    const double most = exact ? 0 : 2 * eps * cells * (cells + 4);
    struct mc_walk w;
    if (!mc_walk_begin(&w, p->s.rank, e.dims, 0, 2,
                       (char *[]){ (char *)(uintptr_t)got, (char *)(uintptr_t)want },
                       (const int64_t *[]){ p->at[role], p->at[role] })) {
        return MC_OK;
    }
    const int64_t size = mc_dtypes[e.dtype].size;
    do { /* the element size was given as 1, so offsets count elements */
        const int64_t at = (w.p[0] - got) * size;
        const double x = mc_load_f64(e.dtype, got + at), y = mc_load_f64(e.dtype, want + at);
        if (!(fabs(x - y) <= most)) {
            struct mc_str text = { 0 };
            mc_plan_text(plan, &text);
            mc_fail(MC_ECHECK, "%s: %s at offset %" PRId64 " is %.9g, the reference has %.9g",
                    text.s ? text.s : "pool", array_name[role], at / size, x, y);
            mc_str_free(&text);
            return MC_ECHECK;
        }
    } while (mc_walk_next(&w));
    return MC_OK;
}

/* Compares all that the direction writes. */
mc_status mc_pool_compare(const struct mc_pool_problem *p, const struct mc_plan *plan, void *const *got,
                          void *const *want)
{
    for (int k = 0; k < 2; k++) {
        const int role = written(p, k);
        if (role >= 0 && got[role]) {
            TRY(compare(p, plan, role, got[role], want[role]));
        }
    }
    return MC_OK;
}

static mc_status verify(const struct mc_problem *p_, const struct mc_plan *plan)
{
    const struct mc_pool_problem *p = pooling(p_);
    void *operand[8], *truth_operand[8], *workspace = NULL;
    struct mc_plan *truth = NULL;
    TRY(operands(p_, operand));
    mc_status s = operands(p_, truth_operand);
    if (s < 0) {
        discard(p_, operand);
        return s;
    }
    truth = mc_plan_with(p_, &mc_pool_reference);
    workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    s = !truth || (plan->workspace && !workspace) ? MC_EMEMORY : truth->run(truth, truth_operand, NULL, 0);
    s = s < 0 ? s : plan->run(plan, operand, workspace, 0);
    s = s < 0 ? s : mc_pool_compare(p, plan, operand, truth_operand);
    mc_plan_free(truth);
    mc_free_pages(workspace);
    discard(p_, operand);
    discard(p_, truth_operand);
    return s;
}

static size_t solver_names(const char **names, size_t capacity)
{
    return mc_solver_names(mc_pool_solvers, names, 0, capacity);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_pool_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_pool_algo);
}

const struct mc_family mc_pool_family = {
    .name         = "pool",
    .solvers      = mc_pool_solvers,
    .problem_size = sizeof(struct mc_pool_problem),
    .key         = mc_pool_key,
    .operands     = TRIED(operands),
    .discard      = TRIED(discard),
    .verify       = TRIED(verify),
    .forced       = forced,
};

struct mc_plan *mc_pool_plan_in(const struct mc_family *family, const struct mc_pool_problem *asked,
                                const struct mc_plan_options *o)
{
    struct mc_pool_problem p = *asked;
    int64_t count = 1;
    p.base = (struct mc_problem){ family, *o };
    for (int i = 0; i < p.s.rank; i++) {
        if (p.s.dims[i] < 0 || !mc_mul_i64(count, MC_MAX(p.s.dims[i], 1), &count)) {
            mc_fail(MC_ESHAPE, "pool: size %" PRId64 " of axis %d is impossible", p.s.dims[i], i);
            return NULL;
        }
    }
    return mc_plan_make(&p.base);
}

struct mc_plan *mc_pool_plan(const struct mc_pool_problem *p, const struct mc_plan_options *o)
{
    return mc_pool_plan_in(&mc_pool_family, p, o);
}

mc_status mc_pool_problem_of(const mc_node *n, const struct mc_type *in, const mc_array *const *value,
                             const int64_t *const strides[POOL_NARRAY], struct mc_pool_problem *p)
{
    *p = (struct mc_pool_problem){ .base.family = &mc_pool_family,
                                   .dtype = in[0].dtype,
                                   .marks = strides[POOL_KEY] != NULL };
    TRY(mc_pool_shape_of(n, in, value, &p->s));
    for (int r = 0; r < POOL_NARRAY; r++) {
        const int64_t size =
            mc_dtypes[r == POOL_KEY && mc_pool_key_like_y(&p->s) ? p->s.mark : p->dtype].size;
        for (int i = 0; i < p->s.rank && strides[r]; i++) {
            p->at[r][i] = strides[r][i] / size;
        }
    }
    return MC_OK;
}
