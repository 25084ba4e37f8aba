#include <algorithm>
#include <bit>
#include <numeric>

#include "codegen/llvm/kernel_code.h"
#include "tir/transposed_nest.h"

namespace relay::codegen {
namespace {

// Elements are interleaved within parts of so many bytes, which every target has and within which it is one instruction.
constexpr int64_t kPartBytes = 16;

// So many columns that are whole rows of the result are one vector.
constexpr int64_t kFewColumns = 4;

// Of what moves as one element.
int64_t bytes_moved(const TransposedNest& nest) {
  return nest.elements * static_cast<int64_t>(nest.load->buffer->dtype.element().bytes());
}

// Element i of the first, then of the second, for i in [first, first + count) of each of the equal parts of the vectors.
std::vector<int> interleaved(int first, int count, int lanes, int parts) {
  std::vector<int> out;
  for (int part = 0; part < parts; ++part) {
    for (int i = first; i < first + count; ++i) {
      out.push_back(part * (lanes / parts) + i);
      out.push_back(lanes + part * (lanes / parts) + i);
    }
  }
  return out;
}

}  // namespace

bool KernelBuilder::transposed_statement(const StmtNode* s) {
  auto* loop = as<ForNode>(s);
  if (loop == nullptr || !in_transposed_nest(*loop)) return false;
  auto nest = transposed_nest(Stmt(loop));
  if (!nest) return false;
  const int64_t bytes = bytes_moved(*nest);
  if (bytes > static_cast<int64_t>(sizeof(int64_t)) ||
      !std::has_single_bit(static_cast<uint64_t>(bytes))) {
    return false;
  }
  // What a part holds.
  const int64_t side = kPartBytes / bytes;
  // Blocks whose rows and columns halve down to one.
  auto fits = [&](int64_t n) { return std::has_single_bit(static_cast<uint64_t>(n)) && n > 1; };
  if (!fits(nest->rows)) return false;
  if (as_int(nest->to_step) == nest->columns * nest->elements && nest->columns <= kFewColumns) {
    interleaved_columns(*nest);
    return true;
  }
  if (!fits(nest->columns)) return false;
  const int64_t rows = std::min(nest->rows, side);
  // Columns that fill several parts are turned part beside part, in longer vectors.
  const int64_t columns = rows == side ? nest->columns : std::min(nest->columns, side);
  const Strided to{expr(nest->to), expr(nest->to_step)};
  const Columns from = columns_of(*nest);
  for (int64_t column = 0; column < nest->columns; column += columns) {
    for (int64_t row = 0; row < nest->rows; row += rows) {
      transposed_block(*nest, to, from, row, rows, column, columns);
    }
  }
  return true;
}

void KernelBuilder::interleaved_columns(const TransposedNest& nest) {
  const int64_t bytes = bytes_moved(nest);
  auto* type = llvm::FixedVectorType::get(b_.getIntNTy(static_cast<unsigned>(8 * bytes)),
                                          static_cast<unsigned>(nest.rows));
  const llvm::Align align(nest.load->buffer->dtype.element().bytes());
  const Columns from = columns_of(nest);
  std::vector<Value*> columns;
  for (int64_t c = 0; c < nest.columns; ++c) {
    columns.push_back(
        b_.CreateAlignedLoad(type, address(nest.load->buffer, index_at(from, c, 0)), align));
  }
  // All columns, contiguous, the last twice where their number is odd; then row after row of them.
  if (columns.size() % 2 != 0) columns.push_back(columns.back());
  const int rows = static_cast<int>(nest.rows), count = static_cast<int>(nest.columns);
  auto joined = [&](Value* a, Value* b) {
    const auto lanes = llvm::cast<llvm::FixedVectorType>(a->getType())->getNumElements();
    std::vector<int> all(2 * static_cast<size_t>(lanes));
    std::iota(all.begin(), all.end(), 0);
    return b_.CreateShuffleVector(a, b, all);
  };
  while (columns.size() > 1) {
    for (size_t i = 0; i < columns.size() / 2; ++i) {
      columns[i] = joined(columns[2 * i], columns[2 * i + 1]);
    }
    columns.resize(columns.size() / 2);
  }
  std::vector<int> order;
  for (int row = 0; row < rows; ++row) {
    for (int c = 0; c < count; ++c) order.push_back(c * rows + row);
  }
  b_.CreateAlignedStore(b_.CreateShuffleVector(columns[0], order),
                        address(nest.store->buffer, expr(nest.to)), align);
}

Value* KernelBuilder::index_at(const Strided& s, int64_t steps, int64_t offset) {
  llvm::Type* type = s.first->getType();
  Value* all = b_.CreateNSWMul(s.step, constant_int(type, steps));
  return b_.CreateNSWAdd(s.first, b_.CreateNSWAdd(all, constant_int(type, offset)));
}

KernelBuilder::Columns KernelBuilder::columns_of(const TransposedNest& nest) {
  if (nest.from_columns.empty()) return {{expr(nest.from), expr(nest.from_step)}};
  Columns out;
  for (const PrimExpr& column : nest.from_columns) out.each.push_back(expr(column));
  return out;
}

Value* KernelBuilder::index_at(const Columns& from, int64_t column, int64_t row) {
  if (from.each.empty()) return index_at(from.strided, column, row);
  Value* first = from.each[static_cast<size_t>(column)];
  return b_.CreateNSWAdd(first, constant_int(first->getType(), row));
}

void KernelBuilder::transposed_block(const TransposedNest& nest, const Strided& to,
                                     const Columns& from, int64_t first_row, int64_t rows,
                                     int64_t first_column, int64_t columns) {
  const int64_t bytes = bytes_moved(nest);
  const int64_t parts = std::max<int64_t>(1, columns * bytes / kPartBytes);
  llvm::Type* element = b_.getIntNTy(static_cast<unsigned>(8 * bytes));
  const llvm::Align align(nest.load->buffer->dtype.element().bytes());
  auto lanes_in = [](Value* v) {
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  };
  // A column of the result's block is contiguous where it is read; those that are equally far in their parts are one vector.
  // Each step interleaves the first half of what there is with the second, element by element; in the end all columns of a
  // row stand beside each other, row after row.
  auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(rows));
  std::vector<std::vector<Value*>> lines;
  for (int64_t c = 0; c < columns / parts; ++c) {
    std::vector<Value*> pieces;
    for (int64_t p = 0; p < parts; ++p) {
      const int64_t column = first_column + p * (columns / parts) + c;
      pieces.push_back(b_.CreateAlignedLoad(
          type, address(nest.load->buffer, index_at(from, column, first_row * nest.elements)),
          align));
    }
    while (pieces.size() > 1) {
      for (size_t i = 0; i < pieces.size() / 2; ++i) {
        std::vector<int> all(static_cast<size_t>(2 * lanes_in(pieces[2 * i])));
        std::iota(all.begin(), all.end(), 0);
        pieces[i] = b_.CreateShuffleVector(pieces[2 * i], pieces[2 * i + 1], all);
      }
      pieces.resize(pieces.size() / 2);
    }
    lines.push_back(std::move(pieces));
  }
  while (lines.size() > 1) {
    const size_t half = lines.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      std::vector<Value*> mixed;
      for (size_t r = 0; r < lines[i].size(); ++r) {
        Value *a = lines[i][r], *b = lines[i + half][r];
        const int lanes = lanes_in(a), in_part = lanes / static_cast<int>(parts);
        const bool splits = 2 * in_part * bytes > kPartBytes;
        const int count = splits ? in_part / 2 : in_part;
        for (int first = 0; first < in_part; first += count) {
          mixed.push_back(b_.CreateShuffleVector(
              a, b, interleaved(first, count, lanes, static_cast<int>(parts))));
        }
      }
      lines[i] = std::move(mixed);
    }
    lines.resize(half);
  }
  int64_t row = first_row;
  for (Value* v : lines[0]) {
    const int lanes = lanes_in(v), width = static_cast<int>(columns);
    for (int first = 0; first < lanes; first += width, ++row) {
      std::vector<int> part(static_cast<size_t>(width));
      std::iota(part.begin(), part.end(), first);
      Value* line = width == lanes ? v : b_.CreateShuffleVector(v, part);
      Value* at = index_at(to, row, first_column * nest.elements);
      b_.CreateAlignedStore(line, address(nest.store->buffer, at), align);
    }
  }
}

}  // namespace relay::codegen
