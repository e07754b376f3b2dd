/* grid_reduce.c: reductions with `lanes` threads for each point: adjacent threads along the reduced axes, or,
 * with A.column, threads of different threadIdx.y, so that adjacent threads have adjacent points.
 *
 * Long reductions are split among blocks.  Launch i runs stage i: each block reduces its part of the point's
 * elements, adds the partial results of the launches before by itself, and stores its own in the scratch
 * memory.
 *
 * Invariant: each lane takes part in every exchange, also if its point is beyond the last. */
#include "render/grid.h"
#include <string.h>

/* elements that a lane adds in their own type before it adds to the accumulator: float sums; others */
enum { FLOAT_SUMS = 16, OTHERS = 2048 };
/* vectors that a lane loads before it uses the first: with one operand; with two; with more, 1 */
enum { AHEAD = 4, FEWER = 2 };

bool mc_grid_last_stage_reduces(const struct mc_kernel *k)
{
    bool ends = false;
    for (size_t i = 0; i < k->val.n; i++) {
        ends |= k->val.at[i].kind == K_REDUCE && k->val.at[i].stage == k->nstage - 1;
    }
    return ends;
}

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
    mc_str_addf(p->out, "[](%s &c%d, i64 &z%d, const %s l%d, const i64 q%d) { (void)z%d; (void)q%d; ", type,
                v, v, type, v, v, v, v);
    merge(p, v);
    mc_str_add(p->out, "}");
}

void mc_grid_merge(struct print *p, int v, const char *type)
{
    merging(p, v, type, mc_print_merge);
}

/* How partial results of a reduction are exchanged among lanes and blocks. */
struct passed { const char *type, *flag; void (*merge)(struct print *p, int v); };

static struct passed passed_of(const struct print *p, int v)
{
    const struct mc_kval *x = &p->k->val.at[v];
    return mc_grid_centred_sums(p->k, x->stage)
               ? (struct passed){ "double", "z", mc_grid_centred_sum_merge }
               : (struct passed){ mc_print_acc_type(p, x, false), mc_print_monoid(x)->flags ? "z" : "",
                                  mc_print_merge };
}

/* Reduces the accumulators of a point's lanes; all of them get the result. */
static void print_block_reduce(struct print *p, int v)
{
    const struct passed x = passed_of(p, v);
    mc_str_addf(p->out, "across(A.column, lanes, c%d, ", v);
    mc_str_addf(p->out, *x.flag ? "z%d, " : "none, ", v);
    merging(p, v, x.type, x.merge);
    mc_str_add(p->out, ");\n");
}

static void print_store(struct print *p, int v)
{
    const struct passed x = passed_of(p, v);
    mc_str_addf(p->out,
                "{ char *part = A.scratch + (((i64)%d * A.splits + blockIdx.y) * A.count[0] + at) * 16; *(%s "
                "*)part = c%d; ",
                mc_grid_slot(p->k, v), x.type, v);
    mc_str_addf(p->out, *x.flag ? "*(i64 *)(part + 8) = z%d; }\n" : "}\n", v);
}

static void print_load(struct print *p, int v)
{
    const struct passed x = passed_of(p, v);
    mc_str_addf(p->out,
                "{ const char *part = A.scratch + (((i64)%d * A.splits + s) * A.count[0] + at) * 16; const "
                "%s l%d = *(const %s *)part; ",
                mc_grid_slot(p->k, v), x.type, v, x.type);
    if (*x.flag) {
        mc_str_addf(p->out, "const i64 q%d = *(const i64 *)(part + 8); ", v);
    }
    x.merge(p, v);
    mc_str_add(p->out, "}\n");
}

/* Is operand i read into an array of V elements?  Otherwise it is an address, a position, or a result of this
 * stage. */
static bool is_fetched(const struct print *p, size_t i)
{
    const struct mc_koperand *o = &p->k->operand.at[i];
    return mc_grid_varies(p, i) && mc_print_moves(p->k, o) && !o->index && !o->column_sums &&
           !mc_grid_computed_in_stage(p, o) && (!o->dst || (p->back && p->back[i]));
}

/* Steps along the reduced axes, in 32 bits, if there are at most two such axes. */
static void near_steps(struct print *p)
{
    mc_str_add(
        p->out,
        "const u32 inner = A.size[A.axes[0]], magic = A.magic[A.axes[0]], shift = A.shift[A.axes[0]];\n");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_varies(p, i)) {
            mc_str_addf(p->out,
                        "const i32 n%zu = (i32)A.step[%zu][A.axes[0]], f%zu = (i32)A.step[%zu][A.axes[0] + "
                        "A.near]; (void)n%zu; (void)f%zu;\n",
                        i, i, i, i, i, i);
        }
    }
}

/* Declares e3, the offset of element r, for each operand that varies by element. */
static void find_elements(struct print *p)
{
    mc_grid_offsets(p, 'e', true, 'o');
    mc_str_add(p->out, "if (A.near) { const i32 q = (i32)over_(r, magic, shift), i = (i32)(r - q * inner);");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        if (mc_grid_varies(p, i)) {
            mc_str_addf(p->out, " e%zu += (i64)i * n%zu + (i64)q * f%zu;", i, i, i);
        }
    }
    mc_str_add(p->out, " } else ");
    mc_grid_print_split_index(p, 'e', true, "r", "A.axes[1]", "A.axes[0]");
}

/* x3[u] is vector u of operand 3, w3[u] its offset. */
static void fetch_elements(struct print *p, bool declare)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (!mc_grid_varies(p, i)) {
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
        } else if (mc_grid_varies(p, i)) {
            mc_str_addf(p->out, "const i64 e%zu = w%zu[u]; (void)e%zu;\n", i, i, i);
        }
    }
}

/* ---- the direction of a pass ---- */

static bool goes_backwards(const struct mc_kernel *k, int stage)
{
    int walks = 0;
    for (int s = 0; s < stage; s++) {
        walks += !mc_grid_centred_sums(k, s);
    }
    return walks % 2;
}

void mc_grid_block(struct print *p)
{
    unsigned back = 0;
    for (int s = 0; s <= p->k->nstage && mc_grid_can_split(p->k); s++) {
        back |= (unsigned)goes_backwards(p->k, s) << s;
    }
    mc_str_add(p->out, "const u32 from = A.chunk * ");
    mc_str_addf(p->out,
                back ? "(%#xu >> A.first & 1 ? A.splits - 1 - blockIdx.y : blockIdx.y)" : "blockIdx.y", back);
    mc_str_add(p->out, ", to = !live ? from : from + A.chunk < A.count[1] ? from + A.chunk : A.count[1];\n");
}

void mc_grid_ahead(struct print *p)
{
    mc_str_addf(p->out,
                "_Pragma(\"unroll\") for (int u = 0; u < U; u++) { const u32 w = start + u * lanes; if (w < "
                "e) { const u32 r = %s;\n",
                goes_backwards(p->k, p->stage) ? "from + to - 1 - w" : "w");
}

/* Calls f for each reduction of this stage, g for each centred sum of the next. */
static void each(struct print *p, void (*f)(struct print *p, int v), void (*g)(struct print *p, int v))
{
    mc_print_each(p, f);
    mc_grid_each_centred_sum(p, g);
}

static void each_of_vector(struct print *p, bool lanes, const char *position)
{
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_body(p, lanes, position);
    mc_grid_each_centred_sum(p, mc_grid_centred_sum_add);
    mc_str_add(p->out, "}\n");
}

/* Does the kernel sum floats?  Then a lane adds few elements in their own type, so that no digits are
 * lost. */
static bool adds_floats(const struct print *p)
{
    bool adds = false;
    for (size_t i = 0; i < p->k->val.n; i++) {
        const struct mc_kval *v = &p->k->val.at[i];
        adds |= v->kind == K_REDUCE && mc_is_float(v->acc) && v->op->reduction == REDUCE_SUM;
    }
    return adds;
}

/* One pass over the block's part of the reduced axes, U vectors of a lane at a time. */
static void walk(struct print *p)
{
    bool positions, reduces = mc_print_stage_reduces(p, &positions), lanes = reduces && !positions;
    const int most = adds_floats(p) ? FLOAT_SUMS : OTHERS;
    mc_str_addf(p->out,
                "{ const int U = AHEAD ? %d : 1; const u32 block = (U * V < %d ? %d / V : U) * lanes;\nONCE "
                "for (u32 b = from; b < to; b += block) {\nconst u32 e = to - b < block ? to : b + block;\n",
                p->above || mc_print_reads(p) < 2 ? AHEAD
                : mc_print_reads(p) == 2          ? FEWER
                                                  : 1,
                most, most);
    if (lanes) {
        each(p, mc_print_lane, mc_grid_centred_sum_lane);
    }
    mc_str_add(p->out, "\nfor (u32 start = b + lane; start < e; start += U * lanes) {\n");
    fetch_elements(p, true);
    mc_str_add(p->out, "\n");
    mc_grid_ahead(p);
    find_elements(p);
    fetch_elements(p, false);
    mc_str_add(p->out, "} }\n");
    mc_grid_ahead(p);
    open_fetched(p);
    mc_grid_open_elements(p, 'e');
    each_of_vector(p, lanes, "((i64)r * V + j)");
    mc_grid_close_elements(p, 'e');
    mc_str_add(p->out, "} }\n}\n");
    if (lanes) {
        each(p, mc_print_merge, mc_grid_centred_sum_close);
    }
    mc_str_add(p->out, "} }\n");
}

/* A stage whose reductions are split: in its own launch the pass, after which the block's results are stored;
 * in later launches the stored results are read. */
static void walk_or_take(struct print *p)
{
    mc_str_addf(p->out, "if (A.first <= %d) {\n", p->stage);
    walk(p);
    mc_str_add(p->out, "} else ONCE for (u32 s = lane; live && s < A.splits; s += lanes) {\n");
    each(p, print_load, print_load);
    mc_str_add(p->out, "}\n");
    each(p, print_block_reduce, print_block_reduce);
    mc_str_addf(p->out, "if (A.splits > 1 && A.first == %d) {\nif (live && lane == 0) {\n", p->stage);
    each(p, print_store, print_store);
    mc_str_add(p->out, "}\nreturn;\n}\n");
}

/* ---- the kernel ---- */

void mc_grid_print_reducing(struct print *p)
{
    bool splits = mc_grid_can_split(p->k), positions;
    mc_str_addf(p->out, "template <int V, bool AHEAD> INLINE void %s_of(const %s_args &A)\n{\n", p->k->name,
                p->k->name);
    mc_str_add(p->out, "const u32 lanes = A.column ? blockDim.y : blockDim.x, lane = A.column ? threadIdx.y "
                       ": threadIdx.x;\n");
    mc_grid_begin_column_sums(p);
    mc_grid_open_rows(p);
    mc_grid_point(p);
    near_steps(p);
    mc_grid_block(p);
    for (p->stage = 0; p->stage <= p->k->nstage; p->stage++) {
        mc_print_row_values(p);
        if (mc_grid_centred_sums(p->k, p->stage)) {
            mc_print_each(p, mc_grid_centred_sum_finish);
            continue;
        }
        if (!mc_print_mark(p)) {
            continue;
        }
        mc_grid_each_centred_sum(p, mc_grid_centred_sum_need);
        each(p, mc_print_acc, mc_grid_centred_sum_acc);
        mc_str_add(p->out, "\n");
        if (splits && mc_print_stage_reduces(p, &positions)) {
            walk_or_take(p);
        } else {
            walk(p);
            each(p, print_block_reduce, print_block_reduce);
        }
        mc_print_each(p, mc_print_finish);
        mc_str_add(p->out, "\n");
    }
    mc_str_add(p->out, "if (live && lane == 0 && blockIdx.y == 0) {\n");
    mc_print_row_stores(p);
    mc_str_add(p->out, "}\n");
    mc_grid_close_rows(p);
    mc_str_add(p->out, "}\n");
    mc_grid_entries(p);
}
