"""Errors of the package's functions for arguments that they do not accept."""

from __future__ import annotations

from relay import _core


def wrong(message: str) -> _core.ArgumentError:
    """The ArgumentError (E0913) of a message, to raise: a TypeError and a ValueError of Python's too."""
    try:
        _core.wrong_argument(message)
    except _core.ArgumentError as problem:
        return problem.with_traceback(None)
    raise AssertionError


# Parameters of the first Relay that have no meaning here, each with the reason.
_MEANINGLESS = {
    "target_host": "the target is the host",
    "executor": "there is one way to run what is built",
    "runtime": "there is one run-time system, in the library that is built",
    "workspace_memory_pools": "memory is planned by the compiler",
    "constant_memory_pools": "memory is planned by the compiler",
    "device": "the target says where a program runs",
    "target_devices": "gradients are checked on the processor",
    "convert_config": "the importer has no such settings",
    "export_node_renamed_model_path": "names of nodes are kept",
    "custom_convert_map": "operators of PyTorch are converted by the importer's own rules",
    "export_renamed_c_graph_path": "PyTorch's exported program is what is imported",
    "keep_quantized_weight": "weights are imported as they are",
    "preserve_pytorch_scopes": "the location of an expression is its line: expr.span",
    "init_module": "a module is read from one text",
    "init_meta_table": "the text has its metadata itself",
}


def refuse(function: str, given: dict) -> None:
    """Raises ArgumentError where a parameter that has no meaning here is given."""
    for name, value in given.items():
        if value is not None:
            raise wrong(f"{function}() takes no {name}: {_MEANINGLESS[name]}")
