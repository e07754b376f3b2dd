/* plan.c: a solver bound to a problem.
 *
 * Invariant: a plan owns its copy of the problem, its children and what its solver allocated for it. */
#include "plan/choice.h"

const char *const mc_act_names[] = {
    [ACT_NONE] = "", [ACT_RELU] = " relu", [ACT_GELU] = " gelu", [ACT_TANH] = " tanh", [ACT_SIGMOID] = " sigmoid", [ACT_ELU] = " elu",
    [ACT_GELU_ERF] = " gelu_erf", [ACT_SWISH] = " swish",
};

mc_code_list *mc_plan_note(const struct mc_problem *p, mc_code_list *list)
{
    const struct mc_site *site = p->family->site;
    return site && site->note ? site->note(list) : NULL;
}

static struct mc_plan *bind(const struct mc_problem *p, const struct mc_solver *s,
                            const struct mc_plan_options *options)
{
    struct mc_problem *copy = mc_alloc(p->family->problem_size, "plans");
    if (!copy) {
        return NULL;
    }
    memcpy(copy, p, p->family->problem_size);
    copy->options = *options;
    mc_code_list code = { 0 }, *before = mc_plan_note(p, &code);
    struct mc_plan *plan = s->plan(copy);
    mc_plan_note(p, before);
    if (!plan) {
        VEC_FREE(code);
        mc_free(copy);
        return NULL;
    }
    plan->solver = s;
    plan->problem = copy;
    plan->code = code;
    return plan;
}

struct mc_plan *mc_plan_noted(struct mc_plan *plan)
{
    mc_code_list *to = plan ? mc_plan_note(plan->problem, NULL) : NULL;
    if (to) {
        mc_plan_note(plan->problem, to);
    }
    for (size_t i = 0; to && i < plan->code.n; i++) {
        if (!VEC_PUSH(*to, plan->code.at[i])) {
            mc_plan_free(plan);
            plan = NULL;
            break;
        }
    }
    return plan;
}

struct mc_plan *mc_plan_bind(const struct mc_problem *p, const struct mc_solver *s)
{
    return mc_plan_noted(bind(p, s, &p->options));
}

struct mc_plan *mc_plan_under(const struct mc_problem *p, const struct mc_solver *s,
                              const struct mc_plan_options *options)
{
    struct mc_plan *plan = bind(p, s, options);
    if (plan) {
        plan->cost = s->estimate(plan->problem);
    }
    return plan;
}

struct mc_plan *mc_plan_with(const struct mc_problem *p, const struct mc_solver *s)
{
    return mc_plan_noted(mc_plan_under(p, s, &p->options));
}

struct mc_plan *mc_plan_bare(mc_status (*run)(const struct mc_plan *p, void *const *operand, void *workspace,
                                              int threads))
{
    struct mc_plan *made = mc_calloc(1, sizeof *made, "plans");
    if (made) {
        made->run = run;
    }
    return made;
}

void mc_plan_free(struct mc_plan *p)
{
    if (!p) {
        return;
    }
    for (size_t i = 0; i < NELEM(p->child); i++) {
        mc_plan_free(p->child[i]);
    }
    if (p->destroy) {
        p->destroy(p);
    }
    VEC_FREE(p->code);
    mc_free((void *)p->problem);
    mc_free(p);
}

double mc_plan_least(const struct mc_plan *p)
{
    double seconds = p->solver->least ? p->solver->least(p->problem) : 0;
    for (size_t i = 0; i < NELEM(p->child); i++) {
        seconds += p->child[i] ? mc_plan_least(p->child[i]) : 0;
    }
    return seconds;
}

bool mc_plan_chosen(const struct mc_plan *p, struct mc_arena *a, mc_chosen_list *list)
{
    struct mc_str key = { 0 };
    bool good = true;
    if (p->measured) {
        p->problem->family->key(p->problem, &key);
        const struct mc_chosen_solver one = { key.s ? mc_arena_str(a, key.s, key.n) : NULL, p->solver->name,
                                              p->cost };
        good = !key.bad && one.key && VEC_PUSH(*list, one);
    }
    for (size_t i = 0; i < NELEM(p->child); i++) {
        good = good && (!p->child[i] || mc_plan_chosen(p->child[i], a, list));
    }
    mc_str_free(&key);
    return good;
}

void mc_plan_text(const struct mc_plan *p, struct mc_str *out)
{
    const char *family = p->problem->family->name;
    struct mc_str word = { 0 };
    p->problem->family->key(p->problem, &word);
    const char *rest = word.bad || !word.s ? "" : word.s;
    if (strncmp(rest, family, strlen(family)) == 0) {
        rest += strlen(family);
    }
    mc_str_addf(out, "(%s%s", p->solver->name, rest);
    for (size_t i = 0; i < NELEM(p->child); i++) {
        if (p->child[i]) {
            mc_str_add(out, " ");
            mc_plan_text(p->child[i], out);
        }
    }
    mc_str_add(out, ")");
    out->bad |= word.bad;
    mc_str_free(&word);
}
