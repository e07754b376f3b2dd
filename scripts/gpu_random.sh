#!/usr/bin/env bash
# gpu_random.sh OUT [SECONDS [FIRST [SANITIZED]]]: random programs on this machine's GPU for SECONDS (400), from seed
# FIRST (100000) on; at the same time others on its processors, and after them SANITIZED (40) more under
# compute-sanitizer, which is not asked about errors of the API: a kernel is looked for by names that it may not have.
# Builds in build-gpu.  What is to be read lies in OUT/gpu_random.txt.
# No network is needed: gcc, cmake, CUDA with NVRTC, and a Python with NumPy (PYTHON) have to be there.
set -uo pipefail
cd "$(dirname "$0")/.."
out=$1 seconds=${2:-400} first=${3:-100000} sanitized=${4:-40}
build=${BUILD:-build-gpu} python=${PYTHON:-python3}
cores=$(nproc)
gpu_jobs=${GPU_JOBS:-$((cores / 2 > 8 ? 8 : cores / 2 > 0 ? cores / 2 : 1))}
cpu_jobs=$((cores - gpu_jobs > 0 ? cores - gpu_jobs : 1))
mkdir -p "$build" "$out"
log=$out/gpu_random.txt
end=$((SECONDS + seconds))
{
    nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader 2>&1 | head -n 8
    "$python" -c 'import numpy; print("numpy", numpy.__version__)' || exit 1
    [ -e "$build/CMakeCache.txt" ] || cmake -S . -B "$build" -DCMAKE_BUILD_TYPE=Release >"$build/cmake.log" 2>&1 || { tail -n 20 "$build/cmake.log"; exit 1; }
    cmake --build "$build" -j"$cores" --target monochord tool >"$build/make.log" 2>&1 ||
        cmake --build "$build" -j"$cores" >"$build/make.log" 2>&1 || { grep -E 'error|warning' -A4 "$build/make.log"; exit 1; }
    echo "built after $SECONDS s"
} >"$log" 2>&1 || { cat "$log"; exit 1; }
export MC_LIBRARY=$PWD/$build/libmonochord.so XDG_CACHE_HOME=$PWD/$build/cache
left=$((end - SECONDS))
# One process holds the GPU's context for 200 programs; findings are made smaller where they were seen.
"$python" tests/random_programs.py --device cpu --first "$((first + 500000))" --seconds "$left" --jobs "$cpu_jobs" --small 8 --quick \
    --cache "$build/cache/cpu" >"$build/cpu.txt" 2>&1 &
cpu=$!
"$python" tests/random_programs.py --device cuda --first "$first" --seconds "$((left * 3 / 4))" --jobs "$gpu_jobs" --chunk 200 --small 8 \
    --cache "$build/cache/gpu" >"$build/gpu.txt" 2>&1
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
if [ -n "$sanitizer" ] && [ "$sanitized" -gt 0 ]; then
    pids=()
    for i in $(seq 0 $((gpu_jobs - 1))); do
        each=$(((sanitized + gpu_jobs - 1) / gpu_jobs))
        a=$((first + 900000 + i * each))
        timeout "$((left / 4 + 60))" "$sanitizer" --error-exitcode 9 --report-api-errors no --target-processes all "$python" tests/random_programs.py --device cuda \
            --alone --seeds "$a:$((a + each))" --jobs 1 --small 0 --quiet --cache "$build/cache/sanitized$i" >"$build/sanitized$i.txt" 2>&1 &
        pids+=($!)
    done
    wait "${pids[@]}"
else
    echo "compute-sanitizer: left out" >"$build/sanitized0.txt"
fi
wait "$cpu"
cp "$build"/{cpu,gpu,sanitized*}.txt "$out" 2>/dev/null
{
    echo "==== on the GPU, $gpu_jobs processes"
    head -c 60000 "$build/gpu.txt"
    tail -n 3 "$build/gpu.txt"
    echo "==== under compute-sanitizer"
    grep -hE '^random programs:|ERROR SUMMARY|Invalid|==== seed|left out' "$build"/sanitized*.txt | head -n 60
    for f in "$build"/sanitized*.txt; do
        grep -qE 'Invalid|Error:|==== seed' "$f" && head -n 60 "$f"
    done | head -n 200
    echo "==== on the processor, $cpu_jobs processes"
    head -c 40000 "$build/cpu.txt"
    tail -n 3 "$build/cpu.txt"
} >>"$log" 2>&1
tail -c 9000 "$log"
