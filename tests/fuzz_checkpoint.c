/* fuzz_checkpoint.c: whatever the bytes, reading them as a net's parameters changes all of them or none, and
 * says why.
 *
 * Invariant: one folder, gone at the end. */
#define FUZZ_MENDS 0
#include "fuzz.h"
#include <monochord_nn.h>

static char folder[64], path[128];
static mc_graph *g;
static mc_net *net;

static void clean(void)
{
    mc_net_free(net);
    mc_graph_free(g);
    unlink(path);
    rmdir(folder);
}

static void make(void)
{
    fuzz_folder(folder);
    snprintf(path, sizeof path, "%s/m.npz", folder);
    g = mc_graph_new();
    net = mc_net_new(g, NULL, 1);
    if (mc_net_read(net, "m", "input 3\nbatch_norm\ndense 2 softmax\n") < 0) {
        fuzz_wrong("no net");
    }
    atexit(clean);
}

/* A sum over the bits of all parameters. */
static uint64_t bits(void)
{
    uint64_t h = 0;
    for (int i = 0; mc_net_param(net, NULL, i).name; i++) {
        mc_array *a = mc_shared_get(mc_net_param(net, NULL, i).shared);
        h = mc_hash(mc_array_data(a), (size_t)mc_array_size(a) * mc_dtype_size(mc_array_dtype(a)), h);
        mc_array_unref(&a);
    }
    return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (!g) {
        make();
    }
    const uint64_t before = bits();
    if (mc_file_write(path, data, n) < 0) {
        fuzz_wrong("not written");
    }
    mc_clear_error();
    if (mc_net_load_params(net, path, NULL) < 0 && (!*mc_last_error() || bits() != before)) {
        fuzz_wrong("refused without a reason, or not wholly");
    }
    return 0;
}

#if !defined(MC_LIBFUZZER)

static void one(void)
{
    static char *good;
    static size_t n;
    if (!g) {
        make();
    }
    if (!good && (mc_net_save_params(net, path, NULL) < 0 || mc_file_read(path, &good, &n) < 0)) {
        fuzz_wrong("not saved");
    }
    fuzz_one_of(&(struct mc_piece){ good, n }, 1);
}

int main(int argc, char **argv) { return fuzz_main(argc, argv, one); }

#endif
