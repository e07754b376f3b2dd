/* net.c: networks of layers, over monochord_nn.h.  A net is made in a graph, whose lock its methods hold.
 *
 * Invariant: after a method, the graph has no mistake: it has become an exception. */
#include "binding.h"
#include <monochord_nn.h>
#include <string.h>

PyTypeObject *net_type;
struct net {
    PyObject_HEAD
    struct graph *graph;
    mc_net *net;
};

/* The end of a method: a mistake of the graph, or a failed status, becomes an exception. */
static PyObject *leave(struct net *n, int failed, PyObject *r)
{
    mc_graph *g = n->graph->g;
    if (mc_graph_status(g) != MC_OK || (failed && !PyErr_Occurred())) {
        Py_CLEAR(r);
        if (mc_graph_status(g) != MC_OK) {
            raise_status(mc_graph_status(g), mc_error(g));
        } else {
            raise_last();
        }
    }
    mc_graph_clear_error(g);
    graph_leave(n->graph);
    return r;
}

static PyObject *net_make(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *graph;
    const char *prefix = NULL;
    unsigned long long seed = 1;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O!|zK", graph_type, &graph, &prefix, &seed)) {
        return NULL;
    }
    allocfunc alloc = (allocfunc)(uintptr_t)PyType_GetSlot(type, Py_tp_alloc);
    struct net *self = (struct net *)alloc(type, 0);
    if (!self) {
        return NULL;
    }
    self->graph = (struct graph *)Py_NewRef(graph);
    graph_enter(self->graph);
    self->net = mc_net_new(self->graph->g, prefix, seed);
    PyObject *r = leave(self, !self->net, (PyObject *)self);
    return r;
}

static void net_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    struct net *n = (struct net *)self;
    mc_net_free(n->net);
    Py_XDECREF((PyObject *)n->graph);
    freefunc release = (freefunc)(uintptr_t)PyType_GetSlot(type, Py_tp_free);
    release(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *net_read(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    const char *name, *text;
    if (!PyArg_ParseTuple(args, "ss", &name, &text)) {
        return NULL;
    }
    graph_enter(n->graph);
    return leave(n, mc_net_read(n->net, name, text) < 0, Py_NewRef(Py_None));
}

/* function(kind, numpy, single) */
static PyObject *net_function(PyObject *self, PyObject *args)
{
    static const struct { const char *name; mc_function *(*make)(mc_net *); } kinds[] = {
        { "train", (mc_net_trainer) }, { "test", (mc_net_tester) }, { "predict", (mc_net_predictor) },
        { "learn", (mc_net_learner) },
    };
    struct net *n = (struct net *)self;
    const char *kind;
    PyObject *numpy = Py_None;
    int single = 0;
    if (!PyArg_ParseTuple(args, "s|Op", &kind, &numpy, &single)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strcmp(kind, kinds[i].name) == 0) {
            graph_enter(n->graph);
            mc_function *f = kinds[i].make(n->net);
            return leave(n, !f, f ? function_new(f, numpy, single) : NULL);
        }
    }
    PyErr_Format(PyExc_ValueError, "there is no function '%s'; there are train, test, predict and learn",
                 kind);
    return NULL;
}

static PyObject *net_params(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    const char *tags = NULL;
    if (!PyArg_ParseTuple(args, "|z", &tags)) {
        return NULL;
    }
    PyObject *all = PyDict_New();
    graph_enter(n->graph);
    for (int i = 0; all; i++) {
        mc_param p = mc_net_param(n->net, tags, i);
        if (!p.name) {
            break;
        }
        PyObject *s = shared_new(mc_shared_ref(p.shared));
        if (!s || PyDict_SetItemString(all, p.name, s) < 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(s);
    }
    return leave(n, !all, all);
}

static PyObject *layer(const mc_layer *l)
{
    return Py_BuildValue("{s:s,s:s,s:s,s:N}", "name", mc_layer_name(l), "kind", mc_layer_kind(l), "text",
                         mc_layer_text(l, MC_DETERMINISTIC), "dims",
                         tuple_of_sizes(mc_layer_rank(l), mc_layer_dims(l)));
}

static PyObject *net_layers(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    (void)args;
    graph_enter(n->graph);
    PyObject *list = PyList_New(mc_net_nlayers(n->net));
    for (int i = 0; list && i < mc_net_nlayers(n->net); i++) {
        PyObject *x = layer(mc_net_layer(n->net, i));
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return leave(n, !list, list);
}

/* node(name, training): what a layer computes; name "": the last; "cost", "target": of the training */
static PyObject *net_node(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    const char *name;
    int training = 0;
    if (!PyArg_ParseTuple(args, "s|p", &name, &training)) {
        return NULL;
    }
    enum mc_pass pass = training ? MC_TRAINING : MC_DETERMINISTIC;
    graph_enter(n->graph);
    const mc_layer *l = *name ? mc_net_find(n->net, name) : mc_net_layer(n->net, -1);
    mc_node *node = l                             ? mc_layer_node(l, pass)
                    : strcmp(name, "cost") == 0   ? (mc_net_cost)(n->net, pass)
                    : strcmp(name, "target") == 0 ? mc_net_target(n->net)
                                                  : NULL;
    if (!node) {
        PyErr_Format(PyExc_ValueError, "there is no layer '%s'", name);
    }
    return leave(n, !node, node ? node_new(n->graph, node) : NULL);
}

/* file(what, path, words): save, load: parameters by tags; save_torch, load_torch: names of modules */
static PyObject *net_file(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    const char *what, *path, *words = NULL;
    if (!PyArg_ParseTuple(args, "ss|z", &what, &path, &words)) {
        return NULL;
    }
    graph_enter(n->graph);
    mc_status s = strcmp(what, "save") == 0         ? mc_net_save_params(n->net, path, words)
                  : strcmp(what, "load") == 0       ? mc_net_load_params(n->net, path, words)
                  : strcmp(what, "save_torch") == 0 ? mc_net_save_torch(n->net, path, words)
                                                    : mc_net_load_torch(n->net, path, words);
    return leave(n, s < 0, Py_NewRef(Py_None));
}

static PyObject *net_rate(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    double rate;
    if (!PyArg_ParseTuple(args, "d", &rate)) {
        return NULL;
    }
    graph_enter(n->graph);
    return leave(n, mc_net_set_rate(n->net, rate) < 0, Py_NewRef(Py_None));
}

static PyObject *net_training(PyObject *self, PyObject *args)
{
    struct net *n = (struct net *)self;
    (void)args;
    graph_enter(n->graph);
    const mc_training *t = mc_net_training(n->net);
    PyObject *r = !t ? NULL
                     : Py_BuildValue("{s:L,s:L,s:L,s:d,s:s,s:s,s:s}", "batch", (long long)t->batch, "epochs",
                                     (long long)t->epochs, "patience", (long long)t->patience, "rate",
                                     t->rate, "loss", t->loss, "rule", t->rule, "schedule", t->schedule);
    return leave(n, !r, r);
}

static PyMethodDef methods[] = {
    METHOD("read", net_read, "read(name, text): adds layers and settings, a line each"),
    METHOD("function", net_function, "function(kind, numpy=None, single=False): train, test, predict, learn"),
    METHOD("params", net_params, "params(tags=None): the parameters by name"),
    METHOD("layers", net_layers, "layers(): name, kind, text and sizes of each"),
    METHOD("node", net_node, "node(name, training=False): what a layer computes"),
    METHOD("file", net_file, "file(what, path, words=None): saves or loads parameters"),
    METHOD("rate", net_rate, "rate(value): sets the rate of learning"),
    METHOD("training", net_training, "training(): the settings"),
    { 0 },
};
static PyType_Slot slots[] = {
    SLOT(Py_tp_new, net_make),
    SLOT(Py_tp_dealloc, net_free),
    { Py_tp_methods, methods },
    { Py_tp_doc, (void *)(uintptr_t)"Net(graph, prefix=None, seed=1): an empty net" },
    { 0 },
};
PyType_Spec net_spec = { "_monochord.Net", sizeof(struct net), 0, Py_TPFLAGS_DEFAULT, slots };
