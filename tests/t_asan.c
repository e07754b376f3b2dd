/* t_asan.c: does the address sanitizer's leak check, at exit, work in this program?  Here and not elsewhere
 * it is built in. */
#include "compile_folder.h"
#include <dlfcn.h>

#if defined(__SANITIZE_ADDRESS__)
#define ADDRESS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ADDRESS_SANITIZED
#endif
#endif

#ifdef ADDRESS_SANITIZED
#include <sanitizer/lsan_interface.h>
#define SANITIZED true
#define leaks() (__lsan_do_recoverable_leak_check() != 0)
#else
#define SANITIZED false
#define leaks() false
#endif

enum { LIBRARIES = 100, LEAKS = 23 };

/* Opens many copies of a library, each of which keeps memory in a variable of the thread. */
static int hold_memory(void)
{
    char command[700], path[300];
    for (int i = 0; i < LIBRARIES; i++) {
        int (*hold)(void) = NULL;
        snprintf(path, sizeof path, "%s/%d.so", root, i);
        snprintf(command, sizeof command, "cp '%s' '%s'", in_root("held.so"), path);
        void *library = system(command) == 0 ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        *(void **)&hold = library ? dlsym(library, "hold") : NULL;
        if (!hold || hold() != 1) {
            return 1;
        }
    }
    return 0;
}

static int lose_memory(void)
{
    static char *volatile lost; /* ten times: the last may still be in a register */
    for (int i = 0; i < 10; i++) {
        lost = malloc(77);
        lost[0] = 1;
    }
    lost = NULL;
    if (!freopen("/dev/null", "w", stderr)) { /* the report is expected */
        return 1;
    }
    if (hold_memory() != 0 || !leaks()) {
        return 1;
    }
    _exit(LEAKS); /* without a second report */
}

TEST(asan_finds_leaks_and_no_others)
{
    if (!SANITIZED || system("cc --version >/dev/null 2>&1") != 0) {
        SKIP("no address sanitizer, or no C compiler");
    }
    char command[900];
    REQUIRE(begin("exit 1"), "no folder");
    snprintf(command, sizeof command,
             "echo 'void *malloc(unsigned long); static _Thread_local char pad[32]; static _Thread_local "
             "char *held;"
             "int hold(void) { held = held ? held : malloc(1234); held[0] = 1; return ++pad[0]; }' | cc "
             "-shared -fPIC -x c - -o %s",
             in_root("held.so"));
    REQUIRE(system(command) == 0, "no library");
    int code = in_child(hold_memory);
    CHECK(code == 0, "thread-local memory of libraries: code %d", code);
    code = in_child(lose_memory);
    CHECK(code == LEAKS, "memory that is lost: code %d", code);
}
