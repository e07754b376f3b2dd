/* file.c: the file of a bundle: header, variables, functions, blobs.
 *
 * Invariant: what is written is complete or not there at all; a load that fails makes nothing. */
#include "bundle/bundle.h"
#include "schedule/schedule.h"
#include <stdlib.h>

static const char magic[8] = { 'M', 'C', 'B', 'U', 'N', 'D', 'L', 'E' };

static size_t aligned(size_t n)
{
    return (n + MC_BUNDLE_ALIGN - 1) / MC_BUNDLE_ALIGN * MC_BUNDLE_ALIGN;
}

struct notes { mc_bundle_note *at; int n; };

static void notes(struct mc_wire *w, struct notes *l)
{
    l->n = mc_wire_int(w, l->n, 0, INT32_MAX);
    l->at = mc_wire_list(w, l->at, l->n, sizeof *l->at);
    for (int i = 0; i < l->n && mc_wire_good(w); i++) {
        mc_wire_text(w, &l->at[i].key);
        mc_wire_text(w, &l->at[i].text);
    }
}

/* Variables, machine code for GPUs, functions. */
static void contents(struct mc_wire *w, struct mc_bundle_shared *s, mc_function **f, int *n, int most,
                     const char *isa)
{
    mc_wire_shared(w, s);
    mc_wire_images(w, s);
    *n = mc_wire_int(w, *n, 1, INT32_MAX);
    for (int i = 0; i < *n && i < most && mc_wire_good(w); i++) {
        mc_wire_function(w, &f[i], s, isa);
    }
}

/* ---- saving ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp((*(struct mc_shared *const *)a)->name, (*(struct mc_shared *const *)b)->name);
}

/* The variables of all functions, each once, by name. */
static mc_status collect(const mc_bundle_spec *spec, struct mc_bundle_shared *s)
{
    int most = 0, n = 0;
    for (int i = 0; i < spec->nfunction; i++) {
        most += spec->function[i]->nshared;
    }
    s->at = mc_alloc(((size_t)most + 1) * sizeof(struct mc_shared *), "bundle");
    if (!s->at) {
        return MC_EMEMORY;
    }
    for (int i = 0; i < spec->nfunction; i++) {
        for (int k = 0; k < spec->function[i]->nshared; k++) {
            int at = 0;
            while (at < n && s->at[at] != spec->function[i]->shared[k]) {
                at++;
            }
            s->at[at] = spec->function[i]->shared[k];
            n += at == n;
        }
    }
    s->n = n;
    qsort(s->at, (size_t)n, sizeof(struct mc_shared *), by_name);
    return MC_OK;
}

static uint64_t sum_of_blobs(const struct mc_wire *w)
{
    struct mc_bundle_sum sum = { 0 };
    for (size_t i = 0; i < w->blob.n; i++) {
        mc_bundle_sum_add(&sum, w->blob.at[i].data, w->blob.at[i].n);
    }
    return mc_bundle_sum_end(&sum);
}

static mc_status write_file(struct mc_wire *w, const char *path)
{
    static const char zeros[MC_BUNDLE_ALIGN];
    struct mc_bundle_header h = { .format = MC_BUNDLE_FORMAT, .order = 1, .description = w->out.n };
    const size_t front = aligned(sizeof h + w->out.n);
    memcpy(h.magic, magic, sizeof magic);
    mc_snprintf(h.version, sizeof h.version, "%s", MC_VERSION);
    h.size = front + w->blobs;
    h.sums[0] = mc_bundle_checksum(w->out.s, w->out.n);
    h.sums[1] = sum_of_blobs(w);
    struct mc_piece *piece = mc_alloc((w->blob.n + 3) * sizeof *piece, "bundle");
    if (!piece) {
        return MC_EMEMORY;
    }
    piece[0] = (struct mc_piece){ &h, sizeof h };
    piece[1] = (struct mc_piece){ w->out.s, w->out.n };
    piece[2] = (struct mc_piece){ zeros, front - sizeof h - w->out.n };
    if (w->blob.n) {
        memcpy(piece + 3, w->blob.at, w->blob.n * sizeof *piece);
    }
    mc_status s = mc_file_write_pieces(path, piece, w->blob.n + 3);
    mc_free(piece);
    return s;
}

mc_status mc_bundle_save(const mc_bundle_spec *spec)
{
    struct mc_bundle_shared shared = { 0 };
    struct mc_str what = { 0 };
    if (!spec || !spec->path || spec->nfunction < 1 || !spec->function) {
        return mc_fail(MC_EARG, "bundle_save: %s",
                       !spec         ? "the spec is NULL"
                       : !spec->path ? "there is no path"
                                     : "there is no function");
    }
    for (int i = 0; i < spec->nfunction; i++) {
        if (!spec->function[i]) {
            return mc_fail(MC_EARG, "bundle_save: function %d is NULL", i);
        }
    }
    if (spec->nnote < 0) {
        return mc_fail(MC_EARG, "bundle_save: %d notes", spec->nnote);
    }
    for (int i = 0; i < spec->nnote; i++) {
        if (!spec->note || !spec->note[i].key || !spec->note[i].text) {
            return mc_fail(MC_EARG, "bundle_save: note %d has no %s", i,
                           spec->note && spec->note[i].key ? "text" : "key");
        }
    }
    const char *isa = spec->isa ? spec->isa : "native";
    TRY(mc_bundle_isa(isa));
    mc_str_addf(&what, "bundle '%s'", spec->path);
    int n = spec->nfunction;
    struct mc_wire w = { .what = what.s ? what.s : "bundle" };
    mc_function **f = mc_alloc((size_t)n * sizeof *f, "bundle");
    w.status = f && !what.bad ? collect(spec, &shared) : MC_EMEMORY;
    if (mc_wire_good(&w)) {
        memcpy(f, spec->function, (size_t)n * sizeof *f);
    }
    for (int i = 0; i < n && mc_wire_good(&w); i++) {
        w.status = mc_bundle_images(f[i], spec->gpu, &shared);
    }
    if (mc_wire_good(&w)) {
        notes(&w, &(struct notes){ (mc_bundle_note *)spec->note, spec->nnote });
        contents(&w, &shared, f, &n, n, isa);
    }
    mc_status s = w.status < 0 ? w.status : w.out.bad ? MC_EMEMORY : write_file(&w, spec->path);
    mc_wire_free(&w);
    mc_images_unref(&shared.images);
    mc_free(shared.at);
    mc_free(f);
    mc_str_free(&what);
    return s;
}

mc_status mc_function_save(mc_function *f, const char *path)
{
    return mc_bundle_save(&(mc_bundle_spec){ .path = path, .nfunction = 1, .function = &f });
}

/* ---- loading ---- */

/* The bytes of a file, for as long as arrays lie in them. */
struct image {
    _Atomic int refs;
    char *data;
    size_t n;
};

static void retain(void *arg)
{
    struct image *m = arg;
    atomic_fetch_add(&m->refs, 1);
}

static void release(void *arg)
{
    struct image *m = arg;
    if (atomic_fetch_sub(&m->refs, 1) == 1) {
        mc_file_unmap(m->data, m->n);
        mc_free(m);
    }
}

static bool all_zeros(const char *p, size_t n)
{
    while (n && !*p) {
        p++, n--;
    }
    return n == 0;
}

/* NULL: the file is as it was written. */
static const char *flaw_of_header(const struct image *m, const struct mc_bundle_header *h)
{
    if (m->n < sizeof *h || memcmp(h->magic, magic, sizeof magic) != 0) {
        return "is no bundle";
    }
    const size_t version = strlen(MC_VERSION);
    if (h->format != MC_BUNDLE_FORMAT || h->order != 1 || memcmp(h->version, MC_VERSION, version) != 0 ||
        !all_zeros(h->version + version, sizeof h->version - version)) {
        return "was made by another version of Monochord or on another kind of machine; save it again";
    }
    if (h->size != m->n || h->description > m->n - sizeof *h ||
        aligned(sizeof *h + (size_t)h->description) > m->n) {
        return "is incomplete";
    }
    const char *text = m->data + sizeof *h;
    const size_t end = sizeof *h + (size_t)h->description, front = aligned(end);
    if (!all_zeros(m->data + end, front - end) ||
        mc_bundle_checksum(text, (size_t)h->description) != h->sums[0] ||
        mc_bundle_checksum(m->data + front, m->n - front) != h->sums[1]) {
        return "is damaged: a checksum differs";
    }
    return NULL;
}

static mc_status open_image(const char *path, struct image **at)
{
    struct image *m = *at = mc_calloc(1, sizeof *m, "bundle");
    struct mc_bundle_header h = { 0 };
    if (!m) {
        return MC_EMEMORY;
    }
    m->refs = 1;
    TRY(mc_file_map(path, &m->data, &m->n));
    if (m->n >= sizeof h) {
        memcpy(&h, m->data, sizeof h);
    }
    const char *flaw = flaw_of_header(m, &h);
    return flaw ? mc_fail(MC_EFORMAT, "'%s' %s", path, flaw) : MC_OK;
}

static struct mc_wire reader(struct image *m, const char *what, struct mc_arena *arena)
{
    struct mc_bundle_header h;
    memcpy(&h, m->data, sizeof h);
    const size_t front = aligned(sizeof h + (size_t)h.description);
    const char *at = m->data + sizeof h;
    return (struct mc_wire){ .reading = true,
                             .at = at,
                             .end = at + h.description,
                             .arena = arena,
                             .what = what,
                             .memory = m->data + front,
                             .blobs = m->n - front,
                             .release = release,
                             .retain = retain,
                             .arg = m };
}

static mc_status load(struct image *m, const char *what, int *n, int most, mc_function **f)
{
    struct mc_arena arena = { 0 };
    struct mc_bundle_shared shared = { 0 };
    struct mc_wire w = reader(m, what, &arena);
    notes(&w, &(struct notes){ 0 });
    contents(&w, &shared, f, n, most, NULL);
    if (mc_wire_good(&w) && *n <= most && w.at != w.end) {
        mc_wire_fail(&w, "its description is longer than its contents");
    }
    for (int i = 0; i < shared.n && shared.at; i++) {
        mc_shared_unref(&shared.at[i]); /* the functions have references of their own */
    }
    mc_images_unref(&shared.images);
    mc_arena_free(&arena);
    return w.status;
}

int mc_bundle_load(const char *path, int n, mc_function **functions)
{
    struct image *m = NULL;
    struct mc_str what = { 0 };
    int have = 0;
    if (!path || n < 0 || (n && !functions)) {
        return mc_fail(MC_EARG, "bundle_load: there is no %s", !path ? "path" : "array of functions");
    }
    for (int i = 0; i < n; i++) {
        functions[i] = NULL;
    }
    mc_here(NULL, 0); /* no line of the user's makes the nodes */
    mc_str_addf(&what, "bundle '%s'", path);
    mc_status s = mc_flags_status();
    s = s < 0 ? s : what.bad ? MC_EMEMORY : open_image(path, &m);
    s = s < 0 ? s : load(m, what.s, &have, n, functions);
    for (int i = 0; i < n && s < 0; i++) {
        mc_function_free(functions[i]);
        functions[i] = NULL;
    }
    if (m) {
        release(m);
    }
    mc_str_free(&what);
    return s < 0 ? (int)s : have;
}

char *mc_bundle_text(const char *path, const char *key)
{
    struct image *m = NULL;
    struct mc_arena arena = { 0 };
    struct notes l = { 0 };
    char *text = NULL;
    if (!key) {
        mc_fail(MC_EARG, "bundle_text: the key is NULL");
    } else if (open_image(path, &m) == MC_OK) {
        struct mc_wire w = reader(m, path, &arena);
        notes(&w, &l);
        for (int i = 0; i < l.n && mc_wire_good(&w) && !text; i++) {
            text = l.at[i].key && l.at[i].text && strcmp(l.at[i].key, key) == 0 ? mc_strdup(l.at[i].text)
                                                                                : NULL;
        }
        if (mc_wire_good(&w) && !text) {
            mc_fail(MC_EARG, "bundle '%s' has no text '%s'", path, key);
        }
    }
    if (m) {
        release(m);
    }
    mc_arena_free(&arena);
    return text;
}

mc_function *mc_function_load(const char *path)
{
    mc_function *f = NULL;
    return mc_bundle_load(path, 1, &f) < 0 ? NULL : f;
}
