"""One engine in one process, driven by compare.py over a line protocol.

Each request and each reply is one line of JSON. Output of the engine itself goes to the standard error
stream, so that it cannot be mistaken for a reply.

    {"do": "compile", "model": F, "artifact": F}     -> {"seconds": s, "bytes": n}
    {"do": "load", "path": F, "inputs": F.npz, "outputs": F.npz}
                                                     -> {"seconds": s, "first_run": s, ...}
    {"do": "run", "seconds": s, "warmup": n, "clock": "wall" or "processor"}
                                                     -> {"ns": [t, ...]}
    {"do": "memory"}                                 -> {"peak_run": bytes, "resident": bytes}

A failure is {"error": text}. The end of the input ends the process.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import time
from pathlib import Path


def _memory(field: str) -> int:
    """Returns a size from the kernel's account of this process, in bytes."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) * 1024
    return 0


def _reset_peak() -> None:
    """Starts a new account of the peak; where that is not allowed, the peak includes loading."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        print("the memory peak could not be reset: it includes loading", file=sys.stderr)


def _end_with_parent() -> None:
    """Asks the kernel to end this process with its parent: a stopped one could not do so itself."""
    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


class Worker:
    def __init__(self, engine_name: str, threads: int) -> None:
        import numpy as np
        from engines import ENGINES

        self.np = np
        self.threads = threads
        self.engine = ENGINES[engine_name]()

    def compile(self, request: dict) -> dict:
        artifact = Path(request["artifact"])
        self.engine.import_()
        start = time.perf_counter()
        self.engine.compile(Path(request["model"]), artifact, self.threads)
        seconds = time.perf_counter() - start
        return {
            "seconds": seconds,
            "bytes": artifact.stat().st_size,
            "peak": _memory("VmHWM"),
        }

    def load(self, request: dict) -> dict:
        with self.np.load(request["inputs"]) as archive:
            # Archives hold strings of a fixed width; engines take them as objects.
            inputs = {
                name: a.astype(object) if (a := archive[name]).dtype.kind == "U" else a
                for name in archive.files
            }
        self.engine.import_()
        imported = _memory("VmRSS")
        start = time.perf_counter()
        self.engine.load(Path(request["path"]), self.threads, inputs)
        loaded = time.perf_counter()
        result = self.engine.run()
        done = time.perf_counter()
        outputs = [a.astype(str) if a.dtype == object else a for a in self.engine.outputs(result)]
        self.np.savez(request["outputs"], **{f"{i:03}": a for i, a in enumerate(outputs)})
        peak = _memory("VmHWM")
        del result, outputs
        _reset_peak()
        return {
            "seconds": loaded - start,
            "first_run": done - loaded,
            "imported": imported,
            "peak_load": peak,
        }

    def run(self, request: dict) -> dict:
        run = self.engine.run
        clock = time.process_time_ns if request["clock"] == "processor" else time.perf_counter_ns
        for _ in range(request["warmup"]):
            run()
        times: list[int] = []
        end = clock() + int(request["seconds"] * 1e9)
        now = clock()
        while now < end or not times:
            run()
            previous, now = now, clock()
            times.append(now - previous)
        return {"ns": times}

    def memory(self, request: dict) -> dict:
        return {"peak_run": _memory("VmHWM"), "resident": _memory("VmRSS")}


def main() -> int:
    engine_name, threads, cores = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    _end_with_parent()
    # Before any engine starts a thread: threads inherit the mask of the one that starts them.
    os.sched_setaffinity(0, {int(core) for core in cores.split(",")})
    replies = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    worker = Worker(engine_name, threads)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = getattr(worker, request["do"])(request)
        except Exception as error:
            reply = {"error": f"{type(error).__name__}: {error}"}
        replies.write(json.dumps(reply) + "\n")
        replies.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
