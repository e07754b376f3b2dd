/* solver.h: what the solvers of convolutions share.
 *
 * Invariant: except for oneDNN, a result depends on the problem and the solver, never on the number of
 * threads. */
#ifndef MC_CONV_SOLVER_H
#define MC_CONV_SOLVER_H

#include "heavy/conv/conv.h"
#include "device/cpu/cpu.h"
#include "value/value.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_conv_solvers[];
extern const struct mc_solver mc_conv_one, mc_conv_one_next, mc_conv_fft, mc_conv_winograd, mc_conv_winograd4,
    mc_conv_direct,
    mc_conv_depth, mc_conv_planes, mc_conv_rows, mc_conv_channels, mc_conv_grouped, mc_conv_col2im,
    mc_conv_implicit,
    mc_conv_im2col,
    mc_conv_exchange, mc_conv_exchange_full, mc_conv_relayout,
    mc_conv_onednn, mc_conv_onednn_winograd, mc_conv_portable, mc_conv_portable_col2im,
    mc_conv_portable_outer, mc_conv_reference;

/* Bits of mc_conv_problem.inner: wrappers that must not wrap again, so that planning ends. */
enum { INNER_EXCHANGE = 1, INNER_RELAYOUT = 2, INNER_SPACE_TO_DEPTH = 4 };

static inline const struct mc_conv_problem *conv(const struct mc_problem *p)
{
    return (const struct mc_conv_problem *)(const void *)p;
}

/* ---- problem.c ---- */
void mc_conv_key(const struct mc_problem *p, struct mc_str *out);
struct mc_plan *mc_conv_plan_in(const struct mc_family *family, const struct mc_conv_problem *asked,
                                const struct mc_plan_options *o);

/* ---- operands.c ---- */
void mc_conv_extents(const struct mc_conv_problem *p, struct mc_extent e[5]);   /* x, w, y, c0, bias */
mc_status mc_conv_compare(const struct mc_conv_problem *p, const struct mc_plan *plan, const char *got,
                          const char *want);
/* these and the next are functions of the family (plan.h) */
mc_status mc_conv_operands(const struct mc_problem *p, void *operand[8]);
void mc_conv_discard(const struct mc_problem *p, void *operand[8]);
double mc_conv_sample(const struct mc_problem *p, double seconds, struct mc_problem *small);
size_t mc_conv_stays(const struct mc_problem *p, int *operand);
mc_status mc_conv_verify(const struct mc_problem *p, const struct mc_plan *plan);

/* ---- exchange.c: the same sums as another problem ---- */
struct mc_conv_problem mc_conv_taps_as_positions(const struct mc_conv_problem *p);
struct mc_conv_problem mc_conv_taps_reversed(const struct mc_conv_problem *p);
enum { EXCHANGE_POSITIONS, EXCHANGE_REVERSED };
extern const int mc_conv_exchange_role[2][3];   /* the role in the problem of the child's x, w, y */
/* bytes from the problem's w to the first element of the child's y */
int64_t mc_conv_exchange_shift(const struct mc_conv_problem *p, int roles);
const char *mc_conv_no_positions(const struct mc_conv_problem *p);     /* the reason for refusing, or NULL */
const char *mc_conv_no_reversed(const struct mc_conv_problem *p);

/* ---- algo_flag.c ---- */
const char *mc_conv_forced(const struct mc_problem *p, int64_t *mode);
size_t mc_conv_words(const char **names, size_t capacity);      /* Theano's words; returns their number */
/* p's algo, or the flag of its direction; "auto" inside wrappers */
const char *mc_conv_asked(const struct mc_conv_problem *p);
bool mc_conv_chooses_once(const char *algo);
/* the same text; static if it is a known word or solver */
const char *mc_conv_lasting(const char *algo);

/* ---- run.c: one call of a plan ---- */
struct mc_conv_run {
    const struct mc_conv_problem *p;
    char *at[3];                /* x, w, y; only the result is written */
    const char *c0;             /* NULL when beta is 0 */
    char *result;               /* at[mc_conv_result(p)] */
    mc_conv_epilogue *epilogue; /* NULL: none */
    void *arg;
    int64_t size;               /* of an element */
    char *prepared;             /* NULL: nothing is prepared */
    char *workspace;
    int threads;
};
struct mc_conv_run mc_conv_bind(const struct mc_plan *plan, void *const *operand, void *workspace,
                                int threads);
/* The block at[], size[] of the result is finished: runs the epilogue on it. */
static inline void conv_finish(const struct mc_conv_run *r, const int64_t at[5], const int64_t size[5])
{
    if (r->epilogue) {
        r->epilogue(r->arg, at, size);
    }
}
/* Runs the epilogue on positions [u, u + count) in C order of filters (inputs: channels) [f, f + nf) of image
 * n. */
void mc_conv_finish_positions(const struct mc_conv_run *r, int64_t n, int64_t f, int64_t nf, int64_t u,
                              int64_t count);
/* Runs the epilogue on the whole result, in blocks of one image and channel. For solvers without a fused
 * epilogue. */
void mc_conv_finish_all(const struct mc_conv_run *r);
/* an empty epilogue, for timing */
void mc_conv_no_epilogue(void *arg, const int64_t at[5], const int64_t size[5]);
/* Sets the block to beta * c0, or to zero, for solvers that add their sums to it. Only float32 and
 * float64. */
void mc_conv_start(const struct mc_conv_run *r, const int64_t at[5], const int64_t size[5]);

/* ---- geometry ---- */
/* An operand as an array of up to eight axes: sizes, and strides in the order of struct mc_conv_strides. */
struct mc_conv_array {
    int rank;
    int64_t size[8];
    const int64_t *stride;
};
struct mc_conv_array mc_conv_array(const struct mc_conv_problem *p, int role);
static inline int mc_conv_result(enum mc_conv_pass pass)
{
    return pass == CONV_FORWARD ? CONV_Y : pass == CONV_INPUTS ? CONV_X : CONV_W;
}
/* True: in C order without gaps. Axes of size 1 may have any stride. C order is bc01 for x and y and the
 * plain order for w. */
bool mc_conv_dense(const struct mc_conv_problem *p, int role);
/* True: the last `inner` of the first five axes are in C order without gaps. The others may have any
 * stride. */
bool mc_conv_dense_inner(const struct mc_conv_problem *p, int role, int inner);
int64_t mc_conv_count(const struct mc_conv_array *a);   /* elements */
void mc_conv_dense_strides(const struct mc_conv_array *a, int64_t *stride);
static inline int64_t conv_volume(const int64_t v[3])
{
    return v[0] * v[1] * v[2];
}
static inline int64_t conv_ceil(int64_t a, int64_t b)   /* a of any sign, b > 0 */
{
    return a > 0 ? (a + b - 1) / b : -(-a / b);
}
/* Positions [*lo, *hi) within [0, out) at which tap a of one axis reads inside [0, in). */
void mc_conv_range(const struct mc_conv_shape *s, int axis, int64_t a, int64_t *lo, int64_t *hi);
static inline int64_t conv_tap(const struct mc_conv_shape *s, int axis, int64_t a) /* index in w of tap a */
{
    return s->flip ? s->k[axis] - 1 - a : a;
}
/* the index in x that tap a of position u reads; may be outside of x */
static inline int64_t conv_at(const struct mc_conv_shape *s, int axis, int64_t u, int64_t a)
{
    return u * s->stride[axis] - s->pad[axis] + a * s->dilation[axis];
}

/* ---- im2col/gather.c: windows of x as a matrix (channels * taps, n) for the positions [u, u + n). x points
 * at the first of the channels in the image. Only float32 and float64 ---- */
void mc_conv_gather(const struct mc_conv_problem *p, const char *x, int64_t channels, int64_t u, int64_t n,
                    void *columns);
void mc_conv_scatter(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n,
                     const void *columns);

/* ---- copy.c: copies an array into another layout or dtype ---- */
struct mc_conv_copy {
    void *to;
    const void *from;
    mc_dtype to_type, from_type;
    int rank;
    int64_t size[8];
    const int64_t *to_stride, *from_stride;
    const struct mc_conv_run *finish;   /* the epilogue to run on each box that was copied; NULL: none */
    int64_t finish_at;                  /* the result's first index at the array's index 0 */
};
void mc_conv_copy_array(const struct mc_conv_copy *c, int threads);

/* ---- reasons for refusing and estimates that several solvers share ---- */
const char *mc_conv_hollow(const struct mc_conv_problem *p);  /* refuses empty operands and results */
/* refuses also other dtypes than float32, unshared filters, three axes */
const char *mc_conv_not_plain(const struct mc_conv_problem *p);
/* refuses dtypes that only relayout and the reference take */
const char *mc_conv_shared_image_halves(const struct mc_conv_problem *p);
double mc_conv_flops(const struct mc_conv_problem *p);        /* two for each tap, counting borders in full */
double mc_conv_bytes(const struct mc_conv_problem *p);        /* of all operands, once */
double mc_conv_peak(const struct mc_conv_problem *p);         /* operations a second of one thread */
double mc_conv_copy(double bytes); /* seconds in which one thread moves so many bytes */
/* Seconds that one thread loses in copying so many float32 numbers one by one, if it reads `rows` of them,
 * `step` numbers apart, before it returns to their cache lines.  With a power of two in `step` these lines
 * have few sets of the L2 cache; and a large array fills the caches before it is read to its end. */
double mc_conv_lost_lines(int64_t numbers, int64_t step, int64_t rows);
double mc_conv_threads(double seconds, double tasks); /* the speedup that estimates assume for a team */
/* least seconds of one thread, for mc_team_tasks */
double mc_conv_work(const struct mc_conv_problem *p);

#endif
