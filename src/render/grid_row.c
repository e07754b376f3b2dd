/* grid_row.c: row kernels whose rows fit the registers of a block or a cluster.  The adjacent lanes of a team
 * keep a whole row in registers, so several stages read memory once.
 *
 *   NAME_r  16 bytes at a time: contiguous rows, or rows in segments of whole vectors, such as a channel of
 *           images
 *   NAME_t  rows that the blocks of a cluster share: contiguous rows as in NAME_r, rows in segments as in
 *           NAME_q
 *   NAME_q  an element at a time: rows in segments of any size
 *
 * Lane i has the vectors i, i + lanes and so on, at most `kept`.  A reduction runs over a lane's elements and
 * within its warp in the element's type, then over the warps of all blocks of the row in the accumulator's
 * type.  For a row in segments, the loaded operands stay in registers, and later stages recompute from them:
 * there are not enough registers for both.
 *
 * Invariant: each lane takes part in every exchange, also if its row or its vectors are beyond the last. */
#include "render/grid.h"

/* registers of a lane: for all but what is kept; at most, for 1024 lanes, for 512 lanes to keep 4 vectors,
 * for 512 lanes; for a row in segments and 1024 or 512 lanes */
enum { REGISTERS = 32, OVERHEAD = 56, MANY = 96, MOST = 112, SEGMENTED = 64, SEGMENTED_MOST = 80 };
/* elements of a lane of NAME_q, if registers allow */
enum { SCALARS = 12 };

static bool is_load(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    return mc_grid_varies(p, i) && !o->dst && !o->index && mc_print_moves(p->k, o);
}

bool mc_grid_row_segmented(const struct mc_kernel *k)
{
    return (k->varies & ~k->reduced) > (k->reduced & (0u - k->reduced));
}

/* size: of the largest element; loads: operands read by element; sums: column sums. */
struct kept { size_t size, loads, sums; };

static struct kept elements_kept(const struct mc_kernel *k)
{
    struct kept n = { .size = 2 };
    for (size_t i = 0; i < k->operand.n; i++) {
        const struct mc_koperand *o = &k->operand.at[i];
        bool moves = mc_print_moves(k, o) && !o->index;
        n.size = moves ? MC_MAX(n.size, mc_dtypes[o->dtype].size) : n.size;
        n.loads += moves && !o->dst;
        n.sums += o->column_sums;
    }
    return n;
}

/* A row in segments: `most` vectors or half of them, as registers allow, with `each` registers for a load.
 * More than about four operands leave too few lanes to keep memory busy; and a single stage reads memory once
 * anyway. */
static struct mc_grid_row segmented_row(const struct mc_kernel *k, int vector, size_t most, size_t each)
{
    const struct kept n = elements_kept(k);
    size_t all = MC_MAX(each * MC_MAX(n.loads, (size_t)1), (size_t)1);
    most = REGISTERS + most * all > SEGMENTED ? most / 2 : most;
    const size_t registers = REGISTERS + most * all;
    if (k->mode != KERNEL_ROW || k->nstage < 2 || !mc_grid_row_segmented(k) || mc_grid_column_sums(k) ||
        n.size > 4 || registers > SEGMENTED_MOST) {
        return (struct mc_grid_row){ 0 };
    }
    return (struct mc_grid_row){ vector, (int)most, registers > SEGMENTED ? 512 : 1024 };
}

struct mc_grid_row mc_grid_row_scalar(const struct mc_kernel *k)
{
    return k->never & GRID_ROW_SCALAR ? (struct mc_grid_row){ 0 } : segmented_row(k, 1, SCALARS, 1);
}

static struct mc_grid_row dense_row(const struct mc_kernel *k)
{
    const struct kept n = elements_kept(k);
    size_t each = 4 * n.loads + 16 / n.size * MC_MAX(n.size / 4, 1) *
                                    (n.sums + (size_t)k->nsaved); /* registers for each vector that is kept */
    int most = REGISTERS + 4 * each <= MANY ? 4 : 2;
    size_t registers = REGISTERS + (size_t)most * each;
    return k->mode != KERNEL_ROW || registers > MOST
               ? (struct mc_grid_row){ 0 }
               : (struct mc_grid_row){ (int)(16 / n.size), most, registers > OVERHEAD ? 512 : 1024 };
}

struct mc_grid_row mc_grid_row(const struct mc_kernel *k)
{
    return k->never & GRID_ROW        ? (struct mc_grid_row){ 0 }
           : mc_grid_row_segmented(k) ? segmented_row(k, (int)(16 / elements_kept(k).size), 8, 4)
                                      : dense_row(k);
}

struct mc_grid_row mc_grid_row_cluster(const struct mc_kernel *k)
{
    return k->never & GRID_CLUSTER    ? (struct mc_grid_row){ 0 }
           : mc_grid_row_segmented(k) ? segmented_row(k, 1, SCALARS, 1)
                                      : dense_row(k);
}

/* ---- values in registers ---- */

static const char *saved_type(const struct print *p, int number)
{
    for (size_t i = 0; i < p->k->val.n; i++) {
        if (p->k->val.at[i].saved == number) {
            return mc_print_calc(p, p->k->val.at[i].dtype);
        }
    }
    return "float";
}

static void open_vectors(struct print *p, const char *where)
{
    mc_str_addf(
        p->out,
        "_Pragma(\"unroll\") for (int k = 0; k < K; k++) { const u32 r = lane + k * lanes; if (%sr < n) {\n",
        where);
    if (mc_grid_row_segmented(p->k)) {
        mc_str_add(p->out,
                   "const u32 q = over_(r * V, magic, shift), i = r * V - q * inner; (void)q; (void)i;\n");
    }
}

/* The place of vector r of operand o: an address, or a position. */
static void at_vector(struct print *p, size_t o)
{
    const struct mc_koperand *x = &p->k->operand.at[o];
    mc_str_addf(p->out, "(A.p[%zu] + o%zu", o, o);
    if (mc_grid_row_segmented(p->k)) {
        mc_str_addf(
            p->out,
            " + (i64)(i32)q * (i32)A.step[%zu][axis + A.near] + (i64)(i32)i * (i32)A.step[%zu][axis])", o, o);
    } else if (mc_print_moves(p->k, x)) {
        mc_str_addf(p->out, " + (i64)r * (V * %zu))", x->index ? (size_t)1 : mc_dtypes[x->dtype].size);
    } else {
        mc_str_add(p->out, ")");
    }
}

static void close_vectors(struct print *p)
{
    mc_str_add(p->out, "} }\n");
}

static void column_sums(struct print *p, bool store)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (p->k->operand.at[i].column_sums && !store) {
            mc_str_addf(p->out, "alignas(16) %s t%zu[K][V] = { };\n", t, i);
        } else if (p->k->operand.at[i].column_sums) {
            mc_str_addf(p->out, "{ %s *const to = (%s *)(", t, t);
            mc_grid_part(p, i, "team");
            mc_str_addf(p->out,
                        ");\n_Pragma(\"unroll\") for (int k = 0; k < K; k++) { const u32 r = lane + k * "
                        "lanes; if (r < n) store_<%s, V>(to + r * V, t%zu[k]); } }\n",
                        t, i);
        }
    }
}

/* Is it the same for all rows? */
static bool is_shared_load(const struct print *p, size_t i)
{
    return mc_grid_column_sums(p->k) && !(p->k->operand.at[i].varies & ~p->k->reduced);
}

/* Loads all operands of the row before anything is used. common: those that all rows share, once before the
 * rows. */
static void load(struct print *p, bool common)
{
    bool any = false;
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (is_load(p, i) && is_shared_load(p, i) == common) {
            mc_str_addf(p->out, "alignas(16) %s x%zu[K][V];\n", p->d->store[p->k->operand.at[i].dtype], i);
            any = true;
        }
    }
    if (!any) {
        return;
    }
    open_vectors(p, common ? "" : "live && ");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (is_load(p, i) && is_shared_load(p, i) == common) {
            mc_str_addf(p->out, "load_<%s, V>(x%zu[k], (const %s *)", t, i, t);
            if (common) {
                mc_str_addf(p->out, "A.p[%zu] + r * V", i);
            } else {
                at_vector(p, i);
            }
            mc_str_add(p->out, ");\n");
        }
    }
    close_vectors(p);
}

static void save(struct print *p)
{
    for (int s = 1; s <= p->k->nsaved; s++) {
        mc_str_addf(p->out, "%s s%d[K][V];\n", saved_type(p, s), s);
    }
}

/* ---- one pass ---- */

static void print_addresses(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        bool moves = mc_print_moves(p->k, o);
        if (!mc_grid_varies(p, i)) {
            continue;
        }
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)", i);
            at_vector(p, i);
            mc_str_addf(p->out, "; (void)a%zu;\n", i);
        } else if (is_load(p, i)) {
            mc_str_addf(p->out, "const %s *const a%zu = x%zu[k]; (void)a%zu;\n", t, i, i, i);
        } else if (o->column_sums) {
            mc_str_addf(p->out, "%s *const a%zu = t%zu[k]; (void)a%zu;\n", t, i, i, i);
        } else if (mc_grid_computed_in_stage(p, o) && moves) {
            mc_str_addf(p->out, "alignas(16) %s a%zu[V];\n", t, i);
        } else if (mc_grid_computed_in_stage(p, o) || !o->dst) {
            mc_str_addf(p->out, "%s%s *const a%zu = (%s%s *)", o->dst ? "" : "const ", t, i,
                        o->dst ? "" : "const ", t);
            at_vector(p, i);
            mc_str_addf(p->out, "; (void)a%zu;\n", i);
        }
    }
    for (int s = 1; s <= p->k->nsaved; s++) {
        mc_str_addf(p->out, "%s *const b%d = s%d[k]; (void)b%d;\n", saved_type(p, s), s, s, s);
    }
}

static void walk(struct print *p, bool lanes)
{
    open_vectors(p, "live && ");
    print_addresses(p);
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_body(p, lanes, "((i64)r * V + j)");
    mc_str_add(p->out, "}\n");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        const char *t = p->d->store[o->dtype];
        if (mc_grid_computed_in_stage(p, o) && mc_print_moves(p->k, o)) {
            mc_str_addf(p->out, "store_<%s, V>((%s *)", t, t);
            at_vector(p, i);
            mc_str_addf(p->out, ", a%zu);\n", i);
        }
    }
    close_vectors(p);
}

/* ---- the kernel ---- */

/* The end of a row.  If a team has several rows, its shared memory is written again, so all lanes must have
 * read it. */
static const char *print_row_end(const struct print *p, bool together)
{
    return mc_grid_column_sums(p->k) ? together ? "}\nmeet_();\n" : "}\n__syncthreads();\n"
           : together                ? "}\nleave_();\n"
                                     : "}\n";
}

void mc_grid_print_row(struct print *p, struct mc_grid_row row, char form)
{
    const bool together = form == 't';
    memset(p->done, 0, p->k->val.n);
    mc_str_addf(p->out,
                "ENTRY __launch_bounds__(%d) %s_%c(const %s_args A)\n{\nBEGIN\nconst int K = %d, V = %d; "
                "extern __shared__ i64 shared_[];\n",
                row.most, p->k->name, form, p->k->name, row.kept, row.vector);
    mc_str_add(p->out,
               together
                   ? "const u32 lanes = blockDim.x * gridDim.y, lane = blockIdx.y * blockDim.x + threadIdx.x"
                   : "const u32 lanes = blockDim.x, lane = threadIdx.x");
    mc_str_add(p->out, ", warps = lanes / 32, n = A.count[1] / V;\n");
    if (mc_grid_row_segmented(p->k)) {
        mc_str_add(p->out, "const u32 axis = A.axes[0], inner = A.size[axis], magic = A.magic[axis], shift = "
                           "A.shift[axis];\n");
    }
    column_sums(p, false);
    load(p, true);
    mc_grid_open_rows(p);
    mc_grid_point(p);
    load(p, false);
    save(p);
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
        if (mc_print_mark(p)) {
            bool positions, reduces = mc_print_stage_reduces(p, &positions), lanes = reduces && !positions;
            mc_print_each(p, mc_print_acc);
            if (lanes) {
                mc_print_each(p, mc_print_lane);
            }
            mc_str_add(p->out, "\n");
            walk(p, lanes);
            if (reduces) {
                mc_grid_row_reduce(p, lanes, together);
            }
        }
    }
    mc_str_add(p->out, "if (live && lane == 0) {\n");
    mc_print_row_stores(p);
    mc_str_add(p->out, print_row_end(p, together));
    mc_grid_close_rows(p);
    column_sums(p, true);
    mc_str_add(p->out, "}\n");
}
