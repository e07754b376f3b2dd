/* custom.c: ops whose result, type and gradient functions in Python give.
 *
 * Callbacks take Python's lock.  An exception in one of them ends the call with an error, and is raised when
 * Python gets it back (keep_exception). */
#include "binding.h"

struct callbacks {
    PyObject *graph; /* not counted: the op belongs to it */
    PyObject *infer, *run, *grad;
};

static PyObject *list_of_arrays(int n, const mc_array *const *a)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *x = array_new(mc_array_ref(a[i]));
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* infer(i, [(dtype, sizes)]) -> (dtype, sizes) */
static mc_status infer(void *arg, int nin, const mc_dtype *dtype, const int *rank, const int64_t *const *dims,
                       int i, mc_dtype *out_dtype, int *out_rank, int64_t *out_dims)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *list = PyList_New(nin), *r = NULL;
    for (int k = 0; list && k < nin; k++) {
        PyObject *sizes = tuple_of_sizes(rank[k], dims[k]);
        PyObject *type = sizes ? Py_BuildValue("(sN)", mc_dtype_name(dtype[k]), sizes) : NULL;
        if (!type || PyList_SetItem(list, k, type) < 0) {
            Py_CLEAR(list);
        }
    }
    r = list ? PyObject_CallFunction(((struct callbacks *)arg)->infer, "iO", i, list) : NULL;
    PyObject *name, *sizes;
    mc_status s = r && PyArg_ParseTuple(r, "UO", &name, &sizes) && dtype_named(name, out_dtype) == 0 &&
                          sizes_of(sizes, out_rank, out_dims) == 0
                      ? MC_OK
                      : keep_exception();
    Py_XDECREF(r);
    Py_XDECREF(list);
    PyGILState_Release(state);
    return s;
}

/* run([arrays]) -> [arrays] */
static mc_status run(void *arg, int nin, const mc_array *const *in, int nout, mc_array *const *out)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *list = list_of_arrays(nin, in);
    PyObject *r = list ? PyObject_CallFunction(((struct callbacks *)arg)->run, "O", list) : NULL;
    mc_status s = r ? MC_OK : keep_exception();
    for (int i = 0; s == MC_OK && i < nout; i++) {
        PyObject *x = PySequence_GetItem(r, i);
        Py_buffer view;
        int viewed = 0;
        mc_array *a = x ? array_borrow(x, &view, &viewed) : NULL;
        s = a ? mc_array_assign(out[i], a) : keep_exception();
        mc_array_unref(&a);
        if (viewed) {
            PyBuffer_Release(&view);
        }
        Py_XDECREF(x);
    }
    Py_XDECREF(r);
    Py_XDECREF(list);
    PyGILState_Release(state);
    return s;
}

static PyObject *node_list(struct graph *g, int n, mc_node *const *nodes)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *x = nodes[i] ? node_new(g, nodes[i]) : Py_NewRef(Py_None);
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

/* grad([inputs], [results], [gradients of results or None], i) -> node or None */
static mc_node *grad(void *arg, int nin, mc_node *const *in, int nout, mc_node *const *out,
                     mc_node *const *out_grad, int wrt)
{
    struct callbacks *c = arg;
    struct graph *g = (struct graph *)c->graph;
    PyGILState_STATE state = PyGILState_Ensure();
    PyObject *ins = node_list(g, nin, in), *outs = ins ? node_list(g, nout, out) : NULL;
    PyObject *grads = outs ? node_list(g, nout, out_grad) : NULL;
    PyObject *r = grads ? PyObject_CallFunction(c->grad, "OOOi", ins, outs, grads, wrt) : NULL;
    mc_node *n = r && r != Py_None ? ((struct node *)r)->n : NULL;
    if (!r) {
        keep_exception();
        n = mc_mistake(g->g, MC_EARG, "the gradient of an op in Python raised an exception");
    }
    Py_XDECREF(r);
    Py_XDECREF(grads);
    Py_XDECREF(outs);
    Py_XDECREF(ins);
    PyGILState_Release(state);
    return n;
}

static void release(void *arg)
{
    struct callbacks *c = arg;
    PyGILState_STATE state = PyGILState_Ensure();
    Py_XDECREF(c->infer);
    Py_XDECREF(c->run);
    Py_XDECREF(c->grad);
    PyMem_Free(c);
    PyGILState_Release(state);
}

PyObject *graph_register(PyObject *self, PyObject *args)
{
    const char *name;
    int nin, nout;
    PyObject *infer_of, *run_of, *grad_of;
    if (!PyArg_ParseTuple(args, "siiOOO", &name, &nin, &nout, &infer_of, &run_of, &grad_of)) {
        return NULL;
    }
    struct callbacks *c = PyMem_Calloc(1, sizeof *c);
    if (!c) {
        return PyErr_NoMemory();
    }
    *c = (struct callbacks){ self, Py_NewRef(infer_of), Py_NewRef(run_of), Py_NewRef(grad_of) };
    struct graph *g = (struct graph *)self;
    graph_enter(g);
    mc_status s = mc_register(g->g, &(mc_custom){ .name = name,
                                                  .nin = nin,
                                                  .nout = nout,
                                                  .infer = infer,
                                                  .run = run,
                                                  .grad = grad_of == Py_None ? NULL : grad,
                                                  .release = release,
                                                  .arg = c });
    if (s < 0) {
        release(c);
        raise_last();
    }
    mc_graph_clear_error(g->g);
    graph_leave(g);
    if (s < 0) {
        return NULL;
    }
    Py_RETURN_NONE;
}
