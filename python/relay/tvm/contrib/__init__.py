"""Executors and helpers by the names of the first Relay's `tvm.contrib`."""

from __future__ import annotations

from typing import Any

from relay._absent import absent
from relay.tvm.contrib import graph_executor as graph_executor
from relay.tvm.contrib import utils as utils

graph_runtime = graph_executor
util = utils


def __getattr__(name: str) -> Any:
    raise absent("relay.tvm.contrib", name)
