/* resident.h: a loop that one kernel runs: what resident.c finds of it, resident_note.c notes at each call,
 * and resident_print.c prints. */
#ifndef MC_EXEC_CUDA_RESIDENT_H
#define MC_EXEC_CUDA_RESIDENT_H

#include "exec/cuda/resident_args.h"
#include "exec/cuda/grid.h"
#include "exec/heavy/heavy.h"
#include "heavy/gemm/gemm.h"

/* PHASES: of a body, at most; WORD: bytes that addresses and arguments are aligned to */
enum { PHASES = 12, WORD = 16 };

/* A map, a product or a copy of the body. */
struct phase {
    const struct mc_step *st;
    const struct mc_grid_launch *map;   /* or NULL */
    const struct mc_gemm_problem *product;
    struct mc_resident_copy copy;       /* if it is neither of those */
    int value[4];                       /* of a product: X, W, Y, C; of a copy: from, to; -1: there is none */
    int nvalue;
    int64_t by;                         /* bytes from the value `to` on */
    int result;                         /* of a copy to a result: its number among the copied ones + 1 */
    int move, args;                     /* where its moves, and a map's arguments, begin */
    int rows, columns, lanes, at;       /* of a product: as its kernel divides it */
};
/* at: the address of the operand.  even: its element in row r and column c is at c plus a multiple of the
 * period, so that a block has the same columns of all such operands.  pitch: bytes from one row of the
 * batch to the next, of which `width` belong to the operand; 0: it has no such rows. */
struct rows { int64_t pitch, width; };
struct span { const char *from, *end; uintptr_t at; bool write, even; struct rows rows; };
struct mc_cuda_resident {
    struct phase phase[PHASES];
    int n, products;
    bool fits;
    int period, units;                  /* 0: a product's columns are divided for it alone */
    int batch, bands;                   /* rows of all products; 1: they are not divided */
    int64_t noted;                      /* steps of the loop whose addresses were noted */
    struct mc_resident_move *move;
    int nmove;
    struct mc_resident_head head;
    VEC(struct span) open;              /* what was touched since the last barrier */
    struct mc_grid grid;
    void *kernel;
    char *args;
    size_t nargs, maps;                 /* bytes of all arguments; of those of the maps */
    struct mc_array *arrived;
};

/* resident_print.c: the text of the kernel */
void mc_cuda_resident_print(struct mc_str *out, const struct mc_cuda_resident *r,
                            const struct mc_function *f);

#endif
