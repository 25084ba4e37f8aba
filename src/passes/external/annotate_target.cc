#include "passes/external/annotate_target.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analysis/calls.h"
#include "analysis/purity.h"
#include "ir/external.h"
#include "node/node_map.h"
#include "node/walk.h"
#include "passes/external/external_codegen.h"

namespace relay {
namespace {

struct Codegen {
  std::string name;
  std::shared_ptr<const ExternalCodegen> row;  // null: takes composite functions only
};

// "dnnl" of a composite function "dnnl.conv2d_relu".
std::string_view prefix_of(const FunctionNode& f) {
  auto found = f.attrs.find(attr::kComposite);
  if (found == f.attrs.end()) return {};
  auto* name = found->second.get_if<std::string>();
  if (name == nullptr) return {};
  return std::string_view(*name).substr(0, std::min(name->find('.'), name->size()));
}

Expr marked(const char* op, const Expr& value, const std::string& compiler) {
  return make_call(op, {value}, {{"compiler", AttrValue(compiler)}}, value->span);
}

// A kernel, a composite function, or what a code generator has already.
bool is_someones(const FunctionNode& f) {
  return f.is_primitive() || f.has_attr(attr::kComposite) || f.has_attr(attr::kCompiler);
}

class Annotator : public Rewriter {
 public:
  Annotator(const std::vector<Codegen>& codegens, bool tuples)
      : Rewriter(family::program), codegens_(codegens), tuples_(tuples) {}

  NodeRef pre(const NodeRef& node) override {
    auto* f = as<FunctionNode>(node);
    return f != nullptr && is_someones(*f) ? node : NodeRef();
  }

  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    if (!isa<ExprNode>(rebuilt)) return closed(rebuilt);
    const Expr now = Expr::unchecked(rebuilt);
    if (auto* begin = compiler_begin_of(now); begin != nullptr && *begin == kNoCompiler) {
      return as<CallNode>(now)->args[0];
    }
    if (auto* end = compiler_end_of(now)) {
      return *end == kNoCompiler ? NodeRef(as<CallNode>(now)->args[0]) : rebuilt;
    }
    auto* c = as<CallNode>(now);
    if (c != nullptr && (isa<OpNode>(c->op) || is_composite(*c)) && !compiler_begin_of(now)) {
      return annotate(*static_cast<const CallNode*>(original.get()), *c);
    }
    if (auto* field = as<TupleGetItemNode>(now); field != nullptr && is_open(field->tuple)) {
      open(now, *open_.find(field->tuple.get()));
      return now;
    }
    return closed(rebuilt);
  }

 private:
  static bool is_composite(const CallNode& c) {
    auto* f = as<FunctionNode>(c.op);
    return f != nullptr && f->has_attr(attr::kComposite);
  }

  // Whether it has the result of a marked call in hand, which leaves its region where it is used.
  bool is_open(const Expr& e) const { return open_.contains(e.get()); }
  void open(const Expr& e, std::string compiler) {
    keep_.push_back(e);
    open_[e.get()] = std::move(compiler);
  }

  // The value outside its region.
  Expr ended(const Expr& e) {
    if (Expr* known = ended_.find(e.get())) return *known;
    const std::string compiler = *open_.find(e.get());
    Expr out;
    if (auto* fields = as<TupleTypeNode>(e->type)) {
      std::vector<Expr> ends;
      for (size_t i = 0; i < fields->fields.size(); ++i) {
        ends.push_back(
            marked(kCompilerEnd, tuple_get_item(e, static_cast<int64_t>(i), e->span), compiler));
      }
      out = tuple(std::move(ends), e->span);
    } else {
      out = marked(kCompilerEnd, e, compiler);
    }
    ended_[e.get()] = out;
    return out;
  }

  // The node over values that are outside their regions.
  NodeRef closed(const NodeRef& node) {
    std::vector<NodeRef> children = children_of(*node.get());
    for (NodeRef& child : children) {
      if (!isa<ExprNode>(child)) continue;
      const Expr e = Expr::unchecked(child);
      if (is_open(e)) child = ended(e);
    }
    return with_children(node, children);
  }

  bool has_tuples(const CallNode& c) const {
    return isa<TupleTypeNode>(c.type) ||
           std::ranges::any_of(c.args, [](const Expr& a) { return isa<TupleTypeNode>(a->type); });
  }

  std::string compiler_for(const CallNode& c) const {
    if (has_tuples(c) && !tuples_) return kNoCompiler;
    auto* f = as<FunctionNode>(c.op);
    if (f == nullptr && !is_pure_op_call(c)) return kNoCompiler;
    for (const Codegen& g : codegens_) {
      const bool takes = f != nullptr ? prefix_of(*f) == g.name
                                      : g.row != nullptr && g.row->supports && g.row->supports(c);
      if (takes) return g.name;
    }
    return kNoCompiler;
  }

  static bool is_marked(const Expr& arg) {
    if (compiler_begin_of(arg) != nullptr) return true;
    auto* fields = as<TupleNode>(arg);
    return fields != nullptr && std::ranges::any_of(fields->fields, [](const Expr& f) {
             return compiler_begin_of(f) != nullptr;
           });
  }

  NodeRef annotate(const CallNode& original, const CallNode& now) {
    const NodeRef here = closed(NodeRef(&now));
    auto& c = *static_cast<const CallNode*>(here.get());
    if (std::ranges::any_of(c.args, is_marked)) return here;
    const std::string compiler = compiler_for(original);
    auto begin = [&](const Expr& e) { return marked(kCompilerBegin, e, compiler); };
    std::vector<NodeRef> parts = children_of(c);
    for (size_t i = 0; i < c.args.size(); ++i) {
      const Expr& arg = c.args[i];
      auto* type = as<TupleTypeNode>(original.args[i]->type);
      if (type == nullptr) {
        parts[1 + i] = begin(arg);
        continue;
      }
      auto* literal = as<TupleNode>(arg);
      std::vector<Expr> fields;
      for (size_t k = 0; k < type->fields.size(); ++k) {
        fields.push_back(begin(literal != nullptr
                                   ? literal->fields[k]
                                   : tuple_get_item(arg, static_cast<int64_t>(k), arg->span)));
      }
      parts[1 + i] = tuple(std::move(fields), arg->span);
    }
    const Expr out = cast<ExprNode>(with_children(here, parts));
    open(out, compiler);
    return out;
  }

  const std::vector<Codegen>& codegens_;
  bool tuples_;
  NodeMap<std::string> open_;  // by what a region has computed: its name
  NodeMap<Expr> ended_;
  std::vector<Expr> keep_;
};

Module annotate_target(const Module& mod, PassContext& ctx) {
  std::vector<Codegen> codegens;
  if (auto* names = ctx.asked<ValueList>(kAnnotateTarget, "targets")) {
    for (const AttrValue& n : *names) {
      auto* name = n.get_if<std::string>();
      codegens.push_back({*name, find_external_codegen(*name)});
    }
  }
  const bool tuples = ctx.option<bool>(kAnnotateTarget, "include_non_call_ops");
  if (codegens.empty()) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) -> Function {
    return Annotator(codegens, tuples).apply(f);
  });
}

}  // namespace

const Pass kAnnotateTarget{
    "AnnotateTarget",
    0,
    Form::any,
    Form::any,
    "Marks operators with the external code generators that compute them.",
    annotate_target,
    {{"targets", PassOption::Type::names, AttrValue(),
      "Names of external code generators; the first that supports an operator gets it."},
     {"include_non_call_ops", PassOption::Type::boolean, AttrValue(true),
      "Also operators that take or give tuples."}}};

}  // namespace relay
