/* solver.h: what the solvers of convolutions share.
 *
 * Invariant: a result depends on the problem and the solver alone, never on how many threads there were. */
#ifndef MC_CONV_SOLVER_H
#define MC_CONV_SOLVER_H

#include "heavy/conv/conv.h"
#include "device/cpu/cpu.h"
#include "value/value.h"

/* ---- table.c ---- */
extern const struct mc_solver *const mc_conv_solvers[];
extern const struct mc_solver mc_conv_one, mc_conv_fft, mc_conv_winograd, mc_conv_winograd4, mc_conv_direct,
    mc_conv_depth, mc_conv_col2im, mc_conv_im2col, mc_conv_exchange, mc_conv_exchange_full, mc_conv_relayout,
    mc_conv_onednn, mc_conv_onednn_winograd, mc_conv_reference;

/* mc_conv_problem.inner: who must not wrap again, so that planning ends. */
enum { INNER_EXCHANGE = 1, INNER_RELAYOUT = 2, INNER_FOLD = 4 };

static inline const struct mc_conv_problem *conv(const struct mc_problem *p)
{
    return (const struct mc_conv_problem *)(const void *)p;
}

/* ---- problem.c ---- */
void mc_conv_word(const struct mc_problem *p, struct mc_str *out);
struct mc_plan *mc_conv_plan_in(const struct mc_family *family, const struct mc_conv_problem *asked,
                                const struct mc_plan_options *o);

/* ---- operands.c ---- */
void mc_conv_extents(const struct mc_conv_problem *p, struct mc_extent e[5]);   /* x, w, y, c0, bias */
mc_status mc_conv_compare(const struct mc_conv_problem *p, const struct mc_plan *plan, const char *got,
                          const char *want);
/* these, and the others, are the family's (plan.h) */
mc_status mc_conv_operands(const struct mc_problem *p, void *operand[8]);
void mc_conv_discard(const struct mc_problem *p, void *operand[8]);
double mc_conv_sample(const struct mc_problem *p, double seconds, struct mc_problem *small);
mc_status mc_conv_verify(const struct mc_problem *p, const struct mc_plan *plan);

/* ---- exchange.c: the same sums as another problem ---- */
struct mc_conv_problem mc_conv_taps_as_places(const struct mc_conv_problem *p);
struct mc_conv_problem mc_conv_taps_reversed(const struct mc_conv_problem *p);
enum { EXCHANGE_PLACES, EXCHANGE_REVERSED };
extern const int mc_conv_exchange_role[2][3];   /* where the child takes its x, w, y */
int64_t mc_conv_exchange_shift(const struct mc_conv_problem *p, int roles); /* of the child's y, in bytes */
const char *mc_conv_no_places(const struct mc_conv_problem *p);     /* why not, or NULL */
const char *mc_conv_no_reversed(const struct mc_conv_problem *p);

/* ---- algo_flag.c ---- */
const char *mc_conv_forced(const struct mc_problem *p, int64_t *mode);
size_t mc_conv_words(const char **names, size_t room);      /* those of Theano's flags; how many */
/* algo, or the flag of this pass; auto inside of others */
const char *mc_conv_asked(const struct mc_conv_problem *p);
bool mc_conv_chooses_once(const char *algo);
/* the same word, but static text if it is one that is known */
const char *mc_conv_lasting(const char *algo);

/* ---- run.c: one call of a plan ---- */
struct mc_conv_run {
    const struct mc_conv_problem *p;
    char *at[3];                /* x, w, y; the pass writes one of them alone */
    const char *c0;             /* NULL when beta is 0 */
    char *result;               /* at[mc_conv_result(p)] */
    mc_conv_epilogue *epilogue; /* NULL: none */
    void *arg;
    int64_t size;               /* of an element */
    char *workspace;
    int threads;
};
struct mc_conv_run mc_conv_bind(const struct mc_plan *plan, void *const *operand, void *workspace,
                                int threads);
/* The block at[], size[] of the result is finished. */
static inline void conv_finish(const struct mc_conv_run *r, const int64_t at[5], const int64_t size[5])
{
    if (r->epilogue) {
        r->epilogue(r->arg, at, size);
    }
}
/* Places [u, u + count) in C order, of filters [f, f + nf) of image n: in as few boxes as they make. */
void mc_conv_finish_places(const struct mc_conv_run *r, int64_t n, int64_t f, int64_t nf, int64_t u,
                           int64_t count);
/* For solvers that know no epilogue: runs it on all of the result, in blocks of one image and channel. */
void mc_conv_finish_all(const struct mc_conv_run *r);
void mc_conv_no_epilogue(void *arg, const int64_t at[5], const int64_t size[5]); /* to time with */
/* For solvers that add to what is there: the block becomes beta * c0, or zero; float32 and float64 alone. */
void mc_conv_start(const struct mc_conv_run *r, const int64_t at[5], const int64_t size[5]);

/* ---- geometry ---- */
/* An operand as an array of up to eight axes: sizes and strides in the order of struct mc_conv_strides. */
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
/* C order, without gaps; axes of size 1 may have any stride.  bc01 for x and y, the plain order for w. */
bool mc_conv_dense(const struct mc_conv_problem *p, int role);
/* The last `inner` axes (of the first five) are dense in C order; those before may have any stride. */
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
/* The u in [*lo, *hi) of [0, out) at which tap a of one axis reads inside of [0, in). */
void mc_conv_range(const struct mc_conv_shape *s, int axis, int64_t a, int64_t *lo, int64_t *hi);
static inline int64_t conv_tap(const struct mc_conv_shape *s, int axis, int64_t a) /* where w keeps tap a */
{
    return s->flip ? s->k[axis] - 1 - a : a;
}
/* in x; may lie outside */
static inline int64_t conv_at(const struct mc_conv_shape *s, int axis, int64_t u, int64_t a)
{
    return u * s->stride[axis] - s->pad[axis] + a * s->dilation[axis];
}

/* ---- columns.c: windows of x as a matrix (channels * taps, n) of the places [u, u + n); float32 and float64
 * alone. x is where the image has the first of the channels ---- */
void mc_conv_gather(const struct mc_conv_problem *p, const char *x, int64_t channels, int64_t u, int64_t n,
                    void *columns);
void mc_conv_scatter(const struct mc_conv_problem *p, char *x, int64_t channels, int64_t u, int64_t n,
                     const void *columns);

/* ---- copy.c: an array into another layout or dtype ---- */
struct mc_conv_copy {
    void *to;
    const void *from;
    mc_dtype to_type, from_type;
    int rank;
    int64_t size[8];
    const int64_t *to_stride, *from_stride;
    const struct mc_conv_run *finish;   /* whose epilogue runs on each box that is copied; NULL: none */
    int64_t finish_at;                  /* first index of the array among the result's first axis */
};
void mc_conv_copy_array(const struct mc_conv_copy *c, int threads);

/* ---- refusals and estimates that several share ---- */
const char *mc_conv_hollow(const struct mc_conv_problem *p);  /* empty results and sums of nothing */
/* those, other dtypes than float32, unshared filters, three axes */
const char *mc_conv_not_plain(const struct mc_conv_problem *p);
/* dtypes that only relayout and the reference take */
const char *mc_conv_shared_image_halves(const struct mc_conv_problem *p);
double mc_conv_flops(const struct mc_conv_problem *p);        /* two a tap, borders counted in full */
double mc_conv_bytes(const struct mc_conv_problem *p);        /* all operands once */
double mc_conv_peak(const struct mc_conv_problem *p);         /* operations a second of one thread */
double mc_conv_copy(double bytes);                            /* seconds of one thread to move so many */
double mc_conv_threads(double seconds, double tasks);         /* how many times faster a team would be */
/* seconds of one thread at best, for mc_team_tasks */
double mc_conv_work(const struct mc_conv_problem *p);

#endif
