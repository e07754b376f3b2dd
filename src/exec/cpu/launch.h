/* launch.h: a kernel at one shape, on the processor: its loops, its operands' strides, how it is given to
 * threads. */
#ifndef MC_LAUNCH_H
#define MC_LAUNCH_H

#include "device/cpu/cpu.h"
#include "exec/function.h"

/* A kernel at one shape. */
struct mc_launch {
    struct mc_exec exec;
    bool stream;                /* results are larger than the caches: written past them */
    mc_kernel_fn *fn, *join;
    int nop, nouter;
    int *value;                 /* by operand: value id; -1: an index */
    int64_t *s;                 /* 3 strides an operand, elements */
    int64_t n[4];
    int64_t outer[MC_MAX_RANK]; /* sizes of loops above the kernel's own */
    int64_t *step;              /* nouter strides an operand, bytes (positions for an index) */
    int64_t outer_total;
    enum { SPLIT_NOT, SPLIT_OUTER, SPLIT_1, SPLIT_0, SPLIT_FOLD, SPLIT_COLUMN_SUMS } split;
    int64_t units, grain;       /* of the loop that is split */
    int64_t chunk;              /* SPLIT_FOLD: elements a chunk; SPLIT_COLUMN_SUMS: rows */
    size_t column_sums;               /* bytes of a chunk's column sums; 0: there are none */
    int threads;
    /* by operand: where in the scratch it is made contiguous first; -1: it is not; NULL: none is */
    int64_t *dense;
    size_t copies;              /* bytes of those copies */
    size_t scratch;             /* bytes a thread: row buffers; or for all: accumulators */
    double bytes;
};
struct mc_running {             /* one kernel step while it runs */
    const struct mc_step *st;
    const struct mc_launch *l;
    const struct mc_slot *slot;
    char *const *base;          /* by operand: where it starts */
    char *scratch, *column_sums;
    bool stream;
    int axis[5];                /* of a convolution's result by meaning; -1: not there */
    int64_t err[4];             /* what kernels tell (kernel.h) */
};
int64_t mc_launch_stride(const struct mc_slot *slot, const struct mc_koperand *o, int v, bool dense, int a);
/* *exec stays NULL if the kernel has too few loops for the axes of this shape. */
mc_status mc_launch_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec);
/* knows its operands, not its loops; NULL: error */
struct mc_launch *mc_launch_new(const struct mc_function *f, int step);
void mc_launch_free(struct mc_launch *l);
/* of a kernel on any thread, to the step */
void mc_running_tell(struct mc_running *r, const int64_t *err);
mc_status mc_running_end(struct mc_function *f, const struct mc_shape_plan *p, int step,
                         const struct mc_running *r);
void mc_launch_tile(void *arg, int64_t batch, int64_t i, int64_t j, int64_t m, int64_t n, void *c,
                    int64_t row_stride);
/* which operands need a copy */
mc_status mc_dense_plan(const struct mc_function *f, const struct mc_shape_plan *p, int step,
                        struct mc_launch *l);
mc_status mc_dense_copy(const struct mc_slot *from, char *src, char *dst);
mc_status mc_bases(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_launch *l,
                   char *scratch, char **base);
/* compile_kernels.c: a backend whose kernels are C */
mc_status mc_compile_kernels(struct mc_code_unit *u);
void mc_drop_kernels(struct mc_code_unit *u);
/* describe.c */
void mc_cpu_describe(struct mc_str *out);
/* split.c */
void mc_launch_split(const struct mc_function *f, const struct mc_step *st, struct mc_launch *l,
                     double elements);
bool mc_launch_streams(const struct mc_shape_plan *p, const struct mc_step *st, const struct mc_launch *l);
/* column_sums.c: sums that ride along with a row kernel */
void mc_column_sums_plan(const struct mc_step *st, const struct mc_shape_plan *p, struct mc_launch *l);
/* zeros to add to, in place of results */
void mc_column_sums_bases(const struct mc_running *r, int64_t chunk, char **base);
void mc_column_sums_join(const struct mc_running *r, char *const *base);

#endif
