/* fuzz_flags.c: whatever the text, setting flags ends in flags whose values can be set again, or in an error
 * that changes none. */
#include "fuzz.h"

static uint64_t values(void)
{
    uint64_t h = 0;
    for (int f = 0; f < MC_NFLAG; f++) {
        h = mc_hash_mix(h, mc_hash_str(mc_flag_text((enum mc_flag)f)));
    }
    return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = malloc(n + 1);
    if (!text) {
        exit(2);
    }
    memcpy(text, data, n);
    text[n] = 0;
    const uint64_t before = values();
    mc_clear_error();
    if (mc_flags_parse(text) < 0 && (!*mc_last_error() || values() != before)) {
        fuzz_wrong("refused without a reason, or not wholly");
    }
    const char *eq = strchr(text, '=');
    if (eq) {
        text[eq - text] = 0;
        mc_clear_error();
        if (mc_flag_set(text, eq + 1) < 0 && !*mc_last_error()) {
            fuzz_wrong("refused without a reason");
        }
        const char *now = mc_flag_get(text);
        if (now && mc_flag_set(text, now) < 0) {
            fuzz_wrong("a value that cannot be set");
        }
    }
    free(text);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static void one(void)
{
    static const char *const good[] = { "floatX=float32,threads=2", "mode=DEBUG", "debug=plan:kernel",
                                        "workspace=64k,profile=True", "device=cuda0, seed = 7" };
    const char *text = good[fuzz_below(NELEM(good))];
    fuzz_one_of(&(struct mc_piece){ text, strlen(text) }, 1);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
