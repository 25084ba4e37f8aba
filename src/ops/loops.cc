#include "ops/loops.h"

#include "runtime/core/kernel_abi.h"

namespace relay::ops {

using namespace tir;  // NOLINT

Stmt each(const std::string& name, const PrimExpr& extent,
          const std::function<Stmt(const PrimExpr&)>& body, ForKind kind) {
  tir::Var v = tir::var(name);
  return for_(v, index(0), extent, body(v), kind);
}

Stmt each_in_lanes(const std::string& name, const PrimExpr& extent,
                   const std::function<Stmt(const PrimExpr&)>& body, int64_t lanes) {
  auto size = as_int(extent);
  auto vectors = [&](const PrimExpr& begin) {
    return each(
        name, index(lanes), [&](const PrimExpr& lane) { return body(begin + lane); },
        ForKind::Vectorized);
  };
  std::vector<Stmt> out;
  if (!size || *size >= lanes) {
    out.push_back(each(name + "_vector", floor_div(extent, index(lanes)),
                       [&](const PrimExpr& v) { return vectors(v * lanes); }));
  }
  if (!size || *size % lanes != 0) {
    PrimExpr rest = floor_mod(extent, index(lanes));
    out.push_back(
        each(name + "_rest", rest, [&](const PrimExpr& i) { return body(extent - rest + i); }));
  }
  return seq(std::move(out));
}

Stmt named(const std::string& name, const PrimExpr& value,
           const std::function<Stmt(const PrimExpr&)>& body) {
  tir::Var v = tir::var(name, value->dtype);
  return let_stmt(v, value, body(v));
}

Stmt each_element(const std::vector<PrimExpr>& shape,
                  const std::function<Stmt(const Indices&)>& body) {
  std::vector<tir::Var> loops;
  Indices at;
  for (size_t d = 0; d < shape.size(); ++d) {
    loops.push_back(tir::var("i" + std::to_string(d)));
    at.push_back(loops.back());
  }
  Stmt out = body(at);
  for (size_t d = shape.size(); d-- > 0;) out = for_(loops[d], index(0), shape[d], out);
  return out;
}

Stmt each_line(const std::vector<PrimExpr>& shape, size_t axis, int64_t work,
               const std::function<Stmt(const LineIndex&)>& body) {
  std::vector<PrimExpr> others = shape;
  others.erase(others.begin() + static_cast<std::ptrdiff_t>(axis));
  PrimExpr lines = count_elements(others);
  auto total = as_int(count_elements(shape));
  bool shared = as_int(lines) != 1 && (!total || *total >= kMinParallelWork / work);
  // The line's number, taken apart into the axes that have more than one index.
  std::vector<size_t> axes;
  for (size_t d = 0; d < shape.size(); ++d) {
    if (d != axis && !is_one(shape[d])) axes.push_back(d);
  }
  auto one_line = [&](const PrimExpr& line) {
    Indices at(shape.size(), index(0));
    PrimExpr rest = line;
    for (size_t k = axes.size(); k-- > 0;) {
      at[axes[k]] = k == 0 ? rest : floor_mod(rest, shape[axes[k]]);
      rest = floor_div(rest, shape[axes[k]]);
    }
    return body([&](const PrimExpr& place) {
      Indices element = at;
      element[axis] = place;
      return element;
    });
  };
  return each("line", lines, one_line, shared ? ForKind::Parallel : ForKind::Serial);
}

PrimExpr is_inside(const PrimExpr& i, const PrimExpr& size) {
  return logical_and(ge(i, index(0)), lt(i, size));
}

Stmt check_index(const PrimExpr& i, const PrimExpr& size, Stmt name_it) {
  const PrimExpr inside = is_inside(i, size);
  Stmt ends = check(inside, RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, "an index is outside the data");
  return name_it == nullptr ? ends : if_(logical_not(inside), seq({std::move(name_it), ends}));
}

PrimExpr count_elements(const std::vector<PrimExpr>& shape) {
  PrimExpr n = index(1);
  for (const PrimExpr& d : shape) n = n * d;
  return n;
}

DType working_dtype(DType d) {
  if (d.is_bool()) return DType::UInt(8);
  return d.is_floating() && d.bits < 32 ? DType::Float(32) : d;
}

}  // namespace relay::ops
