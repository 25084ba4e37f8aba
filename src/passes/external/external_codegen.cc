#include "passes/external/external_codegen.h"

#include <map>
#include <utility>

#include "base/codes/passes.h"
#include "base/fork.h"
#include "base/suggest.h"
#include "ir/external.h"

namespace relay {
namespace {

struct Codegens {
  ForkSafeMutex mutex;
  std::map<std::string, std::shared_ptr<const ExternalCodegen>, std::less<>> rows;
};

Codegens& codegens() {
  static Codegens all;
  return all;
}

}  // namespace

void register_external_codegen(ExternalCodegen row) {
  if (row.name.empty() || row.name == kNoCompiler || row.name.find('.') != std::string::npos) {
    throw UserError(
        Diagnostic(codes::pass_registration, {},
                   "the external code generator '" + row.name + "' cannot be added")
            .expected("a name without a dot, other than \"" + std::string(kNoCompiler) + "\"")
            .help("its composite functions are named \"<name>.<pattern>\""));
  }
  Codegens& all = codegens();
  std::lock_guard lock(all.mutex);
  std::string name = row.name;
  all.rows[std::move(name)] = std::make_shared<const ExternalCodegen>(std::move(row));
}

std::shared_ptr<const ExternalCodegen> find_external_codegen(const std::string& name) {
  Codegens& all = codegens();
  std::lock_guard lock(all.mutex);
  auto found = all.rows.find(name);
  return found == all.rows.end() ? nullptr : found->second;
}

std::vector<std::string> external_codegen_names() {
  Codegens& all = codegens();
  std::lock_guard lock(all.mutex);
  std::vector<std::string> out;
  for (const auto& [name, row] : all.rows) out.push_back(name);
  return out;
}

Module divide_for(const Module& mod, const std::vector<std::string>& names) {
  Module out = mod;
  for (const std::string& name : names) {
    const auto row = find_external_codegen(name);
    if (row != nullptr && row->divide) {
      out = row->divide(out);
      continue;
    }
    std::vector<std::string> able;
    for (const std::string& n : external_codegen_names()) {
      if (find_external_codegen(n)->divide) able.push_back(n);
    }
    std::string known;
    for (const std::string& n : able) known += (known.empty() ? "" : ", ") + n;
    const std::string near = suggest(name, {able.begin(), able.end()});
    throw UserError(
        Diagnostic(codes::external_codegen, {},
                   "no external code generator '" + escape_for_terminal(name, 100) +
                       "' can divide a program")
            .expected(known.empty() ? "one that is registered; none is" : "one of " + known)
            .help(near.empty() ? "relay plugins lists the installed packages that may have it"
                               : near));
  }
  return out;
}

}  // namespace relay
