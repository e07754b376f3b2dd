#!/usr/bin/env bash
# setup.sh: the libraries that `make bench` compares with: NumPy, PyTorch and JAX in a Python environment of the
# bench's own; oneDNN from the system, installed where that is possible.  What is missing is not compared with.
set -euo pipefail
cd "$(dirname "$0")/.."
want="numpy torch==2.13.0 jax==0.10.2 safetensors==0.8.0 onnx==1.23.2 onnxruntime==1.32.0"
if ! ldconfig -p 2>/dev/null | grep -q 'libdnnl\.so'; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "bench: installing oneDNN"
        export DEBIAN_FRONTEND=noninteractive
        { apt-get update -qq && apt-get install -y --no-install-recommends libdnnl3; } >/dev/null 2>&1 ||
            apt-get install -y --no-install-recommends libdnnl2 >/dev/null 2>&1 || echo "bench: there is no oneDNN to install"
    else
        echo "bench: no oneDNN; on Debian and Ubuntu: sudo apt-get install libdnnl3 (or libdnnl2)"
    fi
fi
[ "$(cat .venv/wants 2>/dev/null)" = "$want" ] && exit 0
[ -x .venv/bin/python ] || python3 -m venv .venv
echo "bench: installing $want in bench/.venv"
.venv/bin/pip install --quiet --disable-pip-version-check $want
echo "$want" >.venv/wants
