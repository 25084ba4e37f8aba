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
            apart = all(shares(boxes[b, i], boxes[b, j]) <= overlap for j in kept)
            if scores[b, c, i] > least and len(kept) < most and apart:
                kept.append(i)
        chosen += [(b, c, i) for i in kept]
    return np.array(chosen, np.int64).reshape(-1, 3)


@oracle("vision.roi_align")
def _(a, x, rois):
    """He et al., Mask R-CNN, 2017: the average (or greatest) of regular samples of each bin; with max_corner
    the greatest of the four elements around each sample, times their weights, as ONNX has it. Without
    `aligned` a region is at least as long as an element; the result is 0 where there are no samples."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for r, roi in enumerate(rois):
        image, begin = x[int(roi[0])], roi[[2, 1]] * a.spatial_scale
        size = roi[[4, 3]] * a.spatial_scale - begin
        if not a.aligned:
            size = np.maximum(size, 1.0)
        bins = size / a.pooled_size
        counts = [a.sample_ratio if a.sample_ratio > 0 else max(math.ceil(b), 0) for b in bins]
        for at in np.ndindex(*a.pooled_size):
            samples = []
            for k in np.ndindex(*counts):
                place = [begin[d] + (at[d] + (k[d] + 0.5) / counts[d]) * bins[d] for d in range(2)]
                if a.mode == "max_corner":
                    samples += weighted_corners(image, place)
                else:
                    samples.append(clamped_bilinear(image, place))
            over = np.mean if a.mode == "avg" else np.max
            out[(r, slice(None), *at)] = over(samples, 0) if samples else 0
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


def bins_of_regions(a, x, rois):
    """Girshick, Fast R-CNN, 2015: where a result goes, and rows and columns of its bin."""
    for r, roi in enumerate(rois):
        # C's round: halves away from zero.
        corner = [
            math.floor(abs(v) * a.spatial_scale + 0.5) * (-1 if v < 0 else 1) for v in roi[1:]
        ]
        begin, end = corner[1::-1], corner[:1:-1]
        size = [max(e - b + 1, 1) for b, e in zip(begin, end, strict=True)]
        for at in np.ndindex(*a.pooled_size):
            places = []
            for d in range(2):
                low = begin[d] + at[d] * size[d] // a.pooled_size[d]
                high = begin[d] + -(-(at[d] + 1) * size[d] // a.pooled_size[d])
                places.append(range(max(low, 0), max(min(high, x.shape[2 + d]), max(low, 0))))
            yield (r, slice(None), *at), int(roi[0]), places


@oracle("vision.roi_pool")
def _(a, x, rois):
    """The greatest element of each bin, 0 of an empty one."""
    out = np.zeros((len(rois), x.shape[1], *a.pooled_size))
    for at, item, (rows, columns) in bins_of_regions(a, x, rois):
        if len(rows) * len(columns):
            out[at] = x[item][:, rows][:, :, columns].max((1, 2))
    return out


@oracle("vision.roi_pool_places")
def _(a, x, rois):
    numbers = np.arange(x.size).reshape(x.shape)
    out = np.full((len(rois), x.shape[1], *a.pooled_size), -1)
    for at, item, (rows, columns) in bins_of_regions(a, x, rois):
        if len(rows) * len(columns):
            best = x[item][:, rows][:, :, columns].reshape(x.shape[1], -1).argmax(1)
            which = numbers[item][:, rows][:, :, columns].reshape(x.shape[1], -1)
            out[at] = which[np.arange(x.shape[1]), best]
    return out


# Boxes that overlap.


def shares(p: np.ndarray, q: np.ndarray, pixel: float = 0.0) -> float:
    """What two boxes share of what they cover together; boxes without an area share nothing."""
    areas = [np.prod(b[2:] - b[:2] + pixel) for b in (p, q)]
    low, high = np.maximum(p[:2], q[:2]), np.minimum(p[2:], q[2:])
    shared = np.prod(np.maximum(high - low + pixel, 0))
    return shared / (sum(areas) - shared) if min(areas) > 0 else 0.0


def greedy(boxes, candidates, most, drops) -> list[int]:
    """The candidates that stay, in their order; drops(j, i): whether j, which stays, drops i."""
    kept: list[int] = []
    for i in range(len(boxes)):
        room = most < 0 or len(kept) < most
        if candidates[i] and room and not any(drops(j, i) for j in kept):
            kept.append(i)
    return kept


@oracle("vision.kept_boxes")
def _(a, boxes, classes, candidates, most, limit):
    out = np.zeros(classes.shape, bool)
    for b in range(len(boxes)):

        def drops(j, i, b=b):
            if classes[b, j] < 0 or (a.by_class and classes[b, j] != classes[b, i]):
                return False
            share = shares(boxes[b, j], boxes[b, i], float(a.whole_pixels))
            return share > limit[b] or (a.inclusive and share == limit[b] > 0)

        out[b, greedy(boxes[b], candidates[b], most[b], drops)] = True
    return out


@oracle("vision.get_valid_counts")
def _(a, data, threshold):
    counts, rows = np.zeros(len(data), "int32"), np.full(data.shape, -1.0)
    numbers = np.full(data.shape[:2], -1, "int32")
    for b, boxes in enumerate(data):
        for i, row in enumerate(boxes):
            if row[a.score_index] > threshold and (a.id_index < 0 or row[a.id_index] >= 0):
                rows[b, counts[b]], numbers[b, counts[b]] = row, i
                counts[b] += 1
    return [counts, rows, numbers]


@oracle("vision.non_max_suppression")
def _(a, data, valid, indices, most, threshold):
    data, threshold = np.asarray(data), threshold.item()
    out, named = np.full(data.shape, -1.0), np.full(data.shape[:2], -1, "int32")
    for b, boxes in enumerate(data):
        count = min(int(valid[b]), len(boxes))
        if threshold <= 0:
            out[b, :count], named[b, :count] = boxes[:count], indices[b, :count]
            continue
        order = np.argsort(-boxes[:count, a.score_index], kind="stable")
        order = order[: a.top_k] if a.top_k > 0 else order
        rows = boxes[order]
        scores = rows[:, a.score_index]
        ids = rows[:, a.id_index] if a.id_index >= 0 else np.zeros(len(rows))
        corners = rows[:, a.coord_start : a.coord_start + 4]
        corners = np.concatenate(
            [
                np.minimum(corners[:, :2], corners[:, 2:]),
                np.maximum(corners[:, :2], corners[:, 2:]),
            ],
            1,
        )

        def drops(j, i, ids=ids, corners=corners):
            one_class = a.force_suppress or a.id_index < 0 or ids[i] == ids[j]
            return ids[j] >= 0 and one_class and shares(corners[j], corners[i]) >= threshold

        kept = greedy(corners, scores > 0, most.item(), drops)
        if len(kept) != most.item():
            kept += [i for i in range(len(rows)) if not scores[i] > 0]
        for i in kept:
            out[b, i], named[b, i] = rows[i], indices[b, order[i]]
    if not a.return_indices:
        if a.invalid_to_bottom:
            # Rows that went are -1 everywhere.
            gone = (out == -1).all(2)
            out = np.take_along_axis(out, np.argsort(gone, 1, kind="stable")[..., None], 1)
        return out
    first = np.argsort(named < 0, 1, kind="stable")
    named = np.where(named < 0, -1, named)
    return [np.take_along_axis(named, first, 1), (named >= 0).sum(1, keepdims=True).astype("int32")]


@oracle("vision.regular_non_max_suppression")
def _(a, boxes, scores):
    batch, most = len(boxes), a.max_detections
    out = [np.zeros((batch, most, 4)), *np.zeros((2, batch, most)), np.zeros(batch, "int32")]
    offset = scores.shape[2] - a.num_classes
    for b in range(batch):
        found = []
        for c in range(a.num_classes):
            score = scores[b, :, c + offset]
            order = np.argsort(-score, kind="stable")
            rows = boxes[b][order]

            def drops(j, i, rows=rows):
                return shares(rows[j], rows[i]) > a.iou_threshold

            candidates = score[order] >= np.float32(a.score_threshold)
            kept = greedy(rows, candidates, a.max_detections_per_class, drops)
            found += [(score[order[i]], c, rows[i]) for i in kept]
        found = sorted(found, key=lambda f: -f[0])[:most]
        for i, (score, c, box) in enumerate(found):
            out[0][b, i], out[1][b, i], out[2][b, i] = box, c, score
        out[3][b] = len(found)
    return out


@oracle("vision.multibox_prior")
def _(a, data):
    height, width = data.shape[2:]
    steps = [s if s > 0 else 1 / n for s, n in zip(a.steps, (height, width), strict=True)]
    shapes = [(s, 1.0) for s in a.sizes] + [(a.sizes[0], r) for r in a.ratios[1:]]
    boxes = []
    for i, j in np.ndindex(height, width):
        y, x = (i + a.offsets[0]) * steps[0], (j + a.offsets[1]) * steps[1]
        for size, ratio in shapes:
            w, h = size * height / width * math.sqrt(ratio) / 2, size / math.sqrt(ratio) / 2
            boxes.append([x - w, y - h, x + w, y + h])
    out = np.array(boxes)[None]
    return np.clip(out, 0, 1) if a.clip else out


@oracle("vision.multibox_transform_loc")
def _(a, probability, loc, anchor):
    batch, classes, n = probability.shape
    rows, counts = np.full((batch, n, 6), -1.0), np.zeros(batch, "int32")
    first = 0 if a.keep_background else 1
    for b, j in np.ndindex(batch, n):
        score, number = -1.0, 0
        for k in range(first, classes):
            if probability[b, k, j] > score:
                score, number = probability[b, k, j], k
        if number > 0 and score < np.float32(a.threshold):
            number = 0
        if not a.keep_background and number == 0:
            continue
        low, high = anchor[0, j, :2], anchor[0, j, 2:]
        move, v = loc[b, 4 * j : 4 * j + 4], np.array(a.variances)
        centre = move[:2] * v[:2] * (high - low) + (low + high) / 2
        reach = np.exp(move[2:] * v[2:]) * (high - low) / 2
        box = np.concatenate([centre - reach, centre + reach])
        box = np.clip(box, 0, 1) if a.clip else box
        rows[b, counts[b]] = [number - first, score, *box]
        counts[b] += 1
    return [rows, counts]


def anchor_of(ratio: float, scale: float, stride: int) -> list[float]:
    """Ren et al., Faster R-CNN, 2015: low and high x and y of an anchor at the origin."""
    centre = 0.5 * (stride - 1)
    width = math.floor(math.sqrt(math.floor(stride * stride / ratio)) + 0.5)
    height = math.floor(width * ratio + 0.5)
    sizes = np.array([width, height]) * scale
    return [*(centre - 0.5 * (sizes - 1)), *(centre + 0.5 * (sizes - 1))]


@oracle("vision.proposal")
def _(a, scores, moves, info):
    batch, _, height, width = scores.shape
    shapes = [(r, s) for r in a.ratios for s in a.scales]
    out = []
    for b in range(batch):
        boxes, ranks = [], []
        size = info[b, 1::-1]  # width and height
        for i, j, k in np.ndindex(height, width, len(shapes)):
            box = np.array(anchor_of(*shapes[k], a.feature_stride))
            box += np.array([j, i, j, i]) * a.feature_stride
            move = moves[b, 4 * k : 4 * k + 4, i, j]
            if a.iou_loss:
                box = box + move
            else:
                sides = box[2:] - box[:2] + 1
                centre = move[:2] * sides + box[:2] + 0.5 * (sides - 1)
                reach = 0.5 * (np.exp(move[2:]) * sides - 1)
                box = np.concatenate([centre - reach, centre + reach])
            box = np.maximum(np.minimum(box, np.tile(size, 2) - 1), 0)
            rank, least = scores[b, len(shapes) + k, i, j], info[b, 2] * a.rpn_min_size
            if (np.array([j, i]) >= np.trunc(size / a.feature_stride)).any():
                rank = -1.0
            if (box[2:] - box[:2] + 1 < least).any():
                box, rank = box + np.array([-1, -1, 1, 1]) * least / 2, -1.0
            boxes.append(box)
            ranks.append(rank)
        order = np.argsort(-np.array(ranks), kind="stable")
        if a.rpn_pre_nms_top_n > 0:
            order = order[: a.rpn_pre_nms_top_n]
        rows = np.array(boxes)[order]

        def drops(j, i, rows=rows):
            return shares(rows[j], rows[i], 1.0) > a.threshold

        kept = greedy(rows, np.ones(len(rows), bool), -1, drops)
        wanted = (kept * a.rpn_post_nms_top_n)[: a.rpn_post_nms_top_n]
        out += [[b, *rows[i]] for i in wanted]
    return np.array(out)
