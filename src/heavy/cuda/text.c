/* text.c: compiles the kernel texts of solvers, and keeps the kernels.
 *
 * Invariant: a text with its defines is loaded once on each device and stays loaded until the process
 * ends. */
#include "heavy/cuda/cuda.h"
#include "value/value.h"

static const char prelude[] = {
#include "heavy/cuda/prelude_text.h"
    , 0 };

/* ---- text ---- */

static void add(struct mc_str *out, const struct mc_cuda_text *t)
{
    if (t->on) {
        add(out, t->on);
    }
    mc_str_add(out, t->text);
}

void mc_cuda_source(const struct mc_cuda_text *t, const char *defines, struct mc_str *out)
{
    mc_str_add(out, prelude);
    mc_str_add(out, defines);
    add(out, t);
}

void mc_cuda_types(struct mc_str *defines, mc_dtype t, bool wide)
{
    const char *sum = !mc_is_float(t) ? "u64" : wide || t == MC_FLOAT64 ? "double" : "float";
    mc_str_addf(defines, "#define T %s\n#define A %s\n#define FLOAT %d\n", mc_dtypes[t].c, sum,
                mc_is_float(t));
}

void mc_cuda_index(struct mc_str *defines, int64_t count)
{
    mc_str_addf(defines, "#define INDEX %s\n", count < (int64_t)1 << 31 ? "unsigned" : "u64");
}

struct mc_cuda_divider mc_cuda_divider(int64_t by)
{
    const uint64_t d = (uint64_t)MC_MAX(by, (int64_t)1);
    uint32_t shift = 0;
    while (((uint64_t)1 << shift) < d) {
        shift++;
    }
    return (struct mc_cuda_divider){ (uint32_t)d,
                                     (uint32_t)((((uint64_t)1 << shift) - d) * ((uint64_t)1 << 32) / d + 1),
                                     shift };
}

struct mc_grid mc_cuda_grid_1d(int64_t count, unsigned threads)
{
    const int64_t blocks = (count + threads - 1) / threads;
    return (struct mc_grid){ { (unsigned)MC_MAX(MC_MIN(blocks, (int64_t)1 << 20), (int64_t)1), 1, 1 },
                             { threads, 1, 1 },
                             0 };
}

/* ---- kernels ---- */

struct loaded {
    int ordinal;
    uint64_t hash;
    struct mc_cuda_code *code;
};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static VEC(struct loaded) known;

static struct mc_cuda_code *find(int ordinal, uint64_t hash)
{
    for (size_t i = 0; i < known.n; i++) {
        if (known.at[i].ordinal == ordinal && known.at[i].hash == hash) {
            return known.at[i].code;
        }
    }
    return NULL;
}

static _Thread_local mc_code_list *noting;

mc_code_list *mc_cuda_note(mc_code_list *list)
{
    mc_code_list *before = noting;
    noting = list;
    return before;
}

static bool note(struct mc_cuda_code *code)
{
    for (size_t i = 0; noting && i < noting->n; i++) {
        if (noting->at[i] == code) {
            return true;
        }
    }
    return !noting || VEC_PUSH(*noting, code);
}

static struct mc_cuda_code *load(struct mc_cuda *d, const struct mc_cuda_text *t, const struct mc_str *source)
{
    struct loaded l = { d->device.number, mc_hash(source->s, source->n, 0), NULL };
    pthread_mutex_lock(&lock);
    l.code = find(l.ordinal, l.hash);
    if (!l.code && !VEC_RESERVE(known, 1)) {
        mc_fail_memory(sizeof l, "kernels");
    } else if (!l.code) {
        l.code = mc_cuda_code_load(d, source->s, MC_CUDA_OPTIONS);
        if (l.code) {
            VEC_PUSH(known, l);
        } else {
            mc_fail_again("%s: ", t->name);
        }
    }
    pthread_mutex_unlock(&lock);
    return l.code;
}

void *mc_cuda_kernel(const struct mc_cuda_text *t, const char *defines, const char *name)
{
    struct mc_cuda *d = mc_cuda_current();
    struct mc_str source = { 0 };
    void *kernel = NULL;
    if (!d) {
        mc_fail(MC_EUNSUPPORTED, "%s: no GPU is entered", t->name);
        return NULL;
    }
    mc_cuda_source(t, defines, &source);
    struct mc_cuda_code *code = source.bad ? NULL : load(d, t, &source);
    if (code) {
        kernel = mc_cuda_code_kernel(code, name);
        if (!kernel) {
            mc_fail(MC_EUNSUPPORTED, "%s: has no kernel %s", t->name, name);
        }
        kernel = note(code) ? kernel : NULL;
    }
    mc_str_free(&source);
    return kernel;
}

bool mc_cuda_kernels(const struct mc_cuda_text *t, struct mc_str *defines, const struct mc_cuda_kernel_ref *k,
                     size_t n)
{
    bool ok = !defines->bad;
    if (!ok) {
        mc_fail_memory(defines->n, "kernels");
    }
    for (size_t i = 0; i < n; i++) {
        *k[i].to = ok && k[i].name ? mc_cuda_kernel(t, defines->s ? defines->s : "", k[i].name) : NULL;
        ok = ok && (*k[i].to || !k[i].name);
    }
    mc_str_free(defines);
    return ok;
}

int mc_cuda_multiprocessors(void)
{
    return mc_cuda_current() ? MC_MAX(mc_cuda_current()->processors, 1) : 100;
}

const char *mc_cuda_needs_sm80(void)
{
    const struct mc_cuda *d = mc_cuda_current();
    return d && d->sm < 80 ? "needs a GPU of compute capability 8.0 or later" : NULL;
}

/* ---- estimates ---- */

static const double clock_hz = 1.7e9, memory_bytes = 3e12, launch = 3e-6;
static const double highest = 1.5; /* no GPU exceeds this multiple of clock_hz */

/* each: multiply-adds of a multiprocessor in a cycle, by element size; reduced: float32 on tensor cores */
static double peak(mc_dtype t, bool reduced)
{
    const struct mc_cuda *d = mc_cuda_current();
    const double cores = d && d->sm < 90 ? 512 : 1024;
    const double each = t == MC_FLOAT64 ? 64 : mc_dtypes[t].size == 2 ? 2 * cores : reduced ? cores : 128;
    return (d ? d->processors : 100) * each * 2 * clock_hz;
}

double mc_cuda_seconds(mc_dtype t, bool reduced, double flops, double bytes, double part)
{
    return launch + MC_MAX(flops / (part * peak(t, reduced)), bytes / (0.8 * memory_bytes));
}

double mc_cuda_lower_bound(mc_dtype t, bool reduced, double flops)
{
    return flops / (highest * peak(t, reduced));
}
