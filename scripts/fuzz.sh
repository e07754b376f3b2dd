#!/usr/bin/env bash
# fuzz.sh SECONDS [NAME ...]: each tests/fuzz_*.c under the address and undefined-behaviour sanitizers.  Where there is clang with its
# libFuzzer, coverage leads it: it begins with tests/corpus/NAME, what it adds is in $BUILD-fuzz/corpus/NAME and what breaks is
# $BUILD-fuzz/NAME-crash-*.  Otherwise, and for fuzz_graph, which takes no bytes, good inputs are changed at random.
#   FUZZ_MERGE=1   afterwards the corpus is tests/corpus/NAME again, with the least inputs that reach what was reached
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-30}
shift || true
build=${BUILD:-build}
names=${*:-$(cd tests && ls fuzz_*.c | sed -E 's/^fuzz_(.*)[.]c$/\1/')}
options="-DMONOCHORD_SANITIZE=address,undefined -DMONOCHORD_POISON=ON"
command -v clang >/dev/null && CC=clang scripts/setup.sh sanitizers || true
probe=$(mktemp)
led=
if echo 'int LLVMFuzzerTestOneInput(const char *p, unsigned long n) { return p && n == 9; }' |
    clang -x c - -fsanitize=fuzzer,address -o "$probe" 2>/dev/null; then
    led=1
fi
rm -f "$probe"
if [ $led ]; then
    build=$build-fuzz
    CC=clang cmake -S . -B "$build" -G "Unix Makefiles" -DCMAKE_C_COMPILER=clang $options -DMONOCHORD_FUZZ=ON >/dev/null
else
    echo "fuzz: no clang with libFuzzer; good inputs are changed at random"
    build=$build-asan
    cmake -S . -B "$build" -G "Unix Makefiles" $options >/dev/null
fi
env -u MAKEFLAGS -u MAKELEVEL cmake --build "$build" -j"${JOBS:-2}" --target fuzzers
export XDG_CACHE_HOME=$PWD/$build/cache UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1
# Words for the formats that are text: those of the corpus and of the tables.
words() {
    case $1 in
        parse) cat src/op/*.def src/op/*.c ;;
        model) cat src/nn/*.c ;;
        flags) cat src/base/flags.def ;;
        safetensors) cat src/value/safetensors.c src/value/dtypes.def; echo '"data_offsets", "__metadata__"' ;;
        *) echo '"PK", "IDAT", "descr", "shape"' ;;
    esac | grep -oE '[("][A-Za-z_][A-Za-z_0-9.]{1,23}[",]' | tr -d '(",' | sort -u | sed 's/.*/"&"/'
}
for name in $names; do
    echo "fuzz_$name for $seconds s"
    if [ $led ] && [ "$name" != graph ]; then
        mkdir -p "$build/corpus/$name"
        words "$name" >"$build/$name.dict"
        "$build/fuzz_$name" -max_total_time="$seconds" -max_len=4096 -rss_limit_mb=4096 -malloc_limit_mb=256 -timeout=20 \
            -print_final_stats=1 -verbosity=0 -dict="$build/$name.dict" \
            -artifact_prefix="$build/$name-" "$build/corpus/$name" "tests/corpus/$name" || exit 1
        if [ "${FUZZ_MERGE:-}" ]; then
            rm -rf "$build/least"
            mkdir "$build/least"
            "$build/fuzz_$name" -merge=1 -max_len=4096 -verbosity=0 "$build/least" "tests/corpus/$name" "$build/corpus/$name"
            rm -rf "tests/corpus/$name"
            cp -r "$build/least" "tests/corpus/$name"
        fi
    else
        "$build/fuzz_$name" "$seconds" || exit 1
    fi
done
