/* grid.c: kernels for a grid of threads.  The same values as render.c prints, under other loops:
 *
 *   map       each thread takes every so many elements, of four floats at once where they lie so
 *   reducing  `lanes` threads share a point of the kept axes: along the reduced axes side by side, or, where
 *             neighbours are kept, above each other.  Long ones are split over blocks: launch i walks stage i, each block
 *             a part of the point's elements, adds up itself what those before it have left, and leaves its sums
 *   tallies   sums over the rows ride along: grid_tally.c
 *
 * Rows that a block has room for are grid_row.c's, neighbours that are taken four a thread grid_column.c's.
 *
 * All arguments are one struct, made by mc_grid_args; axes come innermost first, steps are in bytes (positions
 * for an index).  Invariant: which numbers are added in which order depends on the launch alone. */
#include "render/grid.h"
#include "render/prelude.h"

enum { AHEAD = 4, FEWER = 2 }; /* vectors that a lane asks for before it uses the first; of two operands, fewer; of more, one each */

static bool is_element(const struct mc_kernel *k, const struct mc_koperand *o)
{
    return o->dst ? k->val.at[o->val].element : (o->varies & (k->mode == KERNEL_MAP ? ~0u : k->reduced)) != 0;
}

bool mc_grid_walks(const struct print *p, size_t i)
{
    return is_element(p->k, &p->k->operand.at[i]);
}

/* Can its points be split over blocks?  A team's tallies go along whole rows. */
bool mc_grid_splits(const struct mc_kernel *k)
{
    return k->nreduce > 0 && !mc_grid_tallies(k);
}

bool mc_grid_ends(const struct mc_kernel *k)
{
    bool ends = false;
    for (size_t i = 0; i < k->val.n; i++) {
        ends |= k->val.at[i].kind == K_REDUCE && k->val.at[i].stage == k->nstage - 1;
    }
    return ends;
}

/* Elements a thread takes at once: as many of the largest as sixteen bytes hold. */
int mc_grid_vector(const struct mc_kernel *k)
{
    size_t most = 2;
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        most = !o->index && mc_print_moves(k, o) ? MC_MAX(most, mc_dtypes[o->dtype].size) : most;
    }
    bool along = k->inner >= 0 && (k->mode == KERNEL_MAP || k->reduced & 1u << k->inner);
    return along && !mc_grid_tallies(k) && !(k->never & GRID_VECTOR) ? (int)(16 / most) : 1; /* a team's tallies are counted in elements */
}

/* "o3 += i * A.step[3][axis]" for the operands that a walk moves. */
static void move(struct print *p, char name, bool elements, const char *axis, const char *by)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (!elements || mc_grid_walks(p, i)) {
            mc_str_addf(p->out, " %c%zu += %s * A.step[%zu][%s];", name, i, by, i, axis);
        }
    }
}

void mc_grid_apart(struct print *p, char name, bool elements, const char *index, const char *n, const char *first)
{
    mc_str_addf(p->out, "{ u32 left = %s;\n_Pragma(\"unroll 1\") for (u32 d = 0; d < %s; d++) { u32 i = left; if (d + 1 < %s) { left = over_(i, A.magic[%s + d], A.shift[%s + d]); i -= left * A.size[%s + d]; }",
                index, n, n, first, first, first);
    struct mc_str axis = { 0 };
    mc_str_addf(&axis, "%s + d", first);
    move(p, name, elements, axis.s ? axis.s : "d", "(i64)i");
    p->out->bad |= axis.bad;
    mc_str_free(&axis);
    mc_str_add(p->out, " } }\n");
}

void mc_grid_offsets(struct print *p, char name, bool elements, char from)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (!elements || mc_grid_walks(p, i)) {
            mc_str_addf(p->out, "i64 %c%zu = ", name, i);
            mc_str_addf(p->out, from ? "%c%zu; " : "0; ", from, i);
        }
    }
    mc_str_add(p->out, "\n");
}

static void pointers(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_walks(p, i)) {
            continue;
        }
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu]", i, i);
        } else {
            mc_str_addf(p->out, "%s%s *const a%zu = (%s%s *)(A.p[%zu]", o->dst ? "" : "const ", t, i, o->dst ? "" : "const ", t, i);
        }
        if (name) {
            mc_str_addf(p->out, " + %c%zu", name, i);
        }
        mc_str_add(p->out, o->index ? ";\n" : ");\n");
    }
}

/* ---- elements, V at a time ---- */

bool mc_grid_made_here(const struct print *p, const struct mc_koperand *o)
{
    return o->dst && !o->tally && p->k->val.at[o->val].element && p->k->val.at[o->val].stage == p->stage;
}

/* a3 of each operand that walks: an address, a position, or V elements, those that a map reads loaded. */
static void open_elements(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype], *constant = o->dst ? "" : "const ";
        if (!mc_grid_walks(p, i)) {
            continue;
        }
        if (o->tally) {
            mc_str_addf(p->out, "%s *const a%zu = (%s *)(sums%zu) + r * V; (void)a%zu;\n", t, i, t, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + %c%zu; (void)a%zu;\n", i, i, name, i, i);
        } else if (!mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "%s%s *const a%zu = (%s%s *)(A.p[%zu] + %c%zu); (void)a%zu;\n", constant, t, i, constant, t, i, name, i, i);
        } else if (mc_grid_made_here(p, o)) {
            mc_str_addf(p->out, "alignas(16) %s a%zu[V];\n", t, i);
        } else if (!o->dst && p->k->mode == KERNEL_MAP) {
            mc_str_addf(p->out, "alignas(16) %s a%zu[V]; load_<%s, V>(a%zu, (const %s *)(A.p[%zu] + %c%zu));\n", t, i, t, i, t, i, name, i);
        }
    }
}

static void close_elements(struct print *p, char name)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_made_here(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "store_<%s, V>((%s *)(A.p[%zu] + %c%zu), a%zu);\n", t, t, i, name, i, i);
        }
    }
}

static void each_of_vector(struct print *p, bool lanes, const char *position)
{
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_body(p, lanes, position);
    mc_grid_each_moment(p, mc_grid_moment_add);
    mc_str_add(p->out, "}\n");
}

static void entry(struct print *p, const char *form, int v)
{
    const char *name = p->k->name;
    mc_str_add(p->out, "ENTRY ");
    if (p->k->mode != KERNEL_MAP) { /* registers for so many threads, however much is fused */
        mc_str_addf(p->out, "__launch_bounds__(%d) ", GRID_LANES);
    }
    mc_str_addf(p->out, "%s%s(const %s_args A) { BEGIN %s_of<%d>(A); }\n", name, form, name, name, v);
}

static void entries(struct print *p)
{
    int v = mc_grid_vector(p->k);
    entry(p, "", 1);
    if (v > 1) {
        entry(p, "_v", v);
    }
}

/* ---- maps ---- */

/* Offsets where everything lies dense: no size or step is looked up. */
static void flat(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (mc_grid_walks(p, i) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, " o%zu = (i64)t * (V * %zu);", i, o->index ? (size_t)1 : mc_dtypes[o->dtype].size);
        }
    }
}

static void print_map(struct print *p)
{
    mc_str_addf(p->out, "template <int V> INLINE void %s_of(const %s_args &A)\n{\ni64 *const err = A.err; (void)err;\nif (A.held && err[0]) return;\n", p->k->name, p->k->name);
    pointers(p, 0);
    mc_print_row_values(p);
    mc_str_add(p->out, "if (blockIdx.x == 0 && threadIdx.x == 0) {\n");
    mc_print_row_stores(p);
    mc_str_add(p->out, "}\n");
    if (mc_print_mark(p)) {
        mc_str_add(p->out, "for (u32 t = blockIdx.x * blockDim.x + threadIdx.x; t < A.count[0]; t += gridDim.x * blockDim.x) {\n");
        mc_grid_offsets(p, 'o', true, 0);
        mc_str_add(p->out, "if (A.flat) {");
        flat(p);
        mc_str_add(p->out, " } else ");
        mc_grid_apart(p, 'o', true, "t", "A.axes[0]", "0");
        open_elements(p, 'o');
        each_of_vector(p, false, "");
        close_elements(p, 'o');
        mc_str_add(p->out, "}\n");
    }
    mc_str_add(p->out, "}\n");
    entries(p);
}

/* ---- reductions ---- */

int mc_grid_slot(const struct mc_kernel *k, int v)
{
    int slot = 0;
    for (int i = 0; i < v; i++) {
        slot += k->val.at[i].kind == K_REDUCE;
    }
    return slot;
}

static void merging(struct print *p, int v, const char *type, void (*merge)(struct print *p, int v))
{
    mc_str_addf(p->out, "[](%s &c%d, i64 &z%d, const %s l%d, const i64 q%d) { (void)z%d; (void)q%d; ", type, v, v, type, v, v, v, v);
    merge(p, v);
    mc_str_add(p->out, "}");
}

void mc_grid_merge(struct print *p, int v, const char *type)
{
    merging(p, v, type, mc_print_merge);
}

/* How what a reduction adds up goes from lane to lane and from block to block. */
struct passed { const char *type, *flag; void (*merge)(struct print *p, int v); };

static struct passed passed(const struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    return mc_grid_moments(p->k, x->stage) ? (struct passed){ "double", "z", mc_grid_moment_merge } :
           (struct passed){ mc_print_acc_type(p, x, false), mc_print_monoid(x)->flags ? "z" : "", mc_print_merge };
}

/* All lanes get the sum of the lanes' accumulators. */
static void across(struct print *p, int v)
{
    const struct passed x = passed(p, v);
    mc_str_addf(p->out, "across(A.column, lanes, c%d, ", v);
    mc_str_addf(p->out, *x.flag ? "z%d, " : "none, ", v);
    merging(p, v, x.type, x.merge);
    mc_str_add(p->out, ");\n");
}

static void keep(struct print *p, int v)
{
    const struct passed x = passed(p, v);
    mc_str_addf(p->out, "{ char *part = A.scratch + (((i64)%d * A.splits + blockIdx.y) * A.count[0] + at) * 16; *(%s *)part = c%d; ", mc_grid_slot(p->k, v), x.type, v);
    mc_str_addf(p->out, *x.flag ? "*(i64 *)(part + 8) = z%d; }\n" : "}\n", v);
}

static void fetch(struct print *p, int v)
{
    const struct passed x = passed(p, v);
    mc_str_addf(p->out, "{ const char *part = A.scratch + (((i64)%d * A.splits + s) * A.count[0] + at) * 16; const %s l%d = *(const %s *)part; ", mc_grid_slot(p->k, v), x.type,
                v, x.type);
    if (*x.flag) {
        mc_str_addf(p->out, "const i64 q%d = *(const i64 *)(part + 8); ", v);
    }
    x.merge(p, v);
    mc_str_add(p->out, "}\n");
}

/* Is the element read into an array of V?  Else its operand is an address, a position, or what is made here. */
static bool is_fetched(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    return mc_grid_walks(p, i) && mc_print_moves(p->k, o) && !o->index && !o->tally && !mc_grid_made_here(p, o) && (!o->dst || (p->back && p->back[i]));
}

/* Steps along the reduced axes where there are two at most, and in 32 bits. */
static void near_steps(struct print *p)
{
    mc_str_add(p->out, "const u32 inner = A.size[A.axes[0]], magic = A.magic[A.axes[0]], shift = A.shift[A.axes[0]];\n");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_walks(p, i)) {
            mc_str_addf(p->out, "const i32 n%zu = (i32)A.step[%zu][A.axes[0]], f%zu = (i32)A.step[%zu][A.axes[0] + A.near]; (void)n%zu; (void)f%zu;\n", i, i, i, i, i, i);
        }
    }
}

/* e3: where element r lies, for each operand that walks. */
static void find_elements(struct print *p)
{
    mc_grid_offsets(p, 'e', true, 'o');
    mc_str_add(p->out, "if (A.near) { const i32 q = (i32)over_(r, magic, shift), i = (i32)(r - q * inner);");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_walks(p, i)) {
            mc_str_addf(p->out, " e%zu += (i64)i * n%zu + (i64)q * f%zu;", i, i, i);
        }
    }
    mc_str_add(p->out, " } else ");
    mc_grid_apart(p, 'e', true, "r", "A.axes[1]", "A.axes[0]");
}

/* x3[u] and w3[u], vector u of operand 3 or where it lies. */
static void fetch_elements(struct print *p, bool declare)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (!mc_grid_walks(p, i)) {
            continue;
        }
        if (is_fetched(p, i) && declare) {
            mc_str_addf(p->out, "alignas(16) %s x%zu[U][V]; ", t, i);
        } else if (declare) {
            mc_str_addf(p->out, "i64 w%zu[U]; ", i);
        } else if (is_fetched(p, i)) {
            mc_str_addf(p->out, "load_<%s, V>(x%zu[u], (const %s *)(A.p[%zu] + e%zu));\n", t, i, t, i, i);
        } else {
            mc_str_addf(p->out, "w%zu[u] = e%zu; ", i, i);
        }
    }
}

static void open_fetched(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (is_fetched(p, i)) {
            mc_str_addf(p->out, "const %s *const a%zu = x%zu[u]; (void)a%zu;\n", t, i, i, i);
        } else if (mc_grid_walks(p, i)) {
            mc_str_addf(p->out, "const i64 e%zu = w%zu[u]; (void)e%zu;\n", i, i, i);
        }
    }
}

/* f for what this stage's walk adds up, g for what it does for the next. */
static void each(struct print *p, void (*f)(struct print *p, int v), void (*g)(struct print *p, int v))
{
    mc_print_each(p, f);
    mc_grid_each_moment(p, g);
}

/* One walk over the reduced axes: of the block's part of them, U vectors a lane at a time. */
static void walk(struct print *p)
{
    bool positions, reduces = mc_print_stage_reduces(p, &positions), lanes = reduces && !positions;
    static const char ahead[] = "_Pragma(\"unroll\") for (int u = 0; u < U; u++) { const u32 r = r0 + u * lanes; if (r < e) {\n";
    mc_str_addf(p->out, "{ const int U = %d;\nONCE for (u32 b = from; b < to; b += 2048 / V * lanes) {\nconst u32 e = to - b < 2048 / V * lanes ? to : b + 2048 / V * lanes;\n", p->above || mc_print_reads(p) < 2 ? AHEAD : mc_print_reads(p) == 2 ? FEWER : 1);
    if (lanes) {
        each(p, mc_print_lane, mc_grid_moment_lane);
    }
    mc_str_add(p->out, "\nfor (u32 r0 = b + lane; r0 < e; r0 += U * lanes) {\n");
    fetch_elements(p, true);
    mc_str_add(p->out, "\n");
    mc_str_add(p->out, ahead);
    find_elements(p);
    fetch_elements(p, false);
    mc_str_add(p->out, "} }\n");
    mc_str_add(p->out, ahead);
    open_fetched(p);
    open_elements(p, 'e');
    each_of_vector(p, lanes, "((i64)r * V + j)");
    close_elements(p, 'e');
    mc_str_add(p->out, "} }\n}\n");
    if (lanes) {
        each(p, mc_print_merge, mc_grid_moment_close);
    }
    mc_str_add(p->out, "} }\n");
}

/* A stage whose reductions are split: this launch's walk, then the block's sums are left; or those that are there are taken. */
static void walk_or_take(struct print *p)
{
    mc_str_addf(p->out, "if (A.first <= %d) {\n", p->stage);
    walk(p);
    mc_str_add(p->out, "} else ONCE for (u32 s = lane; live && s < A.splits; s += lanes) {\n");
    each(p, fetch, fetch);
    mc_str_add(p->out, "}\n");
    each(p, across, across);
    mc_str_addf(p->out, "if (A.splits > 1 && A.first == %d) {\nif (live && lane == 0) {\n", p->stage);
    each(p, keep, keep);
    mc_str_add(p->out, "}\nreturn;\n}\n");
}

void mc_grid_point(struct print *p)
{
    mc_str_add(p->out, "const bool live = at < A.count[0]; i64 none = 0, unheard[4]; (void)none;\ni64 *const err = live ? A.err : unheard; (void)err;\n");
    mc_grid_offsets(p, 'o', false, 0);
    mc_str_add(p->out, "if (A.axes[0] == 1) {");
    move(p, 'o', false, "0", "(i64)(live ? at : 0)");
    mc_str_add(p->out, " } else ");
    mc_grid_apart(p, 'o', false, "(live ? at : 0)", "A.axes[0]", "0");
    pointers(p, 'o');
}

/* ---- reducing kernels ---- */

static void print_reducing(struct print *p)
{
    bool splits = mc_grid_splits(p->k), positions;
    mc_str_addf(p->out, "template <int V> INLINE void %s_of(const %s_args &A)\n{\n", p->k->name, p->k->name);
    mc_str_add(p->out, "const u32 lanes = A.column ? blockDim.y : blockDim.x, lane = A.column ? threadIdx.y : threadIdx.x;\n");
    mc_grid_begin_tallies(p);
    mc_grid_open_rows(p);
    mc_grid_point(p);
    near_steps(p);
    mc_str_add(p->out, "const u32 from = blockIdx.y * A.chunk, to = !live ? from : from + A.chunk < A.count[1] ? from + A.chunk : A.count[1];\n");
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
        if (mc_grid_moments(p->k, p->stage)) {
            mc_print_each(p, mc_grid_moment_finish);
            continue;
        }
        if (!mc_print_mark(p)) {
            continue;
        }
        mc_grid_each_moment(p, mc_grid_moment_need);
        each(p, mc_print_acc, mc_grid_moment_acc);
        mc_str_add(p->out, "\n");
        if (splits && mc_print_stage_reduces(p, &positions)) {
            walk_or_take(p);
        } else {
            walk(p);
            each(p, across, across);
        }
        mc_print_each(p, mc_print_finish);
        mc_str_add(p->out, "\n");
    }
    mc_str_add(p->out, "if (live && lane == 0 && blockIdx.y == 0) {\n");
    mc_print_row_stores(p);
    mc_str_add(p->out, "}\n");
    mc_grid_close_rows(p);
    mc_str_add(p->out, "}\n");
    entries(p);
}

/* What keeps a row in registers. */
static void forms_of_rows(struct print *p, const struct mc_kernel *of)
{
    const struct mc_grid_row row[] = { mc_grid_row(of), mc_grid_single(of) };
    for (int i = 0; i < 2; i++) {
        if (row[i].vector) {
            mc_grid_print_row(p, row[i], "rq"[i]);
        }
    }
    memset(p->done, 0, p->k->val.n);
}

static void print_kernel(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *of)
{
    struct mc_kernel k = *of; /* except in NAME_r of rows that lie dense nothing is kept: a walk computes again what an earlier one has, unless it was stored and fewer are read then */
    struct print p = { .out = out, .d = d, .k = &k, .grid = true, .above = of->mode == KERNEL_COLUMN };
    p.need = mc_calloc(k.val.n + 1, 2, "kernel");
    k.val.at = mc_alloc((k.val.n + 1) * sizeof *k.val.at, "kernel");
    unsigned char *back = mc_calloc(k.operand.n + 1, 1, "kernel");
    if (!p.need || !k.val.at || !back) {
        out->bad = true;
    } else {
        p.done = p.need + k.val.n;
        memcpy(k.val.at, of->val.at, k.val.n * sizeof *k.val.at);
        k.wide = false;
        k.mode = k.mode == KERNEL_MAP ? KERNEL_MAP : KERNEL_ROW; /* row values are scalars of a thread */
        mc_str_addf(out, "\nstruct %s_args { char *p[%zu]; i64 *err; char *scratch; u32 count[2], axes[2], size[8], splits, chunk, column, number, flat, teams, first, held, near, magic[8], shift[8]; i64 step[%zu][8]; };\n",
                    k.name, MC_MAX(k.operand.n, (size_t)1), MC_MAX(k.operand.n, (size_t)1));
        if (!mc_grid_torn(of)) {
            forms_of_rows(&p, of);
        }
        for (size_t i = 0; i < k.val.n; i++) {
            k.val.at[i].saved = 0;
        }
        k.nsaved = 0;
        if (mc_grid_torn(of)) {
            forms_of_rows(&p, of);
        }
        if (k.mode == KERNEL_MAP) {
            print_map(&p);
        } else {
            p.back = back;
            print_reducing(&p);
            if (mc_grid_column(of)) {
                k.mode = KERNEL_COLUMN;
                mc_grid_print_column(&p);
            }
            p.back = NULL;
            if (mc_grid_tallies(&k)) {
                mc_grid_print_tally(&p);
            }
        }
    }
    mc_free(back);
    mc_free(k.val.at);
    mc_free(p.need);
}

static bool any_column(int n, struct mc_kernel *const *kernels)
{
    bool any = false;
    for (int i = 0; i < n; i++) {
        any |= mc_grid_column(kernels[i]);
    }
    return any;
}

void mc_render_grid(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels)
{
    mc_str_add(out, d->prelude);
    mc_str_add(out, mc_prelude_code);
    mc_str_add(out, any_column(n, kernels) ? mc_grid_down : "");
    mc_print_functions(out, d, n, kernels);
    for (int i = 0; i < n; i++) {
        print_kernel(out, d, kernels[i]);
    }
}

/* ---- arguments: laid out as NAME_args is ---- */

size_t mc_grid_args_size(size_t operands)
{
    return sizeof(struct mc_grid_head) + MC_MAX(operands, 1) * (8 + 8 * MC_MAX_RANK);
}

struct mc_grid_args mc_grid_args(void *memory, size_t operands)
{
    char *at = memory;
    operands = MC_MAX(operands, 1);
    return (struct mc_grid_args){ .p = memory, .head = (void *)(at + 8 * operands),
                                  .step = (void *)(at + 8 * operands + sizeof(struct mc_grid_head)) };
}
