/* grid_row_reduce.c: reductions over the lanes that keep a row in registers: first within each warp, then
 * over the warps, with one barrier for all reductions of the stage.  Each warp then adds the parts of all
 * warps of the block, one lane a part.  Of up to four warps, each lane adds all parts: a conversion of a
 * float to a double takes as long as two exchanges between lanes.  In a cluster each warp then adds the sums
 * of all blocks, one lane a block.
 *
 * Invariant: parts are added in the same order by every thread that adds them. */
#include "render/grid.h"

/* For clusters of blocks along y. meet_: a barrier. leave_: no block ends before the others have read its
 * parts. there_: the address of p in another block's shared memory.  NAME_t is not launched on a GPU without
 * clusters. */
const char mc_grid_meeting[] =
    "#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900\n"
    "INLINE void meet_() { }\nINLINE void leave_() { }\nINLINE const char *there_(const char *p, u32 block) "
    "{ return p; }\n"
    "#else\n"
    "INLINE void meet_() {\n"
    "#if defined(__CUDACC_VER_MAJOR__) && __CUDACC_VER_MAJOR__ < 13\n"
    "  asm volatile(\"barrier.cluster.arrive; barrier.cluster.wait;\" ::: \"memory\"); }\n"
    "#else /* that would wait for memory, too, which nothing is passed through */\n"
    "  asm volatile(\"fence.release.sync_restrict::shared::cta.cluster; barrier.cluster.arrive.relaxed; "
    "barrier.cluster.wait; \"\n"
    "               \"fence.acquire.sync_restrict::shared::cluster.cluster;\" ::: \"memory\"); }\n"
    "#endif\n"
    "INLINE void leave_() { asm volatile(\"barrier.cluster.arrive.relaxed; barrier.cluster.wait;\" ::: "
    "\"memory\"); }\n"
    "INLINE const char *there_(const char *p, u32 block) { u64 a; asm volatile(\"mapa.u64 %0, %1, %2;\" : "
    "\"=l\"(a) : \"l\"(p), \"r\"(block)); return (const char *)a; }\n"
    "#endif\n";

/* warps of a block whose parts each lane adds, at most */
enum { FEW_WARPS = 4 };

struct names { char value, flag; const char *type; bool flags; };

/* Names of what is exchanged: the lane's sum, or the accumulator itself where positions are compared. */
static struct names names_of(const struct print *p, int v, bool lanes)
{
    const struct mc_kval *x = &p->k->val.at[v];
    return (struct names){ lanes ? 'l' : 'c', lanes ? 'q' : 'z', mc_print_acc_type(p, x, lanes),
                           mc_print_monoid(x)->flags };
}

/* Reduces within a warp; its first lane has the result. flag: z or f of the value; 0: none. */
static void exchange_in_warp(struct print *p, int v, struct names n, char flag)
{
    mc_str_addf(p->out, "warp_<%d>(%c%d, ",
                !n.flags                                 ? 0
                : mc_print_by_position(&p->k->val.at[v]) ? 2
                                                         : 1,
                n.value, v);
    mc_str_addf(p->out, flag ? "%c%d, " : "none, ", flag, v);
    mc_grid_merge(p, v, n.type);
    mc_str_add(p->out, ");\n");
}

static void within(struct print *p, int v, bool lanes)
{
    struct names n = names_of(p, v, lanes);
    if (n.flags) {
        mc_str_addf(p->out, "i64 f%d = %c%d; ", v, n.flag, v);
    }
    exchange_in_warp(p, v, n, n.flags ? 'f' : 0);
}

/* "shared_ + ..." in bytes: 16 for each reduction, team of the block and warp. */
static void part(struct print *p, int v, const char *warp)
{
    mc_str_addf(p->out, "((char *)shared_ + ((%d * blockDim.y + threadIdx.y) * 32 + %s) * 16)",
                mc_grid_slot(p->k, v), warp);
}

static void print_store_partial(struct print *p, int v, bool lanes)
{
    struct names n = names_of(p, v, lanes);
    mc_str_add(p->out, "{ char *const at = ");
    part(p, v, "threadIdx.x / 32");
    mc_str_addf(p->out, "; *(%s *)at = %c%d; ", n.type, n.value, v);
    mc_str_addf(p->out, n.flags ? "*(i64 *)(at + 8) = f%d; }\n" : "}\n", v);
}

/* Adds the part at the address `at` to the accumulator. */
static void add_part(struct print *p, int v, struct names n)
{
    mc_str_addf(p->out, "const %s l%d = *(const %s *)at; ", n.type, v, n.type);
    if (n.flags) {
        mc_str_addf(p->out, "const i64 q%d = *(const i64 *)(at + 8); ", v);
    }
    mc_print_merge(p, v);
    mc_str_add(p->out, "}\n");
}

static void take_first(struct print *p, int v, bool lanes)
{
    struct names n = names_of(p, v, lanes);
    mc_str_add(p->out, "{ const char *const at = ");
    part(p, v, "0");
    mc_str_addf(p->out, "; c%d = *(const %s *)at; ", v, n.type);
    mc_str_addf(p->out, n.flags ? "z%d = *(const i64 *)(at + 8); }\n" : "}\n", v);
}

static void print_load_partial(struct print *p, int v, bool lanes)
{
    mc_str_add(p->out, "{ const char *const at = ");
    part(p, v, "w");
    mc_str_add(p->out, "; ");
    add_part(p, v, names_of(p, v, lanes));
}

/* Resets the accumulator: the lane's own sum is contained in its warp's part. */
static void reset(struct print *p, int v, struct names n)
{
    const struct mc_kval *x = &p->k->val.at[v];
    mc_str_addf(p->out, "c%d = %s; ", v, mc_print_first(p, x));
    if (n.flags) {
        mc_str_addf(p->out, "z%d = %d; ", v, mc_print_by_position(x) ? -1 : 0);
    }
}

/* Adds the accumulators of a warp's lanes; all of them get the result. */
static void exchange_accumulators(struct print *p, int v, struct names n)
{
    exchange_in_warp(p, v, names_of(p, v, false), n.flags ? 'z' : 0);
    mc_str_addf(p->out, "c%d = __shfl_sync(~0u, c%d, 0); ", v, v);
    mc_str_addf(p->out, n.flags ? "z%d = __shfl_sync(~0u, z%d, 0);\n" : "\n", v, v);
}

/* Adds the parts of a block's warps, one lane a part. */
static void print_block_load(struct print *p, int v, bool lanes)
{
    struct names n = names_of(p, v, lanes);
    reset(p, v, n);
    mc_str_add(p->out, "if (threadIdx.x % 32 < blockDim.x / 32) { const char *const at = ");
    part(p, v, "threadIdx.x % 32");
    mc_str_add(p->out, "; ");
    add_part(p, v, n);
    exchange_accumulators(p, v, n);
}

static void print_single_warp(struct print *p, int v, bool lanes)
{
    struct names n = names_of(p, v, lanes);
    mc_str_addf(p->out, "c%d = __shfl_sync(~0u, %c%d, 0); ", v, n.value, v);
    if (n.flags) {
        mc_str_addf(p->out, "z%d = __shfl_sync(~0u, f%d, 0); ", v, v);
    }
}

static void each(struct print *p, bool lanes, void (*f)(struct print *p, int v, bool lanes))
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].kind == K_REDUCE && p->k->val.at[i].stage == p->stage) {
            f(p, (int)i, lanes);
        }
    }
}

/* Exchange among the warps of a block; a team may also be a single warp. */
static void exchange_in_block(struct print *p, bool lanes)
{
    mc_str_add(p->out, "if (warps > 1) {\nif (threadIdx.x % 32 == 0) {\n");
    each(p, lanes, print_store_partial);
    mc_str_addf(p->out, "}\n__syncthreads();\nif (warps > %d) {\n", FEW_WARPS);
    each(p, lanes, print_block_load);
    mc_str_add(p->out, "} else {\n");
    each(p, lanes, take_first);
    mc_str_add(p->out, "ONCE for (u32 w = 1; w < warps; w++) {\n");
    each(p, lanes, print_load_partial);
    mc_str_add(p->out, "} }\n} else {\n");
    each(p, lanes, print_single_warp);
    mc_str_add(p->out, "}\n");
}

/* "shared_ + ..." in bytes: of the block's sum, after the parts of its warps. */
static void block_part(struct print *p, int v)
{
    mc_str_addf(p->out, "((char *)shared_ + (%d * blockDim.y + threadIdx.y) * 32 * 16)",
                p->k->nreduce + mc_grid_slot(p->k, v));
}

static void print_store_block(struct print *p, int v, bool lanes)
{
    const struct names n = names_of(p, v, false);
    (void)lanes;
    mc_str_add(p->out, "{ char *const at = ");
    block_part(p, v);
    mc_str_addf(p->out, "; *(%s *)at = c%d; ", n.type, v);
    mc_str_addf(p->out, n.flags ? "*(i64 *)(at + 8) = z%d; }\n" : "}\n", v);
}

/* Adds the sums of a cluster's blocks, one lane a block. */
static void print_cluster_load(struct print *p, int v, bool lanes)
{
    const struct names n = names_of(p, v, false);
    (void)lanes;
    reset(p, v, n);
    mc_str_add(p->out, "if (threadIdx.x % 32 < gridDim.y) { const char *const at = there_(");
    block_part(p, v);
    mc_str_add(p->out, ", threadIdx.x % 32); ");
    add_part(p, v, n);
    exchange_accumulators(p, v, n);
}

static void print_cluster_reduce(struct print *p, bool lanes)
{
    mc_str_add(p->out, "if (threadIdx.x % 32 == 0) {\n");
    each(p, lanes, print_store_partial);
    mc_str_add(p->out, "}\n__syncthreads();\n");
    each(p, lanes, print_block_load);
    mc_str_add(p->out, "if (threadIdx.x == 0) {\n");
    each(p, lanes, print_store_block);
    mc_str_add(p->out, "}\nmeet_();\n");
    each(p, lanes, print_cluster_load);
}

void mc_grid_row_reduce(struct print *p, bool lanes, bool together)
{
    each(p, lanes, within);
    if (together) {
        print_cluster_reduce(p, lanes);
    } else {
        exchange_in_block(p, lanes);
    }
    mc_print_each(p, mc_print_finish);
    mc_str_add(p->out, "\n");
}
