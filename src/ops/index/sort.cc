// Sorting, and searching in what is sorted.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/index/order.h"
#include "ops/rows.h"
#include "runtime/core/string_functions.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Whether `a` comes strictly before `b` in ascending order. NaN comes last.
PrimExpr comes_before(const PrimExpr& a, const PrimExpr& b) {
  if (!a->dtype.is_floating()) return lt(a, b);
  return logical_or(lt(a, b), logical_and(eq(a, a), ne(b, b)));
}

// A single line that is this long is worth several threads.
constexpr int64_t kLongLine = int64_t{1} << 16;
constexpr int64_t kParts = 8;

// The indices of the first `count` elements in sorted order along `axis`, stable: all elements, or
// where that is less work those that come first (ops/index/order.h).
TirTensor sorted_order(const TirTensor& x, size_t axis, const PrimExpr& count, bool ascending,
                       DType dtype) {
  std::vector<PrimExpr> shape = x->shape();
  PrimExpr n = shape[axis];
  shape[axis] = count;
  auto size = as_int(n), k = as_int(count);
  const bool in_lanes = selects_in_lanes(size, k);
  // A selection sorts its room about once for each time that the line grows by half.
  bool selects = !in_lanes && k && !(size && *size <= 4 * *k);
  auto elements = as_int(count_elements(x->shape()));
  const bool sorts = !selects && !in_lanes;
  int64_t parts = sorts && size && elements == size && *size >= kLongLine ? kParts : 1;
  const char* name = in_lanes    ? "T_first_in_lanes"
                     : selects   ? "T_first_selected"
                     : parts > 1 ? "T_argsort_in_parts"
                                 : "T_argsort";
  return tir::imperative(
      name, dtype, shape, {x}, [=](const std::vector<Buffer>& in, const Buffer& order) {
        DType key = order_key_dtype(in[0]->dtype);
        PrimExpr room = in_lanes ? index(*k) : selects ? index(select_room(*k)) : n;
        return each_line(in[0]->shape, axis, 64, [&](const LineIndex& at) {
          Entries entries("entries", key, room, n), other("other", key, room, n);
          std::vector<Stmt> steps;
          if (in_lanes) {
            steps.push_back(select_in_lanes(in[0], at, *size, *k, ascending, entries));
          } else if (selects) {
            steps.push_back(select_first(in[0], at, n, *k, ascending, entries, other));
          } else {
            steps.push_back(each_in_lanes("i", n, [&](const PrimExpr& i) {
              return entries.put(i, order_key(load(in[0], at(i)), ascending), i);
            }));
            steps.push_back(sort_entries(entries, other, n, parts));
          }
          steps.push_back(each_in_lanes("k", count, [&](const PrimExpr& i) {
            return store(order, at(i), tir::cast(dtype, entries.place(i)));
          }));
          return entries.in(other.in(seq(std::move(steps))));
        });
      });
}

// The same of all elements of strings: their keys are compared, and their bytes where equal keys are those of long strings.
TirTensor sorted_strings(const TirTensor& x, size_t axis, bool ascending, DType dtype) {
  PrimExpr n = x->shape()[axis];
  return tir::imperative(
      "T_argsort_strings", dtype, x->shape(), {x},
      [=](const std::vector<Buffer>& in, const Buffer& order) {
        return each_line(in[0]->shape, axis, 64, [&](const LineIndex& at) {
          const DType word = DType::UInt(64);
          Buffer places = buffer("places", kIndex, {n}), other = buffer("other", kIndex, {n});
          Buffer keys = buffer("keys", word, {n});
          auto key = [&](const PrimExpr& place) { return load(keys, {place}); };
          Stmt find_keys = each("i", n, [&](const PrimExpr& i) {
            return store(keys, {i}, tir::cast(word, string_key(load(in[0], at(i)))));
          });
          auto precedes = [&](const Cell& precedes, const PrimExpr& a, const PrimExpr& b) {
            auto before = [&](const PrimExpr& x, const PrimExpr& y) {
              return tir::cast(kIndex, ascending ? lt(x, y) : gt(x, y));
            };
            PrimExpr size = binary(BinaryOp::BitAnd, key(a), imm(word, 0xFF));
            PrimExpr is_open = logical_and(
                eq(key(a), key(b)), eq(size, imm(word, static_cast<int64_t>(runtime::kLongKey))));
            PrimExpr compared = string_order(load(in[0], at(a)), load(in[0], at(b)));
            return seq({precedes.set(before(key(a), key(b))),
                        if_(is_open, precedes.set(before(compared, index(0))))});
          };
          Stmt write = each_in_lanes("k", n, [&](const PrimExpr& i) {
            return store(order, at(i), tir::cast(dtype, load(places, {i})));
          });
          Stmt sort = sort_places(places, other, n, precedes);
          return allocate(places, allocate(other, allocate(keys, seq({find_keys, sort, write}))));
        });
      });
}

// The tensor with `axis` last: a line is then read element after element, not each in a line of the cache of its own.
TirTensor as_lines(const TirTensor& x, size_t axis) {
  const std::vector<PrimExpr>& shape = x->shape();
  auto behind =
      as_int(count_elements({shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape.end()}));
  if (axis + 1 == shape.size() || behind == 1) return x;
  std::vector<PrimExpr> turned = shape;
  turned.erase(turned.begin() + static_cast<std::ptrdiff_t>(axis));
  turned.push_back(shape[axis]);
  return tir::compute("T_lines", turned, [&](const Indices& i) {
    Indices at(i.begin(), i.end() - 1);
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(axis), i.back());
    return x(at);
  });
}

// What `sorted_order` gives of x along an axis, indexed as x is; `strings` are all sorted.
std::function<PrimExpr(const Indices&)> order_along(const TirTensor& x, size_t axis,
                                                    const PrimExpr& count, bool ascending,
                                                    DType dtype, bool strings) {
  TirTensor lines = as_lines(x, axis);
  const bool turned = lines.get() != x.get();
  const size_t along = turned ? x->shape().size() - 1 : axis;
  TirTensor order = strings ? sorted_strings(lines, along, ascending, dtype)
                            : sorted_order(lines, along, count, ascending, dtype);
  return [=](const Indices& i) {
    if (!turned) return order(i);
    Indices at = i;
    at.erase(at.begin() + static_cast<std::ptrdiff_t>(axis));
    at.push_back(i[axis]);
    return order(at);
  };
}

DType index_dtype(DType wanted) { return is_set(wanted) ? wanted : DType::Int(32); }
// Of indices that elements are read by, where those of the result are floats, too.
DType order_dtype(DType wanted) {
  return is_set(wanted) && wanted.is_floating() ? kIndex : index_dtype(wanted);
}

bool valid_index_dtype(RelationContext& ctx, DType dtype) {
  const bool fits = (dtype.is_integer() || dtype.is_floating()) && dtype.bits >= 32;
  return require(ctx, !is_set(dtype) || fits, codes::op_bad_attribute, "dtype cannot hold an index",
                 "int32, int64, float32 or float64", dtype.to_string());
}

struct TopKAttrs : AttrsOf<TopKAttrs> {
  std::optional<int64_t> k;
  int64_t axis = -1;
  std::string ret_type = "both";
  bool is_ascend = false;
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.TopKAttrs",
            {attribute("k", &Self::k, "How many; None: one; less than one: all."),
             attribute("axis", &Self::axis, "Axis to sort."),
             attribute("ret_type", &Self::ret_type, "both, values or indices."),
             attribute("is_ascend", &Self::is_ascend, "The least come first."),
             attribute("dtype", &Self::dtype,
                       "dtype of indices; unset: int32. Floats round large ones.")}};
  }
};

Type topk_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr) return nullptr;
  auto& a = ctx.attrs<TopKAttrs>();
  auto axis = normal_axis(ctx, a.axis, x->rank());
  bool both = a.ret_type == "both";
  if (!axis || !valid_index_dtype(ctx, a.dtype) ||
      !require(ctx, both || a.ret_type == "values" || a.ret_type == "indices",
               codes::op_bad_attribute, "ret_type is not known", "both, values or indices",
               a.ret_type))
    return nullptr;
  std::vector<Dim> shape = x->shape;
  Dim& along = shape[static_cast<size_t>(*axis)];
  int64_t k = a.k.value_or(1);
  if (k >= 1) {
    if (!require(ctx, ctx.at_least(along, dim(k)), codes::op_bad_attribute,
                 "k is more than there is along the axis", "at most " + to_string(along),
                 std::to_string(k)))
      return nullptr;
    along = dim(k);
  }
  Type values = tensor_type(shape, x->dtype), indices = tensor_type(shape, index_dtype(a.dtype));
  return both ? Type(tuple_type({values, indices})) : a.ret_type == "values" ? values : indices;
}

std::vector<TirTensor> topk_rule(const ComputeContext& ctx) {
  auto& a = ctx.attrs<TopKAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  const DType dtype = index_dtype(a.dtype);
  PrimExpr count = ctx.outputs[0].shape[axis];
  auto order = order_along(x, axis, count, a.is_ascend, order_dtype(a.dtype), false);
  std::vector<TirTensor> out;
  if (a.ret_type != "indices")
    out.push_back(tir::compute("T_values", ctx.outputs[0].shape, [&](const Indices& i) {
      Indices at = i;
      at[axis] = tir::cast(kIndex, order(i));
      return x(at);
    }));
  if (a.ret_type != "values")
    out.push_back(tir::compute("T_indices", ctx.outputs.back().shape,
                               [&](const Indices& i) { return tir::cast(dtype, order(i)); }));
  return out;
}

// A binary search for each value: how many elements of its line come before it.
Stmt search(const Buffer& sorted, const Buffer& values, const Buffer& out, bool right,
            bool strings) {
  auto before = [strings](const PrimExpr& a, const PrimExpr& b) {
    return strings ? lt(string_order(a, b), index(0)) : comes_before(a, b);
  };
  DType key = working_dtype(values->dtype);
  size_t rank = sorted->shape.size();
  PrimExpr n = sorted->shape.back();
  int64_t rounds = 48;
  if (auto size = as_int(n)) {
    for (rounds = 0; (int64_t{1} << rounds) <= *size;) ++rounds;
  }
  auto one = [&](const Indices& i) {
    Cell low("low", kIndex), high("high", kIndex);
    auto element = [&](const PrimExpr& place) {
      Indices at(i.begin(), i.begin() + static_cast<std::ptrdiff_t>(rank - 1));
      at.push_back(place);
      return tir::cast(key, load(sorted, at));
    };
    Stmt halve = each("round", index(rounds), [&](const PrimExpr&) {
      return if_(
          lt(low.get(), high.get()),
          named("middle", floor_div(low.get() + high.get(), index(2)), [&](const PrimExpr& middle) {
            PrimExpr v = tir::cast(key, load(values, i)), e = element(middle);
            PrimExpr behind = right ? logical_not(before(v, e)) : before(e, v);
            return if_(behind, low.set(middle + 1), high.set(middle));
          }));
    });
    return low.in(high.in(seq(
        {low.set(index(0)), high.set(n), halve, store(out, i, tir::cast(out->dtype, low.get()))})));
  };
  if (out->shape.empty()) return one({});
  size_t last = out->shape.size() - 1;
  return each_line(out->shape, last, 32, [&](const LineIndex& at) {
    return each("k", out->shape[last], [&](const PrimExpr& k) { return one(at(k)); });
  });
}

// Strings are compared; narrow elements are not.
bool is_compared(RelationContext& ctx, DType dtype) {
  return require(ctx, !dtype.is_narrow(), codes::type_dtype,
                 "elements of this dtype are stored and cast, not computed with", "a wider dtype",
                 dtype.to_string());
}

struct SearchSortedAttrs : AttrsOf<SearchSortedAttrs> {
  bool right = false;
  DType dtype = DType::Int(32);
  static AttrsList describe() {
    return {"relay.attrs.SearchSortedAttrs",
            {attribute("right", &Self::right, "Behind equal elements, not before."),
             attribute("dtype", &Self::dtype, "dtype of the result.")}};
  }
};

Type search_type(RelationContext& ctx) {
  const TensorTypeNode *s = ctx.tensor(0), *v = ctx.tensor(1);
  if (s == nullptr || v == nullptr) return nullptr;
  auto& a = ctx.attrs<SearchSortedAttrs>();
  if (!valid_index_dtype(ctx, a.dtype) ||
      !require(ctx, s->dtype == v->dtype, codes::type_dtype, "the arguments have different dtypes",
               "one dtype", s->dtype.to_string() + " and " + v->dtype.to_string()) ||
      !is_compared(ctx, s->dtype))
    return nullptr;
  bool fits = s->rank() == 1 || (s->rank() > 1 && s->rank() == v->rank());
  for (size_t d = 0; fits && d + 1 < s->shape.size(); ++d)
    fits = ctx.equal(s->shape[d], v->shape[d]);
  if (!require(
          ctx, fits, codes::type_shape,
          "sorted_sequence must be a vector, or have the shape of values but for the last axis", "",
          shape_text(s->shape) + " and " + shape_text(v->shape)))
    return nullptr;
  return tensor_type(v->shape, index_dtype(a.dtype));
}

struct ArgsortAttrs : AttrsOf<ArgsortAttrs> {
  int64_t axis = -1;
  bool is_ascend = true;
  DType dtype = kUnsetDType;
  static AttrsList describe() {
    return {"relay.attrs.ArgsortAttrs",
            {attribute("axis", &Self::axis, "Axis to sort."),
             attribute("is_ascend", &Self::is_ascend, "The least comes first."),
             attribute("dtype", &Self::dtype,
                       "dtype of indices; unset: int32. Floats round large ones.")}};
  }
};

template <bool kIndices>
Type sort_type(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  auto& a = ctx.attrs<ArgsortAttrs>();
  if (x == nullptr || !normal_axis(ctx, a.axis, x->rank()) || !valid_index_dtype(ctx, a.dtype) ||
      !is_compared(ctx, x->dtype))
    return nullptr;
  return kIndices ? Type(tensor_type(x->shape, index_dtype(a.dtype))) : Type(x);
}

bool sorts_strings(const ComputeContext& ctx) {
  return as<TensorTypeNode>(ctx.arg_types[0])->dtype.is_string();
}

TirTensor argsort(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ArgsortAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  const DType dtype = index_dtype(a.dtype);
  const bool strings = sorts_strings(ctx);
  if (as_lines(x, axis).get() == x.get()) {
    return strings ? sorted_strings(x, axis, a.is_ascend, dtype)
                   : sorted_order(x, axis, x->shape()[axis], a.is_ascend, dtype);
  }
  return tir::compute("T_order", x->shape(),
                      order_along(x, axis, x->shape()[axis], a.is_ascend, dtype, strings));
}

TirTensor sort(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ArgsortAttrs>();
  TirTensor x = ctx.inputs[0];
  size_t axis = static_cast<size_t>(from_front(a.axis, x->rank()));
  auto order =
      order_along(x, axis, x->shape()[axis], a.is_ascend, order_dtype(a.dtype), sorts_strings(ctx));
  return tir::compute("T_sort", x->shape(), [&](const Indices& i) {
    Indices at = i;
    at[axis] = tir::cast(kIndex, order(i));
    return x(at);
  });
}

TirTensor searchsorted_compute(const ComputeContext& ctx) {
  bool right = ctx.attrs<SearchSortedAttrs>().right;
  bool strings = as<TensorTypeNode>(ctx.arg_types[0])->dtype.is_string();
  return tir::imperative("T_searchsorted", ctx.outputs[0].dtype, ctx.outputs[0].shape,
                         {ctx.inputs[0], ctx.inputs[1]},
                         [=](const std::vector<Buffer>& in, const Buffer& out) {
                           return search(in[0], in[1], out, right, strings);
                         });
}

// ---- Gradients

// The elements go back to where they came from.
Expr put_back(const Expr& g, const Expr& indices, const Expr& x, int64_t axis) {
  Expr places = type_of(indices).dtype.is_floating() ? cast_to(indices, kIndex) : indices;
  return apply("scatter_elements", {zeros_like(x), places, g},
               {{"axis", axis}, {"reduction", "add"}});
}

Adjoints sort_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<ArgsortAttrs>();
  Expr indices = apply("argsort", {ctx.arg(0)}, {{"axis", a.axis}, {"is_ascend", a.is_ascend}});
  return {put_back(ctx.adjoint(), indices, ctx.arg(0), a.axis)};
}

Adjoints topk_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<TopKAttrs>();
  Expr indices = a.ret_type == "both"
                     ? Expr(tuple_get_item(ctx.result, 1))
                     : with_attrs(ctx.call, {ctx.arg(0)}, {{"ret_type", "indices"}});
  return {put_back(ctx.adjoint(), indices, ctx.arg(0), a.axis)};
}

// ---- Batching

// A line for each lane, or one for all.
Expr batch_searchsorted(const BatchingContext& ctx) {
  if (!ctx.batched[0] && rank_of(ctx.call.args[0]) == 1) return same_call(ctx, ctx.args);
  if (rank_of(ctx.call.args[0]) > 1) return batch_as_it_is(ctx);
  Expr values = in_lanes(ctx, 1);
  if (!has_named_sizes(values)) return nullptr;
  Dim each = dim(1);
  for (const Dim& d : type_of(ctx.call.args[1]).shape) each = each * d;
  Expr found = same_call(ctx, {in_lanes(ctx, 0), reshape_to(values, {ctx.lanes, each})});
  return reshape_to(found, shape_in_lanes(ctx));
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Sort>() {
  static const OpInfo rows[] = {
      {
          .name = "argsort",
          .doc = "The indices that sort an axis; equal elements keep their order, NaN is last, "
                 "strings are sorted by code points.",
          .args = {{"data", "The input."}},
          .attrs = &ArgsortAttrs::static_info(),
          .support_level = 6,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = sort_type<true>,
          .compute = compute_rule(argsort),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_axis,
          .moves = ElementMoves{.by_order = true},
          .examples = {{{"Tensor[(3, 7), float32]"}, ""},
                       {{"Tensor[(5, 2), int32]"}, "axis=0, is_ascend=False, dtype=\"int64\""},
                       {{"Tensor[(4, 3), string]"}, "axis=0"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "sort",
          .doc = "Sorts along an axis; equal elements keep their order, NaN is last, strings are "
                 "sorted by code points.",
          .args = {{"data", "The input."}},
          .attrs = &ArgsortAttrs::static_info(),
          .support_level = 6,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = sort_type<false>,
          .compute = compute_rule(sort),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = sort_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.by_order = true},
          .examples = {{{"Tensor[(3, 7), float32]"}, ""},
                       {{"Tensor[(5, 2), int32]"}, "axis=0, is_ascend=False, dtype=\"int64\""},
                       {{"Tensor[(4, 3), string]"}, "axis=0"}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "topk",
          .doc = "The k greatest (or least) elements along an axis in order, and their indices.",
          .args = {{"data", "The input."}},
          .attrs = &TopKAttrs::static_info(),
          .support_level = 6,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .relation = topk_type,
          .compute = compute_rule_multi(topk_rule),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = topk_gradient,
          .batching = batch_axis,
          .moves = ElementMoves{.by_order = true},
          .examples = {{{"Tensor[(2, 9), float32]"}, "k=3"},
                       {{"Tensor[(5, 2), int64]"},
                        "k=2, axis=0, ret_type=\"values\", is_ascend=True"},
                       {{"Tensor[(6,), float32]"}, "k=0, ret_type=\"indices\", dtype=\"int64\""}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "searchsorted",
          .doc =
              "Where to insert values into a sorted sequence so that it stays sorted; strings by "
              "code points.",
          .args = {{"sorted_sequence", "Sorted along its last axis."},
                   {"values", "What to search."}},
          .attrs = &SearchSortedAttrs::static_info(),
          .support_level = 6,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = search_type,
          .compute = compute_rule(searchsorted_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_searchsorted,
          .examples = {{{"Tensor[(5,), float32]", "Tensor[(2, 3), float32]"}, ""},
                       {{"Tensor[(2, 5), int32]", "Tensor[(2, 3), int32]"}, "right=True"},
                       {{"Tensor[(5,), string]", "Tensor[(2, 3), string]"}, ""}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
