#include "passes/combine/share_kernels.h"

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "analysis/calls.h"
#include "analysis/primitives.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// Fewer kernels are not a loop that was written out.
constexpr size_t kFewest = 8;

// The operand of a call that says where it reads or writes; null for calls without one.
const Expr* place_of(const CallNode& c) {
  if (is_call_to(Expr(&c), "take")) return &c.args[1];
  if (is_call_to(Expr(&c), "update_slice")) return &c.args[2];
  return nullptr;
}

// A kernel that is told its places.
struct General {
  Function kernel;
  std::vector<Expr> places;  // what the current kernel is to be told, behind its own arguments
};

General general_of(const Function& kernel) {
  General out;
  std::unordered_map<const Node*, NodeRef> params;
  std::vector<Var> all = kernel->params;
  post_order(
      kernel->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        const Expr* place = c == nullptr ? nullptr : place_of(*c);
        auto* known = place == nullptr ? nullptr : as<ConstantNode>(*place);
        if (known == nullptr || known->data.rank() != 0 || params.contains(known)) return;
        Var p = var("p" + std::to_string(all.size()), known->type, known->span);
        params.emplace(known, p);
        all.push_back(p);
        out.places.push_back(*place);
      },
      family::program);
  if (out.places.empty()) return out;
  Expr body = cast<ExprNode>(substitute(kernel->body, params, family::program));
  out.kernel = function(std::move(all), body, kernel->ret_type, kernel->type_params, kernel->attrs,
                        kernel->span);
  return out;
}

// The calls of kernels that are the same when they are told their places.
using Family = std::vector<std::pair<const CallNode*, General>>;

std::vector<Family> families_of(const Function& f) {
  std::vector<Family> out;
  std::vector<Function> kernels;  // of each family
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  post_order_outside_primitives(f->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* kernel = c == nullptr ? nullptr : primitive_of(*c);
    if (kernel == nullptr) return;
    General general = general_of(Function(kernel));
    if (general.places.empty()) return;
    Function what = without_reason(general.kernel);
    std::vector<size_t>& known = by_hash[structural_hash(what)];
    auto family = std::find_if(known.begin(), known.end(),
                               [&](size_t k) { return structural_equal(kernels[k], what); });
    if (family == known.end()) {
      family = known.insert(known.end(), out.size());
      kernels.push_back(what);
      out.emplace_back();
    }
    out[*family].emplace_back(c, std::move(general));
  });
  return out;
}

Function share(const Function& f) {
  std::unordered_map<const Node*, General> told;
  for (Family& family : families_of(f)) {
    if (family.size() < kFewest) continue;
    for (auto& [c, general] : family) told.emplace(c, std::move(general));
  }
  if (told.empty()) return f;
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        auto it = told.find(original.get());
        if (it == told.end()) return rebuilt;
        const auto& [kernel, places] = it->second;
        auto& c = *as<CallNode>(rebuilt);
        std::vector<Expr> args = c.args;
        args.insert(args.end(), places.begin(), places.end());
        return call(kernel, std::move(args), c.attrs, c.span, c.type_args);
      },
      family::program));
}

Module run_share_kernels(const Module& mod, PassContext&) {
  return map_functions(
      mod, [](const GlobalVar&, const Function& f) { return f->is_primitive() ? f : share(f); });
}

}  // namespace

const Pass kShareKernels{"ShareKernels",
                         1,
                         Form::fused,
                         Form::fused,
                         "Makes kernels that differ in the place they read or write one.",
                         run_share_kernels};

}  // namespace relay
