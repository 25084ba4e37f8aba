// Kernels on invented inputs: what the tests of the interpreter share.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "tir/compute.h"
#include "tir/interpret.h"
#include "tir/test/dtypes.h"

namespace relay::tir {
inline namespace interpreter_test {

using Data = runtime::Tensor;
inline const DType kIntegers[] = {DType::Int(8),   DType::Int(16), DType::Int(32),
                                  DType::Int(64),  DType::UInt(8), DType::UInt(16),
                                  DType::UInt(32), DType::UInt(64)};

// Small numbers of either sign, some of them equal; halves for floats.
inline void fill(const Data& t, uint32_t seed) {
  std::mt19937 random(seed);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    auto v = static_cast<int>(random() % 17) - 8;
    if (t.dtype().is_floating()) {
      t.set_from_double(i, v * 0.5);
    } else {
      t.set_from_int(i, v);
    }
  }
}

inline std::vector<int64_t> shape_of(const PrimFunc& f, const Buffer& b,
                                     const std::vector<int64_t>& dims) {
  std::vector<int64_t> shape;
  for (const PrimExpr& e : b->shape) {
    if (auto v = as_int(e)) {
      shape.push_back(*v);
      continue;
    }
    size_t d = 0;
    while (PrimExpr(f->dims[d]) != e) ++d;
    shape.push_back(dims[d]);
  }
  return shape;
}

// The outputs of the kernel for invented inputs.
inline std::vector<Data> run(const PrimFunc& f, uint32_t seed = 1,
                             const std::vector<int64_t>& dims = {},
                             const InterpretOptions& options = {}) {
  std::vector<Data> buffers;
  for (const Buffer& p : f->params) {
    buffers.push_back(Data::zeros(p->dtype, runtime::Shape(shape_of(f, p, dims))));
    if (static_cast<int64_t>(buffers.size()) <= f->num_inputs) {
      fill(buffers.back(), seed++);
    } else {
      std::memset(buffers.back().data(), 0xCB, buffers.back().byte_size());
    }
  }
  EXPECT_EQ(interpret(f, buffers, dims, options), 0);
  buffers.erase(buffers.begin(), buffers.begin() + f->num_inputs);
  return buffers;
}

inline void expect_equal(const std::vector<Data>& a, const std::vector<Data>& b,
                         const std::string& what) {
  ASSERT_EQ(a.size(), b.size());
  for (size_t i = 0; i < a.size(); ++i) {
    if (runtime::bit_equal(a[i], b[i])) continue;
    for (int64_t k = 0; k < a[i].num_elements(); ++k) {
      if (a[i].get_as_double(k) == b[i].get_as_double(k)) continue;
      FAIL() << what << ": output " << i << " at " << k << " is " << b[i].get_as_double(k)
             << ", not " << a[i].get_as_double(k);
    }
  }
}

// The values of one output as doubles.
inline std::vector<double> values(const Data& t) {
  std::vector<double> out;
  for (int64_t i = 0; i < t.num_elements(); ++i) out.push_back(t.get_as_double(i));
  return out;
}

// A kernel of statements.
inline PrimFunc kernel(std::vector<Buffer> inputs, std::vector<Buffer> outputs, Stmt body,
                       std::vector<Var> dims = {}) {
  return make<PrimFuncNode>([&](PrimFuncNode& n) {
    n.name = "k";
    n.num_inputs = static_cast<int64_t>(inputs.size());
    n.params = std::move(inputs);
    n.params.insert(n.params.end(), outputs.begin(), outputs.end());
    n.dims = std::move(dims);
    n.body = std::move(body);
  });
}

}  // namespace interpreter_test
}  // namespace relay::tir
