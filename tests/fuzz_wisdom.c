/* fuzz_wisdom.c: whatever the lines, importing wisdom ends in lines that print and read back, or in an error.
 * The input stands between a good first line and a last line that fits; or, where its first byte is odd, is
 * the whole file.
 *
 * Invariant: one folder, gone at the end; what was known before an import that fails is known afterwards. */
#include "fuzz.h"
#include "plan/plan.h"

#include <inttypes.h>

static char folder[64], path[128];

static void clean(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0) {
        perror(folder);
    }
}

static char *printed(size_t *n)
{
    char *text = NULL;
    FILE *to = open_memstream(&text, n);
    if (!to || mc_wisdom_print(to) < 0 || fclose(to) != 0) {
        fuzz_wrong("not printed");
    }
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct mc_str file = { 0 };
    size_t size, after_n;
    if (!*folder) {
        fuzz_folder(folder);
        snprintf(path, sizeof path, "%s/lines", folder);
        mc_flag_set("cache", folder);
        atexit(clean);
    }
    mc_wisdom_clear();
    mc_wisdom_put("known before", "a", 1);
    char *before = printed(&size), *after;
    if (n && !(data[0] & 1)) {
        size_t lines = 0;
        mc_str_addn(&file, before, strcspn(before, "\n") + 1);
        mc_str_addn(&file, (const char *)data + 1, n - 1);
        mc_str_add(&file, file.s[file.n - 1] == '\n' ? "" : "\n");
        for (size_t i = strcspn(before, "\n") + 1; i < file.n; i++) {
            lines += file.s[i] == '\n';
        }
        mc_str_addf(&file, "end %zu %016" PRIx64 "\n", lines, mc_hash(file.s, file.n, 0));
    } else {
        mc_str_addn(&file, (const char *)data + (n > 0), n ? n - 1 : 0);
    }
    if (mc_file_write(path, file.s, file.n) < 0) {
        fuzz_wrong("not written");
    }
    mc_clear_error();
    mc_status s = mc_wisdom_import(path);
    after = printed(&after_n);
    if (s < 0 ? !*mc_last_error() || strcmp(before, after) != 0
              : !strstr(after, "\nknown before a 1.0000e+00\n")) {
        fuzz_wrong(after);
    }
    if (s == MC_OK &&
        (mc_file_write(path, after, after_n) < 0 || mc_wisdom_clear() < 0 || mc_wisdom_import(path) < 0)) {
        fuzz_wrong("what is printed does not read back");
    }
    free(before);
    free(after);
    mc_str_free(&file);
    return 0;
}

#if !defined(MC_LIBFUZZER)

static void one(void)
{
    static const char good[] =
        "\2gemm f32 nn m64n64k64 t2 s0badcafe packed 3.1e-06\nconv b fft 2e-3\na b 0\n";
    fuzz_one_of(&(struct mc_piece){ good, sizeof good - 1 }, 1);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
