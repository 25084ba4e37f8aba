#include "frontend/torch/schema.h"

#include <limits>
#include <nlohmann/json.hpp>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "frontend/common/program_builder.h"

namespace relay::frontend::torch {
namespace {

using Json = nlohmann::json;

// The versions of the schema that are read: a greater minor version only adds what may be left out.
constexpr int64_t kLeastMajor = 5, kGreatestMajor = 8;

class Reader {
 public:
  explicit Reader(Span span) : span_(std::move(span)) {}

  Json parse(std::string_view text) const {
    Json json = Json::parse(text, nullptr, false);
    if (json.is_discarded()) damaged("it is not JSON");
    return json;
  }

  // The format's fields, with the path to them for messages. A field that is null counts as missing.
  struct Field {
    const Json& json;
    std::string path;
  };

  [[noreturn]] void damaged(const std::string& why) const {
    throw UserError(Diagnostic(codes::frontend_damaged, span_,
                               "this is no exported program, or it is damaged: " + why)
                        .help("check that the file was copied or downloaded completely"));
  }
  [[noreturn]] void wrong(const std::string& path, const char* expected) const {
    damaged("'" + escape_for_terminal(path, 200) + "' is not " + expected);
  }

  const Json* find(const Field& of, const char* name) const {
    if (!of.json.is_object()) wrong(of.path, "an object");
    auto it = of.json.find(name);
    return it == of.json.end() || it->is_null() ? nullptr : &*it;
  }
  Field at(const Field& of, const char* name) const {
    const Json* found = find(of, name);
    if (found == nullptr)
      damaged("'" + escape_for_terminal(of.path, 200) + "' has no '" + name + "'");
    return {*found, of.path + "." + name};
  }
  int64_t integer(const Field& f) const {
    constexpr auto kMost = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    const bool fits =
        f.json.is_number_unsigned() ? f.json.get<uint64_t>() <= kMost : f.json.is_number_integer();
    if (!fits) wrong(f.path, "an integer of 64 bits");
    return f.json.get<int64_t>();
  }
  bool boolean(const Field& f) const {
    if (!f.json.is_boolean()) wrong(f.path, "true or false");
    return f.json.get<bool>();
  }
  std::string text(const Field& f) const {
    if (!f.json.is_string()) wrong(f.path, "a string");
    return f.json.get<std::string>();
  }
  // JSON has no infinities, which are strings here.
  double number(const Field& f) const {
    if (f.json.is_number()) return f.json.get<double>();
    const std::string word = f.json.is_string() ? f.json.get<std::string>() : "";
    if (word == "Infinity") return std::numeric_limits<double>::infinity();
    if (word == "-Infinity") return -std::numeric_limits<double>::infinity();
    if (word != "NaN") wrong(f.path, "a number");
    return std::numeric_limits<double>::quiet_NaN();
  }
  template <class Each>
  void each(const Field& list, const Each& run) const {
    if (!list.json.is_array()) wrong(list.path, "a list");
    for (size_t i = 0; i < list.json.size(); ++i)
      run(Field{list.json[i], list.path + "[" + std::to_string(i) + "]"});
  }
  template <class Each>
  void each_of(const Field& of, const char* name, const Each& run) const {
    if (find(of, name) != nullptr) each(at(of, name), run);
  }
  template <class Each>
  void each_named(const Field& of, const char* name, const Each& run) const {
    if (find(of, name) == nullptr) return;
    const Field object = at(of, name);
    if (!object.json.is_object()) wrong(object.path, "an object");
    for (const auto& [key, value] : object.json.items())
      if (!value.is_null()) run(key, Field{value, object.path + "." + key});
  }
  // The one alternative of a union that is given.
  std::pair<std::string, Field> alternative(const Field& f) const {
    if (!f.json.is_object()) wrong(f.path, "an object");
    std::pair<std::string, const Json*> found{{}, nullptr};
    for (const auto& [key, value] : f.json.items()) {
      if (value.is_null() || key == "$type") continue;
      if (found.second != nullptr) wrong(f.path, "a union of one alternative");
      found = {key, &value};
    }
    if (found.second == nullptr) wrong(f.path, "a union of one alternative");
    return {found.first, {*found.second, f.path + "." + found.first}};
  }

  SizeText size(const Field& f) {
    auto [name, value] = alternative(f);
    if (name == "as_int") return integer(value);
    if (name != "as_expr") wrong(f.path, "a size");
    std::string expression = text(at(value, "expr_str"));
    if (find(value, "hint") != nullptr) {
      auto [kind, seen] = alternative(at(value, "hint"));
      if (kind == "as_int") seen_[expression] = integer(seen);
    }
    return expression;
  }
  std::vector<SizeText> sizes(const Field& f) {
    std::vector<SizeText> out;
    each(f, [&](const Field& s) { out.push_back(size(s)); });
    return out;
  }
  TensorMeta meta(const Field& f) {
    TensorMeta out;
    out.dtype = integer(at(f, "dtype"));
    out.sizes = sizes(at(f, "sizes"));
    if (find(f, "strides") != nullptr) out.strides = sizes(at(f, "strides"));
    if (find(f, "storage_offset") != nullptr) out.offset = size(at(f, "storage_offset"));
    if (find(f, "layout") != nullptr) out.layout = integer(at(f, "layout"));
    return out;
  }

  // An element by the alternative that it is stored as: the part of the name behind "as_".
  Element element(const std::string& kind, const Field& f) const {
    if (kind == "none") return std::monostate();
    if (kind == "bool") return boolean(f);
    if (kind == "int") return integer(f);
    if (kind == "float") return number(f);
    if (kind == "string") return text(f);
    if (kind == "tensor") return ValueName{text(at(f, "name"))};
    if (kind == "optional_tensor" || kind.starts_with("sym_")) {
      auto [name, value] = alternative(f);
      if (name == "as_name") return ValueName{text(value)};
      return element(name.substr(std::min<size_t>(name.size(), 3)), value);
    }
    wrong(f.path, "an argument of the schema");
  }

  Argument argument(const Field& f) {
    static constexpr std::string_view kSingle[] = {
        "none",    "bool",      "int",     "float", "string", "tensor", "optional_tensor",
        "sym_int", "sym_float", "sym_bool"};
    static constexpr std::pair<std::string_view, Argument::Kind> kNumbers[] = {
        {"scalar_type", Argument::Kind::scalar_type},
        {"memory_format", Argument::Kind::memory_format},
        {"layout", Argument::Kind::layout}};
    auto [name, value] = alternative(f);
    const std::string kind = name.starts_with("as_") ? name.substr(3) : "";
    Argument out;
    for (std::string_view single : kSingle) {
      if (kind == single) {
        out.elements.push_back(element(kind, value));
        return out;
      }
      if (kind == std::string(single) + "s") {
        out.is_list = true;
        each(value,
             [&](const Field& e) { out.elements.push_back(element(std::string(single), e)); });
        return out;
      }
    }
    for (const auto& [number, of] : kNumbers) {
      if (kind != number) continue;
      out.kind = of;
      out.elements.emplace_back(integer(value));
      return out;
    }
    if (kind == "complex") {
      out.kind = Argument::Kind::complex;
      for (const char* part : {"real", "imag"}) out.elements.emplace_back(number(at(value, part)));
    } else if (kind == "device") {
      out.kind = Argument::Kind::device;
      out.elements.emplace_back(text(at(value, "type")));
    } else if (kind == "graph") {
      out.kind = Argument::Kind::graph;
      out.what = text(at(value, "name"));
      out.graph = std::make_shared<const Graph>(graph(at(value, "graph")));
    } else {
      out.kind = Argument::Kind::unsupported;
      out.what = name;
    }
    return out;
  }
  std::vector<Argument> arguments(const Field& f) {
    std::vector<Argument> out;
    each(f, [&](const Field& a) { out.push_back(argument(a)); });
    return out;
  }

  Graph graph(const Field& f) {
    if (++depth_ > kMaxNesting) {
      throw UserError(Diagnostic(codes::frontend_limit, span_, "graphs are nested too deeply")
                          .expected("at most " + std::to_string(kMaxNesting) + " levels"));
    }
    Graph out;
    out.inputs = arguments(at(f, "inputs"));
    out.outputs = arguments(at(f, "outputs"));
    each(at(f, "nodes"), [&](const Field& n) {
      Node& node = out.nodes.emplace_back();
      node.source = out.nodes.size() - 1;
      node.target = text(at(n, "target"));
      if (find(n, "name") != nullptr) node.name = text(at(n, "name"));
      each(at(n, "inputs"), [&](const Field& i) {
        node.inputs.emplace_back(text(at(i, "name")), argument(at(i, "arg")));
      });
      node.outputs = arguments(at(n, "outputs"));
      if (find(n, "metadata") != nullptr && find(at(n, "metadata"), "stack_trace") != nullptr)
        node.stack_trace = text(at(at(n, "metadata"), "stack_trace"));
    });
    each_named(f, "tensor_values", [&](const std::string& name, const Field& m) {
      out.tensors.emplace(name, meta(m));
    });
    each_named(f, "sym_int_values",
               [&](const std::string& name, const Field& s) { out.sizes.emplace(name, size(s)); });
    --depth_;
    return out;
  }

  static Argument reference(std::string name) {
    Argument out;
    out.elements.emplace_back(ValueName{std::move(name)});
    return out;
  }

  InputSpec input_spec(const Field& f) {
    auto [kind, value] = alternative(f);
    InputSpec out;
    auto weight = [&](InputSpec::Kind of, const char* target) {
      out.kind = of;
      out.arg = reference(text(at(at(value, "arg"), "name")));
      out.target = text(at(value, target));
    };
    if (kind == "user_input") {
      out.arg = argument(at(value, "arg"));
    } else if (kind == "parameter") {
      weight(InputSpec::Kind::parameter, "parameter_name");
      out.is_saved = true;
    } else if (kind == "buffer") {
      weight(InputSpec::Kind::buffer, "buffer_name");
      const Json* persistent = find(value, "persistent");
      out.is_saved = persistent == nullptr || boolean({*persistent, value.path + ".persistent"});
    } else if (kind == "tensor_constant") {
      weight(InputSpec::Kind::tensor_constant, "tensor_constant_name");
    } else if (kind == "constant_input") {
      out.kind = InputSpec::Kind::constant;
      out.target = text(at(value, "name"));
    } else {
      out.kind = InputSpec::Kind::unsupported;
      out.target = kind;
    }
    return out;
  }

  OutputSpec output_spec(const Field& f) {
    auto [kind, value] = alternative(f);
    OutputSpec out{kind, {}, {}};
    const Field arg = at(value, "arg");
    // All but the user's are tensors.
    out.arg = kind == "user_output" ? argument(arg) : reference(text(at(arg, "name")));
    for (const char* target : {"buffer_name", "parameter_name", "user_input_name"})
      if (find(value, target) != nullptr) out.target = text(at(value, target));
    return out;
  }

  Program program(const Json& json) {
    const Field top{json, "program"};
    const Field version = at(top, "schema_version");
    const int64_t major = integer(at(version, "major"));
    if (major < kLeastMajor || major > kGreatestMajor) {
      const bool newer = major > kGreatestMajor;
      throw UserError(
          Diagnostic(codes::frontend_version, span_,
                     "the exported program has a version of the schema that is not read")
              .expected("version " + std::to_string(kLeastMajor) + " to " +
                        std::to_string(kGreatestMajor))
              .found("version " + std::to_string(major))
              .help(newer ? "export the model with PyTorch 2.13, or use a newer Relay"
                          : "export the model again with a newer PyTorch, such as 2.13"));
    }
    Program out;
    const Field module = at(top, "graph_module");
    out.graph = graph(at(module, "graph"));
    const Field signature = at(module, "signature");
    each(at(signature, "input_specs"),
         [&](const Field& s) { out.inputs.push_back(input_spec(s)); });
    each(at(signature, "output_specs"),
         [&](const Field& s) { out.outputs.push_back(output_spec(s)); });
    if (out.inputs.size() != out.graph.inputs.size() ||
        out.outputs.size() != out.graph.outputs.size())
      damaged("its signature has not as many inputs and outputs as its graph");
    each_named(top, "range_constraints", [&](const std::string& symbol, const Field& r) {
      Program::Range& range = out.ranges[symbol];
      if (find(r, "min_val") != nullptr) range.least = integer(at(r, "min_val"));
      if (find(r, "max_val") != nullptr) range.greatest = integer(at(r, "max_val"));
    });
    out.seen = std::move(seen_);
    if (find(top, "torch_version") != nullptr) out.torch_version = text(at(top, "torch_version"));
    return out;
  }

 private:
  Span span_;
  int depth_ = 0;
  std::map<std::string, int64_t> seen_;  // the example's sizes by their expressions
};

}  // namespace

Program read_program(std::string_view json, const std::shared_ptr<const SourceFile>& file) {
  Reader reader(Span::place(file, "program"));
  return reader.program(reader.parse(json));
}

std::map<std::string, Payload> read_payloads(std::string_view json, const Span& span) {
  Reader reader(span);
  const Json parsed = reader.parse(json);
  std::map<std::string, Payload> out;
  reader.each_named({parsed, "weights"}, "config",
                    [&](const std::string& name, const Reader::Field& f) {
                      Payload& payload = out[name];
                      payload.file = reader.text(reader.at(f, "path_name"));
                      if (reader.find(f, "use_pickle") != nullptr)
                        payload.pickled = reader.boolean(reader.at(f, "use_pickle"));
                      if (reader.find(f, "tensor_meta") != nullptr)
                        payload.meta = reader.meta(reader.at(f, "tensor_meta"));
                    });
  return out;
}

}  // namespace relay::frontend::torch
