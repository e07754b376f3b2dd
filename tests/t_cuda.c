/* t_cuda.c: GPUs as devices.  What needs no GPU runs everywhere: errors, the table against the vendor's
 * headers where TEST_CUDA_PATH leads to them, texts compiled by NVRTC where it is found. */
#include "cuda_test.h"
#include "device/cuda/driver.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- without a GPU ---- */

TEST(devices_are_read_by_name)
{
    static const struct { const char *name; mc_status s; int ordinal; } row[] = {
        { "cpu", MC_OK, -1 },     { "cuda", MC_OK, 0 },       { "cuda0", MC_OK, 0 },     { "cuda12", MC_OK, 12 },
        { "cudax", MC_EARG, -1 }, { "cuda-1", MC_EARG, -1 },  { "CUDA", MC_EARG, -1 },   { "", MC_EARG, -1 },
        { "cuda0x", MC_EARG, -1 }, { "cuda99999", MC_EARG, -1 }, { "gpu", MC_EARG, -1 },
    };
    for (size_t i = 0; i < NELEM(row); i++) {
        int n = 77;
        CHECK(mc_cuda_parse(row[i].name, &n) == row[i].s && n == row[i].ordinal, "'%s' gives %d", row[i].name,
              n);
    }
    CHECK(!mc_nv_opened(NV_DRIVER), "reading a name opened the driver");
}

TEST(nothing_is_opened_before_it_is_asked_for)
{
    mc_flag_set("device", "cpu"); /* what this says is of the processor */
    mc_graph *g = mc_graph_new();
    mc_input(g, "x", MC_FLOAT32, 1);
    mc_function *f = mc_compile(g, &(mc_spec){ .inputs = "x", .outputs = "x + 1" });
    CHECK(f, "%s", mc_error(g));
    mc_array *x = mc_array_new(MC_FLOAT32, MC_SHAPE(3)), *y = NULL;
    CHECK(f && mc_call(f, MC_IN(x), MC_OUT(&y)) == MC_OK, "%s", mc_last_error());
    for (enum mc_nv_lib l = 0; l < NV_LIBS; l++) {
        CHECK(!mc_nv_opened(l), "library %d was opened", (int)l);
    }
    mc_array_unref(&x);
    mc_array_unref(&y);
    mc_function_free(f);
    mc_graph_free(g);
}

TEST(without_a_driver_everything_says_so)
{
    if (mc_nv_found(NV_DRIVER)->present) {
        SKIP("there is a driver, %s", mc_nv_found(NV_DRIVER)->version);
    }
    static const char want[] = "the NVIDIA driver is needed: libcuda.so.1 was not found";
    mc_clear_error();
    CHECK(mc_cuda_count() == 0 && mc_last_status() == MC_OK, "counting none is an error: %s",
          mc_last_error());
    CHECK(!mc_cuda_start(0) && mc_last_status() == MC_EDEVICE && strcmp(mc_last_error(), want) == 0, "%s",
          mc_last_error());
    mc_array *a = mc_array_new(MC_FLOAT32, MC_SHAPE(3));
    CHECK(!mc_array_to(a, "cuda") && strcmp(mc_last_error(), want) == 0, "%s", mc_last_error());
    CHECK(mc_array_get(a, NULL) == 0, "the array is no longer usable");
    mc_array_unref(&a);
    struct mc_str report = { 0 };
    mc_cuda_report(&report);
    CHECK(report.s &&
              strstr(report.s, "GPU driver  none, so no GPU can be used: libcuda.so.1 was not found\n") ==
                  report.s,
          "%s", report.s);
    mc_str_free(&report);
}

TEST(a_library_that_is_none_is_told_from_one_that_is_missing)
{
    if (mc_nv_found(NV_CUFFT)->present) {
        SKIP("cuFFT %s is found by the loader", mc_nv_found(NV_CUFFT)->version);
    }
    CHECK(strcmp(mc_nv_found(NV_CUFFT)->why, "libcufft.so.12 or libcufft.so.11 was not found") == 0, "%s",
          mc_nv_found(NV_CUFFT)->why);
    char folder[] = "/tmp/mc_cuda_XXXXXX", path[64], flag[80];
    REQUIRE(mkdtemp(folder), "no folder");
    snprintf(path, sizeof path, "%s/libcufft.so.12", folder);
    snprintf(flag, sizeof flag, "/nowhere:%s", folder);
    CHECK(mc_file_write(path, "no library", 10) == MC_OK && mc_flag_set("cuda.path", flag) == MC_OK, "%s",
          mc_last_error());
    CHECK(mc_nv_need(NV_CUFFT) == MC_EDEVICE &&
              strstr(mc_last_error(), "cuFFT is needed: ") == mc_last_error() &&
              strstr(mc_last_error(), path),
          "%s", mc_last_error());
    unlink(path);
    rmdir(folder);
}

/* ---- the table against the vendor's headers ---- */

/* any: one of its functions, none of which takes a lone float */
static const struct { const char *lib, *header, *any; } headers[] = {
    { "NV_DRIVER", "cuda.h", "cuInit" },          { "NV_NVRTC", "nvrtc.h", "nvrtcVersion" }, { "NV_CUBLASLT", "cublasLt.h", "cublasLtCreate" },
    { "NV_CUDNN", "cudnn.h", "cudnnCreate" },     { "NV_CUFFT", "cufft.h", "cufftCreate" },
    { "NV_CUBLAS", "cublas_v2.h", "cublasCreate_v2" }, { "NV_CUSOLVER", "cusolverDn.h", "cusolverDnCreate" },
    { "NV_NCCL", "nccl.h", "ncclGetVersion" },
};

static void add_folders_of(struct mc_str *out, const char *root, size_t n, const char *header, bool *found)
{
    static const char *const part[] = { "", "/include", "/*/include", "/nvidia/*/include",
                                        "/nvidia/*/include/cccl" };
    for (size_t i = 0; i < NELEM(part); i++) {
        char pattern[512];
        glob_t g;
        snprintf(pattern, sizeof pattern, "%.*s%s", (int)n, root, part[i]);
        if (glob(pattern, 0, NULL, &g) != 0) {
            continue;
        }
        for (size_t k = 0; k < g.gl_pathc; k++) {
            char file[600];
            mc_str_addf(out, " -I'%s'", g.gl_pathv[k]);
            snprintf(file, sizeof file, "%s/%s", g.gl_pathv[k], header);
            *found |= access(file, R_OK) == 0;
        }
        globfree(&g);
    }
}

/* Adds -I for every folder of headers there is. */
static void add_folders(struct mc_str *out, const char *header, bool *found)
{
    const char *path = getenv("TEST_CUDA_PATH");
    for (size_t n; path && *path; path += n + (path[n] == ':')) {
        n = strcspn(path, ":");
        add_folders_of(out, path, n, header, found);
    }
    add_folders_of(out, "/usr/local/cuda", strlen("/usr/local/cuda"), header, found);
}

static int compare(size_t row, const char *folders, const char *more, char *said, size_t size)
{
    struct mc_str c = { 0 };
    mc_str_addf(&c, "c++ -std=c++17 -fsyntax-only -w -I'%s/../src'%s -DHEADER='<%s>' %s", TEST_ROOT, folders,
                headers[row].header, more);
    for (size_t i = 0; i < NELEM(headers); i++) {
        mc_str_addf(&c, " -DLOOK_%s=%d", headers[i].lib, i == row);
    }
    mc_str_addf(&c, " '%s/nv_abi.cpp' 2>&1", TEST_ROOT);
    FILE *p = popen(c.s, "r");
    size_t n = p ? fread(said, 1, size - 1, p) : 0;
    said[n] = '\0';
    int code = p ? pclose(p) : -1;
    mc_str_free(&c);
    return code;
}

TEST(the_table_agrees_with_the_vendors_headers)
{
    int compared = 0;
    char said[2000];
    for (size_t i = 0; i < NELEM(headers); i++) {
        struct mc_str folders = { 0 };
        bool found = false;
        add_folders(&folders, headers[i].header, &found);
        if (found && compare(i, folders.s, "-DLOOK_none", said, sizeof said) != 0 &&
            strstr(said, "fatal error")) {
            found = false; /* a header without those that it includes */
        }
        if (found) {
            compared++;
            CHECK(compare(i, folders.s, "", said, sizeof said) == 0, "%s\n%s", headers[i].header, said);
            char wrong[64];
            snprintf(wrong, sizeof wrong, "-DWRONG=%s", headers[i].any);
            CHECK(compare(i, folders.s, wrong, said, sizeof said) != 0 && strstr(said, "static assertion"),
                  "%s: a wrong row passes", headers[i].header);
        }
        mc_str_free(&folders);
    }
    if (!compared) {
        SKIP("no headers: TEST_CUDA_PATH leads to none of the %zu", NELEM(headers));
    }
}

/* ---- NVRTC ---- */

TEST(texts_compile_for_each_architecture)
{
    static const int sm[] = { 80, 90, 100 };
    NEEDS_NVRTC;
    for (size_t i = 0; i < NELEM(sm); i++) {
        size_t n = 0, again = 0;
        CHECK(mc_cuda_compile_only(TWICE, "", sm[i], &n) == MC_OK && n > 500, "sm_%d: %zu bytes: %s", sm[i],
              n, mc_last_error());
        int64_t compiled = mc_cuda_code_stats().compiled;
        CHECK(mc_cuda_compile_only(TWICE, "", sm[i], &again) == MC_OK && again == n &&
                  mc_cuda_code_stats().compiled == compiled,
              "sm_%d is compiled twice", sm[i]);
        CHECK(mc_cuda_compile_only(TWICE, "-DOTHER=1 --fmad=false", sm[i], &again) == MC_OK, "%s",
              mc_last_error());
    }
    size_t n;
    CHECK(mc_cuda_compile_only(TWICE, "", 999, &n) == MC_OK && n > 100, "a GPU of the future gets no PTX: %s",
          mc_last_error());
    CHECK(mc_cuda_compile_only(TWICE, "", 30, &n) == MC_EDEVICE && n == 0 &&
              strstr(mc_last_error(), "compiles nothing for GPUs as old as "
                                      "compute capability 3.0"),
          "%s", mc_last_error());
}

/* In a process of its own: was the text compiled, and was NVRTC opened?  -1: neither can be. */
static int compiled_afresh(const char *path)
{
    char own[40];
    int status = 0;
    snprintf(own, sizeof own, "-DTWICE=%ld", (long)getpid()); /* no run before this one has compiled it */
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        size_t n;
        cuda_test_path();
        if (path) {
            mc_flag_set("cuda.path", path);
        }
        mc_status s = mc_cuda_compile_only(TWICE, own, 90, &n);
        _exit(s < 0 ? 99 : (mc_cuda_code_stats().compiled ? 2 : 0) + mc_nv_opened(NV_NVRTC));
    }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 99
               ? WEXITSTATUS(status)
               : -1;
}

TEST(what_is_compiled_needs_no_compiler)
{
    char other[4096];
    CHECK(!mc_nv_opened(NV_NVRTC), "another test has opened it in this process");
    int first = compiled_afresh(NULL);
    if (first < 0) {
        NEEDS_NVRTC;
    }
    CHECK(first == 3, "compiled, opened: %d", first);
    CHECK(compiled_afresh(NULL) == 0, "opened again for a text that is kept");
    const char *path = getenv("TEST_CUDA_PATH");
    snprintf(other, sizeof other, "%s:/nowhere/%ld", path ? path : "",
             (long)getpid()); /* the same file, by another name of the place */
    CHECK(compiled_afresh(other) == 1, "what was noted of one place is believed of another");
}

TEST(the_compilers_message_has_the_users_lines)
{
    size_t n;
    NEEDS_NVRTC;
    CHECK(mc_cuda_compile_only("extern \"C\" __global__ void k(float *p)\n{\n    p[0] = nonsense;\n}\n", "",
                               90, &n) == MC_ECOMPILE,
          "compiled");
    CHECK(strstr(mc_last_error(), "kernel.cu(3): error: identifier \"nonsense\" is undefined") &&
              strstr(mc_last_error(), "p[0] = nonsense;"),
          "%s", mc_last_error());
    CHECK(mc_cuda_compile_only(TWICE, "--no-such-option", 90, &n) == MC_ECOMPILE &&
              strstr(mc_last_error(), "no-such-option"),
          "%s", mc_last_error());
    CHECK(mc_cuda_compile_only(TWICE, "", 90, &n) == MC_OK, "not usable afterwards: %s", mc_last_error());
}

TEST(compiling_survives_want_of_memory)
{
    NEEDS_NVRTC;
    ALLOC_FAIL_LOOP {
        size_t n;
        CHECK(mc_cuda_compile_only(TWICE, "-DX", 90, &n) == MC_OK || ALLOC_FAILED, "%s", mc_last_error());
    }
}
