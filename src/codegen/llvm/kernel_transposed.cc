#include <bit>

#include "codegen/llvm/kernel_code.h"
#include "tir/transposed_nest.h"

namespace relay::codegen {
namespace {

// Elements are interleaved within registers of so many bytes, which every target has and within which it is one instruction.
constexpr int64_t kRegisterBytes = 16;

// Element i of the first, then of the second, for i in [first, first + count).
std::vector<int> interleaved(int first, int count, int lanes) {
  std::vector<int> out;
  for (int i = first; i < first + count; ++i) {
    out.push_back(i);
    out.push_back(lanes + i);
  }
  return out;
}

}  // namespace

bool KernelBuilder::transposed_statement(const StmtNode* s) {
  auto* loop = as<ForNode>(s);
  if (loop == nullptr || !loop->annotations.contains(std::string(kTransposedNest))) return false;
  auto nest = transposed_nest(Stmt(loop));
  if (!nest) return false;
  const DType dtype = nest->load->buffer->dtype.element();
  const int64_t bytes = dtype.bytes();
  // Blocks whose rows and columns fit a register, and halve down to one.
  auto fits = [&](int64_t n) {
    return std::has_single_bit(static_cast<uint64_t>(n)) && n > 1 && n * bytes <= kRegisterBytes;
  };
  if (dtype.is_bool() || !fits(nest->rows) || !fits(nest->columns)) return false;
  llvm::Type* element = b_.getIntNTy(static_cast<unsigned>(8 * bytes));
  const llvm::Align align(static_cast<uint64_t>(bytes));
  auto place = [&](const Buffer& buffer, Value* first, int64_t offset) {
    return address(buffer, b_.CreateNSWAdd(first, constant_int(first->getType(), offset)));
  };
  auto lanes_in = [](Value* v) {
    return static_cast<int>(llvm::cast<llvm::FixedVectorType>(v->getType())->getNumElements());
  };
  // A column of the result's block is contiguous where it is read. Each step interleaves the first half of what there is
  // with the second, element by element; in the end all columns of a row stand beside each other, row after row.
  Value* from = expr(nest->from);
  std::vector<std::vector<Value*>> lines;
  for (int64_t c = 0; c < nest->columns; ++c) {
    auto* type = llvm::FixedVectorType::get(element, static_cast<unsigned>(nest->rows));
    lines.push_back(
        {b_.CreateAlignedLoad(type, place(nest->load->buffer, from, c * nest->from_step), align)});
  }
  while (lines.size() > 1) {
    const size_t half = lines.size() / 2;
    for (size_t i = 0; i < half; ++i) {
      std::vector<Value*> mixed;
      for (size_t r = 0; r < lines[i].size(); ++r) {
        Value *a = lines[i][r], *b = lines[i + half][r];
        const int lanes = lanes_in(a);
        const bool splits = 2 * lanes * bytes > kRegisterBytes;
        const int part = splits ? lanes / 2 : lanes;
        for (int first = 0; first < lanes; first += part) {
          mixed.push_back(b_.CreateShuffleVector(a, b, interleaved(first, part, lanes)));
        }
      }
      lines[i] = std::move(mixed);
    }
    lines.resize(half);
  }
  Value* to = expr(nest->to);
  int64_t row = 0;
  for (Value* v : lines[0]) {
    const int lanes = lanes_in(v), columns = static_cast<int>(nest->columns);
    for (int first = 0; first < lanes; first += columns, ++row) {
      std::vector<int> part(static_cast<size_t>(columns));
      for (int i = 0; i < columns; ++i) part[static_cast<size_t>(i)] = first + i;
      Value* line = columns == lanes ? v : b_.CreateShuffleVector(v, part);
      b_.CreateAlignedStore(line, place(nest->store->buffer, to, row * nest->to_step), align);
    }
  }
  return true;
}

}  // namespace relay::codegen
