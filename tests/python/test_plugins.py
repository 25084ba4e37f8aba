"""relay.plugins: packages that add to the compiler are found by their entry point."""

from __future__ import annotations

import numpy as np
import pytest

import relay


@pytest.fixture
def package(tmp_path, monkeypatch):
    info = tmp_path / "mylib_relay-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mylib-relay\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[relay.plugins]\nmylib = mylib_relay_plugin:register\nbroken = mylib_relay_plugin:fail\n"
    )
    (tmp_path / "mylib_relay_plugin.py").write_text(
        "import relay\n"
        "def register():\n"
        "    relay.register_op('mylib.thrice', lambda x: x * 3.0)\n"
        "def fail():\n"
        "    raise OSError('no licence')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))


def test_a_plug_in_is_found_and_loaded_once(package):
    found = relay.plugins.available()
    assert found["mylib"] == "mylib_relay_plugin:register"
    assert relay.plugins.load("mylib") == ["mylib"] and relay.plugins.load("mylib") == []
    assert "mylib" in relay.plugins.loaded()
    try:
        text = '#[version = "0.0.5"]\ndef @main(%x: float32) { mylib.thrice(%x) }'
        assert relay.build(relay.parse(text))(np.float32(2)) == 6
    finally:
        relay.unregister_op("mylib.thrice")
    with pytest.raises(RuntimeError, match="'broken' cannot be loaded: no licence") as caught:
        relay.plugins.load()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(LookupError, match="no plug-in 'nope'; installed: broken, mylib"):
        relay.plugins.load("nope")
