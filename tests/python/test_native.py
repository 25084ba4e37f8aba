"""Functions between kernels as machine code: the same results, errors and limits as in the interpreter."""

import re
import signal
import subprocess
import sys
import time

import pytest
from command_line import RELAY, relay, relay_json

PROGRAMS = {
    "fibonacci": (
        """
def @fib(%n: int64) -> int64 {
  if (%n < 2i64) { %n } else { @fib(%n - 1i64) + @fib(%n - 2i64) }
}
def @main(%n: int64) -> int64 { @fib(%n) }
""",
        [(0,), (1,), (20,)],
    ),
    "ackermann": (
        """
def @ack(%m: int64, %n: int64) -> int64 {
  if (%m == 0i64) { %n + 1i64 } else {
    if (%n == 0i64) { @ack(%m - 1i64, 1i64) } else { @ack(%m - 1i64, @ack(%m, %n - 1i64)) } }
}
def @main(%m: int64, %n: int64) -> int64 { @ack(%m, %n) }
""",
        [(2, 3), (0, 7)],
    ),
    "integers": (
        """
def @down(%n: int64, %a: int32, %b: int32) -> int32 {
  if (%n <= 0i64) { maximum(%a, %b) } else {
    let %r = @down(%n - 1i64, %a * 2147483 + %b, minimum(%b - %a, 99));
    if (logical_and(%r != %a, %b < 1000000)) {
      %r * %r - left_shift(%a, 3)
    } else {
      bitwise_xor(%r, %b)
    }
  }
}
def @main(%n: int64, %a: int32) -> int32 { @down(%n, %a, -3) }
""",
        [(2, 7), (40, -7), (9, -(2**31))],
    ),
    "floats": (
        """
def @series(%n: int64, %x: float64, %y: float32) -> float64 {
  if (%n == 0i64) { %x } else {
    let %rest = @series(%n - 1i64, %x / 3f64, %y * 0.5f);
    if (%y < 0.01f) { %rest + cast(%y, dtype="float64") } else { %rest * 1.5f64 - %x }
  }
}
def @main(%n: int64, %x: float64) -> float64 { @series(%n, %x, 3f) }
""",
        [(30, 1e-300), (200, 1e300), (3, -0.0)],
    ),
    "lists": (
        """
def @count(%n: int64) -> List[int64] {
  if (%n == 0i64) { Nil } else { Cons(%n, @count(%n - 1i64)) }
}
def @main(%n: int64, %k: int64) -> (int64, List[int64]) {
  let %scaled = @map(fn (%x: int64) -> int64 { %x * %k }, @count(%n));
  (@foldl(fn (%a: int64, %x: int64) -> int64 { %a * 3i64 + %x }, 0i64, %scaled), %scaled)
}
""",
        [(0, 2), (5, 2**59), (40, -3)],
    ),
    "trees": (
        """
type Tree2 { Leaf(int64), Node(Tree2, Tree2), Empty }
def @grow(%n: int64, %x: int64) -> Tree2 {
  if (%n == 0i64) { if (%x > 3i64) { Leaf(%x) } else { Empty } } else {
    let %t = @grow(%n - 1i64, %x + 1i64);
    Node(%t, Node(@grow(%n - 1i64, %x), %t))
  }
}
def @total(%t: Tree2) -> int64 {
  match (%t) {
    Node(Leaf(%a), Node(Leaf(%b), _)) => %a * %b,
    Node(%l, %r) => @total(%l) + @total(%r),
    Leaf(%a) => %a,
    Empty => 100i64
  }
}
def @main(%n: int64) -> int64 { @total(@grow(%n, 0i64)) }
""",
        [(0,), (1,), (6,)],
    ),
    "closures": (
        """
def @twice[A](%f: fn (A) -> A) -> fn (A) -> A { fn (%x: A) -> A { %f(%f(%x)) } }
def @iterate(%n: int64, %f: fn (int64) -> int64, %x: int64) -> int64 {
  if (%n == 0i64) { %x } else { let %y = %f(%x); @iterate(%n - 1i64, @twice(%f), %y) }
}
def @main(%n: int64, %k: int64) -> int64 {
  @iterate(%n, fn (%x: int64) -> int64 { %x * 3i64 + %k }, 1i64)
}
""",
        [(0, 1), (4, 7)],
    ),
    "references": (
        """
def @fill(%n: int64, %r: ref(int64), %fs: List[fn () -> int64]) -> List[fn () -> int64] {
  if (%n == 0i64) { %fs } else {
    ref_write(%r, ref_read(%r) + %n);
    let %seen = ref_read(%r);
    @fill(%n - 1i64, %r, Cons(fn () -> int64 { %seen * ref_read(%r) }, %fs))
  }
}
def @main(%n: int64) -> List[int64] {
  let %r = ref(1i64);
  @map(fn (%f: fn () -> int64) -> int64 { %f() }, @fill(%n, %r, Nil))
}
""",
        [(0,), (6,)],
    ),
    "mutual tail calls": (
        """
def @even(%n: int64, %xs: List[int64]) -> bool {
  if (%n == 0i64) { True } else { @odd(%n - 1i64, %xs) }
}
def @odd(%n: int64, %xs: List[int64]) -> bool {
  if (%n == 0i64) { False } else { @even(%n - 1i64, %xs) }
}
def @main(%n: int64) -> bool { @even(%n, Cons(%n, Nil)) }
""",
        [(7,), (1_000_000,)],
    ),
    "extended gcd": (
        """
def @gcd(%a: int64, %b: int64) -> (int64, int64, int64) {
  if (%b == 0i64) { (%a, 1i64, 0i64) } else {
    let %r = @gcd(%b, floor_mod(%a, %b));
    (%r.0, %r.2, %r.1 - floor_divide(%a, %b) * %r.2)
  }
}
def @main(%a: int64, %b: int64) -> (int64, int64, int64) { @gcd(%a, %b) }
""",
        [(48, 36), (-(2**63), -1), (0, 0), (2**61 + 8, 24)],
    ),
    "quotients": (
        """
def @all(%n: int64, %a: int64, %b: int64, %c: int32, %d: int32,
         %xs: List[(int64, int64, int64, int64, int32, int32, int32, int32)])
  -> List[(int64, int64, int64, int64, int32, int32, int32, int32)] {
  if (%n == 0i64) { %xs } else {
    let %x = (divide(%a, %b), mod(%a, %b), floor_divide(%a, %b), floor_mod(%a, %b),
              divide(%c, %d), mod(%c, %d), floor_divide(%c, %d), floor_mod(%c, %d));
    @all(%n - 1i64, %a, %b + 1i64, %c, %d + 1, Cons(%x, %xs))
  }
}
def @main(%n: int64, %a: int64, %c: int32)
  -> List[(int64, int64, int64, int64, int32, int32, int32, int32)] {
  @all(%n, %a, -3i64, %c, -3, Nil)
}
""",
        [(7, 7, -7), (7, -(2**63), -(2**31)), (5, 2**63 - 1, 2**31 - 1)],
    ),
    "no match": (
        """
def @first(%n: int64, %xs: List[int64]) -> int64 {
  match? (%xs) {
    Cons(%x, _) => if (%n > 0i64) { @first(%n - 1i64, %xs) + %x } else { @first(%n, Nil) }
  }
}
def @main(%n: int64) -> int64 { @first(%n, Cons(%n, Nil)) }
""",
        [(2,)],
    ),
}


def write(folder, text):
    path = folder / "m.relay"
    path.write_text('#[version = "0.0.5"]\n' + text)
    return path


def outcome(path, case, *flags, timeout=60):
    """What a run says, without times: the code it ends with, outputs, errors."""
    main = re.search(r"def @main\((.*?)\)", path.read_text()).group(1)
    names = re.findall(r"%(\w+):", main)
    inputs = [f"--input={name}={value}" for name, value in zip(names, case, strict=True)]
    done = relay("run", path, "-q", *inputs, *flags, check=False, timeout=timeout)
    said = [line for line in done.stdout.splitlines() if not line.startswith(("time", "target"))]
    return done.returncode, said, done.stderr


def natives(path):
    functions = relay_json("explain", path)["functions"]
    return {f["function"] for f in functions if f["native"]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_and_the_interpreter_agree(name, tmp_path):
    text, cases = PROGRAMS[name]
    path = write(tmp_path, text)
    assert natives(path)
    for case in cases:
        native = outcome(path, case, "--verify")
        assert native == outcome(path, case, "--no-native")
        code, said, error = outcome(path, case, "--executor", "eval")
        assert (code, said) == native[:2]
        assert error[:12] == native[2][:12]


@pytest.mark.parametrize("level", [0, 1])
@pytest.mark.parametrize("name", PROGRAMS)
def test_native_code_agrees_at_low_levels(name, level, tmp_path):
    text, cases = PROGRAMS[name]
    path = write(tmp_path, text)
    flags = ("--opt-level", level)
    native = outcome(path, cases[-1], "--verify", *flags)
    assert native == outcome(path, cases[-1], "--no-native", *flags)


def test_what_is_not_held_is_named_with_its_reason(tmp_path):
    path = write(
        tmp_path,
        """def @scale(%n: int64, %x: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
  if (%n == 0i64) { %x } else { let %y = @scale(%n - 1i64, %x); exp(%y) * %x }
}
def @choose(%n: int64) -> int64 { if (%n > 3i64) { @choose(%n - 1i64) * 2i64 } else { %n } }
def @main(%n: int64, %x: Tensor[(3,), float32]) -> Tensor[(3,), float32] {
  @scale(@choose(%n), %x)
}
""",
    )
    said = relay("explain", path).stdout
    assert "function @scale is interpreted: it works on tensors" in said
    assert "function @choose is native" in said
    off = relay("explain", path, "--no-native").stdout
    assert "function @choose is interpreted: native code is off (--no-native)" in off
    assert "fn choose(s0: int64) -> int64" in relay("show", path, "--hostcode").stdout


def test_large_functions_are_interpreted_and_compile_in_time(tmp_path):
    lines = "".join(
        f"  let %x{i + 1} = if (%x{i} > {i}i64) {{ %x{i} - 1i64 }} else {{ %x{i} + %x0 }};\n"
        for i in range(1500)
    )
    path = write(tmp_path, f"def @main(%x0: int64) -> int64 {{\n{lines}  %x1500\n}}\n")
    start = time.perf_counter()
    (main,) = relay_json("explain", path)["functions"]
    assert main["reason"] == "it is too large for native code"
    assert time.perf_counter() - start < 20


def least_fuel(path, *flags):
    """The calls and iterations with which a program ends."""
    low, high = 0, 1
    run = ["run", path, "-q", "--input=n=5", *flags]
    while relay(*run, "--fuel", high, check=False).returncode != 0:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        done = relay(*run, "--fuel", middle, check=False)
        low, high = (low, middle) if done.returncode == 0 else (middle, high)
        assert done.returncode == 0 or "E0606" in done.stderr
    return high


# A function that calls kernels is interpreted, and enters native functions.
MIXED = """
def @fib(%n: int64) -> int64 {
  if (%n < 2i64) { %n } else { @fib(%n - 1i64) + @fib(%n - 2i64) }
}
def @steps(%n: int64, %x: Tensor[(3,), int64]) -> Tensor[(3,), int64] {
  if (%n == 0i64) { %x } else {
    let %y = @fib(%n);
    if (%y > 2i64) { @steps(%n - 1i64, %x * %y) } else { @steps(%n - 1i64, %x + %y) }
  }
}
def @main(%n: int64) -> Tensor[(3,), int64] { @steps(%n, full(1i64, shape=[3], dtype="int64")) }
"""


@pytest.mark.parametrize("name", ["fibonacci", "trees", "mixed"])
def test_executors_count_the_same_steps(name, tmp_path):
    texts = {"mixed": MIXED, "trees": PROGRAMS["trees"][0], "fibonacci": PROGRAMS["fibonacci"][0]}
    path = write(tmp_path, texts[name])
    assert "fib" in natives(path) or name == "trees"
    assert least_fuel(path) == least_fuel(path, "--no-native")


def test_without_address_space_for_a_stack_functions_are_interpreted(tmp_path):
    artifact = tmp_path / "fib.so"
    relay("compile", write(tmp_path, PROGRAMS["fibonacci"][0]), "-o", artifact)
    program = f"""
import resource
import numpy as np
import relay
exe = relay.runtime.load_module({str(artifact)!r})
pages = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (pages + (2 << 20), resource.RLIM_INFINITY))
assert int(np.asarray(exe(np.int64(20)))) == 6765
"""
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_program_without_control_flow_says_nothing_of_functions(tmp_path):
    text = "def @main(%x: Tensor[(3,), float32]) -> Tensor[(3,), float32] { exp(%x) }\n"
    assert "function @" not in relay("explain", write(tmp_path, text)).stdout


def test_artifacts_have_native_functions(tmp_path, monkeypatch):
    artifact = tmp_path / "fib.so"
    path = write(tmp_path, PROGRAMS["fibonacci"][0])
    relay("compile", path, "-o", artifact)
    assert natives(artifact) == natives(path) == {"fib", "main"}
    relay("check", artifact)
    shown = relay("run", artifact, "--input", "n=20").stdout
    assert "6765" in shown
    monkeypatch.setenv("RELAY_NATIVE", "0")
    assert "6765" in relay("run", artifact, "--input", "n=20").stdout


DEEP = """
def @deep(%n: int64) -> int64 { if (%n == 0i64) { 0i64 } else { 1i64 + @deep(%n - 1i64) } }
def @main(%n: int64) -> int64 { @deep(%n) }
"""


def test_depth_is_memory(tmp_path):
    path = write(tmp_path, DEEP)
    assert natives(path) == {"deep", "main"}
    assert "1000000" in " ".join(outcome(path, (1_000_000,))[1])

    # How many calls the memory holds is a matter of the frames.
    def counted(*options):
        code, values, errors = outcome(path, (10**12,), *options)
        return code, values, re.sub(r"and \d+ more calls", "and more calls", errors)

    native = counted()
    assert "E0604" in native[2] and "the calls nest too deep" in native[2]
    assert "and more calls" in native[2]
    assert native == counted("--no-native")
    limited = outcome(path, (10**12,), "--memory-limit", "300M")
    assert "E0604" in limited[2] and "memory limit" in limited[2]


ENDLESS = {
    "lists": """
def @more(%n: int64, %xs: List[int64]) -> List[int64] {
  if (%n < 0i64) { %xs } else { @more(%n + 1i64, match (%xs) { Nil => Cons(%n, Nil), Cons(_, %r) => %r }) }
}
def @main(%n: int64) -> List[int64] { @more(%n, Nil) }
""",
    "calls": """
def @a(%n: int64) -> int64 { if (%n == 0i64) { 1i64 } else { @a(%n - 1i64) + @a(%n - 1i64) } }
def @main(%n: int64) -> int64 { @a(%n + 60i64) }
""",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_limits_end_native_code(name, tmp_path):
    path = write(tmp_path, ENDLESS[name])
    assert natives(path)
    assert "E0606" in outcome(path, (0,), "--fuel", 100_000)[2]
    artifact = tmp_path / "m.so"
    relay("compile", path, "-o", artifact)
    start = time.perf_counter()
    ended = relay("run", artifact, "--input=n=0", "--time-limit", 2, check=False)
    assert "E0615" in ended.stderr
    # 50 ms beyond the start of the process, on a machine that may be busy.
    assert time.perf_counter() - start < 2 + 2


@pytest.mark.parametrize("name", ENDLESS)
def test_ctrl_c_ends_native_code(name, tmp_path):
    artifact = tmp_path / "m.so"
    relay("compile", write(tmp_path, ENDLESS[name]), "-o", artifact)
    child = subprocess.Popen([RELAY, "run", str(artifact), "--input=n=0"], stderr=subprocess.PIPE)
    time.sleep(1)
    assert child.poll() is None
    sent = time.perf_counter()
    child.send_signal(signal.SIGINT)
    child.wait(10)
    assert time.perf_counter() - sent < 1
