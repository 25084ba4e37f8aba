"""The engines that compare.py sets side by side, each behind the same four calls.

An engine lives in a worker process of its own (worker.py), which is pinned to its cores before the
engine is imported. Engines that compile ahead of time do so in another process, so that the process
that is measured holds only what a deployed program holds.

To add an engine: subclass Engine, fill the four calls, and add it to ENGINES.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np


class Engine:
    """One way of running an ONNX model."""

    name: str
    package: str  # the distribution whose version is reported
    module: str  # what must be importable
    ahead_of_time = False  # compile() writes a file, and load() takes that file

    @classmethod
    def version(cls) -> str | None:
        """Returns the installed version, or None when the engine is not installed."""
        try:
            if importlib.util.find_spec(cls.module) is None:
                return None
        except ModuleNotFoundError:
            return None
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return "unknown version"

    def import_(self) -> None:
        """Imports the engine, so that later calls are not charged for it."""
        importlib.import_module(self.module)

    def compile(self, model: Path, artifact: Path, threads: int) -> None:
        """Writes `artifact`; only for engines that compile ahead of time."""
        raise NotImplementedError

    def load(self, path: Path, threads: int, inputs: dict[str, np.ndarray]) -> None:
        """Makes the program at `path` (the artifact, or else the model) ready to run."""
        raise NotImplementedError

    def run(self) -> object:
        """Runs once on the inputs given to load; returns what outputs() understands."""
        raise NotImplementedError

    def outputs(self, result: object) -> list[np.ndarray]:
        """Returns a result of run() as arrays, in the order of the model's outputs."""
        return [np.asarray(r) for r in _flat(result)]


def _flat(result: object) -> Sequence[object]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


class Relay(Engine):
    """Compiled ahead of time; the artifact alone is loaded in the process that is measured."""

    name = "relay"
    package = "relay"
    module = "relay"
    ahead_of_time = True

    def compile(self, model, artifact, threads):
        import relay

        # Compiled anew each time; kernels from the last time would be no compilation.
        os.environ["RELAY_CACHE_SIZE"] = "0"
        mod, params = self.module_of(model)
        exe = relay.build(mod, params=params, num_threads=threads)
        exe.export_library(str(artifact))

    def module_of(self, model):
        """Returns the program and its weights, or None for weights that are part of it."""
        import relay

        return relay.frontend.from_onnx(str(model))

    def load(self, path, threads, inputs):
        import relay

        self.exe = relay.runtime.load_module(str(path))
        self.arguments = list(inputs.values())

    def run(self):
        return self.exe(*self.arguments)


class RelayOneDnn(Relay):
    """Relay with oneDNN for what it takes."""

    name = "relay+onednn"
    package = "onednn-cpu-gomp"

    @classmethod
    def version(cls):
        try:
            return importlib.metadata.version(cls.package)
        except importlib.metadata.PackageNotFoundError:
            return None

    def module_of(self, model):
        from relay import onednn

        return onednn.partition(*super().module_of(model)), None


class OnnxRuntime(Engine):
    """ONNX Runtime's CPU provider with every graph optimisation."""

    name = "onnxruntime"
    package = "onnxruntime"
    module = "onnxruntime"

    def load(self, path, threads, inputs):
        import onnxruntime

        onnxruntime.set_default_logger_severity(3)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = onnxruntime.InferenceSession(
            str(path), options, providers=["CPUExecutionProvider"]
        )
        self.feed = inputs

    def run(self):
        return self.session.run(None, self.feed)


class OpenVino(Engine):
    """OpenVINO's CPU plugin, tuned for latency and held to float32 (its default may be bf16)."""

    name = "openvino"
    package = "openvino"
    module = "openvino"

    def load(self, path, threads, inputs):
        import openvino

        options = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            "NUM_STREAMS": 1,
            "ENABLE_CPU_PINNING": False,
        }
        compiled = openvino.Core().compile_model(str(path), "CPU", options)
        self.request = compiled.create_infer_request()
        # The tensors are views: the arrays must live as long as the request.
        self.inputs = inputs
        for name, value in inputs.items():
            self.request.set_tensor(name, openvino.Tensor(value, shared_memory=True))
        self.count = len(compiled.outputs)

    def run(self):
        self.request.infer()
        return self.request

    def outputs(self, result):
        return [result.get_output_tensor(i).data.copy() for i in range(self.count)]


class TorchEager(Engine):
    """PyTorch, operator by operator, on the twin of the ONNX graph (torch_twin.py)."""

    name = "torch-eager"
    package = "torch"
    module = "torch"

    def load(self, path, threads, inputs):
        import onnx
        import torch
        import torch_twin

        torch.set_num_threads(threads)
        torch.set_grad_enabled(False)
        self.module_ = self.prepare(torch_twin.build(onnx.load(str(path))))
        self.arguments = [torch.from_numpy(v) for v in inputs.values()]

    def prepare(self, module):
        return module

    def run(self):
        return self.module_(*self.arguments)

    def outputs(self, result):
        return [r.numpy() for r in result]


class TorchInductor(TorchEager):
    """torch.compile of the same twin, with constants folded in; needs a C++ compiler."""

    name = "torch-inductor"

    def prepare(self, module):
        import torch

        # No worker pool: it would run outside the cores that this process is pinned to.
        return torch.compile(module, options={"freezing": True, "compile_threads": 1})


class Iree(Engine):
    """IREE's llvm-cpu backend for this very CPU at its highest optimisation level."""

    name = "iree"
    package = "iree-base-runtime"
    module = "iree.runtime"
    ahead_of_time = True

    @classmethod
    def version(cls):
        if importlib.util.find_spec("iree") is None:
            return None
        return super().version() and importlib.metadata.version("iree-base-compiler")

    def compile(self, model, artifact, threads):
        import iree.compiler

        graph = artifact.with_suffix(".mlir")
        importer = [sys.executable, "-m", "iree.compiler.tools.import_onnx"]
        subprocess.run([*importer, str(model), "-o", str(graph)], check=True)
        iree.compiler.compile_file(
            str(graph),
            output_file=str(artifact),
            input_type="onnx",
            target_backends=["llvm-cpu"],
            extra_args=["--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O3"],
        )
        graph.unlink()

    def load(self, path, threads, inputs):
        import iree.runtime

        if threads == 1:
            driver = "local-sync"
        else:
            driver = "local-task"
            iree.runtime.flags.parse_flags(f"--task_topology_max_group_count={threads}")
        module = iree.runtime.load_vm_flatbuffer_file(str(path), driver=driver)
        names = [n for n in module.vm_module.function_names if not n.endswith("$async")]
        self.function = module[next(n for n in names if not n.startswith("__"))]
        device = module._context.config.device
        self.arguments = [iree.runtime.asdevicearray(device, v) for v in inputs.values()]

    def run(self):
        return self.function(*self.arguments)

    def outputs(self, result):
        return [r.to_host() for r in _flat(result)]


class Tvm(Engine):
    """TVM's Relax with its standard pipeline, not tuned."""

    name = "tvm"
    package = "apache-tvm"
    module = "tvm"
    ahead_of_time = True

    def compile(self, model, artifact, threads):
        import onnx
        import tvm
        from tvm.relax.frontend.onnx import from_onnx

        module = from_onnx(onnx.load(str(model)), keep_params_in_input=False)
        target = tvm.target.Target.from_device("cpu")
        tvm.compile(module, target=target).export_library(str(artifact))

    def load(self, path, threads, inputs):
        import tvm

        device = tvm.cpu()
        machine = tvm.relax.VirtualMachine(tvm.runtime.load_module(str(path)), device)
        self.function = machine["main"]
        self.arguments = [tvm.runtime.tensor(v, device) for v in inputs.values()]

    def run(self):
        return self.function(*self.arguments)

    def outputs(self, result):
        fields = [result] if hasattr(result, "numpy") else list(result)
        return [f.numpy() for f in fields]


ENGINES: dict[str, type[Engine]] = {
    engine.name: engine
    for engine in (Relay, RelayOneDnn, OnnxRuntime, OpenVino, TorchEager, TorchInductor, Iree, Tvm)
}
