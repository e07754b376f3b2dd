/* monochord_demo.c: `monochord demo`: the loop of Theano's GPU tutorial; LeNet learning to read drawn digits;
 * the trained LeNet as a C file of its own.
 *
 * Invariant: the data are generated, the same on every run; nothing is read but what NumPy's side prints. */
#include "train.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LOOPS = 1000, LOOP_ROWS = 768, LOOP_COLUMNS = 300 }; /* 230,400 floats */

struct race {
    double ours[2], numpy[2]; /* seconds: into new arrays, into one; numpy 0: not there */
};

/* ---- the tutorial's loop: exp of 230,400 floats, a thousand times ---- */

static double loop(mc_function *f, bool fresh)
{
    mc_array *y = NULL;
    double start = 0;
    for (int i = -10; i < LOOPS; i++) {
        start = i ? start : seconds_now();
        if (mc_call(f, MC_NONE, MC_OUT(&y)) < 0) {
            complain_library("demo");
            break;
        }
        if (fresh) {
            mc_array_unref(&y);
        }
    }
    double took = seconds_now() - start;
    mc_array_unref(&y);
    return took;
}

static const char numpy_side[] =
    "python3 -c \"\n"
    "import time, numpy\n"
    "x = numpy.random.rand(768, 300).astype('float32'); y = numpy.empty_like(x)\n"
    "def loop(f):\n"
    "    for i in range(10): f()\n"
    "    t = time.perf_counter()\n"
    "    for i in range(1000): f()\n"
    "    return time.perf_counter() - t\n"
    "print(loop(lambda: numpy.exp(x)), loop(lambda: numpy.exp(x, out=y)), numpy.__version__)\" 2>/dev/null";

static bool tutorial(struct race *d)
{
    mc_graph *g = must(mc_graph_new());
    mc_array *x = must(mc_array_new(MC_FLOAT32, MC_SHAPE(LOOP_ROWS, LOOP_COLUMNS)));
    uint64_t state = 22;
    random_fill(x, &state, 1);
    mc_shared_new(g, "x", x);
    mc_function *f = mc_compile(g, &(mc_spec){ .name = "exp", .outputs = "exp(x)" });
    mc_array_unref(&x);
    bool good = f != NULL;
    if (good) {
        printf("The GPU tutorial's loop: exp of 230,400 floats, %d calls\n", LOOPS);
        d->ours[0] = loop(f, true);
        d->ours[1] = loop(f, false);
    } else {
        complain("demo: %s", mc_error(g));
    }
    FILE *peer = good ? popen(numpy_side, "r") : NULL;
    char version[32] = "";
    bool numpy = peer && fscanf(peer, "%lf %lf %31s", &d->numpy[0], &d->numpy[1], version) == 3;
    if (peer) {
        pclose(peer);
    }
    static const char *const what[] = { "into new arrays", "into one array" };
    for (int i = 0; i < 2 && good; i++) {
        printf("  %-16s monochord %.3f s", what[i], d->ours[i]);
        if (numpy) {
            printf("   NumPy %s %.3f s   %.1f times as fast", version, d->numpy[i], d->numpy[i] / d->ours[i]);
        } else {
            d->numpy[i] = 0;
        }
        printf("\n");
    }
    if (good && !numpy) {
        printf("  (python3 with NumPy is not here to compare with)\n");
    }
    mc_function_free(f);
    mc_graph_free(g);
    return good;
}

/* ---- both ---- */

static void beside_numpy(struct text *t, double seconds)
{
    if (seconds > 0) {
        text_addf(t, " (NumPy %.3f s)", seconds);
    }
}

static void tell(struct text *t, const struct race *d)
{
    text_addf(t,
              "<h2>exp of 230,400 floats, %d calls</h2>\n<div class=\"card\"><p>The loop of Theano's GPU "
              "tutorial. Into new arrays: %.3f s",
              LOOPS, d->ours[0]);
    beside_numpy(t, d->numpy[0]);
    text_addf(t, ". Into one array: %.3f s", d->ours[1]);
    beside_numpy(t, d->numpy[1]);
    text_addf(t, ".</p></div>\n");
}

int command_demo(int argc, char **argv)
{
    struct race d = { 0 };
    struct text extra = { 0 };
    struct options o = { .model = "lenet", .data = "digits:20000", .save = "demo.npz", .report = argc == 2 ? argv[1] : "report.html", .seed = 1,
                         .seconds = 3600, .anew = true, .lines = { "epochs 8" }, .nlines = 1 };
    if (argc > 2 || argv[argc - 1][0] == '-') {
        return complain_usage("demo");
    }
    if (!tutorial(&d)) {
        return 1;
    }
    tell(&extra, &d);
    printf("\nLeNet learns to read generated digits, 28x28 pixels each, no two alike\n  %s train "
           "%s --data %s --epochs 8\n",
           program_invocation_name, o.model, o.data);
    int status = train_and_report(&o, extra.s);
    if (status == 0) {
        status = !demo_export(o.save, o.data);
    }
    if (status == 0) {
        printf("\nto read your own picture, 28x28 pixels, dark ink on a light ground:\n  %s predict "
               "%s --invert PICTURE.png\n"
               "to use the network in a C program of your own:\n  %s export %s --c lenet.c\n",
               program_invocation_name, o.save, program_invocation_name, o.save);
    }
    text_free(&extra);
    return status;
}
