#include "frontend/torch/complex.h"

#include <algorithm>
#include <set>

#include "frontend/torch/complex_writer.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

// Of operators that act on the parts, the arguments that are numbers of the result; the others say where and how, and are
// the same for both parts.
constexpr std::string_view kNumbers[] = {"fill_value", "grad_output", "other", "s",
                                         "self",       "source",      "src",   "tensor",
                                         "tensors",    "value",       "values"};

bool is_number(std::string_view argument) {
  return std::ranges::find(kNumbers, argument) != std::end(kNumbers);
}

class Rewriter {
 public:
  // `is_part`: of a graph within a graph, whose inputs and outputs are two values for a complex one.
  Rewriter(const Graph& from, bool is_part) : from_(from), is_part_(is_part) {}

  Graph run() {
    to_.sizes = from_.sizes;
    for (const auto& [name, meta] : from_.tensors)
      if (!type_of_parts(meta.dtype)) to_.tensors.emplace(name, meta);
    for (const Argument& a : from_.inputs) add_input(a);
    for (const Node& n : from_.nodes) add_node(n);
    for (const Argument& a : from_.outputs) add_output(a);
    return std::move(to_);
  }

 private:
  bool is_complex(const std::string& name) const {
    auto it = from_.tensors.find(name);
    return it != from_.tensors.end() && type_of_parts(it->second.dtype);
  }
  bool is_complex(const Argument& a) const {
    return a.kind == Argument::Kind::complex ||
           std::ranges::any_of(a.elements, [&](const Element& e) {
             const auto* value = std::get_if<ValueName>(&e);
             return value != nullptr && is_complex(value->name);
           });
  }

  TensorMeta part_meta(const std::string& name) const {
    TensorMeta meta = from_.tensors.at(name);
    meta.dtype = *type_of_parts(meta.dtype);
    meta.offset = int64_t{0};
    return meta;
  }
  // Names for the parts of a complex value.
  ComplexValue declare(const std::string& name) {
    const TensorMeta meta = part_meta(name);
    ComplexValue z{{name + ".re", meta}, RealValue{name + ".im", meta}};
    to_.tensors.emplace(z.re.name, meta);
    to_.tensors.emplace(z.im->name, meta);
    return z;
  }
  const ComplexValue& value(const std::string& name) const {
    auto it = values_.find(name);
    if (it == values_.end())
      throw Unwritable{"value '" + name + "' is not defined before this node"};
    return it->second;
  }
  // The value with an imaginary part that is a tensor.
  ComplexValue& with_both(const std::string& name, ComplexWriter& w) {
    value(name);
    ComplexValue& z = values_.at(name);
    if (!z.im) z.im = w.zeros_like(z.re);
    return z;
  }

  // ---- Inputs and outputs

  void add_input(const Argument& a) {
    const std::string* name = a.name();
    if (name == nullptr || !is_complex(*name)) {
      to_.inputs.push_back(a);
      return;
    }
    if (is_part_) {
      const ComplexValue z = declare(*name);
      to_.inputs.push_back(argument_of(z.re));
      to_.inputs.push_back(argument_of(*z.im));
      values_.emplace(*name, z);
      return;
    }
    to_.inputs.push_back(a);
    TensorMeta pairs = part_meta(*name);
    pairs.sizes.emplace_back(int64_t{2});
    pairs.strides.clear();
    to_.tensors.emplace(*name, pairs);
    const ComplexValue z = declare(*name);
    int64_t index = 0;
    for (const RealValue* part : {&z.re, &*z.im}) {
      Node& n = to_.nodes.emplace_back();
      n.target = "aten.select.int";
      n.name = *name;
      n.inputs = {{"self", a}, {"dim", argument_of(-1)}, {"index", argument_of(index++)}};
      n.outputs = {argument_of(*part)};
    }
    values_.emplace(*name, z);
  }

  void add_output(const Argument& a) {
    if (!is_complex(a) || a.kind != Argument::Kind::value) {
      to_.outputs.push_back(a);
      return;
    }
    const Node end{};
    ComplexWriter w(from_, to_, values_, end);
    if (is_part_) {
      for (Argument& part : expanded(a, w)) to_.outputs.push_back(std::move(part));
      return;
    }
    const std::string* name = a.name();
    if (name != nullptr && values_.contains(*name) && !to_.tensors.contains(*name))
      w.joined(value(*name), *name);
    to_.outputs.push_back(a);
  }

  // ---- Nodes

  void add_node(const Node& n) {
    const bool nests = std::ranges::any_of(
        n.inputs, [](const auto& input) { return input.second.graph != nullptr; });
    const std::string_view target = operator_of(n.target);
    const Argument* first = n.inputs.empty() ? nullptr : &n.inputs[0].second;
    note_alias(n, target, first);
    const bool complex =
        std::ranges::any_of(n.inputs, [&](const auto& i) { return is_complex(i.second); }) ||
        std::ranges::any_of(n.outputs, [&](const Argument& a) { return is_complex(a); });
    try {
      if (is_in_place(target) && first != nullptr && first->name() != nullptr &&
          stale_.contains(root_of(*first->name())))
        throw Unwritable{"an operator writes into a complex tensor that is also read as reals"};
      if (nests) {
        add_nested(n);
      } else if (complex) {
        add_complex(n, target);
      } else {
        to_.nodes.push_back(n);
      }
    } catch (const Unwritable& why) {
      refuse(n, why.reason);
    }
  }

  // A node that says why the operator cannot be imported.
  void refuse(const Node& n, const std::string& reason) {
    Node out = n;
    out.inputs.clear();
    out.outputs.clear();
    out.refusal = reason;
    for (const Argument& a : n.outputs) {
      for (const Element& e : a.elements) {
        const auto* name = std::get_if<ValueName>(&e);
        if (name == nullptr) continue;
        if (!is_complex(name->name)) {
          out.outputs.push_back(argument_of(name->name));
          continue;
        }
        const ComplexValue z =
            values_.insert_or_assign(name->name, declare(name->name)).first->second;
        out.outputs.push_back(argument_of(z.re));
        out.outputs.push_back(argument_of(*z.im));
      }
    }
    to_.nodes.push_back(std::move(out));
  }

  // An argument with two values for a complex one; of a single one, two arguments.
  std::vector<Argument> expanded(const Argument& a, ComplexWriter& w) {
    if (a.kind != Argument::Kind::value || !is_complex(a)) return {a};
    std::vector<Element> elements;
    for (const Element& e : a.elements) {
      const auto* name = std::get_if<ValueName>(&e);
      if (name == nullptr || !is_complex(name->name)) {
        elements.push_back(e);
        continue;
      }
      const ComplexValue& z = with_both(name->name, w);
      elements.emplace_back(ValueName{z.re.name});
      elements.emplace_back(ValueName{z.im->name});
    }
    std::vector<Argument> out;
    if (a.is_list) {
      out.push_back(a);
      out[0].elements = std::move(elements);
      return out;
    }
    for (Element& e : elements) {
      Argument& one = out.emplace_back();
      one.elements.push_back(std::move(e));
    }
    return out;
  }

  // An operator of graphs: they and their values are lists of parts.
  void add_nested(const Node& n) {
    ComplexWriter w(from_, to_, values_, n);
    Node out = n;
    out.inputs.clear();
    out.outputs.clear();
    for (const auto& [name, a] : n.inputs) {
      for (Argument& part : expanded(a, w)) {
        if (part.graph != nullptr)
          part.graph = std::make_shared<const Graph>(Rewriter(*part.graph, true).run());
        out.inputs.emplace_back(name, std::move(part));
      }
    }
    for (const Argument& a : n.outputs) {
      for (const Element& e : a.elements) {
        const auto* name = std::get_if<ValueName>(&e);
        if (name != nullptr && is_complex(name->name))
          values_.emplace(name->name, declare(name->name));
      }
      for (Argument& part : expanded(a, w)) out.outputs.push_back(std::move(part));
    }
    to_.nodes.push_back(std::move(out));
  }

  void add_complex(const Node& n, std::string_view target) {
    ComplexWriter w(from_, to_, values_, n);
    if (is_in_place(target)) {
      write_in_place(n, target, w);
      return;
    }
    if (const ComplexRow* row = complex_row(target)) {
      define(n, row->write(w));
    } else if (acts_on_parts(target)) {
      act_on_parts(n, n.target, w);
    } else {
      throw Unwritable{"operator " + std::string(target) + " has no rule for complex numbers"};
    }
  }

  // The result of the node has these parts.
  void define(const Node& n, ComplexValue z) {
    const std::string* name = n.outputs.size() == 1 ? n.outputs[0].name() : nullptr;
    if (name == nullptr) throw Unwritable{"an operator of complex numbers has several results"};
    if (is_complex(*name)) {
      values_.insert_or_assign(*name, std::move(z));
      return;
    }
    Node& alias = to_.nodes.emplace_back();
    alias.target = "aten.alias.default";
    alias.name = n.name;
    alias.stack_trace = n.stack_trace;
    alias.source = n.source;
    alias.inputs = {{"self", argument_of(z.re)}};
    alias.outputs = {argument_of(*name)};
  }

  // The argument of an operator on the parts, for the real (0) or the imaginary ones (1).
  Argument part_of(const std::string& name, const Argument& a, int part, ComplexWriter& w) {
    Argument out = a;
    if (a.kind == Argument::Kind::scalar_type) {
      if (const auto* type = std::get_if<int64_t>(&a.elements[0]))
        out.elements[0] = type_of_parts(*type).value_or(*type);
      return out;
    }
    if (a.kind == Argument::Kind::complex) {
      if (!is_number(name)) throw Unwritable{"argument '" + name + "' is a complex number"};
      out.kind = Argument::Kind::value;
      out.elements = {a.elements[static_cast<size_t>(part)]};
      return out;
    }
    if (a.kind != Argument::Kind::value) return out;
    for (Element& e : out.elements) {
      const auto* value = std::get_if<ValueName>(&e);
      if (value != nullptr && is_complex(value->name)) {
        const ComplexValue& z = with_both(value->name, w);
        e = ValueName{part == 0 ? z.re.name : z.im->name};
      } else if (part == 1 && is_number(name) && value != nullptr &&
                 from_.tensors.contains(value->name)) {
        e = ValueName{w.zeros_like({value->name, from_.tensors.at(value->name)}).name};
      } else if (part == 1 && is_number(name) && !std::holds_alternative<std::monostate>(e)) {
        e = int64_t{0};  // a number of the text, or one that the graph computes
      }
    }
    return out;
  }

  // The operator on the real parts, and on the imaginary parts where the result is complex.
  void act_on_parts(const Node& n, const std::string& target, ComplexWriter& w) {
    const bool complex =
        std::ranges::any_of(n.outputs, [&](const Argument& a) { return is_complex(a); });
    const std::string* only = n.outputs.size() == 1 ? n.outputs[0].name() : nullptr;
    const auto meta = only == nullptr ? from_.tensors.end() : from_.tensors.find(*only);
    if (!complex && meta != from_.tensors.end() && meta->second.dtype == kBool) {
      // A number is true where one of its parts is.
      auto test = [&](int part) {
        NamedArguments in = n.inputs;
        for (auto& [name, a] : in) a = part_of(name, a, part, w);
        return w.emit(operator_of(target), std::move(in), w.result());
      };
      const RealValue re = test(0);
      define(n, {w.binary("aten.logical_or.default", re, test(1), kBool), {}});
      return;
    }
    for (const Argument& a : n.outputs)
      for (const Element& e : a.elements)
        if (const auto* name = std::get_if<ValueName>(&e);
            name != nullptr && is_complex(name->name))
          values_.insert_or_assign(name->name, declare(name->name));
    for (int part = 0; part < (complex ? 2 : 1); ++part) {
      Node out = n;
      out.target = target;
      for (auto& [name, a] : out.inputs) a = part_of(name, a, part, w);
      for (Argument& a : out.outputs) {
        for (Element& e : a.elements) {
          auto* name = std::get_if<ValueName>(&e);
          if (name == nullptr || !is_complex(name->name)) continue;
          const ComplexValue& z = values_.at(name->name);
          name->name = part == 0 ? z.re.name : z.im->name;
        }
      }
      to_.nodes.push_back(std::move(out));
    }
  }

  // ---- Writes and aliases

  static bool is_in_place(std::string_view target) {
    const std::string_view name = target.substr(0, target.rfind('.'));
    return name.ends_with("_") && !name.ends_with("__");
  }

  // The operator without its underscore, and its parts into those of the first argument.
  void write_in_place(const Node& n, std::string_view target, ComplexWriter& w) {
    const std::string* self = n.inputs.empty() ? nullptr : n.inputs[0].second.name();
    if (self == nullptr || !is_complex(*self) || n.outputs.size() != 1 ||
        n.outputs[0].name() == nullptr)
      throw Unwritable{"an operator writes complex numbers into a real tensor"};
    const size_t dot = target.rfind('.');
    const std::string without =
        std::string(target.substr(0, dot - 1)) + std::string(target.substr(dot));
    const FoundRow found = row_for(without);
    ComplexValue z;
    if (const ComplexRow* row = complex_row(without)) {
      z = row->write(w);
      if (!z.im) z.im = w.zeros_like(z.re);
    } else if (acts_on_parts(without) && found.row != nullptr && found.row->view == nullptr) {
      act_on_parts(n, without, w);
      z = values_.at(*n.outputs[0].name());
    } else {
      throw Unwritable{"operator " + std::string(target) + " has no rule for complex numbers"};
    }
    const ComplexValue own = with_both(*self, w);
    auto write = [&](const RealValue& into, const RealValue& from) {
      w.emit("aten.copy_.default", {{"self", argument_of(into)}, {"src", argument_of(from)}},
             into.meta);
    };
    write(own.re, z.re);
    write(*own.im, *z.im);
    values_.insert_or_assign(*n.outputs[0].name(), own);
  }

  // What a value is a view of.
  const std::string& root_of(const std::string& name) const {
    auto it = roots_.find(name);
    return it == roots_.end() ? name : it->second;
  }
  void note_alias(const Node& n, std::string_view target, const Argument* first) {
    const std::string* base = first == nullptr ? nullptr : first->name();
    if (base == nullptr) return;
    const ComplexRow* row = is_complex(*first) ? complex_row(target) : nullptr;
    const FoundRow found = row_for(target);
    const bool copies = row != nullptr && row->copies_view;
    const bool views = found.in_place || is_in_place(target) ||
                       target == "aten.view_as_complex.default" || target == "aten.imag.default" ||
                       (found.row != nullptr && found.row->view != nullptr);
    if (!copies && !views) return;
    const std::string root = root_of(*base);
    if (copies) stale_.insert(root);
    for (const Argument& a : n.outputs)
      for (const Element& e : a.elements)
        if (const auto* name = std::get_if<ValueName>(&e)) roots_[name->name] = root;
  }

  const Graph& from_;
  const bool is_part_;
  Graph to_;
  ComplexValues values_;
  std::unordered_map<std::string, std::string> roots_;  // of views, the tensor that is viewed
  std::set<std::string> stale_;                         // the roots of which copies stand for views
};

bool has_complex_values(const Graph& graph) {
  return std::ranges::any_of(
             graph.tensors,
             [](const auto& t) { return type_of_parts(t.second.dtype).has_value(); }) ||
         std::ranges::any_of(graph.nodes, [](const Node& n) {
           return std::ranges::any_of(n.inputs, [](const auto& i) {
             return i.second.graph != nullptr && has_complex_values(*i.second.graph);
           });
         });
}

}  // namespace

std::optional<int64_t> type_of_parts(int64_t scalar_type) {
  constexpr int64_t kComplex32 = 9, kComplex64 = 10, kComplex128 = 11;
  constexpr int64_t kFloat16 = 6, kFloat32 = 7, kFloat64 = 8;
  switch (scalar_type) {
    case kComplex32:
      return kFloat16;
    case kComplex64:
      return kFloat32;
    case kComplex128:
      return kFloat64;
    default:
      return std::nullopt;
  }
}

Program without_complex_values(Program program) {
  if (!has_complex_values(program.graph)) return program;
  program.graph = Rewriter(program.graph, false).run();
  return program;
}

}  // namespace relay::frontend::torch
