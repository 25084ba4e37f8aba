"""Where the command writes: whole files or none, and never in place of anything but a regular file."""

import fcntl
import os
import resource
import signal
import socket
import subprocess

import onnx
import pytest
from command_line import PROGRAM, RELAY, fails, relay, small_model

# Each writes one file or folder, whose name is put behind it.
WRITERS = {
    "compile": ("compile", "program.relay", "-o"),
    "show": ("show", "model.onnx", "-o"),
    "opt": ("opt", "program.relay", "-o"),
    "trace": ("bench", "program.relay", "--repeat=1", "--trace"),
}


@pytest.fixture
def here(tmp_path, monkeypatch):
    (tmp_path / "program.relay").write_text(PROGRAM)
    onnx.save(small_model(), tmp_path / "model.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_only_a_regular_file_is_replaced(here, writer):
    (here / "folder").mkdir()
    (here / "file").write_text("precious")
    (here / "link").symlink_to("file")
    (here / "dangling").symlink_to("nothing")
    os.mkfifo(here / "pipe")
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("socket")
        for name, kind in (
            ("folder", "is a folder"),
            ("link", "is a symbolic link"),
            ("dangling", "is a symbolic link"),
            ("pipe", "is a named pipe"),
            ("socket", "is a socket"),
            ("/dev/null", "is a device"),
        ):
            for force in ((), ("--force",)):
                fails("E0611", *writer, name, *force, mentions=(f"'{name}' {kind}",))
    assert (here / "file").read_text() == "precious"
    assert (here / "link").is_symlink() and not (here / "nothing").exists()
    fails("E0703", *writer, "file")
    (here / "file").chmod(0o640)
    relay(*writer, "file", "--force")
    assert (here / "file").stat().st_mode & 0o777 == 0o640
    assert (here / "file").read_bytes() != b"precious"
    assert not list(here.glob("*.tmp*"))


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_folders_that_cannot_be_written(here, writer):
    for name in ("/proc/relay.so", "no/such/folder.so", "file/x.so"):
        (here / "file").write_text("")
        fails("E0611", *writer, name)


def test_outputs_of_a_run_need_a_folder(here):
    (here / "file").write_text("precious")
    fails("E0611", "run", "program.relay", "--output", "file", mentions=("not a folder",))
    fails("E0611", "run", "program.relay", "--output", "/proc/relay", mentions=("cannot be made",))
    (here / "out").mkdir()
    (here / "out" / "output0.npy").mkdir()
    fails("E0611", "run", "program.relay", "--output", "out", "--force", mentions=("is a folder",))
    assert (here / "file").read_text() == "precious"


def test_formatting_in_place_does_not_follow_links(here):
    (here / "untidy.relay").write_text(PROGRAM.replace("  nn", " nn"))
    (here / "link.relay").symlink_to("untidy.relay")
    fails("E0611", "fmt", "-i", "link.relay", mentions=("is a symbolic link",))
    assert "\n nn" in (here / "untidy.relay").read_text()


def no_large_files():
    """What a full disk looks like: a write ends after the first kilobyte."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))


def test_no_part_of_a_file_is_left_on_a_full_disk(here):
    before = set(here.rglob("*"))
    writers = (
        *((*w, "out") for w in WRITERS.values()),
        ("run", "program.relay", "--output", "out"),
    )
    (here / "compiled").mkdir()
    relay("compile", "program.relay", "-o", "compiled/p.so")
    for writer in writers:
        # Compiling needs room for its own files; what is compiled already does not.
        words = [
            w if w != "program.relay" or writer[0] in ("opt", "compile") else "compiled/p.so"
            for w in writer
        ]
        if writer[0] == "run":
            (here / "out").mkdir()
        done = subprocess.run(
            [RELAY, *words], capture_output=True, text=True, preexec_fn=no_large_files, timeout=60
        )
        assert done.returncode == 1 and "error[E" in done.stderr, (words, done)
        if writer[0] == "run":
            (here / "out").rmdir()
    left = set(here.rglob("*")) - before
    assert left == {here / "compiled", here / "compiled" / "p.so"}, left


def test_required_passes_cannot_be_skipped(here):
    for name in ("FuseOps", "ToANormalForm"):
        fails(
            "E0306",
            "compile",
            "program.relay",
            "-o",
            "x.so",
            "--disable-pass",
            name,
            mentions=(name,),
        )
        fails("E0306", "explain", "model.onnx", "--disable-pass", name, mentions=(name,))
        # By themselves passes are free.
        relay("opt", "program.relay", "--disable-pass", name)


@pytest.mark.parametrize("after", ["FoldConstant", "FuseOps", "ToANormalForm"])
def test_a_page_of_the_program_after_a_pass(here, after):
    page = relay("show", "model.onnx", "--format", "html", "--after", after).stdout
    assert page.startswith("<!doctype html>") and ("Primitive" in page or "conv2d" in page)


def test_without_a_temporary_folder_nothing_is_linked(here, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(here / "nowhere"))
    fails("E0404", "compile", "program.relay", "-o", "x.so", mentions=("TMPDIR",))
    assert not (here / "x.so").exists()


def test_nothing_stays_in_the_temporary_folder_when_the_compiler_is_killed(here):
    """What a killed linker leaves, the next one removes; a folder in use and foreign files stay."""
    temporary = here / "tmp"
    temporary.mkdir()
    environment = {**os.environ, "TMPDIR": str(temporary)}
    left = 0
    for i in range(20):
        command = [RELAY, "compile", "-q", "program.relay", "-o", f"{i}.so"]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL)
        while process.poll() is None and not any(temporary.iterdir()):
            pass
        process.kill()
        process.wait()
        left = max(left, len(list(temporary.iterdir())))
    assert left == 1, "no run was killed while it linked, or leftovers stay"
    (temporary / "relay-link-abcdef").mkdir()
    (temporary / "relay-link-abcdef" / "thesis.txt").write_text("precious")
    in_use = temporary / "relay-link-in-use"
    in_use.mkdir()
    descriptor = os.open(in_use, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    subprocess.run([*command, "--force"], env=environment, check=True, capture_output=True)
    os.close(descriptor)
    assert sorted(f.name for f in temporary.iterdir()) == ["relay-link-abcdef", "relay-link-in-use"]
    assert (temporary / "relay-link-abcdef" / "thesis.txt").read_text() == "precious"
