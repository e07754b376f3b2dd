#!/usr/bin/env bash
# fake_gpu.sh BUILD [PATTERN...]: tests with device=cuda on a GPU that is this processor (tests/fake_gpu), of the
# program that BUILD has; what a GPU runs and in what order, not how fast.
# fake_gpu.sh BUILD -- COMMAND...: any program that uses the library.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
[ $# -gt 0 ] || set -- t_gpu t_ranks_gpu
[ "$(uname -m)" = x86_64 ] || { echo "fake_gpu.sh: fibers are written for x86-64"; exit 0; }
folder=$PWD/$build/fake_gpu
mkdir -p "$folder"
g++ -std=gnu++17 -O2 -w -Wno-psabi -shared -fPIC -DFAKE_SHIM="\"$PWD/tests/fake_gpu/shim.h\"" -o "$folder/libcuda.so.1" tests/fake_gpu/*.cpp -ldl
cp "$folder/libcuda.so.1" "$folder/libnvrtc.so.13"
ln -sf libcuda.so.1 "$folder/libnvrtc-builtins.so.13.99"
for library in libcublas.so.13 libcusolver.so.12 libcufft.so.12 libnccl.so.2; do
    ln -sf libcuda.so.1 "$folder/$library"
done
export FAKE_GPUS=${FAKE_GPUS:-2} TEST_CUDA_PATH=$folder MONOCHORD_FLAGS=cuda.path=$folder,device=cuda
export XDG_CACHE_HOME=$folder/$(cat tests/fake_gpu/* | cksum | cut -d" " -f1)
[ "$1" != -- ] || { shift; exec "$@"; }
"$build/monochord_tests" "$@"
