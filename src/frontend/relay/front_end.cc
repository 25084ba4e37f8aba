// Relay text as a front end: programs in the compiler's own language.
#include <algorithm>
#include <cstdio>
#include <unordered_map>

#include "analysis/size_hints.h"
#include "base/codes/driver.h"
#include "base/codes/frontend.h"
#include "base/suggest.h"
#include "frontend/common/front_end.h"
#include "frontend/read_source.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "ir/type_params.h"
#include "types/read_module.h"

namespace relay {
namespace {

// Relay text starts, behind blanks and comments, with its version or a definition.
bool is_relay_text(std::string_view head) {
  size_t at = head.find_first_not_of(" \t\r\n");
  if (at == std::string_view::npos) return false;
  std::string_view rest = head.substr(at);
  return rest.starts_with("#[version") || rest.starts_with("def @") || rest.starts_with("//") ||
         rest.starts_with("/*");
}

std::string hash_text(const std::string& bytes) {
  char buffer[17];
  std::snprintf(buffer, sizeof buffer, "%016llx",
                static_cast<unsigned long long>(hash_bytes(bytes.data(), bytes.size())));
  return buffer;
}

// An error about what is given for an input of a program.
[[noreturn]] void input_error(const std::string& name, const std::string& why, std::string expected,
                              std::string found, std::string help = {}) {
  throw UserError(
      Diagnostic(codes::frontend_input, {}, "input '" + escape_for_terminal(name, 200) + "' " + why)
          .expected(std::move(expected))
          .found(std::move(found))
          .help(std::move(help)));
}

// What the options say of the named dimensions of @main, by themselves or by the shapes of inputs.
std::unordered_map<const Node*, int64_t> sizes_given(const Function& main,
                                                     const ImportOptions& options) {
  std::vector<std::string_view> names;
  for (const Var& p : main->params) names.push_back(p->name_hint);
  std::string known;
  for (std::string_view n : names) known += (known.empty() ? "" : ", ") + std::string(n);
  auto type_of = [&](const std::string& name) -> const Type& {
    auto at = std::find(names.begin(), names.end(), name);
    if (at == names.end()) {
      input_error(name, "does not exist", known.empty() ? "no inputs" : known, "",
                  suggest(name, names));
    }
    const Type& type = main->params[static_cast<size_t>(at - names.begin())]->type;
    auto* tensor = as<TensorTypeNode>(type);
    if (tensor == nullptr || tensor->shape_var) {
      input_error(name, "has no shape to give", to_string(type), "");
    }
    return type;
  };
  std::unordered_map<const Node*, int64_t> sizes;
  std::vector<std::string_view> dims;
  for (const TypeVar& v : main->type_params) {
    if (v->kind != Kind::Dim) continue;
    dims.push_back(v->name_hint);
    auto given = options.dims.find(v->name_hint);
    if (given != options.dims.end()) sizes.emplace(v.get(), given->second);
  }
  for (const auto& [name, size] : options.dims) {
    if (std::ranges::find(dims, name) != dims.end()) continue;
    throw UserError(no_such_dimension("@main", name, dims));
  }
  for (const auto& [name, shape] : options.shapes) {
    const Type& declared = type_of(name);
    auto* type = as<TensorTypeNode>(declared);
    if (type->shape.empty() && options.numbers.contains(name)) continue;
    std::string found = runtime::shape_to_string(shape);
    if (type->shape.size() != shape.size())
      input_error(name, "has another rank", to_string(declared), found);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (shape[i] < 0) continue;
      auto size = as_const(type->shape[i]);
      if (auto* named = as<DimVarNode>(type->shape[i])) {
        size = sizes.try_emplace(named->var.get(), shape[i]).first->second;
      }
      if (size && *size != shape[i]) {
        input_error(name, "has another size in dimension " + std::to_string(i),
                    std::to_string(*size), found);
      }
    }
  }
  for (const auto& [name, dtype] : options.dtypes) {
    const Type& declared = type_of(name);
    auto* type = as<TensorTypeNode>(declared);
    if (!(type->dtype == dtype))
      input_error(name, "has another dtype", to_string(declared), dtype.to_string());
  }
  return sizes;
}

// @main with named dimensions replaced by the sizes that the options give them.
Module bind_symbols(const Module& mod, const ImportOptions& options) {
  Function main = mod->find("main");
  if (!main) return mod;
  std::unordered_map<const Node*, int64_t> given = sizes_given(main, options);
  TypeParams sizes;
  for (const TypeVar& v : main->type_params) {
    auto known = given.find(v.get());
    if (v->kind == Kind::Dim && known != given.end()) sizes[v.get()] = dim(known->second);
  }
  if (sizes.empty()) return mod;
  Function made = for_sizes(main, sizes);
  return with_function(mod, global_var("main", made->type), made);
}

ImportedModel import_relay_text(const ModelSource& source, const ImportOptions& options) {
  if (!options.frozen.empty()) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "--freeze " +
                                   escape_for_terminal(options.frozen.begin()->first, 200) +
                                   " does not apply to Relay text")
                        .help("write the value into the program"));
  }
  std::shared_ptr<const SourceFile> text =
      source.bytes ? SourceFile::make(source.path, std::string(*source.bytes))
                   : read_source(source.path);
  ImportedModel out;
  out.source_hash = hash_text(text->text());
  out.module = bind_symbols(read_module(text), options);
  if (Function main = out.module->find("main")) {
    for (const Var& p : main->params) out.input_names.push_back(p->name_hint);
  }
  return out;
}

}  // namespace

FrontEnd relay_front_end() {
  return {
      .name = "relay",
      .title = "Relay text",
      .endings = {".relay"},
      .sniff = is_relay_text,
      .import = import_relay_text,
  };
}

}  // namespace relay
