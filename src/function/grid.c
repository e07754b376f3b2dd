/* grid.c: a kernel at one shape on a GPU: axes without work dropped, neighbours joined, threads and blocks chosen,
 * the kernel's one struct of arguments filled but for addresses.
 *
 * Invariant: how a reduction is split follows from its sizes alone, not from the GPU, so every GPU adds in one order. */
#include "function/far.h"

enum { MOST_BLOCKS = 2112, BLOCK = 256, WARP = 32, MOST_SPLITS = 256, ENOUGH_BLOCKS = 264, COLUMN_BLOCKS = 396, FULL_BLOCKS = 1056,
       LONG = 8192, MANY = 2048, FEW_ROWS = 64, NEIGHBOUR_BLOCKS = 264, SEGMENT = 128, MOST_TEAMS = 660, FEW_TEAMS = 132 };
static const int64_t most_tallies = 16 << 20; /* bytes of all teams' sums, where fewer teams still fill the GPU */

struct axis { int64_t size; int at; };
struct space {
    struct axis axis[MC_MAX_RANK]; /* innermost first: kept, then reduced */
    int n[2];
    int64_t count[2];
    int64_t stride[MOST_OPERANDS][MC_MAX_RANK]; /* by the kernel's axes: bytes, or positions */
};

static bool joins(const struct space *s, int nop, const struct axis *inner, int outer)
{
    for (int i = 0; i < nop; i++) {
        if (s->stride[i][outer] != s->stride[i][inner->at] * inner->size) {
            return false;
        }
    }
    return true;
}

/* Axes of one kind, innermost first, as few as will do; one of size 1 if there are none. */
static void gather(struct space *s, const struct mc_kernel *k, const int64_t *size, bool reduced)
{
    int first = reduced ? s->n[0] : 0, n = 0, nop = (int)k->operand.n;
    s->count[reduced] = 1;
    for (int a = k->rank; a-- > 0;) {
        if (!(k->varies & 1u << a) || ((k->reduced & 1u << a) != 0) != reduced) {
            continue;
        }
        s->count[reduced] *= size[a];
        struct axis *last = &s->axis[first + MC_MAX(n, 1) - 1];
        if (size[a] == 1) {
            continue;
        }
        if (n && joins(s, nop, last, a)) {
            last->size *= size[a];
        } else {
            s->axis[first + n++] = (struct axis){ size[a], a };
        }
    }
    s->n[reduced] = n;
}

/* Do the elements lie dense along the innermost axis of their kind, so that v may be taken at once from aligned addresses? */
static bool dense(const struct mc_kernel *k, const struct space *s, const struct mc_grid_launch *l, const struct mc_spot *place, int first, int v)
{
    int inner = s->axis[first].at;
    if (s->axis[first].size % v) {
        return false;
    }
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        int64_t size = o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size;
        bool moves = k->inner >= 0 && o->varies & 1u << k->inner;
        if (s->stride[i][inner] != (moves ? size : 0)) {
            return false;
        }
        if (moves && !o->index && place[l->value[i]].offset % (v * size)) {
            return false;
        }
        for (int a = 0; a < s->n[0] + s->n[1] && moves && !o->index; a++) {
            if (a != first && s->stride[i][s->axis[a].at] % (v * size)) {
                return false;
            }
        }
    }
    return true;
}

static unsigned power(int64_t n)
{
    unsigned p = 1;
    while (p < n && p < 1u << 30) {
        p *= 2;
    }
    return p;
}

static unsigned blocks(int64_t n, int64_t each)
{
    return (unsigned)((n + each - 1) / each);
}

/* A line of lanes for each point, or lanes above each other where neighbours are kept. */
static void team(const struct mc_kernel *k, const struct mc_grid_head *h, unsigned *lanes, unsigned *apart)
{
    int64_t points = h->count[0], length = h->count[1];
    if (h->column) {
        *apart = MC_MIN(power(points), (unsigned)WARP);
        *lanes = MC_MIN(MC_MIN(power(length), BLOCK / *apart), 16);
        return;
    }
    bool many = points >= MANY && !mc_grid_tallies(k); /* enough to fill the GPU with a warp for each */
    *lanes = length <= WARP ? power(length) : length <= 512 || (many && length <= 2048) ? WARP : length <= 2048 ? 128 : points < 64 ? GRID_LANES : BLOCK;
    *apart = MC_MAX(BLOCK / *lanes, 1);
}

/* Blocks of a kernel with tallies, each team with several rows, and of what adds the teams' sums. */
static void spread_tallies(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h)
{
    int64_t apart = l->grid.threads[1], teams = MC_MAX(MC_MIN(h->count[0], MOST_TEAMS), 1), size = (int64_t)mc_grid_tally_size(k), n = 0;
    for (size_t i = 0; i < k->operand.n; i++) {
        n += k->operand.at[i].tally;
    }
    while (teams > FEW_TEAMS && teams * h->count[1] * n * size > most_tallies) {
        teams /= 2;
    }
    l->grid.blocks[0] = blocks(teams, apart);
    h->teams = (uint32_t)(l->grid.blocks[0] * apart);
    l->scratch = (size_t)h->teams * h->count[1] * (size_t)(n * size);
    l->tally_grid = (struct mc_grid){ { blocks(h->count[1], GRID_PLACES), (unsigned)n, 1 }, { GRID_PLACES, 1024 / GRID_PLACES, 1 }, 0 };
}

/* Threads of a kernel that keeps its rows in registers. */
static void rows(const struct mc_kernel *k, struct mc_grid_launch *l, const struct mc_grid_head *h, struct mc_grid_row row)
{
    int64_t each = row.vector * row.kept;
    unsigned lanes = MC_MAX(power((h->count[1] + each - 1) / each), (unsigned)WARP), apart = MC_MAX(BLOCK / 2 / lanes, 1);
    l->grid = (struct mc_grid){ { blocks(h->count[0], apart), 1, 1 }, { lanes, apart, 1 }, 0 };
    l->grid.shared = lanes > WARP ? (size_t)k->nreduce * apart * WARP * GRID_SHARED : 0;
    l->stages = 1;
}

/* Blocks that share a point.  Stages behind one another are worth a launch each only where lanes go far. */
static uint32_t splits(const struct mc_kernel *k, const struct mc_grid_head *h, int64_t across, unsigned lanes, int vector)
{
    int64_t length = h->count[1], most = MC_MIN(length * vector / (lanes * 8), MOST_SPLITS);
    int64_t enough = vector > 1 ? FULL_BLOCKS : h->column ? COLUMN_BLOCKS : ENOUGH_BLOCKS;
    while (h->column && most * most * 4 > length) { /* each block reads the sums of all: no more than elements */
        most--;
    }
    int64_t worth = h->column ? LONG / BLOCK * lanes : LONG; /* as many steps of a lane */
    if (!mc_grid_splits(k) || across >= enough / 2 || most < 2 || (k->nstage > 1 && length * vector < worth)) {
        return 1;
    }
    return (uint32_t)MC_MIN(enough / MC_MAX(across, 1), most);
}

/* Threads of a reducing kernel that takes `vector` elements at once, and how many blocks share a point. */
static void spread(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h, int vector)
{
    int64_t points = h->count[0], length = h->count[1];
    unsigned lanes, apart;
    h->column = k->mode == KERNEL_COLUMN && points >= 8;
    team(k, h, &lanes, &apart);
    int64_t across = blocks(points, apart);
    h->splits = splits(k, h, across, lanes, vector);
    h->chunk = (uint32_t)((length + h->splits - 1) / h->splits);
    h->chunk = h->splits > 1 ? (h->chunk + lanes - 1) / lanes * lanes : MC_MAX(h->chunk, 1);
    h->splits = length ? blocks(length, h->chunk) : 1;
    l->grid = (struct mc_grid){ { (unsigned)across, h->splits, 1 }, { h->column ? apart : lanes, h->column ? lanes : apart, 1 }, 0 };
    l->grid.shared = h->column || lanes > WARP ? (size_t)(lanes * apart) * GRID_SHARED : 0;
    l->stages = h->splits > 1 ? (uint32_t)k->nstage : 1;
    l->ends = h->splits > 1 && mc_grid_ends(k);
    l->scratch = h->splits > 1 ? (size_t)k->nreduce * h->splits * (size_t)points * 16 : 0;
}

/* Largest element that a walk moves. */
static int64_t largest(const struct mc_kernel *k)
{
    size_t size = 1;
    for (size_t i = 0; i < k->operand.n; i++) {
        size = k->operand.at[i].index ? size : MC_MAX(size, mc_dtypes[k->operand.at[i].dtype].size);
    }
    return (int64_t)size;
}

/* Threads of a kernel whose threads have neighbours: SEGMENT bytes of a row side by side, the rest of a block above each other;
 * rows in as many pieces as fill the GPU, while their sums are no more bytes than they themselves. */
static void columns(const struct mc_kernel *k, struct mc_grid_launch *l, struct mc_grid_head *h)
{
    const int64_t places = h->count[0], length = h->count[1], size = largest(k);
    const unsigned wide = MC_MIN(power(places), (unsigned)(SEGMENT / (GRID_COLUMN * size))), lanes = MC_MAX(MC_MIN(power(length), BLOCK / wide), WARP / MC_MIN(wide, (unsigned)WARP));
    const int64_t across = blocks(places, wide);
    int64_t most = MC_MIN(length / (lanes * 2), MOST_SPLITS);
    while (most > 1 && most * most * k->nreduce * 16 > length * size) {
        most--;
    }
    h->splits = (uint32_t)MC_MAX(MC_MIN(NEIGHBOUR_BLOCKS / MC_MAX(across, 1), most), 1);
    h->chunk = (uint32_t)MC_MAX((length + h->splits - 1) / h->splits, 1);
    h->splits = length ? blocks(length, h->chunk) : 1;
    l->grid = (struct mc_grid){ { (unsigned)across, h->splits, 1 }, { wide, lanes, 1 }, (size_t)(wide * lanes / WARP) * wide * GRID_COLUMN * sizeof(double) };
    l->stages = h->splits > 1 ? (uint32_t)k->nstage : 1;
    l->ends = h->splits > 1 && mc_grid_ends(k);
    l->scratch = h->splits > 1 ? (size_t)k->nreduce * h->splits * (size_t)places * GRID_COLUMN * 16 : 0;
}

/* A length that lanes can keep and that keeps them busy. */
static bool keeps(struct mc_grid_row row, int64_t length)
{
    return row.vector && length * 2 >= row.vector * WARP && length <= (int64_t)row.vector * row.kept * row.most;
}

/* Are two axes reduced at most, with another step to be read behind the first, and do steps fit 32 bits, those of vectors too? */
static bool near(const struct mc_kernel *k, const struct space *s)
{
    const int64_t most = INT32_MAX / 16;
    bool near = s->n[1] <= 2 && s->n[0] + 2 <= MC_MAX_RANK;
    for (int a = s->n[0]; a < s->n[0] + s->n[1]; a++) {
        for (size_t i = 0; i < k->operand.n; i++) {
            near &= s->stride[i][s->axis[a].at] >= -most && s->stride[i][s->axis[a].at] <= most;
        }
    }
    return near;
}

/* May a form that keeps rows do it?  Rows that lie dense, or in pieces that do, of such a length.  Few that are long are
 * better split over blocks. */
static bool keeps_rows(const struct mc_kernel *k, const struct space *s, const struct mc_grid_launch *l, const struct mc_spot *place, struct mc_grid_row row)
{
    const bool torn = mc_grid_torn(k), many = s->count[0] >= (torn ? FEW_ROWS : ENOUGH_BLOCKS / 2);
    return row.vector && (many || (torn ? s->count[1] < LONG : k->nstage > 1)) && s->n[1] >= 1 && s->n[1] <= 1 + torn && keeps(row, s->count[1]) &&
           near(k, s) && dense(k, s, l, place, s->n[0], row.vector);
}

/* May NAME_c do it?  Neighbours that lie dense, and one axis of them. */
static bool keeps_columns(const struct mc_kernel *k, const struct space *s, const struct mc_grid_launch *l, const struct mc_spot *place)
{
    return s->n[0] == 1 && s->n[1] >= 1 && near(k, s) && dense(k, s, l, place, 0, GRID_COLUMN);
}

/* A map's elements, or as many groups of v; the outermost axis in pieces where 32 bits do not count them. */
static void line(struct mc_grid_launch *l, struct mc_grid_head *h, const struct space *s, int64_t count)
{
    l->pieces = 1;
    if (count > INT32_MAX) {
        int outer = s->n[0] - 1;
        int64_t rest = count / h->size[outer], most = MC_MAX(INT32_MAX / MC_MAX(rest, 1), 1);
        l->piece = most;
        l->pieces = (h->size[outer] + most - 1) / most;
        l->outer = outer;
        count = rest * most;
    }
    h->count[0] = (uint32_t)count;
    l->grid = (struct mc_grid){ { MC_MIN(blocks(count, BLOCK), MOST_BLOCKS), 1, 1 }, { BLOCK, 1, 1 }, 0 };
}

/* n / d = (n m / 2^32 + n) / 2^s for n below 2^31, where 2^s >= d and m = 2^32 (2^s - d) / d + 1. */
static void divide_by(struct mc_grid_head *h, int axis)
{
    const uint64_t d = MC_MAX(h->size[axis], 1);
    uint32_t s = 0;
    while (((uint64_t)1 << s) < d) {
        s++;
    }
    h->magic[axis] = (uint32_t)((((uint64_t)1 << s) - d) * ((uint64_t)1 << 32) / d + 1);
    h->shift[axis] = s;
}

static mc_status fill(const struct mc_function *f, const struct mc_shape_plan *p, struct mc_grid_launch *l, const struct mc_step *st, const struct space *s,
                      const struct mc_grid_kernel *g)
{
    const struct mc_kernel *k = st->kernel;
    struct mc_grid_args a = mc_grid_args(l->args, k->operand.n);
    bool map = k->mode == KERNEL_MAP;
    const struct mc_grid_row whole = mc_grid_row(k), single = mc_grid_single(k);
    const bool wide = !map && g->row && keeps_rows(k, s, l, p->place, whole), row = wide || (!map && g->single && keeps_rows(k, s, l, p->place, single));
    const bool column = !map && !row && g->column && keeps_columns(k, s, l, p->place);
    int first = map || column ? 0 : s->n[0], of = column ? GRID_COLUMN : mc_grid_vector(k);
    int v = column ? of : !row && s->n[!map] > 0 && g->vector && dense(k, s, l, p->place, first, of) ? of : 1;
    memset(a.head, 0, sizeof *a.head);
    a.head->flat = map && s->n[0] == 1 && dense(k, s, l, p->place, 0, v);
    for (int x = 0; x < s->n[0] + s->n[1]; x++) {
        a.head->size[x] = (uint32_t)(s->axis[x].size / (x == first ? v : 1));
        divide_by(a.head, x);
        for (size_t i = 0; i < k->operand.n; i++) {
            a.step[i][x] = s->stride[i][s->axis[x].at] * (x == first ? v : 1);
        }
    }
    a.head->near = near(k, s);
    a.head->number = (uint32_t)(st - f->code->program.step.at);
    a.head->axes[0] = (uint32_t)s->n[0];
    a.head->axes[1] = (uint32_t)MC_MAX(s->n[1], 1); /* without one its only step is 0, as are those behind the last axis */
    if (!map && (s->count[0] > INT32_MAX || s->count[1] > INT32_MAX)) {
        return mc_fail(MC_EUNSUPPORTED, "%s: a reduction over more than 2^31 elements", f->name);
    }
    l->fn = v > 1 ? g->vector : g->plain;
    if (map) {
        line(l, a.head, s, s->count[0] / v);
    } else {
        l->pieces = 1;
        a.head->count[0] = (uint32_t)(s->count[0] / (column ? v : 1));
        a.head->count[1] = (uint32_t)(s->count[1] / (column ? 1 : v));
        if (column) {
            l->fn = g->column;
            columns(k, l, a.head);
        } else if (row) {
            l->fn = wide ? g->row : g->single;
            rows(k, l, a.head, wide ? whole : single);
        } else {
            spread(k, l, a.head, v);
        }
    }
    if (mc_grid_tallies(k)) {
        spread_tallies(k, l, a.head);
        l->tally = g->tally;
    }
    return MC_OK;
}

/* ---- what is known before there is a shape ---- */

/* Elements along the axes that a walk goes along; -1: only a call tells. */
static int64_t known_length(const struct mc_step *st)
{
    const struct mc_kernel *k = st->kernel;
    int64_t size[MC_MAX_RANK], length = 1;
    for (int a = 0; a < MC_MAX_RANK; a++) {
        size[a] = 1;
    }
    for (int i = 0; i < st->nnode; i++) {
        const mc_node *n = st->node[i];
        for (int j = -1; j < (n->op->flags & OP_REDUCES ? n->nin : 0); j++) {
            const struct mc_type *t = j < 0 ? &n->type : &n->in[j]->type;
            for (int a = 0; a < t->rank && t->rank == k->rank; a++) {
                size[a] = t->dims[a] > 1 || (t->dims[a] < 0 && size[a] == 1) ? t->dims[a] : size[a];
            }
        }
    }
    for (int a = 0; a < k->rank && length >= 0; a++) {
        bool walked = k->mode == KERNEL_MAP || k->reduced & 1u << a;
        length = !walked ? length : size[a] < 0 || !mc_mul_size((size_t)length, (size_t)size[a], &(size_t){ 0 }) ? -1 : length * size[a];
    }
    return length;
}

unsigned mc_grid_never(const struct mc_step *st)
{
    const struct mc_kernel *k = st->kernel;
    const int64_t length = known_length(st);
    const struct mc_grid_row row = mc_grid_row(k), single = mc_grid_single(k);
    if (length < 0) {
        return 0;
    }
    return (length % mc_grid_vector(k) ? GRID_VECTOR : 0) | (row.vector && (length % row.vector || !keeps(row, length)) ? GRID_ROW : 0) |
           (single.vector && !keeps(single, length) ? GRID_SINGLE : 0);
}

/* ---- planning and running ---- */

mc_status mc_grid_plan(struct mc_function *f, struct mc_shape_plan *p, int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_kernel *k = st->kernel;
    size_t nop = k->operand.n;
    struct mc_grid_launch *l = mc_calloc(1, sizeof *l, "plan");
    struct space *s = mc_calloc(1, sizeof *s, "plan");
    p->step[step].grid = l;
    mc_status status = l && s ? MC_OK : MC_EMEMORY;
    if (l) {
        l->nargs = mc_grid_args_size(nop);
        l->args = mc_calloc(1, l->nargs, "plan");
        l->value = mc_calloc(nop + 1, sizeof *l->value, "plan");
        status = l->args && l->value ? status : MC_EMEMORY;
    }
    double elements = 1;
    for (int a = 0; a < k->rank && status == MC_OK; a++) {
        elements *= k->varies & 1u << a ? (double)p->step[step].space[a] : 1;
        for (size_t i = 0; i < nop; i++) {
            const struct mc_koperand *o = &k->operand.at[i];
            l->value[i] = o->index ? -1 : st->operand[i];
            s->stride[i][a] = mc_launch_stride(p->place, o, l->value[i], false, a) * (o->index ? 1 : (int64_t)mc_dtypes[o->dtype].size);
        }
    }
    if (status == MC_OK) {
        for (size_t i = 0; i < nop; i++) {
            l->value[i] = k->operand.at[i].index ? -1 : st->operand[i];
            l->held |= k->operand.at[i].dst && l->value[i] >= 0 && p->place[l->value[i]].base == BASE_SHARED;
            l->bytes += l->value[i] < 0 ? 0 : (double)mc_spot_bytes(&p->place[l->value[i]]);
        }
        gather(s, k, p->step[step].space, false);
        gather(s, k, p->step[step].space, true);
        l->flops = elements * k->flops;
        status = fill(f, p, l, st, s, &f->code->grid[step]);
        p->step[step].workspace = MC_MAX(p->step[step].workspace, l->scratch);
    }
    mc_free(s);
    return status;
}

void mc_grid_free(struct mc_grid_launch *l)
{
    if (l) {
        mc_free(l->args);
        mc_free(l->value);
        mc_free(l);
    }
}

static mc_status run_pieces(struct mc_cuda *d, const struct mc_grid_launch *l, struct mc_grid_args a, const struct mc_kernel *k)
{
    uint32_t whole = l->pieces > 1 ? a.head->size[l->outer] : 0, count = a.head->count[0];
    mc_status s = MC_OK;
    for (int64_t i = 0; i < l->pieces && s == MC_OK; i++) {
        if (l->pieces > 1) {
            int64_t n = MC_MIN(l->piece, (int64_t)whole - i * l->piece);
            a.head->count[0] = (uint32_t)((int64_t)count / l->piece * n);
            for (size_t o = 0; o < k->operand.n && i; o++) {
                a.p[o] += (uint64_t)(a.step[o][l->outer] * l->piece);
            }
        }
        s = mc_cuda_follow(d, l->fn, k->name, &l->grid, l->args, l->nargs);
    }
    a.head->count[0] = count;
    return s;
}

static mc_status run_stages(struct mc_cuda *d, const struct mc_grid_launch *l, struct mc_grid_head *h, const struct mc_kernel *k)
{
    struct mc_grid grid = l->grid;
    mc_status s = MC_OK;
    for (h->first = 0; h->first < l->stages && s == MC_OK; h->first++) {
        s = l->stages > 1 && mc_grid_moments(k, (int)h->first) ? MC_OK : mc_cuda_follow(d, l->fn, k->name, &grid, l->args, l->nargs);
    }
    grid.blocks[1] = 1;
    s = s < 0 || !l->ends ? s : mc_cuda_follow(d, l->fn, k->name, &grid, l->args, l->nargs);
    return s < 0 || !l->tally ? s : mc_cuda_follow(d, l->tally, k->name, &l->tally_grid, l->args, l->nargs);
}

mc_status mc_grid_run(struct mc_function *f, const struct mc_shape_plan *p, int step, char *scratch)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_grid_launch *l = p->step[step].grid;
    struct mc_grid_args a = mc_grid_args(l->args, st->kernel->operand.n);
    struct mc_cuda *d = f->code->cuda;
    for (size_t i = 0; i < st->kernel->operand.n; i++) {
        a.p[i] = l->value[i] < 0 ? 0 : (uint64_t)(uintptr_t)f->ptr[l->value[i]];
    }
    a.head->err = (uint64_t)(uintptr_t)f->failed;
    a.head->scratch = (uint64_t)(uintptr_t)scratch;
    a.head->held = l->held && f->failed;
    if (!a.head->count[0] && !a.head->teams) {
        return MC_OK; /* nothing to make; sums of nothing are zeros */
    }
    return !l->stages ? run_pieces(d, l, a, st->kernel) : run_stages(d, l, a.head, st->kernel);
}
