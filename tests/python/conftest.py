"""What every Python test shares: the path to the benchmark models and how examples are invented.

A run sees the same examples as the one before, so that a change is judged by what it changed.
RELAY_EXAMPLES draws that many new ones for each property test.

Of parametrized tests marked `drawn(n)` every n-th case runs, others on the next day; `make test-long`
runs all of them. RELAY_DAY chooses another day by its number, or `all`.
"""

import atexit
import datetime
import os
import shutil
import sys
import tempfile
import zlib
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

# Kernels of an earlier run are not those of this one.
os.environ["RELAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="relay-test-cache-")
atexit.register(shutil.rmtree, os.environ["RELAY_CACHE_DIR"], ignore_errors=True)

hypothesis.settings.register_profile(
    "relay",
    max_examples=int(os.environ.get("RELAY_EXAMPLES", "8")),
    derandomize="RELAY_EXAMPLES" not in os.environ,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("relay")

# Set for the processes that this one starts, too: all of them choose the same cases.
TODAY = os.environ.setdefault("TESTS_OF_DAY", str(datetime.date.today().toordinal()))
DAY = os.environ.get("RELAY_DAY", TODAY)


def pytest_report_header():
    return f"RELAY_DAY={DAY}"


def pytest_collection_modifyitems(config, items):
    """Leaves out the cases of `drawn` tests that have another day, unless a test is named."""
    if DAY == "all" or any("::" in argument for argument in config.args):
        return

    def runs(item):
        mark = item.get_closest_marker("drawn")
        if mark is None or not hasattr(item, "callspec"):
            return True
        (share,) = mark.args
        return zlib.crc32(item.nodeid.encode()) % share == int(DAY) % share

    left_out = [item for item in items if not runs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if runs(item)]


@pytest.fixture
def operators_as_before():
    """Takes what the test registers out of the registry again."""
    import relay

    before = set(relay.op.list_op_names())
    yield
    for name in set(relay.op.list_op_names()) - before:
        relay.unregister_op(name)
