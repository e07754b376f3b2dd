#!/usr/bin/env bash
# headers.sh: every public header compiles alone, and twice, as C11 and as C++17 (.hpp: as C++17), without a warning; and what
# must not compile says why.
set -euo pipefail
cd "$(dirname "$0")/.."
strict="-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror -fsyntax-only -Iinclude"
n=0
as_c() { "${CC:-cc}" -x c -std=c11 $strict -; }
compilers=$(for c in "${CXX:-c++}" g++ clang++; do p=$(command -v "$c") && echo "$(readlink -f "$p") $p" || true; done | sort -u -k1,1 | cut -d" " -f2)
as_cpp() { for c in $compilers; do "$c" -x c++ -std=c++17 $strict - || return 1; done; }
for header in include/*.h include/*.hpp; do
    name=${header#include/}
    text="#include <$name>
#include <$name>"
    [ "${name##*.}" = hpp ] || as_c <<<"$text"
    as_cpp <<<"$text"
    [ "${name##*.}" = hpp ] || as_cpp <<<"extern \"C\" {
$text
}"
    n=$((n + 1))
done

# MC_IN and MC_OUT: up to 32 arguments, and a reason for more
for k in 1 12 13 32 33 64 128; do
    numbers=$(seq -s , 1 "$k") addresses=$(sed 's/[0-9]*/\&y/g' <<<"$(seq -s , 1 "$k")")
    text="#include <monochord.h>
mc_status call(mc_function *f);
mc_status call(mc_function *f) { double y = 0; return mc_call_args(f, MC_IN($numbers), MC_OUT($addresses)); }"
    for language in as_c as_cpp; do
        if said=$($language <<<"$text" 2>&1); then said=; else said=${said:-nothing}; fi
        if [ "$k" -le 32 ] && [ -n "$said" ]; then
            echo "headers: $k arguments, $language: $said"
            exit 1
        elif [ "$k" -gt 32 ] && ! grep -q "MC_IN and MC_OUT take at most 32 arguments" <<<"$said"; then
            echo "headers: $k arguments, $language: no reason is given: ${said:-it compiles}"
            exit 1
        fi
    done
done
echo "headers: $n compile alone, as C11 and as C++17 by $(wc -l <<<"$compilers") compilers"
