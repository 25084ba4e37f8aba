"""Oracles of boxes and regions; see oracle_registry."""

from __future__ import annotations

import math

import numpy as np
from image_oracles import sampled
from oracle_registry import oracle


@oracle("vision.all_class_non_max_suppression")
def _(a, boxes, scores, most, overlap, least):
    assert not a.center_point_box
    chosen = []
    for b, c in np.ndindex(scores.shape[:2]):
        kept = []
        for i in np.argsort(-scores[b, c], kind="stable"):
            apart = all(_shared(boxes[b, i], boxes[b, j]) <= overlap for j in kept)
            if scores[b, c, i] > least and len(kept) < most and apart:
                kept.append(i)
        chosen += [(b, c, i) for i in kept]
    return np.array(chosen, np.int64).reshape(-1, 3)


def _shared(p: np.ndarray, q: np.ndarray) -> float:
    """What two boxes share of what they cover together."""
    low, high = np.maximum(p[:2], q[:2]), np.minimum(p[2:], q[2:])
    shared = np.prod(np.maximum(high - low, 0))
    return shared / (np.prod(p[2:] - p[:2]) + np.prod(q[2:] - q[:2]) - shared)


@oracle("vision.roi_align")
def _(a, x, rois):
    """He et al., Mask R-CNN, 2017: the average (or greatest) of regular samples of each bin; with max_corner
    the greatest of the four elements around each sample, times their weights, as ONNX has it."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for r, roi in enumerate(rois):
        image, begin = x[int(roi[0])], roi[[2, 1]] * a.spatial_scale
        size = np.maximum(roi[[4, 3]] * a.spatial_scale - begin, 1.0)
        bins = size / a.pooled_size
        counts = [a.sample_ratio if a.sample_ratio > 0 else math.ceil(b) for b in bins]
        for at in np.ndindex(*a.pooled_size):
            samples = []
            for k in np.ndindex(*counts):
                place = [begin[d] + (at[d] + (k[d] + 0.5) / counts[d]) * bins[d] for d in range(2)]
                if a.mode == "max_corner":
                    samples += weighted_corners(image, place)
                else:
                    samples.append(clamped_bilinear(image, place))
            over = np.mean if a.mode == "avg" else np.max
            out[(r, slice(None), *at)] = over(samples, 0)
    return out


def weighted_corners(image: np.ndarray, place) -> list[np.ndarray]:
    """Returns what `clamped_bilinear` adds up."""
    sizes = image.shape[1:]
    if any(p < -1 or p > n for p, n in zip(place, sizes, strict=True)):
        return [np.zeros(len(image))]
    place = [min(max(p, 0), n - 1) for p, n in zip(place, sizes, strict=True)]
    low = [math.floor(p) for p in place]
    found = []
    for corner in np.ndindex(2, 2):
        weight = math.prod(
            p - i if c else 1 - (p - i) for p, i, c in zip(place, low, corner, strict=True)
        )
        at = [min(i + c, n - 1) for i, c, n in zip(low, corner, sizes, strict=True)]
        found.append(image[(slice(None), *at)] * weight)
    return found


def clamped_bilinear(image: np.ndarray, place) -> np.ndarray:
    """Returns an image at a place: zero more than one element outside, else the nearest inside."""
    sizes = image.shape[1:]
    if any(p < -1 or p > n for p, n in zip(place, sizes, strict=True)):
        return np.zeros(len(image))
    place = [min(max(p, 0), n - 1) for p, n in zip(place, sizes, strict=True)]

    def fetch(index):
        index = [min(k, n - 1) for k, n in zip(index, sizes, strict=True)]
        return image[(slice(None), *index)]

    return sampled(image, place, "linear", fetch)


@oracle("vision.roi_pool")
def _(a, x, rois):
    """Girshick, Fast R-CNN, 2015: the greatest element of each bin, 0 of an empty one."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for r, roi in enumerate(rois):
        # C's round: halves away from zero.
        corner = [
            math.floor(abs(v) * a.spatial_scale + 0.5) * (-1 if v < 0 else 1) for v in roi[1:]
        ]
        begin, end = corner[1::-1], corner[:1:-1]
        size = [max(e - b + 1, 1) for b, e in zip(begin, end, strict=True)]
        for at in np.ndindex(*a.pooled_size):
            part = x[int(roi[0])]
            for d in range(2):
                low = begin[d] + at[d] * size[d] // a.pooled_size[d]
                high = begin[d] + -(-(at[d] + 1) * size[d] // a.pooled_size[d])
                part = part.take(
                    range(max(low, 0), max(min(high, x.shape[2 + d]), max(low, 0))), 1 + d
                )
            if part.size:
                out[(r, slice(None), *at)] = part.max((1, 2))
    return out
