"""Passes that change a program and its parameters together.

func, params = relay.data_dep_optimization.simplify_fc_transpose.convert(func, params)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from relay._absent import absent
from relay.data_dep_optimization import simplify_fc_transpose as simplify_fc_transpose

if not TYPE_CHECKING:

    def __getattr__(name):
        raise absent("relay.data_dep_optimization", name)
