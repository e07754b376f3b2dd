/* export.c: mc_export: compiled functions as one C file and a header, which need no library but libc and
 * libm.
 *
 *   plan     each function at its shape, with portable solvers alone (schedule/shape_plan.c)
 *   print    each step: a kernel, a solver, a copy, a loop
 *   write    the files (file.c)
 *
 * Invariant: an exported function gives the bits of the same function called with the flag `portable`, and
 * plan=measure if solvers were timed. */
#include "exec/backend.h"
#include "export/export.h"
#include "export/exporting.h"
#include <inttypes.h>
#include <stdlib.h>

/* ---- shapes ---- */

/* Reads "x[32, 784], t[32]": sets the sizes of the input named so; -1 in dims: no size yet. */
static mc_status read_sizes(const struct mc_function *f, const char *text, int64_t (*dims)[MC_MAX_RANK])
{
    const char *at = text;
    while (*at) {
        at += strspn(at, " ,\n");
        const size_t n = strcspn(at, "[ ,");
        int i = 0;
        while (i < f->code->program.ninput &&
               !(strlen(f->input[i].name) == n && strncmp(f->input[i].name, at, n) == 0)) {
            i++;
        }
        if (!n || i == f->code->program.ninput) {
            return mc_fail(MC_EARG, "export: %s has no input '%.*s', which the sizes '%s' name", f->name,
                           (int)n, at, text);
        }
        const int rank = f->code->program.input[i]->type.rank;
        at += n;
        at += strspn(at, " ");
        if (*at != '[') {
            return mc_fail(MC_ESYNTAX, "export: sizes are written x[32, 784], t[32], not '%s'", text);
        }
        at++;
        for (int a = 0; a < rank; a++) {
            char *end;
            dims[i][a] = strtoll(at, &end, 10);
            end += strspn(end, " ");
            if (end == at || dims[i][a] < 0 || *end != (a + 1 < rank ? ',' : ']')) {
                return mc_fail(MC_ESHAPE, "export: input '%s' has %d axes; its sizes in '%s' are others",
                               f->input[i].name, rank, text);
            }
            at = end + 1;
        }
        at += rank == 0 && *at == ']';
        at += strspn(at, " \n");
    }
    return MC_OK;
}

/* Sets f->arg to zeros of the sizes asked for. */
static mc_status make_inputs(struct mc_function *f, const char *shapes)
{
    const struct mc_program *pr = &f->code->program;
    int64_t(*dims)[MC_MAX_RANK] = mc_alloc((size_t)(pr->ninput + 1) * sizeof *dims, "export");
    if (!dims) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < pr->ninput; i++) {
        for (int a = 0; a < MC_MAX_RANK; a++) {
            dims[i][a] = -1;
        }
    }
    mc_status s = read_sizes(f, shapes ? shapes : "", dims);
    for (int i = 0; i < pr->ninput && s == MC_OK; i++) {
        const struct mc_type *t = &pr->input[i]->type;
        for (int a = 0; a < t->rank && s == MC_OK; a++) {
            const int64_t asked = dims[i][a];
            dims[i][a] = asked < 0 ? t->dims[a] : asked;
            if (t->dims[a] >= 0 && dims[i][a] != t->dims[a]) {
                s = mc_fail(MC_ESHAPE, "export: input '%s' has size %lld on axis %d, not %lld",
                            f->input[i].name, (long long)t->dims[a], a, (long long)asked);
            } else if (dims[i][a] < 0) {
                s = mc_fail(
                    MC_ESHAPE,
                    "export: the size of input '%s' on axis %d is open; name it, as in \"%s[32, 784]\"",
                    f->input[i].name, a, f->input[i].name);
            }
        }
        if (s == MC_OK) {
            f->arg[i] = mc_array_new(t->dtype, t->rank, dims[i]);
            s = f->arg[i] ? MC_OK : mc_last_status();
        }
    }
    mc_free(dims);
    return s;
}

/* ---- steps ---- */

static mc_status print_steps(struct mc_export_one *x, struct mc_str *calls)
{
    struct mc_str *out = &x->to->code;
    const char *model = x->f->code->program.nupdate ? "model"
                                                    : mc_export_format(x, "(struct %s *)model", x->to->name);
    for (int i = 0; i < (int)x->f->code->program.step.n; i++) {
        const size_t start = out->n;
        bool nothing = false;
        mc_str_add(out, "\n");
        mc_str_add(out, "/* ");
        mc_export_comment(out, mc_step_text(x->f->code, i));
        mc_str_add(out, " */\n");
        const char *name = mc_export_format(x, x->to->widest ? "AT_LEVEL(%s_step%d)" : "%s_step%d", x->name,
                                            i);
        mc_str_addf(out,
                    "TARGET static int %s(struct %s *model, char *arena, const void *const *in, void "
                    "*const *out)\n{\n"
                    "(void)model, (void)arena, (void)in, (void)out;\nNEXT_STEP;\n",
                    name, x->to->name);
        mc_status s = mc_export_step(x, i, &nothing);
        if (s < 0) {
            return mc_step_error(x->f, i, s);
        }
        if (nothing && !out->bad) {
            out->n = start;
            out->s[start] = '\0';
            continue;
        }
        mc_str_add(out, "return 0;\n}\n");
        mc_str_addf(calls, "%s(failed = %s(%s, arena, in, out)) != 0", calls->n ? " ||\n" : "", name, model);
    }
    return out->bad || calls->bad ? MC_EMEMORY : MC_OK;
}

/* ---- results and updates ---- */

static mc_status print_results(struct mc_export_one *x)
{
    const struct mc_program *pr = &x->f->code->program;
    struct mc_str *out = &x->to->code;
    for (int i = 0; i < pr->noutput; i++) {
        const struct mc_slot *at = &x->p->slot[pr->output[i]];
        if (at->base != BASE_OUTPUT) {
            mc_export_dense(out, at, mc_export_address(x, pr->output[i]),
                            mc_export_format(x, "(char *)out[%d]", i));
        }
    }
    for (int i = 0; i < pr->nupdate; i++) {
        const struct mc_type *t = &x->p->slot[pr->update[i]].type;
        const mc_array *old = x->f->target[i]->value;
        if (!mc_dims_equal(t->rank, t->dims, old->rank, old->dims)) {
            return mc_fail(MC_EUNSUPPORTED, "export: %s changes the size of the variable '%s'", x->f->name,
                           x->f->target[i]->name);
        }
    }
    for (int pass = 0; pass < 2; pass++) { /* all new values are safe before the first old one is replaced */
        size_t safe = x->p->memory;
        for (int i = 0; i < pr->nupdate; i++) {
            const int v = pr->update[i];
            const struct mc_slot *at = &x->p->slot[v];
            const bool copied = at->base != BASE_ARENA;
            int k = 0;
            while (x->f->shared[k] != x->f->target[i]) {
                k++;
            }
            struct mc_slot plain = *at;
            mc_slot_set(&plain, &at->type);
            const char *from = mc_export_address(x, v), *kept = mc_export_format(x, "arena + %zu", safe),
                       *to = mc_export_format(x, "(char *)model->%s", mc_export_member(x, k));
            if (copied && pass == 0) {
                mc_export_dense(out, at, from, kept);
            } else if (pass == 1) {
                mc_export_dense(out, copied ? &plain : at, copied ? kept : from, to);
            }
            safe += copied ? (mc_slot_bytes(at) + 63) / 64 * 64 : 0;
        }
        x->memory = safe;
    }
    return MC_OK;
}

/* ---- a function ---- */

static const char *c_dims(struct mc_export_one *x, const struct mc_type *t)
{
    struct mc_str text = { 0 };
    mc_dims_text(&text, t->rank, t->dims);
    const char *kept = mc_export_format(x, "%s", text.s ? text.s : "");
    mc_str_free(&text);
    return kept;
}

/* Prints the start of a declaration of the function, with its parameters in lines of at most 110 columns. */
static void print_declaration(struct mc_export_one *x, const char *name, struct mc_str *out,
                              struct mc_str *docs)
{
    const struct mc_program *pr = &x->f->code->program;
    struct mc_str line = { 0 };
    mc_str_addf(&line, "%s(", name);
    const int indent = (int)MC_MIN(line.n, (size_t)40);
    mc_str_addf(&line, "%sstruct %s *model, void *memory", pr->nupdate ? "" : "const ", x->to->name);
    for (int i = 0; i < pr->ninput + pr->noutput; i++) {
        const bool in = i < pr->ninput;
        struct mc_type t = { 0 };
        if (in) {
            const mc_array *a = x->f->arg[i];
            t = mc_type_make(a->dtype, a->rank, a->dims);
        } else {
            t = x->p->slot[pr->output[i - pr->ninput]].type;
        }
        const bool pointer = !in || t.rank;
        const char *one = mc_export_format(x, "%s%s %s%s", in && pointer ? "const " : "",
                                           mc_export_type(t.dtype), pointer ? "*" : "", x->parameter[i]);
        if (line.n + strlen(one) > 106) {
            mc_str_addf(out, "%s,\n", line.s ? line.s : "");
            line.n = 0;
            mc_str_addf(&line, "%*s%s", indent, "", one);
        } else {
            mc_str_addf(&line, ", %s", one);
        }
        mc_str_addf(docs, " *   %-12s %s %s%s\n", x->parameter[i],
                    in ? "in: " : "out:", mc_dtype_name(t.dtype), t.rank ? c_dims(x, &t) : "");
    }
    mc_str_addf(out, "%s)", line.s ? line.s : "");
    out->bad |= line.bad;
    mc_str_free(&line);
}

/* The body of the function, which calls its steps. */
static mc_status print_body(struct mc_export_one *x, const struct mc_str *calls)
{
    const struct mc_program *pr = &x->f->code->program;
    struct mc_str *out = &x->to->code;
    mc_str_add(out, "const void *const in[] = { ");
    for (int i = 0; i < pr->ninput; i++) {
        mc_str_addf(out, "%s%s, ", x->f->arg[i]->rank ? "" : "&", x->parameter[i]);
    }
    mc_str_add(out, "NULL };\nvoid *const out[] = { ");
    for (int i = 0; i < pr->noutput; i++) {
        mc_str_addf(out, "%s, ", x->parameter[pr->ninput + i]);
    }
    mc_str_add(out, "NULL };\nchar *const arena = memory ? (char *)memory : own_memory();\n"
                    "(void)in, (void)out, (void)model;\nif (!arena) {\nreturn 3;\n}\n");
    if (calls->n) {
        mc_str_addf(out, "int failed = 0;\nif (%s) {\nreturn failed;\n}\n", calls->s);
    }
    mc_str_add(out, "NEXT_STEP;\n");
    const mc_status s = print_results(x);
    mc_str_add(out, "return 0;\n}\n");
    return s;
}

/* The function of the header, where there is one at each level: it calls that which the processor can run. */
static void print_entry(struct mc_export_one *x, const char *declaration)
{
    struct mc_str *out = &x->to->entry;
    mc_str_addf(out, "\n%s\n{\nreturn CHOSEN(%s_call)(model, memory", declaration, x->name);
    for (int i = 0; i < x->f->code->program.ninput + x->f->code->program.noutput; i++) {
        mc_str_addf(out, ", %s", x->parameter[i]);
    }
    mc_str_add(out, ");\n}\n");
}

static void print_comment(const struct mc_export_one *x, struct mc_str *out, const char *parameters)
{
    mc_str_add(out, "\n/* ");
    mc_export_comment(out, x->f->name);
    mc_str_addf(out,
                ".  Returns 0; 1 if an index was out of range;%s\n * 3 if there is no memory.  Then no "
                "variable has changed.\n%s */\n",
                x->bounded ? "\n * 2 if an argument of sin, cos or tan was 2^45 or more in magnitude;" : "",
                parameters);
}

static mc_status print_function(struct mc_export_one *x, struct mc_str *header)
{
    struct mc_str calls = { 0 }, docs = { 0 }, unused = { 0 }, declaration = { 0 }, at_level = { 0 };
    mc_status s = mc_export_name_parameters(x);
    s = s < 0 ? s : mc_export_kernels(x);
    s = s < 0 ? s : print_steps(x, &calls);
    if (s == MC_OK) {
        print_declaration(x, mc_export_format(x, "int %s_%s", x->to->name, x->name), &declaration, &docs);
        print_declaration(x, mc_export_format(x, "static int AT_LEVEL(%s_call)", x->name), &at_level,
                          &unused);
        const char *text = declaration.s ? declaration.s : "", *own = at_level.s ? at_level.s : "";
        mc_str_addf(&x->to->code, "\n%s\n{\n", x->to->widest ? own : text);
        s = print_body(x, &calls);
        if (x->to->widest) {
            print_entry(x, text);
        }
        print_comment(x, header, docs.s ? docs.s : "");
        mc_str_addf(header, "%s;\n", text);
    }
    const bool bad = declaration.bad || docs.bad || at_level.bad || unused.bad || x->to->code.bad ||
                     x->to->entry.bad;
    s = s == MC_OK && bad ? MC_EMEMORY : s;
    mc_str_free(&calls);
    mc_str_free(&docs);
    mc_str_free(&unused);
    mc_str_free(&declaration);
    mc_str_free(&at_level);
    return s;
}

/* f is locked, and so are its shared variables. */
static mc_status export_locked(struct mc_export_file *to, const mc_export_function *e,
                               struct mc_str *header)
{
    struct mc_function *f = e->function;
    struct mc_export_one x = { .to = to, .f = f, .name = e->name };
    struct mc_plan_options o = mc_plan_options_of(NULL);
    o.portable = true;
    o.mode = o.solver_mode = to->measure ? PLAN_MEASURE : PLAN_ESTIMATE;
    TRY(make_inputs(f, e->shapes));
    x.p = mc_shape_plan_make(f, &o, mc_export_plan_step);
    x.constant = mc_calloc(f->code->program.value.n + 1, sizeof *x.constant, "export");
    mc_status s = !x.p ? mc_last_status() : x.constant ? print_function(&x, header) : MC_EMEMORY;
    to->memory = MC_MAX(to->memory, x.memory);
    mc_shape_plan_free(f, x.p);
    mc_free(x.constant);
    mc_arena_free(&x.names);
    return s;
}

static mc_status export_one(struct mc_export_file *to, const mc_export_function *e,
                            struct mc_str *header)
{
    struct mc_function *f = e->function;
    if (f->code->program.dynamic && mc_export_has_cut_loop(&f->code->program)) {
        return mc_fail(
            MC_EUNSUPPORTED,
            "export: a result of a loop with until has as many steps as the loop makes, and %s reads "
            "it; sizes of an exported function are fixed. Write halt in place of until, which leaves "
            "zeros behind the last step, or yield last values",
            f->name);
    }
    if (f->code->program.dynamic) {
        return mc_fail(MC_EUNSUPPORTED, "export: sizes of %s depend on data; give the sizes as constants",
                       f->name);
    }
    if (f->code->device != &mc_host) {
        return mc_fail(MC_EUNSUPPORTED, "export: %s was compiled for a GPU; compile it with device=cpu",
                       f->name);
    }
    pthread_mutex_lock(&f->lock);
    for (int i = 0; i < f->nshared; i++) {
        pthread_mutex_lock(&f->shared[i]->lock);
    }
    mc_status s = MC_OK;
    for (int i = 0; i < f->code->program.ninput; i++) {
        if (f->code->program.key_input[i]) {
            s = mc_fail(MC_EUNSUPPORTED,
                        "export: sizes of %s depend on the contents of input '%s'; give them as constants",
                        f->name, f->input[i].name);
        }
    }
    s = s < 0 ? s : mc_export_add_shared(to, f);
    s = s < 0 ? s : export_locked(to, e, header);
    for (int i = 0; i < f->code->program.ninput; i++) {
        mc_array_unref(&f->arg[i]);
    }
    for (int i = f->nshared; i-- > 0;) {
        pthread_mutex_unlock(&f->shared[i]->lock);
    }
    pthread_mutex_unlock(&f->lock);
    return s;
}

/* ---- the whole ---- */

/* Can the file and its functions have these names? */
static mc_status check_names(const struct mc_export_file *to, int n, const mc_export_function *e)
{
    for (const char *c = to->file; *c; c++) {
        if ((unsigned char)*c < ' ' || strchr("\"\\*", *c)) {
            return mc_fail(MC_EARG, "export: '%s.h' cannot stand in an #include; name the file otherwise",
                           to->file);
        }
    }
    for (int i = 0; i < n; i++) {
        bool taken = false;
        if (!e[i].function || !e[i].name || !*e[i].name) {
            return mc_fail(MC_EARG, "export: function %d is missing, or its name is", i);
        }
        for (int k = 0; k < i; k++) {
            taken |= strcmp(e[k].name, e[i].name) == 0;
        }
        if (!mc_export_is_identifier(e[i].name)) {
            return mc_fail(MC_EARG,
                           "export: '%s' cannot be part of a C function's name; it needs letters, digits, _",
                           e[i].name);
        }
        struct mc_str whole = { 0 };
        mc_str_addf(&whole, "%s_%s", to->name, e[i].name);
        taken |= strcmp(e[i].name, "init") == 0 || strcmp(e[i].name, "load") == 0 ||
                 strcmp(e[i].name, "isa") == 0 || (whole.s && mc_export_is_reserved(whole.s));
        mc_str_free(&whole);
        if (taken) {
            return mc_fail(MC_EARG, "export: the file has another function named %s_%s", to->name, e[i].name);
        }
    }
    return MC_OK;
}

/* The widest vectors that the word names, in bits. */
static mc_status read_isa(const char *word, int *widest)
{
    static const struct {
        const char *word;
        int bits;
    } known[] = { { "avx2", 256 }, { "avx512", 512 }, { "all", 512 } };
    for (size_t i = 0; i < NELEM(known) && word; i++) {
        *widest = strcmp(known[i].word, word) == 0 ? known[i].bits : *widest;
    }
    return *widest || !word ? MC_OK : mc_fail(MC_EARG, "export: isa is avx2, avx512 or all, not '%s'", word);
}

mc_status mc_export_c(const char *path, int n, const mc_export_function *functions)
{
    return mc_export(&(mc_export_spec){ .path = path, .nfunction = n, .function = functions });
}

mc_status mc_export(const mc_export_spec *spec)
{
    const char *path = spec ? spec->path : NULL;
    const size_t length = path ? strlen(path) : 0;
    if (!spec || spec->nfunction <= 0 || !spec->function || length < 3 ||
        strcmp(path + length - 2, ".c") != 0 || path[length - 3] == '/') {
        return mc_fail(MC_EARG, "export: needs functions and the name of a file that ends in .c");
    }
    struct mc_export_file to = { .dialect = &mc_dialect_standard_c, .measure = spec->measure != 0,
                                 .freestanding = spec->freestanding != 0 };
    struct mc_str functions = { 0 }, base = { 0 };
    mc_str_addn(&base, mc_export_file_name(path), strlen(mc_export_file_name(path)) - 2);
    char *name = base.s ? mc_export_identifier(base.s, false) : NULL;
    to.name = name;
    to.file = base.s;
    mc_status s = name ? check_names(&to, spec->nfunction, spec->function) : MC_EMEMORY;
    s = s < 0 ? s : read_isa(spec->isa, &to.widest);
    if (s == MC_OK && to.widest && to.freestanding) {
        s = mc_fail(MC_EARG, "export: a freestanding file has no vectors; leave isa out");
    }
    for (int i = 0; i < spec->nfunction && s == MC_OK; i++) {
        s = export_one(&to, &spec->function[i], &functions);
    }
    s = s < 0 ? s : functions.bad ? MC_EMEMORY : mc_export_write(&to, spec, functions.s ? functions.s : "");
    mc_export_file_free(&to);
    mc_str_free(&functions);
    mc_str_free(&base);
    mc_free(name);
    return s;
}
