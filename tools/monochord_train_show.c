/* monochord_train_show.c: how a run looks in a terminal.
 *
 * Invariant: a line is written over only on a terminal, and is not longer than that is wide; a file or a pipe
 * gets one plain line an epoch. */
#include "train.h"
#include <math.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BAR = 24, ROWS = 12, COLUMNS = 60, WIDTH = 80, BESIDE_BAR = 64 };

static bool on_terminal(void) { return isatty(STDOUT_FILENO); }

/* As long as the line has room for. */
static int bar_length(void)
{
    struct winsize w;
    int columns = ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col ? w.ws_col : WIDTH,
        room = columns - 1 - BESIDE_BAR;
    return room < 0 ? 0 : room < BAR ? room : BAR;
}

static void clock_text(char out[48], double seconds)
{
    long s = (long)(seconds + 0.5);
    if (s >= 3600) {
        snprintf(out, 48, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    } else {
        snprintf(out, 48, "%ld:%02ld", s / 60, s % 60);
    }
}

/* 0.0290, and 1.2e+12 where that would take too many places. */
static const char *loss_text(char out[16], double loss)
{
    snprintf(out, 16, loss < 1e4 ? "%.4f" : "%.2e", loss);
    return out;
}

void show_progress(const struct run *r, bool force)
{
    static double last;
    double now = seconds_now(), spent = now - r->began + r->p.seconds;
    int64_t all = mc_data_count(r->train), batches = mc_batches_count(r->batches);
    if (r->o.quiet || !on_terminal() || (!force && now - last < 0.1) || r->p.seen <= 0) {
        return;
    }
    last = now;
    double speed = r->p.seen / spent,
           left_epochs = (double)(mc_net_training(r->m.net)->epochs - r->p.epoch) - r->p.seen / (double)all;
    int bar = bar_length(), done = (int)(bar * r->p.batch / batches);
    char left[48], loss[16], error[32] = "";
    clock_text(left, left_epochs * (double)all / speed);
    if (r->m.errors) {
        snprintf(error, sizeof error, "  error %5.2f%%", 100 * r->p.wrong / r->p.seen);
    }
    printf("\r%5lld  %.*s%.*s  %3.0f%%  loss %s%s  %.0f/s  %s left\033[K", (long long)r->p.epoch + 1, done,
           "########################", bar - done, "........................", 100 * r->p.seen / (double)all,
           loss_text(loss, r->p.cost / r->p.seen), error, speed, left);
    fflush(stdout);
}

void show_epoch(const struct run *r, const struct epoch *e)
{
    char loss[16], test_loss[16];
    if (r->o.quiet) {
        return;
    }
    bool first = r->p.epoch == 0 || r->p.nhistory == 0;
    const char *clear = on_terminal() ? "\r\033[K" : "";
    if (!r->m.errors) { /* the loss is all there is */
        if (first) {
            printf("%s%6s  %9s  %9s  %7s  %8s  %10s\n", clear, "epoch", "loss", "test loss", "rate", "time",
                   "examples/s");
        }
        printf("%s%6lld  %9s  %9s  %7.3g  %6.1f s  %10.0f\n", clear, (long long)r->p.epoch + 1,
               loss_text(loss, e->loss), loss_text(test_loss, e->test_loss), e->rate, e->seconds,
               (double)mc_data_count(r->train) / e->seconds);
        fflush(stdout);
        return;
    }
    if (first) {
        printf("%s%6s  %8s  %7s  %9s  %10s  %7s  %8s  %10s\n", clear, "epoch", "loss", "error", "test loss",
               "test error", "rate", "time", "examples/s");
    }
    printf("%s%6lld  %8s  %6.2f%%  %9s  %9.2f%%  %7.3g  %6.1f s  %10.0f\n", clear, (long long)r->p.epoch + 1,
           loss_text(loss, e->loss), 100 * e->error, loss_text(test_loss, e->test_loss), 100 * e->test_error,
           e->rate, e->seconds, (double)mc_data_count(r->train) / e->seconds);
    fflush(stdout);
}

/* ---- the curve: errors, or losses where there are none, over epochs, up by factors ---- */

/* Between two epochs a straight line, up by factors. */
static void plot(char cell[ROWS][COLUMNS + 1], const struct progress *p, int wide, bool test, double low,
                 double high)
{
    for (int x = 0; x < wide; x++) {
        double place = (double)(p->nhistory - 1) * x / (wide - 1), share = place - floor(place), at = 0;
        for (int k = 0; k < 2; k++) {
            int i = (int)place + k < p->nhistory ? (int)place + k : p->nhistory - 1;
            double v = test ? p->history[i].test_error : p->history[i].error;
            at += (k ? share : 1 - share) * (v > 0 ? (log(v) - low) / (high - low) : 0);
        }
        cell[ROWS - 1 - (int)((ROWS - 1) * fmin(1, fmax(0, at)) + 0.5)][x] = test ? 'o' : '.';
    }
}

void show_curve(const struct run *r)
{
    const struct progress *p = &r->p;
    char cell[ROWS][COLUMNS + 1];
    double least = r->m.errors ? 1 : HUGE_VAL, most = r->m.errors ? 1e-4 : 0;
    if (p->nhistory < 2) {
        return;
    }
    int wide = p->nhistory < COLUMNS / 5 ? p->nhistory * 5 - 4 : COLUMNS;
    for (int i = 0; i < p->nhistory; i++) {
        const double v[] = { p->history[i].error, p->history[i].test_error };
        for (int k = 0; k < COUNT(v); k++) {
            least = v[k] > 0 ? fmin(least, v[k]) : least;
            most = fmax(most, v[k]);
        }
    }
    if (!(most > 0)) {
        return;
    }
    double low = log(least) - 0.05, high = log(most) + 0.05;
    for (int y = 0; y < ROWS; y++) {
        memset(cell[y], ' ', COLUMNS);
        cell[y][COLUMNS] = '\0';
    }
    plot(cell, p, wide, false, low, high);
    plot(cell, p, wide, true, low, high);
    printf("\n  %s by epoch: o test, . training\n", r->m.errors ? "error" : "loss");
    for (int y = 0; y < ROWS; y++) {
        double v = exp(high - (high - low) * y / (ROWS - 1));
        if (r->m.errors) {
            printf("  %6.2f%% |%s\n", 100 * v, cell[y]);
        } else {
            printf("  %7.2g |%s\n", v, cell[y]);
        }
    }
    printf("          +%.*s\n           1%*d\n", wide,
           "------------------------------------------------------------", wide - 1, p->nhistory);
}

/* ---- labels and answers ---- */

void show_confusion(const struct findings *f, const mc_data *d)
{
    enum { MOST = 20, LONGEST = 12 };
    if (f->classes > MOST || !f->confusion) {
        return;
    }
    int name = 1;
    for (int k = 0; k < f->classes; k++) {
        int n = (int)strlen(mc_data_class(d, k));
        name = n > name ? n : name;
    }
    name = name < LONGEST ? name : LONGEST;
    int cell = 2 + name + f->classes * 7 < WIDTH ? 6 : 5;
    printf("\n  answers (across) to each class (down)\n  %*s", name, "");
    for (int k = 0; k < f->classes; k++) {
        printf(" %*.*s", cell, cell, mc_data_class(d, k));
    }
    printf("\n");
    for (int i = 0; i < f->classes; i++) {
        printf("  %*.*s", name, name, mc_data_class(d, i));
        for (int k = 0; k < f->classes; k++) {
            int64_t n = f->confusion[i * f->classes + k];
            if (n) {
                printf(" %*lld", cell, (long long)n);
            } else {
                printf(" %*s", cell, ".");
            }
        }
        printf("\n");
    }
}

/* ---- numbers ---- */

void show_fits(const struct findings *f, const mc_data *d)
{
    enum { MOST = 20 };
    printf("\n  %-20s  %10s  %12s  %12s\n", "", "R^2", "mean |error|", "largest");
    for (int k = 0; k < f->classes && k < MOST; k++) {
        struct fit fit = fit_of(f, k);
        printf("  %-20.20s  %10.4f  %12.4g  %12.4g\n", mc_data_class(d, k), fit.r2, fit.mean_error,
               fit.worst_error);
    }
}

void show_result(const struct findings *f, const struct model *m, const char *where)
{
    char loss[16];
    if (m->errors) {
        printf("error %.2f%%, loss %.4f", 100 * f->error, f->loss);
        if (is_text(where)) {
            printf(", %.3f bits a character", f->loss / log(2));
        }
    } else {
        printf("loss %s", loss_text(loss, f->loss));
    }
}
