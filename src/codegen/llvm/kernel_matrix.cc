#include <algorithm>

#include "codegen/llvm/architecture.h"
#include "codegen/llvm/kernel_code.h"
#include "node/walk.h"

namespace relay::codegen {
namespace {

LlvmMatrixUnit::Shapes shapes_of(const MatrixProduct& p) {
  LlvmMatrixUnit::Shapes out;
  size_t reg = 0;
  auto add = [&](size_t count, int64_t rows, int64_t row_bytes) {
    for (size_t i = 0; i < count; ++i, ++reg) {
      out.rows[reg] = static_cast<uint8_t>(rows);
      out.row_bytes[reg] = static_cast<uint16_t>(row_bytes);
    }
  };
  constexpr int64_t kWordBytes = 4;
  add(p.sums.tiles.size(), p.sums.rows, p.sums.columns * kWordBytes);
  add(p.a.tiles.size(), p.sums.rows, p.words * kWordBytes);
  add(p.b.tiles.size(), p.words, p.sums.columns * kWordBytes);
  return out;
}

}  // namespace

void KernelBuilder::find_matrix_uses() {
  post_order(
      f_.body,
      [&](const Node& n) {
        auto* loop = as<ForNode>(&n);
        if (loop == nullptr || !in_matrix_nest(*loop)) return;
        auto product = matrix_product(Stmt(loop));
        if (!product) return;
        const LlvmArchitecture* arch = find_llvm_architecture(target_.arch);
        if (arch == nullptr || arch->matrix == nullptr) {
          unsupported(f_.name, "a matrix unit on " + target_.arch);
        }
        LlvmMatrixUnit::Shapes shapes = shapes_of(*product);
        auto it = std::find(register_shapes_.begin(), register_shapes_.end(), shapes);
        auto number = static_cast<size_t>(it - register_shapes_.begin());
        if (it == register_shapes_.end()) register_shapes_.push_back(shapes);
        // The outermost loop of the nest comes last.
        matrix_uses_[product->sums.buffer] = {*product, number};
      },
      family::tir_stmt);
  if (matrix_uses_.empty()) {
    if (!f_.features.empty()) unsupported(f_.name, "no nest of loops for a matrix unit");
    return;
  }
  post_order(
      f_.body,
      [&](const Node& n) {
        std::optional<size_t> needed;
        auto join = [&](size_t shapes) {
          needed = !needed || *needed == shapes ? shapes : kUnknownShapes;
        };
        if (auto* a = as<AllocateNode>(&n)) {
          if (auto it = matrix_uses_.find(a->buffer.get()); it != matrix_uses_.end()) {
            join(it->second.shapes);
          }
        }
        for_each_child(n, [&](const NodeRef& child) {
          auto it = needed_shapes_.find(child.get());
          if (it == needed_shapes_.end()) return;
          // This thread runs a part of a parallel loop, and releases the registers at its end.
          auto* loop = as<ForNode>(child.get());
          bool shared = loop != nullptr && loop->loop_kind == ForKind::Parallel;
          join(shared ? kUnknownShapes : it->second);
        });
        if (needed) needed_shapes_[&n] = *needed;
      },
      family::tir_stmt);
}

void KernelBuilder::shape_registers(const StmtNode* s) {
  auto it = needed_shapes_.find(s);
  if (it == needed_shapes_.end() || it->second == kUnknownShapes || it->second == shapes_) return;
  // Threads have registers of their own.
  auto* loop = as<ForNode>(s);
  if (loop != nullptr && loop->loop_kind == ForKind::Parallel && !in_parallel_) return;
  find_llvm_architecture(target_.arch)->matrix->configure(b_, register_shapes_[it->second]);
  shapes_ = it->second;
  uses_matrix_unit_ = true;
}

bool KernelBuilder::matrix_statement(const StmtNode* s) {
  if (matrix_uses_.empty()) return false;
  const StmtNode* at = s;
  while (auto* loop = as<ForNode>(at)) {
    if (!in_matrix_nest(*loop)) return false;
    at = loop->body.get();
  }
  auto* store = as<StoreNode>(at);
  if (store == nullptr) {
    if (at == s) return false;
    unsupported(f_.name, "not for a matrix unit: " + tir::to_string(Stmt(s)));
  }
  const LlvmMatrixUnit& unit = *find_llvm_architecture(target_.arch)->matrix;
  if (auto it = matrix_uses_.find(store->buffer.get()); it != matrix_uses_.end()) {
    const MatrixSums& sums = it->second.product.sums;
    if (is_matrix_zero(Stmt(s), sums)) {
      for (unsigned i = 0; i < sums.tiles.size(); ++i) unit.zero(b_, i);
      return true;
    }
    auto product = matrix_product(Stmt(s));
    if (!product) unsupported(f_.name, "not for a matrix unit: " + tir::to_string(Stmt(s)));
    matrix_multiply(*product);
    return true;
  }
  auto* load = as<LoadNode>(store->value);
  auto it = load == nullptr ? matrix_uses_.end() : matrix_uses_.find(load->buffer.get());
  if (it == matrix_uses_.end()) {
    if (at == s) return false;
    unsupported(f_.name, "not for a matrix unit: " + tir::to_string(Stmt(s)));
  }
  auto move = matrix_store(Stmt(s), it->second.product.sums);
  if (!move) unsupported(f_.name, "sums of a matrix unit that are not stored in rows");
  Value* first = expr(move->first);
  Value* step = b_.getInt64(static_cast<uint64_t>(move->step * store->buffer->dtype.bytes()));
  for (const auto& [tile, offset] : move->tiles) {
    Value* place = b_.CreateNSWAdd(first, constant_int(first->getType(), offset));
    unit.store(b_, static_cast<unsigned>(tile), address(store->buffer, place), step);
  }
  return true;
}

void KernelBuilder::matrix_multiply(const MatrixProduct& p) {
  const LlvmMatrixUnit& unit = *find_llvm_architecture(target_.arch)->matrix;
  auto number = [](size_t i) { return static_cast<unsigned>(i); };
  const size_t first_a = p.sums.tiles.size(), first_b = first_a + p.a.tiles.size();
  auto read = [&](const MatrixProduct::Operand& x, size_t first_register) {
    Value* first = expr(x.first);
    Value* elements = b_.CreateSExtOrTrunc(expr(x.step), b_.getInt64Ty());
    const auto bytes = static_cast<uint64_t>(x.load->buffer->dtype.element().bytes());
    Value* step = b_.CreateNSWMul(elements, b_.getInt64(bytes));
    for (size_t i = 0; i < x.tiles.size(); ++i) {
      const MatrixProduct::Begin& begin = x.tiles[i];
      Value* place = b_.CreateNSWAdd(first, constant_int(first->getType(), begin.elements));
      if (begin.rows != 0) {
        Value* rows = b_.CreateNSWMul(elements, b_.getInt64(static_cast<uint64_t>(begin.rows)));
        place = b_.CreateNSWAdd(b_.CreateSExtOrTrunc(place, b_.getInt64Ty()), rows);
      }
      unit.load(b_, number(first_register + i), address(x.load->buffer, place), step, x.streamed);
    }
  };
  read(p.a, first_a);
  read(p.b, first_b);
  for (const MatrixProduct::Dot& d : p.dots) {
    bool made = unit.multiply(b_, target_, p.a.load->dtype.element(), p.b.load->dtype.element(),
                              number(d.sum), number(first_a + d.a), number(first_b + d.b));
    if (!made) {
      unsupported(f_.name, "a matrix unit for " + p.a.load->dtype.to_string() + " and " +
                               p.b.load->dtype.to_string());
    }
  }
}

}  // namespace relay::codegen
