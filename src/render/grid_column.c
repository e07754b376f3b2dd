/* grid_column.c: sums over what lies outside, NAME_c: a thread has a few neighbours, sixteen bytes of a row, and every so many of the
 * rows above each other, as channels that lie side by side need it.  Stages are launched one by one where rows are
 * split over blocks, as grid_reduce.c's are.
 *
 * r3[j] is row value 3 of neighbour j, c3[j] what a lane has added up since its sums went to d3[j] (and z3[j], of a moment).
 *
 * Invariant: each lane takes part in every exchange, whether its columns are there or not. */
#include "render/grid.h"

enum { AHEAD = 4, FEWER = 2, MOST_READS = 2 }; /* rows that a lane asks for before it uses the first; of more operands, fewer */

/* All rows of a block get the sum of theirs, for V columns a thread. */
const char mc_grid_down[] =
    "template <int V> INLINE void down_(double *d) { extern __shared__ i64 shared_[]; double *const s = (double *)shared_;\n"
    "  const u32 wide = blockDim.x, me = threadIdx.y * wide + threadIdx.x, warps = wide * blockDim.y / 32;\n"
    "  ONCE for (u32 a = wide; a < 32; a *= 2) _Pragma(\"unroll\") for (int j = 0; j < V; j++) d[j] += __shfl_xor_sync(~0u, d[j], a);\n"
    "  if (warps == 1) return;\n"
    "  __syncthreads();\n"
    "  if (me % 32 < wide) for (int j = 0; j < V; j++) s[(me / 32 * wide + threadIdx.x) * V + j] = d[j];\n"
    "  __syncthreads();\n"
    "  _Pragma(\"unroll\") for (int j = 0; j < V; j++) d[j] = 0;\n"
    "  ONCE for (u32 w = 0; w < warps; w++) _Pragma(\"unroll\") for (int j = 0; j < V; j++) d[j] += s[(w * wide + threadIdx.x) * V + j]; }\n";

static bool adds(const struct mc_kernel *k, const struct mc_kval *v)
{
    const mc_dtype of = k->val.at[v->arg[0]].dtype;
    return strcmp(v->op->name, "sum") == 0 && mc_is_float(of) && mc_dtypes[of].size <= 4 && (v->acc == MC_FLOAT64 || v->acc == MC_FLOAT32);
}

int mc_grid_column(const struct mc_kernel *k)
{
    size_t size = 2;
    bool sums = k->mode == KERNEL_COLUMN && !mc_grid_tallies(k);
    for (size_t i = 0; i < k->val.n && sums; i++) {
        const struct mc_kval *v = &k->val.at[i];
        sums &= v->kind != K_CHECK && (v->kind != K_REDUCE || adds(k, v));
    }
    for (size_t i = 0; i < k->operand.n && sums; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        sums &= o->index || mc_dtypes[o->dtype].size <= 4;
        size = !o->index && o->varies & k->reduced ? MC_MAX(size, mc_dtypes[o->dtype].size) : size;
    }
    return !sums ? 0 : size == 2 && !(k->never & GRID_EIGHT) ? 8 : 4;
}

/* f for what this stage's walk adds up, g for what it does for the next. */
static void columns(struct print *p, void (*f)(struct print *p, int v), void (*g)(struct print *p, int v))
{
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_each(p, f);
    mc_grid_each_moment(p, g);
    mc_str_add(p->out, "}\n");
}

static bool is_moment(const struct print *p, int v)
{
    return mc_grid_moments(p->k, p->k->val.at[v].stage);
}

/* ---- sums ---- */

static void declare(struct print *p, int v)
{
    mc_str_addf(p->out, "double d%d[V] = { }, z%d[V] = { }; (void)z%d; ", v, v, v);
}

static void declare_lane(struct print *p, int v)
{
    mc_str_addf(p->out, "float c%d[V] = { }; ", v);
}

static void close_lane(struct print *p, int v)
{
    mc_str_addf(p->out, "d%d[j] += c%d[j]; ", v, v);
}

/* Threads side by side find theirs side by side. */
static void part(struct print *p, int v, const char *block)
{
    mc_str_addf(p->out, "double *const part = (double *)A.scratch + ((((i64)%d * A.splits + %s) * V + j) * A.count[0] + at) * 2; ", mc_grid_slot(p->k, v), block);
}

static void keep(struct print *p, int v)
{
    mc_str_add(p->out, "{ ");
    part(p, v, "blockIdx.y");
    mc_str_addf(p->out, "part[0] = d%d[j]; part[1] = z%d[j]; } ", v, v);
}

static void fetch(struct print *p, int v)
{
    mc_str_add(p->out, "{ ");
    part(p, v, "s");
    mc_str_addf(p->out, "d%d[j] += part[0]; z%d[j] += part[1]; } ", v, v);
}

static void exchange(struct print *p, int v)
{
    mc_str_addf(p->out, "down_<V>(d%d); ", v);
    if (is_moment(p, v)) {
        mc_str_addf(p->out, "down_<V>(z%d); ", v);
    }
}

static void finish(struct print *p, int v)
{
    if (is_moment(p, v)) {
        mc_grid_moment_finish_column(p, v);
    } else {
        mc_str_addf(p->out, "r%d[j] = (%s)d%d[j]; ", v, mc_print_calc(p, p->k->val.at[v].dtype), v);
    }
}

static void finish_all(struct print *p)
{
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_each(p, finish);
    mc_str_add(p->out, "}\n");
}

/* ---- a walk ---- */

/* Are elements of it read V at a time? */
static bool is_fetched(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    return mc_grid_walks(p, i) && mc_print_moves(p->k, o) && !o->index && !mc_grid_made_here(p, o) && (!o->dst || p->back[i]);
}

/* e3: where row r lies, for each operand that walks. */
static void find(struct print *p)
{
    mc_str_add(p->out, "const i32 q = (i32)over_(r, magic, shift), i = (i32)(r - q * inner); ");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_walks(p, i)) {
            mc_str_addf(p->out, "const i64 e%zu = o%zu + (i64)i * n%zu + (i64)q * f%zu; (void)e%zu; ", i, i, i, i, i);
        }
    }
    mc_str_add(p->out, "\n");
}

static void ask(struct print *p, bool declare_them)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (is_fetched(p, i) && declare_them) {
            mc_str_addf(p->out, "alignas(16) %s x%zu[U][V]; ", t, i);
        } else if (is_fetched(p, i)) {
            mc_str_addf(p->out, "load_<%s, V>(x%zu[u], (const %s *)(A.p[%zu] + e%zu));\n", t, i, t, i, i);
        }
    }
}

static void open_elements(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (!mc_grid_walks(p, i)) {
            continue;
        }
        if (is_fetched(p, i)) {
            mc_str_addf(p->out, "const %s *const a%zu = x%zu[u]; (void)a%zu;\n", t, i, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + e%zu; (void)a%zu;\n", i, i, i, i);
        } else if (mc_grid_made_here(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "alignas(16) %s a%zu[V];\n", t, i);
        } else {
            mc_str_addf(p->out, "%s *const a%zu = (%s *)(A.p[%zu] + e%zu); (void)a%zu;\n", t, i, t, i, i, i);
        }
    }
}

static void close_elements(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_made_here(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "store_<%s, V>((%s *)(A.p[%zu] + e%zu), a%zu);\n", t, t, i, i, i);
        }
    }
}

/* The block's rows, U of a lane at a time; sums of 2048 of them go to the accumulators. */
static void walk(struct print *p)
{
    mc_str_addf(p->out, "{ const int U = %d;\nONCE for (u32 b = from; b < to; b += 2048 * lanes) {\nconst u32 e = to - b < 2048 * lanes ? to : b + 2048 * lanes; u32 seen = 0; (void)seen;\n",
                mc_print_reads(p) <= MOST_READS ? AHEAD : FEWER);
    mc_print_each(p, declare_lane);
    mc_grid_each_moment(p, mc_grid_moment_lane_column);
    mc_str_add(p->out, "\nONCE for (u32 r0 = b + lane; r0 < e; r0 += U * lanes) {\n");
    ask(p, true);
    mc_grid_ahead(p);
    find(p);
    ask(p, false);
    mc_str_add(p->out, "} }\n");
    mc_grid_ahead(p);
    find(p);
    open_elements(p);
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_body(p, false, "");
    mc_grid_each_moment(p, mc_grid_moment_add_column);
    mc_str_add(p->out, "}\nseen++;\n");
    close_elements(p);
    mc_str_add(p->out, "} }\n}\n");
    columns(p, close_lane, mc_grid_moment_close_column);
    mc_str_add(p->out, "} }\n");
}

/* A stage that adds up: this launch's walk, then the block's sums are left; or those that are there are taken. */
static void walk_or_take(struct print *p)
{
    mc_print_each(p, declare);
    mc_grid_each_moment(p, declare);
    mc_str_addf(p->out, "\nif (A.first <= %d) {\n", p->stage);
    walk(p);
    mc_str_add(p->out, "} else ONCE for (u32 s = lane; live && s < A.splits; s += lanes) {\n");
    columns(p, fetch, fetch);
    mc_str_add(p->out, "}\n");
    mc_print_each(p, exchange);
    mc_grid_each_moment(p, exchange);
    mc_str_addf(p->out, "\nif (A.splits > 1 && A.first == %d) {\nif (live && lane == 0) {\n", p->stage);
    columns(p, keep, keep);
    mc_str_add(p->out, "}\nreturn;\n}\n");
}

/* ---- the kernel ---- */

static void open_kernel(struct print *p)
{
    const struct mc_kernel *k = p->k;
    mc_str_addf(p->out, "ENTRY __launch_bounds__(256, 2) %s_c(const %s_args A)\n{\nBEGIN\nconst int V = %d, nb = V;\n", k->name, k->name, mc_grid_column(k));
    mc_str_add(p->out, "const u32 lanes = blockDim.y, lane = threadIdx.y, place = blockIdx.x * blockDim.x + threadIdx.x;\nconst bool live = place < A.count[0]; const u32 at = live ? place : 0;\n"
                       "i64 *const err = A.err; (void)err;\n");
    mc_str_add(p->out, "const u32 inner = A.size[1], magic = A.magic[1], shift = A.shift[1];\n");
    mc_grid_block(p);
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        mc_str_addf(p->out, "const i64 o%zu = (i64)at * A.step[%zu][0];\n", i, i);
        if (mc_grid_walks(p, i)) {
            mc_str_addf(p->out, "const i32 n%zu = (i32)A.step[%zu][1], f%zu = (i32)A.step[%zu][2]; (void)n%zu; (void)f%zu;\n", i, i, i, i, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + o%zu;\n", i, i, i);
        } else {
            mc_str_addf(p->out, "%s *const a%zu = (%s *)(A.p[%zu] + o%zu);\n", t, i, t, i, i);
        }
    }
    for (size_t i = 0; i < k->val.n; i++) {
        if (!k->val.at[i].element && k->val.at[i].varies && k->val.at[i].kind != K_CONST) {
            mc_str_addf(p->out, "%s r%zu[V];\n", mc_print_calc(p, k->val.at[i].dtype), i);
        }
    }
}

static void store_rows(struct print *p)
{
    mc_str_add(p->out, "if (live && lane == 0 && blockIdx.y == 0) {\n_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        if (o->dst && !p->k->val.at[o->val].element) {
            mc_print_store(p, (int)i, true);
        }
    }
    mc_str_add(p->out, "} }\n");
}

void mc_grid_print_column(struct print *p)
{
    memset(p->done, 0, p->k->val.n);
    open_kernel(p);
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        bool positions;
        mc_print_row_values(p);
        mc_print_column_values(p);
        if (mc_grid_moments(p->k, p->stage)) {
            finish_all(p);
            continue;
        }
        if (!mc_print_mark(p)) {
            continue;
        }
        mc_grid_each_moment(p, mc_grid_moment_need);
        if (mc_print_stage_reduces(p, &positions)) {
            walk_or_take(p);
            finish_all(p);
        } else {
            walk(p);
        }
    }
    store_rows(p);
    mc_str_add(p->out, "}\n");
}
