/* data_batches.c: batches of an epoch, each prepared by a thread while the caller uses the previous one.
 *
 * Invariant: the contents of a batch depend only on the seed, its epoch and its number, not on the timing of
 * the thread. Slots are a ring: the thread fills slot `made`, the caller holds slot `taken` - 1, and made -
 * taken < SLOTS.  Resident data (data_resident.c) need neither slots nor thread. */
#include "nn/data.h"
#include <pthread.h>
#include <signal.h>

enum { SLOTS = 3 };
enum { ORDER = 1, CHANGE = 2 }; /* streams of random numbers: the order of an epoch; augmentation */

struct slot {
    mc_array *x, *t, *part_x, *part_t; /* a whole batch; a view of it for a shorter one */
};

struct mc_batches {
    const mc_data *d;
    int64_t size, count;
    bool shuffle;
    uint64_t seed;
    struct mc_augment augment;
    int32_t *order;      /* of the epoch: the numbers of its examples in order */
    float *scratch;      /* one example before augmentation */
    struct slot slot[SLOTS];
    struct mc_resident *resident; /* used instead of slots and thread; or NULL */
    mc_status bad;       /* the status of starting an epoch with it; mc_batches_next returns it */
    int64_t epoch, made, taken, end;
    bool threaded, quit, busy;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work, ready; /* a slot is free, for the thread; a batch is made, for the caller */
};

/* ---- batches ---- */

static int64_t batch_size(const mc_batches *b, int64_t batch)
{
    int64_t left = mc_data_count(b->d) - batch * b->size;
    return left < b->size ? left : b->size;
}

/* The key that, with the number of an example, determines its augmentation in this epoch. */
static uint64_t change_key(const mc_batches *b)
{
    return mc_augment_random_key(b->seed + CHANGE, (uint64_t)b->epoch);
}

static void fill(mc_batches *b, int64_t batch)
{
    struct slot *s = &b->slot[batch % SLOTS];
    float *x = mc_array_data(s->x);
    const mc_array *all_x, *all_t;
    mc_data_arrays(b->d, &all_x, &all_t);
    const char *answers = mc_array_data(all_t);
    const size_t answer = (size_t)(mc_array_size(s->t) / b->size) * mc_dtype_size(mc_array_dtype(all_t));
    char *t = mc_array_data(s->t);
    int64_t n = batch_size(b, batch), size = mc_array_size(s->x) / b->size;
    uint64_t key = change_key(b);
    for (int64_t k = 0; k < n; k++) {
        int64_t i = b->order[batch * b->size + k];
        if (mc_augment_changes(&b->augment)) {
            mc_data_example(b->d, i, b->scratch);
            mc_augment_example(&b->augment,
                               (struct mc_augment_random){ mc_augment_random_mix(key + (uint64_t)i) },
                               b->scratch, x + k * size);
        } else {
            mc_data_example(b->d, i, x + k * size);
        }
        memcpy(t + (size_t)k * answer, answers + (size_t)i * answer, answer);
    }
}

static void *work(void *arg)
{
    mc_batches *b = arg;
    pthread_mutex_lock(&b->lock);
    while (!b->quit) {
        if (b->made == b->end || b->made - b->taken >= SLOTS - 1) { /* the caller holds one */
            pthread_cond_wait(&b->work, &b->lock);
            continue;
        }
        int64_t batch = b->made;
        b->busy = true;
        pthread_mutex_unlock(&b->lock);
        fill(b, batch);
        pthread_mutex_lock(&b->lock);
        b->busy = false;
        b->made++;
        pthread_cond_signal(&b->ready);
    }
    pthread_mutex_unlock(&b->lock);
    return NULL;
}

/* Signals go to the program's own threads. */
static bool start_thread(mc_batches *b)
{
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    const bool started = pthread_create(&b->thread, NULL, work, b) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

/* Knuth's shuffle of 0 to n - 1. */
static void put_order(mc_batches *b)
{
    struct mc_augment_random dice = mc_augment_random_of(b->seed + ORDER, (uint64_t)b->epoch, 0);
    int64_t n = mc_data_count(b->d);
    for (int64_t i = 0; i < n; i++) {
        int64_t k = b->shuffle ? mc_augment_random_below(&dice, i + 1) : i;
        b->order[i] = b->order[k];
        b->order[k] = (int32_t)i;
    }
}

void mc_batches_start(mc_batches *b, int64_t epoch, int64_t batch)
{
    if (!b) {
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->end = b->made; /* the thread finishes its batch and waits */
    while (b->busy) {
        b->end = b->made + 1;
        pthread_cond_wait(&b->ready, &b->lock);
    }
    b->epoch = epoch;
    put_order(b);
    b->made = b->taken = batch < b->count ? batch : b->count;
    b->end = b->count;
    b->bad = b->resident ? mc_resident_start(b->resident, b->order, mc_data_count(b->d), change_key(b))
                         : MC_OK;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
}

static int64_t await(mc_batches *b)
{
    pthread_mutex_lock(&b->lock);
    int64_t batch = b->taken;
    if (batch < b->end) {
        while (b->threaded && b->made == batch) {
            pthread_cond_wait(&b->ready, &b->lock);
        }
        b->made = b->threaded ? b->made : batch + 1;
        b->taken++;
        pthread_cond_signal(&b->work);
    } else {
        batch = -1;
    }
    pthread_mutex_unlock(&b->lock);
    return batch;
}

static mc_status slice_into(mc_array **part, const mc_array *whole, int64_t n)
{
    mc_array_unref(part);
    *part = mc_array_slice(whole, 0, 0, n, 1);
    return *part ? MC_OK : mc_last_status();
}

int mc_batches_next(mc_batches *b, const mc_array **x, const mc_array **t)
{
    if (mc_nn_null(b, "batches")) {
        return 0;
    }
    int64_t batch = await(b);
    if (batch < 0) {
        return 0;
    }
    struct slot *s = &b->slot[batch % SLOTS];
    int64_t n = batch_size(b, batch);
    if (b->resident) {
        mc_status bad = b->bad < 0 ? b->bad
                                   : mc_resident_batch(b->resident, batch * b->size, n, b->size, x, t);
        return bad < 0 ? bad : 1;
    }
    if (!b->threaded) {
        fill(b, batch);
    }
    if (n < b->size) {
        mc_status bad = slice_into(&s->part_x, s->x, n);
        bad = bad < 0 ? bad : slice_into(&s->part_t, s->t, n);
        if (bad < 0) {
            return bad;
        }
    }
    *x = n < b->size ? s->part_x : s->x;
    *t = n < b->size ? s->part_t : s->t;
    return 1;
}

int64_t mc_batches_example(const mc_batches *b, int64_t i)
{
    return b ? b->order[(b->taken - 1) * b->size + i] : -1;
}
int64_t mc_batches_count(const mc_batches *b)
{
    return b ? b->count : 0;
}
const int64_t *mc_batches_dims(const mc_batches *b)
{
    return b ? b->augment.dims : NULL;
}

/* ---- life ---- */

static mc_status set_up(mc_batches *b)
{
    int rank = mc_data_rank(b->d);
    int64_t dims[MC_MAX_RANK] = { b->size }, answers[MC_MAX_RANK], whole = 1;
    const mc_array *x, *t;
    mc_data_arrays(b->d, &x, &t);
    memcpy(dims + 1, b->augment.dims, (size_t)rank * sizeof *dims);
    memcpy(answers, mc_array_dims(t), (size_t)mc_array_rank(t) * sizeof *answers);
    answers[0] = b->size;
    for (int k = 0; k < rank; k++) {
        whole *= mc_data_dims(b->d)[k];
    }
    b->order = mc_calloc((size_t)mc_data_count(b->d), sizeof *b->order, "data");
    b->scratch = mc_alloc((size_t)whole * sizeof *b->scratch, "data");
    mc_status s = b->order && b->scratch ? MC_OK : MC_EMEMORY;
    for (int i = 0; i < SLOTS && s == MC_OK && !b->resident; i++) {
        b->slot[i].x = mc_array_new(MC_FLOAT32, rank + 1, dims);
        b->slot[i].t = b->slot[i].x ? mc_array_new(mc_array_dtype(t), mc_array_rank(t), answers) : NULL;
        s = b->slot[i].t ? MC_OK : mc_last_status();
    }
    return s;
}

mc_batches *mc_batches_new(const mc_data *d, const mc_batch_spec *spec)
{
    if (mc_nn_null(d, "data")) {
        return NULL;
    }
    if (mc_nn_null(spec, "spec of batches")) {
        return NULL;
    }
    int64_t n = mc_data_count(d);
    mc_batches *b = mc_calloc(1, sizeof *b, "data");
    if (!b) {
        return NULL;
    }
    b->d = d;
    b->size = spec->size < n ? spec->size : n;
    b->shuffle = spec->shuffle != 0;
    b->seed = spec->seed;
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, NULL);
    pthread_cond_init(&b->ready, NULL);
    mc_status s = spec->size < 1
                      ? mc_fail(MC_EARG, "the batch size must be at least 1, not %lld", (long long)spec->size)
                  : n > INT32_MAX ? mc_fail(MC_EUNSUPPORTED, "%lld examples are more than 2^31", (long long)n)
                                  : mc_augment_make(spec->augment, b->shuffle, mc_data_rank(d),
                                                    mc_data_dims(d), &b->augment);
    if (s == MC_OK && mc_data_places(d) > 1 && mc_augment_changes(&b->augment)) {
        s = mc_fail(MC_EUNSUPPORTED, "examples whose places have classes cannot be augmented: their classes "
                                     "would have to move with them");
    }
    if (s == MC_OK && spec->resident && mc_resident_fits(d, &b->augment)) {
        b->resident = mc_resident_new(d, &b->augment);
        s = b->resident ? s : mc_last_status();
    }
    s = s < 0 ? s : set_up(b);
    if (s < 0) {
        mc_batches_free(b);
        return NULL;
    }
    b->count = (n + b->size - 1) / b->size;
    b->threaded = !b->resident && start_thread(b); /* otherwise mc_batches_next does it */
    mc_batches_start(b, 0, 0);
    return b;
}

void mc_batches_free(mc_batches *b)
{
    if (!b) {
        return;
    }
    pthread_mutex_lock(&b->lock);
    b->quit = true;
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
    if (b->threaded) {
        pthread_join(b->thread, NULL);
    }
    pthread_cond_destroy(&b->ready);
    pthread_cond_destroy(&b->work);
    pthread_mutex_destroy(&b->lock);
    for (int i = 0; i < SLOTS; i++) {
        mc_array_unref(&b->slot[i].x);
        mc_array_unref(&b->slot[i].t);
        mc_array_unref(&b->slot[i].part_x);
        mc_array_unref(&b->slot[i].part_t);
    }
    mc_resident_free(b->resident);
    mc_free(b->order);
    mc_free(b->scratch);
    mc_free(b);
}
