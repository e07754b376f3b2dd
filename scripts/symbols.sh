#!/usr/bin/env bash
# symbols.sh BUILD: what the library exports, names and calls.
set -euo pipefail
export LC_ALL=C # one order for sort and comm
build=${1:-build}
top=$(cd "$(dirname "$0")/.." && pwd)
bad=0
complain() {
    if [ -n "$2" ]; then
        echo "symbols: $1"
        sed 's/^/    /' <<<"$2"
        bad=1
    fi
}

# what a shared library exports, with the version: mc_exp@@MONOCHORD_0.1
exports() { nm -D --defined-only "$build/$1" | awk '$2 != "A" { print $3 }' | sort -u; }
exported=$(exports libmonochord.so | sed 's/@.*//' | sort -u)
declared=$(sed -nE 's/^MC_API[^(]*[ *](mc_[A-Za-z0-9_]+)\(.*/\1/p' "$top"/include/*.h | sort -u)
named=$(nm -A --defined-only -g "$build"/libmonochord*.a | awk 'NF > 2 { print $NF " in " $1 }' | sort -u)

complain "exported but not declared in include/" "$(comm -23 <(echo "$exported") <(echo "$declared"))"
complain "declared in include/ but not exported" "$(comm -13 <(echo "$exported") <(echo "$declared"))"
complain "external names without the prefix mc_" "$(grep -v '^mc_' <<<"$named" || true)"

# Calls that the library does not make, and the objects that may after all.
#   memory goes through mc_alloc; a user's mistake never prints, exits or aborts; no hidden global state; numbers become text, and
#   text numbers, without the program's locale (the two scanf read whole numbers)
forbidden="
malloc calloc realloc free strdup strndup asprintf vasprintf posix_memalign aligned_alloc   alloc.c.o
printf vprintf puts putchar perror __printf_chk __vprintf_chk                               -
stdout stderr                                                                               log.c.o
exit abort __assert_fail quick_exit                                                         -
strtok rand srand setlocale gmtime localtime ctime                                          -
fprintf vfprintf snprintf vsnprintf strtod strtof strtold uselocale                         number.c.o
sprintf vsprintf dprintf atof strfromd strfmon localeconv                                   -
__fprintf_chk __vfprintf_chk __snprintf_chk __vsnprintf_chk                                 number.c.o
sscanf __isoc99_sscanf __isoc23_sscanf                                                      compiler.c.o
fscanf __isoc99_fscanf __isoc23_fscanf                                                      features.c.o
__ctype_b_loc __ctype_tolower_loc __ctype_toupper_loc tolower toupper strcasecmp strncasecmp strcoll strxfrm strftime   -
isalpha isalnum isdigit isspace isupper islower isprint ispunct isxdigit isblank            -
"
calls=$(nm -A -u "$build/libmonochord.a" | sed -E 's/^[^:]*:([^:]+):.* ([^ @]+)(@.*)?$/\2 \1/' | sort -u)
complain "calls that the library must not make" "$(awk -v table="$forbidden" '
    BEGIN {
        n = split(table, row, "\n")
        for (i = 1; i <= n; i++) {
            k = split(row[i], word, " ")
            for (j = 1; j < k; j++) may[word[j]] = word[k]
        }
    }
    ($1 in may) && may[$1] != $2' <<<"$calls")"

# Outside src/base and src/device: what C11 and POSIX.1-2008 have, and sincos, which gcc makes of sin and cos.  Names with __ are the compiler's and the C library's own
# spelling of these.
portable="
memcpy memmove memset memcmp memchr strlen strcmp strncmp strchr strrchr strcspn strspn strpbrk strstr strerror
strtol strtoll strtoul strtoull sscanf qsort bsearch abs labs llabs getenv
fopen fclose fread fwrite fputs fputc fgets fgetc fseek ftell fflush feof ferror rewind remove rename
ungetc getc putc setvbuf fdopen fileno getline fmemopen open_memstream popen pclose system atoi strnlen stpcpy
strtok_r gmtime_r localtime_r mktime sysconf isatty nanosleep sleep kill waitpid fork signal sigaction raise sigfillset pthread_sigmask
open close read write pread pwrite lseek stat fstat lstat access unlink opendir readdir closedir dirfd getpid
openat fstatat unlinkat renameat mkdirat fdopendir mkdir rmdir link symlink readlink realpath chmod fchmod ftruncate fsync
fcntl lockf geteuid getuid utimensat futimens mkstemp mkdtemp glob globfree fnmatch getcwd poll mmap munmap
dlopen dlsym dlclose dlerror clock_gettime time
socket bind listen accept connect send recv shutdown setsockopt getsockname getaddrinfo freeaddrinfo gai_strerror gethostname setenv
pthread_create pthread_detach pthread_join pthread_once pthread_self pthread_equal
pthread_mutex_init pthread_mutex_destroy pthread_mutex_lock pthread_mutex_unlock pthread_mutex_trylock
atexit pthread_cond_init pthread_cond_destroy pthread_cond_wait pthread_cond_timedwait pthread_cond_signal pthread_cond_broadcast
newlocale uselocale freelocale duplocale
fabs fmin fmax fmod fma floor ceil trunc rint nearbyint round lround llround lrint llrint remainder hypot cbrt nextafter
frexp ldexp scalbn modf logb copysign sqrt pow exp exp2 expm1 log log2 log10 log1p sin cos tan asin acos atan atan2
sinh cosh tanh asinh acosh atanh erf erfc lgamma tgamma
sincos
"
words=$(tr -s ' \n' '\n' <<<"$portable" | sed '/^$/d')
foreign=$(find "$build"/CMakeFiles/objects.dir/{src,gen} -name '*.o' ! -path '*/src/base/*' ! -path '*/src/device/*' | sort |
    xargs nm -A -u | sed -E 's|^.*/objects.dir/([^:]+)\.o:.* ([^ @]+)(@.*)?$|\2 \1|' | sort -u |
    awk -v words="$words" 'BEGIN { n = split(words, w, "\n"); for (i = 1; i <= n; i++) { ok[w[i]] = 1; ok[w[i] "f"] = 1 } }
        !($1 in ok) && $1 !~ /^(mc_|__|_GLOBAL_OFFSET_TABLE_)/ { print $1 " in " $2 }')
complain "calls outside src/base and src/device that POSIX.1-2008 does not have" "$foreign"
complain "the program sets a locale" "$(nm -D -u "$build/monochord" | grep -w setlocale || true)"

# Programs that were linked with an older library find each symbol in the version that they ask for.
for list in "$top"/abi/*.txt; do
    name=${list##*/}
    so=lib$(tr _ - <<<"${name%.txt}").so
    [ -e "$build/$so" ] || continue # not on every system
    now=$(exports "$so")
    complain "$so lost, or has in another version, what abi/$name lists" "$(comm -13 <(echo "$now") <(sort -u "$list"))"
    complain "$so exports what abi/$name does not list: run make abi" "$(comm -23 <(echo "$now") <(sort -u "$list"))"
done
complain "libmonochord-run exports what libmonochord does not" \
    "$(comm -13 <(sort -u "$top"/abi/monochord.txt) <(sort -u "$top"/abi/monochord_run.txt))"

[ $bad = 0 ] && echo "symbols: $(wc -l <<<"$exported") exported, all declared; $(wc -l <<<"$named") external, all mc_"
exit $bad
