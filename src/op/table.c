/* table.c: all ops in one table. It is made at first use: signatures are parsed, names indexed. */
#include "op/loop.h"
#include <stdlib.h>

enum { MOST = 1024 };
static struct mc_op table[MOST];
static int ntable;
static struct mc_arena memory;
static struct mc_dict by_name;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static atomic_bool made;

static bool add(const struct mc_op *row, int n)
{
    for (int i = 0; i < n; i++) {
        struct mc_op *op = &table[ntable];
        struct mc_signature *sig = mc_arena_alloc(&memory, sizeof *sig);
        *op = row[i];
        op->index = ntable;
        if (ntable + 1 >= MOST || !sig || mc_signature_parse(op->params, &memory, sig) < 0 ||
            !mc_dict_put(&by_name, op->name, op)) {
            return false;
        }
        op->sig = sig;
        ntable++;
    }
    return true;
}

enum { MOST_FAMILIES = 64 };
static int family_end[MOST_FAMILIES];

const struct mc_language mc_op_language = {
    .find = mc_op_find, .op = mc_op_at, .expand = mc_formula_expand, .forget = mc_custom_unref, .share = mc_custom_share, .scan = mc_loop_of_nodes, .read_body = mc_body_read,
};

/* Makes the table at the first call. False: out of memory; the next caller tries again. */
static bool make(void)
{
    if (atomic_load_explicit(&made, memory_order_acquire)) {
        return true;
    }
    pthread_mutex_lock(&lock);
    bool ok = true;
    mc_formula_language = &mc_op_language;
    for (int i = 0; i < mc_nop_families && ok && !atomic_load(&made); i++) {
        const struct mc_op_family *f = &mc_op_families[i];
        ok = i < MOST_FAMILIES && add(f->row, f->count ? *f->count : f->n);
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
    int i = 0;
    while (i + 1 < mc_nop_families && op->index >= family_end[i]) {
        i++;
    }
    return mc_op_families[i].title;
}

const char *mc_op_family_rules(const struct mc_op *op)
{
    const char *title = mc_op_family(op);
    int i = 0;
    while (strcmp(mc_op_families[i].title, title) != 0) {
        i++;
    }
    return mc_op_families[i].rules;
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
