#!/bin/bash
# Builds the site of the documentation in build/docs/html, with the cells of the tutorial run in .venv. The packages
# that build the site are installed beside it, not into .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
packages=$PWD/build/docs/packages
stamp=build/docs/.requirements
if ! cmp -s tools/requirements-docs.txt "$stamp"; then
  echo "docs: installing sphinx and what it needs into build/docs"
  rm -rf "$packages"
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-input --target "$packages" \
    -r tools/requirements-docs.txt 2>build/docs-log || { cat build/docs-log >&2; exit 1; }
  cp tools/requirements-docs.txt "$stamp"
fi
PATH=$PWD/.venv/bin:$PATH PYTHONPATH=$packages PYTHONWARNINGS=ignore \
  .venv/bin/python -m sphinx -q -W --keep-going -b html docs build/docs/html "$@"
echo "docs: build/docs/html/index.html"
