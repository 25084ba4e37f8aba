#include "frontend/torch/importer.h"

#include <algorithm>
#include <limits>

#include "analysis/calls.h"
#include "analysis/size_hints.h"
#include "analysis/typical_sizes.h"
#include "base/codes/frontend.h"
#include "frontend/common/open_args.h"
#include "frontend/common/operator_error.h"
#include "frontend/common/shape_args.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/torch/node_context.h"
#include "ir/op.h"
#include "runtime/core/strings.h"

namespace relay::frontend::torch {
namespace {

const char* role_name(InputSpec::Kind kind) {
  switch (kind) {
    case InputSpec::Kind::parameter:
      return "parameter";
    case InputSpec::Kind::buffer:
      return "buffer";
    case InputSpec::Kind::tensor_constant:
      return "tensor_constant";
    default:
      return "user_input";
  }
}

// What the results of a node stand for, by the alternative of the schema that names them.
OutputRef output_of(const Graph& graph, const std::string& name) {
  OutputRef out{name, OutputRef::tensor, nullptr};
  if (auto it = graph.tensors.find(name); it != graph.tensors.end()) {
    out.meta = &it->second;
  } else if (graph.sizes.contains(name)) {
    out.kind = OutputRef::size;
  }
  return out;
}

// The last frame of a stack trace as PyTorch writes it: `File "model.py", line 12, in forward`.
std::string last_frame(const std::string& trace) {
  const size_t at = trace.rfind("File \"");
  if (at == std::string::npos) return "";
  return trace.substr(at, trace.find('\n', at) - at);
}

}  // namespace

std::vector<OutputRef> outputs_of(const Graph& graph, const Node& node) {
  std::vector<OutputRef> out;
  for (const Argument& a : node.outputs) {
    for (const Element& e : a.elements) {
      const auto* name = std::get_if<ValueName>(&e);
      out.push_back(name == nullptr ? OutputRef{} : output_of(graph, name->name));
    }
  }
  return out;
}

Importer::Importer(std::shared_ptr<const SourceFile> file, const ImportOptions& options,
                   const Program& program, const std::map<std::string, Tensor>& tensors)
    : ProgramBuilder(std::move(file), options), torch_(program), tensors_(tensors) {
  symbols_ = [this](const std::string& name) {
    auto it = dims_.find(name);
    return it == dims_.end() ? dim_any() : it->second;
  };
}

Span Importer::place_of(const Node& node) const {
  const std::string op = "(" + shorten(std::string(operator_of(node.target))) + ")";
  const std::string frame = last_frame(node.stack_trace);
  return place(frame.empty() ? "node " + shorten(node.name) + " " + op : shorten(frame) + " " + op);
}

Type Importer::type_of(const TensorMeta& meta, const Span& span) const {
  auto dtype = dtype_of(meta.dtype);
  if (!dtype || meta.layout != TensorMeta::kStrided) return nullptr;
  std::vector<Dim> shape;
  for (const SizeText& s : meta.sizes) shape.push_back(size_of(s, symbols_, span));
  return tensor_type(std::move(shape), *dtype);
}

// ---- Values ------------------------------------------------------------------------------------

TensorValue& Importer::value(const std::string& name, const Span& span) {
  Frame& frame = frames_.back();
  auto it = frame.find(name);
  if (it == frame.end()) {
    throw UserError(Diagnostic(codes::frontend_graph, span,
                               "value '" + shorten(name) + "' is not defined before this node")
                        .expected("an input of the graph, or the output of an earlier node"));
  }
  return it->second;
}

ValuePtr Importer::read(TensorValue& v) {
  Storage& storage = *v.storage;
  if (storage.value->failed) throw Poisoned{};
  if (v.views.empty()) return storage.value;
  if (v.known_at >= 0 && v.known_at != storage.writes) {
    throw UserError(Diagnostic(codes::frontend_attribute,
                               place("value " + shorten(storage.value->name)),
                               "a tensor is read that may be a view of one that was written")
                        .help("make it a copy: x = x.clone()"));
  }
  if (v.read_at != storage.writes) {
    Expr e = expr_of(storage.value);
    for (const View& view : v.views) e = view.read(e);
    v.read = with_known(value_of(std::move(e)));
    v.read_at = storage.writes;
  }
  return v.read;
}

void Importer::write(TensorValue& v, const Expr& elements, const Span& span) {
  auto refuse = [&](const char* what) {
    throw UserError(Diagnostic(codes::frontend_attribute, span, what)
                        .help("write into a copy instead: x = x.clone()"));
  };
  if (v.known_at >= 0) refuse("an operator writes into what may be a view or a copy");
  // What each view is read from, then what it has to become.
  std::vector<Expr> bases;
  Expr e = v.views.empty() ? nullptr : expr_of(v.storage->value);
  for (const View& view : v.views) {
    if (!view.write) refuse("an operator writes into a view that repeats elements");
    bases.push_back(e);
    e = view.read(e);
  }
  e = elements;
  for (size_t i = v.views.size(); i-- > 0;) e = v.views[i].write(bases[i], e);
  v.storage->value = value_of(std::move(e));
  ++v.storage->writes;
}

void Importer::require(const Expr& condition, const std::string& message, const Span& span) {
  Expr text = constant(runtime::make_strings({}, {message}), span);
  checks_.push_back(make_call("debug.check", {condition, tuple({text}, span)}, {}, span));
}

void Importer::put_behind_checks(Values& values, const Span& span) {
  if (values.empty() || values[0]->failed) return;
  Expr first = checks_.empty() ? nullptr : expr_of(values[0]);
  for (const Expr& check : checks_) first = make_call("after", {first, check}, {}, span);
  if (first) values[0] = value_of(first);
  checks_.clear();
}

void Importer::define_fresh(const std::string& name, ValuePtr v, const Span& span) {
  if (name.empty()) return;
  if (v->name.empty()) {
    v->name = name;
    v->span = span;
  }
  auto [it, inserted] = frames_.back().try_emplace(name);
  if (!inserted) {
    report(Diagnostic(codes::frontend_graph, span, "value '" + shorten(name) + "' is defined twice")
               .expected("one definition of each name"));
    return;
  }
  it->second.storage = std::make_shared<Storage>();
  it->second.storage->value = std::move(v);
}

// ---- Inputs ------------------------------------------------------------------------------------

// The elements of a tensor in row-major order that lie by strides in a storage.
void Importer::declare_weight(const InputSpec& spec, const std::string& name,
                              const TensorMeta& meta) {
  const Span span = place("weight " + shorten(spec.target));
  const Tensor& t = tensors_.at(spec.target);
  Type expected = type_of(meta, span);
  const auto* type = expected == nullptr ? nullptr : as<TensorTypeNode>(expected);
  bool fits = type != nullptr && t.dtype() == type->dtype &&
              static_cast<size_t>(t.rank()) == type->shape.size();
  for (size_t a = 0; fits && a < type->shape.size(); ++a)
    fits = !dim_differs(dim(t.dim(a)), type->shape[a]);
  if (!fits) {
    throw UserError(
        Diagnostic(codes::frontend_tensor, span,
                   "weight '" + shorten(spec.target) + "' does not have the type of the graph")
            .expected(expected == nullptr ? name_of_scalar_type(meta.dtype) : to_string(expected))
            .found(runtime::type_string(t.dtype(), t.shape())));
  }
  ValuePtr v = value_of(t);
  v->name = spec.target;
  v->span = span;
  v->is_parameter = !options().freeze_params;
  define_fresh(name, std::move(v), span);
}

// The symbols that sizes of inputs are, and those that follow from sizes such as 2 * s0.
void Importer::bind_symbols() {
  struct Relation {
    const std::string* input;
    size_t axis;
    const SizeText* text;
  };
  std::vector<Relation> relations;
  auto shape_of = [&](const std::string& name) {
    ValuePtr v = main_scope().find(name);
    return v == nullptr ? std::vector<Dim>() : Builder::shape_of(expr_of(v));
  };
  for (const Argument& a : torch_.graph.inputs) {
    const std::string* name = a.name();
    auto meta = name == nullptr ? torch_.graph.tensors.end() : torch_.graph.tensors.find(*name);
    if (meta == torch_.graph.tensors.end() || main_scope().find(*name) == nullptr) continue;
    const std::vector<Dim> shape = shape_of(*name);
    for (size_t axis = 0; axis < std::min(shape.size(), meta->second.sizes.size()); ++axis) {
      const SizeText& text = meta->second.sizes[axis];
      const std::string symbol = symbol_of(text);
      if (!symbol.empty()) {
        dims_.emplace(symbol, shape[axis]);
      } else if (std::holds_alternative<std::string>(text)) {
        relations.push_back({name, axis, &text});
      }
    }
  }
  for (const TorchInput& input : inputs_) {
    if (input.kind == "size")
      dims_.emplace(symbol_of(torch_.graph.sizes.at(input.name)), shape_of(input.name)[0]);
  }
  const Span span = place("inputs");
  for (const Relation& r : relations) {
    const Dim own = shape_of(*r.input)[r.axis];
    // A symbol that no size is: where the size is linear in it, it is (size - b) / a.
    std::set<std::string> unknown;
    parse_size(
        std::get<std::string>(*r.text),
        [&](const std::string& s) {
          if (!dims_.contains(s)) unknown.insert(s);
          return dim_any();
        },
        span);
    if (unknown.size() == 1) {
      auto with = [&](int64_t n) -> std::optional<int64_t> {
        try {
          return as_const(parse_size(
              std::get<std::string>(*r.text), [&](const std::string&) { return dim(n); }, span));
        } catch (const UserError&) {
          return std::nullopt;  // a divisor is 0 there, so the size is not linear
        }
      };
      const auto zero = with(0), one = with(1), two = with(2);
      if (zero && one && two && *one > *zero && *two - *one == *one - *zero)
        dims_.emplace(*unknown.begin(), floor_div(own - dim(*zero), dim(*one - *zero)));
    }
    // A run checks that the size is what it has to be.
    ValuePtr v = main_scope().find(*r.input);
    Builder build(*this, *r.input, span);
    TensorValue& held = value(*r.input, span);
    held.storage->value =
        value_of(with_size(build, expr_of(held.storage->value), static_cast<int64_t>(r.axis),
                           size_of(*r.text, symbols_, span)));
  }
}

// Integers that are inputs: sizes of other inputs, or parameters of their own.
void Importer::bind_integers() {
  for (size_t i = 0; i < torch_.graph.inputs.size(); ++i) {
    TorchInput& input = inputs_[i];
    if (input.kind != "size" && input.kind != "number" && input.kind != "size_of") continue;
    const Span span = place("input " + shorten(input.name));
    const Dim size = size_of(torch_.graph.sizes.at(input.name), symbols_, span);
    if (input.kind == "number") {
      define_fresh(input.name, main_scope().find(input.name), span);
    } else {
      define_fresh(input.name, value_of(known_scalar(size)), span);
    }
    if (input.kind != "size_of") continue;
    const auto* named = as<DimVarNode>(size);
    const auto* source = named == nullptr ? nullptr : source_of(named->var);
    if (source == nullptr) continue;
    for (const TorchInput& other : inputs_) {
      ValuePtr v = other.parameter ? main_scope().find(other.name) : nullptr;
      if (v != nullptr && v->expr == Expr(source->first))
        input.source = {other.name, source->second};
    }
  }
}

void Importer::declare() {
  frames_.emplace_back();
  // Symbols that are sizes of tensors: such an integer is not a parameter.
  std::set<std::string> sizes;
  for (const Argument& a : torch_.graph.inputs) {
    auto meta =
        a.name() == nullptr ? torch_.graph.tensors.end() : torch_.graph.tensors.find(*a.name());
    if (meta == torch_.graph.tensors.end()) continue;
    for (const SizeText& s : meta->second.sizes)
      if (std::string symbol = symbol_of(s); !symbol.empty()) sizes.insert(symbol);
  }
  std::vector<DeclaredInput> declared;
  for (size_t i = 0; i < torch_.graph.inputs.size(); ++i) {
    const InputSpec& spec = torch_.inputs[i];
    const Argument& arg = torch_.graph.inputs[i];
    const std::string* name = arg.name();
    TorchInput& input = inputs_.emplace_back();
    input.role = role_name(spec.kind);
    if (spec.is_weight()) input.target = spec.target;
    if (name == nullptr) {
      input.kind = "constant";
      input.name = spec.target;
      if (arg.kind == Argument::Kind::unsupported || spec.kind == InputSpec::Kind::unsupported) {
        report(Diagnostic(codes::frontend_attribute, place("input #" + std::to_string(i)),
                          "an input of this kind cannot be imported")
                   .expected("tensors, integers, and constants")
                   .found(spec.kind == InputSpec::Kind::unsupported ? spec.target : arg.what));
      }
      continue;
    }
    input.name = *name;
    const Span span = place("input " + shorten(*name));
    DeclaredInput d{.name = *name};
    if (auto size = torch_.graph.sizes.find(*name); size != torch_.graph.sizes.end()) {
      const std::string symbol = symbol_of(size->second);
      if (symbol.empty() || sizes.contains(symbol)) {
        input.kind = "size_of";
        continue;
      }
      const auto range = torch_.ranges.find(symbol);
      const bool negative =
          range != torch_.ranges.end() && (!range->second.least || *range->second.least < 0);
      // A data-dependent integer is a number: its symbol is no dimension.
      const bool from_data = is_any(size_of(
          size->second, [](const std::string&) { return dim(1); }, span));
      const bool is_number = negative || from_data;
      input.kind = is_number ? "number" : "size";
      d.dtype = is_number ? DType::Int(64) : DType::UInt(8);
      d.shape.emplace();
      if (!is_number) d.shape = {{.name = symbol}, {.size = 0}};
      declared.push_back(std::move(d));
      continue;
    }
    auto meta = torch_.graph.tensors.find(*name);
    if (meta == torch_.graph.tensors.end()) {
      report(Diagnostic(codes::frontend_graph, span,
                        "the graph does not say what input '" + shorten(*name) + "' is")
                 .expected("an entry in tensor_values or sym_int_values"));
      continue;
    }
    if (spec.is_weight() && tensors_.contains(spec.target)) {
      input.kind = "weight";
      try {
        declare_weight(spec, *name, meta->second);
      } catch (const UserError& e) {
        report(e);
      }
      continue;
    }
    input.kind = "tensor";
    d.dtype = dtype_of(meta->second.dtype);
    d.dtype_name = name_of_scalar_type(meta->second.dtype);
    if (meta->second.layout != TensorMeta::kStrided)
      d.unusable = "a tensor whose layout is not strided";
    d.shape.emplace();
    for (const SizeText& s : meta->second.sizes) {
      if (const auto* n = std::get_if<int64_t>(&s)) {
        d.shape->push_back({.size = *n});
      } else {
        d.shape->push_back({.name = symbol_of(s)});
      }
    }
    declared.push_back(std::move(d));
  }
  declare_inputs(std::move(declared));
  throw_if_errors();
  const std::vector<std::string>& parameters = result().input_names;
  for (TorchInput& input : inputs_) {
    auto at = std::ranges::find(parameters, input.name);
    if (at != parameters.end()) input.parameter = static_cast<size_t>(at - parameters.begin());
    if (input.kind == "tensor") {
      // What nodes call the input; a write into it leaves the parameter as it is.
      define_fresh(input.name, main_scope().find(input.name),
                   place("input " + shorten(input.name)));
    }
  }
  bind_symbols();
  bind_integers();
  for (const TorchInput& input : inputs_) {
    auto it = frames_.back().find(input.name);
    if (it != frames_.back().end()) input_of_.emplace(it->second.storage.get(), input.name);
  }
  throw_if_errors();
}

// ---- Nodes -------------------------------------------------------------------------------------

void Importer::fail(const Node& node, size_t index, const std::vector<OutputRef>& outputs,
                    const Span& span, std::vector<Diagnostic> why) {
  if (!surveys_) {
    for (Diagnostic& d : why) report(operator_error(std::move(d), span));
    for (const OutputRef& o : outputs) define_fresh(o.name, failed_value(), span);
    return;
  }
  const size_t place = depth_ > 0 ? outer_node_ : index;
  if (gaps_.empty() || gaps_.back().node != place)
    gaps_.push_back({place, node.target, why.empty() ? "" : why[0].message});
  for (const OutputRef& o : outputs) {
    Type type = o.meta == nullptr ? Type() : type_of(*o.meta, span);
    if (o.kind == OutputRef::size) type = tensor_type(std::vector<Dim>{}, DType::Int(64));
    define_fresh(o.name,
                 type == nullptr ? failed_value() : value_of(Expr(var("unknown", type, span))),
                 span);
  }
}

void Importer::import_node(const Graph& graph, const Node& node, size_t index) {
  const Span span = place_of(node);
  check_budget(span);
  if (depth_ == 0) outer_node_ = index;
  const std::vector<OutputRef> outputs = outputs_of(graph, node);
  try {
    convert(graph, node, outputs, span);
  } catch (const Poisoned&) {
    for (const OutputRef& o : outputs)
      if (!frames_.back().contains(o.name)) define_fresh(o.name, failed_value(), span);
  } catch (const BranchesDiffer& branches) {
    fail(node, index, outputs, span, {rank_is_open(branches, span)});
  } catch (const UserError& e) {
    if (exceeded()) throw;
    fail(node, index, outputs, span, e.diagnostics());
  }
}

void Importer::import_nodes(const Graph& graph) {
  for (const Node& node : graph.nodes) import_node(graph, node, node.source);
}

ValuePtr Importer::checked(NodeContext& ctx, ValuePtr v, const OutputRef& output) {
  if (v->is_list || output.meta == nullptr) return v;
  auto dtype = dtype_of(output.meta->dtype);
  if (!dtype) {
    ctx.fail(codes::frontend_attribute, "the result has an element type that Relay lacks", {},
             name_of_scalar_type(output.meta->dtype));
  }
  if (output.meta->layout != TensorMeta::kStrided)
    ctx.unsupported("a tensor whose layout is not strided");
  std::vector<Dim> shape;
  for (const SizeText& s : output.meta->sizes) shape.push_back(size_of(s, symbols_, ctx.span()));
  Expr e = expr_of(v);
  const TensorTypeNode& type = Builder::type_of(e);
  bool fits = type.dtype == *dtype && type.shape.size() == shape.size();
  bool says_more = false;
  for (size_t a = 0; fits && a < shape.size(); ++a) {
    fits = !dim_differs(type.shape[a], shape[a]);
    says_more = says_more || (is_any(type.shape[a]) && !is_any(shape[a]));
  }
  if (!fits) {
    ctx.fail(codes::frontend_graph, "the result is not what the graph says",
             to_string(tensor_type(shape, *dtype)), to_string(e->type));
  }
  return says_more ? value_of(ctx.with_sizes(e, shape)) : with_known(std::move(v));
}

void Importer::convert_view(NodeContext& ctx, const Row& row, bool copies,
                            const std::vector<OutputRef>& outputs) {
  const Argument& base_arg = ctx.at(0);
  const std::string* name = base_arg.name();
  if (name == nullptr) ctx.fail(codes::frontend_graph, "the tensor of a view is missing");
  std::vector<View> views = row.view(ctx);
  ctx.check_all_read();
  for (size_t i = 0; i < std::min(outputs.size(), views.size()); ++i) {
    if (outputs[i].name.empty()) continue;
    TensorValue v = value(*name, ctx.span());
    const View::How how = copies ? View::How::copy : views[i].how;
    v.views.push_back(std::move(views[i]));
    v.read_at = -1;
    // A view that cannot be read fails here, where its operator is.
    ValuePtr now = checked(ctx, read(v), outputs[i]);
    if (how == View::How::copy) {
      define_fresh(outputs[i].name, std::move(now), ctx.span());
      continue;
    }
    if (how == View::How::unknown && v.known_at < 0) v.known_at = v.storage->writes;
    v.read = std::move(now);
    if (!frames_.back().emplace(outputs[i].name, std::move(v)).second) {
      ctx.fail(codes::frontend_graph, "value '" + shorten(outputs[i].name) + "' is defined twice");
    }
  }
}

void Importer::convert_in_place(NodeContext& ctx, const Row& row,
                                const std::vector<OutputRef>& outputs) {
  const std::string* name = ctx.at(0).name();
  if (name == nullptr) ctx.fail(codes::frontend_graph, "the tensor that is written is missing");
  TensorValue self = value(*name, ctx.span());
  if (row.view != nullptr) {
    // Only how the tensor is seen changes: for all that comes after, under both names.
    std::vector<View> views = row.view(ctx);
    self.views.push_back(std::move(views.at(0)));
    self.read_at = -1;
  } else {
    Expr before = expr_of(read(self));
    Values results = row.convert(ctx);
    Expr after = expr_of(results.at(0));
    after = ctx.cast(after, Builder::dtype_of(before));
    after = ctx.broadcast_to(after, Builder::shape_of(before));
    write(self, after, ctx.span());
    self.read_at = -1;
  }
  ctx.check_all_read();
  if (row.view != nullptr) value(*name, ctx.span()) = self;
  if (!outputs.empty() && !outputs[0].name.empty()) {
    checked(ctx, read(self), outputs[0]);
    frames_.back()[outputs[0].name] = self;
  }
}

void Importer::convert(const Graph& graph, const Node& node, const std::vector<OutputRef>& outputs,
                       const Span& span) {
  // Integers that are terms over sizes of inputs need no operator.
  if (outputs.size() == 1 && outputs[0].kind == OutputRef::size) {
    const Dim size = size_of(graph.sizes.at(outputs[0].name), symbols_, span);
    if (!is_any(size)) {
      define_fresh(outputs[0].name, value_of(known_scalar(size)), span);
      return;
    }
  }
  if (!node.refusal.empty())
    throw UserError(Diagnostic(codes::frontend_unsupported, span, node.refusal));
  const std::string_view target = operator_of(node.target);
  const FoundRow found = row_for(target);
  const Row* row = found.row;
  if (row == nullptr) {
    // The reason of a gap stands beside the operator's name.
    const std::string said =
        surveys_ ? "Relay does not support it"
                 : "operator " + shorten(std::string(target)) + " cannot be imported";
    throw UserError(Diagnostic(codes::frontend_unsupported, span, said)
                        .help("run the exported program's decompositions: "
                              "ep.run_decompositions(); or replace the operator in the model"));
  }
  NodeContext ctx(*this, graph, node, *row, span);
  if (found.in_place) return convert_in_place(ctx, *row, outputs);
  if (row->view != nullptr) return convert_view(ctx, *row, found.copies, outputs);
  Values values = row->convert(ctx);
  ctx.check_all_read();
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (outputs[i].name.empty()) continue;
    ValuePtr v = i < values.size() ? values[i] : nullptr;
    if (v == nullptr) {
      ctx.fail(codes::frontend_unsupported, "result " + std::to_string(i) + " cannot be imported");
    }
    if (row->in_float32 && outputs[i].meta != nullptr && !v->is_list) {
      auto dtype = dtype_of(outputs[i].meta->dtype);
      if (dtype && dtype->bits == 16 && dtype->is_floating())
        v = value_of(ctx.cast(expr_of(v), *dtype));
    }
    define_fresh(outputs[i].name, checked(ctx, std::move(v), outputs[i]), span);
  }
}

Values Importer::import_part(const Graph& graph, const Values& inputs, const Span& span) {
  if (graph.inputs.size() != inputs.size()) {
    throw UserError(Diagnostic(codes::frontend_graph, span,
                               "a part of the program has another number of inputs")
                        .expected(std::to_string(inputs.size()))
                        .found(std::to_string(graph.inputs.size())));
  }
  Values results;
  frames_.emplace_back();
  ++depth_;
  std::vector<Expr> checks = std::exchange(checks_, {});
  const size_t before = diagnostics().error_count();
  auto leave = [&] {
    --depth_;
    frames_.pop_back();
    checks_ = std::move(checks);
  };
  try {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const std::string* name = graph.inputs[i].name();
      if (name != nullptr) define_fresh(*name, inputs[i], span);
    }
    nested(span, [&] { import_nodes(graph); });
    for (const Argument& a : graph.outputs) {
      for (const Element& e : a.elements) {
        const auto* name = std::get_if<ValueName>(&e);
        if (name == nullptr) {
          throw UserError(Diagnostic(codes::frontend_attribute, span,
                                     "a result of a part of the program is not a tensor"));
        }
        results.push_back(read(value(name->name, span)));
      }
    }
    for (auto& [name, v] : frames_.back()) {
      const bool is_input = std::ranges::any_of(graph.inputs, [&](const Argument& a) {
        return a.name() != nullptr && *a.name() == name;
      });
      if (is_input && v.storage->writes > 0) {
        throw UserError(Diagnostic(codes::frontend_attribute, span,
                                   "a part of the program writes into its input")
                            .help("return the new value instead"));
      }
    }
  } catch (...) {
    leave();
    throw;
  }
  if (diagnostics().error_count() == before) put_behind_checks(results, span);
  leave();
  if (diagnostics().error_count() > before) throw Poisoned{};
  return results;
}

// ---- The whole program -------------------------------------------------------------------------

void Importer::collect_outputs(TorchProgram& out,
                               std::vector<std::pair<std::string, ValuePtr>>& results) {
  std::set<std::string> names;
  auto add = [&](TorchOutput output, ValuePtr v) {
    std::string name = output.name;
    for (int i = 1; !names.insert(name).second; ++i) name = output.name + "_" + std::to_string(i);
    output.result = results.size();
    results.emplace_back(name, std::move(v));
    out.outputs.push_back(std::move(output));
  };
  std::set<std::string> told;
  for (size_t i = 0; i < torch_.graph.outputs.size(); ++i) {
    const OutputSpec& spec = torch_.outputs[i];
    const Argument& arg = torch_.graph.outputs[i];
    const Span span = place("output #" + std::to_string(i));
    TorchOutput output;
    output.kind = spec.kind;
    output.target = spec.target;
    if (!spec.target.empty()) told.insert(spec.target);
    if (arg.kind != Argument::Kind::value || arg.is_list || arg.elements.size() != 1) {
      report(
          Diagnostic(codes::frontend_attribute, span, "an output of this kind cannot be imported")
              .expected("a tensor, a number, a string or None"));
      continue;
    }
    const std::string* name = arg.name();
    if (name == nullptr) {
      std::visit(
          [&](const auto& e) {
            if constexpr (!std::is_same_v<std::decay_t<decltype(e)>, ValueName>) output.value = e;
          },
          arg.elements[0]);
      out.outputs.push_back(std::move(output));
      continue;
    }
    output.name = *name;
    try {
      TensorValue& v = value(*name, span);
      if (auto it = input_of_.find(v.storage.get()); it != input_of_.end())
        output.alias_of = it->second;
      if (torch_.graph.sizes.contains(*name)) output.number = "int";
      ValuePtr read_value = v.storage->value->failed ? v.storage->value : read(v);
      add(std::move(output), std::move(read_value));
    } catch (const UserError& e) {
      report(e);
    }
  }
  // What operators wrote into inputs.
  for (size_t i = 0; i < inputs_.size(); ++i) {
    const TorchInput& input = inputs_[i];
    auto it = frames_.back().find(input.name);
    if (it == frames_.back().end() || it->second.storage->writes == 0) continue;
    const std::string& target = input.target.empty() ? input.name : input.target;
    if (told.contains(target)) continue;
    TorchOutput output;
    output.name = input.name + "_new";
    output.kind = input.role == "parameter" ? "parameter_mutation"
                  : input.target.empty()    ? "user_input_mutation"
                                            : "buffer_mutation";
    output.target = target;
    add(std::move(output), it->second.storage->value);
  }
}

namespace {

// @main with the ranges of its sizes, which a run checks. PyTorch's programs are traced for sizes from 2 on and hold for 0
// and 1, too: only a greater bound is one.
Module with_ranges(const Module& mod, const std::vector<TorchSize>& sizes) {
  constexpr int64_t kTraced = 2, kMost = std::numeric_limits<int64_t>::max();
  Function main = mod->find("main");
  std::vector<SizeHint> ranges;
  for (const TorchSize& s : sizes) {
    SizeHint range{.name = s.name, .likely = {}};
    if (s.least && *s.least > kTraced) range.low = *s.least;
    // PyTorch writes the greatest number but one for no bound.
    if (s.greatest && *s.greatest >= range.low && *s.greatest < kMost - 1) range.high = *s.greatest;
    const bool open = std::ranges::any_of(main->type_params,
                                          [&](const TypeVar& v) { return v->name_hint == s.name; });
    if (open && range.has_range()) ranges.push_back(std::move(range));
  }
  if (ranges.empty()) return mod;
  Function ranged = with_size_hints(main, ranges);
  return with_function(mod, global_var("main", ranged->type), ranged);
}

}  // namespace

TorchProgram Importer::run() {
  declare();
  import_nodes(torch_.graph);
  throw_if_errors();
  TorchProgram out;
  std::vector<std::pair<std::string, ValuePtr>> results;
  collect_outputs(out, results);
  throw_if_errors();
  std::unordered_map<std::string, int64_t> seen;
  for (const auto& [expression, size] : torch_.seen) seen[symbol_of(expression)] = size;
  std::vector<std::pair<std::string, int64_t>> typical;
  for (const auto& [symbol, size] : dims_) {
    const auto* named = as<DimVarNode>(size);
    if (named == nullptr) continue;
    TorchSize& s = out.sizes.emplace_back();
    s.name = named->var->name_hint;
    if (auto range = torch_.ranges.find(symbol); range != torch_.ranges.end()) {
      s.least = range->second.least;
      s.greatest = range->second.greatest;
    }
    if (auto it = seen.find(symbol); it != seen.end()) typical.emplace_back(s.name, it->second);
  }
  if (!results.empty()) {
    Values first{results[0].second};
    put_behind_checks(first, place("outputs"));
    results[0].second = first[0];
  }
  result().producer = "PyTorch " + torch_.torch_version;
  out.inputs = inputs_;
  out.model = finish(results);
  out.model.module = with_ranges(out.model.module, out.sizes);
  const Function main = with_typical_sizes(out.model.module->find("main"), typical);
  out.model.module = with_function(out.model.module, global_var("main", main->type), main);
  return out;
}

std::vector<TorchGap> Importer::gaps() {
  surveys_ = true;
  declare();
  import_nodes(torch_.graph);
  return gaps_;
}

}  // namespace relay::frontend::torch
