#!/bin/bash
# Builds the libFuzzer programs and runs each for a while, from the inputs that are kept in the tree and those that
# earlier runs found (build/fuzz/corpus). An input that breaks something stays in build/fuzz/found.
#
#   tools/fuzzers.sh                     all of them, 5 minutes each
#   tools/fuzzers.sh 3600 model_fuzzer   one, for an hour
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-300}
shift || true
fuzzers=("$@")
if (( ${#fuzzers[@]} == 0 )); then fuzzers=(text_fuzzer model_fuzzer artifact_fuzzer); fi

command -v clang++-19 >/dev/null || { echo "fuzzers: install clang-19 and libclang-rt-19-dev" >&2; exit 1; }
[[ -f build/fuzz/build.ninja ]] || cmake --preset fuzz --log-level=WARNING
ninja -C build/fuzz "${fuzzers[@]}"

mkdir -p build/fuzz/found
for fuzzer in "${fuzzers[@]}"; do
  program=$(echo build/fuzz/src/*/"$fuzzer")
  room=$(basename "$(dirname "$program")")
  corpus=build/fuzz/corpus/$fuzzer
  folders=("$corpus")
  for seeds in "src/$room/test/fuzz"/*/; do
    if [[ -d "$seeds" ]]; then folders+=("$seeds"); fi
  done
  mkdir -p "$corpus"
  "$program" "${folders[@]}" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=3072 -max_len=8192 \
    -artifact_prefix=build/fuzz/found/"$fuzzer-" -print_final_stats=1
done
