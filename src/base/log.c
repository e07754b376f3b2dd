/* log.c: named channels to stderr, each enabled by the flag debug; and output of the op print_.
 *
 * Invariant: messages of several threads are not mixed, and nothing here allocates. */
#include "base/base.h"
#include <stdio.h>

_Atomic unsigned mc_log_mask;

static const char *const names[MC_NCHANNEL] = {
    [LOG_REWRITE] = "rewrite",
    [LOG_PLAN]    = "plan",
    [LOG_KERNEL]  = "kernel",
    [LOG_MEM]     = "mem",
    [LOG_TIME]    = "time",
    [LOG_WARN]    = "warn",
};

void mc_log_line(enum mc_channel ch, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    flockfile(stderr);
    mc_fprintf(stderr, "%s: ", names[ch]);
    mc_vfprintf(stderr, fmt, ap);
    fputc('\n', stderr);
    funlockfile(stderr);
    va_end(ap);
}

void mc_say(const char *text)
{
    fputs(text, stdout);
    fflush(stdout);
}
