/* data.c: labelled examples: the table of readers, and the functions of mc_data.
 *
 * Invariant: a mc_data has at least one example, and for each a label that is one of the classes, or one for
 * each of its places, or a row of finite numbers to learn; x is contiguous, of uint8 or float32.  All readers
 * end in mc_data_finish, which checks it. */
#include "nn/data.h"
#include <math.h>
#include <stdio.h>

struct mc_data {
    mc_array *x, *t; /* (n, ...) uint8 or float32; (n) or (n, places) int32, or (n, targets) float32 */
    int classes;     /* 0: there are targets */
    int targets;     /* 0: there are classes */
    char **name;     /* a name for each of them, or NULL */
    char **column;   /* of the numbers of an example, ncolumn of them, or NULL */
    int ncolumn;
    const char *text;
};

/* The first reader that knows `where` reads it. A folder of folders could be anything, so pictures come
 * last. */
static const struct mc_reader readers[] = {
    { mc_digits_knows,   mc_digits_read },
    { mc_text_knows,     mc_text_read },
    { mc_csv_knows,      mc_csv_read },
    { mc_archive_knows,      mc_archive_read_data },
    { mc_cifar_knows,    mc_cifar_read },
    { mc_idx_knows,      mc_idx_read },
    { mc_pictures_knows, mc_pictures_read },
};
enum { HELD_OUT = 10 };          /* of so many examples one is for testing, if the data have no parts */
enum { MOST_CLASSES = 1000000 }; /* if their number is not given */

/* ---- raw ---- */

void mc_example_set_free(struct mc_example_set *r)
{
    mc_array_unref(&r->x);
    mc_array_unref(&r->t);
    for (int i = 0; i < (r->targets ? r->targets : r->classes) && r->name; i++) {
        mc_free(r->name[i]);
    }
    for (int i = 0; i < r->ncolumn && r->column; i++) {
        mc_free(r->column[i]);
    }
    mc_free(r->name);
    mc_free(r->column);
    *r = (struct mc_example_set){ 0 };
}

mc_status mc_example_set_names(struct mc_example_set *r, int n)
{
    r->name = mc_calloc((size_t)n, sizeof *r->name, "data");
    r->classes = r->name ? n : 0;
    return r->name ? MC_OK : MC_EMEMORY;
}

/* ---- checks ---- */

/* Makes *a a contiguous array of dtype `want`. */
static mc_status settle(mc_array **a, mc_dtype want)
{
    mc_array *b = mc_array_dtype(*a) != want ? mc_array_cast(*a, want) : NULL;
    if (mc_array_dtype(*a) != want && !b) {
        return mc_last_status();
    }
    if (!b && mc_array_is_contiguous(*a)) {
        return MC_OK;
    }
    mc_array *c = mc_array_copy(b ? b : *a);
    mc_array_unref(&b);
    if (!c) {
        return mc_last_status();
    }
    mc_array_unref(a);
    *a = c;
    return MC_OK;
}

static mc_status check_labels(struct mc_example_set *r)
{
    const int64_t *t = mc_array_data(r->t);
    int64_t n = mc_array_size(r->t), at = -1, most = 0;
    for (int64_t i = 0; i < n && at < 0; i++) {
        most = t[i] > most ? t[i] : most;
        at = t[i] < 0 || t[i] >= (r->classes ? r->classes : MOST_CLASSES) ? i : -1;
    }
    if (at >= 0) {
        return mc_fail(MC_EFORMAT, "the label of example %lld is %lld, but classes are 0 to %d",
                       (long long)(at / (n / mc_array_dims(r->t)[0])), (long long)t[at],
                       (r->classes ? r->classes : MOST_CLASSES) - 1);
    }
    r->classes = r->classes ? r->classes : (int)most + 1;
    return MC_OK;
}

static mc_status check_targets(struct mc_example_set *r, int64_t n)
{
    if (mc_array_rank(r->t) != 2 || mc_array_dims(r->t)[0] != n || mc_array_dims(r->t)[1] != r->targets ||
        !r->targets) {
        return mc_fail(MC_ESHAPE,
                       "targets must be an array of rank 2 with a row for each of the %lld examples",
                       (long long)n);
    }
    mc_array *a = mc_array_cast(r->t, MC_FLOAT32), *whole = a ? mc_array_copy(a) : NULL;
    mc_status s = whole ? MC_OK : mc_last_status();
    const float *t = whole ? mc_array_data(whole) : NULL;
    for (int64_t i = 0; s == MC_OK && i < n * r->targets; i++) {
        s = isfinite(t[i]) ? MC_OK
                           : mc_fail(MC_EFORMAT, "target %lld of example %lld is not finite",
                                     (long long)(i % r->targets), (long long)(i / r->targets));
    }
    mc_array_unref(&a);
    mc_array_unref(&whole);
    return s;
}

/* Has each place of an example a label: are the axes of labels the last ones of the examples? */
static bool has_places(const mc_array *x, const mc_array *t)
{
    const int rank = mc_array_rank(t), behind = mc_array_rank(x) - rank;
    bool same = rank > 1 && behind >= 0 && mc_array_dims(t)[0] == mc_array_dims(x)[0];
    for (int i = 1; i < rank && same; i++) {
        same = mc_array_dims(t)[i] == mc_array_dims(x)[behind + i];
    }
    return same;
}

static mc_status check(struct mc_example_set *r)
{
    int64_t n = mc_array_rank(r->x) ? mc_array_dims(r->x)[0] : 0;
    mc_dtype d = mc_array_dtype(r->t);
    if (mc_array_rank(r->x) < 2) {
        return mc_fail(MC_ESHAPE,
                       "examples must be an array of rank 2 or more, with one example at each index of the "
                       "first axis, not of rank %d",
                       mc_array_rank(r->x));
    }
    if (mc_array_size(r->x) == 0) {
        return mc_fail(MC_EFORMAT, "there are no examples");
    }
    if (r->targets) {
        return check_targets(r, n);
    }
    const bool places = has_places(r->x, r->t);
    if (!places && mc_array_rank(r->t) > 1 && mc_array_dims(r->t)[0] == n && mc_array_size(r->t) != n) {
        return mc_fail(MC_ESHAPE, "labels must be one whole number for each example, not %lld",
                       (long long)(mc_array_size(r->t) / n));
    }
    if (!places && mc_array_size(r->t) != n) {
        return mc_fail(MC_ESHAPE, "there are %lld examples, but %lld labels", (long long)n,
                       (long long)mc_array_size(r->t));
    }
    if (d == MC_BOOL || d > MC_UINT64) {
        return mc_fail(MC_ETYPE, "labels must be whole numbers, not %s", mc_dtype_name(d));
    }
    return MC_OK;
}

/* Every HELD_OUT-th example, or the others. */
static mc_status hold_out(struct mc_example_set *r, enum mc_part part)
{
    int64_t n = mc_array_dims(r->x)[0], ntest = n / HELD_OUT, keep = part == MC_TEST ? ntest : n - ntest,
            dims[MC_MAX_RANK], answers[MC_MAX_RANK];
    memcpy(dims, mc_array_dims(r->x), (size_t)mc_array_rank(r->x) * sizeof *dims);
    memcpy(answers, mc_array_dims(r->t), (size_t)mc_array_rank(r->t) * sizeof *answers);
    if (keep == 0) {
        return mc_fail(MC_EFORMAT, "%lld examples are too few to hold some out for testing", (long long)n);
    }
    dims[0] = answers[0] = keep;
    mc_array *x = mc_array_new(mc_array_dtype(r->x), mc_array_rank(r->x), dims);
    mc_array *t = mc_array_new(mc_array_dtype(r->t), mc_array_rank(r->t), answers);
    if (x && t) {
        size_t size = (size_t)(mc_array_size(x) / keep) * mc_dtype_size(mc_array_dtype(x));
        size_t answer = (size_t)(mc_array_size(t) / keep) * mc_dtype_size(mc_array_dtype(t));
        char *to = mc_array_data(x), *to_answer = mc_array_data(t);
        const char *from = mc_array_data(r->x), *from_answer = mc_array_data(r->t);
        for (int64_t i = 0, k = 0; i < n && k < keep; i++) {
            if ((i % HELD_OUT == HELD_OUT - 1) == (part == MC_TEST)) {
                memcpy(to + (size_t)k * size, from + (size_t)i * size, size);
                memcpy(to_answer + (size_t)k++ * answer, from_answer + (size_t)i * answer, answer);
            }
        }
    }
    mc_array_unref(&r->x);
    mc_array_unref(&r->t);
    r->x = x;
    r->t = t;
    return x && t ? MC_OK : MC_EMEMORY;
}

mc_data *mc_data_finish(struct mc_example_set *r, enum mc_part part)
{
    mc_data *d = mc_calloc(1, sizeof *d, "data");
    mc_status s = d ? check(r) : MC_EMEMORY;
    s = s < 0 ? s : settle(&r->x, mc_array_dtype(r->x) == MC_UINT8 ? MC_UINT8 : MC_FLOAT32);
    s = s < 0 ? s : settle(&r->t, r->targets ? MC_FLOAT32 : MC_INT64);
    s = s < 0 || r->targets ? s : check_labels(r);
    s = s < 0 || r->targets ? s : settle(&r->t, MC_INT32);
    s = s < 0 || !r->whole ? s : hold_out(r, part);
    if (s < 0) {
        mc_example_set_free(r);
        mc_free(d);
        return NULL;
    }
    *d = (mc_data){ .x = r->x,
                    .t = r->t,
                    .classes = r->classes,
                    .targets = r->targets,
                    .name = r->name,
                    .column = r->column,
                    .ncolumn = r->ncolumn,
                    .text = r->text };
    return d;
}

mc_data *mc_data_open(const char *where, enum mc_part part)
{
    if (mc_nn_null(where, "name of data")) {
        return NULL;
    }
    struct mc_example_set r = { 0 };
    size_t i = 0;
    while (i < COUNT(readers) && !readers[i].knows(where)) {
        i++;
    }
    if (i == COUNT(readers)) {
        if (mc_path_is(where, true) || mc_path_is(where, false)) {
            mc_fail(MC_EFORMAT,
                    "'%s' is not in a known format of data: MNIST's or CIFAR's files, .npz, .safetensors, "
                    ".csv, or a folder of pictures for each class",
                    where);
        } else {
            mc_fail(MC_EFILE,
                    "there is no file '%s'; the word digits stands for generated digits, which need no files",
                    where);
        }
        return NULL;
    }
    if (readers[i].read(where, part, &r) < 0) {
        mc_example_set_free(&r);
        return NULL;
    }
    mc_data *d = mc_data_finish(&r, part);
    if (!d) {
        mc_fail_again("'%s': ", where);
    }
    return d;
}

mc_data *mc_data_new(const mc_array *x, const mc_array *labels, int classes)
{
    if (mc_nn_null(x, "array of examples") || mc_nn_null(labels, "array of labels")) {
        return NULL;
    }
    struct mc_example_set r = {
        .x = mc_array_ref(x), .t = mc_array_ref(labels), .classes = classes, .text = "examples"
    };
    return mc_data_finish(&r, MC_TRAIN);
}

mc_data *mc_data_new_targets(const mc_array *x, const mc_array *targets)
{
    if (mc_nn_null(x, "array of examples") || mc_nn_null(targets, "array of targets")) {
        return NULL;
    }
    int n = mc_array_rank(targets) == 2 && mc_array_dims(targets)[1] < 1000000
                ? (int)mc_array_dims(targets)[1]
                : 0;
    if (n == 0) {
        mc_fail(MC_ESHAPE, "targets must be an array of rank 2 with a row for each example, not of rank %d",
                mc_array_rank(targets));
        return NULL;
    }
    struct mc_example_set r = {
        .x = mc_array_ref(x), .t = mc_array_ref(targets), .targets = n, .text = "examples"
    };
    return mc_data_finish(&r, MC_TRAIN);
}

void mc_data_free(mc_data *d)
{
    if (d) {
        mc_example_set_free(&(struct mc_example_set){ .x = d->x,
                                                      .t = d->t,
                                                      .classes = d->classes,
                                                      .targets = d->targets,
                                                      .name = d->name,
                                                      .column = d->column,
                                                      .ncolumn = d->ncolumn });
        mc_free(d);
    }
}

/* ---- properties ---- */

const char *mc_data_text(const mc_data *d)    { return d ? d->text : ""; }
int64_t mc_data_count(const mc_data *d)       { return d ? mc_array_dims(d->x)[0] : 0; }
int mc_data_rank(const mc_data *d)            { return d ? mc_array_rank(d->x) - 1 : 0; }
const int64_t *mc_data_dims(const mc_data *d) { return d ? mc_array_dims(d->x) + 1 : NULL; }
int mc_data_classes(const mc_data *d)         { return d ? d->classes : 0; }
int mc_data_targets(const mc_data *d)         { return d ? d->targets : 0; }
int64_t mc_data_places(const mc_data *d)
{
    return d && !d->targets ? mc_array_size(d->t) / mc_array_dims(d->t)[0] : 0;
}
int32_t mc_data_label(const mc_data *d, int64_t i)
{
    return mc_data_places(d) == 1 ? ((const int32_t *)mc_array_data(d->t))[i] : -1;
}

double mc_data_target(const mc_data *d, int64_t i, int k)
{
    return d && d->targets ? (double)((const float *)mc_array_data(d->t))[i * d->targets + k] : NAN;
}

const char *mc_data_column(const mc_data *d, int k)
{
    return d && d->column && k >= 0 && k < d->ncolumn ? d->column[k] : NULL;
}

const char *mc_data_class(const mc_data *d, int k)
{
    static _Thread_local char number[16];
    if (d && d->name && d->name[k]) {
        return d->name[k];
    }
    mc_snprintf(number, sizeof number, "%d", k);
    return number;
}

void mc_data_arrays(const mc_data *d, const mc_array **x, const mc_array **t)
{
    *x = d->x;
    *t = d->t;
}

void mc_data_example(const mc_data *d, int64_t i, float *x)
{
    if (!d) {
        return;
    }
    int64_t size = mc_array_size(d->x) / mc_data_count(d);
    if (mc_array_dtype(d->x) == MC_UINT8) {
        const uint8_t *from = (const uint8_t *)mc_array_data(d->x) + i * size;
        for (int64_t k = 0; k < size; k++) {
            x[k] = (float)from[k] / 255.0f;
        }
    } else {
        memcpy(x, (const float *)mc_array_data(d->x) + i * size, (size_t)size * sizeof *x);
    }
}
