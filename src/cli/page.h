// One HTML page without outside resources: drawings of a program as it was read and as it is compiled.
//
// Nodes are placed here (cli/graph_layout.h); cli/page/page.js shows them, with the details of the chosen one: type, source,
// attributes, kernel, schedule and its reasons, loops. Nodes of the model and kernels that compute them refer to each
// other. Large graphs are folded by the scopes in the names of nodes ("/encoder/layer.0/attention/MatMul").
#pragma once

#include <string>

#include "base/embedded_file.h"
#include "driver/compile.h"

namespace relay::cli {

struct PageContent {
  std::string title;
  Module model;                              // as it was read, or behind a pass
  const CompiledModule* compiled = nullptr;  // null: `model` alone
};

std::string page_html(const PageContent& content);

}  // namespace relay::cli

namespace relay {

// page.html, page.css and page.js.
std::span<const EmbeddedFile> page_files();

}  // namespace relay
