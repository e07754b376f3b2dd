/* kernels.c: selects the kernels of a program that are printed, and divides them among texts.  For every
 * backend. */
#include "exec/kernels.h"

int *mc_kernels_share(struct mc_program *p)
{
    int *first = mc_alloc((p->step.n + 1) * sizeof *first, "compile"),
        *kept = mc_alloc((p->step.n + 1) * sizeof *kept, "compile"), n = 0;
    for (size_t i = 0; first && kept && i < p->step.n; i++) {
        struct mc_kernel *k = p->step.at[i].kernel;
        int j = k ? 0 : n;
        while (j < n && !mc_kernel_same(p->step.at[kept[j]].kernel, k)) {
            j++;
        }
        first[i] = k ? j < n ? kept[j] : (int)i : -1;
        if (k && j == n) {
            kept[n++] = (int)i;
        } else if (k) {
            memcpy(k->name, p->step.at[kept[j]].kernel->name, sizeof k->name);
        }
    }
    if (!kept) {
        mc_free(first);
        return NULL;
    }
    mc_free(kept);
    return first;
}

void mc_kernels_rule_out(const struct mc_program *p, const int *first,
                         unsigned (*never)(const struct mc_step *st))
{
    for (size_t i = 0; i < p->step.n; i++) {
        if (first[i] >= 0) {
            struct mc_kernel *printed = p->step.at[first[i]].kernel;
            const unsigned one = never(&p->step.at[i]);
            printed->never = first[i] == (int)i ? one : printed->never & one;
        }
    }
    for (size_t i = 0; i < p->step.n; i++) { /* steps that share a kernel must agree with its printed text */
        if (first[i] >= 0) {
            p->step.at[i].kernel->never = p->step.at[first[i]].kernel->never;
        }
    }
}

/* A rough estimate of the time to compile a kernel; 1 for each value of a map. */
static int weight(const struct mc_kernel *k)
{
    const int loops = k->never & ROW_LOOP ? 0 : 2 + 2 * k->nstage,
              vector = k->mode != KERNEL_ROW || k->never & ROW_VECTOR ? 0 : 2;
    return (int)(10 + k->val.n) * (k->mode == KERNEL_MAP ? 1 : loops + vector);
}

int mc_kernels_distribute(const struct mc_program *p, const int *first, int most, int *to)
{
    int total[MC_MOST_TEXTS] = { 0 }, texts = 0, kernels = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        to[i] = -1;
        kernels += first[i] == (int)i;
    }
    most = MC_MIN(most, kernels);
    for (int left = kernels; left > 0; left--) {
        int heaviest = -1, lightest = 0;
        for (int i = 0; i < (int)p->step.n; i++) {
            bool open = first[i] == i && to[i] < 0;
            heaviest = open && (heaviest < 0 ||
                                weight(p->step.at[i].kernel) > weight(p->step.at[heaviest].kernel))
                           ? i
                           : heaviest;
        }
        for (int t = 1; t < most; t++) {
            lightest = total[t] < total[lightest] ? t : lightest;
        }
        to[heaviest] = lightest;
        total[lightest] += weight(p->step.at[heaviest].kernel);
        texts = MC_MAX(texts, lightest + 1);
    }
    for (size_t i = 0; i < p->step.n; i++) {
        to[i] = first[i] < 0 ? -1 : to[first[i]];
    }
    return texts;
}

int mc_kernels_of(const struct mc_program *p, const int *first, const int *to, int text, struct mc_kernel **k)
{
    int n = 0;
    for (size_t i = 0; i < p->step.n; i++) {
        if (to[i] == text && first[i] == (int)i) {
            k[n++] = p->step.at[i].kernel;
        }
    }
    return n;
}

/* ---- maps that may be joint ---- */

static bool is_map(const struct mc_step *st)
{
    return st->kind == STEP_KERNEL && st->kernel->mode == KERNEL_MAP && !st->kernel->bounded &&
           !mc_kernel_checks(st->kernel);
}

static bool does_nothing(const struct mc_step *st)
{
    return st->kind == STEP_VIEW || st->kind == STEP_PLAN_TIME || st->kind == STEP_TYPE;
}

/* Does step i read a result of steps `from` to i - 1? */
static bool reads_result(const struct mc_program *p, int from, int i)
{
    const struct mc_step *st = &p->step.at[i];
    bool yes = false;
    for (int k = 0; k < st->nsrc && !yes; k++) {
        const int made = p->value.at[mc_value_root(p, st->src[k])].step;
        yes = made >= from && made < i;
    }
    return yes;
}

void mc_joint_candidates(const struct mc_program *p, int *first)
{
    int from = -1;
    for (int i = 0; i < (int)p->step.n; i++) {
        const struct mc_step *st = &p->step.at[i];
        const bool map = is_map(st);
        from = map ? (from < 0 || reads_result(p, from, i) ? i : from) : does_nothing(st) ? from : -1;
        first[i] = map ? from : -1;
    }
}
