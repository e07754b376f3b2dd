/* fuzz_safetensors.c: whatever the bytes, reading them as a .safetensors file ends in arrays whose names
 * differ, or in an error. */
#define FUZZ_MENDS 0
#include "fuzz.h"
#include "safetensors_sample.h"
#include "unhex.h"
#include "value/value.h"

static void use(mc_archive *a)
{
    const int n = mc_archive_count(a);
    for (int i = 0; i < n && i < 20; i++) {
        mc_array *x = mc_archive_load(a, mc_archive_name(a, i));
        if (!x) {
            fuzz_wrong("sound, and yet not loaded");
        }
        mc_text_free(mc_array_text(x));
        mc_array_unref(&x);
        for (int k = 0; k < i; k++) {
            if (strcmp(mc_archive_name(a, i), mc_archive_name(a, k)) == 0) {
                fuzz_wrong("a name twice");
            }
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 9 || data[8] != '{') { /* fuzz_npy has the other format */
        return 0;
    }
    mc_clear_error();
    mc_archive *a = mc_archive_read(
        (struct mc_source){ .fd = -1, .mem = (const char *)data, .size = n, .name = "fuzz" });
    if (!a && !*mc_last_error()) {
        fuzz_wrong("refused without a reason");
    }
    if (a) {
        use(a);
    }
    mc_archive_close(a);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static void one(void)
{
    static struct mc_str good;
    if (!good.n) {
        good = unhex(safetensors_sample);
    }
    fuzz_one_of(&(struct mc_piece){ good.s, good.n }, 1);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
