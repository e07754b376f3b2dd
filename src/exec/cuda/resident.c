/* resident.c: loops in one kernel that runs all steps of the body.  All its blocks run at the same time and
 * meet at a barrier where a step needs what others have written.  The right operands of products stay in
 * shared memory.
 *
 * Where all maps of the body have h columns, and products a multiple of h, a block has the same columns,
 * modulo h, of everything: what a map reads of a product's result was written by its own block, and no
 * barrier is needed.  The columns that a block has are its units, and h is their period.  Where the rows of all
 * products are a batch, they are divided into bands: a block has its columns in the rows of one band, so more
 * blocks work, and each reads fewer rows.
 *
 * A body qualifies if it consists of maps, copies, and float32 products of few rows by constants of the
 * loop. One without products is run by one block, where its maps are small. Its addresses are noted for each
 * step of the loop, and must move evenly, or between two buffers. The kernel is compiled at the loop's first
 * run, or found in a bundle.  Where there is no NVRTC, only bodies qualify whose kernel a bundle has.
 *
 * Invariant: nothing has been launched when a loop turns out not to qualify. */
#include "exec/cuda/resident_args.h"
#include "device/image.h"
#include "exec/cuda/copy_step.h"
#include "exec/cuda/grid.h"
#include "exec/heavy/heavy.h"
#include "heavy/gemm/gemm.h"
#include "heavy/gemm/solver.h"

static const char source[] = {
#include "exec/cuda/resident_text.h"
    , 0 };

/* Multiply-adds of a product: for fewer of one row, where no period divides all alike, and for more of any,
 * launches of the solvers are faster.  Measured on an H100 with LSTM and GRU of 256 and 1024 units and
 * batches of 1, 32 and 128. */
enum { LEAST_WORK = 1 << 20, MOST_WORK = 256 << 20 };
/* Multiply-adds that a block may make more of to save barriers: an estimate of what one takes. */
enum { MORE_WORK = 1 << 17 };
/* FEW: steps of a loop for which it is not worth a kernel; ROWS: of a product, at most; LOOK: steps whose
 * memory is compared; ARGS: bytes that a kernel takes; ASIDE: bytes of shared memory that the compiler may
 * use */
enum { PHASES = 12, FEW = 8, ROWS = 256, LOOK = 4, ARGS = 4 << 10, ASIDE = 2 << 10, WORD = 16, LANES = 32 };
/* BANDS, LEAST_BAND: of a batch, at most, and rows of one, at least; ROW_READ: multiply-adds that take as long as
 * reading an element of a row.  Measured on an H100. */
enum { BANDS = 4, LEAST_BAND = 8, ROW_READ = 8 };
/* elements of a map or a copy that one block computes, at most: of more, a launch by all processors is faster */
enum { SMALL = 1 << 13 };

/* A map, a product or a copy of the body. */
struct phase {
    const struct mc_step *st;
    const struct mc_grid_launch *map;   /* or NULL */
    const struct mc_gemm_problem *product;
    struct mc_resident_copy copy;       /* if it is neither of those */
    int value[4];                       /* of a product: X, W, Y, C; of a copy: from, to; -1: there is none */
    int nvalue;
    int64_t by;                         /* bytes from the value `to` on */
    int result;                         /* of a copy to a result: its number among the copied ones + 1 */
    int move, args;                     /* where its moves, and a map's arguments, begin */
    int rows, columns, lanes, at;       /* of a product: as its kernel divides it */
};
/* at: the address of the operand.  even: its element in row r and column c is at c plus a multiple of the
 * period, so that a block has the same columns of all such operands.  pitch: bytes from one row of the batch to
 * the next, of which `width` belong to the operand; 0: it has no such rows. */
struct rows { int64_t pitch, width; };
struct span { const char *from, *end; uintptr_t at; bool write, even; struct rows rows; };
struct mc_cuda_resident {
    struct phase phase[PHASES];
    int n, products;
    bool fits;
    int period, units;                  /* 0: a product's columns are divided for it alone */
    int batch, bands;                   /* rows of all products; 1: they are not divided */
    int64_t noted;                      /* steps of the loop whose addresses were noted */
    struct mc_resident_move *move;
    int nmove;
    struct mc_resident_head head;
    VEC(struct span) open;              /* what was touched since the last barrier */
    struct mc_grid grid;
    void *kernel;
    char *args;
    size_t nargs, maps;                 /* bytes of all arguments; of those of the maps */
    struct mc_array *arrived;
};

/* ---- does the body qualify? ---- */

static int columns_of(int64_t n, int blocks)
{
    const int each = (int)((n + blocks - 1) / blocks);
    return (each + RESIDENT_COLUMNS - 1) / RESIDENT_COLUMNS * RESIDENT_COLUMNS;
}

static const struct mc_gemm_problem *product_of(const struct mc_step *st, const struct mc_step_plan *sp)
{
    return st->kind == STEP_HEAVY && sp->heavy && sp->heavy->plan && strcmp(mc_heavy_family(st), "gemm") == 0
               ? gemm(sp->heavy->plan->problem)
               : NULL;
}

/* The period of all steps; 0: they have none. */
static int period_of(const struct mc_function *f, const struct mc_shape_plan *p,
                     const struct mc_body_steps *s)
{
    int64_t h = 0;
    for (int pass = 0; pass < 2; pass++) { /* the least number of columns, which must divide all */
        for (int i = 0; i < s->nrun; i++) {
            const struct mc_step *st = &f->code->program.step.at[s->run[i]];
            const struct mc_gemm_problem *q = product_of(st, &p->step[s->run[i]]);
            const struct mc_type *t = st->kernel && st->ndst ? &p->slot[st->dst[0]].type : NULL;
            const int64_t columns = t && t->rank ? t->dims[t->rank - 1] : 0;
            if (pass && h && ((q && q->n % h) || columns % h)) {
                return 0;
            }
            h = !pass && columns && (!h || columns < h) ? columns : h;
        }
    }
    return h % RESIDENT_COLUMNS == 0 && h < INT32_MAX ? (int)h : 0;
}

/* What a block has where columns are divided by the period and rows into bands. */
struct division { int64_t work, read, held; int batch; };
static struct division divide(const struct mc_function *f, const struct mc_shape_plan *p,
                              const struct mc_body_steps *s, int period, int bands)
{
    const int processors = mc_cuda_of(f->code)->processors,
              units = period ? columns_of(period, processors / bands) : 0;
    struct division d = { 0 };
    for (int i = 0; i < s->nrun; i++) {
        const struct mc_gemm_problem *q = product_of(&f->code->program.step.at[s->run[i]],
                                                     &p->step[s->run[i]]);
        if (q) {
            const int64_t columns = period ? q->n / period * units : columns_of(q->n, processors);
            d.batch = d.batch && d.batch != q->m ? -1 : (int)MC_MIN(q->m, (int64_t)INT32_MAX);
            d.work += q->m / bands * q->k * columns;
            d.read += q->m / bands * q->k;
            d.held += columns * (q->k + LANES) * (int64_t)sizeof(float);
        }
    }
    return d;
}

/* Sets the period and the number of bands: those with which a block computes and reads least.  No period, if
 * dividing products by it would cost more than barriers. */
static void choose_division(struct mc_cuda_resident *r, const struct mc_function *f,
                            const struct mc_shape_plan *p, const struct mc_body_steps *s)
{
    const struct mc_cuda *d = mc_cuda_of(f->code);
    const int period = period_of(f, p, s);
    const struct division alone = divide(f, p, s, 0, 1);
    struct division best = { 0 };
    r->bands = 1;
    r->batch = alone.batch;
    for (int bands = 1; bands <= MC_MIN(BANDS, d->processors) && period; bands *= 2) {
        const struct division x = divide(f, p, s, period, bands);
        const bool fits = bands == 1 || (x.batch >= bands * LEAST_BAND && x.batch % bands == 0 &&
                                         x.held + ASIDE + ARGS <= (int64_t)d->shared);
        if (fits && (bands == 1 || x.work + ROW_READ * x.read < best.work + ROW_READ * best.read)) {
            best = x;
            r->bands = bands;
        }
    }
    r->period = period && best.work - alone.work <= MORE_WORK ? period : 0;
    r->bands = r->period ? r->bands : 1;
    r->units = columns_of(r->period, d->processors / r->bands);
}

static bool add_product(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_step *st,
                        const struct mc_step_plan *sp)
{
    const struct mc_gemm_problem *q = product_of(st, sp);
    const struct mc_heavy *h = sp->heavy;
    if (!q || r->n == PHASES || r->products == RESIDENT_PRODUCTS || h->copy[0] >= 0 || h->copy[1] >= 0 ||
        h->idle || q->dtype != MC_FLOAT32 || q->batch != 1 || q->m > ROWS || q->m < 1 || q->k < 4 ||
        q->k % 4 || q->as[2] != 1 || (q->m > 1 && q->as[1] % 4) || q->cs[2] != 1 || q->alpha != 1 ||
        (q->beta != 0 && (q->beta != 1 || !q->residual)) || q->n < 1 || q->n > MOST_WORK / q->k / q->m ||
        (q->m == 1 && !r->period && q->n * q->k < LEAST_WORK) || q->as[1] > INT32_MAX ||
        q->cs[1] > INT32_MAX) {
        return false;
    }
    const int columns = r->period ? (int)q->n / r->period * r->units
                                  : columns_of(q->n, mc_cuda_of(f->code)->processors),
              units = r->period ? r->units : columns, period = r->period ? r->period : (int)q->n;
    struct phase *p = &r->phase[r->n++];
    *p = (struct phase){ .st = st, .product = q, .at = r->products, .nvalue = (int)NELEM(p->value) };
    p->value[0] = mc_heavy_source(f, st->heavy, 0);
    p->value[1] = mc_heavy_source(f, st->heavy, 1);
    p->value[2] = h->epilogue.by_solver ? h->epilogue.result
                  : st->kernel          ? st->operand[st->product]
                                        : st->dst[0];
    p->value[3] = h->epilogue.by_solver ? mc_heavy_term(&h->epilogue) : -1;
    p->columns = q->m == 1 ? 1 : RESIDENT_COLUMNS;
    const int64_t across = columns / p->columns, m = q->m / r->bands;
    p->rows = m == 1                                                 ? 1
              : gemm_ceil(m, 2) * across * LANES <= RESIDENT_THREADS ? 2 /* a warp for each */
              : m < 64                                               ? 4
                                                                     : 8;
    const int groups = (int)(across * gemm_ceil(m, p->rows));
    p->lanes = LANES;
    while (p->lanes > 1 && (p->lanes * groups > RESIDENT_THREADS || p->lanes * 4 > q->k)) {
        p->lanes /= 2;
    }
    struct mc_resident_product *a = &r->head.product[r->products++];
    *a = (struct mc_resident_product){ .m = (int)m,
                                       .n = (int)q->n,
                                       .k = (int)q->k,
                                       .columns = columns,
                                       .pitch = (int)(q->k + 31) / 32 * 32 +
                                                (p->lanes >= 8 ? 0 : 4 * p->lanes),
                                       .at = (int)(r->grid.shared / sizeof(float)),
                                       .row = (int)q->as[1],
                                       .wide = (int)q->cs[1],
                                       .units = units,
                                       .period = period,
                                       .down = q->bs[1],
                                       .along = q->bs[2],
                                       .added = { q->c0s[1], q->c0s[2] } };
    r->grid.shared += (size_t)a->columns * (size_t)a->pitch * sizeof(float);
    r->grid.blocks[0] = MC_MAX(r->grid.blocks[0], (unsigned)((period + units - 1) / units * r->bands));
    p->move = r->nmove;
    r->nmove += p->nvalue;
    return true;
}

static bool add_map(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_step *st,
                    int step, const struct mc_exec *e)
{
    const struct mc_grid_launch *l = mc_grid_launch_of(e);
    const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[step];
    if (!l || r->n == PHASES || st->kernel->mode != KERNEL_MAP || mc_kernel_checks(st->kernel) ||
        l->skip_after_error || l->pieces != 1 || (l->fn != g->plain && l->fn != g->vector) ||
        (l->fn == g->vector && mc_grid_vector(st->kernel) > RESIDENT_COLUMNS)) {
        return false;
    }
    r->phase[r->n++] = (struct phase){
        .st = st, .map = l, .nvalue = (int)st->kernel->operand.n, .move = r->nmove, .args = (int)r->maps
    };
    r->nmove += (int)st->kernel->operand.n;
    r->maps += (l->nargs + WORD - 1) / WORD * WORD;
    return true;
}

/* to: a value; -1: the copied result with that number. */
static bool add_copy(struct mc_cuda_resident *r, const struct mc_cuda_layout *l, int from, int to, int64_t by,
                     int result)
{
    struct phase p = { .value = { from, to },
                       .nvalue = 2,
                       .by = by,
                       .result = result,
                       .move = r->nmove,
                       .args = (int)r->maps,
                       .copy = { .count = 1, .size = { 1, 1, 1, 1 } } };
    int64_t count = 1;
    if (r->n == PHASES || l->rank > RESIDENT_RANK || l->to != l->from ||
        mc_dtypes[l->to].size != sizeof(float)) {
        return false;
    }
    for (int a = l->rank, i = 0; a-- > 0; i++) {
        count *= l->size[a];
        p.copy.size[i] = (unsigned)MC_MAX(l->size[a], (int64_t)1);
        p.copy.from[i] = l->from_stride[a];
        p.copy.to[i] = l->to_stride[a];
    }
    p.copy.count = (unsigned)count;
    r->phase[r->n++] = p;
    r->nmove += p.nvalue;
    r->maps += (sizeof p.copy + WORD - 1) / WORD * WORD;
    return count < INT32_MAX;
}

static bool add_copies(struct mc_cuda_resident *r, const struct mc_exec *e)
{
    const struct mc_copy_step *w = mc_copy_step_of(e);
    bool good = w != NULL;
    for (size_t i = 0; good && i < w->part.n; i++) {
        const struct mc_copy_step_part *c = &w->part.at[i];
        good = add_copy(r, &c->layout, c->src, c->dst, c->at, 0);
    }
    return good;
}

/* A copy of a value to result number i of those that are copied. */
static bool add_result(struct mc_cuda_resident *r, const struct mc_shape_plan *p, int v, int i)
{
    const struct mc_slot *from = &p->slot[v];
    struct mc_cuda_layout l = { .to = from->type.dtype, .from = from->type.dtype, .rank = from->type.rank };
    mc_copy_step_strides(l.rank, from->type.dims, l.to_stride);
    for (int a = 0; a < l.rank; a++) {
        l.size[a] = from->type.dims[a];
        l.from_stride[a] = from->strides[a] / (int64_t)mc_dtypes[l.from].size;
    }
    return add_copy(r, &l, v, -1, 0, i + 1);
}

static bool add_step(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_shape_plan *p,
                     int step)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const struct mc_step_plan *sp = &p->step[step];
    return st->kind == STEP_KERNEL ? add_map(r, f, st, step, sp->exec)
           : st->kind == STEP_HEAVY
               ? add_product(r, f, st, sp) && (!sp->epilogue || add_map(r, f, st, step, sp->epilogue))
               : add_copies(r, sp->exec);
}

static mc_status compile(struct mc_cuda_resident *r, const struct mc_function *f);

/* Can the kernel be compiled, or has a bundle it? */
static bool may_compile(struct mc_cuda_resident *r, const struct mc_function *f)
{
    const bool have = mc_nv_need(NV_NVRTC) == MC_OK || (mc_images_published() && compile(r, f) == MC_OK);
    if (!have) {
        mc_clear_error();
    }
    return have;
}

/* Without products one block runs the loop: does it have little enough to do? */
static bool is_small(const struct mc_cuda_resident *r)
{
    bool small = true;
    for (int i = 0; i < r->n && small; i++) {
        const struct phase *w = &r->phase[i];
        const size_t operands = w->map ? w->st->kernel->operand.n : 0;
        small = (w->map ? mc_grid_args(w->map->args, operands).head->count[0] : w->copy.count) <= SMALL;
    }
    return small;
}

static void look(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_shape_plan *p,
                 const struct mc_body_steps *s)
{
    const struct mc_cuda *d = mc_cuda_of(f->code);
    r->fits = d->cooperative && mc_flag_int(FLAG_cuda_resident);
    if (r->fits) {
        choose_division(r, f, p, s);
    }
    for (int i = 0; i < s->nrun && r->fits; i++) {
        r->fits = add_step(r, f, p, s->run[i]);
    }
    for (int i = 0; i < s->ncopied && r->fits; i++) {
        r->fits = add_result(r, p, s->copied[i], i);
    }
    r->nargs = sizeof r->head + (size_t)r->nmove * sizeof *r->move + r->maps;
    if (!r->products) {
        r->period = 0;
    }
    r->fits = r->fits && (r->products || is_small(r)) && r->nargs <= ARGS &&
              r->grid.shared + r->maps + ASIDE <= d->shared && may_compile(r, f);
    if (r->fits) {
        r->args = mc_calloc(1, r->nargs, "loop");
        r->arrived = mc_cuda_array(mc_cuda_of(f->code), MC_INT64, 1, (int64_t[]){ 1 });
        r->fits = r->args && r->arrived &&
                  mc_cuda_clear(mc_cuda_of(f->code), r->arrived->data, sizeof(int64_t)) == MC_OK;
        r->move = (struct mc_resident_move *)(void *)(r->args + sizeof r->head);
    }
    r->grid = (struct mc_grid){ .blocks = { MC_MAX(r->grid.blocks[0], 1u), 1, 1 },
                                .threads = { RESIDENT_THREADS, 1, 1 },
                                .shared = r->grid.shared,
                                .all_at_once = true };
}

void mc_cuda_resident_free(struct mc_cuda_resident *r)
{
    if (r) {
        mc_array_unref(&r->arrived);
        VEC_FREE(r->open);
        mc_free(r->args);
        mc_free(r);
    }
}

bool mc_cuda_resident_begin(struct mc_function *f, const struct mc_shape_plan *p,
                            const struct mc_body_steps *s)
{
    struct mc_cuda_fn_plan *own = mc_cuda_fn_plan(p);
    struct mc_cuda_resident *r = own->resident;
    if (!r) {
        r = own->resident = mc_calloc(1, sizeof *r, "loop");
        if (!r) {
            return false;
        }
        look(r, f, p, s);
    }
    r->noted = 0;
    r->open.n = 0;
    r->head.barriers = 0;
    return r->fits && s->times >= FEW && s->times <= INT32_MAX;
}

/* ---- where operands are in each step ---- */

static bool note_address(struct mc_resident_move *m, int64_t t, uint64_t a)
{
    if (t == 0) {
        *m = (struct mc_resident_move){ .first = a, .base = a, .mask = ~(uint64_t)0 };
    } else if (t == 1) {
        m->base = a;
    } else if (t == 2) {
        m->stride = (int64_t)(a - m->base);
    } else if (t == 3 && m->stride && a == m->base) {
        m->mask = 1;
    }
    return a == (t ? m->base + ((uint64_t)(t - 1) & m->mask) * (uint64_t)m->stride : m->first);
}

static bool even_strides(int64_t h, int n, const uint32_t *size, const int64_t *stride)
{
    bool even = size[0] % h == 0 && stride[0] == 1;
    for (int x = 1; x < n; x++) {
        even &= size[x] == 1 || stride[x] % h == 0;
    }
    return even;
}

static bool even_map(const struct mc_cuda_resident *r, const struct mc_function *f, const struct phase *w,
                     int k)
{
    const struct mc_kernel *q = w->st->kernel;
    const struct mc_grid_args a = mc_grid_args(w->map->args, q->operand.n);
    const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[w->st - f->code->program.step.at];
    const unsigned v = w->map->fn == g->vector ? (unsigned)mc_grid_vector(q) : 1;
    const int64_t bytes = sizeof(float), count = (int64_t)a.head->count[0] * v;
    if (mc_dtypes[q->operand.at[k].dtype].size != sizeof(float) || q->operand.at[k].index ||
        count % r->period) {
        return false;
    }
    bool even = a.head->size[0] * v % (unsigned)r->period == 0 && a.step[k][0] == v * bytes;
    for (uint32_t x = 1; x < a.head->axes[0]; x++) {
        even &= a.step[k][x] % (r->period * bytes) == 0;
    }
    return even;
}

/* Rows of a batch that is the outermost of n axes, or a part of it; step: bytes.  size[0] elements are v times as
 * many, of `step[0] / v` bytes. */
static struct rows rows_of(const struct mc_cuda_resident *r, int n, const uint32_t *size, const int64_t *step,
                           unsigned v)
{
    const int64_t batch = r->batch;
    while (n > 1 && size[n - 1] == 1) {
        n--;
    }
    const int64_t outer = n ? (int64_t)size[n - 1] * (n == 1 ? v : 1) : 0;
    bool whole = n && batch > 0 && outer % batch == 0 && (n > 1 || outer / batch % r->period == 0);
    for (int x = 0; x < n; x++) {
        whole &= step[x] > 0;
    }
    if (!whole) {
        return (struct rows){ 0, 0 };
    }
    const int64_t each = step[n - 1] / (n == 1 ? v : 1);
    struct rows rows = { outer / batch * each, (outer / batch - 1) * each + (int64_t)sizeof(float) };
    for (int x = 0; x < n - 1; x++) {
        rows.width += (int64_t)(size[x] - (x ? 1 : 0)) * step[x] - (x ? 0 : (int64_t)sizeof(float));
    }
    return rows;
}

/* Is the k-th value of a phase even?  Sets its rows. */
static bool is_even(const struct mc_cuda_resident *r, const struct mc_function *f, const struct phase *w,
                    int k, struct rows *rows)
{
    const int h = r->period;
    const int64_t bytes = sizeof(float);
    if (!h) {
        return false;
    }
    if (w->map) {
        const struct mc_kernel *q = w->st->kernel;
        const struct mc_grid_args a = mc_grid_args(w->map->args, q->operand.n);
        const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[w->st - f->code->program.step.at];
        const unsigned v = w->map->fn == g->vector ? (unsigned)mc_grid_vector(q) : 1;
        *rows = rows_of(r, (int)a.head->axes[0], a.head->size, a.step[k], v);
        return even_map(r, f, w, k);
    }
    if (w->product) {
        const struct mc_gemm_problem *q = w->product;
        *rows = (struct rows){ (k == 2 ? q->cs[1] : q->c0s[1]) * bytes, q->n * bytes };
        return k == 2   ? q->m == 1 || q->cs[1] % h == 0
               : k == 3 ? q->c0s[2] == 1 && (q->m == 1 || q->c0s[1] % h == 0)
                        : false;
    }
    int64_t step[RESIDENT_RANK];
    for (int x = 0; x < RESIDENT_RANK; x++) {
        step[x] = (k ? w->copy.to : w->copy.from)[x] * bytes;
    }
    *rows = rows_of(r, RESIDENT_RANK, w->copy.size, step, 1);
    return even_strides(h, RESIDENT_RANK, w->copy.size, k ? w->copy.to : w->copy.from);
}

static struct span span_of(const struct mc_function *f, const struct mc_shape_plan *p, int v)
{
    v = mc_cuda_fn_memory_of(f, p, v);
    return (struct span){ .from = f->ptr[v], .end = f->ptr[v] + mc_slot_bytes(&p->slot[v]) };
}

/* Does a row of one operand overlap only the same row of the other? */
static bool same_rows(const struct span *a, const struct span *b)
{
    const struct span *first = a->at <= b->at ? a : b, *second = first == a ? b : a;
    return first->rows.pitch > 0 && first->rows.pitch == second->rows.pitch &&
           (int64_t)(second->at - first->at) + second->rows.width <= first->rows.pitch &&
           first->rows.width <= first->rows.pitch;
}

/* Do two accesses need a barrier between them? */
static bool conflict_of(const struct mc_cuda_resident *r, const struct span *a, const struct span *b)
{
    const bool together = (a->write || b->write) && a->from < b->end && b->from < a->end;
    return together &&
           !(a->even && b->even && (int64_t)(a->at - b->at) % (r->period * (int64_t)sizeof(float)) == 0 &&
             (r->bands == 1 || same_rows(a, b)));
}

/* Notes what phase i touches; where that overlaps what others wrote, a barrier precedes it. */
static bool touch(struct mc_cuda_resident *r, int i, int n, const struct span *s)
{
    bool conflict = false;
    for (int k = 0; k < n; k++) {
        for (size_t o = 0; o < r->open.n; o++) {
            conflict |= conflict_of(r, &s[k], &r->open.at[o]);
        }
    }
    if (conflict) {
        r->head.barriers |= 1u << i;
        r->open.n = 0;
    }
    bool good = true;
    for (int k = 0; k < n && good; k++) {
        good = VEC_PUSH(r->open, s[k]);
    }
    return good;
}

/* The address of a phase's k-th value; to: those of the copied results. */
static char *address(const struct phase *w, const struct mc_function *f, int k, char *const *to)
{
    const int v = w->map ? w->map->value[k] : w->value[k];
    return k == 1 && w->result ? to[w->result - 1] : v < 0 ? NULL : f->ptr[v] + (k == 1 ? w->by : 0);
}

static bool is_written(const struct phase *w, int k)
{
    return w->map ? w->st->kernel->operand.at[k].dst : w->product ? k == 2 : k == 1;
}

/* A copy to the place where the value is already does nothing. */
static bool note_phase(struct mc_cuda_resident *r, const struct mc_function *f, const struct mc_shape_plan *p,
                       int i, char *const *to)
{
    struct phase *w = &r->phase[i];
    const int64_t t = r->noted;
    struct span s[MOST_OPERANDS];
    int spans = 0;
    bool good = true;
    for (int k = 0; k < w->nvalue && good; k++) {
        const uintptr_t at = (uintptr_t)address(w, f, k, to);
        const int v = w->map ? w->map->value[k] : w->value[k];
        struct mc_resident_move *m = &r->move[w->move + k];
        good = note_address(m, t, at) &&
               (!w->product || (k == 0 ? at % WORD == 0 : k != 1 || m->first == at)); /* W stays */
        if (at && t < LOOK) {
            struct span *x = &s[spans++];
            *x = v >= 0 ? span_of(f, p, v)
                        : (struct span){ (char *)at, (char *)at + w->copy.count * sizeof(float) };
            x->at = at;
            x->write = is_written(w, k);
            x->even = is_even(r, f, w, k, &x->rows);
        }
    }
    const bool idle = !w->map && !w->product && address(w, f, 0, to) == address(w, f, 1, to);
    return good && (idle || touch(r, i, spans, s));
}

bool mc_cuda_resident_note(struct mc_function *f, const struct mc_shape_plan *p, char *const *to)
{
    struct mc_cuda_resident *r = mc_cuda_fn_plan(p)->resident;
    bool good = true;
    for (int i = 0; i < r->n && good; i++) {
        good = note_phase(r, f, p, i, to);
    }
    r->noted++;
    return good;
}

/* ---- the kernel ---- */

static void print_phase(struct mc_str *out, const struct mc_cuda_resident *r, const struct mc_function *f,
                        int i)
{
    const struct phase *w = &r->phase[i];
    const struct mc_kernel *k = w->map ? w->st->kernel : NULL;
    if (k) { /* the threads have met since the phase last read these */
        mc_str_addf(out,
                    "for (int i = threadIdx.x; i < %zu; i += blockDim.x) ((u64 *)(own + %d))[i] = "
                    "place(A.move[%d + i], t);\n",
                    k->operand.n, w->args, w->move);
    }
    if (r->products) {
        mc_str_addf(out,
                    "if (A.head.barriers >> %d & 1) { goal += gridDim.x; meet(A.head.arrived, goal); } else ",
                    i);
    }
    mc_str_add(out, "__syncthreads();\n");
    if (k) {
        const struct mc_grid_kernel *g = &mc_cuda_fn_code(f)->grid[w->st - f->code->program.step.at];
        mc_str_addf(out, "%s_of<%d>(*(const %s_args *)(own + %d));\n", k->name,
                    w->map->fn == g->vector ? mc_grid_vector(k) : 1, k->name, w->args);
        return;
    }
    if (w->product) {
        mc_str_addf(
            out,
            "multiply<%d, %d, %d, %d, %d>(A.head.product[%d], (const float *)place(A.move[%d], t), held, "
            "(const float *)place(A.move[%d], t), (float *)place(A.move[%d], t));\n",
            w->rows, w->columns, r->head.product[w->at].columns / w->columns, w->lanes, (int)w->product->act,
            w->at, w->move, w->move + 3, w->move + 2);
        return;
    }
    mc_str_addf(out,
                "if (place(A.move[%d], t) != place(A.move[%d], t)) move<1>(*(const mc_resident_copy *)(own + "
                "%d), (const unsigned *)place(A.move[%d], t), (unsigned *)place(A.move[%d], t));\n",
                w->move, w->move + 1, w->args, w->move, w->move + 1);
}

/* The elements, V at a time, that a block has; of arrays that have no whole number of periods in each band, a
 * part. */
static const char own_elements[] =
    "#define UNITS_OF(p) UNITS\n#define PERIOD_OF(p) PERIOD\n"
    "#define ELEMENTS(t, n) for (unsigned t = 0, even_ = (n) % (PERIOD / V * BANDS) == 0, "
    "first_ = blockIdx.x / BANDS * UNITS, wide_ = (PERIOD % UNITS == 0 || first_ + UNITS <= PERIOD ? UNITS "
    ": first_ < PERIOD ? PERIOD - first_ : 0) / V, all_ = even_ ? (n) / (PERIOD / V * BANDS) * wide_ : (n), "
    "from_ = blockIdx.x % BANDS * ((n) / BANDS) + first_ / V, "
    "i_ = (even_ ? 0 : blockIdx.x * blockDim.x) + threadIdx.x; "
    "i_ < all_ && (t = even_ ? from_ + i_ / wide_ * (PERIOD / V) + i_ % wide_ : i_, true); "
    "i_ += even_ ? blockDim.x : gridDim.x * blockDim.x)\n";

static void print(struct mc_str *out, const struct mc_cuda_resident *r, const struct mc_function *f)
{
    struct mc_kernel *kernel[PHASES];
    int n = 0;
    for (int i = 0; i < r->n; i++) {
        bool known = !r->phase[i].map; /* equal kernels have one name */
        for (int k = 0; k < n && !known; k++) {
            known = strcmp(kernel[k]->name, r->phase[i].st->kernel->name) == 0;
        }
        if (!known) {
            kernel[n++] = r->phase[i].st->kernel;
        }
    }
    if (r->period) {
        mc_str_addf(out, "enum { PERIOD = %d, UNITS = %d, BANDS = %d };\n%s", r->period, r->units, r->bands,
                    own_elements);
    }
    mc_render_grid(out, &mc_dialect_cuda, n, kernel);
    mc_str_add(out, source);
    mc_str_addf(
        out,
        "struct resident_args { mc_resident_head head; mc_resident_move move[%d]; unsigned char "
        "map[%zu]; };\nextern \"C\" __global__ void __launch_bounds__(%d, 1) resident(const "
        "__grid_constant__ resident_args A)\n{\nextern __shared__ i64 shared_[];\nfloat *const held = "
        "(float *)shared_;\n__shared__ uint4 words[%zu];\nunsigned char *const own = (unsigned char "
        "*)words;\nunsigned goal = 0;\n"
        "for (int i = threadIdx.x; i < %zu; i += blockDim.x) own[i] = A.map[i];\n",
        r->nmove, MC_MAX(r->maps, (size_t)WORD), RESIDENT_THREADS, MC_MAX(r->maps / WORD, (size_t)1),
        r->maps);
    for (int i = 0; i < r->n; i++) {
        const struct phase *w = &r->phase[i];
        if (w->product) {
            mc_str_addf(out, "hold(A.head.product[%d], (const float *)A.move[%d].first, held);\n", w->at,
                        w->move + 1);
        }
    }
    mc_str_add(out, "__syncthreads();\nfor (unsigned t = 0; t < A.head.steps; t++) {\n");
    for (int i = 0; i < r->n; i++) {
        print_phase(out, r, f, i);
    }
    mc_str_add(out, r->n == 1 ? "__syncthreads();\n" : ""); /* one phase would write what it reads */
    mc_str_add(out, "}\nleave(A.head.arrived);\n}\n");
}

static mc_status compile(struct mc_cuda_resident *r, const struct mc_function *f)
{
    struct mc_str out = { 0 };
    print(&out, r, f);
    LOG(LOG_KERNEL, "%s", out.bad ? "" : out.s);
    const struct mc_cuda_text text = { "the kernel of a loop", out.bad ? "" : out.s, NULL };
    mc_code_list *before = mc_cuda_note(&mc_cuda_fn_code(f)->code); /* bundles that are saved have it */
    r->kernel = out.bad ? NULL : mc_cuda_kernel(&text, "", "resident");
    mc_cuda_note(before);
    const mc_status s = r->kernel ? MC_OK : out.bad ? MC_EMEMORY : mc_last_status();
    mc_str_free(&out);
    return s;
}

mc_status mc_cuda_resident_run(struct mc_function *f, const struct mc_shape_plan *p)
{
    struct mc_cuda_resident *r = mc_cuda_fn_plan(p)->resident;
    TRY(r->kernel ? MC_OK : compile(r, f));
    char *maps = r->args + sizeof r->head + (size_t)r->nmove * sizeof *r->move;
    for (int i = 0; i < r->n; i++) {
        const struct phase *w = &r->phase[i];
        if (w->map) {
            memcpy(maps + w->args, w->map->args, w->map->nargs);
        } else if (!w->product) {
            memcpy(maps + w->args, &w->copy, sizeof w->copy);
        }
    }
    r->head.arrived = (void *)r->arrived->data;
    r->head.steps = (unsigned)r->noted;
    memcpy(r->args, &r->head, sizeof r->head);
    return mc_cuda_launch(mc_cuda_of(f->code), r->kernel, "resident", &r->grid, r->args, r->nargs);
}
