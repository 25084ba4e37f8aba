"""The page of `relay show --format html`: its data, and what a browser makes of it."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
from html import unescape
from pathlib import Path

import numpy as np
import pytest
from command_line import fails, relay
from onnx import TensorProto, helper, load, numpy_helper, save

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def residual_network(path: Path, blocks: int, scoped: bool = True) -> Path:
    """A model whose nodes have scopes in their names: blocks with a shortcut each."""
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, [2, 8]) for n in ("x", "y"))
    nodes, weights, value = [], [], "x"
    for i in range(blocks):
        scope = f"/net/block.{i}"
        numbers = [0.001 * (i + n % 7) for n in range(64)]
        weights.append(helper.make_tensor(f"w{i}", TensorProto.FLOAT, [8, 8], numbers))
        nodes += [
            helper.make_node("MatMul", [value, f"w{i}"], [f"a{i}"], name=f"{scope}/MatMul"),
            helper.make_node("Tanh", [f"a{i}"], [f"b{i}"], name=f"{scope}/Tanh"),
            helper.make_node("Sin", [f"b{i}"], [f"c{i}"], name=f"{scope}/act/Sin"),
            helper.make_node("Add", [value, f"c{i}"], [f"d{i}"], name=f"{scope}/Add"),
        ]
        value = f"d{i}"
    nodes.append(helper.make_node("Relu", [value], ["y"], name="/last/Relu"))
    for node in nodes:
        node.name = node.name if scoped else re.sub(r"[/.]", "_", node.name)
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


def view_of(data: dict, stage: str) -> dict:
    return data["views"][next(s["view"] for s in data["stages"] if s["name"] == stage)]


@pytest.mark.parametrize("name", ["DATA", "SCRIPT & <STYLE>", "TITLE"])
def test_a_title_may_be_a_word_of_the_template(name, tmp_path):
    model = residual_network(tmp_path / f"{name}.onnx", 1)
    text = page_of(model, tmp_path)[0].read_text()
    (title,) = re.findall("<title>(.*?)</title>", text)
    assert unescape(title).endswith(f"{name}.onnx")
    assert text.count("</script>") == 2 and text.count("<style>") == 1


def test_stages_refer_to_each_other(tmp_path):
    _, data = page_of(residual_network(tmp_path / "m.onnx", 2), tmp_path)
    names = [s["name"] for s in data["stages"]]
    assert names == ["as read", "compiled", "memory", "constants", "passes"]
    read, compiled = (view_of(data, name) for name in names[:2])
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


@pytest.mark.parametrize("name", ["Neg", "/mask/Neg"])
def test_a_scope_is_not_cut_in_two_by_what_it_uses(name, tmp_path):
    """A mask that is computed beside a block, and used in its middle."""
    path = residual_network(tmp_path / "m.onnx", 40)
    model = load(path)
    graph = model.graph
    graph.input.append(helper.make_tensor_value_info("m", TensorProto.FLOAT, [2, 8]))
    add = next(i for i, n in enumerate(graph.node) if n.name == "/net/block.3/Add")
    graph.node[add].input[1] = "masked"
    graph.node.insert(
        add, helper.make_node("Mul", ["c3", "mask"], ["masked"], name="/net/block.3/Mul")
    )
    graph.node.insert(0, helper.make_node("Neg", ["m"], ["mask"], name=name))
    save(model, path)
    _, data = page_of(path, tmp_path)
    for stage in ("as read", "compiled"):
        view = view_of(data, stage)
        assert [n["label"] for n in view["nodes"] if n["kind"] == "group"] == ["net"], stage
    # The calls of kernels in memory and in the graph are the same ones.
    places = {n["id"]: n["place"] for v in data["views"] for n in v["nodes"] if "place" in n}
    links = [(n["label"], n["other"]) for n in view_of(data, "memory")["nodes"] if n.get("other")]
    assert links and all(label.split(" (")[0] in places[o[0]["id"]] for label, o in links)


def test_a_page_takes_time_in_proportion_to_the_width_of_its_program(tmp_path):
    """Sixteen times as many independent nodes without scopes take about sixteen times as long."""

    def seconds(width: int) -> float:
        program = tmp_path / f"{width}.relay"
        calls = ", ".join(["nn.relu(negative(%x))"] * width)
        program.write_text(
            f'#[version = "0.0.5"]\ndef @main(%x: Tensor[(4), float32]) {{ ({calls}) }}\n'
        )
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        words = ("--format", "html", "--after", "SimplifyInference")
        relay("show", program, *words, "-o", tmp_path / f"{width}.html")
        return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before

    assert seconds(32000) < 28 * seconds(2000)


BRANCHES = """#[version = "0.0.5"]
type Tree { Leaf(float32), Node(Tree, Tree) }
def @sum(%t: Tree) -> float32 {
  match (%t) {
    Leaf(%x) => {
      let %a = sin(%x);
      cos(%a)
    },
    Node(%l, %r) => add(@sum(%l), @sum(%r)),
  }
}
def @main(%c: bool, %x: float32) {
  let %y = if (%c) {
    let %a = sin(%x);
    let %b = cos(%a);
    %b
  } else { exp(%x) };
  tanh(%y)
}
"""


def test_the_ends_of_branches_and_clauses_go_on_in_the_whole(tmp_path):
    (tmp_path / "p.relay").write_text(BRANCHES)
    _, data = page_of(tmp_path / "p.relay", tmp_path)
    edges = set()
    for view in data["views"]:
        label = {n["id"]: n["label"] for n in view["nodes"]}
        if view["stage"] == 0:
            edges |= {(label[e["from"]], label[e["to"]]) for e in view["edges"]}
    assert edges >= {("%c", "If"), ("cos", "If"), ("exp", "If"), ("If", "tanh")}
    assert edges >= {("%t", "Match"), ("cos", "Match"), ("add", "Match")}


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


def test_memory_shows_where_and_when_each_value_lives(tmp_path):
    model = residual_network(tmp_path / "m.onnx", 6)
    _, data = page_of(model, tmp_path)
    memory = view_of(data, "memory")
    boxes = memory["nodes"]
    assert {f"block.{i}" for i in range(5)} <= {
        part for b in boxes for part in b["label"].split("/") if part.startswith("block")
    }
    # Two values are never at one address at one time.
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = (
                a["x"] + a["w"] <= b["x"] + 0.2
                or b["x"] + b["w"] <= a["x"] + 0.2
                or a["y"] + a["h"] <= b["y"] + 0.2
                or b["y"] + b["h"] <= a["y"] + 0.2
            )
            # A result may be in the place of an operand: they share the step that computes it.
            facts_a, facts_b = dict(a["facts"]), dict(b["facts"])
            in_place = (
                facts_a["written in step"] == facts_b["last read in step"]
                or facts_b["written in step"] == facts_a["last read in step"]
            )
            assert apart or in_place, (a, b)
    library = tmp_path / "m.so"
    relay("compile", model, "-o", library)
    (arena,) = json.loads(relay("show", library, "--format", "json").stdout)["arenas"]
    heights = [y for (line,) in [memory["lines"]] for _, y in line["points"]]
    assert min(heights) == pytest.approx(110 * (1 - arena["lower_bound"] / arena["bytes"]), abs=0.1)
    # A value leads to the kernel that writes it.
    compiled = {n["id"]: n for n in view_of(data, "compiled")["nodes"]}
    for b in boxes:
        (link,) = b["other"]
        assert compiled[link["id"]]["kernel"] == b["kernel"]
        assert any(part in compiled[link["id"]]["place"] for part in b["label"].split(" + "))


def test_constants_have_histograms(tmp_path):
    _, data = page_of(residual_network(tmp_path / "m.onnx", 3), tmp_path)
    cards = view_of(data, "constants")["nodes"]
    assert len(cards) == 3
    assert all("block" in dict(c["facts"])["read by"] for c in cards)
    # As many columns as panels of any width hold without padding.
    weights = np.linspace(-3, 5, 512, dtype="float32").reshape(8, 64)
    program = tmp_path / "c.onnx"
    sizes = {"x": [2, 8], "y": [2, 64]}
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in sizes.items())
    node = helper.make_node("MatMul", ["x", "w"], ["y"], name="product")
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(weights, "w")])
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), program)
    _, data = page_of(program, tmp_path)
    (card,) = view_of(data, "constants")["nodes"]
    facts = dict(card["facts"])
    assert "min -3, max 5, mean 1" in facts["elements"] and card["ends"] == ["-3", "5"]
    assert len(card["bars"]) == 28 and min(card["bars"]) > 0 and max(card["bars"]) == 100


def test_passes_show_what_they_changed(tmp_path):
    _, data = page_of(residual_network(tmp_path / "m.onnx", 2), tmp_path)
    view = view_of(data, "passes")
    fuse = next(n for n in view["nodes"] if n["label"] == "FuseOps")
    (text,) = fuse["texts"]
    assert text["name"] == "@main" and "Primitive" in text["after"]
    assert "Primitive" not in text["before"] and dict(fuse["facts"])["operators"]


def test_a_compiled_file_shows_what_it_stores(tmp_path):
    model, library = residual_network(tmp_path / "m.onnx", 6), tmp_path / "m.so"
    relay("compile", model, "-o", library)
    _, of_model = page_of(model, tmp_path)
    _, data = page_of(library, tmp_path)
    assert [s["name"] for s in data["stages"]] == ["compiled", "memory", "constants"]
    graph = view_of(data, "compiled")
    calls = [n for n in graph["nodes"] if "kernel" in n]
    assert len(calls) == 6 and "block.0/Tanh" in calls[0]["place"]
    assert len(graph["edges"]) == 6  # each block reads the one before it
    for stage in ("memory", "constants"):
        ours, theirs = (
            [(n["label"], n["facts"]) for n in view_of(d, stage)["nodes"]] for d in (data, of_model)
        )
        assert ours == theirs
    assert data["kernels"][0]["schedule"] == of_model["kernels"][0]["schedule"]


def test_a_profile_is_on_the_page(tmp_path):
    model = residual_network(tmp_path / "m.onnx", 3)
    out = tmp_path / "profile.html"
    relay("bench", model, "--repeat", "5", "--html", out)
    (data,) = re.findall(r'id="data">(.*?)</script>', out.read_text(), re.DOTALL)
    data = json.loads(data)
    profiles = [k["profile"] for k in data["kernels"]]
    assert sum(p["share"] for p in profiles) == pytest.approx(1)
    assert all(p["seconds"] > 0 and p["calls"] > 0 for p in profiles)
    assert data["limits"]["gflops"] > 0 and data["limits"]["read_gbytes_per_second"]
    again = relay("bench", model, "--html", out, check=False)
    assert again.returncode == 1 and "--force" in again.stderr


def test_assembly_is_on_the_page_where_it_is_asked_for(tmp_path):
    model = residual_network(tmp_path / "m.onnx", 1)
    _, data = page_of(model, tmp_path, "--asm")
    assert all("ret" in k["assembly"] for k in data["kernels"])
    _, data = page_of(model, tmp_path)
    assert all("assembly" not in k for k in data["kernels"])
    fails("E0702", "show", model, "--format", "html", "--llvm", mentions=["--asm"])


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
const all = s => [...document.querySelectorAll(s)];
const press = name => all("#views button").find(b => b.textContent === name).click();
const click = s => all(s)[0].dispatchEvent(new MouseEvent("click", { bubbles: true }));
filter.value = ""; filter.dispatchEvent(new Event("input"));
press("memory"); click(".node.buffer");
seen.memory = document.getElementById("details").textContent;
seen.alive = count(".alive");
seen.spilt = all(".node.buffer, .node.constant").filter(n => {
  const text = n.querySelector("text:not(.end)").getBoundingClientRect();
  const box = n.querySelector("rect").getBoundingClientRect();
  return text.width > 0 && (text.left < box.left || text.right > box.right); }).length;
const map = all(".node.buffer > rect").map(r => r.getBoundingClientRect());
seen.map = map.every(r => r.width > 0 && r.height > 0);
all("#details a").pop().click();
seen.writer = document.querySelector("#details h2").textContent;
press("constants"); click(".node.constant");
seen.bars = count(".node.constant .bar");
seen.constant = document.getElementById("details").textContent;
press("passes"); click('.node.pass[data-label="FuseOps"]');
seen.marked = count("#details ins");
document.getElementById("seen").textContent = JSON.stringify(seen);
}
</script>"""


def dumped(page: Path, folder: Path) -> dict:
    """What a page that is driven at its end has written into #seen."""
    done = subprocess.run(
        [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
         f"--user-data-dir={folder / 'profile'}", "--window-size=1200,800", page.as_uri()],
        capture_output=True, text=True, timeout=300, check=True,
    )  # fmt: skip
    (seen,) = re.findall(r'<pre id="seen">(.*?)</pre>', done.stdout, re.DOTALL)
    return json.loads(unescape(seen))


ZOOM = """<pre id="seen"></pre><script>
{
show(data.stages[0].view);
const drawing = document.getElementById("drawing"), times = [];
for (let i = 0; i < 40; i++) {
  const begin = performance.now();
  const deltaY = i % 2 ? 40 : -40;
  drawing.dispatchEvent(new WheelEvent("wheel", { deltaY, clientX: 300, clientY: 300, cancelable: true }));
  document.querySelector(".node:last-of-type text").getBoundingClientRect();  // laid out
  times.push(performance.now() - begin);
}
const nodes = document.querySelectorAll(".node").length;
document.getElementById("seen").textContent = JSON.stringify({ nodes, step: Math.min(...times) });
}
</script>"""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_large_graph_is_drawn_and_zoomed_quickly(tmp_path):
    """5,000 nodes without scopes: a step of the wheel takes at most 8 ms of the main thread."""
    model = residual_network(tmp_path / "m.onnx", 1250, scoped=False)
    out, _ = page_of(model, tmp_path)
    out.write_text(out.read_text().replace("</body>", ZOOM + "</body>"))
    seen = dumped(out, tmp_path)
    assert seen["nodes"] >= 5000 and seen["step"] <= 8, seen


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
def test_a_browser_opens_clicks_and_filters(tmp_path):
    out, _ = page_of(residual_network(tmp_path / "m.onnx", 20), tmp_path)
    text = out.read_text()
    # The page opens with the model as it was read, and is driven at its end.
    text = text.replace(
        "show(data.stages.filter(s => s.stage < 2).pop().view);", "show(data.stages[0].view);"
    )
    out.write_text(text.replace("</body>", DRIVE + "</body>"))
    seen = dumped(out, tmp_path)
    assert "message" not in seen, seen
    assert seen["boxes"] == 3 and seen["lines"] == 2
    assert seen["path"] == "@main › net"
    assert seen["inside"] == ["add", "nn.dense", "tanh", "sin", "add"]
    assert "block.3/Tanh" in seen["details"] and "float32" in seen["details"]
    assert seen["chosen"] == 2 and seen["found"] == 1
    assert seen["kernel"].startswith("fused") and seen["schedule"]
    assert seen["overlaps"] == 0 and seen["wide"] == []
    assert "written in step" in seen["memory"] and seen["alive"] == 1 and seen["map"]
    assert seen["spilt"] == 0
    assert seen["writer"].startswith("fused")
    assert seen["bars"] > 0 and "mean" in seen["constant"]
    assert seen["marked"] > 0
