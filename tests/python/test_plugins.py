"""relay.plugins: packages that add to the compiler are found by their entry point."""

from __future__ import annotations

import json
import os
import subprocess

import numpy as np
import pytest
from command_line import RELAY

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
        "    @relay.transform.module_pass(opt_level=0, name='mylib.Nothing')\n"
        "    def nothing(mod, ctx):\n"
        "        return mod\n"
        "    relay.transform.add_pass(nothing, 'after:import')\n"
        "def fail():\n"
        "    raise OSError('no licence')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    return tmp_path


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
        relay.transform.remove_pass("mylib.Nothing")
    with pytest.raises(RuntimeError, match="'broken' cannot be loaded: no licence") as caught:
        relay.plugins.load()
    assert isinstance(caught.value.__cause__, OSError)
    with pytest.raises(LookupError, match="no plug-in 'nope'; installed: broken, mylib"):
        relay.plugins.load("nope")


def test_the_command_lists_what_plug_ins_add_and_which_fail(package):
    env = os.environ | {"PYTHONPATH": str(package)}
    done = subprocess.run([RELAY, "plugins"], capture_output=True, text=True, env=env)
    assert done.returncode == 1
    assert done.stdout == (
        "broken  mylib_relay_plugin:fail (mylib-relay 1.0)\n"
        "  cannot be loaded: no licence\n"
        "mylib  mylib_relay_plugin:register (mylib-relay 1.0)\n"
        "  operators  mylib.thrice\n"
        "  passes  mylib.Nothing\n"
    )
    listed = subprocess.run([RELAY, "plugins", "--json"], capture_output=True, text=True, env=env)
    broken, mylib = json.loads(listed.stdout)
    assert broken["error"] == "no licence" and mylib["operators"] == ["mylib.thrice"]
    env["PYTHONPATH"] = ""
    none = subprocess.run([RELAY, "plugins"], capture_output=True, text=True, env=env)
    assert none.returncode == 0 and none.stdout.startswith("no plug-ins are installed")
