/* kernel.h: the kernel form: a loop nest over one iteration space with everything that was fused into it.
 *
 * A kernel is a list of values in the order in which they are computed, over a space of `rank` axes.  Each
 * value varies along some of the axes.  Axes are kept or reduced.  All reductions of a kernel reduce the same
 * axes, so a value is either on the element level (it varies along a reduced axis, or nothing is reduced) or
 * on the row level (one for each point of the kept axes).  A reduction turns elements into a row value.
 * Elements that use row values belong to a later stage, another pass over the row.
 *
 *   map             nothing is reduced                           y = tanh(x) + b
 *   row             the innermost axis is reduced                softmax over the last axis
 *   column          the innermost axis is kept                   sum over the first axis
 *   full reduction  everything is reduced, in fixed chunks       mean(x)
 *
 * A row kernel may also compute column sums: sums over the kept axes of its elements.  The kernel adds into
 * partial sums of a few rows each, and its launch adds those.
 *
 * A kernel is printed once, for any shape: sizes and strides are arguments.  No graph node is visible
 * here. */
#ifndef MC_KERNEL_H
#define MC_KERNEL_H

#include "op/op.h"

enum mc_kind_of_value { K_LOAD, K_CONST, K_INDEX, K_OP, K_CAST, K_REDUCE, K_CHECK };
struct mc_kval {
    enum mc_kind_of_value kind;
    const struct mc_op *op;     /* K_OP, K_REDUCE */
    mc_dtype dtype, acc;        /* acc: the dtype a reduction accumulates in */
    int arg[3], narg;           /* earlier values */
    int operand;                /* K_LOAD, K_INDEX */
    unsigned varies;            /* bit a: along axis a of the space */
    char bits[8];               /* K_CONST: the element */
    /* found by mc_kernel_analyse */
    bool element;               /* on the element level */
    /* elements and reductions: the stage that computes them; row values: the first stage that can read
     * them */
    int stage;
    int saved;                  /* > 0: stored in row buffer saved - 1 for later stages */
    bool bounded;               /* NaN where its argument is finite but beyond a bound */
};
struct mc_koperand {
    mc_dtype dtype;
    unsigned varies;
    bool dst;                   /* written with val; else read */
    /* dst: val is added to memory; it varies along none of the kept axes of a row kernel */
    bool column_sums;
    bool index;                 /* no memory: its value is a position, base + sum of i * stride */
    int val;
};
enum mc_kernel_mode { KERNEL_MAP, KERNEL_ROW, KERNEL_COLUMN, KERNEL_FULL_REDUCTION };
struct mc_kernel {
    char name[24];
    int rank;
    unsigned varies, reduced;
    VEC(struct mc_kval) val;
    VEC(struct mc_koperand) operand;
    /* found by mc_kernel_analyse */
    enum mc_kernel_mode mode;
    int inner;                  /* the innermost axis along which anything varies; -1: a scalar kernel */
    int nstage, nsaved, nreduce;
    /* it calls functions that are accurate only below a bound: err[3] is set if an argument was beyond, and
     * the reference then computes the results again */
    bool bounded;
    /* set for all kernels of a program: products are rounded before they are added */
    bool exact;
    /* a vector kernel: its innermost loop takes sixteen elements at a time */
    bool wide;
    /* set for all kernels of a program: sums along the innermost loop have sixteen lanes, whose order the
     * text fixes */
    bool lanes;
    /* forms that are not printed, as static sizes exclude them: GRID_VECTOR and its neighbours for a GPU;
     * ROW_VECTOR, ROW_LOOP of a vector row kernel */
    unsigned never;
    bool many;                  /* on a GPU: NAME_many is printed */
    double flops;               /* for each element */
};

/* How a printed kernel is called.  p: an address for each operand, then the row buffers (row) or accumulators
 * (full reduction).  s: three strides in elements for each operand, along the loops 0, 1, 2.  n: their
 * counts, then the linear position of the first element (full reduction), or 1 for stores past the caches to
 * aligned addresses (map, row).  Loop 0 is the innermost.  Along it the stride is 1 for operands that vary
 * along the kernel's innermost axis, 0 for the others.
 *   map             0 and 1 kept
 *   row             0 and 2 reduced, 1 kept
 *   column          0 kept, 1 and 2 reduced
 *   full reduction  0, 1 and 2 reduced; NAME_join(p, s, n, err) ends it, n[0] chunks
 * err: [0] the number of the value whose check failed plus one, [1] the index, [2] its bound; [3] an argument
 * of a bounded kernel was beyond its bound (on a GPU: the step whose check failed). */
typedef void mc_kernel_fn(char *const *p, const int64_t *s, const int64_t *n, int64_t *err);
enum { KERNEL_COLUMNS = 512 }; /* columns that a column kernel computes at a time */

int  mc_kernel_add(struct mc_kernel *k, struct mc_kval v);       /* equal values are one; -1: out of memory */
mc_status mc_kernel_analyse(struct mc_kernel *k);                /* sets the fields that are derived */
void mc_kernel_free(struct mc_kernel *k);
/* is their text the same, except for the names? */
bool mc_kernel_same(const struct mc_kernel *a, const struct mc_kernel *b);
bool mc_kernel_same_value(const struct mc_kval *a, const struct mc_kval *b);
bool mc_kernel_same_operand(const struct mc_koperand *a, const struct mc_koperand *b);
bool mc_kernel_checks(const struct mc_kernel *k); /* does it check indices? */
size_t mc_kernel_row_bytes(const struct mc_kernel *k, int64_t n); /* row buffers, for rows of n elements */

/* ---- dialects: what differs between C and CUDA C, as text ---- */
struct mc_dialect {
    const char *name;
    const char *prelude;
    /* before kernels that are exact: products are not fused with sums */
    const char *exact;
    const char *head;                  /* "void %s(char *const *p, ...)" */
    const char *reduce_fn;
    const char *store[MC_NDTYPE];      /* the type in memory */
    const char *calc[MC_NDTYPE];       /* the type that it is computed in */
    const char *suffix[MC_NDTYPE];     /* of functions and constants for that dtype: f, d, i */
    const char *load_as[MC_NDTYPE], *store_as[MC_NDTYPE]; /* conversions at loads and stores, "" for none */
    bool vectors;                      /* vector kernels may be printed for it */
    /* philox_, which stands for mc_random_word where a thread has adjacent elements, and keeps a block of
     * words; NULL: no such elements */
    const char *keeps;
    bool standard;                     /* compiled without MC_KERNEL_FLAGS */
    const char *loop;                  /* before a loop without dependences */
    const char *reduce_loop;           /* before a loop with a reduction; "%s" is "+:a1) reduction(max:a2" */
    /* functions that its compiler has, " exp log "; NULL: all are those of math.c */
    const char *native;
    const char *builtins;  /* definitions for special functions, behind the prelude */
};
/* standard: for exported files */
extern const struct mc_dialect mc_dialect_c, mc_dialect_standard_c, mc_dialect_cuda;

/* forms of a vector row kernel: a row is one vector; rows of any size */
enum { VECTOR_LANES = 16, ROW_VECTOR = 8, ROW_LOOP = 16 };
/* vector_kernel.c: can k be printed as a vector kernel, for processors that have such vectors?  The caller
 * sets k->wide. */
bool mc_kernel_can_vectorize(const struct mc_dialect *d, const struct mc_kernel *k);
/* grid.c: kernels for a grid of threads, and the one struct that each takes as its argument */
struct mc_grid_head {
    /* addresses: of the four words that a failed check sets; of the partial results of splits */
    uint64_t err, scratch;
    /* elements of a map, or kept points; reduced points.  NAME_v counts vectors along the innermost axis. */
    uint32_t count[2];
    uint32_t axes[2];           /* number of kept axes, of reduced axes; their sizes and steps follow */
    uint32_t size[MC_MAX_RANK]; /* innermost first */
    uint32_t splits, chunk;     /* blocks along y that share a reduction, and the elements of each */
    uint32_t column;            /* the lanes of a point differ in threadIdx.y */
    uint32_t number;            /* the step's number, for err[3] */
    uint32_t flat;              /* a map: operands are contiguous, along one axis */
    uint32_t teams;             /* teams of lanes, each with column sums of its own */
    uint32_t first;             /* the stage that this launch runs, if there are splits */
    uint32_t held;              /* a map does nothing after a failed check */
    /* a reducing kernel: at most two axes are reduced, and their steps fit 32 bits */
    uint32_t near;
    uint32_t magic[MC_MAX_RANK], shift[MC_MAX_RANK]; /* constants to divide by a size */
};
struct mc_grid_args {           /* pointers into the argument */
    uint64_t *p;                /* by operand: address, or first position */
    struct mc_grid_head *head;
    int64_t (*step)[MC_MAX_RANK]; /* by operand and axis: bytes, or positions */
};
size_t mc_grid_args_size(size_t operands);
struct mc_grid_args mc_grid_args(void *memory, size_t operands);
/* can several blocks share a point?  If there are splits, each stage is a launch, and if the last one
 * reduces, one more launch of one block along y ends the kernel. */
bool mc_grid_can_split(const struct mc_kernel *k);
bool mc_grid_last_stage_reduces(const struct mc_kernel *k);    /* does its last stage reduce? */
/* are all sums of that stage computed in the pass before?  Then it has no pass and no launch. */
bool mc_grid_centred_sums(const struct mc_kernel *k, int stage);
/* threads of a block of NAME and NAME_v, at most, if they reduce */
enum { GRID_LANES = 512 };
/* bytes of shared memory for each thread, if A.column or if a point has more than 32 lanes */
enum { GRID_SHARED = 16 };
enum {
    GRID_VECTOR = 1,
    GRID_ROW = 2,
    GRID_ROW_SCALAR = 4,
    GRID_CLUSTER = 8,
    GRID_FEW_ELEMENTS = 16,
    GRID_PLAIN = 32
};
/* elements that NAME_v takes at once; 1: there is only NAME */
int  mc_grid_vector(const struct mc_kernel *k);
/* elements of a short row, at most: too few to prefetch, and less code to load */
enum { GRID_FEW_MOST = 32 };
/* is there NAME_s, for short rows alone?  They use no other form then. */
bool mc_grid_few_elements(const struct mc_kernel *k);
/* does it compute column sums?  Then there is NAME_tally, which adds the sums of the teams. */
bool mc_grid_column_sums(const struct mc_kernel *k);
/* columns of a block of NAME_tally: threads along x; there are 128 along y */
enum { GRID_SUM_COLUMNS = 8 };
/* bytes of a team's sum of one column; 0: there are no column sums */
size_t mc_grid_column_sums_size(const struct mc_kernel *k);
/* blocks of a cluster along y that may share a row of NAME_t */
enum { GRID_CLUSTER_MOST = 8 };
/* grid_row.c: NAME_r keeps a whole contiguous row in the registers of its lanes; NAME_t in those of a cluster
 * of blocks; NAME_q, an element at a time, a row in segments of any size, such as a channel of images */
struct mc_grid_row {
    int vector;                 /* elements at once; 0: there is no such form */
    int kept;                   /* vectors of a row that a lane keeps */
    int most;                   /* lanes of a block, at most */
};
struct mc_grid_row mc_grid_row(const struct mc_kernel *k);
struct mc_grid_row mc_grid_row_cluster(const struct mc_kernel *k);
struct mc_grid_row mc_grid_row_scalar(const struct mc_kernel *k);
/* is an axis between the reduced ones kept?  Then rows are in segments. */
bool mc_grid_row_segmented(const struct mc_kernel *k);
/* grid_column.c: adjacent columns that a thread of NAME_c takes, for sums over the outer axes; 0: there is no
 * such form */
int  mc_grid_column(const struct mc_kernel *k);
/* columns of a block of NAME_c, at most: each lane of a warp ends up with one */
enum { GRID_COLUMNS = 32 };
/* grid_column_reduce.c: sums that the blocks of NAME_c pass on, two for each centred sum: of all passes; of
 * one at most */
struct mc_grid_parts { int all, most; };
struct mc_grid_parts mc_grid_parts(const struct mc_kernel *k);
/* bytes of shared memory of a block */
size_t mc_grid_parts_shared(struct mc_grid_parts parts, unsigned threads);
/* ---- grid_many.c: one launch of a map over many arrays ---- */
/* Is k a map of elements that are all at the same place in their arrays, or of numbers?  Then the number of
 * axes does not matter where arrays are contiguous. */
bool mc_kernel_flat(const struct mc_kernel *k);
/* are two such maps the same, except for the axes? */
bool mc_kernel_alike(const struct mc_kernel *a, const struct mc_kernel *b);
/* NAME_many's argument, in the layout of NAME_list: pointers into its memory */
struct mc_grid_list {
    uint64_t *err;              /* as in mc_grid_head */
    uint32_t *n, *held;         /* n: arrays */
    uint32_t *wide;             /* the first so many arrays are read in vectors, as NAME_v does */
    uint32_t *first;            /* by array: its first block */
    uint32_t *count;            /* by array: its elements or vectors */
    uint64_t *p;                /* by array and operand: address */
};
enum { GRID_LIST_BYTES = 4096, GRID_LIST_ELEMENTS = 4096, GRID_LIST_THREADS = 256 }; /* of a block */
size_t mc_grid_list_most(size_t operands);              /* arrays of a list, at most */
size_t mc_grid_list_size(size_t operands);
struct mc_grid_list mc_grid_list(void *memory, size_t operands);
void mc_render_grid(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels);
/* render.c: kernels as one text */
void mc_render(struct mc_str *out, const struct mc_dialect *d, int n, struct mc_kernel *const *kernels);
/* what that text has before its kernels: types, functions */
void mc_render_functions(struct mc_str *out, const struct mc_dialect *d, int n,
                         struct mc_kernel *const *kernels);
/* One launch of a kernel.  Expressions are C, and contain no name that is a letter, or a letter and digits,
 * and none of to, acc, far, beyond, stop, nb, err, i64. */
struct mc_kernel_launch {
    const int64_t *s, *n;       /* as in mc_kernel_fn; for the join of a fold, n[0] is the number of chunks */
    /* by operand, then row buffers or accumulators: its address, of type char *; of an index operand, an
     * integer */
    const char *const *base;
    /* fold, NULL: the numbers n[0] and n[3].  Else names of variables, for what differs from chunk to
     * chunk. */
    const char *count, *first;
    /* A line before loop `shared`, 0 or 1, which threads share; NULL: none. */
    const char *parallel;
    int shared;
    const char *each_row;       /* a line at the start of each row; NULL: none */
};
/* Prints the loops of k, which is no vector kernel, as a block without a function around it.  Counts, strides
 * and addresses are those of the launch; loops of one iteration are omitted.  A kernel that checks indices or
 * is bounded sets err[], as a kernel's function does.  Of a fold: what runs for each chunk; and the end, as
 * NAME_join. */
void mc_render_launch(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *k,
                      const struct mc_kernel_launch *at);
void mc_render_launch_join(struct mc_str *out, const struct mc_dialect *d, const struct mc_kernel *k,
                           const struct mc_kernel_launch *at);
/* indent.c: C text with a statement a line, indented by braces */
void mc_indent(struct mc_str *out, const char *text);

#endif
