// What calls of operators become in a loop's kernel (lower/compose_loop.h): numbers in registers, elements that are computed
// where they are read, memory that is filled, and writes in place.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lower/loop_program.h"
#include "lower/loop_statements.h"

namespace relay {

class LoopOperations : protected LoopStatements {
 protected:
  // ---- Values

  Value parameter(const Type& type, std::vector<Buffer>& params);
  Value constant(const ConstantNode& c);
  const Value& value(const Expr& e);

  // ---- Operators

  Value operator_call(const LoopItem& item, const CallNode& given);
  // Whether memory may be written in place when control is at a position: nothing reads it later. What is
  // computed from it where it is read later, is computed now.
  bool may_take(const Value& v, int position);
  // The write of elements that are computed from the tensor itself, without memory for all of them; null: there is none.
  Stmt over_itself(const Stmt& write, const Buffer& buffer, DType dtype);
  // The value with the lines that its elements read of a tensor in memory of their own:
  //
  //   v[i, j] - v[i, k] * v[m, j]   becomes   v[i, j] - t[i] * u[j]   for   t[i] = v[i, k], u[j] = v[m, j]
  Value with_lines_apart(const Buffer& buffer, Value v);

  LoopProgram reader_;

  // The places of stores in iterations that copy what they write to.
  std::vector<std::string> copies_;

  // Positions that control does not reach from here.
  std::vector<std::pair<int, int>> excluded_;

 private:
  // The call with names for the sizes of its operands that an iteration computes.
  Call with_named_operands(const CallNode& c);
  // The value of a tensor of a rule, those that it reads first.
  Value defined(const tir::Tensor& root);
  Value computed(const tir::Tensor& t);
  // A reduction, in registers.
  Value reduced(const tir::Tensor& t, const tir::ReduceNode& r);
  // The result of a rule that is statements.
  Value written(const tir::Tensor& t);
  // The statements of a rule, which write `to`.
  Stmt statements(const tir::Tensor& t, const Value& to);
  // A store of an element to itself is left out, and with it the copy of a tensor that is written in place.
  static NodeRef stored(const tir::StoreNode& s, const Value& to);
  // What a rule does that writes over `data`.
  Stmt over(const CallNode& c, const Value& data, const std::vector<Value>& args);
  Value write(const LoopItem& item, const CallNode& c, std::vector<Value> args);
};

}  // namespace relay
