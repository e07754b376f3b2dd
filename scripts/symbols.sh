#!/usr/bin/env bash
# symbols.sh BUILD: what the library exports, names and calls.
set -euo pipefail
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

exported=$(nm -D --defined-only "$build/libmonochord.so" | awk '{ print $3 }' | sort -u)
declared=$(sed -nE 's/^MC_API[^(]*[ *](mc_[A-Za-z0-9_]+)\(.*/\1/p' "$top"/include/*.h | sort -u)
named=$(nm -A --defined-only -g "$build/libmonochord.a" | awk '{ print $NF " in " $1 }' | sort -u)

complain "exported but not declared in include/" "$(comm -23 <(echo "$exported") <(echo "$declared"))"
complain "declared in include/ but not exported" "$(comm -13 <(echo "$exported") <(echo "$declared"))"
complain "external names without the prefix mc_" "$(grep -v '^mc_' <<<"$named" || true)"

# Calls that the library does not make, and the objects that may after all.
#   memory goes through mc_alloc; a user's mistake never prints, exits or aborts; no hidden global state
forbidden="
malloc calloc realloc free strdup strndup asprintf vasprintf posix_memalign aligned_alloc   alloc.c.o
printf vprintf puts putchar perror __printf_chk __vprintf_chk                               -
stdout stderr                                                                               log.c.o
exit abort __assert_fail quick_exit                                                         -
strtok rand srand setlocale gmtime localtime ctime                                 -
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

[ $bad = 0 ] && echo "symbols: $(wc -l <<<"$exported") exported, all declared; $(wc -l <<<"$named") external, all mc_"
exit $bad
