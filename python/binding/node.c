/* node.c: nodes of graphs. */
#include "binding.h"

PyTypeObject *node_type;

PyObject *node_new(struct graph *g, mc_node *n)
{
    if (!n) {
        return raise_last();
    }
    if (mc_graph_status(g->g) != MC_OK) {
        raise_status(mc_graph_status(g->g), mc_error(g->g));
        mc_graph_clear_error(g->g);
        return NULL;
    }
    struct node *self = PyObject_New(struct node, node_type);
    if (self) {
        Py_INCREF((PyObject *)g);
        self->graph = g;
        self->n = n;
    }
    return (PyObject *)self;
}

mc_node *node_of(struct graph *g, PyObject *x)
{
    if (Py_TYPE(x) != node_type || ((struct node *)x)->graph != g) {
        PyErr_Format(PyExc_TypeError,
                     Py_TYPE(x) == node_type ? "a node of another graph: %R" : "expected a node, not %R", x);
        return NULL;
    }
    return ((struct node *)x)->n;
}

mc_node **nodes_of(struct graph *g, PyObject *list, int *n)
{
    Py_ssize_t count = list && list != Py_None ? PySequence_Size(list) : 0;
    mc_node **all = count < 0 ? NULL : PyMem_Calloc((size_t)count + 1, sizeof *all);
    for (Py_ssize_t i = 0; all && i < count; i++) {
        PyObject *item = PySequence_GetItem(list, i);
        all[i] = item ? node_of(g, item) : NULL;
        Py_XDECREF(item);
        if (!all[i]) {
            PyMem_Free(all);
            return NULL;
        }
    }
    *n = (int)count;
    return all;
}

PyObject *list_of_nodes(struct graph *g, int n, mc_node *const *nodes)
{
    PyObject *list = PyList_New(n);
    for (int i = 0; list && i < n; i++) {
        PyObject *x = node_new(g, nodes[i]);
        if (!x || PyList_SetItem(list, i, x) < 0) {
            Py_CLEAR(list);
        }
    }
    return list;
}

static void node_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_DECREF((PyObject *)((struct node *)self)->graph);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *node_compare(PyObject *a, PyObject *b, int how)
{
    if (Py_TYPE(b) != node_type || (how != Py_EQ && how != Py_NE)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    return PyBool_FromLong((((struct node *)a)->n == ((struct node *)b)->n) == (how == Py_EQ));
}

static Py_hash_t node_hash(PyObject *self)
{
    return (Py_hash_t)((uintptr_t)((struct node *)self)->n >> 4);
}

static PyObject *node_text(PyObject *self)
{
    char *text = mc_node_text(((struct node *)self)->n);
    PyObject *s = text ? PyUnicode_FromString(text) : raise_last();
    mc_text_free(text);
    return s;
}

static PyObject *node_get(PyObject *self, void *what)
{
    struct graph *g = ((struct node *)self)->graph;
    const mc_node *n = ((struct node *)self)->n;
    switch ((int)(intptr_t)what) {
    case 'g': Py_INCREF((PyObject *)g); return (PyObject *)g;
    case 'i': return PyLong_FromUnsignedLong(mc_node_id(n));
    case 'o': return PyUnicode_FromString(mc_node_op(n));
    case 'n': return PyUnicode_FromString(mc_node_name(n));
    case 'd': return PyUnicode_FromString(mc_dtype_name(mc_node_dtype(n)));
    case 's': return tuple_of_sizes(mc_node_rank(n), mc_node_dims(n));
    case 'v': {
        const mc_array *value = mc_node_value(n);
        if (!value) {
            Py_RETURN_NONE;
        }
        return array_new(mc_array_ref(value));
    }
    default: {
        int count = mc_node_ninputs(n);
        PyObject *list = PyList_New(count);
        for (int i = 0; list && i < count; i++) {
            PyObject *x = node_new(g, mc_node_input(n, i));
            if (!x || PyList_SetItem(list, i, x) < 0) {
                Py_CLEAR(list);
            }
        }
        return list;
    }
    }
}

static PyGetSetDef node_members[] = {
    { "graph", node_get, NULL, "the graph that it belongs to", (void *)(intptr_t)'g' },
    { "id", node_get, NULL, "its number in the graph", (void *)(intptr_t)'i' },
    { "op", node_get, NULL, "the name of its op", (void *)(intptr_t)'o' },
    { "name", node_get, NULL, "its name in formulas", (void *)(intptr_t)'n' },
    { "dtype", node_get, NULL, "the dtype of its elements", (void *)(intptr_t)'d' },
    { "dims", node_get, NULL, "its sizes; -1: not known before the call", (void *)(intptr_t)'s' },
    { "value", node_get, NULL, "the value of a constant, else None", (void *)(intptr_t)'v' },
    { "inputs", node_get, NULL, "the nodes that it is computed from", (void *)(intptr_t)'I' },
    { 0 },
};
static PyType_Slot node_slots[] = {
    SLOT(Py_tp_dealloc, node_free),
    SLOT(Py_tp_richcompare, node_compare),
    SLOT(Py_tp_hash, node_hash),
    SLOT(Py_tp_repr, node_text),
    { Py_tp_getset, node_members },
    { 0 },
};
PyType_Spec node_spec = { "_monochord.Node", sizeof(struct node), 0,
                          Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, node_slots };
