"""What a relay.function gives against what Python and NumPy give for the same function."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np

import relay


def same(found, expected, where="the result", rtol=2e-5, atol=1e-6):
    """Equal in structure, shape and dtype, and in value but for the last digits."""
    if dataclasses.is_dataclass(expected):
        assert type(found) is type(expected), where
        for field in dataclasses.fields(expected):
            pair = getattr(found, field.name), getattr(expected, field.name)
            same(*pair, f"{where}.{field.name}", rtol, atol)
    elif isinstance(expected, dict):
        assert list(found) == list(expected), where
        for key in expected:
            same(found[key], expected[key], f"{where}[{key!r}]", rtol, atol)
    elif isinstance(expected, (tuple, list)):
        assert type(found) is type(expected) and len(found) == len(expected), (where, found)
        for i, pair in enumerate(zip(found, expected, strict=True)):
            same(*pair, f"{where}[{i}]", rtol, atol)
    elif isinstance(expected, (str, type(None))):
        assert found == expected, where
    else:
        found, expected = np.asarray(found), np.asarray(expected)
        assert found.dtype == expected.dtype, (where, found.dtype, expected.dtype)
        assert found.shape == expected.shape, (where, found.shape, expected.shape)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol, err_msg=where)


def agree(function, *args, levels=(0, 3), rtol=2e-5):
    """Compiles the function anew at each level; its results are Python's, its arguments unchanged."""
    with np.errstate(all="ignore"):
        expected = function.python(*copy.deepcopy(args))
    for level in levels:
        compiled = relay.function(function.python, opt_level=level)
        given = copy.deepcopy(args)
        same(compiled(*given), expected, f"{function.__name__} at level {level}", rtol)
        same(given, args, "the arguments", rtol)
    return expected
