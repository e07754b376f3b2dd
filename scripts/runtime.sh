#!/usr/bin/env bash
# runtime.sh BUILD: libmonochord-run, stripped, has fewer than `most` bytes, contains no compiler, and serves a
# program that is linked with it alone, shared and static.
set -euo pipefail
build=${1:-build}
so=$build/libmonochord-run.so
[ -e "$so" ] || { echo "runtime: this build has none"; exit 0; }
most=1000000
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stripped=$work/stripped.so
strip -o "$stripped" "$so"
bytes=$(wc -c <"$stripped")
# The bar is for gcc on x86-64.
if ! readelf -p .comment "$so" | grep -q clang && [ "$(uname -m)" = x86_64 ] && [ "$bytes" -ge $most ]; then
    echo "runtime: libmonochord-run.so has $bytes bytes, at most $((most - 1)) are allowed; the largest parts:"
    nm --size-sort -r -S "$so" | grep -v ' [bB] ' | head -20 | sed 's/^/    /'
    exit 1
fi
# It contains no compiler and starts no program.
parts=$(nm "$so" | awk '$2 ~ /[tT]/ { print $3 }' |
    grep -E '^mc_(apply|formula|parse_next|grads|rewrite|program_make|render|compile_at|cuda_.*|export)$' || true)
[ -z "$parts" ] || { echo "runtime: it contains parts of the compiler: $(tr '\n' ' ' <<<"$parts")"; exit 1; }
starts=$(nm -D -u "$so" | sed 's/@.*//' | awk '{ print $NF }' | grep -xE 'v?fork|exec[lv]p?e?|posix_spawnp?|waitpid|system|popen' || true)
[ -z "$starts" ] || { echo "runtime: it starts programs: $(tr '\n' ' ' <<<"$starts")"; exit 1; }
needs=$(objdump -p "$so" | awk '$1 == "NEEDED" { print $2 }' | grep -vE '^(libc|libm|libdl|libpthread|ld-linux.*|libc\.musl.*)\.so' || true)
[ -z "$needs" ] || { echo "runtime: it needs $needs"; exit 1; }
# What libmonochord compiled, called, and saved at each level of instructions that this processor has.  It calls
# no oneDNN and no BLAS, whose bits are others: the runtime has no solvers for them.
calls=0
for isa in avx512 avx2 sse2; do
    export MONOCHORD_FLAGS=cpu.isa=$isa,onednn=none,blas=none MONOCHORDRC=/dev/null
    "$build/test_runtime_save" "$work"
    for program in test_monochord_run test_monochord_run_static; do
        for also in "" ",plan=measure,check=3"; do # it times and checks no solvers
            said=$(MONOCHORD_FLAGS=$MONOCHORD_FLAGS$also "$build/$program" "$work") ||
                { echo "runtime: $program, $isa$also: $said"; exit 1; }
            calls=$((calls + 1))
        done
    done
done
unset MONOCHORD_FLAGS
said=$("$build/monochord_run_tests" --jobs "${JOBS:-2}") || { echo "runtime: $said"; exit 1; }
echo "runtime: $bytes bytes; $calls calls of programs gave the bits of libmonochord; $(tail -n 1 <<<"$said")"
