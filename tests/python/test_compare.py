"""benchmarks/compare.py: its tables, its arithmetic, and a short run with the reference engine."""

import json
import math

import compare
import numpy as np
import pytest
import worker


def row(engine, min_ms, model="dqn", threads=2, **more):
    return {
        "model": model,
        "threads": threads,
        "engine": engine,
        "flops": 2_000_000,
        "min_ms": min_ms,
        "median_ms": 1.1 * min_ms,
        "first_run_s": 0.01,
        "load_s": 0.005,
        "peak_run_mb": 50.0,
        "peak_load_mb": 60.0,
        "runs": 10,
        "scaled_error": 1e-6,
        **more,
    }


def results(*rows, **more):
    return compare.Results({"results": list(rows), **more})


def test_table_aligns_text_left_and_numbers_right():
    text = compare.table(["name", "ms"], [["a", "1.0"], ["longer", "10.0"]])
    assert text.splitlines() == ["name      ms", "a        1.0", "longer  10.0"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (1.0, "1.00="), (1.039, "1.04="), (1.06, "1.06 "), (0.5, "0.50 ")],
)
def test_ratio_marks_ties(value, text):
    assert compare.ratio(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0.01449, "0.0145"), (1.234, "1.23"), (152.2, "152"), (0, "0.00")]
)
def test_number_keeps_three_digits(value, text):
    assert compare.number(value) == text


def test_best_peer_is_never_relay():
    r = results(row("relay", 1.0), row("onnxruntime", 2.0), row("openvino", 4.0))
    assert r.best_peer("dqn", 2) == 2.0
    assert r.against("dqn", 2, "best", "min_ms") == 0.5
    assert r.against("dqn", 2, "openvino", "min_ms") == 0.25


def test_report_without_relay_shows_times_and_no_ratios():
    text = compare.report(results(row("onnxruntime", 2.0)))
    assert "2.00 / 2.20" in text
    assert "Relay / peer" not in text


def test_report_names_failures_and_share_of_peak():
    failed = {"model": "dqn", "threads": 2, "engine": "iree", "flops": 2_000_000, "error": "broke"}
    text = compare.report(
        results(row("relay", 1.0), row("onnxruntime", 2.0), failed, peak_gflops={"2": 4.0})
    )
    assert "dqn, 2 threads, iree: broke" in text
    assert "% of FMA peak" in text
    times = next(line for line in text.splitlines() if line.startswith("dqn  "))
    assert times.split()[-2:] == ["2.00", "50"]


def test_compare_takes_the_drift_of_the_machine_out():
    before = results(row("relay", 1.0), row("onnxruntime", 2.0))
    after = results(row("relay", 1.5), row("onnxruntime", 3.0))
    lines = compare.compare(before, after).splitlines()
    relay = next(line for line in lines if "relay" in line)
    assert relay.split()[3] == "1.50"
    assert relay.split()[-1] == "1.00="


def test_compare_of_nothing_in_common_says_so():
    text = compare.compare(results(row("relay", 1.0)), results(row("relay", 1.0, model="lstm")))
    assert "in common" in text


def test_agreement_is_scaled_and_sees_nan():
    reference = [np.array([0.0, 10.0], np.float32)]
    error = compare.agreement(reference, [np.array([0.1, 10.0], np.float32)])
    assert error["max_abs_error"] == pytest.approx(0.1)
    assert error["scaled_error"] == pytest.approx(0.01)
    bad = compare.agreement(reference, [np.array([0.0, np.nan], np.float32)])
    assert math.isinf(bad["scaled_error"])
    assert "shapes" in compare.agreement(reference, [np.zeros((1, 2), np.float32)])["wrong"]


def test_worker_that_ends_is_reported_with_its_last_words(tmp_path):
    # The engine's name is wrong, so the process ends on its own with a traceback.
    child = compare.Worker("nothing", 1, [0], tmp_path / "log")
    try:
        with pytest.raises(compare.WorkerError, match=r"exit code 1.*KeyError"):
            child.ask("memory")
    finally:
        child.close()


def test_worker_answers_errors_and_lives_on(tmp_path):
    child = compare.Worker(
        "onnxruntime", 1, [min(compare.os.sched_getaffinity(0))], tmp_path / "log"
    )
    try:
        with pytest.raises(compare.WorkerError, match="FileNotFoundError"):
            child.ask("load", path="none", inputs=str(tmp_path / "none.npz"), outputs="")
        assert child.ask("memory")["resident"] > 0
    finally:
        child.close()


def test_memory_reads_this_process():
    assert worker._memory("VmHWM") >= worker._memory("VmRSS") > 1_000_000


def test_short_run_writes_json_and_prints_tables(tmp_path, capsys):
    out = tmp_path / "out.json"
    arguments = ["--small", "--models", "dqn", "--engines", "onnxruntime", "--threads", "1"]
    arguments += ["--rounds", "2", "--burst", "0.02"]
    status = compare.main([*arguments, "--model-dir", str(tmp_path), "--json", str(out)])
    assert status == 0
    assert "1 thread ==" in capsys.readouterr().out
    (result,) = json.loads(out.read_text())["results"]
    assert 0 < result["min_ms"] <= result["median_ms"] <= result["p90_ms"]
    assert result["scaled_error"] == 0.0
    assert compare.main(["--compare", str(out), str(out)]) == 0
    assert "1.00=" in capsys.readouterr().out


def test_unknown_model_lists_the_models(capsys):
    with pytest.raises(SystemExit):
        compare.main(["--models", "resnet51"])
    assert "resnet50" in capsys.readouterr().err
