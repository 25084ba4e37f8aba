"""Files of weights: safetensors, NumPy archives, and state dictionaries of PyTorch, read without it."""

import io
import json
import pickle
import random
import struct
import zipfile

import numpy as np
import onnx
import pytest
from command_line import PROGRAM, fails, relay
from onnx import TensorProto, helper, numpy_helper

import relay as rl


def safetensors(tensors, change=lambda header: None):
    header, data = {"__metadata__": {"format": "pt"}}, b""
    names = {"float32": "F32", "int64": "I64", "bool": "BOOL", "uint16": "BF16"}
    for name, t in tensors.items():
        header[name] = {
            "dtype": names[str(t.dtype)],
            "shape": list(t.shape),
            "data_offsets": [len(data), len(data) + t.nbytes],
        }
        data += t.tobytes()
    change(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class Storage:
    def __init__(self, key, kind, count):
        self.key, self.kind, self.count = key, kind, count


class Global:
    """Pickled as the name of something that need not be here."""

    def __init__(self, name):
        self.module, self.name = name.rsplit(".", 1)


class Tensor:
    def __init__(self, storage, offset, shape, strides):
        self.arguments = (storage, offset, shape, strides, False, {})


class Pickler(pickle._Pickler):
    """Writes tensors and dictionaries as torch.save does."""

    def persistent_id(self, value):
        if isinstance(value, Storage):
            return ("storage", Global(f"torch.{value.kind}"), value.key, "cpu", value.count)
        return None

    def save(self, value, *args, **kwargs):
        if isinstance(value, Global):
            self.write(b"c" + f"{value.module}\n{value.name}\n".encode())
        elif isinstance(value, Tensor):
            self.save(Global("torch._utils._rebuild_tensor_v2"))
            self.save(value.arguments)
            self.write(pickle.REDUCE)
        else:
            super().save(value, *args, **kwargs)


def pickled(value, protocol=2):
    out = io.BytesIO()
    Pickler(out, protocol).dump(value)
    return out.getvalue()


def state_dictionary(program: bytes, storages: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("model/data.pkl", program)
        archive.writestr("model/byteorder", "little")
        for key, data in storages.items():
            archive.writestr(f"model/data/{key}", data)
        archive.writestr("model/version", "3\n")
    return out.getvalue()


A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.array([5, -1], np.int64)


def an_example(**more):
    first = Storage("0", "FloatStorage", 6)
    value = {
        "fc.weight": Tensor(first, 0, (2, 3), (3, 1)),
        "fc.transposed": Tensor(first, 0, (3, 2), (1, 3)),
        "fc.row": Tensor(first, 3, (3,), (1,)),
        "steps": {"count": Tensor(Storage("1", "LongStorage", 2), 0, (2,), (1,)), "epoch": 3},
        "note": "of a test",
    }
    return state_dictionary(pickled(value | more), {"0": A.tobytes(), "1": B.tobytes()})


def load(tmp_path, data, name="weights.bin"):
    path = tmp_path / name
    path.write_bytes(data)
    return rl.frontend.load_weights(path)


def test_safetensors_are_read(tmp_path):
    got = load(tmp_path, safetensors({"a": A, "b": B, "c": np.array(True)}))
    assert sorted(got) == ["a", "b", "c"]
    np.testing.assert_array_equal(got["a"], A)
    np.testing.assert_array_equal(got["b"], B)
    assert got["c"].shape == () and bool(got["c"])


@pytest.mark.parametrize(
    ("code", "change"),
    [
        ("E0508", lambda h: h["a"].update(data_offsets=[0, 20])),
        ("E0508", lambda h: h["a"].update(data_offsets=[0, 1 << 40])),
        ("E0508", lambda h: h["a"].update(shape=[1 << 40, 1 << 40])),
        ("E0508", lambda h: h["a"].update(dtype="Q4")),
        ("E0502", lambda h: h["a"].update(shape="x")),
        ("E0502", lambda h: h["a"].update(shape=[-1])),
        ("E0502", lambda h: h.update(a=[1])),
    ],
)
def test_bad_safetensors_are_refused(tmp_path, code, change):
    with pytest.raises(rl.UserError, match=code):
        load(tmp_path, safetensors({"a": A}, change))


def test_numpy_archives_are_read(tmp_path):
    np.savez(tmp_path / "w.npz", a=A, b=B)
    got = rl.frontend.load_weights(tmp_path / "w.npz")
    np.testing.assert_array_equal(got["a"], A)
    np.testing.assert_array_equal(got["b"], B)


def test_state_dictionaries_are_read_without_pytorch(tmp_path):
    got = load(tmp_path, an_example())
    assert sorted(got) == ["fc.row", "fc.transposed", "fc.weight", "steps.count"]
    np.testing.assert_array_equal(got["fc.weight"], A)
    np.testing.assert_array_equal(got["fc.transposed"], A.T)
    np.testing.assert_array_equal(got["fc.row"], A[1])
    np.testing.assert_array_equal(got["steps.count"], B)


def test_what_torch_saves_is_read(tmp_path):
    torch = pytest.importorskip("torch")
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    torch.save({"model": model.state_dict(), "epoch": 7, "lr": 0.1}, tmp_path / "w.pt")
    got = rl.frontend.load_weights(tmp_path / "w.pt")
    want = {f"model.{k}": v.numpy() for k, v in model.state_dict().items()}
    assert sorted(got) == sorted(want)
    for name, value in want.items():
        np.testing.assert_array_equal(got[name], value)


DENSE = """#[version = "0.0.5"]
def @main(%x: Tensor[(2, 3), float32], %w: Tensor[(4, 3), float32]) { nn.dense(%x, %w) }
"""
W = np.arange(12, dtype=np.float32).reshape(4, 3)
X = np.float32([[1, -2, 3], [-4, 5, 6]])


def test_a_file_of_weights_gives_parameters_their_values(tmp_path):
    (tmp_path / "w.safetensors").write_bytes(safetensors({"w": W}))
    np.savez(tmp_path / "w.npz", w=W)
    mod = rl.parse(DENSE)
    for name in ("w.safetensors", "w.npz"):
        run = rl.build(mod, params=tmp_path / name)
        assert [slot.name for slot in run.input_info()] == ["x"]
        np.testing.assert_allclose(run(X), X @ W.T)
    (tmp_path / "other.safetensors").write_bytes(safetensors({"v": W}))
    with pytest.raises(rl.UserError, match=r"E0702.*no parameter 'v'"):
        rl.build(mod, params=str(tmp_path / "other.safetensors"))


def test_names_of_modules_are_those_of_parameters(tmp_path):
    mod = rl.parse(DENSE.replace("%w", "%fc_weight"))
    (tmp_path / "w.safetensors").write_bytes(safetensors({"fc.weight": W}))
    run = rl.build(mod, params=tmp_path / "w.safetensors")
    np.testing.assert_allclose(run(X), X @ W.T)
    with pytest.raises(rl.UserError, match=r"E0702.*both 'fc_weight' and 'fc.weight'"):
        rl.build(mod, params={"fc.weight": W, "fc_weight": W})


@pytest.mark.parametrize("value", [W.T.copy(), W[:3], W.astype(np.float64), W.reshape(-1)])
def test_values_have_the_types_of_their_parameters(value):
    with pytest.raises(rl.UserError, match=r"E0508.*%w"):
        rl.build(rl.parse(DENSE), params={"w": value})


def test_the_command_takes_a_file_of_weights(tmp_path):
    (tmp_path / "p.relay").write_text(PROGRAM)
    np.savez(tmp_path / "w.npz", w=W)
    np.save(tmp_path / "x.npy", X)
    (tmp_path / "w.bin").write_bytes(safetensors({"w": W}))
    want = np.maximum(X @ W.T, 0)
    for weights in ("w.npz", "w.bin"):
        with_weights = ("--params", weights)
        given = ("--input", "x=x.npy", "--output", "out", "--force")
        relay("run", "p.relay", *with_weights, *given, cwd=tmp_path)
        (got,) = (tmp_path / "out").glob("*.npy")
        np.testing.assert_allclose(np.load(got), want)
        relay("run", "p.relay", *with_weights, *given, "--executor", "eval", cwd=tmp_path)
        np.testing.assert_allclose(np.load(got), want)
        relay("compile", "p.relay", *with_weights, "-o", "p.so", "--force", cwd=tmp_path)
        assert [s.name for s in rl.runtime.load_module(tmp_path / "p.so").input_info()] == ["x"]
        relay("bench", "p.relay", *with_weights, "--repeat", "2", cwd=tmp_path)
        assert "float32" in relay("check", "p.relay", *with_weights, cwd=tmp_path).stdout
    fails("E0702", "run", "p.so", "--params", "w.npz", cwd=tmp_path, mentions=["compiled"])
    fails("E0511", "run", "p.relay", "--params", "none.npz", cwd=tmp_path)
    np.savez(tmp_path / "w.npz", v=W)
    fails("E0702", "compile", "p.relay", "--params", "w.npz", "-o", "q.so", cwd=tmp_path)
    np.savez(tmp_path / "w.npz", w=W.T)
    fails("E0508", "check", "p.relay", "--params", "w.npz", cwd=tmp_path, mentions=["(4, 3)"])


def an_onnx_model():
    nodes = [
        helper.make_node("Gemm", ["x", "w", "b"], ["h"], transB=1),
        helper.make_node("Reshape", ["h", "shape"], ["y"]),
    ]
    weights = {"w": W, "b": np.zeros(4, np.float32), "shape": np.array([-1], np.int64)}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [8])],
        [numpy_helper.from_array(v, n) for n, v in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def test_initializers_are_replaced(tmp_path):
    onnx.save(an_onnx_model(), tmp_path / "m.onnx")
    np.savez(tmp_path / "w.npz", w=W + 1)
    want = (X @ (W + 1).T).reshape(-1)
    for given in ({"w": W + 1}, tmp_path / "w.npz"):
        mod, _ = rl.frontend.from_onnx(tmp_path / "m.onnx", params=given)
        np.testing.assert_allclose(rl.build(mod)(X), want, rtol=1e-5)
    np.save(tmp_path / "x.npy", X)
    out = ("--input", "x=x.npy", "--output", "out")
    relay("run", "m.onnx", "--params", "w.npz", *out, cwd=tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), want, rtol=1e-5)
    with pytest.raises(rl.UserError, match=r"E0508[\s\S]*float64"):
        rl.frontend.from_onnx(tmp_path / "m.onnx", params={"w": W.astype(np.float64)})
    with pytest.raises(rl.UserError, match=r"E0510[\s\S]*no weight 'weight'"):
        rl.frontend.from_onnx(tmp_path / "m.onnx", params={"weight": W})


class Evil:
    def __reduce__(self):
        return (print, ("executed",))


def nested(depth):
    value: list = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("code", "program"),
    [
        ("E0504", pickle.dumps(Evil(), 2)),
        ("E0504", b"cposix\nsystem\n(S'true'\ntR."),
        ("E0504", b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n)R."),
        ("E0504", b"\x80\x02ccollections\nOrderedDict\n(K\x01tR."),
        ("E0504", pickle.dumps({1, 2}, 4)),
        ("E0504", b"\x80\x02]q\x00h\x00a."),  # a list that holds itself
        ("E0506", b"\x80\x02" + b"]" * 200 + b"a" * 199 + b"."),
        ("E0502", b"\x80\x02}"),
        ("E0502", b"\x80\x02."),
        ("E0502", b"\x80\x02h\x05."),
        ("E0502", b"\x80\x02t."),
        ("E0502", b"\x80\x02}K\x01a."),
        ("E0502", b"\x80\x02X\xff\xff\xff\x7fabc."),
        ("E0502", b"\x80\x02K\x01Q."),
        ("E0504", b"\x80\x02K\x01."),
    ],
)
def test_a_pickle_executes_nothing(tmp_path, capsys, code, program):
    with pytest.raises(rl.UserError, match=code):
        load(tmp_path, state_dictionary(program, {}))
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("code", "tensor"),
    [
        ("E0508", Tensor(Storage("0", "FloatStorage", 6), 0, (3, 3), (3, 1))),
        ("E0508", Tensor(Storage("0", "FloatStorage", 6), 5, (2,), (1,))),
        ("E0508", Tensor(Storage("0", "FloatStorage", 6), 0, (2,), (-1,))),
        ("E0508", Tensor(Storage("0", "FloatStorage", 6), 0, (1 << 40,), (0,))),
        ("E0508", Tensor(Storage("0", "FloatStorage", 6), 0, (1 << 62, 1 << 62), (0, 0))),
        ("E0507", Tensor(Storage("../../etc/passwd", "FloatStorage", 6), 0, (2,), (1,))),
    ],
)
def test_tensors_stay_within_their_storage(tmp_path, code, tensor):
    with pytest.raises(rl.UserError, match=code):
        load(tmp_path, an_example(bad=tensor))


@pytest.mark.parametrize("data", [b"", b"abc", bytes(100), b"\x93NUMPY" + bytes(100)])
def test_other_files_are_refused(tmp_path, data):
    with pytest.raises(rl.UserError, match="E0514"):
        load(tmp_path, data)


def a_numpy_archive(save=np.savez):
    out = io.BytesIO()
    save(out, a=A, b=B)
    return out.getvalue()


@pytest.mark.parametrize(
    "text,said",
    [
        ("'fortran_order': False, 'shape': (3U 3), ", "the shape is not a tuple of sizes"),
        ("'fortran_order': False, 'shape': (-1,), ", "the shape is not a tuple of sizes"),
        ("'fo2tran_order': False, 'shape': (2,), ", "the header has no order of elements"),
    ],
)
def test_a_header_of_numpy_is_read_to_its_end(tmp_path, text, said):
    header = ("{'descr': '<f4', " + text + "}").ljust(117) + "\n"
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        content = b"\x93NUMPY\x01\x00v\x00" + header.encode() + bytes(8)
        archive.writestr("a.npy", content)
    with pytest.raises(rl.UserError, match=said):
        load(tmp_path, out.getvalue())


@pytest.mark.parametrize(
    "make",
    [
        an_example,
        lambda: safetensors({"a": A, "b": B}),
        a_numpy_archive,
        lambda: a_numpy_archive(np.savez_compressed),
    ],
)
def test_damaged_files_end_in_messages(tmp_path, make):
    data = make()
    draw = random.Random(3)
    refused = 0
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(draw.choice([1, 2, 5])):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        if draw.random() < 0.3:
            bad = bad[: draw.randrange(len(bad))]
        try:
            load(tmp_path, bytes(bad))
        except rl.UserError:
            refused += 1
    assert refused > 50
