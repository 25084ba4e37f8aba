"""Why a case of cliff_cases.py is above its aim: what a profile of it says, and what bounds it.

A key is `group/case`. The sentences stand in docs/cliffs.md under the tables (cliff_page.py), where
the last run was above the aim; a case that is below again is left out of the page, not of this list.
"""

from __future__ import annotations

_DEPTHWISE = (
    "in NCHW a row of the image is the vector; at step 2 each tap loads two vectors and keeps half "
    "of them, and the border's taps are loops of their own."
)
_MEMORY = "each element is read and written once, at what the caches and the memory give: as fast as a copy."
_GROUPS = (
    "one dimension has one row of tiles, and packing the input's border is a tenth of the time."
)

_FOUR_BITS = (
    "weights of 4 bits become float32 when the model is compiled: a single row reads eight times the "
    "bytes, at the rate of L3."
)

REASONS: dict[str, str] = {
    "compile/1000 distinct nodes": (
        "7.7 s of processor time on two cores: half is LLVM's code generation, of which two fifths are "
        "instruction selection; a third is scheduling and lowering."
    ),
    "compile/gpt2-medium": (
        "of a warm compile 2.2 s are the program's own; the rest is the system clearing 3 GB of new "
        "pages, once for the weights of the file and once for packed ones."
    ),
    "int8/decoder 4 bits": _FOUR_BITS,
    "int8/matmul 1x768x3072 4 bits": _FOUR_BITS,
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
    "order/cumsum 1000x1000, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 1": _MEMORY,
    "order/top 50 of 1000x1000": (
        "a row of 1,000 numbers is selected from by thresholds: for so small a row each pass is short."
    ),
    "contraction/matmul 333x777x555": (
        "the product stands at 94 % of the multiply-add peak; rows and columns fill no whole tiles."
    ),
    "contraction/gemm of inputs, both transposed": (
        "a sixth of the time turns the two operands, which a run gives; the product stands at 84 % of "
        "the peak."
    ),
    "wide/batch matmul 8x128 float64": (
        "78 % of the float64 peak: a run gives both operands, and eight small panels are not packed."
    ),
    "layout/tied head 1": "one row: the weights pass by once, at the bandwidth of L3 and the memory.",
    "layout/channel shuffle": (
        "the layout changes back and the channels change places in one kernel, whose elements are "
        "gathered one by one: 10 GB/s."
    ),
    "sampling/resize nearest, twice": (
        "lines are gathered by a table of places, 16 elements at a time; half of what L3 gives."
    ),
    "sampling/resize nearest, odd": (
        "lines are gathered by a table of places, 16 elements at a time; half of what L3 gives."
    ),
    "elementwise/softmax 50k": "as fast as its exponential, which is within 4 % of ONNX Runtime's.",
    "open/depthwise 56": (
        "its two changes of layout are half of the time: blocks of an image of open size are not "
        "turned by shuffles (12 GB/s); and every tile asks whether it reads the border."
    ),
    "open/conv 56x56": (
        "minimal filtering wants constant heights and widths, so it is the direct sum at 86 % of "
        "the multiply-add peak, and the two changes of layout are a tenth of the time."
    ),
    "open/conv 61x37": "as open/conv 56x56.",
    "open/dense 64": "90 % of the multiply-add peak, as ONNX Runtime's.",
    "open/dense 257": "96 % of the multiply-add peak, as ONNX Runtime's.",
    "open/batch matmul 300": (
        "92 % of the multiply-add peak; the second operand is read as it lies, unpacked."
    ),
}
