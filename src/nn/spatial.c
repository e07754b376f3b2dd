/* spatial.c: the inverse of a layer, and spatial transformers, which sample images at a grid that another
 * layer transforms.
 *
 * Invariant: coordinates run from -1 at the centre of an image's first cell to 1 at the centre of its
 * last. */
#include "nn/kind.h"
#include <math.h>

/* The inverse of another layer: its gradient with respect to its input, for this layer's input as the
 * gradient of its output. */
static void inverse(struct mc_nn_build *b)
{
    struct mc_nn_slice of = mc_nn_get(&b->set, "of");
    for (int i = 0; i < b->net->nlayer; i++) {
        mc_layer *l = b->net->layer[i];
        if (mc_nn_same(of, l->name)) {
            if (l->nin != 1) {
                mc_nn_refuse(b, "of", "'%s' has %d inputs; expected one", l->name, l->nin);
            }
            for (int pass = 0; pass < 2 && l->nin == 1; pass++) {
                mc_nn_hole(&b->holes, pass ? "done_det" : "done", l->var[pass]);
                mc_nn_hole(&b->holes, pass ? "by_det" : "by", l->in[0]->var[pass]);
            }
            return;
        }
    }
    mc_nn_refuse(b, "of", "there is no layer '%.*s'", (int)of.n, of.s);
}

/* ---- grids ---- */

/* Checks the inputs: images, and the parameters of a transformation, (batch, n). */
static bool is_moved(struct mc_nn_build *b, int64_t n)
{
    int64_t f[NN_MOST_AXES];
    static const char *const size[] = { "rows", "columns" };
    if (mc_nn_rank(b, 0) != 4) {
        return mc_nn_refuse(b, "from", "'%s' has rank %d; expected images with four axes",
                            b->layer->in[0]->name, mc_nn_rank(b, 0));
    }
    if (mc_nn_rank(b, 1) != 2 || mc_nn_dims(b, 1)[1] != n) {
        return mc_nn_refuse(b, "from", "'%s' must give %lld numbers for each image", b->layer->in[1]->name,
                            (long long)n);
    }
    if (!mc_nn_sizes(b, "downsample", 2, 1, f)) {
        return false;
    }
    for (int i = 0; i < 2; i++) {
        int64_t d = mc_nn_dims(b, 0)[i + 2];
        mc_nn_let(b, size[i], d >= 0 ? "%lld" : "size($x, %lld) // %lld",
                  (long long)(d >= 0 ? d / f[i] : i + 2), (long long)f[i]);
    }
    return true;
}

/* How an index beyond the edge is treated: clamped, mirrored or wrapped. */
static bool let_edge(struct mc_nn_build *b)
{
    static const struct { const char *mode, *x, *y; } edges[] = {
        { "nearest", "clip($_i, 0, $_w)",                                      "clip($_j, 0, $_h)" },
        { "mirror",  "minimum(mod($_i, 2 * $_w), mod(-$_i, 2 * $_w))",         "minimum(mod($_j, 2 * $_h), mod(-$_j, 2 * $_h))" },
        { "wrap",    "mod($_i, $_w + 1)",                                      "mod($_j, $_h + 1)" },
    };
    for (int i = 0; i < COUNT(edges); i++) {
        if (mc_nn_is(&b->set, "border", edges[i].mode)) {
            mc_nn_hole(&b->holes, "at_x", edges[i].x);
            mc_nn_hole(&b->holes, "at_y", edges[i].y);
        }
    }
    return !b->failed;
}

static void affine(struct mc_nn_build *b)
{
    (void)(is_moved(b, 6) && let_edge(b));
}

/* ---- thin plate splines: Bookstein, 1989 ---- */

static double bend(double dx, double dy)
{
    double r = dx * dx + dy * dy;
    return r > 0 ? r * log(r) : 0;
}

/* The inverse of a (n, n) by elimination with pivots; out starts as the identity.  False: singular. */
static bool invert(double *a, double *out, int n)
{
    for (int c = 0; c < n; c++) {
        int best = c;
        for (int r = c; r < n; r++) {
            best = fabs(a[r * n + c]) > fabs(a[best * n + c]) ? r : best;
        }
        if (a[best * n + c] == 0) {
            return false;
        }
        for (int k = 0; k < n; k++) {
            double p = a[c * n + k], q = out[c * n + k];
            a[c * n + k] = a[best * n + k];
            a[best * n + k] = p;
            out[c * n + k] = out[best * n + k];
            out[best * n + k] = q;
        }
        for (int r = 0; r < n; r++) {
            double f = a[r * n + c] / a[c * n + c];
            for (int k = 0; k < n && r != c; k++) {
                a[r * n + k] -= f * a[c * n + k];
                out[r * n + k] -= f * out[c * n + k];
            }
        }
    }
    for (int r = 0; r < n; r++) {
        for (int k = 0; k < n; k++) {
            out[r * n + k] /= a[r * n + r];
        }
    }
    return true;
}

/* A table of numbers as a named constant of the graph; the hole `what` is its name. */
static bool constant(struct mc_nn_build *b, const char *what, int64_t rows, int64_t columns, const double *v)
{
    struct mc_nn_text name = { 0 };
    mc_array *a = mc_array_from(MC_FLOAT64, MC_SHAPE(rows, columns), v),
             *cast = a ? mc_array_cast(a, mc_nn_float()) : NULL;
    mc_nn_addf(&name, "%s_%s", b->layer->var[0], what);
    mc_node *n = cast && !name.bad ? mc_name(mc_constant(b->net->g, cast), name.s) : NULL;
    mc_nn_let(b, what, "%s", name.bad ? "" : name.s);
    mc_array_unref(&a);
    mc_array_unref(&cast);
    mc_nn_free(&name);
    b->failed |= !n;
    return n != NULL;
}

/* Control points in the square from -1 to 1. The spline's coefficients are a matrix times their coordinates:
 * the part of the inverse of [[0 P], [P' K]] that multiplies them. K holds the radial basis function for each
 * pair of points, P ones and coordinates. */
static bool let_spline(struct mc_nn_build *b, int side)
{
    int points = side * side, n = points + 3;
    double *memory = mc_calloc((size_t)(2 * n * n + 2 * points + n * points), sizeof *memory, "nets");
    if (!memory) {
        b->failed = true;
        return false;
    }
    double *l = memory, *inverse = l + n * n, *at = inverse + n * n,
           *part = at + 2 * points; /* at: (2, points) */
    for (int i = 0; i < points; i++) {
        at[i] = side > 1 ? 2.0 * (i % side) / (side - 1) - 1 : 0;
        at[points + i] = side > 1 ? 2.0 * (i / side) / (side - 1) - 1 : 0;
    }
    for (int i = 0; i < points; i++) {
        l[i + 3] = l[(i + 3) * n] = 1;
        l[n + i + 3] = l[(i + 3) * n + 1] = at[i];
        l[2 * n + i + 3] = l[(i + 3) * n + 2] = at[points + i];
        for (int k = 0; k < points; k++) {
            l[(i + 3) * n + k + 3] = bend(at[i] - at[k], at[points + i] - at[points + k]);
        }
    }
    for (int i = 0; i < n; i++) {
        inverse[i * n + i] = 1;
    }
    bool good = invert(l, inverse, n);
    for (int r = 0; good && r < points; r++) { /* its last columns, transposed: (points, n) */
        for (int c = 0; c < n; c++) {
            part[r * n + c] = inverse[c * n + r + 3];
        }
    }
    good = good && constant(b, "points", 2, points, at) && constant(b, "spline", points, n, part);
    mc_free(memory);
    return good || mc_nn_refuse(b, "points", "%d control points do not determine a spline", points);
}

static void thin_plate(struct mc_nn_build *b)
{
    int64_t points = mc_nn_int(&b->set, "points");
    int side = (int)lround(sqrt((double)(points > 0 ? points : 0)));
    if (points < 4 || points > 400 || side * side != points) {
        mc_nn_refuse(b, "points", "%lld control points; expected the square of a number from 2 to 20",
                     (long long)points);
        return;
    }
    mc_nn_let(b, "npoints", "%lld", (long long)points);
    (void)(is_moved(b, 2 * points) && let_edge(b) && let_spline(b, side));
}

/* $_across, $_down: a grid from -1 to 1; then $_sx, $_sy (batch, rows, columns): where images are sampled. */
#define GRID \
    "$_across = 2 * cast(arange($columns), $x.dtype) / maximum($columns - 1, 1) - 1; " \
    "$_down = 2 * cast(arange($rows), $x.dtype) / maximum($rows - 1, 1) - 1; "
#define PICK(x, y) "$_all[arange(size($x, 0))[:, None, None], " y ", " x "]"
#define WEIGH(x, y) "dimshuffle(" x " * " y ", [0, 1, 2, -1])"
#define LOOK                                                                                                 \
    "$_w = cast(size($x, 3) - 1, $x.dtype); $_h = cast(size($x, 2) - 1, $x.dtype); "                         \
    "$_px = ($_sx + 1) / 2 * $_w; $_py = ($_sy + 1) / 2 * $_h; $_left = floor($_px); $_top = floor($_py); "  \
    "$_i = $_left; $_j = $_top; $_x0 = cast($at_x, int64); $_y0 = cast($at_y, int64); "                      \
    "$_i = $_left + 1; $_j = $_top + 1; $_x1 = cast($at_x, int64); $_y1 = cast($at_y, int64); "              \
    "$_all = dimshuffle($x, [0, 2, 3, 1]); $_fx = $_px - $_left; $_fy = $_py - $_top; "                      \
    "$_seen = " WEIGH("(1 - $_fx)", "(1 - $_fy)") " * " PICK("$_x0", "$_y0") " + " WEIGH("(1 - $_fx)", "$_fy") " * " PICK("$_x0", "$_y1") \
    " + " WEIGH("$_fx", "(1 - $_fy)") " * " PICK("$_x1", "$_y0") " + " WEIGH("$_fx", "$_fy") " * " PICK("$_x1", "$_y1") "; " \
    "dimshuffle($_seen, [0, 3, 1, 2])"
#define ROW(k) \
    "$_theta[:, " k ", 0:1, None] * $_across[None, None, :] + $_theta[:, " k ", 1:2, None] * $_down[None, :, None] + $_theta[:, " k ", 2:3, None]; "
#define SHARED_FIELDS { "downsample", NN_SIZES, "1" }, { "border", NN_WORD, "nearest", "nearest|mirror|wrap" }
const struct mc_nn_kind mc_nn_specials[] = {
    { "inverse",     "the transpose of another layer, such as unpooling",                                  1, { { "of", NN_TEXT, NULL } },
      inverse,       "Lop($done, $by, $x)", "Lop($done_det, $by_det, $x)" },
    { "transformer", "images resampled by the affine transform of six numbers from the second layer", 2,
      { LAYERS, SHARED_FIELDS },
      affine,        GRID "$_theta = reshape($x2, [-1, 2, 3]); $_sx = " ROW("0") "$_sy = " ROW("1") LOOK, NULL },
    { "tps_transformer", "images resampled by a spline whose control points the second layer moves",                  2,
      { LAYERS, SHARED_FIELDS, { "points", NN_COUNT, "16" } },
      thin_plate,
      GRID "$_gx = ravel($_across[None, :] + zeros_like($_down)[:, None]); $_gy = ravel($_down[:, None] + zeros_like($_across)[None, :]); "
      "$_r = sqr($_gx[None, :] - $points[0][:, None]) + sqr($_gy[None, :] - $points[1][:, None]); "
      "$_bend = where($_r > 0, $_r * log(where($_r > 0, $_r, 1)), 0); "
      "$_basis = join(stack(ones_like($_gx), $_gx, $_gy), $_bend, axis=0); "
      "$_coefficients = dot($points + reshape($x2, [-1, 2, $npoints]), $spline); $_moved = dot($_coefficients, $_basis); "
      "$_sx = reshape($_moved[:, 0], [-1, $rows, $columns]); $_sy = reshape($_moved[:, 1], [-1, $rows, $columns]); " LOOK, NULL },
    LAST_KIND,
};
