/* grid_column_reduce.c: how NAME_c adds its column sums.  A lane has V columns; a warp or a block has at most
 * 32.  Within a warp, lanes exchange halves of their sums until each lane has the sum of one column.  Among
 * the warps of a block, one lane for each column adds their sums.  Blocks that share rows store their sums in
 * the scratch memory, and the next launch adds these in the same way.
 *
 * The unit is a part: a sum, or one of the two sums of a centred sum.  Parts of a pass are numbered from 0;
 * in the scratch memory the parts of all passes follow each other.
 *
 * Invariant: parts are added in the same order by every thread that adds them. */
#include "render/grid.h"

/* Shared memory: f[part][column] is the total for all lanes; s[part][warp][column] the sums of each warp. */
const char mc_grid_column_reduce[] =
    "struct down { u32 wide, warps, warp, lane, columns, first; double *f, *s; };\n"
    "template <int V> INLINE down down_of(const int parts, u32 count) { extern __shared__ i64 shared_[]; "
    "const u32 me = threadIdx.y * blockDim.x + threadIdx.x;\n"
    "  return down{ blockDim.x, blockDim.x * blockDim.y / 32, me / 32, me % 32, count * V, blockIdx.x * "
    "blockDim.x * V, (double *)shared_, (double *)shared_ + parts * 32 }; }\n"
    /* Stores the warp's sums of part i; d[] are a lane's V columns. */
    "template <int V> INLINE void fold_(const down &o, int i, double *d) { const u32 l = o.lane;\n"
    "  _Pragma(\"unroll\") for (int n = V / 2, a = 16; n; n /= 2, a /= 2) _Pragma(\"unroll\") for (int j = "
    "0; j < n; j++) {\n"
    "    const double keep = l & a ? d[j + n] : d[j], give = l & a ? d[j] : d[j + n]; d[j] = keep + "
    "__shfl_xor_sync(~0u, give, a); }\n"
    "  ONCE for (u32 a = 16 / V; a >= o.wide; a /= 2) d[0] += __shfl_xor_sync(~0u, d[0], a);\n"
    "  if (l % (32 / V) < o.wide) o.s[(i * o.warps + o.warp) * 32 + l % o.wide * V + l / (32 / V)] = d[0]; "
    "}\n"
    /* Reads N parts, from number `from` on, that the blocks of the launch before have stored; each warp reads
     * every warps-th block. */
    "template <int V, int N> INLINE void gather_(const down &o, const double *left, int from, u32 splits) { "
    "double t[N] = { };\n"
    "  if (o.lane < o.wide * V && o.first + o.lane < o.columns) { _Pragma(\"unroll 4\") for (u32 b = o.warp; "
    "b < splits; b += o.warps)\n"
    "    _Pragma(\"unroll\") for (int i = 0; i < N; i++) t[i] += left[((i64)(from + i) * splits + b) * "
    "o.columns + o.first + o.lane]; }\n"
    "  _Pragma(\"unroll\") for (int i = 0; i < N; i++) o.s[(i * o.warps + o.warp) * 32 + o.lane] = t[i]; }\n"
    /* The block's totals: for all its lanes, or stored in `left`. */
    "template <int V, int N> INLINE void total_(const down &o, double *left, int from, u32 splits) {\n"
    "  __syncthreads();\n"
    "  for (u32 i = o.warp; i < N; i += o.warps) if (o.lane < o.wide * V) { double t = 0; ONCE for (u32 w = "
    "0; w < o.warps; w++) t += o.s[(i * o.warps + w) * 32 + o.lane];\n"
    "    if (!left) o.f[i * 32 + o.lane] = t; else if (o.first + o.lane < o.columns) left[((i64)(from + i) * "
    "splits + blockIdx.y) * o.columns + o.first + o.lane] = t; }\n"
    "  if (!left) __syncthreads(); }\n";

/* Value v's part, number `own` of its pass; second: the second part of a centred sum. */
struct part { int v, own; bool second; };

/* Is there such a part in a stage's pass?  The second part of a centred sum may be a sum that the pass
 * computes anyway. */
static bool has_partial(const struct mc_kernel *k, int stage, int v, bool second)
{
    const struct mc_kval *x = &k->val.at[v];
    const bool moment = x->kind == K_REDUCE && mc_grid_centred_sums(k, x->stage);
    return x->kind == K_REDUCE && x->stage == stage + moment &&
           (!second || (moment && mc_grid_centred_sum_of(k, v) < 0));
}

/* Calls f for each part of a stage's pass; returns their number, or that of the parts before part `until`. */
static int each_part(struct print *p, const struct mc_kernel *k, int stage,
                     void (*f)(struct print *p, struct part x), int until)
{
    int n = 0;
    for (int i = 0; i < 2 * (int)k->val.n && i != until; i++) {
        if (has_partial(k, stage, i / 2, i % 2)) {
            if (f) {
                f(p, (struct part){ i / 2, n, i % 2 });
            }
            n++;
        }
    }
    return n;
}

static int count(const struct mc_kernel *k, int stage)
{
    return each_part(NULL, k, stage, NULL, -1);
}

/* The number of parts of all passes before a stage's. */
static int partial_offset(const struct mc_kernel *k, int stage)
{
    int n = 0;
    for (int s = 0; s < stage; s++) {
        n += mc_grid_centred_sums(k, s) ? 0 : count(k, s);
    }
    return n;
}

struct mc_grid_parts mc_grid_parts(const struct mc_kernel *k)
{
    struct mc_grid_parts parts = { partial_offset(k, k->nstage + 1), 0 };
    for (int s = 0; s <= k->nstage; s++) {
        parts.most = MC_MAX(parts.most, partial_offset(k, s + 1) - partial_offset(k, s));
    }
    return parts;
}

size_t mc_grid_parts_shared(struct mc_grid_parts parts, unsigned threads)
{
    return (size_t)parts.most * (1 + threads / GRID_COLUMNS) * GRID_COLUMNS * sizeof(double);
}

/* The centred sum whose second part is v; -1: none. */
static int moment_of(const struct mc_kernel *k, int v)
{
    for (int i = 0; i < (int)k->val.n; i++) {
        if (has_partial(k, k->val.at[v].stage, i, false) && k->val.at[i].stage > k->val.at[v].stage &&
            mc_grid_centred_sum_of(k, i) == v) {
            return i;
        }
    }
    return -1;
}

static void print_reduction(struct print *p, struct part x)
{
    const bool moment = mc_grid_centred_sums(p->k, p->k->val.at[x.v].stage);
    const int other = moment ? -1 : moment_of(p->k, x.v);
    mc_str_add(p->out, "{ double t[V]; _Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    if (moment || other >= 0) { /* the centred sum's form of it is more accurate */
        mc_grid_centred_sum_close_column(p, moment ? x.v : other, !moment || x.second);
    } else {
        mc_str_addf(p->out, "t[j] = c%d[j]; ", x.v);
    }
    mc_str_addf(p->out, "} fold_<V>(down, %d, t); }\n", x.own);
}

void mc_grid_column_reduce_open(struct print *p)
{
    mc_str_addf(p->out, "const down down = down_of<V>(%d, A.count[0]);\n", mc_grid_parts(p->k).most);
}

void mc_grid_column_reduce_lanes(struct print *p)
{
    each_part(p, p->k, p->stage, print_reduction, -1);
}

void mc_grid_column_reduce_gather(struct print *p)
{
    mc_str_addf(p->out, "gather_<V, %d>(down, (const double *)A.scratch, %d, A.splits);\n",
                count(p->k, p->stage), partial_offset(p->k, p->stage));
}

void mc_grid_column_reduce_total(struct print *p)
{
    const int n = count(p->k, p->stage), from = partial_offset(p->k, p->stage);
    mc_str_addf(p->out,
                "if (A.splits > 1 && A.first == %d) { total_<V, %d>(down, (double *)A.scratch, %d, "
                "A.splits); return; }\ntotal_<V, %d>(down, NULL, 0, 0);\n",
                p->stage, n, from, n);
}

static void print_load_partial(struct print *p, char name, int v, int walk, int of, bool second)
{
    mc_str_addf(p->out, "const double %c%d = down.f[%d + threadIdx.x * V + j]; ", name, v,
                each_part(NULL, p->k, walk, NULL, 2 * of + second) * GRID_COLUMNS);
}

static void print_total(struct print *p, int v)
{
    const bool moment = mc_grid_centred_sums(p->k, p->stage);
    const int walk = p->stage - moment, sum = moment ? mc_grid_centred_sum_of(p->k, v) : -1;
    print_load_partial(p, 'd', v, walk, v, false);
    if (moment) {
        print_load_partial(p, 'z', v, walk, sum >= 0 ? sum : v, sum < 0);
        mc_grid_centred_sum_finish_column(p, v);
    } else {
        mc_str_addf(p->out, "r%d[j] = (%s)d%d; ", v, mc_print_calc(p, p->k->val.at[v].dtype), v);
    }
}

void mc_grid_column_reduce_finish(struct print *p)
{
    mc_str_add(p->out, "_Pragma(\"unroll\") for (int j = 0; j < V; j++) { ");
    mc_print_each(p, print_total);
    mc_str_add(p->out, "}\n");
}
