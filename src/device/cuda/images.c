/* images.c: texts to machine code for several architectures, for bundles; and what such machine code runs on.
 *
 * Invariant: no GPU is needed or entered here. */
#include "device/cuda/driver.h"
#include <stdlib.h>

enum { HOPPER = 90 };

/* ---- architectures ---- */

/* The number after the prefix, and whether "a" ends the word; 0: it is no such word. */
static int read_arch(const char *word, const char *prefix, bool *own)
{
    const size_t n = strlen(prefix);
    const size_t digits = strncmp(word, prefix, n) == 0 ? strspn(word + n, "0123456789") : 0;
    const char *rest = word + n + digits;
    *own = digits && strcmp(rest, "a") == 0;
    return digits && digits < 5 && (*own || !*rest) ? atoi(word + n) : 0;
}

/* Machine code runs on its own generation from its own GPU on, that of sm_90a on Hopper alone.  PTX would run
 * on every later GPU, but texts compiled for one before Hopper lack what launches on Hopper rely on. */
int mc_cuda_arch_rank(const char *arch, int sm)
{
    bool own;
    int of = read_arch(arch, "compute_", &own);
    if (of && !own && of <= sm && (of >= HOPPER || sm < HOPPER)) {
        return 1;
    }
    of = read_arch(arch, "sm_", &own);
    return of && (of == sm || (!own && of / 10 == sm / 10 && of < sm)) ? 1 + of : 0;
}

struct archs { int sm[MC_CUDA_ARCHS], n; };

/* One word: "native", that of the device, or as "sm_80". */
static mc_status add_arch(struct archs *a, const char *word, int native)
{
    bool own = false;
    const int sm = strcmp(word, "native") == 0 ? native : read_arch(word, "sm_", &own);
    if (!sm || (own && sm != HOPPER)) {
        return mc_fail(
            MC_EARG,
            "bundle_save: there is no architecture '%s'; there are native, sm_80, sm_90 and the like", word);
    }
    if (a->n == MC_CUDA_ARCHS) {
        return mc_fail(MC_EARG, "bundle_save: gpu names more than %d architectures", MC_CUDA_ARCHS);
    }
    a->sm[a->n++] = sm;
    return MC_OK;
}

static mc_status read_archs(struct archs *a, const char *list, int native)
{
    for (const char *at = list ? list : "native"; at;) {
        const size_t n = strcspn(at, ",");
        char word[MC_IMAGE_ARCH];
        mc_snprintf(word, sizeof word, "%.*s", (int)MC_MIN(n, sizeof word - 1), at);
        TRY(add_arch(a, word, native));
        at = at[n] ? at + n + 1 : NULL;
    }
    return MC_OK;
}

/* ---- making images ---- */

static mc_status add_image(struct mc_images *list, const struct mc_cuda_input *in,
                           const struct mc_cuda_job *j)
{
    const char *arch = mc_cuda_job_arch(j);
    const struct mc_image image = { .text = mc_image_text(in->source, in->options),
                                    .arch = mc_arena_str(&list->arena, arch, strlen(arch)),
                                    .data = mc_arena_copy(&list->arena, j->image.s, j->image.n),
                                    .size = j->image.n };
    return image.arch && image.data && VEC_PUSH(list->image, image) ? MC_OK : MC_EMEMORY;
}

/* Those of up to MC_CUDA_TEXTS texts, at the same time. */
static mc_status add_images(int native, int n, const struct mc_cuda_input *in, int sm, struct mc_images *list)
{
    struct mc_cuda_job j[MC_CUDA_TEXTS] = { 0 }, *missing[MC_CUDA_TEXTS];
    mc_status s = MC_OK;
    int left = 0;
    for (int i = 0; i < n && s == MC_OK; i++) {
        s = mc_cuda_job_begin(&j[i], in[i].source, in[i].options, sm);
        if (s == MC_OK && j[i].portable && sm != native) {
            s = mc_fail(MC_EARG, "bundle_save: NVRTC does not know the architecture sm_%d", sm);
        }
        const struct mc_key text = mc_image_text(in[i].source, in[i].options);
        if (s == MC_OK && !mc_images_have(list, text, mc_cuda_job_arch(&j[i]))) {
            missing[left++] = &j[i];
        }
    }
    s = s < 0 ? s : mc_cuda_job_images(missing, left);
    for (int i = 0; i < left && s == MC_OK; i++) {
        s = add_image(list, &in[missing[i] - j], missing[i]);
    }
    for (int i = 0; i < n; i++) {
        mc_cuda_job_free(&j[i]);
    }
    return s;
}

mc_status mc_cuda_images(int native, size_t n, const struct mc_cuda_input *in, const char *archs,
                         struct mc_images *list)
{
    struct archs a = { .n = 0 };
    TRY(read_archs(&a, archs, native));
    for (int k = 0; k < a.n; k++) {
        for (size_t i = 0; i < n; i += MC_CUDA_TEXTS) {
            TRY(add_images(native, (int)MC_MIN(n - i, (size_t)MC_CUDA_TEXTS), in + i, a.sm[k], list));
        }
    }
    return MC_OK;
}

/* ---- check: the driver is not told how long machine code is ---- */

enum { ELF_HEADER = 64, ELF_SECTION = 64, ELF_NO_DATA = 8 };

static uint64_t number(const char *p, size_t bytes)
{
    uint64_t v = 0;
    memcpy(&v, p, bytes); /* GPUs and their hosts are little-endian */
    return v;
}

static bool within(const struct mc_str *image, uint64_t at, uint64_t bytes)
{
    return at <= image->n && bytes <= image->n - at;
}

/* Are an ELF file's tables and sections in the image?  Other images are texts. */
static bool complete(const struct mc_str *image)
{
    if (image->n < 4 || memcmp(image->s, "\177ELF", 4) != 0) {
        return true;
    }
    if (image->n < ELF_HEADER) {
        return false;
    }
    const uint64_t segments = number(image->s + 32, 8), sections = number(image->s + 40, 8),
                   nsegment = number(image->s + 56, 2), nsection = number(image->s + 60, 2);
    if (!within(image, segments, nsegment * number(image->s + 54, 2)) ||
        number(image->s + 58, 2) != ELF_SECTION || !within(image, sections, nsection * ELF_SECTION)) {
        return false;
    }
    for (uint64_t i = 0; i < nsection; i++) {
        const char *section = image->s + sections + i * ELF_SECTION;
        if (number(section + 4, 4) != ELF_NO_DATA &&
            !within(image, number(section + 24, 8), number(section + 32, 8))) {
            return false;
        }
    }
    return true;
}

mc_status mc_cuda_image_check(const struct mc_str *image)
{
    return image->bad        ? MC_EMEMORY
           : complete(image) ? MC_OK
                             : mc_fail(MC_EFORMAT, "the machine code of a bundle is incomplete");
}
