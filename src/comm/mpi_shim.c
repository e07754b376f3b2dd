/* mpi_shim.c: libmonochord-mpi.so: the engine's functions by the MPI that this file was compiled with.
 *
 * Messages have at most PIECE bytes, as MPI counts in ints. A rank that waits looks at its requests often at
 * first, then sleeps between looks: more ranks than processors is common where a program is tried out. */
#include "comm/mpi_table.h"
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { TAG = 77, PIECE = 1 << 30, EAGER = 2000 };
static MPI_Comm world = MPI_COMM_NULL;
static int ours, ranks, me; /* ours: this file has started MPI */

__attribute__((visibility("default"))) extern const struct mc_mpi_table mc_mpi_table;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int start(int *rank, int *size)
{
    int began = 0, e = MPI_Initialized(&began), level;
    if (!e && !began) {
        e = MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &level);
        ours = !e;
    }
    e = e ? e : MPI_Comm_dup(MPI_COMM_WORLD, &world);
    e = e ? e : MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
    e = e ? e : MPI_Comm_rank(world, &me);
    e = e ? e : MPI_Comm_size(world, &ranks);
    *rank = me;
    *size = ranks;
    return e;
}

static void end(void)
{
    int over = 1;
    if (world != MPI_COMM_NULL) {
        MPI_Comm_free(&world);
    }
    if (ours && MPI_Finalized(&over) == MPI_SUCCESS && !over) {
        MPI_Finalize();
    }
}

static void end_all(void)
{
    MPI_Abort(world, 1);
}

/* Waits for n requests. */
static int await(int n, MPI_Request *q, double seconds)
{
    const double until = now() + seconds;
    for (int looks = 0, done = 0;; looks++) {
        const int e = MPI_Testall(n, q, &done, MPI_STATUSES_IGNORE);
        if (e || done) {
            return e;
        }
        if (looks > EAGER) {
            nanosleep(&(struct timespec){ 0, 20000 }, NULL);
            if (now() > until) {
                return MC_MPI_LATE;
            }
        }
    }
}

static int gather(const void *x, size_t bytes, void *y, double seconds)
{
    for (size_t at = 0; at < bytes || at == 0; at += PIECE) {
        /* pieces of a block lie apart in y: a type with the block's extent */
        const int n = (int)(bytes - at < PIECE ? bytes - at : PIECE);
        MPI_Datatype piece = MPI_DATATYPE_NULL;
        MPI_Request q;
        int e = MPI_Type_create_resized(MPI_BYTE, 0, 1, &piece);
        if (!e && bytes > PIECE) {
            MPI_Datatype run = MPI_DATATYPE_NULL;
            MPI_Type_free(&piece);
            e = MPI_Type_contiguous(n, MPI_BYTE, &run);
            e = e ? e : MPI_Type_create_resized(run, 0, (MPI_Aint)bytes, &piece);
            MPI_Type_free(&run);
        }
        e = e ? e : MPI_Type_commit(&piece);
        e = e ? e
              : MPI_Iallgather((const char *)x + at, n, MPI_BYTE, (char *)y + at, bytes > PIECE ? 1 : n,
                               piece, world, &q);
        e = e ? e : await(1, &q, seconds);
        if (piece != MPI_DATATYPE_NULL) {
            MPI_Type_free(&piece);
        }
        if (e || bytes == 0) {
            return e;
        }
    }
    return 0;
}

/* The first rank whose requests are not done: receives come first in q. */
static int exchange(const char *x, const size_t *x_at, char *y, const size_t *y_at, double seconds, int *late)
{
    size_t most = 0;
    for (int i = 0; i < ranks; i++) {
        most = x_at[i + 1] - x_at[i] > most ? x_at[i + 1] - x_at[i] : most;
        most = y_at[i + 1] - y_at[i] > most ? y_at[i + 1] - y_at[i] : most;
    }
    MPI_Request *q = malloc(2 * (size_t)ranks * sizeof *q);
    int e = q ? 0 : MPI_ERR_NO_MEM;
    for (size_t at = 0; at < most && !e; at += PIECE) {
        for (int i = 0; i < ranks; i++) {
            const size_t in = y_at[i + 1] - y_at[i], out = x_at[i + 1] - x_at[i];
            q[i] = q[ranks + i] = MPI_REQUEST_NULL;
            if (i == me) {
                continue;
            }
            if (at < in && !e) {
                e = MPI_Irecv(y + y_at[i] + at, (int)(in - at < PIECE ? in - at : PIECE), MPI_BYTE, i, TAG,
                              world, &q[i]);
            }
            if (at < out && !e) {
                e = MPI_Isend(x + x_at[i] + at, (int)(out - at < PIECE ? out - at : PIECE), MPI_BYTE, i, TAG,
                              world, &q[ranks + i]);
            }
        }
        e = e ? e : await(2 * ranks, q, seconds);
        for (int i = 0; e == MC_MPI_LATE && i < ranks; i++) {
            *late = *late < 0 && q[i] != MPI_REQUEST_NULL ? i : *late;
        }
    }
    if (!e && y_at[me + 1] > y_at[me]) {
        memmove(y + y_at[me], x + x_at[me], y_at[me + 1] - y_at[me]);
    }
    free(q);
    return e;
}

static void says(int code, char text[256])
{
    char whole[MPI_MAX_ERROR_STRING] = "";
    int n = 0;
    if (MPI_Error_string(code, whole, &n) != MPI_SUCCESS) {
        n = 0;
    }
    n = n < 255 ? n : 255;
    memcpy(text, whole, (size_t)n);
    text[n] = '\0';
}

const struct mc_mpi_table mc_mpi_table = { MC_MPI_VERSION, start, end, end_all, gather, exchange, says };
