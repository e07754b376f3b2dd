#!/usr/bin/env bash
# install_test.sh BUILD: installs into a fresh folder, runs the program from there and builds tests/install/ and the README's
# program against that copy: through pkg-config (shared, static), through find_package, and as C++.
set -euo pipefail
build=$(cd "${1:-build}" && pwd)
cd "$(dirname "$0")/.."
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
cmake --install "$build" --prefix "$prefix" >/dev/null
env -u LD_LIBRARY_PATH "$prefix/bin/monochord" --version >/dev/null || { echo "install: the program does not find its library"; exit 1; }
pc=$(find "$prefix" -name monochord.pc)
[ -n "$pc" ] || { echo "install: no monochord.pc"; exit 1; }
export PKG_CONFIG_PATH=${pc%/*}
lib=$(pkg-config --variable=libdir monochord)
export LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
work=$prefix/work
mkdir "$work"

awk '/^```c$/ { on = 1; next } /^```$/ { if (on) exit } on' README.md >"$work/readme.c"
cp -r tests/install/* tests/runtime tests/npz_sample.h tests/safetensors_sample.h "$work"
cd "$work"
strict="-Wall -Wextra -Werror"
"${CC:-cc}" $strict readme.c $(pkg-config --cflags --libs monochord) -o readme
"${CC:-cc}" $strict twice.c $(pkg-config --cflags --libs monochord) -o twice
"${CC:-cc}" $strict twice.c $(pkg-config --cflags monochord) "$lib/libmonochord.a" \
    $(pkg-config --static --libs-only-l monochord | sed 's/-lmonochord//') -o twice_static
"${CC:-cc}" $strict slope.c $(pkg-config --cflags monochord) "$lib/libmonochord.a" \
    $(pkg-config --static --libs-only-l monochord | sed 's/-lmonochord//') -o slope_static
"${CXX:-c++}" $strict twice.cpp $(pkg-config --cflags --libs monochord) -o twice_cpp
"${CC:-cc}" $strict runtime/runtime.c $(pkg-config --cflags --libs monochord-run) -o runtime_shared
"${CC:-cc}" $strict runtime/runtime.c $(pkg-config --cflags monochord-run) "$lib/libmonochord-run.a" \
    $(pkg-config --static --libs-only-l monochord-run | sed 's/-lmonochord-run//') -o runtime_static
classes=
for compiler in $(for c in "${CXX:-c++}" g++ clang++; do p=$(command -v "$c") && echo "$(readlink -f "$p") $p" || true; done | sort -u -k1,1 | cut -d" " -f2); do
    "$compiler" -std=c++17 $strict -Wpedantic -Wshadow -Wconversion classes.cpp $(pkg-config --cflags --libs monochord) -o "classes_${compiler##*/}"
    classes+=" classes_${compiler##*/}"
done
cmake -S . -B cmake -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="${CC:-cc}" >/dev/null
cmake --build cmake >/dev/null
programs="readme twice twice_static slope_static twice_cpp$classes runtime_shared runtime_static cmake/twice cmake/twice_static
    cmake/runtime cmake/runtime_static"
for program in $programs; do
    ./$program >out || { echo "install: $program failed"; cat out; exit 1; }
done
echo "install: $(wc -w <<<"$programs") programs built against an installed copy ran"
