"""Builds the extension for Visual Studio Code: build/relay-VERSION.vsix.

vscode.py [FOLDER]    FOLDER instead of build/

The TextMate grammar in it is made from relay._syntax.tokens and the registry of operators.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

from relay._syntax import tokens

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "editors" / "vscode"
# What a kind of token is called in the scopes that themes colour.
SCOPES = {
    "floating": "constant.numeric.float",
    "integer": "constant.numeric.integer",
    "global": "entity.name.function",
    "graph": "variable.other.graph",
    "local": "variable.other",
    "identifier": "entity.name.type",
    "symbol": "keyword.operator",
}
DECLARING = ("def", "type", "extern", "let", "fn", "free_type", "free_var")
ASSETS = {
    "Code.Manifest": "package.json",
    "Services.Content.Details": "README.md",
    "Services.Content.License": "LICENSE.txt",
}
CONTENT_TYPES = {
    "json": "application/json",
    "js": "application/javascript",
    "md": "text/markdown",
    "txt": "text/plain",
    "vsixmanifest": "text/xml",
}


def version() -> str:
    """Returns the version of the project."""
    text = (ROOT / "CMakeLists.txt").read_text()
    found = re.search(r"project\(relay VERSION ([0-9.]+)", text)
    assert found is not None
    return found[1]


def words(names: Any) -> str:
    """Returns a pattern for whole words, the longest first."""
    ordered = sorted(names, key=lambda n: (-len(n), n))
    return (
        r"(?<![A-Za-z0-9_.%@])(?:"
        + "|".join(map(re.escape, ordered))
        + r")(?![A-Za-z0-9_]|\.[A-Za-z_])"
    )


def grammar() -> dict[str, Any]:
    """Returns the TextMate grammar."""
    keywords = [k for k in tokens.KEYWORDS if k not in DECLARING]
    named = [
        ("storage.type", words(DECLARING)),
        ("keyword.control", words(keywords)),
        ("constant.language", words(tokens.CONSTANTS)),
        ("support.type", words([*tokens.TYPE_WORDS, *tokens.KINDS])),
        (
            "support.type.dtype",
            rf"(?<![A-Za-z0-9_.%@])(?:{tokens.DTYPE.pattern})(?![A-Za-z0-9_]|\.[A-Za-z_])",
        ),
        ("support.function", words(tokens.operator_names() | set(tokens.SIZE_FUNCTIONS))),
    ]
    rows = [{"name": f"{scope}.relay", "match": pattern} for scope, pattern in named]
    for kind, pattern in tokens.PATTERNS:
        if kind in SCOPES:
            if kind == "identifier":
                # Types and constructors begin with a capital letter; other words have no colour.
                rows.append({"name": "entity.name.type.relay", "match": rf"(?=[A-Z]){pattern}"})
                rows.append({"match": pattern})
            else:
                rows.append({"name": f"{SCOPES[kind]}.relay", "match": pattern})
    text = dict(tokens.PATTERNS)["string"]
    return {
        "$schema": "https://raw.githubusercontent.com/martinring/tmlanguage/master/tmlanguage.json",
        "name": "Relay",
        "scopeName": "source.relay",
        "fileTypes": ["relay", "rly"],
        "patterns": [
            {
                "begin": re.escape(tokens.METADATA),
                "end": r"(?!)",
                "beginCaptures": {"0": {"name": "keyword.other.metadata.relay"}},
                "contentName": "meta.embedded.block.json",
                "patterns": [{"include": "source.json"}],
            },
            {"include": "#comments"},
            {"name": "string.quoted.double.relay", "match": text},
            {
                "begin": r"\[",
                "end": r"\]",
                "patterns": [
                    {"name": "keyword.operator.relay", "match": r"(?<=[A-Za-z0-9_)])[ \t]*//"},
                    {"include": "$self"},
                ],
            },
            *rows,
        ],
        "repository": {
            "comments": {
                "patterns": [
                    {"name": "comment.line.double-slash.relay", "match": r"//[^\n]*"},
                    {"include": "#block"},
                ]
            },
            "block": {
                "name": "comment.block.relay",
                "begin": r"/\*",
                "end": r"\*/",
                "patterns": [{"include": "#block"}],
            },
        },
    }


def manifest() -> dict[str, Any]:
    """Returns the extension's package.json."""
    return {
        **json.loads((SOURCES / "package.json").read_text(encoding="utf-8")),
        "version": version(),
    }


def vsix_manifest(package: dict[str, Any]) -> str:
    """Returns the archive's own manifest, of the package's fields."""
    identity = " ".join(
        f"{name}={quoteattr(package[key])}"
        for name, key in (("Id", "name"), ("Version", "version"), ("Publisher", "publisher"))
    )
    assets = "".join(
        f'    <Asset Type="Microsoft.VisualStudio.{kind}" Path="extension/{path}" Addressable="true"/>\n'
        for kind, path in ASSETS.items()
    )
    engine = quoteattr(package["engines"]["vscode"])
    return f"""<?xml version="1.0" encoding="utf-8"?>
<PackageManifest Version="2.0.0" xmlns="http://schemas.microsoft.com/developer/vsx-schema/2011">
  <Metadata>
    <Identity Language="en-US" {identity}/>
    <DisplayName>{escape(package["displayName"])}</DisplayName>
    <Description xml:space="preserve">{escape(package["description"])}</Description>
    <Tags>{escape(",".join(lang["id"] for lang in package["contributes"]["languages"]))}</Tags>
    <Categories>{escape(",".join(package["categories"]))}</Categories>
    <License>extension/LICENSE.txt</License>
    <Properties>
      <Property Id="Microsoft.VisualStudio.Code.Engine" Value={engine}/>
    </Properties>
  </Metadata>
  <Installation>
    <InstallationTarget Id="Microsoft.VisualStudio.Code"/>
  </Installation>
  <Dependencies/>
  <Assets>
{assets}  </Assets>
</PackageManifest>
"""


def files() -> dict[str, str]:
    """Returns the files of the archive by their paths."""
    package = manifest()
    kinds = "".join(
        f'<Default Extension=".{end}" ContentType="{kind}"/>' for end, kind in CONTENT_TYPES.items()
    )
    space = "http://schemas.openxmlformats.org/package/2006/content-types"
    types = f'<?xml version="1.0" encoding="utf-8"?>\n<Types xmlns="{space}">{kinds}</Types>\n'
    plain = {
        f"extension/{name}": (SOURCES / name).read_text(encoding="utf-8")
        for name in ("extension.js", "language-configuration.json", "README.md")
    }
    return {
        "extension.vsixmanifest": vsix_manifest(package),
        "[Content_Types].xml": types,
        "extension/package.json": json.dumps(package, indent=2) + "\n",
        "extension/relay.tmLanguage.json": json.dumps(grammar(), indent=1) + "\n",
        "extension/LICENSE.txt": (ROOT / "LICENSE").read_text(encoding="utf-8"),
        **plain,
    }


def build(folder: Path) -> Path:
    """Writes the extension, the same bytes for the same sources; returns its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"relay-{version()}.vsix"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files().items():
            archive.writestr(zipfile.ZipInfo(name), text.encode(), zipfile.ZIP_DEFLATED)
    return path


if __name__ == "__main__":
    print(build(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build"))
