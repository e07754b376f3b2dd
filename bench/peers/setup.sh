#!/usr/bin/env bash
# setup.sh: the libraries that `make bench` compares with, in a Python environment of the bench's own.
set -euo pipefail
cd "$(dirname "$0")/.."
want="numpy torch==2.13.0"
[ "$(cat .venv/wants 2>/dev/null)" = "$want" ] && exit 0
[ -x .venv/bin/python ] || python3 -m venv .venv
echo "bench: installing $want in bench/.venv"
.venv/bin/pip install --quiet --disable-pip-version-check $want
echo "$want" >.venv/wants
