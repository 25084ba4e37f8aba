"""All oracles; see oracle_registry."""

from __future__ import annotations

import composed_oracles  # noqa: F401
import detection_oracles  # noqa: F401
import element_oracles  # noqa: F401
import image_oracles  # noqa: F401
import index_oracles  # noqa: F401
import qnn_oracles  # noqa: F401
import random_oracles  # noqa: F401
import window_oracles  # noqa: F401
from oracle_registry import ORACLES, answer, attributes

__all__ = ["ORACLES", "answer", "attributes"]
