/* t_cuda_refused.c: machines on which no GPU can be used, or one library cannot: one error says why, the
 * report says what it costs, and the processor goes on.
 *
 * Invariant: the libraries are made of tests/refused/library.c by the C compiler, each row's in a process of
 * its own, so this runs with a GPU and without. */
#include "cuda_test.h"
#include "forked.h"
#include "own_folder.h"

#include <string.h>

static const struct row {
    const char *file, *options; /* the library that is made, and how */
    int ordinal;                /* of the GPU that is started */
    const char *error, *report; /* of that; NULL: not looked at */
} rows[] = {
    { "libcuda.so.1", "-DVERSION=11040", 0,
      "the NVIDIA driver is too old: it speaks CUDA 11.4, and 12.0 is needed at least",
      "GPU         none: the NVIDIA driver is too old: it speaks CUDA 11.4, and 12.0 is needed at least\n" },
    { "libcuda.so.1", "-DcuGraphUpload=other", 0,
      "the NVIDIA driver is needed: it has no cuGraphUpload: it is too old",
      "GPU driver  none, so no GPU can be used: it has no cuGraphUpload: it is too old\n" },
    { "libcuda.so.1", "-DINIT=100", 0, "there is no cuda0: the NVIDIA driver finds no GPU",
      "GPU         none: there is no cuda0: the NVIDIA driver finds no GPU\n" },
    { "libcuda.so.1", "-DGPUS=0", 0, "there is no cuda0: the NVIDIA driver finds no GPU",
      "GPU         none: there is no cuda0: the NVIDIA driver finds no GPU\n" },
    { "libcuda.so.1", "-DINIT=802", 0, "the NVIDIA driver: cuInit: system not yet initialized",
      "GPU         none: the NVIDIA driver: cuInit: system not yet initialized\n" },
    { "libcuda.so.1", "-DGPUS=2", 5, "there is no cuda5: this machine has 2 GPUs, cuda0 and on",
      "cuda1       An old GPU, 12 GiB, compute capability 9.0, 24 multiprocessors\n" },
    { "libcuda.so.1", "-DMAJOR=6", 0,
      "cuda0, An old GPU, is too old: its compute capability is 6.0, and 7.0 is needed at least",
      "cuda0       An old GPU, 12 GiB, compute capability 6.0, 24 multiprocessors: too old, 7.0 is needed at "
      "least\n" },
    { "libcuda.so.1", "", 0, "cuda0: start: out of memory", NULL },
    { "libcudnn.so.9", "-DcudnnBackendExecute=other", 0, NULL,
      "cuDNN       none, so convolutions and pooling run on kernels of our own: it has no "
      "cudnnBackendExecute: it is too old\n" },
};

static const struct row *row; /* what the child looks at */

static int expect(bool good, const char *what, const char *said)
{
    if (!good) {
        fprintf(stderr, "%s %s: %s: %s\n", row->file, row->options, what, said);
    }
    return !good;
}

/* A function on the GPU is refused with the same words; one on the processor runs afterwards. */
static int functions_go_on(void)
{
    char device[16];
    float y = 0;
    snprintf(device, sizeof device, "cuda%d", row->ordinal);
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 0);
    mc_flag_set("device", device);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1" });
    int bad = expect(!f && strstr(mc_last_error(), row->error), "compiled for it", mc_last_error());
    mc_function_free(f);
    mc_flag_set("device", "cpu");
    mc_graph_clear_error(g);
    f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1" });
    bad += expect(f && mc_call(f, MC_IN(2.0), MC_OUT(&y)) == MC_OK && y == 3, "on the processor",
                  mc_last_error());
    mc_function_free(f);
    mc_graph_free(g);
    return bad;
}

static int look(void)
{
    struct mc_str said = { 0 };
    int bad = expect(mc_flag_set("cuda.path", folder) == MC_OK, "cuda.path", mc_last_error());
    if (row->error) {
        bad += expect(!mc_cuda_start(row->ordinal) && strstr(mc_last_error(), row->error) == mc_last_error(),
                      "started", mc_last_error());
        bad += functions_go_on();
    }
    if (row->report) {
        mc_cuda_report(&said);
        bad += expect(said.s && strstr(said.s, row->report), "the report", said.s ? said.s : "");
    }
    mc_str_free(&said);
    return bad;
}

static bool made(const char *file, const char *options)
{
    struct mc_str c = { 0 };
    mc_str_addf(&c, "cc -shared -fPIC -w -std=gnu11 %s -I'%s/../src' '%s/refused/library.c' -o '%s'", options,
                TEST_ROOT, TEST_ROOT, in_folder(file));
    bool good = c.s && system(c.s) == 0;
    mc_str_free(&c);
    return good;
}

TEST(machines_of_which_no_gpu_serves_say_why)
{
    for (size_t i = 0; i < NELEM(rows); i++) {
        row = &rows[i];
        CHECK(made("libcuda.so.1", strcmp(row->file, "libcuda.so.1") == 0 ? row->options : ""),
              "no C compiler");
        CHECK(strcmp(row->file, "libcuda.so.1") == 0 || made(row->file, row->options), "no C compiler");
        CHECK(in_child(look) == 0, "%s %s", row->file, row->options);
        drop_folder();
    }
}
