/* conv_form.c: reads the attributes of a convolution: pass, border, meaning of each axis.
 *
 * Invariant: the attributes were checked when the node was made, so reading them again cannot fail. */
#include "op/conv_node.h"

const signed char mc_conv_operand[3][3] = {
    [CONV_FORWARD] = { 0, 1, -1 },  /* x, w -> y */
    [CONV_INPUTS] = { -1, 0, 1 },   /* w, y -> x */
    [CONV_WEIGHTS] = { 0, -1, 1 },  /* x, y -> w */
};
static const char *const names[] = { [CONV_FORWARD] = "conv", [CONV_INPUTS] = "conv_inputs", [CONV_WEIGHTS] = "conv_weights" };
enum { LARGEST = INT32_MAX }; /* the largest stride, dilation or border */

const char *mc_conv_name(enum mc_conv_pass pass)
{
    return names[pass];
}

int mc_conv_pass_of(const struct mc_op *op)
{
    for (int p = 0; p < (int)NELEM(names); p++) {
        if (strcmp(op->name, names[p]) == 0) {
            return p;
        }
    }
    return -1;
}

/* ---- borders ---- */

static int64_t none(int64_t e)
{
    (void)e;
    return 0;
}

static int64_t whole(int64_t e)
{
    return e - 1;
}

static int64_t half(int64_t e)
{
    return e / 2;
}

static int64_t less_half(int64_t e)
{
    return (e - 1) / 2;
}

static const struct mc_border borders[] = {
    { "valid",  none,      none,  "-e",             true },
    { "full",   whole,     whole, "e - 2",          true },
    { "half",   half,      half,  "2 * (e // 2) - e", false },
    /* y has ceil(i / s); for even e there is one more zero after than before */
    { "same",   less_half, half,  "-1",             false },
    { "causal", whole,     none,  "-1",             false }, /* y[t] reads x[..t] only */
};

const struct mc_border *mc_border_find(const char *name)
{
    for (size_t i = 0; i < NELEM(borders); i++) {
        if (strcmp(name, borders[i].name) == 0) {
            return &borders[i];
        }
    }
    return NULL;
}

/* ---- reading attributes ---- */

/* Reads one number for all axes, or one for each. */
static mc_status read_each(const char *what, const struct mc_attr *a, int nd, int64_t least, int64_t *slot)
{
    if (a->n != 1 && a->n != nd) {
        return mc_fail(MC_EARG, "%s has %d numbers; expected 1 or %d", what, a->n, nd);
    }
    for (int j = 0; j < 3; j++) {
        slot[j] = j < 3 - nd ? 1 : a->ints[a->n == 1 ? 0 : j - (3 - nd)];
        if (slot[j] < least || slot[j] > LARGEST) {
            return mc_fail(MC_EARG, "%s is %lld, and must be %s", what, (long long)slot[j],
                           slot[j] > LARGEST ? "less than 2^31"
                           : least           ? "at least 1"
                                             : "at least 0");
        }
    }
    return MC_OK;
}

static mc_status read_border(const struct mc_attr *a, struct mc_conv_form *f)
{
    int first = 3 - f->nd;
    if (a->text) {
        f->border = mc_border_find(a->text);
        return f->border ? MC_OK
                         : mc_fail(MC_EARG,
                                   "unknown border '%s'; expected valid, full, half, same, causal or numbers",
                                   a->text);
    }
    if (a->n != 1 && a->n != f->nd && a->n != 2 * f->nd) {
        return mc_fail(MC_EARG, "the border has %d numbers; expected 1, %d or %d pairs", a->n, f->nd, f->nd);
    }
    struct mc_attr side = { .n = f->nd };
    int64_t v[2][3];
    for (int i = 0; i < f->nd; i++) {
        v[0][i] = a->ints[a->n == 1 ? 0 : a->n == f->nd ? i : 2 * i];
        v[1][i] = a->ints[a->n == 1 ? 0 : a->n == f->nd ? i : 2 * i + 1];
    }
    side.ints = v[0];
    TRY(read_each("the border", &side, f->nd, 0, f->before));
    side.ints = v[1];
    TRY(read_each("the border", &side, f->nd, 0, f->behind));
    for (int j = 0; j < first; j++) {
        f->before[j] = f->behind[j] = 0;
    }
    return MC_OK;
}

/* Reads a layout such as 'bc01', 'b01c', 'c01b': the axis of each letter. w has its filters where x has b,
 * and its channels at c; y has its filters at c. An unshared w has the positions of y after its filters. */
static mc_status read_layout(const char *text, struct mc_conv_form *f)
{
    int at[5], rank = f->nd + 2, first = 3 - f->nd;
    const char *letters = "bc012";
    for (int i = 0; i < rank; i++) {
        const char *found = text ? strchr(text, letters[i]) : letters + i;
        if (!found || (text && strlen(text) != (size_t)rank)) {
            return mc_fail(MC_EARG, "layout '%s' is not a permutation of '%.*s'", text, rank, letters);
        }
        at[i] = (int)(found - (text ? text : letters));
    }
    for (int i = 0; i < 5; i++) { /* b, c, then the spatial axes */
        int axis = i < 2 ? at[i] : i - 2 < first ? -1 : at[i - first];
        f->x[i] = f->y[i] = axis;
        f->w[i] = axis > at[0] && f->unshared ? axis + f->nd : axis;
    }
    for (int j = 0; j < 3; j++) {
        f->w[5 + j] = f->unshared && j >= first ? at[0] + 1 + j - first : -1;
    }
    return MC_OK;
}

mc_status mc_conv_form_read(enum mc_conv_pass pass, int nd, const struct mc_attr *attr,
                            struct mc_conv_form *f)
{
    int64_t groups[3];
    *f = (struct mc_conv_form){ .pass = pass, .nd = nd };
    if (nd < 1 || nd > 3) {
        return mc_fail(MC_ESHAPE, "an operand has rank %d; expected 3, 4 or 5", nd + 2);
    }
    f->flip = mc_attr_int(&attr[CONV_FLIP]) != 0;
    f->unshared = mc_attr_int(&attr[CONV_UNSHARED]) != 0;
    f->ceil = mc_attr_int(&attr[CONV_CEIL]) != 0;
    TRY(read_border(&attr[CONV_BORDER], f));
    TRY(read_each("the stride", &attr[CONV_STRIDE], nd, 1, f->stride));
    TRY(read_each("the dilation", &attr[CONV_DILATION], nd, 1, f->dilation));
    TRY(read_each("the number of groups", &attr[CONV_GROUPS], 1, 1, groups));
    f->groups = groups[2];
    return read_layout(attr[CONV_LAYOUT].none ? NULL : attr[CONV_LAYOUT].text, f);
}

void mc_conv_form_of(const mc_node *n, struct mc_conv_form *f)
{
    enum mc_conv_pass pass = (enum mc_conv_pass)mc_conv_pass_of(n->op);
    mc_conv_form_read(pass, n->in[pass == CONV_INPUTS ? 1 : 0]->type.rank - 2, n->attr, f);
}

const int *mc_conv_axes(const struct mc_conv_form *f, int role)
{
    return role == CONV_X ? f->x : role == CONV_W ? f->w : f->y;
}

int mc_conv_rank(const struct mc_conv_form *f, int role)
{
    return f->nd + 2 + (role == CONV_W && f->unshared ? f->nd : 0);
}

/* ---- strides ---- */

static void pick(const int *axis, int n, const int64_t *from, int64_t unit, int64_t *to)
{
    for (int i = 0; i < n; i++) {
        to[i] = axis[i] < 0 ? 0 : from[axis[i]] / unit;
    }
}

void mc_conv_strides_of(const struct mc_node *n, const int64_t *x, const int64_t *w, const int64_t *y,
                        int64_t unit, struct mc_conv_strides *at)
{
    struct mc_conv_form f;
    mc_conv_form_of(n, &f);
    pick(f.x, 5, x, unit, at->x);
    pick(f.w, 8, w, unit, at->w);
    pick(f.y, 5, y, unit, at->y);
}

void mc_conv_result_axes(const mc_node *n, int axis[5])
{
    struct mc_conv_form f;
    mc_conv_form_of(n, &f);
    memcpy(axis,
           mc_conv_axes(&f, f.pass == CONV_FORWARD  ? CONV_Y
                            : f.pass == CONV_INPUTS ? CONV_X
                                                    : CONV_W),
           5 * sizeof *axis);
}
