/* t_conv_large.c: convolutions of an array with more than 2^31 elements, by every solver that takes them.
 *
 * The array is zeros that no memory stands behind but for the pages that are written: a few numbers at its
 * ends and where its elements and bytes are 2^31 and 2^32, whose windows are all of the result that is not
 * zero. */
#include "check.h"
#include "heavy/conv/solver.h"
#include "conv_grid.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

/* of free memory: the result, what is expected, a workspace, the pages that windows touch */
enum { ROOM_GB = 6 };

static double free_gb(void)
{
    double kb = 0;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "r");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemAvailable: %lf", &kb) == 1) {
            break;
        }
    }
    if (f) {
        fclose(f);
    }
    return kb / (1 << 20);
}

static struct mc_conv_problem problem(mc_dtype dtype, const char *shape)
{
    struct mc_conv_problem p = {
        .base = { &mc_conv_family, mc_plan_options_of(NULL) },
        .dtype = dtype,
        .s = conv_parse(shape),
        .alpha = 1,
    };
    int64_t *const strides[] = { p.at.x, p.at.w, p.at.y };
    p.s.pass = CONV_FORWARD;
    for (int role = CONV_X; role <= CONV_Y; role++) {
        const struct mc_conv_array a = mc_conv_array(&p, role);
        mc_conv_dense_strides(&a, strides[role]);
    }
    return p;
}

/* The windows that see element e of x, of one image and one filter. */
static void add_windows(const struct mc_conv_problem *p, int64_t e, double v, const double *w, double *y)
{
    const struct mc_conv_shape *s = &p->s;
    const int64_t column = e % s->in[2], row = e / s->in[2] % s->in[1], c = e / s->in[2] / s->in[1];
    for (int64_t a = 0; a < s->k[1]; a++) {
        for (int64_t b = 0; b < s->k[2]; b++) {
            const int64_t i = row + s->pad[1] - a, j = column + s->pad[2] - b;
            if (i >= 0 && j >= 0 && i % s->stride[1] == 0 && j % s->stride[2] == 0 &&
                i / s->stride[1] < s->out[1] && j / s->stride[2] < s->out[2]) {
                y[i / s->stride[1] * s->out[2] + j / s->stride[2]] += v * w[(c * s->k[1] + a) * s->k[2] + b];
            }
        }
    }
}

/* Runs what one solver plans; false: it takes no such problem, or not in this workspace. */
static bool runs(const struct mc_conv_problem *p, const struct mc_solver *s, void **operand)
{
    struct mc_plan *plan = mc_plan_declines(&p->base, s) ? NULL : mc_plan_with(&p->base, s);
    const bool fits = plan && plan->workspace <= (size_t)mc_flag_int(FLAG_workspace);
    void *workspace = fits && plan->workspace ? mc_alloc_pages(plan->workspace, "test") : NULL;
    if (fits) {
        CHECK(plan->run(plan, operand, workspace, 0) == MC_OK, "%s: %s", s->name, mc_last_error());
    }
    mc_free_pages(workspace);
    mc_plan_free(plan);
    return fits;
}

static void by_solvers(mc_dtype dtype, const char *shape, const char *const *names)
{
    const struct mc_conv_problem p = problem(dtype, shape);
    const struct mc_conv_array x = mc_conv_array(&p, CONV_X), w = mc_conv_array(&p, CONV_W),
                               y = mc_conv_array(&p, CONV_Y);
    const int64_t nx = mc_conv_count(&x), nw = mc_conv_count(&w), ny = mc_conv_count(&y),
                  size = mc_dtypes[dtype].size;
    const int64_t at[] = { 0,
                           1,
                           ((int64_t)1 << 31) - 1,
                           (int64_t)1 << 31,
                           ((int64_t)1 << 31) + 70,
                           ((int64_t)1 << 32) / size + 3,
                           nx - 2,
                           nx - 1 };
    REQUIRE(nx > (int64_t)1 << 31, "%lld elements", (long long)nx);
    char *from = mmap(NULL, (size_t)(nx * size), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (from == MAP_FAILED) {
        SKIP("no addresses for %lld elements", (long long)nx);
    }
    double *taps = calloc((size_t)nw, sizeof *taps), *want = calloc((size_t)ny, sizeof *want);
    char *filter = mc_alloc_pages((size_t)(nw * size), "test"),
         *to = mc_alloc_pages((size_t)(ny * size), "test");
    REQUIRE(taps && want && filter && to, "no memory");
    for (int64_t i = 0; i < nw; i++) {
        taps[i] = (double)(i * 37 % 17 - 8) / 8;
        mc_store_f64(dtype, filter + i * size, taps[i]);
    }
    for (size_t i = 0; i < NELEM(at); i++) {
        const double v = 1 + (double)i / 4;
        mc_store_f64(dtype, from + at[i] * size, v);
        add_windows(&p, at[i], v, taps, want);
    }
    void *operand[8] = { from, filter, to };
    for (int i = 0; names[i]; i++) {
        const struct mc_solver *s = NULL;
        for (const struct mc_solver *const *k = mc_conv_solvers; *k; k++) {
            s = strcmp((*k)->name, names[i]) == 0 ? *k : s;
        }
        REQUIRE(s, "no solver %s", names[i]);
        memset(to, 0xff, (size_t)(ny * size));
        if (!CHECK(runs(&p, s, operand), "%s does not take %s: %s", names[i], shape,
                   mc_plan_declines(&p.base, s))) {
            continue;
        }
        int64_t wrong = 0, first = -1;
        for (int64_t e = 0; e < ny; e++) {
            const bool bad = !(fabs(mc_load_f64(dtype, to + e * size) - want[e]) <= 1e-4);
            first = bad && first < 0 ? e : first;
            wrong += bad;
        }
        CHECK(wrong == 0, "%s: %lld of %lld are wrong, the first at %lld", names[i], (long long)wrong,
              (long long)ny, (long long)first);
    }
    free(taps);
    free(want);
    mc_free_pages(filter);
    mc_free_pages(to);
    munmap(from, (size_t)(nx * size));
}

TEST_FULL(conv_of_more_elements_than_31_bits_count)
{
    static const struct { mc_dtype dtype; const char *shape, *names[8]; } rows[] = {
        { MC_FLOAT32, "n1c64f1 i5800x5800 k1x1",           { "one", "im2col" } },
        { MC_FLOAT32, "n1c64f1 i5800x5800 k3x3 p1x1",      { "direct", "winograd", "winograd4", "fft", "im2col", "exchange_full" } },
        { MC_FLOAT32, "n1c64f1 i5800x5800 k3x3 p1x1 s8x8", { "direct", "im2col", "reference" } },
        { MC_FLOAT64, "n1c64f1 i5800x5800 k3x3 p1x1 s8x8", { "im2col", "reference" } },
        { MC_FLOAT16, "n1c64f1 i5800x5800 k3x3 p1x1 s8x8", { "reference" } },
    };
    if (free_gb() < ROOM_GB) {
        SKIP("%.1f GB of memory are free, and %d are needed", free_gb(), ROOM_GB);
    }
    for (size_t i = 0; i < NELEM(rows); i++) {
        by_solvers(rows[i].dtype, rows[i].shape, rows[i].names);
    }
}
