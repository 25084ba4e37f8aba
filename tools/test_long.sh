#!/bin/bash
# The slow tests. One part a day, by the date, so that every part has its turn; what is random begins
# where the date says, so that a failure can be repeated on the same day's seed, which is printed.
#
#   tools/test_long.sh          today's part
#   tools/test_long.sh PART...  these; `all` for all of them
#   tools/test_long.sh --list   their names, today's marked
set -euo pipefail
cd "$(dirname "$0")/.."

python=.venv/bin/python
build=build/release
seed=${RELAY_SEED:-$(date -u +%Y%m%d)}

part_python() {  # models at full size, whole grids of indices and settings, ten thousand sequences of calls
  RELAY_DAY=all $python -m pytest -m "slow or drawn"
}
part_properties() {  # every operator on 100 new shapes, and 60 times at sizes of 0, 1, 2 and a prime
  RELAY_DAY=all RELAY_EXAMPLES=100 $python -m pytest -q tests/python/test_property_*.py
  RELAY_EXAMPLES=60 RELAY_SEED="$seed" $build/src/fuzz/fuzz_test --gtest_filter='Sizes.every*'
}
part_graphs() {  # 10,000 new random ONNX graphs
  RELAY_EXAMPLES=10000 $python -m pytest -q tests/python/test_random_graphs.py
}
part_programs() {  # 20,000 random programs, run in every way there is
  $build/src/fuzz/relay_fuzz --count 20000 --seed "$seed"
}
part_faults() {  # every planted fault, in as many random programs as it takes to find it; and by relay diff at full size
  RELAY_FAULTS=all $build/src/fuzz/fuzz_test --gtest_filter='Faults.*'
  $build/src/fuzz/fuzz_test --gtest_also_run_disabled_tests --gtest_filter='Diff.*full_size'
}
part_command_lines() {  # 10,000 random command lines
  $build/src/fuzz/relay_fuzz --command-lines --count 10000 --seed "$seed"
}
part_sanitizers() {  # the C++ tests of all rooms under the address and undefined-behaviour sanitizers
  tools/test.sh asan
}
part_depth() {  # every pass on programs of 100,000 nested expressions
  (ulimit -s 256 && RELAY_DEPTH=100000 $build/src/passes/passes_test --gtest_filter='*DeepPrograms*')
}
part_files() {  # text, models and artifacts from libFuzzer, which needs Clang
  tools/fuzzers.sh 600
}

parts=(python properties graphs programs faults sanitizers command_lines depth files)
today=${parts[$(($(date -u +%s) / 86400 % ${#parts[@]}))]}

if [[ "${1:-}" == --list ]]; then
  for part in "${parts[@]}"; do
    [[ $part == "$today" ]] && mark='*' || mark=' '
    printf '%s %-14s %s\n' "$mark" "$part" "$(sed -n "s/^part_$part() {  # //p" "$0")"
  done
  exit 0
fi

chosen=("${@:-$today}")
if [[ "${chosen[*]}" == all ]]; then chosen=("${parts[@]}"); fi
for part in "${chosen[@]}"; do
  if ! declare -F "part_$part" >/dev/null; then
    echo "test_long: there is no part '$part'; there are: ${parts[*]}" >&2
    exit 2
  fi
done

tools/build.sh --tests
tools/targets.sh
for part in "${chosen[@]}"; do
  start=$SECONDS
  echo "== $part (seed $seed)"
  "part_$part"
  echo "== $part: $((SECONDS - start)) s"
done
