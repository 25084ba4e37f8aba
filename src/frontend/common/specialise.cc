// Programs for inputs of which some are known: their sizes, what a sequence holds, or their values.
//
// Where the number of dimensions of something depends on what only a run knows, no type says it. The inputs that it is
// computed from are found by walking back from the node that could not be imported, so that whoever has a run's inputs
// can have a program for these (RankIsOpen).
#include <algorithm>

#include "analysis/calls.h"
#include "base/codes/frontend.h"
#include "frontend/common/operator_error.h"
#include "frontend/common/program_builder.h"
#include "ir/op.h"
#include "node/walk.h"
#include "runtime/core/strings.h"

namespace relay::frontend {
namespace {

// Values with more elements are data rather than sizes, axes or conditions.
constexpr int64_t kMostElements = 64;

// What more can be said of a parameter of the type; nullopt for nothing.
std::optional<DecidingInput::By> open_part(const Type& type) {
  auto* t = as<TensorTypeNode>(type);
  if (t == nullptr)
    return isa<TupleTypeNode>(type) ? std::nullopt : std::optional(DecidingInput::Elements);
  auto shape = t->const_shape();
  if (!shape) return DecidingInput::Sizes;
  int64_t elements = 1;
  for (int64_t d : *shape)
    elements = d > kMostElements ? kMostElements + 1 : elements * std::max<int64_t>(d, 1);
  const bool counts = t->dtype.is_integer() || t->dtype.is_bool();
  return counts && elements <= kMostElements ? std::optional(DecidingInput::Value) : std::nullopt;
}

std::string text_of(const Tensor& t) {
  std::string out;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    out += (i > 0 ? ", " : "") + std::to_string(t.get_as_int(i));
  }
  return t.rank() == 0 ? out : "[" + out + "]";
}

}  // namespace

void ProgramBuilder::note_deciding(const Values& values) {
  // Lists of sizes and axes, numbers and conditions; where none of them is open, whatever else there is.
  auto is_list_of_numbers = [](const Type& type) {
    auto* t = as<TensorTypeNode>(type);
    return t == nullptr || (t->rank() <= 1 && (t->dtype.is_integer() || t->dtype.is_bool()));
  };
  const size_t before = deciding_.size();
  for (bool all : {false, true}) {
    if (deciding_.size() > before) return;
    for (const ValuePtr& v : values) {
      if (v == nullptr) continue;
      if (v->is_list) note_deciding(v->list);
      if (v->expr && (all || is_list_of_numbers(v->expr->type))) note_deciding(v->expr);
    }
  }
}

void ProgramBuilder::report_operator(const UserError& e, const Span& span, const Values& inputs,
                                     const std::function<std::string(size_t)>& name_of) {
  std::string types;
  constexpr size_t kMostInputs = 8;
  for (size_t i = 0; i < std::min(inputs.size(), kMostInputs); ++i) {
    const ValuePtr& v = inputs[i];
    if (v == nullptr) continue;
    std::string text;
    if (v->expr && v->expr->type) {
      text = to_string(v->expr->type);
    } else if (v->data) {
      text = runtime::type_string(v->data.dtype(), v->data.shape());
    } else if (v->known) {
      text = runtime::type_string(v->known->dtype, v->known->shape);
    } else {
      continue;
    }
    types += (types.empty() ? "" : ", ") + (name_of ? name_of(i) + ": " : "") + text;
  }
  if (e.diagnostics().front().code == codes::frontend_dynamic.id) note_deciding(inputs);
  for (Diagnostic d : e.diagnostics()) {
    d = operator_error(std::move(d), span);
    if (!types.empty()) d.note(span, "its inputs are " + types);
    report(std::move(d));
  }
}

void ProgramBuilder::note_deciding(const Expr& e) {
  post_order(
      e,
      [&](const Node& n) {
        auto* v = as<VarNode>(&n);
        if (v == nullptr || is_weight(*v)) return;
        for (size_t i = 0; i < params_.size(); ++i) {
          if (params_[i].get() != v) continue;
          const std::string& name = result_.input_names[i];
          auto by = open_part(v->type);
          bool noted =
              std::ranges::any_of(deciding_, [&](const auto& d) { return d.name == name; });
          if (by && !noted) deciding_.push_back({name, *by});
        }
      },
      family::expr);
}

Diagnostic ProgramBuilder::open_branches(const BranchesDiffer& branches, const Span& span) {
  note_deciding(branches.condition);
  return rank_is_open(branches, span);
}

void ProgramBuilder::throw_if_errors() const {
  if (!diagnostics_.has_errors()) return;
  // What does not fit behind a rank that is open may fit once it is known.
  const bool open = std::ranges::all_of(diagnostics_.all(), [](const Diagnostic& d) {
    return d.severity != Severity::error || d.code == codes::frontend_dynamic.id ||
           std::string_view(d.code).starts_with("E02");
  });
  std::vector<DecidingInput> deciding = deciding_;
  // A list whose declared type is wrong may fit once it is known what it holds; then, how often a loop adds to it.
  const auto asked = options_.elements.empty() ? DecidingInput::Elements : DecidingInput::Value;
  const bool lists = uses_lists_ || !options_.elements.empty();
  for (size_t i = 0; i < params_.size() && lists && deciding_.empty(); ++i) {
    if (open_part(params_[i]->type) == asked &&
        !options_.specialised.contains(result_.input_names[i])) {
      deciding.push_back({result_.input_names[i], asked});
    }
  }
  if (!open || deciding.empty()) diagnostics_.throw_if_errors();
  std::vector<ModelInput> inputs;
  for (const DeclaredInput& i : declared_) {
    auto* found = main_scope_.find(i.name).get();
    const bool weight = found != nullptr && found->data && !options_.frozen.contains(i.name) &&
                        !options_.specialised.contains(i.name);
    if (weight) continue;
    auto param = std::ranges::find(result_.input_names, i.name);
    const auto at = static_cast<size_t>(param - result_.input_names.begin());
    inputs.push_back({i.name, at < params_.size() ? params_[at]->type : Type()});
  }
  std::vector<Diagnostic> found = diagnostics_.all();
  std::string names;
  for (const DecidingInput& d : deciding) {
    names += (names.empty() ? "'" : ", '") + shorten(d.name) + "'";
  }
  for (Diagnostic& d : found) {
    if (d.code != codes::frontend_dynamic.id) continue;
    d.note(place("inputs"), "it depends on " + names);
    const std::string name = shorten(deciding[0].name);
    d.help_text =
        "relay run and relay.build have a program for the inputs of a run; relay compile takes "
        "what there "
        "may be: --specialise " +
        name + "=VALUE,..., or fixed sizes: --input " + name + "=SHAPE";
  }
  throw RankIsOpen(std::move(found), std::move(deciding), std::move(inputs));
}

Expr ProgramBuilder::with_checks(Expr body) {
  for (size_t i = specialised_.size(); i-- > 0;) {
    const auto& [v, value] = specialised_[i];
    const Span& span = v->span;
    Expr same = make_call("equal", {v, constant(value, span)}, {}, span);
    if (value.rank() > 0) {
      std::vector<int64_t> axes(static_cast<size_t>(value.rank()));
      for (size_t a = 0; a < axes.size(); ++a) axes[a] = static_cast<int64_t>(a);
      same = make_call("all", {same}, {{"axis", to_value(axes)}}, span);
    }
    const std::string words =
        "this program is only for input '" +
        shorten(result_.input_names[static_cast<size_t>(
            std::ranges::find_if(params_, [&](const Var& p) { return p.get() == v.get(); }) -
            params_.begin())]) +
        "' = " + text_of(value) + ", and gets ";
    Expr said = tuple({constant(runtime::make_strings({}, {words}), span), v}, span);
    Expr check = make_call("debug.check", {same, said}, {}, span);
    body = let(var("specialised", check->type, span), check, body, span);
  }
  return body;
}

}  // namespace relay::frontend
