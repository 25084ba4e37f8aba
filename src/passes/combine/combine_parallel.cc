#include "passes/combine/combine_parallel.h"

#include <algorithm>
#include <map>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "analysis/output_channels.h"
#include "ir/contraction.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/node_map.h"
#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// Which contractions a pass combines.
using Takes = bool (*)(const Contraction& c);

// A heavy call and what follows it: each reads the one before and is its only reader.
struct Branch {
  std::vector<Call> calls;
  int64_t count;  // output channels
};

struct Group {
  std::vector<Branch> branches;
  OutputChannels channels;
};

// A contraction of two arguments that the pass combines.
bool is_taken(const CallNode& c, Takes takes) {
  if (c.args.size() != 2) return false;
  auto contraction = contraction_of(c);
  return contraction && takes(*contraction);
}

// Variables and constants are available before any branch is computed.
bool at_hand(const Expr& e) { return isa<VarNode>(e) || isa<ConstantNode>(e); }

std::string shape_but(const std::vector<int64_t>& shape, int64_t axis) {
  std::string out;
  for (size_t i = 0; i < shape.size(); ++i) {
    out += static_cast<int64_t>(i) == axis ? "*," : std::to_string(shape[i]) + ",";
  }
  return out;
}

// Which operand of a follower has the value, the only one that does.
std::optional<size_t> position_of(const CallNode& c, const Expr& value) {
  auto found = std::find(c.args.begin(), c.args.end(), value);
  if (std::count(c.args.begin(), c.args.end(), value) != 1) return std::nullopt;
  return static_cast<size_t>(found - c.args.begin());
}

bool adds_bias(const CallNode& c, int64_t channel_axis) {
  if (!is_call_to(Expr(&c), "nn.bias_add")) return false;
  int64_t axis = int_attr(c, "axis");
  return (axis < 0 ? axis + tensor_of(Expr(&c))->rank() : axis) == channel_axis;
}

// The axis of an operand that goes along the result's channels; negative: it is the same for all.
int64_t channel_axis(const CallNode& c, size_t arg, int64_t result_axis) {
  if (is_call_to(Expr(&c), "nn.bias_add")) return 0;
  return result_axis - (tensor_of(Expr(&c))->rank() - tensor_of(c.args[arg])->rank());
}

// Whether all calls have the same operand, which is spread over the channels.
bool is_shared(const Group& group, const std::vector<Call>& calls, size_t arg) {
  const Expr& operand = calls[0]->args[arg];
  auto shape = static_shape(operand);
  if (!at_hand(operand) || !shape || is_call_to(calls[0], "nn.bias_add")) return false;
  for (const Call& c : calls) {
    if (c->args[arg] != operand) return false;
  }
  int64_t axis = channel_axis(*calls[0], arg, group.channels.result_axis);
  return axis < 0 || (*shape)[static_cast<size_t>(axis)] == 1;
}

// The groups of a function.
class Finder {
 public:
  Finder(const Function& f, Takes takes, ConstantExpressions& constants)
      : scopes_(analyze_scopes(*f)), takes_(takes), constants_(constants) {
    post_order(
        f,
        [&](const Node& n) {
          for_each_child(n, [&](const NodeRef& child) {
            auto [only, fresh] = only_user_.emplace(child.get());
            only = fresh ? &n : nullptr;
          });
        },
        family::program);
  }

  std::vector<Group> find() {
    std::map<std::pair<const Node*, std::string>, size_t> by_key;
    std::vector<Group> groups;
    for (const ExprNode* e : scopes_.order) {
      auto* c = as<CallNode>(e);
      if (c == nullptr || !is_taken(*c, takes_)) continue;
      auto* op = as<OpNode>(c->op);
      auto channels = output_channels(*c);
      const int* scope = scopes_.scope_of.find(e);
      if (!channels || channels->grouped || channels->count == 0 || scope == nullptr ||
          scopes_.scopes[static_cast<size_t>(*scope)].primitive ||
          !(at_hand(c->args[1]) || constants_.contains(c->args[1]))) {
        continue;
      }
      std::string key = op->name + " " + std::to_string(*scope) + " " +
                        shape_but(*static_shape(c->args[1]), channels->weight_axis);
      for (const auto& [name, value] : attr_values(c->attrs)) {
        if (name != channels->attribute) key += name + "=" + to_string(value) + ";";
      }
      auto [at, is_new] = by_key.try_emplace({c->args[0].get(), std::move(key)}, groups.size());
      if (is_new) groups.push_back({{}, *channels});
      groups[at->second].branches.push_back({{ref(*c)}, channels->count});
    }
    return groups;
  }

  // Adds the calls that all branches have alike.
  void follow(Group& group) const {
    while (true) {
      std::vector<Call> next;
      for (const Branch& b : group.branches) {
        const Node* const* user = only_user_.find(b.calls.back().get());
        auto* c = user == nullptr ? nullptr : as<CallNode>(*user);
        if (c == nullptr || scopes_.scope_of.at(c) != scopes_.scope_of.at(b.calls[0].get())) return;
        next.push_back(ref(*c));
      }
      if (!alike(group, next)) return;
      for (size_t i = 0; i < next.size(); ++i) group.branches[i].calls.push_back(next[i]);
    }
  }

 private:
  // Whether the calls, one behind each branch, are one call on the branches side by side.
  bool alike(const Group& group, const std::vector<Call>& next) const {
    const CallNode& first = *next[0];
    const Expr& value = group.branches[0].calls.back();
    auto* op = as<OpNode>(first.op);
    auto at = position_of(first, value);
    if (op == nullptr || !at || op->row->effect != Effect::Pure) return false;
    bool plain = op->row->fusion == FusionClass::ElemWise && first.args.size() == 1;
    bool spreads = op->row->fusion == FusionClass::Broadcast && op->row->attrs == nullptr;
    if (!plain && !spreads && !adds_bias(first, group.channels.result_axis)) return false;
    for (size_t i = 0; i < next.size(); ++i) {
      const CallNode& c = *next[i];
      // Spread by nothing, the branch keeps its channels where they are.
      if (c.op != first.op || !structural_equal(c.attrs, first.attrs) ||
          c.args.size() != first.args.size() ||
          position_of(c, group.branches[i].calls.back()) != at ||
          !same_shape(c.args[*at], Expr(&c))) {
        return false;
      }
    }
    for (size_t arg = 0; arg < first.args.size(); ++arg) {
      if (arg != *at && !is_shared(group, next, arg) && !side_by_side(group, next, arg)) {
        return false;
      }
    }
    return true;
  }

  // Operands with an entry for each channel of their branch.
  bool side_by_side(const Group& group, const std::vector<Call>& next, size_t arg) const {
    std::string others;
    for (size_t i = 0; i < next.size(); ++i) {
      const Expr& operand = next[i]->args[arg];
      auto shape = static_shape(operand);
      if (!shape || !(at_hand(operand) || constants_.contains(operand))) return false;
      int64_t axis = channel_axis(*next[i], arg, group.channels.result_axis);
      if (axis < 0 || (*shape)[static_cast<size_t>(axis)] != group.branches[i].count) return false;
      std::string rest = shape_but(*shape, axis);
      if (i > 0 && rest != others) return false;
      others = std::move(rest);
    }
    return true;
  }

  ScopeTree scopes_;
  Takes takes_;
  ConstantExpressions& constants_;
  NodeMap<const Node*> only_user_;  // null when there are more
};

class Combiner : public Rewriter {
 public:
  explicit Combiner(std::vector<Group> groups)
      : Rewriter(family::program), groups_(std::move(groups)) {
    for (size_t g = 0; g < groups_.size(); ++g) {
      int64_t begin = 0;
      for (const Branch& b : groups_[g].branches) {
        last_[b.calls.back().get()] = {g, begin, begin + b.count};
        begin += b.count;
      }
    }
    combined_.resize(groups_.size());
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    const Part* part = last_.find(original.get());
    if (part == nullptr) return rebuilt;
    const Group& group = groups_[part->group];
    Expr& whole = combined_[part->group];
    if (!whole) whole = combine(group);
    return make_call("strided_slice", {whole},
                     {{"begin", to_value(Ints{part->begin})},
                      {"end", to_value(Ints{part->end})},
                      {"axes", to_value(Ints{group.channels.result_axis})}},
                     *as<CallNode>(original));
  }

 private:
  struct Part {
    size_t group;
    int64_t begin;
    int64_t end;
  };

  // The first branch's calls on what all branches have.
  Expr combine(const Group& group) const {
    const Branch& first = group.branches[0];
    int64_t total = 0;
    for (const Branch& b : group.branches) total += b.count;
    const CallNode& heavy = *first.calls[0];
    NodeRef input = lookup(heavy.args[0].get());
    std::vector<Expr> args{input ? Expr::unchecked(input) : heavy.args[0],
                           joined(group, 0, 1, group.channels.weight_axis)};
    Expr out = group.channels.attribute.empty()
                   ? Expr(call(heavy.op, std::move(args), heavy.attrs, heavy.span))
                   : with_attrs(heavy, std::move(args),
                                {{std::string(group.channels.attribute), AttrValue(total)}});
    for (size_t step = 1; step < first.calls.size(); ++step) {
      const CallNode& c = *first.calls[step];
      std::vector<Call> calls;
      for (const Branch& b : group.branches) calls.push_back(b.calls[step]);
      std::vector<Expr> operands = c.args;
      for (size_t arg = 0; arg < operands.size(); ++arg) {
        if (operands[arg] == first.calls[step - 1]) {
          operands[arg] = out;
        } else if (!is_shared(group, calls, arg)) {
          operands[arg] =
              joined(group, step, arg, channel_axis(c, arg, group.channels.result_axis));
        }
      }
      out = call(c.op, std::move(operands), c.attrs, c.span);
    }
    return out;
  }

  static Expr joined(const Group& group, size_t step, size_t arg, int64_t axis) {
    std::vector<Expr> parts;
    for (const Branch& b : group.branches) parts.push_back(b.calls[step]->args[arg]);
    return make_call("concatenate", {tuple(std::move(parts))}, {{"axis", AttrValue(axis)}},
                     *group.branches[0].calls[step]);
  }

  std::vector<Group> groups_;
  std::vector<Expr> combined_;
  NodeMap<Part> last_;  // by the last call of a branch
};

// Whether one product is faster than several: the vectors that all outputs fill are at most half.
bool pays(const Group& group, int64_t lanes, ConstantExpressions& constants) {
  auto vectors = [&](int64_t count) { return (count + lanes - 1) / lanes; };
  int64_t total = 0, separate = 0;
  for (const Branch& b : group.branches) {
    if (!constants.contains(b.calls[0]->args[1])) return false;
    total += b.count;
    separate += vectors(b.count);
  }
  return 2 * vectors(total) <= separate;
}

// Whether any expression is the input of two of the operators: the quick answer for most programs.
bool has_branches(const Function& f, Takes takes) {
  NodeSet inputs;
  bool twice = false;
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr || !is_taken(*c, takes)) return;
        twice |= !inputs.insert(c->args[0].get());
      },
      family::program);
  return twice;
}

const std::vector<PassOption> kOptions{
    {"min_num_branches", PassOption::Type::integer, AttrValue(),
     "Fewest branches that are combined; without, as many as pay."}};

Module combine_parallel(const Module& mod, PassContext& ctx, const Pass& pass, Takes takes) {
  const int64_t* asked = ctx.asked<int64_t>(pass, "min_num_branches");
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    if (!has_branches(f, takes)) return f;
    ConstantExpressions constants(f);
    Finder finder(f, takes, constants);
    std::vector<Group> groups;
    for (Group& group : finder.find()) {
      auto branches = static_cast<int64_t>(group.branches.size());
      if (branches < 2) continue;
      if (asked != nullptr ? branches < *asked : !pays(group, ctx.target.lanes(32), constants)) {
        continue;
      }
      finder.follow(group);
      groups.push_back(std::move(group));
    }
    return groups.empty() ? f : Combiner(std::move(groups)).apply(f);
  });
}

bool is_conv2d(const Contraction& c) {
  return c.count(ContractionRole::Window) == 2 && !c.transposed();
}
bool is_dense(const Contraction& c) {
  return c.count(ContractionRole::Window) == 0 && c.count(ContractionRole::Batch) == 0;
}
bool is_batch_matmul(const Contraction& c) {
  return c.count(ContractionRole::Window) == 0 && c.count(ContractionRole::Batch) == 1;
}

}  // namespace

const Pass kCombineParallelBatchMatmul{
    "CombineParallelBatchMatmul",
    3,
    Form::any,
    Form::any,
    "Makes one batched product of several narrow ones of one input.",
    [](const Module& mod, PassContext& ctx) {
      return combine_parallel(mod, ctx, kCombineParallelBatchMatmul, is_batch_matmul);
    },
    kOptions};

const Pass kCombineParallelConv2D{"CombineParallelConv2D",
                                  3,
                                  Form::any,
                                  Form::any,
                                  "Makes one convolution of several narrow ones of one input.",
                                  [](const Module& mod, PassContext& ctx) {
                                    return combine_parallel(mod, ctx, kCombineParallelConv2D,
                                                            is_conv2d);
                                  },
                                  kOptions};

const Pass kCombineParallelDense{"CombineParallelDense",
                                 3,
                                 Form::any,
                                 Form::any,
                                 "Makes one matrix product of several narrow ones of one input.",
                                 [](const Module& mod, PassContext& ctx) {
                                   return combine_parallel(mod, ctx, kCombineParallelDense,
                                                           is_dense);
                                 },
                                 kOptions};

}  // namespace relay
