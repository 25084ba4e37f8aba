#!/bin/bash
# clang-tidy on the release build's compile commands. A file whose text, headers and configuration have not
# changed since it was found clean is not looked at again.
#
#   tools/tidy.sh        the sources, for at most RELAY_TIDY_SECONDS (240): those not reached are named
#   tools/tidy.sh --all  the sources, to the end
set -euo pipefail
cd "$(dirname "$0")/.."
exec .venv/bin/python tools/tidy.py "$@"
