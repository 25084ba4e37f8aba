// Numbers, tensors and statements of a loop's kernel while it is composed (lower/compose_loop.h).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ir/expr.h"
#include "lower/loop_sizes.h"
#include "tir/compute.h"
#include "tir/passes/statements.h"
#include "tir/stmt.h"

namespace relay {

// What a variable stands for: a number, a tensor in memory, a tensor whose elements are computed
// where they are read, or a tuple of such.
struct LoopValue {
  tir::PrimExpr scalar{};
  tir::Buffer buffer{};
  // The depth of the loop whose iterations may write to the memory; -1: none may.
  int owner = -1;
  std::vector<tir::Var> axes{};
  tir::PrimExpr element{};
  std::vector<tir::PrimExpr> shape{};
  // The same, of a tensor whose type has open sizes.
  std::vector<Dim> sizes{};
  DType dtype{};
  bool is_tuple = false;
  std::vector<LoopValue> fields{};
};

// Registers and memory, variables that hold from a place on, and what a variable of the program stands for.
class LoopStatements {
 protected:
  using Buffer = tir::Buffer;
  using PrimExpr = tir::PrimExpr;
  using Stmt = tir::Stmt;
  using Indices = tir::Indices;
  using Value = LoopValue;

  using NodeMap = tir::NodeMap;
  // The registers of a dtype: elements of one buffer, at constant indices.
  struct File {
    Buffer buffer;
    int64_t count = 0;
  };
  PrimExpr slot(DType dtype);
  void set(const PrimExpr& slot, const PrimExpr& value);
  // The number in a register of its own, unless it is a constant.
  PrimExpr keep(const PrimExpr& e);
  // A number as a variable of what follows; one that is made of variables alone has one variable.
  tir::Var named(const PrimExpr& e);
  // Whether it is computed from variables by a few additions and constant factors, which what is known of the variables bounds.
  static bool is_index(const PrimExpr& e);
  // Whether it is the same wherever its variables hold, and small.
  static bool is_of_variables(const PrimExpr& e);
  void forget_numbers(size_t from);
  Buffer fresh(DType dtype, const std::vector<PrimExpr>& shape);
  Value in_memory(const Buffer& b, int owner);
  void emit(Stmt s);
  // Statements, with the variables that hold from a place on.
  struct Named {
    size_t at;
    tir::Var var;
    PrimExpr value;
  };
  static Stmt joined(std::vector<Stmt> stmts, const std::vector<Named>& lets);
  template <class F>
  Stmt captured(F&& f) {
    std::vector<Stmt> outer = std::exchange(out_, {});
    std::vector<Named> outer_lets = std::exchange(lets_, {});
    const int open = lets_open_;
    const int around = std::exchange(region_, ++regions_made_);
    const size_t known = sizes_.mark(), numbers = numbers_.size();
    f();
    sizes_.forget(known);
    forget_numbers(numbers);
    region_ = around;
    lets_open_ = open;
    Stmt body = joined(std::exchange(out_, std::move(outer)), lets_);
    lets_ = std::move(outer_lets);
    return body;
  }
  static void flatten(const Value& v, std::vector<Value>& out);
  // The memory that a value reads.
  static void memory_of(const Value& v, const std::function<void(const Node*)>& visit);
  static bool reads(const Value& v, const Node* buffer);
  void bind(const Node* var, Value v);
  PrimExpr read(const Value& v, const Indices& at) const;
  // buffer = v, element by element: the nest of loops, and that on threads where it is long.
  Stmt filling(const Buffer& buffer, const Value& v) const;
  // A nest on threads, inside of a loop only: on other devices a nest at the top of a kernel is a kernel of its own, which
  // knows no registers.
  Stmt shared(const Stmt& nest) const;
  void fill(const Buffer& buffer, const Value& v);
  // In memory of its own. E0401 where nothing tells how much it takes: see has_room.
  Value materialised(const Value& v);
  bool has_room(const Value& v);
  // Loads of the tensors that rules are given become what they stand for.
  NodeRef resolved(const NodeRef& node);
  // A tensor for a rule to read.
  tir::Tensor handle(const Value& v);
  static Value unflatten(const Type& type, const std::vector<Value>& parts, size_t& next);
  // Loops over `axes` around what `body` emits.
  template <class F>
  void nest(const std::vector<tir::IterVar>& axes, F&& body) {
    Stmt inside = captured(body);
    for (size_t d = axes.size(); d-- > 0;)
      inside = tir::for_(axes[d]->var, axes[d]->min, axes[d]->extent, inside);
    emit(inside);
  }
  DimScope dims_;
  tir::Analyzer analyzer_;
  LoopSizes sizes_{
      dims_,
      analyzer_,
      {.keep = [this](const PrimExpr& e) { return keep(e); },
       .emit = [this](Stmt s) { emit(std::move(s)); },
       .resolve = [this](const Stmt& s) { return Stmt::unchecked(resolved(s)); },
       .fresh = [this](DType t, const std::vector<PrimExpr>& shape) { return fresh(t, shape); }}};
  std::unordered_map<const Node*, Value> values_;
  // The variables whose values read a buffer, now or before.
  std::unordered_map<const Node*, std::vector<const Node*>> readers_;
  // What the tensors that rules read stand for.
  std::unordered_map<const Node*, Value> handles_;
  std::vector<tir::Tensor> kept_;  // keys of handles_ must not be reused
  std::map<std::string, File> files_;
  std::vector<Buffer> locals_;
  int depth_ = 0;
  // The loops around what is being composed.
  int loops_around_ = 0;
  // The branch or the body of a loop that is being composed, and those in which variables are bound.
  int region_ = 0, regions_made_ = 0;
  std::unordered_map<const Node*, int> regions_;
  std::vector<Stmt> out_;
  std::vector<Named> lets_;
  int lets_made_ = 0, lets_open_ = 0;
  // Variables of what is being composed that stand for numbers made of variables alone, and their hashes.
  std::vector<uint64_t> numbers_;
  std::unordered_map<uint64_t, Named> number_of_;
};

}  // namespace relay
