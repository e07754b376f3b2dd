/* mpi_table.h: what libmonochord-mpi.so gives the library, so that only that file is linked with an MPI.
 *
 * Invariant: a function returns 0, or a code that says() explains; no call waits longer than its seconds. */
#ifndef MC_MPI_TABLE_H
#define MC_MPI_TABLE_H

#include <stddef.h>

enum { MC_MPI_VERSION = 1, MC_MPI_LATE = -1 };
struct mc_mpi_table {
    int version;
    int (*start)(int *rank, int *size);
    void (*end)(void);
    void (*abort)(void);
    int (*gather)(const void *x, size_t bytes, void *y, double seconds);
    /* late: the first rank that nothing came from, where the result is MC_MPI_LATE */
    int (*exchange)(const char *x, const size_t *x_at, char *y, const size_t *y_at, double seconds,
         int *late);
    void (*says)(int code, char text[256]);
};

#endif
