/* t_train.c: monochord train and predict: what is learned, what survives being killed, what is said when something is wrong.
 *
 * Invariant: every run has a folder of its own, and nets are so small that a run takes a fraction of a second. */
#include "markup.h"
#include "program.h"
#include <monochord_nn.h>
#include <signal.h>
#include <time.h>

/* ---- a folder with models ---- */

static const struct {
    const char *name, *text;
} models[] = {
    { "m.txt",    "input 1x28x28\ndense 24 tanh\ndropout 0.2\ndense 10 softmax\nbatch 100\nepochs 4\nrule momentum rate=0.1 momentum=0.9\naugment shift=1\n" },
    { "c.txt",    "input 1x28x28\nconv 4 5x5 tanh\npool 4x4\ndense 10 softmax\nbatch 100\nepochs 2\nrule adam rate=0.01\n" },
    { "n.txt",    "input 1x28x28\nbatch_norm\ndense 10 softmax\nbatch 100\nepochs 3\nrule sgd rate=0.1\nschedule step every=1 by=0.5\n" },
    { "five.txt", "input 1x28x28\ndense 5 softmax\n" },
    { "flat.txt", "input 784\ndense 10 softmax\nepochs 1\n" },
    { "size.txt", "input 1x29x28\ndense 10 softmax\n" },
    { "maps.txt", "input 1x28x28\nconv 10 5x5 softmax\n" },
    { "typo.txt", "input 1x28x28\nconf 32 5x5\ndense 10 softmax\n" },
    { "wild.txt", "input 1x28x28\ndense 24 rectify\ndense 10 softmax\nbatch 50\nepochs 4\nrule sgd rate=1e38\n" },
    { "none.txt", "# nothing\n" },
};

/* A command run in a fresh folder with the models; @ is the build's.  To free. */
static char *in_folder(const char *command, int *status)
{
    char whole[6144], *text;
    size_t at = (size_t)snprintf(whole, sizeof whole, "d=$(mktemp -d) && cd $d || exit 99; ");
    for (size_t i = 0; i < COUNT(models); i++) {
        at += (size_t)snprintf(whole + at, sizeof whole - at, "printf '%%s' '%s' > %s; ", models[i].text, models[i].name);
    }
    snprintf(whole + at, sizeof whole - at, "(%s) 2>&1; s=$?; cd /; rm -r $d; exit $s", command);
    text = output_of(whole, status);
    return text;
}

/* ---- what it says ---- */

#define TRAIN "@/monochord train"
#define SMALL " --data digits:600"
static const struct row good[] = {
    { TRAIN " m.txt" SMALL, 0, { "19090 parameters", "test error ", "report.html" } },
    { TRAIN " m.txt" SMALL " --report none && ls", 0, { "m.npz\n", "examples/s", "answers (across)" } },
    { TRAIN " c.txt" SMALL " --quiet && ls", 0, { "c.npz\n", "report.html" } },
    { TRAIN " n.txt" SMALL " --report none", 0, { "0.1  ", "0.05  ", "0.025  " } },
    { TRAIN " flat.txt" SMALL " --report none --epochs 2 --batch 50 --line 'rule adam rate=0.002'", 0, { "in batches of 50", "adam rate=0.002", "     2  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none --epochs 2 && " TRAIN " m.txt" SMALL " --resume --report none --epochs 3", 0, { "     3  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL " --new --report none --save m.npz", 0, { "     1  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none && head -c 3000 m.npz > x && mv x m.npz && " TRAIN " m.txt" SMALL " --resume --report none", 0,
      { "'m.npz' is not usable", "going on from 'm.npz.old'", "     4  " } },
    { TRAIN " m.txt" SMALL " --quiet --report none --epochs 30 && @/monochord predict m.npz --data digits:600", 0, { "100 examples: error ", "answers (across)" } },
    { TRAIN " m.txt" SMALL " --report none --epochs 200 --line 'rule sgd rate=0' --line 'patience 2'", 0, { "no better one in 2 epochs", "(of the best epoch)" } },
    { "MONOCHORD_FLAGS=debug=plan,onednn=none " TRAIN " c.txt" SMALL " --batch 10 --epochs 9 --report none", 0, { "us measured", "     9  " } }, /* 540 steps */
    { "MONOCHORD_FLAGS=debug=plan,plan=estimate " TRAIN " c.txt" SMALL " --batch 10 --epochs 9 --report none > log 2>&1; grep -q 'us measured' log || echo as was said", 0,
      { "as was said" } },
    { "MONOCHORD_FLAGS=debug=plan " TRAIN " c.txt" SMALL " --report none > log 2>&1; grep -q 'us measured' log || echo too few", 0, { "too few" } },
    { "@/monochord data digits:600", 0, { "to learn from: 600 examples of 1x28x28, 10 classes", "to test with: 100 examples", "  9 " } },
    { "@/monochord data digits:600 sheet.png && mkdir -p p/a && cp sheet.png p/a/1.png && for i in 2 3 4 5 6 7 8 9 10; do cp p/a/1.png p/a/$i.png; done && "
      "@/monochord data p", 0, { "to learn from: 9 examples of 1x280x448, 1 classes" } },
}, bad[] = {
    { "@/monochord data", 1, { "usage: monochord data" } },
    { "@/monochord data nowhere", 1, { "there is no 'nowhere'" } },
    { "@/monochord data digits:600 no/where.png", 1, { "no/where.png" } },
    { TRAIN, 1, { "usage: monochord train MODEL", "--resume" } },
    { TRAIN " nosuch", 1, { "there is no file 'nosuch', and no such model; models:", "lenet" } },
    { TRAIN " typo.txt" SMALL, 1, { "typo.txt:2: ", "conf 32 5x5\n    ^", "did you mean 'conv'" } },
    { TRAIN " none.txt" SMALL, 1, { "there is no layer" } },
    { TRAIN " maps.txt" SMALL, 1, { "the last layer gives no row of numbers" } },
    { TRAIN " five.txt" SMALL, 1, { "the examples are of 10 classes, but the model tells 5 apart" } },
    { TRAIN " size.txt" SMALL, 1, { "the examples are 1x28x28, but the model wants 1x29x28" } },
    { TRAIN " m.txt --data nowhere", 1, { "there is no 'nowhere'" } },
    { TRAIN " m.txt --data digits:x", 1, { "digits:N wants a whole number" } },
    { TRAIN " m.txt" SMALL " --line 'augment crop=40'", 1, { "crop=40 is more than the pictures' 28" } },
    { TRAIN " m.txt" SMALL " --line 'rule sgb rate=1'", 1, { "sgb", "^" } },
    { TRAIN " m.txt --epochs", 1, { "--epochs needs a value" } },
    { TRAIN " m.txt --epochs many", 1, { "--epochs wants a whole number from 1 on, not 'many'" } },
    { TRAIN " m.txt --slowly", 1, { "'--slowly' is not understood; monochord help train" } },
    { TRAIN " m.txt --epocs 3", 1, { "'--epocs' is not understood; did you mean '--epochs'?" } },
    { TRAIN " m.txt" SMALL " --resume", 1, { "cannot resume: 'm.npz'" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL, 1, { "'m.npz' is there already", "--resume", "--new" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " c.txt" SMALL " --resume --save m.npz", 1, { "is of another model, or of other lines" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt --data digits:601 --resume", 1, { "was trained on other data" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && " TRAIN " m.txt" SMALL " --seed 2 --resume", 1, { "was begun with another seed" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && echo x > m.npz && echo x > m.npz.old && " TRAIN " m.txt" SMALL " --resume", 1, { "cannot resume: 'm.npz'" } },
    { TRAIN " m.txt" SMALL " --quiet --save no/where/m.npz", 1, { "cannot write 'no/where/m.npz': No such file" } },
    { TRAIN " m.txt" SMALL " --quiet --report no/where.html && ls m.npz", 1, { "cannot write 'no/where.html': No such file" } },
    { TRAIN " m.txt" SMALL " --quiet --curve no/where.svg", 1, { "cannot write 'no/where.svg': No such file" } },
    { TRAIN " typo.txt 2>&1 | grep -c 'at .*[.]c:'", 1, { "0" } }, /* no place in the program's own text */
    { TRAIN " wild.txt" SMALL " --report none", 1, { "is not finite in epoch 1, batch ", "it arose in epoch 1, batch ", "wild" } },
    { TRAIN " n.txt" SMALL " --report none --epochs 12 --line 'schedule step every=9 by=1e38'", 1, { "is not finite in epoch 10, batch ", "it arose in epoch 10, batch " } },
    { "@/monochord predict", 1, { "usage: monochord predict" } },
    { "@/monochord predict m.txt x.png", 1, { "m.txt" } },
    { "@/monochord predict m.npz --data", 1, { "--data needs a value" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && @/monochord predict m.npz x.png", 1, { "'x.png'" } },
    { TRAIN " m.txt" SMALL " --quiet --report none && printf 'P5 3 2 255\\n123456' > x.pgm && @/monochord predict m.npz x.pgm", 1,
      { "x.pgm: the examples are 1x2x3, but the model wants 1x28x28" } },
};

TEST(training_does_what_it_says) { run_rows(good, COUNT(good), in_folder); }
TEST(training_fails_with_a_message) { run_rows(bad, COUNT(bad), in_folder); }

/* A disk that takes no more: the checkpoint that was there stays as it was, and the run goes on to its end. */
TEST(a_full_disk_leaves_the_checkpoint)
{
    int status;
    const char *text = in_folder(TRAIN " m.txt" SMALL " --quiet --report none --epochs 1 && cp m.npz was && (trap '' XFSZ; ulimit -f 20; " TRAIN
                                 " m.txt" SMALL " --resume --report none; echo ended with $?); cmp m.npz was && echo there: && ls", &status);
    CHECK(status == 0 && strstr(text, "the checkpoint was not saved, the one before it stays") && strstr(text, "ended with 1") && strstr(text, "     4  "),
          "%s", text);
    text = strstr(text, "there:");
    CHECK(text && !strstr(text, ".tmp") && !strstr(text, ".new"), "something is left behind: %s", text ? text : "");
}

TEST(a_picture_is_recognised)
{
    int status, right = 0;
    char folder[] = "/tmp/mctrainXXXXXX", command[1024];
    mc_data *d = mc_data_open("digits:3000", MC_TEST);
    REQUIRE(d && mkdtemp(folder), "%s", mc_last_error());
    for (int i = 0; i < 10; i++) {
        float x[784];
        uint8_t v[784];
        size_t n;
        mc_data_example(d, i, x);
        for (int k = 0; k < 784; k++) {
            v[k] = (uint8_t)(255 - (int)(x[k] * 255 + 0.5f));
        }
        void *png = mc_image_png(v, 28, 28, 1, &n);
        snprintf(command, sizeof command, "%s/%d.png", folder, i);
        CHECK(mc_file_write(command, png, n) == MC_OK, "%s", mc_last_error());
        mc_free(png);
    }
    snprintf(command, sizeof command, TRAIN " flat.txt --data digits:3000 --quiet --report none --epochs 5 --line 'rule adam rate=0.003' && "
             "@/monochord predict flat.npz --invert %s/?.png; s=$?; rm -r %s; exit $s", folder, folder);
    const char *text = in_folder(command, &status);
    CHECK(status == 0, "%s", text);
    const char *at = text;
    for (int i = 0; i < 10 && (at = strstr(at, ".png: ")); i++) {
        at += 6;
        right += atoi(at) == mc_data_label(d, i);
    }
    CHECK(right >= 7, "%d of 10 are recognised: %s", right, text);
    mc_data_free(d);
}

/* ---- the same numbers ---- */

/* Arrays of two checkpoints that differ in a bit, but for times; the first's name. */
static const char *differ(const char *a, const char *b)
{
    static char name[64];
    mc_npz *x = mc_npz_open(a), *y = mc_npz_open(b);
    snprintf(name, sizeof name, "%s", x && y && mc_npz_count(x) == mc_npz_count(y) ? "" : "they cannot be read, or one has more arrays");
    for (int i = 0; !*name && i < mc_npz_count(x); i++) {
        const char *k = mc_npz_name(x, i);
        mc_array *p = mc_npz_load(x, k), *q = mc_npz_load(y, k);
        bool same = p && q && mc_array_size(p) == mc_array_size(q) && mc_array_dtype(p) == mc_array_dtype(q);
        size_t size = same ? mc_dtype_size(mc_array_dtype(p)) : 0;
        bool history = strcmp(k, "train/history") == 0, progress = strcmp(k, "train/progress") == 0;
        for (int64_t e = 0; same && e < mc_array_size(p); e++) {
            bool seconds = (history && e % 6 == 5) || (progress && e == 6);
            same = seconds || memcmp((char *)mc_array_data(p) + (size_t)e * size, (char *)mc_array_data(q) + (size_t)e * size, size) == 0;
        }
        if (!same) {
            snprintf(name, sizeof name, "%s", k);
        }
        mc_array_unref(&p);
        mc_array_unref(&q);
    }
    mc_npz_close(x);
    mc_npz_close(y);
    return name;
}

/* Starts the program in `folder` with words after "train"; its process. */
static pid_t start(const char *folder, const char *words)
{
    char self[2048], command[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(command, sizeof command, "cd %s && exec %s/monochord train %s >>said 2>&1", folder, self, words);
    pid_t p = fork();
    if (p == 0) {
        signal(SIGINT, SIG_DFL); /* whoever runs the tests may not hear it */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return p;
}

static int wait_for(pid_t p)
{
    int code = 0;
    waitpid(p, &code, 0);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}

static void write_model(const char *folder, int which)
{
    char path[256];
    snprintf(path, sizeof path, "%s/m.txt", folder);
    CHECK(mc_file_write(path, models[which].text, strlen(models[which].text)) == MC_OK, "%s", mc_last_error());
}

static void remove_folder(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s stays", folder);
}

static bool there(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* One run that is never stopped, one that is stopped by `sig` again and again; both end with the same bits. */
static void stop_and_go(int which, int sig, const char *more)
{
    char folder[] = "/tmp/mctrainXXXXXX", words[512], whole[64], broken[64];
    int stops = 0, code = -1;
    REQUIRE(mkdtemp(folder), "no folder");
    write_model(folder, which);
    snprintf(words, sizeof words, "m.txt --data digits:900 --report none --save whole.npz %s", more);
    code = wait_for(start(folder, words));
    for (int tries = 0; code == 0 && tries < 60; tries++) {
        snprintf(words, sizeof words, "m.txt --data digits:900 --report none --save broken.npz --every 0 %s %s", more,
                 there(folder, "broken.npz") ? "--resume" : "");
        pid_t p = start(folder, words);
        long ms = 10 + (long)(test_random() % 60);
        nanosleep(&(struct timespec){ .tv_nsec = ms * 1000000 }, NULL);
        kill(p, tries < 25 ? sig : 0);
        int ended = wait_for(p);
        if (ended == 0) {
            break;
        }
        stops++;
        code = ended == 128 + sig || (sig == SIGINT && ended == 130) ? 0 : ended;
    }
    snprintf(whole, sizeof whole, "%s/whole.npz", folder);
    snprintf(broken, sizeof broken, "%s/broken.npz", folder);
    CHECK(code == 0, "a run ended with %d", code);
    CHECK(stops > 0, "no run was stopped");
    const char *name = code == 0 ? differ(whole, broken) : "";
    CHECK(!*name, "stopped %d times, and then %s differs", stops, name);
    remove_folder(folder);
}

TEST(killed_at_any_moment_it_goes_on_with_the_same_bits) { stop_and_go(0, SIGKILL, "--epochs 12"); }
TEST(interrupted_it_goes_on_with_the_same_bits) { stop_and_go(2, SIGINT, "--epochs 12"); }
TEST(with_patience_too) { stop_and_go(0, SIGKILL, "--epochs 12 --line 'patience 3'"); }
TEST_FULL(convolutions_as_well) { stop_and_go(1, SIGKILL, "--epochs 6"); }

TEST(two_runs_have_the_same_bits)
{
    for (int which = 0; which < 3; which++) {
        char folder[] = "/tmp/mctrainXXXXXX", path[2][64];
        REQUIRE(mkdtemp(folder), "no folder");
        write_model(folder, which);
        for (int i = 0; i < 2; i++) {
            char words[256];
            snprintf(words, sizeof words, "m.txt --data digits:600 --report none --save %d.npz", i);
            CHECK(wait_for(start(folder, words)) == 0, "model %d", which);
            snprintf(path[i], sizeof path[i], "%s/%d.npz", folder, i);
        }
        const char *name = differ(path[0], path[1]);
        CHECK(!*name, "model %d: %s differs", which, name);
        remove_folder(folder);
    }
}

TEST(the_report_is_a_page_of_its_own)
{
    char folder[] = "/tmp/mctrainXXXXXX", path[64], *text = NULL;
    size_t n;
    struct markup m;
    static const char *const says[] = { "Wrong, by epoch", "What the first layer looks for", "One example on its way", "The worst mistakes",
                                        "Labels and answers", "How its convolutions are computed", "gradient of its weights", "data:image/png;base64," };
    REQUIRE(mkdtemp(folder), "no folder");
    write_model(folder, 1);
    CHECK(wait_for(start(folder, "m.txt --data digits:600 --quiet")) == 0, "no report");
    snprintf(path, sizeof path, "%s/report.html", folder);
    REQUIRE(mc_file_read(path, &text, &n) == MC_OK, "%s", mc_last_error());
    for (size_t i = 0; i < COUNT(says); i++) {
        CHECK(strstr(text, says[i]), "the report lacks '%s'", says[i]);
    }
    CHECK(markup_good(&m, text, true), "%s", m.why);
    CHECK(!strstr(text, "src=\"http") && !strstr(text, "href=") && !strstr(text, "url("), "it asks for something else");
    mc_free(text);
    remove_folder(folder);
}
