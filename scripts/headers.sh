#!/usr/bin/env bash
# headers.sh: every public header compiles alone, and twice, as C11 and as C++17, without a warning.
set -euo pipefail
cd "$(dirname "$0")/.."
strict="-Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror -fsyntax-only -Iinclude"
n=0
for header in include/*.h; do
    name=${header#include/}
    text="#include <$name>
#include <$name>"
    "${CC:-cc}" -x c -std=c11 $strict - <<<"$text"
    "${CXX:-c++}" -x c++ -std=c++17 $strict - <<<"$text"
    n=$((n + 1))
done
echo "headers: $n compile alone as C11 and as C++17"
