#!/usr/bin/env bash
# numpy.sh FOLDER [PACKAGE...]: a virtual environment with NumPy, and with these, in FOLDER, for tests that compare with it.
# PY: the interpreter, python3 if it is not set.  Says why and does nothing more where that cannot be had: the tests then
# skip what needs it.
set -uo pipefail
folder=$1
shift
wanted="numpy${*:+ $*}"
[ -x "$folder/bin/python" ] && "$folder/bin/python" -c "import ${wanted// /$'\n'import }" 2>/dev/null && exit 0
"$(dirname "$0")/setup.sh" venv || { echo "numpy: left out, there is no venv"; exit 0; }
"${PY:-python3}" -m venv "$folder" >/dev/null 2>&1 || { echo "numpy: left out, no environment could be made in $folder"; exit 0; }
if ! timeout 120 "$folder/bin/python" -m pip install --quiet --disable-pip-version-check $wanted >"$folder/log" 2>&1; then
    echo "numpy: left out, it could not be fetched: $(tail -n 1 "$folder/log")"
fi
exit 0
