"""Products of matrices for CUDA are instructions of tensor cores, which ptxas accepts, without a spill."""

import ptx_rows
import pytest
from command_line import relay as relay_command

DENSE = "nn.relu(nn.dense(%x, %w))", "(512, 512)", "(512, 512)"
CONVOLUTIONS = {
    "3x3": (
        "nn.relu(nn.conv2d(%x, %w, padding=[1, 1, 1, 1]))",
        "(4, 64, 56, 56)",
        "(64, 64, 3, 3)",
    ),
    "1x1": ("nn.conv2d(%x, %w)", "(4, 256, 28, 28)", "(128, 256, 1, 1)"),
    "NHWC": (
        'nn.conv2d(%x, %w, padding=[1, 1, 1, 1], data_layout="NHWC", kernel_layout="HWIO")',
        "(4, 28, 28, 128)",
        "(3, 3, 128, 128)",
    ),
}
BATCH = "nn.batch_matmul(%x, %w)", "(24, 128, 64)", "(24, 64, 128)"
BYTES = 'nn.dense(%x, %w, out_dtype="int32")', "(512, 512)", "(512, 512)"
CASES = [
    *((DENSE, dtype, "-arch=sm_90", "m16n8k16") for dtype in ("float16", "bfloat16")),
    *(
        (c, d, "-arch=sm_90", "m16n8k16")
        for c in CONVOLUTIONS.values()
        for d in ("float16", "bfloat16")
    ),
    (BATCH, "float16", "-arch=sm_80", "m16n8k16"),
    (DENSE, "float32", "-arch=sm_90 +tf32", "m16n8k8"),
    (CONVOLUTIONS["3x3"], "float32", "-arch=sm_86 +tf32", "m16n8k8"),
    (DENSE, "float16", "-arch=sm_75", "m16n8k8"),
    (BYTES, "int8", "-arch=sm_90a", "m16n8k32"),
    (BYTES, "int8", "-arch=sm_75", "m8n8k16"),
]


@pytest.mark.parametrize(("case", "dtype", "words", "shape"), CASES)
def test_products(tmp_path, case, dtype, words, shape):
    if not ptx_rows.ptxas():
        pytest.skip("there is no ptxas: pip install 'relay[cuda-test]'")
    product, x, w = case
    program, out = tmp_path / "program.relay", tmp_path / "program.so"
    program.write_text(
        '#[version = "0.0.5"]\n'
        f"def @main(%x: Tensor[{x}, {dtype}], %w: Tensor[{w}, {dtype}]) {{ {product} }}\n"
    )
    relay_command("compile", program, "--target", f"native; cuda {words}", "-o", out)
    ptx = list(ptx_rows.sources(out.read_bytes()))
    assert f"mma.sync.aligned.{shape}.row.col" in "".join(ptx)
    assert "ldmatrix.sync" in "".join(ptx)
    arch = words.split()[0].removeprefix("-arch=")
    assert sum(ptx_rows.assembled(text, arch)["spilling"] for text in ptx) == 0


def test_explain_says_why_not(tmp_path):
    program = tmp_path / "program.relay"
    program.write_text(
        '#[version = "0.0.5"]\n'
        "def @main(%x: Tensor[(512, 512), float32], %w: Tensor[(512, 512), float32]) { nn.dense(%x, %w) }\n"
    )
    said = relay_command("explain", program, "--target", "native; cuda -arch=sm_90").stdout
    assert "no tensor cores: the target keeps all bits of float32; +tf32 rounds" in said
    said = relay_command("explain", program, "--target", "native; cuda -arch=sm_90 +tf32").stdout
    assert "on tensor cores: m16n8k8" in said
