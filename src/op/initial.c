/* initial.c: rules for initial values, used by declarations of the text form and by layers.
 *
 * Invariant: a rule is a row. Rules that depend on the shape compute a spread from it and then draw as the
 * others do. The caller supplies the random numbers: declarations use those below, nets a stream of their
 * own. */
#include "op/op.h"
#include <math.h>
#include <stdlib.h>

/* ---- numbers with the same bits on every machine: without libm, whose last digit varies ---- */

struct mc_numbers mc_numbers_of(uint64_t seed, const char *name)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a of the name: variables with one seed differ */
    for (const char *c = name; *c; c++) {
        h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
    }
    return (struct mc_numbers){ .key = mc_random_mix(seed, h) };
}

/* The two numbers in [0, 1) of one block. */
static void pair(const struct mc_numbers *s, uint64_t block, double u[2])
{
    uint32_t w[4];
    mc_philox((uint32_t[]){ (uint32_t)s->key, (uint32_t)(s->key >> 32) },
              (uint32_t[]){ (uint32_t)block, (uint32_t)(block >> 32), 0, 0 }, w);
    for (int i = 0; i < 2; i++) {
        u[i] = (double)(((uint64_t)w[2 * i + 1] << 32 | w[2 * i]) >> 11) * 0x1p-53;
    }
}

/* log(x) = e log(2) + 2 artanh((m - 1) / (m + 1)), m near 1; x > 0 */
static double logarithm(double x)
{
    int e;
    double m = frexp(x, &e), sum = 0;
    if (m < 0.70710678118654752) {
        m *= 2;
        e--;
    }
    double s = (m - 1) / (m + 1);
    for (int k = 12; k-- > 0;) {
        sum = sum * (s * s) + 1.0 / (2 * k + 1);
    }
    return e * 0.69314718055994531 + 2 * s * sum;
}

/* cos(2 pi v) for v in [0, 1): reduced to the nearest quarter turn, then Taylor's series */
static double cosine_of_turn(double v)
{
    int quarter = (int)(4 * v + 0.5);
    double t = 6.283185307179586477 * (v - quarter * 0.25), odd = quarter % 2 ? t : 1, term = odd, sum = odd;
    for (int k = 1; k < 10; k++) {
        double n = 2.0 * k + quarter % 2;
        term *= -t * t / (n * (n - 1));
        sum += term;
    }
    return quarter % 4 == 1 || quarter % 4 == 2 ? -sum : sum;
}

mc_array *mc_numbers_draw(void *numbers, int normal, int64_t n, double a, double b)
{
    struct mc_numbers *s = numbers;
    mc_array *out = mc_array_new(MC_FLOAT64, 1, &n);
    double *v = out ? (double *)(void *)out->data : NULL;
    for (int64_t i = 0; v && i < n; i++) {
        double u[2];
        pair(s, s->at++, u);
        v[i] = normal ? a + b * (sqrt(-2 * logarithm(1 - u[0])) * cosine_of_turn(u[1])) : a + u[0] * (b - a);
    }
    return out;
}

/* ---- the value that is being filled ---- */

enum { UNIFORM, NORMAL };

struct value {
    const mc_initial *rule;
    const double *set;
    int rank;
    const int64_t *dims;
    int64_t size;
    mc_initial_draw *draw;
    void *arg;
    mc_array *out; /* zeros of the shape when `fill` starts */
};

static double setting(const struct value *v, const char *name)
{
    int i = 0;
    while (strcmp(v->rule->setting[i].name, name) != 0) {
        i++;
    }
    return v->set[i];
}

static bool refuse(const struct value *v, const char *why)
{
    return mc_fail(MC_ESHAPE, "%s: %s", v->rule->name, why) == MC_OK;
}

static bool drawn(struct value *v, int how, double a, double b)
{
    mc_array *flat = v->draw(v->arg, how == NORMAL, v->size, a, b);
    mc_array *shaped = flat ? mc_array_reshape(flat, v->rank, v->dims) : NULL;
    bool good = shaped && mc_array_assign(v->out, shaped) >= 0;
    mc_array_unref(&shaped);
    mc_array_unref(&flat);
    return good;
}

static bool draw_with(struct value *v, int how, double mean, double std)
{
    double half = sqrt(3) * std;
    return how == NORMAL ? drawn(v, how, mean, std) : drawn(v, how, mean - half, mean + half);
}

/* ---- the rules ---- */

static bool fill(struct value *v, double number)
{
    static const int64_t still[MC_MAX_RANK] = { 0 };
    char stored[8];
    mc_dtype d = v->out->dtype;
    mc_store_f64(d, stored, number);
    double back = mc_load_f64(d, stored);
    if (mc_is_float(d) ? isfinite(number) && !isfinite(back) : back != number) {
        return mc_fail(MC_ETYPE, "%s: the value cannot be represented in %s", v->rule->name,
                       mc_dtype_name(d)) == MC_OK;
    }
    mc_array *same = mc_array_wrap(MC_FLOAT64, v->rank, v->dims, still, &number, NULL, NULL);
    mc_status s = same ? mc_array_assign(v->out, same) : MC_EMEMORY;
    mc_array_unref(&same);
    return s >= 0;
}

static bool constant(struct value *v)
{
    return fill(v, setting(v, "value"));
}

static bool zeros(struct value *v)
{
    return v->out != NULL;
}

static bool ones(struct value *v)
{
    return fill(v, 1);
}

static bool normal(struct value *v)
{
    return draw_with(v, NORMAL, setting(v, "mean"), setting(v, "std"));
}

static bool uniform(struct value *v)
{
    double range = setting(v, "range"), high = setting(v, "high"), low = setting(v, "low");
    if (setting(v, "std") != 0) {
        return draw_with(v, UNIFORM, setting(v, "mean"), setting(v, "std"));
    }
    if (!isnan(low) && isnan(high)) {
        return mc_fail(MC_EARG, "uniform: low is given without high") == MC_OK;
    }
    low = !isnan(low) ? low : isnan(high) ? -range : range;
    return drawn(v, UNIFORM, low, isnan(high) ? range : high);
}

/* The size of the receptive field of a filter and its channels on both sides; c01b: channels, rows,
 * columns, filters. */
static bool fans(struct value *v, double *one, double *two, double *field)
{
    bool last = setting(v, "c01b") != 0;
    if (last && v->rank != 4) {
        return refuse(v, "with c01b=true the parameter must have four axes");
    }
    if (v->rank < 2) {
        return refuse(v, "the parameter must have at least two axes");
    }
    int other = last ? v->rank - 1 : 1;
    *one = (double)v->dims[0];
    *two = (double)v->dims[other];
    *field = 1;
    for (int i = 1; i < v->rank; i++) {
        *field *= i == other ? 1 : (double)v->dims[i];
    }
    return true;
}

static bool glorot(struct value *v, int how)
{
    double one = 0, two = 0, field = 0;
    return fans(v, &one, &two, &field) &&
           draw_with(v, how, 0, setting(v, "gain") * sqrt(2 / ((one + two) * field)));
}

static bool glorot_uniform(struct value *v)
{
    return glorot(v, UNIFORM);
}

static bool glorot_normal(struct value *v)
{
    return glorot(v, NORMAL);
}

/* Scaled by the fan-in of a unit: a matrix has its inputs first, filters have them after the first axis. */
static bool he(struct value *v, int how)
{
    double one = 0, two = 0, field = 0;
    if (!fans(v, &one, &two, &field)) {
        return false;
    }
    double in = v->rank == 2 || setting(v, "c01b") != 0 ? one * field : two * field;
    return draw_with(v, how, 0, setting(v, "gain") * sqrt(1 / in));
}

static bool he_uniform(struct value *v)
{
    return he(v, UNIFORM);
}

static bool he_normal(struct value *v)
{
    return he(v, NORMAL);
}

static double at(const mc_array *a, int64_t i)
{
    return mc_array_get(a, &i);
}

struct ranked {
    double key;
    int64_t at;
};

static int by_key(const void *a, const void *b)
{
    const struct ranked *p = a, *q = b;
    return p->key < q->key ? -1 : p->key > q->key ? 1 : p->at < q->at ? -1 : 1;
}

/* Each column gets the given share of entries, at positions drawn without replacement. */
static bool sparse(struct value *v)
{
    double share = setting(v, "sparsity");
    if (v->rank != 2) {
        return refuse(v, "the parameter must have two axes");
    }
    if (!(share >= 0 && share <= 1)) {
        return mc_fail(MC_EARG, "sparse: sparsity must be between 0 and 1") == MC_OK;
    }
    int64_t rows = v->dims[0], columns = v->dims[1], nonzero = (int64_t)(share * (double)rows);
    mc_array *keys = v->draw(v->arg, 0, v->size, 0, 1),
             *values = keys ? v->draw(v->arg, 1, nonzero * columns, 0, setting(v, "std")) : NULL;
    struct ranked *order = values ? mc_alloc((size_t)rows * sizeof *order + 1, "initial values") : NULL;
    for (int64_t c = 0; order && c < columns; c++) {
        for (int64_t r = 0; r < rows; r++) {
            order[r] = (struct ranked){ at(keys, r * columns + c), r };
        }
        qsort(order, (size_t)rows, sizeof *order, by_key);
        for (int64_t r = 0; r < nonzero; r++) {
            mc_array_set(v->out, (int64_t[]){ order[r].at, c }, at(values, c * nonzero + r));
        }
    }
    mc_array_unref(&keys);
    mc_array_unref(&values);
    bool good = order != NULL;
    mc_free(order);
    return good;
}

/* Makes the rows of v orthonormal by Gram-Schmidt; two passes are enough (Kahan). */
static void orthonormal(double *v, int64_t rows, int64_t n)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int twice = 0; twice < 2; twice++) {
            for (int64_t k = 0; k < i; k++) {
                double dot = 0;
                for (int64_t j = 0; j < n; j++) {
                    dot += v[i * n + j] * v[k * n + j];
                }
                for (int64_t j = 0; j < n; j++) {
                    v[i * n + j] -= dot * v[k * n + j];
                }
            }
        }
        double norm = 0;
        for (int64_t j = 0; j < n; j++) {
            norm += v[i * n + j] * v[i * n + j];
        }
        for (int64_t j = 0; j < n; j++) {
            v[i * n + j] /= sqrt(norm);
        }
    }
}

static bool orthogonal(struct value *v)
{
    if (v->rank < 2) {
        return refuse(v, "the parameter must have at least two axes");
    }
    int64_t rows = v->dims[0], columns = rows ? v->size / rows : 0, count = rows < columns ? rows : columns,
            length = rows + columns - count;
    mc_array *numbers = v->draw(v->arg, 1, v->size, 0, 1);
    double *w = numbers ? mc_alloc((size_t)v->size * sizeof *w + 1, "initial values") : NULL,
           factor = setting(v, "gain");
    for (int64_t i = 0; w && i < v->size; i++) {
        w[i] = at(numbers, i);
    }
    if (w) {
        orthonormal(w, count, length);
    }
    for (int64_t i = 0; w && i < v->size; i++) { /* the vectors are rows or columns, whichever are fewer */
        int64_t r = i / columns, c = i % columns, k = 0, index[MC_MAX_RANK], rest = i;
        k = count == rows ? r * length + c : c * length + r;
        for (int a = v->rank; a-- > 0; rest /= v->dims[a]) {
            index[a] = rest % v->dims[a];
        }
        mc_array_set(v->out, index, factor * w[k]);
    }
    mc_array_unref(&numbers);
    bool good = w != NULL;
    mc_free(w);
    return good;
}

#define AUTO "auto", "auto", NAN
#define RELU "1", "relu", 1.4142135623730951
#define GAIN { { "gain", RELU }, { "c01b", "false", NULL, 0 } }
static const struct row {
    mc_initial rule;
    bool (*fill)(struct value *v);
} rows[] = {
    { { "constant", "all elements are value; a plain number means the same", { { "value", "0", NULL, 0 } }, 0 },
      constant },
    { { "zeros", "zeros", { { NULL, NULL, NULL, 0 } }, 0 }, zeros },
    { { "ones", "ones", { { NULL, NULL, NULL, 0 } }, 0 }, ones },
    { { "normal", "normal distribution", { { "std", "0.01", NULL, 0 }, { "mean", "0", NULL, 0 } }, 1 }, normal },
    { { "uniform",
        "uniform distribution from -range to range, or from low (or range) to high, or with a standard deviation",
        { { "range", "0.01", NULL, 0 },
          { "high", AUTO },
          { "std", "0", NULL, 0 },
          { "mean", "0", NULL, 0 },
          { "low", AUTO } },
        1 },
      uniform },
    { { "glorot_uniform", "uniform distribution with standard deviation gain * sqrt(2 / (inputs + outputs)); gain: a number, or relu for sqrt(2)", GAIN, 1 },
      glorot_uniform },
    { { "glorot_normal", "normal distribution with the standard deviation of glorot_uniform", GAIN, 1 }, glorot_normal },
    { { "he_uniform", "uniform distribution with standard deviation gain * sqrt(1 / inputs)", GAIN, 1 }, he_uniform },
    { { "he_normal", "normal distribution with the standard deviation of he_uniform", GAIN, 1 }, he_normal },
    { { "sparse",
        "a matrix; in each column the share sparsity of the elements is normal, the others are zero",
        { { "sparsity", "0.1", NULL, 0 }, { "std", "0.01", NULL, 0 } },
        1 },
      sparse },
    { { "orthogonal", "orthonormal rows, or columns", { { "gain", RELU } }, 1 },
      orthogonal },
};

const mc_initial *mc_initial_at(int i)
{
    return i >= 0 && i < (int)NELEM(rows) ? &rows[i].rule : NULL;
}

mc_array *mc_initial_value(const mc_initial *rule, const double *set, mc_dtype d, int rank,
                           const int64_t *dims, mc_initial_draw *draw, void *arg)
{
    size_t i = 0;
    while (i < NELEM(rows) && rule != &rows[i].rule) {
        i++;
    }
    if (i == NELEM(rows) || (!set && rule->setting[0].name) || (rule->random && !draw)) {
        mc_fail(MC_EARG, "initial value: no %s is given",
                i == NELEM(rows) ? "known rule"
                : set            ? "draw"
                                 : "setting");
        return NULL;
    }
    if (rule->random && !mc_is_float(d)) {
        mc_fail(MC_ETYPE, "%s: the dtype must be a float, not %s", rule->name, mc_dtype_name(d));
        return NULL;
    }
    struct value v = { rule, set, rank, dims, 0, draw, arg, mc_array_new(d, rank, dims) };
    v.size = v.out ? mc_array_size(v.out) : 0;
    if (v.out && !rows[i].fill(&v)) {
        mc_array_unref(&v.out);
    }
    return v.out;
}
