/* binding.h: what the files of the extension module _monochord share.  It stands on the public headers and on
 * CPython's limited API, so that one binary serves every Python from 3.11 on.  Built for 3.9 or 3.10 it uses
 * the same functions; the limited API of those lacks the buffer protocol.
 *
 * Invariant: whoever touches an mc_graph holds its lock.  Functions run without Python's lock. */
#ifndef BINDING_H
#define BINDING_H

#ifndef MC_PYTHON_WHOLE_API
#define Py_LIMITED_API 0x030B0000
#endif
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <monochord.h>

#if PY_VERSION_HEX < 0x030A0000 /* what 3.10 added */
static inline PyObject *Py_NewRef(PyObject *x)
{
    Py_INCREF(x);
    return x;
}
static inline int PyModule_AddObjectRef(PyObject *module, const char *name, PyObject *x)
{
    Py_XINCREF(x);
    if (!x || PyModule_AddObject(module, name, x) < 0) {
        Py_XDECREF(x);
        return -1;
    }
    return 0;
}
#define Py_TPFLAGS_DISALLOW_INSTANTIATION 0UL /* module.c takes tp_new away */
#endif

struct graph {
    PyObject_HEAD
    mc_graph *g;
    PyThread_type_lock lock;
    unsigned long owner; /* the thread that holds the lock; it may enter again */
    int depth;
};
struct node {
    PyObject_HEAD
    struct graph *graph;
    mc_node *n;
};
struct shared {
    PyObject_HEAD
    mc_shared *s;
};
struct array {
    PyObject_HEAD
    mc_array *a;
};
struct function {
    PyObject_HEAD
    mc_function *f;
    PyObject *numpy; /* numpy.asarray, or None: results are Arrays */
    int single;      /* the only result is returned by itself, not in a list */
    int nout;
};

extern PyTypeObject *graph_type, *node_type, *shared_type, *array_type, *function_type, *net_type;
extern PyType_Spec graph_spec, node_spec, shared_spec, array_spec, function_spec, net_spec;

/* module.c: exceptions */
PyObject *raise_status(mc_status s, const char *text); /* the exception of s; NULL */
PyObject *raise_last(void);                            /* that of this thread's last error */
/* An exception of a Python callback, which the library passes on as a status. */
mc_status keep_exception(void);
void drop_exception(void);                             /* one that the library got over */

/* The text that print(what, to) writes; where it fails, an exception. */
PyObject *text_printed(mc_status (*print)(const void *what, FILE *to), const void *what);

/* array.c */
PyObject *array_new(mc_array *a);                      /* takes a over; NULL a: raise_last */
/* Python's object as an array: an Array, or whatever has the buffer protocol.  view is released after use
 * where *viewed is set.  NULL: an exception is set. */
mc_array *array_borrow(PyObject *x, Py_buffer *view, int *viewed);
mc_array *array_take(PyObject *x);                     /* the same; the array keeps the object alive */
int dtype_named(PyObject *name, mc_dtype *d);
int sizes_of(PyObject *x, int *rank, int64_t *dims);   /* None in it: -1 */
PyObject *tuple_of_sizes(int rank, const int64_t *dims);

/* node.c */
PyObject *node_new(struct graph *g, mc_node *n);       /* raises the graph's mistake, if there is one */
mc_node *node_of(struct graph *g, PyObject *x);        /* NULL: an exception is set */
/* Nodes of g in a list or tuple, in memory to be freed by PyMem_Free; None is an empty list. */
mc_node **nodes_of(struct graph *g, PyObject *list, int *n);
PyObject *list_of_nodes(struct graph *g, int n, mc_node *const *nodes);

/* graph.c */
void graph_enter(struct graph *g);
void graph_leave(struct graph *g);

/* shared.c */
PyObject *shared_new(mc_shared *s);

/* function.c, custom.c: functions, and methods of Graph */
/* Takes f over; numpy and single: see struct function. */
PyObject *function_new(mc_function *f, PyObject *numpy, int single);
PyObject *graph_compile(PyObject *self, PyObject *args, PyObject *kw);
PyObject *graph_register(PyObject *self, PyObject *args);
PyObject *module_load(PyObject *self, PyObject *args); /* a function of a file */
PyObject *module_load_archive(PyObject *self, PyObject *args);
PyObject *module_save_archive(PyObject *self, PyObject *args);

/* PyType_Slot and PyMethodDef have one type for all functions. */
#define SLOT(id, f) { id, (void *)(uintptr_t)(f) }
#define METHOD(name, f, doc) { name, (PyCFunction)(void (*)(void))(f), METH_VARARGS, doc }
#define METHOD_KW(name, f, doc) { name, (PyCFunction)(void (*)(void))(f), METH_VARARGS | METH_KEYWORDS, doc }

#endif
