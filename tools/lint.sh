#!/bin/bash
# The checks that need no build: directions between rooms, names in rooms, words, formatting, Python style.
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
"$python" tools/check_layers.py --self-test
"$python" tools/check_layers.py
"$python" tools/check_instruction_sets.py --self-test
"$python" tools/check_instruction_sets.py
"$python" tools/check_operator_lists.py --self-test
"$python" tools/check_operator_lists.py
"$python" tools/check_words.py --self-test
"$python" tools/check_words.py
tools/format.sh --check
.venv/bin/ruff check -q .
echo "lint: clean"
