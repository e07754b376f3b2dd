/* variables.c: the values of an exported file's variables, and the function that sets them.  The values are
 * in the C text, in a file of plain bytes, or in a .safetensors file.
 *
 * Invariant: the function sets all variables, or none. */
#include "export/exporting.h"
#include <inttypes.h>

static const char reader[] = {
#include "export/reader_text.h"
    , 0
};

/* ---- values ---- */

/* Can a .safetensors file have a tensor of the i-th variable's own name?  Else it gets the member's name. */
static bool has_good_name(const struct mc_export_file *to, size_t i)
{
    const char *name = to->shared.at[i].shared->name;
    bool good = name && *name && strcmp(name, "__metadata__") != 0;
    for (size_t k = 0; k < to->shared.n && good; k++) {
        const char *other = to->shared.at[k].shared->name;
        good = k == i || !other || strcmp(name, other) != 0;
    }
    return good;
}

static bool ends_in(const char *path, const char *ending)
{
    const size_t n = strlen(path), k = strlen(ending);
    return n > k && strcmp(path + n - k, ending) == 0;
}

mc_status mc_export_values(struct mc_export_values *v, const struct mc_export_file *to,
                           const char *parameters)
{
    v->in_file = parameters;
    v->tensors = parameters && ends_in(parameters, ".safetensors");
    v->array = mc_calloc(to->shared.n + 1, sizeof(mc_array *), "export");
    v->name = mc_calloc(to->shared.n + 1, sizeof *v->name, "export");
    mc_status s = v->array && v->name ? MC_OK : MC_EMEMORY;
    for (; v->n < (int)to->shared.n && s == MC_OK; v->n++) {
        const struct mc_export_shared *one = &to->shared.at[v->n];
        mc_array *a = mc_array_on_host(one->shared->value);
        v->array[v->n] = a ? mc_array_copy(a) : NULL;
        v->name[v->n] = has_good_name(to, (size_t)v->n) ? one->shared->name : one->name;
        s = v->array[v->n] ? MC_OK : mc_last_status();
        mc_array_unref(&a);
    }
    return s;
}

void mc_export_values_free(struct mc_export_values *v)
{
    for (int i = 0; i < v->n; i++) {
        mc_array_unref(&v->array[i]);
    }
    mc_free(v->array);
    mc_free(v->name);
    mc_str_free(&v->bytes);
}

/* ---- NAME_init, NAME_load from plain bytes ---- */

static size_t bytes_of(const mc_array *a)
{
    return (size_t)mc_array_size(a) * mc_dtypes[a->dtype].size;
}

static bool is_zero(const char *data, size_t n)
{
    size_t i = 0;
    while (i < n && !data[i]) {
        i++;
    }
    return i == n;
}

/* Adds the statement that sets a variable, and where its values are, to the C text or to the bytes. */
static void add_variable(struct mc_str *out, const char *name, const mc_array *a, struct mc_str *bytes,
                         struct mc_str *statements)
{
    const size_t n = bytes_of(a);
    if (bytes && n) {
        mc_str_addf(statements, "memcpy(model->%s, at + %zu, sizeof model->%s);\n", name, bytes->n, name);
        mc_str_addn(bytes, a->data, n);
    } else if (is_zero(a->data, n)) { /* such as the momentum of an update rule; empty arrays, too */
        mc_str_addf(statements, "memset(model->%s, 0, sizeof model->%s);\n", name, name);
    } else {
        mc_str_addf(out, "static const %s initial_%s[] = {", mc_export_type(a->dtype), name);
        mc_export_elements(out, a);
        mc_str_add(out, "\n};\n");
        mc_str_addf(statements, "memcpy(model->%s, initial_%s, sizeof initial_%s);\n", name, name, name);
    }
}

static void print_plain(struct mc_str *out, const struct mc_export_file *to, struct mc_export_values *v,
                        struct mc_str *function)
{
    struct mc_str statements = { 0 };
    for (int i = 0; i < v->n; i++) {
        add_variable(out, to->shared.at[i].name, v->array[i], v->in_file ? &v->bytes : NULL, &statements);
    }
    const char *all = statements.s ? statements.s : "";
    if (v->in_file) {
        mc_str_addf(function,
                    "\nint %s_load(struct %s *model, const void *bytes, size_t size)\n{\n"
                    "const char *const at = (const char *)bytes;\nif (size != %zu) {\nreturn 1;\n}\n"
                    "%s(void)model, (void)at;\nreturn 0;\n}\n",
                    to->name, to->name, v->bytes.n, all);
    } else {
        mc_str_addf(function, "\nvoid %s_init(struct %s *model)\n{\n%s(void)model;\n}\n", to->name, to->name,
                    all);
    }
    function->bad |= statements.bad;
    mc_str_free(&statements);
}

/* ---- NAME_load from a .safetensors file ---- */

/* A literal of C; "?" is no part of a trigraph. */
static void print_string(struct mc_str *out, const char *s)
{
    mc_str_add(out, "\"");
    for (; *s; s++) {
        const unsigned char c = (unsigned char)*s;
        mc_str_addf(out, c < ' ' || c > '~' ? "\\%03o" : strchr("\"\\?", c) ? "\\%c" : "%c", c);
    }
    mc_str_add(out, "\"");
}

static void print_tensors(struct mc_str *out, const struct mc_export_file *to,
                          const struct mc_export_values *v, struct mc_str *function)
{
    const char *end = strstr(reader, "*/\n");
    mc_str_add(out, end ? end + 3 : reader);
    mc_str_add(out, "\nstatic const struct safetensors_variable variables[] = {\n");
    for (int i = 0; i < v->n; i++) {
        const mc_array *a = v->array[i];
        mc_str_add(out, "    { ");
        print_string(out, v->name[i]);
        mc_str_addf(out, ", \"%s\", %d, { ", mc_dtypes[a->dtype].tensors, a->rank);
        for (int k = 0; k < MC_MAX(a->rank, 1); k++) {
            mc_str_addf(out, "%s%" PRId64, k ? ", " : "", a->rank ? a->dims[k] : 0);
        }
        mc_str_addf(out, " }, offsetof(struct %s, %s), %zu, %d },\n", to->name, to->shared.at[i].name,
                    bytes_of(a), (int)mc_dtypes[a->dtype].size);
    }
    mc_str_add(out, v->n ? "};\n" : "    { \"\", \"\", 0, { 0 }, 0, 0, 1 },\n};\n");
    mc_str_addf(function,
                "\nint %s_load(struct %s *model, const void *bytes, size_t size)\n{\n"
                "uint64_t begin[%d];\n"
                "return read_safetensors(model, bytes, size, variables, %d, begin);\n}\n",
                to->name, to->name, MC_MAX(v->n, 1), v->n);
}

mc_status mc_export_loader(struct mc_str *out, const struct mc_export_file *to, struct mc_export_values *v)
{
    struct mc_str function = { 0 };
    if (v->tensors) {
        print_tensors(out, to, v, &function);
    } else {
        print_plain(out, to, v, &function);
    }
    mc_indent(out, function.s ? function.s : "");
    const bool bad = function.bad || out->bad || v->bytes.bad;
    mc_str_free(&function);
    return bad ? MC_EMEMORY : MC_OK;
}
