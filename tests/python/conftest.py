"""What every Python test shares: the path to the benchmark models and how examples are invented.

A run sees the same examples as the one before, so that a change is judged by what it changed.
RELAY_EXAMPLES draws that many new ones for each property test. Only the part of PyTorch's operators that is
checked is another one each day (RELAY_TORCH_PART).
"""

import atexit
import datetime
import os
import shutil
import sys
import tempfile
from pathlib import Path

import hypothesis
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
sys.path.insert(0, str(Path(__file__).resolve().parent))

# Kernels of an earlier run are not those of this one.
os.environ["RELAY_CACHE_DIR"] = tempfile.mkdtemp(prefix="relay-test-cache-")
atexit.register(shutil.rmtree, os.environ["RELAY_CACHE_DIR"], ignore_errors=True)

# Another one each day, the same in all processes of the run.
os.environ.setdefault("RELAY_TORCH_PART", str(datetime.date.today().toordinal()))

hypothesis.settings.register_profile(
    "relay",
    max_examples=int(os.environ.get("RELAY_EXAMPLES", "8")),
    derandomize="RELAY_EXAMPLES" not in os.environ,
    deadline=None,
    print_blob=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("relay")


@pytest.fixture
def operators_as_before():
    """Takes what the test registers out of the registry again."""
    import relay

    before = set(relay.op.list_op_names())
    yield
    for name in set(relay.op.list_op_names()) - before:
        relay.unregister_op(name)
