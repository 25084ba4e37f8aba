#include "passes/external/partition_graph.h"

#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/budget.h"
#include "base/codes/passes.h"
#include "base/plain_name.h"
#include "ir/external.h"
#include "ir/open_types.h"
#include "node/node_map.h"
#include "node/walk.h"
#include "passes/external/external_codegen.h"
#include "passes/external/inline_compiler_functions.h"
#include "passes/external/regions.h"

namespace relay {
namespace {

// What a region becomes.
struct Taken {
  GlobalVar name;
  std::vector<Expr> inputs;  // of the original function
  NodeMap<size_t> number;    // of a result, by what an end marks
  size_t num_results = 0;
};

struct Added {
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
};

// A function without marks. Expressions are rebuilt after what they use; the results of a region, after all of its inputs.
class Partition {
 public:
  // `prefix` and `name` are parts of the names of its regions' functions.
  Partition(const Function& f, const std::string& prefix, const std::string& name,
            bool bind_constants, Added& added)
      : f_(f), regions_(*f.get()), states_(regions_.all().size()) {
    size_t number = 0;
    for (size_t i = 0; i < states_.size(); ++i) {
      const Region& region = regions_.all()[i];
      if (region.compiler == kNoCompiler || region.ends.empty()) continue;
      const std::string of_region =
          prefix + region.compiler + "_" + name + "_" + std::to_string(number);
      const std::string stem = region.compiler + "_" + std::to_string(number) + "_i";
      states_[i].taken = take(region, of_region, stem, bind_constants, added);
      number += states_[i].taken.has_value();
    }
  }

  Function run() {
    work_.push_back({f_.get(), 0});
    while (!work_.empty()) {
      check_budget();
      const Item item = work_.back();
      item.node == nullptr ? visit_region(item.region) : visit(*item.node);
    }
    return cast<FunctionNode>(*done_.find(f_.get()));
  }

 private:
  struct Item {
    const Node* node;  // null: the inputs of the region
    size_t region;
  };
  struct State {
    std::optional<Taken> taken;  // nothing: its marks are dropped
    bool waits = false;
    Expr call = nullptr;
  };

  // The function of a region, `name`, with parameters `stem`0, ...; nothing where the code generator declines it.
  static std::optional<Taken> take(const Region& region, const std::string& name,
                                   const std::string& stem, bool bind_constants, Added& added) {
    Taken out;
    std::vector<Var> params;
    std::unordered_map<const Node*, NodeRef> inside;  // a begin: its parameter, or constant
    NodeMap<Var> by_value;
    for (const CallNode* begin : region.begins) {
      const Expr& value = begin->args[0];
      if (bind_constants && isa<ConstantNode>(value)) {
        inside[begin] = value;
        continue;
      }
      Var& param = by_value[value.get()];
      if (!param) {
        param = var(stem + std::to_string(params.size()), value->type, value->span);
        params.push_back(param);
        out.inputs.push_back(value);
      }
      inside[begin] = param;
    }
    std::vector<Expr> results;
    for (const CallNode* end : region.ends) {
      const Expr& value = end->args[0];
      if (!out.number.emplace(value.get()).second) continue;
      out.number[value.get()] = results.size();
      results.push_back(value);
    }
    out.num_results = results.size();
    const Expr whole = results.size() == 1 ? results[0] : Expr(tuple(results));
    const Expr body = cast<ExprNode>(substitute(whole, inside, family::program));
    Function f = with_free_type_vars(function(std::move(params), body, body->type, {},
                                              {{attr::kGlobalSymbol, AttrValue(name)},
                                               {attr::kPrimitive, AttrValue(int64_t{1})},
                                               {attr::kCompiler, AttrValue(region.compiler)},
                                               {attr::kInline, AttrValue(int64_t{1})}},
                                              region.ends[0]->span));
    // A call of a function with a size that no input tells has no type.
    if (!for_arguments(f, std::vector<Expr>(f->params.begin(), f->params.end()))) {
      return std::nullopt;
    }
    auto row = find_external_codegen(region.compiler);
    if (row != nullptr && row->declines && row->declines(f)) return std::nullopt;
    out.name = global_var(name, f->type);
    added.names.push_back(out.name);
    added.functions.push_back(std::move(f));
    return out;
  }

  bool is_done(const NodeRef& n) const { return n.get() == nullptr || done_.contains(n.get()); }

  // Puts what is not rebuilt on the stack; false when there is nothing.
  bool wait_for(std::span<const NodeRef> nodes) {
    const size_t before = work_.size();
    for (const NodeRef& n : nodes) {
      if (!is_done(n)) work_.push_back({n.get(), 0});
    }
    return work_.size() > before;
  }

  void finish(const Node& n, NodeRef result) {
    work_.pop_back();
    done_[&n] = std::move(result);
  }

  void visit(const Node& n) {
    if (done_.contains(&n)) return work_.pop_back();
    const bool is_expr = isa<ExprNode>(&n);
    const Expr e = is_expr ? Expr(static_cast<const ExprNode*>(&n)) : Expr();
    const bool ends = is_expr && compiler_end_of(e) != nullptr;
    const bool begins = is_expr && compiler_begin_of(e) != nullptr;
    const int region = is_expr ? regions_.of(&n) : -1;
    if (ends && region >= 0 && states_[static_cast<size_t>(region)].taken) {
      return visit_end(*as<CallNode>(e), static_cast<size_t>(region));
    }
    std::vector<NodeRef> children = children_of(n);
    if (wait_for(children)) return;
    // Marks of regions that stay are what they mark.
    if (begins || ends) return finish(n, *done_.find(as<CallNode>(e)->args[0].get()));
    for (NodeRef& c : children) {
      if (c.get() != nullptr) c = *done_.find(c.get());
    }
    finish(n, with_children(NodeRef(&n), children));
  }

  void visit_end(const CallNode& end, size_t region) {
    State& s = states_[region];
    if (!s.call) {
      if (s.waits) {
        throw UserError(Diagnostic(codes::external_codegen, end.span,
                                   "a region of \"" + regions_.all()[region].compiler +
                                       "\" needs its own result")
                            .expected("regions that can be computed one after the other")
                            .help("MergeCompilerRegions joins those that can be joined"));
      }
      s.waits = true;
      work_.push_back({nullptr, region});
      return;
    }
    const auto number = static_cast<int64_t>(*s.taken->number.find(end.args[0].get()));
    finish(end,
           s.taken->num_results == 1 ? s.call : Expr(tuple_get_item(s.call, number, end.span)));
  }

  void visit_region(size_t region) {
    State& s = states_[region];
    const std::vector<NodeRef> inputs(s.taken->inputs.begin(), s.taken->inputs.end());
    if (wait_for(inputs)) return;
    work_.pop_back();
    std::vector<Expr> args;
    for (const NodeRef& i : inputs) args.push_back(cast<ExprNode>(*done_.find(i.get())));
    s.call = call(s.taken->name, std::move(args), nullptr, regions_.all()[region].ends[0]->span);
  }

  const Function f_;
  const Regions regions_;
  std::vector<State> states_;
  std::vector<Item> work_;
  NodeMap<NodeRef> done_;
};

Module partition_graph(const Module& mod, PassContext& ctx) {
  const auto mod_name = ctx.option<std::string>(kPartitionGraph, "mod_name");
  const bool bind_constants = ctx.option<bool>(kPartitionGraph, "bind_constants");
  Added added;
  Module out = map_functions(mod, [&](const GlobalVar& name, const Function& f) {
    if (f->is_primitive() || f->has_attr(attr::kCompiler)) return f;
    if (Regions(*f.get()).all().empty()) return f;
    const std::string prefix = "tvmgen_" + plain_name(mod_name) + "_";
    return Partition(f, prefix, plain_name(name->name_hint), bind_constants, added).run();
  });
  if (out == mod) return mod;
  std::vector<GlobalVar> names = out->global_vars;
  std::vector<Function> functions = out->functions;
  names.insert(names.end(), added.names.begin(), added.names.end());
  functions.insert(functions.end(), added.functions.begin(), added.functions.end());
  return make_module(std::move(names), std::move(functions), out->type_definitions, out->attrs);
}

}  // namespace

const Pass kPartitionGraph{"PartitionGraph",
                           0,
                           Form::any,
                           Form::any,
                           "Makes functions of the regions that external code generators compute.",
                           partition_graph,
                           {{"mod_name", PassOption::Type::text, AttrValue(std::string("default")),
                             "Part of the names of the functions."},
                            {"bind_constants", PassOption::Type::boolean, AttrValue(true),
                             "Constants that a region reads are part of its function."}}};

}  // namespace relay
