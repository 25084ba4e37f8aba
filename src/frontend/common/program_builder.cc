#include "frontend/common/program_builder.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/plain_name.h"
#include "frontend/common/lists.h"
#include "frontend/common/tensor_bytes.h"
#include "ir/op.h"
#include "node/node_map.h"
#include "node/walk.h"

namespace relay::frontend {
namespace {

// Sets a variable back when it leaves its scope.
template <class T>
class Restored {
 public:
  Restored(T& variable, T value)
      : variable_(variable), before_(std::exchange(variable, std::move(value))) {}
  ~Restored() { variable_ = std::move(before_); }
  Restored(const Restored&) = delete;
  Restored& operator=(const Restored&) = delete;

 private:
  T& variable_;
  T before_;
};

}  // namespace

ProgramBuilder::ProgramBuilder(std::shared_ptr<const SourceFile> file, const ImportOptions& options)
    : file_(std::move(file)), options_(options), known_values_(options.evaluate) {
  deadline_ = std::chrono::steady_clock::now() +
              std::chrono::milliseconds(static_cast<int64_t>(options.max_seconds * 1000));
}
ProgramBuilder::~ProgramBuilder() = default;

// ---- Errors and budgets ------------------------------------------------------------------------

void ProgramBuilder::report(const UserError& error) {
  for (const Diagnostic& d : error.diagnostics()) report(d);
}

void ProgramBuilder::exceed(const Span& span, std::string message, std::string expected) {
  exceeded_ = true;
  throw UserError(Diagnostic(codes::frontend_limit, span, std::move(message))
                      .expected(std::move(expected))
                      .help("the limits are options of the importer; is the model trusted?"));
}

void ProgramBuilder::check_budget(const Span& span) {
  if (++nodes_ > options_.max_nodes) {
    exceed(span, "the model has too many nodes once functions and loops are expanded",
           "at most " + std::to_string(options_.max_nodes));
  }
  if (nodes_ % 64 == 1 && std::chrono::steady_clock::now() > deadline_) {
    exceed(span, "importing the model takes too long",
           "at most " + std::to_string(static_cast<int64_t>(options_.max_seconds)) + " seconds");
  }
}

void ProgramBuilder::charge_bytes(int64_t bytes, const Span& span) {
  if (bytes > options_.max_constant_bytes - constant_bytes_) {
    exceed(span, "the constants that this model makes are too large",
           "at most " + std::to_string(options_.max_constant_bytes) + " bytes together");
  }
  constant_bytes_ += bytes;
}

void ProgramBuilder::spend(ImportOptions& budget) const {
  const std::chrono::duration<double> left = deadline_ - std::chrono::steady_clock::now();
  budget.max_seconds = std::max(left.count(), 0.0);
  budget.max_nodes = options_.max_nodes - nodes_;
  budget.max_constant_bytes = options_.max_constant_bytes - constant_bytes_;
}

bool ProgramBuilder::attempt(const std::function<void()>& import) {
  Diagnostics before = diagnostics_;
  std::vector<DecidingInput> deciding = deciding_;
  bool good = true;
  try {
    import();
    good = diagnostics_.error_count() == before.error_count();
  } catch (const Poisoned&) {
    good = false;
  } catch (const UserError&) {
    if (exceeded_) throw;
    good = false;
  }
  if (good) return true;
  diagnostics_ = std::move(before);
  deciding_ = std::move(deciding);
  return false;
}

void ProgramBuilder::nested(const Span& span, const std::function<void()>& part) {
  if (nesting_ == kMaxNesting) {
    exceed(span, "subgraphs and model-local functions are nested too deeply, or call themselves",
           "at most " + std::to_string(kMaxNesting) + " levels");
  }
  Restored<int> deeper(nesting_, nesting_ + 1);
  part();
}

std::vector<Diagnostic> ProgramBuilder::apart(const std::function<void()>& part) {
  Restored<Diagnostics> before(diagnostics_, Diagnostics());
  part();
  return diagnostics_.all();
}

// ---- Names and values --------------------------------------------------------------------------

void ProgramBuilder::define(Scope& scope, const std::string& name, ValuePtr value,
                            const Span& span) {
  if (name.empty()) return;
  auto [it, inserted] = scope.values.try_emplace(name, std::move(value));
  if (!inserted) {
    report(Diagnostic(codes::frontend_graph, span, "value '" + shorten(name) + "' is defined twice")
               .expected("one definition of each name")
               .help("the exporter wrote a graph that is not in single-assignment form"));
  }
}

Expr ProgramBuilder::expr_of(const ValuePtr& v) {
  if (v->failed) throw Poisoned{};
  if (v->expr) return v->expr;
  if (v->is_list) {
    std::vector<Expr> fields;
    for (const ValuePtr& f : v->list) fields.push_back(expr_of(f));
    return v->expr = tuple(std::move(fields), v->span);
  }
  if (v->data) v->data = aligned(v->data);
  if (v->data && v->is_parameter) {
    std::vector<int64_t> shape(v->data.shape().begin(), v->data.shape().end());
    Var p = var(unique_name(v->name), tensor_type(shape, v->data.dtype()), v->span);
    params_.push_back(p);
    result_.input_names.push_back(v->name);
    result_.params[p->name_hint] = v->data;
    // Lists of sizes and axes are constants of the program; numbers are the parameter's own.
    if (v->known && v->known->is_int()) known_values_.assume(p, *v->known);
    return v->expr = p;
  }
  if (v->data) return v->expr = constant(v->data, v->span, v->name);
  if (v->known) return v->expr = known_expr(*v->known, v->span);
  throw UserError(Diagnostic(codes::frontend_attribute, v->span,
                             "an input that is absent is used as a tensor"));
}

ValuePtr ProgramBuilder::with_known(ValuePtr v) {
  if (v == nullptr || !v->expr || v->data || v->known) return v;
  const KnownValue* known = known_values_.of(v->expr);
  return known != nullptr && known->is_complete() ? value_of(*known) : v;
}

const std::pair<Var, int64_t>* ProgramBuilder::source_of(const TypeVar& size) const {
  auto it = dim_sources_.find(size.get());
  return it == dim_sources_.end() ? nullptr : &it->second;
}

std::string ProgramBuilder::unique_name(const std::string& name) {
  return names_.take(identifier(name));
}

// ---- The module --------------------------------------------------------------------------------

ImportedModel ProgramBuilder::finish(const std::vector<std::pair<std::string, ValuePtr>>& outputs) {
  std::vector<Expr> results;
  ValueList names_of_results;
  for (const auto& [name, v] : outputs) {
    result_.output_names.push_back(name);
    names_of_results.emplace_back(name);
    if (v == nullptr) {
      report(Diagnostic(codes::frontend_graph, place("output " + shorten(name)),
                        "output '" + shorten(name) + "' is not computed by any node"));
      continue;
    }
    if (v->failed) continue;
    try {
      results.push_back(expr_of(v));  // of a list a tuple
    } catch (const UserError& e) {
      report(e);
    }
  }
  if (outputs.empty()) {
    report(Diagnostic(codes::frontend_graph, place("graph"), "the model has no outputs"));
  }
  throw_if_errors();
  RELAY_CHECK(results.size() == outputs.size(), "an output failed without a message");

  Expr body = results.size() == 1 ? results[0] : Expr(tuple(results, place("outputs")));
  drop_unused_weights(body);
  body = with_checks(std::move(body));
  ValueList inputs;
  for (size_t i = 0; i < params_.size(); ++i) {
    const std::string &mine = params_[i]->name_hint, &name = result_.input_names[i];
    // Weights go by the names that they are returned under.
    if (name != mine && !result_.params.contains(mine)) inputs.emplace_back(ValueList{mine, name});
  }
  Dict attrs{{attr::kOutputNames, AttrValue(std::move(names_of_results))}};
  if (!inputs.empty()) attrs[attr::kInputNames] = AttrValue(std::move(inputs));
  Function main = function(params_, body, nullptr, type_params_, std::move(attrs), place("graph"));
  std::vector<GlobalVar> names{global_var("main", main->type)};
  std::vector<Function> functions{main};
  std::vector<TypeData> types;
  if (uses_lists_) {
    const Module& library = list_library();
    names.insert(names.end(), library->global_vars.begin(), library->global_vars.end());
    functions.insert(functions.end(), library->functions.begin(), library->functions.end());
    types = library->type_definitions;
  }
  result_.module = make_module(std::move(names), std::move(functions), std::move(types));
  return std::move(result_);
}

void ProgramBuilder::drop_unused_weights(const Expr& body) {
  if (result_.params.empty()) return;
  NodeMap<bool> used;
  post_order(
      body, [&](const Node& n) { used[&n] = true; }, family::program);
  size_t kept = 0;
  for (size_t i = 0; i < params_.size(); ++i) {
    auto weight = result_.params.find(params_[i]->name_hint);
    if (weight != result_.params.end() && !used.contains(params_[i].get())) {
      result_.params.erase(weight);
      continue;
    }
    params_[kept] = params_[i];
    result_.input_names[kept++] = result_.input_names[i];
  }
  params_.resize(kept);
  result_.input_names.resize(kept);
}

}  // namespace relay::frontend
