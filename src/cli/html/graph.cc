#include "cli/html/graph.h"

#include "cli/html/program_graph.h"

namespace relay::cli {
namespace {

std::string escape_dot(const std::string& text) {
  std::string out;
  for (char c : escape_for_terminal(text, 300)) {
    if (c == '"' || c == '\\') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string graph_dot(const Module& mod) {
  std::string out = "digraph relay {\n  node [shape=box, fontname=\"sans-serif\"];\n";
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    out += "  subgraph \"cluster_" + std::to_string(i) + "\" {\n    label=\"@" +
           escape_dot(mod->global_vars[i]->name_hint) + "\";\n";
    ProgramGraph graph = program_graph(mod->functions[i]);
    auto name = [&](size_t node) { return "n" + std::to_string(i) + "_" + std::to_string(node); };
    // Edges stand behind the node that they lead to.
    auto edge = graph.edges.begin();
    for (size_t n = 0; n < graph.nodes.size(); ++n) {
      const ExprNode& e = *graph.nodes[n];
      std::string type = e.type ? "\\n" + escape_dot(to_string(e.type)) : "";
      out += "    " + name(n) + " [label=\"" + escape_dot(label_of(e)) + type + "\"" +
             (isa<VarNode>(&e) ? ", shape=oval" : "") + "];\n";
      for (; edge != graph.edges.end() && edge->second == n; ++edge)
        out += "    " + name(edge->first) + " -> " + name(n) + ";\n";
    }
    out += "  }\n";
  }
  return out + "}\n";
}

}  // namespace relay::cli
