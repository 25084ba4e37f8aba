#include "passes/combine/share_kernels.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/calls.h"
#include "analysis/primitives.h"
#include "ir/op.h"
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

// The scalars that a call may be told: its place, and numbers that an element-wise function of several computes with.
std::vector<Expr> scalars_of(const CallNode& c) {
  std::vector<Expr> out;
  auto add = [&](const Expr& e) {
    auto* known = as<ConstantNode>(e);
    if (known != nullptr && known->data.rank() == 0) out.push_back(e);
  };
  if (const Expr* place = place_of(c)) add(*place);
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || op->row->fusion > FusionClass::Broadcast || c.args.size() < 2) return out;
  for (const Expr& e : c.args) {
    auto* type = as<TensorTypeNode>(e->type);
    if (type != nullptr && type->dtype.is_floating() && type->dtype.bits >= 32) add(e);
  }
  return out;
}

// Those of a kernel, each once.
std::vector<Expr> scalars_of(const Function& kernel) {
  std::vector<Expr> out;
  std::unordered_set<const Node*> known;
  post_order(
      kernel->body,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr) return;
        for (const Expr& e : scalars_of(*c)) {
          if (known.insert(e.get()).second) out.push_back(e);
        }
      },
      family::program);
  return out;
}

// A kernel that is told scalars.
struct General {
  Function kernel;
  std::vector<Expr> told;  // what the current kernel is to be told, behind its own arguments
};

General general_of(const Function& kernel, std::vector<Expr> told) {
  General out;
  std::unordered_map<const Node*, NodeRef> params;
  std::vector<Var> all = kernel->params;
  for (const Expr& e : told) {
    Var p = var("p" + std::to_string(all.size()), e->type, e->span);
    params.emplace(e.get(), p);
    all.push_back(p);
  }
  out.told = std::move(told);
  if (out.told.empty()) return out;
  Expr body = cast<ExprNode>(substitute(kernel->body, params, family::program));
  out.kernel = function(std::move(all), body, kernel->ret_type, kernel->type_params, kernel->attrs,
                        kernel->span);
  return out;
}

// The calls of kernels that are the same when they are told their scalars.
using Family = std::vector<std::pair<const CallNode*, General>>;

// The calls with kernels that are told what differs between them only.
Family with_differences(const Family& family) {
  const std::vector<Expr>& first = family[0].second.told;
  std::vector<bool> differs(first.size());
  for (const auto& [c, general] : family) {
    for (size_t i = 0; i < first.size(); ++i) {
      differs[i] = differs[i] || !same_value(general.told[i], first[i]);
    }
  }
  Family out;
  for (const auto& [c, general] : family) {
    std::vector<Expr> told;
    for (size_t i = 0; i < first.size(); ++i) {
      if (differs[i]) told.push_back(general.told[i]);
    }
    if (told.empty()) return {};
    out.emplace_back(c, general_of(Function(primitive_of(*c)), std::move(told)));
  }
  return out;
}

std::vector<Family> families_of(const Function& f) {
  std::vector<Family> out;
  std::vector<Function> kernels;  // of each family
  std::unordered_map<uint64_t, std::vector<size_t>> by_hash;
  post_order_outside_primitives(f->body, [&](const Node& n) {
    auto* c = as<CallNode>(&n);
    auto* kernel = c == nullptr ? nullptr : primitive_of(*c);
    if (kernel == nullptr) return;
    General general = general_of(Function(kernel), scalars_of(Function(kernel)));
    if (general.told.empty()) return;
    Function what = without_reason(general.kernel);
    std::vector<size_t>& known = by_hash[structural_hash(what)];
    // A kernel may take as an argument what another one is told.
    auto family = std::find_if(known.begin(), known.end(), [&](size_t k) {
      return out[k].front().second.told.size() == general.told.size() &&
             structural_equal(kernels[k], what);
    });
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
    for (auto& [c, general] : with_differences(family)) told.emplace(c, std::move(general));
  }
  if (told.empty()) return f;
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& original, NodeRef rebuilt) -> NodeRef {
        auto it = told.find(original.get());
        if (it == told.end()) return rebuilt;
        const auto& [kernel, scalars] = it->second;
        auto& c = *as<CallNode>(rebuilt);
        std::vector<Expr> args = c.args;
        args.insert(args.end(), scalars.begin(), scalars.end());
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
                         "Makes kernels that differ in places or numbers one.",
                         run_share_kernels};

}  // namespace relay
