"""The code that is generated for the benchmark models, kernel by kernel, is the one that was agreed on.

A refactoring proves itself here: nothing changes. A change that means to alter code runs this file
with RELAY_UPDATE=1, and the difference of generated_code.json names the kernels that it altered;
the commit says why.

Targets have names, so the hashes do not depend on the machine: each is taken on one of the machines that
tests describe. They are of the LLVM IR and of the bytecode.
"""

import hashlib
import json
import os
import re
from pathlib import Path

import models
import onnx
import pytest
from command_line import relay
from hosts import HOSTS

AGREED = Path(__file__).with_name("generated_code.json")
TARGETS = ["x86-64-v4 -num-threads=2", "x86-64-v3 -num-threads=1"]
# Code for older processors is looked at in the models that are quick to compile.
SMALL = ["resnet18", "mobilenet_v2", "lstm", "dqn", "dcgan", "unet"]


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def kernels(llvm_ir: str) -> dict[str, str]:
    """The hash of each kernel: of its functions, in order, with the bodies of its parallel loops."""
    functions: dict[str, list[str]] = {}
    for found in re.finditer(r"^define .*?@([\w.]+)\(.*?^}$", llvm_ir, re.MULTILINE | re.DOTALL):
        kernel = re.sub(r"(_parallel\d+)?(_body)?$", "", found[1])
        functions.setdefault(kernel, []).append(found[0])
    return {name: digest("\n".join(texts)) for name, texts in sorted(functions.items())}


def generated(path: Path, target: str, host: str) -> dict:
    shown = {
        form: relay(
            *("show", path, f"--{form}", "--target", target, "--no-cache", "-q"),
            host=host,
            timeout=300,
        ).stdout
        for form in ("llvm", "bytecode")
    }
    found = kernels(shown["llvm"])
    assert len(found) > 3, "kernels are not found in the LLVM IR"
    return {"bytecode": digest(shown["bytecode"]), "kernels": found}


@pytest.fixture(scope="module", params=models.MODELS)
def model(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("code") / f"{request.param}.onnx"
    onnx.save(models.build(request.param), path)
    yield request.param, path
    path.unlink()


def test_generated_code_is_as_agreed(model):
    name, path = model
    host = HOSTS[list(models.MODELS).index(name) % len(HOSTS)]
    now = {t: generated(path, t, host) for t in (TARGETS if name in SMALL else TARGETS[:1])}
    agreed = json.loads(AGREED.read_text()) if AGREED.exists() else {}
    if os.environ.get("RELAY_UPDATE"):
        agreed[name] = now
        AGREED.write_text(json.dumps(dict(sorted(agreed.items())), indent=1) + "\n")
        return
    for target, code in now.items():
        was = agreed[name][target]
        changed = {k for k, v in code["kernels"].items() if was["kernels"].get(k) != v}
        gone = set(was["kernels"]) - set(code["kernels"])
        assert not changed and not gone, (
            f"{name} for {target}: kernels changed: {sorted(changed)}; gone: {sorted(gone)}"
        )
        assert code["bytecode"] == was["bytecode"], f"{name} for {target}: the bytecode changed"
