#include "lower/rules/contraction_sum.h"

#include <algorithm>
#include <numeric>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::PrimExpr;
using tir::Schedule;

namespace {

// How long an open sum is taken to be.
constexpr double kTypicalSum = 64;

bool uses(const PrimExpr& e, const tir::Var& v) { return tir::uses_var(e, v.get()); }
bool uses(const tir::LoadNode& l, const tir::Var& v) {
  return std::any_of(l.indices.begin(), l.indices.end(),
                     [&](const PrimExpr& e) { return uses(e, v); });
}

// Columns at the last index of `l`, or in the last two as panel and place in the panel, before the elements of the sum where
// a word of them, four bytes, stands together. Sets the panel and `bytes`; false when neighbouring columns are no neighbours in memory.
bool columns_are_contiguous(const tir::LoadNode& l, const tir::Var& column, int64_t& panel,
                            bool& bytes) {
  if (l.indices.empty()) return true;  // one number for all
  size_t last = l.indices.size() - 1;
  if (last > 0 && !uses(l.indices[last], column) && uses(l, column) && l.dtype.bits < 32 &&
      tir::as_int(l.buffer->shape[last]) == 32 / l.dtype.bits) {
    bytes = l.dtype.bits == 8;
    --last;
  }
  for (size_t d = 0; d < last; ++d) {
    if (!uses(l.indices[d], column)) continue;
    auto* quotient = as<tir::BinaryNode>(l.indices[d]);
    if (quotient == nullptr || quotient->op != tir::BinaryOp::FloorDiv) return false;
    auto width = tir::as_int(quotient->b);
    if (!width || (panel != 0 && panel != *width)) return false;
    panel = *width;
  }
  return true;
}

// The columns in one group when the operand moves with its columns by their group only, as the data
// of a grouped convolution do; 0 when it moves otherwise.
int64_t columns_in_group(const tir::LoadNode& l, const tir::Var& column) {
  int64_t width = 0;
  bool only = true;
  // Below a quotient nothing is looked at.
  post_order_if(
      ref(l),
      [&](const Node& n) {
        auto* quotient = as<tir::BinaryNode>(&n);
        if (quotient == nullptr || quotient->op != tir::BinaryOp::FloorDiv ||
            quotient->a.get() != column.get()) {
          return true;
        }
        auto by = tir::as_int(quotient->b);
        only = only && by && (width == 0 || width == *by);
        if (by) width = *by;
        return false;
      },
      [&](const Node& n) { only = only && &n != column.get(); });
  return only ? width : 0;
}

// Whether lanes over the columns would be put together one by one: elements of 16 bits, for which there is no gather, by a
// quotient of the column. The gradient of a pool took half a minute to compile so. A place in a panel is a remainder.
bool scatters_halves(const tir::LoadNode& l, const tir::Var& column) {
  if (l.buffer->dtype.bits != 16 || l.indices.empty()) return false;
  bool by_quotient = false;
  post_order(l.indices.back(), [&](const Node& n) {
    auto* e = as<tir::BinaryNode>(&n);
    by_quotient =
        by_quotient || (e != nullptr && e->op == tir::BinaryOp::FloorDiv && uses(e->a, column));
  });
  return by_quotient;
}

// Bytes from the element that a row reads to the next row's.
std::optional<int64_t> stride_of(const tir::LoadNode& l, const tir::Var& row) {
  std::optional<int64_t> out;
  int64_t stride = l.buffer->dtype.bytes();
  for (size_t d = l.indices.size(); d-- > 0;) {
    if (uses(l.indices[d], row)) {
      PrimExpr next = PrimExpr::unchecked(substitute(l.indices[d], {{row.get(), row + 1}}));
      auto step = tir::Analyzer().constant_difference(next, l.indices[d]);
      out = stride * (step ? *step : 1);
    }
    auto extent = tir::as_int(l.buffer->memory_shape()[d]);
    stride *= extent ? *extent : 1;
  }
  return out;
}

// The sums of products that an operator's row declares say what their iterations are; of others (the mean of a window)
// it is seen from what is read.
ContractionRole role_of(const tir::IterVar& iter, const std::vector<const tir::LoadNode*>& loads,
                        const tir::Var& column) {
  if (iter->role != ContractionRole::None) return iter->role;
  bool in_all = true, with_columns = false;
  for (const tir::LoadNode* l : loads) {
    bool here = uses(*l, iter->var);
    in_all = in_all && here;
    with_columns = with_columns || (here && uses(*l, column));
  }
  if (iter->var == column) return in_all ? ContractionRole::Batch : ContractionRole::Column;
  return with_columns ? ContractionRole::Batch : ContractionRole::Row;
}

}  // namespace

bool Sum::is_open() const {
  return std::find(extents.begin(), extents.end(), kOpen) != extents.end();
}

std::optional<Sum> describe_sum(const Schedule& s, const BlockRV& rv) {
  Sum out;
  out.block = rv;
  Block b = s.block(rv);
  for (const tir::IterVar& i : b->iters) {
    auto extent = tir::as_int(i->extent);
    if (extent == 0 || i->kind == IterKind::Opaque) return std::nullopt;
    if (i->kind == IterKind::Reduce) {
      out.reduction *= extent ? static_cast<double>(*extent) : kTypicalSum;
    } else {
      out.spatial.push_back(i);
      out.extents.push_back(extent.value_or(kOpen));
    }
  }
  if (out.spatial.size() < 2 || b->writes.size() != 1) return std::nullopt;
  // Numbers of a width that sums are taken in.
  out.dtype = b->writes[0]->buffer->dtype;
  if (out.dtype.is_bool() || out.dtype.bits < 32) return std::nullopt;
  const tir::Var& column = out.spatial.back()->var;
  const tir::IterVar& row = out.spatial[out.spatial.size() - 2];
  std::vector<const tir::LoadNode*> loads;
  post_order(b->body, [&](const Node& n) {
    auto* l = as<tir::LoadNode>(&n);
    if (l != nullptr && !(l->buffer == b->writes[0]->buffer)) loads.push_back(l);
  });
  for (const tir::LoadNode* l : loads) {
    bool has_columns = uses(*l, column);
    if (int64_t width = has_columns ? columns_in_group(*l, column) : 0; width != 0) {
      out.group = out.group == 0 ? width : std::gcd(out.group, width);
      has_columns = false;
    } else if (!columns_are_contiguous(*l, column, out.panel, out.bytes)) {
      return std::nullopt;
    }
    if (has_columns && scatters_halves(*l, column)) return std::nullopt;
    if (has_columns) {
      out.weight_bytes = l->buffer->dtype.bytes();
    } else {
      out.row_stride = stride_of(*l, row->var).value_or(out.row_stride);
    }
  }
  ContractionRole last = role_of(out.spatial.back(), loads, column);
  out.depthwise = last == ContractionRole::Batch || last == ContractionRole::Group;
  out.rows_span_two_axes =
      !out.depthwise && out.spatial.size() > 2 &&
      role_of(out.spatial[out.spatial.size() - 3], loads, column) == ContractionRole::Row;
  return out;
}

std::optional<Sum> find_sum(const Schedule& s) {
  std::optional<BlockRV> found;
  for (const BlockRV& rv : s.get_blocks()) {
    if (!s.block(rv)->init || !reduces(s.block(rv))) continue;
    if (found) return std::nullopt;
    found = rv;
  }
  return found ? describe_sum(s, *found) : std::nullopt;
}

int64_t lanes_of(const Sum& sum, const Target& target) { return target.lanes(sum.dtype.bits); }

std::string arithmetic_of(const Sum& sum, const Decider& decide) {
  std::string dtype = sum.dtype.to_string();
  if (sum.matrix) return dtype + " by a matrix unit";
  if (sum.bytes) return dtype + " by dot products of four bytes";
  const bool fused =
      sum.dtype.is_floating() && decide.pays([](const Target& target) { return target.has_fma; });
  return dtype + (fused ? " by fused multiply-add" : " by multiply and add");
}

}  // namespace relay
