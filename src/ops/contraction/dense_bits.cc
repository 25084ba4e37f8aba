// Matrix products whose weights have few bits each, with a scale and a zero point for each block of the sum:
//
//   y[m, n] = sum over blocks b of scale[n, b] * sum over k in b of x[m, k] * (w[n, k] - zero[n, b])
//
// The weights stay packed: a word of 32 bits holds 32 / bits neighbouring elements of the sum, the first as its lowest
// bits, and kernels widen them in registers (lower/rules/contraction_blocks.cc). So a single row reads an eighth of the bytes
// that float32 has.
#include <numeric>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "base/quantities.h"
#include "ir/layout.h"
#include "ops/expressions.h"
#include "ops/gradient.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using relay::CallNode;
using relay::Type;

constexpr int64_t kWord = 32, kByte = 8;

struct DenseBitsAttrs : AttrsOf<DenseBitsAttrs> {
  int64_t bits = 4;
  std::optional<int64_t> units;
  std::string weight_layout = "NC";
  int64_t accuracy_level = 0;
  static AttrsList describe() {
    return {
        "relay.attrs.DenseBitsAttrs",
        {attribute("bits", &Self::bits, "Bits of a weight: 2, 4 or 8."),
         attribute("units", &Self::units, "Columns of the result."),
         attribute("weight_layout", &Self::weight_layout,
                   "Layout of weight, scale and zero_point, NC or NC<block>n."),
         attribute("accuracy_level", &Self::accuracy_level,
                   "4: the compiler may round each block of a row to int8; else it does not.")}};
  }
};

// The places of the arguments: those of float data, and behind them of data rounded already.
enum : size_t { kData, kWeight, kScale, kZero, kDataScale };

// Weights as the type relation finds them: panels of columns, or one column after the other.
struct Panels {
  int64_t width = 0;  // 0: none

  static std::optional<Panels> of(const std::string& text) {
    auto layout = Layout::parse(text);
    if (!layout || layout->primal_axes() != "NC") return std::nullopt;
    if (layout->rank() == 2 && layout->index_of('N') == 0) return Panels{};
    if (layout->rank() != 3 || layout->block_of('N') < 2 || layout->index_of('N') != 0 ||
        layout->index_of('n') != 2) {
      return std::nullopt;
    }
    return Panels{layout->block_of('N')};
  }

  // An element of a tensor in this layout: of column `n` and, along the sum, `c`.
  PrimExpr read(const TirTensor& t, const PrimExpr& n, const PrimExpr& c) const {
    if (t->rank() == 0) return t(Indices{});
    if (width == 0) return t(n, c);
    const PrimExpr block = tir::index(width);
    return t(floor_div(n, block), c, floor_mod(n, block));
  }
};

// ---- Types

bool check_shape_of(RelationContext& ctx, const TensorTypeNode& t, const std::vector<Dim>& wanted,
                    const char* problem) {
  bool fits = t.shape.size() == wanted.size();
  for (size_t d = 0; fits && d < wanted.size(); ++d) fits = ctx.equal(t.shape[d], wanted[d]);
  return require(ctx, fits, codes::type_shape, problem, shape_text(wanted), shape_text(t.shape));
}

// The result for data of that dtype, of which `kDataScale` has a scale for each block where it is int8.
Type product_type(RelationContext& ctx, DType data) {
  auto& a = ctx.attrs<DenseBitsAttrs>();
  const TensorTypeNode *x = ctx.tensor(kData), *w = ctx.tensor(kWeight), *s = ctx.tensor(kScale),
                       *z = ctx.tensor(kZero);
  const bool rounded = data != DType::Float(32);
  const TensorTypeNode* xs = rounded ? ctx.tensor(kDataScale) : nullptr;
  if (x == nullptr || w == nullptr || s == nullptr || z == nullptr || (rounded && xs == nullptr)) {
    return nullptr;
  }
  auto panels = Panels::of(a.weight_layout);
  if (!require(ctx, a.bits == 2 || a.bits == 4 || a.bits == 8, codes::op_bad_attribute,
               "bits is not supported", "2, 4 or 8", std::to_string(a.bits)) ||
      !require(ctx, panels.has_value(), codes::op_bad_attribute, "weight_layout is not supported",
               "NC or NC<block>n", a.weight_layout)) {
    return nullptr;
  }
  auto is = [&](const TensorTypeNode& t, DType dtype, const char* name) {
    return require(ctx, t.dtype == dtype, codes::type_dtype,
                   std::string("argument '") + name + "' has the wrong dtype", dtype.to_string(),
                   t.dtype.to_string());
  };
  if (!is(*x, data, "data") || !is(*w, DType::Int(32), "weight") ||
      !is(*s, DType::Float(32), "scale") ||
      !require(ctx, z->dtype == DType::UInt(8) || z->dtype == DType::Float(32), codes::type_dtype,
               "argument 'zero_point' has the wrong dtype", "uint8 or float32",
               z->dtype.to_string())) {
    return nullptr;
  }
  const int64_t rank = panels->width == 0 ? 2 : 3;
  if (!require(ctx, x->rank() >= 1, codes::type_rank, "the data have no axis to sum over",
               "1 dimension or more", shape_text(x->shape)) ||
      !require(ctx, w->rank() == rank && s->rank() == rank, codes::type_rank,
               "weight and scale have the layout's dimensions", counted(rank, "dimension"),
               shape_text(w->shape) + " and " + shape_text(s->shape))) {
    return nullptr;
  }
  auto words = as_const(w->shape[1]), blocks = as_const(s->shape[1]);
  if (!require(ctx, words && blocks && *blocks > 0 && *words > 0 && *words % *blocks == 0,
               codes::type_shape, "the blocks of the sum are no whole number of words",
               "a constant number of words, a multiple of that of scales",
               shape_text(w->shape) + " and " + shape_text(s->shape))) {
    return nullptr;
  }
  if (panels->width != 0 && !require(ctx, a.units && *a.units >= 0, codes::op_bad_attribute,
                                     "units is not given", "the columns that panels hold", "")) {
    return nullptr;
  }
  const bool contradicts =
      panels->width == 0 && a.units && as_const(w->shape[0]) && *as_const(w->shape[0]) != *a.units;
  if (!require(ctx, !contradicts, codes::op_bad_attribute, "units contradicts the weight",
               to_string(w->shape[0]), a.units ? std::to_string(*a.units) : "")) {
    return nullptr;
  }
  // Compare each operand with the column count that is known best (units, a constant size), not with
  // another open size: kernels read the counts that are checked here.
  std::vector<Dim> column_axes = w->shape;
  if (panels->width != 0) {
    const Dim width = dim(panels->width);
    column_axes[0] = ceil_div(dim(*a.units), width);
    column_axes[2] = width;
  } else if (a.units) {
    column_axes[0] = dim(*a.units);
  } else if (!as_const(w->shape[0])) {
    column_axes[0] = as_const(s->shape[0]) || z->rank() != 2 ? s->shape[0] : z->shape[0];
  }
  std::vector<Dim> like_scale = column_axes;
  like_scale[1] = s->shape[1];
  if (!check_shape_of(ctx, *w, column_axes, "the weight does not hold `units` columns") ||
      !check_shape_of(ctx, *s, like_scale, "the scales are not those of the weight") ||
      (z->rank() != 0 &&
       !check_shape_of(ctx, *z, like_scale, "the zero points are not those of the weight"))) {
    return nullptr;
  }
  const Dim inner = dim(*words * (kWord / a.bits));
  if (!require(ctx, ctx.equal(x->shape.back(), inner), codes::type_shape,
               "the inner dimensions differ", to_string(inner), shape_text(x->shape))) {
    return nullptr;
  }
  std::vector<Dim> shape = x->shape;
  if (rounded) {
    shape.back() = s->shape[1];
    if (!is(*xs, DType::Float(32), "data_scale") ||
        !check_shape_of(ctx, *xs, shape, "the data's scales are not one for each block of a row")) {
      return nullptr;
    }
  }
  shape.back() = panels->width == 0 ? column_axes[0] : dim(*a.units);
  return tensor_type(std::move(shape), DType::Float(32));
}

Type dense_bits_relation(RelationContext& ctx) { return product_type(ctx, DType::Float(32)); }
Type quantized_relation(RelationContext& ctx) { return product_type(ctx, DType::Int(8)); }

// ---- Computation

// What both rules know of a call.
struct Product {
  TirTensor weight, scale, zero;
  Panels panels;
  int64_t bits, words, blocks;  // of a weight; in a column; in a column
  std::vector<PrimExpr> shape;  // of the result

  explicit Product(const ComputeContext& ctx)
      : weight(ctx.inputs[kWeight]),
        scale(ctx.inputs[kScale]),
        zero(ctx.inputs[kZero]),
        panels(*Panels::of(ctx.attrs<DenseBitsAttrs>().weight_layout)),
        bits(ctx.attrs<DenseBitsAttrs>().bits),
        words(*tir::as_int(weight->shape()[1])),
        blocks(*tir::as_int(scale->shape()[1])),
        shape(ctx.outputs[0].shape) {}

  int64_t words_in_block() const { return words / blocks; }

  // The bits of a word from place `at` on, a multiple of `bits`; `mask` has those that are wanted.
  PrimExpr bits_of(const PrimExpr& word, const PrimExpr& at, int64_t mask) const {
    PrimExpr moved = binary(tir::BinaryOp::Shr, word, tir::cast(DType::Int(32), at * bits));
    return binary(tir::BinaryOp::BitAnd, moved, tir::imm(DType::Int(32), mask));
  }

  // `term(b, i, k)` summed over k in each block b for each element i of the result, as [b, i]; of a single block as [i].
  template <class F>
  TirTensor sums_of_blocks(const std::vector<PrimExpr>& extents, const F& term) const {
    std::vector<PrimExpr> all = shape;
    std::vector<ContractionRole> roles = row_roles();
    if (blocks > 1) {
      all.insert(all.begin(), tir::index(blocks));
      roles.insert(roles.begin(), ContractionRole::Batch);
    }
    roles.insert(roles.end(), extents.size(), ContractionRole::Reduced);
    return tir::contract("T_block", std::move(all), extents, roles,
                         [&](const Indices& i, const Indices& k) {
                           if (blocks == 1) return term(tir::index(0), i, k);
                           return term(i[0], Indices(i.begin() + 1, i.end()), k);
                         });
  }

  // The sum of `term(b, i, what sums_of_blocks gave there)` over the blocks.
  template <class F>
  TirTensor sum_over_blocks(const TirTensor& sums, const F& term) const {
    if (blocks == 1) {
      return tir::compute("T_dense_bits", shape,
                          [&](const Indices& i) { return term(tir::index(0), i, sums(i)); });
    }
    std::vector<ContractionRole> roles = row_roles();
    roles.push_back(ContractionRole::Reduced);
    return tir::contract("T_dense_bits", shape, {tir::index(blocks)}, roles,
                         [&](const Indices& i, const Indices& k) {
                           Indices at = i;
                           at.insert(at.begin(), k[0]);
                           return term(k[0], i, sums(at));
                         });
  }

  static Indices with_last(Indices i, const PrimExpr& last) {
    i.back() = last;
    return i;
  }

  std::vector<ContractionRole> row_roles() const {
    std::vector<ContractionRole> out(shape.size(), ContractionRole::Row);
    out.back() = ContractionRole::Column;
    return out;
  }
};

// An integer below 2^23 is the lower bits of the float that is as much more than 2^23: so a weight is a float32 without a
// conversion, and what the zero point takes from it takes 2^23 too. Both are exact.
PrimExpr weight_as_float(const Product& p, const PrimExpr& q, const PrimExpr& n,
                         const PrimExpr& b) {
  constexpr int64_t kBase = int64_t{1} << 23, kBitsOfBase = 0x4B000000;
  const DType f32 = DType::Float(32);
  PrimExpr zero = tir::cast(f32, p.panels.read(p.zero, n, b));
  if (p.zero->dtype.is_floating()) return tir::cast(f32, q) - zero;
  PrimExpr raised = tir::call(
      "bitcast", f32, {binary(tir::BinaryOp::BitOr, q, tir::imm(DType::Int(32), kBitsOfBase))});
  return raised - (zero + tir::imm(f32, kBase));
}

// So many rows are worth it to write the weights of some columns down as float32 first: a tile of 14 rows in registers
// takes 1.2 times as long where it widens its weights itself.
constexpr int64_t kManyRows = 32;

bool has_many_rows(const Product& p) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < p.shape.size(); ++d) {
    auto extent = tir::as_int(p.shape[d]);
    if (!extent) return false;
    rows *= *extent;
  }
  return rows >= kManyRows;
}

// One sum over all blocks, of weights with their scales.
TirTensor product_of_many_rows(const Product& p, const TirTensor& x) {
  const int64_t in_word = kWord / p.bits, mask = (int64_t{1} << p.bits) - 1;
  TirTensor weights = tir::compute(
      "T_weights", {tir::index(p.words * in_word), p.shape.back()},
      [&](const Indices& i) {
        PrimExpr word = floor_div(i[0], tir::index(in_word));
        PrimExpr block = floor_div(i[0], tir::index(p.words_in_block() * in_word));
        PrimExpr q = p.bits_of(p.panels.read(p.weight, i[1], word),
                               floor_mod(i[0], tir::index(in_word)), mask);
        return weight_as_float(p, q, i[1], block) * p.panels.read(p.scale, i[1], block);
      },
      {"widened", "", in_word});
  std::vector<ContractionRole> roles = p.row_roles();
  roles.push_back(ContractionRole::Reduced);
  return tir::contract("T_dense_bits", p.shape, {tir::index(p.words * in_word)}, roles,
                       [&](const Indices& i, const Indices& k) {
                         return x(Product::with_last(i, k[0])) * weights(k[0], i.back());
                       });
}

TirTensor dense_bits_compute(const ComputeContext& ctx) {
  Product p(ctx);
  const TirTensor& x = ctx.inputs[kData];
  if (has_many_rows(p)) return product_of_many_rows(p, x);
  const int64_t in_word = kWord / p.bits, mask = (int64_t{1} << p.bits) - 1;
  TirTensor blocks = p.sums_of_blocks(
      {tir::index(p.words_in_block()), tir::index(in_word)},
      [&](const PrimExpr& b, const Indices& i, const Indices& k) {
        PrimExpr word = b * p.words_in_block() + k[0];
        PrimExpr q = p.bits_of(p.panels.read(p.weight, i.back(), word), k[1], mask);
        return x(Product::with_last(i, word * in_word + k[1])) * weight_as_float(p, q, i.back(), b);
      });
  return p.sum_over_blocks(blocks, [&](const PrimExpr& b, const Indices& i, const PrimExpr& sum) {
    return sum * p.panels.read(p.scale, i.back(), b);
  });
}

// Four weights of a word at the same place of its bytes are multiplied with four neighbouring elements of the data.
TirTensor quantized_compute(const ComputeContext& ctx) {
  Product p(ctx);
  const TirTensor &x = ctx.inputs[kData], &x_scale = ctx.inputs[kDataScale];
  const DType i32 = DType::Int(32), f32 = DType::Float(32);
  const int64_t places = kByte / p.bits, bytes = kWord / kByte;
  const int64_t mask = ((int64_t{1} << p.bits) - 1) * 0x01010101;
  auto data_word = [&](const PrimExpr& word, const PrimExpr& place, const Indices& i) {
    return tir::call("load_word", i32, {x(Product::with_last(i, (word * places + place) * bytes))});
  };
  TirTensor blocks =
      p.sums_of_blocks({tir::index(p.words_in_block()), tir::index(places)},
                       [&](const PrimExpr& b, const Indices& i, const Indices& k) {
                         PrimExpr word = b * p.words_in_block() + k[0];
                         PrimExpr w = p.panels.read(p.weight, i.back(), word);
                         if (places > 1) w = p.bits_of(w, k[1], mask);
                         return tir::call("byte_dot", i32, {w, data_word(word, k[1], i)});
                       });
  // What the zero point is multiplied with: the sum of the data of a block.
  std::vector<PrimExpr> rows = p.shape;
  rows.back() = tir::index(p.blocks);
  TirTensor data_sums = tir::compute("T_data_sums", rows, [&](const Indices& i) {
    return tir::sum({tir::index(p.words_in_block() * places)}, [&](const Indices& k) {
      PrimExpr at = i.back() * (p.words_in_block() * places) + k[0];
      return tir::call("byte_dot", i32,
                       {tir::imm(i32, 0x01010101),
                        tir::call("load_word", i32, {x(Product::with_last(i, at * bytes))})});
    });
  });
  return p.sum_over_blocks(
      blocks, [&](const PrimExpr& b, const Indices& i, const PrimExpr& of_block) {
        const Indices row = Product::with_last(i, b);
        PrimExpr zero = tir::cast(f32, p.panels.read(p.zero, i.back(), b));
        PrimExpr sum = tir::cast(f32, of_block) - zero * tir::cast(f32, data_sums(row));
        return sum * (p.panels.read(p.scale, i.back(), b) * x_scale(row));
      });
}

// ---- In other operators

// Columns one after the other: (units, c).
Expr unpacked(const CallNode& c, const Expr& e) {
  auto& a = static_cast<const DenseBitsAttrs&>(*c.attrs.get());
  if (rank_of(e) != 3) return e;
  Expr all = apply("layout_transform", {e},
                   {{"src_layout", a.weight_layout}, {"dst_layout", std::string("NC")}});
  return slice_axis(all, 0, dim(0), dim(*a.units));
}

Expr dense_of_floats(const CallNode& c) {
  auto& a = static_cast<const DenseBitsAttrs&>(*c.attrs.get());
  const int64_t in_word = kWord / a.bits;
  Expr words = unpacked(c, c.args[kWeight]), scale = unpacked(c, c.args[kScale]),
       zero = unpacked(c, c.args[kZero]);
  Tensor places = Tensor::empty(DType::Int(32), {in_word});
  for (int64_t i = 0; i < in_word; ++i) places.set_from_int(i, i * a.bits);
  auto with_axis = [](const Expr& e) {
    return apply("expand_dims", {e}, {{"axis", int64_t{2}}, {"num_newaxis", int64_t{1}}});
  };
  Expr q = apply("right_shift", {with_axis(words), constant(places, c.span)});
  q = apply("bitwise_and", {q, scalar(static_cast<double>((1 << a.bits) - 1), q)});
  const Dim &columns = type_of(words).shape[0], &blocks = type_of(scale).shape[1];
  const int64_t inner = *as_const(type_of(words).shape[1]) * in_word;
  q = cast_to(reshape_to(q, {columns, blocks, dim(inner / *as_const(blocks))}), DType::Float(32));
  zero = cast_to(zero, DType::Float(32));
  Expr w = (q - (rank_of(zero) == 0 ? zero : with_axis(zero))) * with_axis(scale);
  return apply("nn.dense", {c.args[kData], reshape_to(w, {columns, dim(inner)})});
}

double product_cost(const CallNode& c) {
  auto inner = as_const(as<TensorTypeNode>(c.args[kData]->type)->shape.back());
  return 2 * static_cast<double>(inner.value_or(0)) * num_elements(c.type);
}

// Lanes are rows like any others, where the weights are the same in all of them.
Expr batched(const BatchingContext& ctx) {
  for (size_t i = 0; i < ctx.batched.size(); ++i) {
    if (ctx.batched[i] != (i == kData || i == kDataScale)) return nullptr;
  }
  return call(as<OpNode>(ctx.call.op)->row->name, ctx.args, ctx.call.attrs, ctx.call.span);
}

// ---- Packing

// Weights of few bits: their words, scales and zero points in panels. Where rows may be rounded and the target multiplies
// bytes, each block of a row becomes int8 with a scale of its own, in the order in which the bytes of a word meet it.
Expr packed_dense_bits(const CallNode& c, WeightPacker& packer) {
  constexpr int64_t kRoundedRows = 4;
  auto weight = static_shape(c.args[1]), scale = static_shape(c.args[2]);
  if (!weight || !scale || weight->size() != 2 || (*weight)[0] == 1 ||
      !std::all_of(c.args.begin() + 1, c.args.end(),
                   [&](const Expr& e) { return packer.is_constant(e); })) {
    return nullptr;
  }
  const int64_t bits = int_attr(c, "bits"), blocks = (*scale)[1],
                inner = (*weight)[1] * (kWord / bits);
  const std::string layout = "NC" + std::to_string(packer.panel(c.args[1])) + "n";
  std::vector<Expr> args{c.args[0]};
  for (size_t i = 1; i < c.args.size(); ++i) {
    const bool number = tensor_of(c.args[i])->rank() == 0;
    args.push_back(number ? c.args[i] : packer.packed(c, c.args[i], "NC", layout));
  }
  std::vector<std::pair<std::string, AttrValue>> attrs{{"bits", AttrValue(bits)},
                                                       {"units", AttrValue((*weight)[0])},
                                                       {"weight_layout", AttrValue(layout)}};
  if (int_attr(c, "accuracy_level") != kRoundedRows || !packer.multiplies_bytes()) {
    return make_call("nn.contrib_dense_bits", args, attrs, c);
  }
  const int64_t rank = tensor_of(c.args[0])->rank();
  auto with_shape = [&](const Expr& e, std::vector<int64_t> last) {
    std::vector<int64_t> shape(static_cast<size_t>(rank - 1), 0);
    shape.insert(shape.end(), last.begin(), last.end());
    return make_call("reshape", {e}, {{"newshape", to_value(shape)}}, c);
  };
  auto number = [&](double value) {
    Tensor t = Tensor::empty(DType::Float(32), {});
    t.set_from_double(0, value);
    return constant(t, c.span);
  };
  constexpr int64_t kSplit = -4, kJoin = -3;
  constexpr double kMost = 127;
  Expr x = with_shape(c.args[0], {kSplit, blocks, inner / blocks});
  Expr most =
      make_call("max", {make_call("abs", {x}, {}, c)},
                {{"axis", to_value(std::vector<int64_t>{rank})}, {"keepdims", AttrValue(true)}}, c);
  // A block of zeros stays one.
  Expr steps = make_call(
      "divide", {number(kMost), make_call("maximum", {most, number(1e-30)}, {}, c)}, {}, c);
  Expr q = make_call("round", {make_call("multiply", {x, steps}, {}, c)}, {}, c);
  q = make_call("cast", {q}, {{"dtype", AttrValue(std::string("int8"))}}, c);
  const int64_t bytes = kWord / kByte, places = kByte / bits;
  q = with_shape(q, {kJoin});
  if (places > 1) {
    std::vector<int64_t> order(static_cast<size_t>(rank + 2));
    for (size_t d = 0; d < order.size(); ++d) order[d] = static_cast<int64_t>(d);
    std::swap(order[order.size() - 1], order[order.size() - 2]);
    q = with_shape(q, {kSplit, inner / (bytes * places), bytes * places});
    q = with_shape(q, {0, kSplit, bytes, places});
    q = make_call("transpose", {q}, {{"axes", to_value(order)}}, c);
    q = with_shape(with_shape(q, {0, kJoin}), {kJoin});
  }
  Expr scales = make_call("multiply", {with_shape(most, {kJoin}), number(1 / kMost)}, {}, c);
  args[0] = q;
  args.push_back(scales);
  return make_call("qnn.contrib_dense_bits", args, attrs, c);
}

// ---- Rows

OpInfo dense_bits_row() {
  return {
      .name = "nn.contrib_dense_bits",
      .doc =
          "nn.dense with weights of few bits, packed into words, with a scale and a zero point "
          "for each block of a column's sum.",
      .args = {{"data", "float32, (..., inputs)."},
               {"weight", "int32, (units, inputs * bits / 32), or in panels."},
               {"scale", "float32, (units, blocks), or in panels."},
               {"zero_point", "uint8 or float32, like scale, or one number."}},
      .attrs = &DenseBitsAttrs::static_info(),
      .support_level = 10,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = dense_bits_relation,
      .compute = compute_rule(dense_bits_compute),
      .contraction = Absent::NotOneSum,
      .definition = dense_of_floats,
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = product_cost,
      .gradient = Absent::Pending,
      .batching = batched,
      .packing = packed_dense_bits,
      .examples = {{{"Tensor[(3, 32), float32]", "Tensor[(5, 4), int32]", "Tensor[(5, 2), float32]",
                     "Tensor[(5, 2), uint8]"},
                    "",
                    0,
                    7},
                   {{"Tensor[(2, 3, 16), float32]", "Tensor[(2, 4, 8), int32]",
                     "Tensor[(2, 1, 8), float32]", "Tensor[(), float32]"},
                    "bits=8, units=13, weight_layout=\"NC8n\"",
                    0,
                    100}},
      .expected = Absent::ByNumPy,
  };
}

OpInfo quantized_dense_row() {
  return {
      .name = "qnn.contrib_dense_bits",
      .doc =
          "nn.contrib_dense_bits of data rounded to int8, with a scale for each block of a row. "
          "Of the data that meet a word, those of its bytes' lowest bits come first.",
      .args = {{"data", "int8, (..., inputs)."},
               {"weight", "int32, (units, inputs * bits / 32), or in panels."},
               {"scale", "float32, (units, blocks), or in panels."},
               {"zero_point", "uint8 or float32, like scale, or one number."},
               {"data_scale", "float32, (..., blocks)."}},
      .attrs = &DenseBitsAttrs::static_info(),
      .support_level = 10,
      .fusion = FusionClass::OutEWiseFusable,
      .effect = Effect::Pure,
      .relation = quantized_relation,
      .compute = compute_rule(quantized_compute),
      .contraction = Absent::NotOneSum,
      .layout = Absent::AxesAsWritten,
      .memory = Absent::OnePiece,
      .precision = Precision::Never,
      .cost = product_cost,
      .gradient = Absent::MadeByPasses,
      .batching = batched,
      .examples = {{{"Tensor[(3, 32), int8]", "Tensor[(5, 4), int32]", "Tensor[(5, 2), float32]",
                     "Tensor[(5, 2), uint8]", "Tensor[(3, 2), float32]"},
                    "",
                    0,
                    7},
                   {{"Tensor[(2, 3, 16), int8]", "Tensor[(2, 4, 8), int32]",
                     "Tensor[(2, 1, 8), float32]", "Tensor[(), uint8]",
                     "Tensor[(2, 3, 1), float32]"},
                    "bits=8, units=13, weight_layout=\"NC8n\"",
                    0,
                    100}},
      .expected = Absent::ByNumPy,
  };
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::DenseBits>() {
  static const OpInfo rows[] = {dense_bits_row(), quantized_dense_row()};
  return rows;
}

}  // namespace relay::ops
