// Building blocks of imperative rules: what sorts, scans and scatters say in statements.
#pragma once

#include <functional>
#include <string>

#include "ops/common.h"

namespace relay::ops {

// A mutable scalar inside a kernel; it becomes a machine register.
class Cell {
 public:
  Cell(std::string name, runtime::DType dtype)
      : buffer_(tir::buffer(std::move(name), dtype, {tir::index(1)}, tir::Scope::Local)) {}
  PrimExpr get() const { return tir::load(buffer_, {tir::index(0)}); }
  tir::Stmt set(PrimExpr value) const {
    return tir::store(buffer_, {tir::index(0)}, std::move(value));
  }
  // The statement in which the cell exists.
  tir::Stmt in(tir::Stmt body) const { return tir::allocate(buffer_, std::move(body)); }

 private:
  tir::Buffer buffer_;
};

// A loop over 0 .. extent - 1.
tir::Stmt each(const std::string& name, const PrimExpr& extent,
               const std::function<tir::Stmt(const PrimExpr&)>& body,
               tir::ForKind kind = tir::ForKind::Serial);

// The same for stores that do not depend on each other's, or that combine all iterations in one
// place: vectors of `lanes`, then the rest.
tir::Stmt each_in_lanes(const std::string& name, const PrimExpr& extent,
                        const std::function<tir::Stmt(const PrimExpr&)>& body, int64_t lanes = 16);

// A statement in which `value` has a name and is computed once.
tir::Stmt named(const std::string& name, const PrimExpr& value,
                const std::function<tir::Stmt(const PrimExpr&)>& body);

// Runs `body` for every index of a shape, in row-major order.
tir::Stmt each_element(const std::vector<PrimExpr>& shape,
                       const std::function<tir::Stmt(const Indices&)>& body);

// Below this many operations waking other threads costs more than they save.
inline constexpr int64_t kMinParallelWork = int64_t{1} << 15;

// Runs `body` for every line of a shape along `axis`, on several threads where that pays; the body
// gets the index of an element of the line from its place in it. `work` is about the number of
// operations for an element.
using LineIndex = std::function<Indices(const PrimExpr& place)>;
tir::Stmt each_line(const std::vector<PrimExpr>& shape, size_t axis, int64_t work,
                    const std::function<tir::Stmt(const LineIndex&)>& body);

// Whether 0 <= i < size.
PrimExpr is_inside(const PrimExpr& i, const PrimExpr& size);
// Fails the kernel with "index out of bounds" unless 0 <= i < size. `name_it` says which index is outside.
tir::Stmt check_index(const PrimExpr& i, const PrimExpr& size, tir::Stmt name_it = nullptr);

// The number of elements of a shape.
PrimExpr count_elements(const std::vector<PrimExpr>& shape);

// The dtype in which values of `d` are compared and accumulated: float32 for 16-bit floats, uint8
// for bool.
runtime::DType working_dtype(runtime::DType d);

}  // namespace relay::ops
