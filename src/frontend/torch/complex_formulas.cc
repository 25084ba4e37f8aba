// Operators of complex numbers, by formulas of their parts.
#include <algorithm>
#include <cmath>
#include <span>

#include "frontend/torch/complex.h"
#include "frontend/torch/complex_writer.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

RealValue neg(ComplexWriter& w, const RealValue& x) { return w.unary("aten.neg.default", x); }
RealValue im_of(ComplexWriter& w, const ComplexValue& z) {
  return z.im ? *z.im : w.zeros_like(z.re);
}

// ---- Parts ---------------------------------------------------------------------------------------

ComplexValue real(ComplexWriter& w) {
  return {w.unary("aten.alias.default", w.operand("self").re), {}};
}
ComplexValue imag(ComplexWriter& w) {
  return {w.unary("aten.alias.default", im_of(w, w.operand("self"))), {}};
}
ComplexValue same(ComplexWriter& w) { return w.operand("self"); }
ComplexValue conjugate(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  return {z.re, neg(w, im_of(w, z))};
}
ComplexValue conjugate_copy(ComplexWriter& w) {
  ComplexValue z = conjugate(w);
  z.re = w.unary("aten.clone.default", z.re);
  return z;
}
ComplexValue conjugate_transpose(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  auto transposed = [&](const RealValue& x) {
    return w.emit("aten.mT.default", {{"self", argument_of(x)}}, w.result());
  };
  return {transposed(z.re), neg(w, transposed(im_of(w, z)))};
}
ComplexValue as_real(ComplexWriter& w) { return {w.joined(w.operand("self")), {}}; }
ComplexValue as_complex(ComplexWriter& w) {
  const RealValue pairs = w.operand("self").re;
  auto part = [&](int64_t i) {
    return w.emit(
        "aten.select.int",
        {{"self", argument_of(pairs)}, {"dim", argument_of(-1)}, {"index", argument_of(i)}},
        w.result());
  };
  return {part(0), part(1)};
}
ComplexValue from_parts(ComplexWriter& w) {
  const RealValue re = w.operand("real").re, im = w.operand("imag").re;
  const std::vector<RealValue> both =
      w.emit_all("aten.broadcast_tensors.default", {{"tensors", argument_of(std::vector{re, im})}},
                 {w.result(), w.result()});
  return {both[0], both[1]};
}
ComplexValue polar(ComplexWriter& w) {
  const RealValue size = w.operand("abs").re, angle = w.operand("angle").re;
  return {w.mul(size, w.unary("aten.cos.default", angle)),
          w.mul(size, w.unary("aten.sin.default", angle))};
}
ComplexValue ones(ComplexWriter& w) {
  return {w.emit("aten.full.default", {{"fill_value", argument_of(1)}}, w.result()), {}};
}

// ---- Arithmetic ----------------------------------------------------------------------------------

// The parts of a product, by the product of real tensors.
template <class Times>
ComplexValue product_of(ComplexWriter& w, const ComplexValue& a, const ComplexValue& b,
                        Times times) {
  ComplexValue out{times(a.re, b.re), {}};
  if (a.im && b.im) out.re = w.sub(out.re, times(*a.im, *b.im));
  if (b.im) out.im = times(a.re, *b.im);
  if (a.im) {
    const RealValue cross = times(*a.im, b.re);
    out.im = out.im ? w.add(*out.im, cross) : cross;
  }
  return out;
}

// An operator that is linear in each of two operands.
template <const char* const& kTarget, const char* const& kSecond>
ComplexValue bilinear(ComplexWriter& w) {
  return product_of(
      w, w.operand("self"), w.operand(kSecond), [&](const RealValue& x, const RealValue& y) {
        return w.emit(kTarget, {{"self", argument_of(x)}, {kSecond, argument_of(y)}}, w.result());
      });
}

ComplexValue product(ComplexWriter& w, const ComplexValue& a, const ComplexValue& b) {
  return product_of(w, a, b, [&](const RealValue& x, const RealValue& y) { return w.mul(x, y); });
}

// The divisor's parts are divided by the greater of them, so that their squares do not overflow (Smith, 1962).
ComplexValue quotient(ComplexWriter& w, const ComplexValue& a, const ComplexValue& b) {
  if (!b.im) {
    ComplexValue out{w.div(a.re, b.re), {}};
    if (a.im) out.im = w.div(*a.im, b.re);
    return out;
  }
  auto magnitude = [&](const RealValue& x) { return w.unary("aten.abs.default", x); };
  const RealValue scale = w.binary("aten.maximum.default", magnitude(b.re), magnitude(*b.im));
  const RealValue re = w.div(b.re, scale), im = w.div(*b.im, scale);
  const RealValue square = w.mul(w.add(w.mul(re, re), w.mul(im, im)), scale);
  const ComplexValue top = product(w, a, {re, neg(w, im)});
  ComplexValue out{w.div(top.re, square), {}};
  if (top.im) out.im = w.div(*top.im, square);
  return out;
}
ComplexValue divide(ComplexWriter& w) { return quotient(w, w.operand("self"), w.operand("other")); }
ComplexValue reciprocal(ComplexWriter& w) {
  return quotient(w, {w.number(1), {}}, w.operand("self"));
}

ComplexValue power(ComplexWriter& w, const ComplexValue& z, int64_t n) {
  ComplexValue out = z;
  for (int64_t i = 1; i < n; ++i) out = product(w, out, z);
  return out;
}
ComplexValue square(ComplexWriter& w) { return power(w, w.operand("self"), 2); }
ComplexValue pow_row(ComplexWriter& w) {
  constexpr double kMost = 8;
  const Argument* a = w.find("exponent");
  double n = 0;
  if (a != nullptr && a->kind == Argument::Kind::value && !a->is_list) {
    if (const auto* i = std::get_if<int64_t>(&a->elements[0])) n = static_cast<double>(*i);
    if (const auto* f = std::get_if<double>(&a->elements[0])) n = *f;
  }
  if (!(n >= 1 && n <= kMost && n == std::floor(n)))
    throw Unwritable{"powers of complex numbers have whole exponents from 1 to 8"};
  const ComplexValue z = w.operand("self");
  if (n > 1) return power(w, z, static_cast<int64_t>(n));
  // A tensor of its own, as other powers are.
  auto copy = [&](const RealValue& x) { return w.unary("aten.clone.default", x); };
  return {copy(z.re), copy(im_of(w, z))};
}

// ---- Polar form ----------------------------------------------------------------------------------

RealValue magnitude(ComplexWriter& w, const ComplexValue& z) {
  return z.im ? w.binary("aten.hypot.default", z.re, *z.im) : w.unary("aten.abs.default", z.re);
}
RealValue argument(ComplexWriter& w, const ComplexValue& z) {
  return w.binary("aten.atan2.default", im_of(w, z), z.re);
}
ComplexValue abs_row(ComplexWriter& w) { return {magnitude(w, w.operand("self")), {}}; }
ComplexValue angle(ComplexWriter& w) { return {argument(w, w.operand("self")), {}}; }

// z / |z|, and 0 for 0.
ComplexValue sgn(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  const RealValue size = magnitude(w, z), zero = w.number(0);
  const RealValue is_zero = w.binary("aten.eq.Tensor", size, zero, kBool);
  const RealValue by = w.where(is_zero, w.number(1), size);
  return {w.div(z.re, by), w.div(im_of(w, z), by)};
}

ComplexValue exp_row(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  const RealValue size = w.unary("aten.exp.default", z.re), at = im_of(w, z);
  return {w.mul(size, w.unary("aten.cos.default", at)),
          w.mul(size, w.unary("aten.sin.default", at))};
}
ComplexValue log_row(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  return {w.unary("aten.log.default", magnitude(w, z)), argument(w, z)};
}

// t = sqrt((|z| + |re|) / 2) is the part that does not cancel; the other one is im / (2 t).
ComplexValue sqrt_row(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  const RealValue im = im_of(w, z), zero = w.number(0), half = w.number(0.5);
  const RealValue sum = w.add(magnitude(w, z), w.unary("aten.abs.default", z.re));
  const RealValue t = w.unary("aten.sqrt.default", w.mul(sum, half));
  const RealValue is_zero = w.binary("aten.eq.Tensor", t, zero, kBool);
  const RealValue other =
      w.div(w.mul(w.unary("aten.abs.default", im), half), w.where(is_zero, w.number(1), t));
  const RealValue right = w.binary("aten.ge.Tensor", z.re, zero, kBool);
  const RealValue height = w.where(right, other, t);
  return {w.where(right, t, other), w.binary("aten.copysign.Tensor", height, im)};
}

// f(re) g(im) + i h(re) k(im)
ComplexValue by_parts(ComplexWriter& w, const char* f, const char* g, const char* h, const char* k,
                      bool negative) {
  const ComplexValue z = w.operand("self");
  const RealValue im = im_of(w, z);
  const RealValue second = w.mul(w.unary(h, z.re), w.unary(k, im));
  return {w.mul(w.unary(f, z.re), w.unary(g, im)), negative ? neg(w, second) : second};
}
constexpr const char *kSin = "aten.sin.default", *kCos = "aten.cos.default",
                     *kSinh = "aten.sinh.default", *kCosh = "aten.cosh.default";
ComplexValue sin_row(ComplexWriter& w) { return by_parts(w, kSin, kCosh, kCos, kSinh, false); }
ComplexValue cos_row(ComplexWriter& w) { return by_parts(w, kCos, kCosh, kSin, kSinh, true); }
ComplexValue sinh_row(ComplexWriter& w) { return by_parts(w, kSinh, kCos, kCosh, kSin, false); }
ComplexValue cosh_row(ComplexWriter& w) { return by_parts(w, kCosh, kCos, kSinh, kSin, false); }

// A norm of complex numbers is that of their magnitudes.
ComplexValue norm(ComplexWriter& w) {
  const RealValue size = magnitude(w, w.operand("self"));
  NamedArguments arguments = w.node().inputs;
  for (auto& [name, a] : arguments)
    if (name == "self") a = argument_of(size);
  return {w.emit(operator_of(w.node().target), std::move(arguments), w.result()), {}};
}

// ---- Tests ---------------------------------------------------------------------------------------

ComplexValue compared(ComplexWriter& w, const char* test, const char* join) {
  const ComplexValue a = w.operand("self"), b = w.operand("other");
  RealValue out = w.binary(test, a.re, b.re, kBool);
  if (a.im || b.im)
    out = w.binary(join, out, w.binary(test, im_of(w, a), im_of(w, b), kBool), kBool);
  return {out, {}};
}
ComplexValue equal(ComplexWriter& w) {
  return compared(w, "aten.eq.Tensor", "aten.logical_and.default");
}
ComplexValue not_equal(ComplexWriter& w) {
  return compared(w, "aten.ne.Tensor", "aten.logical_or.default");
}
template <const char* const& kJoin>
ComplexValue tested(ComplexWriter& w) {
  const ComplexValue z = w.operand("self");
  auto test = [&](const RealValue& x) {
    return w.emit(operator_of(w.node().target), {{"self", argument_of(x)}}, w.result());
  };
  const RealValue of_re = test(z.re);
  return {z.im ? w.binary(kJoin, of_re, test(*z.im), kBool) : of_re, {}};
}

// ---- Fourier transforms --------------------------------------------------------------------------

NamedArguments with_parts(ComplexWriter& w, const ComplexValue& z) {
  NamedArguments out{{"re", argument_of(z.re)}};
  if (z.im) out.emplace_back("im", argument_of(*z.im));
  for (const auto& [name, a] : w.node().inputs)
    if (name != "self") out.emplace_back(name, a);
  return out;
}
template <const char* const& kTarget>
ComplexValue fourier(ComplexWriter& w) {
  const std::vector<RealValue> out =
      w.emit_all(kTarget, with_parts(w, w.operand("self")), {w.result(), w.result()});
  return {out[0], out[1]};
}
ComplexValue fourier_to_real(ComplexWriter& w) {
  return {w.emit("relay.fft_c2r", with_parts(w, w.operand("self")), w.result()), {}};
}

constexpr const char *kOther = "other", *kMat2 = "mat2", *kVec = "vec", *kTensor = "tensor",
                     *kVec2 = "vec2";
constexpr const char *kMul = "aten.mul.Tensor", *kMatmul = "aten.matmul.default",
                     *kMm = "aten.mm.default", *kBmm = "aten.bmm.default", *kMv = "aten.mv.default",
                     *kDot = "aten.dot.default", *kOuter = "aten.outer.default";
constexpr const char *kAnd = "aten.logical_and.default", *kOr = "aten.logical_or.default";
constexpr const char *kC2c = "relay.fft_c2c", *kR2c = "relay.fft_r2c";

constexpr bool kCopiesView = true;
constexpr ComplexRow kRows[] = {
    {"aten._conj.default", conjugate, kCopiesView},
    {"aten._conj_physical.default", conjugate_copy},
    {"aten._fft_c2c.default", fourier<kC2c>},
    {"aten._fft_c2r.default", fourier_to_real},
    {"aten._fft_r2c.default", fourier<kR2c>},
    {"aten.abs.default", abs_row},
    {"aten.adjoint.default", conjugate_transpose, kCopiesView},
    {"aten.angle.default", angle},
    {"aten.bmm.default", bilinear<kBmm, kMat2>},
    {"aten.complex.default", from_parts},
    {"aten.conj.default", conjugate, kCopiesView},
    {"aten.conj_physical.default", conjugate_copy},
    {"aten.cos.default", cos_row},
    {"aten.cosh.default", cosh_row},
    {"aten.div.Scalar", divide},
    {"aten.div.Tensor", divide},
    {"aten.dot.default", bilinear<kDot, kTensor>},
    {"aten.eq.Scalar", equal},
    {"aten.eq.Tensor", equal},
    {"aten.exp.default", exp_row},
    {"aten.imag.default", imag},
    {"aten.isfinite.default", tested<kAnd>},
    {"aten.isinf.default", tested<kOr>},
    {"aten.isnan.default", tested<kOr>},
    {"aten.linalg_vector_norm.default", norm},
    {"aten.log.default", log_row},
    {"aten.mH.default", conjugate_transpose, kCopiesView},
    {"aten.matmul.default", bilinear<kMatmul, kOther>},
    {"aten.mm.default", bilinear<kMm, kMat2>},
    {"aten.mul.Scalar", bilinear<kMul, kOther>},
    {"aten.mul.Tensor", bilinear<kMul, kOther>},
    {"aten.mv.default", bilinear<kMv, kVec>},
    {"aten.ne.Scalar", not_equal},
    {"aten.ne.Tensor", not_equal},
    {"aten.ones.default", ones},
    {"aten.ones_like.default", ones},
    {"aten.outer.default", bilinear<kOuter, kVec2>},
    {"aten.polar.default", polar},
    {"aten.pow.Tensor_Scalar", pow_row},
    {"aten.real.default", real},
    {"aten.reciprocal.default", reciprocal},
    {"aten.resolve_conj.default", same},
    {"aten.resolve_neg.default", same},
    {"aten.sgn.default", sgn},
    {"aten.sin.default", sin_row},
    {"aten.sinh.default", sinh_row},
    {"aten.sqrt.default", sqrt_row},
    {"aten.square.default", square},
    {"aten.view_as_complex.default", as_complex},
    {"aten.view_as_real.default", as_real, kCopiesView},
};
static_assert(std::ranges::is_sorted(kRows, {}, &ComplexRow::target));

// Operators that move elements, or are linear with real coefficients. Views are, too.
constexpr std::string_view kOfParts[] = {
    "aten._to_copy.default",
    "aten._unsafe_index.Tensor",
    "aten._unsafe_index_put.default",
    "aten.add.Scalar",
    "aten.add.Tensor",
    "aten.alias_copy.default",
    "aten.as_strided_scatter.default",
    "aten.block_diag.default",
    "aten.broadcast_tensors.default",
    "aten.cat.default",
    "aten.clone.default",
    "aten.concat.default",
    "aten.constant_pad_nd.default",
    "aten.copy.default",
    "aten.cumsum.default",
    "aten.detach_copy.default",
    "aten.diag_embed.default",
    "aten.diagonal_backward.default",
    "aten.diagonal_scatter.default",
    "aten.dstack.default",
    "aten.empty.memory_format",
    "aten.empty_like.default",
    "aten.expand_copy.default",
    "aten.fill.Scalar",
    "aten.fill.Tensor",
    "aten.flip.default",
    "aten.full.default",
    "aten.full_like.default",
    "aten.gather.default",
    "aten.hstack.default",
    "aten.index.Tensor",
    "aten.index_add.default",
    "aten.index_copy.default",
    "aten.index_put.default",
    "aten.index_select.default",
    "aten.lift_fresh_copy.default",
    "aten.masked_fill.Scalar",
    "aten.masked_fill.Tensor",
    "aten.masked_scatter.default",
    "aten.masked_select.default",
    "aten.mean.default",
    "aten.mean.dim",
    "aten.neg.default",
    "aten.negative.default",
    "aten.new_empty.default",
    "aten.new_empty_strided.default",
    "aten.new_full.default",
    "aten.new_zeros.default",
    "aten.reflection_pad1d.default",
    "aten.reflection_pad2d.default",
    "aten.repeat.default",
    "aten.roll.default",
    "aten.rot90.default",
    "aten.rsub.Scalar",
    "aten.rsub.Tensor",
    "aten.scalar_tensor.default",
    "aten.scatter.src",
    "aten.scatter.value",
    "aten.scatter_add.default",
    "aten.select_backward.default",
    "aten.select_scatter.default",
    "aten.slice_backward.default",
    "aten.slice_scatter.default",
    "aten.stack.default",
    "aten.sub.Scalar",
    "aten.sub.Tensor",
    "aten.subtract.Tensor",
    "aten.sum.default",
    "aten.sum.dim_IntList",
    "aten.sum_to_size.default",
    "aten.take.default",
    "aten.take_along_dim.default",
    "aten.tile.default",
    "aten.trace.default",
    "aten.tril.default",
    "aten.triu.default",
    "aten.vstack.default",
    "aten.where.ScalarOther",
    "aten.where.ScalarSelf",
    "aten.where.self",
    "aten.zero.default",
    "aten.zeros.default",
    "aten.zeros_like.default",
};
static_assert(std::ranges::is_sorted(kOfParts));

}  // namespace

const ComplexRow* complex_row(std::string_view target) {
  auto it = std::ranges::lower_bound(kRows, target, {}, &ComplexRow::target);
  return it == std::end(kRows) || it->target != target ? nullptr : it;
}

bool acts_on_parts(std::string_view target) {
  if (std::ranges::binary_search(kOfParts, target)) return true;
  // A view of other elements than its operand's is none of the parts.
  if (target == "aten.view.dtype") return false;
  const FoundRow found = row_for(target);
  return found.row != nullptr && found.row->view != nullptr && !found.in_place;
}

const std::vector<std::string_view>& complex_operators() {
  static const std::vector<std::string_view> out = [] {
    std::vector<std::string_view> only;
    for (const ComplexRow& row : kRows)
      if (row_for(row.target).row == nullptr) only.push_back(row.target);
    return only;
  }();
  return out;
}

}  // namespace relay::frontend::torch
