#!/usr/bin/env bash
# setup.sh: the libraries that `make bench` compares with: NumPy, PyTorch, JAX, ONNX Runtime, tinygrad and LiteRT in a
# Python environment of the bench's own; onnx2c, built there from source; oneDNN, clang (tinygrad's compiler) and
# protobuf (onnx2c's) from the system, installed where that is possible.  What is missing is not compared with.
set -euo pipefail
source=${ONNX2C:+$(realpath "$ONNX2C")}
cd "$(dirname "$0")/.."
want="numpy torch==2.13.0 jax==0.10.2 safetensors==0.8.0 onnx==1.23.2 onnxruntime==1.32.0"
also="tinygrad==0.14.0 ai-edge-litert==2.3.0" # not there for all systems
onnx2c=ea045cc169e9338bc8fe5b54d5109d2f2828db44

# Installs the first set of packages that the system has.
apt_install() {
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >/dev/null 2>&1 || true
    local packages
    for packages; do
        apt-get install -y --no-install-recommends $packages >/dev/null 2>&1 && return
    done
    return 1
}

# What it is for, a command that finds it, the sets of packages that have it.
from_system() {
    local what=$1 found=$2
    shift 2
    if eval "$found" >/dev/null 2>&1; then
        return
    elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "bench: installing $what"
        apt_install "$@" || echo "bench: there is no $what to install"
    else
        echo "bench: no $what; on Debian and Ubuntu: sudo apt-get install $1"
    fi
}

python_packages() {
    local one
    [ "$(cat .venv/wants 2>/dev/null)" != "$want $also" ] || return 0
    [ -x .venv/bin/python ] || python3 -m venv .venv
    echo "bench: installing $want $also in bench/.venv"
    .venv/bin/pip install --quiet --disable-pip-version-check $want
    for one in $also; do
        .venv/bin/pip install --quiet --disable-pip-version-check "$one" || echo "bench: there is no $one to install"
    done
    echo "$want $also" >.venv/wants
}

onnx2c_fetch() {
    rm -rf "$1"
    git init -q "$1" && git -C "$1" fetch -q --depth 1 https://github.com/kraiskil/onnx2c.git "$onnx2c" &&
        git -C "$1" checkout -q FETCH_HEAD && git -C "$1" submodule -q update --init --depth 1 aixlog args cmake_timestamp
}

# From the folder ONNX2C, where that is set: the source, with its submodules aixlog, args and cmake_timestamp.  Else
# from its repository.  The description of ONNX files is the Python package's.
onnx2c_build() {
    local from=${source:-.venv/onnx2c} made=.venv/onnx2c.pb onnx stamp
    [ -n "$source" ] || [ -f "$from/args/args.hxx" ] || onnx2c_fetch "$from" || return
    onnx=$(.venv/bin/python -c 'import onnx; print(onnx.__path__[0])') || return
    stamp='-DGIT_HASH="" -DGIT_SHORT_HASH="" -DGIT_BRANCH="" -DGIT_DIRTY="" -DBUILD_TIME="" -DCPACK_VERSION=""'
    mkdir -p "$made" && protoc --proto_path="$onnx" --cpp_out="$made" "$onnx/onnx.proto" &&
        c++ -std=c++20 -O1 $stamp -I"$made" -I"$from"/{src,aixlog/include,args,cmake_timestamp} "$from"/src/{,nodes/}*.cc \
            "$from"/src/optimization_passes/*.cpp -x c++ "$from/cmake_timestamp/timestamp.c" "$made/onnx.pb.cc" \
            -o .venv/bin/onnx2c -lprotobuf -pthread
}

from_system oneDNN "ldconfig -p | grep 'libdnnl\.so'" libdnnl3 libdnnl2
from_system clang "command -v clang" clang
from_system protobuf "command -v protoc" "protobuf-compiler libprotobuf-dev"
python_packages
if [ ! -x .venv/bin/onnx2c ]; then
    echo "bench: building onnx2c"
    onnx2c_build >.venv/onnx2c.log 2>&1 || echo "bench: no onnx2c: $(tail -n 1 .venv/onnx2c.log)"
fi
