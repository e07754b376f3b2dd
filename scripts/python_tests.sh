#!/usr/bin/env bash
# python_tests.sh BUILD [--suites] [TEST...]: tests/python on the extension module in BUILD/python, in a virtual environment
# in BUILD; --suites: also other people's programs for Theano (scripts/theano_suites.py).
# PY: the interpreter, python3 if it is not set; BUILD's module is for it.
# Where the environment cannot be made, it says why and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$1
shift
export PYTHONPATH=$PWD/$build/python:$PWD/python/theano PYTHONDONTWRITEBYTECODE=1
export XDG_CACHE_HOME=$PWD/$build/cache/python BUILD=$PWD/$build
venv=$build/python-venv
scripts/numpy.sh "$venv" pytest
"$venv/bin/python" -c 'import numpy, pytest' 2>/dev/null || exit 0
suites=
[ "${1:-}" != --suites ] || { suites=1; shift; }
"$venv/bin/python" -m pytest -q -p no:cacheprovider "${@:-tests/python}"
[ -n "$suites" ] || exit 0
# Lasagne's tests need a pytest of their time.
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check 'pytest<8' mock six scipy Pillow
"$venv/bin/python" scripts/theano_suites.py --folder "$build/suites"
