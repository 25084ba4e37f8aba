#!/bin/bash
# Everything that a build needs, from Debian and PyPI, without a question: system packages and the virtual
# environment .venv. A second call finds all in place and does nothing.
#
#   tools/setup.sh            for Relay itself
#   tools/setup.sh --targets  and the compilers and emulators of tools/targets.sh
set -euo pipefail
cd "$(dirname "$0")/.."

packages=(
  g++ cmake ninja-build ccache git
  llvm-19-dev liblld-19-dev zlib1g-dev libzstd-dev libre2-dev libstb-dev libedit-dev
  libprotobuf-dev protobuf-compiler libflatbuffers-dev flatbuffers-compiler
  libfmt-dev libspdlog-dev nlohmann-json3-dev libxxhash-dev libgtest-dev
  clang-format-14 clang-tidy-14
  ocl-icd-libopencl1 pocl-opencl-icd oclgrind
  python3-dev python3-venv
)
if [[ "${1:-}" == --targets ]]; then
  packages+=(g++-aarch64-linux-gnu g++-riscv64-linux-gnu g++-arm-linux-gnueabihf qemu-user)
fi

missing=()
for package in "${packages[@]}"; do
  if [[ "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" != installed ]]; then
    missing+=("$package")
  fi
done
if (( ${#missing[@]} )); then
  as_root=()
  if (( EUID != 0 )); then
    as_root=(sudo)
    if ! command -v sudo >/dev/null; then
      echo "setup: these packages are missing and there is no sudo to install them: ${missing[*]}" >&2
      exit 1
    fi
  fi
  echo "setup: installing ${missing[*]}"
  install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
      apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "${missing[@]}" </dev/null >"$log" 2>&1
  }
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  # The package lists of a new machine are empty or old: they are fetched when the first try fails.
  if ! install; then
    "${as_root[@]}" apt-get -o DPkg::Lock::Timeout=300 update -qq </dev/null >/dev/null 2>&1 || true
    install || { cat "$log" >&2; exit 1; }
  fi
fi

stamp=.venv/.requirements
if ! cmp -s tools/requirements.txt "$stamp" || ! .venv/bin/python -c '' 2>/dev/null; then
  echo "setup: virtual environment .venv"
  if ! .venv/bin/python -c '' 2>/dev/null; then
    rm -rf .venv
    # Debian's Python, for which python3-dev has the headers, unless another one is asked for.
    "${PYTHON:-/usr/bin/python3}" -m venv .venv
  fi
  .venv/bin/python -m pip install -q --disable-pip-version-check --no-input -r tools/requirements.txt
  cp tools/requirements.txt "$stamp"
fi
