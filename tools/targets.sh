#!/bin/bash
# Builds the runtime for other architectures, with Debian's cross compilers: the shared library, the archive, and
# relay-run, a program without any library. They go into build/release/targets, and relay-run into the package in .venv.
#
#   tools/targets.sh            all
#   tools/targets.sh TARGET...  these: a name of cmake/targets, as aarch64-linux
set -euo pipefail
cd "$(dirname "$0")/.."

known=(aarch64-linux riscv64-linux armv7-linux)
chosen=("$@")
if (( $# == 0 )); then chosen=("${known[@]}"); fi
for target in "${chosen[@]}"; do
  if [[ ! -f cmake/targets/$target.cmake ]]; then
    echo "targets: there is no target '$target'; there are: ${known[*]}" >&2
    exit 2
  fi
done

tools/setup.sh --targets
tools/build.sh
packages=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')
for target in "${chosen[@]}"; do
  build=build/$target
  if [[ ! -f $build/build.ninja ]]; then
    cmake -S . -B "$build" -G Ninja --log-level=WARNING -DCMAKE_TOOLCHAIN_FILE="cmake/targets/$target.cmake" \
      -DCMAKE_BUILD_TYPE=Release -DRELAY_RUNTIME_ONLY=ON -DRELAY_TESTS=OFF
  fi
  ninja -C "$build" relay-run relay_runtime_shared relay_runtime_archive
  mkdir -p "build/release/targets/$target" "$packages/relay/targets/$target"
  cp "$build/src/run/relay-run" "$build/src/runtime/librelay_runtime.so" \
    "$build/src/runtime/archive/librelay_runtime.a" "build/release/targets/$target/"
  cp "$build/src/run/relay-run" "$packages/relay/targets/$target/"
done
