/* t_fuzz.c: the fuzzers' corpus is replayed: inputs that once led somewhere new, or wrong.  `make fuzz` finds
 * others. */
#include "program.h"

static const char *const fuzzers[] = { "parse", "npy", "safetensors", "data", "png", "model", "wisdom", "checkpoint",
                                       "flags", "bundle" };

TEST(the_corpus_is_replayed)
{
    for (size_t i = 0; i < COUNT(fuzzers); i++) {
        char command[512];
        int status;
        snprintf(command, sizeof command, "@/fuzz_%s '%s/corpus/%s'", fuzzers[i], TEST_ROOT, fuzzers[i]);
        const char *said = output_of(command, &status);
        if (status == 127) {
            SKIP("not built: fuzz_%s", fuzzers[i]);
        }
        CHECK(status == 0 && atoi(said) > 0, "fuzz_%s ends with %d:\n%s", fuzzers[i], status, said);
    }
}

/* A short dose of what `make fuzz` does where there is no clang: the same inputs on every run. */
TEST(good_inputs_are_changed_at_random)
{
    for (size_t i = 0; i < COUNT(fuzzers); i++) {
        char command[128];
        int status;
        snprintf(command, sizeof command, "@/fuzz_%s 0.3", fuzzers[i]);
        const char *said = output_of(command, &status);
        if (status == 127) {
            SKIP("not built: fuzz_%s", fuzzers[i]);
        }
        CHECK(status == 0, "fuzz_%s ends with %d:\n%s", fuzzers[i], status, said);
    }
}
