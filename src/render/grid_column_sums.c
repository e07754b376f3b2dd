/* grid_column_sums.c: column sums of a row kernel.  Each team of lanes takes every teams-th row and has
 * partial sums in the scratch memory; NAME_tally adds them.
 *
 * Invariant: a lane adds to the same columns in every row of its team. */
#include "render/grid.h"
#include "render/prelude.h"

bool mc_grid_column_sums(const struct mc_kernel *k)
{
    for (size_t i = 0; i < k->operand.n; i++) {
        if (k->operand.at[i].column_sums) {
            return true;
        }
    }
    return false;
}

static int column_sum_slot(const struct mc_kernel *k, size_t operand)
{
    int slot = 0;
    for (size_t i = 0; i < operand; i++) {
        slot += k->operand.at[i].column_sums;
    }
    return slot;
}

size_t mc_grid_column_sums_size(const struct mc_kernel *k)
{
    size_t size = 0;
    for (size_t i = 0; i < k->operand.n; i++) {
        size = k->operand.at[i].column_sums ? MC_MAX(size, mc_dtypes[k->operand.at[i].dtype].size) : size;
    }
    return size;
}

void mc_grid_part(struct print *p, size_t operand, const char *team)
{
    mc_str_addf(p->out, "A.scratch + ((i64)%d * A.teams + %s) * A.count[1] * %zu",
                column_sum_slot(p->k, operand), team, mc_grid_column_sums_size(p->k));
}

void mc_grid_open_rows(struct print *p)
{
    if (!mc_grid_column_sums(p->k)) {
        mc_str_add(p->out, "const u32 at = A.column ? blockIdx.x * blockDim.x + threadIdx.x : blockIdx.x * "
                           "blockDim.y + threadIdx.y;\n{\n");
        return;
    }
    mc_str_add(p->out, "const u32 team = blockIdx.x * blockDim.y + threadIdx.y;\n"
                       "for (u32 first = blockIdx.x * blockDim.y; first < A.count[0]; first += A.teams) "
                       "{\nconst u32 at = first + threadIdx.y;\n");
}

void mc_grid_close_rows(struct print *p)
{
    mc_str_add(p->out, "}\n");
}

void mc_grid_begin_column_sums(struct print *p)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (p->k->operand.at[i].column_sums) {
            mc_str_addf(p->out, "char *const sums%zu = ", i);
            mc_grid_part(p, i, "(blockIdx.x * blockDim.y + threadIdx.y)");
            mc_str_addf(p->out, ";\nfor (u32 r = lane; r < A.count[1]; r += lanes) ((%s *)sums%zu)[r] = 0;\n",
                        t, i);
        }
    }
}

/* NAME_tally: a block takes a few columns, one memory sector wide.  All its threads read the teams' sums;
 * then one warp adds each column. */
void mc_grid_print_column_sum(struct print *p)
{
    mc_str_addf(p->out,
                "ENTRY %s_tally(const %s_args A)\n{\nBEGIN\nconst u32 wide = %d, deep = 1024 / wide; "
                "__shared__ double sums[wide][deep + 1];\n",
                p->k->name, p->k->name, GRID_SUM_COLUMNS);
    mc_str_add(p->out, "const u32 x = threadIdx.x, y = threadIdx.y, from = blockIdx.x * wide, me = (y * wide "
                       "+ x) % 32, place = (y * wide + x) / 32; i64 none = 0; double c = 0;\n");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (p->k->operand.at[i].column_sums) {
            mc_str_addf(p->out,
                        "if (blockIdx.y == %d && from + x < A.count[1]) {\n_Pragma(\"unroll 8\") for (u32 "
                        "team = y; team < A.teams; team += deep) c += ((const %s *)(",
                        column_sum_slot(p->k, i), t);
            mc_grid_part(p, i, "team");
            mc_str_add(p->out, "))[from + x];\n}\n");
        }
    }
    mc_str_add(p->out, "sums[x][y] = c;\n__syncthreads();\nif (place >= wide) return;\nc = 0;\nfor (u32 i = "
                       "me; i < deep; i += 32) c += sums[place][i];\n"
                       "warp_<0>(c, none, [](double &to, i64 &, const double l, const i64) { to += l; "
                       "});\nif (me || from + place >= A.count[1]) return;\n");
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const char *t = p->d->store[p->k->operand.at[i].dtype];
        if (p->k->operand.at[i].column_sums) {
            mc_str_addf(p->out, "if (blockIdx.y == %d) {\ni64 o = 0; u32 left = from + place;\n",
                        column_sum_slot(p->k, i));
            mc_str_addf(p->out,
                        "for (u32 d = 0; d < A.axes[1]; d++) { u32 i = left; if (d + 1 < A.axes[1]) { left = "
                        "i / A.size[A.axes[0] + d]; i -= left * A.size[A.axes[0] + d]; } "
                        "o += (i64)i * A.step[%zu][A.axes[0] + d]; }\n*(%s *)(A.p[%zu] + o) = (%s)c;\n}\n",
                        i, t, i, t);
        }
    }
    mc_str_add(p->out, "}\n");
}
