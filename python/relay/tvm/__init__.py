"""The last TVM that had Relay, for the programs that used it: names over what Relay has.

    import relay.tvm as tvm
    from relay.tvm import relay

`install()` puts the package under `tvm` in `sys.modules`, so that packages that import `tvm` run
unmodified. `docs/from_relay.md` lists the names; one that is absent raises AttributeError with the reason.
"""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

from relay._absent import Unsupported, absent
from relay.tvm import (
    contrib as contrib,
)
from relay.tvm import (
    error as error,
)
from relay.tvm import (
    instrument as instrument,
)
from relay.tvm import (
    ir as ir,
)
from relay.tvm import (
    nd as nd,
)
from relay.tvm import (
    relay as relay,
)
from relay.tvm import (
    runtime as runtime,
)
from relay.tvm import (
    target as target,
)
from relay.tvm import (
    te as te,
)
from relay.tvm import (
    testing as testing,
)
from relay.tvm import (
    transform as transform,
)
from relay.tvm._exchange import View as _View
from relay.tvm.error import TVMError as TVMError
from relay.tvm.ir.module import IRModule as IRModule
from relay.tvm.nd import (
    Device as Device,
)
from relay.tvm.nd import (
    NDArray as NDArray,
)
from relay.tvm.nd import (
    cpu as cpu,
)
from relay.tvm.nd import (
    device as device,
)

# The release of TVM whose names this package has.
__version__ = "0.18.0"

context = device
ndarray = nd
parser = _View(
    "relay.tvm.parser",
    None,
    fromtext=relay.fromtext,
    parse=relay.parse,
    parse_expr=relay.parse_expr,
)
_ffi = _View("relay.tvm._ffi", None)

# Modules that have another place, or that stand for several files, by their names below `tvm`.
_PLACES: dict[str, types.ModuleType] = {
    "_ffi": _ffi,
    "contrib.graph_runtime": contrib.graph_executor,
    "contrib.util": contrib.utils,
    "ir.instrument": instrument,
    "ir.transform": transform,
    "ndarray": nd,
    "parser": parser,
    "runtime.ndarray": nd,
    **{
        f"ir.{name}": ir
        for name in ("adt", "attrs", "base", "container", "expr", "function", "op", "tensor_type", "type")
    },
    **{
        f"relay.{name}": getattr(relay, name)
        for name in (
            "adt", "analysis", "base", "data_dep_optimization", "dataflow_pattern", "expr",
            "expr_functor", "frontend", "function", "param_dict", "prelude", "quantize",
            "scope_builder", "transform", "ty", "type_functor", "testing", "op", "nn", "image",
            "vision", "loops",
        )
    },
    **{f"relay.testing.{name}": network for name, network in relay.NETWORKS.items()},
}  # fmt: skip


class _Package(types.ModuleType):
    """The module `tvm`, whose names are those of this package."""

    def __getattr__(self, name: str) -> Any:
        return getattr(sys.modules[__name__], name)

    def __dir__(self) -> list[str]:
        return dir(sys.modules[__name__])


def install() -> None:
    """Puts the package under `tvm` in `sys.modules`: `import tvm` finds it in this process.

    RuntimeError if another package of that name is loaded.
    """
    loaded = sys.modules.get("tvm")
    if loaded is not None:
        if isinstance(loaded, _Package):
            return
        raise RuntimeError("another package 'tvm' is loaded: install() comes before its import")
    package = _Package("tvm", __doc__)
    # Python takes a module with a path for a package; files are found in none.
    package.__path__ = []
    package.__spec__ = importlib.machinery.ModuleSpec("tvm", None, is_package=True)
    names = {
        name.removeprefix(f"{__name__}."): module
        for name, module in sys.modules.items()
        if name.startswith(f"{__name__}.") and not name.removeprefix(f"{__name__}.").startswith("_")
    }
    sys.modules["tvm"] = package
    sys.modules.update({f"tvm.{name}": module for name, module in {**names, **_PLACES}.items()})


sys.modules.update({f"{__name__}.{name}": module for name, module in _PLACES.items()})


class _Reasons(importlib.abc.MetaPathFinder):
    """Finds no module. The import of an absent one is an error with its reason, as an attribute is."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> None:
        parent, _, name = fullname.rpartition(".")
        installed = isinstance(sys.modules.get("tvm"), _Package)
        if not f"{parent}.".startswith((f"{__name__}.", "tvm.") if installed else f"{__name__}."):
            return
        try:
            getattr(sys.modules.get(parent), name)
        except Unsupported as error:
            # With the module's name in it, `from tvm import name` would hide the error.
            raise ModuleNotFoundError(str(error)) from None
        except AttributeError:
            return


sys.meta_path.append(_Reasons())


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm", name)
