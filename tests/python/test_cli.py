"""What every command of `relay` does when it is used as it should be."""

import json
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pexpect
import pytest
from command_line import PROGRAM, RELAY, relay, relay_json, small_model

COMMANDS = ("compile", "run", "bench", "explain", "show", "check", "opt", "fmt", "cache", "plugins")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with program.relay, model.onnx and what they compile to, which no test changes."""
    folder = tmp_path_factory.mktemp("cli")
    (folder / "program.relay").write_text(PROGRAM)
    onnx.save(small_model(), folder / "model.onnx")
    for name in ("program.relay", "model.onnx"):
        relay("compile", folder / name, "-o", folder / (name.split(".")[0] + ".so"))
    return folder


def test_help_and_version():
    assert relay("--version").stdout.startswith("relay ")
    text = relay("--help").stdout
    for command in COMMANDS:
        assert command in text
        assert command in relay(command, "--help").stdout
    assert "--random-inputs" in relay("--help-all").stdout


@pytest.mark.parametrize(
    ("args", "mentions"),
    [
        ((), ["no command", "--help"]),
        (("fly",), ["'fly'"]),
        (("runn", "a.relay"), ["'runn'", "did you mean run?"]),
        (("--verbose", "run"), ["'--verbose'", "before the command"]),
        (("run",), ["MODEL is missing", "relay run [OPTIONS] MODEL"]),
        (("compile", "a.relay"), ["--output is missing"]),
        (("run", "a.relay", "--opt-level", "9"), ["--opt-level", "from 0 to 3", "'9'"]),
        (("run", "a.relay", "--opt-level=x"), ["--opt-level", "a whole number", "'x'"]),
        (("run", "a.relay", "--opt-levle", "1"), ["'--opt-levle'", "did you mean --opt-level?"]),
        (("run", "a.relay", "--opt-level"), ["--opt-level needs a value"]),
        (("bench", "a.relay", "--target", "--profile"), ["--target needs a value"]),
        (("run", "a.relay", "--target=a", "--target=b"), ["--target is given twice"]),
        (("bench", "a.relay", "--trace", ""), ["the value of --trace is empty"]),
        (("run", ""), ["the value of MODEL is empty"]),
        (("run", "a.relay", "--json=yes"), ["--json takes no value", "'yes'"]),
        (("run", "a.relay", "b.relay"), ["unexpected argument 'b.relay'", "no more than MODEL"]),
        (("run", "a.relay", "--executor", "vmm"), ["--executor", "vm, eval", "did you mean vm?"]),
        (("show", "--wrong"), ["relay show has no option '--wrong'", "relay show --help"]),
        (("show", "-x"), ["relay show has no option '-x'"]),
        (("fmt", "--check", "-i", "a.relay"), ["--in-place and --check exclude each other"]),
        (("bench", "--compare", "a.json"), ["--compare needs 2 values"]),
        (("completion", "tcsh"), ["bash, zsh, fish", "'tcsh'"]),
        (("man", "x"), ["unexpected argument 'x'"]),
        (("run", "a.relay", "\x1b[31m"), ["\\x1B[31m"]),
    ],
)
def test_wrong_usage_names_the_word_and_is_exit_code_2(args, mentions):
    done = relay(*args, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error[E0704]: ") and not done.stdout
    assert len(done.stderr.splitlines()) == 2, "more than a message:\n" + done.stderr
    for text in mentions:
        assert text in done.stderr, f"{text!r} is not in:\n{done.stderr}"


def test_every_wrong_word_is_named():
    done = relay("run", "a.relay", "b", "--opt-level=7", "--fast", "now", check=False)
    assert done.returncode == 2 and done.stderr.count("error[E0704]") == 3
    assert "'now'" not in done.stderr, "perhaps the value of --fast"


def test_words_are_read_as_everywhere(files, tmp_path):
    """Options anywhere, values behind a blank or "=", short options together, -- before names."""
    out = tmp_path / "-q.so"
    relay("compile", "-q", "--opt-level=1", f"-o{out}", "--", files / "program.relay")
    assert out.exists()
    relay("compile", files / "program.relay", "-qo", tmp_path / "b.so")
    done = relay("run", "--", "-q.so", cwd=tmp_path)
    assert "output" in done.stdout


def test_help_says_every_option_with_its_default():
    text = relay("run", "--help").stdout
    assert text.startswith("Run a model or a compiled file\nUsage: relay run [OPTIONS] MODEL\n")
    assert "--opt-level LEVEL" in text and "[3]" in text and "-q, --quiet" in text
    assert max(map(len, text.splitlines())) <= 100
    whole = relay("--help-all").stdout
    assert all(relay(c, "--help").stdout in whole for c in COMMANDS)


def test_compile_summary_names_the_target_first(files, tmp_path):
    out = relay("compile", files / "model.onnx", "-o", tmp_path / "m.so").stdout
    assert out.startswith("target ")
    for word in ("functions", "kernels", "constants", "arena", "optimize", "generate", "link"):
        assert word in out
    assert (tmp_path / "m.so").read_bytes()[:4] == b"\x7fELF"


def test_compile_json(files, tmp_path):
    report = relay_json("compile", files / "model.onnx", "-o", tmp_path / "m.so")
    assert report["kernels"] >= 2 and report["arena_bytes"] > 0 and report["constants"] >= 2
    assert abs(sum(report["seconds"].values()) - report["total_seconds"]) < 1e-6


def test_same_input_gives_the_same_bytes(files, tmp_path):
    for name in ("a.so", "b.so"):
        relay("compile", files / "model.onnx", "-o", tmp_path / name)
    assert (tmp_path / "a.so").read_bytes() == (tmp_path / "b.so").read_bytes()


def test_output_is_overwritten_only_by_force(files, tmp_path):
    out = tmp_path / "m.so"
    out.write_text("precious")
    done = relay("compile", files / "model.onnx", "-o", out, check=False)
    assert done.returncode == 1 and "--force" in done.stderr
    assert out.read_text() == "precious"
    relay("compile", files / "model.onnx", "-o", out, "--force")
    assert out.read_bytes()[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "args",
    [
        ("--help",),
        ("--version",),
        ("man",),
        ("completion", "bash"),
        ("cache",),
        ("opt", "--list"),
        ("opt", "program.relay"),
        ("opt", "program.relay", "--print-after-all"),
        ("fmt", "program.relay"),
        ("check", "program.relay"),
        ("check", "program.relay", "--json"),
        ("show", "model.onnx"),
        ("show", "model.so"),
        ("run", "program.relay"),
        ("run", "model.so", "--json"),
        ("bench", "program.so", "--repeat=1"),
        ("explain", "program.so"),
    ],
)
def test_output_that_nobody_gets_is_an_error(files, args):
    for full in (True, False):  # a full disk, and a closed descriptor
        command = shlex.join([RELAY, *args]) + (" > /dev/full" if full else " >&-")
        done = subprocess.run(
            ["bash", "-c", command], cwd=files, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 1, done
        assert "error[E0705]: standard output cannot be written" in done.stderr


def test_silence_in_a_pipe(files, tmp_path):
    for args in (
        ("compile", files / "model.onnx", "-o", tmp_path / "m.so"),
        ("run", files / "model.onnx"),
    ):
        done = relay(*args)
        assert done.stderr == ""
        assert "\r" not in done.stdout and "\x1b" not in done.stdout


def test_progress_on_a_terminal(files, tmp_path):
    ours, theirs = os.openpty()
    done = subprocess.Popen(
        [RELAY, "compile", files / "model.onnx", "-o", tmp_path / "m.so"],
        stdout=subprocess.DEVNULL,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm"},
    )
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # what Linux gives when the other side is closed
        pass
    os.close(ours)
    assert done.wait(60) == 0
    assert b"generate" in shown


def test_run_invents_inputs(files):
    out = relay("run", files / "model.onnx").stdout
    assert out.startswith("target ")
    assert (
        "not given: random values" in out and "scores" in out and "GFLOP/s" in out and "peak" in out
    )


def test_compiled_and_source_run_alike(files):
    reports = [
        relay_json("run", files / f, "--random-inputs", 7) for f in ("model.onnx", "model.so")
    ]
    assert reports[0]["outputs"] == reports[1]["outputs"]
    assert reports[0]["outputs"][0]["shape"] == [1, 5]
    other = relay_json("run", files / "model.so", "--random-inputs", 8)
    assert other["outputs"][0]["digest"] != reports[0]["outputs"][0]["digest"]


@pytest.mark.parametrize("program", ["program.relay", "program.so"])
def test_run_reads_and_writes_arrays(files, tmp_path, program):
    random = np.random.default_rng(0)
    x = random.standard_normal((2, 3)).astype(np.float32)
    w = random.standard_normal((4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "w.npy", np.asfortranarray(w))
    given = ("--input", f"x={tmp_path}/x.npy", "--input", f"w={tmp_path}/w.npy")
    relay("run", files / program, *given, "--output", tmp_path / "out")
    (written,) = (tmp_path / "out").iterdir()
    np.testing.assert_allclose(np.load(written), np.maximum(x @ w.T, 0), rtol=1e-5, atol=1e-6)
    again = relay("run", files / program, *given, "--output", tmp_path / "out", check=False)
    assert again.returncode == 1 and "--force" in again.stderr
    relay("run", files / program, *given, "--output", tmp_path / "out", "--force")


def test_bench(files, tmp_path):
    for runs in (9, 10):  # nine runs have no slowest tenth
        report = relay_json("bench", files / "model.so", "--repeat", runs)
        slow = report["p90_seconds"] > 1.25 * report["min_seconds"]
        assert report["noisy"] == (runs == 10 and slow)
    out = relay(
        "bench", files / "model.so", "--repeat", 5, "--profile", "--trace", tmp_path / "t.json"
    ).stdout
    assert "median" in out and "p90" in out and "GFLOP/s" in out
    trace = json.loads((tmp_path / "t.json").read_text())
    events = trace["traceEvents"] if isinstance(trace, dict) else trace
    assert any("conv" in str(e.get("name", "")) for e in events)


def test_a_profile_sums_up_what_takes_little(tmp_path):
    small = [f"%x{n}: Tensor[({n},), float32]" for n in range(2, 7)]
    softmax = ", ".join(f"nn.softmax(%x{n})" for n in range(2, 7))
    (tmp_path / "p.relay").write_text(
        '#[version = "0.0.5"]\n'
        f"def @main(%x: Tensor[(1024, 1024), float32], {', '.join(small)}) {{\n"
        f"  (nn.dense(%x, %x), {softmax})\n}}\n"
    )
    bench = ("bench", tmp_path / "p.relay", "--repeat", 3, "--threads", 1, "--profile")
    out = relay(*bench).stdout
    assert re.search(r"^5 other kernels +5 .* 0\.\d", out, re.MULTILINE), out
    assert re.search(r"^nn_softmax +5 +5 +0\.\d", out, re.MULTILINE), out
    assert "other kernels" not in relay(*bench, "--wide").stdout
    report = relay_json(*bench)
    assert len(report["kernels"]) >= 6
    assert all(k["mean_seconds"] >= k["seconds"] for k in report["kernels"])


def test_reports_of_several_sizes_are_compared(tmp_path):
    (tmp_path / "p.relay").write_text(
        '#[version = "0.0.5"]\ndef @main[n: Dim](%x: Tensor[(n, 8), float32]) { nn.softmax(%x) }\n'
    )
    for name, sizes in (("a", "1,4"), ("b", "4,1"), ("c", "7,8")):
        done = relay("bench", tmp_path / "p.relay", "--dim", f"n={sizes}", "--repeat", 3, "--json")
        (tmp_path / f"{name}.json").write_text(done.stdout)
    reports = [json.loads((tmp_path / f"{name}.json").read_text()) for name in "ab"]
    out = relay("bench", "--compare", tmp_path / "a.json", tmp_path / "b.json").stdout
    shown = re.findall(r"^n=(\d) min_seconds .* ([\d.]+)$", out, re.MULTILINE)
    assert [size for size, _ in shown] == ["1", "4"], out
    one, other = (
        next(line["min_seconds"] for line in r["sizes"] if line["dims"]["n"] == 4) for r in reports
    )
    assert float(shown[1][1]) == pytest.approx(one / other, abs=2e-3)
    other = relay("bench", "--compare", tmp_path / "a.json", tmp_path / "c.json").stdout
    assert "n=" not in other and "load_seconds" in other


@pytest.mark.parametrize("width", [80, 100, 132, 200])
def test_a_profile_fits_the_terminal(files, tmp_path, width):
    """Columns that do not fit are left out and named; nothing is written beside the table."""
    import pexpect

    bench = ["bench", str(files / "model.so"), "--repeat", "3", "--profile"]
    child = pexpect.spawn(
        RELAY, bench, cwd=tmp_path, dimensions=(60, width), encoding="utf-8", timeout=120
    )
    out = re.sub(r"\x1b\[[0-9;]*[mK]", "", child.read()).replace("\r\n", "\n")
    table = out[out.index("kernel  ") :].split("\n\n")[0].splitlines()
    assert len(table) > 1 and max(map(len, table)) <= width, out
    header = table[0].split("  ")
    assert {"kernel", "time", "% of limit"} <= {h.strip() for h in header}
    if width == 80:
        assert "left out for the width of the terminal: data, GB/s" in out
    assert "left out" not in out or width < 200
    assert not list(tmp_path.iterdir())


def test_wide_is_of_a_profile(files):
    problem = relay("bench", files / "model.so", "--wide", check=False).stderr
    assert "E0702" in problem and "--wide shows the table of --profile" in problem


def test_show_text_reads_back(files, tmp_path):
    relay("show", files / "model.onnx", "-o", tmp_path / "m.relay")
    relay("check", tmp_path / "m.relay")
    outputs = [
        relay_json("run", f)["outputs"][0]["digest"]
        for f in (files / "model.onnx", tmp_path / "m.relay")
    ]
    assert outputs[0] == outputs[1]


def test_show_formats(files):
    model = files / "model.onnx"
    assert "nn.conv2d" in relay("show", model).stdout
    shown = json.loads(relay("show", model, "--format", "json").stdout)
    assert shown["functions"][0]["name"] == "main"
    dot = relay("show", model, "--format", "dot").stdout
    assert dot.startswith("digraph") and dot.count("{") == dot.count("}")
    html = relay("show", model, "--format", "html").stdout
    assert html.lstrip().lower().startswith("<!doctype html>")
    assert "nn.conv2d" in html
    # Self-contained: nothing is loaded from anywhere.
    assert not re.search(r"""(src|href)\s*=\s*["']?(https?:)?//""", html)


def test_show_stages(files):
    model = files / "model.onnx"
    assert "Primitive=1" in relay("show", model, "--after", "FuseOps").stdout
    assert "Primitive=1" not in relay("show", model, "--after", "FoldConstant").stdout
    assert "for " in relay("show", model, "--tir").stdout
    assert "define " in relay("show", model, "--llvm").stdout
    assert re.search(r"^\s+ret", relay("show", model, "--asm").stdout, re.MULTILINE)
    assert "invoke_kernel" in relay("show", model, "--bytecode").stdout
    plan = relay("show", model, "--plan", "--verify").stdout
    assert plan.startswith("plan main(") and "return outputs" in plan


def test_show_artifact_tells_where_it_came_from(files):
    out = relay("show", files / "model.so").stdout
    for line in (
        "compiler: relay ",
        "target: ",
        "source: model.onnx",
        "source_hash: ",
        "opt_level: 3",
    ):
        assert line in out
    assert str(files) not in out
    described = json.loads(relay("show", files / "model.so", "--format", "json").stdout)
    assert described["kernels"][0]["origin"]


def test_check(files, tmp_path):
    relay("check", files / "program.relay")
    bad = tmp_path / "bad.relay"
    bad.write_text(PROGRAM.replace("(4, 3)", "(4, 5)"))
    done = relay("check", bad, check=False)
    assert done.returncode == 1
    assert "^" in done.stderr + done.stdout and "bad.relay:3" in done.stderr + done.stdout
    done = relay("check", bad, "--json", check=False)
    assert done.returncode == 1
    assert "E02" in json.dumps(json.loads(done.stdout))


def test_check_of_several_files(files, tmp_path):
    (tmp_path / "bad.relay").write_text(PROGRAM.replace("(4, 3)", "(4, 5)"))
    paths = [files / "program.relay", tmp_path / "bad.relay", files / "model.so"]
    done = relay("check", *paths, check=False)
    assert done.returncode == 1
    assert "program.relay is well-typed" in done.stdout and "intact artifact" in done.stdout
    assert "bad.relay:3" in done.stderr
    done = relay("check", *paths, "--json", check=False)
    assert done.returncode == 1
    assert [r["ok"] for r in json.loads(done.stdout)] == [True, False, True]


@pytest.mark.parametrize("through", ["pipe", "file"])
def test_a_model_from_standard_input(files, through):
    def given(name, *args):
        with open(files / name, "rb") as file:
            source = {"input": file.read()} if through == "pipe" else {"stdin": file}
            return subprocess.run([RELAY, *args], capture_output=True, check=False, **source)

    for name in ("program.relay", "model.onnx", "model.so"):
        assert given(name, "check", "-").returncode == 0
        assert b"output" in given(name, "run", "-").stdout
    assert given("program.relay", "fmt", "-").stdout.startswith(b"#[version")
    refused = given("program.relay", "fmt", "-i", "-")
    assert refused.returncode == 1 and b"E0702" in refused.stderr


def test_opt(files, tmp_path):
    out = relay(
        "opt", files / "program.relay", "--passes", "FuseOps,ToANormalForm", "--verify"
    ).stdout
    assert "Primitive=1" in out and "let " in out
    (tmp_path / "o.relay").write_text(out)
    relay("check", tmp_path / "o.relay")
    done = relay("opt", files / "program.relay", "--time-passes", "--print-after-all")
    assert "FuseOps" in done.stdout + done.stderr
    for name in relay("opt", "--list").stdout.split():
        if name == "FuseOps":
            break
    else:
        pytest.fail("FuseOps is not listed")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell, tmp_path):
    script = relay("completion", shell).stdout
    for command in COMMANDS:
        assert command in script
    if shell == "bash":
        (tmp_path / "c").write_text(script)

        def completions(*words):
            line = f"COMP_WORDS=(relay {' '.join(words)}); COMP_CWORD={len(words)}"
            return subprocess.run(
                ["bash", "-c", f'source {tmp_path}/c; {line}; _relay; echo "${{COMPREPLY[@]}}"'],
                capture_output=True,
                text=True,
                check=True,
            ).stdout.split()

        assert "compile" in completions("comp")
        assert completions("show", "m.onnx", "--format", "h") == ["html"]
        assert "x86-64-v3" in completions("compile", "m.onnx", "--target", "x86")
        assert completions("show", "m.onnx", "--after", "FuseO") == ["FuseOps"]
        assert completions("opt", "--passes", "InferType,FoldC") == ["InferType,FoldConstant"]


def test_a_terminal_completes_words(tmp_path):
    """Completion in Bash by the Tab key."""
    child = pexpect.spawn(
        "bash",
        ["--noprofile", "--norc", "-i"],
        encoding="utf-8",
        timeout=30,
        cwd=tmp_path,
        env={"PATH": f"{Path(RELAY).parent}:{os.environ['PATH']}", "TERM": "dumb", "PS1": "$ "},
    )
    child.sendline('eval "$(relay completion bash)"; echo re""ady')
    child.expect_exact("ready")
    for typed, completed in (("show m.onnx --after FuseO", "FuseOps "), ("expl", "explain ")):
        child.send(f"relay {typed}\t")
        child.expect_exact(completed)
        child.sendcontrol("u")
    child.send("relay show --format \t\t")
    child.expect("html +json")
    child.sendcontrol("u")
    child.sendline("exit")
    child.expect(pexpect.EOF)


def test_man():
    page = relay("man").stdout
    assert page.startswith(".TH RELAY 1")
    for command in COMMANDS:
        assert f".SS {command}" in page
    assert "\\fB\\-o\\fR, \\fB\\-\\-output\\fR \\fIFILE\\fR" in page
    if groff := shutil.which("groff"):
        shown = subprocess.run(
            [groff, "-man", "-Tascii", "-ww"],
            input=page,
            capture_output=True,
            text=True,
            check=True,
        )
        assert not shown.stderr and "--disable-pass" in re.sub(".\b", "", shown.stdout)


def test_the_runtime_can_open_no_socket():
    """Nothing of the network is among the functions that the runtime library calls."""
    package = pytest.importorskip("relay")
    (library,) = Path(package.__file__).parent.rglob("librelay_runtime.so")
    listed = subprocess.run(
        ["nm", "-D", "--undefined-only", library], capture_output=True, text=True, check=True
    ).stdout
    called = {line.split()[-1].split("@")[0] for line in listed.splitlines()}
    assert "mmap" in called
    assert not called & {"socket", "connect", "bind", "listen", "accept", "getaddrinfo", "sendto"}


UNTIDY = """#[version="0.0.5"]
// the entry
def @main(%x:Tensor[(2,3),float32]) {let %y=nn.relu( %x );  // never negative
if(True){%y+1f}else{%y}}
"""
TIDY = """#[version = "0.0.5"]
// the entry
def @main(%x: Tensor[(2, 3), float32]) {
  let %y = nn.relu(%x);  // never negative
  if (True) { %y + 1f } else { %y }
}
"""


def test_fmt_writes_the_canonical_layout(tmp_path):
    (tmp_path / "a.relay").write_text(UNTIDY)
    (tmp_path / "b.relay").write_text(TIDY)
    assert relay("fmt", tmp_path / "a.relay").stdout == TIDY
    assert (tmp_path / "a.relay").read_text() == UNTIDY

    done = relay("fmt", "--check", "a.relay", "b.relay", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert done.stdout == "a.relay is not in canonical layout\n"

    assert relay("fmt", "-i", tmp_path / "a.relay", tmp_path / "b.relay").stdout == ""
    assert (tmp_path / "a.relay").read_text() == (tmp_path / "b.relay").read_text() == TIDY
    relay("fmt", "--check", tmp_path / "a.relay", tmp_path / "b.relay")


def test_fmt_leaves_a_file_that_it_cannot_read(tmp_path):
    (tmp_path / "bad.relay").write_text('#[version = "0.0.5"]\ndef @main( {')
    (tmp_path / "good.relay").write_text(UNTIDY)
    done = relay("fmt", "-i", "bad.relay", "good.relay", "none.relay", cwd=tmp_path, check=False)
    assert done.returncode == 1
    assert "error[E0101]" in done.stderr and "error[E0701]" in done.stderr
    assert (tmp_path / "bad.relay").read_text().endswith("def @main( {")
    assert (tmp_path / "good.relay").read_text() == TIDY


VALUES = """#[version = "0.0.5"]
type Chain[A] { Link(A, Chain[A]), End }
def @count(%n: int32, %rest: Chain[int32]) -> Chain[int32] {
  if (%n == 0) { %rest } else { @count(%n - 1, Link(%n, %rest)) }
}
def @main() {
  (@count(2, End), -2.5f, True, ones(shape=[2, 2], dtype="int64"), ref((3, ())), @count,
   @count(COUNT, End))
}
"""


@pytest.mark.parametrize("level", [0, 3])
@pytest.mark.parametrize("executor", ["eval", "vm"])
def test_run_shows_the_value_of_a_program_without_inputs(tmp_path, executor, level):
    """In the notation of the language; long lists by both ends."""
    program = tmp_path / "values.relay"
    program.write_text(VALUES.replace("COUNT", "200000"))
    out = relay("run", program, "--executor", executor, "--opt-level", level).stdout
    start = (
        "(Link(1, Link(2, End)), -2.5, True, [[1, 1], [1, 1]], ref((3, ())), "
        "<@count: fn (int32, Chain[int32]) -> Chain[int32]>, Link(1, Link(2, "
    )
    assert out.startswith(start), out[:1000]
    assert " more ... Link(" in out
    assert out.endswith("Link(199999, Link(200000, End" + ")" * 100 + "\n"), out[-300:]
    assert len(out) < 4000


def test_check_reports_mistakes_of_the_text_and_of_types_together(tmp_path):
    (tmp_path / "bad.relay").write_text(
        """#[version = "0.0.5"]
def @main(%x: float32) -> float32 {
  let %a = %x + ;
  let %b = nn.relux(%x);
  nn.relu(%a) %b
}
def @caller() { @main(1f) }
def @shapes(%x: Tensor[(2, 3), float32], %y: Tensor[(4, 5), float32]) { %x + %y }
"""
    )
    found = relay("check", tmp_path / "bad.relay", "--json", check=False)
    report = json.loads(found.stdout)
    places = [(d["code"], d["place"].split(":")[-2]) for d in report["diagnostics"]]
    assert places == [("E0101", "3"), ("E0105", "4"), ("E0101", "5"), ("E0203", "8")]


def test_errors_of_commands_with_json_are_json(tmp_path):
    bad = tmp_path / "bad.relay"
    bad.write_text(PROGRAM.replace("nn.relu", "nn.rele"))
    for name in ("run", "compile", "explain", "bench"):
        more = ["-o", tmp_path / "out.so"] if name == "compile" else []
        done = relay(name, bad, *more, "--json", check=False)
        assert done.returncode == 1 and done.stderr == ""
        (error,) = json.loads(done.stdout)["errors"]
        assert error["code"] == "E0105" and error["place"].endswith("bad.relay:3:3")
        assert "nn.relu" in error["help"]


def usage_errors(*words: str) -> list[str]:
    """What is wrong with these words, each followed by a line of what to type."""
    done = relay(*words, check=False)
    assert done.returncode == 2 and done.stdout == "", (words, done)
    lines = done.stderr.splitlines()
    for wrong, advice in zip(lines[::2], lines[1::2], strict=True):
        assert wrong.startswith("error[E0704]: "), done.stderr
        assert re.match(r"  help:     \S", advice), f"{wrong}\nis not followed by what to type"
    return [line.removeprefix("error[E0704]: ") for line in lines[::2]]


def test_usage_errors_say_what_is_wrong_and_what_to_type():
    """Every option of every command: without its value, with an empty one, with one that it does not take."""
    commands = re.findall(r"^  ([a-z]+) ", relay("--help").stdout, re.M)
    assert set(COMMANDS) < set(commands)
    for command in commands:
        listed = relay(command, "--help").stdout.partition("\nOptions:\n")[2]
        options = re.findall(r"^  (?:-\w, )?(--[\w-]+)((?: [A-Z]\S*)*)", listed, re.M)
        options = [(name, value.split()) for name, value in options if name != "--help"]
        options.sort(key=lambda o: len(o[1]))  # one that takes two words would take the next option
        wrong = usage_errors(command, "--no-such-option", *(f"{name}=" for name, _ in options))
        assert wrong[0] == f"relay {command} has no option '--no-such-option'"
        for name, value in options:
            expected = (
                f"the value of {name} is empty" if value else f"{name} takes no value, not ''"
            )
            assert expected in wrong or f"{name} needs {len(value)} values" in wrong
        for name, value in options:
            if value:
                (wrong,) = usage_errors(command, name)
                assert wrong.startswith(f"{name} needs ")


def test_usage_errors_with_json_are_json():
    done = relay("run", "a.relay", "--opt-level", "9", "--json", check=False)
    assert done.returncode == 2 and done.stderr == ""
    (error,) = json.loads(done.stdout)["errors"]
    assert error["code"] == "E0704" and "--opt-level" in error["message"]
    assert "from 0 to 3" in error["help"]
