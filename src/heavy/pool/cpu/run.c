/* run.c: the iteration space of a problem, and the loop over its planes on the thread team.
 *
 * Invariant: one thread computes a plane, or a part of its lanes. No two threads write the same element. */
#include "heavy/pool/solver.h"

bool mc_pool_keyed(const struct mc_pool_problem *p)
{
    return p->s.pass == POOL_FORWARD ? mc_pool_key_like_y(&p->s) && p->marks : p->s.key != POOL_KEY_NONE;
}

/* ---- the iteration space ---- */

/* True if axes i and i + 1 can be joined in every array. */
static bool joins(const struct mc_pool_grid *g, int i)
{
    bool yes = true;
    for (int r = 0; r < POOL_NARRAY; r++) {
        yes = yes && g->at[r][i] == g->at[r][i + 1] * g->size[i + 1];
    }
    return yes;
}

static void drop(struct mc_pool_grid *g, int i)
{
    g->nfree--;
    for (int k = i; k < g->nfree; k++) {
        g->size[k] = g->size[k + 1];
        for (int r = 0; r < POOL_NARRAY; r++) {
            g->at[r][k] = g->at[r][k + 1];
        }
    }
}

/* axis[i]: the axis of x that free axis i is. */
static void assign_lanes(struct mc_pool_grid *g, const int *axis, bool keyed)
{
    int best = -1;
    for (int i = 0; i < g->nfree; i++) {
        bool one = g->at[POOL_X][i] == 1 && g->at[POOL_Y][i] == 1 && (!keyed || g->at[POOL_KEY][i] == 1);
        best = one && (best < 0 || g->size[i] > g->size[best]) ? i : best;
    }
    g->lanes = 1;
    g->lane_axis = -1;
    if (best >= 0) {
        g->lanes = g->size[best];
        g->lane_axis = axis[best];
        drop(g, best);
    }
}

static bool pooled(const struct mc_pool_shape *s, int axis)
{
    return axis == s->axis[0] || axis == s->axis[1] || axis == s->axis[2];
}

void mc_pool_grid(const struct mc_pool_problem *p, struct mc_pool_grid *g)
{
    const bool keyed = mc_pool_keyed(p);
    int axis[MC_MAX_RANK];
    *g = (struct mc_pool_grid){ .s = &p->s, .planes = 1 };
    for (int i = 0; i < p->s.rank; i++) {
        if (pooled(&p->s, i) || p->s.dims[i] == 1) {
            continue;
        }
        axis[g->nfree] = i;
        g->size[g->nfree] = p->s.dims[i];
        for (int r = 0; r < POOL_NARRAY; r++) {
            g->at[r][g->nfree] = r == POOL_KEY && !keyed ? 0 : p->at[r][i];
        }
        g->nfree++;
    }
    for (int i = 0; i < 3; i++) {
        for (int r = 0; r < POOL_NARRAY; r++) {
            g->slot[r][i] = p->s.axis[i] < 0 || (r == POOL_KEY && !keyed) ? 0 : p->at[r][p->s.axis[i]];
        }
    }
    assign_lanes(g, axis, keyed);
    for (int i = g->nfree - 2; i >= 0; i--) {
        if (joins(g, i)) {
            g->size[i + 1] *= g->size[i];
            drop(g, i);
        }
    }
    for (int i = 0; i < g->nfree; i++) {
        g->planes *= g->size[i];
    }
}

struct mc_pool_span mc_pool_windows_inside(const struct mc_pool_shape *s, int slot)
{
    const int64_t st = s->stride[slot], pad = s->pad[slot], last = s->in[slot] - s->w[slot] + pad;
    struct mc_pool_span v = { MC_MIN(pad > 0 ? (pad + st - 1) / st : 0, s->out[slot]), 0 };
    v.to = MC_MAX(last < 0 ? 0 : MC_MIN(last / st + 1, s->out[slot]), v.from);
    return v;
}

/* ---- epilogue ---- */

/* Planes are counted along the axes that are neither pooled nor lanes, the last fastest. Joining axes does
 * not change that. */
void mc_pool_finish(void *const *operand, const struct mc_pool_grid *g, int64_t from, int64_t to,
                    int64_t lane, int64_t lanes)
{
    const struct mc_pool_shape *s = g->s;
    const int64_t *result = s->pass == POOL_SPREAD ? s->in : s->out;
    mc_pool_epilogue *finish;
    memcpy(&finish, &operand[POOL_EPILOGUE], sizeof finish); /* a function pointer stored in a void pointer */
    for (int64_t count = 0; finish && from < to; from += count) {
        int64_t at[MC_MAX_RANK] = { 0 }, size[MC_MAX_RANK], rest = from;
        bool whole = true; /* all inner axes are covered completely */
        count = 1;
        for (int i = s->rank - 1; i >= 0; i--) {
            size[i] = s->dims[i];
            if (i == g->lane_axis) {
                at[i] = lane;
                size[i] = lanes;
            } else if (!pooled(s, i)) {
                at[i] = rest % s->dims[i];
                rest /= s->dims[i];
                size[i] = whole ? MC_MIN(s->dims[i] - at[i], (to - from) / count) : 1;
                whole = whole && size[i] == s->dims[i];
                count *= size[i];
            }
        }
        for (int i = 0; i < 3; i++) {
            if (s->axis[i] >= 0) {
                size[s->axis[i]] = result[i];
            }
        }
        finish(operand[POOL_EPILOGUE_ARG], at, size);
    }
}

/* ---- planes ---- */

/* bytes of the result that are finished at once, so that they are still in the L1 cache */
enum { NEAR = 32 << 10 };
struct job {
    const struct mc_pool_planes *d;
    void *const *operand;
    char *scratch;
    int64_t chunk, n, near;
};

/* The first lane of part number `clip` of d->lane_parts: a multiple of 64, or the end. */
static int64_t lanes_from(const struct mc_pool_planes *d, int64_t part)
{
    const int64_t blocks = (d->grid.lanes + 63) / 64;
    return MC_MIN(blocks * part / d->lane_parts * 64, d->grid.lanes);
}

/* Planes may be small, so it divides only if there are several axes or parts of lanes. */
static void run_plane(const struct job *j, int64_t number, int64_t planes, int slot)
{
    const struct mc_pool_planes *d = j->d;
    const struct mc_pool_grid *g = &d->grid;
    const struct mc_pool_problem *q = pooling(d->base.problem);
    const int64_t size = mc_dtypes[q->dtype].size,
                  key_size = q->s.key == POOL_KEY_X ? size : (int64_t)mc_dtypes[q->s.mark].size;
    int64_t plane = number, from = 0, to = g->lanes;
    if (d->lane_parts > 1) {
        plane = number / d->lane_parts;
        from = lanes_from(d, number % d->lane_parts);
        to = lanes_from(d, number % d->lane_parts + 1);
    }
    int64_t at[POOL_NARRAY] = { from, from, from };
    for (int i = g->nfree - 1; i >= 0; i--) {
        const int64_t k = i ? plane % g->size[i] : plane;
        for (int r = 0; r < POOL_NARRAY; r++) {
            at[r] += k * g->at[r][i];
        }
        plane = i ? plane / g->size[i] : 0;
    }
    const struct mc_pool_plane p = {
        .g = g, .lanes = to - from, .planes = planes, .scratch = j->scratch + (size_t)slot * d->bytes,
        .at = { (char *)j->operand[POOL_X] + at[POOL_X] * size,
                (char *)j->operand[POOL_Y] + at[POOL_Y] * size,
                mc_pool_keyed(q)
                    ? (char *)j->operand[POOL_KEY] + at[POOL_KEY] * key_size
                    : NULL },
    };
    if (to > from) {
        d->work(&d->base, &p);
    }
}

/* The number of planes whose result fits in the L1 cache. */
static int64_t planes_in_cache(const struct mc_pool_planes *d)
{
    const struct mc_pool_problem *q = pooling(d->base.problem);
    const int64_t *result = q->s.pass == POOL_SPREAD ? q->s.in : q->s.out;
    const int64_t bytes = result[0] * result[1] * result[2] * d->grid.lanes * mc_dtypes[q->dtype].size;
    return MC_MAX(NEAR / MC_MAX(bytes, 1), 1);
}

static void chunk(void *arg, int64_t task, int slot)
{
    const struct job *j = arg;
    const struct mc_pool_planes *d = j->d;
    int64_t begin = task * j->chunk;
    const int64_t end = MC_MIN(begin + j->chunk, j->n);
    for (int64_t i = begin, n; d->joint && i < end; i += n) {
        n = MC_MIN(j->near, end - i);
        run_plane(j, i, n, slot);
        mc_pool_finish(j->operand, &d->grid, i, i + n, 0, d->grid.lanes);
    }
    for (int64_t i = begin; !d->joint && i < end; i++) {
        run_plane(j, i, 1, slot);
        if (d->lane_parts > 1) {
            const int64_t from = lanes_from(d, i % d->lane_parts), to = lanes_from(d, i % d->lane_parts + 1);
            mc_pool_finish(j->operand, &d->grid, i / d->lane_parts, i / d->lane_parts + (to > from), from,
                           to - from);
        } else if (i + 1 == end || i + 1 - begin == j->near) {
            mc_pool_finish(j->operand, &d->grid, begin, i + 1, 0, d->grid.lanes);
            begin = i + 1;
        }
    }
}

static mc_status run(const struct mc_plan *plan, void *const *operand, void *workspace, int threads)
{
    const struct mc_pool_planes *d = (const struct mc_pool_planes *)(const void *)plan;
    struct job j = { .d = d,
                     .operand = operand,
                     .scratch = workspace,
                     .n = d->grid.planes * d->lane_parts,
                     .near = planes_in_cache(d) };
    threads = threads > 0 ? MC_MIN(threads, d->slots) : d->slots;
    j.chunk = MC_MAX(j.n / (8 * (int64_t)threads), 1);
    mc_team_tasks(chunk, &j, (j.n + j.chunk - 1) / j.chunk, d->slots, threads,
                  mc_pool_seconds(pooling(plan->problem)));
    return MC_OK;
}

void *mc_pool_planes(size_t size, const struct mc_pool_problem *p, mc_pool_work *work)
{
    struct mc_pool_planes *d = mc_calloc(1, size, "plans");
    if (d) {
        d->base.run = run;
        d->work = work;
        d->lane_parts = 1;
        d->slots = mc_team_size();
        mc_pool_grid(p, &d->grid);
    }
    return d;
}

bool mc_pool_planes_follow(const struct mc_pool_planes *d, const struct mc_pool_problem *p)
{
    const struct mc_pool_shape *s = &p->s;
    const struct mc_pool_grid *g = &d->grid;
    const int64_t rows[POOL_NARRAY] = { [POOL_X] = s->in[1],
                                        [POOL_Y] = s->out[1],
                                        [POOL_KEY] = s->key == POOL_KEY_X ? s->in[1] : s->out[1] };
    bool follow = g->lanes == 1 && g->nfree == 1 && s->in[0] == 1 && s->w[0] == 1 && s->pad[1] == 0 &&
                  s->stride[1] == s->w[1] && s->in[1] == s->out[1] * s->w[1];
    for (int r = 0; follow && r < POOL_NARRAY; r++) {
        follow = g->at[r][0] == rows[r] * g->slot[r][1];
    }
    return follow;
}

void mc_pool_scratch(struct mc_pool_planes *d, size_t bytes)
{
    d->bytes = (bytes + 127) / 128 * 128;
    d->base.workspace = d->bytes * (size_t)d->slots;
}

/* ---- estimates ---- */

static const double bytes_a_second = 15e9; /* of one thread */

double mc_pool_seconds(const struct mc_pool_problem *p)
{
    double x = 1, y = 1;
    for (int i = 0; i < p->s.rank; i++) {
        x *= (double)p->s.dims[i];
    }
    for (int i = 0; i < 3; i++) {
        y *= p->s.in[i] ? (double)p->s.out[i] / (double)p->s.in[i] : 0;
    }
    return x * (1 + y) * mc_dtypes[p->dtype].size / bytes_a_second;
}

const char *mc_pool_hollow(const struct mc_pool_problem *p)
{
    for (int i = 0; i < p->s.rank; i++) {
        if (p->s.dims[i] == 0) {
            return "leaves empty images to the reference";
        }
    }
    return p->s.out[0] * p->s.out[1] * p->s.out[2] == 0 ? "leaves empty results to the reference" : NULL;
}

const char *mc_pool_hollow_columns(const struct mc_pool_problem *p)
{
    const struct mc_pool_shape *s = &p->s;
    struct mc_pool_grid g;
    mc_pool_grid(p, &g);
    const int64_t keys = !mc_pool_keyed(p) ? 0 : s->key == POOL_KEY_X ? s->in[2] : s->out[2];
    const bool far = (s->in[2] > 1 && g.slot[POOL_X][2] != 1) || (s->out[2] > 1 && g.slot[POOL_Y][2] != 1) ||
                     (keys > 1 && g.slot[POOL_KEY][2] != 1);
    return far || g.lanes > 1 ? "needs contiguous columns" : mc_pool_hollow(p);
}
