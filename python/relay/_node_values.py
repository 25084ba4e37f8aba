"""Runs a model in another runtime for `relay diff --against NAME`, and writes the value of every node."""

from __future__ import annotations

import json
import os
import sys


def _fail(text: str, code: str = "E0701") -> int:
    sys.stderr.write(f"error[{code}]: {text}\n")
    return 1


def _onnxruntime(path: str, inputs: str, folder: str) -> int:
    """Writes values.npz and steps.json into the folder.

    steps.json lists the nodes in the order of the graph: their operators, names as Relay has them, keys of
    their values in values.npz (null where the value is not an array), and the nodes that made their inputs.
    """
    try:
        import numpy as np
        import onnx
        import onnxruntime
    except ImportError as error:
        return _fail(
            f"--against onnxruntime needs the Python packages onnx and onnxruntime: {error}"
        )
    try:
        model = onnx.load(path, load_external_data=False)
    except Exception as error:  # the parser's errors, and those of the file system
        return _fail(f"{os.path.basename(path)} is not an ONNX model: {error}")
    graph = model.graph
    results = [output.name for output in graph.output]
    known = set(results)
    for node in graph.node:
        for name in node.output:
            if name and name not in known:
                known.add(name)
                graph.output.append(onnx.ValueInfoProto(name=name))
    options = onnxruntime.SessionOptions()
    # As it is written: a rewritten graph has other values.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 3
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path",
        os.path.dirname(os.path.abspath(path)),
    )
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        given = {i.name for i in session.get_inputs()}
        arrays = np.load(inputs)
        found = session.run(None, {k: v for k, v in arrays.items() if k in given})
    except Exception as error:  # ONNX Runtime has no class of its own for all its errors
        return _fail(f"ONNX Runtime cannot run {os.path.basename(path)}: {error}")
    values = dict(zip((o.name for o in session.get_outputs()), found, strict=True))
    keys: dict[str, str] = {}
    written = {}
    for number, (name, value) in enumerate(values.items()):
        # Sequences, maps and strings are no values of nodes that can be compared.
        if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
            keys[name] = f"v{number}"
            written[keys[name]] = value
    steps = []
    made: dict[str, int] = {}
    for number, node in enumerate(graph.node):
        name = node.name or f"#{number}"
        label = f"{name} ({node.op_type})"
        if not node.name and node.output:
            label += f" -> {node.output[0]}"
        steps.append(
            {
                "operation": node.op_type,
                "node": label,
                "outputs": [keys.get(o) for o in node.output if o],
                "producers": sorted({made[i] for i in node.input if i in made}),
            }
        )
        made.update(dict.fromkeys(node.output, number))
    np.savez(os.path.join(folder, "values.npz"), **written)
    report = {
        "steps": steps,
        "results": [{"value": keys.get(r), "step": made.get(r)} for r in results],
    }
    with open(os.path.join(folder, "steps.json"), "w", encoding="utf-8") as out:
        json.dump(report, out)
    return 0


_RUNTIMES = {"onnxruntime": _onnxruntime}


def main() -> int:
    """Runs `NAME MODEL INPUTS.npz FOLDER`."""
    name, path, inputs, folder = sys.argv[1:5]
    if name not in _RUNTIMES:
        others = ", ".join(_RUNTIMES)
        return _fail(
            f"there is no reference {name!r}: evaluator, opt0, a compiled .so, or {others}", "E0702"
        )
    return _RUNTIMES[name](path, inputs, folder)
