/* trace.c: writes the file of the flag `trace`: calls and their steps with times, in the format of
 * Chrome's and Perfetto's viewers.
 *
 * Invariant: between two calls the file is complete JSON. The next write overwrites its closing bracket. */
#include "exec/backend.h"
#include "inspect/profile.h"
#include <errno.h>
#include <stdatomic.h>
#include <unistd.h>

/* tracks: threads in the order of their first call; GPUs are numbered from GPU_TRACK on */
enum { FORMULA_COLUMNS = 200, GPU_TRACK = 1 << 24 };

static struct {
    pthread_mutex_t lock;
    char *name;
    FILE *to;
    bool named[MC_DEVICE_MOST];   /* the track of that GPU has been named in the file */
} trace = { .lock = PTHREAD_MUTEX_INITIALIZER };

static mc_status begin(const char *name)
{
    char *copy = mc_strdup(name);
    FILE *to = copy ? fopen(name, "w") : NULL;
    if (!to) {
        mc_free(copy);
        return copy ? mc_fail(MC_EFILE, "trace: cannot write '%s': %s", name, strerror(errno)) : MC_EMEMORY;
    }
    if (trace.to) {
        fclose(trace.to);
    }
    mc_free(trace.name);
    trace.name = copy;
    trace.to = to;
    memset(trace.named, 0, sizeof trace.named);
    mc_fprintf(to,
               "[{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":%d,\"args\":{\"name\":\"monochord\"}}\n]",
               (int)getpid());
    fflush(to);
    return MC_OK;
}

mc_status mc_trace_open(bool *on)
{
    const char *name = mc_flag_text(FLAG_trace);
    *on = *name != '\0';
    pthread_mutex_lock(&trace.lock);
    mc_status s = *on && !(trace.to && strcmp(trace.name, name) == 0) ? begin(name) : MC_OK;
    pthread_mutex_unlock(&trace.lock);
    return s;
}

static void add(const struct mc_str *event)
{
    if (!event->bad && trace.to) {
        fseek(trace.to, -2, SEEK_END);
        mc_fprintf(trace.to, ",\n%s\n]", event->s);
        fflush(trace.to);
    }
}

static int own_track(void)
{
    static atomic_int threads;
    static _Thread_local int track;
    track = track ? track : atomic_fetch_add(&threads, 1) + 1;
    return track;
}

/* "name": ..., on the track of the GPU or of the calling thread */
static void head(struct mc_str *out, const char *name, int gpu, double from, double seconds)
{
    mc_str_add(out, "{\"name\":");
    mc_str_json(out, name);
    mc_str_addf(out, ",\"ph\":\"X\",\"pid\":%d,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f", (int)getpid(),
                gpu >= 0 ? GPU_TRACK + gpu : own_track(), from * 1e6, seconds * 1e6);
}

static void name_track(int gpu, const char *device)
{
    if (gpu < 0 || trace.named[gpu]) {
        return;
    }
    struct mc_str out = { 0 };
    mc_str_addf(&out, "{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":%d,\"tid\":%d,\"args\":{\"name\":",
                (int)getpid(), GPU_TRACK + gpu);
    mc_str_json(&out, device);
    mc_str_add(&out, "}}");
    add(&out);
    trace.named[gpu] = true;
    mc_str_free(&out);
}

/* "body": the steps of a loop's body, with the runs and seconds since the last event. */
static void body_steps(struct mc_str *out, struct mc_function *body)
{
    const char *comma = "";
    mc_str_add(out, ",\"body\":[");
    for (int i = 0; i < body->code->nstep; i++) {
        struct mc_step_time *t = &body->time[i];
        if (t->calls == t->traced_calls) {
            continue;
        }
        mc_str_addf(out, "%s{\"step\":%d,\"name\":", comma, i);
        mc_str_json(out, mc_step_name(body->code, i));
        mc_str_addf(out, ",\"runs\":%lld,\"seconds\":%.9f", (long long)(t->calls - t->traced_calls),
                    t->seconds - t->traced_seconds);
        t->traced_calls = t->calls;
        t->traced_seconds = t->seconds;
        if (body->loop && body->loop[i]) {
            body_steps(out, body->loop[i]);
        }
        mc_str_add(out, "}");
        comma = ",";
    }
    mc_str_add(out, "]");
}

void mc_trace_step(const struct mc_function *f, const struct mc_shape_plan *p, int step, double from,
                   double seconds)
{
    const struct mc_step *st = &f->code->program.step.at[step];
    if (st->kind != STEP_KERNEL && st->kind != STEP_HEAVY && st->kind != STEP_HOST) {
        return;
    }
    mc_step_info info = mc_function_step(f, step);
    int gpu = strcmp(info.device, mc_host.name) == 0 ? -1 : f->code->device->number;
    struct mc_str out = { 0 }, work = { 0 }, text = { 0 }, shape = { 0 };
    mc_str_addf(&work, "%s%s%s", info.kind, *info.solver ? " " : "", info.solver);
    mc_str_line(&text, info.text, FORMULA_COLUMNS);
    for (int i = 0; i < st->ndst; i++) {
        mc_str_add(&shape, i ? ", " : "");
        mc_type_text(&shape, &p->slot[st->dst[i]].type);
    }
    head(&out, info.name, gpu, from, seconds);
    mc_str_addf(&out, ",\"cat\":\"step\",\"args\":{\"step\":%d,\"work\":", step);
    mc_str_json(&out, work.s ? work.s : "");
    mc_str_add(&out, ",\"formula\":");
    mc_str_json(&out, text.s ? text.s : "");
    mc_str_add(&out, ",\"result\":");
    mc_str_json(&out, shape.s ? shape.s : "");
    if (f->loop && f->loop[step]) {
        body_steps(&out, f->loop[step]);
    }
    mc_str_add(&out, "}}");
    out.bad |= work.bad | text.bad | shape.bad;
    pthread_mutex_lock(&trace.lock);
    name_track(gpu, info.device);
    add(&out);
    pthread_mutex_unlock(&trace.lock);
    mc_str_free(&out);
    mc_str_free(&work);
    mc_str_free(&text);
    mc_str_free(&shape);
}

void mc_trace_call(const struct mc_function *f, double from, double seconds)
{
    struct mc_str out = { 0 };
    head(&out, f->name, -1, from, seconds);
    mc_str_addf(&out, ",\"cat\":\"call\",\"args\":{\"call\":%lld}}", (long long)f->calls);
    pthread_mutex_lock(&trace.lock);
    add(&out);
    pthread_mutex_unlock(&trace.lock);
    mc_str_free(&out);
}
