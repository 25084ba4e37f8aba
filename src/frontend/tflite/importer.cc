#include "frontend/tflite/importer.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "frontend/common/branches.h"
#include "frontend/common/custom_operators.h"
#include "frontend/common/operator_error.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/rows.h"
#include "runtime/core/strings.h"

namespace relay::frontend::tflite {
namespace {

// The list, which a file may leave out.
template <class T>
std::span<const T> span_of(const flatbuffers::Vector<T>* list) {
  if (list == nullptr) return {};
  return {list->data(), list->size()};
}

}  // namespace

Importer::Importer(std::shared_ptr<const SourceFile> file, const ImportOptions& options,
                   const Model& model)
    : ProgramBuilder(std::move(file), options), model_(model) {}

// ---- The whole model ---------------------------------------------------------------------------

// All operators that cannot be imported are named at once.
void Importer::check_operators() {
  std::set<std::string> reported;
  for (size_t g = 0; g < model_.num_graphs(); ++g) {
    const auto* operators = model_.graph(g).operators();
    for (size_t i = 0; operators != nullptr && i < operators->size(); ++i) {
      const auto& op = *operators->Get(static_cast<flatbuffers::uoffset_t>(i));
      const OperatorKind& kind = model_.kind(op);
      const bool known =
          row_of(kind) != nullptr || (kind.is_custom && custom_operator("tflite", kind.name));
      if (!known && reported.insert(kind.name).second) {
        Diagnostic d(codes::frontend_unsupported, place(model_.operator_label(g, i)),
                     (kind.is_custom ? "custom operator " : "operator ") + shorten(kind.name) +
                         " cannot be imported");
        if (kind.is_custom) d.help("relay.frontend.tflite.register(name, function) adds one");
        report(std::move(d));
      }
      const int32_t most = kind.is_custom ? INT32_MAX : std::max(known_version(kind.code), 1);
      if (known && kind.version > most && reported.insert(kind.name + " version").second) {
        report(Diagnostic(codes::frontend_version, place(model_.operator_label(g, i)),
                          "operator " + shorten(kind.name) + " is of a newer version")
                   .expected("at most " + std::to_string(most))
                   .found(std::to_string(kind.version))
                   .help("convert the model with an earlier converter"));
      }
    }
  }
  throw_if_errors();
}

ImportedModel Importer::run(const std::string& signature) {
  size_t graph = 0;
  std::map<int32_t, std::string> input_names, output_names;
  if (!signature.empty()) {
    const schema::Signature* found = nullptr;
    std::string known;
    if (model_.root().signatures() != nullptr) {
      for (const schema::Signature* s : *model_.root().signatures()) {
        const std::string key = short_text(s->key());
        if (key == signature) found = s;
        known += (known.empty() ? "" : ", ") + shorten(key);
      }
    }
    if (found == nullptr) {
      throw UserError(Diagnostic(codes::frontend_option, place("model"),
                                 "the model has no signature '" + shorten(signature) + "'")
                          .expected(known.empty() ? "no signature" : known));
    }
    graph = found->subgraph();
    auto read = [](const auto* maps, std::map<int32_t, std::string>& names) {
      if (maps == nullptr) return;
      for (const schema::TensorMap* m : *maps)
        names[static_cast<int32_t>(m->tensor())] = short_text(m->name());
    };
    read(found->inputs(), input_names);
    read(found->outputs(), output_names);
  }
  check_operators();
  result().producer = std::string(text_of(model_.root().description()));
  result().version = model_.root().version();

  const schema::SubGraph& g = model_.graph(graph);
  frames_.push_back(
      {graph, std::vector<ValuePtr>(g.tensors() == nullptr ? 0 : g.tensors()->size())});
  declare(graph, input_names);
  throw_if_errors();
  std::vector<std::pair<std::string, ValuePtr>> outputs;
  UniqueNames names;
  try {
    import_operators(graph);
    for (int32_t t : span_of(g.outputs())) {
      auto named = output_names.find(t);
      const std::string name = names.take(
          named != output_names.end() ? named->second : interface_name(model_, graph, t));
      ValuePtr v = diagnostics().has_errors() ? frames_.back().values[static_cast<size_t>(t)]
                                              : value(t, place("outputs"));
      if (v != nullptr && v->is_list) {
        throw UserError(Diagnostic(codes::frontend_attribute, place("outputs"),
                                   "output '" + shorten(name) + "' is not a tensor of numbers")
                            .expected("real numbers, bools or strings")
                            .found("complex numbers, or a resource"));
      }
      outputs.emplace_back(name, std::move(v));
    }
  } catch (const BranchesDiffer& branches) {
    report(open_branches(branches, place("outputs")));
  }
  throw_if_errors();
  if (outputs.empty()) {
    throw UserError(
        Diagnostic(codes::frontend_graph, place("outputs"), "the subgraph has no outputs"));
  }
  return finish(outputs);
}

void Importer::declare(size_t graph, const std::map<int32_t, std::string>& names) {
  std::vector<DeclaredInput> declared;
  std::vector<std::pair<int32_t, std::string>> inputs;
  UniqueNames taken;
  for (int32_t t : span_of(model_.graph(graph).inputs())) {
    const schema::Tensor& tensor = model_.tensor(graph, t);
    auto named = names.find(t);
    DeclaredInput input;
    input.name =
        taken.take(named != names.end() ? named->second : interface_name(model_, graph, t));
    input.dtype = tflite::dtype_of(tensor.type());
    input.dtype_name = name_of(tensor.type());
    if (tensor.sparsity() != nullptr) input.unusable = "a sparse tensor";
    const auto shape = span_of(tensor.shape()), open = span_of(tensor.shape_signature());
    // A tensor without sizes that is not said to have a rank is a number.
    input.shape.emplace();
    for (size_t a = 0; a < shape.size(); ++a) {
      DeclaredInput::Size size;
      if (open.size() != shape.size() || open[a] >= 0) size.size = shape[a];
      input.shape->push_back(size);
    }
    inputs.emplace_back(t, input.name);
    declared.push_back(std::move(input));
  }
  declare_inputs(std::move(declared));
  for (const auto& [t, name] : inputs)
    frames_.back().values[static_cast<size_t>(t)] = main_scope().find(name);
}

// ---- Values ------------------------------------------------------------------------------------

ValuePtr Importer::value(int32_t index, const Span& span) {
  Frame& frame = frames_.back();
  ValuePtr& held = frame.values[static_cast<size_t>(index)];
  if (held != nullptr) return held;
  const schema::Tensor& t = model_.tensor(frame.graph, index);
  const std::string name = name_of(t);
  const Span own = place("tensor " + (name.empty() ? "#" + std::to_string(index) : shorten(name)));
  Tensor data = model_.constant(
      t, [&](int64_t bytes) { charge_bytes(bytes, own); }, own);
  const auto dtype = tflite::dtype_of(t.type());
  // The state of a recurrent layer, which is zero before the first run; a tensor without elements has no bytes.
  std::vector<int64_t> shape(span_of(t.shape()).begin(), span_of(t.shape()).end());
  const bool empty = std::ranges::find(shape, 0) != shape.end();
  if (!data && dtype && (t.is_variable() || empty)) {
    shape = checked_shape(std::move(shape), name, *dtype, own);
    charge_bytes(
        runtime::checked_num_elements(*dtype, shape) * static_cast<int64_t>(dtype->bytes()), own);
    data = Tensor::zeros(*dtype, shape);
    // The zero of a quantised state is its zero point.
    const auto* q = t.quantization();
    if (t.is_variable() && q != nullptr && q->zero_point() != nullptr &&
        q->zero_point()->size() == 1 && dtype->is_integer()) {
      for (int64_t i = 0; i < data.num_elements(); ++i)
        data.set_from_int(i, q->zero_point()->Get(0));
    }
  }
  if (!data) {
    throw UserError(
        Diagnostic(codes::frontend_graph, span,
                   "tensor " +
                       (name.empty() ? "#" + std::to_string(index) : "'" + shorten(name) + "'") +
                       " is not computed before this operator")
            .expected("an input, a constant, or the output of an earlier operator")
            .help("the operators are not in order, form a cycle, or one is missing"));
  }
  held = value_of(std::move(data));
  held->name = weight_names_.take(name.empty() ? "tensor" + std::to_string(index) : name);
  held->span = own;
  held->is_parameter = !options().freeze_params && !t.is_variable() && !empty;
  return held = with_known(std::move(held));
}

ValuePtr Importer::handle(const std::string& name) {
  ValuePtr& h = handles_[name];
  if (h == nullptr) {
    h = std::make_shared<ModelValue>();
    h->name = name;
    h->is_list = true;  // no tensor: what needs one refuses it
    resources_[h.get()].name = name;
  }
  return h;
}

Resource& Importer::resource(const ValuePtr& handle, const Span& span) {
  auto it = resources_.find(handle.get());
  if (it == resources_.end()) {
    throw UserError(Diagnostic(codes::frontend_graph, span, "the input is no handle of a resource")
                        .expected("what VAR_HANDLE or HASHTABLE gives"));
  }
  return it->second;
}

void Importer::check_may_write(const Span& span) const {
  if (branches_ == 0) return;
  throw UserError(
      Diagnostic(codes::frontend_attribute, span, "a resource is written in a branch or a loop")
          .expected("writes in the main subgraph, and in those that are called once")
          .help("make the value an output of the branch, or a carried value"));
}

void Importer::update_state(int32_t tensor, ValuePtr value) {
  if (tensor >= 0) frames_.back().values[static_cast<size_t>(tensor)] = std::move(value);
}

// ---- Operators ---------------------------------------------------------------------------------

void Importer::import_operators(size_t graph) {
  const auto* operators = model_.graph(graph).operators();
  for (size_t i = 0; operators != nullptr && i < operators->size(); ++i) import_operator(graph, i);
}

void Importer::define_output(int32_t tensor, ValuePtr v, const Span& span) {
  if (tensor < 0) return;
  ValuePtr& held = frames_.back().values[static_cast<size_t>(tensor)];
  if (held != nullptr && !model_.tensor(frames_.back().graph, tensor).is_variable()) {
    report(Diagnostic(codes::frontend_graph, span,
                      "tensor #" + std::to_string(tensor) + " is computed twice")
               .expected("one operator for each tensor"));
    return;
  }
  if (v->name.empty()) {
    v->name = name_of(model_.tensor(frames_.back().graph, tensor));
    if (v->name.empty()) v->name = "tensor" + std::to_string(tensor);
    v->span = span;
  }
  held = std::move(v);
}

void Importer::import_operator(size_t graph, size_t index) {
  const schema::Operator& op =
      *model_.graph(graph).operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const Span span = place(model_.operator_label(graph, index));
  // An operator of many operands counts for several.
  constexpr size_t kOperands = 64;
  for (size_t n = 0; n <= (span_of(op.inputs()).size() + span_of(op.outputs()).size()) / kOperands;
       ++n)
    check_budget(span);
  const std::span<const int32_t> results = span_of(op.outputs());
  Values inputs, outputs;
  bool converted = false;
  try {
    for (int32_t t : span_of(op.inputs())) {
      inputs.push_back(t < 0 ? nullptr : value(t, span));
      if (inputs.back() != nullptr && inputs.back()->failed) throw Poisoned{};
    }
    outputs = convert(graph, index, inputs, span);
    converted = true;
  } catch (const Poisoned&) {
    outputs.clear();
  } catch (const UserError& e) {
    if (exceeded()) throw;
    report_operator(e, span, inputs);
    outputs.clear();
  }
  for (size_t i = 0; i < results.size(); ++i) {
    ValuePtr v = i < outputs.size() ? outputs[i] : nullptr;
    if (v == nullptr && converted && results[i] >= 0) {
      report(Diagnostic(codes::frontend_unsupported, span,
                        "output " + std::to_string(i) + " of operator " +
                            shorten(model_.kind(op).name) + " cannot be imported")
                 .help("convert the model without it"));
    }
    define_output(results[i], v == nullptr ? failed_value() : std::move(v), span);
  }
}

Values Importer::convert(size_t graph, size_t index, Values inputs, const Span& span) {
  const schema::Operator& op =
      *model_.graph(graph).operators()->Get(static_cast<flatbuffers::uoffset_t>(index));
  const OperatorKind& kind = model_.kind(op);
  Values outputs;
  if (CustomConverter custom =
          kind.is_custom ? custom_operator("tflite", kind.name) : CustomConverter()) {
    CustomCall call;
    for (const ValuePtr& v : inputs) call.inputs.push_back(v == nullptr ? nullptr : expr_of(v));
    if (op.custom_options() != nullptr) {
      call.options = {reinterpret_cast<const char*>(op.custom_options()->data()),
                      op.custom_options()->size()};
    }
    call.num_outputs = span_of(op.outputs()).size();
    call.span = span;
    outputs = values_of(custom(call));
  } else {
    const Row* row = row_of(kind);
    if (row == nullptr) throw Poisoned{};  // check_operators has reported it
    auto converted = [&](Values operands) {
      NodeContext ctx(*this, graph, op, row, std::move(operands), span);
      return row->convert(ctx);
    };
    if (row->moves && !inputs.empty() && inputs[0] != nullptr && is_complex(inputs[0])) {
      Values parts;
      for (const ValuePtr& part : inputs[0]->list) {
        Values operands = inputs;
        operands[0] = part;
        parts.push_back(converted(std::move(operands)).at(0));
      }
      outputs = {frontend::list_of(std::move(parts))};
    } else {
      outputs = converted(std::move(inputs));
    }
  }
  for (ValuePtr& v : outputs)
    if (v != nullptr && !v->is_list) v = with_known(std::move(v));
  return outputs;
}

Values Importer::import_graph(int64_t index, const Values& inputs, const Span& span) {
  if (index < 0 || index >= static_cast<int64_t>(model_.num_graphs())) {
    throw UserError(Diagnostic(codes::frontend_graph, span,
                               "the operator names subgraph " + std::to_string(index))
                        .expected("0 to " + std::to_string(model_.num_graphs() - 1)));
  }
  const auto at = static_cast<size_t>(index);
  const schema::SubGraph& g = model_.graph(at);
  const auto parameters = span_of(g.inputs());
  if (parameters.size() != inputs.size()) {
    throw UserError(
        Diagnostic(codes::frontend_graph, span, "a subgraph has the wrong number of inputs")
            .expected(std::to_string(inputs.size()))
            .found(std::to_string(parameters.size())));
  }
  frames_.push_back({at, std::vector<ValuePtr>(g.tensors() == nullptr ? 0 : g.tensors()->size())});
  struct Leave {
    std::deque<Frame>& frames;
    ~Leave() { frames.pop_back(); }
  } leave{frames_};
  for (size_t i = 0; i < inputs.size(); ++i)
    frames_.back().values[static_cast<size_t>(parameters[i])] = inputs[i];
  nested(span, [&] { import_operators(at); });
  Values outputs;
  for (int32_t t : span_of(g.outputs())) {
    ValuePtr v = value(t, span);
    if (v->failed) throw Poisoned{};
    outputs.push_back(std::move(v));
  }
  return outputs;
}

}  // namespace relay::frontend::tflite
