/* data_archive.c: examples in a file of arrays, under the usual names.
 *
 * Invariant: pictures of bytes become (n, channels, rows, columns): without an axis of channels they get one,
 * with channels last their axes are exchanged; all else is left as it is. */
#include "nn/data.h"

static const struct {
    const char *x, *t;
    bool whole;
} names[2][5] = {
    { { "x_train", "y_train", false },
      { "train_x", "train_y", false },
      { "x", "y", true },
      { "x", "t", true },
      { "images", "labels", true } },
    { { "x_test", "y_test", false },
      { "test_x", "test_y", false },
      { "x", "y", true },
      { "x", "t", true },
      { "images", "labels", true } },
};

bool mc_archive_knows(const char *where)
{
    return (mc_path_ends(where, ".npz") || mc_path_ends(where, ".safetensors")) && mc_path_is(where, false);
}

static bool are_channels(int64_t channels) { return channels == 1 || channels == 3; }

/* A view as (n, channels, rows, columns) of pictures with other axes; NULL: the axes are right, or x is not
 * pictures. */
static mc_array *channels_second(const mc_array *x)
{
    const int64_t *d = mc_array_dims(x);
    if (mc_array_rank(x) == 3) {
        return mc_array_reshape(x, MC_SHAPE(d[0], 1, d[1], d[2]));
    }
    bool last = mc_array_rank(x) == 4 && are_channels(d[3]) && !are_channels(d[1]);
    return last ? mc_array_transpose(x, (int[]){ 0, 3, 1, 2 }) : NULL;
}

mc_status mc_archive_read_data(const char *where, enum mc_part part, struct mc_example_set *out)
{
    mc_archive *z = mc_archive_open(where);
    mc_status s = z ? MC_OK : mc_last_status();
    size_t i = 0;
    while (s == MC_OK && i < COUNT(names[part]) &&
           !(mc_archive_has(z, names[part][i].x) && mc_archive_has(z, names[part][i].t))) {
        i++;
    }
    if (s == MC_OK && i == COUNT(names[part])) {
        s = mc_fail(MC_EFORMAT, "'%s' has neither %s and %s nor x and y", where, names[part][0].x,
                    names[part][0].t);
    }
    if (s == MC_OK) {
        out->text = "examples from a file of arrays";
        out->whole = names[part][i].whole;
        out->x = mc_archive_load(z, names[part][i].x);
        out->t = out->x ? mc_archive_load(z, names[part][i].t) : NULL;
        s = out->t ? MC_OK : mc_last_status();
    }
    mc_array *turned = s == MC_OK && mc_array_dtype(out->x) == MC_UINT8 ? channels_second(out->x) : NULL;
    if (turned) {
        mc_array_unref(&out->x);
        out->x = turned;
    }
    mc_archive_close(z);
    return s;
}
