/* monochord_run.c: `monochord run FILE`: a text-form program through the pipeline: its passes shown, its
 * inputs fed, its function called and timed.
 *
 * Invariant: without inputs that it needs, a program is compiled and shown, but not called. */
#include "run.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct pair { const char *name, *value; }; /* NAME=VALUE of the command line; name is not terminated */
struct options {
    const char *pass, *mode, *dot, *svg, *report, *save;
    struct pair size[MOST_FEEDS], feed[MOST_FEEDS];
    int nsize, nfeed;
    bool random, time, profile;
    long calls, below;
};

/* ---- inputs ---- */

static const char *value_of(const struct pair *list, int n, const char *name)
{
    for (int i = 0; i < n; i++) {
        if (word_is(list[i].name, strcspn(list[i].name, "="), name)) {
            return list[i].value;
        }
    }
    return NULL;
}

/* Sizes of input i: from --size, which says as many as the declaration leaves open at least; else as
 * declared, or UNKNOWN_SIZE. */
static bool sizes_of(const struct program *p, int i, const struct options *o, int64_t *dims)
{
    mc_node *x = mc_var(p->g, p->input[i]);
    const char *given = value_of(o->size, o->nsize, p->input[i]);
    char *end;
    for (int k = 0; k < mc_node_rank(x); k++) {
        dims[k] = mc_node_dims(x)[k] >= 0 ? mc_node_dims(x)[k] : UNKNOWN_SIZE;
        if (given && *given) {
            errno = 0;
            dims[k] = strtoll(given, &end, 10);
            if (end == given || errno || dims[k] < 0 || (*end && *end != ',')) {
                complain("--size %s: '%s' is not a list of sizes", p->input[i], given);
                return false;
            }
            given = *end ? end + 1 : end;
        } else if (given && mc_node_dims(x)[k] < 0) {
            complain("--size %s gives %d of the input's %d sizes", p->input[i], k, mc_node_rank(x));
            return false;
        }
    }
    if (given && *given) {
        complain("--size %s has more sizes than the input's %d", p->input[i], mc_node_rank(x));
        return false;
    }
    return true;
}

static bool is_input(const struct program *p, const char *name, size_t length)
{
    bool yes = false;
    for (int i = 0; i < p->ninput; i++) {
        yes |= word_is(name, length, p->input[i]);
    }
    return yes;
}

static bool sizes_are_of_inputs(const struct program *p, const struct options *o)
{
    for (int i = 0; i < o->nsize; i++) {
        const size_t length = strcspn(o->size[i].name, "=");
        if (!is_input(p, o->size[i].name, length)) {
            complain("--size: there is no input '%.*s'", (int)length, o->size[i].name);
            return false;
        }
    }
    return true;
}

static bool feed_shared(struct program *p, const struct options *o)
{
    for (int i = 0; i < o->nfeed; i++) {
        char *name = must(calloc(strlen(o->feed[i].name) + 1, 1));
        memcpy(name, o->feed[i].name, strcspn(o->feed[i].name, "="));
        mc_shared *s = mc_shared_named(p->g, name);
        mc_array *value = s ? mc_npy_load(o->feed[i].value) : NULL;
        bool known = s || is_input(p, name, strlen(name)), good = value && mc_shared_set(s, value) >= 0;
        if (s && !good) {
            complain_library("--feed");
        } else if (!known) {
            complain("--feed: there is no input and no shared variable '%s'", name);
        }
        mc_array_unref(&value);
        free(name);
        if (!known || (s && !good)) {
            return false;
        }
    }
    return true;
}

static bool feed_inputs(struct program *p, const struct options *o)
{
    uint64_t state = 1;
    for (int i = 0; i < p->ninput; i++) {
        int64_t dims[MC_MAX_RANK];
        const char *file = value_of(o->feed, o->nfeed, p->input[i]);
        mc_node *x = mc_var(p->g, p->input[i]);
        if (file) {
            p->in[i] = mc_npy_load(file);
        } else if (!o->random) {
            complain("input '%s' has no value: use --feed random or --feed %s=FILE.npy", p->input[i],
                     p->input[i]);
            return false;
        } else if (!sizes_of(p, i, o, dims)) {
            return false;
        } else if ((p->in[i] = mc_array_new(mc_node_dtype(x), mc_node_rank(x), dims))) {
            random_fill(p->in[i], &state, o->below);
        }
        if (!p->in[i]) {
            complain_library(p->input[i]);
            return false;
        }
    }
    return sizes_are_of_inputs(p, o) && feed_shared(p, o);
}

/* ---- calling ---- */

static bool call(void *arg)
{
    struct program *p = arg;
    mc_arg in[MOST_INPUTS], out[MOST_OUTPUTS];
    for (int i = 0; i < p->ninput; i++) {
        in[i] = mc_arg_array(p->in[i]);
    }
    for (int i = 0; i < p->nout; i++) {
        mc_array_unref(&p->out[i]); /* a fresh result each time, or the same borrowed one */
        out[i] = mc_arg_slot(&p->out[i]);
    }
    return mc_call(p->f, p->ninput, in, p->nout, out) >= 0;
}

static bool run_calls(struct program *p, const struct options *o)
{
    for (long i = 0; i < o->calls; i++) {
        if (!call(p)) {
            complain("%s: %s", p->path, mc_last_error());
            return false;
        }
    }
    if (o->time) {
        struct timing t = time_calls(call, p, 1);
        printf("%.4f ms a call (%.4f to %.4f), %ld calls\n", t.median * 1e3, t.least * 1e3, t.most * 1e3,
               t.calls);
    }
    return true;
}

/* The name of output i; "" if it has none, or if a tuple is among the outputs. */
static const char *output_name(const struct program *p, int i)
{
    return p->nnamed == p->nout ? mc_node_name(p->result[i]) : "";
}

static void print_outputs(const struct program *p)
{
    for (int i = 0; i < p->nout; i++) {
        const char *name = output_name(p, i);
        *name ? printf("%s = ", name) : printf("output %d = ", i);
        mc_array_print(p->out[i], stdout);
    }
}

/* Output i under its name, or output_i where it has none or one before has the same. */
static bool save_outputs(const struct program *p, const char *path)
{
    char made[MOST_OUTPUTS][24];
    const char *names[MOST_OUTPUTS];
    for (int i = 0; i < p->nout; i++) {
        names[i] = output_name(p, i);
        bool taken = !*names[i];
        for (int k = 0; k < i; k++) {
            taken |= strcmp(names[k], names[i]) == 0;
        }
        if (taken) {
            snprintf(made[i], sizeof made[i], "output_%d", i);
            names[i] = made[i];
        }
    }
    return mc_archive_save(path, NULL, p->nout, names, (const mc_array *const *)p->out) >= 0 ||
           complain_library("--save") == 0;
}

/* ---- passes ---- */

static bool show_text(char *text)
{
    bool good = text != NULL;
    good ? (void)puts(text) : (void)complain_library("run");
    mc_text_free(text);
    return good;
}

static bool show_graph(const struct program *p)
{
    return fputs(mc_function_graph_text(p->f), stdout) >= 0;
}

static bool show_formulas(const struct program *p)
{
    return show_text(mc_graph_text(p->g, p->nresult, p->result));
}

static bool show_kernels(const struct program *p)
{
    return fputs(mc_function_source(p->f), stdout) >= 0;
}

static bool show_steps(const struct program *p)
{
    for (int i = 0; i < mc_function_nsteps(p->f); i++) {
        mc_step_info s = mc_function_step(p->f, i);
        printf("%3d  %-7s %-10s %s%s%s\n", i, s.kind, s.solver, s.text, *s.reason ? "   # " : "", s.reason);
    }
    return true;
}

/* What was chosen for the sizes of the last call. */
static bool show_plan(const struct program *p)
{
    printf("memory %zu bytes\n", mc_function_memory(p->f));
    return show_steps(p);
}

static const struct pass {
    const char *name;
    bool calls; /* only after a call there is something to show */
    bool (*show)(const struct program *p);
} passes[] = {
    { "formulas", false, show_formulas }, /* as read, gradients and all */
    { "graph",    false, show_graph },    /* after the rewrites */
    { "kernels",  false, show_kernels },  /* the text that the compiler gets */
    { "steps",    false, show_steps },
    { "plan",     true,  show_plan },
};

static const struct pass *find_pass(const char *name)
{
    for (int i = 0; i < COUNT(passes); i++) {
        if (strcmp(passes[i].name, name) == 0) {
            return &passes[i];
        }
    }
    return NULL;
}

static bool write_file(const struct program *p, const char *path, const char *what)
{
    FILE *to = fopen(path, "w");
    mc_status s = MC_EFILE;
    if (!to) {
        complain("cannot write '%s': %s", path, strerror(errno));
        return false;
    }
    switch (*what) {
    case 'd': s = mc_graph_dot(p->g, p->nresult, p->result, to); break;
    case 's': s = mc_graph_svg(p->g, p->nresult, p->result, to); break;
    case 'r': s = mc_function_report(p->f, to); break;
    default: break;
    }
    bool good = fclose(to) == 0 && s >= 0;
    if (!good) {
        complain("%s: %s", path, s < 0 ? mc_last_error() : strerror(errno));
    }
    return good;
}

/* ---- options ---- */

const char run_options[] =
    "  FILE               declarations and formulas, docs/text-form.md; - is standard input\n"
    "  --pass NAME        show formulas, graph, kernels, steps or plan\n"
    "  --feed random      uniform numbers for every input; --feed NAME=FILE.npy for one input or shared "
    "variable\n"
    "  --size NAME=6,784  sizes of a random input, all that its declaration leaves open; 8 each where it is "
    "not named\n"
    "  --save FILE        write the results of the last call, FILE.npz or FILE.safetensors, under their "
    "names, "
    "output_0, output_1 where they have none\n"
    "  --below N          random whole numbers are less than N (2)\n"
    "  --calls N          call N times (1)\n"
    "  --time             call for a second and print what one call takes\n"
    "  --profile          print what each step takes\n"
    "  --mode MODE        FAST_RUN, FAST_COMPILE, DEBUG or NANGUARD\n"
    "  --dot FILE, --svg FILE   a picture of the graph\n"
    "  --report FILE      one HTML page on the function\n";

static bool add_pair(const char *option, struct pair *list, int *n, const char *arg)
{
    const char *eq = strchr(arg, '=');
    if (!eq || *n == MOST_FEEDS) {
        complain(eq ? "too many values like '%s'" : "'%s' is not NAME=VALUE", arg);
        return false;
    }
    for (int i = 0; i < *n; i++) {
        if (strncmp(list[i].name, arg, (size_t)(eq - arg) + 1) == 0) {
            complain("%s: '%.*s' is given twice", option, (int)(eq - arg), arg);
            return false;
        }
    }
    list[(*n)++] = (struct pair){ arg, eq + 1 };
    return true;
}

static bool whole(const char *option, const char *arg, long *out)
{
    char *end;
    errno = 0;
    *out = strtol(arg, &end, 10);
    if (*end || end == arg || *out < 1 || errno) {
        complain("%s: '%s' is not a whole number above 0", option, arg);
        return false;
    }
    return true;
}

static bool read_options(int argc, char **argv, struct options *o, const char **path)
{
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i], *next = i + 1 < argc ? argv[i + 1] : NULL;
        const struct { const char *name; const char **text; bool *yes; long *number; } table[] = {
            { "--pass", &o->pass, NULL, NULL },    { "--mode", &o->mode, NULL, NULL },   { "--dot", &o->dot, NULL, NULL },
            { "--svg", &o->svg, NULL, NULL },      { "--report", &o->report, NULL, NULL }, { "--time", NULL, &o->time, NULL },
            { "--save", &o->save, NULL, NULL },    { "--profile", NULL, &o->profile, NULL }, { "--calls", NULL, NULL, &o->calls }, { "--below", NULL, NULL, &o->below },
        };
        bool feed = strcmp(word, "--feed") == 0, size = strcmp(word, "--size") == 0, known = feed || size,
             good = true;
        bool value = known;
        for (int k = 0; k < COUNT(table); k++) {
            if (strcmp(word, table[k].name) == 0) {
                known = true;
                value = !table[k].yes;
                if (value && next) {
                    table[k].text ? (void)(*table[k].text = next)
                                  : (void)(good = whole(word, next, table[k].number));
                } else if (!value) {
                    *table[k].yes = true;
                }
            }
        }
        if (known && value && !next) {
            complain("%s needs a value", word);
            return false;
        }
        if (feed && strcmp(next, "random") == 0) {
            o->random = true;
        } else if (feed || size) {
            good = feed ? add_pair(word, o->feed, &o->nfeed, next) : add_pair(word, o->size, &o->nsize, next);
        } else if (!known && (*path || (word[0] == '-' && word[1]))) {
            complain_word("run", word);
            return false;
        } else if (!known) {
            *path = word;
        }
        if (!good) {
            return false;
        }
        i += known && value;
    }
    return true;
}

static bool compile(struct program *p, const struct options *o)
{
    const mc_spec spec = { .name = "run", .inputs = p->inputs.s, .outputs = p->outputs.s, .updates = p->updates.s,
                           .mode = o->mode, .profile = o->profile };
    p->f = mc_compile_at(p->g, &spec, NULL, 0); /* the place of a mistake is in the file, not here */
    complain_slow(p->f);
    if (!p->f) {
        complain("%s: %s", p->path, *mc_error(p->g) ? mc_error(p->g) : mc_last_error());
    }
    return p->f != NULL;
}

static bool run(struct program *p, const struct options *o)
{
    const struct pass *pass = o->pass ? find_pass(o->pass) : NULL;
    if (o->pass && !pass) {
        complain("unknown pass '%s'; expected formulas, graph, kernels, steps or plan", o->pass);
        return false;
    }
    if (!read_program(p) || (o->dot && !write_file(p, o->dot, "dot")) ||
        (o->svg && !write_file(p, o->svg, "svg")) || !compile(p, o)) {
        return false;
    }
    bool calls = o->time || o->profile || o->report || o->save || o->nfeed || o->random ||
                 (pass ? pass->calls : !p->ninput);
    p->nout = mc_function_noutputs(p->f);
    if (p->nout > MOST_OUTPUTS) {
        complain("%s: more than %d outputs", p->path, MOST_OUTPUTS);
        return false;
    }
    if ((calls && (!feed_inputs(p, o) || !run_calls(p, o))) || (pass && !pass->show(p))) {
        return false;
    }
    if (calls && !pass && !o->time) {
        print_outputs(p);
    } else if (!calls && !pass && !o->dot && !o->svg) {
        show_steps(p);
    }
    if (o->save && !save_outputs(p, o->save)) {
        return false;
    }
    if (o->profile && mc_function_profile(p->f, stdout) < 0) {
        return complain_library("profile") == 0;
    }
    return !o->report || write_file(p, o->report, "report");
}

int command_run(int argc, char **argv)
{
    struct program p = { 0 };
    struct options o = { .calls = 1, .below = 2 };
    if (!read_options(argc, argv, &o, &p.path)) {
        return 1;
    }
    if (!p.path) {
        return complain_usage("run");
    }
    bool good = run(&p, &o);
    for (int i = 0; i < MOST_INPUTS; i++) {
        mc_array_unref(&p.in[i]);
        free(p.input[i]);
    }
    for (int i = 0; i < MOST_OUTPUTS; i++) {
        mc_array_unref(&p.out[i]);
    }
    mc_function_free(p.f);
    mc_graph_free(p.g);
    text_free(&p.formulas), text_free(&p.inputs), text_free(&p.outputs), text_free(&p.updates);
    return !good;
}
