/* t_ops_patches.c: images taken apart in patches, and put together from them. */
#include "op_fixture.h"
#include <stdio.h>

static int64_t wrapped(int64_t at, int64_t n)
{
    return ((at % n) + n) % n;
}

static mc_array *patches(const mc_array *x, const int64_t *w, const int64_t *s, const int64_t *before,
                         const int64_t *n, bool wraps)
{
    int64_t dims[2] = { x->dims[0] * x->dims[1] * n[0] * n[1], w[0] * w[1] }, at[6] = { 0 },
            size[6] = { x->dims[0], x->dims[1], n[0], n[1], w[0], w[1] }, k = 0;
    mc_array *y = mc_array_new(x->dtype, 2, dims);
    for (bool any = mc_dims_count(6, size) > 0; any; any = next_index(6, size, at), k++) {
        int64_t from[4] = { at[0], at[1], at[2] * s[0] - before[0] + at[4],
                            at[3] * s[1] - before[1] + at[5] },
                to[2] = { k / dims[1], k % dims[1] };
        bool inside = true;
        for (int j = 2; j < 4; j++) {
            from[j] = wraps ? wrapped(from[j], x->dims[j]) : from[j];
            inside &= from[j] >= 0 && from[j] < x->dims[j];
        }
        mc_array_set(y, to, inside ? mc_array_get(x, from) : 0);
    }
    return y;
}

TEST(patches_of_images)
{
    static const struct { const char *mode; int64_t x[4], w[2], s[2], before[2], n[2]; } row[] = {
        { "valid",          { 2, 3, 6, 8 }, { 2, 4 }, { 2, 4 }, { 0, 0 }, { 3, 2 } },
        { "valid",          { 1, 2, 7, 8 }, { 3, 2 }, { 2, 3 }, { 0, 0 }, { 3, 3 } },
        { "ignore_borders", { 1, 2, 7, 9 }, { 3, 2 }, { 3, 2 }, { 0, 0 }, { 2, 4 } },
        { "half",           { 1, 2, 7, 8 }, { 3, 4 }, { 2, 4 }, { 1, 2 }, { 4, 3 } },
        { "full",           { 1, 2, 5, 6 }, { 3, 2 }, { 2, 2 }, { 2, 1 }, { 4, 4 } },
        { "wrap_centered",  { 1, 2, 7, 5 }, { 3, 5 }, { 2, 1 }, { 1, 2 }, { 4, 5 } },
        { "valid",          { 0, 2, 6, 8 }, { 2, 4 }, { 2, 4 }, { 0, 0 }, { 3, 2 } },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        for (unsigned sized = 0; sized < 2; sized++) {
            mc_array *x = sample(MC_FLOAT64, 4, row[i].x, -9, 9),
                     *want = patches(x, row[i].w, row[i].s, row[i].before, row[i].n,
                                     strcmp(row[i].mode, "wrap_centered") == 0);
            struct leaf leaf = { "x", x, sized ? ~0u : 0, false };
            char text[120];
            bool apart = row[i].w[0] == row[i].s[0] && row[i].w[1] == row[i].s[1];
            snprintf(text, sizeof text,
                     apart ? "images2neibs(x, [%d, %d], mode='%s')"
                           : "images2neibs(x, [%d, %d], mode='%s', neib_step=[%d, %d])",
                     (int)row[i].w[0], (int)row[i].w[1], row[i].mode, (int)row[i].s[0], (int)row[i].s[1]);
            mc_array *have = checked(1, &leaf, text);
            check_same(have, want, text);
            if (row[i].x[0]) {
                check_slopes(1, &leaf, text);
            }
            mc_array_unref(&have);
            mc_array_unref(&want);
            mc_array_unref(&x);
        }
    }
}

TEST(patches_put_together)
{
    static const int64_t dims[4] = { 2, 3, 6, 8 };
    mc_array *x = sample(MC_FLOAT32, 4, dims, -9, 9);
    for (unsigned sized = 0; sized < 2; sized++) {
        struct leaf leaf = { "x", x, sized ? ~0u : 0, false };
        mc_array *y = checked(1, &leaf, "neibs2images(images2neibs(x, [2, 4]), [2, 4], shape(x))"),
                 *z = checked(1, &leaf,
                              "neibs2images(images2neibs(x, [4, 3], mode='ignore_borders'), [4, 3], [2, 3, "
                              "6, 8], mode='ignore_borders')"),
                 *want = run(1, &leaf, "set_subtensor((x * 0)[:, :, :4, :6], x[:, :, :4, :6])");
        check_same(y, x, "there and back");
        if (z && want) {
            int64_t at = mc_array_differs(z, want, 0, 0);
            CHECK(at < 0, "what is left over is not zero, or the rest is lost, at %lld", (long long)at);
        }
        CHECK(z && want, "%s", mc_last_error());
        mc_array *all[] = { y, z, want };
        for (size_t i = 0; i < NELEM(all); i++) {
            mc_array_unref(&all[i]);
        }
    }
    mc_array_unref(&x);
}
