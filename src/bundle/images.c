/* images.c: the machine code for GPUs in a bundle.  Texts are made again from the program when it is loaded
 * and when a shape is planned, as if they were to be compiled; the device finds their images by hash. */
#include "bundle/bundle.h"
#include "exec/backend.h"

mc_status mc_bundle_images(mc_function *f, const char *archs, struct mc_bundle_shared *s)
{
    const struct mc_backend *b = f->code->backend;
    if (!b || !b->images) {
        return MC_OK;
    }
    s->images = s->images ? s->images : mc_images_new();
    return s->images ? b->images(f, archs, s->images) : MC_EMEMORY;
}

static void image(struct mc_wire *w, struct mc_image *i)
{
    mc_wire_bytes(w, i->text.at, sizeof i->text.at);
    mc_wire_text(w, &i->arch);
    mc_wire_blob(w, &i->data, &i->size);
    if (w->reading && mc_wire_good(w) && (!i->arch || !i->size)) {
        mc_wire_fail(w, "machine code for a GPU is not there");
    }
}

/* The list, which keeps the file's memory. */
static struct mc_images *start(struct mc_wire *w)
{
    struct mc_images *l = mc_images_new();
    if (!l) {
        w->status = MC_EMEMORY;
        return NULL;
    }
    w->retain(w->arg);
    l->release = w->release;
    l->arg = w->arg;
    return l;
}

static void read_images(struct mc_wire *w, struct mc_images *l, int n)
{
    struct mc_arena *others = w->arena;
    w->arena = &l->arena;
    for (int i = 0; i < n && mc_wire_good(w); i++) {
        struct mc_image one = { .data = NULL };
        image(w, &one);
        if (mc_wire_good(w) && !VEC_PUSH(l->image, one)) {
            w->status = MC_EMEMORY;
        }
    }
    w->arena = others;
}

void mc_wire_images(struct mc_wire *w, struct mc_bundle_shared *s)
{
    const int n = mc_wire_int(w, s->images ? (int)s->images->image.n : 0, 0, INT32_MAX);
    if (!w->reading) {
        for (int i = 0; i < n; i++) {
            image(w, &s->images->image.at[i]);
        }
        return;
    }
    if (!n || !mc_wire_good(w)) {
        return;
    }
    struct mc_images *l = s->images = start(w);
    if (l) {
        read_images(w, l, n);
    }
    if (mc_wire_good(w)) {
        mc_images_publish(l);
    }
}

static bool named_before(const struct mc_images *l, size_t at)
{
    for (size_t i = 0; i < at; i++) {
        if (strcmp(l->image.at[i].arch, l->image.at[at].arch) == 0) {
            return true;
        }
    }
    return false;
}

mc_status mc_bundle_fits(const struct mc_images *images, const struct mc_code_unit *u, const char *what)
{
    struct mc_str archs = { 0 };
    mc_status s = MC_OK;
    for (size_t i = 0; images && i < images->image.n; i++) {
        if (u->backend->image_rank(u->device, images->image.at[i].arch)) {
            mc_str_free(&archs);
            return MC_OK;
        }
        if (!named_before(images, i)) {
            mc_str_addf(&archs, "%s%s", archs.n ? ", " : "", images->image.at[i].arch);
        }
    }
    if (archs.n || archs.bad) {
        s = mc_fail(
            MC_EFORMAT,
            "%s has kernels for other GPUs than %s only (%s); save it with the architectures that are "
            "needed: gpu = \"sm_90,sm_80\"",
            what, u->device->name, archs.s ? archs.s : "");
    }
    mc_str_free(&archs);
    return s;
}
