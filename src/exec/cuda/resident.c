/* resident.c: loops in one kernel that runs all steps of the body.  All its blocks run at the same time and
 * meet at a barrier where a step needs what others have written.  The right operands of products stay in
 * shared memory.
 *
 * Where all maps of the body have h columns, and products a multiple of h, a block has the same columns,
 * modulo h, of everything: what a map reads of a product's result was written by its own block, and no
 * barrier is needed.  The columns that a block has are its units, and h is their period.  Where the rows of
 * all products are a batch, they are divided into bands: a block has its columns in the rows of one band,
 * so more blocks work, and each reads fewer rows.
 *
 * A body qualifies if it consists of maps, copies, and float32 products of few rows by constants of the
 * loop. One without products is run by one block, where its maps are small. Its addresses are noted for each
 * step of the loop, and must move evenly, or between two buffers. The kernel is compiled at the loop's first
 * run, or found in a bundle.  Where there is no NVRTC, only bodies qualify whose kernel a bundle has.
 *
 * Invariant: nothing has been launched when a loop turns out not to qualify. */
#include "exec/cuda/resident.h"
#include "device/image.h"
#include "exec/cuda/copy_step.h"
#include "heavy/gemm/solver.h"

/* Multiply-adds of a product: for fewer of one row, where no period divides all alike, and for more of any,
 * launches of the solvers are faster.  Measured on an H100 with LSTM and GRU of 256 and 1024 units and
 * batches of 1, 32 and 128. */
enum { LEAST_WORK = 1 << 20, MOST_WORK = 256 << 20 };
/* Multiply-adds that a block may make more of to save barriers: an estimate of what one takes. */
enum { MORE_WORK = 1 << 17 };
/* FEW: steps of a loop for which it is not worth a kernel; ROWS: of a product, at most; ARGS: bytes that a
 * kernel takes; ASIDE: bytes of shared memory that the compiler may use */
enum { FEW = 8, ROWS = 256, ARGS = 4 << 10, ASIDE = 2 << 10, LANES = 32 };
/* BANDS, LEAST_BAND: of a batch, at most, and rows of one, at least; ROW_READ: multiply-adds that take as
 * long as reading an element of a row.  Measured on an H100. */
enum { BANDS = 4, LEAST_BAND = 8, ROW_READ = 8 };
/* elements of a map or a copy that one block computes, at most: of more, a launch by all processors is
 * faster */
enum { SMALL = 1 << 13 };

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

static mc_status compile(struct mc_cuda_resident *r, const struct mc_function *f)
{
    struct mc_str out = { 0 };
    mc_cuda_resident_print(&out, r, f);
    LOG(LOG_KERNEL, "%s", out.bad ? "" : out.s);
    const struct mc_cuda_text text = { "the kernel of a loop", out.bad ? "" : out.s, NULL };
    mc_code_list *before = mc_cuda_note(&mc_cuda_fn_code(f)->code); /* bundles that are saved have it */
    r->kernel = out.bad ? NULL : mc_cuda_kernel(&text, "", "resident");
    mc_cuda_note(before);
    const mc_status s = r->kernel ? MC_OK : out.bad ? MC_EMEMORY : mc_last_status();
    mc_str_free(&out);
    return s;
}

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

/* ---- running ---- */

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
