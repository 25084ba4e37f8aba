#!/bin/bash
# Every check that a change must pass, each named with its time; the first that fails ends the run. The last line
# counts the tests of all test programs.
#
#   tools/test.sh       everything
#   tools/test.sh asan  the C++ tests under the sanitizers only
set -euo pipefail
cd "$(dirname "$0")/.."

export CTEST_PARALLEL_LEVEL="${CTEST_PARALLEL_LEVEL:-$(nproc)}"
results=build/results
mkdir -p "$results"
rm -rf "${results:?}"/*

# Runs one step: its output goes to the terminal, then its name and seconds, which the table at the end repeats.
times=()
step() {
  local name=$1 start=$SECONDS
  shift
  echo "== $name"
  "$@"
  times+=("$(printf '%-18s %5d s' "$name" $((SECONDS - start)))")
  echo "== $name: $((SECONDS - start)) s"
}

# The C++ tests run on what the release build makes. The rooms that handle memory and hostile input by hand run theirs under the
# sanitizers as well; the whole tree under them takes longer than everything else together, and is a part of `make test-long`.
checked=(base target runtime image ir)

unit_tests() {
  GTEST_OUTPUT="xml:$PWD/$results/unit/" ctest --preset release --no-tests=error
}

# Builds and runs the tests of these rooms under the sanitizers; without rooms, all.
asan_build() {
  [[ -f build/asan/build.ninja ]] || cmake --preset asan --log-level=WARNING
  ninja -C build/asan "${@/%/_test}"
}

asan_tests() {
  # RELAY_DETECT_LEAKS=0 is for containers that take ptrace away, which the leak check needs. Of each allocation a few
  # frames are kept: to keep all of them takes the tests an eighth longer.
  local options=detect_leaks=${RELAY_DETECT_LEAKS:-1}:detect_stack_use_after_return=1:malloc_context_size=6
  local names=$*
  ASAN_OPTIONS=$options UBSAN_OPTIONS=print_stacktrace=1 \
    GTEST_OUTPUT="xml:$PWD/$results/asan/" ctest --preset asan --no-tests=error -R "^(${names// /|})(\.[0-9]+)?$"
}

python_tests() {
  # As many processes as processors; one that has nothing left takes tests from another, so that all end together.
  .venv/bin/python -m pytest -m "not slow" -n "$(nproc)" --dist worksteal --junit-xml "$results/python.xml"
}

if [[ "${1:-}" == asan ]]; then
  step "sanitizer build" asan_build
  step "sanitizer tests" asan_tests '.*'
else
  step "lint" tools/lint.sh
  step "build" tools/build.sh --tests
  step "unit tests" unit_tests
  step "sanitizer build" asan_build "${checked[@]}"
  step "sanitizer tests" asan_tests "${checked[@]}"
  step "targets" tools/targets.sh
  step "Python tests" python_tests
fi
printf '%s\n' "" "${times[@]}" "$(printf '%-18s %5d s' "together" $SECONDS)"
.venv/bin/python tools/minutes.py "$results"
.venv/bin/python tools/count_results.py "$results"
