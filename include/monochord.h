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
 * Results.  A function that does something returns an mc_status: MC_OK, or a negative code.  A function
 * that makes something returns a pointer, NULL on failure.  In both cases mc_last_error has the text.
 *
 * Builders.  A function that returns a mc_node * always returns a usable node (NULL only where neither a
 * graph nor a node is given).  After a mistake it is the graph's error node.  What is built on the error
 * node is the error node, and the first message stays with the graph (mc_error).  So check once, where you
 * compile.
 *
 * NULL.  A function that is given NULL for an object fails with MC_EARG; one that frees does nothing; one
 * that reads a property returns 0, "" or NULL.
 *
 * Ownership.  An object that a function with new, from, wrap, load, open, copy, get or compile in its
 * name returns is the caller's, to be freed by the function of the same section; shared variables are
 * the graph's.  Arrays are counted: each pointer that was returned is given back by mc_array_unref.
 * Nodes belong to their graph.  A const char * belongs to the object that it describes and lives as
 * long; a char * is the caller's, freed by mc_text_free.
 *
 * Threads.  A graph, and all that is built in it, belongs to one thread at a time.  A compiled function may
 * be called from any thread; calls of one function wait for each other, and different functions run at once.
 * Counts of owners are atomic.  Errors are kept per thread.
 */
#ifndef MONOCHORD_H
#define MONOCHORD_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C++" { /* whoever includes this header may have said extern "C" around it */
#include <type_traits>
}
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

/* ------------------------------------------------------------------------------ version ---- */

#define MC_VERSION "0.1.0" /* of this header */
#define MC_MAX_RANK 8      /* the most axes that an array has */

MC_API const char *mc_version(void); /* of the library that is loaded */

/* ------------------------------------------------------------------------------- errors ---- */

/* A status is 0 or negative.  Each thread has the text of its own last error.  A message is whole: it
 * names the op, its inputs with their shapes, the place in the formula and the line of the program.  The
 * library never prints or exits because of an error. */

typedef enum mc_status { /* what went wrong */
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

/* The text of this thread's last error; "" if there was none.  It is overwritten by the next error of the
 * thread. */
MC_API const char *mc_last_error(void);
/* A code in one word: "shape" for MC_ESHAPE; "unknown" for what is no status. */
MC_API const char *mc_status_name(mc_status s);

/* ------------------------------------------------------------------------------- arrays ---- */

/* An array is a view of memory: a dtype, at most MC_MAX_RANK sizes, and strides that count bytes.  Memory
 * and views of it are counted.  Functions that return an mc_array * return a pointer that the caller gives
 * back by mc_array_unref; NULL on failure.  Any thread may count and read an array; who writes elements
 * sees to it that nobody reads them meanwhile. */

/* ---- dtypes ---- */

typedef enum mc_dtype { /* what an element is */
    MC_BOOL, MC_INT8, MC_INT16, MC_INT32, MC_INT64, MC_UINT8, MC_UINT16, MC_UINT32, MC_UINT64,
    MC_FLOAT16, MC_BFLOAT16, MC_FLOAT32, MC_FLOAT64,
    MC_NDTYPE
} mc_dtype;

MC_API size_t mc_dtype_size(mc_dtype d);                          /* bytes of an element */
MC_API const char *mc_dtype_name(mc_dtype d);                     /* its name: "float32" */
/* The dtype of that name; floatX: what the flag says. */
MC_API mc_status mc_dtype_parse(const char *name, mc_dtype *out);
/* The dtype in which both meet: NumPy's rule for arrays. */
MC_API mc_dtype mc_dtype_promote(mc_dtype a, mc_dtype b);

/* ---- making and counting ---- */

typedef struct mc_array mc_array; /* a strided view of counted memory */

/* MC_SHAPE(2, 3): rank and sizes as two arguments. */
#if defined(__cplusplus)
#define MC_SHAPE(...)                                                                              \
    static_cast<int>(decltype(mc_cpp_dims(__VA_ARGS__))::count), mc_cpp_dims(__VA_ARGS__).data()
#else
#define MC_SHAPE(...) ((int)(sizeof((int64_t[]){ __VA_ARGS__ }) / sizeof(int64_t))), (int64_t[]){ __VA_ARGS__ }
#endif
#define MC_NOSHAPE 0, NULL /* a scalar: mc_array_new(MC_FLOAT32, MC_NOSHAPE) */

/* Zeros in C order: mc_array_new(MC_FLOAT32, MC_SHAPE(2, 3)). */
MC_API mc_array *mc_array_new(mc_dtype d, int rank, const int64_t *dims);
/* A copy of the elements at data, which lie in C order. */
MC_API mc_array *mc_array_from(mc_dtype d, int rank, const int64_t *dims, const void *data);
/* Borrows memory: nothing is copied.  strides may be NULL: C order.  release(arg), if given, is called
 * when the last view of the memory is gone, in the thread that let it go.  On failure the memory stays the
 * caller's and release is not called. */
MC_API mc_array *mc_array_wrap(mc_dtype d, int rank, const int64_t *dims, const int64_t *strides,
                               void *data, void (*release)(void *arg), void *arg);
MC_API mc_array *mc_array_scalar(mc_dtype d, double value); /* one element of rank 0 */
MC_API mc_array *mc_array_ref(const mc_array *a);    /* one more owner; the same pointer */
/* one owner less; sets *a to NULL; frees with the last */
MC_API void mc_array_unref(mc_array **a);

/* ---- properties ---- */

MC_API mc_dtype mc_array_dtype(const mc_array *a);   /* the dtype of its elements */
MC_API int mc_array_rank(const mc_array *a);         /* the number of axes */
MC_API const int64_t *mc_array_dims(const mc_array *a); /* rank sizes; they live as long as a */
MC_API const int64_t *mc_array_strides(const mc_array *a); /* rank strides in bytes; they live as long as a */
MC_API int64_t mc_array_size(const mc_array *a);     /* the number of elements */
/* The element with index zero everywhere.  NULL, and an error, where the array is on a GPU: mc_array_to
 * brings it here. */
MC_API void *mc_array_data(const mc_array *a);
MC_API const char *mc_array_device(const mc_array *a); /* "cpu", or the GPU whose memory it is in: "cuda0" */
MC_API int mc_array_is_contiguous(const mc_array *a); /* 1 if the elements lie in C order without gaps */

/* ---- views, copies, elements ---- */

/* A view shares memory with what it views, and keeps that memory.  Arrays on a GPU are contiguous: a view
 * of one that would not be is refused with MC_EUNSUPPORTED. */

/* A view: count elements along an axis, from start on, step apart.  A step may be negative.  All of them
 * must lie in the axis, else the error is MC_EINDEX. */
MC_API mc_array *mc_array_slice(const mc_array *a, int axis, int64_t start, int64_t count, int64_t step);
/* A view: axis i of the result is axis axes[i] of a; axes NULL: all reversed. */
MC_API mc_array *mc_array_transpose(const mc_array *a, const int *axes);
/* The elements in C order in another shape; one size may be -1.  A view where strides can say it, else a
 * copy. */
MC_API mc_array *mc_array_reshape(const mc_array *a, int rank, const int64_t *dims);
/* New memory of the host, in C order. */
MC_API mc_array *mc_array_copy(const mc_array *a);
MC_API mc_array *mc_array_cast(const mc_array *a, mc_dtype d);              /* the same in another dtype */
/* Writes the elements of src, cast, into dst, which has the same shape.  They may overlap. */
MC_API mc_status mc_array_assign(mc_array *dst, const mc_array *src);
/* The array in the memory of a device, "cpu" or "cuda0": a itself, with one more owner, where it is there
 * already. */
MC_API mc_array *mc_array_to(const mc_array *a, const char *device);
/* One element as a double; index has rank numbers, NULL: the first element.  NaN, and an error, if it does
 * not lie in the array. */
MC_API double mc_array_get(const mc_array *a, const int64_t *index);
/* Writes one element, cast to the dtype. */
MC_API mc_status mc_array_set(mc_array *a, const int64_t *index, double value);
/* prints it as NumPy does, shortened */
MC_API mc_status mc_array_print(const mc_array *a, FILE *to);
/* What mc_array_print prints; free with mc_text_free. */
MC_API char *mc_array_text(const mc_array *a);
/* Frees a char * that the library returned. */
MC_API void mc_text_free(char *text);

/* ---- files ---- */

/* Loading takes of .npy and .npz both byte orders, Fortran order, format versions 1 to 3, zip64, stored and
 * deflated members; saving writes what NumPy reads.  Of .safetensors every dtype here has a counterpart.  A
 * file appears whole or not at all.  Errors are MC_EFILE (the operating system), MC_EFORMAT (the content),
 * MC_EUNSUPPORTED (another format, or elements of a type that is no dtype here). */

MC_API mc_array *mc_npy_load(const char *path);                     /* the array of a .npy file */
MC_API mc_status mc_npy_save(const char *path, const mc_array *a);  /* a as a .npy file */

/* A file of named arrays that is open for reading: .npz, NumPy's, or .safetensors, Hugging Face's. */
typedef struct mc_archive mc_archive;
/* Reads the names of a file in either format, which its first bytes tell; to be closed by
 * mc_archive_close. */
MC_API mc_archive *mc_archive_open(const char *path);
MC_API int mc_archive_count(const mc_archive *a);                   /* the number of arrays */
/* The name of the i-th, of .npz without ".npy"; lives as long as a. */
MC_API const char *mc_archive_name(const mc_archive *a, int i);
MC_API int mc_archive_has(const mc_archive *a, const char *name);   /* is there an array of that name? */
MC_API mc_array *mc_archive_load(mc_archive *a, const char *name);  /* the array of that name, read now */
/* closes it; arrays that were loaded stay */
MC_API void mc_archive_close(mc_archive *a);
/* Saves n arrays under their names: as .safetensors where the name of the file ends so, else as .npz.  as:
 * the name that counts where path is not the last one that the file gets; NULL: path. */
MC_API mc_status mc_archive_save(const char *path, const char *as, int n, const char *const *names,
                                 const mc_array *const *arrays);

/* ---- DLPack ---- */

/* Versions 0 and 1.  Nothing is copied either way, but what is on a GPU is downloaded first.  Who exports
 * keeps the memory until the importer calls the deleter.  An array that is made from a tensor takes it
 * over; on failure (NULL) the tensor is still the caller's. */

struct DLManagedTensor;
struct DLManagedTensorVersioned;
MC_API struct DLManagedTensor *mc_array_to_dlpack(const mc_array *a);  /* a as a tensor of version 0 */
MC_API struct DLManagedTensorVersioned *mc_array_to_dlpack_versioned(const mc_array *a); /* of version 1 */
MC_API mc_array *mc_array_from_dlpack(struct DLManagedTensor *t);      /* a tensor of version 0 as an array */
MC_API mc_array *mc_array_from_dlpack_versioned(struct DLManagedTensorVersioned *t); /* of version 1 */

/* -------------------------------------------------------------------------------- graph ---- */

/* A graph holds nodes and the names by which formulas call them.  A node never changes, and lives as long
 * as its graph. Two nodes that compute the same are one node.  A graph belongs to one thread at a time. */

typedef struct mc_graph mc_graph;   /* nodes, their names, and the first mistake */
typedef struct mc_node mc_node;     /* belongs to its graph and lives as long */
typedef struct mc_shared mc_shared; /* a variable that keeps its value between calls */

MC_API mc_graph *mc_graph_new(void);    /* an empty graph */
/* Frees it with its nodes; functions and shared variables that others hold stay. */
MC_API void mc_graph_free(mc_graph *g);
/* The first mistake made in this graph, or "".  The text lives until mc_graph_clear_error or
 * mc_graph_free.  Of NULL, this thread's last error. */
MC_API const char *mc_error(const mc_graph *g);
MC_API mc_status mc_graph_status(const mc_graph *g); /* the code of that mistake; MC_OK if there is none */
/* forgets that mistake; the error node stays the error node */
MC_API void mc_graph_clear_error(mc_graph *g);

/* ---- inputs and constants ---- */

/* An input: what a call gives.  No size is known before. */
MC_API mc_node *mc_input(mc_graph *g, const char *name, mc_dtype d, int rank);
/* An input with sizes.  -1: not known before the call.  A size of 1 is a promise, and lets the axis
 * broadcast. */
MC_API mc_node *mc_input_sized(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims);
MC_API mc_node *mc_constant(mc_graph *g, const mc_array *value); /* a copy of an array */
MC_API mc_node *mc_number(mc_graph *g, mc_dtype d, double value); /* a scalar of this dtype */

/* ---- formulas and ops ---- */

/* Formulas: docs/text-form.md.  Statements are separated by ';' or line ends; the value is that of
 * the last one.  Names are inputs, shared variables and what earlier formulas assigned. */
MC_API mc_node *mc_formula(mc_graph *g, const char *text);
/* The same, printf-like, numbers with a point in every locale: mc_formulaf(g, "y = %g * x", rate).
 * mc_formula itself takes its text as it is, because % is an operator of the language; here that operator is
 * written %%. */
MC_API mc_node *mc_formulaf(mc_graph *g, const char *fmt, ...) MC_FORMAT(2, 3);
/* The node of that name; the error node if there is none. */
MC_API mc_node *mc_var(mc_graph *g, const char *name);
MC_API mc_node *mc_name(mc_node *n, const char *name); /* gives n a name in formulas; returns n */
/* Nodes made from now on are part of what label says, "conv1" or "loss"; NULL: of nothing.  Profiles, reports
 * and traces then call steps "conv1 forward", "gradient of W".  Gradients take it over from the nodes that
 * they are of. Nothing else changes, and a node that was there already keeps its label.  Returns the label
 * before, for the end of the part; NULL if there was none. */
MC_API const char *mc_label(mc_graph *g, const char *label);
/* Any op by name, with n inputs, the attributes as in a formula: mc_op(g, "sum", 1, &x, "axis=0").  attrs
 * may be NULL. monochord_ops.h has a function for each op. */
MC_API mc_node *mc_op(mc_graph *g, const char *op, int n, mc_node *const *args, const char *attrs);
/* The same with the attributes printf-like. */
MC_API mc_node *mc_opf(mc_graph *g, const char *op, int n, mc_node *const *args, const char *attrs,
                       ...) MC_FORMAT(5, 6);
MC_API mc_node *mc_item(mc_node *tuple, int i);        /* result i of an op that has several */
/* x[...], the index as in a formula, printf-like: mc_index(x, "%d:, ::-1, i", 2).  A part so named can be
 * set. */
MC_API mc_node *mc_index(mc_node *x, const char *index, ...) MC_FORMAT(2, 3);
MC_API mc_node *mc_set_subtensor(mc_node *part, mc_node *y); /* the whole x, the part of it set to y */
MC_API mc_node *mc_inc_subtensor(mc_node *part, mc_node *y); /* the whole x, the part of it increased by y */
/* The nodes out[0] to out[nout - 1], computed from to[i] wherever they are computed from from[i], in place of
 * them: all of it at once, so that to[i] itself stays as it is.  What depends on no from[i] is not copied. */
MC_API mc_status mc_replace(int n, mc_node *const *from, mc_node *const *to, int nout, mc_node **out);

/* ---- shared variables ---- */

/* A shared variable keeps its value between calls; functions read it, and update it.  Several graphs and
 * functions may use one.  The pointer that making one returns is the graph's, NULL on failure: take
 * mc_shared_ref to keep it when graph and functions are gone.  Any thread may get and set; a call holds
 * the variables of its function until it ends. */

/* A variable that begins as a copy of value and keeps its shape. */
MC_API mc_shared *mc_shared_new(mc_graph *g, const char *name, const mc_array *value);
/* A variable that begins as zeros and keeps its shape. */
MC_API mc_shared *mc_shared_zeros(mc_graph *g, const char *name, mc_dtype d, int rank, const int64_t *dims);
/* A variable whose sizes that are -1 in dims may change: who sets or updates it decides.  dims NULL: all
 * of them. */
MC_API mc_shared *mc_shared_sized(mc_graph *g, const char *name, const mc_array *value, const int64_t *dims);
MC_API mc_shared *mc_shared_ref(mc_shared *s);    /* one more owner; the same pointer */
MC_API void mc_shared_unref(mc_shared **s);       /* one owner less; sets *s to NULL */
/* s as a node of g, which may be another graph */
MC_API mc_node *mc_shared_node(mc_graph *g, mc_shared *s);
/* The variable of that name, not counted; NULL if there is none. */
MC_API mc_shared *mc_shared_named(mc_graph *g, const char *name);
MC_API const char *mc_shared_name(const mc_shared *s);         /* its name */
MC_API mc_array *mc_shared_get(const mc_shared *s);            /* a copy of the value, the caller's */
/* The memory itself, not a copy; one more owner.  The next call or mc_shared_set may write to it.
 * From then on functions keep no prepared form of it from call to call, as its owner may write to it. */
MC_API mc_array *mc_shared_borrow(mc_shared *s);
/* Copies value in.  The shape must fit, else MC_ESHAPE; a dtype that would lose digits is MC_ETYPE. */
MC_API mc_status mc_shared_set(mc_shared *s, const mc_array *value);
/* The update that a function which uses s does when its spec says nothing of s. */
MC_API mc_status mc_shared_default_update(mc_graph *g, mc_shared *s, mc_node *value);
/* Saves all shared variables of the graph, those of random streams too, under their names: as .safetensors if
 * path ends so, else as .npz. */
MC_API mc_status mc_graph_save_shared(const mc_graph *g, const char *path);
/* Loads all of them from such a file.  Every name, shape and dtype is checked first: a variable that is
 * missing, one too many, or one that does not fit is one error, and nothing has changed. */
MC_API mc_status mc_graph_load_shared(mc_graph *g, const char *path);

/* ---------------------------------------------------------------------------- gradients ---- */

/* A gradient is made of ordinary nodes: it is optimised like the rest, and has gradients itself.  The cost
 * is a float scalar, wrt any node on the way to it.  The gradient has wrt's dtype and shape; that of a
 * whole number that the cost depends on is zeros of floatX.  Where the cost does not depend on a wrt, or
 * an op on the way has no gradient, the error is MC_EGRAD.  A gradient depends on all that its cost does:
 * that of 2 * x has by x the gradient 0. */

typedef struct mc_grad_spec { /* what mc_grads may be told */
    mc_node *const *consider_constant; int nconstant; /* nothing passes through these */
    /* Gradients that are given; cost may then be NULL.  With a cost, they replace what it would send. */
    mc_node *const *known; mc_node *const *known_grad; int nknown;
    /* if the cost does not depend on a wrt */
    enum { MC_DISCONNECTED_RAISE, MC_DISCONNECTED_ZERO } disconnected;
} mc_grad_spec;

MC_API mc_node *mc_grad(mc_node *cost, mc_node *wrt); /* the gradient of cost by wrt */
/* The gradients of cost by n nodes, into grads[n]; on failure all are the error node.  spec may be NULL. */
MC_API mc_status mc_grads(mc_node *cost, int n, mc_node *const *wrt, mc_node **grads,
                          const mc_grad_spec *spec);
/* The product eval . df/dwrt; eval has f's shape, the result wrt's. */
MC_API mc_node *mc_Lop(mc_node *f, mc_node *wrt, mc_node *eval);
/* The product df/dwrt . eval; eval has wrt's shape, the result f's. */
MC_API mc_node *mc_Rop(mc_node *f, mc_node *wrt, mc_node *eval);
/* The derivatives of all elements of y by all elements of x: y's shape, followed by x's.  It is a loop over
 * the elements of y, whose body is one Lop.  Where y is computed from x element by element, one Lop gives
 * the diagonal, and the rest is zeros. */
MC_API mc_node *mc_jacobian(mc_node *y, mc_node *x);
/* The Jacobian of the gradient of cost by x: x's shape twice.  Its product with a vector v needs no Hessian:
 * mc_Lop(mc_grad(cost, x), x, v). */
MC_API mc_node *mc_hessian(mc_node *cost, mc_node *x);
/* Compares the gradient of f, any float tensor, with central differences in float64 at a point: one array
 * for each wrt.  Needs no compiler.  *worst: the largest error; MC_ECHECK names the element that is off. */
MC_API mc_status mc_verify_grad(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, double *worst);
/* mc_verify_grad where f needs inputs that it is not differentiated by, of any dtype: value[i] of
 * given[i]. */
MC_API mc_status mc_verify_grad_given(mc_node *f, int n, mc_node *const *wrt, mc_array *const *at, int ngiven,
                                      mc_node *const *given, mc_array *const *value, double *worst);

/* -------------------------------------------------------------------------------- loops ---- */

/* A loop over a body of your own nodes, which is compiled once.  In the body, mc_scan_element(x) stands for
 * x[t] at step t, and mc_scan_state(initial) for a state before the step:
 *     mc_node *x = mc_scan_element(xs), *h = mc_scan_state(h0);
 *     mc_node *next = mc_tanh(mc_formula(...));
 *     mc_node *hs = mc_item(mc_scan(g, &(mc_scan_spec){ .element = &x, .nelement = 1, .state = &h,
 *                                                       .next = &next, .nstate = 1 }), 0);
 * Nodes that depend on no element and no state are computed once, before the loop.  Random numbers that are
 * drawn after the first element or state was made are new ones in every step. */
MC_API mc_node *mc_scan_element(mc_node *sequence); /* an element along axis 0 */
MC_API mc_node *mc_scan_state(mc_node *initial);    /* a state, which has this value before the first step */

typedef struct mc_scan_spec { /* a loop; fields that are left out are 0 or NULL */
    mc_node *steps;                       /* an integer scalar; NULL: the length of the first sequence */
    mc_node *const *element; int nelement;
    mc_node *const *state, *const *next; int nstate; /* next[i]: state[i] after the step */
    mc_node *const *collect; int ncollect;           /* values of every step */
    mc_node *until;                       /* a bool scalar: this step is the last; NULL: all steps are made */
    int backwards;                        /* elements are read from the last to the first */
    int truncate_gradient;                /* gradients flow through so many last steps; 0: all */
    int checkpoint;                       /* gradients keep each checkpoint-th state only; 0: all */
} mc_scan_spec;
/* The loop's results as a tuple for mc_item: for each state its values after every step, along a new axis 0;
 * then the collected values, in the same way; then for each state its value after the last step. */
MC_API mc_node *mc_scan(mc_graph *g, const mc_scan_spec *spec);

/* Elements of one sequence at several steps: element[i] stands for x[t + tap[i]], where t begins at the first
 * step for which all taps lie in the sequence and ends at the last one. */
MC_API mc_status mc_scan_taps(mc_node *sequence, int n, const int *tap, mc_node **element);
/* A state and its n - 1 values before: state[i] is the value i + 1 steps back.  initial has the n first
 * values along axis 0, the oldest first.  In the spec next[0] is the new value; next[i] is state[i - 1]. */
MC_API mc_status mc_scan_states(mc_node *initial, int n, mc_node **state);
/* The values of every step, along a new axis 0. */
MC_API mc_node *mc_scan_map(mc_graph *g, int nelement, mc_node *const *element, mc_node *value);
/* The last value of one state. */
MC_API mc_node *mc_scan_reduce(mc_graph *g, int nelement, mc_node *const *element, mc_node *state,
                               mc_node *next);
/* The same. */
MC_API mc_node *mc_scan_foldl(mc_graph *g, int nelement, mc_node *const *element, mc_node *state,
                              mc_node *next);
/* The same, with elements that are read from the last to the first. */
MC_API mc_node *mc_scan_foldr(mc_graph *g, int nelement, mc_node *const *element, mc_node *state,
                              mc_node *next);
/* mc_ifelse(c, a, b) of monochord_ops.h for n values: yes[i] if the scalar condition is not 0, else no[i].  A
 * tuple for mc_item; with n = 1 the value itself.  What only one side needs is computed only if that side is
 * chosen.  The gradient of a choice is a choice. */
MC_API mc_node *mc_ifelse_list(mc_node *condition, int n, mc_node *const *yes, mc_node *const *no);

/* ----------------------------------------------------------------------------- rewrites ---- */

/* Adds a rule of your own, beside the built-in ones, for functions that are compiled from g afterwards:
 *     mc_rewrite_add(g, "log(gammaln(x))", "mine(x)", "mine");
 * Single small letters stand for any node, k m n for constants, axis=a for any attribute; the same
 * letter for the same node.  tags (or NULL): names for including and excluding, joined by ':'; a rule
 * tagged "off" runs only where it is included.  Both sides must have one dtype and shape. */
MC_API mc_status mc_rewrite_add(mc_graph *g, const char *from, const char *to, const char *tags);

/* ---------------------------------------------------------------------------- functions ---- */

/* A compiled function is independent of its graph, and owns its kernels, plans and memory.  It may be
 * called from any thread.  Calls of one function wait for each other; functions that share a variable wait
 * for it; others run at once. A function must not be freed while it is called. */

typedef struct mc_function mc_function; /* kernels, plans for the shapes seen so far, memory */

typedef struct mc_spec { /* what mc_compile makes; fields that are left out are 0 or NULL */
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
    /* 1: shared variables of any size keep the sizes that they have now, and kernels are made for these.  A
     * call after one of them got another shape is an error, MC_ESHAPE; functions compiled later leave its
     * sizes open. */
    int fixed_sizes;
    /* The same by nodes, after those named in text. */
    mc_node *const *input; int ninput;
    mc_node *const *output; int noutput;
    mc_node *const *update_of; mc_node *const *update; int nupdate;
} mc_spec;

/* mc_compile(g, &(mc_spec){ ... }) compiles a function; file and line are for messages, and the macro lets
 * a literal spec have commas.  The graph stays as it is.  NULL on failure: the message is the graph's too
 * (mc_error).  Compiling takes as long as the C compiler, once for all shapes. */
MC_API mc_function *mc_compile_at(mc_graph *g, const mc_spec *spec, const char *file, int line);
#define mc_compile(g, ...) mc_compile_at((g), (__VA_ARGS__), __FILE__, __LINE__)
/* frees it; results that were delivered stay, but not borrowed ones */
MC_API void mc_function_free(mc_function *f);
/* A function with memory of its own and the same kernels and shared variables, for another thread.
 * share_updates 0: it does no updates. */
MC_API mc_function *mc_function_copy(mc_function *f, int share_updates);

/* Waits until every device has done what calls asked of it.  Only results that stay there (gpu_from_host)
 * ever leave it behind; an error of a kernel may surface here. */
MC_API mc_status mc_synchronize(void);

/* One argument of a call.  MC_IN takes arrays, C numbers, and NULL for an input that has a default.
 * MC_OUT takes the address of an array pointer (if it is NULL a new array is put there, otherwise the
 * array there is written to), the address of a C number, or NULL for a result that is not wanted.
 * Anything else does not compile.  A result that the number does not hold is an error: a float in an
 * integer, an integer or a finite float out of its range. */
typedef struct mc_arg { /* an argument or a place for a result; MC_IN and MC_OUT make them */
    int kind; /* 0 array, 1 real, 2 integer, 3 array pointer, 4 number's address, 5 not given */
    mc_dtype dtype; /* of kind 4; MC_UINT64 with kind 2: the bits of a uint64_t */
    union { const mc_array *array; double real; int64_t integer; mc_array **slot; void *number; } u;
} mc_arg;

/* mc_call(f, MC_IN(x, t), MC_OUT(&y)) calls a function: the first inputs and results in the order of the
 * spec.  Inputs that are not given have their defaults, results that are not given are not delivered; all
 * updates are done.  Input arrays stay the caller's and are not kept.  MC_ESHAPE, MC_ETYPE: an input that
 * does not fit; MC_EINDEX: an index out of range.  Updates are done when all steps have run. */
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
static inline mc_arg mc_arg_ulong(unsigned long *p)
{
    return mc_arg_number(sizeof *p == 8 ? MC_UINT64 : MC_UINT32, p);
}
static inline mc_arg mc_arg_llong(long long *p)
{
    return mc_arg_number(MC_INT64, p);
}
static inline mc_arg mc_arg_ullong(unsigned long long *p)
{
    return mc_arg_number(MC_UINT64, p);
}
static inline mc_arg mc_arg_i64(int64_t *p)
{
    return mc_arg_number(MC_INT64, p);
}
static inline mc_arg mc_arg_u64(uint64_t *p)
{
    return mc_arg_number(MC_UINT64, p);
}

#if defined(__cplusplus)
/* MC_SHAPE, MC_IN and MC_OUT from C++11 on, where no array literal stands inside a call: values that live as
 * long as the call.  MC_OUT takes the bool of C++.  monochord.hpp has classes. */
extern "C++" {
template <class T, int n> struct mc_cpp_list {
    enum { count = n };
    T at[n];
    T *data() { return at; }
};
template <class... T> inline mc_cpp_list<int64_t, sizeof...(T)> mc_cpp_dims(T... size)
{
    return { { static_cast<int64_t>(size)... } };
}

/* Was NULL written?  GCC and clang give it the type of a number. */
constexpr bool mc_cpp_is_null(const char *s)
{
    return s[0] == '_' && s[1] == '_' && s[2] == 'n' && s[3] == 'u' && s[4] == 'l' && s[5] == 'l' && !s[6];
}
template <class T> constexpr mc_dtype mc_cpp_dtype()
{
    return std::is_same<T, bool>::value ? MC_BOOL
         : std::is_floating_point<T>::value ? (sizeof(T) == 4 ? MC_FLOAT32 : MC_FLOAT64)
         : static_cast<mc_dtype>((std::is_signed<T>::value ? MC_INT8 : MC_UINT8) +
                                 (sizeof(T) == 1 ? 0 : sizeof(T) == 2 ? 1 : sizeof(T) == 4 ? 2 : 3));
}
template <bool null> struct mc_cpp_arg {
    static mc_arg in(const mc_array *a) { return mc_arg_array(a); }
    static mc_arg in(decltype(nullptr)) { return mc_arg_none(nullptr); }
    template <class T> static typename std::enable_if<std::is_arithmetic<T>::value, mc_arg>::type in(T v)
    {
        return std::is_floating_point<T>::value ? mc_arg_real(static_cast<double>(v))
             : std::is_signed<T>::value ? mc_arg_int(static_cast<int64_t>(v))
             : mc_arg_uint(static_cast<uint64_t>(v));
    }
    static mc_arg out(mc_array **a) { return mc_arg_slot(a); }
    static mc_arg out(decltype(nullptr)) { return mc_arg_none(nullptr); }
    template <class T>
    static typename std::enable_if<std::is_arithmetic<T>::value && !std::is_const<T>::value, mc_arg>::type
    out(T *p)
    {
        static_assert(!std::is_same<T, long double>::value && !std::is_same<T, char>::value,
                      "MC_OUT takes no address of this type");
        return mc_arg_number(mc_cpp_dtype<T>(), p);
    }
};
template <> struct mc_cpp_arg<true> {
    static mc_arg in(const void *) { return mc_arg_none(nullptr); }
    static mc_arg out(const void *) { return mc_arg_none(nullptr); }
};
}
#define MC_ARG(x) mc_cpp_arg<mc_cpp_is_null(#x)>::in(x)
#define MC_RES(x) mc_cpp_arg<mc_cpp_is_null(#x)>::out(x)
#define MC_ARGS_(n, ...) mc_cpp_list<mc_arg, n>{ { __VA_ARGS__ } }.data()
#define MC_TOO_MANY_                                                                               \
    [] { static_assert(false, "MC_IN and MC_OUT take at most 32 arguments"); return mc_arg(); }()
#else
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
#define MC_ARGS_(n, ...) (mc_arg[]){ __VA_ARGS__ }
#define MC_TOO_MANY_                                                                               \
    mc_arg_int(sizeof(struct { _Static_assert(0, "MC_IN and MC_OUT take at most 32 arguments"); int none; }))
#endif
#define MC_IN(...) MC_LIST_(MC_ARG, __VA_ARGS__) /* up to 32 arguments */
#define MC_OUT(...) MC_LIST_(MC_RES, __VA_ARGS__)
#define MC_NONE 0, NULL /* no inputs, or no outputs */
#define MC_LIST_(m, ...) MC_LIST2_(MC_COUNT_(__VA_ARGS__), m, __VA_ARGS__)
#define MC_LIST2_(n, m, ...) MC_LIST3_(n, m, __VA_ARGS__)
#define MC_LIST3_(n, m, ...) n, MC_ARGS_(n, MC_EACH_##n(m, __VA_ARGS__))
#define MC_COUNT_(...)                                                                                    \
    MC_COUNT2_(__VA_ARGS__, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_, MC_32_,       \
    MC_32_, MC_32_, MC_32_, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18, 17, 16, 15, 14,   \
    13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)
#define MC_COUNT2_(a1, a2, a3, a4, a5, a6, a7, a8, a9, a10, a11, a12, a13, a14, a15, a16, a17, a18,       \
    a19, a20, a21, a22, a23, a24, a25, a26, a27, a28, a29, a30, a31, a32, a33, a34, a35, a36, a37, a38,   \
    a39, a40, a41, a42, a43, a44, a45, a46, a47, a48, a49, a50, a51, a52, a53, a54, a55, a56, a57, a58,   \
    a59, a60, a61, a62, a63, a64, a65, a66, a67, a68, a69, a70, a71, a72, a73, a74, a75, a76, a77, a78,   \
    a79, a80, a81, a82, a83, a84, a85, a86, a87, a88, a89, a90, a91, a92, a93, a94, a95, a96, a97, a98,   \
    a99, a100, a101, a102, a103, a104, a105, a106, a107, a108, a109, a110, a111, a112, a113, a114, a115,  \
    a116, a117, a118, a119, a120, a121, a122, a123, a124, a125, a126, a127, a128, n, ...) n
#define MC_EACH_MC_32_(m, ...) MC_TOO_MANY_
enum { MC_32_ = 1 }; /* the count where there are more than 32, up to 128 */
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
#define MC_EACH_13(m, x, ...) m(x), MC_EACH_12(m, __VA_ARGS__)
#define MC_EACH_14(m, x, ...) m(x), MC_EACH_13(m, __VA_ARGS__)
#define MC_EACH_15(m, x, ...) m(x), MC_EACH_14(m, __VA_ARGS__)
#define MC_EACH_16(m, x, ...) m(x), MC_EACH_15(m, __VA_ARGS__)
#define MC_EACH_17(m, x, ...) m(x), MC_EACH_16(m, __VA_ARGS__)
#define MC_EACH_18(m, x, ...) m(x), MC_EACH_17(m, __VA_ARGS__)
#define MC_EACH_19(m, x, ...) m(x), MC_EACH_18(m, __VA_ARGS__)
#define MC_EACH_20(m, x, ...) m(x), MC_EACH_19(m, __VA_ARGS__)
#define MC_EACH_21(m, x, ...) m(x), MC_EACH_20(m, __VA_ARGS__)
#define MC_EACH_22(m, x, ...) m(x), MC_EACH_21(m, __VA_ARGS__)
#define MC_EACH_23(m, x, ...) m(x), MC_EACH_22(m, __VA_ARGS__)
#define MC_EACH_24(m, x, ...) m(x), MC_EACH_23(m, __VA_ARGS__)
#define MC_EACH_25(m, x, ...) m(x), MC_EACH_24(m, __VA_ARGS__)
#define MC_EACH_26(m, x, ...) m(x), MC_EACH_25(m, __VA_ARGS__)
#define MC_EACH_27(m, x, ...) m(x), MC_EACH_26(m, __VA_ARGS__)
#define MC_EACH_28(m, x, ...) m(x), MC_EACH_27(m, __VA_ARGS__)
#define MC_EACH_29(m, x, ...) m(x), MC_EACH_28(m, __VA_ARGS__)
#define MC_EACH_30(m, x, ...) m(x), MC_EACH_29(m, __VA_ARGS__)
#define MC_EACH_31(m, x, ...) m(x), MC_EACH_30(m, __VA_ARGS__)
#define MC_EACH_32(m, x, ...) m(x), MC_EACH_31(m, __VA_ARGS__)

/* Sets the default of an input, used when a call gives fewer inputs, or NULL for this one.  Arrays are
 * copied. */
MC_API mc_status mc_function_set(mc_function *f, const char *input, mc_arg value);

/* ------------------------------------------------------------------------------- export ---- */

/* Writes functions as one C99 file, PATH, and a header beside it.  They need no library but libc and libm:
 *
 *     mc_export_c("lenet.c", 2, (mc_export_function[]){ { train, "train", "x[32, 1, 28, 28], t[32]" },
 *                                                       { predict, "predict", "x[1, 1, 28, 28]" } });
 *
 * gives struct lenet with the shared variables of both, lenet_init(), lenet_train() and lenet_predict(),
 * which do what calls of the functions do, updates included, at these sizes.  The bits are those of the
 * function called with contiguous arrays and the flag `portable`.  Both files compile as C++ too. */
typedef struct mc_export_function { /* a function and its name in the file */
    mc_function *function;
    const char *name;
    const char *shapes;      /* the sizes of inputs that the function leaves open; NULL: none is open */
} mc_export_function;
typedef struct mc_export_spec { /* what mc_export writes; fields that are left out are 0 or NULL */
    const char *path;        /* the C file, whose name ends in .c */
    int nfunction;
    const mc_export_function *function;
    /* The file that gets the values of the variables: a .safetensors file if its name ends so, else their
     * bytes, in the order of the structure, without gaps.  Then there is lenet_load(model, bytes, size) in
     * place of lenet_init(model).  NULL: they are in the C file. */
    const char *parameters;
    /* The widest x86-64 instruction set that the file has code for: "avx2", "avx512", or "all".  It has the
     * narrower ones too, and lenet_isa(); a call uses the widest that the processor has.  NULL: it has code
     * for the one that the C compiler's options select. */
    const char *isa;
    /* Nonzero: where several portable solvers can do a step, the one that is fastest on this machine, as
     * under the flag plan=measure: wisdom is read and added to.  0: the one with the lowest estimate. */
    int measure;
    /* Nonzero: the file needs no C library but memcpy and memset, and has no vectors.  It computes in float32
     * alone: other floats are MC_EUNSUPPORTED, and so are functions that need a C library, such as sin. */
    int freestanding;
} mc_export_spec;
/* MC_EUNSUPPORTED: a step cannot be exported; the message names it, and nothing is written.  MC_EARG: a name
 * that C does not take, or two functions of one name. */
MC_API mc_status mc_export(const mc_export_spec *spec);
/* mc_export without a file of parameters. */
MC_API mc_status mc_export_c(const char *path, int n, const mc_export_function *functions);

/* ------------------------------------------------------------------------------ bundles ---- */

/* A bundle is a file of compiled functions: their steps, their kernels as machine code, the solvers that were
 * measured, the values of their variables.  Loading it takes no compiler, no cache and no wisdom.  It holds
 * machine code: load only files that you trust, as with shared libraries. */

typedef struct mc_bundle_note { const char *key, *text; } mc_bundle_note; /* texts that go along */
typedef struct mc_bundle_spec { /* what mc_bundle_save writes; fields that are left out are 0 or NULL */
    const char *path;
    int nfunction;
    mc_function *const *function; /* variables that they share are shared in the file too */
    /* The sets of instructions that kernels are compiled for, in order of preference: words among avx512,
     * avx2, sse2, native, with commas.  A load takes the first that its processor has.  NULL: native, what
     * this processor has.  The flag cpu.isa limits what a processor has, here and there. */
    const char *isa;
    int nnote;
    const mc_bundle_note *note;
    /* The GPUs that kernels of functions on a GPU are compiled for: words such as sm_80, sm_90 (compute
     * capability 9.0) and native, with commas.  NULL: native, the functions' own.  Solvers have kernels for
     * the sizes of the calls so far; NVRTC compiles others after loading, if it is there. */
    const char *gpu;
} mc_bundle_spec;
/* Writes the file as a whole, or nothing.  MC_EUNSUPPORTED: a function that cannot be saved; the message says
 * why. */
MC_API mc_status mc_bundle_save(const mc_bundle_spec *spec);
/* Makes the first n functions of the file, in the order in which they were saved; functions[i] becomes the
 * caller's.  Returns how many functions the file has; on an error none is made.  MC_EFORMAT: the file is no
 * bundle, damaged, of another version, or for another processor or GPU.  MC_EDEVICE: a function is for a GPU,
 * and there is none. */
MC_API int mc_bundle_load(const char *path, int n, mc_function **functions);
/* The text of that key; to mc_text_free.  NULL: there is none, or the file is no bundle. */
MC_API char *mc_bundle_text(const char *path, const char *key);
/* The same for one function. */
MC_API mc_status mc_function_save(mc_function *f, const char *path);
MC_API mc_function *mc_function_load(const char *path); /* NULL: mc_last_error says why */

/* -------------------------------------------------------------------------- random streams ---- */

/* Counter-based: the same numbers on every device and for every number of threads.  A stream is a
 * shared variable with a default update; in formulas uniform(rng, [600, 10]), normal(rng, shape(x)),
 * bernoulli(rng, p), multinomial(rng, p), permutation(rng, n). */

#define MC_SEED_OF_FLAG UINT64_MAX  /* as a seed: that of the flag `seed` */
/* A stream of that name; it belongs to the graph, as shared variables do.  Equal seeds give equal numbers. */
MC_API mc_shared *mc_random(mc_graph *g, const char *name, uint64_t seed);

/* ------------------------------------------------------------------------------ custom ops ---- */

/* Ops of a program's own: docs/adding-an-op.md.  Callbacks run in the thread that builds or calls; for
 * several functions at once, if these are called at once. */

typedef struct mc_custom { /* one op; fields that are left out are 0 or NULL */
    const char *name;
    int nin, nout;
    /* Result i as the dtype and sizes of the inputs; -1 for a size not known.  NULL: like input 0. */
    mc_status (*infer)(void *arg, int nin, const mc_dtype *dtype, const int *rank, const int64_t *const *dims,
                       int i, mc_dtype *out_dtype, int *out_rank, int64_t *out_dims);
    mc_status (*run)(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out);
    mc_node *(*grad)(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                     mc_node *const *out_grad, int wrt);        /* NULL: no gradient */
    /* instead of run: C of one element, at most three inputs a, b, c; M(exp) is exp in their precision,
     * over vectors where there are: "a / (1 + M(exp)(-b))".  docs/adding-an-op.md */
    const char *kernel;
    const char *kernel_grad[8]; /* formulas in the inputs, the result y and the gradient g */
    /* CUDA C instead of run where the op is on a GPU: extern "C" __global__ void NAME(view<const float> x,
     * view<float> y), inputs as they lie, then results.  x[i] is element i in C order, and an error of the
     * call if there is none; x.n, x.rank, x.size, x.stride, x.data for more.  Started with a thread for each
     * element of result 0. */
    const char *cuda;
    int threads;        /* of a block; 0: 256 */
    void (*release)(void *arg);
    void *arg;
} mc_custom;
/* Makes name(...) usable in formulas of g and by mc_op.  The struct and its texts are copied.
 * release(arg) is called when graph and functions are gone; after an error arg is still the caller's. */
MC_API mc_status mc_register(mc_graph *g, const mc_custom *op);

/* ------------------------------------------------------------------------------ many ranks ---- */

/* Ranks are processes, or threads of one process, that run the same program, each on its share of the data.
 * In formulas: all_reduce(x, op='mean'), broadcast, all_gather, reduce_scatter, rank_of.  docs/ranks.md */

/* a communicator: one rank's place among all; the maker's, to be freed by mc_comm_free */
typedef struct mc_comm mc_comm;
/* The ranks of mpirun ("mpi") or torchrun ("tcp"), or one rank alone ("local", NULL).  NULL on failure. */
MC_API mc_comm *mc_comm_open(const char *engine);
/* n ranks of this process, for a thread each; rank i is out[i].  A rank that is freed has left: others that
 * wait for it get an error. */
MC_API mc_status mc_comm_local(int n, mc_comm **out);
/* The ranks of c with a GPU each, "cuda1"; every rank calls it.  Functions compiled for that GPU exchange
 * data by NCCL, in its memory.  It holds c.  NULL on failure, such as a GPU that two ranks name. */
MC_API mc_comm *mc_comm_gpu(mc_comm *c, const char *device);
MC_API void mc_comm_free(mc_comm *c);               /* functions that use it hold it, too */
/* Ends the other ranks too, after an error that only this one had; under MPI it does not return. */
MC_API void mc_comm_abort(mc_comm *c);
MC_API int mc_comm_rank(const mc_comm *c);          /* from 0 */
MC_API int mc_comm_size(const mc_comm *c);          /* how many ranks there are */
/* Names the ranks of c for formulas of g: all_reduce(x, group='data').  Without a name there, the first. */
MC_API mc_status mc_graph_ranks(mc_graph *g, const char *name, mc_comm *c);
/* n elements of all ranks become their "sum", "mean", "max" or "min"; every rank calls it. */
MC_API mc_status mc_comm_reduce(mc_comm *c, const char *op, mc_dtype d, void *x, int64_t n);
/* n elements become those of rank root; every rank calls it. */
MC_API mc_status mc_comm_broadcast(mc_comm *c, int root, mc_dtype d, void *x, int64_t n);
/* Have all ranks the same version of the library, the same flags that change results, and the same text, a
 * line a thing?  MC_ECHECK, in all of them, with the first line that differs; every rank calls it. */
MC_API mc_status mc_comm_agree(mc_comm *c, const char *text);

/* -------------------------------------------------------------------------------- looking ---- */

/* What a graph and a function hold.  Nothing here changes them. */

/* ---- nodes and graphs ---- */

/* Texts of const char * live as long as the graph. */

MC_API char *mc_node_text(const mc_node *n);                /* a formula that parses back; mc_text_free */
/* Declarations and statements that compute n outputs; they parse back; mc_text_free. */
MC_API char *mc_graph_text(const mc_graph *g, int n, mc_node *const *outputs);
/* A picture for Graphviz. */
MC_API mc_status mc_graph_dot(const mc_graph *g, int n, mc_node *const *outputs, FILE *to);
/* a picture as SVG */
MC_API mc_status mc_graph_svg(const mc_graph *g, int n, mc_node *const *outputs, FILE *to);
/* The name of its op: "dot", "input", "constant", "shared". */
MC_API const char *mc_node_op(const mc_node *n);
MC_API const char *mc_node_name(const mc_node *n);          /* its name in formulas; "" if it has none */
MC_API mc_dtype mc_node_dtype(const mc_node *n);            /* the dtype of its elements */
MC_API int mc_node_rank(const mc_node *n);                  /* the number of axes */
MC_API const int64_t *mc_node_dims(const mc_node *n);       /* rank sizes; -1: not known before the call */
MC_API int mc_node_ninputs(const mc_node *n);               /* the number of its inputs */
MC_API mc_node *mc_node_input(const mc_node *n, int i);     /* its i-th input; NULL: it has none */
/* the value of a constant, else NULL; not counted */
MC_API const mc_array *mc_node_value(const mc_node *n);
/* Its number in the graph; inputs have smaller ones. */
MC_API uint32_t mc_node_id(const mc_node *n);

/* ---- functions ---- */

/* Texts of const char * live as long as the function.  Times count calls of functions with .profile only. */

MC_API const char *mc_function_name(const mc_function *f); /* the spec's name, else "function" */
MC_API int mc_function_ninputs(const mc_function *f);  /* the number of its inputs */
/* The number of its results; a tuple counts as all of its items. */
MC_API int mc_function_noutputs(const mc_function *f);
MC_API int mc_function_nsteps(const mc_function *f);   /* the number of steps that a call runs */
MC_API const char *mc_function_input_name(const mc_function *f, int i);  /* of input i; "": there is none */
MC_API const char *mc_function_output_name(const mc_function *f, int i); /* of result i; "": it has none */
MC_API int mc_function_nshared(const mc_function *f);  /* the number of variables that it reads or updates */
/* Variable i, in the order of names; it belongs to the function.  NULL: there is none. */
MC_API mc_shared *mc_function_shared(const mc_function *f, int i);
MC_API mc_shared *mc_function_shared_named(const mc_function *f, const char *name); /* NULL: there is none */
typedef struct mc_step_info { /* one step */
    const char *kind;   /* "kernel", "gemm", "loop", "host", "view", "size" */
    const char *name;   /* what it is for, by labels, variables and results: "conv1 forward", "update of W" */
    const char *text;   /* what it computes, in the text form */
    const char *device, *solver, *reason; /* reason: why it runs where it does, or "" */
    int64_t calls;
    double seconds, flops, bytes; /* totals, when profiled */
} mc_step_info;
MC_API mc_step_info mc_function_step(const mc_function *f, int i); /* step i; all "" and 0 if there is none */
/* The body of the loop that step i computes, as a function that is compiled for it: for mc_function_nsteps,
 * mc_function_step, mc_function_source and the like, not to be called or freed.  A step of it counts each run
 * as a call.  It belongs to f.  NULL: the step is no loop, or the reference computes the loop. */
MC_API const mc_function *mc_function_body(const mc_function *f, int i);
/* What makes the function slower than it could be on this machine, and what to do about it: no C compiler is
 * found, so that kernels run as reference loops.  "": nothing. */
MC_API const char *mc_function_warning(const mc_function *f);
/* the kernels' text, C or CUDA C; "": of a function for the CPU that was loaded, whose file has machine code
 * alone */
MC_API const char *mc_function_source(const mc_function *f);
MC_API const char *mc_function_graph_text(const mc_function *f); /* the graph after the rewrites */
/* Bytes of the newest plan: its arena, and the values and states of the bodies of loops. */
MC_API size_t mc_function_memory(const mc_function *f);
typedef struct mc_compile_info { /* what compiling took */
    /* all of mc_compile; parts of it: the rules, the C compiler */
    double seconds, rewrite_seconds, cc_seconds;
    size_t nodes_before, nodes_after;            /* the rules */
    double plan_seconds;                         /* of calls at sizes that were new: solvers, memory */
} mc_compile_info;
/* What compiling and planning took so far. */
MC_API mc_compile_info mc_function_compile_info(const mc_function *f);
/* Tables of times by op, by step, and of memory. */
MC_API mc_status mc_function_profile(const mc_function *f, FILE *to);
MC_API mc_status mc_function_report(const mc_function *f, FILE *to);    /* one self-contained HTML page */
/* mc_function_report under a title of your own, with extra_html (well-formed, or NULL) above all else. */
MC_API mc_status mc_function_report_with(const mc_function *f, FILE *to, const char *title,
                                         const char *extra_html);

/* ---- ops ---- */

MC_API int mc_op_count(void);               /* the number of ops, hidden ones too */
MC_API const char *mc_op_name(int i);       /* the name of op i: "exp"; NULL: no such op */
MC_API const char *mc_op_doc(int i);        /* what op i does: "e to the a"; NULL: no such op */

/* --------------------------------------------------------------- flags, threads, allocation ---- */

/* Flags belong to the process and may be read and set from any thread; docs/flags.md lists them. */

/* ---- flags ---- */

/* Sets one; MC_EARG says what is near a wrong name or value. */
MC_API mc_status mc_flag_set(const char *name, const char *value);
/* Sets several: "floatX=float32,threads=2"; all of them or none. */
MC_API mc_status mc_flags_parse(const char *text);
/* the value, which is never freed; NULL: no such flag */
MC_API const char *mc_flag_get(const char *name);
MC_API mc_status mc_flags_print(FILE *to);             /* every flag, its value and what it does */
MC_API mc_status mc_info(FILE *to);                    /* processor, libraries found, cache, flags */
/* Can this library be opened?  1: yes, 0: no, MC_EARG: no such name.  Opens it, starts no GPU.  The names
 * are cuda (the GPU driver), nvrtc, cublaslt, cublas, cudnn, cufft, cusolver, nccl, onednn, blas and lapack;
 * openmp, which is never used, gives 0. */
MC_API int mc_has(const char *library);

/* ---- manuals ---- */

MC_API mc_status mc_ops_manual(FILE *to);              /* docs/ops.md: every op, by family */
/* Docs/api/ops-*.md: a page a family, each op with an example. */
MC_API mc_status mc_ops_pages(const char *folder);
MC_API mc_status mc_flags_manual(FILE *to);            /* docs/flags.md */

/* ---- wisdom ---- */

/* Which solver timing (flag plan=measure) found best for a problem on this machine.  It belongs to the
 * process, and is kept in a file in the cache; any thread may ask. */

MC_API mc_status mc_wisdom_print(FILE *to);            /* the lines that mc_wisdom_import reads */
MC_API mc_status mc_wisdom_import(const char *path);   /* adds a file's lines; keeps what is already known */
MC_API mc_status mc_wisdom_clear(void);                /* forgets all and removes the file */

/* ---- memory ---- */

typedef struct mc_allocator { /* where all memory of the library comes from */
    void *(*realloc)(void *arg, void *p, size_t n);    /* n = 0 frees; must align to 16 bytes */
    void *arg;
} mc_allocator;
MC_API void mc_set_allocator(const mc_allocator *a);   /* before anything else; NULL: the C library's */

/* -------------------------------------------------------- for libraries on top of this one ---- */

/* What monochord_nn.h is written with, beside the functions above. */

/* ---- memory ---- */

/* Memory through the allocator above; NULL, and this thread's error, when there is none.  tag: what for,
 * one word. */

MC_API void *mc_alloc(size_t n, const char *tag);               /* n bytes, as they come */
MC_API void *mc_calloc(size_t n, size_t size, const char *tag); /* n * size bytes of zeros */
MC_API void *mc_realloc(void *p, size_t n, const char *tag);    /* p with n bytes; on failure p stays */
MC_API void mc_free(void *p);                                   /* NULL is fine */
MC_API char *mc_strdup(const char *s);                          /* a copy, to mc_free */

/* ---- errors ---- */

/* Sets this thread's error; returns code. */
MC_API mc_status mc_fail(mc_status code, const char *fmt, ...) MC_FORMAT(2, 3);
/* The same error, words before its text. */
MC_API mc_status mc_fail_again(const char *prefix_fmt, ...) MC_FORMAT(1, 2);
/* A mistake in g: its error node. */
MC_API mc_node *mc_mistake(mc_graph *g, mc_status code, const char *fmt, ...) MC_FORMAT(3, 4);
MC_API mc_status mc_last_status(void);                 /* the code of mc_last_error */
/* The word of a list whose spelling is closest, or NULL if none is near. */
MC_API const char *mc_near_miss(const char *word, const char *const *list, size_t n);

/* ---- files and numbers ---- */

/* All of it, to mc_free; a zero byte follows the last. */
MC_API mc_status mc_file_read(const char *path, char **data, size_t *n);
/* The file appears whole or not at all; a device or a pipe is written to. */
MC_API mc_status mc_file_write(const char *path, const void *data, size_t n);
/* strtod as in the C locale, whatever locale the program has set. */
MC_API double mc_strtod(const char *s, char **end);
/* snprintf as in the C locale. */
MC_API int mc_snprintf(char *text, size_t n, const char *fmt, ...) MC_FORMAT(3, 4);
/* vsnprintf as in the C locale. */
MC_API int mc_vsnprintf(char *text, size_t n, const char *fmt, va_list ap) MC_FORMAT(3, 0);
/* Rules of initial values, as `shared W float32[9, 9] = normal(std=0.02)` names them. */
typedef struct mc_initial {
    const char *name, *doc;
    /* In the order in which they may stand without their names.  preset: "0.01", or "false" of a truth value.
     * word: what may stand there instead of a number, and what it means; NULL: none. */
    struct { const char *name, *preset, *word; double means; } setting[6]; /* ended by one without a name */
    int random;         /* it draws numbers, and gives floats alone */
} mc_initial;
MC_API const mc_initial *mc_initial_at(int i);         /* NULL beyond the last */
/* n numbers, float64 or float32: from a to b, or normal ones around a with standard deviation b. */
typedef mc_array *mc_initial_draw(void *arg, int normal, int64_t n, double a, double b);
/* The values: one number for each setting.  NULL, with the reason in mc_last_error. */
MC_API mc_array *mc_initial_value(const mc_initial *rule, const double *setting, mc_dtype d, int rank,
                                  const int64_t *dims, mc_initial_draw *draw, void *arg);
/* Zeroed memory, freed with the graph; NULL: there is none, which g knows. */
MC_API void *mc_graph_keep(mc_graph *g, size_t n);
/* Raw deflate; exactly n bytes come out. */
MC_API mc_status mc_inflate(void *dst, size_t n, const void *src, size_t nsrc);
/* Of p after what crc is of; begin with 0. */
MC_API uint32_t mc_crc32(uint32_t crc, const void *p, size_t n);

#ifdef __cplusplus
}
#endif

#include <monochord_ops.h> /* one function an op, made from the table of ops */

#endif
