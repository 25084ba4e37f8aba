#include "ops/quantized_forms.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>

#include "ir/contraction.h"
#include "ir/layout.h"
#include "ops/contraction/qnn.h"
#include "ops/expressions.h"

namespace relay::ops {
namespace {

using AttrList = std::vector<std::pair<std::string, AttrValue>>;

DType dtype_of(const QuantizedTensor& x) { return type_of(x.data).dtype; }
bool is_byte(const QuantizedTensor& x) { return dtype_of(x).is_integer() && dtype_of(x).bits == 8; }
// Integers that a model stores; sums of 32 bits become floats at once, in the kernel that computes them.
bool is_stored(const QuantizedTensor& x) { return dtype_of(x).bits <= 16; }

// The first operand, with one scale; null for others.
const QuantizedTensor* stored_operand(const QuantizedCall& q) {
  if (q.operands.empty() || !q.operands[0]) return nullptr;
  const QuantizedTensor& x = *q.operands[0];
  return is_stored(x) && has_one_scale(x) ? &x : nullptr;
}

// What all elements of a constant are; nullopt when they differ or it is none.
std::optional<double> only_number(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr || c->data.num_elements() == 0) return std::nullopt;
  double first = c->data.get_as_double(0);
  for (int64_t i = 1; i < c->data.num_elements(); ++i) {
    if (c->data.get_as_double(i) != first) return std::nullopt;
  }
  return first;
}

// Distance from an integer within which a real number is taken to be represented by it: the scale is a rounded float32.
constexpr double kSlack = 1e-4;

// The integer that represents a real number, not limited to the dtype (infinities represent themselves); nullopt where there
// is none, or the scale is not known.
std::optional<double> integer_of(double real, const QuantizedTensor& x) {
  auto scale = only_number(x.scale), zero = only_number(x.zero);
  if (!scale || !zero || !(*scale > 0)) return std::nullopt;
  double exact = real / *scale + *zero, nearest = std::nearbyint(exact);
  if (std::isinf(exact)) return exact;
  return std::fabs(exact - nearest) <= kSlack ? std::optional(nearest) : std::nullopt;
}

Expr as_number(const Expr& e) { return rank_of(e) == 0 ? e : reshape_to(e, {}); }

QuantizedResult one(Expr data, const Expr& scale, const Expr& zero, int64_t axis = -1) {
  return {QuantizedTensor{std::move(data), scale, zero, axis}};
}

// Of the dtype of the integers.
Expr stored_number(double value, const QuantizedTensor& x) { return scalar(value, x.data); }

Expr wide(const QuantizedTensor& x) { return cast_to(x.data, kInt); }

bool same_scale(const QuantizedTensor& a, const QuantizedTensor& b) {
  return has_one_scale(a) && has_one_scale(b) && same_value(a.scale, b.scale);
}

}  // namespace

bool is_one_number(const Expr& e) {
  auto shape = static_shape(e);
  return shape && (shape->empty() || *shape == Ints{1});
}

bool has_one_scale(const QuantizedTensor& x) {
  return is_one_number(x.scale) && is_one_number(x.zero);
}

// ---- The quantised dialect

QuantizedRule by_dialect(const char* op) {
  return [op](const QuantizedCall& q) -> QuantizedResult {
    const QuantizedTensor* x = stored_operand(q);
    if (x == nullptr || q.wanted == nullptr || dtype_of(*x) != q.wanted_dtype) return {};
    Expr integers = make_call(op, {x->data, x->scale, x->zero, q.wanted->scale, q.wanted->zero},
                              attr_values(q.call.attrs), q.call);
    return one(integers, q.wanted->scale, q.wanted->zero);
  };
}

QuantizedRule by_dialect_of_two(const char* op) {
  return [op](const QuantizedCall& q) -> QuantizedResult {
    const QuantizedTensor* x = stored_operand(q);
    if (x == nullptr || q.wanted == nullptr || !q.operands[1] || !has_one_scale(*q.operands[1]) ||
        dtype_of(*x) != q.wanted_dtype || dtype_of(*q.operands[1]) != q.wanted_dtype)
      return {};
    const QuantizedTensor& y = *q.operands[1];
    Expr integers = make_call(
        op, {x->data, y.data, x->scale, x->zero, y.scale, y.zero, q.wanted->scale, q.wanted->zero},
        {}, q.call);
    return one(integers, q.wanted->scale, q.wanted->zero);
  };
}

// ---- Limits

QuantizedResult quantized_relu(const QuantizedCall& q) {
  const QuantizedTensor* x = stored_operand(q);
  auto zero = x == nullptr ? std::nullopt : integer_of(0, *x);
  if (!zero) return {};
  Expr data = *zero <= range_of(dtype_of(*x)).first
                  ? x->data
                  : apply("maximum", {x->data, stored_number(*zero, *x)});
  return one(data, x->scale, x->zero);
}

QuantizedResult quantized_clip(const QuantizedCall& q) {
  const QuantizedTensor* x = stored_operand(q);
  if (x == nullptr) return {};
  const double a_min = float_attr(q.call, "a_min"), a_max = float_attr(q.call, "a_max");
  auto low = integer_of(a_min, *x), high = integer_of(a_max, *x);
  auto [least, most] = range_of(dtype_of(*x));
  if (!low || !high || *low > *high || *low > most || *high < least) return {};
  Expr data = x->data;
  if (*low > least) data = apply("maximum", {data, stored_number(*low, *x)});
  if (*high < most) data = apply("minimum", {data, stored_number(*high, *x)});
  return one(data, x->scale, x->zero);
}

// ---- Sums

namespace {

// The operator on the integers less their zero points, of operands with one scale.
QuantizedResult linear(const QuantizedCall& q, bool of_stored) {
  if (q.operands.size() != 2 || !q.operands[0] || !q.operands[1]) return {};
  const QuantizedTensor &a = *q.operands[0], &b = *q.operands[1];
  if ((of_stored && (!is_stored(a) || !is_stored(b))) || !same_scale(a, b)) return {};
  Expr sum = call(q.call.op,
                  {centred(a.data, as_number(a.zero), -1), centred(b.data, as_number(b.zero), -1)},
                  q.call.attrs, q.call.span);
  return one(sum, a.scale, scalar(0, a.zero));
}

// The sum of the integers over axes, and how many are summed; nullopt where this is not known or 32 bits may overflow.
struct IntegerSum {
  Expr sum;
  int64_t count;
};
std::optional<IntegerSum> integer_sum(const QuantizedTensor& x, const Ints& axes, bool keepdims) {
  auto shape = static_shape(x.data);
  if (!shape) return std::nullopt;
  int64_t count = 1;
  const int64_t most = int64_t{1} << (31 - dtype_of(x).bits);
  for (int64_t a : axes) {
    count *= (*shape)[static_cast<size_t>(a)];
    if (count == 0 || count > most) return std::nullopt;
  }
  return IntegerSum{sum_over(wide(x), axes, keepdims), count};
}

// Axes counted from the front.
Ints reduced_axes(const CallNode& c) {
  const int64_t rank = tensor_of(c.args[0])->rank();
  auto given = ints_attr(c, "axis");
  const bool exclude = bool_attr(c, "exclude");
  std::vector<bool> reduced(static_cast<size_t>(rank), !given && !exclude);
  if (given) {
    for (int64_t a : *given) reduced[static_cast<size_t>(from_front(a, rank))] = true;
    if (exclude) reduced.flip();
  }
  Ints out;
  for (int64_t d = 0; d < rank; ++d) {
    if (reduced[static_cast<size_t>(d)]) out.push_back(d);
  }
  return out;
}

// The sum represents what it is the sum of at this scale, with as many zero points.
QuantizedResult summed(const QuantizedTensor& x, const Ints& axes, bool keepdims, bool mean) {
  auto s = integer_sum(x, axes, keepdims);
  if (!s) return {};
  Expr scale = as_number(x.scale), zero = as_number(x.zero);
  const auto count = static_cast<double>(s->count);
  if (mean) scale = scale / scalar(count, scale);
  return one(s->sum, scale, is_zero(zero) ? zero : zero * scalar(count, zero));
}

QuantizedResult reduced(const QuantizedCall& q, bool mean) {
  const QuantizedTensor* x = stored_operand(q);
  if (x == nullptr) return {};
  return summed(*x, reduced_axes(q.call), bool_attr(q.call, "keepdims"), mean);
}

}  // namespace

QuantizedResult quantized_linear(const QuantizedCall& q) { return linear(q, true); }
QuantizedResult quantized_bias_add(const QuantizedCall& q) { return linear(q, false); }

QuantizedResult quantized_sum(const QuantizedCall& q) { return reduced(q, false); }
QuantizedResult quantized_mean(const QuantizedCall& q) { return reduced(q, true); }

QuantizedResult quantized_global_mean(const QuantizedCall& q) {
  const QuantizedTensor* x = stored_operand(q);
  auto layout = Layout::parse(text_attr(q.call, "layout"));
  if (x == nullptr || !layout || layout->index_of('H') < 0 || layout->index_of('W') < 0) return {};
  Ints axes{layout->index_of('H'), layout->index_of('W')};
  std::sort(axes.begin(), axes.end());
  return summed(*x, axes, true, true);
}

// ---- Moves that need more than the integers

QuantizedResult quantized_pad(const QuantizedCall& q) {
  const QuantizedTensor* x = q.operands[0] ? &*q.operands[0] : nullptr;
  if (x == nullptr || !has_one_scale(*x)) return {};
  Expr value;
  if (text_attr(q.call, "pad_mode") != "constant") {
    value = scalar(0, x->data);  // it is not read
  } else if (auto real = only_number(q.call.args[1])) {
    if (*real == 0) {
      value = cast_to(as_number(x->zero), dtype_of(*x));
    } else {
      auto [least, most] = range_of(dtype_of(*x));
      auto integer = integer_of(*real, *x);
      if (!integer || *integer < least || *integer > most) return {};
      value = stored_number(*integer, *x);
    }
  } else {
    return {};
  }
  return one(call(q.call.op, {x->data, value}, q.call.attrs, q.call.span), x->scale, x->zero);
}

QuantizedResult quantized_transpose(const QuantizedCall& q) {
  if (!q.operands[0] || has_one_scale(*q.operands[0])) return {};
  const QuantizedTensor& x = *q.operands[0];
  const int64_t rank = rank_of(x.data);
  Ints axes(static_cast<size_t>(rank));
  std::iota(axes.rbegin(), axes.rend(), 0);
  if (auto given = ints_attr(q.call, "axes"); given && !given->empty()) axes = *given;
  auto at = std::ranges::find_if(axes, [&](int64_t a) { return from_front(a, rank) == x.axis; });
  return one(call(q.call.op, {x.data}, q.call.attrs, q.call.span), x.scale, x.zero,
             at - axes.begin());
}

bool windows_cover_elements(const CallNode& call) {
  auto padding = ints_attr(call, "padding"), size = ints_attr(call, "pool_size"),
       dilation = ints_attr(call, "dilation");
  if (bool_attr(call, "ceil_mode") || !padding || !size || !dilation) return false;
  const bool dense = std::ranges::all_of(*dilation, [](int64_t d) { return d == 1; });
  return std::ranges::all_of(
      *padding, [&](int64_t p) { return p == 0 || (dense && p < std::ranges::min(*size)); });
}

// ---- Sums of products

namespace {

struct Factors {
  QuantizedTensor x, w;
};
// The arguments of a product; nullopt when they are not bytes, or scaled along other axes than the weight's `channels`.
std::optional<Factors> factors(const QuantizedCall& q, int64_t channels) {
  if (q.operands.size() != 2 || !q.operands[0] || !q.operands[1]) return std::nullopt;
  const QuantizedTensor &x = *q.operands[0], &w = *q.operands[1];
  if (!is_byte(x) || !is_byte(w) || !has_one_scale(x)) return std::nullopt;
  if (!has_one_scale(w) && w.axis != channels) return std::nullopt;
  return Factors{x, w};
}

// The sum by an operator of the dialect, whose scales are along `axis` of it.
QuantizedResult integer_products(const QuantizedCall& q, const char* op, const QuantizedTensor& x,
                                 const QuantizedTensor& w, const AttrList& attrs, int64_t axis) {
  Expr integers = make_call(op, {x.data, w.data, x.zero, w.zero, x.scale, w.scale}, attrs, q.call);
  const bool by_channel = !is_one_number(w.scale);
  Expr scale = make_call(
      "multiply", {as_number(x.scale), by_channel ? w.scale : as_number(w.scale)}, {}, q.call);
  return one(integers, scale, constant(0, kInt, q.call.span), by_channel ? axis : -1);
}

AttrList integer_attrs(const CallNode& c) {
  AttrList out = attr_values(c.attrs, true);
  std::erase_if(out, [](auto& v) { return v.first == "out_dtype"; });
  out.emplace_back("out_dtype", std::string("int32"));
  return out;
}

QuantizedTensor transposed_matrix(QuantizedTensor x, const CallNode& at) {
  Ints axes(static_cast<size_t>(rank_of(x.data)));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  x.data = make_call("transpose", {x.data}, {{"axes", to_value(axes)}}, at);
  return x;
}

}  // namespace

QuantizedResult quantized_conv2d(const QuantizedCall& q) {
  auto data = Layout::parse(text_attr(q.call, "data_layout")),
       kernel = Layout::parse(text_attr(q.call, "kernel_layout"));
  std::string out = text_attr(q.call, "out_layout");
  auto result = out.empty() ? data : Layout::parse(out);
  if (!data || !kernel || !result || data->rank() != 4 || kernel->rank() != 4) return {};
  auto f = factors(q, kernel->index_of('O'));
  if (!f) return {};
  return integer_products(q, "qnn.conv2d", f->x, f->w, integer_attrs(q.call),
                          result->index_of('C'));
}

QuantizedResult quantized_convolution(const QuantizedCall& q) {
  auto data = Layout::parse(text_attr(q.call, "data_layout")),
       kernel = Layout::parse(text_attr(q.call, "kernel_layout"));
  const std::string out = text_attr(q.call, "out_layout");
  auto result = out.empty() ? data : Layout::parse(out);
  const int64_t rank = rank_of(Expr(&q.call));
  if (!data || !kernel || !result || data->rank() != rank || kernel->rank() != rank) return {};
  auto f = factors(q, kernel->index_of('O'));
  if (!f) return {};
  const bool by_channel = !is_one_number(f->w.scale);
  const auto contraction = contraction_of(q.call);
  const bool transposed = contraction && contraction->transposed();
  // Channels of groups are spread over two axes of the weight.
  if (by_channel && transposed && int_attr(q.call, "groups") != 1) return {};
  Expr integers = integer_convolution(*as<OpNode>(q.call.op)->row, q.call.attrs, q.call.span,
                                      f->x.data, f->w.data, f->x.zero, f->w.zero);
  Expr scale = as_number(f->x.scale) * (by_channel ? f->w.scale : as_number(f->w.scale));
  return one(integers, scale, constant(0, kInt, q.call.span),
             by_channel ? result->index_of('C') : -1);
}

namespace {

// The dimensions of a contraction of two operands as those of products of matrices, in order.
struct MatrixDims {
  std::vector<size_t> batch, rows, columns, sum;
};

std::vector<size_t> dims_of(const Contraction::Tensor& t) {
  std::vector<size_t> out;
  for (const Contraction::Axis& a : t) out.insert(out.end(), a.dims.begin(), a.dims.end());
  return out;
}

// nullopt for windows, blocks, sizes that are not known, axes that are repeated, and dimensions of one operand that are summed.
std::optional<MatrixDims> matrix_dims(const Contraction& c) {
  if (c.operands.size() != 2) return std::nullopt;
  for (const Contraction::Tensor* t : {&c.operands[0], &c.operands[1], &c.result}) {
    std::vector<size_t> dims = dims_of(*t);
    std::sort(dims.begin(), dims.end());
    if (std::ranges::adjacent_find(dims) != dims.end()) return std::nullopt;
    for (const Contraction::Axis& a : *t) {
      if (a.window || a.blocked() || a.dims.empty()) return std::nullopt;
    }
  }
  MatrixDims out;
  for (size_t d = 0; d < c.dims.size(); ++d) {
    if (!as_const(c.dims[d].extent)) return std::nullopt;
    const bool x = !c.axes_of(c.operands[0], d).empty(), w = !c.axes_of(c.operands[1], d).empty(),
               y = !c.axes_of(c.result, d).empty();
    if (y && x && w) {
      out.batch.push_back(d);
    } else if (y && x) {
      out.rows.push_back(d);
    } else if (y && w) {
      out.columns.push_back(d);
    } else if (x && w) {
      out.sum.push_back(d);
    } else {
      return std::nullopt;
    }
  }
  return out.sum.empty() ? std::nullopt : std::optional(out);
}

std::vector<Dim> extents_of(const Contraction& c, const std::vector<size_t>& dims) {
  std::vector<Dim> out;
  for (size_t d : dims) out.push_back(c.dims[d].extent);
  return out;
}

// A tensor whose axes are those of `from`, one for each dimension in this order.
Expr in_dims(const Contraction& c, const Expr& e, const Contraction::Tensor& from,
             const std::vector<size_t>& order) {
  const std::vector<size_t> dims = dims_of(from);
  Ints axes;
  for (size_t d : order) axes.push_back(std::ranges::find(dims, d) - dims.begin());
  return transposed(reshape_to(e, extents_of(c, dims)), axes);
}

Dim product_of(const Contraction& c, const std::vector<size_t>& dims) {
  int64_t out = 1;
  for (size_t d : dims) out *= *as_const(c.dims[d].extent);
  return dim(out);
}

std::vector<size_t> joined(std::initializer_list<std::vector<size_t>> lists) {
  std::vector<size_t> out;
  for (const auto& l : lists) out.insert(out.end(), l.begin(), l.end());
  return out;
}

}  // namespace

QuantizedResult quantized_contraction(const QuantizedCall& q) {
  const auto c = contraction_of(q.call);
  const auto dims = c ? matrix_dims(*c) : std::nullopt;
  if (!dims || dims->columns.empty()) return {};
  // The axis of the weight along which its scales are, where it is all columns.
  int64_t channels = -1;
  if (dims->batch.empty() && dims->columns.size() == 1) {
    const auto at = c->axes_of(c->operands[1], dims->columns[0]);
    if (c->operands[1][at[0]].dims.size() == 1) channels = static_cast<int64_t>(at[0]);
  }
  auto f = factors(q, channels);
  const bool by_channel = f && !is_one_number(f->w.scale);
  if (!f || (by_channel && channels < 0)) return {};
  QuantizedTensor x = f->x, w = f->w;
  const std::vector<Dim> batch =
      dims->batch.empty() ? std::vector<Dim>{} : std::vector<Dim>{product_of(*c, dims->batch)};
  auto matrices = [&](const Expr& e, const Contraction::Tensor& from,
                      const std::vector<size_t>& outer) {
    std::vector<Dim> shape = batch;
    shape.push_back(product_of(*c, outer));
    shape.push_back(product_of(*c, dims->sum));
    return reshape_to(in_dims(*c, e, from, joined({dims->batch, outer, dims->sum})), shape);
  };
  x.data = matrices(x.data, c->operands[0], dims->rows);
  w.data = matrices(w.data, c->operands[1], dims->columns);
  const AttrList attrs{{"out_dtype", std::string("int32")}};
  QuantizedResult sum =
      integer_products(q, batch.empty() ? "qnn.dense" : "qnn.batch_matmul", x, w, attrs, 0);
  // The rows and columns, as the result has them.
  const std::vector<size_t> made = joined({dims->batch, dims->rows, dims->columns}),
                            wanted = dims_of(c->result);
  Ints axes;
  for (size_t d : wanted) axes.push_back(std::ranges::find(made, d) - made.begin());
  Expr integers = transposed(reshape_to(sum[0].data, extents_of(*c, made)), axes);
  integers = reshape_to(integers, type_of(Expr(&q.call)).shape);
  int64_t axis = -1;
  if (by_channel) {
    const auto at = c->axes_of(c->result, dims->columns[0]);
    if (c->result[at[0]].dims.size() != 1) return {};
    axis = static_cast<int64_t>(at[0]);
  }
  return one(integers, sum[0].scale, sum[0].zero, axis);
}

QuantizedResult quantized_dense(const QuantizedCall& q) {
  auto f = factors(q, 0);
  if (!f) return {};
  return integer_products(q, "qnn.dense", f->x, f->w, integer_attrs(q.call),
                          rank_of(f->x.data) - 1);
}

QuantizedResult quantized_matmul(const QuantizedCall& q) {
  const bool transposed = bool_attr(q.call, "transpose_b");
  auto f = factors(q, transposed ? 0 : 1);
  if (!f || bool_attr(q.call, "transpose_a")) return {};
  return integer_products(q, "qnn.dense", f->x, transposed ? f->w : transposed_matrix(f->w, q.call),
                          {{"out_dtype", std::string("int32")}}, rank_of(f->x.data) - 1);
}

QuantizedResult quantized_batch_matmul(const QuantizedCall& q) {
  auto f = factors(q, -1);
  if (!f) return {};
  const CallNode& c = q.call;
  return integer_products(q, "qnn.batch_matmul",
                          bool_attr(c, "transpose_a") ? transposed_matrix(f->x, c) : f->x,
                          bool_attr(c, "transpose_b") ? f->w : transposed_matrix(f->w, c), {}, -1);
}

}  // namespace relay::ops
