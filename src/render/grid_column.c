/* grid_column.c: NAME_c, sums over the outer axes.  A thread has four adjacent columns, and rows at a fixed
 * distance, as for channels that are innermost (NHWC).  If rows are split among blocks, each stage is a
 * launch, as in grid_reduce.c.
 *
 * r3[j] is row value 3 of column j, c3[j] the sum of one lane; grid_column_reduce.c adds the lanes.
 *
 * Invariant: each lane takes part in every exchange, also if its columns are beyond the last. */
#include "render/grid.h"

/* rows that a lane loads before it uses the first; FEWER with more operands */
enum { AHEAD = 4, FEWER = 2, MOST_READS = 2 };
/* columns of a thread, whose sums are in registers; sums of a pass */
enum { NEIGHBOURS = 4, MOST_PARTS = 20 };

int mc_grid_column(const struct mc_kernel *k)
{
    bool sums = k->mode == KERNEL_COLUMN && !mc_grid_column_sums(k);
    for (size_t i = 0; i < k->val.n && sums; i++) {
        const struct mc_kval *v = &k->val.at[i];
        sums &= v->kind != K_CHECK && (v->kind != K_REDUCE || mc_grid_adds(k, v));
    }
    for (size_t i = 0; i < k->operand.n && sums; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        sums &= o->index || mc_dtypes[o->dtype].size <= 4;
    }
    return sums && mc_grid_parts(k).most <= MOST_PARTS ? NEIGHBOURS : 0;
}

static void declare_lane(struct print *p, int v)
{
    mc_str_addf(p->out, "float c%d[V] = { }; ", v);
}

/* ---- one pass ---- */

/* Is operand i read V elements at a time? */
static bool is_prefetched(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    return mc_grid_varies(p, i) && mc_print_moves(p->k, o) && !o->index && !mc_grid_computed_in_stage(p, o) &&
           (!o->dst || p->back[i]);
}

/* Declares e3, the offset of row r, for each operand that varies by element. */
static void print_addresses(struct print *p)
{
    mc_str_add(p->out, "const i32 q = (i32)over_(r, magic, shift), i = (i32)(r - q * inner); ");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_varies(p, i)) {
            mc_str_addf(p->out, "const i64 e%zu = o%zu + (i64)i * n%zu + (i64)q * f%zu; (void)e%zu; ", i, i,
                        i, i, i);
        }
    }
    mc_str_add(p->out, "\n");
}

static void prefetch(struct print *p, bool declare_them)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (is_prefetched(p, i) && declare_them) {
            mc_str_addf(p->out, "alignas(16) %s x%zu[U][V]; ", t, i);
        } else if (is_prefetched(p, i)) {
            mc_str_addf(p->out, "load_<%s, V>(x%zu[u], (const %s *)(A.p[%zu] + e%zu));\n", t, i, t, i, i);
        }
    }
}

static void open_elements(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (!mc_grid_varies(p, i)) {
            continue;
        }
        if (is_prefetched(p, i)) {
            mc_str_addf(p->out, "const %s *const a%zu = x%zu[u]; (void)a%zu;\n", t, i, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + e%zu; (void)a%zu;\n", i, i, i, i);
        } else if (mc_grid_computed_in_stage(p, o) && mc_print_moves(p->k, o)) {
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
        if (mc_grid_computed_in_stage(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "store_<%s, V>((%s *)(A.p[%zu] + e%zu), a%zu);\n", t, t, i, i, i);
        }
    }
}

/* One pass over the block's rows, U of a lane at a time.  A lane takes at most 2048 rows, as its sums are
 * float. */
static void print_pass(struct print *p)
{
    mc_str_addf(p->out, "const int U = %d; const u32 e = to; u32 seen = 0; (void)seen;\n",
                mc_print_reads(p) <= MOST_READS ? AHEAD : FEWER);
    mc_print_each(p, declare_lane);
    mc_grid_each_centred_sum(p, mc_grid_centred_sum_lane_column);
    mc_str_add(p->out, "\nONCE for (u32 start = from + lane; start < e; start += U * lanes) {\n");
    prefetch(p, true);
    mc_grid_ahead(p);
    print_addresses(p);
    prefetch(p, false);
    mc_str_add(p->out, "} }\n");
    mc_grid_ahead(p);
    print_addresses(p);
    open_elements(p);
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_body(p, false, "");
    mc_grid_each_centred_sum(p, mc_grid_centred_sum_add_column);
    mc_str_add(p->out, "}\nseen++;\n");
    close_elements(p);
    mc_str_add(p->out, "} }\n}\n");
}

/* A stage with sums: in its own launch the pass, after which the block's sums are stored; in later launches
 * the stored sums are read. */
static void print_pass_or_load(struct print *p)
{
    mc_str_addf(p->out, "if (A.first <= %d) {\n", p->stage);
    print_pass(p);
    mc_grid_column_reduce_lanes(p);
    mc_str_add(p->out, "} else ");
    mc_grid_column_reduce_gather(p);
    mc_grid_column_reduce_total(p);
}

/* ---- the kernel ---- */

static void open_kernel(struct print *p)
{
    const struct mc_kernel *k = p->k;
    mc_str_addf(
        p->out,
        "ENTRY __launch_bounds__(256, 2) %s_c(const %s_args A)\n{\nBEGIN\nconst int V = %d, nb = V;\n",
        k->name, k->name, mc_grid_column(k));
    mc_str_add(p->out,
               "const u32 lanes = blockDim.y, lane = threadIdx.y, place = blockIdx.x * blockDim.x + "
               "threadIdx.x;\nconst bool live = place < A.count[0]; const u32 at = live ? place : 0;\n"
               "i64 *const err = A.err; (void)err;\n");
    mc_grid_column_reduce_open(p);
    mc_str_add(p->out, "const u32 inner = A.size[1], magic = A.magic[1], shift = A.shift[1];\n");
    mc_grid_block(p);
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        mc_str_addf(p->out, "const i64 o%zu = (i64)at * A.step[%zu][0];\n", i, i);
        if (mc_grid_varies(p, i)) {
            mc_str_addf(
                p->out,
                "const i32 n%zu = (i32)A.step[%zu][1], f%zu = (i32)A.step[%zu][2]; (void)n%zu; (void)f%zu;\n",
                i, i, i, i, i, i);
        } else if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)A.p[%zu] + o%zu;\n", i, i, i);
        } else if (mc_print_moves(k, o) && !o->dst) {
            mc_str_addf(p->out,
                        "alignas(16) %s a%zu[V]; load_<%s, V>(a%zu, (const %s *)(A.p[%zu] + o%zu));\n", t, i,
                        t, i, t, i, i);
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

/* Row values that are only stored, and no pass reads, are deferred: one block needs them, once. */
static void defer_row_values(struct print *p)
{
    const struct mc_kernel *k = p->k;
    memset(p->wait, 1, k->val.n);
    for (size_t i = k->val.n; i-- > 0;) {
        const struct mc_kval *v = &k->val.at[i];
        p->wait[i] &= !v->element && v->kind != K_REDUCE;
        for (int a = 0; a < v->narg && !p->wait[i]; a++) {
            p->wait[v->arg[a]] = 0;
        }
    }
}

static void print_rows(struct print *p)
{
    mc_print_row_values(p);
    mc_print_column_values(p);
}

static void store_rows(struct print *p)
{
    mc_str_add(p->out, "if (live && lane == 0 && blockIdx.y == 0) {\n");
    for (size_t i = 0; i < p->k->val.n; i++) {
        p->wait[i] = !p->wait[i];
    }
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        print_rows(p);
    }
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
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
    defer_row_values(p);
    open_kernel(p);
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        bool positions;
        print_rows(p);
        if (mc_grid_centred_sums(p->k, p->stage)) {
            mc_grid_column_reduce_finish(p);
            continue;
        }
        if (!mc_print_mark(p)) {
            continue;
        }
        mc_grid_each_centred_sum(p, mc_grid_centred_sum_need);
        if (mc_print_stage_reduces(p, &positions)) {
            print_pass_or_load(p);
            mc_grid_column_reduce_finish(p);
        } else {
            mc_str_add(p->out, "{ ");
            print_pass(p);
            mc_str_add(p->out, "}\n");
        }
    }
    store_rows(p);
    mc_str_add(p->out, "}\n");
}
