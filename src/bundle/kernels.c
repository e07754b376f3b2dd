/* kernels.c: the compiled kernels of a function in a bundle.  For the CPU, libraries for each set of
 * instructions; for a GPU, only into how many texts they are divided: the machine code is the bundle's
 * (images.c). */
#include "bundle/bundle.h"
#include "device/cpu/cpu.h"
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include "exec/kernels.h"

/* ---- libraries ---- */

/* Are the kernels of steps compiled?  In mode FAST_COMPILE only those of users' ops are. */
static bool compiles_steps(const struct mc_code_unit *u)
{
    return u->mode != MODE_FAST_COMPILE;
}

/* The bytes of a library, which stay until the file is written. */
static void write_image(struct mc_wire *w, const struct mc_str *image)
{
    const int64_t dims[] = { (int64_t)image->n };
    mc_array *kept = mc_wire_good(w) ? mc_array_from(MC_UINT8, 1, dims, image->s) : NULL;
    if (kept && VEC_PUSH(w->kept, kept)) {
        const char *data = kept->data;
        size_t n = image->n;
        mc_wire_blob(w, &data, &n);
    } else {
        w->status = w->status < 0 ? w->status : MC_EMEMORY;
        mc_array_unref(&kept);
    }
}

static void read_image(struct mc_wire *w, struct mc_code **lib)
{
    const char *image;
    size_t size;
    mc_status s = MC_OK;
    mc_wire_blob(w, &image, &size);
    if (lib && mc_wire_good(w)) {
        *lib = mc_code_open(image, size, &s);
        if (s < 0) {
            w->status = mc_fail(s, "%s: %s", w->what, mc_last_error());
        }
    }
}

/* The form of each step's kernel.  Reading: into p, or past it. */
static void forms(struct mc_wire *w, const struct mc_kernel_set *set, const struct mc_program *p, bool use)
{
    for (size_t i = 0; i < p->step.n && mc_wire_good(w); i++) {
        struct mc_kernel *k = p->step.at[i].kernel;
        if (!k) {
            continue;
        }
        const struct mc_kernel_form have = w->reading ? (struct mc_kernel_form){ 0 } : set->form.at[i];
        const bool wide = mc_wire_bool(w, have.wide);
        const unsigned never = (unsigned)mc_wire_int(w, (int)have.never, 0, INT32_MAX);
        if (w->reading && use) {
            k->wide = wide;
            k->never = never;
        }
    }
}

/* A set of instructions: its name, the compiler's flags that a processor must have, the kernels' forms,
 * libraries, a library of users' ops. */
static void write_level(struct mc_wire *w, const struct mc_function *f, const char *level)
{
    struct mc_code_unit *u = f->code;
    struct mc_str needs = { 0 }, custom = { 0 };
    struct mc_kernel_set set = { .level = level };
    mc_cpu_level(level, &needs);
    const char *flags = needs.s ? needs.s : "";
    mc_status s = needs.bad ? MC_EMEMORY : MC_OK;
    s = s == MC_OK && compiles_steps(u) ? mc_kernel_set_make(&set, &u->program, flags) : s;
    w->status = s == MC_OK && mc_custom_kernels(u->graph) ? mc_custom_image(u->graph, level, &custom) : s;
    mc_wire_text(w, &level);
    mc_wire_text(w, &flags);
    if (mc_wire_good(w) && compiles_steps(u)) {
        forms(w, &set, &u->program, true);
    }
    mc_wire_int(w, (int)set.image.n, 0, MC_TEXTS);
    for (size_t i = 0; i < set.image.n; i++) {
        write_image(w, &set.image.at[i]);
    }
    if (mc_wire_bool(w, custom.n > 0)) {
        write_image(w, &custom);
    }
    mc_kernel_set_free(&set);
    mc_str_free(&custom);
    mc_str_free(&needs);
}

/* Loads the libraries of the first set that this processor has; adds the name of the set to the list. */
static void read_level(struct mc_wire *w, struct mc_code_unit *u, bool *found, struct mc_str *sets)
{
    const char *level = NULL, *needs = NULL;
    mc_wire_text(w, &level);
    mc_wire_text(w, &needs);
    mc_str_addf(sets, "%s%s", sets->n ? ", " : "", level ? level : "");
    const bool use = mc_wire_good(w) && !*found && needs && mc_cpu_has(needs);
    if (compiles_steps(u)) {
        forms(w, NULL, &u->program, use);
    }
    const int n = mc_wire_int(w, 0, 0, compiles_steps(u) ? MC_TEXTS : 0);
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        read_image(w, use ? &u->lib[i] : NULL);
    }
    if (mc_wire_bool(w, false)) {
        read_image(w, use ? &u->custom : NULL);
    }
    *found |= use;
}

/* Copies the first word of a comma-separated list.  What follows it; NULL: nothing. */
static const char *next_word(const char *list, char word[64])
{
    const size_t n = strcspn(list, ",");
    mc_snprintf(word, 64, "%.*s", (int)MC_MIN(n, 63), list);
    return list[n] ? list + n + 1 : NULL;
}

mc_status mc_bundle_isa(const char *isa)
{
    char word[64];
    for (const char *at = isa; at;) {
        struct mc_str flags = { 0 };
        at = next_word(at, word);
        const bool known = mc_cpu_level(word, &flags), several = !known && mc_cpu_level("sse2", &flags);
        mc_str_free(&flags);
        if (!*word) {
            return mc_fail(MC_EARG, "bundle_save: an empty word of isa = \"%s\" names no instruction set",
                           isa);
        }
        if (!known) {
            return mc_fail(MC_EARG, "bundle_save: there is no instruction set '%s'; there are native%s", word,
                           several ? ", avx512, avx2 and sse2" : "");
        }
    }
    return MC_OK;
}

static void levels(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u, const char *isa)
{
    char word[64];
    int n = 0;
    bool found = false;
    struct mc_str sets = { 0 };
    for (const char *at = isa; at; at = next_word(at, word)) {
        n++;
    }
    n = mc_wire_int(w, n, 0, INT32_MAX);
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        if (f) {
            isa = next_word(isa, word);
            write_level(w, f, word);
        } else {
            read_level(w, u, &found, &sets);
        }
    }
    if (w->reading && mc_wire_good(w) && n && !found) {
        w->status = mc_fail(
            MC_EFORMAT,
            "%s has kernels for other processors only (%s); save it with the instruction sets "
            "that are needed: isa = \"avx512,avx2,sse2\"",
            w->what, sets.s ? sets.s : "");
    }
    mc_str_free(&sets);
    mc_status s = w->reading && mc_wire_good(w) ? mc_find_kernels(u) : MC_OK;
    s = s == MC_OK && w->reading && mc_wire_good(w) && u->custom ? mc_custom_find(u->graph, u->custom) : s;
    if (s == MC_EMEMORY) {
        w->status = s;
    } else if (s < 0) {
        mc_wire_fail(w, mc_last_error());
    }
}

/* ---- on a GPU ---- */

/* Its images are published, so that they are found as if they had been compiled. */
static void load_images(struct mc_wire *w, struct mc_code_unit *u)
{
    mc_status s = mc_device_enter(u->device);
    if (s == MC_OK) {
        s = u->backend->kernels(u);
        mc_device_leave(u->device);
    }
    w->status = s < 0 ? mc_fail_again("%s: ", w->what) : w->status;
}

/* ---- both ---- */

void mc_wire_kernels(struct mc_wire *w, const struct mc_function *f, struct mc_code_unit *u, const char *isa)
{
    MC_WIRE_INT(w, u->texts, 0, MC_MOST_TEXTS);
    if (u->backend == &mc_backend_cpu) {
        levels(w, f, u, !f || compiles_steps(u) || mc_custom_kernels(u->graph) ? isa : NULL);
    } else if (w->reading && mc_wire_good(w)) {
        load_images(w, u);
    }
}
