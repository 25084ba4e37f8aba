#include "ir/prepack.h"

#include <algorithm>
#include <unordered_set>

#include "base/codes/prepack.h"
#include "ir/donation.h"
#include "ir/slot_names.h"
#include "node/walk.h"

namespace relay {
namespace {

std::string shown(const std::string& name) { return "'" + escape_for_terminal(name, 200) + "'"; }

[[noreturn]] void unknown(const FunctionNode& f, const std::string& name) {
  std::string known;
  for (const Var& p : f.params) known += (known.empty() ? "" : ", ") + parameter_name(f, *p.get());
  throw UserError(Diagnostic(codes::prepack_unknown, f.span,
                             "there is no input " + shown(name) + " that could be prepacked")
                      .expected(known.empty() ? "the function has no inputs" : "one of " + known));
}

void check_type(const FunctionNode& f, const Var& p, const Module& mod) {
  auto fail = [&](const std::string& expected, const std::string& found) {
    throw UserError(
        Diagnostic(codes::prepack_type, p->span,
                   "input " + shown(parameter_name(f, *p.get())) + " cannot be prepacked")
            .expected(expected)
            .found(found));
  };
  auto* type = as<TensorTypeNode>(p->type);
  if (type == nullptr || !type->const_shape() || type->dtype.is_string()) {
    fail("a tensor of numbers whose sizes are known", to_string(p->type));
  }
  for (const DonatedInput& d : donated_inputs(f, mod)) {
    if (f.params[d.param] == p) {
      fail("an input that stays what it is", "one that a run writes an output into");
    }
  }
}

// The functions of the module that others, or they themselves, call.
std::unordered_set<std::string> called_functions(const Module& mod) {
  std::unordered_set<std::string> out;
  for (const Function& f : mod->functions) {
    post_order(
        f,
        [&](const Node& n) {
          if (auto* g = as<GlobalVarNode>(&n)) out.insert(g->name_hint);
        },
        family::program);
  }
  return out;
}

}  // namespace

std::string prepack_function(const std::string& function) { return function + ".prepack"; }

std::vector<Var> prepacked_params(const FunctionNode& f) {
  std::vector<Var> out;
  auto it = f.attrs.find(attr::kPrepack);
  if (it == f.attrs.end()) return out;
  auto* names = it->second.get_if<ValueList>();
  if (names == nullptr) unknown(f, to_string(it->second));
  for (const AttrValue& name : *names) {
    auto* text = name.get_if<std::string>();
    if (text == nullptr) unknown(f, to_string(name));
    auto p = std::ranges::find(f.params, *text, [](const Var& v) { return v->name_hint; });
    if (p == f.params.end()) unknown(f, *text);
    if (std::ranges::find(out, *p) != out.end()) {
      throw UserError(Diagnostic(codes::prepack_unknown, f.span,
                                 "input " + shown(*text) + " is prepacked twice")
                          .expected("each input at most once"));
    }
    out.push_back(*p);
  }
  return out;
}

void check_prepacking(const Module& mod) {
  std::unordered_set<std::string> called;
  bool counted = false;
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    const FunctionNode& f = *mod->functions[i].get();
    std::vector<Var> params = prepacked_params(f);
    if (params.empty()) continue;
    for (const Var& p : params) check_type(f, p, mod);
    if (!std::exchange(counted, true)) called = called_functions(mod);
    const std::string& name = mod->global_vars[i]->name_hint;
    if (!called.contains(name)) continue;
    throw UserError(Diagnostic(codes::prepack_called, f.span,
                               "inputs of @" + name + " cannot be prepacked: the program calls it")
                        .expected("a function that is called from outside only"));
  }
}

Module with_prepacked(const Module& mod, const std::vector<std::string>& names) {
  if (names.empty()) return mod;
  Function main = mod->find("main");
  if (!main) {
    throw UserError(Diagnostic(codes::prepack_unknown, {},
                               "the program has no @main of which an input could be prepacked"));
  }
  ValueList hints;
  for (const std::string& name : names) {
    auto p = std::ranges::find(main->params, name,
                               [&](const Var& v) { return parameter_name(*main.get(), *v.get()); });
    if (p == main->params.end()) unknown(*main.get(), name);
    hints.emplace_back((*p)->name_hint);
  }
  Dict attrs = main->attrs;
  attrs[attr::kPrepack] = AttrValue(std::move(hints));
  Function made = function(main->params, main->body, main->ret_type, main->type_params,
                           std::move(attrs), main->span);
  Module out = with_function(mod, mod->find_global_var("main"), made);
  check_prepacking(out);
  return out;
}

}  // namespace relay
