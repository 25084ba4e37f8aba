// One HTML page without outside resources: drawings of a program as it was read and as it is compiled, its memory over
// the run, its constants, and what the passes changed.
//
// Nodes are placed here (cli/html/graph_layout.h); cli/page/page.js shows them, with the details of the chosen one: type, source,
// attributes, kernel, schedule and its reasons, loops, assembly, time. Nodes of the model and kernels that compute them refer
// to each other. Large graphs are folded by the scopes in the names of nodes ("/encoder/layer.0/attention/MatMul").
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/embedded_file.h"
#include "cli/html/page_views.h"
#include "driver/compile.h"
#include "runtime/module.h"

namespace relay::cli {

struct PageContent {
  std::string title;
  Module model = nullptr;  // as it was read, or behind a pass; null for a compiled file
  // At most one of them; none: `model` alone.
  const CompiledModule* compiled = nullptr;
  const runtime::Module* stored = nullptr;  // a compiled file
  const PassHistory* passes = nullptr;
  std::vector<std::string> assembly = {};  // of each kernel; none: it is not shown
  // What `relay bench --profile --json` prints: kernels are coloured by their share of the time.
  const nlohmann::ordered_json* profile = nullptr;
};

std::string page_html(const PageContent& content);

}  // namespace relay::cli

namespace relay {

// page.html, page.css and page.js.
std::span<const EmbeddedFile> page_files();

}  // namespace relay
