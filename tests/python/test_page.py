"""The page of `relay show --format html`: its data, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest
from command_line import relay
from onnx import TensorProto, helper, save

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def residual_network(path: Path, blocks: int) -> Path:
    """A model whose nodes have scopes in their names: blocks with a shortcut each."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 8]) for n in ("x", "y"))
    nodes, weights, value = [], [], "x"
    for i in range(blocks):
        scope = f"/net/block.{i}"
        weights.append(helper.make_tensor(f"w{i}", TensorProto.FLOAT, [8, 8], [0.1 * i] * 64))
        nodes += [
            helper.make_node("MatMul", [value, f"w{i}"], [f"a{i}"], name=f"{scope}/MatMul"),
            helper.make_node("Tanh", [f"a{i}"], [f"b{i}"], name=f"{scope}/Tanh"),
            helper.make_node("Sin", [f"b{i}"], [f"c{i}"], name=f"{scope}/act/Sin"),
            helper.make_node("Add", [value, f"c{i}"], [f"d{i}"], name=f"{scope}/Add"),
        ]
        value = f"d{i}"
    nodes.append(helper.make_node("Relu", [value], ["y"], name="/last/Relu"))
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path


def page_of(program: Path, folder: Path, *words: str) -> tuple[Path, dict]:
    out = folder / "page.html"
    relay("show", program, "--format", "html", "-o", out, "--force", *words)
    text = out.read_text()
    (data,) = re.findall(
        r'<script type="application/json" id="data">(.*?)</script>', text, re.DOTALL
    )
    assert not re.findall(r"(?:src|href)\s*=|url\(|https?://(?!www\.w3\.org)", text), "not offline"
    return out, json.loads(data)


@pytest.mark.parametrize("name", ["DATA", "SCRIPT & <STYLE>", "TITLE"])
def test_a_title_may_be_a_word_of_the_template(name, tmp_path):
    model = residual_network(tmp_path / f"{name}.onnx", 1)
    text = page_of(model, tmp_path)[0].read_text()
    (title,) = re.findall("<title>(.*?)</title>", text)
    assert unescape(title).endswith(f"{name}.onnx")
    assert text.count("</script>") == 2 and text.count("<style>") == 1


def test_stages_refer_to_each_other(tmp_path):
    _, data = page_of(residual_network(tmp_path / "m.onnx", 2), tmp_path)
    assert [s["name"] for s in data["stages"]] == ["as read", "compiled"]
    read, compiled = (data["views"][s["view"]] for s in data["stages"])
    by_label = {n["label"]: n for n in read["nodes"]}
    assert {"%x", "nn.dense", "tanh", "sin", "add", "nn.relu"} <= set(by_label)
    assert by_label["nn.dense"]["kind"] == "heavy"
    assert by_label["%x"]["type"] == "float32 (2, 8)"
    assert "block.0/Tanh" in read["nodes"][2]["place"]
    names = {n["id"]: n for n in compiled["nodes"]}
    for node in read["nodes"]:
        if node["label"] in ("tanh", "sin"):
            (other,) = node["other"]
            kernel = data["kernels"][names[other["id"]]["kernel"]]
            assert node["label"] in kernel["text"] and kernel["schedule"]
            assert any(o["id"] == node["id"] for o in names[other["id"]]["other"])
    facts = dict(data["facts"])
    assert facts["kernels"] == str(len(data["kernels"])) and "target" in facts


def test_large_graphs_are_folded_by_scopes(tmp_path):
    _, data = page_of(residual_network(tmp_path / "m.onnx", 20), tmp_path)
    view = data["views"][data["stages"][0]["view"]]
    groups = [n for n in view["nodes"] if n["kind"] == "group"]
    assert [g["label"] for g in groups] == ["net"]
    inside = data["views"][groups[0]["view"]]
    assert inside["parent"] == data["stages"][0]["view"]
    assert [n["label"] for n in inside["nodes"]] == ["%x", *(f"block.{i}" for i in range(20))]
    assert [n["kind"] for n in inside["nodes"]][:2] == ["port", "group"]
    block = data["views"][inside["nodes"][3]["view"]]
    assert [n["label"] for n in block["nodes"]] == ["add", "nn.dense", "tanh", "sin", "add"]
    # Every node stands in one view, other than as a port.
    ids = [
        n["id"]
        for v in data["views"]
        for n in v["nodes"]
        if n["kind"] not in ("port", "group") and v["stage"] == 0
    ]
    assert len(ids) == len(set(ids)) == 82


def test_programs_with_functions(tmp_path):
    program = ROOT / "examples/language/tree_lstm.relay"
    _, data = page_of(program, tmp_path)
    assert len({f["name"] for f in data["functions"] if f["stage"] == 0}) > 1
    _, after = page_of(program, tmp_path, "--after", "SimplifyExpr")
    assert [s["name"] for s in after["stages"]] == ["program"] and after["kernels"] == []


def test_text_of_a_model_is_no_markup(tmp_path):
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [1]) for n in "xy")
    node = helper.make_node("Relu", ["x"], ["y"], name="</script><script>alert(1)</script>")
    model = tmp_path / "m.onnx"
    save(helper.make_model(helper.make_graph([node], "g", [x], [y])), model)
    out, data = page_of(model, tmp_path)
    assert "<script>alert" not in out.read_text()
    assert any("<script>alert(1)" in n.get("place", "") for v in data["views"] for n in v["nodes"])


DRIVE = """<pre id="seen"></pre><script>
window.onerror = message => { document.getElementById("seen").textContent = JSON.stringify({ message }); };
</script><script>
{
const seen = {};
const count = s => document.querySelectorAll(s).length;
seen.boxes = count(".node"); seen.lines = count(".edge");
const of = label => document.querySelector(`.node[data-label="${label}"]`);
of("net").dispatchEvent(new MouseEvent("dblclick"));
seen.path = document.getElementById("path").textContent;
of("block.3").dispatchEvent(new MouseEvent("dblclick"));
seen.inside = [...document.querySelectorAll(".node")].map(n => n.dataset.label);
of("tanh").dispatchEvent(new MouseEvent("click", { bubbles: true }));
seen.details = document.getElementById("details").textContent;
seen.chosen = count(".edge.chosen");
const filter = document.getElementById("filter");
filter.value = "matmul float32"; filter.dispatchEvent(new Event("input"));
seen.found = count(".node:not(.other)");
const links = [...document.querySelectorAll("#details a")].filter(a => a.textContent.startsWith("fused"));
links[0].click();
seen.kernel = document.querySelector("#details h2").textContent;
seen.schedule = document.getElementById("details").textContent.includes("scheduled loops");
const boxes = [...document.querySelectorAll(".node rect")].map(r => r.getBoundingClientRect());
const apart = (a, b) => a.right <= b.left + 0.5 || b.right <= a.left + 0.5 || a.bottom <= b.top + 0.5
  || b.bottom <= a.top + 0.5;
seen.overlaps = boxes.filter((a, i) => boxes.some((b, j) => j > i && !apart(a, b))).length;
const texts = [...document.querySelectorAll(".node text")].filter(t => {
  const a = t.getBoundingClientRect(), b = t.parentNode.querySelector("rect").getBoundingClientRect();
  return a.left < b.left - 1 || a.right > b.right + 1; });
seen.wide = texts.map(t => t.textContent);
document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>"""


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_opens_clicks_and_filters(tmp_path):
    out, _ = page_of(residual_network(tmp_path / "m.onnx", 20), tmp_path)
    text = out.read_text()
    # The page opens with the model as it was read, and is driven at its end.
    text = text.replace(
        "show(data.stages[data.stages.length - 1].view);", "show(data.stages[0].view);"
    )
    out.write_text(text.replace("</body>", DRIVE + "</body>"))
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={tmp_path / 'profile'}", "--window-size=1200,800", out.as_uri()],
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    seen = json.loads(unescape(seen))
    assert "message" not in seen, seen
    assert seen["boxes"] == 3 and seen["lines"] == 2
    assert seen["path"] == "@main › net"
    assert seen["inside"] == ["add", "nn.dense", "tanh", "sin", "add"]
    assert "block.3/Tanh" in seen["details"] and "float32" in seen["details"]
    assert seen["chosen"] == 2 and seen["found"] == 1
    assert seen["kernel"].startswith("fused") and seen["schedule"]
    assert seen["overlaps"] == 0 and seen["wide"] == []
