/* packed.c: pooling in layouts that no other solver takes. Each plane is copied to a contiguous one, pooled
 * by the solver rows, and copied back. Halves are converted to float32.
 *
 * Invariant: the child plan pools one contiguous plane. Each thread has memory for one. */
#include "heavy/pool/solver.h"

struct packed {
    struct mc_pool_planes planes;   /* child[0]: pools one contiguous plane */
    mc_dtype inner;                 /* dtype of the child */
    /* offsets in a thread's scratch of each array, and of the child's workspace */
    size_t at[POOL_NARRAY], work;
};

/* The sizes of a plane of X, or of Y or KEY. */
static const int64_t *sizes_of(const struct mc_pool_shape *s, int role)
{
    return role == POOL_X ? s->in : s->out;
}

static bool is_read(const struct mc_pool_shape *s, int role)
{
    return s->pass == POOL_SPREAD ? role != POOL_X
                                  : role == POOL_X || (role == POOL_KEY && s->pass == POOL_GATHER);
}

/* Copies one plane to the scratch (`in`) or back. */
static void move(const struct packed *k, const struct mc_pool_problem *p, int role, char *array, char *copy,
                 bool in)
{
    const bool key = role == POOL_KEY;
    const mc_dtype far = key ? p->s.mark : p->dtype, near = key ? p->s.mark : k->inner;
    const int64_t *n = sizes_of(&p->s, role), *slot = k->planes.grid.slot[role];
    const int64_t size = mc_dtypes[far].size, step = mc_dtypes[near].size;
    for (int64_t a = 0; a < n[0]; a++) {
        for (int64_t b = 0; b < n[1]; b++, copy += n[2] * step) {
            char *row = array + (a * slot[0] + b * slot[1]) * size;
            if (in) {
                mc_convert(near, copy, step, far, row, slot[2] * size, n[2]);
            } else {
                mc_convert(far, row, slot[2] * size, near, copy, step, n[2]);
            }
        }
    }
}

static void work(const struct mc_plan *plan, const struct mc_pool_plane *at)
{
    const struct packed *k = (const struct packed *)(const void *)plan;
    const struct mc_pool_problem *p = pooling(plan->problem);
    char *copy = at->scratch;
    void *operand[POOL_NOPERAND] = { NULL };
    for (int r = 0; r < POOL_NARRAY; r++) {
        operand[r] = copy + k->at[r];
    }
    for (int64_t lane = 0; lane < at->lanes; lane++) {
        for (int turn = 0; turn < 2; turn++) {
            for (int r = 0; r < POOL_NARRAY; r++) {
                const int64_t size = mc_dtypes[r == POOL_KEY ? p->s.mark : p->dtype].size;
                if (at->at[r] && is_read(&p->s, r) == (turn == 0)) {
                    move(k, p, r, at->at[r] + lane * size, operand[r], turn == 0);
                }
            }
            if (turn == 0) {
                const struct mc_plan *child = k->planes.base.child[0];
                child->run(child, operand, copy + k->work, 1);
            }
        }
    }
}

static const char *refuse(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    if (!mc_is_float(p->dtype)) {
        return "takes floats only";
    }
    if (p->s.key == POOL_KEY_BITS && p->dtype == MC_FLOAT64) {
        return "takes bits of ties in float32 only";
    }
    return p->s.pass != POOL_FORWARD && p->s.key == POOL_KEY_X
               ? "takes argmax marks, but not a gradient shared by ties"
               : mc_pool_hollow(p);
}

static double estimate(const struct mc_problem *p)
{
    return 1e-6 + 10 * mc_pool_seconds(pooling(p));
}

/* The same windows over one contiguous plane. */
static struct mc_pool_problem plane_of(const struct mc_pool_problem *p, mc_dtype inner)
{
    struct mc_pool_problem q = { .base = p->base, .dtype = inner, .marks = p->marks, .s = p->s };
    q.s.rank = 3;
    for (int r = 0; r < POOL_NARRAY; r++) {
        const int64_t *n = sizes_of(&p->s, r);
        memcpy(q.at[r], (const int64_t[3]){ n[1] * n[2], n[2], 1 }, 3 * sizeof(int64_t));
    }
    for (int i = 0; i < 3; i++) {
        q.s.axis[i] = i;
        q.s.dims[i] = p->s.in[i];
    }
    return q;
}

static size_t packed_bytes(int64_t cells, size_t size)
{
    return ((size_t)cells * size + 127) / 128 * 128;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    struct packed *k = mc_pool_planes(sizeof *k, p, work);
    size_t bytes = 0;
    if (!k) {
        return NULL;
    }
    k->inner = p->dtype == MC_FLOAT64 ? MC_FLOAT64 : MC_FLOAT32;
    const struct mc_pool_problem q = plane_of(p, k->inner);
    struct mc_plan *child = k->planes.base.child[0] = mc_plan_with(&q.base, &mc_pool_rows);
    if (!child) {
        mc_free(k);
        return NULL;
    }
    for (int r = 0; r < POOL_NARRAY; r++) {
        const int64_t *n = sizes_of(&p->s, r);
        k->at[r] = bytes;
        bytes += packed_bytes(n[0] * n[1] * n[2], mc_dtypes[r == POOL_KEY ? p->s.mark : k->inner].size);
    }
    k->work = bytes;
    mc_pool_scratch(&k->planes, bytes + child->workspace);
    return &k->planes.base;
}

const struct mc_solver mc_pool_packed = {
    .name = "packed", .refuse = refuse, .estimate = estimate, .plan = plan,
};
