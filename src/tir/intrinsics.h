// The functions that a Call may name: the one list of them.
//
// The builder `call` checks name, number of arguments and dtypes against it, the interpreter
// computes what it says, and code generation takes its own inline form or libm's function of the
// same name.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tir/expr.h"

namespace relay::tir {

// What dtypes an intrinsic takes and gives, lane by lane.
enum class IntrinsicRule {
  Float,    // floats of one dtype; gives that dtype
  Number,   // a float or an integer; gives its dtype
  Integer,  // an integer; gives its dtype
  Test,     // a float; gives bool
  Bits,     // anything; gives any dtype of as many bits
  Any,      // anything; gives its dtype
  Lanes,    // a vector; gives one element of its dtype
  Effect,   // a Load that is not carried out; the result means nothing
  Word,     // a Load of a byte or of bfloat16; gives int32
  Dot,      // int32; gives int32
  String,  // words of strings or images, numbers as int64 or float64; gives such a word. Calls what
           // it names in runtime/core/string_functions.h
  FloatDot,  // int32; gives float32
};

struct Intrinsic {
  std::string_view name;
  int arity;
  IntrinsicRule rule;
  std::string_view doc;
  // The value for floats; arguments above the arity are ignored. Null for Integer, Bits, Any,
  // Lanes and Effect; for Test the result is 0 or 1.
  double (*wide)(double a, double b, double c);
  float (*narrow)(float a, float b, float c);
};

std::span<const Intrinsic> intrinsics();

// What "pow" is of integers, in 64 bits; a narrower one is the result's low bits.
int64_t power_of_integers(int64_t a, int64_t b, bool is_signed);

// The row of that name, or null.
const Intrinsic* find_intrinsic(std::string_view name);

// What a call of rule Word, Dot or FloatDot computes, in other expressions: what the interpreter does.
PrimExpr in_plain_terms(const CallNode& call);

// What is wrong with a call (unknown name, arguments that do not fit), or nothing.
std::optional<std::string> intrinsic_defect(std::string_view name, DType result,
                                            const std::vector<PrimExpr>& args);

}  // namespace relay::tir
