/* table.c: pooling on a GPU: the family and its solver.
 *
 * Large problems with small windows have kernels of their own: if the last axis is contiguous, a thread
 * computes several windows (lines.cu); if channels are innermost, several channels (channels_last.cu). All
 * other problems have a thread for each element (pool.cu).
 *
 * Invariant: the solver refuses nothing. */
#include "heavy/cuda/cuda.h"
#include "heavy/pool/cuda/pool_args.h"
#include "heavy/pool/solver.h"

static const char windows_text[] = {
#include "heavy/pool/cuda/windows_text.h"
    , 0
};
static const char text[] = {
#include "heavy/pool/cuda/pool_text.h"
    , 0
};
static const char lines_text[] = {
#include "heavy/pool/cuda/lines_text.h"
    , 0
};
static const char beside_text[] = {
#include "heavy/pool/cuda/channels_last_text.h"
    , 0
};
static const struct mc_cuda_text windows = { "heavy/pool/cuda/windows.cu", windows_text, NULL };
const struct mc_cuda_text mc_pool_text = { "heavy/pool/cuda/pool.cu", text, &windows };
const struct mc_cuda_text mc_pool_lines_text = { "heavy/pool/cuda/lines.cu", lines_text, &windows };
const struct mc_cuda_text mc_pool_channels_last_text = { "heavy/pool/cuda/channels_last.cu", beside_text,
                                                         &windows };

struct pool {
    struct mc_plan base;
    void *kernel;
    const char *name;
    const struct mc_cuda_text *text;
    struct mc_grid grid;
    struct mc_pool_args args;
};

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct pool *d = (const struct pool *)(const void *)plan;
    struct mc_pool_args a = d->args;
    (void)workspace;
    (void)threads;
    a.x = operand[POOL_X];
    a.y = operand[POOL_Y];
    a.key = mc_pool_keyed(pooling(plan->problem)) ? operand[POOL_KEY] : NULL;
    a.bias = pooling(plan->problem)->has_bias ? operand[POOL_BIAS] : NULL;
    a.together = ((uintptr_t)a.x | (uintptr_t)a.y | (uintptr_t)a.key) % 32 == 0;
    return d->kernel ? mc_cuda_launch_dependent(mc_cuda_current(), d->kernel, d->name, &d->grid, &a, sizeof a)
                     : MC_OK;
}

/* Planes are counted along the axes that are not pooled, the last fastest, but for lanes, which are fastest
 * of all. */
static void count_channels(struct mc_pool_args *a, const struct mc_pool_problem *p,
                           const struct mc_pool_grid *g)
{
    const bool lanes = g->lanes > 1 && p->channel == g->lane_axis;
    a->channels = (u64)MC_MAX(p->s.dims[p->channel], (int64_t)1);
    a->below = lanes ? 1 : (u64)g->lanes;
    for (int i = p->channel + 1; i < p->s.rank && !lanes; i++) {
        const bool pooled = i == p->s.axis[0] || i == p->s.axis[1] || i == p->s.axis[2];
        a->below *= pooled || (g->lanes > 1 && i == g->lane_axis) ? 1 : (u64)p->s.dims[i];
    }
}

/* The lanes are an ordinary axis here, the last one. */
static void shape(struct mc_pool_args *a, const struct mc_pool_problem *p, bool *inside)
{
    struct mc_pool_grid g;
    mc_pool_grid(p, &g);
    *a = (struct mc_pool_args){ .planes = g.planes * g.lanes, .nfree = g.nfree, .whole = p->s.whole };
    for (int i = 0; i < g.nfree; i++) {
        a->size[i] = g.size[i];
        for (int r = 0; r < POOL_NARRAY; r++) {
            a->at[r][i] = g.at[r][i];
        }
    }
    if (g.lanes > 1) {
        a->size[g.nfree] = g.lanes;
        a->at[POOL_X][g.nfree] = a->at[POOL_Y][g.nfree] = a->at[POOL_KEY][g.nfree] = 1;
        a->nfree++;
    }
    for (int64_t i = 0; i < a->nfree; i++) {
        a->axis[i] = mc_cuda_divider(a->size[i]);
    }
    *inside = g.lanes > 1;
    count_channels(a, p, &g);
    memcpy(a->slot, g.slot, sizeof a->slot);
    memcpy(a->in, p->s.in, sizeof a->in);
    memcpy(a->out, p->s.out, sizeof a->out);
    memcpy(a->w, p->s.w, sizeof a->w);
    memcpy(a->stride, p->s.stride, sizeof a->stride);
    memcpy(a->pad, p->s.pad, sizeof a->pad);
}

enum {
    FEW_CELLS = 32,
    MOST_CELLS = 64,
    MANY_RESULTS = 1 << 16,
    MOST_STRIDE = 4,
    MOST_WIDTH = 8,
    MOST_SUMS = 64,
    MOVED = 16
};

/* True if the problem is large, its windows are small, and offsets fit in an int. Then a kernel is compiled
 * for these windows. */
static bool fixed(const struct mc_pool_problem *p, int64_t count)
{
    const int64_t *w = p->s.w;
    struct mc_extent e[POOL_NEXTENT];
    bool yes = count >= MANY_RESULTS && w[0] * w[1] * w[2] <= MOST_CELLS;
    mc_pool_extents(p, e);
    for (int i = 0; i < POOL_NARRAY; i++) {
        yes = yes && e[i].count <= INT32_MAX;
    }
    return yes;
}

/* True if every window lies inside of the image. */
static bool all_inside(const struct mc_pool_shape *s)
{
    bool yes = true;
    for (int i = 0; i < 3; i++) {
        yes = yes && s->pad[i] <= 0 && (s->out[i] - 1) * s->stride[i] - s->pad[i] + s->w[i] <= s->in[i];
    }
    return yes;
}

/* True if no cell is in two windows, and the first window begins at the image's first cell. */
static bool are_disjoint(const struct mc_pool_shape *s)
{
    bool yes = true;
    for (int i = 0; i < 3; i++) {
        yes = yes && s->w[i] <= s->stride[i] && s->pad[i] == 0;
    }
    return yes;
}

/* Steps of threads along an axis: one for each window, or SPREAD: for each stride of cells. */
static int64_t steps(const struct mc_pool_shape *s, int i)
{
    return s->pass == POOL_SPREAD ? (s->in[i] + s->stride[i] - 1) / s->stride[i] : s->out[i];
}

/* How many elements of an array can be moved at a time: a power of two up to `most` that divides `line` (0:
 * the last axis' stride instead) and all other strides, except those of the innermost `axes` axes that are
 * not pooled. */
static int64_t moved(const struct mc_pool_args *a, int role, int64_t most, int64_t line, int axes)
{
    int64_t many = most;
    for (int i = 0; i < 3; i++) {
        while ((i < 2 || !line ? a->slot[role][i] : line) % many) {
            many /= 2;
        }
    }
    for (int i = 0; i < a->nfree - axes; i++) {
        while (a->at[role][i] % many) {
            many /= 2;
        }
    }
    return many;
}

/* Does every cell equal to its window's largest receive the gradient? */
static bool by_equals(const struct mc_pool_problem *p)
{
    return p->s.key == POOL_KEY_X && mc_pool_keyed(p);
}

/* ---- lanes ---- */

/* Lanes that a thread computes: sixteen bytes, or fewer if their sums would not fit in registers. 0: the
 * kernel does not apply. */
static int64_t beside(const struct mc_pool_problem *p, const struct mc_pool_args *a, bool inside)
{
    const struct mc_pool_shape *s = &p->s;
    const int64_t cells = s->pass == POOL_SPREAD ? s->stride[0] * s->stride[1] * s->stride[2] : 1;
    int64_t many = MOVED / (int64_t)mc_dtypes[p->dtype].size;
    while (many > 1 && !are_disjoint(s) && cells * many > MOST_SUMS) {
        many /= 2;
    }
    const bool yes = inside && mc_is_float(p->dtype) && s->pass != POOL_GATHER && !by_equals(p) &&
                     s->key != POOL_KEY_BITS && cells <= FEW_CELLS;
    return yes && a->size[a->nfree - 1] % many == 0 ? many : 0;
}

static int64_t fix_beside(struct mc_pool_args *a, struct mc_str *defines, const struct mc_pool_problem *p,
                          int64_t lanes)
{
    bool together = true;
    int64_t count = a->planes / lanes;
    for (int i = 0; i < POOL_NARRAY; i++) {
        together = together && moved(a, i, lanes, 0, 1) == lanes;
    }
    for (int i = 0; i < 3; i++) {
        a->part[i] = mc_cuda_divider(steps(&p->s, i));
        count *= steps(&p->s, i);
    }
    a->part[3] = mc_cuda_divider(a->size[a->nfree - 1] / lanes);
    mc_str_addf(defines, "#define BESIDE %d\n#define TOGETHER %d\n", (int)lanes, together);
    return count;
}

/* ---- lines ---- */

/* True for images of one or two axes, the last one contiguous, with windows that fit in registers. */
static bool in_lines(const struct mc_pool_problem *p, const struct mc_pool_args *a)
{
    const struct mc_pool_shape *s = &p->s;
    bool yes = mc_is_float(p->dtype) && s->pass != POOL_GATHER && (!by_equals(p) || are_disjoint(s)) &&
               s->in[0] == 1 && s->out[0] == 1 && s->w[0] == 1 && s->stride[0] == 1 && s->pad[0] == 0 &&
               a->slot[POOL_X][2] == 1 && a->slot[POOL_Y][2] == 1 &&
               (!mc_pool_keyed(p) || a->slot[POOL_KEY][2] == 1);
    for (int i = 1; i < 3; i++) {
        yes = yes && s->stride[i] <= MOST_STRIDE && s->pad[i] >= 0 && s->w[i] <= MOST_WIDTH;
    }
    return yes;
}

/* Windows of a thread: as many as cover the elements of x that are moved at a time, so that adjacent threads
 * access adjacent memory. At least four if windows share cells or are only read, and the length of lines of y
 * allows it. */
static int64_t positions(const struct mc_pool_shape *s, int64_t many)
{
    const int64_t stride = s->stride[2], least = MC_MAX(many / stride, (int64_t)1);
    int64_t n = many == 1 || (s->pass == POOL_SPREAD && are_disjoint(s) && many % stride == 0)
                    ? least
                    : MC_MAX(least, (int64_t)4);
    while (n > least && s->out[2] % n) {
        n /= 2;
    }
    return n;
}

static int64_t fix_lines(struct mc_pool_args *a, struct mc_str *defines, const struct mc_pool_problem *p)
{
    const struct mc_pool_shape *s = &p->s;
    int64_t x = moved(a, POOL_X, MOVED / (int64_t)mc_dtypes[p->dtype].size, s->in[2], 0);
    const int64_t n = positions(s, x), across = (steps(s, 2) + n - 1) / n;
    while (n * s->stride[2] % x) {
        x /= 2;
    }
    if (by_equals(p)) { /* the key is like x */
        x = MC_MIN(x, moved(a, POOL_KEY, x, s->in[2], 0));
    }
    const bool y = moved(a, POOL_Y, n, s->out[2], 0) == n &&
                   (!mc_pool_keyed(p) || by_equals(p) || moved(a, POOL_KEY, n, s->out[2], 0) == n);
    a->part[0] = mc_cuda_divider(across);
    a->part[1] = mc_cuda_divider(steps(s, 1));
    mc_str_addf(defines, "#define POSITIONS %d\n#define X_MANY %d\n#define Y_MANY %d\n#define EQUALS %d\n",
                (int)n, (int)x, y ? (int)n : 1, by_equals(p));
    return a->planes * across * steps(s, 1);
}

/* Chooses the kernel and its grid, and defines the sizes of windows for it. */
static void fix(struct pool *d, struct mc_str *defines, const struct mc_pool_problem *p, bool inside,
                int64_t count)
{
    const struct mc_pool_shape *s = &p->s;
    const bool known = fixed(p, count), lines = known && in_lines(p, &d->args);
    const int64_t lanes = known && !lines ? beside(p, &d->args, inside) : 0;
    for (int i = 0; i < 3 && known; i++) {
        mc_str_addf(defines, "#define W%d %d\n#define S%d %d\n#define P%d %d\n", i, (int)s->w[i], i,
                    (int)s->stride[i], i, (int)s->pad[i]);
    }
    mc_str_addf(defines, "#define FIXED %d\n", known);
    if (known) {
        mc_str_addf(defines, "#define WHOLE %d\n", all_inside(s));
    }
    d->name = lines ? "lines" : lanes ? "beside" : "pool";
    d->text = lines ? &mc_pool_lines_text : lanes ? &mc_pool_channels_last_text : &mc_pool_text;
    count = lines ? fix_lines(&d->args, defines, p) : lanes ? fix_beside(&d->args, defines, p, lanes) : count;
    d->args.count = (unsigned)count;
    d->grid = mc_cuda_grid_1d(count, 256);
}

static void *kernel_of(struct pool *d, const struct mc_pool_problem *p, bool inside, int64_t count)
{
    struct mc_str defines = { 0 };
    void *kernel;
    const enum mc_pool_key key = mc_pool_keyed(p) ? p->s.key : POOL_KEY_NONE;
    const char *const sum = mc_is_float(p->dtype)       ? (p->dtype == MC_FLOAT64 ? "double" : "float")
                            : p->s.pass == POOL_FORWARD ? "u64"
                                                        : "double";
    mc_str_addf(
        &defines,
        "#define T %s\n#define A %s\n#define FLOAT %d\n#define SIGNED %d\n#define MODE %d\n"
        "#define FORWARD %d\n#define GATHER %d\n#define KEY %d\n#define MARK %s\n#define PLANES_INSIDE %d\n",
        mc_dtypes[p->dtype].c, sum, mc_is_float(p->dtype), mc_dtypes[p->dtype].kind == KIND_INT,
        (int)p->s.mode, p->s.pass == POOL_FORWARD, p->s.pass == POOL_GATHER, (int)key,
        p->s.mark == MC_UINT8 ? "unsigned char" : "int", inside);
    mc_str_addf(&defines, "#define BIAS %d\n#define ACT %d\n#define EPILOGUE %d\n", p->has_bias, (int)p->act,
                p->has_bias || p->act != ACT_NONE);
    mc_cuda_index(&defines, count);
    fix(d, &defines, p, inside, count);
    mc_cuda_kernels(d->text, &defines, &(struct mc_cuda_kernel_ref){ &kernel, d->name }, 1);
    return kernel;
}

static struct mc_plan *plan(const struct mc_problem *p_)
{
    const struct mc_pool_problem *p = pooling(p_);
    bool inside;
    struct pool *d = mc_calloc(1, sizeof *d, "plans");
    if (!d) {
        return NULL;
    }
    d->base.run = run;
    shape(&d->args, p, &inside);
    const int64_t *n = p->s.pass == POOL_SPREAD ? p->s.in : p->s.out,
                  count = d->args.planes * n[0] * n[1] * n[2];
    if (count == 0) {
        return &d->base;
    }
    d->kernel = kernel_of(d, p, inside, count);
    if (!d->kernel) {
        mc_free(d);
        return NULL;
    }
    return &d->base;
}

static double estimate(const struct mc_problem *p)
{
    return mc_cuda_seconds(pooling(p)->dtype, false, 0, 15e9 * mc_pool_seconds(pooling(p)), 0.5);
}

static const struct mc_solver cuda_pool = {
    .name = "cuda", .estimate = estimate, .plan = plan
};
static const struct mc_solver *const solvers[] = { &cuda_pool, NULL };

/* ---- the family ---- */

static mc_status operands(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[POOL_NEXTENT];
    mc_pool_extents(pooling(p), e);
    return mc_cuda_operands(e, POOL_NEXTENT, operand);
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[POOL_NEXTENT];
    mc_pool_extents(pooling(p), e);
    mc_cuda_discard(e, POOL_NEXTENT, operand);
}

/* Bias and activation.  The host's reference takes them as a function, so they are applied here. */
static void after(const struct mc_problem *p_, void *const *operand)
{
    const struct mc_pool_problem *p = pooling(p_);
    int64_t size[MC_MAX_RANK];
    memcpy(size, p->s.dims, sizeof size);
    for (int i = 0; i < 3; i++) {
        if (p->s.axis[i] >= 0) {
            size[p->s.axis[i]] = p->s.out[i];
        }
    }
    const bool forward = p->s.pass == POOL_FORWARD;
    mc_cuda_finish_on_host(
        &(struct mc_cuda_finish){ p->dtype, p->s.rank, p->channel, size, p->at[POOL_Y], p->act },
        operand[POOL_Y], forward && p->has_bias ? operand[POOL_BIAS] : NULL);
}

static mc_status compare(const struct mc_problem *p, const struct mc_plan *plan_, void *const *got,
                         void *const *want)
{
    return mc_pool_compare(pooling(p), plan_, got, want);
}

static mc_status verify(const struct mc_problem *p, const struct mc_plan *plan_)
{
    static const struct mc_cuda_check check = { &mc_pool_family, &mc_pool_reference, after, compare };
    struct mc_extent e[POOL_NEXTENT];
    mc_pool_extents(pooling(p), e);
    return mc_cuda_verify(&check, p, plan_, e, POOL_NEXTENT);
}

const struct mc_family mc_pool_cuda = {
    .name = "pool",
    .solvers = solvers,
    .problem_size = sizeof(struct mc_pool_problem),
    .site = &mc_site_cuda,
    .key = mc_pool_key,
    .operands = operands,
    .discard = discard,
    .verify = verify,
};

struct mc_plan *mc_pool_cuda_plan(const struct mc_pool_problem *asked, const struct mc_plan_options *o)
{
    return mc_pool_plan_in(&mc_pool_cuda, asked, o);
}
