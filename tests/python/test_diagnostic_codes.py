"""Every diagnostic code is said somewhere in the compiler, and some test makes a program say it."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = sorted(ROOT.glob("src/base/codes/*.h"))
# Codes that no program and no call can cause, by name.
NOT_CAUSED_BY_USERS = {
    # Text and the Python objects refuse such programs before: only a defective pass makes one.
    "type_ill_formed",
}


def texts(files):
    return "\n".join(f.read_text(errors="replace") for f in files if f.is_file())


def test_every_code_is_used_and_tested():
    codes = re.findall(r'DiagnosticCode (\w+)\{"(E\d{4})"', texts(HEADERS))
    assert len(codes) >= 60 and len({c for _, c in codes}) == len(codes)
    sources = [f for f in ROOT.glob("src/**/*.cc") if "test" not in f.relative_to(ROOT).parts]
    sources += [f for f in ROOT.glob("src/**/*.h") if f not in HEADERS]
    used = set(re.findall(r"codes::(\w+)", texts(sources)))
    tests = [*ROOT.glob("src/**/test/**/*.cc"), *ROOT.glob("src/**/test/**/*.expected")]
    tests += [f for f in ROOT.glob("tests/**/*") if f.suffix in (".py", ".expected", ".toml")]
    said = texts(tests)
    tested = set(re.findall(r"(?<![0-9A-Za-z])E\d{4}(?!\d)", said))
    names = set(re.findall(r"codes::(\w+)", said))
    assert [code for name, code in codes if name not in used] == []
    # The names of C++ tests may end in the code.
    tested |= set(re.findall(r"_(E\d{4})\b", said))
    missing = {name for name, code in codes if code not in tested and name not in names}
    assert missing == NOT_CAUSED_BY_USERS
