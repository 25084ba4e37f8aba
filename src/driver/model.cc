#include "driver/model.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <unordered_map>

#include "analysis/size_hints.h"
#include "base/codes/driver.h"
#include "base/codes/frontend.h"
#include "driver/compile.h"
#include "driver/evaluate_constant.h"
#include "frontend/onnx/onnx.h"
#include "ir/op.h"
#include "ir/text/text.h"
#include "ir/type_params.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay {
namespace {

[[noreturn]] void unreadable(const std::string& path, const std::string& why) {
  throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"), why)
                      .help("give the path of an ONNX model, of Relay text or of a compiled .so"));
}

// The first bytes of a file, enough to tell text from a model.
std::string first_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) unreadable(path, "the file cannot be opened");
  std::string head(4096, '\0');
  in.read(head.data(), static_cast<std::streamsize>(head.size()));
  if (in.bad() || (in.gcount() == 0 && !in.eof())) unreadable(path, "the file cannot be read");
  head.resize(static_cast<size_t>(in.gcount()));
  return head;
}

// Relay text starts, behind blanks and comments, with its version or a definition.
bool looks_like_text(const std::string& path, const std::string& head) {
  if (path.ends_with(".relay")) return true;
  size_t at = head.find_first_not_of(" \t\r\n");
  if (at == std::string::npos) return false;
  std::string_view rest = std::string_view(head).substr(at);
  return rest.starts_with("#[version") || rest.starts_with("def @") || rest.starts_with("//") ||
         rest.starts_with("/*");
}

std::string hash_text(const std::string& bytes) {
  char buffer[17];
  std::snprintf(buffer, sizeof buffer, "%016llx",
                static_cast<unsigned long long>(hash_bytes(bytes.data(), bytes.size())));
  return buffer;
}

LoadedModel load_text(const std::string& path) {
  std::shared_ptr<const SourceFile> source = read_source(path);
  LoadedModel out;
  out.format = "relay";
  out.source_name = path;
  out.source_hash = hash_text(source->text());
  out.module = read_module(source);
  if (Function main = out.module->find("main")) {
    for (const Var& p : main->params) out.input_names.push_back(p->name_hint);
  }
  return out;
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
                                                     const ModelOptions& options) {
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
Module bind_symbols(const Module& mod, const ModelOptions& options) {
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

}  // namespace

std::shared_ptr<const SourceFile> read_source(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_character_file(path, ignored)) unreadable(path, "it is a device");
  std::ifstream in(path, std::ios::binary);
  if (!in) unreadable(path, "the file cannot be opened");
  std::ostringstream text;
  text << in.rdbuf();
  if (!in) unreadable(path, "the file cannot be read");
  return SourceFile::make(path, text.str());
}

Module read_module(const std::shared_ptr<const SourceFile>& source) {
  Diagnostics diags;
  Module mod = parse_module(source, diags);
  try {
    mod = infer_types(mod);
  } catch (const UserError& e) {
    for (const Diagnostic& d : e.diagnostics()) diags.add(d);
  }
  diags.throw_if_errors();
  return mod;
}

bool is_relay_text(const std::string& path) { return looks_like_text(path, first_bytes(path)); }

namespace {

// Imports the model; where the rank of something is open, again with what is given of the inputs that decide.
ImportedModel import_specialised(const std::string& path, OnnxOptions onnx,
                                 const ModelOptions& options, LoadedModel& out) {
  while (true) {
    try {
      return import_onnx_file(path, onnx);
    } catch (const RankIsOpen& e) {
      bool more = false;
      for (const DecidingInput& d : e.deciding()) {
        auto given = options.values.find(d.name);
        if (given == options.values.end() || d.by == DecidingInput::Elements) continue;
        const Tensor& value = given->second;
        const bool by_sizes = d.by == DecidingInput::Sizes;
        std::vector<int64_t> shape(value.shape().begin(), value.shape().end());
        if (by_sizes ? !onnx.shapes.emplace(d.name, shape).second
                     : !onnx.specialised.emplace(d.name, value).second) {
          continue;
        }
        more = true;
        SpecialisedInput& input = out.specialised.emplace_back(SpecialisedInput{d.name, shape, {}});
        if (by_sizes) continue;
        input.value.emplace();
        for (int64_t k = 0; k < value.num_elements(); ++k)
          input.value->push_back(value.get_as_int(k));
      }
      if (!more) throw;
    }
  }
}

}  // namespace

std::string SpecialisedInput::text() const {
  if (!value) return "shape " + runtime::shape_to_string(shape);
  std::string out;
  for (int64_t v : *value) out += (out.empty() ? "" : ", ") + std::to_string(v);
  return "value " + (shape.empty() ? out : "[" + out + "]");
}

LoadedModel load_model(const std::string& path, const ModelOptions& options) {
  initialize();
  LoadedModel out;
  if (looks_like_text(path, first_bytes(path))) {
    if (!options.frozen.empty()) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "--freeze " +
                                     escape_for_terminal(options.frozen.begin()->first, 200) +
                                     " applies to ONNX models only")
                          .help("write the value into the program"));
    }
    out = load_text(path);
  } else {
    OnnxOptions onnx;
    onnx.shapes = options.shapes;
    onnx.dtypes = options.dtypes;
    onnx.dims = options.dims;
    onnx.numbers = options.numbers;
    onnx.frozen = options.frozen;
    onnx.evaluate = make_constant_evaluator();
    ImportedModel imported = import_specialised(path, std::move(onnx), options, out);
    out.format = "onnx";
    out.module = imported.module;
    out.input_names = imported.input_names;
    out.output_names = imported.output_names;
    out.source_name = path;
    out.source_hash = imported.source_hash;
  }
  // The importer of models has checked what is given against what it found there, and used it.
  ModelOptions left = options;
  if (out.format == "onnx") {
    left.shapes.clear();
    left.dtypes.clear();
    left.dims.clear();
  }
  out.module = bind_symbols(out.module, left);
  return out;
}

void parse_input_option(const std::string& text, ModelOptions& options) {
  auto bad = [&](const std::string& why) {
    throw UserError(
        Diagnostic(codes::driver_option, {},
                   "--input " + escape_for_terminal(text, 200) + " is not a shape: " + why)
            .expected("NAME=SHAPE or NAME=SHAPE:DTYPE")
            .help("for example --input data=1,3,224,224:float32"));
  };
  size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0) bad("there is no NAME=");
  std::string name = text.substr(0, equals), shape = text.substr(equals + 1);
  if (options.shapes.contains(name)) bad("the input has a shape already");
  size_t colon = shape.find(':');
  if (colon != std::string::npos) {
    auto dtype = DType::parse(shape.substr(colon + 1));
    if (!dtype || dtype->lanes != 1)
      bad("there is no dtype '" + escape_for_terminal(shape.substr(colon + 1), 40) + "'");
    options.dtypes[name] = *dtype;
    shape.resize(colon);
  }
  std::vector<int64_t> dims;
  std::string number;
  auto flush = [&] {
    if (number.empty()) bad("a dimension is missing");
    char* end = nullptr;
    errno = 0;
    long long v = std::strtoll(number.c_str(), &end, 10);
    if (*end != '\0' || errno != 0 || v < -1)
      bad("'" + escape_for_terminal(number, 40) + "' is not a dimension");
    dims.push_back(v);
    number.clear();
  };
  for (char c : shape) {
    if (c == ',' || c == 'x') {
      flush();
    } else if (!std::isspace(static_cast<unsigned char>(c)) && c != '(' && c != ')') {
      number += c;
    }
  }
  if (!number.empty() ||
      (!shape.empty() && !dims.empty() && shape.back() != ')' && shape.back() != ',')) {
    flush();
  }
  options.shapes[name] = std::move(dims);
}

}  // namespace relay
