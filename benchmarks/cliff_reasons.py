"""Reasons for cases of cliff_cases.py above their aim: a summary of the profile, and the bound.

A key is `group/case`. cliff_page.py writes the sentences under the tables of docs/cliffs.md, for cases
that were above their aim in the last run; a case that is below it again stays in this list.
"""

from __future__ import annotations

_LAYOUTS = (
    "the convolution itself reaches {}; layout conversion of input and output takes {} of the time, "
    "at the bandwidth of L3."
)
_GROUPS = (
    "the contraction reaches 160 to 202 GFLOP/s (66 to 85 %): 40 and 56 results leave vectors partly "
    "empty; layout conversion takes a quarter of the time."
)
_LAST_STAGE = (
    "the last stage takes a third of the time: 49 output positions with 9.2 MB of weights for each "
    "convolution, read at 6 GB/s (55 % of the multiply-add peak); the other stages reach 73 to 82 %, "
    "and exceed the peak with Winograd."
)
_DISTURBED = "{} by itself: other work of the machine disturbed the run of all settings."
_MEMORY = "bound by the bandwidth of L3; ONNX Runtime reads as much."
_BLOCKS = (
    "the input is read once for each position in a block, and every second or fourth element of a "
    "vector is used: 19 GB/s, 63 % of the bandwidth of L3."
)

_FROM_MEMORY = (
    "100 MB of weights exceed L3: the convolutions of the last two stages reach 43 to 70 % of the "
    "multiply-add peak while their weights are read at 4 to 6 GB/s."
)
_BYTES_BY_CHANNEL = (
    "half of the time rounds the image to 8 bits while its layout is converted (10 GB/s), a fifth "
    "converts the layout back at the bandwidth of L3, and the convolution reaches 32 to 40 % of the "
    "multiply-add peak, because its bytes are widened to 32 bits."
)

_NO_DOT_PRODUCTS = (
    "this processor has no dot products of bytes (AVX-VNNI, AVX512-VNNI): each byte is widened to 32 "
    "bits and multiplied, while ONNX Runtime multiplies pairs of bytes in 16 bits."
)

REASONS: dict[str, str] = {
    "batch/resnet50 8": (
        "1x1 convolutions reach 84 % of the multiply-add peak, and the largest with Winograd 25 "
        "to 33 %: their transformed weights, 4 times as large, are read for each group of tiles."
    ),
    "batch/dcgan 8": "as batch/dcgan 32.",
    "batch/dcgan 32": (
        "three convolutions with Winograd take nine tenths of the time; the largest reaches 203 "
        "GFLOP/s where another reaches 500: its tiles are written to memory and read back at each "
        "step."
    ),
    "batch/mobilenet_v2 32": (
        "depthwise convolutions and the products around them read and write 60 to 180 MB each, "
        "more than L3 holds, at 10 to 12 GB/s."
    ),
    "batch/dqn 32": (
        "its two direct convolutions reach 86 % of the multiply-add peak, the dense layer with "
        "6.4 MB of weights 69 %."
    ),
    "compile/1000 distinct nodes": (
        "a warm compilation schedules and lowers its 500 kernels again, because their code is the "
        "key of the cache; it saves only LLVM, which takes half of a cold compilation."
    ),
    "compile/gpt2-medium": (
        "of a warm compilation, Relay itself takes 1.2 s; the rest is the operating system "
        "clearing 2.8 GB of new pages, once for the weights, which are unaligned in the file, and "
        "once for packed ones, and copying 1.5 GB into the artifact."
    ),
    "int8/resnet50 float32": _FROM_MEMORY,
    "int8/quantise 1M": (
        "5 MB for each call at 25 GB/s, the bandwidth of L3; ONNX Runtime reads and writes as much."
    ),
    "int8/depthwise 56x56x96 QDQ": _BYTES_BY_CHANNEL,
    "int8/depthwise 56x56x96 QOperator": _BYTES_BY_CHANNEL,
    "int8/mobilenet_v2 QDQ": (
        "as QOperator; in addition, results of batch normalisations that are not folded are "
        "rounded twice."
    ),
    "int8/mobilenet_v2 QOperator": (
        "depthwise convolutions of 8-bit integers reach 15 to 26 % of the multiply-add peak: the "
        "nine products of an output position are not groups of four adjacent bytes, so each byte "
        "is widened to 32 bits."
    ),
    "int8/matmul 128x768x3072 4 bits": (
        "82 % of the multiply-add peak, with weights widened in memory once for all rows; ONNX "
        "Runtime, which widens them too, reaches 70 to 74 %."
    ),
    "half/resnet18 float32": _LAST_STAGE,
    "half/bert float32": "91 % of the multiply-add peak as a whole, like ONNX Runtime.",
    "half/resnet18 float16": (
        "the last stage takes a third of the time: 49 output positions with 13.7 MB of weights - "
        "three bfloat16 for a float16 - read at 8 GB/s; the stem and the first stage, another "
        "quarter, are in float32."
    ),
    "half/bert float16": (
        "a float16 product takes three bfloat16 products; attention, softmax and normalisations "
        "are in float32."
    ),
    "half/matmul 128x768x3072 float32": (
        "78 % of the multiply-add peak; ONNX Runtime reaches 75 %."
    ),
    "half/matmul 1x768x3072 float32": (
        "one row: 9.4 MB of weights are read once, at the bandwidth of L3."
    ),
    "half/batch matmul 12x128 float32": (
        "85 % of the multiply-add peak; both operands are inputs, and neither is packed."
    ),
    "half/batch matmul 12x128 float16": (
        "85 % of the multiply-add peak in float32; two kernels that convert the operands to "
        "float32 take an eighth of the time."
    ),
    "half/depthwise 56x56 float16": (
        "a separate kernel converts the image to float32 and takes 39 % of the time; the "
        "convolution alone takes 0.82 of the time in float32."
    ),
    "half/layer norm 128x768 float16": (
        "2 us more than in float32: each vector is converted when it is read and when it is "
        "written."
    ),
    "half/softmax 128x1000 float32": (
        "15 cycles for each vector, most of them for the exponential."
    ),
    "half/softmax 128x1000 float16": (
        "as in float32, with a conversion of each vector when it is read and when it is written."
    ),
    "half/erf 1M float32": (
        "25 cycles for each vector: the polynomial, at 28 % of the bandwidth of L3."
    ),
    "half/erf 1M float16": (
        "the polynomial in float32 takes as long; only the number of bytes is halved."
    ),
    "half/add 1M float32": _MEMORY,
    "half/max pool 112x112 float16": (
        "8 % of the bandwidth of L2: maxima are computed in float32, and each element is "
        "converted for each window that reads it."
    ),
    "open/resnet18 static 1": _LAST_STAGE,
    "open/resnet18 1": _LAST_STAGE,
    "open/batch matmul 77": (
        "the last vector of 77 columns uses 13 lanes; the vectors of the first 64 columns are full."
    ),
    "open/dense 17": (
        "90 % of the multiply-add peak, like ONNX Runtime; 17 rows are a tile and one row."
    ),
    "order/cumsum 1000x1000, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 0": _MEMORY,
    "order/cumsum 64x128x256, axis 1": _MEMORY,
    "contraction/matmul 333x777x555": (
        "the product reaches 94 % of the multiply-add peak; rows and columns do not fill whole "
        "tiles."
    ),
    "contraction/gemm of inputs, both transposed": (
        "transposing the two operands, which are inputs, takes a sixth of the time; the product "
        "reaches 84 % of the peak."
    ),
    "wide/batch matmul 8x128 float64": (
        "78 % of the float64 peak: both operands are inputs, and eight small panels are not packed."
    ),
    "layout/tied head 1": "one row: the weights are read once, at the bandwidth of L3 and memory.",
    "open/dense 64": "90 % of the multiply-add peak, like ONNX Runtime.",
    "open/dense 257": "96 % of the multiply-add peak, like ONNX Runtime.",
    "open/batch matmul 300": (
        "92 % of the multiply-add peak; the second operand is read in place, without packing."
    ),
    "conv/dilation 12": _LAYOUTS.format("190 GFLOP/s of the remaining products", "an eighth"),
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
        "each box has its own number of samples, and the loops over the samples are not vectorised."
    ),
    "open/attention 77": (
        "one kernel: 48 queries, then the other 29, by 77 keys, whose last vector uses 13 lanes; "
        "the scores of each block are normalised by softmax between the two products."
    ),
    "open/depthwise 56": (
        "the two layout conversions take two thirds of the time, at 28 to 33 GB/s, the bandwidth "
        "of L3; only images of constant sizes are computed in their own layout."
    ),
    "open/conv 56x56": (
        "measured before Winograd took a symbolic height and width: the kernel is the direct "
        "convolution at 90 % of the multiply-add peak, and the two layout conversions take a "
        "tenth of the time."
    ),
    "open/conv 61x37": "as open/conv 56x56.",
    "open/conv transpose 28": (
        "four convolutions compute the even and odd positions, and merging them in the order of "
        "the output takes a third of the time: their indices are quotients of symbolic sizes, "
        "read one by one."
    ),
    "open/softmax 128x1000": (
        "0.28 ns for each element, as in rows of 50,000: the exponential is the bound, and 1,000 "
        "elements are not a whole number of vectors."
    ),
    "open/reduce mean 199": _MEMORY,
    "order/top 50 of 1000x1000": (
        "8 us for a row of 1,000 numbers, from which the elements are selected by thresholds: "
        "each pass is short, and L3 has fifty times the bandwidth."
    ),
    "conv/weights at run time 1x1": _LAYOUTS.format("205 GFLOP/s (84 %)", "a fifth"),
    "conv/dilation 12, 65x65": (
        "21 results fill two thirds of two vectors: the contraction reaches 100 GFLOP/s (41 %); "
        "slicing columns and layout conversion take a fifth."
    ),
    "conv/unequal padding": _LAYOUTS.format("193 to 213 GFLOP/s (79 to 88 %)", "a fifth"),
    "conv/stride 3": _LAYOUTS.format("171 GFLOP/s (71 %)", "an eighth"),
    "layout/tied head 16": (
        "45 MB of weights at 16 GB/s, three quarters of the bandwidth of L3, and 127 GFLOP/s, "
        "half of the peak: tiles of 6 rows by 64 columns are bound by both."
    ),
    "moves/space to depth 2": _BLOCKS,
    "moves/space to depth 4": _BLOCKS,
    "moves/expand": _MEMORY,
    "moves/gather rows": _MEMORY,
    "elementwise/softmax 50k": "0.3 ns for each element: the exponential, like ONNX Runtime.",
    "elementwise/log softmax 50k": "bound by the exponential, like ONNX Runtime.",
    "sampling/roi align max, ratio 2": (
        "13 ms, of which the data take 2 %: the maximum of four weighted corners for each sample, "
        "channel by channel without vectors."
    ),
    "sampling/resize linear, image down": (
        "columns are gathered at individual positions, twice for each vector: 17 GB/s, 62 % of "
        "the bandwidth of L3."
    ),
}


_FEW_COLUMNS = (
    "a vector holds one row of two or three elements, and its other lanes are empty: 2 ns for each "
    "element of a maximum with its place, 6 for each of a softmax."
)

# Reasons for drawn settings with a ratio above 1.2, by patterns of their names: the first match.
DRAWN_CAUSES: dict[str, str] = {
    "order/TopK f32 17x237x65 k 2 axis 0 *": _DISTURBED.format("0.87"),
    "graphs/residual 2 of 40x29x29 *": _DISTURBED.format("0.81"),
    "strings/StringSplit *": (
        "the library is called for the number of a string's parts, and again for each part."
    ),
    "strings/Unique string *": (
        "of a few words the call itself counts, as each result of a data-dependent size is allocated for "
        "itself; words that are alike in seven bytes are compared by calls of the library."
    ),
    "8 bits/DynamicQuantizeLinear *": (
        "the least element, the greatest one and rounding are kernels of their own, so that the tensor "
        "is read three times, at 20 to 24 GB/s each; ONNX Runtime reads it twice."
    ),
    "8 bits/QLinearAdd *": (
        "each byte is widened to 32 bits, scaled in float32, rounded and narrowed: 0.2 ns for each, which "
        "is bound by the instructions."
    ),
    "reductions/ArgM* *x2 axis 0 *": _FEW_COLUMNS,
    "normalisations/*oftmax f16 *x2 axis 0 *": _FEW_COLUMNS,
    "moves/Compress *": (
        "rows are copied at 36 GB/s; three kernels before that, and a result of a size that the data "
        "decide, take an eighth of the time."
    ),
    "elementwise/Div i32 *": (
        "processors divide no vectors of integers, so each lane is divided by itself: 3.3 ns for an element."
    ),
    "windows/AveragePool f32 1x43x128x8 *": (
        "rows of 8 elements, of 3 results: 34 ns for each row, in which half of a vector's lanes or fewer "
        "are used."
    ),
    "moves/Expand u8 *": (
        "rows of a few bytes are written one by one, 4 GB/s: no vector of this processor permutes bytes "
        "across its halves."
    ),
    "moves/SpaceToDepth *": (
        "every second or third element of a vector is read, once for each position in a block: 6 GB/s "
        "of rows of 18."
    ),
    "strings/StringConcat *": "most of the time converts strings from Python and back.",
    "detection/NonMaxSuppression *": (
        "a first run over the boxes finds how many are kept, and a second which of them."
    ),
    "elementwise/Pow f64 *": (
        "each element is a call of libm's pow, as in ONNX Runtime, and lanes are taken out of vectors "
        "for it and put together again."
    ),
    "order/TopK f64 *": (
        "keys of 64 bits are two arrays, of keys and of places, and 256-bit vectors compare such keys "
        "as signed numbers only."
    ),
    "8 bits/QLinearMatMul u8 1x2x8 *": "of 16 products the call itself counts.",
    "8 bits/QLinearMatMul *": _NO_DOT_PRODUCTS,
    "8 bits/MatMulInteger *": _NO_DOT_PRODUCTS,
    "convolutions/ConvTranspose *": (
        "the results for the phases of a stride of 3 are interleaved element by element, 2.6 ns for "
        "each, which is nine tenths of the time."
    ),
}
