/* lines.c: ops on long lines (heavy/lines), which are steps of the host, on the CPU.  Other devices leave
 * them to the reference, or have kernels for them. */
#include "exec/backend.h"
#include "exec/cpu/launch.h"
#include "heavy/lines/lines.h"

enum { MOST_IN = 2 };

/* Is input i of a draw, which is only its shape? */
static bool is_shape(const mc_node *n, int i)
{
    return n->op->line == LINE_DRAW && i > 0;
}

static mc_status run(struct mc_function *f, const struct mc_shape_plan *p, int step, struct mc_exec *e,
                     char *scratch)
{
    const struct mc_program *program = &f->code->program;
    const mc_node *n = program->step.at[step].node[0];
    mc_array *in[MOST_IN] = { NULL }, *out = mc_value_array(f, p, program->value_of[n->id]);
    mc_status s = out ? MC_OK : mc_last_status();
    (void)e;
    for (int i = 0; i < n->nin && s == MC_OK; i++) {
        in[i] = is_shape(n, i) ? NULL : mc_value_array(f, p, program->value_of[n->in[i]->id]);
        s = in[i] || is_shape(n, i) ? MC_OK : mc_last_status();
    }
    const struct mc_line_work w = {
        .node = n, .in = in, .out = &out, .scratch = scratch, .threads = f->threads
    };
    s = s < 0 ? s : mc_line_run(&w);
    for (int i = 0; i < n->nin; i++) {
        mc_array_unref(&in[i]);
    }
    mc_array_unref(&out);
    return s;
}

static const struct mc_exec_ops ops = { .run = run };
static struct mc_exec lines = { &ops };

mc_status mc_line_step_plan(struct mc_function *f, struct mc_shape_plan *p, int step, struct mc_exec **exec)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    const mc_node *n = st->node[0];
    struct mc_type type[MOST_IN];
    size_t bytes;
    if (st->nnode != 1 || n->op->line == LINE_OTHER || n->nin > MOST_IN || f->code->uncompiled) {
        return MC_OK;
    }
    const int to = f->code->program.value_of[n->id];
    for (int i = 0; i < n->nin; i++) {
        const int v = f->code->program.value_of[n->in[i]->id];
        if (is_shape(n, i)) {
            type[i] = mc_type_make(MC_INT64, 0, NULL);
            continue;
        }
        if (v < 0 || p->slot[v].base == BASE_NONE || mc_position_axis(n->in[i]) >= 0) {
            return MC_OK;
        }
        type[i] = p->slot[v].type;
    }
    if (to >= 0 && p->slot[to].base != BASE_NONE && p->slot[to].base != BASE_TYPE &&
        mc_slot_contiguous(&p->slot[to]) && mc_line_scratch(n, type, f->threads, &bytes)) {
        p->step[step].workspace = bytes + 64;
        *exec = &lines;
    }
    return MC_OK;
}
