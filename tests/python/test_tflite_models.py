"""Whole TFLite models against LiteRT's reference kernels, compiled with all passes."""

import numpy as np
import pytest
from test_tflite_cases import by_litert
from tflite_models import MODELS

import relay

pytestmark = pytest.mark.drawn(2)


@pytest.mark.parametrize("name", MODELS)
def test_model(name):
    build, args = MODELS[name]
    data, feeds = build(*args)
    expected = by_litert(data, feeds)
    mod, _ = relay.frontend.from_tflite(data)
    out = relay.build(mod)(**feeds)
    found = [np.asarray(o) for o in (out if isinstance(out, (tuple, list)) else [out])]
    for e, f in zip(expected, found, strict=True):
        if np.issubdtype(e.dtype, np.integer):
            assert len(np.unique(e)) > 4  # the scales leave something to compare
            np.testing.assert_array_equal(f, e)
        else:
            np.testing.assert_allclose(f, e, rtol=0, atol=1e-5 * np.abs(e).max())
