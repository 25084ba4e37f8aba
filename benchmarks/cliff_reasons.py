"""Why a case of cliff_cases.py is above its aim: what a profile of it says, and what bounds it.

A key is `group/case`. The sentences stand in docs/cliffs.md under the tables (cliff_page.py), where
the last run was above the aim; a case that is below again is left out of the page, not of this list.
"""

from __future__ import annotations

_DEPTHWISE = (
    "in NCHW a row of the image is the vector; at step 2 each tap loads two vectors and keeps half "
    "of them, and the border's taps are loops of their own."
)
_GROUPS = (
    "one dimension has one row of tiles, and packing the input's border is a tenth of the time."
)

REASONS: dict[str, str] = {
    "conv/dilation 12": (
        "the taps of a tile lie 12 rows apart, so no tap finds what another loaded; 60 % of the peak."
    ),
    "conv/depthwise 5x5 /2": _DEPTHWISE,
    "conv/depthwise 5x5 /1": _DEPTHWISE,
    "conv/depthwise 7x7 /1": _DEPTHWISE,
    "conv/1d, 40 channels a group": _GROUPS,
    "conv/1d, 48 channels a group": _GROUPS,
    "conv/1d, 56 channels a group": _GROUPS,
    "moves/gather elements": (
        "looking whether a million indices lie inside takes as long as gathering; the checked ones "
        "are written down."
    ),
    "elementwise/softmax 50k": "as fast as its exponential, which is within 4 % of ONNX Runtime's.",
}
