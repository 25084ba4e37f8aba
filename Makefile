# The two commands of a newcomer are `make demo` and `make test`; everything they need is set up on the way.
SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: help setup build targets wheel docs demo test room pytest asan bench bench-cliffs bench-language bench-training bench-torch bench-gpu test-long lint tidy format vsix clean

help:  ## show this list
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup:  ## system packages and the virtual environment .venv
	@tools/setup.sh

build: setup  ## build the command and the Python package, and install both into .venv
	@tools/build.sh

targets:  ## the runtime and relay-run for other architectures, for devices and for --emulate
	@tools/targets.sh

wheel: setup  ## one wheel for every Python from 3.10 on, and that of other architectures, in dist/
	@tools/wheel.sh

vsix: build  ## the extension for Visual Studio Code, in build/
	@.venv/bin/python tools/vscode.py

docs: build  ## the site of the documentation, the tutorial's cells run, in build/docs/html
	@tools/docs.sh

demo: build  ## compile a real ONNX model and run it on the files of this repository
	@.venv/bin/python examples/demo.py
	@.venv/bin/python tools/minutes.py

test: setup  ## every check that a change must pass
	@tools/test.sh

room:  ## the C++ tests of one component of src/: ROOM=passes
	@ninja -C build/release "$(ROOM)_test"
	@ctest --preset release --no-tests=error -j "$$(nproc)" -R '^$(ROOM)(\.[0-9]+)?$$'

pytest: build  ## the Python tests alone
	@.venv/bin/python -m pytest

asan: setup  ## the C++ tests under the address and undefined-behaviour sanitizers
	@tools/test.sh asan

bench: build  ## the benchmark models: Relay and the installed peers side by side
	@.venv/bin/python benchmarks/compare.py

bench-cliffs: build  ## what is not static float32 of batch 1: open sizes, other dtypes, awkward operators
	@.venv/bin/python benchmarks/cliffs.py $(if $(ONLY),--only "$(ONLY)") $(if $(DRAWN),--threads 1 --drawn "$(DRAWN)")

bench-language: build  ## loops beside Numba, CPython and C; calls, lists, trees, compile time
	@.venv/bin/python benchmarks/language.py $(PARTS) $(if $(ONLY),--only "$(ONLY)") $(if $(DRAWN),--drawn $(DRAWN)) $(if $(OLD),--old "$(OLD)")

bench-training: build  ## steps of training beside PyTorch and JAX, where they are installed
	@.venv/bin/python benchmarks/training.py $(if $(ONLY),--only "$(ONLY)") $(if $(DRAWN),--drawn $(DRAWN))

bench-torch: build  ## models through torch.compile: Relay beside inductor and eager mode; ONLY="mlp,lstm"; ARGS="--dtype bfloat16"
	@.venv/bin/python benchmarks/torch_models.py $(if $(ONLY),--only "$(ONLY)") $(ARGS)

bench-gpu: build  ## on a CUDA device: results of operators, GEMM and the models beside PyTorch; ARGS="--check --only softmax"
	@.venv/bin/python benchmarks/gpu.py $(ARGS)

test-long: setup  ## the slow tests: today's part of them, or PART="..."; PART=all; PART=--list
	@tools/test_long.sh $(PART)

lint: setup  ## layers, formatting, ruff
	@tools/lint.sh

tidy: setup  ## clang-tidy on the whole tree
	@tools/tidy.sh --all

format: setup  ## format the C++ and Python sources in place
	@tools/format.sh

clean:  ## remove what was built; .venv stays
	@rm -rf build
