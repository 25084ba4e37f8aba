"""The language server as `python -m relay.lsp`."""

import sys

from relay.lsp import main

sys.exit(main())
