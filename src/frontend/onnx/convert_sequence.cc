// Sequences and optionals: values while the model is imported where their length is known, else Relay's
// List and Option (sequences.h).
#include <onnx/onnx-ml.pb.h>

#include <algorithm>
#include <functional>
#include <utility>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/lists.h"
#include "frontend/common/open_args.h"
#include "frontend/onnx/graph_importer.h"

namespace relay::frontend::onnx {
namespace {

// The elements of a sequence that is known.
const Values& items_of(NodeContext& ctx, size_t input) {
  const ValuePtr& v = ctx.value(input);
  if (!v->is_list) {
    ctx.fail(codes::frontend_dynamic, "the length of a sequence is known only when the model runs",
             "a sequence made by this model's nodes outside of loops and branches");
  }
  return v->list;
}

// A position in a sequence of `size`, or at its end if `end` allows.
size_t position(NodeContext& ctx, size_t input, size_t size, bool end) {
  int64_t at = ctx.const_int(input, "the position");
  auto n = static_cast<int64_t>(size);
  if (at < -n || at >= n + (end ? 1 : 0)) {
    ctx.fail(codes::frontend_attribute, "the position is outside of the sequence",
             "below " + std::to_string(n), std::to_string(at));
  }
  return static_cast<size_t>(at < 0 ? at + n : at);
}

constexpr size_t kMaxSequence = 1 << 16;

// The sequence as a List, and what it holds.
struct RunTimeList {
  Expr list;
  Type element;
};
RunTimeList run_time_list(NodeContext& ctx, size_t input, Type element = nullptr) {
  Expr list = as_run_time_list(ctx, ctx.value(input), std::move(element));
  Type held = element_of(list->type, "List");
  return {list, held};
}
Expr place_in_list(NodeContext& ctx, size_t input) {
  return one_number(ctx, input, DType::Int(32));
}

Values convert_sequence_construct(NodeContext& ctx) {
  Values items;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) items.push_back(ctx.value(i));
  return {list_of(std::move(items))};
}

Values convert_sequence_empty(NodeContext&) { return {list_of({})}; }

Values sequence_at_known(NodeContext& ctx) {
  const Values& items = items_of(ctx, 0);
  return {items[position(ctx, 1, items.size(), false)]};
}

Values convert_sequence_at(NodeContext& ctx) {
  return known_or_open(ctx, sequence_at_known, [](NodeContext& open) {
    auto [list, element] = run_time_list(open, 0);
    return Values{
        value_of(library_call(open, "sequence.at", {list, place_in_list(open, 1)}, {element}))};
  });
}

Values sequence_insert_known(NodeContext& ctx) {
  Values items = items_of(ctx, 0);
  if (items.size() >= kMaxSequence) ctx.fail(codes::frontend_limit, "the sequence is too long");
  size_t at = ctx.has(2) ? position(ctx, 2, items.size(), true) : items.size();
  items.insert(items.begin() + static_cast<std::ptrdiff_t>(at), ctx.value(1));
  return {list_of(std::move(items))};
}

Values convert_sequence_insert(NodeContext& ctx) {
  return known_or_open(ctx, sequence_insert_known, [](NodeContext& open) {
    auto [list, element] = run_time_list(open, 0, opened(open.in(1)->type));
    if (!open.has(2)) {
      return Values{value_of(library_call(open, "sequence.append", {list, open.in(1)}, {element}))};
    }
    return Values{value_of(library_call(open, "sequence.insert",
                                        {list, place_in_list(open, 2), open.in(1)}, {element}))};
  });
}

Values sequence_erase_known(NodeContext& ctx) {
  Values items = items_of(ctx, 0);
  if (items.empty()) ctx.fail(codes::frontend_attribute, "the sequence is empty");
  size_t at = ctx.has(1) ? position(ctx, 1, items.size(), false) : items.size() - 1;
  items.erase(items.begin() + static_cast<std::ptrdiff_t>(at));
  return {list_of(std::move(items))};
}

Values convert_sequence_erase(NodeContext& ctx) {
  return known_or_open(ctx, sequence_erase_known, [](NodeContext& open) {
    auto [list, element] = run_time_list(open, 0);
    Expr at = open.has(1) ? place_in_list(open, 1) : open.scalar(-1, DType::Int(32));
    return Values{value_of(library_call(open, "sequence.erase", {list, at}, {element}))};
  });
}

Values sequence_length_known(NodeContext& ctx) {
  return {value_of(known_scalar(dim(static_cast<int64_t>(items_of(ctx, 0).size()))))};
}

Values convert_sequence_length(NodeContext& ctx) {
  return known_or_open(ctx, sequence_length_known, [](NodeContext& open) {
    auto [list, element] = run_time_list(open, 0);
    Expr n = library_call(open, "sequence.length", {list}, {element});
    return Values{value_of(open.cast(n, DType::Int(64)))};
  });
}

// A value whose sizes are not told.
Expr as_type(NodeContext& ctx, const Expr& e, const Type& type) {
  Var v = var("opened", type, ctx.span());
  return let(v, e, v, ctx.span());
}

// All elements of a List behind each other along an axis.
Expr joined(NodeContext& ctx, const Expr& list, const Type& element, int64_t axis) {
  Var a = var("a", element, ctx.span()), b = var("b", element, ctx.span());
  Expr both = function({a, b}, as_type(ctx, ctx.concat({a, b}, axis), element), element, {}, {},
                       ctx.span());
  return library_call(ctx, "sequence.joined", {both, list}, {element});
}

Values concat_from_sequence_known(NodeContext& ctx) {
  std::vector<Expr> parts;
  for (const ValuePtr& v : items_of(ctx, 0)) parts.push_back(ctx.expr_of(v));
  if (parts.empty()) ctx.fail(codes::frontend_attribute, "the sequence is empty");
  int64_t rank = NodeContext::rank_of(parts[0]);
  if (ctx.attr("new_axis", 0) != 0) {
    int64_t axis = ctx.axis(ctx.attr("axis", 0), rank + 1);
    return {value_of(ctx.call("stack", {ctx.tuple_of(parts)}, {{"axis", axis}}))};
  }
  return {value_of(ctx.concat(std::move(parts), ctx.axis(ctx.attr("axis", 0), rank)))};
}

Values convert_concat_from_sequence(NodeContext& ctx) {
  return known_or_open(ctx, concat_from_sequence_known, [](NodeContext& open) {
    auto [list, element] = run_time_list(open, 0);
    auto* t = as<TensorTypeNode>(element);
    if (open.attr("new_axis", 0) != 0) {
      // Each with an axis of its own, which are joined.
      Var x = var("x", element, open.span());
      int64_t axis = open.axis(open.attr("axis", 0), t->rank() + 1);
      Expr wide = open.expand_dims(x, axis);
      Type open_type = opened(wide->type);
      Expr each = function({x}, as_type(open, wide, open_type), open_type, {}, {}, open.span());
      list = library_call(open, "sequence.map", {each, list}, {element, open_type});
      return Values{value_of(joined(open, list, open_type, axis))};
    }
    return Values{
        value_of(joined(open, list, element, open.axis(open.attr("axis", 0), t->rank())))};
  });
}

Values split_to_sequence_known(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  int64_t size = ctx.const_dim(x, axis, "the size of the axis");
  std::vector<int64_t> parts;
  bool squeeze = false;
  if (!ctx.has(1)) {
    if (size > static_cast<int64_t>(kMaxSequence)) {
      ctx.fail(codes::frontend_limit, "the sequence is too long");
    }
    parts.assign(static_cast<size_t>(size), 1);
    squeeze = ctx.attr("keepdims", 1) == 0;
  } else {
    parts = ctx.const_ints(1, "the list of sizes");
    KnownValue k = ctx.must_know(1, "the list of sizes");
    if (k.shape.empty()) {
      int64_t each = parts[0];
      if (each < 1 || size / each > static_cast<int64_t>(kMaxSequence)) {
        ctx.fail(codes::frontend_attribute, "the size of a part is out of range", "1 or more",
                 std::to_string(each));
      }
      parts.clear();
      for (int64_t at = 0; at < size; at += each) parts.push_back(std::min(each, size - at));
    }
  }
  Values items;
  int64_t at = 0;
  for (int64_t p : parts) {
    if (p < 0 || p > size - at) {
      ctx.fail(codes::type_shape, "the parts do not add up", std::to_string(size) + " together");
    }
    Expr part = ctx.slice(x, axis, at, at + p);
    items.push_back(value_of(squeeze ? ctx.squeeze(part, {axis}) : part));
    at += p;
  }
  if (at != size) {
    ctx.fail(codes::type_shape, "the parts do not add up", std::to_string(size) + " together",
             std::to_string(at));
  }
  return {list_of(std::move(items))};
}

// A List of `count` parts along an axis, of which `bounds` says where the i-th begins and ends; a run in which they are
// not `good` ends.
Values run_time_parts(NodeContext& ctx, const Expr& x, int64_t axis, bool squeeze, const Expr& good,
                      const Expr& count,
                      const std::function<std::pair<Expr, Expr>(const Expr& i)>& bounds) {
  Var i = var("i", tensor_type(std::vector<Dim>{}, DType::Int(64)), ctx.span());
  auto [begin, end] = bounds(i);
  Expr part =
      open_slice(ctx, x, ctx.expand_dims(begin, 0), ctx.expand_dims(end, 0), ctx.ints({1}), {axis});
  if (squeeze) part = ctx.squeeze(part, {axis});
  Type type = opened(part->type);
  Expr cut = function({i}, as_type(ctx, part, type), type, {}, {}, ctx.span());
  Expr none = library_call(ctx, "sequence.empty", {}, {type});
  Expr all = library_call(ctx, "sequence.built", {cut, count, none}, {type});
  Expr never = library_call(ctx, "branch.never", {}, {all->type});
  return {value_of(if_(good, all, never, ctx.span()))};
}

// As many parts as a run has of one size, of which the last may be smaller. A run with parts of no size ends.
Values parts_of_one_size(NodeContext& ctx, const Expr& x, int64_t axis) {
  const DType i64 = DType::Int(64);
  const bool squeeze = !ctx.has(1) && ctx.attr("keepdims", 1) == 0;
  Expr one = ctx.scalar(1, i64), each = ctx.has(1) ? one_number(ctx, 1, i64) : one;
  Expr good = ctx.call("greater_equal", {each, one});
  each = ctx.call("maximum", {each, one});
  Expr size = ctx.select(sizes_of(ctx, x), 0, axis);
  Expr count = ctx.call("floor_divide", {ctx.sub(ctx.add(size, each), one), each});
  return run_time_parts(ctx, x, axis, squeeze, good, count, [&](const Expr& i) {
    Expr begin = ctx.mul(i, each);
    return std::pair(begin, ctx.add(begin, each));
  });
}

// As many parts as there are sizes, and only a run knows how many that are. Sizes that are impossible, or not the whole
// axis together, end it.
Values parts_of_sizes(NodeContext& ctx, const Expr& x, int64_t axis, const Expr& sizes) {
  const AttrList along{{"axis", int64_t{0}}};
  Expr ends = ctx.call("cumsum", {sizes}, along), zero = ctx.scalar(0, DType::Int(64));
  Expr size = ctx.select(sizes_of(ctx, x), 0, axis);
  Expr possible = ctx.call("logical_and", {ctx.call("greater_equal", {sizes, zero}),
                                           ctx.call("less_equal", {sizes, size})});
  Expr good =
      ctx.call("logical_and", {ctx.call("all", {possible}),
                               ctx.call("equal", {ctx.reduce("sum", sizes, {0}, false), size})});
  Expr count = ctx.select(sizes_of(ctx, sizes), 0, 0);
  return run_time_parts(ctx, x, axis, false, good, count, [&](const Expr& i) {
    Expr end = ctx.call("take", {ends, i}, along);
    return std::pair(ctx.sub(end, ctx.call("take", {sizes, i}, along)), end);
  });
}

// As many parts as there are sizes, which only a run knows.
Values split_to_sequence_open(NodeContext& ctx) {
  Expr x = ctx.in(0);
  int64_t axis = ctx.axis(ctx.attr("axis", 0), NodeContext::rank_of(x));
  if (!ctx.has(1) || NodeContext::rank_of(ctx.in(1)) == 0) return parts_of_one_size(ctx, x, axis);
  const int64_t most = ctx.importer().options().max_unrolled_steps;
  Expr sizes = int_list(ctx, 1, "the list of sizes");
  if (has_open_length(sizes)) return parts_of_sizes(ctx, x, axis, sizes);
  sizes = int_vector(ctx, 1, "the list of sizes", most);
  Expr all = ctx.call("dyn.split", {x, sizes}, {{"axis", axis}});
  Values items;
  for (int64_t i = 0; i < length_of_vector(sizes); ++i) items.push_back(value_of(ctx.item(all, i)));
  return {list_of(std::move(items))};
}

Values convert_split_to_sequence(NodeContext& ctx) {
  return known_or_open(ctx, split_to_sequence_known, split_to_sequence_open);
}

// What the body makes of each element of the first sequence, and of those of the others beside it.
Values convert_sequence_map(NodeContext& ctx) {
  const auto& body = ctx.attr_graph("body");
  const size_t n = ctx.num_inputs(), results = ctx.num_outputs();
  if (ctx.value(0)->is_list) {
    std::vector<Values> lists(results);
    for (size_t i = 0; i < ctx.value(0)->list.size(); ++i) {
      Values inputs;
      for (size_t k = 0; k < n; ++k) {
        const ValuePtr& v = ctx.value(k);
        if (v->is_list && i >= v->list.size())
          ctx.fail(codes::frontend_graph, "sequences differ in length");
        inputs.push_back(v->is_list ? v->list[i] : v);
      }
      Values outputs = ctx.import_graph(body, inputs);
      for (size_t r = 0; r < results && r < outputs.size(); ++r) lists[r].push_back(outputs[r]);
    }
    Values out;
    for (Values& items : lists) out.push_back(list_of(std::move(items)));
    return out;
  }
  // ((first, second), third): one element of each sequence.
  auto [list, element] = run_time_list(ctx, 0);
  std::vector<bool> is_sequence{true};
  for (size_t k = 1; k < n; ++k) {
    is_sequence.push_back(ctx.value(k)->is_list || is_run_time_list(ctx.value(k)));
    if (!is_sequence[k]) continue;
    auto [other, beside] = run_time_list(ctx, k);
    list = library_call(ctx, "sequence.zip", {list, other}, {element, beside});
    element = tuple_type({element, beside});
  }
  Var x = var("x", element, ctx.span());
  std::vector<Expr> parts;
  Expr rest = x;
  for (size_t k = n; k-- > 1;) {
    if (!is_sequence[k]) continue;
    parts.push_back(ctx.item(rest, 1));
    rest = ctx.item(rest, 0);
  }
  parts.push_back(rest);
  Values inputs;
  for (size_t k = 0; k < n; ++k) {
    if (!is_sequence[k]) {
      inputs.push_back(ctx.value(k));
      continue;
    }
    inputs.push_back(value_of(parts.back()));
    parts.pop_back();
  }
  Values outputs = ctx.import_graph(body, inputs);
  if (outputs.size() < results) {
    ctx.fail(codes::frontend_graph, "the body has the wrong number of outputs",
             std::to_string(results), std::to_string(outputs.size()));
  }
  std::vector<Expr> made;
  std::vector<Type> types;
  for (size_t r = 0; r < results; ++r) {
    Expr y = ctx.expr_of(outputs[r]);
    // What has the same sizes for all elements keeps them.
    auto* tensor = as<TensorTypeNode>(y->type);
    const bool alike = tensor != nullptr && std::ranges::all_of(tensor->shape, [](const Dim& d) {
                         return as_const(d).has_value();
                       });
    types.push_back(alike ? y->type : opened(y->type));
    made.push_back(alike ? y : as_type(ctx, y, types.back()));
  }
  // The body runs once for an element, whatever the number of its results.
  auto mapped = [&](const Var& from, const Expr& to, const Type& type, const Expr& over) {
    Expr each = function({from}, to, type, {}, {}, ctx.span());
    return library_call(ctx, "sequence.map", {each, over}, {from->type_annotation, type});
  };
  if (results == 1) return {value_of(mapped(x, made[0], types[0], list))};
  Type all = tuple_type(types);
  Expr done = mapped(x, tuple(made, ctx.span()), all, list);
  Values out;
  for (size_t r = 0; r < results; ++r) {
    Var of = var("results", all, ctx.span());
    out.push_back(value_of(mapped(of, ctx.item(of, static_cast<int64_t>(r)), types[r], done)));
  }
  return out;
}

Values convert_optional(NodeContext& ctx) {
  if (ctx.has(0)) return {ctx.value(0)};
  return {absent_value()};
}

// The value itself, where it is known to be there.
Values convert_optional_get_element(NodeContext& ctx) {
  const ValuePtr& v = ctx.value(0);
  Type element = v->expr ? element_of(v->expr->type, "Option") : nullptr;
  if (element == nullptr) return {v};
  return {value_of(library_call(ctx, "optional.get", {v->expr}, {element}))};
}

Values convert_optional_has_element(NodeContext& ctx) {
  if (ctx.has(0) && ctx.value(0)->expr) {
    const Expr& e = ctx.value(0)->expr;
    if (Type element = element_of(e->type, "Option")) {
      return {value_of(library_call(ctx, "optional.has", {e}, {element}))};
    }
  }
  return {value_of(KnownValue{DType::Bool(), {}, {dim(static_cast<int64_t>(ctx.has(0)))}, {}})};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Sequence>() {
  static constexpr ConverterRow rows[] = {
      {kOnnx, "ConcatFromSequence", 11, convert_concat_from_sequence},
      {kOnnx, "Optional", 15, convert_optional},
      {kOnnx, "OptionalGetElement", 15, convert_optional_get_element},
      {kOnnx, "OptionalHasElement", 15, convert_optional_has_element},
      {kOnnx, "SequenceAt", 11, convert_sequence_at},
      {kOnnx, "SequenceConstruct", 11, convert_sequence_construct},
      {kOnnx, "SequenceEmpty", 11, convert_sequence_empty},
      {kOnnx, "SequenceErase", 11, convert_sequence_erase},
      {kOnnx, "SequenceInsert", 11, convert_sequence_insert},
      {kOnnx, "SequenceLength", 11, convert_sequence_length},
      {kOnnx, "SequenceMap", 17, convert_sequence_map},
      {kOnnx, "SplitToSequence", 11, convert_split_to_sequence},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
