/* program.c: programs of portable sums: made, run, printed.
 *
 * Invariant: what runs and what is printed are the same calls with the same numbers. */
#include "device/cpu/cpu.h"
#include "heavy/portable/panel.h"
#include "heavy/portable/portable.h"
#include <inttypes.h>
#include <string.h>

const struct mc_portable_level *mc_portable_level(void)
{
    static const struct mc_portable_level *const *const of[] = {
        [ISA_AVX512] = &mc_portable_avx512,
        [ISA_AVX2] = &mc_portable_avx2,
        [ISA_PLAIN] = &mc_portable_generic,
    };
    int lanes[ISA_COUNT];
    for (int i = 0; i < ISA_COUNT; i++) {
        lanes[i] = *of[i] ? 16 >> i : 0;
    }
    return *of[mc_isa_fitting(lanes, 16)];
}

/* ---- making ---- */

struct mc_portable_call *mc_portable_add(struct mc_portable_program *p, enum mc_portable_kind kind,
                                         int noffset)
{
    const struct mc_portable_call c = { .kind = kind,
                                        .noffset = noffset,
                                        .offset = noffset
                                                      ? mc_calloc((size_t)noffset, sizeof *c.offset, "plans")
                                                      : NULL };
    if ((noffset && !c.offset) || !VEC_PUSH(p->call, c)) {
        mc_free(c.offset);
        return NULL;
    }
    return &p->call.at[p->call.n - 1];
}

void mc_portable_free(struct mc_portable_program *p)
{
    for (size_t i = 0; i < p->call.n; i++) {
        mc_free(p->call.at[i].offset);
    }
    VEC_FREE(p->call);
}

/* ---- plans ---- */

static void destroy(struct mc_plan *p)
{
    mc_portable_free(&((struct mc_portable_plan *)(void *)p)->program);
}

struct mc_portable_plan *mc_portable_plan(mc_status (*run)(const struct mc_plan *p, void *const *operand,
                                                           void *workspace, int threads))
{
    struct mc_portable_plan *made = mc_calloc(1, sizeof *made, "plans");
    if (made) {
        made->base.run = run;
        made->base.destroy = destroy;
        made->program.groups = made->program.images = made->program.step = made->program.chain =
            made->program.blocks = 1;
    }
    return made;
}

struct mc_plan *mc_portable_finish(struct mc_portable_plan *p, bool fits)
{
    if (!fits) {
        mc_portable_free(&p->program);
        mc_free(p);
        return NULL;
    }
    p->base.workspace = (size_t)(p->program.workspace + p->program.panel) * mc_dtypes[p->program.dtype].size;
    return &p->base;
}

const struct mc_portable_program *mc_portable_program_of(const struct mc_plan *p)
{
    return p->destroy == destroy ? &((const struct mc_portable_plan *)(const void *)p)->program : NULL;
}

void mc_portable_panel(struct mc_portable_program *p, const struct mc_portable_call *c)
{
    int64_t need = 0;
    if (c->kind == PORTABLE_COLUMNS && c->g[8]) {
        need = MC_MAX((int64_t)PANEL, c->g[2] * MOST_STRIP) + MOST_WIDTH;
    } else if (c->kind == PORTABLE_DOTS && c->g[10]) {
        need = MOST_DOTS * (p->step * c->g[4] + MOST_WIDTH) + MOST_WIDTH;
    }
    p->panel = MC_MAX(p->panel, need);
}

/* ---- running ---- */

static char *at(const struct mc_portable_program *p, const struct mc_portable_at *a, void *const *memory,
                int64_t image, int64_t group, int64_t block)
{
    const int64_t by = a->first + image * a->image + group * a->group + block * a->block;
    return (char *)memory[a->memory] + by * (int64_t)mc_dtypes[p->dtype].size;
}

/* One call for the images of one run, which begin at `image`. */
static void run_call(const struct mc_portable_program *p, const struct mc_portable_call *c,
                     const struct mc_portable_level *level, void *const *memory, int64_t image, int64_t group,
                     int64_t block)
{
    const int type = p->dtype == MC_FLOAT64;
    char *panel = (char *)memory[PORTABLE_WORKSPACE] + p->workspace * (int64_t)mc_dtypes[p->dtype].size;
    const int64_t end = MC_MIN(image + p->step, p->images);
    if (c->kind == PORTABLE_DOTS) {
        int64_t g[NELEM(c->g)];
        memcpy(g, c->g, sizeof g);
        g[3] = end - image;
        level->dots[type](g, c->offset,
                          at(p, &c->from, memory, c->from.memory == PORTABLE_WORKSPACE ? 0 : image, group, 0),
                          at(p, &c->with, memory, c->with.memory == PORTABLE_WORKSPACE ? 0 : image, group, 0),
                          at(p, &c->to, memory, 0, group, 0), image > 0, panel);
        return;
    }
    for (int64_t n = image; n < end; n++) {
        const int64_t to = c->to.memory == PORTABLE_WORKSPACE ? n - image : n,
                      from = c->from.memory == PORTABLE_WORKSPACE ? n - image : n,
                      with = c->with.memory == PORTABLE_WORKSPACE ? n - image : n;
        char *y = at(p, &c->to, memory, to, group, block), *x = at(p, &c->from, memory, from, group, block),
             *w = at(p, &c->with, memory, with, group, block);
        switch (c->kind) {
        case PORTABLE_COPY: level->copy[type](y, x, c->g); break;
        case PORTABLE_COLUMNS: level->columns[type](c->g, c->offset, w, x, y, panel); break;
        case PORTABLE_BOX: level->box[type](c->g, c->offset, w, x, y); break;
        case PORTABLE_OUTER: level->outer[type](c->g, c->offset, x, w, y, n % p->chain != 0); break;
        case PORTABLE_TOTAL:
            if ((n + 1) % p->chain == 0 || n + 1 == p->images) {
                (n < p->chain ? level->copy : level->add)[type](y, x, c->g);
            }
            break;
        case PORTABLE_COL2IM: level->col2im[type](c->g, c->offset, y, x); break;
        case PORTABLE_DOTS: break; /* above */
        }
    }
}

void mc_portable_run(const struct mc_portable_program *p, void *const memory[PORTABLE_NMEMORY])
{
    const struct mc_portable_level *level = mc_portable_level();
    if (p->zeros) {
        memset(memory[PORTABLE_WORKSPACE], 0, (size_t)p->zeros * mc_dtypes[p->dtype].size);
    }
    for (int64_t image = 0; image < p->images; image += p->step) {
        for (int64_t group = 0; group < p->groups; group++) {
            for (size_t i = 0; i < p->call.n; i++) {
                const struct mc_portable_call *c = &p->call.at[i];
                for (int64_t block = 0; block < (c->blocked ? p->blocks : 1); block++) {
                    run_call(p, c, level, memory, image, group, block);
                }
            }
        }
    }
}

/* ---- printing ---- */

static const char *suffix(const struct mc_portable_program *p)
{
    return p->dtype == MC_FLOAT64 ? "f64" : "f32";
}

/* "x + 784 * image + 3 * group" */
static void print_at(struct mc_str *out, const struct mc_portable_program *p, const struct mc_portable_at *a,
                     const char *const *memory, const char *image)
{
    mc_str_add(out, memory[a->memory]);
    if (a->first) {
        mc_str_addf(out, " + %" PRId64, a->first);
    }
    if (a->image && image && p->images > 1) {
        mc_str_addf(out, " + %" PRId64 " * %s", a->image, image);
    }
    if (a->group && p->groups > 1) {
        mc_str_addf(out, " + %" PRId64 " * group", a->group);
    }
    if (a->block && p->blocks > 1) {
        mc_str_addf(out, " + %" PRId64 " * block", a->block);
    }
}

static void print_numbers(struct mc_str *out, const int64_t *v, int n)
{
    for (int i = 0; i < n; i++) {
        mc_str_addf(out, "%s%s%" PRId64, i ? "," : "", i ? i % 16 ? " " : "\n    " : "", v[i]);
    }
}

/* The image by which a call moves an array; in the workspace there are those of one run. */
static const char *image_of(const struct mc_portable_program *p, const struct mc_portable_at *a)
{
    const bool run = p->step > 1;
    return a->memory != PORTABLE_WORKSPACE ? (run ? "n" : "image") : run ? "(n - image)" : NULL;
}

/* Multiply-adds of a call for one image, or of DOTS for a run, and group, with the elements that it reads. */
static double work_of(const struct mc_portable_call *c)
{
    const double f = (double)c->g[0] + 4;
    switch (c->kind) {
    case PORTABLE_TOTAL:
    case PORTABLE_COPY: return 8.0 * (double)c->g[0] * (double)c->g[1] * (double)c->g[2] * (double)c->g[3];
    case PORTABLE_COLUMNS: return f * ((double)c->g[3] + 4) * (double)c->g[1] * (double)c->g[2];
    case PORTABLE_BOX:
        return (double)c->g[0] * (double)c->g[1] * (double)c->g[2] * (double)c->g[3] * (double)c->g[4] *
               ((double)c->g[5] + 4);
    case PORTABLE_OUTER:
        return f * ((double)c->g[1] * (double)c->g[2] + 4) * (double)c->g[3] * (double)c->g[4];
    case PORTABLE_COL2IM:
        return 4.0 * (double)c->g[0] * (double)c->g[1] * (double)c->g[2] * (double)c->g[3] * (double)c->g[4] *
               (double)c->g[5] * (double)c->g[6];
    case PORTABLE_DOTS:
        return f * ((double)c->g[1] * (double)c->g[2] + 4) * (double)c->g[3] * (double)c->g[4];
    }
    return 0;
}

/* The work of the loops over images, groups and blocks if threads can share them: no array is in the
 * workspace, sums do not run over images, and panels fit the stacks of threads.  0: they cannot, or one image
 * is enough work for threads. */
static double shared_work(const struct mc_portable_program *p)
{
    enum { ENOUGH = 1 << 23 };
    bool can = p->workspace == 0 && p->images * p->groups * p->blocks > 1;
    double work = 0;
    for (size_t i = 0; i < p->call.n && can; i++) {
        const struct mc_portable_call *c = &p->call.at[i];
        const bool columns = c->kind == PORTABLE_COLUMNS, dots = c->kind == PORTABLE_DOTS;
        work += work_of(c);
        can = !(columns && c->g[8] && c->g[2] * MOST_STRIP > STACK_PANEL) &&
              !(dots && (p->images > 1 || c->g[10]));
    }
    return can && work < ENOUGH ? work * (double)p->images * (double)p->groups * (double)p->blocks : 0;
}

static void print_panel(struct mc_str *out, const struct mc_portable_program *p, const char *const *memory)
{
    const struct mc_portable_at panel = { .memory = PORTABLE_WORKSPACE, .first = p->workspace };
    const bool shared = shared_work(p) > 0;
    mc_str_add(out, shared ? "SHARED_LOOP(" : "");
    print_at(out, p, &panel, memory, NULL);
    mc_str_add(out, shared ? ")" : "");
}

enum { DOTS_NUMBERS = 14 };

/* Sums over all images of a run. */
static void print_dots(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                       const char *const *memory, const struct mc_portable_after *after)
{
    (void)after;
    const struct mc_portable_call *c = &p->call.at[i];
    const bool ragged = p->images % p->step != 0; /* the last run has fewer images */
    if (ragged) {
        mc_str_addf(out, "int64_t h%zu[%d];\nmemcpy(h%zu, g%zu, sizeof h%zu);\nh%zu[3] = end - image;\n", i,
                    DOTS_NUMBERS, i, i, i, i);
    }
    mc_str_addf(out, "dots_%s(%c%zu, o%zu, ", suffix(p), ragged ? 'h' : 'g', i, i);
    print_at(out, p, &c->from, memory, c->from.memory == PORTABLE_WORKSPACE ? NULL : "image");
    mc_str_add(out, ", ");
    print_at(out, p, &c->with, memory, c->with.memory == PORTABLE_WORKSPACE ? NULL : "image");
    mc_str_add(out, ", ");
    print_at(out, p, &c->to, memory, NULL);
    mc_str_addf(out, ", %s, ", p->step >= p->images ? "0" : "image > 0");
    print_panel(out, p, memory);
    mc_str_add(out, ");\n");
}

/* A copy, or sums of each image. */
static void print_images(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                         const char *const *memory, const struct mc_portable_after *after)
{
    const struct mc_portable_call *c = &p->call.at[i];
    mc_str_add(out, p->step > 1 ? "for (int64_t n = image; n < end; n++) {\n" : "");
    if (c->kind == PORTABLE_COPY) {
        mc_str_addf(out, "copy_%s(", suffix(p));
        print_at(out, p, &c->to, memory, image_of(p, &c->to));
        mc_str_add(out, ", ");
        print_at(out, p, &c->from, memory, image_of(p, &c->from));
        mc_str_addf(out, ", g%zu);\n", i);
    } else if (c->kind == PORTABLE_COL2IM) {
        mc_str_addf(out, "col2im_%s(g%zu, o%zu, ", suffix(p), i, i);
        print_at(out, p, &c->to, memory, image_of(p, &c->to));
        mc_str_add(out, ", ");
        print_at(out, p, &c->from, memory, image_of(p, &c->from));
        mc_str_add(out, ");\n");
    } else {
        const bool columns = c->kind == PORTABLE_COLUMNS;
        mc_str_addf(out, "%s_%s(g%zu, ", columns ? "columns" : "box", suffix(p), i);
        if (c->noffset) {
            mc_str_addf(out, "o%zu, ", i);
        } else { /* a phase that no tap of the filter meets: zeros */
            mc_str_add(out, "NULL, ");
        }
        print_at(out, p, &c->with, memory, image_of(p, &c->with));
        mc_str_add(out, ", ");
        print_at(out, p, &c->from, memory, image_of(p, &c->from));
        mc_str_add(out, ", ");
        print_at(out, p, &c->to, memory, image_of(p, &c->to));
        if (columns) {
            mc_str_add(out, ", ");
            print_panel(out, p, memory);
        }
        mc_str_addf(out, ", %s", after && after->bias ? after->bias : "NULL");
        if (after && after->bias && p->groups > 1) {
            mc_str_addf(out, " + %" PRId64 " * group", after->rows);
        }
        mc_str_addf(out, ", %d);\n", after && after->relu);
    }
    mc_str_add(out, p->step > 1 ? "}\n" : "");
}

/* Sums over chains of images, which TOTAL adds. */
static void print_outer(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                        const char *const *memory, const struct mc_portable_after *after)
{
    (void)after;
    const struct mc_portable_call *c = &p->call.at[i];
    mc_str_addf(out, "outer_%s(g%zu, o%zu, ", suffix(p), i, i);
    print_at(out, p, &c->from, memory, image_of(p, &c->from));
    mc_str_add(out, ", ");
    print_at(out, p, &c->with, memory, image_of(p, &c->with));
    mc_str_add(out, ", ");
    print_at(out, p, &c->to, memory, image_of(p, &c->to));
    if (p->chain == 1 || p->images == 1) {
        mc_str_add(out, ", 0);\n");
    } else if (p->chain >= p->images) {
        mc_str_add(out, ", image > 0);\n");
    } else {
        mc_str_addf(out, ", image %% %" PRId64 " != 0);\n", p->chain);
    }
}

static void print_total(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                        const char *const *memory, const struct mc_portable_after *after)
{
    (void)after;
    const struct mc_portable_call *c = &p->call.at[i];
    const bool one = p->chain >= p->images;
    if (one && p->images > 1) {
        mc_str_addf(out, "if (image == %" PRId64 ") {\n", p->images - 1);
    } else if (!one && p->chain > 1) {
        mc_str_addf(out, "if (image %% %" PRId64 " == %" PRId64 " || image == %" PRId64 ") {\n", p->chain,
                    p->chain - 1, p->images - 1);
    }
    for (int again = 0; again < (one ? 1 : 2); again++) {
        if (!one) {
            mc_str_addf(out, again ? "} else {\n" : "if (image < %" PRId64 ") {\n", p->chain);
        }
        mc_str_addf(out, "%s_%s(", again ? "add" : "copy", suffix(p));
        print_at(out, p, &c->to, memory, image_of(p, &c->to));
        mc_str_add(out, ", ");
        print_at(out, p, &c->from, memory, image_of(p, &c->from));
        mc_str_addf(out, ", g%zu);\n", i);
    }
    mc_str_add(out, one ? "" : "}\n");
    mc_str_add(out, (one ? p->images : p->chain) > 1 ? "}\n" : "");
}

static void print_call(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                       const char *const *memory, const struct mc_portable_after *after)
{
    static const struct {
        int numbers;
        void (*print)(struct mc_str *out, const struct mc_portable_program *p, size_t i,
                      const char *const *memory, const struct mc_portable_after *after);
    } kind[] = {
        [PORTABLE_COPY] = { 12, print_images },   [PORTABLE_COLUMNS] = { 12, print_images },
        [PORTABLE_BOX] = { 14, print_images },    [PORTABLE_DOTS] = { DOTS_NUMBERS, print_dots },
        [PORTABLE_OUTER] = { 7, print_outer },    [PORTABLE_TOTAL] = { 12, print_total },
        [PORTABLE_COL2IM] = { 21, print_images },
    };
    const struct mc_portable_call *c = &p->call.at[i];
    int64_t g[NELEM(c->g)];
    memcpy(g, c->g, sizeof g);
    g[3] = c->kind == PORTABLE_DOTS ? MC_MIN(p->step, p->images) : g[3];
    mc_str_addf(out, "static const int64_t g%zu[] = { ", i);
    print_numbers(out, g, kind[c->kind].numbers);
    mc_str_add(out, " };\n");
    if (c->noffset) {
        mc_str_addf(out, "static const int64_t o%zu[] = { ", i);
        print_numbers(out, c->offset, c->noffset);
        mc_str_add(out, " };\n");
    }
    kind[c->kind].print(out, p, i, memory, after);
}

bool mc_portable_has_parts(const struct mc_portable_program *p)
{
    bool good = p->step == 1 && p->images * p->groups * p->blocks > 1;
    for (size_t i = 0; i < p->call.n; i++) {
        good &= p->call.at[i].kind != PORTABLE_DOTS && p->call.at[i].kind != PORTABLE_OUTER;
    }
    return good;
}

bool mc_portable_can_finish(const struct mc_portable_program *p)
{
    int sums = 0, others = 0;
    for (size_t i = 0; i < p->call.n; i++) {
        const enum mc_portable_kind kind = p->call.at[i].kind;
        sums += kind == PORTABLE_COLUMNS || kind == PORTABLE_BOX;
        others += kind != PORTABLE_COLUMNS && kind != PORTABLE_BOX && kind != PORTABLE_COPY;
    }
    return sums == 1 && others == 0;
}

void mc_portable_print(struct mc_str *out, const struct mc_portable_program *p,
                       const char *const memory[PORTABLE_NMEMORY], const struct mc_portable_after *after)
{
    struct mc_c_text c = { out, 0 };
    mc_str_add(out, "{\n");
    mc_c_parallel(&c, false, (p->images > 1) + (p->groups > 1) + (p->blocks > 1), shared_work(p), "");
    if (p->zeros) {
        mc_str_addf(out, "memset(%s, 0, %zu);\n", memory[PORTABLE_WORKSPACE],
                    (size_t)p->zeros * mc_dtypes[p->dtype].size);
    }
    if (p->images > 1) {
        mc_str_addf(out, "for (int64_t image = 0; image < %" PRId64 "; image += %" PRId64 ") {\n", p->images,
                    p->step);
        if (p->step > 1) {
            mc_str_addf(out, "const int64_t end = image + %" PRId64, p->step);
            if (p->images % p->step) {
                mc_str_addf(out, " < %" PRId64 " ? image + %" PRId64 " : %" PRId64, p->images, p->step,
                            p->images);
            }
            mc_str_add(out, ";\n");
        }
    }
    if (p->groups > 1) {
        mc_str_addf(out, "for (int64_t group = 0; group < %" PRId64 "; group++) {\n", p->groups);
    }
    size_t i = 0;
    for (; i < p->call.n && !p->call.at[i].blocked; i++) {
        print_call(out, p, i, memory, after);
    }
    if (p->blocks > 1) {
        mc_str_addf(out, "for (int64_t block = 0; block < %" PRId64 "; block++) {\n", p->blocks);
    }
    for (; i < p->call.n; i++) {
        print_call(out, p, i, memory, after);
    }
    if (after && after->print) {
        after->print(after->arg, p->images > 1 ? "image" : "0", p->groups > 1 ? "group" : "0",
                     p->blocks > 1 ? "block" : "0");
    }
    mc_str_add(out, p->blocks > 1 ? "}\n" : "");
    mc_str_add(out, p->groups > 1 ? "}\n" : "");
    mc_str_add(out, p->images > 1 ? "}\n" : "");
    mc_str_add(out, "}\n");
}
