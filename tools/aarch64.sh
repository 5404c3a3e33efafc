#!/bin/sh
# Does the library for aarch64 give the same results? Runs `python -m tools.digests` with it on an emulated processor.
# usage: tools/aarch64.sh PYTHON  (that of the environment; Debian 12 with apt-get and root for what is missing)
# Everything that it downloads and makes is in .aarch64: programs of Debian for arm64, wheels, the library.
set -eu
python=$1
here=$(pwd)
work=$here/.aarch64
mkdir -p "$work/debs" "$work/root"

if ! command -v qemu-aarch64 >/dev/null; then
  apt-get -qq update
  apt-get -qq install -y --no-install-recommends qemu-user >/dev/null
fi
if [ ! -x "$work/root/usr/bin/python3.11" ]; then
  dpkg --print-foreign-architectures | grep -qx arm64 || dpkg --add-architecture arm64
  apt-get -qq update
  packages="python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 libgcc-s1 libstdc++6 zlib1g libexpat1 libffi8 libssl3 libbz2-1.0
    liblzma5 libuuid1 libcrypt1 libsqlite3-0"
  (cd "$work/debs" && for name in $packages; do apt-get -qq download "$name:arm64" 2>/dev/null; done)
  for file in "$work"/debs/*.deb; do dpkg -x "$file" "$work/root"; done
fi
[ -d "$work/site/numpy" ] || "$python" -m pip install --quiet --disable-pip-version-check --target "$work/site" --python-version 3.11 \
  --platform manylinux2014_aarch64 --platform manylinux_2_27_aarch64 --platform manylinux_2_28_aarch64 --only-binary=:all: \
  numpy msgspec pyyaml pillow platformdirs click
"$python" -c "import ziglang" 2>/dev/null || "$python" -m pip install --quiet --disable-pip-version-check "ziglang>=0.13"
PYTHONPATH=$here/src "$python" -m tools.kernels --target linux-aarch64 --folder "$work/lib"

# the sources with that library in place of this machine's
rm -rf "$work/src"
mkdir -p "$work/src"
cp -r src/botyard "$work/src/botyard"
rm -rf "$work/src/botyard/native/lib"
cp -r "$work/lib" "$work/src/botyard/native/lib"
cd "$work"
BOTYARD_KERNELS=native PYTHONPATH=$work/src:$here:$work/site qemu-aarch64 -L "$work/root" "$work/root/usr/bin/python3.11" -m tools.digests
