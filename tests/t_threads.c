/* t_threads.c: more than one function, thread or process: what docs/threads.md promises. */
#include "forked.h"
#include "function_words.h"
#include "own_folder.h"
#include <monochord_nn.h>
#include <signal.h>
#include <sys/time.h>

static void *call_often(void *f)
{
    for (int i = 0; i < 500; i++) {
        if (mc_call((mc_function *)f, MC_NONE, MC_NONE) < 0) {
            return "failed";
        }
    }
    return NULL;
}

TEST(two_threads_share_a_variable)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = scalar(g, "n", MC_INT64, 0), *m = scalar(g, "m", MC_INT64, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1; m = m - n" }));
    mc_function *h = made(g, mc_compile(g, &(mc_spec){ .updates = "m = m + n; n = n + 2" }));
    mc_graph_free(g); /* the functions keep what they need */
    n = mc_shared_ref(f->shared[0]->name[0] == 'n' ? f->shared[0] : f->shared[1]);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    void *mine = call_often(h), *his = NULL;
    pthread_join(t, &his);
    CHECK(!mine && !his && shared_at(n, 0) == 1500, "%g", shared_at(n, 0));
    (void)m;
    mc_shared_unref(&n);
    mc_function_free(f);
    mc_function_free(h);
}

TEST(one_function_from_two_threads)
{
    mc_graph *g = mc_graph_new();
    mc_shared *n = mc_shared_ref(scalar(g, "n", MC_INT64, 0));
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "n = n + 1" }));
    mc_graph_free(g);
    pthread_t t;
    pthread_create(&t, NULL, call_often, f);
    call_often(f);
    pthread_join(t, NULL);
    CHECK(shared_at(n, 0) == 1000, "%g", shared_at(n, 0));
    mc_shared_unref(&n);
    mc_function_free(f);
}

TEST(copies_share_kernels_but_not_memory)
{
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_input(g, "k", MC_FLOAT32, 0);
    mc_shared *n = scalar(g, "n", MC_FLOAT32, 0);
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .name = "f",
                                                       .inputs = "x, k=2",
                                                       .outputs = "borrow(x * k + n)",
                                                       .updates = "n = n + 1" }));
    mc_function *looks = mc_function_copy(f, 0), *works = mc_function_copy(f, 1);
    mc_array *x = ramp(MC_FLOAT32, MC_SHAPE(5)), *y = NULL, *z = NULL;
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(shared_at(n, 0) == 0 && at(y, 4) == 8, "%g", at(y, 4));
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(shared_at(n, 0) == 1 && at(y, 4) == 8 && mc_array_data(y) != mc_array_data(z), "%g",
          shared_at(n, 0));
    fine(mc_function_set(works, "k", mc_arg_real(5)));
    mc_array_unref(&y);
    mc_array_unref(&z);
    fine(mc_call(looks, MC_IN(x), MC_OUT(&y)));
    CHECK(at(y, 4) == 9, "%g", at(y, 4));
    mc_function_free(f);
    CHECK(strcmp(mc_function_source(looks), mc_function_source(works)) == 0, "one source");
    fine(mc_call(works, MC_IN(x), MC_OUT(&z)));
    CHECK(at(z, 4) == 21, "%g", at(z, 4));
    mc_array_unref(&y);
    mc_array_unref(&z);
    mc_array_unref(&x);
    mc_function_free(looks);
    mc_function_free(works);
    mc_graph_free(g);
}

/* ---- several threads at once ---- */

enum { CALLERS = 4, LARGE = 30000 };

struct caller {
    pthread_t thread;
    const char *(*work)(struct caller *); /* what was wrong, or NULL */
    const char *wrong;
    mc_function *f;
    mc_shared *a;
    int number;
};

static void *start(void *arg)
{
    struct caller *c = arg;
    c->wrong = c->work(c);
    return NULL;
}

static void together(struct caller *c, const char *(*work)(struct caller *))
{
    for (int i = 0; i < CALLERS; i++) {
        c[i].number = i;
        c[i].work = work;
        REQUIRE(pthread_create(&c[i].thread, NULL, start, &c[i]) == 0, "no thread");
    }
    for (int i = 0; i < CALLERS; i++) {
        pthread_join(c[i].thread, NULL);
        CHECK(!c[i].wrong, "thread %d: %s", i, c[i].wrong);
    }
}

/* x = number, number, ... of several sizes; all results are 2 * number + 1. */
static const char *call_at_own_sizes(mc_function *f, int number)
{
    const char *wrong = NULL;
    for (int64_t i = 0; i < 100 && !wrong; i++) {
        const int64_t n = 1 + (i % 3) * 10000 + number;
        mc_array *x = mc_array_new(MC_FLOAT64, MC_SHAPE(n)), *y = NULL;
        for (int64_t k = 0; k < n; k++) {
            ((double *)mc_array_data(x))[k] = number;
        }
        wrong = mc_call(f, MC_IN(x), MC_OUT(&y)) < 0 ? mc_last_error() : NULL;
        wrong = !wrong && mc_array_size(y) != n ? "another size" : wrong;
        for (int64_t k = 0; k < n && !wrong; k++) {
            const double v = ((const double *)mc_array_data(y))[k];
            wrong = v != 2 * number + 1 ? "another thread's numbers" : NULL;
        }
        mc_array_unref(&x);
        mc_array_unref(&y);
    }
    return wrong;
}

/* Two kernels with a value between them, which lies in the function's memory; a: a variable that it reads, or
 * NULL. */
static mc_function *doubles_and_one(mc_graph *g, mc_shared *a)
{
    mc_formula(g, "input x float64[?]; y = x * 2 + 1; z = y + 0 * sum(y)");
    if (a) {
        mc_shared_node(g, a);
        mc_formula(g, "z = z + 0 * sum(a)");
    }
    return mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "z" });
}

static const char *call_given(struct caller *c)
{
    return call_at_own_sizes(c->f, c->number);
}

TEST(one_function_from_many_threads_at_many_shapes)
{
    struct caller c[CALLERS] = { 0 };
    mc_graph *g = mc_graph_new();
    mc_function *f = made(g, doubles_and_one(g, NULL));
    mc_graph_free(g);
    for (int i = 0; i < CALLERS; i++) {
        c[i].f = f;
    }
    together(c, call_given);
    mc_function_free(f);
}

TEST(copies_of_a_function_run_in_threads_of_their_own)
{
    struct caller c[CALLERS] = { 0 };
    mc_graph *g = mc_graph_new();
    mc_function *f = made(g, doubles_and_one(g, NULL));
    mc_graph_free(g);
    for (int i = 0; i < CALLERS; i++) {
        c[i].f = mc_function_copy(f, 0);
    }
    mc_function_free(f);
    together(c, call_given);
    for (int i = 0; i < CALLERS; i++) {
        mc_function_free(c[i].f);
    }
}

static const char *build_and_call(struct caller *c)
{
    const char *wrong = NULL;
    for (int i = 0; i < 3 && !wrong; i++) {
        mc_graph *g = mc_graph_new();
        mc_function *f = doubles_and_one(g, c->a);
        wrong = f ? call_at_own_sizes(f, c->number) : "it does not compile";
        mc_function_free(f);
        mc_graph_free(g);
    }
    return wrong;
}

static mc_shared *zeros(mc_graph *g, const char *name)
{
    return mc_shared_ref(mc_shared_zeros(g, name, MC_FLOAT64, MC_SHAPE(LARGE)));
}

/* All graphs use one variable, which a function of another graph updates meanwhile. */
TEST(each_thread_builds_a_graph_of_its_own)
{
    struct caller c[CALLERS] = { 0 };
    mc_graph *g = mc_graph_new();
    mc_shared *a = zeros(g, "a");
    mc_function *train = made(g, mc_compile(g, &(mc_spec){ .updates = "a = a + 1" }));
    mc_graph_free(g);
    for (int i = 0; i < CALLERS; i++) {
        c[i].a = a;
    }
    pthread_t trainer;
    pthread_create(&trainer, NULL, call_often, train);
    together(c, build_and_call);
    pthread_join(trainer, NULL);
    CHECK(shared_at(a, 0) == 500, "%g", shared_at(a, 0));
    mc_function_free(train);
    mc_shared_unref(&a);
}

/* ---- a trainer and a predictor ---- */

/* How far apart a and b are, which every update changes alike; how many updates there were, which grows. */
static const char *predict(struct caller *c)
{
    double apart = 0, now = 0, before = 0;
    while (apart == 0 && before <= now && now < 100) {
        before = now;
        if (mc_call(c->f, MC_NONE, MC_OUT(&apart, &now)) < 0) {
            return "a call failed";
        }
    }
    return apart != 0     ? "one variable was updated, the other not yet"
           : before > now ? "an update was undone"
                          : NULL;
}

TEST(a_predictor_sees_all_updates_of_a_step_or_none)
{
    struct caller c[CALLERS] = { 0 };
    mc_graph *g = mc_graph_new(), *other = mc_graph_new();
    mc_shared *a = zeros(g, "a"), *b = zeros(g, "b");
    mc_shared_node(other, b); /* another graph knows them in another order */
    mc_shared_node(other, a);
    mc_function *train = made(g, mc_compile(g, &(mc_spec){ .updates = "a = a + 1; b = b + 1" }));
    mc_function *look = made(other, mc_compile(other, &(mc_spec){ .outputs = "sum(abs(b - a)), max(a)" }));
    mc_graph_free(g);
    mc_graph_free(other);
    for (int i = 0; i < CALLERS; i++) {
        c[i].f = i ? mc_function_copy(look, 0) : look;
    }
    pthread_t trainer;
    pthread_create(&trainer, NULL, call_often, train);
    together(c, predict);
    void *wrong;
    pthread_join(trainer, &wrong);
    CHECK(!wrong && shared_at(a, LARGE - 1) == 500, "%g", shared_at(a, LARGE - 1));
    for (int i = 0; i < CALLERS; i++) {
        mc_function_free(c[i].f);
    }
    mc_function_free(train);
    mc_shared_unref(&a);
    mc_shared_unref(&b);
}

/* Half of the threads set all elements to one number, half look whether they are one number. */
static const char *set_or_get(struct caller *c)
{
    const char *wrong = NULL;
    for (int i = 0; i < 300 && !wrong; i++) {
        mc_array *now = c->number % 2 ? mc_shared_get(c->a) : mc_array_new(MC_FLOAT64, MC_SHAPE(LARGE));
        double *v = mc_array_data(now);
        for (int k = 0; k < LARGE && !wrong; k++) {
            if (c->number % 2) {
                wrong = v[k] != v[0] ? "half of it is another value" : NULL;
            } else {
                v[k] = i;
            }
        }
        wrong = wrong ? wrong : !(c->number % 2) && mc_shared_set(c->a, now) < 0 ? "it cannot be set" : NULL;
        mc_array_unref(&now);
    }
    return wrong;
}

TEST(a_variable_is_set_and_read_as_a_whole)
{
    struct caller c[CALLERS] = { 0 };
    mc_graph *g = mc_graph_new();
    mc_shared *a = zeros(g, "a");
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .updates = "a = a + 1" }));
    mc_graph_free(g);
    for (int i = 0; i < CALLERS; i++) {
        c[i].a = a;
    }
    pthread_t trainer;
    pthread_create(&trainer, NULL, call_often, f);
    together(c, set_or_get);
    pthread_join(trainer, NULL);
    mc_function_free(f);
    mc_shared_unref(&a);
}

/* ---- fork ---- */

static int threads_here(void)
{
    struct stat st;
    return stat("/proc/self/task", &st) == 0 ? (int)st.st_nlink - 2 : 1;
}

static struct {
    mc_function *f;
    mc_shared *n;
} forked;

static double call_forked(int64_t size)
{
    mc_array *x = ramp(MC_FLOAT64, MC_SHAPE(size));
    double sum = 0;
    mc_status s = mc_call(forked.f, MC_IN(x), MC_OUT(&sum));
    mc_array_unref(&x);
    return s < 0 ? -1 : sum;
}

/* The function, a size that is new, a function that is new, a variable of its own. */
static int use_in_child(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[?]; y = sum(sqrt(x) * sqrt(x) + 3)");
    mc_function *h = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
    mc_array *x = ramp(MC_FLOAT64, MC_SHAPE(500000));
    double y = 0;
    bool good = call_forked(500000) == 500000 * 26.5 && call_forked(50) == 50 * 27.5;
    good = good && shared_at(forked.n, 0) == 3;
    good = good && h && mc_call(h, MC_IN(x), MC_OUT(&y)) == MC_OK && fabs(y - 500000 * 27.5) < 1e-3;
    mc_array_unref(&x);
    mc_function_free(h);
    mc_graph_free(g);
    return good ? 0 : 1;
}

TEST(functions_work_in_parent_and_child_of_a_fork)
{
#if defined(__SANITIZE_THREAD__)
    SKIP("the thread sanitizer has no threads in the child of a process that had some");
#endif
    if (getenv("TEST_QEMU")) {
        SKIP("qemu has no threads in the child of a process that had some");
    }
    if (strncmp(mc_flag_get("device"), "cuda", 4) == 0) {
        SKIP("CUDA does not survive a fork");
    }
    mc_flag_set("threads", "4");
    mc_flag_set("onednn", "none"); /* whose threads are their own */
    mc_flag_set("blas", "none");
    mc_graph *g = mc_graph_new();
    forked.n = mc_shared_ref(scalar(g, "n", MC_FLOAT64, 0));
    mc_formula(g, "input x float64[?]; y = sum(x + n + 1)");
    forked.f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y", .updates = "n = n + 1" }));
    mc_graph_free(g);
    CHECK(call_forked(500000) == 500000 * 25.5 && threads_here() > 1, "before: %d threads", threads_here());
    CHECK(in_child(use_in_child) == 0, "in the child");
    CHECK(shared_at(forked.n, 0) == 1, "the child's updates are here: %g", shared_at(forked.n, 0));
    CHECK(call_forked(500000) == 500000 * 26.5, "after the fork");
    mc_function_free(forked.f);
    mc_shared_unref(&forked.n);
}

/* ---- signals ---- */

static volatile sig_atomic_t signals;

static void count_signal(int number)
{
    (void)number;
    signals++;
}

/* Without SA_RESTART, so that it interrupts what waits. */
static void handle(int number)
{
    struct sigaction act = { .sa_handler = count_signal };
    sigemptyset(&act.sa_mask);
    sigaction(number, &act, NULL);
}

static bool large_sum_is_right(void)
{
    mc_graph *g = mc_graph_new();
    mc_formula(g, "input x float64[?]; y = sum(x + 1)");
    mc_function *f = made(g, mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y", .threads = 4 }));
    mc_array *x = ramp(MC_FLOAT64, MC_SHAPE(500000));
    double y = 0;
    const bool good = fine(mc_call(f, MC_IN(x), MC_OUT(&y))) && y == 500000 * 25.5;
    mc_array_unref(&x);
    mc_function_free(f);
    mc_graph_free(g);
    return good;
}

/* A signal for the process goes to a thread that does not block it: here there is none, so it waits. */
TEST(threads_of_the_library_take_no_signals)
{
    sigset_t one, waiting;
    mc_data *d = mc_data_digits(20, 1);
    mc_batches *b = mc_batches_new(d, &(mc_batch_spec){ .size = 5 });
    handle(SIGUSR1);
    CHECK(b && large_sum_is_right() && threads_here() > 2, "%d threads", threads_here());
    sigemptyset(&one);
    sigaddset(&one, SIGUSR1);
    pthread_sigmask(SIG_BLOCK, &one, NULL);
    kill(getpid(), SIGUSR1);
    usleep(20000);
    CHECK(signals == 0 && sigpending(&waiting) == 0 && sigismember(&waiting, SIGUSR1), "it was taken");
    mc_batches_free(b);
    mc_data_free(d);
}

/* The C compiler runs, a file is written and read, a team works, while a timer rings every millisecond. */
TEST(signals_disturb_nothing)
{
    mc_flag_set("cache_size", "0");
    handle(SIGALRM);
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 1000 }, { 0, 1000 } }, NULL);
    mc_array *x = ramp(MC_FLOAT64, MC_SHAPE(1000000)), *y = NULL;
    CHECK(large_sum_is_right(), "a wrong sum");
    for (int i = 0; i < 20 || signals == 0; i++) {
        mc_array_unref(&y);
        fine(mc_npy_save(in_folder("x.npy"), x));
        y = mc_npy_load(in_folder("x.npy"));
        CHECK(y && memcmp(x->data, y->data, 8000000) == 0, "%s", mc_last_error());
    }
    setitimer(ITIMER_REAL, &(struct itimerval){ { 0, 0 }, { 0, 0 } }, NULL);
    CHECK(signals > 0, "the timer never rang");
    mc_array_unref(&x);
    mc_array_unref(&y);
    drop_folder();
}
