"""PyTorch: torch.compile(model, backend="relay").

    model = torch.compile(model, backend="relay")
    model(x)
    print(relay.torch.report())

PyTorch finds the back end by its name as soon as both packages are installed. Importing `relay` does not
import PyTorch; this module does.
"""

from __future__ import annotations

from relay.torch._backend import backend
from relay.torch._report import Fallback, Graph, Report, report, reset

__all__ = ["Fallback", "Graph", "Report", "backend", "report", "reset"]
