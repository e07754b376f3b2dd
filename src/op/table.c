/* table.c: all ops as one list.  Made once, at first use: signatures are parsed, names indexed. */
#include "op/op.h"
#include <stdlib.h>

#define DX(a, b, c) { a, b, c, NULL }
static const struct mc_op scalars[] = {
#define OP(id, n, ty, fl, src, da, db, dc, l, h, text)                                             \
    { .name = #id, .arity = n, .typing = TYPE_##ty, .flags = fl, .nout = 1, .code = #src, .dx = DX(da, db, dc), .lo = l, \
      .hi = h, .doc = text, .params = n == 1 ? "a" : n == 2 ? "a, b" : "a, b, c", .infer = mc_scalar_infer,              \
      .size = mc_scalar_size, .eval = mc_scalar_eval },
#define OPI(id, n, ty, fl, src, isrc, da, db, dc, l, h, text)                                      \
    { .name = #id, .arity = n, .typing = TYPE_##ty, .flags = fl, .nout = 1, .code = #src, .icode = #isrc,               \
      .dx = DX(da, db, dc), .lo = l, .hi = h, .doc = text, .params = n == 1 ? "a" : n == 2 ? "a, b" : "a, b, c",         \
      .infer = mc_scalar_infer, .size = mc_scalar_size, .eval = mc_scalar_eval },
#include "op/ops.def"
#undef OP
#undef OPI
};
static const struct mc_op formulas[] = {
#define FORMULA(id, par, fl, n, text, d0, d1, says)                                                \
    { .name = #id, .params = par, .flags = fl, .nout = n, .formula = text, .dx = DX(d0, d1, NULL), .doc = says,          \
      .infer = mc_formula_infer, .eval = mc_formula_eval },
#include "op/formulas.def"
#undef FORMULA
};

enum { MOST = 512 };
static struct mc_op table[MOST];
static int ntable;
static struct mc_arena memory;
static struct mc_dict by_name;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool made;

static bool add(const struct mc_op *row, int n)
{
    for (int i = 0; i < n && ntable < MOST; i++) {
        struct mc_op *op = &table[ntable];
        struct mc_signature *sig = mc_arena_alloc(&memory, sizeof *sig);
        *op = row[i];
        op->index = ntable;
        if (!sig || mc_signature_parse(op->params, &memory, sig) < 0 || !mc_dict_put(&by_name, op->name, op)) {
            return false;
        }
        op->sig = sig;
        ntable++;
    }
    return true;
}

/* In the order of the table and of the manual. */
static const struct mc_op_family families[] = {
    { "Element by element", scalars, (int)NELEM(scalars) }, { "Formulas of other ops", formulas, (int)NELEM(formulas) },
    { "Shapes, axes, dtypes", mc_ops_shape, .count = &mc_nops_shape },
    { "Shapes, axes, dtypes", mc_ops_axes, .count = &mc_nops_axes },
    { "Over axes", mc_ops_reduce, .count = &mc_nops_reduce },
    { "Running over an axis", mc_ops_running, .count = &mc_nops_running },
    { "Slices", mc_ops_index, .count = &mc_nops_index },
    { "At index tensors", mc_ops_gather, .count = &mc_nops_gather },
    { "Side by side", mc_ops_join, .count = &mc_nops_join },
    { "Made from a shape", mc_ops_make, .count = &mc_nops_make },
    { "Products", mc_ops_product, .count = &mc_nops_product },
    { "Convolution", mc_ops_conv, .count = &mc_nops_conv },
    { "Convolution by its other names", mc_ops_conv_names, .count = &mc_nops_conv_names },
    { "cuda-convnet and Nervana", mc_ops_conv_kin, .count = &mc_nops_conv_kin },
    { "Images", mc_ops_image, .count = &mc_nops_image },
    { "Pooling", mc_ops_pool, .count = &mc_nops_pool }, { "Pooling", mc_ops_pool_draw, .count = &mc_nops_pool_draw },
    { "Pooling by its other names", mc_ops_pool_names, .count = &mc_nops_pool_names },
    { "Normalisation", mc_ops_norm, .count = &mc_nops_norm }, { "Normalisation", mc_ops_norm_batch, .count = &mc_nops_norm_batch },
    { "In order", mc_ops_sort, .count = &mc_nops_sort },
    { "Random", mc_ops_random, .count = &mc_nops_random },
    { "Effects", mc_ops_effect, .count = &mc_nops_effect },
};
static int family_end[NELEM(families)];

/* Makes the table unless it is there.  False: no memory now; the next caller tries again. */
static bool make(void)
{
    if (atomic_load_explicit(&made, memory_order_acquire)) {
        return true;
    }
    pthread_mutex_lock(&lock);
    bool ok = true;
    for (size_t i = 0; i < NELEM(families) && ok && !atomic_load(&made); i++) {
        ok = add(families[i].row, families[i].count ? *families[i].count : families[i].n);
        family_end[i] = ntable;
    }
    if (ok) {
        atomic_store_explicit(&made, true, memory_order_release);
    } else {
        mc_dict_free(&by_name);
        mc_arena_free(&memory);
        ntable = 0;
    }
    pthread_mutex_unlock(&lock);
    return ok;
}

const char *mc_op_family(const struct mc_op *op)
{
    size_t i = 0;
    while (i + 1 < NELEM(families) && op->index >= family_end[i]) {
        i++;
    }
    return families[i].title;
}

const struct mc_op *mc_op_find(const char *name)
{
    return name && make() ? mc_dict_get(&by_name, name) : NULL;
}

const struct mc_op *mc_op_at(int i)
{
    return make() && i >= 0 && i < ntable ? &table[i] : NULL;
}

const struct mc_op *mc_op_scalar(const char *name)
{
    const struct mc_op *op = mc_op_find(name);
    return op && op->arity ? op : NULL;
}

int mc_op_count(void)
{
    return make() ? ntable : 0;
}

const char *mc_op_name(int i)
{
    const struct mc_op *op = mc_op_at(i);
    return op ? op->name : NULL;
}

const char *mc_op_doc(int i)
{
    const struct mc_op *op = mc_op_at(i);
    return op ? op->doc : NULL;
}
