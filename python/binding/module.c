/* module.c: the module _monochord: its types, exceptions, and the functions that belong to no object. */
#include "binding.h"
#include <stdlib.h>

/* ---- exceptions ---- */

/* Each status has a class, which is also the class of Python that comes closest. */
static const struct exception_row { mc_status status; const char *name, *base; } rows[] = {
    { MC_EARG,         "monochord.ArgumentError",    "ValueError"          },
    { MC_ESYNTAX,      "monochord.FormulaError",     "ValueError"          },
    { MC_ETYPE,        "monochord.DtypeError",       "TypeError"           },
    { MC_ESHAPE,       "monochord.ShapeError",       "ValueError"          },
    { MC_EINDEX,       "monochord.BoundsError",      "IndexError"          },
    { MC_EGRAD,        "monochord.GradientError",    "ValueError"          },
    { MC_EMEMORY,      "monochord.OutOfMemory",      "MemoryError"         },
    { MC_EFILE,        "monochord.FileError",        "OSError"             },
    { MC_EFORMAT,      "monochord.FormatError",      "ValueError"          },
    { MC_EDEVICE,      "monochord.DeviceError",      "RuntimeError"        },
    { MC_ECOMPILE,     "monochord.CompilerError",    "RuntimeError"        },
    { MC_ECHECK,       "monochord.CheckError",       "AssertionError"      },
    { MC_EUNSUPPORTED, "monochord.UnsupportedError", "NotImplementedError" },
    { MC_EINTERNAL,    "monochord.InternalError",    "RuntimeError"        },
};
enum { NROW = sizeof rows / sizeof *rows };
static PyObject *error_class, *classes[NROW];

static int make_exceptions(PyObject *module)
{
    PyObject *builtins = PyImport_ImportModule("builtins");
    error_class = builtins ? PyErr_NewException("monochord.Error", NULL, NULL) : NULL;
    if (!error_class || PyModule_AddObjectRef(module, "Error", error_class) < 0) {
        Py_XDECREF(builtins);
        return -1;
    }
    for (int i = 0; i < NROW; i++) {
        PyObject *base = PyObject_GetAttrString(builtins, rows[i].base);
        PyObject *bases = base ? PyTuple_Pack(2, error_class, base) : NULL;
        classes[i] = bases ? PyErr_NewException(rows[i].name, bases, NULL) : NULL;
        Py_XDECREF(bases);
        Py_XDECREF(base);
        if (!classes[i] || PyModule_AddObjectRef(module, rows[i].name + sizeof "monochord", classes[i]) < 0) {
            Py_DECREF(builtins);
            return -1;
        }
    }
    Py_DECREF(builtins);
    return 0;
}

PyObject *text_printed(mc_status (*print)(const void *what, FILE *to), const void *what)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    const mc_status s = to ? print(what, to) : MC_EMEMORY;
    const int closed = to ? fclose(to) : -1;
    PyObject *r = s < 0    ? raise_last()
                  : closed ? PyErr_NoMemory()
                           : PyUnicode_FromStringAndSize(text, (Py_ssize_t)size);
    free(text);
    return r;
}

/* Exceptions of callbacks, on their way through the library, by the number of their thread. */
static PyObject *kept;

/* This thread's, which is no longer kept; NULL: there is none. */
static PyObject *take_exception(void)
{
    if (!kept || !PyDict_Size(kept)) {
        return NULL;
    }
    PyObject *me = PyLong_FromUnsignedLong(PyThread_get_thread_ident());
    PyObject *value = me ? PyDict_GetItemWithError(kept, me) : NULL;
    Py_XINCREF(value);
    if (value) {
        PyDict_DelItem(kept, me);
    }
    Py_XDECREF(me);
    return value;
}

void drop_exception(void)
{
    PyObject *value = take_exception();
    Py_XDECREF(value);
}

mc_status keep_exception(void)
{
    PyObject *type, *value, *trace, *me = NULL;
    PyErr_Fetch(&type, &value, &trace);
    PyErr_NormalizeException(&type, &value, &trace);
    if (value && trace) {
        PyException_SetTraceback(value, trace);
    }
    if (!kept) {
        kept = PyDict_New();
    }
    if (!value || !kept || !(me = PyLong_FromUnsignedLong(PyThread_get_thread_ident())) ||
        PyDict_SetItem(kept, me, value) < 0) {
        PyErr_Clear();
    }
    Py_XDECREF(me);
    Py_XDECREF(type);
    Py_XDECREF(value);
    Py_XDECREF(trace);
    return mc_fail(MC_EARG, "an op in Python raised an exception");
}

PyObject *raise_status(mc_status s, const char *text)
{
    if (PyErr_Occurred()) {
        return NULL;
    }
    PyObject *value = take_exception();
    if (value) {
        PyErr_SetObject((PyObject *)Py_TYPE(value), value);
        Py_DECREF(value);
        return NULL;
    }
    PyObject *class = error_class;
    for (int i = 0; i < NROW; i++) {
        class = rows[i].status == s ? classes[i] : class;
    }
    PyErr_SetString(class, text && *text ? text : mc_status_name(s));
    return NULL;
}

PyObject *raise_last(void)
{
    return raise_status(mc_last_status(), mc_last_error());
}

/* ---- flags and ops ---- */

static PyObject *flag_get(PyObject *self, PyObject *args)
{
    const char *name;
    (void)self;
    if (!PyArg_ParseTuple(args, "s", &name)) {
        return NULL;
    }
    const char *value = mc_flag_get(name);
    return value ? PyUnicode_FromString(value) : raise_last();
}

static PyObject *flag_set(PyObject *self, PyObject *args)
{
    const char *name, *value;
    (void)self;
    if (!PyArg_ParseTuple(args, "ss", &name, &value)) {
        return NULL;
    }
    if (mc_flag_set(name, value) < 0) {
        return raise_last();
    }
    Py_RETURN_NONE;
}

static PyObject *op_names(PyObject *self, PyObject *args)
{
    (void)self;
    (void)args;
    PyObject *all = PyDict_New();
    for (int i = 0; all && i < mc_op_count(); i++) {
        const char *doc = mc_op_doc(i);
        PyObject *text = PyUnicode_FromString(doc ? doc : "");
        if (!text || PyDict_SetItemString(all, mc_op_name(i), text) < 0) {
            Py_CLEAR(all);
        }
        Py_XDECREF(text);
    }
    return all;
}

static PyObject *synchronize(PyObject *self, PyObject *args)
{
    mc_status s;
    (void)self;
    (void)args;
    Py_BEGIN_ALLOW_THREADS s = mc_synchronize();
    Py_END_ALLOW_THREADS if (s < 0)
    {
        return raise_last();
    }
    Py_RETURN_NONE;
}

static PyMethodDef functions[] = {
    METHOD("flag_get", flag_get, "flag_get(name): the value of a flag"),
    METHOD("flag_set", flag_set, "flag_set(name, value): sets a flag"),
    METHOD("op_names", op_names, "op_names(): every op of the library, with what it does"),
    METHOD("synchronize", synchronize, "synchronize(): waits until every device has done its work"),
    METHOD("load", module_load_archive, "load(path): the arrays of a .npz or .safetensors file by name"),
    METHOD("save", module_save_archive, "save(path, arrays): arrays by name as such a file"),
    METHOD("load_function", module_load, "load_function(path): the function that Function.save wrote"),
    { 0 },
};

/* ---- the module ---- */

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_monochord", "Graphs, functions and arrays of Monochord.", -1, functions,
    NULL, NULL, NULL, NULL
};

PyMODINIT_FUNC PyInit__monochord(void);
PyMODINIT_FUNC PyInit__monochord(void)
{
    const struct { PyType_Spec *spec; PyTypeObject **type; } types[] = {
        { &array_spec, &array_type },   { &graph_spec, &graph_type },       { &node_spec, &node_type },
        { &shared_spec, &shared_type }, { &function_spec, &function_type },
        { &net_spec, &net_type },
    };
    PyObject *module = PyModule_Create(&definition);
    if (!module || make_exceptions(module) < 0 ||
        PyModule_AddStringConstant(module, "version", mc_version()) < 0) {
        Py_XDECREF(module);
        return NULL;
    }
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        *types[i].type = (PyTypeObject *)PyType_FromSpec(types[i].spec);
        if (!*types[i].type || PyModule_AddType(module, *types[i].type) < 0) {
            Py_DECREF(module);
            return NULL;
        }
#if PY_VERSION_HEX < 0x030A0000 /* Py_TPFLAGS_DISALLOW_INSTANTIATION */
        if ((*types[i].type)->tp_new == PyBaseObject_Type.tp_new) {
            (*types[i].type)->tp_new = NULL;
        }
#endif
    }
    return module;
}
