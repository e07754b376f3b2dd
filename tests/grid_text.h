/* grid_text.h: do a function's kernels, printed for a grid of threads, compile for every GPU that counts?
 * NVRTC needs none. */
#ifndef GRID_TEXT_H
#define GRID_TEXT_H

#include "cuda_test.h"
#include "exec/function.h"
#include <string.h>

static const int architectures[] = { 80, 90, 100 };

/* All kernels of a function as one text for a grid; steps that compute alike share a kernel. */
static inline void grid_text(const mc_function *f, struct mc_str *out)
{
    struct mc_kernel *k[256];
    int n = 0;
    for (size_t i = 0; i < f->code->program.step.n && n < 256; i++) {
        struct mc_kernel *x = f->code->program.step.at[i].kernel;
        bool there = !x;
        for (int j = 0; j < n && !there; j++) {
            there = strcmp(k[j]->name, x->name) == 0;
        }
        if (!there) {
            k[n] = x;
            k[n++]->wide = false; /* a form for the processor alone */
        }
    }
    mc_render_grid(out, &mc_dialect_cuda, n, k);
}

static inline void compiles(const mc_function *f, const char *what)
{
    struct mc_str text = { 0 };
    grid_text(f, &text);
    static size_t turn; /* the everyday tests ask one architecture a function, in turns */
    for (size_t i = 0; i < NELEM(architectures) && !text.bad; i++) {
        size_t bytes = 0;
        if (!test_is_full() && i != turn % NELEM(architectures)) {
            continue;
        }
        mc_status s = mc_cuda_compile_only(text.s, "--disable-warnings", architectures[i], &bytes);
        CHECK(s == MC_OK && bytes > 0, "%s for sm_%d: %.1500s", what, architectures[i], mc_last_error());
    }
    turn++;
    mc_str_free(&text);
}

#endif
