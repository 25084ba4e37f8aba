// Operators of StableHLO, whose options are of the second union, and windows of any rank.
#include <algorithm>
#include <optional>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/control.h"
#include "frontend/common/gather.h"
#include "frontend/common/slices.h"
#include "frontend/tflite/node_context.h"
#include "frontend/tflite/quantized.h"

namespace relay::frontend::tflite {
namespace {

// The list of an option, of which the file may leave out the empty one.
std::vector<int64_t> list_of(const flatbuffers::Vector<int64_t>* list) {
  if (list == nullptr) return {};
  return {list->begin(), list->end()};
}

// The list of an option that has an entry for each axis.
std::vector<int64_t> list_of_axes(NodeContext& ctx, const flatbuffers::Vector<int64_t>* list,
                                  int64_t rank, int64_t otherwise, const char* what) {
  std::vector<int64_t> out = list_of(list);
  if (out.empty()) out.assign(static_cast<size_t>(rank), otherwise);
  if (static_cast<int64_t>(out.size()) != rank) {
    ctx.fail(codes::frontend_attribute, std::string(what) + " has not an entry for each axis",
             std::to_string(rank), std::to_string(out.size()));
  }
  return out;
}

void check_range(NodeContext& ctx, const std::vector<int64_t>& list, int64_t low,
                 const char* what) {
  for (int64_t v : list) {
    if (v < low || v > INT32_MAX)
      ctx.fail(codes::frontend_attribute, std::string(what) + " is out of range",
               std::to_string(low) + " to 2^31 - 1", std::to_string(v));
  }
}

// ---- Elements and graphs

Values bits_and(NodeContext& ctx) {
  const char* op = ctx.in_dtype(0).is_bool() ? "logical_and" : "bitwise_and";
  return one(ctx.call(op, {ctx.in(0), ctx.in(1)}));
}

Values shift_left(NodeContext& ctx) { return one(ctx.call("left_shift", {ctx.in(0), ctx.in(1)})); }

Values composite(NodeContext& ctx) {
  Values inputs;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) inputs.push_back(ctx.value(i));
  const auto& o = ctx.options<schema::HloComposite>();
  return ctx.importer().import_graph(o.decomposition_subgraph(), inputs, ctx.span());
}

// (number of the branch, inputs); a number out of range is that of the last branch.
Values case_of(NodeContext& ctx) {
  const auto& o = ctx.options<schema::HloCase>();
  const auto* graphs = o.branches();
  const auto count = static_cast<int64_t>(graphs == nullptr ? 0 : graphs->size());
  if (count == 0) ctx.fail(codes::frontend_attribute, "a choice has no branches");
  Values inputs;
  for (size_t i = 1; i < ctx.num_inputs(); ++i) inputs.push_back(ctx.value(i));
  auto branch = [&](int64_t i) {
    return ctx.importer().in_branch([&] {
      const int32_t graph = graphs->Get(static_cast<flatbuffers::uoffset_t>(i));
      return ctx.importer().import_graph(graph, inputs, ctx.span());
    });
  };
  constexpr int64_t kMost = 64;
  if (count > kMost) ctx.unsupported("a choice of more than 64 branches");
  Expr number = ctx.scalar_of(0, kInt);
  std::function<Values(int64_t)> from = [&](int64_t i) -> Values {
    if (i + 1 == count) return branch(i);
    Expr chosen = ctx.call("equal", {number, ctx.scalar(static_cast<double>(i), kInt)});
    return choose(
        ctx, ctx.program().with_known(value_of(chosen)), [&] { return branch(i); },
        [&] { return from(i + 1); });
  };
  return from(0);
}

// ---- Padding

// `x` with `count` elements of `fill` between those of an axis.
Expr spread(NodeContext& ctx, const Expr& x, int64_t axis, int64_t count, const Expr& fill) {
  const int64_t size = ctx.const_dim(x, axis, "a size that is spread");
  if (count == 0 || size < 2) return x;
  const int64_t rank = Builder::rank_of(x) + 1;
  std::vector<int64_t> pads(static_cast<size_t>(2 * rank), 0);
  pads[static_cast<size_t>(rank + axis + 1)] = count;
  Expr wide = pad(ctx, ctx.expand_dims(x, axis + 1), pads, "constant", fill);
  wide = ctx.merge_axes(wide, static_cast<size_t>(axis), static_cast<size_t>(axis) + 2);
  return ctx.slice(wide, axis, 0, (size - 1) * (count + 1) + 1);
}

Expr padded(NodeContext& ctx, Expr x, const std::vector<int64_t>& low,
            const std::vector<int64_t>& high, const std::vector<int64_t>& between,
            const Expr& fill) {
  const auto rank = static_cast<int64_t>(low.size());
  check_range(ctx, between, 0, "the padding between elements");
  check_range(ctx, low, -INT32_MAX, "a padding");
  check_range(ctx, high, -INT32_MAX, "a padding");
  std::vector<int64_t> pads = low;
  pads.insert(pads.end(), high.begin(), high.end());
  for (int64_t a = 0; a < rank; ++a) x = spread(ctx, x, a, between[static_cast<size_t>(a)], fill);
  return pad(ctx, x, pads, "constant", fill);
}

// (x, fill)
Values hlo_pad(NodeContext& ctx) {
  const auto& o = ctx.options<schema::HloPad>();
  const int64_t rank = Builder::rank_of(ctx.in(0));
  auto list = [&](const flatbuffers::Vector<int64_t>* l) {
    return list_of_axes(ctx, l, rank, 0, "the padding");
  };
  return one(padded(ctx, ctx.in(0), list(o.low()), list(o.high()), list(o.interior()),
                    ctx.scalar_of(1, ctx.in_dtype(0))));
}

// ---- Windows

// The two operators that reduce a window: of its elements, and of what is left with the initial value.
struct WindowReduction {
  const char *many, *two;
};

// Every window along each axis of a tensor that is padded already, reduced; each result begins with `initial`.
Expr reduced_windows(NodeContext& ctx, Expr x, const Expr& initial, const WindowReduction& how,
                     const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides,
                     const std::vector<int64_t>& dilations) {
  check_range(ctx, sizes, 1, "a size of the window");
  check_range(ctx, strides, 1, "a stride");
  check_range(ctx, dilations, 1, "a dilation");
  for (size_t a = 0; a < sizes.size(); ++a) {
    const auto axis = static_cast<int64_t>(a);
    if (sizes[a] == 1 && strides[a] == 1) continue;
    const int64_t size = ctx.const_dim(x, axis, "a size of the tensor");
    const int64_t reach = (sizes[a] - 1) * dilations[a] + 1;
    const int64_t count = size < reach ? 0 : (size - reach) / strides[a] + 1;
    if (count == 0)
      ctx.fail(codes::frontend_attribute, "the window is larger than the tensor",
               "at most " + std::to_string(size), std::to_string(reach));
    ctx.charge_bytes(count * sizes[a], kWide);
    std::vector<int64_t> places;
    for (int64_t i = 0; i < count; ++i)
      for (int64_t k = 0; k < sizes[a]; ++k) places.push_back(i * strides[a] + k * dilations[a]);
    Expr table = ctx.reshape(ctx.ints(places), std::vector<int64_t>{count, sizes[a]});
    x = ctx.call("take", {x, table}, {{"axis", axis}, {"mode", std::string("fast")}});
    x = ctx.reduce(how.many, x, {axis + 1}, false);
  }
  return ctx.call(how.two, {x, initial});
}

// (x, initial, sizes, strides, dilations)
Values reduce_window(NodeContext& ctx) {
  static constexpr WindowReduction kFunctions[] = {
      {"sum", "add"}, {"prod", "multiply"}, {"min", "minimum"}, {"max", "maximum"}};
  const int64_t function = ctx.options<schema::ReduceWindow>().function();
  // LiteRT has no kernel for bool, which the functions behind these are for.
  if (function < 1 || function > 4)
    ctx.unsupported("a window that is reduced by another function than add, mul, min and max");
  const WindowReduction& how = kFunctions[function - 1];
  Expr x = ctx.in(0);
  const int64_t rank = Builder::rank_of(x);
  std::vector<int64_t> lists[3];
  for (size_t i : {0, 1, 2}) {
    lists[i] = ctx.const_ints(2 + i, "the form of the window");
    if (static_cast<int64_t>(lists[i].size()) != rank) {
      ctx.fail(codes::frontend_attribute, "the window has not an entry for each axis",
               std::to_string(rank), std::to_string(lists[i].size()));
    }
  }
  Expr y =
      reduced_windows(ctx, x, ctx.scalar_of(1, ctx.in_dtype(0)), how, lists[0], lists[1], lists[2]);
  // LiteRT reads beyond the end of the tensor for a last window that is not whole.
  for (int64_t a = 0; a < rank; ++a) {
    const auto i = static_cast<size_t>(a);
    const int64_t reach = (lists[0][i] - 1) * lists[2][i] + 1;
    if ((*as_const(Builder::shape_of(x)[i]) - reach) % lists[1][i] != 0)
      ctx.unsupported("a window whose last place is not whole");
  }
  return one(y);
}

// What the only operator of a graph is, or none.
std::optional<std::string> only_operator(NodeContext& ctx, int32_t graph) {
  const Model& model = ctx.importer().model();
  if (graph < 0 || graph >= static_cast<int64_t>(model.num_graphs())) {
    ctx.fail(codes::frontend_graph, "the operator names subgraph " + std::to_string(graph),
             "0 to " + std::to_string(model.num_graphs() - 1));
  }
  const auto* operators = model.graph(static_cast<size_t>(graph)).operators();
  if (operators == nullptr || operators->size() == 0) return std::nullopt;
  if (operators->size() > 1) ctx.unsupported("a function of more than one operator");
  const OperatorKind& kind = model.kind(*operators->Get(0));
  return kind.is_custom ? "a custom operator" : kind.name;
}

// (x, initial)
Values hlo_reduce_window(NodeContext& ctx) {
  const auto& o = ctx.options<schema::HloReduceWindow>();
  const std::string op = only_operator(ctx, o.body_subgraph()).value_or("no operator");
  WindowReduction how{};
  if (op == "STABLEHLO_ADD" || op == "ADD") how = {"sum", "add"};
  if (op == "STABLEHLO_MULTIPLY" || op == "MUL") how = {"prod", "multiply"};
  if (op == "STABLEHLO_MAXIMUM" || op == "MAXIMUM") how = {"max", "maximum"};
  if (op == "STABLEHLO_MINIMUM" || op == "MINIMUM") how = {"min", "minimum"};
  if (how.many == nullptr) ctx.unsupported("a window that is reduced by " + op);
  const int64_t rank = Builder::rank_of(ctx.in(0));
  Expr initial = ctx.scalar_of(1, ctx.in_dtype(0));
  auto list = [&](const flatbuffers::Vector<int64_t>* l, const char* what) {
    return list_of_axes(ctx, l, rank, 1, what);
  };
  std::vector<int64_t> between = list(o.base_dilations(), "the dilation of the tensor"), low, high;
  check_range(ctx, between, 1, "a dilation");
  for (int64_t& b : between) --b;
  const std::vector<int64_t> pads =
      list_of_axes(ctx, o.padding(), 2 * rank, 0, "the padding of the window");
  for (size_t i = 0; i < pads.size(); ++i) (i % 2 == 0 ? low : high).push_back(pads[i]);
  Expr x = padded(ctx, ctx.in(0), low, high, between, initial);
  return one(reduced_windows(ctx, x, initial, how, list(o.window_dimensions(), "the window"),
                             list(o.window_strides(), "the strides"),
                             list(o.window_dilations(), "the dilation of the window")));
}

// ---- Elements at computed places

// Which axes of a tensor of so many are those of windows; the others are along which windows are placed.
std::vector<bool> marked(NodeContext& ctx, const std::vector<int64_t>& axes, int64_t rank,
                         const char* what) {
  std::vector<bool> out(static_cast<size_t>(rank), false);
  for (int64_t a : axes) {
    if (a < 0 || a >= rank || out[static_cast<size_t>(a)])
      ctx.fail(codes::frontend_attribute, std::string(what) + " is not a list of different axes",
               "0 to " + std::to_string(rank - 1), std::to_string(a));
    out[static_cast<size_t>(a)] = true;
  }
  return out;
}

// Windows of a tensor at places that are computed. `whole` are the axes of all windows together, (places..., window...)
// in some order.
struct Windows {
  std::vector<int64_t> sizes = {};   // of the tensor
  std::vector<int64_t> window = {};  // the size of a window along each axis of the tensor
  std::vector<bool> inserted = {};   // axes of the tensor along which a window has no axis
  std::vector<int64_t> map = {};     // the axis of the tensor of each coordinate
  int64_t vector_axis = 0;           // of the coordinates in the tensor of places
  std::vector<bool> is_window = {};  // which axes of `whole` are those of windows
};

// Of each element of all windows: its place in the flat tensor. A window is moved inside the tensor, or `inside` is
// whether the element is there.
struct FlatPlaces {
  Expr place, inside;
};

FlatPlaces flat_places(NodeContext& ctx, Expr starts, const Windows& w, bool moved) {
  const int64_t rank = static_cast<int64_t>(w.sizes.size()),
                all = static_cast<int64_t>(w.is_window.size());
  starts = ctx.cast(starts, kWide);
  if (w.vector_axis == Builder::rank_of(starts)) starts = ctx.expand_dims(starts, w.vector_axis);
  if (w.vector_axis < 0 || w.vector_axis >= Builder::rank_of(starts))
    ctx.fail(codes::frontend_attribute, "the axis of coordinates is out of range");
  const int64_t coordinates = ctx.const_dim(starts, w.vector_axis, "the number of coordinates");
  if (coordinates != static_cast<int64_t>(w.map.size())) {
    ctx.fail(codes::frontend_attribute, "the coordinates do not fit their axes",
             std::to_string(w.map.size()), std::to_string(coordinates));
  }
  marked(ctx, w.map, rank, "the list of coordinates");
  const auto windows = std::ranges::count(w.is_window, true);
  if (windows != std::ranges::count(w.inserted, false) ||
      all - windows != Builder::rank_of(starts) - 1) {
    ctx.fail(codes::frontend_attribute, "the axes of windows do not fit the tensors",
             "an axis for each of the window's and of the places'");
  }
  FlatPlaces out;
  int64_t window_axis = 0, stride = 1;
  std::vector<int64_t> strides(w.sizes.size());
  for (int64_t a = rank - 1; a >= 0; --a) {
    strides[static_cast<size_t>(a)] = stride;
    if (__builtin_mul_overflow(stride, std::max<int64_t>(w.sizes[static_cast<size_t>(a)], 1),
                               &stride))
      ctx.fail(codes::frontend_limit, "the tensor is too large");
  }
  auto add_to = [&](Expr& sum, const Expr& e) { sum = sum ? ctx.add(sum, e) : e; };
  for (int64_t a = 0; a < rank; ++a) {
    const auto i = static_cast<size_t>(a);
    Expr place;
    const auto found = std::ranges::find(w.map, a);
    if (found != w.map.end()) {
      place = ctx.select(starts, w.vector_axis, found - w.map.begin());
      if (moved) place = ctx.clip(place, 0, static_cast<double>(w.sizes[i] - w.window[i]));
      for (int64_t b = 0; b < all; ++b)
        if (w.is_window[static_cast<size_t>(b)]) place = ctx.expand_dims(place, b);
    }
    if (!w.inserted[i]) {
      // The axis of `whole` of this axis of the window.
      int64_t at = 0;
      for (int64_t seen = 0; at < all; ++at)
        if (w.is_window[static_cast<size_t>(at)] && seen++ == window_axis) break;
      ++window_axis;
      ctx.charge_bytes(w.window[i], kWide);
      std::vector<int64_t> steps(static_cast<size_t>(w.window[i]));
      for (size_t k = 0; k < steps.size(); ++k) steps[k] = static_cast<int64_t>(k);
      Expr step = ctx.ints(steps);
      for (int64_t b = at + 1; b < all; ++b) step = ctx.expand_dims(step, b - at);
      add_to(place, step);
    }
    if (!place) continue;
    if (!moved) {
      Expr within =
          ctx.call("logical_and",
                   {ctx.call("greater_equal", {place, ctx.scalar(0, kWide)}),
                    ctx.call("less", {place, ctx.scalar(static_cast<double>(w.sizes[i]), kWide)})});
      out.inside = out.inside ? ctx.call("logical_and", {out.inside, within}) : within;
    }
    add_to(out.place, ctx.mul(place, ctx.scalar(static_cast<double>(strides[i]), kWide)));
  }
  return out;
}

std::vector<int64_t> known_sizes(NodeContext& ctx, const Expr& e) {
  std::vector<int64_t> out;
  for (int64_t a = 0; a < Builder::rank_of(e); ++a)
    out.push_back(ctx.const_dim(e, a, "a size of the tensor"));
  return out;
}

// (x, starts)
Values hlo_gather(NodeContext& ctx) {
  const auto& o = ctx.options<schema::HloGather>();
  Expr x = ctx.in_of_rank(0, 1), starts = ctx.in(1);
  const int64_t rank = Builder::rank_of(x);
  Windows w{.sizes = known_sizes(ctx, x),
            .window = list_of_axes(ctx, o.slice_sizes(), rank, 1, "the size of a part"),
            .inserted = marked(ctx, list_of(o.collapsed_slice_dims()), rank,
                               "the list of axes that are left out"),
            .map = list_of(o.start_index_map()),
            .vector_axis = o.index_vector_dim()};
  check_range(ctx, w.window, 0, "a size of a part");
  for (size_t a = 0; a < w.sizes.size(); ++a) {
    if (w.window[a] > w.sizes[a] || (w.inserted[a] && w.window[a] != 1))
      ctx.fail(codes::frontend_attribute, "a part does not fit the tensor",
               "at most " + std::to_string(w.inserted[a] ? 1 : w.sizes[a]),
               std::to_string(w.window[a]));
  }
  const std::vector<int64_t> offsets = list_of(o.offset_dims());
  const int64_t implicit = o.index_vector_dim() == Builder::rank_of(starts) ? 1 : 0;
  const int64_t all =
      static_cast<int64_t>(offsets.size()) + Builder::rank_of(starts) - 1 + implicit;
  w.is_window = marked(ctx, offsets, all, "the list of axes of parts");
  const FlatPlaces at = flat_places(ctx, starts, w, true);
  if (!at.place) return one(x);
  Expr flat = ctx.reshape(x, std::vector<int64_t>{-1});
  return one(
      ctx.call("take", {flat, at.place}, {{"axis", int64_t{0}}, {"mode", std::string("fast")}}));
}

// (x, starts, updates)
Values hlo_scatter(NodeContext& ctx) {
  const auto& o = ctx.options<schema::HloScatter>();
  const auto op = only_operator(ctx, o.computation_subgraph());
  Scatter how = Scatter::Update;
  if (op == "STABLEHLO_ADD") {
    how = Scatter::Add;
  } else if (op == "STABLEHLO_MULTIPLY") {
    how = Scatter::Mul;
  } else if (op == "STABLEHLO_MAXIMUM") {
    how = Scatter::Max;
  } else if (op == "STABLEHLO_MINIMUM") {
    how = Scatter::Min;
  } else if (op) {
    ctx.unsupported("updates that are joined by " + *op);
  }
  Expr x = ctx.in_of_rank(0, 1), updates = ctx.in(2);
  const int64_t rank = Builder::rank_of(x);
  Windows w{.sizes = known_sizes(ctx, x),
            .inserted = marked(ctx, list_of(o.inserted_window_dims()), rank,
                               "the list of axes that are inserted"),
            .map = list_of(o.scatter_dims_to_operand_dims()),
            .vector_axis = o.index_vector_dim()};
  w.is_window = marked(ctx, list_of(o.update_window_dims()), Builder::rank_of(updates),
                       "the list of axes of updates");
  const std::vector<int64_t> given = known_sizes(ctx, updates);
  size_t next = 0;
  for (size_t a = 0; a < w.sizes.size(); ++a) {
    while (!w.inserted[a] && next < given.size() && !w.is_window[next]) ++next;
    w.window.push_back(w.inserted[a] || next == given.size() ? 1 : given[next++]);
  }
  const FlatPlaces at = flat_places(ctx, ctx.in(1), w, false);
  if (!at.place) ctx.unsupported("updates of all of a tensor");
  int64_t size = 1;
  for (int64_t s : w.sizes) size *= s;
  // What is outside goes to an element more.
  Expr place = ctx.where(at.inside, at.place, ctx.scalar(static_cast<double>(size), kWide));
  const std::vector<int64_t> one_line{-1};
  place =
      ctx.reshape(ctx.broadcast_to(place, Builder::shape_of(updates)), std::vector<int64_t>{-1, 1});
  Expr flat =
      ctx.concat({ctx.reshape(x, one_line), ctx.full(0, {dim(1)}, Builder::dtype_of(x))}, 0);
  Expr y = scatter_nd(ctx, flat, value_of(place), ctx.reshape(updates, one_line), how);
  return one(ctx.reshape(ctx.slice(y, 0, 0, size), Builder::shape_of(x)));
}

}  // namespace

template <>
std::span<const Row> rows<Family::StableHlo>() {
  using O = schema::Options;
  using H = schema::Options2;
  static constexpr Row kRows[] = {
      {"REDUCE_WINDOW", reduce_window, O::NONE, {}, H::reduce_window},
      {"STABLEHLO_AND", bits_and},
      {"STABLEHLO_CASE", case_of, O::NONE, {}, H::hlo_case},
      {"STABLEHLO_COMPOSITE", composite, O::NONE, {}, H::hlo_composite},
      {"STABLEHLO_GATHER", hlo_gather, O::NONE, {}, H::hlo_gather},
      {"STABLEHLO_PAD", hlo_pad, O::NONE, {}, H::hlo_pad},
      {"STABLEHLO_REDUCE_WINDOW", hlo_reduce_window, O::NONE, {}, H::hlo_reduce_window},
      {"STABLEHLO_SCATTER", hlo_scatter, O::NONE, {}, H::hlo_scatter},
      {"STABLEHLO_SHIFT_LEFT", shift_left, O::NONE, {}, H::hlo_shift_left},
  };
  return kRows;
}

}  // namespace relay::frontend::tflite
