/* lines.c: the table of ops on lines. */
#include "heavy/lines/lines.h"

static const struct row {
    mc_line_scratch_of *scratch;
    mc_line_run_of *run;
} rows[LINE_KINDS] = {
    [LINE_SORTED] = { mc_sort_scratch,   mc_sort_run   },
    [LINE_ORDER]  = { mc_sort_scratch,   mc_sort_run   },
    [LINE_FIRST]  = { mc_first_scratch,  mc_first_run  },
    [LINE_LAST]   = { mc_first_scratch,  mc_first_run  },
    [LINE_SUMS]   = { mc_sums_scratch,   mc_sums_run   },
    [LINE_SEARCH] = { mc_search_scratch, mc_search_run },
    [LINE_COUNTS] = { mc_counts_scratch, mc_counts_run },
    [LINE_DRAW]   = { mc_draw_scratch,   mc_draw_run   },
};

bool mc_line_scratch(const mc_node *n, const struct mc_type *in, int threads, size_t *bytes)
{
    for (int i = 0; i < n->nin; i++) {
        const int64_t size = mc_dims_count(in[i].rank, in[i].dims);
        if (size < 1 || size >= INT64_C(1) << 31) {
            return false;
        }
    }
    *bytes = rows[n->op->line].scratch ? rows[n->op->line].scratch(n, in, threads) : SIZE_MAX;
    return *bytes != SIZE_MAX;
}

mc_status mc_line_run(const struct mc_line_work *w)
{
    return rows[w->node->op->line].run(w);
}
