/* array.c: arrays go both ways through the buffer protocol, without a copy. */
#include "binding.h"
#include <string.h>

PyTypeObject *array_type;

/* ---- dtypes ---- */

/* Of each dtype the letter of the struct module; NULL: Python has none.  Of two letters for one size NumPy's
 * int64 is the one of C's long. */
#define LONG_OR(letter, other) (sizeof(long) == 8 ? (letter) : (other))
static const char *letter_of(mc_dtype d)
{
    static const char *const letters[MC_NDTYPE] = {
        [MC_BOOL] = "?",    [MC_INT8] = "b",    [MC_INT16] = "h",
        [MC_INT32] = "i",   [MC_INT64] = LONG_OR("l", "q"),
        [MC_UINT8] = "B",   [MC_UINT16] = "H", [MC_UINT32] = "I", [MC_UINT64] = LONG_OR("L", "Q"),
        [MC_FLOAT16] = "e", [MC_FLOAT32] = "f", [MC_FLOAT64] = "d",
    };
    return letters[d];
}

int dtype_named(PyObject *name, mc_dtype *d)
{
    const char *text = PyUnicode_Check(name) ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (!text) {
        PyErr_SetString(PyExc_TypeError, "a dtype is given by its name, such as 'float32'");
        return -1;
    }
    if (mc_dtype_parse(text, d) < 0) {
        raise_last();
        return -1;
    }
    return 0;
}

static int dtype_of(const Py_buffer *view, mc_dtype *d)
{
    const char *f = view->format ? view->format : "B";
    if (*f == '@' || *f == '=' || *f == '<') {
        f++;
    }
    char c = f[0] && !f[1] ? f[0] : 0;
    if (c && strchr("lqLQ", c)) { /* of 4 or of 8 bytes */
        *d = c == 'l' || c == 'q' ? (view->itemsize == 8 ? MC_INT64 : MC_INT32)
                                  : (view->itemsize == 8 ? MC_UINT64 : MC_UINT32);
        return 0;
    }
    for (int i = 0; c && i < MC_NDTYPE; i++) {
        const char *letter = letter_of((mc_dtype)i);
        if (letter && *letter == c && (Py_ssize_t)mc_dtype_size((mc_dtype)i) == view->itemsize) {
            *d = (mc_dtype)i;
            return 0;
        }
    }
    PyErr_Format(PyExc_TypeError, "elements of the format '%s' have no dtype here", view->format);
    return -1;
}

/* ---- sizes ---- */

int sizes_of(PyObject *x, int *rank, int64_t *dims)
{
    Py_ssize_t n = PySequence_Size(x);
    if (n < 0 || n > MC_MAX_RANK) {
        if (n > 0) {
            PyErr_Format(PyExc_ValueError, "%zd axes; at most %d are possible", n, MC_MAX_RANK);
        }
        return -1;
    }
    for (Py_ssize_t i = 0; i < n; i++) {
        PyObject *item = PySequence_GetItem(x, i);
        dims[i] = item && item != Py_None ? PyLong_AsLongLong(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred()) {
            return -1;
        }
    }
    *rank = (int)n;
    return 0;
}

PyObject *tuple_of_sizes(int rank, const int64_t *dims)
{
    PyObject *t = PyTuple_New(rank);
    for (int i = 0; t && i < rank; i++) {
        PyObject *size = PyLong_FromLongLong(dims[i]);
        if (!size || PyTuple_SetItem(t, i, size) < 0) {
            Py_CLEAR(t);
        }
    }
    return t;
}

/* ---- from Python ---- */

mc_array *array_borrow(PyObject *x, Py_buffer *view, int *viewed)
{
    mc_dtype d;
    *viewed = 0;
    if (Py_TYPE(x) == array_type) {
        return mc_array_ref(((struct array *)x)->a);
    }
    if (PyObject_GetBuffer(x, view, PyBUF_RECORDS_RO) < 0) {
        if (!PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            PyErr_SetString(PyExc_TypeError, "not an array that can be read as it is");
        }
        return NULL;
    }
    mc_array *a = NULL;
    if (dtype_of(view, &d) == 0) {
        _Static_assert(sizeof(Py_ssize_t) == sizeof(int64_t), "sizes of 64 bits");
        a = mc_array_wrap(d, view->ndim, (const int64_t *)view->shape, (const int64_t *)view->strides,
                          view->buf, NULL, NULL);
        if (!a) {
            raise_last();
        }
    }
    *viewed = a != NULL;
    if (!a) {
        PyBuffer_Release(view);
    }
    return a;
}

static void release_view(void *arg)
{
    PyGILState_STATE state = PyGILState_Ensure();
    PyBuffer_Release(arg);
    PyMem_Free(arg);
    PyGILState_Release(state);
}

mc_array *array_take(PyObject *x)
{
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    int viewed = 0;
    mc_array *a = view ? array_borrow(x, view, &viewed) : NULL;
    if (!viewed) {
        PyMem_Free(view);
        return a;
    }
    mc_array *kept = mc_array_wrap(mc_array_dtype(a), view->ndim, (const int64_t *)view->shape,
                                   (const int64_t *)view->strides, view->buf, release_view, view);
    mc_array_unref(&a);
    if (!kept) {
        PyBuffer_Release(view);
        PyMem_Free(view);
        raise_last();
    }
    return kept;
}

/* ---- to Python ---- */

PyObject *array_new(mc_array *a)
{
    if (!a) {
        return raise_last();
    }
    struct array *self = PyObject_New(struct array, array_type);
    if (self) {
        self->a = a;
    } else {
        mc_array_unref(&a);
    }
    return (PyObject *)self;
}

static void array_free(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    mc_array_unref(&((struct array *)self)->a);
    PyObject_Free(self);
    Py_DECREF((PyObject *)type);
}

static int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
    mc_array *a = ((struct array *)self)->a;
    mc_dtype d = mc_array_dtype(a);
    void *data = mc_array_size(a) ? mc_array_data(a) : (void *)"";
    view->obj = NULL;
    if (!data || !letter_of(d)) {
        PyErr_Format(PyExc_BufferError,
                     data ? "Python has no elements of dtype %s; cast it"
                          : "the array is on the device %s; to('cpu') brings it here",
                     data ? mc_dtype_name(d) : mc_array_device(a));
        return -1;
    }
    if (!(flags & PyBUF_STRIDES) && !mc_array_is_contiguous(a)) {
        PyErr_SetString(PyExc_BufferError, "the array is not contiguous");
        return -1;
    }
    Py_INCREF(self);
    view->obj = self;
    view->buf = data;
    view->itemsize = (Py_ssize_t)mc_dtype_size(d);
    view->len = (Py_ssize_t)mc_array_size(a) * view->itemsize;
    view->readonly = 0;
    view->ndim = mc_array_rank(a);
    view->format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)letter_of(d) : NULL;
    view->shape = flags & PyBUF_ND ? (Py_ssize_t *)(uintptr_t)mc_array_dims(a) : NULL;
    view->strides = flags & PyBUF_STRIDES ? (Py_ssize_t *)(uintptr_t)mc_array_strides(a) : NULL;
    view->suboffsets = NULL;
    view->internal = NULL;
    return 0;
}

static PyObject *array_dtype(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mc_dtype_name(mc_array_dtype(((struct array *)self)->a)));
}

static PyObject *array_shape(PyObject *self, void *unused)
{
    (void)unused;
    const mc_array *a = ((struct array *)self)->a;
    return tuple_of_sizes(mc_array_rank(a), mc_array_dims(a));
}

static PyObject *array_device(PyObject *self, void *unused)
{
    (void)unused;
    return PyUnicode_FromString(mc_array_device(((struct array *)self)->a));
}

static PyObject *array_text(PyObject *self)
{
    char *text = mc_array_text(((struct array *)self)->a);
    PyObject *s = text ? PyUnicode_FromString(text) : raise_last();
    mc_text_free(text);
    return s;
}

static PyObject *array_cast(PyObject *self, PyObject *args)
{
    PyObject *name;
    mc_dtype d;
    if (!PyArg_ParseTuple(args, "U", &name) || dtype_named(name, &d) < 0) {
        return NULL;
    }
    return array_new(mc_array_cast(((struct array *)self)->a, d));
}

static PyObject *array_to(PyObject *self, PyObject *args)
{
    const char *device;
    return PyArg_ParseTuple(args, "s", &device) ? array_new(mc_array_to(((struct array *)self)->a, device))
                                                : NULL;
}

/* NumPy reads the buffer by itself; this one also fetches what is on a GPU. */
static PyObject *array_array(PyObject *self, PyObject *args, PyObject *kw)
{
    (void)args;
    (void)kw;
    PyObject *here = array_new(mc_array_to(((struct array *)self)->a, "cpu"));
    PyObject *numpy = here ? PyImport_ImportModule("numpy") : NULL;
    PyObject *view = numpy ? PyMemoryView_FromObject(here) : NULL;
    PyObject *r = view ? PyObject_CallMethod(numpy, "asarray", "O", view) : NULL;
    Py_XDECREF(view);
    Py_XDECREF(numpy);
    Py_XDECREF(here);
    return r;
}

/* ---- DLPack ---- */

static void capsule_free(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, "dltensor")) { /* nobody took it over */
        mc_array *a = mc_array_from_dlpack(PyCapsule_GetPointer(capsule, "dltensor"));
        mc_array_unref(&a);
    }
}

static PyObject *array_dlpack(PyObject *self, PyObject *args, PyObject *kw)
{
    (void)args;
    (void)kw;
    struct DLManagedTensor *t = mc_array_to_dlpack(((struct array *)self)->a);
    return t ? PyCapsule_New(t, "dltensor", capsule_free) : raise_last();
}

static PyObject *array_dlpack_device(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    return Py_BuildValue("(ii)", 1, 0); /* the host: what is on a GPU is downloaded first */
}

/* Array(x): of an object with the buffer protocol, or else with __dlpack__. */
static PyObject *array_make(PyTypeObject *type, PyObject *args, PyObject *kw)
{
    PyObject *x;
    (void)type;
    (void)kw;
    if (!PyArg_ParseTuple(args, "O", &x)) {
        return NULL;
    }
    if (PyObject_CheckBuffer(x) || !PyObject_HasAttrString(x, "__dlpack__")) {
        mc_array *a = array_take(x);
        return a ? array_new(a) : NULL;
    }
    PyObject *capsule = PyObject_CallMethod(x, "__dlpack__", NULL);
    void *t = capsule ? PyCapsule_GetPointer(capsule, "dltensor") : NULL;
    mc_array *a = t ? mc_array_from_dlpack(t) : NULL;
    PyObject *r = !t ? NULL : a ? array_new(a) : raise_last();
    if (a) {
        PyCapsule_SetName(capsule, "used_dltensor");
    }
    Py_XDECREF(capsule);
    return r;
}

static PyMethodDef methods[] = {
    METHOD("cast", array_cast, "cast(dtype): the same elements in another dtype"),
    METHOD("to", array_to, "to(device): the array in the memory of 'cpu' or 'cuda0'"),
    METHOD_KW("__array__", array_array, "the array as NumPy's"),
    METHOD_KW("__dlpack__", array_dlpack, "the array as a DLPack tensor"),
    METHOD("__dlpack_device__", array_dlpack_device, "where the DLPack tensor is"),
    { 0 },
};
static PyGetSetDef members[] = {
    { "dtype", array_dtype, NULL, "the name of its dtype", NULL },
    { "shape", array_shape, NULL, "its sizes", NULL },
    { "device", array_device, NULL, "'cpu', or the GPU whose memory it is in", NULL },
    { 0 },
};
static PyType_Slot slots[] = {
    SLOT(Py_tp_new, array_make),
    SLOT(Py_tp_dealloc, array_free),
    SLOT(Py_tp_repr, array_text),
    SLOT(Py_bf_getbuffer, array_buffer),
    { Py_tp_methods, methods },
    { Py_tp_getset, members },
    { Py_tp_doc, (void *)(uintptr_t)"Array(x): an array of the library over the memory of x" },
    { 0 },
};
PyType_Spec array_spec = { "_monochord.Array", sizeof(struct array), 0, Py_TPFLAGS_DEFAULT, slots };

/* ---- files ---- */

PyObject *module_load_archive(PyObject *self, PyObject *args)
{
    const char *path;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &path)) {
        return NULL;
    }
    mc_archive *file = mc_archive_open(path);
    if (!file) {
        return raise_last();
    }
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < mc_archive_count(file); i++) {
        const char *name = mc_archive_name(file, i);
        PyObject *a = array_new(mc_archive_load(file, name));
        if (!a || PyDict_SetItemString(all, name, a) < 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(a);
    }
    mc_archive_close(file);
    return all;
}

PyObject *module_save_archive(PyObject *self, PyObject *args)
{
    const char *path;
    PyObject *all, *key, *value;
    Py_ssize_t at = 0, n, i = 0;
    (void)self;
    if (!PyArg_ParseTuple(args, "sO", &path, &all) || (n = PyDict_Size(all)) < 0) {
        return NULL;
    }
    const char **names = PyMem_Calloc((size_t)n + 1, sizeof *names);
    mc_array **arrays = PyMem_Calloc((size_t)n + 1, sizeof *arrays);
    while (names && arrays && PyDict_Next(all, &at, &key, &value)) {
        names[i] = PyUnicode_AsUTF8AndSize(key, NULL);
        arrays[i] = names[i] ? array_take(value) : NULL;
        if (!arrays[i++]) {
            break;
        }
    }
    if (!names || !arrays) {
        PyErr_NoMemory();
    } else if (!PyErr_Occurred() &&
               mc_archive_save(path, NULL, (int)n, names, (const mc_array *const *)arrays) < 0) {
        raise_last();
    }
    for (i = 0; arrays && i < n; i++) {
        mc_array_unref(&arrays[i]);
    }
    PyMem_Free(names);
    PyMem_Free(arrays);
    if (PyErr_Occurred()) {
        return NULL;
    }
    Py_RETURN_NONE;
}
