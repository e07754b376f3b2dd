/* t_checkpoint.c: what survives being killed, and which checkpoints are refused.
 *
 * Invariant: a run that was broken off ends with the bits of one that was not. */
#include "train_folder.h"
#include <math.h>
#include <sys/stat.h>
#include <time.h>

/* ---- the same numbers ---- */

/* Arrays of two checkpoints that differ in a bit, but for times; the first's name. */
static const char *differ(const char *a, const char *b)
{
    static char name[64];
    mc_archive *x = mc_archive_open(a), *y = mc_archive_open(b);
    snprintf(name, sizeof name, "%s",
             x && y && mc_archive_count(x) == mc_archive_count(y)
                 ? ""
                 : "they cannot be read, or one has more arrays");
    for (int i = 0; !*name && i < mc_archive_count(x); i++) {
        const char *k = mc_archive_name(x, i);
        mc_array *p = mc_archive_load(x, k), *q = mc_archive_load(y, k);
        bool same = p && q && mc_array_size(p) == mc_array_size(q) && mc_array_dtype(p) == mc_array_dtype(q);
        size_t size = same ? mc_dtype_size(mc_array_dtype(p)) : 0;
        bool history = strcmp(k, "train/history") == 0, progress = strcmp(k, "train/progress") == 0;
        for (int64_t e = 0; same && e < mc_array_size(p); e++) {
            bool seconds = (history && e % 6 == 5) || (progress && e == 6);
            same = seconds || memcmp((char *)mc_array_data(p) + (size_t)e * size,
                                     (char *)mc_array_data(q) + (size_t)e * size, size) == 0;
        }
        if (!same) {
            snprintf(name, sizeof name, "%s", k);
        }
        mc_array_unref(&p);
        mc_array_unref(&q);
    }
    mc_archive_close(x);
    mc_archive_close(y);
    return name;
}

static bool there(const char *folder, const char *name)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return access(path, F_OK) == 0;
}

/* One run that is never stopped, one that is stopped by `sig` again and again; both end with the same
 * bits. */
static void stop_and_go(int which, int sig, const char *more)
{
    char folder[] = "/tmp/mctrainXXXXXX", words[512], whole[64], broken[64];
    int stops = 0, code = -1;
    REQUIRE(mkdtemp(folder), "no folder");
    write_model(folder, which);
    snprintf(words, sizeof words, "m.txt --data digits:900 --report none --save whole.npz %s", more);
    code = wait_for(start(folder, words));
    for (int tries = 0; code == 0 && tries < 60; tries++) {
        snprintf(words, sizeof words,
                 "m.txt --data digits:900 --report none --save broken.npz --every 0 %s %s", more,
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

/* ---- checkpoints that are whole files, but hold what no run wrote ---- */

/* The checkpoint without an array, or with another in its place (NULL: without); the value is taken over. */
static void change(const char *path, const char *name, mc_array *value)
{
    enum { MOST = 64 };
    const char *names[MOST];
    mc_array *all[MOST];
    int n = 0;
    mc_archive *z = mc_archive_open(path);
    REQUIRE(z && mc_archive_count(z) <= MOST, "%s", mc_last_error());
    for (int i = 0; i < mc_archive_count(z); i++) {
        bool this = strcmp(mc_archive_name(z, i), name) == 0;
        if (!this || value) {
            names[n] = mc_archive_name(z, i);
            all[n] = this ? mc_array_ref(value) : mc_archive_load(z, names[n]);
            n++;
        }
    }
    CHECK(mc_archive_save(path, NULL, n, names, (const mc_array *const *)all) == MC_OK, "%s",
          mc_last_error());
    while (n > 0) {
        mc_array_unref(&all[--n]);
    }
    mc_archive_close(z);
    mc_array_unref(&value);
}

static mc_array *full(mc_dtype d, int rank, const int64_t *dims, double v)
{
    mc_array *a = mc_array_new(d, rank, dims);
    for (int64_t i = 0; a && i < mc_array_size(a); i++) {
        if (d == MC_FLOAT64) {
            ((double *)mc_array_data(a))[i] = v;
        } else {
            ((float *)mc_array_data(a))[i] = (float)v;
        }
    }
    return a;
}

TEST(checkpoints_with_strange_arrays)
{
    const double ill = NAN;
    char folder[] = "/tmp/mctrainXXXXXX", path[64], command[512];
    REQUIRE(mkdtemp(folder), "no folder");
    snprintf(path, sizeof path, "%s/m.npz", folder);
    struct {
        const char *name, *says, *predicted; /* resumed; where a picture is asked for */
        mc_array *value;
    } rows[] = {
        { "train/progress", "the record of its progress is damaged", NULL,
          full(MC_FLOAT64, MC_SHAPE(8), ill) },
        { "train/progress", "the record of its progress is damaged", NULL,
          full(MC_FLOAT64, MC_SHAPE(8), -2) },
        { "train/progress", "the record of its progress is damaged", NULL, full(MC_FLOAT64, MC_SHAPE(3), 1) },
        { "train/progress", "the record of its progress is damaged", NULL,
          full(MC_FLOAT64, MC_SHAPE(8), 5) }, /* the best of one epoch is its sixth */
        { "train/history", "the record of its progress is damaged", NULL, full(MC_FLOAT64, MC_SHAPE(3), 1) },
        { "dense1_W", "numbers that are not finite: dense1_W", "numbers that are not finite: dense1_W",
          full(MC_FLOAT32, MC_SHAPE(784, 24), ill) },
        { "dense1_W", "another dtype or shape than the model's: dense1_W", "another dtype or shape",
          full(MC_FLOAT32, MC_SHAPE(24, 784), 1) },
        { "dense1_b", "has no array 'dense1_b'", "has no array 'dense1_b'", NULL },
        { "train/seed", "is not a checkpoint of a training run", NULL, NULL },
    };
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status;
        write_model(folder, 0);
        CHECK(wait_for(start(folder, "m.txt --data digits:300 --epochs 1 --new --quiet --report none")) == 0,
              "no checkpoint");
        change(path, rows[i].name, rows[i].value);
        snprintf(command, sizeof command,
                 "cd %s && rm -f m.npz.old && " TRAIN
                 " m.txt --data digits:300 --epochs 2 --resume --report none --quiet",
                 folder);
        const char *text = output_of(command, &status);
        CHECK(status == 1 && strncmp(text, "monochord: cannot resume: 'm.npz'", 33) == 0 &&
                  strstr(text, rows[i].says),
              "row %d: %d: %s", (int)i, status, text);
        CHECK(!strstr(text + 33, "'m.npz'"), "the file is named twice: %s", text);
        snprintf(command, sizeof command, "cd %s && @/monochord predict m.npz --data digits:300", folder);
        text = output_of(command, &status);
        CHECK(status == (rows[i].predicted != NULL) &&
                  (!rows[i].predicted || strstr(text, rows[i].predicted)),
              "row %d: %d: %s", (int)i, status, text);
    }
    remove_folder(folder);
}

/* ---- files that are no checkpoints ---- */

static bool has_text(const char *folder, const char *name, const char *want)
{
    char path[256], *text = NULL;
    size_t n = 0;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    bool same = mc_file_read(path, &text, &n) == MC_OK && strcmp(text, want) == 0;
    mc_free(text);
    return same;
}

static void put_text(const char *folder, const char *name, const char *text)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    CHECK(mc_file_write(path, text, strlen(text)) == MC_OK, "%s", mc_last_error());
}

/* A data set of 40 examples of 4 numbers. */
static void write_data(const char *path)
{
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(40, 4)), *y = mc_array_new(MC_INT64, MC_SHAPE(40));
    for (int64_t i = 0; i < 40; i++) {
        ((int64_t *)mc_array_data(y))[i] = i % 3;
        ((float *)mc_array_data(x))[4 * i + i % 3] = 1;
    }
    CHECK(mc_archive_save(path, NULL, 2, (const char *[]){ "x", "y" }, (const mc_array *[]){ x, y }) == MC_OK,
          "%s", mc_last_error());
    mc_array_unref(&x);
    mc_array_unref(&y);
}

TEST(data_sets_are_not_replaced_by_checkpoints)
{
    static const struct {
        const char *words, *says;
    } rows[] = {
        { "iris.txt --data iris.npz",
          "'iris.npz' is the data: it is not replaced; give another name with --save FILE" },
        { "iris.txt --data iris.npz --new", "'iris.npz' is the data" },
        { "iris.txt --data iris.npz --resume", "'iris.npz' is the data" },
        { "iris.txt --data ./iris.npz --new", "'iris.npz' is the data" },
        { "iris.txt --data link.npz --new", "'iris.npz' is the data" },
        { "iris.txt --data iris.npz --save m.npz --report iris.npz",
          "'iris.npz' is the data: it is not replaced; give another name with --report FILE" },
        { "iris.txt --data iris.npz --save m.npz --curve iris.npz", "'iris.npz' is the data" },
        { "iris.txt --data iris.npz --save iris.txt --new", "'iris.txt' is the model" },
        { "iris.txt --data iris.npz --save m.npz --curve m.npz", "--save and --curve are both 'm.npz'" },
        { "iris.txt --data link.npz --save other.npz --new",
          "'other.npz' exists and is not a checkpoint, so it is not replaced" },
        { "iris.txt --data link.npz --save other.npz", "'other.npz' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save notes --new", "'notes' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save a --new", "'a.old' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save b --new", "'b.new' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save cut.npz --new", "'cut.npz' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save folder --new", "'folder' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save folder", "'folder' exists and is not a checkpoint" },
        { "iris.txt --data link.npz --save pipe --new", "'pipe' exists and is not a checkpoint" },
    };
    static const char *const texts[] = { "notes", "a.old", "b.new", "cut.npz" };
    char folder[] = "/tmp/mctrainXXXXXX", path[2][64], link_path[64], command[512], *data[2] = { 0 },
         *now = NULL;
    size_t n[2], m;
    REQUIRE(mkdtemp(folder), "no folder");
    snprintf(path[0], sizeof path[0], "%s/iris.npz", folder);
    snprintf(path[1], sizeof path[1], "%s/other.npz", folder);
    snprintf(link_path, sizeof link_path, "%s/link.npz", folder);
    put_text(folder, "iris.txt", "input 4\ndense 3 softmax\nbatch 10\nepochs 1\n");
    for (size_t i = 0; i < COUNT(texts); i++) {
        put_text(folder, texts[i], "PK, not a zip");
    }
    for (int i = 0; i < 2; i++) {
        write_data(path[i]);
        CHECK(mc_file_read(path[i], &data[i], &n[i]) == MC_OK, "%s", mc_last_error());
    }
    CHECK(symlink("iris.npz", link_path) == 0, "no link");
    char kept[2][64];
    struct stat st;
    snprintf(kept[0], sizeof kept[0], "%s/folder", folder);
    snprintf(kept[1], sizeof kept[1], "%s/pipe", folder);
    CHECK(mkdir(kept[0], 0700) == 0 && mkfifo(kept[1], 0600) == 0, "no folder, no pipe");
    for (size_t i = 0; i < COUNT(rows); i++) {
        int status;
        snprintf(command, sizeof command, "cd %s && " TRAIN " %s --quiet%s", folder, rows[i].words,
                 strstr(rows[i].words, "--report") ? "" : " --report none");
        const char *text = output_of(command, &status);
        CHECK(status == 1 && strstr(text, rows[i].says), "%s: %d: %s", rows[i].words, status, text);
        for (int k = 0; k < 2; k++) {
            bool same = mc_file_read(path[k], &now, &m) == MC_OK && m == n[k] && memcmp(now, data[k], m) == 0;
            CHECK(same, "%s: %s is another now", rows[i].words, path[k]);
            mc_free(now);
            if (!same) {
                write_data(path[k]);
            }
        }
        for (size_t k = 0; k < COUNT(texts); k++) {
            CHECK(has_text(folder, texts[k], "PK, not a zip"), "%s: %s is another now", rows[i].words,
                  texts[k]);
            put_text(folder, texts[k], "PK, not a zip");
        }
        CHECK(lstat(kept[0], &st) == 0 && S_ISDIR(st.st_mode), "%s: the folder is another now",
              rows[i].words);
        CHECK(lstat(kept[1], &st) == 0 && S_ISFIFO(st.st_mode), "%s: the pipe is another now", rows[i].words);
        CHECK(has_text(folder, "iris.txt", "input 4\ndense 3 softmax\nbatch 10\nepochs 1\n"),
              "%s: the model is another now", rows[i].words);
    }
    for (int i = 0; i < 2; i++) {
        mc_free(data[i]);
    }
    remove_folder(folder);
}

/* Only the leavings of a killed run are removed: names that begin the same are others' files, and names are
 * no patterns. */
TEST(files_with_names_like_a_checkpoints_stay)
{
    static const struct {
        const char *save, *name;
        bool swept;
    } rows[] = {
        { "m.npz", "m.npz.newer-results.csv", false },
        { "m.npz", "m.npz.new.txt", false },
        { "m.npz", "m.npz.new.12-x.tmp", false },
        { "m.npz", "m.npz.new.1-2.tmp.csv", false },
        { "m.npz", "am.npz.new.1-2.tmp", false },
        { "m.npz", "m.npz.new.4711-12.tmp", true },
        { "m[12].npz", "m1.npz.new.4711-12.tmp", false },
        { "m[12].npz", "m[12].npz.new.4711-12.tmp", true },
        { "m*", "mine.new.1-2.tmp", false },
        { "m?", "ms.new.1-2.tmp", false },
        { "a\\b", "a\\b.new.1-2.tmp", true },
    };
    char folder[] = "/tmp/mctrainXXXXXX", words[256];
    REQUIRE(mkdtemp(folder), "no folder");
    write_model(folder, 0);
    for (size_t i = 0; i < COUNT(rows); i++) {
        put_text(folder, rows[i].name, "results");
        snprintf(words, sizeof words,
                 "m.txt --data digits:200 --epochs 1 --new --quiet --report none --save '%s'", rows[i].save);
        CHECK(wait_for(start(folder, words)) == 0, "%s is not saved", rows[i].save);
        CHECK(there(folder, rows[i].save), "no %s", rows[i].save);
        CHECK(there(folder, rows[i].name) == !rows[i].swept, "saved as %s, %s %s", rows[i].save, rows[i].name,
              rows[i].swept ? "stays" : "is gone");
        CHECK(rows[i].swept || has_text(folder, rows[i].name, "results"), "%s is another now", rows[i].name);
    }
    remove_folder(folder);
}
