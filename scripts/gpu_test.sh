#!/usr/bin/env bash
# gpu_test.sh [--out FILE] [PATTERN...]: builds in build-gpu and runs the tests whose names contain a
# PATTERN (t_cuda by default) on the GPU of this machine.  All output goes to FILE (build-gpu/gpu_test.txt)
# and to the terminal.  Further libraries: cuda.path in MONOCHORD_FLAGS, or TEST_CUDA_PATH.
# SANITIZE=1: under compute-sanitizer, which says who reads or writes where it must not.
set -uo pipefail
cd "$(dirname "$0")/.."
build=${BUILD:-build-gpu}
out=$build/gpu_test.txt
if [ "${1:-}" = --out ]; then
    out=$2
    shift 2
fi
[ $# -gt 0 ] || set -- t_cuda
mkdir -p "$build" "$(dirname "$out")"
run() {
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -n 8
    cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release >"$build/cmake.log" 2>&1 || { cat "$build/cmake.log"; return 1; }
    cmake --build "$build" -j"$(nproc)" --target monochord_tests tool >"$build/make.log" 2>&1 ||
        { grep -E 'error|warning' -A4 "$build/make.log"; return 1; }
    "$build/monochord" info
    XDG_CACHE_HOME=$PWD/$build/cache "$build/monochord_tests" --times --jobs "$(nproc)" "$@"
}
run "$@" 2>&1 | tee "$out"
exit "${PIPESTATUS[0]}"
