#!/bin/bash
# Makes one wheel for Python 3.10 and all that follow, in dist/, from the release build, for
# every Linux with glibc 2.28, and prints its size by part. Beside it, the wheel relay-targets, for other architectures.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/targets.sh
rm -rf dist
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
.venv/bin/python -m pip wheel -q --disable-pip-version-check --no-input --no-deps --no-build-isolation --no-index \
  --config-settings=build-dir=build/release --config-settings=cmake.define.RELAY_TESTS=ON \
  --config-settings=cmake.define.RELAY_WERROR=ON --wheel-dir "$plain" .
# What glibc must be at least is in the name of the wheel, which this proves (cmake/RelayPortable.cmake).
mkdir "$plain/repaired"
PATH=$PWD/.venv/bin:$PATH .venv/bin/python -m auditwheel repair --plat manylinux_2_28_x86_64 --wheel-dir "$plain/repaired" "$plain"/*.whl \
  2>"$plain/log" || { cat "$plain/log" >&2; exit 1; }
.venv/bin/python tools/pack_wheel.py "$plain"/repaired/*.whl dist
.venv/bin/python tools/targets_wheel.py build/release/targets dist
.venv/bin/python tools/vscode.py dist
