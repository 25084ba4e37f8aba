// Writing at indices that are data.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "node/structural.h"
#include "ops/batching.h"
#include "ops/composed.h"
#include "ops/gradient.h"
#include "ops/index/index_mode.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "runtime/core/kernel_abi.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

bool integers(RelationContext& ctx, const TensorTypeNode& t) {
  return require(ctx, t.dtype.is_integer(), codes::type_dtype,
                 "argument 'indices' must hold integers", "int32 or int64", t.dtype.to_string());
}

bool same_dtype(RelationContext& ctx, const TensorTypeNode& data, const TensorTypeNode& updates) {
  return require(ctx, data.dtype == updates.dtype, codes::type_dtype,
                 "data and updates have different dtypes", data.dtype.to_string(),
                 updates.dtype.to_string());
}

bool known_reduction(RelationContext& ctx, const std::string& name, const std::string& reduction,
                     bool mean, DType dtype) {
  bool known = reduction == "update" || reduction == "add" || reduction == "mul" ||
               reduction == "min" || reduction == "max" || (mean && reduction == "mean");
  return require(ctx, known, codes::op_bad_attribute, name + " is not known",
                 mean ? "update, add, mul, mean, min or max" : "update, add, mul, min or max",
                 reduction) &&
         require(ctx, reduction == "update" || !(dtype.is_bool() || dtype.is_only_moved()),
                 codes::type_dtype, dtype.to_string() + " values can only be replaced",
                 "reduction \"update\"", reduction);
}

PrimExpr reduced(const std::string& reduction, const PrimExpr& old, const PrimExpr& update) {
  if (reduction == "add" || reduction == "mean") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "min") return min(old, update);
  if (reduction == "max") return max(old, update);
  return update;
}

// to = from, in vectors. The last axes of known sizes are one run where the rows are short, so that few elements are
// copied one by one.
Stmt copy_of(const Buffer& from, const Buffer& to) {
  constexpr int64_t kRun = 512, kVectorBytes = 64;
  const std::vector<PrimExpr>& shape = to->shape;
  if (shape.empty()) return store(to, {}, load(from, {}));
  size_t first = shape.size() - 1;
  PrimExpr run = shape[first];
  while (first > 0 && as_int(run) && *as_int(run) < kRun && as_int(shape[first - 1])) {
    run = index(*as_int(run) * *as_int(shape[--first]));
  }
  std::vector<PrimExpr> lines(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(first));
  lines.push_back(run);
  return each_line(lines, first, 1, [&](const LineIndex& line) {
    auto copy = [&](const PrimExpr& k) {
      Indices at = line(k);
      PrimExpr rest = at.back();
      at.resize(shape.size());
      for (size_t d = shape.size() - 1; d > first; --d) {
        at[d] = floor_mod(rest, shape[d]);
        rest = floor_div(rest, shape[d]);
      }
      at[first] = rest;
      return store(to, at, load(from, at));
    };
    return each_in_lanes("k", run, copy, kVectorBytes / to->dtype.storage().bytes());
  });
}

// `part` for all columns of the updates, which have `all` elements, or on several threads for some of them each: a thread
// goes through all updates of its columns, in order, so that it does not matter how many threads there are.
Stmt by_columns(const PrimExpr& columns, const PrimExpr& all,
                const std::function<Stmt(const PrimExpr& first, const PrimExpr& count)>& part) {
  // Four lines of a cache for float32: threads seldom meet in one.
  constexpr int64_t kColumns = 64;
  const auto width = as_int(columns), elements = as_int(all);
  if (!width || *width < 2 * kColumns || (elements && *elements < kMinParallelWork)) {
    return part(index(0), columns);
  }
  const int64_t rest = *width % kColumns;
  Stmt whole = each(
      "part", index(*width / kColumns),
      [&](const PrimExpr& p) { return part(p * kColumns, index(kColumns)); }, ForKind::Parallel);
  return rest == 0 ? whole : seq({whole, part(index(*width - rest), index(rest))});
}

// out = data, then for every element of the updates: out[.., indices[i], ..] meets updates[i].
Stmt scatter_elements(const Buffer& data, const Buffer& indices, const Buffer& updates,
                      const Buffer& out, size_t axis, const std::string& reduction) {
  Buffer counts = buffer("counts", kIndex, out->shape);
  bool mean = reduction == "mean";
  auto put = [&](const Indices& i) {
    PrimExpr size = out->shape[axis];
    const PrimExpr given = load(indices, i);
    return named("at", place_of(given, size, IndexMode::Checked), [&](const PrimExpr& place) {
      Indices at = i;
      at[axis] = place;
      Stmt put = store(out, at, reduced(reduction, load(out, at), load(updates, i)));
      if (mean) put = seq({put, store(counts, at, load(counts, at) + 1)});
      return seq({check_place(place, given, size), put});
    });
  };
  const std::vector<PrimExpr>& shape = indices->shape;
  const std::vector<PrimExpr> lines(shape.begin(), shape.end() - 1);
  // Neither lines along the axis nor columns across it meet.
  Stmt write = axis == lines.size()
                   ? each_line(shape, axis, 1,
                               [&](const LineIndex& line) {
                                 return each("i", shape[axis],
                                             [&](const PrimExpr& k) { return put(line(k)); });
                               })
                   : by_columns(shape.back(), count_elements(shape),
                                [&](const PrimExpr& first, const PrimExpr& count) {
                                  return each_element(lines, [&](const Indices& line) {
                                    return each("column", count, [&](const PrimExpr& k) {
                                      Indices at = line;
                                      at.push_back(first + k);
                                      return put(at);
                                    });
                                  });
                                });
  if (!mean) return seq({copy_of(data, out), write});
  // The element that was there counts as well.
  Stmt ones =
      each_element(out->shape, [&](const Indices& i) { return store(counts, i, index(1)); });
  Stmt divide = each_element(out->shape, [&](const Indices& i) {
    PrimExpr n = tir::cast(out->dtype, load(counts, i));
    PrimExpr sum = load(out, i);
    return store(out, i, out->dtype.is_floating() ? div(sum, n) : floor_div(sum, n));
  });
  return allocate(counts, seq({copy_of(data, out), ones, write, divide}));
}

// out = data, then for every index vector indices[:, i]: the slice out[vector] meets updates[i].
Stmt scatter_nd(const Buffer& data, const Buffer& indices, const Buffer& updates, const Buffer& out,
                const std::string& mode) {
  size_t length = static_cast<size_t>(*as_int(indices->shape[0]));
  std::vector<PrimExpr> vectors(indices->shape.begin() + 1, indices->shape.end());
  std::vector<PrimExpr> slice(out->shape.begin() + static_cast<std::ptrdiff_t>(length),
                              out->shape.end());
  auto put = [&](const Indices& i, const Indices& places, const Indices& j) {
    Indices to = places, from = i;
    to.insert(to.end(), j.begin(), j.end());
    from.insert(from.end(), j.begin(), j.end());
    return store(out, to, reduced(mode, load(out, to), load(updates, from)));
  };
  // For each vector, whose places in `out` are checked, what `write` makes of it.
  auto each_vector =
      [&](const std::function<Stmt(const Indices& i, const Indices& places)>& write) {
        return each_element(vectors, [&](const Indices& i) {
          std::vector<tir::Var> places;
          std::vector<PrimExpr> given;
          std::vector<Stmt> checked;
          for (size_t k = 0; k < length; ++k) {
            Indices which{index(static_cast<int64_t>(k))};
            which.insert(which.end(), i.begin(), i.end());
            given.push_back(load(indices, which));
            places.push_back(tir::var("at" + std::to_string(k)));
            checked.push_back(check_place(places[k], given[k], out->shape[k]));
          }
          checked.push_back(write(i, Indices(places.begin(), places.end())));
          Stmt body = seq(std::move(checked));
          for (size_t k = length; k-- > 0;) {
            body = let_stmt(places[k], place_of(given[k], out->shape[k], IndexMode::Checked), body);
          }
          return body;
        });
      };
  if (slice.empty()) {
    return seq({copy_of(data, out), each_vector([&](const Indices& i, const Indices& places) {
                  return put(i, places, {});
                })});
  }
  const std::vector<PrimExpr> lines(slice.begin(), slice.end() - 1);
  const bool in_lanes = !out->dtype.is_bool() && out->dtype.bits >= 32;
  Stmt write = by_columns(slice.back(), count_elements(updates->shape),
                          [&](const PrimExpr& first, const PrimExpr& count) {
                            return each_vector([&](const Indices& i, const Indices& places) {
                              return each_element(lines, [&](const Indices& line) {
                                auto column = [&](const PrimExpr& k) {
                                  Indices j = line;
                                  j.push_back(first + k);
                                  return put(i, places, j);
                                };
                                return in_lanes ? each_in_lanes("column", count, column)
                                                : each("column", count, column);
                              });
                            });
                          });
  return seq({copy_of(data, out), write});
}

struct ScatterElementsAttrs : AttrsOf<ScatterElementsAttrs> {
  int64_t axis = 0;
  std::string reduction = "update";
  static AttrsList describe() {
    return {"relay.attrs.ScatterElementsAttrs",
            {attribute("axis", &Self::axis, "Axis that the indices are along."),
             attribute("reduction", &Self::reduction,
                       "What meets what is there: update, add, mul, mean, min or max.")}};
  }
};

Type scatter_elements_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *i = ctx.tensor(1), *u = ctx.tensor(2);
  if (x == nullptr || i == nullptr || u == nullptr) return nullptr;
  auto& a = ctx.attrs<ScatterElementsAttrs>();
  auto axis = normal_axis(ctx, a.axis, x->rank());
  if (!axis || !integers(ctx, *i) || !same_dtype(ctx, *x, *u) ||
      !known_reduction(ctx, "reduction", a.reduction, true, x->dtype))
    return nullptr;
  bool fits = i->rank() == x->rank() && u->rank() == x->rank();
  for (size_t d = 0; fits && d < x->shape.size(); ++d)
    fits = ctx.equal(i->shape[d], u->shape[d]) &&
           (d == static_cast<size_t>(*axis) || ctx.at_least(x->shape[d], i->shape[d]));
  if (!require(ctx, fits, codes::type_shape,
               "indices and updates must have one shape, within that of data but for the axis",
               shape_text(x->shape), shape_text(i->shape) + " and " + shape_text(u->shape)))
    return nullptr;
  return Type(x);
}

struct ScatterNDAttrs : AttrsOf<ScatterNDAttrs> {
  std::string mode = "update";
  static AttrsList describe() {
    return {"relay.attrs.ScatterNDAttrs",
            {attribute("mode", &Self::mode,
                       "What meets what is there: update, add, mul, min or max.")}};
  }
};

Type scatter_nd_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *i = ctx.tensor(1), *u = ctx.tensor(2);
  if (x == nullptr || i == nullptr || u == nullptr) return nullptr;
  if (!integers(ctx, *i) || !same_dtype(ctx, *x, *u) ||
      !known_reduction(ctx, "mode", ctx.attrs<ScatterNDAttrs>().mode, false, x->dtype))
    return nullptr;
  auto length = i->shape.empty() ? std::nullopt : as_const(i->shape[0]);
  if (!require(ctx, length && *length <= x->rank(), codes::type_shape,
               "the first axis of indices does not fit the data",
               "at most " + std::to_string(x->rank()), shape_text(i->shape)))
    return nullptr;
  std::vector<Dim> want(i->shape.begin() + 1, i->shape.end());
  want.insert(want.end(), x->shape.begin() + static_cast<std::ptrdiff_t>(*length), x->shape.end());
  bool fits = u->shape.size() == want.size();
  for (size_t d = 0; fits && d < want.size(); ++d) fits = ctx.equal(u->shape[d], want[d]);
  if (!require(ctx, fits, codes::type_shape, "updates do not fit indices and data",
               shape_text(want), shape_text(u->shape)))
    return nullptr;
  return Type(x);
}

TirTensor scatter_elements_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ScatterElementsAttrs>();
  size_t axis = static_cast<size_t>(from_front(a.axis, ctx.inputs[0]->rank()));
  return tir::imperative(
      "T_scatter_elements", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
      [axis, reduction = a.reduction](const std::vector<Buffer>& in, const Buffer& out) {
        return scatter_elements(in[0], in[1], in[2], out, axis, reduction);
      });
}

double scatter_cost(const CallNode& c) { return num_elements(c.args[2]->type); }

TirTensor scatter_nd_compute(const ComputeContext& ctx) {
  return tir::imperative(
      "T_scatter_nd", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
      [mode = ctx.attrs<ScatterNDAttrs>().mode](const std::vector<Buffer>& in, const Buffer& out) {
        return scatter_nd(in[0], in[1], in[2], out, mode);
      });
}

struct UpdateSliceAttrs : AttrsOf<UpdateSliceAttrs> {
  Ints strides;
  static AttrsList describe() {
    return {"relay.attrs.UpdateSliceAttrs",
            {attribute("strides", &Self::strides,
                       "The distance between the elements that are written along each axis of a "
                       "tuple of starts, 1 or more; 1 for those that the list does not have.")}};
  }
};

// How an update lies in the data: its sizes at all axes of the data, and the strides and starts of
// the first axes. An update may lack leading axes, of size 1 then.
struct Slice {
  std::vector<Dim> shape;
  Ints strides;

  static Slice of(const std::vector<Dim>& data, const std::vector<Dim>& update, size_t starts,
                  const Ints& strides) {
    Slice out{std::vector<Dim>(data.size() - update.size(), dim(1)), strides};
    out.shape.insert(out.shape.end(), update.begin(), update.end());
    out.strides.resize(starts, 1);
    return out;
  }
  // From the first to behind the last element that is written along an axis, where one is.
  Dim reach(size_t axis) const {
    return strides[axis] == 1 ? shape[axis] : (shape[axis] - dim(1)) * dim(strides[axis]) + dim(1);
  }
};

// One line or more of the first axis (`start` is a scalar).
bool lines_fit(RelationContext& ctx, const TensorTypeNode& x, const TensorTypeNode& u) {
  bool fits = x.rank() >= 1 && x.rank() == u.rank() && ctx.at_least(u.shape[0], dim(1)) &&
              ctx.at_least(x.shape[0], u.shape[0]);
  for (size_t d = 1; fits && d < x.shape.size(); ++d) fits = ctx.equal(x.shape[d], u.shape[d]);
  return require(ctx, fits, codes::type_shape, "the update does not fit the data",
                 "1 or more lines of " + shape_text(x.shape), shape_text(u.shape));
}

// A slice along as many first axes as there are starts.
bool slice_fits(RelationContext& ctx, const TensorTypeNode& x, const TensorTypeNode& u,
                size_t starts, const Ints& strides) {
  bool known = starts >= 1 && starts <= x.shape.size() && strides.size() <= starts &&
               std::ranges::all_of(strides, [](int64_t s) { return s >= 1; });
  if (!require(ctx, known, codes::op_bad_attribute, "the starts and strides do not fit the data",
               "1 to " + counted(x.rank(), "start") + ", at most as many strides, each 1 or more",
               counted(static_cast<int64_t>(starts), "start") + " and " +
                   counted(static_cast<int64_t>(strides.size()), "stride")))
    return false;
  bool fits = u.rank() <= x.rank();
  if (fits) {
    const Slice slice = Slice::of(x.shape, u.shape, starts, strides);
    for (size_t d = 0; fits && d < x.shape.size(); ++d) {
      fits = d < starts ? ctx.at_least(x.shape[d], slice.reach(d))
                        : ctx.equal(x.shape[d], slice.shape[d]);
    }
  }
  return require(ctx, fits, codes::type_shape, "the update does not fit the data",
                 "a slice of " + shape_text(x.shape), shape_text(u.shape));
}

Type update_slice_type(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *u = ctx.tensor(1);
  const Ints& strides = ctx.attrs<UpdateSliceAttrs>().strides;
  const bool of_lines = !isa<TupleTypeNode>(ctx.arg(2));
  std::vector<TensorType> starts;
  if (of_lines) {
    const TensorTypeNode* start = ctx.tensor(2);
    if (start == nullptr) return nullptr;
    starts.emplace_back(start);
  } else {
    auto all = ctx.tensors(2);
    if (!all) return nullptr;
    starts = *all;
  }
  if (x == nullptr || u == nullptr) return nullptr;
  for (const TensorType& start : starts) {
    if (!require(ctx, start->rank() == 0 && start->dtype.is_integer(), codes::type_dtype,
                 "argument 'start' must be an integer, or a tuple of integers", "an int32 or int64",
                 to_string(Type(start))))
      return nullptr;
  }
  if (!same_dtype(ctx, *x, *u)) return nullptr;
  if (of_lines &&
      !require(ctx, strides.empty(), codes::op_bad_attribute, "strides need a tuple of starts",
               "no strides", counted(static_cast<int64_t>(strides.size()), "stride")))
    return nullptr;
  if (of_lines ? !lines_fit(ctx, *x, *u) : !slice_fits(ctx, *x, *u, starts.size(), strides))
    return nullptr;
  return Type(x);
}

// out = data, then the elements of the update at their places.
Stmt update_slice(const std::vector<Buffer>& in, const Buffer& out, Ints strides) {
  const size_t count = in.size() - 2, rank = out->shape.size();
  const Buffer& update = in[1];
  const size_t lacking = rank - update->shape.size();
  strides.resize(count, 1);
  std::vector<tir::Var> first;
  for (size_t d = 0; d < count; ++d) first.push_back(tir::var("first" + std::to_string(d)));
  Stmt write = each_element(update->shape, [&](const Indices& i) {
    Indices at;
    for (size_t d = 0; d < rank; ++d) {
      PrimExpr k = d < lacking ? index(0) : i[d - lacking];
      at.push_back(d < count ? first[d] + k * strides[d] : k);
    }
    return store(out, at, load(update, i));
  });
  for (size_t d = count; d-- > 0;) {
    PrimExpr size = d < lacking ? index(1) : update->shape[d - lacking];
    PrimExpr reach = strides[d] == 1 ? size : (size - 1) * strides[d] + 1;
    write = let_stmt(
        first[d], place_of(load(in[d + 2], {}), out->shape[d] - reach + 1, IndexMode::Clip), write);
  }
  std::vector<Stmt> all;
  for (size_t d = 0; d < rank; ++d) {
    PrimExpr size = d < lacking ? index(1) : update->shape[d - lacking];
    const PrimExpr& room = out->shape[d];
    if ((as_int(size) && as_int(room)) || structural_equal(size, room)) continue;
    PrimExpr reach = d < count && strides[d] > 1 ? (size - 1) * strides[d] + 1 : size;
    all.push_back(check(d < count ? le(reach, room) : eq(size, room), RELAY_KERNEL_SHAPE_MISMATCH,
                        "the update does not fit the data"));
  }
  all.push_back(copy_of(in[0], out));
  all.push_back(write);
  return seq(std::move(all));
}

// Of sizes that only a run tells the kernel sees to it that the slice lies in the data.
bool slice_may_end_run(const CallNode& call) {
  auto* starts = as<TupleTypeNode>(call.args[2]->type);
  if (starts == nullptr) return false;
  const std::vector<Dim>& data = type_of(call.args[0]).shape;
  const Slice slice = Slice::of(data, type_of(call.args[1]).shape, starts->fields.size(), {});
  for (size_t d = 0; d < data.size(); ++d) {
    const bool known = as_const(slice.shape[d]) && as_const(data[d]);
    if (!known && !dim_equal(slice.shape[d], data[d])) return true;
  }
  return false;
}

TirTensor update_slice_compute(const ComputeContext& ctx) {
  if (isa<TupleTypeNode>(ctx.arg_types[2])) {
    return tir::imperative("T_update_slice", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
                           [strides = ctx.attrs<UpdateSliceAttrs>().strides](
                               const std::vector<Buffer>& in, const Buffer& out) {
                             return update_slice(in, out, strides);
                           });
  }
  TirTensor x = ctx.inputs[0], update = ctx.inputs[1], start = ctx.inputs[2];
  PrimExpr lines = update->shape()[0];
  return tir::compute("T_update_slice", x->shape(), [&](const Indices& i) {
    PrimExpr first = place_of(start(Indices{}), x->shape()[0] - lines + 1, IndexMode::Clip);
    PrimExpr line = i[0] - first;
    Indices from = i;
    from[0] = min(max(line, index(0)), lines - 1);
    return select(logical_and(ge(line, index(0)), lt(line, lines)), update(from), x(i));
  });
}

Type invert_permutation_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr ||
      !require(ctx, x->rank() == 1 && x->dtype.is_integer(), codes::type_rank,
               "needs a vector of integers", "Tensor[(n,), int32]", to_string(Type(x))))
    return nullptr;
  return Type(x);
}

TirTensor invert_permutation_compute(const ComputeContext& ctx) {
  return tir::imperative(
      "T_invert_permutation", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
      [](const std::vector<Buffer>& in, const Buffer& out) {
        PrimExpr n = out->shape[0];
        // What is no permutation leaves zeros.
        Stmt clear =
            each("i", n, [&](const PrimExpr& i) { return store(out, {i}, imm(out->dtype, 0)); });
        Stmt write = each("i", n, [&](const PrimExpr& i) {
          return named("at", tir::cast(kIndex, load(in[0], {i})), [&](const PrimExpr& at) {
            return seq({check_index(at, n), store(out, {at}, tir::cast(out->dtype, i))});
          });
        });
        return seq({clear, write});
      });
}

// ---- Gradients

// `put` writes updates into data, by a reduction; `get` reads what stands where updates are written.
Adjoints scatter_gradient(
    const GradientContext& ctx, const std::string& reduction,
    const std::function<Expr(const Expr& data, const Expr& updates, const char* how)>& put,
    const std::function<Expr(const Expr& data)>& get) {
  const Expr &g = ctx.adjoint(), &data = ctx.arg(0), &updates = ctx.arg(2);
  if (reduction == "add") return {g, get(g)};
  if (reduction == "update") {
    // The last of several updates of one place is the one that counts.
    Expr numbers = numbered(updates);
    Expr written = get(put(zeros_like(cast_to(data, DType::Int(64))), numbers, "update"));
    return {put(g, zeros_like(updates), "update"), kept(is_equal(written, numbers), get(g))};
  }
  if (reduction == "mean") {
    Expr mean = g / put(ones_like(data), ones_like(updates), "add");
    return {mean, get(mean)};
  }
  if (reduction == "mul") {
    // The product of the others at a place: by division, where none of them is 0.
    Expr is_zero = indicator(is_equal(updates, 0), g);
    Expr zeros = put(zeros_like(data), is_zero, "add");
    Expr others = put(ones_like(data), updates + is_zero, "mul");
    Expr wanted = is_equal(get(zeros), is_zero);
    return {g * kept(is_equal(zeros, 0), others),
            get(g * data) * kept(wanted, get(others) / (updates + is_zero))};
  }
  // Elements that tie share the adjoint.
  Expr kept_data = indicator(is_equal(data, ctx.result), g);
  Expr kept_updates = indicator(is_equal(updates, get(ctx.result)), g);
  Expr share = g / put(kept_data, kept_updates, "add");
  return {share * kept_data, get(share) * kept_updates};
}

// Nullptr stands for the indices.
Adjoints around_indices(Adjoints of) { return {of[0], nullptr, of[1]}; }

Adjoints scatter_elements_gradient(const GradientContext& ctx) {
  auto& a = ctx.attrs<ScatterElementsAttrs>();
  const Expr& indices = ctx.arg(1);
  return around_indices(scatter_gradient(
      ctx, a.reduction,
      [&](const Expr& data, const Expr& updates, const char* how) {
        return apply("scatter_elements", {data, indices, updates},
                     {{"axis", a.axis}, {"reduction", how}});
      },
      [&](const Expr& data) {
        return apply("gather", {data, indices}, {{"axis", a.axis}});
      }));
}

Adjoints scatter_nd_gradient(const GradientContext& ctx) {
  const Expr& indices = ctx.arg(1);
  return around_indices(scatter_gradient(
      ctx, ctx.attrs<ScatterNDAttrs>().mode,
      [&](const Expr& data, const Expr& updates, const char* how) {
        return apply("scatter_nd", {data, indices, updates}, {{"mode", how}});
      },
      [&](const Expr& data) {
        return apply("gather_nd", {data, indices});
      }));
}

// The line, of `all`, that the first of so many lines replaces; int64.
Expr first_line(const Expr& start, const Dim& lines, const Dim& all) {
  Expr zero = constant(0, DType::Int(64));
  return place_of(start, size_as(all - lines + dim(1), zero), IndexMode::Clip);
}

// A size of a tensor, as an int64; read off the tensor where its type does not say it.
Expr size_of(const Expr& e, size_t axis) {
  const Dim& size = type_of(e).shape[axis];
  if (!is_any(size)) return size_as(size, constant(0, DType::Int(64)));
  Expr sizes = apply("shape_of", {e}, {{"dtype", "int64"}});
  return taken(sizes, constant(static_cast<double>(axis), DType::Int(64)), 0);
}

// A slice that is written, in a program.
struct WrittenSlice {
  Slice slice;
  std::vector<Expr> first;  // int64, clipped: along each axis with a start
  std::vector<Expr> count;  // of elements along it

  WrittenSlice(const CallNode& call, const Expr& start)
      : slice(Slice::of(type_of(call.args[0]).shape, type_of(call.args[1]).shape,
                        as<TupleTypeNode>(call.args[2]->type)->fields.size(),
                        static_cast<const UpdateSliceAttrs*>(call.attrs.get())->strides)) {
    const Expr one = constant(1, DType::Int(64));
    const size_t lacking = slice.shape.size() - type_of(call.args[1]).shape.size();
    for (size_t d = 0; d < slice.strides.size(); ++d) {
      count.push_back(d < lacking ? one : size_of(call.args[1], d - lacking));
      const double by = static_cast<double>(slice.strides[d]);
      Expr reach = slice.strides[d] == 1 ? count[d] : by * (count[d] - one) + one;
      first.push_back(place_of(tuple_get_item(start, static_cast<int64_t>(d)),
                               size_of(call.args[0], d) - reach + one, IndexMode::Clip));
    }
  }

  // The places along an axis of known size, behind those that `first` of one lane or more says.
  Expr places(size_t axis, const Expr& from) const {
    return from + static_cast<double>(slice.strides[axis]) * iota(slice.shape[axis]);
  }
};

// What stands where a slice is written: of known sizes axis by axis, so that one element is read
// and not moved.
Expr read_slice(const GradientContext& ctx, const Expr& from) {
  const WrittenSlice written(ctx.call, ctx.arg(2));
  const size_t starts = written.first.size();
  const std::vector<Dim>&all = type_of(from).shape, &shape = written.slice.shape;
  if (std::any_of(shape.begin(), shape.begin() + static_cast<std::ptrdiff_t>(starts), is_any)) {
    std::vector<Expr> ends;
    for (size_t d = 0; d < starts; ++d) {
      ends.push_back(written.first[d] +
                     static_cast<double>(written.slice.strides[d]) * written.count[d]);
    }
    Expr strides = indices_constant(written.slice.strides, {static_cast<int64_t>(starts)});
    Expr part =
        apply("dyn.strided_slice", {from, stacked(written.first, 0), stacked(ends, 0), strides});
    return reshape_like(part, ctx.arg(1));
  }
  Expr part = from;
  int64_t axis = 0;
  for (size_t d = 0; d < starts; ++d) {
    const bool one = as_const(shape[d]) == 1;
    const bool whole = written.slice.strides[d] == 1 && dim_equal(shape[d], all[d]);
    if (!whole)
      part = taken(part, one ? written.first[d] : written.places(d, written.first[d]), axis);
    axis += one && !whole ? 0 : 1;
  }
  return reshape_like(part, ctx.arg(1));
}

Adjoints update_slice_gradient(const GradientContext& ctx) {
  const Expr &g = ctx.adjoint(), &data = ctx.arg(0), &update = ctx.arg(1), &start = ctx.arg(2);
  if (isa<TupleTypeNode>(start->type)) {
    return {call(ctx.call.op, {g, zeros_like(update), start}, ctx.call.attrs), read_slice(ctx, g)};
  }
  const Dim &lines = type_of(update).shape[0], &all = type_of(data).shape[0];
  if (is_any(lines) || is_any(all)) no_gradient(ctx, "only the data tells the number of lines");
  return {call(ctx.call.op, {g, zeros_like(update), start}),
          apply("take", {g, iota(lines) + first_line(start, lines, all)}, {{"axis", int64_t{0}}})};
}

// ---- Batching

// The lane is one more index, the first.
Expr batch_scatter_nd(const BatchingContext& ctx) {
  Expr at = in_lanes(ctx, 1);
  if (!has_named_sizes(at)) return nullptr;
  std::vector<Dim> shape = type_of(at).shape;
  at = move_axis(at, 0, 1);
  Expr lane = cast_to(iota(ctx.lanes), type_of(at).dtype);
  shape.erase(shape.begin() + 1);
  shape.insert(shape.begin(), dim(1));
  lane = apply("expand_dims", {lane},
               {{"axis", int64_t{1}}, {"num_newaxis", static_cast<int64_t>(shape.size()) - 2}});
  lane = apply("broadcast_to", {lane}, {{"shape", to_value(Dims(shape.begin(), shape.end()))}});
  at = apply("concatenate", {tuple({lane, at})}, {{"axis", int64_t{0}}});
  return same_call(ctx, {in_lanes(ctx, 0), at, in_lanes(ctx, 2)});
}

// Where each lane writes lines of its own, each line of a lane is looked up in the update, or kept.
Expr update_by_lane(const BatchingContext& ctx) {
  Expr data = in_lanes(ctx, 0), update = in_lanes(ctx, 1);
  const Dim &all = type_of(data).shape[1], &lines = type_of(update).shape[1];
  if (is_any(all) || is_any(lines)) return nullptr;
  int64_t rank = rank_of(data);
  Expr start = first_line(ctx.arg(2), lines, all);
  // (lanes, lines of data): the line of the update there.
  Expr line = iota(all) - expanded(start, 1);
  Expr is_new = apply("logical_and", {apply("greater_equal", {line, scalar(0, line)}),
                                      apply("less", {line, size_as(lines, line)})});
  Expr at = apply("minimum", {apply("maximum", {line, scalar(0, line)}),
                              size_as(lines, line) - scalar(1, line)});
  Expr there = apply("gather_nd", {update, expanded(at, 0)}, {{"batch_dims", int64_t{1}}});
  return choose(rank > 2 ? expanded(is_new, 2, rank - 2) : is_new, there, data);
}

// The lanes are one more axis, which is written whole, or one more index where each lane has starts of
// its own.
Expr batch_slice(const BatchingContext& ctx) {
  const size_t starts = as<TupleTypeNode>(ctx.call.args[2]->type)->fields.size();
  Ints strides = ctx.attrs<UpdateSliceAttrs>().strides;
  Expr data = in_lanes(ctx, 0), update = in_lanes(ctx, 1);
  const int64_t lacking = rank_of(data) - rank_of(update);
  if (lacking > 0) update = expanded(update, 1, lacking);
  if (!ctx.batched[2]) {
    std::vector<Expr> first{constant(0, DType::Int(64))};
    for (size_t d = 0; d < starts; ++d) {
      first.push_back(tuple_get_item(ctx.arg(2), static_cast<int64_t>(d)));
    }
    strides.insert(strides.begin(), 1);
    return apply("update_slice", {data, update, tuple(std::move(first))},
                 {{"strides", to_value(strides)}});
  }
  if (!has_named_sizes(data) || !has_named_sizes(update)) return nullptr;
  const WrittenSlice written(ctx.call, in_lanes(ctx, 2));
  const std::vector<Dim>& shape = type_of(update).shape;
  const std::vector<Dim> grid(shape.begin(),
                              shape.begin() + static_cast<std::ptrdiff_t>(starts) + 1);
  auto over_grid = [&](const Expr& e, size_t axis) {
    const auto behind = static_cast<int64_t>(starts - axis);
    return apply("broadcast_to", {behind == 0 ? e : expanded(e, rank_of(e), behind)},
                 {{"shape", shape_value(grid)}});
  };
  std::vector<Expr> places{over_grid(iota(ctx.lanes), 0)};
  for (size_t d = 0; d < starts; ++d) {
    places.push_back(over_grid(
        written.places(d, expanded(written.first[d], 1, static_cast<int64_t>(d) + 1)), d + 1));
  }
  return apply("scatter_nd", {data, stacked(std::move(places), 0), update});
}

// The same lines in all lanes: these are behind the axis that is written along.
Expr batch_update_slice(const BatchingContext& ctx) {
  if (isa<TupleTypeNode>(ctx.call.args[2]->type)) return batch_slice(ctx);
  if (ctx.batched[2]) return update_by_lane(ctx);
  return move_axis(same_call(ctx, {move_axis(in_lanes(ctx, 0), 0, 1),
                                   move_axis(in_lanes(ctx, 1), 0, 1), ctx.arg(2)}),
                   1, 0);
}

// As unsigned numbers, negative ones are outside as well.
Expr batch_invert_permutation(const BatchingContext& ctx) {
  const Expr& data = ctx.arg(0);
  const Dim& size = type_of(data).shape[1];
  if (is_any(size)) return nullptr;
  Expr places = in_all_lanes(cast_to(iota(size), type_of(data).dtype), ctx.lanes);
  return apply("scatter_elements", {zeros_like(data), cast_to(data, DType::UInt(64)), places},
               {{"axis", int64_t{1}}});
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Scatter>() {
  static const OpInfo rows[] = {
      {
          .name = "scatter_elements",
          .doc = "data with updates written element by element along an axis: "
                 "out[indices[i][j]][j] = updates[i][j]; a later update meets an earlier one.",
          .args = {{"data", "What is written over."},
                   {"indices", "Integers; negative ones count from the end."},
                   {"updates", "What is written."}},
          .attrs = &ScatterElementsAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .may_end_run = on_every_call,
          .relation = scatter_elements_type,
          .compute = compute_rule(scatter_elements_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = scatter_cost,
          .gradient = scatter_elements_gradient,
          .batching = batch_axis,
          .examples =
              {{{"Tensor[(3, 4), float32]", "Tensor[(2, 3), int64]", "Tensor[(2, 3), float32]"},
                "axis=0",
                0,
                2},
               {{"Tensor[(3, 4), float32]", "Tensor[(3, 6), int32]", "Tensor[(3, 6), float32]"},
                "axis=-1, reduction=\"mean\"",
                0,
                3}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "scatter_nd",
          .doc = "data with slices written at index vectors along the first axis of indices; "
                 "a later update meets an earlier one.",
          .args = {{"data", "What is written over."},
                   {"indices", "Integers; negative ones count from the end."},
                   {"updates", "What is written."}},
          .attrs = &ScatterNDAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .may_end_run = on_every_call,
          .relation = scatter_nd_type,
          .compute = compute_rule(scatter_nd_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = scatter_cost,
          .gradient = scatter_nd_gradient,
          .batching = batch_scatter_nd,
          .examples =
              {{{"Tensor[(3, 4), float32]", "Tensor[(2, 5), int64]", "Tensor[(5,), float32]"},
                "mode=\"add\"",
                0,
                2},
               {{"Tensor[(3, 4), float32]", "Tensor[(1, 2), int32]", "Tensor[(2, 4), float32]"},
                "",
                0,
                2}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "update_slice",
          .doc = "data with lines of the first axis replaced: out[start + i] = update[i]; with a "
                 "tuple of starts, a slice along as many of the first axes: out[start0 + i * "
                 "stride0, start1 + j * stride1, ..] = update[i, j, ..]. A start from which the "
                 "update does not fit is clamped to the nearest from which it does.",
          .args =
              {{"data", "What is written over; in place when it has no other use."},
               {"update",
                "One line or more; of a slice it may lack leading axes, of size 1 then, and may "
                "have sizes of 0."},
               {"start",
                "The line that the first one replaces, or a tuple: the place of the first "
                "element along each of the first axes."}},
          .attrs = &UpdateSliceAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .may_end_run = slice_may_end_run,
          .relation = update_slice_type,
          .compute = compute_rule(update_slice_compute),
          .layout = Absent::AxesAsWritten,
          .memory =
              [](const CallNode& c) {
                return isa<TupleTypeNode>(c.args[2]->type) ? Memory::Own : Memory::Updated;
              },
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = update_slice_gradient,
          .batching = batch_update_slice,
          .examples = {{{"Tensor[(5, 4), float32]", "Tensor[(2, 4), float32]", "int64"}, "", 0, 5},
                       {{"Tensor[(3), int32]", "Tensor[(1), int32]", "int32"}, "", 0, 3},
                       {{"Tensor[(5, 6), float32]", "float32",
                         "(Tensor[(), int64], Tensor[(), int64])"},
                        "",
                        0,
                        5},
                       {{"Tensor[(5, 6, 2), float32]", "Tensor[(2, 3, 2), float32]",
                         "(Tensor[(), int64], Tensor[(), int32])"},
                        "strides=[2, 1]",
                        0,
                        4}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "invert_permutation",
          .doc = "The permutation that undoes another: out[data[i]] = i.",
          .args = {{"data", "A vector that holds each of 0 .. n - 1 once."}},
          .fusion = FusionClass::Opaque,
          .effect = Effect::Pure,
          .may_end_run = on_every_call,
          .relation = invert_permutation_relation,
          .compute = compute_rule(invert_permutation_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = Absent::NotDifferentiable,
          .batching = batch_invert_permutation,
          .examples = {{{"Tensor[(5,), int32]"}, "", 0, 4, {{3, 0, 4, 1, 2}}}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
