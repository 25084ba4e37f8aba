// Operators that make strings or look into them. What they know about letters, numbers and patterns is
// in the text library (runtime/core/string_functions.h).
#include <functional>

#include "base/codes/operators.h"
#include "base/codes/types.h"
#include "ops/loops.h"
#include "ops/rows.h"
#include "ops/text_words.h"
#include "runtime/core/token_pattern.h"

namespace relay::ops {
namespace {

using namespace tir;  // NOLINT
using relay::Type;

constexpr DType kWord = DType::Int(64);

PrimExpr text_call(const char* name, std::vector<PrimExpr> args) {
  return tir::call(name, kWord, std::move(args));
}

bool is_string(RelationContext& ctx, const TensorTypeNode& t) {
  return require(ctx, t.dtype.is_string(), codes::type_dtype, "needs strings", "string",
                 t.dtype.to_string());
}

// The first argument's strings, and with a second one a single string for all of them.
const TensorTypeNode* strings_with_one(RelationContext& ctx, const char* what) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr || !is_string(ctx, *x)) return nullptr;
  if (ctx.size() == 1) return x;
  const TensorTypeNode* one = ctx.tensor(1);
  bool fits = one != nullptr && is_string(ctx, *one) &&
              require(ctx, one->rank() == 0, codes::type_rank,
                      std::string("the ") + what + " is one string", "0 dimensions",
                      shape_text(one->shape));
  return fits ? x : nullptr;
}

// ---- text.concat

Type concat_relation(RelationContext& ctx) {
  const TensorTypeNode* a = ctx.tensor(0);
  return a == nullptr || !is_string(ctx, *a) ? nullptr : broadcast(ctx);
}

TirTensor concat(const ComputeContext& ctx) {
  const std::vector<PrimExpr>& shape = ctx.outputs[0].shape;
  return tir::compute("T_text_concat", shape, [&](const Indices& i) {
    return text_call("text_concat", {broadcast_read(ctx.inputs[0], i, shape),
                                     broadcast_read(ctx.inputs[1], i, shape)});
  });
}

// ---- text.change_case

struct ChangeCaseAttrs : AttrsOf<ChangeCaseAttrs> {
  bool upper = false;
  static AttrsList describe() {
    return {"relay.attrs.TextChangeCaseAttrs",
            {attribute("upper", &Self::upper, "To upper case, not to lower.")}};
  }
};

Type change_case_relation(RelationContext& ctx) { return Type(strings_with_one(ctx, "")); }

TirTensor change_case(const ComputeContext& ctx) {
  PrimExpr upper = text_word(ctx.attrs<ChangeCaseAttrs>().upper ? 1 : 0);
  return tir::compute("T_text_case", ctx.outputs[0].shape, [&](const Indices& i) {
    return text_call("text_case", {ctx.inputs[0](i), upper});
  });
}

// ---- text.full_match

Type full_match_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "pattern");
  return x == nullptr ? nullptr : Type(tensor_type(x->shape, DType::Bool()));
}

TirTensor full_match(const ComputeContext& ctx) {
  return tir::compute("T_text_full_match", ctx.outputs[0].shape, [&](const Indices& i) {
    return ne(text_call("text_match", {ctx.inputs[0](i), ctx.inputs[1](Indices{})}), text_word(0));
  });
}

// ---- text.hash

Type text_hash_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "");
  return x == nullptr ? nullptr : Type(tensor_type(x->shape, DType::UInt(64)));
}

TirTensor text_hash(const ComputeContext& ctx) {
  return tir::compute("T_text_hash", ctx.outputs[0].shape, [&](const Indices& i) {
    return tir::cast(DType::UInt(64), text_call("string_hash", {ctx.inputs[0](i)}));
  });
}

// ---- text.format and text.parse

Type format_relation(RelationContext& ctx) {
  const TensorTypeNode* x = ctx.tensor(0);
  if (x == nullptr ||
      !require(ctx, runtime::text_number(x->dtype).has_value(), codes::type_dtype,
               "needs numbers or bools", "a dtype of numbers", x->dtype.to_string())) {
    return nullptr;
  }
  return tensor_type(x->shape, DType::String());
}

TirTensor format(const ComputeContext& ctx) {
  TirTensor x = ctx.inputs[0];
  return tir::compute("T_text_format", ctx.outputs[0].shape, [&](const Indices& i) {
    return text_call("text_format", {number_word(x(i)), text_number_of(x->dtype)});
  });
}

struct ParseAttrs : AttrsOf<ParseAttrs> {
  DType dtype = DType::Float(32);
  static AttrsList describe() {
    return {"relay.attrs.TextParseAttrs",
            {attribute("dtype", &Self::dtype, "dtype of the result: integers or floats.")}};
  }
};

Type parse_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "");
  const DType to = ctx.attrs<ParseAttrs>().dtype;
  if (x == nullptr ||
      !require(ctx, to.is_integer() || to.is_floating(), codes::op_bad_attribute,
               "dtype is not one that text is read as", "integers or floats", to.to_string())) {
    return nullptr;
  }
  return tensor_type(x->shape, to);
}

TirTensor parse(const ComputeContext& ctx) {
  const DType to = ctx.outputs[0].dtype;
  const bool is_float = to.is_floating();
  // Halves are rounded from float64, which decides ties as the text does but for the 17th digit.
  const DType read = to.is_float(32) ? to : is_float ? DType::Float(64) : to;
  return tir::compute("T_text_parse", ctx.outputs[0].shape, [&](const Indices& i) {
    return tir::cast(to, tir::call(is_float ? "text_parse_float" : "text_parse_int",
                                   is_float ? DType::Float(64) : kWord,
                                   {ctx.inputs[0](i), text_number_of(read)}));
  });
}

// ---- text.count_parts and text.split

struct SplitAttrs : AttrsOf<SplitAttrs> {
  int64_t maxsplit = -1;
  static AttrsList describe() {
    return {"relay.attrs.TextSplitAttrs",
            {attribute("maxsplit", &Self::maxsplit,
                       "The most cuts of a string, the rest of which is the last part; -1: any "
                       "number.")}};
  }
};

bool valid_maxsplit(RelationContext& ctx) {
  constexpr int64_t kMost = INT32_MAX - 1;
  const int64_t cuts = ctx.attrs<SplitAttrs>().maxsplit;
  return require(ctx, cuts >= -1 && cuts <= kMost, codes::op_bad_attribute,
                 "maxsplit is not a number of cuts", "-1 or more", std::to_string(cuts));
}

Type count_parts_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "delimiter");
  if (x == nullptr || !valid_maxsplit(ctx)) return nullptr;
  return tensor_type(x->shape, DType::Int(64));
}

PrimExpr count_of(const PrimExpr& text, const PrimExpr& delimiter, int64_t maxsplit) {
  return text_call("text_count", {text, delimiter, text_word(maxsplit + 1)});
}

TirTensor count_parts(const ComputeContext& ctx) {
  return tir::compute("T_text_count_parts", ctx.outputs[0].shape, [&](const Indices& i) {
    return count_of(ctx.inputs[0](i), ctx.inputs[1](Indices{}), ctx.attrs<SplitAttrs>().maxsplit);
  });
}

Type split_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "delimiter");
  if (x == nullptr || !valid_maxsplit(ctx)) return nullptr;
  std::vector<Dim> shape = x->shape;
  shape.push_back(dim_any());
  return tensor_type(std::move(shape), DType::String());
}

// The shape of the strings with an axis behind it that is as long as `count` says of the longest.
TirTensor longest_sizes(const char* name, const ComputeContext& ctx,
                        const std::function<PrimExpr(PrimExpr, PrimExpr)>& count) {
  const size_t rank = static_cast<size_t>(ctx.inputs[0]->rank());
  return tir::imperative(
      name, kIndex, {index(static_cast<int64_t>(rank + 1))}, {ctx.inputs[0], ctx.inputs[1]},
      [=](const std::vector<Buffer>& in, const Buffer& sizes) {
        Cell most("most", kIndex);
        Stmt all = each_element(in[0]->shape, [&](const Indices& i) {
          return most.set(max(most.get(), count(load(in[0], i), load(in[1], Indices{}))));
        });
        std::vector<Stmt> steps{most.set(index(0)), all};
        for (size_t d = 0; d <= rank; ++d) {
          steps.push_back(store(sizes, {index(static_cast<int64_t>(d))},
                                d < rank ? in[0]->shape[d] : most.get()));
        }
        return most.in(seq(std::move(steps)));
      });
}

TirTensor split_sizes(const ComputeContext& ctx) {
  const int64_t maxsplit = ctx.attrs<SplitAttrs>().maxsplit;
  return longest_sizes("T_text_split_sizes", ctx,
                       [=](const PrimExpr& x, const PrimExpr& delimiter) {
                         return count_of(x, delimiter, maxsplit);
                       });
}

TirTensor split(const ComputeContext& ctx) {
  const int64_t cuts = (ctx.attrs<SplitAttrs>().maxsplit + 1) << 32;
  return tir::compute("T_text_split", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at(i.begin(), i.end() - 1);
    return text_call("text_part", {ctx.inputs[0](at), ctx.inputs[1](Indices{}),
                                   text_word(cuts) + tir::cast(kWord, i.back())});
  });
}

// ---- text.tokens

struct TokensAttrs : AttrsOf<TokensAttrs> {
  bool between = true;
  int64_t least = 1;
  static AttrsList describe() {
    return {"relay.attrs.TextTokensAttrs",
            {attribute("between", &Self::between,
                       "Tokens are what is between matches of the patterns, which cut one after "
                       "another; else they are the matches of the one pattern."),
             attribute("least", &Self::least, "The fewest letters of a token.")}};
  }
};

Type tokens_relation(RelationContext& ctx) {
  const TensorTypeNode* x = strings_with_one(ctx, "list of patterns");
  const TensorTypeNode* frame = ctx.tensor(2);
  if (x == nullptr || frame == nullptr || !is_string(ctx, *frame)) return nullptr;
  const int64_t least = ctx.attrs<TokensAttrs>().least;
  const bool framed =
      frame->rank() == 1 && (as_const(frame->shape[0]) == 1 || as_const(frame->shape[0]) == 3);
  if (!require(ctx, framed, codes::type_shape,
               "the frame is the padding, or the padding, the first and the last token",
               "(1,) or (3,)", shape_text(frame->shape)) ||
      !require(ctx, least >= 1 && least <= runtime::kMostTokenLetters, codes::op_bad_attribute,
               "least is not a number of letters", "1 or more", std::to_string(least))) {
    return nullptr;
  }
  std::vector<Dim> shape = x->shape;
  shape.push_back(dim_any());
  return tensor_type(std::move(shape), DType::String());
}

PrimExpr rule_of(const ComputeContext& ctx) {
  const auto& attrs = ctx.attrs<TokensAttrs>();
  return text_word(runtime::token_word(attrs.between, attrs.least));
}

bool has_marks(const ComputeContext& ctx) { return tir::as_int(ctx.inputs[2]->shape()[0]) == 3; }

// Where no string has a token the last axis is empty, marks or not.
TirTensor tokens_sizes(const ComputeContext& ctx) {
  const PrimExpr rule = rule_of(ctx);
  const int64_t marks = has_marks(ctx) ? 2 : 0;
  return longest_sizes(
      "T_text_tokens_sizes", ctx, [=](const PrimExpr& x, const PrimExpr& patterns) {
        PrimExpr n = text_call("text_count", {x, patterns, rule});
        return marks == 0 ? n : select(gt(n, text_word(0)), n + text_word(marks), n);
      });
}

TirTensor tokens(const ComputeContext& ctx) {
  const PrimExpr rule = rule_of(ctx);
  const bool marks = has_marks(ctx);
  return tir::compute("T_text_tokens", ctx.outputs[0].shape, [&](const Indices& i) {
    Indices at(i.begin(), i.end() - 1);
    PrimExpr x = ctx.inputs[0](at), patterns = ctx.inputs[1](Indices{});
    PrimExpr n = text_call("text_count", {x, patterns, rule});
    auto token = [&](const PrimExpr& place) {
      return text_call("text_part", {x, patterns, rule + place});
    };
    auto frame = [&](int64_t place) { return ctx.inputs[2](Indices{index(place)}); };
    PrimExpr place = tir::cast(kWord, i.back());
    if (!marks) return select(lt(place, n), token(place), frame(0));
    PrimExpr behind = select(eq(place, n + text_word(1)), frame(2), frame(0));
    PrimExpr inside = token(max(place - text_word(1), text_word(0)));
    return select(eq(place, text_word(0)), frame(1), select(le(place, n), inside, behind));
  });
}

// What the rows have in common: no gradients, no layouts, nothing to add and multiply.
OpInfo text_row(OpInfo row) {
  row.support_level = 3;
  row.effect = Effect::Pure;
  row.takes_narrow = true;
  row.layout = Absent::AxesAsWritten;
  row.memory = Absent::OnePiece;
  row.precision = Precision::Never;
  row.cost = Absent::NoArithmetic;
  row.gradient = Absent::NotDifferentiable;
  row.batching = Absent::LaneByLane;
  row.expected = Absent::ByNumPy;
  return row;
}

}  // namespace

template <>
std::span<const OpInfo> rows_of<Family::Text>() {
  static const OpInfo rows[] = {
      text_row({
          .name = "text.concat",
          .doc = "The strings of both sides, concatenated.",
          .args = {{"lhs", "The first strings."}, {"rhs", "What stands behind them."}},
          .fusion = FusionClass::Broadcast,
          .relation = concat_relation,
          .compute = compute_rule(concat),
          .examples = {{{"Tensor[(2, 3), string]", "Tensor[(3,), string]"}, ""}},
      }),
      text_row({
          .name = "text.change_case",
          .doc = "The strings in lower or in upper case, whatever the language of the machine.",
          .args = {{"data", "The strings."}},
          .attrs = &ChangeCaseAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .relation = change_case_relation,
          .compute = compute_rule(change_case),
          .examples = {{{"Tensor[(2, 3), string]"}, ""},
                       {{"Tensor[(2, 3), string]"}, "upper=True"}},
      }),
      text_row({
          .name = "text.full_match",
          .doc =
              "Whether a pattern matches the whole of a string, in RE2's syntax. A pattern that is "
              "none fails when the program runs.",
          .args = {{"data", "The strings."}, {"pattern", "One string."}},
          .fusion = FusionClass::Injective,
          .may_end_run = on_every_call,
          .relation = full_match_relation,
          .compute = compute_rule(full_match),
          .examples = {{{"Tensor[(2, 3), string]", "Tensor[(), string]"}, ""}},
      }),
      text_row({
          .name = "text.hash",
          .doc = "A hash of each string's bytes, the same in all runs and versions of Relay.",
          .args = {{"data", "The strings."}},
          .fusion = FusionClass::Opaque,
          .relation = text_hash_relation,
          .compute = compute_rule(text_hash),
          .examples = {{{"Tensor[(2, 3), string]"}, ""}},
      }),
      text_row({
          .name = "text.format",
          .doc =
              "Numbers as text: with the fewest digits that give a float back, NaN, INF and -INF; "
              "True and False.",
          .args = {{"data", "The numbers."}},
          .fusion = FusionClass::ElemWise,
          .relation = format_relation,
          .compute = compute_rule(format),
          .examples = {{{"Tensor[(2, 3), int32]"}, ""}, {{"Tensor[(2, 3), bool]"}, ""}},
      }),
      text_row({
          .name = "text.parse",
          .doc =
              "The numbers that strings are, plain or in scientific notation, INF and NaN in any "
              "case. A string that is not a number of the dtype fails when the program runs.",
          .args = {{"data", "The strings."}},
          .attrs = &ParseAttrs::static_info(),
          .fusion = FusionClass::ElemWise,
          .may_end_run = on_every_call,
          .relation = parse_relation,
          .compute = compute_rule(parse),
          .examples = {{{"Tensor[(2, 3), string]"}, "dtype=\"int64\""},
                       {{"Tensor[(2, 3), string]"}, ""}},
      }),
      text_row({
          .name = "text.count_parts",
          .doc =
              "How many parts a string has between delimiters, or with an empty delimiter between "
              "white space.",
          .args = {{"data", "The strings."}, {"delimiter", "One string."}},
          .attrs = &SplitAttrs::static_info(),
          .fusion = FusionClass::Injective,
          .relation = count_parts_relation,
          .compute = compute_rule(count_parts),
          .examples = {{{"Tensor[(2, 3), string]", "Tensor[(), string]"}, ""}},
      }),
      text_row({
          .name = "text.split",
          .doc = "The parts of each string between delimiters, or with an empty delimiter between "
                 "white space, along a new last axis; strings with fewer parts have empty ones at "
                 "the end.",
          .args = {{"data", "The strings."}, {"delimiter", "One string."}},
          .attrs = &SplitAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .relation = split_relation,
          .compute = compute_rule_with_shape(split_sizes, split),
          .examples = {{{"Tensor[(2, 3), string]", "Tensor[(), string]"}, ""},
                       {{"Tensor[(4,), string]", "Tensor[(), string]"}, "maxsplit=1"}},
      }),
      text_row({
          .name = "text.tokens",
          .doc =
              "The tokens of each string along a new last axis, padded at the end; with marks, the "
              "first and the last token of the frame stand around them. Where no string has a "
              "token the axis is empty. A pattern that is none, or a separator that matches the "
              "empty string, fails when the program runs.",
          .args = {{"data", "The strings."},
                   {"patterns",
                    "One string: regular expressions in RE2's syntax, without flags, "
                    "Unicode classes, \\Q and \\C, separated by line feeds."},
                   {"frame", "The padding; or the padding, the first and the last token."}},
          .attrs = &TokensAttrs::static_info(),
          .fusion = FusionClass::Opaque,
          .may_end_run = on_every_call,
          .relation = tokens_relation,
          .compute = compute_rule_with_shape(tokens_sizes, tokens),
          .examples = {{{"Tensor[(2, 3), string]", "Tensor[(), string]", "Tensor[(1,), string]"},
                        ""},
                       {{"Tensor[(4,), string]", "Tensor[(), string]", "Tensor[(3,), string]"},
                        "between=False, least=2"}},
      }),
  };
  return rows;
}

}  // namespace relay::ops
