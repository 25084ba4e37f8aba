"""Every operator's examples on an OpenCL device give what device_rows.json and docs/devices.md say."""

import device_rows
import pytest

AGREED = device_rows.read()


@pytest.fixture(scope="module")
def opencl():
    """Skips, with the reason, where the machine has no OpenCL device."""
    why = device_rows.no_device()
    if why:
        pytest.skip(why)


def test_every_operator_is_on_the_page():
    assert device_rows.PAGE.read_text() == device_rows.page(), "run device_rows.py"
    agreed = device_rows.read(device_rows.FILES["pocl"])
    names = {name for family in device_rows.families().values() for name in family}
    assert set(agreed) == names, "run device_rows.py for the new operators"


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", AGREED)
def test_operators(opencl, name):
    got = device_rows.outcomes(name, own=set(AGREED[name]).isdisjoint(("float16", "float64")))
    assert got == AGREED[name]
