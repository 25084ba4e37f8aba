#include "passes/external/external_codegen.h"

#include <map>
#include <utility>

#include "base/codes/passes.h"
#include "base/fork.h"
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

}  // namespace relay
