/* monochord_train.c: `monochord train`: a model from its text, data, and the loop that makes one learn the
 * other.
 *
 * Invariant: a signal only sets a flag; the loop sees it between two batches, saves, and ends. */
#include "train.h"
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const double look_again = 0.1;    /* seconds between looks at a GPU's sums */
/* an epoch is saved when so many times the last saving's time has passed */
static const double saving_share = 20;

static volatile sig_atomic_t stopped;

static const struct run *running;

static void stop(int sig) /* the second one finds the preset action again */
{
    stopped = sig;
    ranks_signal(running);
}

static void listen(const struct run *r)
{
    running = r;
    ranks_saved(r);
    struct sigaction a = { .sa_handler = stop, .sa_flags = (int)SA_RESETHAND };
    sigemptyset(&a.sa_mask);
    sigaction(SIGINT, &a, NULL);
    sigaction(SIGTERM, &a, NULL);
}

enum { MANY_STEPS = 500 };

/* ---- setting up ---- */

/* Unless the user said something else. */
static bool preset(const char *flag, const char *value)
{
    const char *said = getenv("MONOCHORD_FLAGS");
    size_t n = strlen(flag);
    while (said && (said = strstr(said, flag)) && said[n] != '=') {
        said += n;
    }
    return said || mc_flag_set(flag, value) == MC_OK || (complain_library(flag), false);
}

/* A shift by all of a picture leaves nothing to learn from. */
static bool stays_in_sight(const struct run *r, const char *augment)
{
    const char *at = strstr(augment, "shift=");
    long shift = at ? strtol(at + strlen("shift="), NULL, 10) : 0;
    for (int k = mc_data_rank(r->train) - 1; k >= 0 && k >= mc_data_rank(r->train) - 2; k--) {
        if (shift > 0 && shift >= mc_data_dims(r->train)[k]) {
            return complain("shift=%ld is too large for pictures of size %lld", shift,
                            (long long)mc_data_dims(r->train)[k]),
                   false;
        }
    }
    return true;
}

static bool open_data(struct run *r)
{
    const mc_training *t = mc_net_training(r->m.net);
    char *where = model_data(&r->m, r->o.data);
    r->train = mc_data_open(where, MC_TRAIN);
    r->held = r->train ? mc_data_open(where, MC_TEST) : NULL;
    free(where);
    if (!r->held) {
        return complain("%s", mc_last_error()), false;
    }
    if (!stays_in_sight(r, t->augment)) {
        return false;
    }
    r->batches = mc_batches_new(r->train, &(mc_batch_spec){ .size = t->batch,
                                                            .shuffle = 1,
                                                            .seed = (uint64_t)r->o.seed,
                                                            .augment = t->augment,
                                                            .resident = 1 });
    r->test_batches = r->batches ? mc_batches_new(r->held, &(mc_batch_spec){ .size = t->batch,
                                                                             .augment = t->augment,
                                                                             .resident = 1 })
                                 : NULL;
    if (!r->test_batches) {
        return complain("%s", mc_last_error()), false;
    }
    return model_fits(&r->m, r->train, mc_batches_dims(r->batches), r->o.data) &&
           model_fits(&r->m, r->held, mc_batches_dims(r->test_batches), r->o.data);
}

static bool compile(struct run *r)
{
    double start = seconds_now();
    if (r->comm || r->o.parts || r->o.shard || ranks_strict()) {
        if (!ranks_compile(r)) {
            return false;
        }
    } else if (!(r->m.step = mc_net_learner(r->m.net))) {
        return complain("cannot compile the training: %s", mc_last_error()), false;
    } else {
        complain_slow(r->m.step);
    }
    if (!r->o.quiet) {
        const mc_training *t = mc_net_training(r->m.net);
        printf("%s: %lld parameters, %s; %s\n", r->o.model, (long long)mc_net_count(r->m.net, "trainable"),
               t->rule, t->loss);
        bool numbers = r->m.numbers;
        printf("%s, %d %s: %lld to learn, %lld to test, in batches of %lld\n", mc_data_text(r->train),
               numbers ? r->m.classes : mc_data_classes(r->train),
               !numbers            ? "classes"
               : r->m.classes == 1 ? "number each"
                                   : "numbers each",
               (long long)mc_data_count(r->train), (long long)mc_data_count(r->held), (long long)t->batch);
        printf("compiled for %s in %.2f s", mc_flag_get("device"), seconds_now() - start);
        printf(r->comm ? "; %d ranks\n" : "\n", mc_comm_size(r->comm));
        if (r->o.shard) {
            int64_t whole;
            const int64_t own = mc_learner_bytes(r->learner, &whole);
            printf("states of the rule: %.1f kB on each rank, of %.1f kB\n", (double)own / 1e3,
                   (double)whole / 1e3);
        }
        printf("\n");
        fflush(stdout);
    }
    return true;
}

/* May a file be put at path (NULL: none is asked for)?  Better told now than after an epoch. */
static bool has_room(const char *path)
{
    const char *slash = path ? strrchr(path, '/') : NULL;
    struct stat there;
    struct text folder = { 0 };
    text_addf(&folder, "%.*s", slash ? (int)(slash - path) + 1 : 1, slash ? path : ".");
    bool good = !path || (stat(path, &there) == 0 && !S_ISREG(there.st_mode)) ||
                access(folder.s, W_OK) == 0 || !complain("cannot write '%s': %s", path, strerror(errno));
    text_free(&folder);
    return good;
}

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return a && b &&
           ((stat(a, &x) == 0 && stat(b, &y) == 0 && S_ISREG(x.st_mode) && x.st_dev == y.st_dev &&
             x.st_ino == y.st_ino) ||
            strcmp(a, b) == 0);
}

/* What is written is not what is read, nor written twice. */
static bool keeps_apart(const struct options *o)
{
    char *data = table_file(o->data);
    const struct {
        const char *option, *path;
    } to[] = { { "--save", o->save }, { "--report", o->report }, { "--curve", o->curve } },
      from[] = { { "the data", data }, { "the model", o->model } };
    bool good = true;
    for (int i = 0; i < COUNT(to) && good; i++) {
        for (int k = 0; k < COUNT(from) && good; k++) {
            good = !same_file(to[i].path, from[k].path) ||
                   !complain("'%s' is %s: it is not replaced; give another name with %s FILE", to[i].path,
                             from[k].option, to[i].option);
        }
        for (int k = 0; k < i && good; k++) {
            good = !same_file(to[i].path, to[k].path) || strcmp(to[i].path, "/dev/null") == 0 ||
                   !complain("%s and %s are both '%s'", to[k].option, to[i].option, to[i].path);
        }
    }
    free(data);
    return good;
}

/* --resume auto */
static bool is_there(const char *path)
{
    struct text old = { 0 };
    text_addf(&old, "%s.old", path);
    const bool there = access(path, F_OK) == 0 || access(old.s, F_OK) == 0;
    text_free(&old);
    return there;
}

static bool set_up(struct run *r)
{
    r->o.resume = r->o.resume && (!r->o.maybe || is_there(r->o.save));
    if (!ranks_first(r)) {
        r->o.anew |= !r->o.resume; /* what may be written is asked by the rank that writes */
    } else if (!has_room(r->o.save) || !has_room(r->o.report) || !has_room(r->o.curve)) {
        return false;
    }
    if (!keeps_apart(&r->o) || (!r->o.resume && !checkpoint_room(&r->o))) {
        return false;
    }
    if (!r->o.resume && !r->o.anew && access(r->o.save, F_OK) == 0) {
        return complain("'%s' already exists: --resume continues from it, --new starts over", r->o.save),
               false;
    }
    if (!model_find(&r->m.text, r->o.model) ||
        !model_make(&r->m, r->o.model, r->o.seed, r->o.lines, r->o.nlines) || !open_data(r) || !compile(r)) {
        return false;
    }
    r->p.best = -1;
    if (r->o.resume && (!checkpoint_load(r) || !checkpoint_room(&r->o))) {
        return false;
    }
    r->kept = r->o.resume;
    return true;
}

static void clean_up(struct run *r)
{
    mc_batches_free(r->batches);
    mc_batches_free(r->test_batches);
    mc_data_free(r->train);
    mc_data_free(r->held);
    mc_function_free(r->speak);
    model_free(&r->m);
    snapshot_free(r->last);
    snapshot_free(r->best);
    free(r->p.history);
}

/* ---- steps ---- */

enum outcome { DONE, STOPPED, FAILED };

/* One batch; the sums of the epoch grow.  False: the call failed, and mc_last_error says why. */
static bool step(struct run *r, const mc_array *x, const mc_array *t)
{
    mc_array *in = model_input(&r->m, x);
    mc_status s = !in          ? mc_last_status()
                  : r->learner ? mc_learner_step(r->learner, in, t)
                               : mc_call(r->m.step, MC_IN(in, t), MC_NONE);
    mc_array_unref(&in);
    r->p.seen += (double)mc_array_dims(t)[0];
    r->p.batch++;
    r->p.step++;
    return s == MC_OK;
}

/* The sums of the epoch: on a GPU this waits for all steps so far. */
static bool look(struct run *r)
{
    double sums[2];
    if (mc_net_sums(r->m.net, sums) < 0) {
        return false;
    }
    r->looked = seconds_now();
    r->p.cost = sums[0];
    r->p.wrong = sums[1];
    return true;
}

static bool begin(struct run *r)
{
    r->began = r->looked = seconds_now();
    mc_batches_start(r->batches, r->p.epoch, r->p.batch);
    bool good = mc_net_set_sums(r->m.net, (const double[]){ r->p.cost, r->p.wrong }) == MC_OK &&
                mc_net_set_rate(r->m.net, mc_net_rate(r->m.net, (double)r->p.epoch)) == MC_OK;
    return good || (complain_library("training"), false);
}

static void next_epoch(struct run *r)
{
    struct progress *p = &r->p;
    p->epoch++;
    p->batch = 0;
    p->cost = p->wrong = p->seen = p->seconds = 0;
}

/* A parameter or the cost is not finite: from the last snapshot the same steps are taken again, each of their
 * results looked at, until it is known where. */
static void explain(struct run *r, const char *ill)
{
    int64_t found = r->p.step;
    const mc_array *x, *t;
    bool good = true;
    complain("%s is not finite in epoch %lld, batch %lld (step %lld)%s", ill, (long long)r->p.epoch + 1,
             (long long)r->p.batch, (long long)r->p.step,
             r->kept ? "; the checkpoint was saved before that" : "");
    if (r->learner) {
        return; /* its steps need all ranks */
    }
    mc_function_free(r->m.step);
    r->m.step = mc_flag_set("mode", "NANGUARD") == MC_OK ? mc_net_learner(r->m.net) : NULL;
    if (!r->m.step || !snapshot_return(r, r->last) || !begin(r)) {
        return;
    }
    while (good && r->p.step <= found) {
        if (mc_batches_next(r->batches, &x, &t) == 1) {
            good = step(r, x, t);
        } else {
            next_epoch(r);
            good = begin(r);
        }
    }
    if (good) {
        complain("the same steps, repeated with every result checked, had only finite results");
    } else {
        complain("it first occurred in epoch %lld, batch %lld (step %lld): %s", (long long)r->p.epoch + 1,
                 (long long)r->p.batch, (long long)r->p.step, mc_last_error());
    }
}

/* ---- checkpoints ---- */

/* False: a parameter is not finite.  A disk that takes no more does not end the run: the next one may go
 * there. */
static bool save(struct run *r)
{
    struct text ill = { 0 };
    double start = seconds_now();
    struct snapshot *s = snapshot_take(r, &ill);
    if (!s) {
        explain(r, ill.s);
        text_free(&ill);
        return false;
    }
    snapshot_free(r->last);
    r->last = s;
    text_free(&ill);
    r->unsaved = ranks_first(r) && !snapshot_save(r, s);
    r->kept = r->kept || !r->unsaved;
    ranks_saved(r);
    r->saved = seconds_now();
    r->saving = r->saved - start;
    r->newer = false;
    if (r->learner) {
        snapshot_free(r->last);
        r->last = NULL;
    }
    return true;
}

/* ---- epochs ---- */

/* Are the sums to be looked at now?  Here after each step; on a GPU, where that makes steps wait, now and
 * then. */
static bool due(const struct run *r)
{
    return strncmp(mc_flag_get("device"), "cpu", 3) == 0 || seconds_now() - r->looked > look_again;
}

/* What all ranks do next: what a signal asks of any of them, or the clock of the first. */
enum { GO_ON, SAVE, STOP };

static int heed(const struct run *r, bool time_to_save)
{
    const int asked = ranks_most(r, stopped ? STOP : time_to_save && ranks_first(r) ? SAVE : GO_ON);
    if (asked == STOP) {
        ranks_calm();
        stopped = stopped ? stopped : SIGTERM;
    }
    return asked;
}

static enum outcome batches(struct run *r)
{
    const mc_array *x, *t;
    int more;
    while ((more = mc_batches_next(r->batches, &x, &t)) == 1) {
        bool last = r->p.batch + 1 == mc_batches_count(r->batches);
        const int asked = heed(r, seconds_now() - r->saved >= (double)r->o.seconds);
        if (asked < 0) {
            return FAILED;
        }
        bool stop_here = asked == STOP && !last, saves = asked >= SAVE && !last;
        if (!step(r, x, t) || ((last || saves || due(r)) && !look(r))) {
            complain_library("training");
            return FAILED;
        }
        if (!isfinite(r->p.cost)) {
            explain(r, "the cost");
            return FAILED;
        }
        show_progress(r, last);
        if (saves && !save(r)) {
            return FAILED;
        }
        if (stop_here) {
            return STOPPED;
        }
    }
    return more == 0 ? DONE : (complain_library("data"), FAILED);
}

static void remember(struct run *r, const struct epoch *e)
{
    struct progress *p = &r->p;
    if (p->nhistory == p->cap) {
        p->cap = 2 * p->cap + 16;
        p->history = must(realloc(p->history, (size_t)p->cap * sizeof *p->history));
    }
    p->history[p->nhistory++] = *e;
    if (p->best < 0 || e->test_error < p->history[p->best].test_error) {
        p->best = p->epoch;
        if (mc_net_training(r->m.net)->patience) {
            snapshot_free(r->best);
            r->best = snapshot_params(r);
        }
    }
}

static enum outcome epoch(struct run *r)
{
    struct progress *p = &r->p;
    enum outcome o = begin(r) ? batches(r) : FAILED;
    struct findings f = { 0 };
    if (o != DONE) {
        return o;
    }
    struct epoch e = { p->cost / p->seen, (r->m.errors ? p->wrong : p->cost) / p->seen, .rate = mc_net_rate(r->m.net, (double)p->epoch),
                       .seconds = p->seconds + seconds_now() - r->began };
    if (!test_divided(r, &f)) {
        return FAILED;
    }
    e.test_loss = f.loss;
    e.test_error = f.error;
    show_epoch(r, &e);
    if (!show_sample(r)) {
        return FAILED;
    }
    remember(r, &e);
    next_epoch(r);
    r->newer = true;
    const int asked = heed(r, seconds_now() - r->saved >= saving_share * r->saving);
    return asked == GO_ON || save(r) ? asked == STOP ? STOPPED : DONE : FAILED;
}

static enum outcome train(struct run *r)
{
    const mc_training *t = mc_net_training(r->m.net);
    bool many = !r->learner && t->epochs * mc_batches_count(r->batches) >=
                                   MANY_STEPS; /* timing the solvers once pays; what it finds is kept */
    enum outcome o = !many || preset("plan", "measure") ? DONE : FAILED;
    r->saved = seconds_now();
    r->last = r->learner ? NULL : snapshot_params(r); /* for explain */
    while (o == DONE && r->p.epoch < t->epochs) {
        if (t->patience && r->p.best >= 0 && r->p.epoch - 1 - r->p.best >= t->patience) {
            printf("no improvement in %lld epochs\n", (long long)t->patience);
            break;
        }
        o = epoch(r);
    }
    return o == DONE && r->newer && !save(r) ? FAILED : o;
}

/* ---- the end ---- */

static bool conclude(struct run *r, const char *extra_html)
{
    struct findings f = { 0 };
    findings_make(&f, &r->m);
    bool good = !r->best || snapshot_put(r, r->best);
    good = good && test_divided(r, &f);
    if (good && !r->o.quiet) {
        show_curve(r);
        (r->m.numbers ? show_fits : show_confusion)(&f, r->train);
        printf("\ntest ");
        show_result(&f, &r->m, r->o.data);
        printf("%s%s%s\n", r->best ? " (of the best epoch)" : "", r->unsaved ? "" : "; saved as ",
               r->unsaved ? "" : r->o.save);
    }
    good = good && (!r->o.curve || curve_write(r));
    good = good && (!r->o.report || report_write(r, &f, extra_html));
    findings_free(&f);
    return good;
}

bool train_floats(void)
{
    return preset("floatX", "float32");
}

int train_and_report(const struct options *o, const char *extra_html)
{
    struct run r = { .o = *o };
    bool good = ranks_open(&r);
    if (good) {
        ranks_hush(&r);
        good = ranks_all(&r, train_floats() && set_up(&r)) && ranks_agree(&r);
        ranks_speak(&r, !good);
    }
    enum outcome end = FAILED;
    const bool began = good; /* all ranks did */
    if (good) {
        listen(&r);
        end = train(&r);
    }
    if (r.unsaved) {
        good = !complain("the last checkpoint was not saved");
    } else if (end == STOPPED) {
        printf("\nstopped in epoch %lld, batch %lld; --resume continues from %s\n", (long long)r.p.epoch + 1,
               (long long)r.p.batch, r.o.save);
    }
    if (end == DONE) {
        good = conclude(&r, extra_html) && good;
    }
    ranks_close(&r, began && (end == FAILED || !good));
    clean_up(&r);
    ranks_wait();
    return good && end == STOPPED ? 130 : !(good && end == DONE);
}

int command_train(int argc, char **argv)
{
    struct options o;
    const int errors = ranks_other() ? dup(STDERR_FILENO)
                                     : -1; /* rank 0 tells what is wrong with the words */
    if (errors >= 0 && !freopen("/dev/null", "w", stderr)) {
        return 1;
    }
    const bool read = options_read(&o, argc, argv);
    if (errors >= 0) {
        fflush(stderr);
        dup2(errors, STDERR_FILENO);
        close(errors);
    }
    int status = !read                    ? 1
                 : elastic_ranks(o.ranks) ? elastic_train(&o, argc, argv)
                                          : train_and_report(&o, NULL);
    options_free(&o);
    return status;
}
