/* conv_shape.c: the sizes of a convolution. The known sizes of x, w and y are collected; unknown ones
 * follow along each axis from
 *
 *     o = (i + p - e) // s + 1        e = (k - 1) * d + 1, the elements that the filter covers; p: zeros on
 *                                     both sides
 *
 * Invariant: -1 is an unknown size. Known sizes satisfy the formula, or there is an error. */
#include "op/conv_node.h"

enum { SHAPE = 2 }; /* the index of the input `shape` */

/* ---- sizes by meaning ---- */

void mc_conv_dims(const struct mc_conv_form *f, const struct mc_conv_shape *s, int role, int64_t *dims)
{
    const int *axis = mc_conv_axes(f, role);
    const int64_t *spatial = role == CONV_X ? s->in : role == CONV_W ? s->k : s->out;
    dims[axis[0]] = role == CONV_W ? s->f : s->n;
    dims[axis[1]] = role == CONV_X ? s->c : role == CONV_Y ? s->f : s->c < 0 ? -1 : s->c / s->groups;
    for (int j = 3 - f->nd; j < 3; j++) {
        dims[axis[2 + j]] = spatial[j];
        if (role == CONV_W && f->unshared) {
            dims[axis[5 + j]] = s->out[j];
        }
    }
}

/* Combines two statements of one size; an error if they differ. */
static mc_status agree(int64_t *size, int64_t also, const char *what, const char *a, const char *b)
{
    if (*size >= 0 && also >= 0 && *size != also) {
        return mc_fail(MC_ESHAPE, "%s has %lld %s, and %s has %lld", a, (long long)*size, what, b,
                       (long long)also);
    }
    *size = *size >= 0 ? *size : also;
    return MC_OK;
}

static mc_status put_x(const struct mc_conv_form *f, const int64_t *dims, struct mc_conv_shape *s)
{
    s->n = dims[f->x[0]];
    s->c = dims[f->x[1]];
    for (int j = 3 - f->nd; j < 3; j++) {
        s->in[j] = dims[f->x[2 + j]];
    }
    return MC_OK;
}

static mc_status put_w(const struct mc_conv_form *f, const int64_t *dims, struct mc_conv_shape *s)
{
    int64_t each = dims[f->w[1]], c = -1;
    if (s->c >= 0 && each >= 0 && (s->c % f->groups || s->c / f->groups != each)) {
        return f->groups == 1
                   ? mc_fail(MC_ESHAPE, "x has %lld channels, and w takes %lld", (long long)s->c,
                             (long long)each)
                   : mc_fail(MC_ESHAPE, "x has %lld channels, and w takes %lld in each of %lld groups",
                             (long long)s->c, (long long)each, (long long)f->groups);
    }
    if (each >= 0 && !mc_mul_i64(each, f->groups, &c)) {
        return mc_fail(MC_ESHAPE, "the sizes overflow");
    }
    TRY(agree(&s->c, c, "channels", "x", "w"));
    s->f = dims[f->w[0]];
    for (int j = 3 - f->nd; j < 3; j++) {
        s->k[j] = dims[f->w[2 + j]];
        s->out[j] = f->unshared ? dims[f->w[5 + j]] : -1;
    }
    return MC_OK;
}

static mc_status put_y(const struct mc_conv_form *f, const int64_t *dims, struct mc_conv_shape *s)
{
    TRY(agree(&s->n, dims[f->y[0]], "images", "x", "y"));
    TRY(agree(&s->f, dims[f->y[1]], "filters", "w", "y"));
    for (int j = 3 - f->nd; j < 3; j++) {
        TRY(agree(&s->out[j], dims[f->y[2 + j]], "positions along an axis", "w", "y"));
    }
    return MC_OK;
}

static mc_status put(const struct mc_conv_form *f, int role, const int64_t *dims, struct mc_conv_shape *s)
{
    return role == CONV_X ? put_x(f, dims, s) : role == CONV_W ? put_w(f, dims, s) : put_y(f, dims, s);
}

/* The sizes of the result that the input `shape` gives: all of them, or those of the spatial axes of x or
 * w. */
static mc_status wanted(const struct mc_infer *q, const struct mc_conv_form *f, int role, int64_t *dims)
{
    struct mc_type t;
    int rank = mc_conv_rank(f, role);
    TRY(mc_shape_wanted(q, SHAPE, MC_INT64, &t));
    if (t.rank != rank && t.rank != f->nd) {
        return mc_fail(MC_ESHAPE, "the shape has %d sizes; expected the %d spatial ones or all %d", t.rank,
                       f->nd, rank);
    }
    for (int i = 0; i < t.rank; i++) {
        dims[t.rank == rank ? i : mc_conv_axes(f, role)[2 + 3 - f->nd + i]] = t.dims[i];
    }
    return MC_OK;
}

/* ---- along one axis ---- */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

struct line { /* one axis; e: elements that the filter covers, p: zeros on both sides */
    int slot, axis;
    int64_t i, k, o, e, p;
};

static bool reach(const struct mc_conv_form *f, struct line *l)
{
    int64_t last;
    if (!mc_mul_i64(l->k - 1, f->dilation[l->slot], &last) || last > INT64_MAX / 8) {
        return false;
    }
    l->e = last + 1;
    l->p = f->border ? f->border->before(l->e) + f->border->behind(l->e)
                     : f->before[l->slot] + f->behind[l->slot];
    return true;
}

/* Solves for o = (i + p - e) // s + 1; errors print the formula and the numbers. */
static mc_status forward(const struct mc_conv_form *f, struct line *l, const char *also)
{
    int64_t s = f->stride[l->slot], over, o;
    if (!reach(f, l) || !mc_add_i64(l->i, l->p - l->e, &over)) {
        return mc_fail(MC_ESHAPE, "the sizes overflow");
    }
    o = (f->ceil ? -floor_div(-over, s) : floor_div(over, s)) + 1;
    if (o < 1 || (l->o >= 0 && o != l->o)) {
        char why[96] = "the filter is larger than the padded image";
        if (o >= 1) {
            mc_snprintf(why, sizeof why, "%s %lld", also, (long long)l->o);
        }
        return mc_fail(MC_ESHAPE,
                       "axis %d: %s(i + p - ((k - 1)*d + 1))%s + 1 = %s(%lld + %lld - ((%lld - 1)*%lld + "
                       "1))%s%lld%s + 1 = %lld: %s",
                       l->axis, f->ceil ? "ceil(" : "", f->ceil ? "/s)" : "//s", f->ceil ? "ceil(" : "",
                       (long long)l->i, (long long)l->p, (long long)l->k, (long long)f->dilation[l->slot],
                       f->ceil ? "/" : "//", (long long)s, f->ceil ? ")" : "", (long long)o, why);
    }
    l->o = o;
    return MC_OK;
}

/* Solves for i from k and o, if there is only one solution. */
static mc_status backward(const struct mc_conv_form *f, struct line *l)
{
    if (f->stride[l->slot] != 1) {
        return mc_fail(MC_ESHAPE,
                       "with stride %lld several sizes of x give the same size of y; give the shape",
                       (long long)f->stride[l->slot]);
    }
    if (!reach(f, l) || !mc_add_i64(l->o, l->e - l->p - 1, &l->i)) {
        return mc_fail(MC_ESHAPE, "the sizes overflow");
    }
    return l->i >= 0
               ? MC_OK
               : mc_fail(
                     MC_ESHAPE,
                     "axis %d: o + (k - 1)*d - p = %lld + (%lld - 1)*%lld - %lld = %lld, which is negative",
                     l->axis, (long long)l->o, (long long)l->k, (long long)f->dilation[l->slot],
                     (long long)l->p, (long long)l->i);
}

/* Solves for k from i and o, if there is only one solution: e = i + p - o + 1, or o - i + 1 when the
 * border is full. */
static mc_status inwards(const struct mc_conv_form *f, struct line *l)
{
    int64_t d = f->dilation[l->slot], p = f->border ? 0 : f->before[l->slot] + f->behind[l->slot];
    bool full = f->border && f->border->before(2) > 0;
    if (f->stride[l->slot] != 1) {
        return mc_fail(MC_ESHAPE,
                       "with stride %lld several sizes of w give the same size of y; give the shape",
                       (long long)f->stride[l->slot]);
    }
    if (f->border && !f->border->determines) {
        return mc_fail(MC_ESHAPE,
                       "with border '%s' several sizes of w give the same size of y; give the shape",
                       f->border->name);
    }
    int64_t taps = full ? l->o - l->i : l->i + p - l->o; /* e - 1 */
    if (taps < 0 || taps % d) {
        return mc_fail(MC_ESHAPE, "axis %d: %s = %lld is not (k - 1)*d with d = %lld for any k", l->axis,
                       full ? "o - i" : "i + p - o", (long long)taps, (long long)d);
    }
    l->k = taps / d + 1;
    return MC_OK;
}

static mc_status along(const struct mc_conv_form *f, bool shaped, struct line *l)
{
    if (l->k == 0) {
        return mc_fail(MC_ESHAPE, "axis %d: the filter has size 0", l->axis);
    }
    if (f->pass == CONV_INPUTS && !shaped && f->stride[l->slot] != 1) {
        return backward(f, l); /* the error must name the cause, whatever is known */
    }
    if (f->pass == CONV_WEIGHTS && !shaped &&
        (f->stride[l->slot] != 1 || (f->border && !f->border->determines))) {
        return inwards(f, l);
    }
    if (f->pass == CONV_INPUTS && !shaped && l->k >= 0 && l->o >= 0) {
        TRY(backward(f, l));
    }
    if (f->pass == CONV_WEIGHTS && !shaped && l->i >= 0 && l->o >= 0) {
        TRY(inwards(f, l));
    }
    return l->i >= 0 && l->k >= 0 ? forward(f, l, f->pass == CONV_FORWARD ? "w has positions for" : "y has")
                                  : MC_OK;
}

mc_status mc_conv_solve(const struct mc_infer *q, const struct mc_conv_form *f, const struct mc_type *out,
                        struct mc_conv_shape *s)
{
    bool shaped = q->nin > SHAPE || out;
    *s = (struct mc_conv_shape){ .pass = f->pass,
                                 .nd = f->nd,
                                 .n = -1,
                                 .c = -1,
                                 .f = -1,
                                 .groups = f->groups,
                                 .flip = f->flip,
                                 .unshared = f->unshared };
    for (int j = 0; j < 3; j++) {
        bool is_axis = j >= 3 - f->nd;
        s->in[j] = s->out[j] = s->k[j] = is_axis ? -1 : 1;
        s->stride[j] = f->stride[j];
        s->dilation[j] = f->dilation[j];
    }
    /* x, then w, then y: each is checked against the ones before */
    for (int role = 0; role < 3; role++) {
        int64_t dims[MC_MAX_RANK], from = mc_conv_operand[f->pass][role];
        for (int i = 0; i < MC_MAX_RANK; i++) {
            dims[i] = -1;
        }
        if (from >= 0 || out) {
            memcpy(dims, from >= 0 ? q->in[from].dims : out->dims, sizeof dims);
        } else if (shaped) {
            TRY(wanted(q, f, role, dims));
        }
        TRY(put(f, role, dims, s));
    }
    bool channels = s->c >= 0 && s->c % f->groups, filters = s->f >= 0 && s->f % f->groups;
    if (channels || filters) {
        return mc_fail(MC_ESHAPE, "%lld %s cannot be divided into %lld groups",
                       (long long)(channels ? s->c : s->f), channels ? "channels" : "filters",
                       (long long)f->groups);
    }
    for (int j = 3 - f->nd; j < 3; j++) {
        struct line l = { .slot = j, .axis = j - (3 - f->nd), .i = s->in[j], .k = s->k[j], .o = s->out[j] };
        TRY(along(f, shaped, &l));
        s->in[j] = l.i;
        s->k[j] = l.k;
        s->out[j] = l.o;
        s->pad[j] = !f->border ? f->before[j] : l.k >= 1 && reach(f, &l) ? f->border->before(l.e) : -1;
    }
    return MC_OK;
}

/* ---- for what is above ---- */

mc_status mc_conv_shape_of(const struct mc_node *n, const struct mc_type *in, const mc_array *const *value,
                           const struct mc_type *out, struct mc_conv_shape *s)
{
    const mc_array *known[3] = { NULL };
    struct mc_conv_form f;
    for (int i = 0; i < n->nin; i++) {
        known[i] = value && value[i] ? value[i] : n->in[i]->value;
    }
    struct mc_infer q = {
        .op = n->op, .nin = n->nin, .in = in, .value = known, .attr = n->attr, .node = n->in
    };
    mc_conv_form_of(n, &f);
    TRY(mc_conv_solve(&q, &f, out, s));
    bool all = s->n >= 0 && s->c >= 0 && s->f >= 0;
    for (int j = 0; j < 3; j++) {
        all &= s->in[j] >= 0 && s->k[j] >= 0 && s->out[j] >= 0;
    }
    return all ? MC_OK : mc_fail(MC_ESHAPE, "%s: the sizes are not known yet", n->op->name);
}
