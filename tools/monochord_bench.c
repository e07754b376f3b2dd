/* monochord_bench.c: `monochord bench SUITE [--only TEXT] [--shard SEED:COUNT] [--list] [--json]`: the table
 * of suites, and how results are printed.  --list names the layers of the suite zoo.
 *
 * Invariant: with --json standard output holds one object a line and nothing else. */
#include "bench.h"
#include <inttypes.h>
#include <string.h>

static const struct suite {
    const char *name;
    bool (*run)(const char *suite);
    const char *doc;
} suites[] = {
    { "exp", bench_cases, "exp of 230,400 floats" },
    { "call", bench_cases, "a function of one op on four floats: the cost of a call" },
    { "elementwise", bench_cases, "a chain of elementwise ops on 64 million floats, and copies of them" },
    { "rows", bench_cases, "softmax, log-sum-exp, layer normalisation of 4096 rows of 1024" },
    { "gemm", bench_gemm, "matrix products, by each solver" },
    { "conv", bench_conv, "five convolutions in three passes, planned by measuring" },
    { "conv128", bench_conv, "the same of 128 images" },
    { "narrow", bench_conv, "the same where fewer bits are allowed: float32, TF32, bfloat16" },
    { "corrmm", bench_conv, "the same by matrix products of columns alone" },
    { "room", bench_conv, "conv and conv128, and again with a workspace of 64 MB" },
    { "nets", bench_conv,
      "convolutions of LeNet, VGG and ResNet, of one and three axes, one pair that should take the same" },
    { "layouts", bench_conv, "convolutions of AlexNet, VGG-A, ResNet-50 with channels innermost and not" },
    { "zoo", bench_zoo, "convolutions, products and norms of ten networks by class, in both layouts" },
    { "few", bench_conv, "convolutions of one and three channels" },
    { "planning", bench_planning, "planning the layers of LeNet and AlexNet: by measuring, and from wisdom" },
    { "pool", bench_layers, "pooling, forward and with gradients" },
    { "norm", bench_layers, "normalisation across channels and over batches" },
    { "softmax", bench_layers, "softmax of rows and of channels" },
    { "recurrent", bench_layers, "recurrent layers of 100 steps, forward and with gradients" },
    { "einsum", bench_layers, "sums of products by subscripts" },
    { "linalg", bench_linalg, "cholesky, solve, eigh, svd, by a LAPACK library and without one" },
    { "tables", bench_tables, "sorts, the k largest, searches, counts, running sums of 1e3 to 1e7 elements" },
    { "random", bench_tables, "a million random numbers of each distribution" },
    { "logreg", bench_logreg, "a step of logistic regression, 600 x 784 x 10" },
    { "lenet", bench_lenet,
      "a training step of LeNet, batch 500, in the layouts of its convolutions; compiling it" },
    { "export",     bench_export, "models as C files beside the library, on one thread" },
    { "nets-train", bench_train, "training steps of the models that come along: float32, TF32, bfloat16" },
    { "transformer", bench_transformer, "a training step of a small transformer: four blocks, 4 x 256 words" },
    { "inference", bench_inference, "predictions of the models that come along, planned by measuring" },
    { "ranks", bench_ranks, "reductions and training steps of two GPUs" },
    { "optimizers", bench_optimizers, "a step of Adam, momentum, descent for all parameters of ResNet-50" },
    { "compile", bench_compile, "compiling: cold, warm, at a new batch size, large graphs" },
};

static bool json;
static const char *only; /* NULL: all */
static struct bench_shard shard;

struct bench_shard bench_shard(void)
{
    return shard;
}

bool bench_wanted(const char *name, const char *pass)
{
    char both[96];
    snprintf(both, sizeof both, "%s %s", name, pass);
    return !only || strstr(both, only);
}

static void print_json(const struct result *r)
{
    printf("{\"suite\": \"%s\", \"case\": \"%s\", \"pass\": \"%s\", \"device\": \"%s\", \"dtype\": \"%s\", "
           "\"algo\": \"%s\", "
           "\"ms\": %.6g, \"ms_min\": %.6g, \"ms_max\": %.6g, ",
           r->suite, r->name, r->pass, mc_flag_get("device"), r->dtype, r->algo, r->time.median * 1e3,
           r->time.least * 1e3, r->time.most * 1e3);
    printf("\"gflops\": %.5g, \"gbs\": %.5g, ", r->flops / r->time.median * 1e-9,
           r->bytes / r->time.median * 1e-9);
    if (r->time.beside > 0) {
        printf("\"beside\": %.4g, ", r->time.beside);
    }
    r->error < 0 ? printf("\"rel_err\": null}\n") : printf("\"rel_err\": %.3g}\n", r->error);
}

static void print_row(const struct result *r)
{
    char error[16] = "", rate[2][16] = { "", "" };
    const double amount[2] = { r->flops, r->bytes };
    for (int i = 0; i < 2; i++) {
        if (amount[i] > 0) {
            snprintf(rate[i], sizeof rate[i], "%.1f", amount[i] / r->time.median * 1e-9);
        }
    }
    if (r->error >= 0) {
        snprintf(error, sizeof error, "%.1e", r->error);
    }
    printf("%-28s %-8s %-8s %-14s %11.5f %11.5f %11.5f %9s %8s %9s\n", r->name, r->pass, r->dtype, r->algo,
           r->time.median * 1e3, r->time.least * 1e3, r->time.most * 1e3, rate[0], rate[1], error);
}

void bench_report(const struct result *r)
{
    json ? print_json(r) : print_row(r);
    fflush(stdout);
}

bool bench_fail(const char *name)
{
    complain("%s: %s", name, mc_last_error());
    return false;
}

/* ---- functions ---- */

bool bench_call(void *function)
{
    struct bench_function *b = function;
    mc_arg in[MOST_ARGS], out[MOST_ARGS];
    for (int i = 0; i < b->nin; i++) {
        in[i] = mc_arg_array(b->in[i]);
    }
    for (int i = 0; i < b->nout; i++) {
        if (b->fresh) {
            mc_array_unref(&b->out[i]);
        }
        out[i] = mc_arg_slot(&b->out[i]);
    }
    return mc_call(b->f, b->nin, in, b->nout, out) >= 0;
}

void bench_free(struct bench_function *b)
{
    for (int i = 0; i < MOST_ARGS; i++) {
        mc_array_unref(&b->in[i]);
        mc_array_unref(&b->out[i]);
    }
    mc_function_free(b->f);
    mc_graph_free(b->g);
    *b = (struct bench_function){ 0 };
}

bool bench_far(void)
{
    return strncmp(mc_flag_get("device"), "cpu", 3) != 0;
}

double bench_seconds(void)
{
    return bench_far() ? 0.25 : 1; /* on a GPU a hundred batches */
}

mc_array *bench_place(mc_array *a)
{
    const char *device = mc_flag_get("device");
    mc_array *there = bench_far() ? mc_array_to(a, device) : mc_array_ref(a);
    mc_array_unref(&a);
    return there;
}

static void bring_home(mc_array **a)
{
    mc_array *near = *a ? must(mc_array_to(*a, "cpu")) : NULL;
    mc_array_unref(a);
    *a = near;
}

void bench_home(struct bench_function *b)
{
    for (int i = 0; i < MOST_ARGS && bench_far(); i++) {
        bring_home(&b->in[i]);
        bring_home(&b->out[i]);
    }
}

void bench_stay(struct text *to, const char *outputs)
{
    static const char word[] = "borrow(";
    int depth = 0, open = -1;
    for (const char *c = outputs; *c; c++) {
        depth += *c == '(';
        depth -= *c == ')';
        if (bench_far() && open < 0 && strncmp(c, word, sizeof word - 1) == 0) {
            text_addf(to, "borrow(gpu_from_host(");
            c += sizeof word - 2;
            open = depth++;
        } else {
            text_addf(to, depth == open ? ")%c" : "%c", *c);
            open = depth == open ? -1 : open;
        }
    }
}

/* ---- the command ---- */

static int list_suites(void)
{
    for (int i = 0; i < COUNT(suites); i++) {
        printf("  %-12s %s\n", suites[i].name, suites[i].doc);
    }
    return 0;
}

int command_bench(int argc, char **argv)
{
    const char *name = NULL;
    bool list = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc) {
            only = argv[++i];
        } else if (strcmp(argv[i], "--list") == 0) {
            list = true;
        } else if (strcmp(argv[i], "--shard") == 0 && i + 1 < argc) {
            if (sscanf(argv[++i], "%" SCNd64 ":%" SCNd64, &shard.seed, &shard.count) != 2 ||
                shard.count < 1) {
                return complain("--shard takes SEED:COUNT, such as 1:12, not '%s'", argv[i]);
            }
        } else if (name || argv[i][0] == '-') {
            return complain_word("bench", argv[i]);
        } else {
            name = argv[i];
        }
    }
    if (!name) {
        return list_suites();
    }
    if (list) {
        return strcmp(name, "zoo") == 0 ? bench_list_zoo() : complain("--list is for the suite zoo");
    }
    if (strcmp(name, "compile-child") == 0) { /* a process of its own for the suite compile */
        return bench_compile_child();
    }
    if (strcmp(name, "lenet-child") == 0) {
        return bench_lenet_child();
    }
    if (strcmp(name, "recurrent-child") == 0) {
        return bench_recurrent_child();
    }
    if (strcmp(name, "planning-child") == 0) {
        return bench_planning_child();
    }
    for (int i = 0; i < COUNT(suites); i++) {
        if (strcmp(suites[i].name, name) == 0) {
            if (!json) {
                printf("%-28s %-8s %-8s %-14s %11s %11s %11s %9s %8s %9s\n", "case", "pass", "dtype", "algo",
                       "ms", "least", "most", "GFLOP/s", "GB/s", "error");
            }
            return !suites[i].run(name);
        }
    }
    list_suites();
    return complain("there is no suite '%s'", name);
}
