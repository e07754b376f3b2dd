/* mpi.c: ranks that an MPI has started.  libmonochord-mpi.so (mpi_shim.c) is opened at run time: the library
 * itself needs no MPI.
 *
 * Invariant: one communicator of MPI's a process, which ends with the process. */
#include "comm/comm.h"
#include "comm/mpi_table.h"
#include "device/cpu/cpu.h"
#include <dlfcn.h>
#include <stdlib.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const struct mc_mpi_table *table;
static int own_rank, own_size;

/* The shim beside this library, or by its name. */
static void *open_shim(void)
{
    const char *const flag = mc_flag_text(FLAG_comm_mpi);
    static const char name[] = "libmonochord-mpi.so";
    struct mc_str path = { 0 };
    if (strcmp(flag, "auto") != 0) {
        return dlopen(flag, RTLD_NOW | RTLD_GLOBAL);
    }
    const char *file = mc_library_file((void *)(uintptr_t)mc_comm_mpi), *slash = strrchr(file, '/');
    if (slash) {
        mc_str_addf(&path, "%.*s%s", (int)(slash - file) + 1, file, name);
    }
    void *handle = path.s && !path.bad ? dlopen(path.s, RTLD_NOW | RTLD_GLOBAL) : NULL;
    mc_str_free(&path);
    return handle ? handle : dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

static void at_end(void)
{
    table->end();
}

static mc_status failed(const char *what, int code, int late)
{
    char text[256] = "";
    if (code == MC_MPI_LATE) {
        return late < 0 ? mc_fail(MC_EDEVICE, "%s: a rank did not come within %lld s (flag comm.timeout)",
                                  what, (long long)mc_flag_int(FLAG_comm_timeout))
                        : mc_fail(MC_EDEVICE, "%s: rank %d did not come within %lld s (flag comm.timeout)",
                                  what, late, (long long)mc_flag_int(FLAG_comm_timeout));
    }
    table->says(code, text);
    return mc_fail(MC_EDEVICE, "%s: MPI: %s", what, text);
}

/* The lock is held. */
static mc_status begin(void)
{
    void *handle = open_shim();
    const struct mc_mpi_table *t = handle ? dlsym(handle, "mc_mpi_table") : NULL;
    if (!t || t->version != MC_MPI_VERSION) {
        return mc_fail(MC_EDEVICE,
                       "MPI: %s; build Monochord where mpicc is (Debian: libopenmpi-dev openmpi-bin), or "
                       "name the file: flag comm.mpi",
                       t ? "libmonochord-mpi.so is of another version"
                         : "libmonochord-mpi.so cannot be opened");
    }
    table = t;
    const int e = t->start(&own_rank, &own_size);
    if (e) {
        const mc_status s = failed("start", e, -1);
        table = NULL;
        return s;
    }
    atexit(at_end);
    return MC_OK;
}

static mc_status gather(mc_comm *c, const void *x, size_t bytes, void *y)
{
    (void)c;
    const int e = table->gather(x, bytes, y, (double)mc_flag_int(FLAG_comm_timeout));
    return e ? failed("gather", e, -1) : MC_OK;
}

static mc_status exchange(mc_comm *c, const char *x, const size_t *x_at, char *y, const size_t *y_at)
{
    (void)c;
    int late = -1;
    const int e = table->exchange(x, x_at, y, y_at, (double)mc_flag_int(FLAG_comm_timeout), &late);
    return e ? failed("exchange", e, late) : MC_OK;
}

static void leave(mc_comm *c)
{
    mc_free(c);
}

static void end_all(mc_comm *c)
{
    (void)c;
    table->abort();
}

static const struct mc_comm_engine engine = { .name = "mpi", .gather = gather, .exchange = exchange, .close = leave, .abort = end_all };

mc_comm *mc_comm_mpi(void)
{
    pthread_mutex_lock(&lock);
    const mc_status s = table ? MC_OK : begin();
    pthread_mutex_unlock(&lock);
    return s == MC_OK ? mc_comm_make(&engine, own_rank, own_size, NULL) : NULL;
}
