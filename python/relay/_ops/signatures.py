"""The signatures of the operators' functions that users of the first Relay know, in one table.

An operator without a row takes the arguments of its registry row, then the attributes. With None or '' as a
default, the operator's own default applies. Functions that make more than one call are in compositions.py.
"""

from __future__ import annotations

_POOL = "strides={0}, dilation={0}, padding={1}, layout='{2}', out_layout='', ceil_mode=False"
_ADAPTIVE = "data, output_size=None, layout='{}', out_layout=''"
_RESIZE = (
    "data, size, roi=None, layout='{}', method='linear', "
    "coordinate_transformation_mode='half_pixel', rounding_method='', cubic_alpha=-0.5, "
    "cubic_exclude=0, extrapolation_value=0.0, out_dtype=None"
)
_CONV = (
    "strides={0}, padding={1}, dilation={0}, groups=1, channels=None, kernel_size=None, "
    "data_layout='{2}', kernel_layout='{3}', out_layout=''"
)

_QNN = "x, scale, zero_point, output_scale, output_zero_point"
_QNN_BINARY = (
    "lhs, rhs, lhs_scale, lhs_zero_point, rhs_scale, rhs_zero_point, output_scale, "
    "output_zero_point, lhs_axis=-1, rhs_axis=-1"
)
_QNN_SUM = "input_zero_point, kernel_zero_point, input_scale, kernel_scale"


def _conv(ones: str, zeros: str, data: str, kernel: str, first: str = "data, weight") -> str:
    return f"{first}, {_CONV.format(ones, zeros, data, kernel)}, out_dtype=''"


def _conv_transpose(ones: str, zeros: str, data: str, kernel: str) -> str:
    conv = _CONV.format(ones, zeros, data, kernel)
    return f"data, weight, {conv}, output_padding={zeros}, out_dtype=''"


def _pool(ones: str, zeros: str, layout: str, more: str = "") -> str:
    return f"data, pool_size={ones}, {_POOL.format(ones, zeros, layout)}{more}"


_ARG_REDUCE = "data, axis=None, keepdims=False, exclude=False, select_last_index=False"
_SCAN = "data, axis=None, dtype=None, exclusive=None"
_AVERAGE = ", count_include_pad=False"
_POOL_GRAD = (
    "data, pool_size=(1, 1), strides=(1, 1), padding=(0, 0), layout='NCHW', out_layout='', "
    "ceil_mode=False"
)

SIGNATURES = {
    "annotation.compiler_begin": "data, compiler",
    "annotation.compiler_end": "data, compiler",
    "argmax": _ARG_REDUCE,
    "argmin": _ARG_REDUCE,
    "argsort": "data, axis=-1, is_ascend=1, dtype='int32'",
    "broadcast_to": "data, shape",
    "cast": "data, dtype",
    "clip": "a, a_min, a_max",
    "collapse_sum_to": "data, shape",
    "concatenate": "data, axis",
    "cumprod": _SCAN,
    "cumsum": _SCAN,
    "device_copy": "data, src_device, dst_device",
    "einsum": "data, equation",
    "expand_dims": "data, axis, num_newaxis=1",
    "fixed_point_multiply": "data, multiplier, shift, rounding='ONCE'",
    "gather": "data, axis, indices",
    "image.affine_grid": "data, target_shape=None",
    "image.crop_and_resize": (
        "data, boxes, box_indices, crop_size, layout, method='bilinear', extrapolation_value=0, "
        "out_dtype=None"
    ),
    "image.resize1d": _RESIZE.format("NCW"),
    "image.resize2d": _RESIZE.format("NCHW"),
    "image.resize3d": _RESIZE.format("NCDHW"),
    "layout_transform": "data, src_layout, dst_layout",
    "mean_std": "data, axis=None, keepdims=False, exclude=False",
    "ndarray_size": "data, dtype='int32'",
    "nn.adaptive_avg_pool1d": _ADAPTIVE.format("NCW"),
    "nn.adaptive_avg_pool2d": _ADAPTIVE.format("NCHW"),
    "nn.adaptive_avg_pool3d": _ADAPTIVE.format("NCDHW"),
    "nn.adaptive_max_pool1d": _ADAPTIVE.format("NCW"),
    "nn.adaptive_max_pool2d": _ADAPTIVE.format("NCHW"),
    "nn.adaptive_max_pool3d": _ADAPTIVE.format("NCDHW"),
    "nn.avg_pool1d": _pool("(1,)", "(0,)", "NCW", _AVERAGE),
    "nn.avg_pool2d": _pool("(1, 1)", "(0, 0)", "NCHW", _AVERAGE),
    "nn.avg_pool3d": _pool("(1, 1, 1)", "(0, 0, 0)", "NCDHW", _AVERAGE),
    "nn.avg_pool2d_grad": f"out_grad, {_POOL_GRAD}, count_include_pad=False",
    "nn.batch_to_space_nd": "data, block_shape, crops",
    "nn.correlation": (
        "data1, data2, kernel_size, max_displacement, stride1, stride2, padding, is_multiply, layout"
    ),
    "nn.bitserial_conv2d": (
        "data, weight, strides=(1, 1), padding=(0, 0), channels=None, kernel_size=(3, 3), "
        "activation_bits=1, weight_bits=1, data_layout='NCHW', kernel_layout='OIHW', "
        "pack_dtype='uint32', out_dtype='int16', unipolar=True"
    ),
    "nn.batch_matmul": "tensor_a, tensor_b, out_dtype='', transpose_a=False, transpose_b=True",
    "nn.contrib_conv2d_winograd_weight_transform": "weight, tile_size",
    "nn.contrib_conv2d_winograd_without_weight_transform": _conv(
        "(1, 1)", "(0, 0)", "NCHW", "OIHW", "data, weight, tile_size"
    ),
    "nn.contrib_dense_pack": "data, weight, weight_layout='NC', units=None, out_dtype=''",
    "nn.conv1d": _conv("1", "0", "NCW", "OIW"),
    "nn.conv1d_transpose": _conv_transpose("(1,)", "(0,)", "NCW", "IOW"),
    "nn.conv2d": _conv("(1, 1)", "(0, 0)", "NCHW", "OIHW"),
    "nn.conv2d_transpose": _conv_transpose("(1, 1)", "(0, 0)", "NCHW", "IOHW"),
    "nn.conv3d": _conv("(1, 1, 1)", "(0, 0, 0)", "NCDHW", "OIDHW"),
    "nn.conv3d_transpose": _conv_transpose("(1, 1, 1)", "(0, 0, 0)", "NCDHW", "IODHW"),
    "nn.depth_to_space": "data, block_size, layout='NCHW', mode='DCR'",
    "nn.conv2d_backward_weight": (
        "grad, data, strides=(1, 1), padding=(0, 0), dilation=(1, 1), groups=1, channels=None, "
        "kernel_size=None, grad_layout='NCHW', data_layout='NCHW', kernel_layout='OIHW', out_dtype=''"
    ),
    "nn.deformable_conv2d": (
        "data, offset, weight, strides=(1, 1), padding=(0, 0), dilation=(1, 1), "
        "deformable_groups=1, groups=1, channels=None, kernel_size=None, data_layout='NCHW', "
        "kernel_layout='OIHW', out_layout='', out_dtype=''"
    ),
    "nn.dilate": "data, strides, dilation_value=0.0",
    "nn.fifo_buffer": "data, buffer, axis",
    "nn.global_avg_pool1d": "data, layout='NCW', out_layout=''",
    "nn.global_avg_pool3d": "data, layout='NCDHW', out_layout=''",
    "nn.global_max_pool1d": "data, layout='NCW', out_layout=''",
    "nn.global_max_pool3d": "data, layout='NCDHW', out_layout=''",
    "nn.group_norm": "data, gamma, beta, num_groups, axis=1, epsilon=1e-05, center=True, scale=True",
    "nn.l2_normalize": "data, eps, axis=None",
    "nn.leaky_relu": "data, alpha=0.01",
    "nn.lrn": "data, size=5, axis=1, bias=2, alpha=1e-05, beta=0.75",
    "nn.max_pool1d": _pool("(1,)", "(0,)", "NCW"),
    "nn.max_pool2d": _pool("(1, 1)", "(0, 0)", "NCHW"),
    "nn.max_pool3d": _pool("(1, 1, 1)", "(0, 0, 0)", "NCDHW"),
    "nn.max_pool2d_grad": f"out_grad, {_POOL_GRAD}",
    "nn.mirror_pad": "data, pad_width, mode='SYMMETRIC'",
    "nn.pad": "data, pad_width, pad_value=0, pad_mode='constant'",
    "nn.space_to_batch_nd": "data, block_shape, paddings, pad_value=0",
    "nn.space_to_depth": "data, block_size, layout='NCHW'",
    "nn.upsampling": (
        "data, scale_h=1, scale_w=1, layout='NCHW', method='nearest_neighbor', align_corners=False"
    ),
    "nn.upsampling3d": (
        "data, scale_d=1, scale_h=1, scale_w=1, layout='NCDHW', method='nearest_neighbor', "
        "coordinate_transformation_mode='half_pixel'"
    ),
    "ones": "shape, dtype",
    "reinterpret": "data, dtype",
    "repeat": "data, repeats, axis",
    "on_device": "body, device, constrain_result=False, constrain_body=True",
    "reshape": "data, newshape, allowzero=False",
    "reverse": "data, axis",
    "sequence_mask": "data, valid_length, mask_value=0, axis=0",
    "shape_of": "data, dtype='int32'",
    "sliding_window": "data, axis, window_shape, strides",
    "sort": "data, axis=-1, is_ascend=1",
    "split": "data, indices_or_sections, axis=0",
    "stack": "data, axis",
    "strided_slice": "data, begin, end, strides=None, axes=None, slice_mode='end'",
    "take": "data, indices, axis=None, batch_dims=0, mode='clip'",
    "tile": "data, reps",
    "topk": "data, k=1, axis=-1, ret_type='both', is_ascend=False, dtype='int32'",
    "unique": "data, is_sorted=True, return_counts=False",
    "unravel_index": "indices, shape",
    "vision.get_valid_counts": "data, score_threshold, id_index=0, score_index=1",
    "vision.multibox_prior": (
        "data, sizes=(1.0,), ratios=(1.0,), steps=(-1.0, -1.0), offsets=(0.5, 0.5), clip=False"
    ),
    "vision.multibox_transform_loc": (
        "cls_prob, loc_pred, anchor, clip=True, threshold=0.01, variances=(0.1, 0.1, 0.2, 0.2), "
        "keep_background=False"
    ),
    "vision.non_max_suppression": (
        "data, valid_count, indices, max_output_size=-1, iou_threshold=0.5, force_suppress=False, "
        "top_k=-1, coord_start=2, score_index=1, id_index=0, return_indices=True, "
        "invalid_to_bottom=False"
    ),
    "vision.proposal": (
        "cls_prob, bbox_pred, im_info, scales, ratios, feature_stride, threshold, "
        "rpn_pre_nms_top_n, rpn_post_nms_top_n, rpn_min_size, iou_loss"
    ),
    "vision.regular_non_max_suppression": (
        "boxes, scores, max_detections_per_class, max_detections, num_classes, iou_threshold, "
        "score_threshold"
    ),
    "vision.roi_align": (
        "data, rois, pooled_size, spatial_scale, sample_ratio=-1, layout='NCHW', mode='avg', "
        "aligned=False"
    ),
    "vision.yolo_reorg": "data, stride",
    "vision.roi_pool": "data, rois, pooled_size, spatial_scale, layout='NCHW'",
    "zeros": "shape, dtype",
    "qnn.abs": _QNN,
    "qnn.add": _QNN_BINARY,
    "qnn.avg_pool2d": (
        "data, input_scale, input_zero_point, output_scale, output_zero_point, pool_size, "
        "strides, padding, dilation, ceil_mode=False, count_include_pad=True, layout='NHWC', "
        "out_layout=''"
    ),
    "qnn.batch_matmul": "x, y, x_zero_point, y_zero_point, x_scale, y_scale, out_dtype='int32'",
    "qnn.concatenate": "data, input_scales, input_zero_points, output_scale, output_zero_point, axis",
    "qnn.contrib_dense_pack": f"data, weight, {_QNN_SUM}, kernel_layout='NC', units=None, out_dtype='int32'",
    "qnn.conv2d": (
        f"data, kernel, {_QNN_SUM}, kernel_size, channels, strides=(1, 1), padding=(0, 0), "
        "dilation=(1, 1), groups=1, data_layout='NCHW', kernel_layout='OIHW', out_layout='', "
        "out_dtype='int32'"
    ),
    "qnn.conv2d_transpose": (
        f"data, weight, {_QNN_SUM}, strides=(1, 1), padding=(0, 0), dilation=(1, 1), "
        "groups=1, channels=None, kernel_size=None, data_layout='NCHW', "
        "kernel_layout='IOHW', out_layout='', output_padding=(0, 0), out_dtype='int32'"
    ),
    "qnn.dense": f"data, weight, {_QNN_SUM}, units, out_dtype='int32'",
    "qnn.dequantize": "data, input_scale, input_zero_point, axis=-1, out_dtype='float32'",
    "qnn.erf": _QNN,
    "qnn.exp": _QNN,
    "qnn.hardswish": _QNN,
    "qnn.leaky_relu": "x, alpha, input_scale, input_zero_point, output_scale, output_zero_point",
    "qnn.log": _QNN,
    "qnn.mul": _QNN_BINARY,
    "qnn.quantize": (
        "data, output_scale, output_zero_point, axis=-1, out_dtype='int8', "
        "rounding='TONEAREST_EVEN'"
    ),
    "qnn.requantize": (
        "data, input_scale, input_zero_point, output_scale, output_zero_point, axis=-1, "
        "rounding='None', compute_dtype='None', out_dtype='int8'"
    ),
    "qnn.rsqrt": _QNN,
    "qnn.sigmoid": _QNN,
    "qnn.softmax": "x, scale, zero_point, output_scale, output_zero_point, axis=-1",
    "qnn.sqrt": _QNN,
    "qnn.subtract": _QNN_BINARY,
    "qnn.tanh": _QNN,
}

# Parameters that have another name in the registry.
_FACTORS = {
    "x": "data",
    "y": "weight",
    "x_zero_point": "input_zero_point",
    "y_zero_point": "kernel_zero_point",
    "x_scale": "input_scale",
    "y_scale": "kernel_scale",
}
RENAMED = {
    "clip": {"a": "data"},
    "device_copy": {"src_device": "src_virtual_device", "dst_device": "dst_virtual_device"},
    "on_device": {"body": "data", "device": "virtual_device"},
    "qnn.batch_matmul": _FACTORS,
    "qnn.contrib_dense_pack": {"kernel_layout": "weight_layout"},
    "qnn.conv2d": {"kernel": "weight"},
    "unique": {"is_sorted": "sorted"},
    "unravel_index": {"indices": "data"},
}

# A number for one of these arguments is an int32, whatever the dtype of the others.
INTEGER_ARGUMENTS = {
    "box_indices", "indices", "input_zero_point", "k", "kernel_zero_point", "lhs_zero_point",
    "max_output_size", "output_zero_point", "rhs_zero_point", "segment_ids", "seq_lengths",
    "valid_length", "zero_point",
}  # fmt: skip

# The number of spatial axes for which one number in place of a list stands. Other operators have it in their
# names: conv2d, max_pool3d.
SPATIAL_AXES = {
    "image.crop_and_resize": 2,
    "nn.upsampling": 2,
    "vision.roi_align": 2,
    "vision.roi_pool": 2,
}

# Parameters that may be expressions: then the operator dyn.NAME is called.
DYNAMIC = {
    "broadcast_to": ("shape",),
    "ones": ("shape",),
    "reshape": ("newshape",),
    "strided_slice": ("begin", "end", "strides"),
    "tile": ("reps",),
    "zeros": ("shape",),
}

# The first Relay's short names of dtypes, as values of attributes.
SHORT_DTYPES = {"int": "int32", "uint": "uint32", "float": "float32", "uint1": "bool"}

# The number of results of a call whose type is not known yet: a function of the attributes.
RESULTS = {
    "nn.batch_norm": lambda attrs: 3,
    "nn.dropout": lambda attrs: 2,
    "random.multinomial": lambda attrs: 2,
    "random.normal": lambda attrs: 2,
    "random.threefry_generate": lambda attrs: 2,
    "random.threefry_split": lambda attrs: 2,
    "random.uniform": lambda attrs: 2,
    "sparse_fill_empty_rows": lambda attrs: 3,
    "split": lambda attrs: (
        attrs.indices_or_sections
        if isinstance(attrs.indices_or_sections, int)
        else len(attrs.indices_or_sections) + 1
    ),
    "topk": lambda attrs: 2 if attrs.ret_type == "both" else None,
    "vision.get_valid_counts": lambda attrs: 3,
    "vision.multibox_transform_loc": lambda attrs: 2,
    "vision.non_max_suppression": lambda attrs: 2 if attrs.return_indices else None,
    "vision.regular_non_max_suppression": lambda attrs: 4,
}

# Operators of the first Relay that are absent here, grouped by the reason.
ABSENT = {
    "the compiler chooses layouts and transforms weights itself; use the plain operator": """
        nn.contrib_conv2d_gemm_weight_transform nn.contrib_conv2d_gemm_without_weight_transform
        nn.contrib_conv2d_winograd_nnpack_weight_transform
        nn.contrib_conv3d_winograd_weight_transform
        nn.contrib_conv3d_winograd_without_weight_transform""",
    "sizes are computed on the host": "copy_shape_func",
    "on_device and device_copy place expressions, and functions follow from these": """
        annotation.function_on_device""",
    "rounding and compute_dtype are arguments of requantize": """
        qnn.op.current_requantize_config qnn.op.requantize_config""",
}
