/* image.h: kernel images: machine code that came with a bundle, by the text that it was compiled from.  A
 * device that compiles texts at run time looks here first.
 *
 * Invariant: what is found is copied, so no image is in use when its bundle is let go. */
#ifndef MC_IMAGE_H
#define MC_IMAGE_H

#include "device/cache.h"

enum { MC_IMAGE_ARCH = 32 };    /* bytes of an architecture's name */
struct mc_image {
    struct mc_key text;         /* of the text and its options: mc_image_text */
    const char *arch;           /* what it runs on, in its device's words: "sm_90a" */
    const char *data;
    size_t size;
};
struct mc_images {              /* those of one bundle; counted */
    struct mc_images *next;
    _Atomic int refs;
    struct mc_arena arena;      /* of words, and of data that is in no file */
    VEC(struct mc_image) image;
    void (*release)(void *arg); /* of the file that data is in; or NULL */
    void *arg;
};
struct mc_images *mc_images_new(void);                       /* with one reference; NULL: no memory */
struct mc_images *mc_images_ref(struct mc_images *l);
void mc_images_unref(struct mc_images **l);                  /* may be NULL */
/* From here on mc_image_find finds them, until the last reference is dropped. */
void mc_images_publish(struct mc_images *l);

struct mc_key mc_image_text(const char *source, const char *options);
/* Is there an image of the text for the architecture of that name in l? */
bool mc_images_have(const struct mc_images *l, struct mc_key text, const char *arch);
/* The published image of the text that a device runs best. rank: how well a device runs images for an
 * architecture; 0: not at all.  False: there is none.  True and data->bad: out of memory. */
bool mc_image_find(struct mc_key text, int (*rank)(const char *arch, int device), int device,
                   struct mc_str *data, char arch[MC_IMAGE_ARCH]);
bool mc_images_published(void);                              /* are there any? */

#endif
