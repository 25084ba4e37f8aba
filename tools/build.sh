#!/bin/bash
# Builds the release preset and installs the wheel into .venv when what it holds has changed.
#
#   tools/build.sh          the command, the extension module, the runtime library
#   tools/build.sh --tests  and the test programs of all rooms
set -euo pipefail
cd "$(dirname "$0")/.."

build=build/release
targets=()
# Without sources for them these targets are absent; the others are built all the same.
add_target() {
  if ninja -C "$build" -t query "$1" >/dev/null 2>&1; then targets+=("$1"); fi
}

if [[ ! -f $build/build.ninja ]]; then
  cmake --preset release --log-level=WARNING
fi
if [[ "${1:-}" == --tests ]]; then
  targets=(all)
else
  for target in relay relay_python relay_stubs relay_command relay_runtime_shared relay_runtime_archive relay_text_shared relay_image_shared; do add_target "$target"; done
fi
ninja -C "$build" "${targets[@]}"

[[ -f $build/src/cli/relay ]] || exit 0

# The code generators of other architectures, which the package relay-targets brings to others.
library=targets/librelay_targets.so
if [[ -f $build/$library ]]; then
  package=$(.venv/bin/python -c 'import sysconfig; print(sysconfig.get_path("platlib"))')/relay
  mkdir -p "$package/targets"
  cmp -s "$build/$library" "$package/$library" || install "$build/$library" "$package/$library"
fi

stamp=$build/.installed
if [[ -f $stamp && -x .venv/bin/relay ]] &&
   [[ -z "$(find pyproject.toml python "$build"/src/cli/relay "$build"/src/bind/_core* "$build"/src/bind/stubs \
            "$build"/src/runtime/librelay_runtime.so "$build"/src/runtime/archive "$build"/package cmake "$build"/src/text/librelay_text.so \
            "$build"/src/image/librelay_image.so -newer "$stamp" -not -path '*/__pycache__*' -print -quit)" ]]; then
  exit 0
fi
echo "build: installing into .venv"
# The wheel is made of this build: the same folder and the same definitions, so that nothing is compiled again.
.venv/bin/python -m pip install -q --disable-pip-version-check --no-input --no-deps --force-reinstall \
  --no-build-isolation --no-index \
  --config-settings=build-dir="$build" --config-settings=cmake.define.RELAY_TESTS=ON \
  --config-settings=cmake.define.RELAY_WERROR=ON .
touch "$stamp"
