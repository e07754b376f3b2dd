/* train_folder.h: a folder with models, and monochord train run in it.
 *
 * Invariant: every run has a folder of its own, and nets are so small that a run takes a fraction of a
 * second. */
#ifndef TRAIN_FOLDER_H
#define TRAIN_FOLDER_H

#include "program.h"
#include <monochord.h>
#include <signal.h>

#define TRAIN "@/monochord train"
#define SMALL " --data digits:600"

static const struct {
    const char *name, *text;
} models[] = {
    { "m.txt", "input 1x28x28\ndense 24 tanh\ndropout 0.2\ndense 10 softmax\nbatch 100\nepochs 4\nrule "
               "momentum rate=0.1 momentum=0.9\naugment shift=1\n" },
    { "c.txt", "input 1x28x28\nconv 4 5x5 tanh\npool 4x4\ndense 10 softmax\nbatch 100\nepochs 2\nrule adam "
               "rate=0.01\n" },
    { "n.txt", "input 1x28x28\nbatch_norm\ndense 10 softmax\nbatch 100\nepochs 3\nrule sgd "
               "rate=0.1\nschedule step every=1 by=0.5\n" },
    { "five.txt", "input 1x28x28\ndense 5 softmax\n" },
    { "flat.txt", "input 784\ndense 10 softmax\nepochs 1\n" },
    { "size.txt", "input 1x29x28\ndense 10 softmax\n" },
    { "maps.txt", "input 1x28x28\nconv 10 5x5 softmax\n" },
    { "typo.txt", "input 1x28x28\nconf 32 5x5\ndense 10 softmax\n" },
    { "wild.txt",
      "input 1x28x28\ndense 24 rectify\ndense 10 softmax\nbatch 50\nepochs 4\nrule sgd rate=1e38\n" },
    { "none.txt", "# nothing\n" },
    { "rows.txt", "input 1x28x28\nreshape 7,112\ndense 10 softmax\n" },
    { "relu.txt", "input 1x28x28\ndense 10\n" },
    { "sums.txt", "input 1x28x28\ndense 10 linear\n" },
    { "fit.txt", "input 28x28\ndense 10 softmax\nepochs 1\nbatch 100\n" },
    { "places.txt", "input 1x8x8\nconv 4 1x1 rectify\nconv 2 1x1 linear\ndimshuffle 0,2,3,1\nnonlinearity "
                    "softmax\nbatch 4\nepochs 40\nrule adam rate=0.05\n" },
    { "line.txt", "input 2\ndense 1 linear\nloss squared_error\nbatch 18\nrule sgd rate=0.1\n" },
    { "line.csv", "u,v,y\n-0.74,0,-1.62\n0.2,-0.94,3.05\n-0.7,0.86,-2.99\n-0.86,-0.74,-0.99\n0.9,0.24,2.52\n-"
                  "0.26,0.02,-0.57\n0.33,-0.45,1.87\n"
                  "-0.72,0.58,-2.78\n0.34,0.02,1.64\n0.63,0.1,1.97\n0.96,-0.59,4.98\n0.11,-0.03,1.14\n-0.29,"
                  "0.18,-0.54\n-0.53,0.6,-2.17\n0.73,-0.74,4.46\n"
                  "-0.07,-0.45,0.79\n-0.83,0.79,-3.39\n-0.14,-0.7,1.66\n0.35,-0.6,2.22\n0.8,-0.57,4.14\n" },
    { "kinds.txt", "input 2\ndense 2 softmax\nbatch 9\nrule adam rate=0.1\n" },
    { "kinds.csv", "u;v;kind\n0;1;low\n1;0;\"high, or so\"\n0.1;0.9;low\n0.9;0;\"high, or "
                   "so\"\n0;0.8;low\n0.8;0.1;\"high, or so\"\n0.2;1;low\n1;0.2;\"high, or so\"\n"
                   "0.1;1;low\n1;0.1;\"high, or so\"\n" },
};

/* A command run in a fresh folder with the models; @ is the build's.  To free. */
static inline char *in_folder(const char *command, int *status)
{
    char whole[6144], *text;
    size_t at = (size_t)snprintf(whole, sizeof whole, "d=$(mktemp -d) && cd $d || exit 99; ");
    for (size_t i = 0; i < COUNT(models); i++) {
        at += (size_t)snprintf(whole + at, sizeof whole - at, "printf '%%s' '%s' > %s; ", models[i].text,
                               models[i].name);
    }
    snprintf(whole + at, sizeof whole - at, "(%s) 2>&1; s=$?; cd /; rm -r $d; exit $s", command);
    text = output_of(whole, status);
    return text;
}

/* Starts the program in `folder` with words after "train"; its process. */
static inline pid_t start(const char *folder, const char *words)
{
    char self[2048], command[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = '\0';
    *strrchr(self, '/') = '\0';
    snprintf(command, sizeof command, "cd %s && exec %s/monochord train %s >>said 2>&1", folder, self, words);
    pid_t p = fork();
    if (p == 0) {
        signal(SIGINT, SIG_DFL); /* whoever runs the tests may not hear it */
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
        _exit(127);
    }
    return p;
}

static inline int wait_for(pid_t p)
{
    int code = 0;
    waitpid(p, &code, 0);
    return WIFEXITED(code) ? WEXITSTATUS(code) : 128 + WTERMSIG(code);
}

static inline void write_model(const char *folder, int which)
{
    char path[256];
    snprintf(path, sizeof path, "%s/m.txt", folder);
    CHECK(mc_file_write(path, models[which].text, strlen(models[which].text)) == MC_OK, "%s",
          mc_last_error());
}

static inline void remove_folder(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0, "%s stays", folder);
}

#endif
