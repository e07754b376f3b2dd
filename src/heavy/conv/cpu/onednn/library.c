/* library.c: finds oneDNN's functions in the installed library, and hides the differences of versions 2 and
 * 3.
 *
 * Invariant: a library is used only if every function of its version was found. */
#include "heavy/conv/cpu/onednn/library.h"
#include "heavy/gemm/cpu/library.h"

/* enough for version 2's structs, which have 696 and 5976 bytes */
enum { DESC_BYTES = 2048, OP_BYTES = 1 << 15 };

bool mc_onednn_open(struct dnnl_library *l)
{
    static const struct {
        const char *name;
        int version;
        size_t at;
    } functions[] = {
        { "dnnl_memory_desc_get_size", 0, offsetof(struct dnnl_library, memory_desc_get_size) },
        { "dnnl_primitive_desc_query_md", 0, offsetof(struct dnnl_library, primitive_desc_query_md) },
#define ROW(name, version, args) { "dnnl_" #name, version, offsetof(struct dnnl_library, name) },
        DNNL_FUNCTIONS(ROW)
#undef ROW
    };
    void *newer = NULL;
    *l = (struct dnnl_library){ .handle = mc_gemm_onednn_library() };
    if (!l->handle) {
        return false;
    }
    mc_library_gemm_find(l->handle, "dnnl_memory_desc_create_with_tag", (void *)&newer);
    l->version = newer ? 3 : 2;
    for (size_t i = 0; i < NELEM(functions); i++) {
        char *to = (char *)l + functions[i].at;
        void *none = NULL;
        if (functions[i].version == 0 || functions[i].version == l->version) {
            mc_library_gemm_find(l->handle, functions[i].name, to);
            if (memcmp(to, (void *)&none, sizeof none) == 0) {
                return false;
            }
        }
    }
    return true;
}

dnnl mc_onednn_desc(const struct dnnl_library *l, int n, const int64_t *dims, const int64_t *strides)
{
    dnnl desc = NULL;
    int failed;
    if (l->version == 3) {
        failed = strides ? l->memory_desc_create_with_strides(&desc, n, dims, DNNL_F32, strides)
                         : l->memory_desc_create_with_tag(&desc, n, dims, DNNL_F32, DNNL_ANY);
        return failed ? NULL : desc;
    }
    desc = mc_calloc(1, DESC_BYTES, "plans");
    if (!desc) {
        return NULL;
    }
    failed = strides ? l->memory_desc_init_by_strides(desc, n, dims, DNNL_F32, strides)
                     : l->memory_desc_init_by_tag(desc, n, dims, DNNL_F32, DNNL_ANY);
    if (failed) {
        mc_free(desc);
        desc = NULL;
    }
    return desc;
}

void mc_onednn_desc_free(const struct dnnl_library *l, dnnl desc)
{
    if (!desc) {
        return;
    }
    if (l->version == 3) {
        l->memory_desc_destroy(desc);
    } else {
        mc_free(desc);
    }
}

/* ---- a convolution's primitive descriptor ---- */

static dnnl make_2(const struct dnnl_library *l, const struct dnnl_conv *c, dnnl engine, dnnl attr, dnnl hint)
{
    void *op = mc_calloc(1, OP_BYTES, "plans");
    const dnnl *d = c->desc;
    dnnl pd = NULL;
    if (!op) {
        return NULL;
    }
    const int failed = c->pass == CONV_FORWARD
                           ? l->dilated_convolution_forward_desc_init(
                                 op, DNNL_TRAINING, c->algorithm, d[CONV_X], d[CONV_W], NULL, d[CONV_Y],
                                 c->strides, c->dilates, c->front, c->behind)
                       : c->pass == CONV_INPUTS
                           ? l->dilated_convolution_backward_data_desc_init(op, c->algorithm, d[CONV_X],
                                                                            d[CONV_W], d[CONV_Y], c->strides,
                                                                            c->dilates, c->front, c->behind)
                           : l->dilated_convolution_backward_weights_desc_init(
                                 op, c->algorithm, d[CONV_X], d[CONV_W], NULL, d[CONV_Y], c->strides,
                                 c->dilates, c->front, c->behind);
    if (failed || l->primitive_desc_create(&pd, op, attr, engine, hint)) {
        pd = NULL;
    }
    mc_free(op);
    return pd;
}

static dnnl make_3(const struct dnnl_library *l, const struct dnnl_conv *c, dnnl engine, dnnl attr, dnnl hint)
{
    const dnnl *d = c->desc;
    dnnl pd = NULL;
    const int failed = c->pass == CONV_FORWARD
                           ? l->convolution_forward_primitive_desc_create(
                                 &pd, engine, DNNL_TRAINING, c->algorithm, d[CONV_X], d[CONV_W], NULL,
                                 d[CONV_Y], c->strides, c->dilates, c->front, c->behind, attr)
                       : c->pass == CONV_INPUTS
                           ? l->convolution_backward_data_primitive_desc_create(
                                 &pd, engine, c->algorithm, d[CONV_X], d[CONV_W], d[CONV_Y], c->strides,
                                 c->dilates, c->front, c->behind, hint, attr)
                           : l->convolution_backward_weights_primitive_desc_create(
                                 &pd, engine, c->algorithm, d[CONV_X], d[CONV_W], NULL, d[CONV_Y], c->strides,
                                 c->dilates, c->front, c->behind, hint, attr);
    return failed ? NULL : pd;
}

static dnnl make(const struct dnnl_library *l, const struct dnnl_conv *c, dnnl engine, dnnl attr, dnnl hint)
{
    return l->version == 3 ? make_3(l, c, engine, attr, hint) : make_2(l, c, engine, attr, hint);
}

dnnl mc_onednn_conv(const struct dnnl_library *l, const struct dnnl_conv *c, dnnl engine, dnnl attr)
{
    if (c->pass == CONV_FORWARD) {
        return make(l, c, engine, attr, NULL);
    }
    struct dnnl_conv forward = *c; /* the primitives of gradients need the forward primitive descriptor */
    forward.pass = CONV_FORWARD;
    dnnl hint = make(l, &forward, engine, attr, NULL);
    dnnl pd = hint ? make(l, c, engine, attr, hint) : NULL;
    if (hint) {
        l->primitive_desc_destroy(hint);
    }
    return pd;
}
