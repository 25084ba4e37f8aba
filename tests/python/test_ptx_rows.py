"""ptxas accepts the kernels of every operator's examples and of the small models, as ptx_rows.json says."""

import ptx_rows
import pytest

AGREED = ptx_rows.read()


@pytest.fixture(scope="module")
def ptxas():
    """Skips, with the reason, where there is no ptxas."""
    if not ptx_rows.ptxas():
        pytest.skip("there is no ptxas: pip install 'relay[cuda-test]'")


def test_every_kernel_is_on_the_page():
    assert ptx_rows.device_rows.PAGE.read_text() == ptx_rows.page(AGREED), "run ptx_rows.py"
    names = {name for family in ptx_rows.device_rows.families().values() for name in family}
    assert set(AGREED) == names | set(ptx_rows.models.MODELS), "run ptx_rows.py for the new ones"


@pytest.mark.drawn(10)
@pytest.mark.parametrize("name", AGREED)
def test_kernels(ptxas, name):
    """Registers are left out: they change with schedules."""
    own = set(AGREED[name]).isdisjoint(("float16", "float64"))
    got = ptx_rows.row_of(name, own=own)
    assert got.keys() == AGREED[name].keys()
    for dtype, row in AGREED[name].items():
        if isinstance(row, str):
            assert got[dtype] == row
        else:
            assert got[dtype]["launches"] > 0 or row["launches"] == 0
            assert bool(got[dtype]["spilling"]) <= bool(row["spilling"])


def test_ptxas_refuses_what_is_no_ptx(ptxas):
    with pytest.raises(AssertionError, match="ptxas"):
        ptx_rows.assembled(".version 7.8\n.target sm_90\n.address_size 64\nnothing\n")
