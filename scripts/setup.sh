#!/usr/bin/env bash
# setup.sh NEED...: sees to it that the programs a make target needs are there.
# As root on Debian or Ubuntu it installs what is missing; elsewhere it prints the one line to run.
set -euo pipefail

# need, how to tell that it is there, Debian's packages
table="
cc           cc_works               gcc libc6-dev
c++          cxx_works              g++
clang        has_clang              clang
make         has_make               make
cmake        has_cmake              cmake
pkg-config   has_pkg-config         pkg-config
nm           has_nm                 binutils
sanitizers   sanitizers_work        libc6-dev
clang-format has_clang-format       clang-format
qemu-x86_64  has_qemu-x86_64        qemu-user
qemu-aarch64 has_qemu-aarch64       qemu-user
git          has_git                git
python3      has_python3            python3
mpi          mpi_there              openmpi-bin libopenmpi-dev
venv         venv_works             python3 python3-venv
python-dev   python_header_there      python3 python3-dev
"
compiles() { echo '#include <stdio.h>
int main(void) { return 0; }' | "$1" -x "$2" - -o /dev/null 2>/dev/null; }
cc_works() { compiles "${CC:-cc}" c; }
cxx_works() { compiles "${CXX:-c++}" c++; }
sanitizers_work() { echo 'int main(void) { return 0; }' |
    "${CC:-cc}" -fsanitize=address,undefined -x c - -o /dev/null 2>/dev/null; }
mpi_there() { command -v mpirun >/dev/null && command -v mpicc >/dev/null; }
venv_works() { python3 -c 'import venv, ensurepip' 2>/dev/null; }
python_header_there() { python3 -c 'import os, sysconfig as s; open(os.path.join(s.get_path("include"), "Python.h"))' 2>/dev/null; }
is_there() {
    case $1 in
        has_*) command -v "${1#has_}" >/dev/null ;;
        *) "$1" ;;
    esac
}

missing=()
for need in "$@"; do
    row=$(grep -F "$need " <<<"$table" | awk -v n="$need" '$1 == n') || true
    [ -n "$row" ] || { echo "setup.sh: what is '$need'?" >&2; exit 2; }
    read -r _ test packages <<<"$row"
    if [[ ${CC:-cc} == *clang* ]]; then
        case $need in
            cc) packages="${CC##*/} libc6-dev" ;;
            c++) packages="${CC##*/} g++" ;;
            sanitizers) packages="libclang-rt-$("$CC" -dumpversion | cut -d. -f1)-dev" ;;
        esac
    fi
    case $need-${CC:-cc} in
        cc-aarch64-linux-gnu-gcc) packages="gcc-aarch64-linux-gnu libc6-dev-arm64-cross" ;;
        cc-musl-gcc) packages="gcc musl-tools" ;;
    esac
    is_there "$test" || missing+=($packages)
done
[ ${#missing[@]} -gt 0 ] || exit 0

install="apt-get install -y --no-install-recommends ${missing[*]}"
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    echo "setup: $install"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq && $install >/dev/null || { echo "setup: that did not work" >&2; exit 1; }
    hash -r
else
    echo "missing: ${missing[*]}; install them, on Debian and Ubuntu with" >&2
    echo "    sudo apt-get update && sudo $install" >&2
    exit 1
fi
