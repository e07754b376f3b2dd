/* bands.c: into how many bands the rows of a loop are divided on the CPU, and how bands run: one a thread.
 *
 * Without bands threads share each kernel and each product, and wait for each other after it. */
#include "exec/backend.h"
#include "exec/cpu/launch.h"

enum { LEAST_ROWS = 8 };            /* of a band: the rows of a register tile */
/* ns of one thread: all steps of a loop that is worth a second one; what a thread waits for the others after
 * each step of the body, without bands; an operation of a product */
static const double WORTH = 40000, WAIT = 1000, PRODUCT = 0.01;

/* The time of one thread, in ns, for one step of the loop; negative: bands cannot run a step of the body, or
 * read more of a product's right operand than stays in a thread's L2 cache. */
static double ns_of(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_body_steps *s)
{
    double ns = 0;
    for (int i = 0; i < s->nrun; i++) {
        const struct mc_step *st = &f->code->program.step.at[s->run[i]];
        const struct mc_step_plan *sp = &p->step[s->run[i]];
        if (st->kind == STEP_HEAVY && sp->exec && sp->exec == mc_heavy_exec(sp)) {
            const int b = f->code->program.value_of[st->heavy->in[1]->id];
            if (mc_slot_bytes(&p->slot[b]) > mc_cpu()->l2) {
                return -1;
            }
            ns += sp->flops * PRODUCT;
        } else if (mc_is_launch(sp->exec)) {
            ns += mc_launch_of(sp->exec)->ns;
        } else if (st->kind != STEP_VIEW || sp->exec == &mc_exec_reference) {
            return -1;
        }
    }
    return ns;
}

int mc_launch_bands(const struct mc_function *f, const struct mc_shape_plan *p, const struct mc_body_steps *s,
                    int64_t rows)
{
    const double ns = ns_of(f, p, s), threads = f->threads;
    const int n = (int)MC_MIN(rows / LEAST_ROWS, (int64_t)f->threads);
    const bool pays = n > 1 && ns * (double)s->times >= WORTH && ns / n <= ns / threads + s->nrun * WAIT;
    return pays ? n : 0;
}

struct each {
    void (*one)(void *arg, int i);
    void *arg;
};

static void work(void *arg, int64_t from, int64_t to, int thread)
{
    const struct each *e = arg;
    (void)thread;
    for (int64_t i = from; i < to; i++) {
        e->one(e->arg, (int)i);
    }
}

void mc_launch_each(void (*one)(void *arg, int i), void *arg, int n)
{
    mc_team_run(work, &(struct each){ one, arg }, n, 1, n);
}
