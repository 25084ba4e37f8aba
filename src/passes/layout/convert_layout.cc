#include "passes/layout/convert_layout.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <unordered_map>

#include "analysis/primitives.h"
#include "base/codes/extensions.h"
#include "base/codes/passes.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "node/structural.h"
#include "node/walk.h"
#include "target/item_panels.h"

namespace relay {
namespace {

struct Wanted {
  Layout data;
  Layout weights;  // undefined: as they are
};

struct Desired {
  std::map<std::string, Wanted, std::less<>> layouts;
  // Set where the target decides: then a layout is changed only where that is faster.
  const Target* target = nullptr;
};

// The layout that an attribute of an operator says unless told otherwise; nullopt where it has no such attribute.
std::optional<Layout> default_layout(const OpInfo& row, std::string_view name) {
  if (row.layout == nullptr || row.attrs == nullptr || row.attrs->find(name) == nullptr)
    return std::nullopt;
  auto* text = attr_value(default_attrs(row), name).get_if<std::string>();
  return text == nullptr ? std::nullopt : Layout::parse(*text);
}

// The axes of an operator's data, channels last; empty for an operator that no region of another layout begins with.
std::string data_axes(const OpInfo& row) {
  for (const char* name : {"data_layout", "layout"}) {
    const std::optional<Layout> layout = default_layout(row, name);
    if (!layout) continue;
    std::string axes = layout->primal_axes();
    std::ranges::stable_partition(axes, [](char c) { return c != 'C'; });
    return axes;
  }
  return {};
}

// The operators that a region of another layout may begin with: those that are told the layout of their data, also from
// outside.
std::vector<Op> region_operators() {
  std::vector<Op> out = OpRegistry::global().all();
  std::erase_if(out, [](const Op& op) { return data_axes(*op->row).empty(); });
  return out;
}

// An option for each operator, with its name.
std::vector<PassOption> layout_options() {
  std::vector<PassOption> out;
  for (const Op& op : region_operators()) {
    const bool weights = default_layout(*op->row, "kernel_layout").has_value();
    const std::string doc =
        weights ? "The layout of its data, or those of data and weights: \"NHWC,HWIO\"."
                : "The layout in which it computes.";
    out.push_back({op->name, PassOption::Type::text, AttrValue(), doc});
  }
  return out;
}

Layout layout_of(const Op& op, const std::string& what, std::string_view text,
                 const std::string& axes) {
  std::optional<Layout> layout = Layout::parse(text);
  if (layout && std::ranges::is_permutation(layout->primal_axes(), axes)) return *layout;
  throw UserError(
      Diagnostic(codes::pass_option, {},
                 "the layout of " + what + op->name + " in ConvertLayout has other axes")
          .expected(axes + ", or its axes in another order")
          .found(std::string(text)));
}

Desired desired_layouts(const PassContext& ctx) {
  Desired out;
  const std::vector<Op> operators = region_operators();
  for (const Op& op : operators) {
    auto* text = ctx.asked<std::string>(kConvertLayout, op->name);
    if (text == nullptr) continue;
    const auto kernel = default_layout(*op->row, "kernel_layout");
    const size_t comma = kernel ? text->find(',') : std::string::npos;
    Wanted& wanted = out.layouts[op->name];
    wanted.data = layout_of(op, "", text->substr(0, comma), data_axes(*op->row));
    if (comma == std::string::npos) continue;
    wanted.weights =
        layout_of(op, "the weights of ", text->substr(comma + 1), kernel->primal_axes());
  }
  const bool channels_last =
      ctx.target.has_blocked_kernels || ctx.option<bool>(kConvertLayout, "channels_last");
  if (!out.layouts.empty() || !channels_last) return out;
  out.target = &ctx.target;
  // Channels last: a pixel's channels are contiguous, so kernels vectorise over channels of any
  // count, and a 1x1 convolution is a matrix product.
  for (const Op& op : operators) {
    // Pools are computed in the layout of the convolutions beside them.
    if (op->row->contraction == nullptr) continue;
    out.layouts[op->name].data = Layout::of(data_axes(*op->row));
  }
  return out;
}

// Whether a convolution of each channel by itself is as fast where the channels' images lie one after the other: its lanes
// are columns, which fill most of their vectors, and an image stays in the cache. Then its layout is that of its neighbours.
bool is_fast_by_channels(const CallNode& c, const Target& target) {
  std::optional<Contraction> p = contraction_of(c);
  auto *x = as<TensorTypeNode>(c.args[0]->type), *y = as<TensorTypeNode>(c.type);
  if (!p || p->transposed() || !y->dtype.is_floating() || y->dtype.bits < 32) return false;
  int64_t taps = 1, groups = 1;
  for (const Contraction::Dimension& d : p->dims) {
    auto extent = as_const(d.extent);
    if (!extent || (d.role == ContractionRole::Reduced && *extent != 1)) return false;
    if (d.role == ContractionRole::Window) taps *= *extent;
    if (d.role == ContractionRole::Group) groups *= *extent;
  }
  // A device's driver makes vectors of whole groups of items, which columns rarely fill.
  if (!target.has_blocked_kernels && groups % kItemPanel == 0) return false;
  const Contraction::Axis& last = p->result.back();
  if (taps == 1 || groups == 1 || last.dims.size() != 1 || last.blocked() ||
      p->role_of(last) != ContractionRole::Row) {
    return false;
  }
  auto columns = *as_const(p->dims[last.dims[0]].extent);
  int64_t lanes = target.lanes(y->dtype.bits), vectors = (columns + lanes - 1) / lanes;
  int64_t image = y->dtype.bytes();
  for (size_t d = 2; d < x->shape.size(); ++d) image *= *as_const(x->shape[d]);
  return 4 * columns >= 3 * vectors * lanes && image <= target.l2_bytes / 4;
}

// Rules of operators that name axes by number take those of a tensor of three to five axes to be in
// their first order. What such a rule is told and says is in the letters of that order: those of the
// axes that stand where the operator's own operands have them.
class FirstOrder {
 public:
  explicit FirstOrder(const Layout& from) {
    const char* first = from.rank() == 3   ? "NCW"
                        : from.rank() == 4 ? "NCHW"
                        : from.rank() == 5 ? "NCDHW"
                                           : nullptr;
    if (first == nullptr || from.primal_axes().size() != static_cast<size_t>(from.rank())) return;
    axes_ = from.primal_axes();
    first_ = first;
  }

  Layout in_first(const Layout& l) const { return renamed(l, axes_, first_); }
  Layout in_own(const Layout& l) const { return renamed(l, first_, axes_); }

 private:
  static Layout renamed(const Layout& l, const std::string& from, const std::string& to) {
    std::string text = l.to_string();
    for (char& c : text) {
      const bool is_block = std::islower(static_cast<unsigned char>(c)) != 0;
      const size_t at = from.find(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
      if (at == std::string::npos) continue;
      c = is_block ? static_cast<char>(std::tolower(static_cast<unsigned char>(to[at]))) : to[at];
    }
    return l.defined() ? Layout::of(text) : l;
  }

  std::string axes_, first_;
};

Expr transform(const Expr& e, const Layout& from, const Layout& to) {
  if (from == to) return e;
  const OpInfo& row = *OpRegistry::global().get("layout_transform")->row;
  return call("layout_transform", {e},
              make_attrs(*row.attrs,
                         {{"src_layout", AttrValue(from.to_string())},
                          {"dst_layout", AttrValue(to.to_string())}},
                         row.name, e->span),
              e->span);
}

class Converter : public RewriterOutsidePrimitives {
 public:
  explicit Converter(const Desired& desired) : desired_(desired) {}

  // Every node becomes a value in its original layout; values that exist in another layout too are
  // remembered, and whoever can use that does. An unused layout never enters the program.
  NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
    auto* call_node = as<CallNode>(original);
    auto* op = call_node == nullptr ? nullptr : as<OpNode>(call_node->op);
    if (op == nullptr || op->row->layout == nullptr) return rebuilt;
    NodeRef converted = convert(original, *call_node, *op->row);
    return converted ? converted : rebuilt;
  }

 private:
  // A value that is available in another layout.
  struct Converted {
    Expr value;
    Layout from;  // of the original
    Layout to;
  };

  struct Argument {
    Expr original;
    Expr rewritten;
    const Converted* converted = nullptr;
  };

  Argument argument(const Expr& original) {
    NodeRef r = lookup(original.get());
    auto it = converted_.find(original.get());
    return {original, r ? Expr::unchecked(r) : original,
            it == converted_.end() ? nullptr : &it->second};
  }

  static const TensorTypeNode* tensor(const Expr& e) { return as<TensorTypeNode>(e->type); }

  NodeRef convert(const NodeRef& original, const CallNode& c, const OpInfo& row) {
    if (!isa<TensorTypeNode>(c.type)) return nullptr;
    // Tuples flattened; nested ones take no part.
    std::vector<Argument> args;
    for (const Expr& a : c.args) {
      if (auto* t = as<TupleNode>(a)) {
        for (const Expr& f : t->fields) args.push_back(argument(f));
      } else {
        args.push_back(argument(a));
      }
    }
    auto desired = desired_.layouts.find(row.name);
    const bool wanted = desired != desired_.layouts.end();
    bool touched = wanted;
    for (const Argument& a : args) {
      if (tensor(a.original) == nullptr) return nullptr;
      touched |= a.converted != nullptr;
    }
    if (!touched) return nullptr;
    // Operators with attributes (bias_add) say themselves where their operands go.
    bool broadcasts = row.fusion <= FusionClass::Broadcast && row.attrs == nullptr;
    CallNode const* call_node = &c;
    Call expanded;
    if (broadcasts) {
      expanded = with_equal_ranks(c, args);
      if (!expanded) return nullptr;
      call_node = expanded.get();
    }
    // What the operator's layouts are as it stands: its attributes say so, or it takes its operands'.
    auto now = row.layout(*call_node, std::vector<Layout>(args.size()), Layout());
    const bool is_told = now && !now->outputs.empty() && now->outputs[0].defined();
    Layout common;
    for (const Argument& a : args) {
      if (a.converted && !common.defined()) common = a.converted->from;
    }
    auto read_in = [&](size_t i) { return is_told ? now->inputs[i] : common; };
    // Values that were converted from another layout than it reads them in are as if they were not.
    std::vector<Layout> offered(args.size());
    bool any_offered = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const Converted*& converted = args[i].converted;
      if (converted != nullptr && !(converted->from == read_in(i))) converted = nullptr;
      if (converted == nullptr) continue;
      offered[i] = converted->to;
      any_offered = true;
    }
    if (!wanted && !any_offered) return nullptr;
    if (!any_offered && desired_.target != nullptr && is_fast_by_channels(c, *desired_.target)) {
      return nullptr;
    }
    // And what they would be.
    FirstOrder order(is_told ? Layout() : common);
    for (Layout& l : offered) l = order.in_first(l);
    const Wanted want_here = wanted ? desired->second : Wanted();
    if (want_here.weights.defined() && offered.size() > 1) offered[1] = want_here.weights;
    auto then = row.layout(*call_node, offered, want_here.data);
    if (!then || then->outputs.empty() || !then->outputs[0].defined()) return nullptr;
    for (Layout& l : then->inputs) l = order.in_own(l);
    for (Layout& l : then->outputs) l = order.in_own(l);
    std::vector<Expr> new_args;
    bool any = false;
    for (size_t i = 0; i < args.size(); ++i) {
      const Argument& a = args[i];
      const Layout& want = then->inputs[i];
      if (!want.defined()) {
        new_args.push_back(a.rewritten);
        continue;
      }
      if (a.converted && a.converted->to == want) {
        new_args.push_back(a.converted->value);
        any = true;
        continue;
      }
      const Layout have = read_in(i);
      if (!have.defined() || have.rank() != tensor(a.rewritten)->rank()) return nullptr;
      any |= !(have == want);
      new_args.push_back(transform(a.rewritten, have, want));
    }
    if (!any) return nullptr;
    const Layout original_out = is_told ? now->outputs[0] : common;
    if (!original_out.defined()) return nullptr;
    std::vector<Expr> operands;
    size_t next = 0;
    for (const Expr& a : c.args) {
      if (auto* t = as<TupleNode>(a)) {
        std::vector<Expr> fields(
            new_args.begin() + static_cast<std::ptrdiff_t>(next),
            new_args.begin() + static_cast<std::ptrdiff_t>(next + t->fields.size()));
        next += t->fields.size();
        operands.push_back(tuple(std::move(fields), a->span));
      } else {
        operands.push_back(new_args[next++]);
      }
    }
    Call made = in_layouts(c, row, std::move(operands), *then, original_out);
    if (then->outputs[0] == original_out) return made;
    converted_[original.get()] = {made, original_out, then->outputs[0]};
    return transform(made, then->outputs[0], original_out);
  }

  // The call as the operator's layout rule says; UserError E1301 where that computes something else.
  static Call in_layouts(const CallNode& c, const OpInfo& row, std::vector<Expr> operands,
                         const LayoutDecision& decision, const Layout& original) {
    auto refuse = [&](const std::string& expected, const std::string& found) {
      return UserError(Diagnostic(codes::layout_rule, c.span,
                                  "the layout rule of " + row.name + " does not fit the operator")
                           .expected(expected)
                           .found(found));
    };
    const Layout& layout = decision.outputs[0];
    auto in_order = [](std::string axes) {
      std::sort(axes.begin(), axes.end());
      return axes;
    };
    auto* was = as<TensorTypeNode>(c.type);
    if (in_order(layout.primal_axes()) != in_order(original.primal_axes()) ||
        original.rank() != was->rank()) {
      throw refuse("a result with the axes of " + original.to_string(), layout.to_string());
    }
    Call made;
    try {
      made = call(c.op, std::move(operands), decision.attrs ? decision.attrs : c.attrs, c.span);
    } catch (const UserError& e) {
      throw refuse("arguments that the operator takes", e.diagnostics()[0].message);
    }
    Type expected = tensor_type(layout.convert_shape(was->shape, original), was->dtype);
    if (!structural_equal(made->type, expected))
      throw refuse("a result of " + to_string(expected), to_string(made->type));
    return made;
  }

  // Broadcasting aligns at the last axis, which a layout moves: operands of lower rank get leading
  // axes of size one first. Null when an operand's rank exceeds the result's.
  Call with_equal_ranks(const CallNode& c, std::vector<Argument>& args) {
    int64_t rank = as<TensorTypeNode>(c.type)->rank();
    std::vector<Expr> operands = c.args;
    for (size_t i = 0; i < args.size(); ++i) {
      auto* t = tensor(args[i].original);
      int64_t missing = rank - t->rank();
      if (t->rank() == 0 || missing == 0) continue;
      if (missing < 0 || isa<TupleNode>(c.args[0])) return nullptr;
      const OpInfo& row = *OpRegistry::global().get("expand_dims")->row;
      Attrs attrs = make_attrs(
          *row.attrs, {{"axis", AttrValue(int64_t{0})}, {"num_newaxis", AttrValue(missing)}},
          row.name, c.span);
      Expr wide = call("expand_dims", {args[i].rewritten}, attrs, c.span);
      args[i] = {wide, wide, nullptr};
      operands[i] = wide;
    }
    return call(c.op, std::move(operands), c.attrs, c.span, c.type_args);
  }

  const Desired& desired_;
  std::unordered_map<const Node*, Converted> converted_;
};

Module run_convert_layout(const Module& mod, PassContext& ctx) {
  Desired desired = desired_layouts(ctx);
  if (desired.layouts.empty()) return mod;
  return map_functions(
      mod, [&](const GlobalVar&, const Function& f) { return Converter(desired).apply(f); });
}

}  // namespace

const Pass kConvertLayout{"ConvertLayout",
                          3,
                          Form::any,
                          Form::any,
                          "Computes convolutions, and what is between them, in another layout.",
                          run_convert_layout,
                          {{"channels_last", PassOption::Type::boolean, AttrValue(false),
                            "Without desired layouts: also where rules have no kernels for blocked "
                            "layouts."}},
                          true,
                          layout_options};

}  // namespace relay
