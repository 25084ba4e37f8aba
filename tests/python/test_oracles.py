"""The oracles themselves: each must see a planted fault, or the tests built on it prove nothing."""

import numpy as np
import oracles
import pytest

WANT = [np.array([1.0, -10.0, 0.0], np.float32)]


def changed(index: int, value: float) -> list[np.ndarray]:
    copy = WANT[0].copy()
    copy[index] = value
    return [copy]


def test_equal_outputs_agree():
    oracles.assert_agree([WANT[0].copy()], WANT)
    oracles.assert_same_bits([WANT[0].copy()], WANT)


@pytest.mark.parametrize("fault", [
    changed(0, 1.002), changed(2, np.nan), changed(1, np.inf), [WANT[0].astype(np.float64)],
    [WANT[0][None]], [], [WANT[0], WANT[0]],
])  # fmt: skip
def test_faults_are_seen(fault):
    with pytest.raises(AssertionError):
        oracles.assert_agree(fault, WANT)


def test_error_is_scaled_by_the_largest_value():
    oracles.assert_agree(changed(2, 0.0009), WANT)
    assert oracles.scaled_error(changed(2, 0.5)[0], WANT[0]) == pytest.approx(0.05)


def test_integers_agree_exactly_or_not_at_all():
    with pytest.raises(AssertionError):
        oracles.assert_agree([np.array([1_000_001])], [np.array([1_000_000])])


def test_infinities_and_nan_must_stand_at_the_same_places():
    want = np.array([np.inf, np.nan, 1.0], np.float32)
    assert oracles.scaled_error(want.copy(), want) == 0.0
    assert oracles.scaled_error(np.array([-np.inf, np.nan, 1.0]), want) == np.inf


def test_last_bit_is_seen():
    with pytest.raises(AssertionError, match="1 of 3"):
        oracles.assert_same_bits([np.nextafter(WANT[0], [2, -10, 0], dtype=np.float32)], WANT)


def test_nested_results_are_flattened_in_order():
    nested = (np.float32(1), (np.array([2]), [np.array([3])]))
    assert [a.ravel()[0] for a in oracles.as_arrays(nested)] == [1, 2, 3]


@pytest.mark.parametrize(
    ("text", "code"),
    [("error[E0501]: no operator", "E0501"), ("nothing", None), ("E05012", None)],
)
def test_diagnostic_code_is_read_from_the_text(text, code):
    assert oracles.diagnostic_code(RuntimeError(text)) == code
