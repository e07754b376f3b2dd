/* report.c: describes a compiled function in one self-contained HTML page: its graph, its formulas, its steps
 * with their kernels and times, its memory.
 *
 * Invariant: the page is well-formed and follows the reader's light or dark theme. All text from the function
 * is escaped by mc_str_html. */
#include "exec/backend.h"
#include "inspect/profile.h"

enum { TEXT_COLUMNS = 240, BADGE_COLUMNS = 44 };
static const double least_rated = 1e-6; /* seconds a call */

static const char style[] =
    "<style>"
    ":root{color-scheme:light "
    "dark;--g:#f4f5f7;--card:#fcfcfb;--ink:#1f2328;--dim:#5f6872;--line:#dfe3e8;--bar:#3b7dd8;--soft:#e6eefa;"
    "--a:#3b7dd8;--b:#7aa7e6;--c:#2f9e5b;--d:#d97706}"
    "@media(prefers-color-scheme:dark){:root{--g:#0d0f12;--card:#16181c;--ink:#e8eaed;--dim:#9aa3ad;--line:#"
    "2b3038;--bar:#5b9bf0;"
    "--soft:#1c2939;--a:#5b9bf0;--b:#35619e;--c:#4cc27f;--d:#f0a04b}}"
    "*{box-sizing:border-box}"
    "body{margin:0 auto;padding:28px 20px 60px;max-width:1120px;background:var(--g);color:var(--ink);"
    "font:15px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue',sans-serif}"
    "h1{font-size:26px;margin:0 0 2px}h2{font-size:17px;margin:34px 0 10px}p{margin:6px 0}"
    ".dim{color:var(--dim)}.small{font-size:13px}"
    ".card{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:14px "
    "16px;overflow:auto}"
    ".warn{border-color:var(--d);border-left-width:5px;overflow-wrap:anywhere}"
    ".tiles{display:grid;grid-template-columns:repeat(auto-fit,minmax(150px,1fr));gap:10px;margin-top:18px}"
    ".tiles div{background:var(--card);border:1px solid var(--line);border-radius:10px;padding:10px 14px}"
    ".tiles b{display:block;font-size:21px;font-weight:600}.tiles span{color:var(--dim);font-size:13px}"
    "pre,code{font:12.5px/1.5 ui-monospace,'SF Mono',Menlo,Consolas,'DejaVu Sans "
    "Mono',monospace}pre{margin:0;white-space:pre}"
    ".graph{padding:0;max-height:80vh;text-align:center;"
    "width:min(96vw,1700px);position:relative;left:50%;transform:translateX(-50%)}.graph "
    "svg{display:inline-block;vertical-align:top}"
    "details.step{border-top:1px solid var(--line);padding:9px 0}details.step:first-child{border:0}"
    "summary{cursor:pointer}"
    "details.step summary{list-style:none;display:grid;grid-template-columns:minmax(0,1fr) 170px "
    "230px;gap:2px 14px;align-items:center}"
    "details.step "
    "summary::before{content:none}.name{overflow-wrap:anywhere}.name::before{content:'\\25b8';color:var(--"
    "dim);margin-right:8px}"
    "details[open]>summary .name::before{content:'\\25be'}"
    "@media(max-width:640px){details.step summary{grid-template-columns:minmax(0,1fr) "
    "minmax(40px,26%)}details.step .num{grid-column:1/-1;text-align:left;padding-left:20px}"
    ".mem{min-width:640px}body{padding:20px 14px 40px}}"
    "details.step summary::-webkit-details-marker{display:none}"
    ".track{height:14px;background:var(--soft);border-radius:4px;overflow:hidden}.fill{height:14px;"
    "background:var(--bar);border-radius:4px;min-width:2px}"
    ".num{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}"
    ".body{border-left:3px solid var(--soft);padding-left:14px;margin:4px 0 2px}"
    "pre.formula{white-space:pre-wrap;overflow-wrap:anywhere}"
    "details pre{margin:10px 0 4px;padding:10px "
    "12px;border-radius:8px;background:var(--soft);overflow:auto;max-height:420px}"
    ".mem{display:block;width:100%;height:auto}.mem text{font:11px system-ui,sans-serif;fill:var(--dim)}.mem "
    ".in{fill:#fff}"
    ".mem line{stroke:var(--line)}.mem .v{stroke:var(--card);stroke-width:1}"
    "</style>";

struct page {
    struct mc_str *out;
    const struct mc_function *f;
    const struct mc_profile *p;
};

static void tile(struct mc_str *out, const char *value, const char *what)
{
    mc_str_add(out, "<div><b>");
    mc_str_html(out, value);
    mc_str_add(out, "</b><span>");
    mc_str_html(out, what);
    mc_str_add(out, "</span></div>\n");
}

/* A tile with the value that `print` writes. */
static void tile_of(struct mc_str *out, void (*print)(struct mc_str *out, double v), double v,
                    const char *what)
{
    struct mc_str s = { 0 };
    print(&s, v);
    tile(out, s.s ? s.s : "", what);
    out->bad |= s.bad;
    mc_str_free(&s);
}

static void print_count(struct mc_str *out, double v)
{
    mc_str_addf(out, "%.0f", v);
}

static void summary(const struct page *g)
{
    const struct mc_code_unit *c = g->f->code;
    struct mc_str what = { 0 };
    mc_str_add(g->out, "<div class=\"tiles\">\n");
    tile_of(g->out, print_count, (double)g->f->calls, "calls");
    if (g->f->profile && g->f->calls) {
        tile_of(g->out, mc_seconds_text, g->f->call_seconds / (double)g->f->calls, "one call, on average");
    }
    tile_of(g->out, mc_seconds_text, c->compile_seconds, "compiling took");
    mc_str_addf(&what, "operations, simplified from %zu", c->nodes_before);
    tile_of(g->out, print_count, (double)c->nodes_after, what.s ? what.s : "");
    mc_str_free(&what);
    mc_str_addf(&what, "compiled kernel%s in %d steps", c->program.nkernel == 1 ? "" : "s", c->nstep);
    tile_of(g->out, print_count, c->program.nkernel, what.s ? what.s : "");
    mc_str_free(&what);
    if (g->f->plans) {
        tile_of(g->out, mc_str_bytes, (double)g->p->arena, "of memory for intermediate values");
    }
    mc_str_add(g->out, "</div>\n");
}

/* ---- the graph ---- */

static bool is_work(const struct mc_function *f, int step)
{
    const enum mc_step_kind kind = f->code->program.step.at[step].kind;
    return kind == STEP_KERNEL || kind == STEP_HEAVY || kind == STEP_HOST;
}

static const char *step_word(struct mc_arena *a, const char *name)
{
    struct mc_str word = { 0 };
    mc_str_line(&word, name, BADGE_COLUMNS);
    char *s = word.bad ? NULL : mc_arena_str(a, word.s ? word.s : "", word.n);
    mc_str_free(&word);
    return s;
}

/* By node id: the step that computes it. */
static mc_status badges(struct mc_arena *a, const struct mc_function *f, const char **badge)
{
    const struct mc_program *pr = &f->code->program;
    for (size_t i = 0; i < pr->step.n; i++) {
        const struct mc_step *st = &pr->step.at[i];
        const char *word = is_work(f, (int)i) ? step_word(a, mc_step_name(f->code, (int)i)) : "";
        for (int k = 0; k < st->nnode && word; k++) {
            badge[st->node[k]->id] = word;
        }
        if (st->heavy && word) {
            badge[st->heavy->id] = word;
        }
        TRY(word ? MC_OK : MC_EMEMORY);
    }
    return MC_OK;
}

/* The badges of f's nodes, and the compiled bodies of its loops. */
static mc_status steps_say(struct mc_arena *a, const struct mc_function *f, struct mc_picture_says *says)
{
    const struct mc_program *pr = &f->code->program;
    const size_t nodes = pr->graph->nodes.n + 1;
    const char **badge = mc_arena_alloc(a, nodes * sizeof *badge);
    const struct mc_picture_body **body = mc_arena_alloc(a, nodes * sizeof *body);
    TRY(badge && body ? badges(a, f, badge) : MC_EMEMORY);
    says->badge = badge;
    says->body = body;
    for (size_t i = 0; f->loop && i < pr->step.n; i++) {
        const struct mc_function *l = f->loop[i];
        struct mc_picture_body *b = l ? mc_arena_alloc(a, sizeof *b) : NULL;
        mc_node **out = l ? mc_arena_alloc(a, (size_t)(l->code->program.noutput + 1) * sizeof *out) : NULL;
        if (!l) {
            continue;
        }
        const struct mc_program *in = &l->code->program;
        TRY(b && out ? MC_OK : MC_EMEMORY);
        for (int k = 0; k < in->noutput; k++) {
            out[k] = in->value.at[in->output[k]].node;
        }
        *b = (struct mc_picture_body){ .nin = in->ninput, .nout = in->noutput, .in = in->input, .out = out };
        TRY(steps_say(a, l, &b->says));
        body[pr->step.at[i].node[0]->id] = b;
    }
    return MC_OK;
}

/* Lists outputs and new values of shared variables, and the step that computes each node. */
static mc_status graph(const struct page *g)
{
    const struct mc_program *pr = &g->f->code->program;
    int n = pr->noutput + pr->nupdate;
    struct mc_arena a = { 0 };
    struct mc_picture pic;
    struct mc_picture_says says = { NULL };
    mc_node **out = mc_arena_alloc(&a, (size_t)(n + 1) * sizeof *out);
    const char **label = mc_arena_alloc(&a, (size_t)(n + 1) * sizeof *label);
    mc_status s = out && label ? steps_say(&a, g->f, &says) : MC_EMEMORY;
    says.output = label;
    for (int i = 0; i < n && s == MC_OK; i++) {
        bool result = i < pr->noutput;
        out[i] = pr->value.at[result ? pr->output[i] : pr->update[i - pr->noutput]].node;
        struct mc_str word = { 0 };
        if (result && g->f->code->output_name[i]) {
            mc_str_add(&word, g->f->code->output_name[i]);
        } else if (result) {
            mc_str_addf(&word, "result %d", i + 1);
        } else {
            mc_str_addf(&word, "new %s", mc_shared_name(pr->shared[i - pr->noutput]));
        }
        label[i] = word.bad ? NULL : mc_arena_str(&a, word.s, word.n);
        mc_str_free(&word);
        s = label[i] ? MC_OK : MC_EMEMORY;
    }
    if (n && s == MC_OK) {
        s = mc_picture_make(&pic, n, out, &says);
        if (s == MC_OK) {
            mc_str_add(g->out, "<h2>Graph of operations</h2>\n<p class=\"dim small\">The formulas after "
                               "simplification, one operation in each box, from the inputs at the top to the "
                               "results at the bottom. A box shows its operation, the type and sizes of its "
                               "result (? where a size depends on the call), and the step that computes "
                               "it. The box of a loop contains its body.</p>\n<details><summary>Show the "
                               "graph</summary>\n<div class=\"card graph\">\n");
            s = mc_svg_add(g->out, &pic);
            mc_str_add(g->out, "</div></details>\n");
            mc_picture_free(&pic);
        }
    }
    mc_arena_free(&a);
    return s;
}

static void formulas(const struct page *g)
{
    mc_str_add(g->out, "<h2>Formulas</h2>\n<p class=\"dim small\">The same graph as text, as the library "
                       "reads and prints it.</p>\n"
                       "<details><summary>Show the formulas</summary><div class=\"card\"><pre>");
    mc_str_html(g->out, g->f->code->text);
    mc_str_add(g->out, "</pre></div></details>\n");
}

/* ---- steps ---- */

/* The kernel's part of the source: from its head to the head of the next kernel. */
static void kernel_source(struct mc_str *out, const struct mc_function *f, const char *name)
{
    const char *source = f->code->source, *lead = f->code->backend->lead;
    char head[48], own[48];
    mc_snprintf(head, sizeof head, f->code->backend->head, name);
    mc_snprintf(own, sizeof own, "\nvoid %s_join(", name);
    const char *from = strstr(source, head), *to = from;
    if (!from) {
        return;
    }
    do {
        to = strstr(to + 1, lead);
    } while (to && strncmp(to, own, strlen(own)) == 0);
    struct mc_str part = { 0 };
    mc_str_addn(&part, from + 1, to ? (size_t)(to - from) : strlen(from + 1));
    mc_str_html(out, part.s ? part.s : "");
    out->bad |= part.bad;
    mc_str_free(&part);
}

static void numbers(struct mc_str *out, const struct mc_step_row *r, double all)
{
    if (!r || !r->calls || !(all > 0)) {
        mc_str_add(out, "<span></span><span></span>");
        return;
    }
    mc_str_addf(
        out, "<span class=\"track\"><span class=\"fill\" style=\"display:block;width:%.2f%%\"></span></span>",
        100 * r->seconds / all);
    mc_str_addf(out, "<span class=\"num small\">%.1f%% · ", 100 * r->seconds / all);
    mc_seconds_text(out, r->seconds / (double)r->calls);
    mc_str_add(out, r->depth ? " a run" : "");
    bool idle = strstr(r->class, " idle") != NULL; /* the steps that read its result did its work */
    bool rated = !idle &&
                 r->seconds >=
                     least_rated * (double)r->calls; /* below that, the clock took most of the time */
    if (rated && r->flops > r->bytes * 4) {
        mc_str_add(out, " · ");
        mc_rate_text(out, r->flops, r->seconds);
        mc_str_add(out, " GFLOP/s");
    } else if (rated && r->bytes > 0) {
        mc_str_add(out, " · ");
        mc_rate_text(out, r->bytes, r->seconds);
        mc_str_add(out, " GB/s");
    }
    mc_str_add(out, "</span>");
}

static void step_list(const struct page *g, const struct mc_function *f);

/* The details of a step: how it is computed, its results, its formula, its kernel, its body. */
static void behind(const struct page *g, const struct mc_function *f, int i, const struct mc_step_row *r)
{
    const struct mc_step *st = &f->code->program.step.at[i];
    const struct mc_shape_plan *plan = mc_newest_plan(f);
    mc_step_info info = mc_function_step(f, i);
    mc_str_add(g->out, "<p class=\"small dim\">Computed by: ");
    mc_str_html(g->out, r ? r->class : info.kind);
    for (int k = 0, shown = 0; k < st->ndst && plan; k++) {
        const struct mc_slot *at = &plan->slot[st->dst[k]];
        if (at->base != BASE_NONE) {
            mc_str_add(g->out, shown++ ? ", " : ". Result: ");
            mc_type_text(g->out, &at->type);
        }
    }
    mc_str_add(g->out, *info.reason ? ". " : ".");
    mc_str_html(g->out, info.reason);
    if (r && r->depth) {
        mc_str_addf(g->out, " Run %lld times.", (long long)r->calls);
    }
    mc_str_add(g->out, "</p>\n<pre class=\"formula\">");
    mc_str_html(g->out, info.text);
    mc_str_add(g->out, "</pre>\n");
    if (st->kernel && *f->code->source) {
        mc_str_add(g->out, "<pre>");
        kernel_source(g->out, f, st->kernel->name);
        mc_str_add(g->out, "</pre>");
    }
    if (f->loop && f->loop[i]) {
        mc_str_add(g->out,
                   "<p class=\"small dim\">The steps of its body, which run again in each step of the "
                   "loop");
        if (r && r->seconds > 0) {
            mc_str_add(g->out, "; the loop itself took ");
            mc_seconds_text(g->out, r->own / (double)r->calls);
            mc_str_add(g->out, " of one call");
        }
        mc_str_add(g->out, ":</p>\n<div class=\"body\">\n");
        step_list(g, f->loop[i]);
        mc_str_add(g->out, "</div>\n");
    }
}

static void step(const struct page *g, const struct mc_function *f, int i)
{
    const struct mc_step_row *r = mc_profile_row(g->p, f, i);
    mc_str_addf(g->out, "<details class=\"step\"%s><summary><span class=\"name\">",
                f->loop && f->loop[i] ? " open=\"open\"" : "");
    mc_str_html(g->out, mc_step_name(f->code, i));
    mc_str_add(g->out, "</span>");
    numbers(g->out, r, g->p->seconds);
    mc_str_add(g->out, "</summary>\n");
    behind(g, f, i, r);
    mc_str_add(g->out, "</details>\n");
}

static void step_list(const struct page *g, const struct mc_function *f)
{
    for (int i = 0; i < f->code->nstep; i++) {
        if (is_work(f, i)) {
            step(g, f, i);
        }
    }
}

static void steps(const struct page *g)
{
    int quiet = 0;
    mc_str_add(g->out,
               "<h2>Steps</h2>\n<p class=\"dim small\">The work of one call, in the order of execution");
    mc_str_add(g->out, g->p->seconds > 0
                           ? ": the share of the time, the time of one call, and the arithmetic "
                             "or memory traffic in a second. "
                           : "; the steps were not timed. ");
    mc_str_add(
        g->out,
        "Open a step to see its formula and, where it was compiled, its code.</p>\n<div class=\"card\">\n");
    step_list(g, g->f);
    for (int i = 0; i < g->f->code->nstep; i++) {
        quiet += !is_work(g->f, i);
    }
    mc_str_add(g->out, "</div>\n");
    if (quiet) {
        mc_str_addf(
            g->out,
            "<p class=\"dim small\">%d more step%s only find%s sizes or view values in another shape, "
            "and take negligible time.</p>\n",
            quiet, quiet == 1 ? "" : "s", quiet == 1 ? "s" : "");
    }
}

/* ---- memory ---- */

static void value_box(const struct page *g, const struct mc_life *l, double wide, double high, double arena)
{
    static const char *const fill[] = { "var(--a)", "var(--b)", "var(--c)", "var(--d)" };
    int n = MC_MAX(g->f->code->nstep, 1);
    double x = 60 + wide * l->first / n, w = wide * (l->last + 1 - l->first) / n;
    double h = MC_MAX(high * (double)l->bytes / arena, 1),
           y = 8 + high - high * (double)l->offset / arena - h;
    struct mc_str text = { 0 }, size = { 0 };
    mc_value_text(&text, g->f, l->value);
    mc_str_bytes(&size, (double)l->bytes);
    g->out->bad |= text.bad || size.bad;
    mc_str_add(g->out, "<g><title>from ");
    mc_str_html(g->out, mc_step_name(g->f->code, l->first));
    mc_str_add(g->out, " to ");
    mc_str_html(g->out, mc_step_name(g->f->code, l->last));
    mc_str_add(g->out, ", ");
    mc_str_html(g->out, size.s ? size.s : "");
    mc_str_add(g->out, ": ");
    struct mc_str line = { 0 };
    mc_str_line(&line, text.s ? text.s : "", TEXT_COLUMNS);
    mc_str_html(g->out, line.s ? line.s : "");
    mc_str_addf(g->out,
                "</title><rect class=\"v\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"2\" "
                "fill=\"%s\"/>",
                x, y, w, h, fill[l->value % (int)NELEM(fill)]);
    if (h > 15 && w > 60) {
        mc_str_addf(g->out, "<text class=\"in\" x=\"%.1f\" y=\"%.1f\">", x + 6, y + h / 2 + 4);
        mc_str_html(g->out, size.s ? size.s : "");
        mc_str_add(g->out, "</text>");
    }
    mc_str_add(g->out, "</g>\n");
    mc_str_free(&text);
    mc_str_free(&size);
    mc_str_free(&line);
}

static void memory(const struct page *g)
{
    double wide = 920, high = 220, arena = (double)MC_MAX(g->p->arena, (size_t)1);
    mc_str_add(g->out,
               "<h2>Memory</h2>\n<p class=\"dim small\">A box is an intermediate value: its height is "
               "its size, and it extends from the step that makes it to the last one that reads it. "
               "Values that are not needed at the same time share memory: ");
    mc_str_bytes(g->out, (double)g->p->arena);
    mc_str_add(g->out, " hold what would take ");
    mc_str_bytes(g->out, (double)g->p->separate);
    mc_str_add(g->out, " side by side. Working memory of single steps takes up to ");
    mc_str_bytes(g->out, (double)g->p->scratch);
    if (g->p->loops) {
        mc_str_add(g->out, ", values and states of loops ");
        mc_str_bytes(g->out, (double)g->p->loops);
    }
    if (g->p->prepared) {
        mc_str_add(g->out, ", filters and weights that solvers keep ");
        mc_str_bytes(g->out, (double)g->p->prepared);
    }
    mc_str_addf(g->out,
                ".</p>\n<div class=\"card\"><svg class=\"mem\" viewBox=\"0 0 1000 %.0f\" role=\"img\">\n",
                high + 34);
    for (int k = 0; k <= 4; k++) {
        double y = 8 + high - high * k / 4;
        mc_str_addf(g->out,
                    "<line x1=\"60\" x2=\"%.0f\" y1=\"%.1f\" y2=\"%.1f\"/><text x=\"52\" y=\"%.1f\" "
                    "text-anchor=\"end\">",
                    60 + wide, y, y, y + 4);
        mc_str_bytes(g->out, arena * k / 4);
        mc_str_add(g->out, "</text>\n");
    }
    mc_str_addf(g->out,
                "<text x=\"60\" y=\"%.1f\">first step</text><text x=\"%.1f\" y=\"%.1f\" "
                "text-anchor=\"end\">last step</text>\n",
                high + 26, 60 + wide, high + 26);
    for (size_t i = 0; i < g->p->life.n; i++) {
        value_box(g, &g->p->life.at[i], wide, high, arena);
    }
    mc_str_add(g->out, "</svg></div>\n");
}

/* ---- the page ---- */

static void sources(struct mc_str *out, const struct mc_function *f)
{
    mc_str_html(out, f->code->source);
    for (int i = 0; f->loop && i < f->code->nstep; i++) {
        if (f->loop[i]) {
            sources(out, f->loop[i]);
        }
    }
}

static mc_status page(const struct page *g, const char *title, const char *extra_html)
{
    mc_str_add(g->out, "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>"
                       "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<title>");
    mc_str_html(g->out, title);
    mc_str_add(g->out, "</title>\n");
    mc_str_add(g->out, style);
    mc_str_add(g->out, "</head>\n<body>\n<h1>");
    mc_str_html(g->out, title);
    mc_str_addf(g->out, "</h1>\n<p class=\"dim\">%s Monochord %s</p>\n",
                extra_html ? "By" : "A function compiled by", mc_version());
    if (g->f->code->warning) {
        mc_str_add(g->out, "<p class=\"card warn\"><b>Slower than it could be.</b> ");
        mc_str_html(g->out, g->f->code->warning);
        mc_str_add(g->out, "</p>\n");
    }
    mc_str_add(g->out, extra_html ? extra_html : "");
    summary(g);
    steps(g);
    mc_status s = graph(g);
    formulas(g);
    if (g->p->life.n) {
        memory(g);
    }
    mc_str_add(g->out, "<h2>Code</h2>\n<p class=\"dim small\">All that was compiled for this "
                       "function.</p>\n<details><summary>Show the source</summary><div class=\"card\"><pre>");
    sources(g->out, g->f);
    mc_str_add(g->out, "</pre></div></details>\n</body></html>\n");
    return s;
}

mc_status mc_function_report_with(const mc_function *f, FILE *to, const char *title, const char *extra_html)
{
    struct mc_profile p;
    struct mc_str out = { 0 };
    if (!f) {
        return mc_fail(MC_EARG, "report: the function is NULL");
    }
    pthread_mutex_t *lock = &((mc_function *)f)->lock;
    pthread_mutex_lock(lock);
    mc_status s = mc_profile_make(&p, f);
    if (s == MC_OK) {
        s = page(&(struct page){ &out, f, &p }, title ? title : f->name, extra_html);
        mc_profile_free(&p);
    }
    pthread_mutex_unlock(lock);
    if (s < 0) {
        mc_str_free(&out);
        return s;
    }
    return mc_str_write(&out, to, "report");
}

mc_status mc_function_report(const mc_function *f, FILE *to)
{
    return mc_function_report_with(f, to, NULL, NULL);
}
