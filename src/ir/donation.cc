#include "ir/donation.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <unordered_set>

#include "base/codes/donation.h"
#include "ir/slot_names.h"
#include "node/structural.h"

namespace relay {
namespace {

// Whether a value of the type could hold a tensor that is handed to its function beyond the call: a
// reference or a function, or data with one inside.
bool could_keep(const Type& type, const Module& mod) {
  std::vector<Type> open{type};
  std::unordered_set<std::string> definitions;
  while (!open.empty()) {
    Type t = std::move(open.back());
    open.pop_back();
    if (isa<TensorTypeNode>(t)) continue;
    if (auto* tuple = as<TupleTypeNode>(t)) {
      open.insert(open.end(), tuple->fields.begin(), tuple->fields.end());
      continue;
    }
    auto* applied = as<TypeCallNode>(t);
    auto* name = as<GlobalTypeVarNode>(applied != nullptr ? applied->func : t);
    if (name == nullptr) return true;
    if (applied != nullptr) open.insert(open.end(), applied->args.begin(), applied->args.end());
    if (!definitions.insert(name->name_hint).second) continue;
    TypeData data = mod->find_type(name->name_hint);
    if (!data) return true;
    for (const Constructor& c : data->constructors) {
      for (const Type& field : c->inputs) {
        // What a variable stands for is among the arguments.
        if (!isa<TypeVarNode>(field)) open.push_back(field);
      }
    }
  }
  return false;
}

std::string names_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& n : names) out += (out.empty() ? "" : ", ") + n;
  return out.empty() ? "nothing" : out;
}

std::string shown(const std::string& name) { return "'" + escape_for_terminal(name, 200) + "'"; }

[[noreturn]] void unknown(const FunctionNode& f, const char* what, const std::string& name,
                          const std::vector<std::string>& known) {
  throw UserError(Diagnostic(codes::donation_unknown, f.span,
                             "there is no " + std::string(what) + " " + shown(name) +
                                 " that a donation could be about")
                      .expected("one of " + names_of(known))
                      .found(shown(name)));
}

void check_types(const FunctionNode& f, const DonatedInput& d, const TensorType& output,
                 const Module& mod) {
  const Var& param = f.params[d.param];
  std::string pair = "input " + shown(parameter_name(f, *param.get())) +
                     " cannot be donated to output " + shown(result_name(f, d.output));
  auto* input = as<TensorTypeNode>(param->type);
  if (input == nullptr || !structural_equal(TensorType(input), output)) {
    throw UserError(Diagnostic(codes::donation_type, param->span, pair)
                        .expected(to_string(Type(output)))
                        .found(to_string(param->type))
                        .help("the two are of one dtype and shape, size by size"));
  }
  if (input->dtype.is_string()) {
    throw UserError(Diagnostic(codes::donation_type, param->span, pair)
                        .expected("a dtype of numbers")
                        .found(to_string(param->type)));
  }
  for (const Var& p : f.params) {
    if (!could_keep(p->type, mod)) continue;
    throw UserError(Diagnostic(codes::donation_kept, p->span, pair)
                        .expected("parameters of tensors, tuples and data")
                        .found("%" + p->name_hint + " of type " + to_string(p->type))
                        .help("a reference or function could hold the donated tensor when the "
                              "call is over"));
  }
}

std::optional<size_t> number_in(const std::string& text) {
  size_t value = 0;
  auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  bool whole = problem == std::errc() && end == text.data() + text.size();
  return whole ? std::optional(value) : std::nullopt;
}

}  // namespace

std::vector<DonatedInput> donated_inputs(const FunctionNode& f, const Module& mod) {
  std::vector<DonatedInput> out;
  auto it = f.attrs.find(attr::kDonate);
  if (it == f.attrs.end()) return out;
  auto malformed = [&] {
    throw UserError(Diagnostic(codes::donation_unknown, f.span,
                               "the attribute donate has another form than a donation has")
                        .expected("a list of pairs of a parameter and the number of an output, "
                                  "such as [[\"cache\", 0]]")
                        .found(to_string(it->second)));
  };
  auto* pairs = it->second.get_if<ValueList>();
  if (pairs == nullptr) malformed();
  auto leaves = flatten_tensor_types(f.body->type);
  for (const AttrValue& pair : *pairs) {
    auto* both = pair.get_if<ValueList>();
    auto* name = both != nullptr && both->size() == 2 ? (*both)[0].get_if<std::string>() : nullptr;
    auto* output = name != nullptr ? (*both)[1].get_if<int64_t>() : nullptr;
    if (output == nullptr) malformed();
    auto param = std::ranges::find(f.params, *name, [](const Var& p) { return p->name_hint; });
    if (param == f.params.end()) unknown(f, "input", *name, parameter_names(f));
    if (!leaves || *output < 0 || static_cast<size_t>(*output) >= leaves->size()) {
      unknown(f, "output", std::to_string(*output), result_names(f));
    }
    DonatedInput d{static_cast<size_t>(param - f.params.begin()), static_cast<size_t>(*output)};
    for (const DonatedInput& other : out) {
      if (other.param != d.param && other.output != d.output) continue;
      bool input = other.param == d.param;
      throw UserError(
          Diagnostic(codes::donation_twice, (*param)->span,
                     input
                         ? "input " + shown(parameter_name(f, *param->get())) + " is donated twice"
                         : "output " + shown(result_name(f, d.output)) + " takes two inputs")
              .expected("each input and each output at most once"));
    }
    check_types(f, d, (*leaves)[d.output], mod);
    out.push_back(d);
  }
  return out;
}

void check_donations(const Module& mod) {
  for (const Function& f : mod->functions) donated_inputs(*f.get(), mod);
}

Module with_donations(const Module& mod,
                      const std::vector<std::pair<std::string, std::string>>& pairs) {
  if (pairs.empty()) return mod;
  Function main = mod->find("main");
  if (!main) {
    throw UserError(Diagnostic(codes::donation_unknown, {},
                               "the program has no @main of which an input could be donated"));
  }
  std::vector<std::string> inputs = parameter_names(*main.get()),
                           outputs = result_names(*main.get());
  ValueList all;
  for (const auto& [input, output] : pairs) {
    auto in = std::ranges::find(inputs, input);
    if (in == inputs.end()) unknown(*main.get(), "input", input, inputs);
    size_t number = static_cast<size_t>(std::ranges::find(outputs, output) - outputs.begin());
    if (number == outputs.size()) number = number_in(output).value_or(outputs.size());
    if (number >= outputs.size()) unknown(*main.get(), "output", output, outputs);
    const Var& param = main->params[static_cast<size_t>(in - inputs.begin())];
    all.emplace_back(ValueList{param->name_hint, static_cast<int64_t>(number)});
  }
  Dict attrs = main->attrs;
  attrs[attr::kDonate] = AttrValue(std::move(all));
  Function made =
      function(main->params, main->body, nullptr, main->type_params, std::move(attrs), main->span);
  donated_inputs(*made.get(), mod);
  return with_function(mod, mod->find_global_var("main"), made);
}

}  // namespace relay
