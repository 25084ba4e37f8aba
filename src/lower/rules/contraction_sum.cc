#include "lower/rules/contraction_sum.h"

#include <algorithm>
#include <numeric>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/block_contraction.h"
#include "tir/schedule/loop_tree.h"

namespace relay {

using tir::Block;
using tir::BlockRV;
using tir::IterKind;
using tir::PrimExpr;
using tir::Schedule;

namespace {

bool uses(const PrimExpr& e, const tir::Var& v) { return tir::uses_var(e, v.get()); }

// How one operand is read along the columns.
struct ColumnAccess {
  bool contiguous =
      true;  // neighbouring columns are neighbours in memory, or in a panel, or read one element
  bool moves = false;  // with every column
  int64_t panel = 0;   // columns that stand together
  int64_t group = 0;   // columns that read the same elements
  bool words = false;  // the elements of the sum stand together in words of 32 bits
  bool scattered =
      false;  // lanes would be put together one by one: there is no gather of 16-bit elements
};

class Columns {
 public:
  Columns(const tir::BlockContractionNode& c, const tir::Var& column) : c_(c), column_(column) {}

  ColumnAccess access(const tir::BlockOperandNode& o) const {
    ColumnAccess out;
    if (o.axes.empty() || !uses_iteration(c_, o, column_)) return out;
    out.group = group_width(o);
    out.moves = out.group == 0;
    if (!out.moves) return out;
    size_t last = o.axes.size() - 1;
    const int bits = o.buffer->dtype.bits;
    out.scattered = bits == 16 && is_scattered(o.axes[last]);
    if (last > 0 && !uses_iteration(c_, o.axes[last], column_) && bits < 32 &&
        tir::as_int(o.buffer->shape[last]) == 32 / bits) {
      out.words = true;
      --last;
    }
    for (size_t d = 0; d < last; ++d) {
      if (!uses_iteration(c_, o.axes[d], column_)) continue;
      auto width = axis_width(o.axes[d]);
      out.contiguous = out.contiguous && width && (out.panel == 0 || out.panel == *width);
      out.panel = width.value_or(0);
    }
    return out;
  }

 private:
  // Columns that share an index along the axis; nullopt where the index is another function of the column.
  std::optional<int64_t> axis_width(const tir::BlockAxis& a) const {
    if (a.irregular || a.terms.size() != 1 || a.offset != 0 || a.terms[0].factor != 1) {
      return std::nullopt;
    }
    return quotient_width(c_, a.terms[0], column_);
  }

  // The columns in one group when the operand moves with its columns by their group only, as the data of a grouped
  // convolution do; 0 when it moves otherwise.
  int64_t group_width(const tir::BlockOperandNode& o) const {
    int64_t out = 0;
    for (const tir::BlockAxis& a : o.axes) {
      for (const tir::BlockIndexTerm& t : a.terms) {
        if (!uses_iteration(c_, t, column_)) continue;
        auto width = a.irregular ? std::nullopt : quotient_width(c_, t, column_);
        if (!width || (out != 0 && out != *width)) return 0;
        out = *width;
      }
    }
    return out;
  }

  bool is_scattered(const tir::BlockAxis& a) const {
    return std::ranges::any_of(a.terms, [&](const tir::BlockIndexTerm& t) {
      return uses_iteration(c_, t, column_) &&
             (a.irregular || quotient_width(c_, t, column_).has_value());
    });
  }

  const tir::BlockContractionNode& c_;
  const tir::Var& column_;
};

// Bytes from the element that is read to the one of the next value of the iteration.
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

// What an iteration is: stated, or, for sums that state no roles (the mean of a window), seen from the operands that move with it.
ContractionRole role_of(const tir::BlockContractionNode& c, const tir::IterVar& iter,
                        const tir::Var& column) {
  ContractionRole stated = tir::role_of(c, iter->var);
  if (stated != ContractionRole::None) return stated;
  bool in_all = true, with_columns = false;
  for (const tir::BlockOperand& o : c.operands) {
    bool here = uses_iteration(c, *o, iter->var);
    in_all = in_all && here;
    with_columns = with_columns || (here && uses_iteration(c, *o, column));
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
      out.reduction *= static_cast<double>(extent.value_or(kTypicalExtent));
      out.open_sum |= !extent;
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
  const tir::BlockContraction stated = contraction_of(*b);
  if (!stated) return std::nullopt;
  for (const tir::IterVar& i : out.spatial) out.roles.push_back(tir::role_of(*stated, i->var));
  std::vector<const tir::LoadNode*> loads;
  post_order(
      as<tir::StoreNode>(b->body)->value,
      [&](const Node& n) {
        auto* l = as<tir::LoadNode>(&n);
        if (l != nullptr && !(l->buffer == stated->result->buffer)) loads.push_back(l);
      },
      family::tir_expr);
  RELAY_CHECK(loads.size() == stated->operands.size(), b->name);
  const Columns columns(*stated, column);
  for (size_t o = 0; o < loads.size(); ++o) {
    const ColumnAccess access = columns.access(*stated->operands[o]);
    if (access.group != 0) {
      out.group = out.group == 0 ? access.group : std::gcd(out.group, access.group);
    } else if (!access.contiguous || access.scattered ||
               (access.panel != 0 && out.panel != 0 && access.panel != out.panel)) {
      return std::nullopt;
    }
    out.panel = access.panel == 0 ? out.panel : access.panel;
    if (access.words) {
      out.bytes = loads[o]->buffer->dtype.bits == 8;
      out.pairs = out.dtype.is_float(32) && std::ranges::all_of(loads, [](const auto* l) {
                    return l->buffer->dtype.is_bfloat16();
                  });
    }
    if (access.moves) {
      out.weight_bytes = loads[o]->buffer->dtype.bytes();
    } else {
      out.row_stride = stride_of(*loads[o], row->var).value_or(out.row_stride);
      out.rows_overlap = out.row_stride != 0 && reduces(b) &&
                         stride_of(*loads[o], b->iters.back()->var) == out.row_stride;
    }
  }
  ContractionRole last = role_of(*stated, out.spatial.back(), column);
  out.depthwise = last == ContractionRole::Batch || last == ContractionRole::Group;
  out.rows_span_two_axes =
      !out.depthwise && out.spatial.size() > 2 &&
      role_of(*stated, out.spatial[out.spatial.size() - 3], column) == ContractionRole::Row;
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
  if (sum.halves) return dtype + " by dot products of two bfloat16";
  const bool fused =
      sum.dtype.is_floating() && decide.pays([](const Target& target) { return target.has_fma; });
  return dtype + (fused ? " by fused multiply-add" : " by multiply and add");
}

}  // namespace relay
