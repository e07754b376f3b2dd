/* monochord_train_save.c: checkpoints: one file of arrays with the parameters, what the rule remembers, and
 * how far the run was.
 *
 * Invariant: whatever happens while one is written, FILE or FILE.old is whole: the new one gets its name when
 * its bytes are on the disk, and the one before it has its second name by then.  Only finite parameters are
 * ever saved, and only checkpoints are ever replaced. */
#include "train.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- writing ---- */

static bool on_disk(const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool ok = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0) {
        close(fd);
    }
    return ok;
}

static void folder_of(struct text *out, const char *path)
{
    const char *slash = strrchr(path, '/');
    text_addf(out, "%.*s", slash ? (int)(slash - path + 1) : 1, slash ? path : ".");
}

/* Is it what may be left behind `fresh`: itself, its second name, "FRESH.PID-N.tmp"? */
static bool is_left(const char *name, const char *fresh)
{
    const size_t n = strlen(fresh);
    const char *rest = name + n;
    if (strncmp(name, fresh, n) != 0) {
        return false;
    }
    if (!*rest || strcmp(rest, ".link") == 0) {
        return true;
    }
    static const char digits[] = "0123456789";
    size_t pid = *rest == '.' ? strspn(rest + 1, digits) : 0,
           count = pid && rest[1 + pid] == '-' ? strspn(rest + 2 + pid, digits) : 0;
    return count && strcmp(rest + 2 + pid + count, ".tmp") == 0;
}

/* What a run that was killed while it wrote has left behind. */
static void sweep(const char *fresh)
{
    struct text folder = { 0 };
    folder_of(&folder, fresh);
    const char *slash = strrchr(fresh, '/');
    DIR *d = opendir(folder.s);
    const struct dirent *e;
    while (d && (e = readdir(d))) {
        if (is_left(e->d_name, slash ? slash + 1 : fresh)) {
            unlinkat(dirfd(d), e->d_name, 0);
        }
    }
    if (d) {
        closedir(d);
    }
    text_free(&folder);
}

/* FILE gets a second name, FILE.old, so that it is there all the while (where no file has two names it is
 * FILE.old alone for a moment, which resuming finds too); then the new one takes the first. */
static bool take_name(const char *fresh, const char *path)
{
    struct text old = { 0 }, spare = { 0 }, folder = { 0 };
    text_addf(&old, "%s.old", path);
    text_addf(&spare, "%s.new.link", path);
    folder_of(&folder, path);
    unlink(spare.s);
    bool ok = link(path, spare.s) == 0 ? rename(spare.s, old.s) == 0
                                       : errno == ENOENT || rename(path, old.s) == 0;
    ok = ok && rename(fresh, path) == 0;
    ok = ok && on_disk(folder.s);
    text_free(&old);
    text_free(&spare);
    text_free(&folder);
    return ok;
}

bool snapshot_save(const struct run *r, const struct snapshot *s)
{
    struct text fresh = { 0 };
    const char *path = r->o.save;
    text_addf(&fresh, "%s.new", path);
    sweep(fresh.s);
    bool ok = mc_archive_save(fresh.s, path, s->n, (const char *const *)s->name,
                              (const mc_array *const *)s->value) == MC_OK;
    if (!ok) {
        complain("the checkpoint was not saved; the previous one is kept: %s", mc_last_error());
    } else if (!on_disk(fresh.s) || !take_name(fresh.s, path)) {
        ok = false;
        complain("the checkpoint was not saved; the previous one is kept: '%s': %s", path, strerror(errno));
    }
    if (!ok) {
        sweep(fresh.s);
    }
    text_free(&fresh);
    return ok;
}

/* ---- reading ---- */

static bool array_text(mc_archive *z, const char *name, struct text *out)
{
    mc_array *a = mc_archive_load(z, name);
    bool ok = a && mc_array_dtype(a) == MC_UINT8 && mc_array_rank(a) == 1;
    text_addf(out, "%s", "");
    if (ok) {
        text_add(out, mc_array_data(a), (size_t)mc_array_size(a));
    }
    mc_array_unref(&a);
    return ok;
}

/* The float64 array of that name, whole: rows of `columns`, to free; NULL: not there, or of another kind. */
static double *numbers(mc_archive *z, const char *name, int64_t columns, int *rows)
{
    mc_array *a = mc_archive_load(z, name);
    double *out = NULL;
    if (a && mc_array_dtype(a) == MC_FLOAT64 && mc_array_size(a) % columns == 0) {
        *rows = (int)(mc_array_size(a) / columns);
        out = must(malloc((size_t)mc_array_size(a) * sizeof *out + sizeof *out));
        memcpy(out, mc_array_data(a), (size_t)mc_array_size(a) * sizeof *out);
    }
    mc_array_unref(&a);
    return out;
}

/* Are these counts, and numbers, as a run has them? */
static bool sound(const double v[PROGRESS_NUMBERS])
{
    bool good = true;
    for (int i = 0; i < PROGRESS_NUMBERS; i++) {
        bool best = i == PROGRESS_NUMBERS - 1, count = i < 3 || best;
        good = good && isfinite(v[i]) && v[i] >= (best ? -1 : 0) && v[i] < 0x1p53 &&
               (!count || v[i] == floor(v[i]));
    }
    return good;
}

static bool read_progress(mc_archive *z, struct progress *p, struct text *why)
{
    int rows = 0, one = 0;
    double *v = numbers(z, "train/progress", PROGRESS_NUMBERS, &one),
           *h = v && one == 1 && sound(v) ? numbers(z, "train/history", EPOCH_NUMBERS, &rows) : NULL;
    if (h && v[PROGRESS_NUMBERS - 1] < rows) { /* the best epoch is one of these */
        *p = (struct progress){ (int64_t)v[0], (int64_t)v[1], (int64_t)v[2],    v[3],           v[4], v[5],
                                v[6],          (int64_t)v[7], .nhistory = rows, .cap = rows + 1 };
        p->history = must(malloc((size_t)p->cap * sizeof *p->history));
        memcpy(p->history, h, (size_t)rows * sizeof *p->history);
    } else {
        text_addf(why, "the record of its progress is damaged");
    }
    free(v);
    free(h);
    return p->history != NULL;
}

/* The next line and its length; those that say how many epochs are passed over, so that a run can be made
 * longer. */
static const char *next_line(const char *s, size_t *n)
{
    for (;; s += *n + 1) {
        *n = strcspn(s, "\n");
        if (strncmp(s, "epochs ", 7) != 0 || !s[*n]) {
            return s;
        }
    }
}

static bool same_lines(const char *a, const char *b)
{
    for (;;) {
        size_t n, m;
        a = next_line(a, &n);
        b = next_line(b, &m);
        if (n != m || memcmp(a, b, n) != 0 || a[n] != b[m]) {
            return false;
        }
        if (!a[n]) {
            return true;
        }
        a += n + 1;
        b += m + 1;
    }
}

/* Is what the run was made from what it goes on with?  Otherwise its numbers would be neither's. */
static const char *other(const struct run *r, mc_archive *z)
{
    struct text model = { 0 }, data = { 0 };
    const char *what = NULL;
    mc_array *seed = mc_archive_load(z, "train/seed");
    if (!array_text(z, "train/model", &model) || !array_text(z, "train/data", &data) || !seed) {
        what = "is not a checkpoint of a training run";
    } else if (!same_lines(model.s, r->m.text.s)) {
        what = "is of another model or of other settings";
    } else if (strcmp(data.s, r->o.data) != 0) {
        what = "was trained on other data";
    } else if ((long)mc_array_get(seed, NULL) != r->o.seed) {
        what = "was trained with another seed";
    }
    mc_array_unref(&seed);
    text_free(&model);
    text_free(&data);
    return what;
}

/* Is there a file that is no checkpoint, whatever training it is of?  One that begins as a file of arrays and
 * is damaged counts as one where `damaged` does. */
static bool is_other_file(const char *path, bool damaged)
{
    struct stat st;
    if (stat(path, &st) != 0) {
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        return true; /* a folder, a device or a pipe: it would be renamed */
    }
    mc_archive *z = mc_archive_open(path);
    bool good = z && mc_archive_has(z, "train/model") && mc_archive_has(z, "train/progress");
    good = good || (!z && damaged && mc_last_status() == MC_EFORMAT);
    mc_archive_close(z);
    return !good;
}

bool checkpoint_room(const struct options *o)
{
    static const char *const names[] = { "", ".old", ".new" }; /* all that snapshot_save takes */
    bool good = true;
    for (int i = 0; i < COUNT(names) && good; i++) {
        struct text path = { 0 };
        text_addf(&path, "%s%s", o->save, names[i]);
        if (is_other_file(path.s, o->resume)) {
            good = !complain("'%s' exists and is not a checkpoint, so it is not replaced: move it away, or "
                             "give the checkpoint another name with --save FILE",
                             path.s);
        }
        text_free(&path);
    }
    return good;
}

/* The parameters of r's model as z has them, under names with `before` in front; NULL: why. */
static struct snapshot *read_params(const struct run *r, mc_archive *z, const char *before, struct text *why)
{
    struct snapshot *want = snapshot_like(r), *s = must(calloc(1, sizeof *s));
    for (int i = 0; i < want->n && s; i++) {
        struct text name = { 0 };
        text_addf(&name, "%s%s", before, want->name[i]);
        mc_array *a = mc_archive_load(z, name.s), *w = want->value[i];
        bool same = a && mc_array_dtype(a) == mc_array_dtype(w) && mc_array_rank(a) == mc_array_rank(w) &&
                    memcmp(mc_array_dims(a), mc_array_dims(w), (size_t)mc_array_rank(w) * sizeof(int64_t)) ==
                        0;
        if (same && snapshot_finite(a)) {
            snapshot_add(s, want->name[i], a);
        } else {
            text_addf(why, "%s%s",
                      !a     ? ""
                      : same ? "numbers that are not finite: "
                             : "another dtype or shape than the model's: ",
                      a ? name.s : mc_last_error());
            mc_array_unref(&a);
            snapshot_free(s);
            s = NULL;
        }
        text_free(&name);
    }
    if (s) {
        s->nparam = s->n;
    }
    snapshot_free(want);
    return s;
}

/* The library's own messages name the file, others do not yet. */
static void name_file(struct text *why, const char *path)
{
    struct text whole = { 0 };
    text_addf(&whole, "'%s'", path);
    if (!strstr(why->s, whole.s)) {
        text_addf(&whole, ": %s", why->s);
        text_free(why);
        *why = whole;
        return;
    }
    text_free(&whole);
}

/* Everything is read before a parameter is set. */
static bool load_one(struct run *r, const char *path, struct text *why)
{
    struct progress p = { 0 };
    struct snapshot *s = NULL, *best = NULL;
    mc_archive *z = mc_archive_open(path);
    const char *what = z ? other(r, z) : NULL;
    bool ok = z && !what && read_progress(z, &p, why) && (s = read_params(r, z, "", why));
    if (ok && s->n && p.best >= 0) {
        struct text first = { 0 };
        text_addf(&first, BEST "%s", s->name[0]);
        ok = !mc_archive_has(z, first.s) || (best = read_params(r, z, BEST, why));
        text_free(&first);
    }
    if (ok) {
        s->p = p;
        free(r->p.history);
        r->p = p;
        snapshot_free(r->best);
        r->best = best;
        ok = snapshot_put(r, s);
    } else {
        free(p.history);
        snapshot_free(best);
        text_addf(why, "%s", why->n ? "" : what ? what : mc_last_error());
        name_file(why, path);
    }
    snapshot_free(s);
    mc_archive_close(z);
    return ok;
}

bool checkpoint_load(struct run *r)
{
    struct text why = { 0 }, old = { 0 }, why_old = { 0 };
    text_addf(&old, "%s.old", r->o.save);
    text_addf(&why, "%s", "");
    text_addf(&why_old, "%s", "");
    bool ok = load_one(r, r->o.save, &why);
    if (!ok && access(old.s, R_OK) == 0 && load_one(r, old.s, &why_old)) {
        ok = true;
        complain("%s; continuing from '%s'", why.s, old.s);
    } else if (!ok) {
        complain("cannot resume: %s", why.s);
    }
    text_free(&why);
    text_free(&old);
    text_free(&why_old);
    return ok;
}

const char *word_at(const struct text *lines, int k, char out[64])
{
    const char *at = lines->s ? lines->s : "";
    for (; k > 0 && *at; k--) {
        at += strcspn(at, "\n");
        at += *at == '\n';
    }
    snprintf(out, 64, "%.*s", (int)strcspn(at, "\n"), at);
    return out;
}

bool checkpoint_model(struct model *m, const char *path, struct words *w)
{
    mc_archive *z = mc_archive_open(path);
    bool ok = z != NULL;
    if (!ok) {
        complain("%s", mc_last_error());
    } else if (!array_text(z, "train/model", &m->text) || !array_text(z, "train/classes", &w->classes) ||
               !array_text(z, "train/data", &w->data) ||
               (mc_archive_has(z, "train/columns") && !array_text(z, "train/columns", &w->columns))) {
        ok = false;
        complain("'%s' is not a checkpoint of a training run", path);
    }
    if (ok && (ok = model_make(m, path, 1, NULL, 0))) {
        struct run r = { .m = *m };
        struct text why = { 0 };
        mc_param first = mc_net_param(m->net, NULL, 0);
        struct text name = { 0 };
        text_addf(&name, BEST "%s", first.name ? first.name : "");
        struct snapshot *s = read_params(&r, z, mc_archive_has(z, name.s) ? BEST : "", &why);
        ok = s && snapshot_put(&r, s);
        if (!s) {
            name_file(&why, path);
            complain("%s", why.s);
        }
        snapshot_free(s);
        text_free(&name);
        text_free(&why);
    }
    mc_archive_close(z);
    return ok;
}

bool is_checkpoint(const char *name)
{
    return ends_in(name, ".npz") || ends_in(name, ".safetensors");
}

void words_free(struct words *w)
{
    text_free(&w->classes);
    text_free(&w->columns);
    text_free(&w->data);
}
