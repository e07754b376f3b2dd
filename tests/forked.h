/* forked.h: parts of a test that run in a child process. */
#ifndef FORKED_H
#define FORKED_H

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* A child that does not outlive the test by much, should it hang. */
static pid_t fork_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(30);
    }
    return pid;
}

/* The exit code of body(), run in a child process that ends with exit(). */
static inline int in_child(int (*body)(void))
{
    pid_t pid = fork_child();
    if (pid == 0) {
        exit(body());
    }
    int status = -1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
