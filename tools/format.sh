#!/bin/bash
# Formats the sources in place; with --check it only names the files that are not formatted.
set -euo pipefail
cd "$(dirname "$0")/.."

mode=(-i)
ruff_mode=()
if [[ "${1:-}" == --check ]]; then
  mode=(--dry-run -Werror)
  ruff_mode=(--check)
fi
find src include examples tests -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print0 2>/dev/null |
  xargs -0 -r -n 32 -P 2 clang-format-14 "${mode[@]}"
.venv/bin/ruff format -q "${ruff_mode[@]}" .
