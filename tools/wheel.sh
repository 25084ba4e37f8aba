#!/bin/bash
# Makes one wheel for Python 3.10 and all that follow, in dist/, from the release build, with the shared libraries that
# are not on every Linux, and prints its size by part.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/build.sh
rm -rf dist
plain=$(mktemp -d)
trap 'rm -rf "$plain"' EXIT
.venv/bin/python -m pip wheel -q --disable-pip-version-check --no-input --no-deps --no-build-isolation --no-index \
  --config-settings=build-dir=build/release --config-settings=cmake.define.RELAY_TESTS=ON \
  --config-settings=cmake.define.RELAY_WERROR=ON --wheel-dir "$plain" .
# What glibc and libstdc++ must be at least is in the name of the wheel: those of the machine that builds it.
PATH=$PWD/.venv/bin:$PATH .venv/bin/python -m auditwheel repair --zip-compression-level 9 --wheel-dir dist "$plain"/*.whl 2>"$plain/log" || { cat "$plain/log" >&2; exit 1; }
.venv/bin/python - dist/*.whl <<'PYTHON'
import collections, sys, zipfile

path = sys.argv[1]
sizes = collections.Counter()
with zipfile.ZipFile(path) as wheel:
    for entry in wheel.infolist():
        name = entry.filename
        part = (
            "compiler" if "/_core." in name and name.endswith(".so")
            else "libraries of others" if ".libs/" in name
            else f"{name.rpartition('/')[2]}" if name.endswith(".so")
            else "C headers" if "/include/" in name
            else "command, manual, completions" if ".data/" in name
            else "Python" if name.startswith("relay/")
            else "metadata"
        )
        sizes[part, "packed"] += entry.compress_size
        sizes[part, "unpacked"] += entry.file_size
print(f"{'part':30} {'packed':>12} {'unpacked':>12}")
for part in sorted({p for p, _ in sizes}, key=lambda p: -sizes[p, "packed"]):
    print(f"{part:30} {sizes[part, 'packed']:>12,} {sizes[part, 'unpacked']:>12,}")
print(path)
PYTHON
