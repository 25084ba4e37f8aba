// SimplifyExpr's rules for shapes, layouts and dtypes.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "ir/layout.h"
#include "ir/op.h"
#include "ir/views.h"
#include "passes/simplify/rules/rule.h"

namespace relay::simplify {
namespace {

// ---- Reshapes

// The same elements in the same order as a reshape, which is no copy.
Expr as_reshape(const Expr& x, const CallNode& root) {
  auto shape = static_shape(Expr(&root));
  // A zero in newshape copies a size of the input.
  if (!shape || std::find(shape->begin(), shape->end(), 0) != shape->end()) return nullptr;
  return make_call("reshape", {x}, {{"newshape", to_value(*shape)}}, root);
}

void add_reshapes(std::vector<Rule>& rules) {
  DFPattern x = wildcard();
  rules.push_back(
      {"reshape_same", is_op_where(only_reshapes)(x), [=](const DFMatch& m, const CallNode& root) {
         return same_shape(m[x], Expr(&root)) ? m[x] : Expr();
       }});
  // There and back, with sizes that need not be known.
  rules.push_back({"reshape_back", is_op_where(only_reshapes)(is_op_where(only_reshapes)(x)),
                   [=](const DFMatch& m, const CallNode& root) {
                     return same_shape(m[x], Expr(&root)) ? m[x] : Expr();
                   }});
  // One copy of the bytes is as good as two, whatever the operators in between are called.
  rules.push_back({"reshape_reshape", is_op_where(only_reshapes)(is_op_where(only_reshapes)(x)),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     return static_shape(m[x]) ? as_reshape(m[x], root) : nullptr;
                   }});
}

// A vector added to each row of a matrix product, before the rows are separated: a kernel of the product takes it in.
void add_rows_of_products(std::vector<Rule>& rules) {
  auto sums = [](const OpInfo& row) { return row.fusion == FusionClass::OutEWiseFusable; };
  DFPattern product = is_op_where(sums)(wildcard(), wildcard()),
            view = is_op_where(only_reshapes)(product), vector = wildcard();
  auto first = [=](const DFMatch& m, const CallNode& root) -> Expr {
    auto rows = static_shape(m[product]), row = static_shape(m[vector]),
         all = static_shape(m[view]);
    if (!rows || !row || !all || rows->size() < 2 || row->size() != 1 || all->size() < 2 ||
        rows->back() != (*row)[0] || all->back() != (*row)[0]) {
      return nullptr;
    }
    return as_reshape(make_call("add", {m[product], m[vector]}, {}, root), root);
  };
  rules.push_back({"add_before_reshape", is_op("add")(view, vector), first});
}

// The row of the operator that an expression calls; null where it calls none.
const OpInfo* operator_of(const Expr& e) {
  auto* c = as<CallNode>(e);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op == nullptr ? nullptr : op->row.get();
}

// Whether a value is a constant, or one that is rearranged.
bool is_of_constant(Expr e) {
  for (auto* c = as<CallNode>(e); c != nullptr && c->args.size() <= 1; c = as<CallNode>(e)) {
    if (c->args.empty()) return true;  // a fill
    e = c->args[0];
  }
  return isa<ConstantNode>(e);
}

// Whether a value is a product by constant weights behind element-wise operators, which a kernel of the product takes in. A
// kernel that reads its weights from an input is left alone: GELU behind one takes BERT of batch 8 from 1.73 to 1.99 s.
bool is_of_product(Expr e) {
  constexpr int kMostOperators = 16;
  for (int i = 0; i < kMostOperators; ++i) {
    const OpInfo* row = operator_of(e);
    if (row == nullptr) return false;
    const auto& args = as<CallNode>(e)->args;
    if (row->fusion == FusionClass::OutEWiseFusable)
      return std::ranges::any_of(args, is_of_constant);
    if (row->fusion != FusionClass::ElemWise && row->fusion != FusionClass::Broadcast) return false;
    if (args.empty()) return false;  // a fill
    auto* first = tensor_of(args[0]);
    e = args.size() > 1 && first != nullptr && first->rank() == 0 ? args[1] : args[0];
  }
  return false;
}

// Element-wise operators on the rows of a product, before the rows are separated.
void add_elements_of_products(std::vector<Rule>& rules) {
  // One with a shape of its own is none of the rows.
  auto by_element = [](const OpInfo& row) {
    const bool has_shape = row.attrs != nullptr && row.attrs->find("shape") != nullptr;
    return !has_shape &&
           (row.fusion == FusionClass::ElemWise || row.fusion == FusionClass::Broadcast);
  };
  DFPattern view = is_op_where(only_reshapes)(wildcard()), op = is_op_where(by_element);
  auto rewrite = [](const DFMatch&, const CallNode& root) -> Expr {
    const CallNode* taken = nullptr;
    std::vector<Expr> args;
    for (const Expr& a : root.args) {
      auto* type = tensor_of(a);
      if (type == nullptr || type->shape_var) return nullptr;
      if (type->rank() == 0) {
        args.push_back(a);
        continue;
      }
      const OpInfo* row = operator_of(a);
      if (row == nullptr || !only_reshapes(*row) || !same_shape(a, Expr(&root))) return nullptr;
      auto* seen = as<CallNode>(a);
      auto* rows = tensor_of(seen->args[0]);
      if (rows == nullptr || rows->shape_var || rows->rank() < 2 || type->rank() < 2 ||
          !dim_equal(rows->shape.back(), type->shape.back()) ||
          (taken != nullptr && !same_shape(taken->args[0], seen->args[0]))) {
        return nullptr;
      }
      taken = seen;
      args.push_back(seen->args[0]);
    }
    if (taken == nullptr || !is_of_product(taken->args[0])) return nullptr;
    return with_attrs(*taken, {with_attrs(root, std::move(args), {})}, {});
  };
  rules.push_back(
      {"elements_before_reshape", op(view) | op(view, wildcard()) | op(wildcard(), view), rewrite});
}

// ---- Transposes

// The axes with negative ones counted from the front; none means all in reverse.
std::vector<int64_t> axes_of(const CallNode& c) {
  int64_t rank = tensor_of(c.args[0])->rank();
  std::vector<int64_t> axes;
  if (auto given = ints_attr(c, "axes"); given && !given->empty()) {
    for (int64_t a : *given) axes.push_back(a < 0 ? a + rank : a);
    return axes;
  }
  for (int64_t a = rank; a-- > 0;) axes.push_back(a);
  return axes;
}

bool in_order(const std::vector<int64_t>& axes) { return std::is_sorted(axes.begin(), axes.end()); }

// A permutation that moves nothing but axes of size one.
bool moves_ones_only(const Expr& x, const std::vector<int64_t>& axes) {
  auto shape = static_shape(x);
  if (!shape) return false;
  std::vector<int64_t> others;
  for (int64_t a : axes) {
    if ((*shape)[static_cast<size_t>(a)] != 1) others.push_back(a);
  }
  return in_order(others);
}

void add_transposes(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), inner = is_op("transpose")(x);
  rules.push_back({"transpose_ones", inner, [=](const DFMatch& m, const CallNode& root) -> Expr {
                     std::vector<int64_t> axes = axes_of(root);
                     if (in_order(axes) || !moves_ones_only(m[x], axes)) return nullptr;
                     return as_reshape(m[x], root);
                   }});
  rules.push_back({"transpose_same", inner, [=](const DFMatch& m, const CallNode& root) {
                     return in_order(axes_of(root)) ? m[x] : Expr();
                   }});
  rules.push_back({"transpose_transpose", is_op("transpose")(inner),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     std::vector<int64_t> first = axes_of(*as<CallNode>(m[inner])), both;
                     for (int64_t a : axes_of(root)) both.push_back(first[static_cast<size_t>(a)]);
                     if (in_order(both)) return m[x];
                     return make_call("transpose", {m[x]}, {{"axes", to_value(both)}}, root);
                   }});
}

// ---- Layouts

void add_layouts(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), inner = is_op("layout_transform")(x);
  rules.push_back(
      {"layout_transform_ones", inner, [=](const DFMatch& m, const CallNode& root) -> Expr {
         Layout from = Layout::of(text_attr(root, "src_layout")),
                to = Layout::of(text_attr(root, "dst_layout"));
         if (from == to || from.primal_axes() != from.to_string() ||
             to.primal_axes() != to.to_string()) {
           return nullptr;
         }
         std::vector<int64_t> axes;
         for (const Layout::Axis& a : to.axes()) axes.push_back(from.index_of(a.name));
         return moves_ones_only(m[x], axes) ? as_reshape(m[x], root) : nullptr;
       }});
  rules.push_back({"layout_transform_same", inner, [=](const DFMatch& m, const CallNode& root) {
                     return text_attr(root, "src_layout") == text_attr(root, "dst_layout") ? m[x]
                                                                                           : Expr();
                   }});
  rules.push_back(
      {"layout_transform_pair", is_op("layout_transform")(inner),
       [=](const DFMatch& m, const CallNode& root) -> Expr {
         auto& first = *as<CallNode>(m[inner]);
         std::string from = text_attr(first, "src_layout"), by = text_attr(first, "dst_layout"),
                     to = text_attr(root, "dst_layout");
         if (by != text_attr(root, "src_layout") || !static_shape(m[x])) return nullptr;
         // A block that a size does not fill pads; there and back is the same all the same, because
         // the padding lies behind what was there and the type tells whether it is cut off again.
         if (from == to) return m[x];
         bool blocked = (from + by + to).find_first_of("0123456789") != std::string::npos;
         if (blocked) return nullptr;
         return make_call("layout_transform", {m[x]},
                          {{"src_layout", AttrValue(from)}, {"dst_layout", AttrValue(to)}}, root);
       }});
}

// ---- Casts

// How many bits of an integer a dtype holds exactly, the sign not counted.
int exact_bits(DType t) {
  if (t.is_bool()) return 1;
  if (t.is_int()) return t.bits - 1;
  if (t.is_uint()) return t.bits;
  if (t.is_bfloat16()) return 8;
  return t.bits == 16 ? 11 : t.bits == 32 ? 24 : 53;
}

// Every value of `from` is a value of `to`.
bool is_lossless(DType from, DType to) {
  if (from == to) return true;
  if (to.is_bool() || from.is_narrow() || to.is_narrow()) return false;
  if (from.is_floating()) return to.is_floating() && to.bits > from.bits;
  if (from.is_int() && to.is_uint()) return false;
  return exact_bits(to) >= exact_bits(from);
}

void add_casts(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), inner = is_op("cast")(x);
  rules.push_back({"cast_same", inner, [=](const DFMatch& m, const CallNode& root) {
                     return tensor_of(m[x])->dtype == tensor_of(Expr(&root))->dtype ? m[x] : Expr();
                   }});
  rules.push_back(
      {"cast_cast", is_op("cast")(inner), [=](const DFMatch& m, const CallNode& root) -> Expr {
         DType from = tensor_of(m[x])->dtype, by = tensor_of(m[inner])->dtype,
               to = tensor_of(Expr(&root))->dtype;
         // What a float beyond an integer's range becomes is each conversion's own.
         bool out_of_range =
             to.is_integer() && (by.is_floating() || from.is_floating()) && !is_lossless(from, to);
         if (!is_lossless(from, by) || out_of_range) return nullptr;
         return make_call("cast", {m[x]}, {{"dtype", AttrValue(to.to_string())}}, root);
       }});
  // Floats saturate when they become integers; integers wrap.
  DFPattern clipped = is_op("clip")(x);
  rules.push_back(
      {"cast_clip", is_op("cast")(clipped), [=](const DFMatch& m, const CallNode& root) -> Expr {
         auto& limits = *as<CallNode>(m[clipped]);
         DType to = tensor_of(Expr(&root))->dtype;
         if (!tensor_of(m[x])->dtype.is_float(32) || !to.is_integer() || to.bits > 16 ||
             !covers(float_attr(limits, "a_min"), float_attr(limits, "a_max"), to)) {
           return nullptr;
         }
         return call(root.op, {m[x]}, root.attrs, root.span);
       }});
  rules.push_back(
      {"clip_widened", is_op("clip")(inner), [=](const DFMatch& m, const CallNode& root) -> Expr {
         DType from = tensor_of(m[x])->dtype;
         bool nothing = is_lossless(from, tensor_of(m[inner])->dtype) && from.is_integer() &&
                        from.bits < 64 &&
                        covers(float_attr(root, "a_min"), float_attr(root, "a_max"), from);
         return nothing ? m[inner] : nullptr;
       }});
  DFPattern y = wildcard();
  rules.push_back({"cast_like", is_op("cast_like")(x, y),
                   [=](const DFMatch& m, const CallNode& root) {
                     return make_call("cast", {m[x]},
                                      {{"dtype", AttrValue(tensor_of(m[y])->dtype.to_string())}},
                                      root);
                   },
                   true});
}

// ---- Moves that move nothing

void add_whole(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), v = wildcard();
  auto same = [=](const DFMatch& m, const CallNode& root) {
    return same_shape(m[x], Expr(&root)) ? m[x] : Expr();
  };
  rules.push_back({"broadcast_to_same", is_op("broadcast_to")(x), same});
  rules.push_back({"tile_once", is_any_op({"tile", "repeat"})(x), same});
  rules.push_back({"slice_whole", is_op("strided_slice")(x),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     // Of equal size and step one: it begins at the beginning.
                     for (int64_t s : ints_attr(root, "strides").value_or(std::vector<int64_t>{})) {
                       if (s != 1) return nullptr;
                     }
                     return static_shape(m[x]) && same_shape(m[x], Expr(&root)) ? m[x] : nullptr;
                   }});
  rules.push_back({"pad_nothing", is_op("nn.pad")(x, v),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     AttrValue attr = attr_value(root.attrs, "pad_width");
                     auto* widths = attr.get_if<ValueList>();
                     if (widths == nullptr) return nullptr;
                     for (const AttrValue& axis : *widths) {
                       auto* pair = axis.get_if<ValueList>();
                       if (pair == nullptr) return nullptr;
                       for (const AttrValue& w : *pair) {
                         auto* width = w.get_if<int64_t>();
                         if (width == nullptr || *width != 0) return nullptr;
                       }
                     }
                     return m[x];
                   },
                   true});
  rules.push_back({"concatenate_one", is_op("concatenate")(is_tuple({x})),
                   [=](const DFMatch& m, const CallNode&) { return m[x]; }});
  rules.push_back(
      {"split_one", is_op("split")(x), [=](const DFMatch& m, const CallNode& root) -> Expr {
         auto* parts = as<TupleTypeNode>(root.type);
         return parts->fields.size() == 1 ? Expr(tuple({m[x]}, root.span)) : nullptr;
       }});
  // The parts of a parameter are copied, as they are of no value that is cut in place; copies that differ in where they begin are
  // one kernel, while the size of a kernel of all parts grows with their number.
  rules.push_back(
      {"split_parameter", is_op("split")(x), [=](const DFMatch& m, const CallNode& root) -> Expr {
         constexpr size_t kManyParts = 64;
         auto* parts = as<TupleTypeNode>(root.type);
         auto whole = static_shape(m[x]);
         if (!isa<VarNode>(m[x]) || !whole || parts->fields.size() < kManyParts) return nullptr;
         const int64_t axis = int_attr(root, "axis");
         const auto along = static_cast<size_t>(axis < 0 ? axis + std::ssize(*whole) : axis);
         std::vector<Expr> slices;
         int64_t begin = 0;
         for (const Type& part : parts->fields) {
           const int64_t end = begin + *as_const(as<TensorTypeNode>(part)->shape[along]);
           slices.push_back(make_call("strided_slice", {m[x]},
                                      {{"begin", to_value(std::vector<int64_t>{begin})},
                                       {"end", to_value(std::vector<int64_t>{end})},
                                       {"axes", to_value(std::vector<int64_t>{axis})}},
                                      root));
           begin = end;
         }
         return tuple(std::move(slices), root.span);
       }});
  // A kernel selects its tensor once for a line, or has a loop for each; both grow with their number. Equal groups of
  // parameters are one kernel, and each writes its part of the whole. What is computed here is written there without one.
  rules.push_back({"concatenate_groups", is_op("concatenate")(x),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     constexpr size_t kManyTensors = 64;
                     auto* all = as<TupleNode>(m[x]);
                     if (all == nullptr) return nullptr;
                     const auto count = static_cast<size_t>(std::ranges::count_if(
                         all->fields, [](const Expr& e) { return isa<VarNode>(e); }));
                     if (count <= kManyTensors) return nullptr;
                     auto joined = [&](std::vector<Expr> fields) {
                       return make_call("concatenate", {tuple(std::move(fields), root.span)},
                                        {{"axis", AttrValue(int_attr(root, "axis"))}}, root);
                     };
                     // As many groups as tensors in each.
                     const auto size = static_cast<size_t>(
                         std::ceil(std::sqrt(static_cast<double>(all->fields.size()))));
                     std::vector<Expr> groups;
                     for (size_t begin = 0; begin < all->fields.size(); begin += size) {
                       const size_t end = std::min(begin + size, all->fields.size());
                       auto first = all->fields.begin();
                       groups.push_back(joined({first + static_cast<std::ptrdiff_t>(begin),
                                                first + static_cast<std::ptrdiff_t>(end)}));
                     }
                     return joined(std::move(groups));
                   }});
  using OneElement = Algebra::OneElement;
  auto keeps_one = [](const OpInfo& row) {
    return row.algebra.of_one_element != OneElement::Changes;
  };
  rules.push_back(
      {"reduce_one", is_op_where(keeps_one)(x),
       [=](const DFMatch& m, const CallNode& root) -> Expr {
         auto from = static_shape(m[x]), to = static_shape(Expr(&root));
         const bool always = as<OpNode>(root.op)->row->algebra.of_one_element == OneElement::Stays;
         if (!from || !to || (!always && !tensor_of(m[x])->dtype.is_integer()) ||
             tensor_of(m[x])->dtype != tensor_of(Expr(&root))->dtype) {
           return nullptr;
         }
         auto count = [](const std::vector<int64_t>& shape) {
           return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
         };
         return count(*from) == count(*to) ? as_reshape(m[x], root) : nullptr;
       }});
  rules.push_back(
      {"stack_one", is_op("stack")(is_tuple({x})), [=](const DFMatch& m, const CallNode& root) {
         return make_call("expand_dims", {m[x]}, {{"axis", AttrValue(int_attr(root, "axis"))}},
                          root);
       }});
  DFPattern reversed = is_op("reverse")(x);
  rules.push_back(
      {"reverse_reverse", is_op("reverse")(reversed), [=](const DFMatch& m, const CallNode& root) {
         return int_attr(root, "axis") == int_attr(*as<CallNode>(m[reversed]), "axis") ? m[x]
                                                                                       : Expr();
       }});
}

// ---- Broadcasts

void add_broadcasts(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), y = wildcard(), spread = is_op("broadcast_to")(x);
  rules.push_back({"broadcast_broadcast", is_op("broadcast_to")(spread),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     auto shape = static_shape(Expr(&root));
                     if (!shape) return nullptr;
                     return make_call("broadcast_to", {m[x]}, {{"shape", to_value(*shape)}}, root);
                   }});
  // Operators of two tensors spread their operands themselves; not so one whose result has the
  // shape of an operand, whatever the other is.
  DFPattern op = is_op_where([](const OpInfo& row) {
    return row.fusion == FusionClass::Broadcast && row.attrs == nullptr && row.args.size() == 2 &&
           row.name != "broadcast_to_like";
  });
  rules.push_back({"broadcast_operand", op(spread, y) | op(y, spread),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     if (!static_shape(Expr(&root))) return nullptr;
                     std::vector<Expr> args = root.args;
                     for (Expr& a : args) {
                       if (a == m[spread]) a = m[x];
                     }
                     return call(root.op, std::move(args), root.attrs, root.span);
                   }});
}

// ---- Shapes taken from another tensor

void add_likes(std::vector<Rule>& rules) {
  DFPattern x = wildcard(), y = wildcard();
  // `attr` of operator `to` gets the static shape of the result.
  auto concrete = [&](std::string_view name, std::string from, std::string to, std::string attr) {
    rules.push_back({name, is_op(from)(x, y),
                     [=](const DFMatch& m, const CallNode& root) -> Expr {
                       auto shape = static_shape(Expr(&root));
                       if (!shape || std::find(shape->begin(), shape->end(), 0) != shape->end()) {
                         return nullptr;
                       }
                       return make_call(to, {m[x]}, {{attr, to_value(*shape)}}, root);
                     },
                     true});
  };
  concrete("reshape_like", "reshape_like", "reshape", "newshape");
  concrete("broadcast_to_like", "broadcast_to_like", "broadcast_to", "shape");
  for (const char* op : {"zeros", "ones"}) {
    rules.push_back({std::string_view(op) == "zeros" ? "zeros_like" : "ones_like",
                     is_op(std::string(op) + "_like")(x),
                     [=](const DFMatch& m, const CallNode& root) -> Expr {
                       auto shape = static_shape(m[x]);
                       if (!shape) return nullptr;
                       return make_call(op, {},
                                        {{"shape", to_value(*shape)},
                                         {"dtype", AttrValue(tensor_of(m[x])->dtype.to_string())}},
                                        root);
                     },
                     true});
  }
  rules.push_back({"full_like", is_op("full_like")(x, y),
                   [=](const DFMatch& m, const CallNode& root) -> Expr {
                     auto shape = static_shape(m[x]);
                     if (!shape) return nullptr;
                     return make_call("full", {m[y]},
                                      {{"shape", to_value(*shape)},
                                       {"dtype", AttrValue(tensor_of(m[x])->dtype.to_string())}},
                                      root);
                   },
                   true});
}

}  // namespace

std::vector<Rule> shape_rules() {
  std::vector<Rule> rules;
  add_reshapes(rules);
  add_rows_of_products(rules);
  add_elements_of_products(rules);
  add_transposes(rules);
  add_layouts(rules);
  rules.push_back(permuted_view_rule());
  add_casts(rules);
  add_whole(rules);
  add_broadcasts(rules);
  add_likes(rules);
  return rules;
}

}  // namespace relay::simplify
