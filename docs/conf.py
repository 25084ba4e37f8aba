"""The site that `make docs` builds: the tutorial, whose cells are run, and the guides."""

import sys
from pathlib import Path

project = "Relay"
extensions = ["myst_nb"]
html_theme = "furo"
html_title = "Relay"
html_copy_source = False
html_show_copyright = False
# Quotation marks in the help of options are typed as they are.
smartquotes = False
myst_heading_anchors = 3
# The cells are notebooks' own: fresh, in a folder of their own, and an error ends the build.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_merge_streams = True
# Links into the repository, Relay's languages other than its text format, which no highlighter knows, and
# names in signatures that several modules have (relay.IRModule, relay.tvm.IRModule).
suppress_warnings = [
    "myst.xref_missing",
    "misc.highlighting_failure",
    "mystnb.unknown_mime_type",
    "ref.python",
]


def setup(app):
    """Makes the reference from the sources, and adds the highlighter of Relay text."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tools"))
    import reference

    from relay.highlight import RelayLexer

    reference.main([])
    app.add_lexer("relay", RelayLexer)
