#include "driver/bind_params.h"

#include <unordered_map>
#include <vector>

#include "base/codes/driver.h"
#include "base/codes/frontend.h"
#include "base/plain_name.h"
#include "base/quoted_name.h"
#include "base/suggest.h"
#include "ir/bindings.h"
#include "ir/op.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay {
namespace {

using runtime::Tensor;
using Given = std::pair<const std::string, Tensor>;

// Sizes that are not numbers are compared by type inference.
void check_type(const Var& p, const std::string& name, const Tensor& value) {
  const auto* type = p->type_annotation ? as<TensorTypeNode>(p->type_annotation) : nullptr;
  if (type == nullptr) return;
  bool fits =
      value.dtype() == type->dtype && static_cast<size_t>(value.rank()) == type->shape.size();
  for (size_t a = 0; fits && a < type->shape.size(); ++a) {
    const auto size = as_const(type->shape[a]);
    fits = !size || *size == value.dim(a);
  }
  if (fits) return;
  throw UserError(Diagnostic(codes::frontend_tensor, p->span,
                             "the value " + quoted_name(name) +
                                 " does not have the type of @main's parameter %" +
                                 escape_for_terminal(p->name_hint, 200))
                      .expected(to_string(p->type_annotation))
                      .found(runtime::type_string(value.dtype(), value.shape())));
}

// The value of each parameter that has one.
std::unordered_map<const Node*, const Given*> match(const Function& main,
                                                    const std::map<std::string, Tensor>& params) {
  std::unordered_map<const Node*, const Given*> out;
  const std::vector<Var> vars = main ? main->params : std::vector<Var>();
  // Of several parameters with one name the first.
  std::unordered_map<std::string_view, const Var*> by_name;
  for (const Var& p : vars) by_name.try_emplace(p->name_hint, &p);
  auto assign = [&](const Given& given, std::string_view name) {
    auto at = by_name.find(name);
    if (at == by_name.end()) return false;
    const Var& p = *at->second;
    auto [other, is_first] = out.try_emplace(p.get(), &given);
    if (!is_first) {
      throw UserError(Diagnostic(codes::driver_option, p->span,
                                 "both " + quoted_name(other->second->first) + " and " +
                                     quoted_name(given.first) + " are values of the parameter %" +
                                     escape_for_terminal(p->name_hint, 200)));
    }
    return true;
  };
  std::vector<const Given*> rest;
  for (const Given& given : params)
    if (!assign(given, given.first)) rest.push_back(&given);
  for (const Given* given : rest) {
    if (assign(*given, plain_name(given->first))) continue;
    std::vector<std::string_view> known;
    for (const Var& p : vars) known.push_back(p->name_hint);
    throw UserError(Diagnostic(codes::driver_option, main ? main->span : Span(),
                               "@main has no parameter " + quoted_name(given->first) +
                                   " that `params` could give a value")
                        .help(suggest(given->first, known)));
  }
  return out;
}

}  // namespace

Module bind_params(const Module& mod, const std::map<std::string, Tensor>& params) {
  if (params.empty()) return infer_types(mod);
  const Function main = mod->find("main");
  const auto given = match(main, params);
  std::unordered_map<const Node*, NodeRef> constants;
  std::vector<Var> kept;
  for (const Var& p : main->params) {
    auto it = given.find(p.get());
    if (it == given.end()) {
      kept.push_back(p);
      continue;
    }
    check_type(p, it->second->first, it->second->second);
    constants[p.get()] = constant(it->second->second, p->span, p->name_hint);
  }
  Expr body = Expr::unchecked(substitute(main->body, constants, family::program));
  Function made =
      function(std::move(kept), body, nullptr, main->type_params, main->attrs, main->span);
  return infer_types(with_function(mod, global_var("main", made->type), made));
}

}  // namespace relay
