#include "cli/commands.h"
#include "cli/python.h"

namespace relay::cli {

Command lsp_command() {
  auto stdio = std::make_shared<bool>(true);
  return {"lsp",
          "Serve editors over standard input and output, as the Language Server Protocol says",
          {flag("--stdio", *stdio, "What happens without it, too: some editors add it")},
          [stdio](const Given&) {
            return run_python("relay.lsp",
                              "the language server is a part of Relay's Python package", {});
          }};
}

}  // namespace relay::cli
