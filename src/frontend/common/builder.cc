#include "frontend/common/builder.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/open_args.h"
#include "frontend/common/tensor_bytes.h"
#include "ir/op.h"
#include "runtime/core/strings.h"

namespace relay::frontend {

AttrValue to_value(DType dtype) { return AttrValue(dtype.to_string()); }

void Builder::fail(const DiagnosticCode& code, std::string message, std::string expected,
                   std::string found, std::string help) const {
  throw UserError(Diagnostic(code, span_, what_ + ": " + std::move(message))
                      .expected(std::move(expected))
                      .found(std::move(found))
                      .help(std::move(help)));
}

void Builder::unsupported(const std::string& what, std::string help) const {
  fail(codes::frontend_attribute, what + " is not supported", {}, {}, std::move(help));
}

// ---- Types -------------------------------------------------------------------------------------

const TensorTypeNode& Builder::type_of(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  if (t == nullptr) {
    throw UserError(Diagnostic(codes::type_mismatch, e->span, "a tensor is needed here")
                        .expected("a tensor")
                        .found(e->type ? to_string(e->type) : "a value of unknown type"));
  }
  return *t;
}

int64_t Builder::const_dim(const Expr& e, int64_t axis, const char* what) const {
  if (axis < 0 || axis >= rank_of(e)) {
    fail(codes::type_rank, "a tensor has too few dimensions for " + std::string(what),
         "rank " + std::to_string(axis + 1) + " or more", to_string(e->type));
  }
  const Dim& d = shape_of(e)[static_cast<size_t>(axis)];
  if (auto c = as_const(d)) return *c;
  fail(codes::frontend_dynamic, std::string(what) + " must be a fixed number", "a number",
       to_string(d), "give the input's shape, as in --input NAME=1x3x224x224");
}

int64_t Builder::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank) {
    fail(codes::frontend_attribute, "an axis is out of range",
         "between " + std::to_string(-rank) + " and " + std::to_string(rank - 1),
         std::to_string(value));
  }
  return value < 0 ? value + rank : value;
}

std::vector<int64_t> Builder::axes(std::vector<int64_t> values, int64_t rank) const {
  for (int64_t& v : values) v = axis(v, rank);
  std::vector<int64_t> sorted = values;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end()) {
    fail(codes::frontend_attribute, "an axis is given twice");
  }
  return values;
}

std::vector<int64_t> Builder::all_axes(int64_t rank) {
  std::vector<int64_t> axes(static_cast<size_t>(rank));
  std::iota(axes.begin(), axes.end(), 0);
  return axes;
}

// ---- Builders ----------------------------------------------------------------------------------

Expr Builder::call(std::string_view op, std::vector<Expr> args, const AttrList& attrs) const {
  return make_call(op, std::move(args), attrs, span_);
}

bool Builder::has_op(std::string_view op) { return OpRegistry::global().find(op) != nullptr; }

Expr Builder::scalar(double value, DType dtype) const {
  // The zero of strings is the empty one.
  if (dtype.is_string() && value == 0) return constant(runtime::make_strings({}, {""}));
  if (dtype.is_string()) unsupported("a number among strings");
  return relay::constant(value, dtype, span_);
}

Expr Builder::ints(const std::vector<int64_t>& values, DType dtype) const {
  return constant(tensor_from(known_ints(values, dtype)));
}

Expr Builder::cast(Expr e, DType dtype) const {
  if (dtype_of(e) == dtype) return e;
  return call("cast", {std::move(e)}, {{"dtype", to_value(dtype)}});
}

Expr Builder::transpose(Expr e, const std::vector<int64_t>& axes) const {
  if (std::is_sorted(axes.begin(), axes.end())) return e;
  return call("transpose", {std::move(e)}, {{"axes", to_value(axes)}});
}

Expr Builder::swap_last(Expr e) const {
  std::vector<int64_t> axes = all_axes(rank_of(e));
  if (axes.size() < 2) {
    fail(codes::type_rank, "the operand must be a matrix", "rank 2 or more", to_string(e->type));
  }
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return transpose(std::move(e), axes);
}

Expr Builder::expand_dims(Expr e, int64_t axis, int64_t count) const {
  if (count == 0) return e;
  return call("expand_dims", {std::move(e)}, {{"axis", axis}, {"num_newaxis", count}});
}

Expr Builder::squeeze(Expr e, const std::vector<int64_t>& axes) const {
  if (axes.empty()) return e;
  return call("squeeze", {std::move(e)}, {{"axis", to_value(axes)}});
}

Expr Builder::reshape(Expr e, const std::vector<int64_t>& shape) const {
  std::vector<Dim> dims;
  for (int64_t d : shape) dims.push_back(dim(d));
  return reshape(std::move(e), dims);
}

Expr Builder::reshape(Expr e, const std::vector<Dim>& shape) const {
  const std::vector<Dim>& from = shape_of(e);
  bool same =
      from.size() == shape.size() && std::equal(from.begin(), from.end(), shape.begin(), dim_equal);
  if (same) return e;
  // One size may be what is left over.
  Dims sizes;
  bool inferred = false, has_zero = false;
  for (const Dim& d : shape) {
    has_zero = has_zero || as_const(d) == 0;
    if (is_any(d) && std::exchange(inferred, true)) {
      fail(codes::frontend_dynamic, "this reshape of unknown sizes cannot be expressed",
           to_string(tensor_type(shape, dtype_of(e))), to_string(e->type),
           "give fixed input shapes, as in --input NAME=1x3x224x224");
    }
    sizes.push_back(is_any(d) ? dim(-1) : d);
  }
  AttrList attrs{{"newshape", relay::to_value(sizes)}};
  if (has_zero) attrs.emplace_back("allowzero", true);
  return call("reshape", {e}, attrs);
}

Expr Builder::broadcast_to(Expr e, const std::vector<Dim>& shape) const {
  int64_t rank = static_cast<int64_t>(shape.size());
  auto refuse = [&](const char* why) {
    fail(codes::type_shape, why, to_string(tensor_type(shape, dtype_of(e))), to_string(e->type));
  };
  if (rank_of(e) > rank) refuse("a tensor does not broadcast to a smaller rank");
  e = expand_dims(std::move(e), 0, rank - rank_of(e));
  const std::vector<Dim> from = shape_of(e);
  bool same = true;
  for (size_t a = 0; a < shape.size(); ++a) {
    same = same && dim_equal(from[a], shape[a]);
    if (as_const(from[a]) != 1 && dim_differs(from[a], shape[a]))
      refuse("a tensor does not broadcast to this shape");
  }
  if (same) return e;
  if (std::none_of(shape.begin(), shape.end(), is_any)) {
    return call("broadcast_to", {std::move(e)},
                {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}});
  }
  // A size that is not known is the input's; the others are repetitions.
  Dims repeats;
  for (size_t a = 0; a < shape.size(); ++a) {
    bool own = as_const(from[a]) != 1;
    if (!own && is_any(shape[a])) {
      fail(codes::frontend_dynamic, "a tensor is expanded to a size that is not known",
           to_string(tensor_type(shape, dtype_of(e))), to_string(e->type));
    }
    repeats.push_back(own ? dim(1) : shape[a]);
  }
  return call("tile", {std::move(e)}, {{"reps", relay::to_value(repeats)}});
}

Expr Builder::slice(Expr e, int64_t axis, int64_t begin, int64_t end) const {
  if (axis >= rank_of(e)) {
    fail(codes::type_rank, "an operand has too few dimensions",
         std::to_string(axis + 1) + " or more", to_string(e->type));
  }
  auto size = as_const(shape_of(e)[static_cast<size_t>(axis)]);
  if (begin == 0 && size == end) return e;
  if (!size) {
    // Both demand that the elements are there: `take` the first, `split` all that it cuts.
    if (begin == 0 && end == 1) {
      return call("take", {std::move(e), ints(std::vector<int64_t>{0})}, {{"axis", axis}});
    }
    std::vector<int64_t> cuts{begin, std::max(begin, end)};
    Expr parts =
        call("split", {std::move(e)}, {{"indices_or_sections", to_value(cuts)}, {"axis", axis}});
    return item(parts, 1);
  }
  return call("strided_slice", {std::move(e)},
              {{"begin", to_value(std::vector<int64_t>{begin})},
               {"end", to_value(std::vector<int64_t>{end})},
               {"strides", to_value(std::vector<int64_t>{1})},
               {"axes", to_value(std::vector<int64_t>{axis})}});
}

Expr Builder::select(Expr e, int64_t axis, int64_t index) const {
  return squeeze(slice(std::move(e), axis, index, index + 1), {axis});
}

Expr Builder::concat(std::vector<Expr> parts, int64_t axis) const {
  if (parts.size() == 1) return parts[0];
  return call("concatenate", {tuple_of(std::move(parts))}, {{"axis", axis}});
}

std::vector<Expr> Builder::split(Expr e, int64_t axis, int64_t parts) const {
  if (parts == 1) return {e};
  Expr all = call("split", {std::move(e)}, {{"indices_or_sections", parts}, {"axis", axis}});
  std::vector<Expr> out;
  for (int64_t i = 0; i < parts; ++i) out.push_back(item(all, i));
  return out;
}

Expr Builder::reduce(const char* op, Expr e, std::vector<int64_t> axes, bool keepdims) const {
  if (axes.empty()) return e;
  AttrList attrs{{"axis", to_value(axes)}, {"keepdims", keepdims}};
  const std::string_view name = op;
  if (name == "max" || name == "min") attrs.emplace_back("identity_if_empty", true);
  return call(op, {std::move(e)}, attrs);
}

Expr Builder::full(double value, const std::vector<Dim>& shape, DType dtype) const {
  if (shape.empty()) return scalar(value, dtype);
  if (dtype.is_string()) return broadcast_to(scalar(value, dtype), shape);
  return call(
      "full", {scalar(value, dtype)},
      {{"shape", relay::to_value(Dims(shape.begin(), shape.end()))}, {"dtype", to_value(dtype)}});
}

Expr Builder::merge_axes(Expr e, size_t begin, size_t end) const {
  if (end == begin + 1) return e;
  if (end == begin) return expand_dims(std::move(e), static_cast<int64_t>(begin));
  const std::vector<Dim> from = shape_of(e);
  std::vector<Dim> to(from.begin(), from.begin() + static_cast<std::ptrdiff_t>(begin));
  Dim merged = dim(1);
  for (size_t a = begin; a < end; ++a) merged = merged * from[a];
  to.push_back(merged);
  to.insert(to.end(), from.begin() + static_cast<std::ptrdiff_t>(end), from.end());
  if (std::ranges::count_if(to, is_any) <= 1) return reshape(std::move(e), to);
  // Two axes at a time; the others are copied.
  for (size_t rank = from.size(); end > begin + 1; --end, --rank) {
    Dims codes(rank - 1, dim(0));
    codes[begin] = dim(-3);
    e = call("reshape", {std::move(e)}, {{"newshape", relay::to_value(codes)}});
  }
  return e;
}

Expr Builder::with_sizes(Expr e, const std::vector<Dim>& sizes) const {
  const std::vector<Dim>& own = shape_of(e);
  Dims codes;
  bool more = false;
  for (size_t a = 0; a < own.size(); ++a) {
    bool told = is_any(own[a]) && a < sizes.size() && least_value(sizes[a]).value_or(-1) >= 0 &&
                as_const(sizes[a]) != 0;
    more = more || told;
    codes.push_back(told ? sizes[a] : dim(0));
  }
  return more ? call("reshape", {std::move(e)}, {{"newshape", relay::to_value(codes)}}) : e;
}

std::optional<KnownValue> Builder::partly_known(const Expr& e) const {
  const KnownValue* known = program_.known_of(e);
  return known == nullptr ? std::nullopt : std::optional(*known);
}

Expr Builder::tensor_of(const ValuePtr& v) const {
  if (v->is_list) fail(codes::frontend_attribute, "a list is given for a tensor");
  return expr_of(v);
}

Tensor Builder::constant_data(const ValuePtr& v) {
  if (v == nullptr) return nullptr;
  if (v->data) return v->data = aligned(v->data);
  if (v->known && v->known->is_constant()) return tensor_from(*v->known);
  return nullptr;
}

Expr Builder::matmul(Expr a, Expr b) const {
  // A vector is a matrix with one row (left) or column (right), which is dropped again.
  bool left_vector = rank_of(a) == 1;
  bool right_vector = rank_of(b) == 1;
  if (rank_of(a) == 0 || rank_of(b) == 0) {
    fail(codes::type_rank, "a matrix product needs at least one dimension", "rank 1 or more",
         to_string(a->type) + " and " + to_string(b->type));
  }
  if (left_vector) a = expand_dims(a, 0);
  if (right_vector) b = expand_dims(b, 1);
  const std::vector<Dim> sa = shape_of(a), sb = shape_of(b);
  size_t ra = sa.size(), rb = sb.size();
  if (dim_differs(sa[ra - 1], sb[rb - 2])) {
    fail(codes::type_shape, "the inner dimensions differ",
         to_string(sa[ra - 1]) + " rows in the second matrix", to_string(b->type),
         "the first operand is " + to_string(a->type));
  }
  Expr out;
  if (rb == 2) {
    // All leading dimensions of the left side are rows of one product.
    out = call("nn.matmul", {a, b});
  } else {
    size_t batch = std::max(ra, rb) - 2;
    std::vector<Dim> dims;
    bool open = false;
    for (size_t i = 0; i < batch; ++i) {
      auto at = [&](const std::vector<Dim>& s) {
        size_t lead = batch - (s.size() - 2);
        return i < lead ? dim(1) : s[i - lead];
      };
      Dim x = at(sa), y = at(sb);
      if (dim_differs(x, y) && as_const(x) != 1 && as_const(y) != 1) {
        fail(codes::type_shape, "the batch dimensions do not broadcast", to_string(a->type),
             to_string(b->type));
      }
      dims.push_back(broadcast(x, y));
      open = open || is_any(dims.back());
    }
    open = open || (is_any(sa[ra - 2]) && is_any(sb[rb - 1]));
    out = open && batch > 1 ? open_batch_matmul(a, b, dims) : batch_matmul(a, b, dims);
  }
  if (left_vector) out = squeeze(out, {rank_of(out) - 2});
  if (right_vector) out = squeeze(out, {rank_of(out) - 1});
  return out;
}

// The product of stacks of matrices whose common sizes are known as terms.
Expr Builder::batch_matmul(Expr a, Expr b, const std::vector<Dim>& batch) const {
  const std::vector<Dim> sa = shape_of(a), sb = shape_of(b);
  auto flat = [&](const Expr& e, const std::vector<Dim>& s) {
    std::vector<Dim> wide = batch;
    wide.insert(wide.end(), s.end() - 2, s.end());
    // A batch of one need not be repeated: batch_matmul broadcasts it.
    bool single =
        std::all_of(s.begin(), s.end() - 2, [](const Dim& d) { return as_const(d) == 1; });
    if (batch.size() == 1 && s.size() == 3) return e;
    if (single) return merge_axes(e, 0, s.size() - 2);
    return merge_axes(broadcast_to(e, wide), 0, batch.size());
  };
  Expr out = call("nn.batch_matmul", {flat(a, sa), flat(b, sb)},
                  {{"transpose_a", false}, {"transpose_b", false}});
  if (batch.size() == 1) return out;
  std::vector<Dim> result = batch;
  result.push_back(sa[sa.size() - 2]);
  result.push_back(sb[sb.size() - 1]);
  return reshape(out, result);
}

// The same where only a run knows how large the batch is, or even whether the operands have one batch or
// are repeated to it. Almost always they have.
Expr Builder::open_batch_matmul(const Expr& x, const Expr& y, const std::vector<Dim>& batch) const {
  const auto rank = static_cast<int64_t>(batch.size()) + 2, last = rank - 2;
  Expr a = expand_dims(x, 0, rank - rank_of(x)), b = expand_dims(y, 0, rank - rank_of(y));
  auto sizes = [&](const Expr& e, int64_t begin, int64_t end) {
    return entries(*this, sizes_of(*this, e), begin, end);
  };
  Expr left = sizes(a, 0, last), right = sizes(b, 0, last);
  std::vector<Dim> known = batch;
  known.push_back(shape_of(a)[static_cast<size_t>(last)]);
  known.push_back(shape_of(b).back());
  auto product = [&](const Expr& p, const Expr& q, const Expr& outer) {
    Expr out =
        call("nn.batch_matmul", {merge_axes(p, 0, batch.size()), merge_axes(q, 0, batch.size())},
             {{"transpose_a", false}, {"transpose_b", false}});
    Expr all = concat({outer, entries(*this, sizes_of(*this, out), 1, 3)}, 0);
    return with_sizes(open_reshape(*this, out, all), known);
  };
  auto repeated = [&] {
    Expr wide = call("where", {call("equal", {left, scalar(1, DType::Int(64))}), right, left});
    auto all = [&](const Expr& e) {
      return call("dyn.broadcast_to", {e, concat({wide, sizes(e, last, rank)}, 0)});
    };
    return product(all(a), all(b), wide);
  };
  bool equal = true, may_be = true;
  for (size_t i = 0; i < batch.size(); ++i) {
    const Dim &p = shape_of(a)[i], &q = shape_of(b)[i];
    equal = equal && dim_equal(p, q);
    may_be = may_be && !dim_differs(p, q);
  }
  if (equal) return product(a, b, left);
  if (!may_be) return repeated();
  Expr alike = call("all", {call("equal", {left, right})});
  return if_(alike, product(a, b, left), repeated(), span_);
}

Expr Builder::with_axis_last(Expr e, int64_t axis,
                             const std::function<Expr(const Expr&)>& along) const {
  const int64_t rank = rank_of(e);
  std::vector<int64_t> to_last, back;
  for (int64_t i = 0; i < rank; ++i) {
    if (i != axis) to_last.push_back(i);
    back.push_back(i < axis ? i : i == axis ? rank - 1 : i - 1);
  }
  to_last.push_back(axis);
  return transpose(along(transpose(std::move(e), to_last)), back);
}

Expr Builder::matmul_along(Expr e, int64_t axis, const Tensor& matrix) const {
  return with_axis_last(std::move(e), axis, [&](const Expr& lines) {
    return call("nn.dense", {lines, constant(transpose_matrix(matrix))});
  });
}

void Builder::charge_bytes(int64_t elements, DType dtype) const {
  auto width = static_cast<int64_t>(dtype.bytes());
  if (elements < 0 || elements > (int64_t{1} << 62) / width) elements = int64_t{1} << 40;
  program_.charge_bytes(elements * width, span_);
}

}  // namespace relay::frontend
