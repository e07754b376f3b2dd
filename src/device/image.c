/* image.c: the kernel images of the bundles that are loaded. */
#include "device/image.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* protects `published` */
static struct mc_images *published;

struct mc_images *mc_images_new(void)
{
    struct mc_images *l = mc_calloc(1, sizeof *l, "kernels");
    if (l) {
        l->refs = 1;
    }
    return l;
}

struct mc_images *mc_images_ref(struct mc_images *l)
{
    if (l) {
        atomic_fetch_add(&l->refs, 1);
    }
    return l;
}

static void withdraw(const struct mc_images *l)
{
    struct mc_images **at = &published;
    while (*at && *at != l) {
        at = &(*at)->next;
    }
    if (*at) {
        *at = l->next;
    }
}

void mc_images_unref(struct mc_images **list)
{
    struct mc_images *l = *list;
    *list = NULL;
    if (!l || atomic_fetch_sub(&l->refs, 1) != 1) {
        return;
    }
    pthread_mutex_lock(&lock);
    withdraw(l);
    pthread_mutex_unlock(&lock);
    if (l->release) {
        l->release(l->arg);
    }
    VEC_FREE(l->image);
    mc_arena_free(&l->arena);
    mc_free(l);
}

void mc_images_publish(struct mc_images *l)
{
    pthread_mutex_lock(&lock);
    l->next = published;
    published = l;
    pthread_mutex_unlock(&lock);
}

bool mc_images_published(void)
{
    pthread_mutex_lock(&lock);
    const bool any = published != NULL;
    pthread_mutex_unlock(&lock);
    return any;
}

struct mc_key mc_image_text(const char *source, const char *options)
{
    const char *part[] = { options ? options : "", source };
    return mc_key(part, NELEM(part));
}

static bool same_text(const struct mc_image *i, struct mc_key text)
{
    return memcmp(&i->text, &text, sizeof text) == 0;
}

bool mc_images_have(const struct mc_images *l, struct mc_key text, const char *arch)
{
    for (size_t i = 0; i < l->image.n; i++) {
        if (same_text(&l->image.at[i], text) && strcmp(l->image.at[i].arch, arch) == 0) {
            return true;
        }
    }
    return false;
}

bool mc_image_find(struct mc_key text, int (*rank)(const char *arch, int device), int device,
                   struct mc_str *data, char arch[MC_IMAGE_ARCH])
{
    const struct mc_image *best = NULL;
    int most = 0;
    pthread_mutex_lock(&lock);
    for (const struct mc_images *l = published; l; l = l->next) {
        for (size_t i = 0; i < l->image.n; i++) {
            const struct mc_image *image = &l->image.at[i];
            const int r = same_text(image, text) ? rank(image->arch, device) : 0;
            best = r > most ? image : best;
            most = MC_MAX(most, r);
        }
    }
    if (best) {
        mc_str_addn(data, best->data, best->size);
        mc_snprintf(arch, MC_IMAGE_ARCH, "%s", best->arch);
    }
    pthread_mutex_unlock(&lock);
    return best != NULL;
}
