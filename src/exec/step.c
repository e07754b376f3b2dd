/* step.c: runs one step of a function; the text of its errors; the number of threads. */
#include "device/cpu/cpu.h"
#include "exec/backend.h"

bool mc_step_compiled(const struct mc_function *f, int step)
{
    return f->code->program.step.at[step].kernel && f->code->backend->compiled(f, step);
}

mc_status mc_step_run(struct mc_function *f, const struct mc_shape_plan *p, int step)
{
    const struct mc_step_plan *sp = &p->step[step];
    char *scratch = f->arena + sp->workspace_at;
    TRY(sp->exec ? sp->exec->ops->run(f, p, step, sp->exec, scratch) : MC_OK);
    return sp->epilogue ? sp->epilogue->ops->run(f, p, step, sp->epilogue, scratch) : MC_OK;
}

/* "train: index 9 is out of range for axis 0 with size 2", then the step's text on a line of its own. */
mc_status mc_step_error(const struct mc_function *f, int step, mc_status s)
{
    char said[600];
    mc_snprintf(said, sizeof said, "%s", mc_last_error());
    return s == MC_EMEMORY ? s
                           : mc_fail(s, "%s: %s\n    in %.400s", f->name, said, mc_step_text(f->code, step));
}

int mc_step_threads(int asked)
{
    const int flag = (int)mc_flag_int(FLAG_threads);
    return asked > 0 ? asked : flag > 0 ? flag : mc_team_size();
}

void mc_exec_free(struct mc_exec *e)
{
    mc_free(e);
}
