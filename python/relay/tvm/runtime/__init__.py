"""Loading and running of compiled programs by the names of the first Relay's `tvm.runtime`."""

from __future__ import annotations

from typing import Any

from relay._absent import absent
from relay.tvm import nd as nd
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
from relay.tvm.runtime import module as module
from relay.tvm.runtime import params as params
from relay.tvm.runtime import vm as vm
from relay.tvm.runtime.module import (
    BenchmarkResult as BenchmarkResult,
)
from relay.tvm.runtime.module import (
    Module as Module,
)
from relay.tvm.runtime.module import (
    load_module as load_module,
)
from relay.tvm.runtime.params import (
    load_param_dict as load_param_dict,
)
from relay.tvm.runtime.params import (
    load_param_dict_from_file as load_param_dict_from_file,
)
from relay.tvm.runtime.params import (
    save_param_dict as save_param_dict,
)
from relay.tvm.runtime.params import (
    save_param_dict_to_file as save_param_dict_to_file,
)

ndarray = nd


def enabled(target: str) -> bool:
    """Returns whether programs are compiled for a target, and run, here."""
    return str(target).split()[:1] in (["llvm"], ["cpu"])


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.runtime", name)
