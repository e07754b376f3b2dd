/* monochord_train_ranks.c: a model that many ranks train: --ranks mpi, --devices cuda0,cuda1, --parts N.
 *
 * Rank 0 speaks, tests, and writes checkpoints and the report; all ranks read the same data and the same
 * checkpoint, and make the same steps.
 *
 * Invariant: what a rank does next depends on numbers that all ranks have, so that none waits for the others
 * in vain. A rank with an error of its own ends all. */
#include "train.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

/* seconds for an orderly end after a signal: mpirun kills soon after it */
static const double patience = 0.4;
static char last_words[512];

/* In a signal's handler: the others do not answer any more. */
static void give_up(int sig)
{
    (void)sig;
    if (write(STDERR_FILENO, last_words, strlen(last_words)) < 0) {
        _exit(1);
    }
    _exit(143);
}

bool ranks_other(void)
{
    static const char *const names[] = { "OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "RANK" };
    bool other = false;
    for (int i = 0; i < COUNT(names); i++) {
        const char *rank = getenv(names[i]);
        other |= rank && atoi(rank) > 0;
    }
    return other;
}

bool ranks_first(const struct run *r)
{
    return mc_comm_rank(r->comm) <= 0;
}

static bool open_ranks(struct run *r)
{
    if (!ranks_devices(&r->o)) {
        return false;
    }
    if (!r->o.ranks) {
        return true;
    }
    r->comm = mc_comm_open(r->o.ranks);
    if (!r->comm) {
        return complain("--ranks %s: %s", r->o.ranks, mc_last_error()), false;
    }
    return true;
}

/* The GPU of each rank.  What is wrong with one of them all ranks say, and one is heard. */
static bool open_gpu(struct run *r)
{
    if (!r->comm || !r->o.devices) {
        return true;
    }
    ranks_hush(r);
    mc_comm *gpu = mc_comm_gpu(r->comm, mc_flag_get("device"));
    const bool good = gpu || !complain("--devices %s: %s", r->o.devices, mc_last_error());
    ranks_speak(r, !good);
    if (good) {
        mc_comm_free(r->comm);
        r->comm = gpu;
    }
    return good;
}

bool ranks_open(struct run *r)
{
    if (!open_ranks(r) || !open_gpu(r)) {
        return false;
    }
    if (!ranks_first(r)) {
        r->o.quiet = true;
        r->o.report = r->o.curve = NULL;
    }
    const struct sigaction a = { .sa_handler = give_up };
    return !r->comm || sigaction(SIGALRM, &a, NULL) == 0;
}

void ranks_signal(const struct run *r)
{
    const struct itimerval soon = { .it_value = { 0, (suseconds_t)(patience * 1e6) } };
    if (r->comm && mc_comm_size(r->comm) > 1) {
        setitimer(ITIMER_REAL, &soon, NULL);
    }
}

void ranks_calm(void)
{
    const struct itimerval never = { { 0, 0 }, { 0, 0 } };
    setitimer(ITIMER_REAL, &never, NULL);
}

void ranks_saved(const struct run *r)
{
    if (r->comm) {
        snprintf(last_words, sizeof last_words,
                 "monochord: rank %d was told to end, and the others do not answer; %s%s\n",
                 mc_comm_rank(r->comm), r->kept ? "--resume continues from " : "there is no checkpoint yet",
                 r->kept ? r->o.save : "");
    }
}

/* x of all ranks, reduced; false: they have lost each other, which is said. */
static bool together(const struct run *r, const char *how, double *x)
{
    return !r->comm || mc_comm_reduce(r->comm, how, MC_FLOAT64, x, 1) == MC_OK ||
           !complain("training: %s", mc_last_error());
}

bool ranks_all(const struct run *r, bool good)
{
    double all = good;
    return together(r, "min", &all) && all > 0;
}

int ranks_most(const struct run *r, int n)
{
    double most = n;
    return together(r, "max", &most) ? (int)most : -1;
}

bool ranks_strict(void)
{
    return strcmp(mc_flag_get("deterministic"), "strict") == 0;
}

/* What a run is made from and where it goes on, a line a thing. */
static void describe(const struct run *r, struct text *t)
{
    const char *s = r->m.text.s;
    const struct progress *p = &r->p;
    text_addf(t, "program monochord train\n");
    for (size_t n; *s; s += n + (s[n] == '\n')) {
        n = strcspn(s, "\n");
        text_addf(t, "model line '%.*s'\n", (int)n, s);
    }
    text_addf(t, "--data %s, %lld examples to learn, %lld to test\n--seed %ld\n", r->o.data,
              (long long)mc_data_count(r->train), (long long)mc_data_count(r->held), r->o.seed);
    text_addf(t, "epoch %lld, batch %lld, step %lld, cost %.17g of the checkpoint\n", (long long)p->epoch,
              (long long)p->batch, (long long)p->step, p->cost);
}

bool ranks_agree(struct run *r)
{
    struct text t = { 0 };
    if (!r->learner) {
        return true;
    }
    describe(r, &t);
    const bool good = mc_learner_agree(r->learner, t.s) == MC_OK || !complain("%s", mc_last_error());
    text_free(&t);
    return good;
}

bool ranks_compile(struct run *r)
{
    const int64_t batch = mc_net_training(r->m.net)->batch;
    r->o.parts = r->o.parts || !ranks_strict() ? r->o.parts : batch < STRICT_PARTS ? batch : STRICT_PARTS;
    r->learner = (r->o.shard ? mc_learner_sharded : mc_learner_new)(r->m.net, r->comm, batch, r->o.parts);
    return r->learner || !complain("cannot compile the training: %s", mc_last_error());
}

/* One mistake in the words of the command line would be told by each rank. */
void ranks_hush(struct run *r)
{
    FILE *kept = r->comm && mc_comm_size(r->comm) > 1 ? tmpfile() : NULL;
    if (kept) {
        fflush(stderr);
        r->errors = dup(STDERR_FILENO);
        dup2(fileno(kept), STDERR_FILENO);
        fclose(kept);
    }
}

void ranks_speak(struct run *r, bool tell)
{
    char part[1024];
    if (!r->errors) {
        return;
    }
    fflush(stderr);
    const bool said = lseek(STDERR_FILENO, 0, SEEK_CUR) > 0;
    const int size = mc_comm_size(r->comm), rank = mc_comm_rank(r->comm);
    double first = said ? rank : size;
    const bool all = mc_comm_reduce(r->comm, "min", MC_FLOAT64, &first, 1) == MC_OK;
    lseek(STDERR_FILENO, 0, SEEK_SET);
    for (ssize_t n;
         (tell || said) && (!all || first == rank) && (n = read(STDERR_FILENO, part, sizeof part)) > 0;) {
        if (write(r->errors, part, (size_t)n) < n) {
            break;
        }
    }
    dup2(r->errors, STDERR_FILENO);
    close(r->errors);
    r->errors = 0;
}

void ranks_close(struct run *r, bool alone)
{
    if (r->comm && alone) {
        fflush(NULL);
        mc_comm_abort(r->comm);
    }
    mc_learner_free(r->learner);
    mc_comm_free(r->comm);
}
