/* address.c: counts, strides and addresses of a kernel: the arguments of its function, or the numbers and
 * expressions of one launch.
 *
 * Invariant: of a launch, loops of one iteration are not printed, and no text names their counters. */
#include "render/print.h"

/* The count of a loop; -1: only a call tells. */
int64_t mc_print_known(const struct print *p, int loop)
{
    return !p->at || (loop == 0 && p->at->count) ? -1 : p->at->n[loop];
}

/* "n1", or its number */
const char *mc_print_count(struct print *p, int loop)
{
    static const char *const names[] = { "n0", "n1", "n2" };
    const int64_t n = mc_print_known(p, loop);
    if (n < 0) {
        return p->at ? p->at->count : names[loop];
    }
    mc_snprintf(p->number[loop], sizeof p->number[loop], "%lld", (long long)n);
    return p->number[loop];
}

/* The line before a loop that threads share, or `otherwise`. */
void mc_print_parallel(struct print *p, int loop, const char *otherwise)
{
    mc_str_add(p->out, p->at && p->at->parallel && p->at->shared == loop ? p->at->parallel : otherwise);
}

/* "for (i64 i1 = 0; i1 < n1; i1++)", and `after`; of a single iteration only the brace in `after` */
void mc_print_for(struct print *p, int loop, const char *after)
{
    if (mc_print_known(p, loop) == 1) {
        mc_str_add(p->out, strchr(after, '{') ? "{\n" : "");
    } else {
        mc_print_parallel(p, loop, "");
        mc_str_addf(p->out, "for (i64 i%d = 0; i%d < %s; i%d++)%s", loop, loop, mc_print_count(p, loop), loop,
                    after);
    }
}

void mc_print_for_elements(struct print *p, const char *pragma)
{
    if (mc_print_known(p, 0) == 1) {
        mc_str_add(p->out, "{ const i64 j = 0; ");
    } else {
        mc_print_parallel(p, 0, pragma);
        mc_str_addf(p->out, "for (i64 j = 0; j < %s; j++) { ", mc_print_count(p, 0));
    }
}

/* "p[3]", or its expression */
void mc_print_address(struct print *p, size_t i)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    if (!p->at) {
        mc_str_addf(p->out, "p[%zu]", i);
    } else {
        const char *e = p->at->base[i];
        mc_str_addf(p->out, e[strspn(e, letters)] ? "(%s)" : "%s", e);
    }
}

/* " + i1 * s[4]", or with its number */
static void offset_along(struct print *p, size_t operand, int loop)
{
    const size_t at = 3 * operand + (size_t)loop;
    if (!p->at) {
        mc_str_addf(p->out, " + i%d * s[%zu]", loop, at);
    } else if (mc_print_known(p, loop) != 1 && p->at->s[at]) {
        mc_str_addf(p->out, p->at->s[at] == 1 ? " + i%d" : " + i%d * %lld", loop, (long long)p->at->s[at]);
    }
}

/* A kernel starts at linear position `first` of what it reduces (fold) or at 0. */
void mc_print_position(struct print *p, struct mc_str *position)
{
    if (!p->at) {
        mc_str_add(position, p->k->mode == KERNEL_COLUMN ? "(i2 * n1 + i1)" : "(base + i2 * n0 + j)");
        return;
    }
    const char *outer = mc_print_known(p, 2) == 1 ? "0" : "i2", *first = p->at->first;
    if (p->k->mode == KERNEL_COLUMN) {
        mc_str_addf(position, "(%s * %s + %s)", outer, mc_print_count(p, 1),
                    mc_print_known(p, 1) == 1 ? "0" : "i1");
        return;
    }
    mc_str_add(position, "(");
    if (p->k->mode == KERNEL_FULL_REDUCTION && first) {
        mc_str_addf(position, "%s + ", first);
    } else if (p->k->mode == KERNEL_FULL_REDUCTION && p->at->n[3]) {
        mc_str_addf(position, "%lld + ", (long long)p->at->n[3]);
    }
    if (*outer == 'i') {
        mc_str_addf(position, "i2 * %s + ", mc_print_count(p, 0));
    }
    mc_str_add(position, "j)");
}

/* Does a column kernel compute all its columns at once? */
bool mc_print_one_block(const struct print *p)
{
    const int64_t n = mc_print_known(p, 0);
    return n >= 0 && n <= KERNEL_COLUMNS;
}

/* The addresses of the operands at the current outer indices: "+ i1 * s[4]". */
void mc_print_pointers(struct print *p, bool elements, const char *offset)
{
    for (size_t i = 0; i < p->k->operand.n; i++) {
        const struct mc_koperand *o = &p->k->operand.at[i];
        bool element = o->dst ? p->k->val.at[o->val].element
                              : (o->varies & (p->k->mode == KERNEL_MAP ? ~0u : p->k->reduced)) != 0;
        if (element != elements) {
            continue;
        }
        const char *t = p->d->store[o->dtype];
        if (o->index) {
            mc_str_addf(p->out, "const i64 a%zu = (i64)", i);
        } else {
            mc_str_addf(p->out, "%s%s *a%zu = (%s%s *)", o->dst ? "" : "const ", t, i, o->dst ? "" : "const ",
                        t);
        }
        mc_print_address(p, i);
        for (const char *f = offset; *f; f++) { /* "12": + i1 * s[3k+1] + i2 * s[3k+2]; "j": + j0 * s[3k] */
            if (*f != 'j') {
                offset_along(p, i, *f - '0');
            } else if (mc_print_moves(p->k, o) && !mc_print_one_block(p)) {
                mc_str_add(p->out, " + j0");
            }
        }
        mc_str_add(p->out, ";\n");
    }
}

/* "float *b1 = (float *)(p[5] + ...) + i2 * n0; " */
void mc_print_row_buffer(struct print *p, int b, const char *type)
{
    const int64_t n = p->at ? p->at->n[0] : 0;
    mc_str_addf(p->out, "%s *b%d = (%s *)(", type, b, type);
    mc_print_address(p, p->k->operand.n);
    if (!p->at) {
        mc_str_addf(p->out, " + %d * (n0 * n2 * 8 + 64)) + i2 * n0; (void)b%d;\n", b - 1, b);
        return;
    }
    mc_str_addf(p->out, b > 1 ? " + %lld)" : ")", (long long)((b - 1) * (n * p->at->n[2] * 8 + 64)));
    mc_str_addf(p->out, p->at->n[2] != 1 ? " + i2 * %lld;\n" : ";\n", (long long)n);
}

