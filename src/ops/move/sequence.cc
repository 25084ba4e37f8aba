// Batches of sequences of different lengths.
#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/batching.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::CallNode;
using relay::Type;

// Whether `lengths` is a vector of numbers with an entry for each index of the batch axis.
bool lengths_fit(RelationContext& ctx, const TensorTypeNode& lengths, const Dim& batch) {
  return require(ctx,
                 lengths.rank() == 1 &&
                     (lengths.dtype.is_integer() || lengths.dtype.is_floating()) &&
                     ctx.equal(lengths.shape[0], batch),
                 codes::type_shape,
                 "argument '" + std::string(ctx.op().args[1].name) +
                     "' must be a vector of numbers with an entry for each sequence",
                 "Tensor[(" + to_string(batch) + ",), int32]", to_string(Type(&lengths)));
}

struct ReverseSequenceAttrs : AttrsOf<ReverseSequenceAttrs> {
  int64_t seq_axis = 1, batch_axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.ReverseSequenceAttrs",
            {attribute("seq_axis", &Self::seq_axis, "Axis to reverse."),
             attribute("batch_axis", &Self::batch_axis, "Axis of the sequences.")}};
  }
};

Type reverse_sequence_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *n = ctx.tensor(1);
  if (x == nullptr || n == nullptr) return nullptr;
  auto& a = ctx.attrs<ReverseSequenceAttrs>();
  auto seq = normal_axis(ctx, a.seq_axis, x->rank(), "seq_axis");
  auto batch = seq ? normal_axis(ctx, a.batch_axis, x->rank(), "batch_axis") : std::nullopt;
  if (!batch ||
      !require(ctx, *seq != *batch, codes::op_bad_attribute, "seq_axis and batch_axis must differ",
               "two axes", std::to_string(a.seq_axis)) ||
      !lengths_fit(ctx, *n, x->shape[static_cast<size_t>(*batch)]))
    return nullptr;
  return Type(x);
}

TirTensor reverse_sequence_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<ReverseSequenceAttrs>();
  TirTensor x = ctx.inputs[0], lengths = ctx.inputs[1];
  size_t seq = static_cast<size_t>(from_front(a.seq_axis, x->rank())),
         batch = static_cast<size_t>(from_front(a.batch_axis, x->rank()));
  return tir::compute("T_reverse_sequence", x->shape(), [&](const Indices& i) {
    // A length beyond the sequence is the whole of it.
    PrimExpr n = min(tir::cast(kIndex, lengths(Indices{i[batch]})), x->shape()[seq]);
    Indices at = i;
    at[seq] = select(lt(i[seq], n), n - 1 - i[seq], i[seq]);
    return x(at);
  });
}

struct SequenceMaskAttrs : AttrsOf<SequenceMaskAttrs> {
  double mask_value = 0;
  int64_t axis = 0;
  static AttrsList describe() {
    return {"relay.attrs.SequenceMaskAttrs",
            {attribute("mask_value", &Self::mask_value, "Stands behind the end."),
             attribute("axis", &Self::axis, "Axis of time, 0 or 1.")}};
  }
};

Type sequence_mask_relation(RelationContext& ctx) {
  const TensorTypeNode *x = ctx.tensor(0), *n = ctx.tensor(1);
  if (x == nullptr || n == nullptr) return nullptr;
  int64_t axis = ctx.attrs<SequenceMaskAttrs>().axis;
  if (!require(ctx, x->rank() >= 2, codes::type_rank, "needs at least two dimensions", "2 or more",
               shape_text(x->shape)) ||
      !require(ctx, axis == 0 || axis == 1, codes::op_bad_attribute, "axis is out of range",
               "0 or 1", std::to_string(axis)) ||
      !lengths_fit(ctx, *n, x->shape[static_cast<size_t>(1 - axis)]))
    return nullptr;
  return Type(x);
}

TirTensor sequence_mask_compute(const ComputeContext& ctx) {
  auto& a = ctx.attrs<SequenceMaskAttrs>();
  TirTensor x = ctx.inputs[0], lengths = ctx.inputs[1];
  size_t time = static_cast<size_t>(a.axis);
  PrimExpr mask = tir::cast(x->dtype, imm_float(DType::Float(64), a.mask_value));
  return tir::compute("T_sequence_mask", x->shape(), [&](const Indices& i) {
    // A fraction is compared as it is: of a length of 2.5, times 0 to 2 are before the end.
    const DType dtype = lengths->dtype.is_floating() ? DType::Float(64) : kIndex;
    PrimExpr end = tir::cast(dtype, lengths(Indices{i[1 - time]}));
    return select(lt(tir::cast(dtype, i[time]), end), x(i), mask);
  });
}

// Reversing again puts the elements back.
Adjoints reverse_sequence_gradient(const GradientContext& ctx) {
  return {call(ctx.call.op, {ctx.adjoint(), ctx.arg(1)}, ctx.call.attrs), nullptr};
}

Adjoints sequence_mask_gradient(const GradientContext& ctx) {
  return {with_attrs(ctx.call, {ctx.adjoint(), ctx.arg(1)}, {{"mask_value", 0.0}}), nullptr};
}

// ---- Batching

// Lanes are more sequences.
Expr more_sequences(const BatchingContext& ctx, int64_t axis) {
  Expr data = in_lanes(ctx, 0), lengths = in_lanes(ctx, 1);
  if (!has_named_sizes(data) || !has_named_sizes(lengths)) return nullptr;
  auto at = static_cast<size_t>(from_front(axis, rank_of(ctx.call.args[0])));
  Expr all = same_call(ctx, {fold_lanes(data, at), fold_lanes(lengths, 0)});
  return unfold_lanes(all, at, ctx.lanes, ctx.call.type);
}

Expr batch_reverse_sequence(const BatchingContext& ctx) {
  return more_sequences(ctx, ctx.attrs<ReverseSequenceAttrs>().batch_axis);
}

Expr batch_sequence_mask(const BatchingContext& ctx) {
  return more_sequences(ctx, ctx.attrs<SequenceMaskAttrs>().axis == 0 ? 1 : 0);
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Sequence>() {
  static const OpInfo rows[] = {
      {
          .name = "reverse_sequence",
          .doc = "Reverses the first seq_lengths[b] elements of each sequence b.",
          .args = {{"data", "The sequences."},
                   {"seq_lengths", "How many elements to reverse. Floats lose their fraction."}},
          .attrs = &ReverseSequenceAttrs::static_info(),
          .support_level = 3,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .takes_narrow = true,
          .relation = reverse_sequence_relation,
          .compute = compute_rule(reverse_sequence_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = reverse_sequence_gradient,
          .batching = batch_reverse_sequence,
          .examples = {{{"Tensor[(3, 5), float32]", "Tensor[(3,), int32]"}, "", 0, 5},
                       {{"Tensor[(4, 2, 3), float32]", "Tensor[(2,), int64]"},
                        "seq_axis=0, batch_axis=-2",
                        0,
                        4},
                       {{"Tensor[(3, 5), float32]", "Tensor[(3,), float32]"}, "", 0, 5}},
          .expected = Absent::ByNumPy,
      },
      {
          .name = "sequence_mask",
          .doc = "Replaces what is behind the end of each sequence; one of the first two axes is "
                 "time, "
                 "the other one the batch.",
          .args = {{"data", "The sequences."}, {"valid_length", "Their lengths."}},
          .attrs = &SequenceMaskAttrs::static_info(),
          .support_level = 10,
          .fusion = FusionClass::Injective,
          .effect = Effect::Pure,
          .relation = sequence_mask_relation,
          .compute = compute_rule(sequence_mask_compute),
          .layout = Absent::AxesAsWritten,
          .memory = Absent::OnePiece,
          .precision = Precision::Follow,
          .cost = Absent::NoArithmetic,
          .gradient = sequence_mask_gradient,
          .batching = batch_sequence_mask,
          .examples =
              {{{"Tensor[(5, 3, 2), float32]", "Tensor[(3,), int32]"}, "mask_value=-1.0f", 0, 5},
               {{"Tensor[(3, 5), float32]", "Tensor[(3,), int64]"}, "axis=1", 0, 5},
               {{"Tensor[(3, 5), float32]", "Tensor[(3,), float32]"}, "axis=1", 0, 5}},
          .expected = Absent::ByNumPy,
      },
  };
  return rows;
}

}  // namespace relay::ops
