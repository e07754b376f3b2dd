#!/usr/bin/env bash
# nvrtc.sh FOLDER: NVIDIA's run-time compiler, with the driver's header, unpacked into FOLDER from Python's
# package index, so that the texts of GPU kernels are compiled where there is no GPU.
# Says why and does nothing more where that cannot be had: the tests then skip what needs it.
set -uo pipefail
folder=$1
packages=(nvidia-cuda-nvrtc==13.0.* nvidia-cuda-runtime==13.0.* nvidia-cuda-crt==13.0.*)
done_mark=$folder/complete

[ "$(uname -sm)" = "Linux x86_64" ] || { echo "nvrtc: left out, not Linux on x86-64"; exit 0; }
[ -e "$done_mark" ] && exit 0
for known in /usr/local/cuda/lib64/libnvrtc.so.1[23]; do
    [ -e "$known" ] && exit 0
done
python3 -m pip --version >/dev/null 2>&1 || { echo "nvrtc: left out, there is no pip to fetch it with"; exit 0; }
mkdir -p "$folder/wheels"
if ! timeout 120 python3 -m pip download --quiet --no-deps --disable-pip-version-check -d "$folder/wheels" "${packages[@]}" \
        >"$folder/log" 2>&1; then
    echo "nvrtc: left out, it could not be fetched: $(tail -n 1 "$folder/log")"
    exit 0
fi
for wheel in "$folder"/wheels/*.whl; do
    python3 -m zipfile -e "$wheel" "$folder" || { echo "nvrtc: left out, $wheel does not unpack"; exit 0; }
done
rm -rf "$folder/wheels"
touch "$done_mark"
echo "nvrtc: fetched into $folder"
