/* problem.c: the family of matrix products: its word, operands to time with, and the check against
 * the reference.
 *
 *     gemm f32 nt m600n10k784 b4 a2 c row e
 *
 * Invariant: problems of one word differ at most in addresses and in the values of alpha and beta. */
#include "gemm/cuda.h"
#include "gemm/solver.h"
#include <inttypes.h>
#include <math.h>

static const char *const short_name[MC_NDTYPE] = {
    [MC_INT8] = "i8", [MC_INT16] = "i16", [MC_INT32] = "i32", [MC_INT64] = "i64", [MC_UINT8] = "u8", [MC_UINT16] = "u16",
    [MC_UINT32] = "u32", [MC_UINT64] = "u64", [MC_FLOAT16] = "f16", [MC_BFLOAT16] = "bf16", [MC_FLOAT32] = "f32", [MC_FLOAT64] = "f64",
};

/* ---- word ---- */

/* 'n': the second index is adjacent, 't': the first.  Where an index has one value its stride is free. */
static char order(const int64_t *s, int64_t rows, int64_t cols)
{
    return s[2] == 1 || cols == 1 ? 'n' : s[1] == 1 || rows == 1 ? 't' : 'x';
}

/* Strides that are not those of a dense matrix are part of the word: they decide what is fast. */
static void lead(struct mc_str *out, const char *name, const int64_t *s, int64_t rows, int64_t cols)
{
    const bool t = order(s, rows, cols) == 't';
    if (order(s, rows, cols) == 'x') {
        mc_str_addf(out, " %s%" PRId64 ",%" PRId64, name, s[1], s[2]);
        return;
    }
    const int64_t far = t ? s[2] : s[1], dense = t ? rows : cols, count = t ? cols : rows;
    if (count > 1 && far != dense) {
        mc_str_addf(out, " %s%" PRId64, name, far);
    }
}

void mc_gemm_word(const struct mc_problem *p_, struct mc_str *out)
{
    const struct mc_gemm_problem *p = gemm(p_);
    mc_str_addf(out, "gemm %s %c%c m%" PRId64 "n%" PRId64 "k%" PRId64, short_name[p->dtype], order(p->as, p->m, p->k),
                order(p->bs, p->k, p->n), p->m, p->n, p->k);
    lead(out, "lda", p->as, p->m, p->k);
    lead(out, "ldb", p->bs, p->k, p->n);
    lead(out, "ldc", p->cs, p->m, p->n);
    if (p->batch != 1) {
        mc_str_addf(out, " b%" PRId64 "%s%s", p->batch, p->as[0] ? "" : " shareda", p->bs[0] ? "" : " sharedb");
    }
    if (p->has_c0 && p->beta != 0) {
        const bool row = p->c0s[1] == 0, col = p->c0s[2] == 0;
        mc_str_add(out, row && col ? " c0 one" : row ? " c0 row" : col ? " c0 col" : p->c0_apart ? " c0 apart" : " c0");
    }
    if (p->has_epilogue) {
        mc_str_add(out, " e");
    }
    mc_str_add(out, mc_act_names[p->act]);
    mc_str_add(out, p->tf32 ? " tf32" : "");
}

/* ---- operands ---- */

/* Elements that strides reach. */
static struct mc_extent extent(mc_dtype d, const int64_t *s, int64_t batch, int64_t rows, int64_t cols)
{
    const int64_t last[] = { (batch - 1) * s[0], (rows - 1) * s[1], (cols - 1) * s[2] };
    struct mc_extent e = { d, 0, 1 };
    for (int i = 0; i < 3; i++) {
        e.before -= MC_MIN(last[i], (int64_t)0);
        e.count += last[i] < 0 ? -last[i] : last[i];
    }
    return batch && rows && cols ? e : (struct mc_extent){ d, 0, 0 };
}

void mc_gemm_extents(const struct mc_gemm_problem *p, struct mc_extent e[4])
{
    e[GEMM_A] = extent(p->dtype, p->as, p->batch, p->m, p->k);
    e[GEMM_B] = extent(p->dtype, p->bs, p->batch, p->k, p->n);
    e[GEMM_C] = extent(p->dtype, p->cs, p->batch, p->m, p->n);
    e[GEMM_C0] = p->has_c0 ? extent(p->dtype, p->c0s, p->batch, p->m, p->n) : (struct mc_extent){ p->dtype, 0, 0 };
}

/* Random numbers in [-1, 1): neither zeros nor all of one sign, both of which are faster than life. */
static void fill(mc_dtype d, void *at, int64_t n, uint32_t salt)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t h = ((uint32_t)i + salt * 977u) * 2654435761u + salt; /* whatever the strides, products are not squares */
        h = (h ^ h >> 15) * 2246822519u;
        h = (h ^ h >> 13) * 3266489917u;
        h ^= h >> 16;
        mc_store_f64(d, (char *)at + i * mc_dtypes[d].size, (double)(int32_t)h * (mc_is_float(d) ? 0x1p-31 : 0x1p-28));
    }
}

static void discard(const struct mc_problem *p, void *operand[8])
{
    struct mc_extent e[4];
    mc_gemm_extents(gemm(p), e);
    for (int i = 0; i < 4; i++) {
        mc_free_pages(operand[i] ? (char *)operand[i] - e[i].before * mc_dtypes[e[i].dtype].size : NULL);
    }
    memset(operand, 0, 8 * sizeof operand[0]);
}

static mc_status operands(const struct mc_problem *p_, void *operand[8])
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_extent e[4];
    mc_gemm_extents(p, e);
    memset(operand, 0, 8 * sizeof operand[0]);
    for (int i = 0; i < 4; i++) {
        if (e[i].count > 0) {
            char *at = mc_alloc_pages((size_t)e[i].count * mc_dtypes[p->dtype].size, "planner");
            if (!at) {
                discard(p_, operand);
                return MC_EMEMORY;
            }
            fill(p->dtype, at, e[i].count, (uint32_t)i);
            operand[i] = at + e[i].before * mc_dtypes[p->dtype].size;
        }
    }
    return MC_OK;
}

/* ---- verification ---- */

/* Sums of k products of numbers in [-1, 1) stay near sqrt(k); the error of any order of summation
 * stays below eps * k; halves add one rounding of the result. */
static double allowed(const struct mc_gemm_problem *p)
{
    const double eps = mc_dtypes[p->dtype].cls == CLASS_F64 ? 0x1p-52 : p->tf32 ? 0x1p-10 : 0x1p-23;
    if (!mc_is_float(p->dtype)) {
        return 0;
    }
    const double k = (double)p->k, size = fabs(p->alpha) * sqrt(k + 1) * 3 + fabs(p->beta);
    return 4 * eps * (fabs(p->alpha) * (k + 4) + fabs(p->beta)) + mc_dtypes[p->dtype].eps * size;
}

mc_status mc_gemm_compare(const struct mc_gemm_problem *p, const struct mc_plan *plan, const void *got, const void *want)
{
    const int64_t size = mc_dtypes[p->dtype].size;
    const double most = allowed(p);
    for (int64_t b = 0; b < p->batch; b++) {
        for (int64_t i = 0; i < p->m; i++) {
            for (int64_t j = 0; j < p->n; j++) {
                const int64_t at = (b * p->cs[0] + i * p->cs[1] + j * p->cs[2]) * size;
                const double x = mc_load_f64(p->dtype, (const char *)got + at);
                const double y = mc_load_f64(p->dtype, (const char *)want + at);
                if (!(fabs(x - y) <= most)) {
                    struct mc_str text = { 0 };
                    mc_plan_text(plan, &text);
                    mc_fail(MC_ECHECK, "%s: element [%" PRId64 ", %" PRId64 ", %" PRId64 "] is %.9g, the reference has %.9g",
                            text.s ? text.s : "gemm", b, i, j, x, y);
                    mc_str_free(&text);
                    return MC_ECHECK;
                }
            }
        }
    }
    return MC_OK;
}

static mc_status run_into(const struct mc_plan *plan, void *const *operand, void *c)
{
    void *with[8];
    void *workspace = plan->workspace ? mc_alloc_pages(plan->workspace, "planner") : NULL;
    if (plan->workspace && !workspace) {
        return MC_EMEMORY;
    }
    memcpy(with, operand, sizeof with);
    with[GEMM_C] = c;
    const mc_status s = plan->run(plan, with, workspace, 0);
    mc_free_pages(workspace);
    return s;
}

static mc_status verify(const struct mc_problem *p_, const struct mc_plan *plan)
{
    const struct mc_gemm_problem *p = gemm(p_);
    struct mc_plan *truth = NULL;
    void *operand[8], *want = NULL;
    TRY(operands(p_, operand));
    mc_status s = MC_EMEMORY;
    struct mc_extent e[4];
    mc_gemm_extents(p, e);
    const size_t bytes = (size_t)e[GEMM_C].count * mc_dtypes[p->dtype].size;
    if (!bytes) {
        s = MC_OK;
        goto done;
    }
    truth = mc_plan_with(p_, &mc_gemm_reference);
    want = mc_alloc_pages(bytes, "planner");
    if (!truth || !want) {
        goto done;
    }
    s = run_into(truth, operand, want);
    if (s >= 0) {
        s = run_into(plan, operand, operand[GEMM_C]);
    }
    if (s >= 0) {
        s = mc_gemm_compare(p, plan, operand[GEMM_C], want);
    }
done:
    mc_plan_free(truth);
    mc_free_pages(want);
    discard(p_, operand);
    return s;
}

static size_t solver_names(const char **names, size_t room)
{
    return mc_solver_names(mc_gemm_cuda_solvers, names, mc_solver_names(mc_gemm_solvers, names, 0, room), room);
}

__attribute__((constructor)) static void install(void)
{
    mc_flag_names_of[FLAG_gemm_algo] = solver_names;
}

static const char *forced(const struct mc_problem *p, int64_t *mode)
{
    (void)p;
    (void)mode;
    return mc_flag_text(FLAG_gemm_algo);
}

const struct mc_family mc_gemm_family = {
    .name         = "gemm",
    .solvers      = mc_gemm_solvers,
    .problem_size = sizeof(struct mc_gemm_problem),
    .word         = mc_gemm_word,
    .operands     = operands,
    .discard      = discard,
    .verify       = verify,
    .forced       = forced,
};

/* ---- planning ---- */

/* A batch of matrices one below the other, times one B, is one tall matrix. */
void mc_gemm_stack(struct mc_gemm_problem *p)
{
    const bool c0 = !p->has_c0 || p->beta == 0 || p->c0s[0] == p->m * p->c0s[1];
    if (p->batch > 1 && !p->has_epilogue && p->bs[0] == 0 && p->as[0] == p->m * p->as[1] &&
        p->cs[0] == p->m * p->cs[1] && c0) {
        p->m *= p->batch;
        p->batch = 1;
    }
}

bool mc_gemm_possible(const struct mc_gemm_problem *p)
{
    int64_t count;
    if (p->batch < 0 || p->m < 0 || p->n < 0 || p->k < 0 || !mc_mul_i64(p->batch, p->m, &count) ||
        !mc_mul_i64(count, p->n, &count) || !mc_mul_i64(p->m, p->k, &count) || !mc_mul_i64(p->k, p->n, &count)) {
        mc_fail(MC_ESHAPE, "gemm: sizes batch %" PRId64 ", m %" PRId64 ", n %" PRId64 ", k %" PRId64 " cannot be", p->batch,
                p->m, p->n, p->k);
        return false;
    }
    return true;
}

struct mc_plan *mc_gemm_plan(const struct mc_gemm_problem *asked)
{
    struct mc_gemm_problem p = *asked;
    p.base.family = &mc_gemm_family;
    if (p.dtype < 0 || p.dtype >= MC_NDTYPE || !mc_is_float(p.dtype)) {
        mc_fail(MC_ETYPE, "gemm: the dtype must be a float");
        return NULL;
    }
    if (!mc_gemm_possible(&p)) {
        return NULL;
    }
    if (!p.has_c0) {
        p.beta = 0;
    }
    if (order(p.as, p.m, p.k) == 'x' || order(p.bs, p.k, p.n) == 'x' || (p.cs[2] != 1 && p.n > 1)) {
        mc_fail(MC_EUNSUPPORTED, "gemm: A and B need one stride of 1, C adjacent columns");
        return NULL;
    }
    mc_gemm_stack(&p);
    return mc_plan_make(&p.base);
}
