/* monochord_bench_ranks.c: the suite ranks: two GPUs of this machine with a process each: reductions between
 * them, and training steps of a batch on each, beside the steps of one GPU alone.
 *
 * Invariant: this process touches no GPU, as CUDA does not survive a fork: each case has processes of its
 * own, of which rank 0 prints the row. */
#include "bench.h"
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 7, TEN = 10 };
static const struct ranks_case {
    const char *name, *model;   /* NULL: a reduction */
    int ranks;
    int64_t size;               /* pictures on each GPU; bytes */
    int calls, links;           /* in a round; reductions in a call */
} cases[] = {
    { "all_reduce 1 KiB",               NULL,        2, 1 << 10,   500, 1 },
    { "all_reduce 1 KiB, ten in a call", NULL,       2, 1 << 10,   50,  TEN },
    { "all_reduce 100 MiB",             NULL,        2, 100 << 20, 50,  1 },
    { "all_reduce 100 MiB, ten in a call", NULL,     2, 100 << 20, 5,   TEN },
    { "resnet-50 b64, one GPU",         "resnet-50", 1, 64,        15,  1 },
    { "resnet-50 b64, two GPUs",        "resnet-50", 2, 64,        15,  1 },
    { "vgg-a b64, one GPU",             "vgg-a",     1, 64,        15,  1 },
    { "vgg-a b64, two GPUs",            "vgg-a",     2, 64,        15,  1 },
};

/* ---- processes ---- */

struct rank {
    const struct ranks_case *c;
    const char *device;
    mc_comm *host, *comm;       /* NULL: one rank */
};

static bool wait_for_all(const struct rank *r)
{
    double x = 0;
    return mc_synchronize() == MC_OK &&
           (!r->host || mc_comm_reduce(r->host, "sum", MC_FLOAT64, &x, 1) == MC_OK);
}

/* Rounds of calls that each rank begins with the others; x: what call is given. */
static bool time_rounds(const struct rank *r, bool (*call)(void *), void *x, struct timing *t)
{
    const int calls = r->c->calls;
    double all[ROUNDS];
    for (int round = -1; round < ROUNDS; round++) {
        if (!wait_for_all(r)) {
            return false;
        }
        const double start = seconds_now();
        for (int k = 0; k < (round < 0 ? 4 : calls); k++) {
            if (!call(x)) {
                return false;
            }
        }
        if (mc_synchronize() < 0) {
            return false;
        }
        if (round >= 0) {
            all[round] = (seconds_now() - start) / calls / r->c->links;
        }
    }
    *t = time_summary(all, ROUNDS);
    return true;
}

/* ---- a reduction ---- */

static bool call_alone(void *f)
{
    return mc_call(f, MC_NONE, MC_NONE) == MC_OK;
}

static bool reduction(const struct rank *r, struct timing *t)
{
    const int64_t n = r->c->size / 4;
    struct text formula = { 0 };
    mc_graph *g = must(mc_graph_new());
    mc_array *zero = must(mc_array_new(MC_FLOAT32, 1, &n));
    memset(mc_array_data(zero), 0, (size_t)r->c->size);
    mc_shared *s = mc_graph_ranks(g, "all", r->comm) == MC_OK ? mc_shared_new(g, "s", zero) : NULL;
    for (int k = 0; k < r->c->links; k++) {
        text_addf(&formula, "all_reduce(");
    }
    text_addf(&formula, "s");
    for (int k = 0; k < r->c->links; k++) {
        text_addf(&formula, ", order='any')");
    }
    mc_node *of = s ? mc_shared_node(g, s) : NULL, *to = of ? mc_formula(g, formula.s) : NULL;
    mc_function *f = to ? mc_compile(
                              g,
                              &(mc_spec){ .name = "reduce", .update_of = &of, .update = &to, .nupdate = 1 })
                        : NULL;
    const bool good = f && time_rounds(r, call_alone, f, t);
    text_free(&formula);
    mc_array_unref(&zero);
    mc_function_free(f);
    mc_graph_free(g);
    return good;
}

/* ---- a step ---- */

struct step { mc_learner *l; mc_function *alone; mc_array *x, *t; };

static bool call_step(void *step)
{
    struct step *s = step;
    return (s->l ? mc_learner_step(s->l, s->x, s->t) : mc_call(s->alone, MC_IN(s->x, s->t), MC_NONE)) ==
           MC_OK;
}

static bool one_step(const struct rank *r, const char *model, struct timing *t)
{
    int64_t dims[MC_MAX_RANK] = { 0 };
    uint64_t state = 1;
    struct step s = { NULL, NULL, NULL, NULL };
    mc_graph *g = must(mc_graph_new());
    mc_net *net = must(mc_net_new(g, NULL, 1));
    bool good = mc_net_read(net, "net", model) >= 0;
    if (good) {
        const mc_layer *first = mc_net_layer(net, 0);
        memcpy(dims, mc_layer_dims(first), (size_t)mc_layer_rank(first) * sizeof *dims);
        dims[0] = r->c->size * r->c->ranks;
        s.x = must(
            mc_array_new(mc_node_dtype(mc_layer_node(first, MC_TRAINING)), mc_layer_rank(first), dims));
        s.t = must(mc_array_new(MC_INT32, 1, dims));
        random_fill(s.x, &state, 1);
        random_fill(s.t, &state, mc_layer_dims(mc_net_layer(net, -1))[1]);
        s.x = mc_array_to(s.x, r->device);
        s.t = s.x ? mc_array_to(s.t, r->device) : NULL;
        s.l = s.t && r->comm ? mc_learner_new(net, r->comm, dims[0], 0) : NULL;
        s.alone = s.t && !r->comm ? mc_net_learner(net) : NULL;
        good = (s.l || s.alone) && time_rounds(r, call_step, &s, t);
    }
    mc_learner_free(s.l);
    mc_function_free(s.alone);
    mc_array_unref(&s.x);
    mc_array_unref(&s.t);
    mc_net_free(net);
    mc_graph_free(g);
    return good;
}

/* In the faster of two ways: steps in order, or beside each other. */
static bool steps(const struct rank *r, struct timing *t)
{
    struct text model = { 0 };
    struct timing way = { 0 };
    bool good = model_find(&model, r->c->model);
    for (int k = 0; k < 2 && good; k++) {
        mc_flag_set("cuda.beside", k ? "True" : "False");
        good = one_step(r, model.s, &way);
        *t = k && t->median < way.median ? *t : way;
    }
    text_free(&model);
    return good;
}

/* ---- cases ---- */

/* In a process of its own: rank `rank` of a case. */
static bool run_rank(const char *suite, const struct ranks_case *c, const char *dtype, int rank)
{
    char device[16] = "cuda";
    snprintf(device, sizeof device, rank ? "cuda%d" : "cuda", rank);
    mc_flag_set("device", device);
    mc_flag_set("floatX", dtype);
    struct rank r = { .c = c, .device = device };
    struct result row = { suite, c->name, c->model ? "train" : "", dtype, "auto", .error = -1 };
    r.host = c->ranks > 1 ? mc_comm_open("tcp") : NULL;
    r.comm = r.host ? mc_comm_gpu(r.host, device) : NULL;
    const bool good = (c->ranks == 1 || r.comm) && (c->model ? steps : reduction)(&r, &row.time);
    if (good && !rank) {
        row.bytes = c->model ? 0 : (double)c->size;
        bench_report(&row);
    } else if (!good) {
        bench_fail(c->name);
    }
    mc_comm_free(r.comm);
    mc_comm_free(r.host);
    return good;
}

static bool run(const char *suite, const struct ranks_case *c, const char *dtype)
{
    pid_t child[2] = { -1, -1 };
    char port[16], number[2][16];
    bool good = free_port(port);
    fflush(NULL);
    unsetenv("OMP_PROC_BIND"); /* all ranks would have the first core */
    for (int i = 0; i < c->ranks && good; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            snprintf(number[0], sizeof number[0], "%d", i);
            snprintf(number[1], sizeof number[1], "%d", c->ranks);
            setenv("RANK", number[0], 1);
            setenv("WORLD_SIZE", number[1], 1);
            setenv("MASTER_ADDR", "127.0.0.1", 1);
            setenv("MASTER_PORT", port, 1);
            good = run_rank(suite, c, dtype, i);
            fflush(NULL);
            _exit(!good);
        }
        good = child[i] > 0 || complain("ranks: cannot start a process");
    }
    for (int i = 0; i < c->ranks; i++) {
        int status = 0;
        good = child[i] > 0 && waitpid(child[i], &status, 0) == child[i] && status == 0 && good;
    }
    return good;
}

bool bench_ranks(const char *suite)
{
    bool good = true;
    if (!bench_far()) {
        return complain("ranks: this suite needs two GPUs (flag device=cuda)"), false;
    }
    for (int i = 0; i < COUNT(cases); i++) {
        for (int halves = 0; halves < (cases[i].model ? 2 : 1); halves++) {
            const char *dtype = halves ? "bfloat16" : "float32";
            char pass[32];
            snprintf(pass, sizeof pass, "train %s", dtype);
            good = (!bench_wanted(cases[i].name, pass) || run(suite, &cases[i], dtype)) && good;
        }
    }
    return good;
}
