"""benchmarks/cliffs.py: its cases, its tables, and a short run."""

import json
from fnmatch import fnmatchcase

import cliff_cases
import cliff_drawn
import cliff_page
import cliff_reasons
import cliff_settings
import cliffs
import compare
import numpy as np
import onnx
import pytest
import training_drawn
from cliff_models import Case, CompileCase, In, one


def row(model, engine, min_ms, **more):
    return {"model": model, "threads": 1, "engine": engine, "min_ms": min_ms, **more}


def run(monkeypatch, tmp_path, cases, *arguments):
    monkeypatch.setattr(cliff_cases, "GROUPS", {"g": lambda: iter(cases)})
    out = tmp_path / "out.json"
    options = ["--threads", "1", "--rounds", "1", "--burst", "0.01", "--json", str(out)]
    status = cliffs.main([*options, "--model-dir", str(tmp_path), *arguments])
    return status, json.loads(out.read_text())["results"]


def test_every_group_has_cases_and_every_twin_is_one():
    known = cliff_cases.cases()
    for group in cliff_cases.GROUPS:
        assert sum(name.startswith(group + "/") for name in known) >= 6
    for name, case in known.items():
        if isinstance(case, Case) and case.twin:
            assert f"{name.split('/')[0]}/{case.twin}" in known


@pytest.mark.parametrize("group", ["order", "sampling", "loops"])
def test_models_are_valid(group):
    seen = set()
    for case in cliff_cases.GROUPS[group]():
        if case.name.split()[0] in seen:
            continue
        seen.add(case.name.split()[0])
        onnx.checker.check_model(case.build(), full_check=True)


def test_report_marks_what_is_above_its_aim_and_names_the_worst():
    known = {
        "g/slow": Case("slow", None, 0.9),
        "g/fast": Case("fast", None, 0.9, twin="slow", twin_aim=0.5),
        "g/c": CompileCase("c", None, 2.0, 1.0),
    }
    rows = [
        row("g/slow", "relay", 3.0, scaled_error=0.5),
        row("g/slow", "onnxruntime", 2.0),
        row("g/fast", "relay", 1.0, scaled_error=0.0),
        row("g/fast", "onnxruntime", 2.0),
        row("g/c, cold", "relay", 3000.0),
        row("g/c, warm", "relay", 500.0),
    ]
    lines = cliffs.report(compare.Results({"results": rows}), known).splitlines()
    cells = {line.split("  ")[0]: line.split() for line in lines if line}
    assert "1.50*" in cells["slow"]
    assert cells["slow"][-1] == "WRONG"
    assert {"0.50", "0.33"} <= set(cells["fast"])
    assert "3.00*" in cells["c, cold"]
    assert "0.50" in cells["c, warm"]
    assert cells["g"] == ["g", "1.50", "slow", "1", "of", "2", "0"]


def test_an_unsupported_case_is_reported_and_the_rest_goes_on(monkeypatch, tmp_path, capsys):
    def broken():
        raise ModuleNotFoundError("no quantiser here")

    cases = [
        Case("no model", broken),
        Case("no kernel", one("NotAnOperator", In((3,)))),
        Case("open", one("Relu", In(("n",))), sizes={"n": 5}, model="relu"),
        Case("open too", one("Relu", In(("n",))), sizes={"n": 7}, model="relu"),
        CompileCase("relu", one("Relu", In((3,))), 100.0, 100.0),
        CompileCase("broken", broken, 100.0, 100.0),
    ]
    status, results = run(monkeypatch, tmp_path, cases, "--engines", "relay,onnxruntime")
    assert status == 0
    text = capsys.readouterr().out
    assert "g/no model, 1 threads, relay: no model: ModuleNotFoundError" in text
    assert "g/no kernel, 1 threads, onnxruntime:" in text
    assert "g/broken, cold, 1 threads, relay: ModuleNotFoundError" in text
    good = {r["model"] for r in results if r["engine"] == "relay" and "error" not in r}
    assert good == {"g/open", "g/open too", "g/relu, cold", "g/relu, warm"}
    # The model with an open size is compiled once.
    assert sum("compile_s" in r for r in results) == 1


def test_only_takes_groups_and_beginnings_of_names(capsys):
    assert cliffs.main(["--list", "--only", "pool/max 5x5,contraction"]) == 0
    names = capsys.readouterr().out.splitlines()
    assert names[0].startswith("pool/max 5x5")
    assert all(n.startswith(("pool/max 5x5", "contraction/")) for n in names)
    with pytest.raises(SystemExit):
        cliffs.main(["--only", "order/nothing"])
    assert "--list" in capsys.readouterr().err


def test_every_reason_is_about_a_case():
    assert set(cliff_reasons.REASONS) <= set(cliff_cases.cases())
    assert all(reason.endswith(".") for reason in cliff_reasons.REASONS.values())


def test_the_page_has_reasons_beside_what_is_above_its_aim(monkeypatch, tmp_path, capsys):
    cases = [
        Case("slow", None, 0.9),
        Case("strange", None, 0.9),
        Case("fast", None, 0.9, twin="slow", twin_aim=0.5),
        CompileCase("c", None, 2.0, 1.0),
    ]
    monkeypatch.setattr(
        cliff_cases, "GROUPS", {"g": lambda: iter(cases), "other": lambda: iter(())}
    )
    monkeypatch.setattr(
        cliff_page, "REASONS", {"g/slow": "it is.", "g/fast": "it is not.", "g/c": "."}
    )
    measured = {"strange": (3.0, 2.0), "slow": (3.0, 2.0), "fast": (1.0, 2.0)}
    data = {
        "time": "2026-11-20T01:02:03Z",
        "machine": {"cpu": "a processor"},
        "engines": {"relay": "1", "onnxruntime": "2", "iree": None},
        "results": [
            row(f"g/{name}", engine, ms)
            for name, both in measured.items()
            for engine, ms in zip(("relay", "onnxruntime"), both, strict=True)
        ]
        + [row("g/c, cold", "relay", 3000.0), row("g/c, warm", "relay", 500.0)],
    }
    older = data | {"results": [row("g/slow", "relay", 99.0)]}
    files = []
    for i, content in enumerate((older, data)):
        files.append(tmp_path / f"{i}.json")
        files[-1].write_text(json.dumps(content))
    overview = tmp_path / "measurements.md"
    overview.write_text(f"before\n{cliff_page.BEGIN}\nold\n{cliff_page.END}\nafter\n")
    monkeypatch.setattr(cliff_page, "LINES", (("all of it", ("g/*",)),))
    assert cliff_page.main([str(tmp_path), *map(str, files)]) == 1
    error = capsys.readouterr().err
    out = (tmp_path / "cliffs.md").read_text()
    assert "a processor, 1 thread, onnxruntime 2, 2026-11-20." in out
    assert "| slow | 3.00 | 2.00 | **1.50** | 0.90 | - | - |" in out
    assert "| fast | 1.00 | 2.00 | 0.50 | 0.90 | 0.33 | 0.50 |" in out
    assert "| c | **3.00** | 2.0 | 0.50 | 1.0 |" in out
    assert "- slow: it is.\n- strange: not looked into.\n" in out
    assert "it is not." not in out
    assert "Not measured in these runs: other." in out
    assert error.splitlines() == [
        "g/strange is above its aim and has no reason in cliff_reasons.py"
    ]
    line = "| all of it | 3 | 1.04 | 0.50 to 1.50 | 0.90 | 0.33 | 0.50 | 2 |"
    assert overview.read_text().splitlines() == [
        "before",
        cliff_page.BEGIN,
        "| | cases | mean | least to greatest | aim | own | aim | above an aim |",
        "|---|---|---|---|---|---|---|---|",
        line,
        "",
        "| seconds of `relay compile` | cold | aim | warm | aim |",
        "|---|---|---|---|---|",
        "| c | **3.00** | 2.0 | 0.50 | 1.0 |",
        cliff_page.END,
        "after",
    ]
    # A run of another group alone changes neither the other sections nor the summary's other rows.
    monkeypatch.setattr(
        cliff_cases,
        "GROUPS",
        {
            "g": lambda: iter(cases),
            "new": lambda: iter([Case("x", None, 0.9)]),
            "z": lambda: iter(()),
        },
    )
    lines = (("all of it", ("g/*",)), ("the new", ("new/*",)))
    monkeypatch.setattr(cliff_page, "LINES", lines)
    files[-1].write_text(json.dumps(data | {"results": [row("new/x", "relay", 1.0)]}))
    for _ in range(2):
        assert cliff_page.main([str(tmp_path), str(files[-1])]) == 0
        assert (tmp_path / "cliffs.md").read_text().count("Not measured in these runs: z.") == 1
        rows = overview.read_text().splitlines()
        assert line in rows and "| c | **3.00** | 2.0 | 0.50 | 1.0 |" in rows


def board(seed, *measured):
    """What `cliffs.py --drawn` writes of settings: name, time and error of Relay; ONNX Runtime takes 2 ms."""
    names = [f"{name} #{i}" for i, (name, _, _) in enumerate(measured)]
    results = []
    for name, (_, ours, error) in zip(names, measured, strict=True):
        results += [row(name, "relay", ours, scaled_error=error), row(name, "onnxruntime", 2.0)]
    return {
        "time": "2026-11-20T01:02:03Z",
        "machine": {"cpu": "a processor"},
        "engines": {"relay": "1", "onnxruntime": "2"},
        "results": results,
        "settings": {"drawn": seed},
        "operators": {n: n.split("/")[1].split()[0] for n in names},
        "traits": {n: ["f32"] for n in names},
        "tolerances": dict.fromkeys(names, 1e-3),
    }


def test_the_page_has_drawn_settings_by_cause_and_keeps_other_sections(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(cliff_drawn, "DRAWN_CAUSES", {"g/A *": "it copies.", "h/*": "no cause."})
    monkeypatch.setattr(cliff_cases, "GROUPS", {"kept": lambda: iter(()), "new": lambda: iter(())})
    page = tmp_path / "cliffs.md"
    page.write_text("# Title\n\n## Drawn settings\n\nold\n\n## kept\n\nstays\n")
    boards = [
        board(3, ("g/A 1", 4.0, 0.0), ("g/B 2", 1.0, 0.0)),
        board(5, ("g/A 1", 8.0, 0.0), ("g/B 1", 3.0, 0.5)),
    ]
    files = []
    for data in boards:
        files.append(tmp_path / f"{data['settings']['drawn']}.json")
        files[-1].write_text(json.dumps(data))
    assert cliff_page.main([str(tmp_path), *map(str, files)]) == 1
    out = page.read_text()
    assert "of the seeds 3, 5;" in out
    assert "| g | 4 | 1.57 | 2 | 1 | 4.00 | A 1 #0 of 5 |" in out
    assert "| all | 4 | 1.57 | 2 | 1 | 4.00 | A 1 #0 of 5 |" in out
    assert "- A 1 #0 of 5 4.00; A 1 #0 of 3 2.00: it copies.\n" in out
    assert "- B 1 #1 of 5 1.50 (differs by 5e-01): not looked into.\n" in out
    assert "no cause." not in out
    assert "\nold\n" not in out
    assert "## kept\n\nstays\n" in out
    assert "Not measured in these runs: new." in out
    assert [line.split(" is ")[0] for line in capsys.readouterr().err.splitlines()] == [
        "g/B 1 #1 of 5"
    ]


def test_the_summary_has_a_line_for_every_case():
    for name, case in cliff_cases.cases().items():
        assert isinstance(case, CompileCase) or any(
            fnmatchcase(name, p) for _, takes in cliff_page.LINES for p in takes
        ), name


def test_the_same_numbers_draw_the_same_setting():
    for index in range(40):
        (group, a), (other, b) = (cliff_settings.draw(5, index) for _ in range(2))
        assert (group, a.operator, a.text, a.traits) == (other, b.operator, b.text, b.traits)
        assert a.build().SerializeToString() == b.build().SerializeToString()
    assert cliff_settings.draw(5, 3)[1].text != cliff_settings.draw(6, 3)[1].text


@pytest.mark.parametrize("draw", cliff_settings.DRAWS, ids=lambda d: d[1])
def test_drawn_models_are_valid(draw):
    _, operator, function = draw
    for index in range(3):
        setting = function(cliff_settings.Dice(1, index), operator)
        model = setting.build()
        # Shapes are inferred for ONNX's own operators only.
        if all(node.domain == "" for node in model.graph.node):
            onnx.checker.check_model(model, full_check=True)


def test_a_drawn_board_is_measured_by_processor_time(tmp_path, capsys):
    out = tmp_path / "board.json"
    options = ["--rounds", "1", "--burst", "0.01", "--threads", "1", "--json", str(out)]
    assert cliffs.main(["--drawn", "4", "--only", "scans,Neg", "--count", "60", *options]) == 0
    data = json.loads(out.read_text())
    assert data["settings"]["drawn"] == 4
    assert {r["engine"] for r in data["results"]} == {"relay", "onnxruntime"}
    assert all("error" not in r and r["min_ms"] > 0 for r in data["results"])
    assert "scans/CumSum" in capsys.readouterr().out


def test_the_report_of_a_board_names_what_is_slow_wrong_and_refused(monkeypatch):
    monkeypatch.setattr(cliff_drawn, "DRAWN_CAUSES", {"g/A *": "it copies."})
    names = ["g/A f32 3 #0", "g/A f32 4 #1", "g/B f32 5 #2"]
    results = []
    for name, ours in zip(names, (4.0, 1.0, None), strict=True):
        mine = row(name, "relay", ours, scaled_error=0.5 if ours == 1.0 else 0.0)
        if ours is None:
            mine = {"model": name, "threads": 1, "engine": "relay", "error": "no such operator"}
        results += [mine, row(name, "onnxruntime", 2.0)]
    data = {
        "results": results,
        "settings": {"drawn": 3},
        "operators": {n: n[2] for n in names},
        "traits": {n: ["f32"] for n in names},
        "tolerances": dict.fromkeys(names, 1e-3),
    }
    lines = cliff_drawn.report(data).splitlines()
    cells = {line.split("  ")[0].strip() or line.split()[0]: line.split() for line in lines if line}
    assert cells["g"][:6] == ["g", "2", "1.00", "1", "0", "2.00"]
    assert cells["g/A f32 3 #0"][-2:] == ["it", "copies."]
    assert "5.0e-01" in cells["g/A f32 4 #1"]
    assert "operator" in cells["g/B f32 5 #2"]
    assert any("seed 3: all  2  1.00  1  0  2.00" in line for line in lines)


def test_drawn_networks_train_as_in_pytorch():
    pytest.importorskip("torch")
    assert training_drawn.draw(3, 1) == training_drawn.draw(3, 1) != training_drawn.draw(3, 2)
    kinds = {k for index in range(40) for k, _ in training_drawn.draw(3, index)[2]}
    assert kinds >= {"conv", "spread", "max", "mean", "norm", "gelu", "dense"}
    for index in (0, 4):
        _, shape, layers = training_drawn.draw(3, index)
        rng = np.random.default_rng(0)
        weights, x = training_drawn.weights_of(layers, rng), rng.normal(size=shape).astype("f4")
        ours, theirs = (
            step(layers, weights, x)
            for step in (training_drawn.relay_step, training_drawn.torch_step)
        )
        for _ in range(3):
            assert ours() == pytest.approx(theirs(), rel=training_drawn.TOLERANCE)
