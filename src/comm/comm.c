/* comm.c: what ranks do together, over any engine.
 *
 * Small arrays go to every rank, which reduces them itself: one exchange, with what the rank takes part in
 * before the data. Of large ones each rank reduces its slice and sends it to all. */
#include "comm/comm.h"

enum { SMALL = 16 << 10 };      /* bytes of one rank that go to every rank */

const char *const mc_ranks_ops[RANKS_N] = { "sum", "mean", "max", "min" };

/* ---- communicators ---- */

mc_comm *mc_comm_make(const struct mc_comm_engine *engine, int rank, int size, void *own)
{
    mc_comm *c = mc_calloc(1, sizeof *c, "comm");
    if (c) {
        *c = (mc_comm){ .engine = engine, .refs = 1, .rank = rank, .size = size, .own = own };
    }
    return c;
}

mc_status mc_comm_left(int rank)
{
    return mc_fail(MC_EDEVICE, "rank %d has left: the others cannot go on without it", rank);
}

void mc_comm_free(mc_comm *c)
{
    mc_comm_drop(c);
}

void mc_comm_abort(mc_comm *c)
{
    if (c) {
        c->broken = MC_EDEVICE;
        c->engine->abort(c);
    }
}

int mc_comm_rank(const mc_comm *c)
{
    return c ? c->rank : -1;
}

int mc_comm_size(const mc_comm *c)
{
    return c ? c->size : 0;
}

/* ---- reductions ---- */

#define EACH(T, x, y, n, value)                                                                                             \
    do {                                                                                                                    \
        T *restrict a_ = (T *)(x);                                                                                          \
        const T *restrict b_ = (const T *)(y);                                                                              \
        for (int64_t i_ = 0; i_ < (n); i_++) {                                                                              \
            const T a = a_[i_], b = b_[i_];                                                                                 \
            a_[i_] = (T)(value);                                                                                            \
        }                                                                                                                   \
    } while (0)
/* A NaN stays one, as that of maximum. */
#define WAYS(T, add)                                                                                                        \
    if (how == RANKS_MAX) {                                                                                                \
        EACH(T, x, y, n, a != a || a > b ? a : b);                                                                          \
    } else if (how == RANKS_MIN) {                                                                                         \
        EACH(T, x, y, n, a != a || a < b ? a : b);                                                                          \
    } else {                                                                                                                \
        EACH(T, x, y, n, add);                                                                                              \
    }
#define CASE(D, T, add)                                                                                                     \
    case D:                                                                                                                 \
        WAYS(T, add)                                                                                                        \
        break;

/* x = x with y, n elements of dtype d, which is no half. */
static void fold(enum mc_ranks_op how, mc_dtype d, void *x, const void *y, int64_t n)
{
    switch (d) {
        CASE(MC_BOOL, uint8_t, a | b)
        CASE(MC_INT8, int8_t, (uint8_t)a + (uint8_t)b)
        CASE(MC_INT16, int16_t, (uint16_t)a + (uint16_t)b)
        CASE(MC_INT32, int32_t, (uint32_t)a + (uint32_t)b)
        CASE(MC_INT64, int64_t, (uint64_t)a + (uint64_t)b)
        CASE(MC_UINT8, uint8_t, a + b)
        CASE(MC_UINT16, uint16_t, a + b)
        CASE(MC_UINT32, uint32_t, a + b)
        CASE(MC_UINT64, uint64_t, a + b)
        CASE(MC_FLOAT32, float, a + b)
        CASE(MC_FLOAT64, double, a + b)
    default: break;
    }
}

/* Blocks of n elements, one a rank, with a stride of elements, become their reduction, in the first of
 * them. */
static void fold_tree(enum mc_ranks_op how, mc_dtype d, char *block, int size, int64_t n, int64_t stride)
{
    const int64_t bytes = stride * mc_dtypes[d].size;
    for (int step = 1; step < size; step *= 2) {
        for (int i = 0; i + step < size; i += 2 * step) {
            fold(how, d, block + i * bytes, block + (i + step) * bytes, n);
        }
    }
    for (int64_t i = 0; how == RANKS_MEAN && i < n; i++) {
        if (d == MC_FLOAT64) {
            ((double *)(void *)block)[i] /= size;
        } else {
            ((float *)(void *)block)[i] /= (float)size;
        }
    }
}

/* The same into y; halves are added as floats and rounded once. */
static mc_status fold_blocks(enum mc_ranks_op how, mc_dtype d, char *block, int size, int64_t n,
                             int64_t stride, void *y)
{
    if (d != MC_FLOAT16 && d != MC_BFLOAT16) {
        fold_tree(how, d, block, size, n, stride);
        memcpy(y, block, (size_t)n * mc_dtypes[d].size);
        return MC_OK;
    }
    float *wide = mc_alloc(MC_MAX((size_t)n, 1) * (size_t)size * sizeof *wide, "comm");
    if (!wide) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < size; i++) {
        mc_convert(MC_FLOAT32, wide + i * n, sizeof *wide, d, block + i * stride * mc_dtypes[d].size,
                   mc_dtypes[d].size, n);
    }
    fold_tree(how, MC_FLOAT32, (char *)wide, size, n, n);
    mc_convert(d, y, mc_dtypes[d].size, MC_FLOAT32, wide, sizeof *wide, n);
    mc_free(wide);
    return MC_OK;
}

/* ---- agreement ---- */

static void describe(struct mc_str *out, const struct mc_comm_call *k)
{
    mc_str_addf(out, "%.*s", (int)sizeof k->what, k->what);
    if (k->reduce >= 0) {
        mc_str_addf(out, " (%s)", mc_ranks_ops[k->reduce % RANKS_N]);
    }
    mc_str_addf(out, " of %lld %s", (long long)k->n,
                (unsigned)k->dtype < MC_NDTYPE ? mc_dtypes[k->dtype].name : "?");
    if (k->root >= 0) {
        mc_str_addf(out, " from rank %d", k->root);
    }
}

/* Is what the ranks say, each `bytes` behind the one before, the same? */
static mc_status agree(const mc_comm *c, const char *said, size_t bytes)
{
    const struct mc_comm_call *first = (const void *)said;
    for (int i = 1; i < c->size; i++) {
        const struct mc_comm_call *k = (const void *)(said + (size_t)i * bytes);
        if (memcmp(first, k, sizeof *k) == 0) {
            continue;
        }
        struct mc_str a = { 0 }, b = { 0 };
        describe(&a, first);
        describe(&b, k);
        const bool same = a.s && b.s && strcmp(a.s, b.s) == 0;
        mc_fail(MC_ECHECK, "ranks disagree: rank 0 is at %s, rank %d at %s%s", a.s ? a.s : "?", i,
                b.s ? b.s : "?", same ? " of another program" : "");
        mc_str_free(&a);
        mc_str_free(&b);
        return MC_ECHECK;
    }
    return MC_OK;
}

/* An engine that failed half-way leaves ranks at different places: nothing more is sent. */
static mc_status after(mc_comm *c, mc_status s)
{
    c->broken = s < 0 ? s : c->broken;
    return s;
}

static mc_status may_go(const mc_comm *c, const char *who)
{
    return c->broken ? mc_fail(c->broken, "%s: the ranks have lost each other in an earlier call", who)
                     : MC_OK;
}

static struct mc_comm_call call_of(const char *who, int reduce, mc_dtype d, int root, int64_t n)
{
    struct mc_comm_call k = { .reduce = reduce, .dtype = (int32_t)d, .root = root, .n = n };
    mc_snprintf(k.what, sizeof k.what, "%s", who);
    return k;
}

/* ---- small arrays: all to all ranks ---- */

/* Whole: bytes of each rank, behind what it says, at *data with a stride of *stride bytes.  The memory is
 * the caller's. */
static char *gather_small(mc_comm *c, const struct mc_comm_call *k, const void *x, size_t bytes,
                          char **data, size_t *stride)
{
    const size_t each = sizeof *k + ((bytes + 7) & ~(size_t)7);
    char *all = mc_calloc((size_t)c->size + 1, each, "comm"),
         *mine = all ? all + each * (size_t)c->size : NULL;
    if (!all) {
        return NULL;
    }
    memcpy(mine, k, sizeof *k);
    if (bytes) {
        memcpy(mine + sizeof *k, x, bytes);
    }
    if (after(c, c->engine->gather(c, mine, each, all)) < 0 || agree(c, all, each) < 0) {
        mc_free(all);
        return NULL;
    }
    *data = all + sizeof *k;
    *stride = each;
    return all;
}

/* The calls of all ranks are the same? */
static mc_status meet(mc_comm *c, const struct mc_comm_call *k)
{
    char *data;
    size_t stride;
    char *all = gather_small(c, k, NULL, 0, &data, &stride);
    mc_free(all);
    return all ? MC_OK : mc_last_status();
}

static mc_status reduce_small(mc_comm *c, const struct mc_comm_call *k, enum mc_ranks_op how,
                              const void *x, void *y)
{
    char *data;
    size_t stride;
    const mc_dtype d = (mc_dtype)k->dtype;
    char *all = gather_small(c, k, x, (size_t)k->n * mc_dtypes[d].size, &data, &stride);
    const mc_status s = all ? fold_blocks(how, d, data, c->size, k->n, (int64_t)(stride / mc_dtypes[d].size),
                                          y)
                            : mc_last_status();
    mc_free(all);
    return s;
}

/* ---- large arrays: each rank reduces its slice ---- */

static int64_t slice_at(int64_t n, int64_t slice, int i)
{
    return MC_MIN(n, slice * i);
}

/* Slices of x, `slice` elements each but for the end, to their ranks; reduced into y. */
static mc_status reduce_slice(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, int64_t n,
                              int64_t slice, void *y)
{
    const size_t size = mc_dtypes[d].size;
    const int64_t own = slice_at(n, slice, c->rank + 1) - slice_at(n, slice, c->rank);
    size_t *at = mc_calloc(2 * ((size_t)c->size + 1), sizeof *at, "comm"), *to = at ? at + c->size + 1 : NULL;
    char *from = at ? mc_alloc(MC_MAX((size_t)own, 1) * size * (size_t)c->size, "comm") : NULL;
    mc_status s = from ? MC_OK : MC_EMEMORY;
    for (int i = 0; i <= c->size && s == MC_OK; i++) {
        at[i] = (size_t)slice_at(n, slice, i) * size;
        to[i] = (size_t)own * size * (size_t)i;
    }
    s = s == MC_OK ? after(c, c->engine->exchange(c, x, at, from, to)) : s;
    s = s == MC_OK ? fold_blocks(how, d, from, c->size, own, own, y) : s;
    mc_free(from);
    mc_free(at);
    return s;
}

static mc_status reduce_large(mc_comm *c, enum mc_ranks_op how, mc_dtype d, const void *x, void *y, int64_t n)
{
    const int64_t slice = (n + c->size - 1) / c->size;
    const size_t bytes = (size_t)slice * mc_dtypes[d].size;
    char *mine = mc_calloc((size_t)c->size + 1, bytes, "comm");
    mc_status s = mine ? reduce_slice(c, how, d, x, n, slice, mine) : MC_EMEMORY;
    s = s == MC_OK ? after(c, c->engine->gather(c, mine, bytes, mine + bytes)) : s;
    if (s == MC_OK) {
        memcpy(y, mine + bytes, (size_t)n * mc_dtypes[d].size);
    }
    mc_free(mine);
    return s;
}

/* ---- what ranks do ---- */

mc_status mc_comm_reduce_to(mc_comm *c, const char *who, enum mc_ranks_op how, mc_dtype d, const void *x,
                            void *y, int64_t n)
{
    const struct mc_comm_call k = call_of(who, (int)how, d, -1, n);
    mc_status s = may_go(c, who);
    if (s == MC_OK && (size_t)n * mc_dtypes[d].size <= SMALL) {
        return reduce_small(c, &k, how, x, y);
    }
    s = s == MC_OK ? meet(c, &k) : s;
    return s == MC_OK ? reduce_large(c, how, d, x, y, n) : s;
}

mc_status mc_comm_scatter_to(mc_comm *c, const char *who, enum mc_ranks_op how, mc_dtype d, const void *x,
                             void *y, int64_t n)
{
    const struct mc_comm_call k = call_of(who, (int)how, d, -1, n);
    mc_status s = may_go(c, who);
    s = s == MC_OK ? meet(c, &k) : s;
    return s == MC_OK ? reduce_slice(c, how, d, x, n * c->size, n, y) : s;
}

mc_status mc_comm_gather_to(mc_comm *c, const char *who, mc_dtype d, const void *x, void *y, int64_t n)
{
    const struct mc_comm_call k = call_of(who, -1, d, -1, n);
    mc_status s = may_go(c, who);
    s = s == MC_OK ? meet(c, &k) : s;
    return s == MC_OK ? after(c, c->engine->gather(c, x, (size_t)n * mc_dtypes[d].size, y)) : s;
}

mc_status mc_comm_broadcast_to(mc_comm *c, const char *who, int root, mc_dtype d, void *x, int64_t n)
{
    const struct mc_comm_call k = call_of(who, -1, d, root, n);
    const size_t bytes = (size_t)n * mc_dtypes[d].size;
    mc_status s = may_go(c, who);
    size_t *at = s == MC_OK ? mc_calloc(2 * ((size_t)c->size + 1), sizeof *at, "comm") : NULL,
           *to = at ? at + c->size + 1 : NULL;
    char *copies = at && c->rank == root ? mc_alloc(MC_MAX(bytes, 1) * (size_t)c->size, "comm") : NULL;
    s = s == MC_OK && (!at || (c->rank == root && !copies)) ? MC_EMEMORY : s;
    s = s == MC_OK ? meet(c, &k) : s;
    for (int i = 0; i <= c->size && s == MC_OK; i++) {
        at[i] = copies ? bytes * (size_t)i : 0;
        to[i] = i > root ? bytes : 0;
        if (copies && bytes && i < c->size) {
            memcpy(copies + at[i], x, bytes);
        }
    }
    s = s == MC_OK ? after(c, c->engine->exchange(c, copies, at, x, to)) : s;
    mc_free(copies);
    mc_free(at);
    return s;
}

mc_status mc_comm_meet(mc_comm *c, const char *who, int reduce, mc_dtype d, int root, int64_t n)
{
    const struct mc_comm_call k = call_of(who, reduce, d, root, n);
    const mc_status s = may_go(c, who);
    return s == MC_OK ? meet(c, &k) : s;
}

/* ---- the public ones, for programs ---- */

static mc_status check(const mc_comm *c, const char *who, const void *x, int64_t n, mc_dtype d)
{
    return !c ? mc_fail(MC_EARG, "%s: the communicator is missing", who)
           : n < 0 || (n > 0 && !x)
               ? mc_fail(MC_EARG, "%s: %s", who, n < 0 ? "n is negative" : "x is missing")
           : (unsigned)d >= (unsigned)MC_NDTYPE ? mc_fail(MC_EARG, "%s: %d is no dtype", who, (int)d)
                                                : MC_OK;
}

mc_status mc_comm_reduce(mc_comm *c, const char *op, mc_dtype d, void *x, int64_t n)
{
    int how = 0;
    mc_status s = check(c, "comm_reduce", x, n, d);
    while (s == MC_OK && how < RANKS_N && strcmp(op ? op : "", mc_ranks_ops[how]) != 0) {
        how++;
    }
    s = s == MC_OK && how == RANKS_N
            ? mc_fail(MC_EARG, "comm_reduce: '%s' is none of sum, mean, max, min", op ? op : "")
            : s;
    s = s == MC_OK && how == RANKS_MEAN && !mc_is_float(d)
            ? mc_fail(MC_ETYPE, "comm_reduce: mean of %s: only of floats", mc_dtypes[d].name)
            : s;
    return s == MC_OK ? mc_comm_reduce_to(c, "comm_reduce", (enum mc_ranks_op)how, d, x, x, n) : s;
}

mc_status mc_comm_broadcast(mc_comm *c, int root, mc_dtype d, void *x, int64_t n)
{
    mc_status s = check(c, "comm_broadcast", x, n, d);
    s = s == MC_OK && (root < 0 || root >= c->size)
            ? mc_fail(MC_EARG, "comm_broadcast: there is no rank %d of %d", root, c->size)
            : s;
    return s == MC_OK ? mc_comm_broadcast_to(c, "comm_broadcast", root, d, x, n) : s;
}

mc_comm *mc_comm_open(const char *engine)
{
    const char *const name = engine ? engine : "local";
    mc_comm *one = NULL;
    if (strcmp(name, "mpi") == 0) {
        return mc_comm_mpi();
    }
    if (strcmp(name, "tcp") == 0) {
        return mc_comm_tcp();
    }
    if (strcmp(name, "local") != 0) {
        mc_fail(MC_EARG, "comm_open: '%s' is no engine: local, mpi, tcp", name);
        return NULL;
    }
    return mc_comm_local(1, &one) == MC_OK ? one : NULL;
}
