// Kernels of any dtype whose schedule changes no bit of what plain loops compute.
#pragma once

#include <cstring>

#include "lower/test/kernel_case.h"
#include "tir/interpret.h"
#include "tir/text.h"

namespace relay::lower_test {

// Small numbers of any dtype.
inline runtime::Tensor some(const Buffer& b) {
  std::vector<int64_t> shape;
  for (const PrimExpr& d : b->shape) shape.push_back(*as_int(d));
  runtime::Tensor t = runtime::Tensor::empty(b->dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) t.set_from_int(i, i * 37 % 101);
  return t;
}

// The kernel has the words in its sentence, and as scheduled the bits of plain loops on every target.
inline void expect_same_bits(const PrimFunc& f, const std::string& words) {
  std::vector<runtime::Tensor> args;
  for (const Buffer& b : f->params) args.push_back(some(b));
  runtime::Tensor expected = args.back().copy();
  std::vector<runtime::Tensor> plain(args.begin(), args.end() - 1);
  plain.push_back(expected);
  ASSERT_EQ(interpret(f, plain, {}), 0);
  for (const Target& target : codegen_test::runnable_targets()) {
    PrimFunc lowered = lower_loops(scheduled(f, target));
    SCOPED_TRACE(target.name + "\n" + to_string(lowered));
    ASSERT_NE(tir::report_of(*scheduled(f, target)).sentence.find(words), std::string::npos);
    // What code generation makes intrinsics of are loops, which every machine runs.
    runtime::Tensor got = args.back().copy();
    plain = {args.begin(), args.end() - 1};
    plain.push_back(got);
    // The scheduled kernel may have other shapes of the same elements.
    for (size_t i = 0; i < plain.size(); ++i) {
      std::vector<int64_t> shape;
      for (const PrimExpr& d : lowered->params[i]->shape) shape.push_back(*as_int(d));
      plain[i] = plain[i].reshape(runtime::Shape(shape));
    }
    ASSERT_EQ(interpret(lowered, plain, {}), 0);
    ASSERT_EQ(std::memcmp(got.data(), expected.data(), expected.byte_size()), 0);
    LoadedKernels jit = load_kernels({lowered}, target);
    for (auto side : {GuardedMemory::Side::Left, GuardedMemory::Side::Right}) {
      std::vector<std::unique_ptr<GuardedMemory>> memory;
      std::vector<void*> buffers;
      for (const runtime::Tensor& t : args) {
        memory.push_back(std::make_unique<GuardedMemory>(t.byte_size(), side));
        std::memcpy(memory.back()->data(), t.data(), t.byte_size());
        buffers.push_back(memory.back()->data());
      }
      TestContext context;
      ASSERT_EQ(context.run(jit.functions()[0], buffers.data(), nullptr), 0);
      ASSERT_EQ(std::memcmp(buffers.back(), expected.data(), expected.byte_size()), 0);
    }
  }
}

}  // namespace relay::lower_test
