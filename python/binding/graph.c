/* graph.c: graphs, and their methods, which make nodes.
 *
 * Invariant: after a method of a graph, the graph has no mistake: it has become an exception. */
#include "binding.h"

PyTypeObject *graph_type;

/* ---- the lock ---- */

void graph_enter(struct graph *g)
{
    unsigned long me = PyThread_get_thread_ident();
    if (g->depth && g->owner == me) {
        g->depth++;
        return;
    }
    if (!PyThread_acquire_lock(g->lock, NOWAIT_LOCK)) {
        Py_BEGIN_ALLOW_THREADS PyThread_acquire_lock(g->lock, WAIT_LOCK);
        Py_END_ALLOW_THREADS
    }
    g->owner = me;
    g->depth = 1;
}

void graph_leave(struct graph *g)
{
    if (--g->depth == 0) {
        drop_exception();
        PyThread_release_lock(g->lock);
    }
}

/* name_ is name, under the lock. */
#define LOCKED(name)                                                       \
    static PyObject *name##_(PyObject *self, PyObject *args, PyObject *kw) \
    {                                                                      \
        graph_enter((struct graph *)self);                                 \
        PyObject *r = name((struct graph *)self, args, kw);                \
        graph_leave((struct graph *)self);                                 \
        return r;                                                          \
    }

/* ---- leaves ---- */

static PyObject *input(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *name;
    PyObject *dtype, *sizes;
    mc_dtype d;
    int rank;
    int64_t dims[MC_MAX_RANK];
    (void)kw;
    if (!PyArg_ParseTuple(args, "sUO", &name, &dtype, &sizes) || dtype_named(dtype, &d) < 0 ||
        sizes_of(sizes, &rank, dims) < 0) {
        return NULL;
    }
    return node_new(g, (mc_input_sized)(g->g, name, d, rank, dims));
}

static PyObject *constant(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *value;
    Py_buffer view;
    int viewed;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O", &value)) {
        return NULL;
    }
    mc_array *a = array_borrow(value, &view, &viewed);
    PyObject *n = a ? node_new(g, (mc_constant)(g->g, a)) : NULL;
    mc_array_unref(&a);
    if (viewed) {
        PyBuffer_Release(&view);
    }
    return n;
}

/* shared(name, value, sizes): sizes None: any; -1 in it: that one may change */
static PyObject *shared(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *name;
    PyObject *value, *sizes = Py_None;
    Py_buffer view;
    int viewed, rank = 0;
    int64_t dims[MC_MAX_RANK];
    (void)kw;
    if (!PyArg_ParseTuple(args, "sO|O", &name, &value, &sizes) ||
        (sizes != Py_None && sizes_of(sizes, &rank, dims) < 0)) {
        return NULL;
    }
    mc_array *a = array_borrow(value, &view, &viewed);
    mc_shared *s = a ? (mc_shared_sized)(g->g, name, a, sizes == Py_None ? NULL : dims) : NULL;
    PyObject *r = !a ? NULL : s ? shared_new(mc_shared_ref(s)) : raise_last();
    mc_graph_clear_error(g->g);
    mc_array_unref(&a);
    if (viewed) {
        PyBuffer_Release(&view);
    }
    return r;
}

static PyObject *random_stream(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *name;
    unsigned long long seed;
    (void)kw;
    if (!PyArg_ParseTuple(args, "sK", &name, &seed)) {
        return NULL;
    }
    mc_shared *s = (mc_random)(g->g, name, seed);
    PyObject *r = s ? shared_new(mc_shared_ref(s)) : raise_last();
    mc_graph_clear_error(g->g);
    return r;
}

static PyObject *shared_node(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *s;
    (void)kw;
    return PyArg_ParseTuple(args, "O!", shared_type, &s)
               ? node_new(g, mc_shared_node(g->g, ((struct shared *)s)->s))
               : NULL;
}

static PyObject *var(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *name;
    (void)kw;
    return PyArg_ParseTuple(args, "s", &name) ? node_new(g, (mc_var)(g->g, name)) : NULL;
}

/* ---- formulas and ops ---- */

static PyObject *formula(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *text;
    (void)kw;
    return PyArg_ParseTuple(args, "s", &text) ? node_new(g, (mc_formula)(g->g, text)) : NULL;
}

static PyObject *name_node(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x;
    const char *name;
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "Os", &x, &name) ? node_of(g, x) : NULL;
    return n ? node_new(g, mc_name(n, name)) : NULL;
}

static PyObject *op(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *name, *attrs = NULL;
    PyObject *list;
    int n;
    (void)kw;
    mc_node **in = PyArg_ParseTuple(args, "sO|z", &name, &list, &attrs) ? nodes_of(g, list, &n) : NULL;
    if (!in) {
        return NULL;
    }
    PyObject *r = node_new(g, (mc_op)(g->g, name, n, in, attrs));
    PyMem_Free(in);
    return r;
}

static PyObject *item(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x;
    int i;
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "Oi", &x, &i) ? node_of(g, x) : NULL;
    return n ? node_new(g, mc_item(n, i)) : NULL;
}

/* part(x, index[, y, set]): x[index], or the whole x with that part set to y or increased by y */
static PyObject *part(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x, *y = NULL;
    const char *text;
    int set = 0;
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "Os|Op", &x, &text, &y, &set) ? node_of(g, x) : NULL;
    mc_node *v = n && y ? node_of(g, y) : NULL;
    if (!n || (y && !v)) {
        return NULL;
    }
    n = (mc_index)(n, "%s", text);
    return node_new(g, !y ? n : set ? (mc_set_subtensor)(n, v) : (mc_inc_subtensor)(n, v));
}

/* here(file, line): nodes made from now on belong to this line of a program */
static PyObject *here(struct graph *g, PyObject *args, PyObject *kw)
{
    static PyObject *files; /* nodes keep the name: it lives on */
    PyObject *file;
    int line;
    (void)g;
    (void)kw;
    if (!PyArg_ParseTuple(args, "Ui", &file, &line) || (!files && !(files = PyDict_New()))) {
        return NULL;
    }
    PyObject *known = PyDict_GetItemWithError(files, file);
    if (!known && (PyErr_Occurred() || PyDict_SetItem(files, file, file) < 0)) {
        return NULL;
    }
    mc_here(PyUnicode_AsUTF8AndSize(known ? known : file, NULL), line);
    Py_RETURN_NONE;
}

static PyObject *label(struct graph *g, PyObject *args, PyObject *kw)
{
    const char *text = NULL;
    (void)kw;
    if (!PyArg_ParseTuple(args, "|z", &text)) {
        return NULL;
    }
    const char *before = mc_label(g->g, text);
    if (!before) {
        Py_RETURN_NONE;
    }
    return PyUnicode_FromString(before);
}

static PyObject *ifelse(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *c, *yes, *no, *r = NULL;
    int n = 0, m = 0;
    (void)kw;
    mc_node *condition = PyArg_ParseTuple(args, "OOO", &c, &yes, &no) ? node_of(g, c) : NULL;
    mc_node **a = condition ? nodes_of(g, yes, &n) : NULL, **b = a ? nodes_of(g, no, &m) : NULL;
    if (b && n != m) {
        PyErr_Format(PyExc_ValueError, "ifelse: %d values on one side, %d on the other", n, m);
    } else if (b) {
        r = node_new(g, mc_ifelse_list(condition, n, a, b));
    }
    PyMem_Free(a);
    PyMem_Free(b);
    return r;
}

/* leaves(nodes): the inputs, constants and shared variables that they are computed from, in the order in
 * which they were made */
static PyObject *leaves(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *list, *r = NULL;
    int n;
    (void)kw;
    mc_node **todo = PyArg_ParseTuple(args, "O", &list) ? nodes_of(g, list, &n) : NULL;
    uint32_t top = 0;
    for (int i = 0; todo && i < n; i++) {
        top = mc_node_id(todo[i]) > top ? mc_node_id(todo[i]) : top;
    }
    /* inputs have smaller ids, so that one pass from the last to the first meets every node */
    mc_node **by_id = todo ? PyMem_Calloc((size_t)top + 1, sizeof *by_id) : NULL;
    for (int i = 0; by_id && i < n; i++) {
        by_id[mc_node_id(todo[i])] = todo[i];
    }
    for (size_t i = (size_t)top + 1; by_id && i-- > 0;) {
        int nin = by_id[i] ? mc_node_ninputs(by_id[i]) : 0;
        for (int k = 0; k < nin; k++) {
            mc_node *x = mc_node_input(by_id[i], k);
            by_id[mc_node_id(x)] = x;
        }
        if (nin) {
            by_id[i] = NULL;
        }
    }
    if (by_id) {
        size_t count = 0;
        for (size_t i = 0; i <= top; i++) {
            if (by_id[i]) {
                by_id[count++] = by_id[i];
            }
        }
        r = list_of_nodes(g, (int)count, by_id);
    }
    PyMem_Free(todo);
    PyMem_Free(by_id);
    return r;
}

/* replace(nodes, from, to) */
static PyObject *replace(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *outs, *froms, *tos, *r = NULL;
    int n = 0, nfrom = 0, nto = 0;
    (void)kw;
    if (!PyArg_ParseTuple(args, "OOO", &outs, &froms, &tos)) {
        return NULL;
    }
    mc_node **out = nodes_of(g, outs, &n), **from = out ? nodes_of(g, froms, &nfrom) : NULL,
            **to = from ? nodes_of(g, tos, &nto) : NULL;
    if (to && nto != nfrom) {
        PyErr_Format(PyExc_ValueError, "replace: %d nodes, but %d replacements", nfrom, nto);
    } else if (to && mc_replace(nfrom, from, to, n, out) < 0) {
        raise_status(mc_last_status(), mc_last_error());
        mc_graph_clear_error(g->g);
    } else if (to) {
        r = list_of_nodes(g, n, out);
    }
    PyMem_Free(out);
    PyMem_Free(from);
    PyMem_Free(to);
    return r;
}

/* ---- gradients ---- */

static PyObject *grads(struct graph *g, PyObject *args, PyObject *kw)
{
    static char *names[] = { "cost", "wrt", "consider_constant", "known", "known_grad", "disconnected_zero",
                             NULL };
    PyObject *c, *wrts, *constants = NULL, *known = NULL, *known_grad = NULL, *r = NULL;
    int zero = 0, n = 0, nconstant = 0, nknown = 0, ngrad = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "OO|OOOp", names, &c, &wrts, &constants, &known, &known_grad,
                                     &zero)) {
        return NULL;
    }
    mc_node *cost = c == Py_None ? NULL : node_of(g, c);
    mc_node **wrt = PyErr_Occurred() ? NULL : nodes_of(g, wrts, &n);
    mc_node **constant_ = wrt ? nodes_of(g, constants, &nconstant) : NULL;
    mc_node **from = constant_ ? nodes_of(g, known, &nknown) : NULL;
    mc_node **given = from ? nodes_of(g, known_grad, &ngrad) : NULL;
    mc_node **out = given ? PyMem_Calloc((size_t)n + 1, sizeof *out) : NULL;
    mc_grad_spec spec = { .consider_constant = constant_, .nconstant = nconstant, .known = from,
                          .known_grad = given, .nknown = nknown,
                          .disconnected = zero ? MC_DISCONNECTED_ZERO : MC_DISCONNECTED_RAISE };
    if (out && ngrad != nknown) {
        PyErr_Format(PyExc_ValueError, "grads: %d known nodes, but %d gradients", nknown, ngrad);
    } else if (out && mc_grads(cost, n, wrt, out, &spec) < 0) {
        raise_status(mc_last_status(), mc_last_error());
        mc_graph_clear_error(g->g);
    } else if (out) {
        r = list_of_nodes(g, n, out);
    }
    PyMem_Free(wrt);
    PyMem_Free(constant_);
    PyMem_Free(from);
    PyMem_Free(given);
    PyMem_Free(out);
    return r;
}

static PyObject *product(struct graph *g, PyObject *args, mc_node *(*make)(mc_node *, mc_node *, mc_node *))
{
    PyObject *f, *wrt, *eval;
    mc_node *a = NULL, *b = NULL, *c = NULL;
    if (PyArg_ParseTuple(args, "OOO", &f, &wrt, &eval) && (a = node_of(g, f)) && (b = node_of(g, wrt))) {
        c = node_of(g, eval);
    }
    return c ? node_new(g, make(a, b, c)) : NULL;
}
static PyObject *Lop(struct graph *g, PyObject *args, PyObject *kw)
{
    (void)kw;
    return product(g, args, mc_Lop);
}
static PyObject *Rop(struct graph *g, PyObject *args, PyObject *kw)
{
    (void)kw;
    return product(g, args, mc_Rop);
}

static PyObject *jacobian(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *y, *x;
    (void)kw;
    mc_node *a = PyArg_ParseTuple(args, "OO", &y, &x) ? node_of(g, y) : NULL, *b = a ? node_of(g, x) : NULL;
    return b ? node_new(g, mc_jacobian(a, b)) : NULL;
}

/* ---- loops ---- */

static PyObject *scan_element(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x;
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "O", &x) ? node_of(g, x) : NULL;
    return n ? node_new(g, mc_scan_element(n)) : NULL;
}

static PyObject *scan_state(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x;
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "O", &x) ? node_of(g, x) : NULL;
    return n ? node_new(g, mc_scan_state(n)) : NULL;
}

/* scan_taps(x, taps): an element for each tap */
static PyObject *scan_taps(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x, *list;
    int tap[64];
    mc_node *out[64];
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "OO", &x, &list) ? node_of(g, x) : NULL;
    Py_ssize_t count = n ? PySequence_Size(list) : -1;
    for (Py_ssize_t i = 0; i < count && i < 64; i++) {
        PyObject *v = PySequence_GetItem(list, i);
        tap[i] = v ? (int)PyLong_AsLong(v) : 0;
        Py_XDECREF(v);
    }
    if (count < 0 || PyErr_Occurred()) {
        return NULL;
    }
    if (count > 64) {
        PyErr_SetString(PyExc_ValueError, "scan_taps: at most 64 taps");
        return NULL;
    }
    if (mc_scan_taps(n, (int)count, tap, out) < 0) {
        raise_last();
        mc_graph_clear_error(g->g);
        return NULL;
    }
    return list_of_nodes(g, (int)count, out);
}

/* scan_states(initial, n): a state and its n - 1 values before */
static PyObject *scan_states(struct graph *g, PyObject *args, PyObject *kw)
{
    PyObject *x;
    int count;
    mc_node *out[64];
    (void)kw;
    mc_node *n = PyArg_ParseTuple(args, "Oi", &x, &count) ? node_of(g, x) : NULL;
    if (!n) {
        return NULL;
    }
    if (count < 1 || count > 64) {
        PyErr_SetString(PyExc_ValueError, "scan_states: between 1 and 64 values");
        return NULL;
    }
    if (mc_scan_states(n, count, out) < 0) {
        raise_last();
        mc_graph_clear_error(g->g);
        return NULL;
    }
    return list_of_nodes(g, count, out);
}

static PyObject *scan(struct graph *g, PyObject *args, PyObject *kw)
{
    static char *names[] = { "element", "state", "next", "collect", "steps", "until", "backwards",
                             "truncate_gradient", "checkpoint", NULL };
    PyObject *elements, *states, *nexts, *collects, *steps = Py_None, *until = Py_None, *r = NULL;
    int backwards = 0, truncate = 0, checkpoint = 0, nnext = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kw, "OOOO|OOpii", names, &elements, &states, &nexts, &collects,
                                     &steps, &until, &backwards, &truncate, &checkpoint)) {
        return NULL;
    }
    mc_scan_spec spec = { .backwards = backwards, .truncate_gradient = truncate, .checkpoint = checkpoint };
    mc_node **element = nodes_of(g, elements, &spec.nelement);
    mc_node **state = element ? nodes_of(g, states, &spec.nstate) : NULL;
    mc_node **next = state ? nodes_of(g, nexts, &nnext) : NULL;
    mc_node **collect = next ? nodes_of(g, collects, &spec.ncollect) : NULL;
    spec.steps = collect && steps != Py_None ? node_of(g, steps) : NULL;
    spec.until = collect && until != Py_None ? node_of(g, until) : NULL;
    spec.element = element;
    spec.state = state;
    spec.next = next;
    spec.collect = collect;
    if (collect && nnext != spec.nstate) {
        PyErr_Format(PyExc_ValueError, "scan: %d states, but %d next values", spec.nstate, nnext);
    }
    if (!PyErr_Occurred()) {
        r = node_new(g, (mc_scan)(g->g, &spec));
    }
    PyMem_Free(element);
    PyMem_Free(state);
    PyMem_Free(next);
    PyMem_Free(collect);
    return r;
}

struct picture {
    const mc_graph *g;
    mc_node **nodes;
    int n;
};

static mc_status print_svg(const void *what, FILE *to)
{
    const struct picture *p = what;
    return mc_graph_svg(p->g, p->n, p->nodes, to);
}

static PyObject *svg(struct graph *g, PyObject *args, PyObject *kw)
{
    static char *names[] = { "nodes", NULL };
    PyObject *list;
    struct picture p = { .g = g->g };
    if (!PyArg_ParseTupleAndKeywords(args, kw, "O", names, &list) || !(p.nodes = nodes_of(g, list, &p.n))) {
        return NULL;
    }
    PyObject *r = text_printed(print_svg, &p);
    PyMem_Free(p.nodes);
    return r;
}

/* ---- the type ---- */

static PyObject *graph_make(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    (void)args;
    (void)kw;
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    struct graph *self = (struct graph *)alloc(type, 0);
    if (self && (!(self->g = mc_graph_new()) || !(self->lock = PyThread_allocate_lock()))) {
        Py_DECREF((PyObject *)self);
        return raise_last();
    }
    return (PyObject *)self;
}

static void graph_free(PyObject *self)
{
    struct graph *g = (struct graph *)self;
    PyTypeObject *type = Py_TYPE(self);
    mc_graph_free(g->g);
    if (g->lock) {
        PyThread_free_lock(g->lock);
    }
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

LOCKED(input) LOCKED(constant) LOCKED(shared) LOCKED(random_stream) LOCKED(shared_node) LOCKED(var)
LOCKED(formula) LOCKED(name_node) LOCKED(op) LOCKED(item) LOCKED(part) LOCKED(label) LOCKED(here)
LOCKED(ifelse)
LOCKED(leaves) LOCKED(replace) LOCKED(grads) LOCKED(Lop) LOCKED(Rop) LOCKED(jacobian)
LOCKED(scan_element) LOCKED(scan_state) LOCKED(scan_taps) LOCKED(scan_states) LOCKED(scan)
LOCKED(svg)

static PyMethodDef graph_methods[] = {
    METHOD_KW("input", input_, "input(name, dtype, sizes): an input; -1: a size not known before the call"),
    METHOD_KW("constant", constant_, "constant(array): a copy of an array"),
    METHOD_KW("shared", shared_, "shared(name, value, sizes=None): a shared variable"),
    METHOD_KW("random", random_stream_, "random(name, seed): a stream of random numbers"),
    METHOD_KW("shared_node", shared_node_, "shared_node(shared): the variable as a node of this graph"),
    METHOD_KW("var", var_, "var(name): the node of that name"),
    METHOD_KW("formula", formula_, "formula(text): the value of a formula"),
    METHOD_KW("name", name_node_, "name(node, name): gives a node a name in formulas"),
    METHOD_KW("op", op_, "op(name, nodes, attributes=None): any op by name"),
    METHOD_KW("item", item_, "item(node, i): result i of an op that has several"),
    METHOD_KW("part", part_, "part(x, index[, y, set]): x[index], or x with that part set or increased"),
    METHOD_KW("label", label_, "label(text): nodes made from now on are part of what it says"),
    METHOD_KW("here", here_, "here(file, line): nodes made from now on belong to this line of a program"),
    METHOD_KW("ifelse", ifelse_, "ifelse(condition, yes, no): lists of values, one of which is computed"),
    METHOD_KW("leaves", leaves_, "leaves(nodes): the leaves that they are computed from"),
    METHOD_KW("replace", replace_, "replace(nodes, from, to): the nodes with some replaced"),
    METHOD_KW("grads", grads_, "grads(cost, wrt, ...): gradients"),
    METHOD_KW("Lop", Lop_, "Lop(f, wrt, eval)"),
    METHOD_KW("Rop", Rop_, "Rop(f, wrt, eval)"),
    METHOD_KW("jacobian", jacobian_, "jacobian(y, x)"),
    METHOD_KW("scan_element", scan_element_, "scan_element(x): an element along axis 0"),
    METHOD_KW("scan_state", scan_state_, "scan_state(initial): a state of a loop"),
    METHOD_KW("scan_taps", scan_taps_, "scan_taps(x, taps): elements at several steps"),
    METHOD_KW("scan_states", scan_states_, "scan_states(initial, n): a state and its values before"),
    METHOD_KW("scan", scan_, "scan(element, state, next, collect, ...): a loop"),
    METHOD_KW("svg", svg_, "svg(nodes): a picture of what they are computed from"),
    METHOD_KW("compile", graph_compile, "compile(...): a function"),
    METHOD("register", graph_register, "register(name, nin, nout, infer, run, grad): an op in Python"),
    { 0 },
};
static PyType_Slot graph_slots[] = {
    SLOT(Py_tp_new, graph_make),
    SLOT(Py_tp_dealloc, graph_free),
    { Py_tp_methods, graph_methods },
    { Py_tp_doc, (void *)(uintptr_t)"Graph(): an empty graph" },
    { 0 },
};
PyType_Spec graph_spec = { "_monochord.Graph", sizeof(struct graph), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE, graph_slots };
