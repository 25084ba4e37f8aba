"""Why a case of cliff_cases.py is above its aim: what a profile of it says, and what bounds it.

A key is `group/case`. The sentences stand in docs/cliffs.md under the tables (cliff_page.py), where
the last run was above the aim; a case that is below again is left out of the page, not of this list.
"""

from __future__ import annotations

_LAYOUTS = (
    "the convolution itself stands at {}; changing the layout there and back is {} of the time, at the "
    "bandwidth of L3."
)
_GROUPS = (
    "the sum stands at 160 to 202 GFLOP/s (66 to 85 %): 40 and 56 results leave vectors part full; "
    "changing the layout is a quarter of the time."
)
_LAST_STAGE = (
    "a third of the time is the last stage, 49 places by 9.2 MB of weights a convolution, read at 6 GB/s "
    "(55 % of the multiply-add peak); the others stand at 73 to 82 %, and by minimal filtering above it."
)
_MEMORY = "as fast as its data come from L3; ONNX Runtime reads as much."
_BLOCKS = (
    "the input passes by once for each of the blocks' places, and every second or fourth element of a "
    "vector is kept: 19 GB/s, 63 % of what L3 gives."
)

_FROM_MEMORY = (
    "100 MB of weights pass by, which L3 does not hold: convolutions of the last two stages stand at 43 "
    "to 70 % of the multiply-add peak while their weights come at 4 to 6 GB/s."
)
_BYTES_BY_CHANNEL = (
    "half of the time rounds the image to bytes while its layout changes (10 GB/s), a fifth is the way "
    "back at the bandwidth of L3, and the convolution stands at 32 to 40 % of the multiply-add peak, its "
    "bytes widened to 32 bits."
)

REASONS: dict[str, str] = {
    "batch/resnet50 8": (
        "1x1 convolutions stand at 84 % of the multiply-add peak, and the largest by minimal filtering at "
        "25 to 33 %: their weights, 4 times as large transformed, pass by for each group of tiles."
    ),
    "batch/dcgan 8": "as batch/dcgan 32.",
    "batch/dcgan 32": (
        "nine tenths are three convolutions by minimal filtering, of which the largest stands at 203 of "
        "the 500 GFLOP/s that another reaches: its tiles pass through memory at each step."
    ),
    "batch/mobilenet_v2 32": (
        "depthwise convolutions and the products around them move 60 to 180 MB each, more than L3 holds, "
        "at 10 to 12 GB/s."
    ),
    "batch/dqn 32": (
        "its two direct convolutions stand at 86 % of the multiply-add peak, the dense layer by 6.4 MB of "
        "weights at 69 %."
    ),
    "compile/1000 distinct nodes": (
        "a warm compile schedules and lowers its 500 kernels again, whose code is the key of the cache; "
        "LLVM, which is half of a cold one, is left out."
    ),
    "compile/gpt2-medium": (
        "of a warm compile 1.2 s are the program's own; the rest is the system clearing 2.8 GB of new "
        "pages, once for the weights, which lie unaligned in the file, and once for packed ones, and "
        "copying 1.5 GB into the artifact."
    ),
    "int8/resnet50 float32": _FROM_MEMORY,
    "int8/quantise 1M": "5 MB a call at 25 GB/s, which is what L3 gives; ONNX Runtime moves as much.",
    "int8/depthwise 56x56x96 QDQ": _BYTES_BY_CHANNEL,
    "int8/depthwise 56x56x96 QOperator": _BYTES_BY_CHANNEL,
    "int8/mobilenet_v2 QDQ": (
        "as QOperator; and results of its batch normalisations, which are not folded, are rounded twice."
    ),
    "int8/mobilenet_v2 QOperator": (
        "depthwise convolutions of bytes stand at 15 to 26 % of the multiply-add peak: a place's nine "
        "products are no fours of neighbouring bytes, so each byte is widened to 32 bits."
    ),
    "int8/matmul 128x768x3072 4 bits": (
        "82 % of the multiply-add peak, weights widened in memory once for all rows; ONNX Runtime's, which "
        "widens them too, stands at 70 to 74 %."
    ),
    "half/resnet18 float32": _LAST_STAGE,
    "half/bert float32": "91 % of the multiply-add peak as a whole, as ONNX Runtime is.",
    "half/resnet18 float16": (
        "a third of the time is the last stage, 49 places by 13.7 MB of weights - three bfloat16 for a "
        "float16 - read at 8 GB/s; the stem and the first stage, another quarter, are in float32."
    ),
    "half/bert float16": (
        "a product of float16 is three of bfloat16; attention, softmax and normalisations are in float32."
    ),
    "half/matmul 128x768x3072 float32": "78 % of the multiply-add peak; ONNX Runtime's stands at 75 %.",
    "half/matmul 1x768x3072 float32": "one row: 9.4 MB of weights pass by once, at the bandwidth of L3.",
    "half/batch matmul 12x128 float32": (
        "85 % of the multiply-add peak; a run gives both operands, and neither is packed."
    ),
    "half/batch matmul 12x128 float16": (
        "85 % of the multiply-add peak in float32; two kernels that change the operands into float32 are "
        "an eighth of the time."
    ),
    "half/depthwise 56x56 float16": (
        "changing the image into float32 is a kernel of its own and 39 % of the time; the convolution alone "
        "takes 0.82 of its twin's."
    ),
    "half/layer norm 128x768 float16": "2 us more than in float32: each vector is converted on both sides.",
    "half/softmax 128x1000 float32": "15 cycles for each vector, most of them its exponential.",
    "half/softmax 128x1000 float16": "as in float32, and a conversion of each vector on both sides.",
    "half/erf 1M float32": "25 cycles for each vector: its polynomial, at 28 % of the bandwidth of L3.",
    "half/erf 1M float16": "its polynomial in float32 takes as long; only the bytes are half of them.",
    "half/add 1M float32": _MEMORY,
    "half/max pool 112x112 float16": (
        "8 % of what L2 gives: maxima are taken in float32, and each element is converted where it is read."
    ),
    "open/resnet18 static 1": _LAST_STAGE,
    "open/resnet18 1": _LAST_STAGE,
    "open/batch matmul 77": "of the last vector of 77 columns 13 lanes are used; 64 others fill theirs.",
    "open/dense 17": "at 90 % of the multiply-add peak, as ONNX Runtime is; 17 rows are a tile and one row.",
    "order/cumsum 1000x1000, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 1": _MEMORY,
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
    "open/dense 64": "90 % of the multiply-add peak, as ONNX Runtime's.",
    "open/dense 257": "96 % of the multiply-add peak, as ONNX Runtime's.",
    "open/batch matmul 300": (
        "92 % of the multiply-add peak; the second operand is read as it lies, unpacked."
    ),
    "conv/dilation 12": _LAYOUTS.format("190 GFLOP/s of the products that are left", "an eighth"),
    "conv/1d, 24 channels a group": _GROUPS,
    "conv/1d, 40 channels a group": _GROUPS,
    "conv/1d, 48 channels a group": _GROUPS,
    "conv/1d, 56 channels a group": _GROUPS,
    "conv/2d, 48 channels a group": _LAYOUTS.format("220 GFLOP/s (91 %)", "a tenth"),
    "moves/transpose 1000x999 to 10": _MEMORY,
    "moves/scatter rows": _MEMORY,
    "moves/pad reflect": _MEMORY,
    "moves/tile": _MEMORY,
    "elementwise/softmax 64x50k": _MEMORY,
    "elementwise/tanh 1M": (
        "at 74 % of what L3 gives: its polynomial, which is right to the last bit but one, takes "
        "about as long as the data and does not overlap with them altogether."
    ),
    "elementwise/erf 1M": _MEMORY,
    "elementwise/exp 1M": _MEMORY,
    "elementwise/sqrt 1M": _MEMORY,
    "elementwise/add of a row": _MEMORY,
    "elementwise/add 1M": _MEMORY,
    "elementwise/div 1M": _MEMORY,
    "elementwise/add of a column": _MEMORY,
    "elementwise/reduce sum 1000x1000, axis 0": _MEMORY,
    "elementwise/reduce sum 1000x1000, axis 1": _MEMORY,
    "elementwise/reduce max 1M": _MEMORY,
    "sampling/roi align avg, ratio 0": (
        "each box has a number of samples of its own, and the loops over them have no lanes."
    ),
    "open/attention 77": (
        "one kernel: 48 queries and the other 29 by 77 keys, of whose last vector 13 lanes are used; "
        "the scores of each block go through softmax between the two products."
    ),
    "open/depthwise 56": (
        "its two changes of layout are two thirds of the time, at 28 to 33 GB/s, which is what L3 "
        "gives; only images of constant sizes are summed as they lie."
    ),
    "open/conv 56x56": (
        "minimal filtering wants constant heights and widths, so it is the direct sum at 90 % of "
        "the multiply-add peak, and the two changes of layout are a tenth of the time."
    ),
    "open/conv 61x37": "as open/conv 56x56.",
    "open/conv transpose 28": (
        "four sums for even and odd places, and a third of the time puts these together in the "
        "output's order: their places are quotients of open sizes, read one by one."
    ),
    "open/softmax 128x1000": (
        "0.28 ns for each element, as in rows of 50,000: the exponential bounds it, and 1,000 are no "
        "whole vectors."
    ),
    "open/reduce mean 199": _MEMORY,
    "order/top 50 of 1000x1000": (
        "8 us for a row of 1,000 numbers, which is selected from by thresholds: each pass is short, "
        "and L3 gives fifty times as much."
    ),
    "conv/weights at run time 1x1": _LAYOUTS.format("205 GFLOP/s (84 %)", "a fifth"),
    "conv/dilation 12, 65x65": (
        "21 results fill two thirds of two vectors: the sum stands at 100 GFLOP/s (41 %); cutting "
        "columns and changing the layout are a fifth."
    ),
    "conv/unequal padding": _LAYOUTS.format("193 to 213 GFLOP/s (79 to 88 %)", "a fifth"),
    "conv/stride 3": _LAYOUTS.format("171 GFLOP/s (71 %)", "an eighth"),
    "layout/tied head 16": (
        "weights of 45 MB at 16 GB/s, three quarters of what L3 gives, and 127 GFLOP/s, half of the "
        "peak: tiles of 6 rows by 64 columns wait for both."
    ),
    "moves/space to depth 2": _BLOCKS,
    "moves/space to depth 4": _BLOCKS,
    "moves/expand": _MEMORY,
    "moves/gather rows": _MEMORY,
    "elementwise/softmax 50k": "0.3 ns for each element: its exponential, as ONNX Runtime's.",
    "elementwise/log softmax 50k": "as fast as its exponential, which is ONNX Runtime's.",
    "sampling/roi align max, ratio 2": (
        "13 ms of which the data take 2 %: the greatest of four weighted corners for each sample, "
        "channel by channel without lanes."
    ),
    "sampling/resize linear, image down": (
        "columns are gathered at places of their own, twice for each vector: 17 GB/s, 62 % of what L3 "
        "gives."
    ),
}


# Settings of the drawn board that are above 1.2, by patterns of their names: the first that fits.
DRAWN_CAUSES: dict[str, str] = {}
