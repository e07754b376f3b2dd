/* function.c: compiled functions.  Python's lock is free while one is compiled or runs.
 *
 * Invariant: arguments are not copied and not kept; results are arrays of their own. */
#include "binding.h"
#include <string.h>

PyTypeObject *function_type;

/* ---- compiling ---- */

PyObject *function_new(mc_function *f, PyObject *numpy, int single)
{
    struct function *self = PyObject_New(struct function, function_type);
    if (!self) {
        mc_function_free(f);
        return NULL;
    }
    Py_INCREF(numpy);
    self->f = f;
    self->numpy = numpy;
    self->nout = mc_function_noutputs(f);
    self->single = single && self->nout == 1;
    return (PyObject *)self;
}

/* The fields of mc_spec by their names, nodes in lists; results are what `numpy` makes of an Array. */
PyObject *graph_compile(PyObject *graph, PyObject *args, PyObject *kw)
{
    static char *names[] = {
        "name",      "inputs",    "outputs", "updates", "givens",    "mode",   "including",
        "excluding", "on_unused", "input",   "output",  "update_of", "update", "no_default_updates",
        "profile",   "threads",   "numpy",   "single",  "file",      "line",   "fixed_sizes",
        NULL
    };
    struct graph *g = (struct graph *)graph;
    PyObject *in = NULL, *out = NULL, *of = NULL, *to = NULL, *numpy = Py_None;
    int single = 0, line = 0, nof = 0;
    const char *file = "python";
    mc_spec s = { 0 };
    if (!PyArg_ParseTupleAndKeywords(args, kw, "|zzzzzzzzzOOOOppiOpsip", names, &s.name, &s.inputs,
                                     &s.outputs, &s.updates, &s.givens, &s.mode, &s.including, &s.excluding,
                                     &s.on_unused, &in, &out, &of, &to, &s.no_default_updates, &s.profile,
                                     &s.threads, &numpy, &single, &file, &line, &s.fixed_sizes)) {
        return NULL;
    }
    mc_node **input = nodes_of(g, in, &s.ninput), **output = input ? nodes_of(g, out, &s.noutput) : NULL;
    mc_node **update_of = output ? nodes_of(g, of, &nof) : NULL;
    mc_node **update = update_of ? nodes_of(g, to, &s.nupdate) : NULL;
    PyObject *r = NULL;
    if (update && nof != s.nupdate) {
        PyErr_Format(PyExc_ValueError, "compile: %d variables to update, but %d values", nof, s.nupdate);
    } else if (update) {
        mc_function *f;
        s.input = input;
        s.output = output;
        s.update_of = update_of;
        s.update = update;
        graph_enter(g);
        /* An op in Python may be called while this thread compiles: it takes Python's lock then. */
        Py_BEGIN_ALLOW_THREADS f = mc_compile_at(g->g, &s, file, line);
        Py_END_ALLOW_THREADS r = f ? function_new(f, numpy, single) : raise_last();
        mc_graph_clear_error(g->g);
        graph_leave(g);
    }
    PyMem_Free(input);
    PyMem_Free(output);
    PyMem_Free(update_of);
    PyMem_Free(update);
    return r;
}

/* ---- calls ---- */

enum { FEW = 8 };
struct arguments { /* of one call */
    int n;
    mc_arg *arg;
    Py_buffer *view;
    char *viewed;
    mc_arg few_arg[FEW];
    Py_buffer few_view[FEW];
    char few_viewed[FEW];
};

static int arguments_make(struct arguments *a, int n)
{
    a->n = 0;
    a->arg = n <= FEW ? a->few_arg : PyMem_Calloc((size_t)n, sizeof *a->arg);
    a->view = n <= FEW ? a->few_view : PyMem_Calloc((size_t)n, sizeof *a->view);
    a->viewed = n <= FEW ? a->few_viewed : PyMem_Calloc((size_t)n, 1);
    return a->arg && a->view && a->viewed ? 0 : -1;
}

static int argument(PyObject *x, mc_arg *arg, Py_buffer *view, char *viewed)
{
    *viewed = 0;
    if (x == Py_None) {
        *arg = mc_arg_none(NULL);
    } else if (PyFloat_CheckExact(x)) {
        *arg = mc_arg_real(PyFloat_AsDouble(x));
    } else if (PyLong_Check(x)) {
        *arg = mc_arg_int(PyLong_AsLongLong(x));
        if (PyErr_Occurred()) {
            PyErr_Clear();
            *arg = mc_arg_uint(PyLong_AsUnsignedLongLong(x));
        }
        return PyErr_Occurred() ? -1 : 0;
    } else {
        int has;
        mc_array *a = array_borrow(x, view, &has);
        if (!a) {
            return -1;
        }
        *arg = mc_arg_array(a);
        *viewed = (char)has;
    }
    return 0;
}

static void arguments_free(struct arguments *a)
{
    for (int i = 0; i < a->n; i++) {
        if (a->arg[i].kind == 0) {
            mc_array *x = (mc_array *)(uintptr_t)a->arg[i].u.array;
            mc_array_unref(&x);
        }
        if (a->viewed[i]) {
            PyBuffer_Release(&a->view[i]);
        }
    }
    if (a->arg != a->few_arg) {
        PyMem_Free(a->arg);
    }
    if (a->view != a->few_view) {
        PyMem_Free(a->view);
    }
    if (a->viewed != a->few_viewed) {
        PyMem_Free(a->viewed);
    }
}

/* The array as what the caller wants: NumPy's, unless Python cannot see its memory. */
static PyObject *result(const struct function *f, mc_array *a)
{
    PyObject *x = array_new(a);
    if (!x || f->numpy == Py_None || mc_array_dtype(a) == MC_BFLOAT16 || *mc_array_device(a) != 'c' ||
        strcmp(mc_array_device(a), "cpu") != 0) {
        return x;
    }
    PyObject *y = PyObject_CallFunctionObjArgs(f->numpy, x, NULL);
    Py_DECREF(x);
    return y;
}

static PyObject *function_call(PyObject *self, PyObject *args, PyObject *kw)
{
    struct function *f = (struct function *)self;
    const int nin = (int)PyTuple_Size(args);
    struct arguments in;
    mc_array *few[FEW] = { 0 }, **out = few;
    mc_arg few_slot[FEW], *slot = few_slot;
    PyObject *r = NULL;
    mc_status s;
    if (kw && PyDict_Size(kw)) {
        PyErr_SetString(PyExc_TypeError, "a compiled function takes its inputs by position");
        return NULL;
    }
    if (arguments_make(&in, nin) < 0) {
        arguments_free(&in);
        return PyErr_NoMemory();
    }
    if (f->nout > FEW) {
        out = PyMem_Calloc((size_t)f->nout, sizeof *out);
        slot = PyMem_Calloc((size_t)f->nout, sizeof *slot);
    }
    if (!out || !slot) {
        PyErr_NoMemory();
        goto done;
    }
    for (; in.n < nin; in.n++) {
        if (argument(PyTuple_GetItem(args, in.n), &in.arg[in.n], &in.view[in.n], &in.viewed[in.n]) < 0) {
            goto done;
        }
    }
    for (int i = 0; i < f->nout; i++) {
        slot[i] = mc_arg_slot(&out[i]);
    }
    Py_BEGIN_ALLOW_THREADS s = mc_call_args(f->f, nin, in.arg, f->nout, slot);
    Py_END_ALLOW_THREADS if (s < 0)
    {
        raise_last();
    }
    else if (f->single)
    {
        r = result(f, out[0]);
        out[0] = NULL;
    }
    else
    {
        r = PyList_New(f->nout);
        for (int i = 0; r && i < f->nout; i++) {
            PyObject *x = result(f, out[i]);
            out[i] = NULL;
            if (!x || PyList_SetItem(r, i, x) < 0) {
                Py_CLEAR(r);
            }
        }
    }
done:
    for (int i = 0; out && i < f->nout; i++) {
        mc_array_unref(&out[i]);
    }
    if (out != few) {
        PyMem_Free(out);
    }
    if (slot != few_slot) {
        PyMem_Free(slot);
    }
    arguments_free(&in);
    return r;
}

/* ---- the rest ---- */

static void function_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    mc_function_free(((struct function *)self)->f);
    Py_DECREF(((struct function *)self)->numpy);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *function_set(PyObject *self, PyObject *args)
{
    const char *name;
    PyObject *value;
    struct arguments in;
    if (!PyArg_ParseTuple(args, "sO", &name, &value) || arguments_make(&in, 1) < 0) {
        return NULL;
    }
    if (argument(value, in.arg, in.view, in.viewed) < 0) {
        return NULL;
    }
    in.n = 1;
    mc_status s = mc_function_set(((struct function *)self)->f, name, in.arg[0]);
    arguments_free(&in);
    if (s < 0) {
        return raise_last();
    }
    Py_RETURN_NONE;
}

static PyObject *function_copy(PyObject *self, PyObject *args)
{
    struct function *f = (struct function *)self;
    int updates = 1;
    if (!PyArg_ParseTuple(args, "|p", &updates)) {
        return NULL;
    }
    mc_function *copy = mc_function_copy(f->f, updates);
    return copy ? function_new(copy, f->numpy, f->single) : raise_last();
}

static PyObject *function_save(PyObject *self, PyObject *args)
{
    const char *path;
    if (!PyArg_ParseTuple(args, "s", &path)) {
        return NULL;
    }
    if (mc_function_save(((struct function *)self)->f, path) < 0) {
        return raise_last();
    }
    Py_RETURN_NONE;
}

PyObject *module_load(PyObject *self, PyObject *args)
{
    const char *path;
    PyObject *numpy = Py_None;
    int single = 1;
    (void)self;
    if (!PyArg_ParseTuple(args, "s|Op", &path, &numpy, &single)) {
        return NULL;
    }
    mc_function *f = mc_function_load(path);
    return f ? function_new(f, numpy, single) : raise_last();
}

static PyObject *function_steps(PyObject *self, void *unused)
{
    const mc_function *f = ((struct function *)self)->f;
    int n = mc_function_nsteps(f);
    PyObject *list = PyList_New(n);
    (void)unused;
    for (int i = 0; list && i < n; i++) {
        mc_step_info s = mc_function_step(f, i);
        PyObject *x = Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:s,s:l,s:d,s:d,s:d}", "kind", s.kind, "name",
                                    s.name, "text", s.text, "device", s.device, "solver", s.solver, "reason",
                                    s.reason, "calls", (long)s.calls, "seconds", s.seconds, "flops", s.flops,
                                    "bytes", s.bytes);
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *function_shared(PyObject *self, void *unused)
{
    const mc_function *f = ((struct function *)self)->f;
    int n = mc_function_nshared(f);
    PyObject *list = PyList_New(n);
    (void)unused;
    for (int i = 0; list && i < n; i++) {
        PyObject *x = shared_new(mc_shared_ref(mc_function_shared(f, i)));
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static PyObject *function_text(PyObject *self, void *what)
{
    const mc_function *f = ((struct function *)self)->f;
    return PyUnicode_FromString(what == (void *)1 ? mc_function_source(f)
                                : what            ? mc_function_graph_text(f)
                                                  : mc_function_name(f));
}

static mc_status report(const void *f, FILE *to)
{
    return mc_function_report(f, to);
}

static PyObject *function_report(PyObject *self, PyObject *args)
{
    return PyArg_ParseTuple(args, "") ? text_printed(report, ((struct function *)self)->f) : NULL;
}

static PyObject *function_about(PyObject *self, void *unused)
{
    const mc_function *f = ((struct function *)self)->f;
    const mc_compile_info c = mc_function_compile_info(f);
    (void)unused;
    return Py_BuildValue("{s:d,s:d,s:n,s:s}", "compile_seconds", c.seconds, "cc_seconds", c.cc_seconds,
                         "memory", (Py_ssize_t)mc_function_memory(f), "warning", mc_function_warning(f));
}

static PyMethodDef methods[] = {
    METHOD("report", function_report, "report(): a page of HTML about it"),
    METHOD("set", function_set, "set(input, value): the default of an input"),
    METHOD("copy", function_copy, "copy(updates=True): the same with memory of its own"),
    METHOD("save", function_save, "save(path): as a bundle"),
    { 0 },
};
static PyGetSetDef members[] = {
    { "name", function_text, NULL, "its name", NULL },
    { "source", function_text, NULL, "the text of its kernels", (void *)1 },
    { "text", function_text, NULL, "the graph after the rewrites", (void *)2 },
    { "steps", function_steps, NULL, "what a call runs", NULL },
    { "about", function_about, NULL, "what compiling took, bytes of memory, a warning", NULL },
    { "shared", function_shared, NULL, "the variables that it reads or updates", NULL },
    { 0 },
};
static PyType_Slot slots[] = {
    SLOT(Py_tp_dealloc, function_free),
    SLOT(Py_tp_call, function_call),
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { 0 },
};
PyType_Spec function_spec = { "_monochord.Function", sizeof(struct function), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, slots };
