/* monochord.h: an optimizing compiler for tensor expressions.
 *
 * Write formulas over symbolic tensors in a graph, ask for gradients, compile functions, call them:
 *
 *     mc_graph *g = mc_graph_new();
 *     mc_input(g, "x", MC_FLOAT32, 2);
 *     mc_formula(g, "y = exp(x) / sum(exp(x), axis=1, keepdims=True)");
 *     mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "y" });
 *     mc_array *y = NULL;
 *     if (!f || mc_call(f, MC_IN(x), MC_OUT(&y)) < 0) puts(mc_last_error());
 *
 * Builders (everything that returns a mc_node *) always return a usable node: after a mistake it is
 * the graph's error node, the first message stays with the graph (mc_error), and whatever is built
 * on it is the error node again; so check once, where you compile.  Functions that do something
 * return an mc_status, negative on failure, or NULL; mc_last_error then has the text.
 *
 * Graphs belong to one thread at a time.  Different functions may run in different threads at once.
 */
#ifndef MONOCHORD_H
#define MONOCHORD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(MC_BUILD) && defined(__GNUC__)
#define MC_API __attribute__((visibility("default")))
#else
#define MC_API
#endif
#if defined(__GNUC__)
#define MC_FORMAT(fmt, args) __attribute__((format(printf, fmt, args)))
#else
#define MC_FORMAT(fmt, args)
#endif

#define MC_VERSION "0.1.0"
#define MC_MAX_RANK 8

MC_API const char *mc_version(void); /* of the library in memory */

/* ------------------------------------------------------------------------------- errors ---- */

typedef enum mc_status {
    MC_OK = 0,
    MC_EARG = -1,    /* a wrong argument, name or flag */
    MC_ESYNTAX = -2, /* a formula that does not parse */
    MC_ETYPE = -3,   /* dtypes that do not fit */
    MC_ESHAPE = -4,  /* ranks or sizes that do not fit */
    MC_EINDEX = -5,  /* an index out of range, while running */
    MC_EGRAD = -6,   /* no gradient */
    MC_EMEMORY = -7,
    MC_EFILE = -8,   /* the operating system said no */
    MC_EFORMAT = -9, /* a damaged or foreign file */
    MC_EDEVICE = -10,
    MC_ECOMPILE = -11, /* the C compiler said no */
    MC_ECHECK = -12,   /* a self-check failed: DEBUG, NANGUARD, verify_grad, assert_ */
    MC_EUNSUPPORTED = -13,
    MC_EINTERNAL = -14 /* a fault of the library itself: please report the program */
} mc_status;

MC_API const char *mc_last_error(void);           /* of this thread; "" if there was none */
MC_API const char *mc_status_name(mc_status s);   /* "shape" */

/* ------------------------------------------------------------------------------- arrays ---- */

typedef enum mc_dtype {
    MC_BOOL, MC_INT8, MC_INT16, MC_INT32, MC_INT64, MC_UINT8, MC_UINT16, MC_UINT32, MC_UINT64,
    MC_FLOAT16, MC_BFLOAT16, MC_FLOAT32, MC_FLOAT64,
    MC_NDTYPE
} mc_dtype;

MC_API size_t mc_dtype_size(mc_dtype d);
MC_API const char *mc_dtype_name(mc_dtype d);                     /* "float32" */
MC_API mc_status mc_dtype_parse(const char *name, mc_dtype *out);
MC_API mc_dtype mc_dtype_promote(mc_dtype a, mc_dtype b);         /* NumPy's rule for arrays */

/* An array is a strided view of reference-counted memory.  Strides count bytes. */
typedef struct mc_array mc_array;

#define MC_SHAPE(...) ((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))), (int64_t[]){ __VA_ARGS__ }
#define MC_NOSHAPE 0, NULL /* a scalar: mc_array_new(MC_FLOAT32, MC_NOSHAPE) */

MC_API mc_array *mc_array_new(mc_dtype d, int rank, const int64_t *dims); /* zeros, C order */
MC_API mc_array *mc_array_from(mc_dtype d, int rank, const int64_t *dims, const void *data); /* copies */
/* Borrow memory: release(arg), if given, runs when the last view of it is gone. strides may be NULL. */
MC_API mc_array *mc_array_wrap(mc_dtype d, int rank, const int64_t *dims, const int64_t *strides,
                               void *data, void (*release)(void *arg), void *arg);
MC_API mc_array *mc_array_scalar(mc_dtype d, double value);
MC_API mc_array *mc_array_ref(const mc_array *a);    /* one more owner; the same pointer */
MC_API void mc_array_unref(mc_array **a);            /* one owner less; sets *a to NULL */

MC_API mc_dtype mc_array_dtype(const mc_array *a);
MC_API int mc_array_rank(const mc_array *a);
MC_API const int64_t *mc_array_dims(const mc_array *a);
MC_API const int64_t *mc_array_strides(const mc_array *a);
MC_API int64_t mc_array_size(const mc_array *a);     /* elements */
MC_API void *mc_array_data(const mc_array *a);       /* the element with index zero everywhere; NULL on a GPU */
MC_API const char *mc_array_device(const mc_array *a); /* "cpu", or the GPU whose memory it is in: "cuda0" */
MC_API int mc_array_is_contiguous(const mc_array *a);

/* Views share memory with what they view. */
MC_API mc_array *mc_array_slice(const mc_array *a, int axis, int64_t start, int64_t count, int64_t step);
MC_API mc_array *mc_array_transpose(const mc_array *a, const int *axes);    /* NULL: reversed */
MC_API mc_array *mc_array_reshape(const mc_array *a, int rank, const int64_t *dims); /* copies if it must */
MC_API mc_array *mc_array_copy(const mc_array *a);                          /* C order */
MC_API mc_array *mc_array_cast(const mc_array *a, mc_dtype d);
MC_API mc_status mc_array_assign(mc_array *dst, const mc_array *src);       /* same shape; casts */
MC_API mc_array *mc_array_to(const mc_array *a, const char *device);         /* "cpu", "cuda0": itself if it is there */
MC_API double mc_array_get(const mc_array *a, const int64_t *index);        /* one element; index NULL: the first */
MC_API mc_status mc_array_set(mc_array *a, const int64_t *index, double value);
MC_API mc_status mc_array_print(const mc_array *a, FILE *to);               /* as NumPy prints it, shortened */
MC_API char *mc_array_text(const mc_array *a);                              /* the same; free with mc_text_free */
MC_API void mc_text_free(char *text);

/* .npy and .npz.  Loading takes both byte orders, Fortran order, format versions 1 to 3, zip64,
 * stored and deflated members; saving writes what NumPy reads.  Files appear whole or not at all. */
MC_API mc_array *mc_npy_load(const char *path);
MC_API mc_status mc_npy_save(const char *path, const mc_array *a);
typedef struct mc_npz mc_npz;
MC_API mc_npz *mc_npz_open(const char *path);
MC_API int mc_npz_count(const mc_npz *z);
MC_API const char *mc_npz_name(const mc_npz *z, int i);        /* without ".npy" */
MC_API mc_array *mc_npz_load(mc_npz *z, const char *name);
MC_API void mc_npz_close(mc_npz *z);
MC_API mc_status mc_npz_save(const char *path, int n, const char *const *names, const mc_array *const *arrays);

/* DLPack, version 0 and 1, without copies either way, except that what is on a GPU is downloaded first.
 * The array takes t over; if it cannot (NULL), t is still the caller's. */
struct DLManagedTensor;
struct DLManagedTensorVersioned;
MC_API struct DLManagedTensor *mc_array_to_dlpack(const mc_array *a);
MC_API struct DLManagedTensorVersioned *mc_array_to_dlpack_versioned(const mc_array *a);
MC_API mc_array *mc_array_from_dlpack(struct DLManagedTensor *t);
MC_API mc_array *mc_array_from_dlpack_versioned(struct DLManagedTensorVersioned *t);

/* -------------------------------------------------------------------------------- graph ---- */

typedef struct mc_graph mc_graph;
typedef struct mc_node mc_node;     /* belongs to its graph and lives as long */
typedef struct mc_shared mc_shared; /* a variable that keeps its value between calls */

MC_API mc_graph *mc_graph_new(void);
MC_API void mc_graph_free(mc_graph *g);
MC_API const char *mc_error(const mc_graph *g); /* the first mistake made in this graph, or "" */
MC_API mc_status mc_graph_status(const mc_graph *g);
MC_API void mc_graph_clear_error(mc_graph *g);

/* A size of -1 is not known before the call; a size of 1 is a promise, and lets the axis broadcast. */
MC_API mc_node *mc_input(mc_graph *g, const char *name, mc_dtype d, int rank);
MC_API mc_node *mc_input_sized(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims);
MC_API mc_node *mc_constant(mc_graph *g, const mc_array *value);
MC_API mc_node *mc_number(mc_graph *g, mc_dtype d, double value);

/* Formulas: docs/text-form.md.  Statements are separated by ';' or line ends; the value is that of
 * the last one.  Names are inputs, shared variables and what earlier formulas assigned. */
MC_API mc_node *mc_formula(mc_graph *g, const char *text);
MC_API mc_node *mc_var(mc_graph *g, const char *name);
MC_API mc_node *mc_name(mc_node *n, const char *name); /* gives n a name in formulas; returns n */
/* Any op by name, the attributes as in a formula: mc_op(g, "sum", 1, &x, "axis=0"). */
MC_API mc_node *mc_op(mc_graph *g, const char *op, int n, mc_node *const *args, const char *attrs);
MC_API mc_node *mc_item(mc_node *tuple, int i);        /* one result of an op that has several */
/* x[...], the index as in a formula, printf-like: mc_index(x, "%d:, ::-1, i", 2).  A part so named can be set: */
MC_API mc_node *mc_index(mc_node *x, const char *index, ...) MC_FORMAT(2, 3);
MC_API mc_node *mc_set_subtensor(mc_node *part, mc_node *y); /* the whole x, that part of it set to y */
MC_API mc_node *mc_inc_subtensor(mc_node *part, mc_node *y); /* the same, increased by y */

/* Shared variables.  Several graphs and functions may use one.  The pointer that making one returns is the
 * graph's: take mc_shared_ref to keep it when graph and functions are gone, and give that back by mc_shared_unref. */
MC_API mc_shared *mc_shared_new(mc_graph *g, const char *name, const mc_array *value);
MC_API mc_shared *mc_shared_zeros(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims);
/* Sizes given as -1 may change: whoever sets or updates the variable decides; NULL: all of them may. */
MC_API mc_shared *mc_shared_sized(mc_graph *g, const char *name, const mc_array *value, const int64_t *dims);
MC_API mc_shared *mc_shared_ref(mc_shared *s);
MC_API void mc_shared_unref(mc_shared **s);
MC_API mc_node *mc_shared_node(mc_graph *g, mc_shared *s);     /* s as a node of g */
MC_API mc_shared *mc_shared_named(mc_graph *g, const char *name); /* not counted; NULL if there is none */
MC_API const char *mc_shared_name(const mc_shared *s);
MC_API mc_array *mc_shared_get(const mc_shared *s);            /* a copy */
MC_API mc_array *mc_shared_borrow(mc_shared *s);               /* the memory itself, not a copy; one more owner */
MC_API mc_status mc_shared_set(mc_shared *s, const mc_array *value); /* copies; shape and dtype must fit */
/* What a function that uses s does to it when its spec says nothing. */
MC_API mc_status mc_shared_default_update(mc_graph *g, mc_shared *s, mc_node *value);

/* ---------------------------------------------------------------------------- gradients ---- */

/* A gradient is made of ordinary nodes: it is optimised like the rest, and has gradients itself.  The
 * cost is a float scalar; wrt any node on the way to it.  The result has wrt's dtype and shape; a whole
 * number that the cost depends on has zeros of floatX.  A gradient depends on all that its cost does: that of 2 * x has
 * by x the gradient 0. */
typedef struct mc_grad_spec {
    mc_node *const *consider_constant; int nconstant; /* nothing passes through these */
    /* Gradients that are given; cost may then be NULL.  With a cost, they replace what it would send. */
    mc_node *const *known; mc_node *const *known_grad; int nknown;
    enum { MC_DISCONNECTED_RAISE, MC_DISCONNECTED_ZERO } disconnected; /* if the cost does not depend on a wrt */
} mc_grad_spec;

MC_API mc_node *mc_grad(mc_node *cost, mc_node *wrt);
/* Of several at once; on failure all are the error node.  spec may be NULL. */
MC_API mc_status mc_grads(mc_node *cost, int n, mc_node *const *wrt, mc_node **grads, const mc_grad_spec *spec);
MC_API mc_node *mc_Lop(mc_node *f, mc_node *wrt, mc_node *eval); /* eval . df/dwrt */
MC_API mc_node *mc_Rop(mc_node *f, mc_node *wrt, mc_node *eval); /* df/dwrt . eval */
/* Compares the gradient of f, any float tensor, with central differences in float64 at a point: one array
 * for each wrt.  Needs no compiler.  *worst: the largest error; MC_ECHECK names the element that is off. */
MC_API mc_status mc_verify_grad(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, double *worst);
/* The same where f needs inputs that it is not differentiated by, of any dtype: value[i] of given[i]. */
MC_API mc_status mc_verify_grad_given(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, int ngiven,
                                      mc_node *const *given, mc_array *const *value, double *worst);

/* ----------------------------------------------------------------------------- rewrites ---- */

/* A rule of your own for the graphs that g's functions are compiled from, beside the built-in ones:
 *     mc_rewrite_add(g, "log(gammaln(x))", "mine(x)", "mine");
 * Single small letters stand for any node, k m n for constants, axis=a for any attribute; the same
 * letter for the same node.  tags (or NULL): names for including and excluding, joined by ':'; a rule
 * tagged "off" runs only where it is included.  Both sides must have one dtype and shape. */
MC_API mc_status mc_rewrite_add(mc_graph *g, const char *from, const char *to, const char *tags);

/* ---------------------------------------------------------------------------- functions ---- */

typedef struct mc_function mc_function;

typedef struct mc_spec {
    const char *name;        /* for profiles and messages */
    const char *inputs;      /* "x, t, lr=0.1": names, in the order of the call; a default may follow */
    const char *outputs;     /* "cost, borrow(p)": formulas; borrow: valid until the next call */
    const char *updates;     /* "W = W - 0.1*grad(cost, W); b = ...": all from the old values */
    const char *givens;      /* "x = data[i*600:(i+1)*600]; ...": replacements made before all else */
    const char *mode;        /* FAST_RUN, FAST_COMPILE, DEBUG, NANGUARD; NULL: the flag */
    const char *including, *excluding; /* rules by name, tag or stage, joined by ':'; NULL: the flags */
    const char *on_unused;   /* raise, warn, ignore; NULL: the flag */
    int no_default_updates;
    int profile;             /* 1: time every step */
    int threads;             /* 0: the flag */
    /* The same by nodes, after those named in text. */
    mc_node *const *input; int ninput;
    mc_node *const *output; int noutput;
    mc_node *const *update_of; mc_node *const *update; int nupdate;
} mc_spec;

MC_API mc_function *mc_compile_at(mc_graph *g, const mc_spec *spec, const char *file, int line);
#define mc_compile(g, ...) mc_compile_at((g), (__VA_ARGS__), __FILE__, __LINE__) /* commas of a literal spec */
MC_API void mc_function_free(mc_function *f);
MC_API mc_function *mc_function_copy(mc_function *f, int share_updates); /* own memory, same kernels */

/* Waits until every device has done what calls asked of it.  Only results that stay there (gpu_from_host) ever leave
 * it behind; an error of a kernel may surface here. */
MC_API mc_status mc_synchronize(void);

/* One argument of a call.  MC_IN takes arrays, C numbers, and NULL for an input that has a default.  MC_OUT takes the
 * address of an array pointer (if it is NULL a new array is put there, otherwise the array there is written to), the
 * address of a C number, or NULL for a result that is not wanted.  Anything else does not compile.  A result that the
 * number does not hold is an error: a float in an integer, an integer or a finite float out of its range. */
typedef struct mc_arg {
    int kind; /* 0 array, 1 real, 2 integer, 3 array pointer, 4 number's address, 5 not given */
    mc_dtype dtype; /* of kind 4; MC_UINT64 with kind 2: the bits of a uint64_t */
    union { const mc_array *array; double real; int64_t integer; mc_array **slot; void *number; } u;
} mc_arg;

MC_API mc_status mc_call_args(mc_function *f, int nin, const mc_arg *in, int nout, const mc_arg *out);
#define mc_call(f, ...) mc_call_args((f), __VA_ARGS__)

static inline mc_arg mc_arg_array(const mc_array *a) { mc_arg r = { 0, MC_BOOL, { 0 } }; r.u.array = a; return r; }
static inline mc_arg mc_arg_real(double v) { mc_arg r = { 1, MC_FLOAT64, { 0 } }; r.u.real = v; return r; }
static inline mc_arg mc_arg_int(int64_t v) { mc_arg r = { 2, MC_INT64, { 0 } }; r.u.integer = v; return r; }
static inline mc_arg mc_arg_slot(mc_array **a) { mc_arg r = { 3, MC_BOOL, { 0 } }; r.u.slot = a; return r; }
static inline mc_arg mc_arg_uint(uint64_t v) { mc_arg r = { 2, MC_UINT64, { 0 } }; r.u.integer = (int64_t)v; return r; }
static inline mc_arg mc_arg_none(void *p) { mc_arg r = { 5, MC_BOOL, { 0 } }; r.u.number = p; return r; } /* p: NULL */
static inline mc_arg mc_arg_number(mc_dtype d, void *p) { mc_arg r = { 4, MC_BOOL, { 0 } }; r.dtype = d; r.u.number = p; return r; }
static inline mc_arg mc_arg_f32(float *p) { return mc_arg_number(MC_FLOAT32, p); }
static inline mc_arg mc_arg_f64(double *p) { return mc_arg_number(MC_FLOAT64, p); }
static inline mc_arg mc_arg_i8(signed char *p) { return mc_arg_number(MC_INT8, p); }
static inline mc_arg mc_arg_u8(unsigned char *p) { return mc_arg_number(MC_UINT8, p); }
static inline mc_arg mc_arg_i16(short *p) { return mc_arg_number(MC_INT16, p); }
static inline mc_arg mc_arg_u16(unsigned short *p) { return mc_arg_number(MC_UINT16, p); }
static inline mc_arg mc_arg_i32(int *p) { return mc_arg_number(MC_INT32, p); }
static inline mc_arg mc_arg_u32(unsigned *p) { return mc_arg_number(MC_UINT32, p); }
static inline mc_arg mc_arg_long(long *p) { return mc_arg_number(sizeof *p == 8 ? MC_INT64 : MC_INT32, p); }
static inline mc_arg mc_arg_ulong(unsigned long *p) { return mc_arg_number(sizeof *p == 8 ? MC_UINT64 : MC_UINT32, p); }
static inline mc_arg mc_arg_llong(long long *p) { return mc_arg_number(MC_INT64, p); }
static inline mc_arg mc_arg_ullong(unsigned long long *p) { return mc_arg_number(MC_UINT64, p); }
static inline mc_arg mc_arg_i64(int64_t *p) { return mc_arg_number(MC_INT64, p); }
static inline mc_arg mc_arg_u64(uint64_t *p) { return mc_arg_number(MC_UINT64, p); }

#if !defined(__cplusplus)
static inline mc_arg mc_arg_bool(_Bool *p) { return mc_arg_number(MC_BOOL, p); }
#define MC_ARG(x)                                                                                  \
    _Generic((x), mc_array *: mc_arg_array, const mc_array *: mc_arg_array, void *: mc_arg_none,   \
             float: mc_arg_real, double: mc_arg_real, long double: mc_arg_real,                    \
             _Bool: mc_arg_int, char: mc_arg_int, signed char: mc_arg_int, short: mc_arg_int,      \
             int: mc_arg_int, long: mc_arg_int, long long: mc_arg_int,                             \
             unsigned char: mc_arg_uint, unsigned short: mc_arg_uint, unsigned: mc_arg_uint,       \
             unsigned long: mc_arg_uint, unsigned long long: mc_arg_uint)(x)
#define MC_RES(x)                                                                                  \
    _Generic((x), mc_array **: mc_arg_slot, void *: mc_arg_none, _Bool *: mc_arg_bool,             \
             float *: mc_arg_f32, double *: mc_arg_f64,                                            \
             signed char *: mc_arg_i8, short *: mc_arg_i16, int *: mc_arg_i32,                     \
             long *: mc_arg_long, long long *: mc_arg_llong,                                       \
             unsigned char *: mc_arg_u8, unsigned short *: mc_arg_u16, unsigned *: mc_arg_u32,     \
             unsigned long *: mc_arg_ulong, unsigned long long *: mc_arg_ullong)(x)
#define MC_IN(...) MC_LIST_(MC_ARG, __VA_ARGS__)
#define MC_OUT(...) MC_LIST_(MC_RES, __VA_ARGS__)
#define MC_NONE 0, NULL /* no inputs, or no outputs */
#define MC_LIST_(m, ...)                                                                           \
    MC_COUNT_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0),                              \
    (mc_arg[]){ MC_CAT_(MC_EACH_, MC_COUNT_(__VA_ARGS__, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0))(m, __VA_ARGS__) }
#define MC_COUNT_(a, b, c, d, e, f, g, h, i, j, k, l, n, ...) n
#define MC_CAT_(a, b) MC_CAT2_(a, b)
#define MC_CAT2_(a, b) a##b
#define MC_EACH_1(m, x) m(x)
#define MC_EACH_2(m, x, ...) m(x), MC_EACH_1(m, __VA_ARGS__)
#define MC_EACH_3(m, x, ...) m(x), MC_EACH_2(m, __VA_ARGS__)
#define MC_EACH_4(m, x, ...) m(x), MC_EACH_3(m, __VA_ARGS__)
#define MC_EACH_5(m, x, ...) m(x), MC_EACH_4(m, __VA_ARGS__)
#define MC_EACH_6(m, x, ...) m(x), MC_EACH_5(m, __VA_ARGS__)
#define MC_EACH_7(m, x, ...) m(x), MC_EACH_6(m, __VA_ARGS__)
#define MC_EACH_8(m, x, ...) m(x), MC_EACH_7(m, __VA_ARGS__)
#define MC_EACH_9(m, x, ...) m(x), MC_EACH_8(m, __VA_ARGS__)
#define MC_EACH_10(m, x, ...) m(x), MC_EACH_9(m, __VA_ARGS__)
#define MC_EACH_11(m, x, ...) m(x), MC_EACH_10(m, __VA_ARGS__)
#define MC_EACH_12(m, x, ...) m(x), MC_EACH_11(m, __VA_ARGS__)
#endif

/* Sets the default of an input, used when a call gives fewer inputs, or NULL for this one. */
MC_API mc_status mc_function_set(mc_function *f, const char *input, mc_arg value);

/* -------------------------------------------------------------------------- random streams ---- */

/* Counter-based: the same numbers on every device and for every number of threads.  A stream is a
 * shared variable with a default update; in formulas uniform(rng, [600, 10]), normal(rng, shape(x)),
 * bernoulli(rng, p), multinomial(rng, p), permutation(rng, n). */
#define MC_SEED_OF_FLAG UINT64_MAX  /* as a seed: that of the flag `seed` */
MC_API mc_shared *mc_random(mc_graph *g, const char *name, uint64_t seed);

/* ------------------------------------------------------------------------------ custom ops ---- */

typedef struct mc_custom {
    const char *name;
    int nin, nout;
    /* Result i as the dtype and sizes of the inputs; -1 for a size not known.  NULL: like input 0. */
    mc_status (*infer)(void *arg, int nin, const mc_dtype *dtype, const int *rank, const int64_t *const *dims,
                       int i, mc_dtype *out_dtype, int *out_rank, int64_t *out_dims);
    mc_status (*run)(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out);
    mc_node *(*grad)(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                     mc_node *const *out_grad, int wrt);        /* NULL: no gradient */
    const char *kernel; /* instead of run: C of one element, at most three inputs a, b, c; M(exp) is exp in their
                         * precision, over vectors where there are: "a / (1 + M(exp)(-b))".  docs/adding-an-op.md */
    const char *kernel_grad[8]; /* formulas in the inputs, the result y and the gradient g */
    /* CUDA C instead of run where the op is on a GPU: extern "C" __global__ void NAME(view<const float> x, view<float> y),
     * inputs as they lie, then results.  x[i] is element i in C order, and an error of the call if there is none;
     * x.n, x.rank, x.size, x.stride, x.data for more.  Started with a thread for each element of result 0. */
    const char *cuda;
    int threads;        /* of a block; 0: 256 */
    void (*release)(void *arg);
    void *arg;
} mc_custom;
/* Makes name(...) usable in formulas of g and by mc_op. */
MC_API mc_status mc_register(mc_graph *g, const mc_custom *op);

/* -------------------------------------------------------------------------------- looking ---- */

MC_API char *mc_node_text(const mc_node *n);                /* a formula that parses back; mc_text_free */
MC_API char *mc_graph_text(const mc_graph *g, int n, mc_node *const *outputs); /* declarations and statements */
MC_API mc_status mc_graph_dot(const mc_graph *g, int n, mc_node *const *outputs, FILE *to);
MC_API mc_status mc_graph_svg(const mc_graph *g, int n, mc_node *const *outputs, FILE *to);
MC_API const char *mc_node_op(const mc_node *n);            /* "dot", "input", "constant", "shared" */
MC_API const char *mc_node_name(const mc_node *n);          /* "" if it has none */
MC_API mc_dtype mc_node_dtype(const mc_node *n);
MC_API int mc_node_rank(const mc_node *n);
MC_API const int64_t *mc_node_dims(const mc_node *n);
MC_API int mc_node_ninputs(const mc_node *n);
MC_API mc_node *mc_node_input(const mc_node *n, int i);
MC_API const mc_array *mc_node_value(const mc_node *n);     /* of a constant, else NULL */
MC_API uint32_t mc_node_id(const mc_node *n);

MC_API int mc_function_ninputs(const mc_function *f);
MC_API int mc_function_noutputs(const mc_function *f); /* a tuple counts as all of its items */
MC_API int mc_function_nsteps(const mc_function *f);
typedef struct mc_step_info {
    const char *kind;   /* "kernel", "gemm", "host", "copy" */
    const char *text;   /* what it computes, in the text form */
    const char *device, *solver, *reason; /* reason: why it runs where it does, or "" */
    int64_t calls;
    double seconds, flops, bytes; /* totals, when profiled */
} mc_step_info;
MC_API mc_step_info mc_function_step(const mc_function *f, int i);
MC_API const char *mc_function_source(const mc_function *f); /* of the kernels */
MC_API const char *mc_function_graph_text(const mc_function *f); /* after the rewrites */
MC_API size_t mc_function_memory(const mc_function *f);      /* bytes of the arena of the newest plan */
typedef struct mc_compile_info {
    double seconds, rewrite_seconds, cc_seconds; /* all of mc_compile; parts of it: the rules, the C compiler */
    size_t nodes_before, nodes_after;            /* the rules */
    double plan_seconds;                         /* of calls at sizes that were new: solvers, memory */
} mc_compile_info;
MC_API mc_compile_info mc_function_compile_info(const mc_function *f);
MC_API mc_status mc_function_profile(const mc_function *f, FILE *to);   /* the tables */
MC_API mc_status mc_function_report(const mc_function *f, FILE *to);    /* one self-contained HTML page */
/* The same under a title of your own, with extra_html (well-formed, or NULL) above all else. */
MC_API mc_status mc_function_report_with(const mc_function *f, FILE *to, const char *title, const char *extra_html);
MC_API int mc_op_count(void);
MC_API const char *mc_op_name(int i);
MC_API const char *mc_op_doc(int i);        /* "exp(x): e to the x" */

/* --------------------------------------------------------------- flags, threads, allocation ---- */

MC_API mc_status mc_flag_set(const char *name, const char *value);
MC_API mc_status mc_flags_parse(const char *text);     /* "floatX=float32,threads=2" */
MC_API const char *mc_flag_get(const char *name);      /* NULL: no such flag */
MC_API mc_status mc_flags_print(FILE *to);             /* every flag, its value and what it does */
MC_API mc_status mc_info(FILE *to);                    /* processor, libraries found, cache, flags */
MC_API mc_status mc_ops_manual(FILE *to);              /* docs/ops.md: every op, by family */
MC_API mc_status mc_ops_pages(const char *folder);     /* docs/api/ops-*.md: a page a family, each op with an example */
MC_API mc_status mc_flags_manual(FILE *to);            /* docs/flags.md */

/* Wisdom: which solver timing (flag plan=measure) found best for a problem on this machine. */
MC_API mc_status mc_wisdom_print(FILE *to);            /* the lines that mc_wisdom_import reads */
MC_API mc_status mc_wisdom_import(const char *path);   /* keeps what is already known */
MC_API mc_status mc_wisdom_clear(void);
typedef struct mc_allocator {
    void *(*realloc)(void *arg, void *p, size_t n);    /* n = 0 frees; must align to 16 bytes */
    void *arg;
} mc_allocator;
MC_API void mc_set_allocator(const mc_allocator *a);   /* before anything else; NULL: the C library's */

/* -------------------------------------------------------- for libraries on top of this one ---- */

/* Memory through the allocator above; NULL, and this thread's error, when there is none.  tag: what for, one word. */
MC_API void *mc_alloc(size_t n, const char *tag);
MC_API void *mc_calloc(size_t n, size_t size, const char *tag);
MC_API void *mc_realloc(void *p, size_t n, const char *tag);
MC_API void mc_free(void *p);                          /* NULL is fine */
MC_API char *mc_strdup(const char *s);
MC_API mc_status mc_fail(mc_status code, const char *fmt, ...) MC_FORMAT(2, 3); /* sets this thread's error; returns code */
MC_API mc_status mc_fail_again(const char *prefix_fmt, ...) MC_FORMAT(1, 2);    /* the same error, words before its text */
MC_API mc_node *mc_mistake(mc_graph *g, mc_status code, const char *fmt, ...) MC_FORMAT(3, 4); /* in g: its error node */
MC_API mc_status mc_last_status(void);                 /* the code of mc_last_error */
MC_API const char *mc_near_miss(const char *word, const char *const *list, size_t n); /* closest spelling, or NULL */
MC_API mc_status mc_file_read(const char *path, char **data, size_t *n); /* to mc_free; a zero byte follows the last */
MC_API mc_status mc_file_write(const char *path, const void *data, size_t n); /* appears whole or not at all; a device or a pipe is written to */
/* Numbers as text: strtod and snprintf as in the C locale, whatever locale the program has set. */
MC_API double mc_strtod(const char *s, char **end);
MC_API int mc_snprintf(char *text, size_t n, const char *fmt, ...) MC_FORMAT(3, 4);
MC_API int mc_vsnprintf(char *text, size_t n, const char *fmt, va_list ap) MC_FORMAT(3, 0);
MC_API mc_status mc_inflate(void *dst, size_t n, const void *src, size_t nsrc); /* raw deflate; exactly n bytes come out */
MC_API uint32_t mc_crc32(uint32_t crc, const void *p, size_t n);         /* begin with 0 */

#ifdef __cplusplus
}
#endif

#include <monochord_ops.h> /* one function an op, made from the table of ops */

#endif
