"""Groups of CUDA's work items copy ahead and reduce across warps, and ptxas finds no spill."""

import ptx_rows
import pytest
from command_line import relay as relay_command

DENSE = "nn.relu(nn.dense(%x, %w))", "(512, 512)", "(512, 512)"
MATMUL = "nn.matmul(%x, %w)", "(512, 512)", "(512, 512)"
CONVOLUTION = "nn.conv2d(%x, %w, padding=[1, 1, 1, 1])", "(4, 64, 56, 56)", "(64, 64, 3, 3)"


def compiled(tmp_path, case, dtype, words):
    """The PTX of a program's kernels, and what `relay explain` says of them."""
    expression, *shapes = case
    inputs = ", ".join(
        f"%{name}: Tensor[{shape}, {dtype}]" for name, shape in zip("xw", shapes, strict=False)
    )
    program, out = tmp_path / "program.relay", tmp_path / "program.so"
    program.write_text(f'#[version = "0.0.5"]\ndef @main({inputs}) {{ {expression} }}\n')
    target = f"native; cuda {words}"
    relay_command("compile", program, "--target", target, "-o", out)
    said = relay_command("explain", program, "--target", target).stdout
    return list(ptx_rows.sources(out.read_bytes())), said


def assemble(ptx, words):
    if not ptx_rows.ptxas():
        pytest.skip("there is no ptxas: pip install 'relay[cuda-test]'")
    arch = words.split()[0].removeprefix("-arch=")
    for text in ptx:
        assert ptx_rows.assembled(text, arch)["spilling"] == 0, text


@pytest.mark.parametrize(
    ("case", "dtype", "words", "copies"),
    [
        # Sixteen bytes at a time where terms lie side by side in both memories, four where they do not.
        (DENSE, "float16", "-arch=sm_80", ["cp.async.cg.shared.global"]),
        (DENSE, "bfloat16", "-arch=sm_90", ["cp.async.cg.shared.global"]),
        (DENSE, "float32", "-arch=sm_90", ["cp.async.ca.shared.global"]),
        (MATMUL, "float32", "-arch=sm_80", ["cp.async.cg.shared.global", "cp.async.ca.shared"]),
        # A border arrives as zeros.
        (CONVOLUTION, "float32", "-arch=sm_86", ["cp.async.ca.shared.global"]),
        # Through registers, on a device without such copies.
        (DENSE, "float32", "-arch=sm_75", []),
        (MATMUL, "float32", "-arch=sm_75", []),
    ],
)
def test_copies_run_ahead(tmp_path, case, dtype, words, copies):
    ptx, said = compiled(tmp_path, case, dtype, words)
    text = "".join(ptx)
    assert "copied while the ones before are multiplied" in said
    for instruction in copies:
        assert instruction in text
    assert ("cp.async.wait_group" in text) == ("cp.async" in text) == bool(copies)
    assemble(ptx, words)


def test_few_registers_leave_no_room_for_copies(tmp_path):
    ptx, said = compiled(tmp_path, DENSE, "float16", "-arch=sm_75")
    assert "on tensor cores" in said
    assert "copied while" not in said
    assert "cp.async" not in "".join(ptx)


def test_short_sums_wait_for_their_copies(tmp_path):
    ptx, said = compiled(tmp_path, (DENSE[0], "(512, 32)", "(512, 32)"), "float16", "-arch=sm_90")
    assert "on tensor cores" in said
    assert "copied while" not in said
    assert "cp.async" not in "".join(ptx)


@pytest.mark.parametrize(
    "case",
    [
        ("nn.softmax(%x)", "(64, 1000)"),
        ("nn.softmax(%x)", "(33, 150)"),
        ("sum(%x, axis=[1])", "(40, 1030)"),
        ("nn.dense(%x, %w)", "(1, 520)", "(40, 520)"),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_warps_exchange_registers(tmp_path, case, dtype):
    ptx, said = compiled(tmp_path, case, dtype, "-arch=sm_75")
    assert "shfl.sync.bfly" in "".join(ptx)
    assert "registers in warps" in said
    assemble(ptx, "-arch=sm_75")
