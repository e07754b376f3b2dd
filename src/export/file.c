/* file.c: the two files of an export, and that of its parameters: the structure, the header, what precedes
 * the functions.
 *
 * Invariant: all of the files are written, or none that was not there before. */
#include "export/exporting.h"
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

static int64_t size_of(const struct mc_export_shared *one)
{
    const mc_array *a = one->shared->value;
    return mc_array_size(a) * (int64_t)mc_dtypes[a->dtype].size;
}

/* Large ones first, as they are in the table. */
static int by_size(const void *a, const void *b)
{
    const struct mc_export_shared *const *x = a, *const *y = b;
    const int64_t m = size_of(*x), n = size_of(*y);
    return m != n ? (m < n) - (m > n) : (*x > *y) - (*x < *y);
}

/* Large variables come first, so that small ones do not move them away from the start of a cache line. */
static mc_status print_struct(struct mc_str *out, const struct mc_export_file *to)
{
    const struct mc_export_shared **order = mc_calloc(to->shared.n + 1, sizeof *order, "export");
    TRY(order ? MC_OK : MC_EMEMORY);
    for (size_t i = 0; i < to->shared.n; i++) {
        order[i] = &to->shared.at[i];
    }
    qsort(order, to->shared.n, sizeof *order, by_size);
    mc_str_addf(out,
                "/* The variables that the functions read and change.\n"
                " * Calls are fastest if it is aligned to 64 bytes. */\nstruct %s {\n",
                to->name);
    for (size_t i = 0; i < to->shared.n; i++) {
        const mc_array *a = order[i]->shared->value;
        const char *given = order[i]->shared->name, *name = order[i]->name;
        mc_str_addf(out, "    %s %s[%" PRId64 "]; /* ", mc_export_type(a->dtype), name,
                    MC_MAX(mc_array_size(a), (int64_t)1));
        if (given && strcmp(given, name) != 0) { /* the name by which formulas know it */
            mc_str_add(out, "\"");
            mc_export_comment(out, given);
            mc_str_add(out, "\", ");
        }
        mc_str_add(out, mc_dtype_name(a->dtype));
        if (a->rank) {
            mc_dims_text(out, a->rank, a->dims);
        }
        mc_str_add(out, " */\n");
    }
    mc_str_add(out, to->shared.n ? "};\n" : "    char none;\n};\n");
    mc_free(order);
    return MC_OK;
}

/* The header's whole text around the functions' declarations. */
static mc_status print_header(struct mc_str *out, const struct mc_export_file *to, const char *macro,
                         const char *functions, const char *parameters, bool tensors)
{
    mc_str_addf(
        out,
        "/* %s.h: functions exported by Monochord.  Arrays are contiguous, the last axis varies fastest.\n"
        " * Compile %s.c with optimization, for example cc -O3 -march=native -c %s.c\n"
        " * With -fopenmp, calls use several threads. */\n"
        "#ifndef %s_H\n#define %s_H\n\n#include <stddef.h>\n#include <stdint.h>\n\n"
        "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
        to->file, to->file, to->file, macro, macro);
    TRY(print_struct(out, to));
    mc_str_addf(out,
                "\n/* Bytes of memory that a call needs, aligned to 64.  A call with memory NULL uses "
                "memory of the C file;\n * such calls must not overlap.  Compiled with\n"
                " *     -D%s_NO_MEMORY\n"
                " * the file has no memory, and such a call returns 3. */\n"
                "#define %s_MEMORY %zu\n",
                macro, macro, MC_MAX(to->memory, (size_t)64));
    if (parameters) {
        mc_str_add(out, "\n/* Sets the variables to the values in the bytes of ");
        mc_export_comment(out, mc_export_file_name(parameters));
        mc_str_add(
            out,
            tensors ? ",\n * or of another .safetensors file with tensors of these names, types and shapes."
                      "\n * Returns 0, or 1 if the file is damaged or lacks one.  Then none has changed. */\n"
                    : ", numbers as this machine's.\n"
                      " * Returns 0, or 1 if the size is not that of the file. */\n");
        mc_str_addf(out, "int %s_load(struct %s *model, const void *bytes, size_t size);\n", to->name,
                    to->name);
    } else {
        mc_str_addf(out,
                    "\n/* Sets the variables to the values that they had when they were exported. */\nvoid "
                    "%s_init(struct %s *model);\n",
                    to->name, to->name);
    }
    if (to->widest) {
        mc_str_addf(out,
                    "\n/* The instruction set that calls use on this processor: avx512, avx2, or generic for "
                    "that of the\n"
                    " * compiler's options; plain with -D%s_PLAIN. */\nconst char *%s_isa(void);\n",
                    macro, to->name);
    }
    mc_str_add(out, functions ? functions : "");
    mc_str_addf(out, "\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    return MC_OK;
}

static void print_head(struct mc_str *out, const struct mc_export_file *to, const char *macro)
{
    mc_str_addf(out, "/* %s.c: exported by Monochord; see %s.h. */\n", to->file, to->file);
    if (to->widest) { /* it includes itself */
        mc_str_addf(out, "#ifndef %s_LEVEL\n", macro);
    }
    mc_str_addf(out, "#include \"%s.h\"\n%s\n", to->file,
                to->freestanding ? "" : "#include <math.h>\n#include <string.h>\n");
    if (to->freestanding) {
        mc_export_freestanding_head(out);
    }
    mc_str_addf(out,
                "static char *own_memory(void)\n{\n#ifdef %s_NO_MEMORY\n    return NULL;\n#else\n"
                "    static unsigned char memory[%s_MEMORY + 64];\n"
                "    return (char *)(((uintptr_t)memory + 63) & ~(uintptr_t)63);\n#endif\n}\n\n",
                macro, macro);
}

/* Does the text have the word? */
static bool has_word(const char *text, const char *word)
{
    const size_t n = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + n, word)) {
        if ((at == text || !mc_export_is_letter(at[-1])) && !mc_export_is_letter(at[n])) {
            return true;
        }
    }
    return false;
}

/* The constants that some step reads. */
static void print_constants(struct mc_str *out, const struct mc_export_file *to)
{
    for (size_t i = 0; i < to->data.n && to->code.s; i++) {
        char name[24];
        mc_snprintf(name, sizeof name, "constant%d", (int)i + 1);
        mc_str_add(out, has_word(to->code.s, name) && to->data.at[i].s ? to->data.at[i].s : "");
    }
}

/* Writes the parameters, which other files may have, too. */
static mc_status write_parameters(const char *path, const struct mc_export_values *v)
{
    return v->tensors ? mc_archive_save(path, NULL, v->n, v->name, (const mc_array *const *)v->array)
                      : mc_file_write(path, v->bytes.s ? v->bytes.s : "", v->bytes.n);
}

/* Writes the header, the parameters and the C file.  If one fails, those that were not there before it are
 * removed. */
static mc_status write_files(const mc_export_spec *spec, const struct mc_str *h,
                             const struct mc_export_values *v, const struct mc_str *c)
{
    struct mc_str header = { 0 };
    mc_str_addn(&header, spec->path, strlen(spec->path) - 1);
    mc_str_add(&header, "h");
    const struct {
        const char *path;
        const struct mc_str *text; /* NULL: the parameters */
    } file[] = { { header.s, h }, { spec->parameters, NULL }, { spec->path, c } };
    bool made[NELEM(file)] = { false };
    mc_status s = header.bad || h->bad || v->bytes.bad || c->bad ? MC_EMEMORY : MC_OK;
    for (size_t i = 0; i < NELEM(file) && s == MC_OK; i++) {
        const struct mc_str *text = file[i].text;
        if (file[i].path) {
            made[i] = access(file[i].path, F_OK) != 0;
            s = text ? mc_file_write(file[i].path, text->s ? text->s : "", text->n)
                     : write_parameters(file[i].path, v);
            made[i] = made[i] && s == MC_OK;
        }
    }
    for (size_t i = 0; i < NELEM(file) && s < 0; i++) {
        if (made[i]) {
            unlink(file[i].path);
        }
    }
    mc_str_free(&header);
    return s;
}

mc_status mc_export_write(const struct mc_export_file *to, const mc_export_spec *spec, const char *functions)
{
    struct mc_str h = { 0 }, c = { 0 };
    struct mc_export_values v = { 0 };
    char *macro = mc_export_identifier(to->file, true);
    size_t head = 0;
    mc_status s = macro ? mc_export_values(&v, to, spec->parameters) : MC_EMEMORY;
    if (s == MC_OK) {
        s = print_header(&h, to, macro, functions, spec->parameters, v.tensors);
    }
    if (s == MC_OK) {
        print_head(&c, to, macro);
        head = c.n;
        s = mc_export_loader(&c, to, &v);
    }
    s = s < 0 ? s : mc_export_head(&c, to, macro);
    if (s == MC_OK) {
        print_constants(&c, to);
        mc_export_functions(&c, to, macro);
        s = to->freestanding && !c.bad ? mc_export_freestanding_calls(&c, head) : MC_OK;
    }
    if (s == MC_OK) {
        s = write_files(spec, &h, &v, &c);
    }
    mc_free(macro);
    mc_str_free(&h);
    mc_str_free(&c);
    mc_export_values_free(&v);
    return s;
}

void mc_export_file_free(struct mc_export_file *to)
{
    for (size_t i = 0; i < to->shared.n; i++) {
        mc_free(to->shared.at[i].name);
    }
    VEC_FREE(to->shared);
    VEC_FREE(to->kernel);
    for (size_t i = 0; i < to->data.n; i++) {
        mc_str_free(&to->data.at[i]);
    }
    VEC_FREE(to->data);
    mc_str_free(&to->code);
    mc_str_free(&to->entry);
}
