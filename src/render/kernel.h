/* kernel.h: the kernel form: a loop nest over one iteration space with everything fused into it.
 *
 * A kernel is a list of values in the order they are computed, over a space of `rank` axes.  Each
 * value varies along some of the axes.  Axes are kept or reduced; all reductions of a kernel reduce
 * the same axes, so a value is either on the element level (varies along a reduced axis, or nothing is
 * reduced) or on the row level (one for each point of the kept axes).  A reduction turns elements into
 * a row value; elements that use row values come in a later stage, another walk over the row.
 *
 *   map     nothing is reduced                           y = tanh(x) + b
 *   row     the innermost axis is reduced                softmax over the last axis
 *   column  the innermost axis is kept                   sum over the first axis
 *   fold    everything is reduced, in fixed chunks       mean(x)
 *
 * Sums over the kept axes of what a row kernel has anyway ride along: such a column sum is added up in sums of a
 * few rows each, and who launches the kernel adds those.
 *
 * A kernel is printed once, for any shape: sizes and strides are arguments.  No node is seen here. */
#ifndef MC_KERNEL_H
#define MC_KERNEL_H

#include "op/op.h"

enum mc_kind_of_value { K_LOAD, K_CONST, K_INDEX, K_OP, K_CAST, K_REDUCE, K_CHECK };
struct mc_kval {
    enum mc_kind_of_value kind;
    const struct mc_op *op;     /* K_OP, K_REDUCE */
    mc_dtype dtype, acc;        /* acc: in which a reduction accumulates */
    int arg[3], narg;           /* earlier values */
    int operand;                /* K_LOAD, K_INDEX */
    unsigned varies;            /* bit a: along axis a of the space */
    char bits[8];               /* K_CONST: the element */
    /* found by mc_kernel_analyse */
    bool element;               /* on the element level */
    /* elements, reductions: the walk they are computed in; rows: from which on they are there */
    int stage;
    int saved;                  /* > 0: kept in row buffer saved - 1 for later stages */
    bool bounded;               /* NaN where its argument, though finite, is beyond a bound */
};
struct mc_koperand {
    mc_dtype dtype;
    unsigned varies;
    bool dst;                   /* written: val is stored; else read */
    /* dst: val is added to what is there; it varies along none of the kept axes of a row kernel */
    bool column_sums;
    bool index;                 /* no memory: the position, base + sum of i * stride */
    int val;
};
enum mc_kernel_mode { KERNEL_MAP, KERNEL_ROW, KERNEL_COLUMN, KERNEL_FOLD };
struct mc_kernel {
    char name[24];
    int rank;
    unsigned varies, reduced;
    VEC(struct mc_kval) val;
    VEC(struct mc_koperand) operand;
    /* found by mc_kernel_analyse */
    enum mc_kernel_mode mode;
    int inner;                  /* the innermost axis that anything varies along; -1: a scalar kernel */
    int nstage, nsaved, nreduce;
    /* has functions that are exact below a bound alone: err[3] is set where an argument was beyond, and
     * whoever launched it has the reference make its results anew */
    bool bounded;
    /* set for all kernels of a program: a product is rounded before it is added to anything */
    bool exact;
    /* printed over vectors: its innermost loop takes sixteen elements at a time */
    bool wide;
    /* forms that sizes known beforehand rule out: GRID_VECTOR and its neighbours for a GPU's grid;
     * ROW_VECTOR, ROW_LOOP of a wide row kernel */
    unsigned never;
    double flops;               /* an element */
};

/* How a printed kernel is called.  p: an address for each operand, then the row buffers (row) or accumulators
 * (fold).  s: three strides in elements for each operand, along the loops 0, 1, 2.  n: their counts, then the
 * linear position of the first element (fold), or 1 for stores past the caches to aligned places (map, row).
 * Loop 0 is the innermost; along it the stride is 1 for operands that vary along the kernel's innermost axis,
 * 0 for the others.
 *   map     0 and 1 kept           row     0 and 2 reduced, 1 kept
 *   column  0 kept, 1 and 2 reduced fold 0, 1 and 2 reduced; NAME_join(p, s, n, err) ends it, n[0] chunks
 * err: [0] the number of an operand's failed check plus one, [1] the index, [2] its bound; [3] a bounded
 * kernel met what is beyond (on a GPU: the step whose check failed). */
typedef void mc_kernel_fn(char *const *p, const int64_t *s, const int64_t *n, int64_t *err);
enum { KERNEL_COLUMNS = 512 }; /* columns a column kernel works on at a time */

int  mc_kernel_add(struct mc_kernel *k, struct mc_kval v);       /* equal values are one; -1: no memory */
void mc_kernel_analyse(struct mc_kernel *k);                     /* fills what is derived */
void mc_kernel_free(struct mc_kernel *k);
/* are they printed alike, but for their names? */
bool mc_kernel_same(const struct mc_kernel *a, const struct mc_kernel *b);
bool mc_kernel_checks(const struct mc_kernel *k); /* indices */
size_t mc_kernel_row_bytes(const struct mc_kernel *k, int64_t n); /* row buffers, for rows of n elements */

/* ---- dialects: what differs between C and its kin, as text ---- */
struct mc_dialect {
    const char *name;
    const char *prelude;
    /* in front of kernels that are exact: products are not fused with sums */
    const char *exact;
    const char *head;                  /* "void %s(char *const *p, ...)" */
    const char *join;
    const char *store[MC_NDTYPE];      /* the type in memory */
    const char *calc[MC_NDTYPE];       /* the type computed in */
    const char *suffix[MC_NDTYPE];     /* of functions and constants made for it: f, d, i */
    const char *load_as[MC_NDTYPE], *store_as[MC_NDTYPE]; /* conversions around memory, "" for none */
    bool vectors;                      /* vector_kernel.c may print for it */
    const char *loop;                  /* in front of a loop without dependences */
    const char *reduce_loop;           /* with a reduction: "%s" takes "+:a1) reduction(max:a2" */
    /* functions that its compiler has, " exp log "; NULL: math.c's, of all there are */
    const char *native;
};
extern const struct mc_dialect mc_dialect_c, mc_dialect_cuda;

/* of a wide row kernel: a row is one vector; it is of any size */
enum { VECTOR_LANES = 16, ROW_VECTOR = 8, ROW_LOOP = 16 };
/* vector_kernel.c: can k be printed over vectors?  Who renders kernels sets their `wide` from it. */
bool mc_kernel_can_vectorize(const struct mc_dialect *d, const struct mc_kernel *k);
/* grid.c: kernels for a grid of threads, and the one struct that each takes */
struct mc_grid_head {
    /* addresses: of four int64 that a failed check is told in; of splits' parts */
    uint64_t err, scratch;
    /* elements of a map or points kept; points reduced.  For NAME_v, what lies innermost is counted in
     * vectors */
    uint32_t count[2];
    uint32_t axes[2];           /* kept; reduced: their sizes and steps come behind */
    uint32_t size[MC_MAX_RANK]; /* innermost first */
    uint32_t splits, chunk;     /* blocks along y that share a point's reductions; its elements for each */
    uint32_t column;            /* lanes above each other */
    uint32_t number;            /* of the step, for err[3] */
    uint32_t flat;              /* of a map: operands that move lie dense, along one axis */
    uint32_t teams;             /* lanes that share points; each has column sums of its own */
    uint32_t first;             /* the stage that this launch walks, if there are splits */
    uint32_t held;              /* a map does nothing once a check has failed */
    /* of a reducing kernel: two axes are reduced at most, and their steps have 32 bits */
    uint32_t near;
    uint32_t magic[MC_MAX_RANK], shift[MC_MAX_RANK]; /* by which the kernel divides by a size */
};
struct mc_grid_args {           /* where the parts lie */
    uint64_t *p;                /* by operand: address, or first position */
    struct mc_grid_head *head;
    int64_t (*step)[MC_MAX_RANK]; /* by operand and axis: bytes, or positions */
};
size_t mc_grid_args_size(size_t operands);
struct mc_grid_args mc_grid_args(void *memory, size_t operands);
/* can blocks share its points?  They do if there are splits; a launch a stage then, and, where the last
 * one reduces, another of one block along y that ends it */
bool mc_grid_can_split(const struct mc_kernel *k);
bool mc_grid_last_stage_reduces(const struct mc_kernel *k);    /* does its last stage reduce? */
/* are all its sums made by the walk before?  Then it has none, and no launch */
bool mc_grid_centred_sums(const struct mc_kernel *k, int stage);
/* threads of a block of NAME and NAME_v at most, where they reduce */
enum { GRID_LANES = 512 };
/* bytes of shared memory a thread needs where lanes are above each other or more than 32 */
enum { GRID_SHARED = 16 };
enum { GRID_VECTOR = 1, GRID_ROW = 2, GRID_ROW_SCALAR = 4, GRID_CLUSTER = 8, GRID_FEW_ELEMENTS = 16, GRID_PLAIN = 32 };
int  mc_grid_vector(const struct mc_kernel *k);  /* elements NAME_v takes at once; 1: there is only NAME. */
/* elements of a short row at most: nothing to ask for ahead, and less code to fetch */
enum { GRID_FEW_MOST = 32 };
/* is there NAME_s, for those alone?  They have no other form then */
bool mc_grid_few_elements(const struct mc_kernel *k);
/* does anything ride along?  Then there is NAME_tally, which adds up what the teams have */
bool mc_grid_column_sums(const struct mc_kernel *k);
/* of a row that a block of NAME_tally takes: threads along x; along y are 128 */
enum { GRID_PLACES = 8 };
/* bytes of a team's sum of one element; 0: nothing rides along */
size_t mc_grid_column_sums_size(const struct mc_kernel *k);
/* blocks along y that may share a row of NAME_t, where the GPU runs them together */
enum { GRID_CLUSTER_MOST = 8 };
/* grid_row.c: NAME_r keeps a whole row in the registers of its lanes, where it lies dense; NAME_t in those of
 * several blocks; NAME_q one that is torn into pieces of any size, as a channel of images is, an element at a
 * time */
struct mc_grid_row {
    int vector;                 /* elements at once; 0: there is no such form */
    int kept;                   /* vectors of a row that a lane keeps */
    int most;                   /* lanes of a block */
};
struct mc_grid_row mc_grid_row(const struct mc_kernel *k);
struct mc_grid_row mc_grid_row_cluster(const struct mc_kernel *k);
struct mc_grid_row mc_grid_row_scalar(const struct mc_kernel *k);
/* an axis is kept within the reduced ones: its rows are in pieces */
bool mc_grid_row_segmented(const struct mc_kernel *k);
/* grid_column.c: neighbours that a thread of NAME_c takes, where sums go along what lies outside; 0: there is
 * no such form */
int  mc_grid_column(const struct mc_kernel *k);
/* of a block of NAME_c at most: of a warp each lane ends up with one */
enum { GRID_COLUMNS = 32 };
/* grid_column_reduce.c: sums that blocks of NAME_c leave each other, a moment's two by two: of all walks, of one at
 * most */
struct mc_grid_parts { int all, most; };
struct mc_grid_parts mc_grid_parts(const struct mc_kernel *k);
/* bytes of shared memory of a block */
size_t mc_grid_parts_shared(struct mc_grid_parts parts, unsigned threads);
void mc_render_grid(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels);
/* render.c: kernels as one unit */
void mc_render(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels);

#endif
