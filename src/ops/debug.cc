// Operators that say what a program does while it runs: what it prints, and what has to hold.
//
// Their effect keeps them where they are: no pass drops one, computes it twice or changes the order of
// two (analysis/purity.h).
#include <algorithm>
#include <string>
#include <string_view>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/gradient.h"
#include "ops/loops.h"
#include "ops/printed_text.h"
#include "ops/rows.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;
using runtime::PrintEnd;

// A tensor of more elements is printed with the first and the last of each axis.
constexpr int64_t kMostElements = 1000;
constexpr int64_t kEdge = 3;

// The elements as Python prints nested lists of them.
Stmt print_tensor(const Text& text, const Buffer& in, DType dtype) {
  const size_t rank = in->shape.size();
  PrimExpr is_long = gt(count_elements(in->shape), index(kMostElements));
  std::vector<tir::Var> loops;
  std::vector<PrimExpr> cut;
  Indices at;
  for (size_t d = 0; d < rank; ++d) {
    const PrimExpr& size = in->shape[d];
    cut.push_back(logical_and(is_long, gt(size, index(2 * kEdge))));
    loops.push_back(tir::var("i" + std::to_string(d)));
    PrimExpr i = loops.back();
    at.push_back(select(logical_and(cut[d], ge(i, index(kEdge))), i + size - 2 * kEdge, i));
  }
  Stmt out = text.element(load(in, at), dtype, rank > 0);
  for (size_t d = rank; d-- > 0;) {
    PrimExpr i = loops[d];
    Stmt between = if_(gt(i, index(0)), text.mark(", "));
    Stmt dots = if_(logical_and(cut[d], eq(i, index(kEdge))), text.mark("..., "));
    PrimExpr count = select(cut[d], index(2 * kEdge), in->shape[d]);
    Stmt all = for_(loops[d], index(0), count, seq({between, dots, out}));
    out = seq({text.mark("["), all, text.mark("]")});
  }
  return out;
}

// The tensors of the tuple that is the last argument.
Stmt print_all(const Text& text, const std::vector<Buffer>& in, const std::vector<DType>& dtypes,
               PrintEnd as) {
  std::vector<Stmt> steps;
  const size_t before = in.size() - dtypes.size();
  for (size_t i = 0; i < dtypes.size(); ++i) {
    steps.push_back(print_tensor(text, in[before + i], dtypes[i]));
  }
  steps.push_back(text.end(as));
  return seq(std::move(steps));
}

std::vector<DType> printed_dtypes(const ComputeContext& ctx) {
  std::vector<DType> out;
  const auto tensors = flatten_tensor_types(ctx.arg_types.back());
  for (const TensorType& t : *tensors) out.push_back(t->dtype);
  return out;
}

bool printable(RelationContext& ctx, const TensorTypeNode& t) {
  return require(ctx, !t.dtype.is_narrow(), codes::type_dtype,
                 "prints strings, and numbers of 8 bits and more; floats of 16",
                 "another dtype: cast(...)", t.dtype.to_string());
}

// Tensors of what can be printed, in the tuple that is argument `i`.
bool all_printable(RelationContext& ctx, size_t i) {
  auto tensors = ctx.tensors(i);
  return tensors && std::ranges::all_of(
                        *tensors, [&](const TensorType& t) { return printable(ctx, *t.get()); });
}

// ---- debug.print

struct PrintAttrs : AttrsOf<PrintAttrs> {
  bool newline = true;
  static AttrsList describe() {
    return {"relay.attrs.DebugPrintAttrs",
            {attribute("newline", &Self::newline, "The line ends behind the values.")}};
  }
};

Type print_relation(RelationContext& ctx) {
  if (!all_printable(ctx, 0)) return nullptr;
  return tensor_type(std::vector<Dim>{}, DType::Bool());
}

TirTensor print(const ComputeContext& ctx) {
  const PrintEnd as = ctx.attrs<PrintAttrs>().newline ? PrintEnd::OutputLine : PrintEnd::Output;
  return tir::imperative(
      "T_debug_print", DType::Bool(), {}, ctx.inputs,
      [as, dtypes = printed_dtypes(ctx)](const std::vector<Buffer>& in, const Buffer& out) {
        Text text;
        Stmt done = store(out, {}, gt(text.steps(), text_word(0)));
        return text.in(seq({print_all(text, in, dtypes, as), done}));
      });
}

// ---- debug.trace

struct TraceAttrs : AttrsOf<TraceAttrs> {
  std::string label;
  static AttrsList describe() {
    return {"relay.attrs.DebugTraceAttrs",
            {attribute("label", &Self::label, "What stands before the value, in ASCII.")}};
  }
};

Type trace_relation(RelationContext& ctx) {
  const TensorTypeNode* data = ctx.tensor(0);
  const std::string& label = ctx.attrs<TraceAttrs>().label;
  auto is_plain = [](unsigned char c) { return c >= ' ' && c < 0x7F; };
  if (data == nullptr || !printable(ctx, *data) ||
      !require(ctx, std::ranges::all_of(label, is_plain), codes::op_bad_attribute,
               "the label has other characters than printable ASCII", "letters, digits, signs",
               label))
    return nullptr;
  return Type(data);
}

// "scores: Tensor[(2,), float32] = [1.0, 2.0]"
TirTensor trace(const ComputeContext& ctx) {
  const std::string& label = ctx.attrs<TraceAttrs>().label;
  const DType dtype = printed_dtypes(ctx)[0];
  return tir::imperative(
      "T_debug_trace", ctx.outputs[0].dtype, ctx.outputs[0].shape, ctx.inputs,
      [label, dtype](const std::vector<Buffer>& in, const Buffer& out) {
        const Text text;
        std::vector<Stmt> steps{text.mark((label.empty() ? "" : label + ": ") + "Tensor[(")};
        const size_t rank = in[0]->shape.size();
        for (size_t d = 0; d < rank; ++d) {
          if (d > 0) steps.push_back(text.mark(", "));
          steps.push_back(text.element(in[0]->shape[d], DType::Int(64), false));
        }
        steps.push_back(text.mark((rank == 1 ? ",), " : "), ") + dtype.to_string() + "] = "));
        steps.push_back(print_tensor(text, in[0], dtype));
        steps.push_back(text.end(PrintEnd::OutputLine));
        // The values depend on the text, so no pass over the kernel loses it.
        Stmt copy = each_element(
            out->shape, [&](const Indices& at) { return store(out, at, load(in[0], at)); });
        steps.push_back(if_(gt(text.steps(), text_word(0)), copy));
        return text.in(seq(std::move(steps)));
      });
}

Adjoints passed_on(const GradientContext& ctx) { return {ctx.adjoint()}; }

// ---- debug.check

Type check_relation(RelationContext& ctx) {
  const TensorTypeNode* condition = ctx.tensor(0);
  if (condition == nullptr ||
      !require(ctx, condition->dtype.is_bool() && condition->rank() == 0, codes::type_dtype,
               "the condition is one truth value", "bool", to_string(Type(condition))) ||
      !all_printable(ctx, 1))
    return nullptr;
  return Type(condition);
}

TirTensor check_condition(const ComputeContext& ctx) {
  return tir::imperative(
      "T_debug_check", DType::Bool(), {}, ctx.inputs,
      [dtypes = printed_dtypes(ctx)](const std::vector<Buffer>& in, const Buffer& out) {
        Text text;
        Stmt fail = print_all(text, in, dtypes, PrintEnd::Failure);
        Stmt test = if_(logical_not(load(in[0], Indices{})), fail);
        Stmt done = store(out, {}, eq(text.steps(), text_word(0)));
        return text.in(seq({test, done}));
      });
}

OpInfo debug_row(OpInfo row) {
  row.support_level = 10;
  row.fusion = FusionClass::Opaque;
  row.effect = Effect::Io;
  row.takes_narrow = true;
  row.layout = Absent::AxesAsWritten;
  row.memory = Absent::OnePiece;
  row.precision = Precision::Never;
  row.cost = Absent::NoArithmetic;
  row.gradient = Absent::NotDifferentiable;
  row.batching = Absent::LaneByLane;
  return row;
}

OpInfo trace_row(OpInfo row) {
  row.gradient = passed_on;
  return row;
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Debug>() {
  static const OpInfo rows[] = {
      debug_row({
          .name = "debug.print",
          .doc =
              "Prints values one after another: strings as they are, tensors as Python prints "
              "nested lists. Of more than 1000 elements the first and last three of each axis are "
              "shown. The result is True. Lanes of a batch print one after the other; gradients "
              "print what the function itself prints.",
          .args = {{"values", "A tuple of tensors."}},
          .attrs = &PrintAttrs::static_info(),
          .relation = print_relation,
          .compute = compute_rule(print),
          .examples = {{.args = {"(Tensor[(), int32], Tensor[(2,), float32])"},
                        .attrs = "",
                        .inputs = {{7}, {1, 2.5}},
                        .results = {{1}}}},
          .expected = "by hand, from the sentence above",
      }),
      trace_row(debug_row({
          .name = "debug.trace",
          .doc = "The same values, which are printed with label and type, in a line: tensors as "
                 "debug.print prints them. Lanes of a batch print one after the other; gradients "
                 "print what the function itself prints.",
          .args = {{"data", "The values."}},
          .attrs = &TraceAttrs::static_info(),
          .relation = trace_relation,
          .compute = compute_rule(trace),
          .examples = {{.args = {"Tensor[(2,), float32]"},
                        .attrs = "label=\"x\"",
                        .inputs = {{1, 2.5}},
                        .results = {{1, 2.5}}}},
          .expected = "by hand, from the sentence above",
      })),
      debug_row({
          .name = "debug.check",
          .doc = "Ends the run with error E0616 where the condition does not hold; the values, "
                 "printed "
                 "concatenated, are its message. The result is the condition: True.",
          .args = {{"condition", "One truth value."},
                   {"values", "A tuple of tensors: what the error says."}},
          .may_end_run = on_every_call,
          .relation = check_relation,
          .compute = compute_rule(check_condition),
          .examples = {{.args = {"bool", "(Tensor[(), int32],)"},
                        .attrs = "",
                        .inputs = {{1}, {7}},
                        .results = {{1}}}},
          .expected = "by hand, from the sentence above",
      }),
  };
  return rows;
}

}  // namespace relay::ops
