/* band.c: a band, or all rows of a loop: where its values are in a step, and the steps of its body. */
#include "exec/heavy/heavy.h"
#include "schedule/band.h"

mc_status mc_band_read_plan(struct mc_band *b)
{
    const struct mc_program *pr = &b->body->code->program;
    b->in = mc_calloc((size_t)pr->ninput + 1, sizeof *b->in, "loop");
    b->out = mc_calloc((size_t)pr->noutput + 1, sizeof *b->out, "loop");
    b->moving = mc_alloc((pr->value.n + 1) * sizeof *b->moving, "loop");
    b->run = mc_alloc((pr->step.n + 1) * sizeof *b->run, "loop");
    if (!b->in || !b->out || !b->moving || !b->run) {
        return MC_EMEMORY;
    }
    for (size_t v = 0; v < pr->value.n; v++) {
        const struct mc_slot *at = &b->plan->slot[v];
        if (at->base == BASE_INPUT || at->base == BASE_OUTPUT) {
            b->moving[b->nmoving++] = (struct mc_moving){ (int)v, at->base == BASE_INPUT, at->index,
                                                          at->offset };
        }
    }
    for (int i = 0; i < (int)pr->step.n; i++) {
        if (b->plan->step[i].exec || b->plan->step[i].epilogue) {
            b->run[b->nrun++] = i;
        }
    }
    for (int j = 0; j < pr->noutput; j++) {
        const struct mc_slot *at = &b->plan->slot[pr->output[j]];
        b->out[j].copied = at->base != BASE_OUTPUT || at->index != j;
    }
    return MC_OK;
}

void mc_band_free(struct mc_band *b)
{
    for (int i = 0; b->arg && i < b->l->body->nin; i++) {
        mc_array_unref(&b->arg[i]);
    }
    mc_free(b->arg);
    mc_free(b->in);
    mc_free(b->out);
    mc_free(b->moving);
    mc_free(b->run);
}

void mc_band_place(const struct mc_band *b)
{
    for (int i = 0; i < b->l->body->nin; i++) {
        if (!b->l->body->key[i]) { /* of a key there is a copy */
            b->arg[i]->data = b->in[i].at;
        }
    }
    for (int i = 0; i < b->nmoving; i++) {
        const struct mc_moving *m = &b->moving[i];
        b->body->ptr[m->value] = mc_moved((m->input ? b->in : b->out)[m->of].at, m->offset);
    }
}

void mc_band_advance(const struct mc_band *b)
{
    const struct mc_loop *l = b->l;
    for (int i = 0; i < l->nsequence; i++) {
        b->in[i].at = mc_moved(b->in[i].at, b->in[i].stride);
    }
    for (int i = l->nstate; i < l->nstate + l->ncollect; i++) {
        b->out[i].at = mc_moved(b->out[i].at, b->out[i].stride);
    }
}

mc_status mc_band_run(const struct mc_band *b, bool watched)
{
    const struct mc_code_unit *u = b->body->code;
    for (int i = 0; i < b->nrun; i++) {
        TRY(mc_body_step(b->body, b->plan, b->run[i], watched));
    }
    TRY(watched && u->check_rules ? u->check_rules(b->body) : MC_OK);
    for (int j = 0; j < u->program.noutput; j++) {
        const int v = u->program.output[j];
        if (b->out[j].copied) {
            TRY(u->backend->copy(b->body, &b->plan->slot[v], b->body->ptr[v], b->out[j].at));
        }
    }
    return MC_OK;
}
