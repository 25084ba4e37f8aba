"""PyTorch: torch.compile(model, backend="relay").

    model = torch.compile(model, backend="relay")
    model(x)
    print(relay.torch.report())

PyTorch finds the back end by its name as soon as both packages are installed. Importing `relay` does not
import PyTorch; this module does.
"""

from __future__ import annotations

from pathlib import Path as _Path

import torch as _torch

from relay import _core
from relay.torch._backend import backend
from relay.torch._report import Fallback, Graph, Report, report, reset

__all__ = ["Fallback", "Graph", "Report", "backend", "report", "reset"]

# Kernels run on the threads of PyTorch's OpenMP. Those wait actively for a while after their work, so
# that threads of Relay's own would have to share a core with them.
_core.share_openmp_of(str(_Path(_torch.__file__).parent / "lib" / "libtorch_cpu.so"))
