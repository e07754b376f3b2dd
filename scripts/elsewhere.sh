#!/usr/bin/env bash
# elsewhere.sh levels|qemu|arm|musl BUILD JOBS [NAME...]: the tests, or those with a NAME, elsewhere than on this processor as it is.
#   levels  at each value of the flag cpu.isa below what `monochord info` names; make test runs that one
#   qemu    on processors that qemu stands for, where an instruction too many ends the program
#   arm     AArch64, under qemu: BUILD was made with cmake/aarch64-linux-gnu.cmake
#   musl    another C library: BUILD was made by musl-gcc
set -euo pipefail
how=$1 build=$2 jobs=$3
shift 3
cd "$(dirname "$0")/.."
export XDG_CACHE_HOME=$PWD/$build/cache
failed=0

run() {   # LABEL COMMAND...
    local start=$SECONDS
    echo "---- $1"
    shift
    "$@" || failed=1
    echo "     $((SECONDS - start)) s"
}

tests() { "$@" --tier everyday --jobs "$jobs" --timeout 1200 "${names[@]}"; }
names=("$@")

script() { printf '#!/bin/sh\nexec %s "$@"\n' "$2" >"$1" && chmod +x "$1"; }

# Tests call cc, monochord, the fuzzers and the examples: a folder where those names mean what the build needs.
rooms() {   # COMPILER EMULATOR...
    local compiler=$1 room=$PWD/$build/run file
    shift
    mkdir -p "$room/examples"
    script "$room/cc" "$compiler"
    script "$room/monochord" "$* $PWD/$build/monochord"
    for file in "$build"/fuzz_* "$build"/examples/*; do
        [ ! -x "$file" ] || script "$room/${file#"$build/"}" "$* $PWD/$file"
    done
    cp "$build/monochord_tests" "$room/"
    export PATH=$room:$PATH
}

case $how in
levels)
    has=" $("$build/monochord" info | sed -n 's/^features *//p') "
    levels=""
    [[ $has != *" avx512f "* ]] || levels="avx2 sse2"
    [[ -n $levels || $has != *" avx2 "* ]] || levels="sse2"
    [ -n "$levels" ] || echo "this processor has one level, which make test runs"
    for level in $levels; do
        export MONOCHORD_FLAGS=cpu.isa=$level
        run "cpu.isa=$level" tests "$build/monochord_tests"
    done
    ;;
qemu)
    export TEST_QEMU=1
    for cpu in Nehalem Haswell; do
        run "qemu-x86_64 -cpu $cpu" tests qemu-x86_64 -cpu "$cpu" "$build/monochord_tests"
    done
    ;;
arm)
    export TEST_QEMU=1 QEMU_LD_PREFIX=/usr/aarch64-linux-gnu
    rooms aarch64-linux-gnu-gcc qemu-aarch64
    run "qemu-aarch64" tests qemu-aarch64 "$build/run/monochord_tests"
    ;;
musl)
    rooms musl-gcc
    run "musl" tests "$build/run/monochord_tests"
    ;;
*)
    echo "elsewhere.sh: levels, qemu, arm or musl, not '$how'" >&2
    exit 2
    ;;
esac
exit $failed
