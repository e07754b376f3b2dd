/* shared.c: shared variables. */
#include "binding.h"

PyTypeObject *shared_type;

PyObject *shared_new(mc_shared *s)
{
    struct shared *self = PyObject_New(struct shared, shared_type);
    if (self) {
        self->s = s;
    } else {
        mc_shared_unref(&s);
    }
    return (PyObject *)self;
}

static void shared_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    mc_shared_unref(&((struct shared *)self)->s);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static PyObject *shared_get(PyObject *self, PyObject *args)
{
    int borrow = 0;
    mc_array *a;
    mc_shared *s = ((struct shared *)self)->s;
    if (!PyArg_ParseTuple(args, "|p", &borrow)) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS /* a call that holds the variable may need Python */
        a = borrow ? mc_shared_borrow(s) : mc_shared_get(s);
    Py_END_ALLOW_THREADS return array_new(a);
}

static PyObject *shared_set(PyObject *self, PyObject *args)
{
    PyObject *value;
    Py_buffer view;
    int viewed;
    mc_status status;
    if (!PyArg_ParseTuple(args, "O", &value)) {
        return NULL;
    }
    mc_array *a = array_borrow(value, &view, &viewed);
    if (!a) {
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS status = mc_shared_set(((struct shared *)self)->s, a);
    Py_END_ALLOW_THREADS mc_array_unref(&a);
    if (viewed) {
        PyBuffer_Release(&view);
    }
    if (status < 0) {
        return raise_last();
    }
    Py_RETURN_NONE;
}

static PyObject *shared_name(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mc_shared_name(((struct shared *)self)->s));
}

static PyMethodDef shared_methods[] = {
    METHOD("get", shared_get, "get(borrow=False): a copy of the value, or the memory itself"),
    METHOD("set", shared_set, "set(value): copies a value in"),
    { 0 },
};
static PyGetSetDef shared_members[] = { { "name", shared_name, NULL, "its name", NULL }, { 0 } };
static PyType_Slot shared_slots[] = {
    SLOT(Py_tp_dealloc, shared_free),
    { Py_tp_methods, shared_methods },
    { Py_tp_getset, shared_members },
    { 0 },
};
PyType_Spec shared_spec = { "_monochord.Shared", sizeof(struct shared), 0,
                            Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, shared_slots };
