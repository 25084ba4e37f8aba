"""Nothing of the compiler's is left when a program ends, whatever it kept.

Each use is a process of its own: beside torch, a pytest session leaves the values of its `parametrize`
alive, of any class, and nanobind reports those that are Relay's when the whole suite ends.
"""

import subprocess
import sys
import textwrap

import pytest

HEAD = """
import numpy as np
import relay
from relay import te, transform

x = relay.var("x", shape=(3,))
data = np.ones(3, "float32")
"""
USES = {
    "programs": """
        f = relay.Function([x], relay.exp(x) * 2.0)
        mod = relay.IRModule.from_expr(f)
        kept = {f.body: mod, "text": relay.parse(mod.astext())}
        run = relay.build(mod)
        out = run(data)
        slow = relay.create_executor("debug", mod).evaluate()
        slow(data)
        loop = [run, slow]
        loop.append(loop)
    """,
    "values": """
        text = '#[version = "0.0.5"]\\ndef @main() -> List[int32] { Cons(1, Cons(2, Nil)) }'
        mod = relay.parse(text)
        values = relay.build(mod)(), relay.create_executor("debug", mod).evaluate()()
    """,
    "functions": """
        @relay.function
        def scaled(v, w):
            total = v
            for i in range(3):
                total = total * w
            return total

        scaled(data, data)

        @relay.function
        def loss(v):
            return (scaled(v, v) * v).sum()

        gradient = relay.value_and_grad(loss)
        gradient(data)
        scaled.me = scaled
    """,
    "operators": """
        @relay.register_op("mylib.swish")
        def swish(v):
            return v * relay.sigmoid(v) + kept

        kept = relay.const(1.0)
        relay.build(relay.Function([x], swish(x)))(data)

        @relay.prim_func(outputs=2)
        def both(
            v: relay.Tensor[("n",), "float32"],
            a: relay.Tensor[("n",), "float32"],
            b: relay.Tensor[("n",), "float32"],
        ):
            for i in range(v.shape[0]):
                a[i] = v[i]
                b[i] = v[i] * 2

        both(data)
        tensor = te.compute((3,), lambda i: te.placeholder((3,))[i])
        schedule = te.Schedule(
            te.create_prim_func([p := te.placeholder((3,))], te.compute((3,), lambda i: p[i]))
        )
    """,
    "passes": """
        @transform.function_pass(opt_level=0, name="mylib.Keep")
        def keep(func, mod, ctx):
            seen.append((func, mod))
            return func

        class See(transform.PassInstrument):
            def run_after_pass(self, mod, info):
                seen.append(mod)
                self.me = self

        seen = []
        transform.add_pass(keep, "after:import")
        context = transform.PassContext(instruments=[See()])
        context.__enter__()
        relay.build(relay.Function([x], relay.exp(x)), progress=lambda *told: seen.append(x))
    """,
    "exceptions": """
        kept = []

        def failing(v):
            mine = relay.exp(v)
            raise LookupError(mine)

        operator = relay.register_op("mylib.failing", failing)
        for wrong in (
            lambda: operator(x),
            lambda: relay.parse('#[version = "0.0.5"]\\ndef @main() { nope }'),
            lambda: relay.nn.dense(x, x),
            lambda: relay.build(relay.Function([x], x))(np.ones(4, "float32")),
        ):
            try:
                wrong()
            except Exception as problem:
                kept.append(problem)
        assert len(kept) == 4
    """,
}


@pytest.mark.parametrize("use", USES)
def test_nothing_leaks(use, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(HEAD + textwrap.dedent(USES[use]))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_beside_a_library_that_keeps_typing(tmp_path):
    program = tmp_path / "program.py"
    # As some extension modules do: what typing remembers stays when the interpreter ends.
    keeps = "import ctypes, typing\nctypes.pythonapi.Py_IncRef(ctypes.py_object(typing._overload_registry))\n"
    program.write_text(keeps + HEAD + textwrap.dedent(USES["functions"]))
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_leak_is_seen(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        HEAD + "import ctypes\nctypes.pythonapi.Py_IncRef(ctypes.py_object(relay.exp(x)))\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True)
    assert "leaked 1 instances" in done.stderr
