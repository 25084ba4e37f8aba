// Runs compiled kernels with every buffer between unmapped pages.
//
//   GuardedKernels kernels("x86-64-v3", /*opt_level=*/3);
//   kernels.add(mod, "add on (3, 5)");
//   kernels.check();
//
// A kernel that touches a byte before or behind a buffer, or behind its scratch memory, ends the
// process with the kernel's name; one whose result depends on what was in its outputs or scratch
// memory fails the test.
#pragma once

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <list>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "codegen/targets.h"
#include "codegen/test/kernel_harness.h"
#include "driver/test/networks.h"
#include "tir/passes/statements.h"

namespace relay::driver_test {

class GuardedKernels {
 public:
  GuardedKernels(const std::string& target, int opt_level) {
    options_.target = target;
    options_.opt_level = opt_level;
    options_.verify = true;
    // Two chunks for parallel loops, whatever the machine has.
    options_.num_threads = 2;
  }

  // Adds the kernels of all functions of a module. Inputs are filled with numbers from low to high; a kernel that has
  // as many inputs as are given gets those. Kernels of symbolic sizes are added with `size` for each of these, if it is one.
  void add(const Module& mod, const std::string& what, double low = -2, double high = 2,
           const std::vector<std::vector<double>>& given = {}, int64_t size = 0) {
    Bytecode bytecode = make_bytecode(optimize(mod, options_), options_);
    for (CompiledKernel& k : lower_kernels(bytecode)) {
      // Sizes that only a run decides have their tests beside the runtime.
      if (!k.lowered->dims.empty() && size == 0) continue;
      tir::NodeMap sized;
      for (const tir::Var& d : k.lowered->dims) sized.emplace(d.get(), tir::index(size));
      std::vector<tir::Buffer> params;
      for (const tir::Buffer& b : k.lowered->params) {
        params.push_back(tir::modified(*b.get(), [&](tir::BufferNode& n) {
          for (tir::PrimExpr& d : n.shape) d = tir::replace(d, sized);
        }));
      }
      for (size_t i = 0; i < params.size(); ++i)
        sized.emplace(k.lowered->params[i].get(), params[i]);
      std::string name = "kernel" + std::to_string(functions_.size());
      functions_.push_back(make<tir::PrimFuncNode>([&](tir::PrimFuncNode& n) {
        n.name = name;
        n.params = params;
        n.num_inputs = k.lowered->num_inputs;
        n.body = tir::replace(k.lowered->body, sized);
        n.in_place = k.lowered->in_place;
        n.features = k.lowered->features;
      }));
      // Such a kernel's results are in the memory of inputs, which it reads as its results.
      const bool reads_results = k.lowered->name.find("_in_place") != std::string::npos;
      cases_.push_back({what + ": " + k.name, low, high, given, reads_results});
    }
  }

  // Runs everything; gives the outputs of each kernel, as bytes.
  std::vector<std::vector<std::string>> check() {
    LoadedKernels jit = load_kernels(functions_, parse_target(options_.target));
    auto before = std::signal(SIGSEGV, &out_of_bounds);
    std::vector<std::vector<std::string>> out;
    for (size_t i = 0; i < functions_.size(); ++i) {
      SCOPED_TRACE(cases_[i].what + " at level " + std::to_string(options_.opt_level) + " for " +
                   options_.target);
      std::snprintf(now(), kNowSize, "%s, level %d, %s\n", cases_[i].what.c_str(),
                    options_.opt_level, options_.target.c_str());
      std::vector<std::string> first = run(i, jit.functions()[i], Side::Left, 0x00);
      EXPECT_EQ(first, run(i, jit.functions()[i], Side::Right, 0xff)) << "depends on old memory";
      out.push_back(std::move(first));
    }
    std::signal(SIGSEGV, before);
    return out;
  }

  size_t size() const { return functions_.size(); }

 private:
  using Memory = codegen_test::GuardedMemory;
  using Side = Memory::Side;
  struct Case {
    std::string what;
    double low, high;
    std::vector<std::vector<double>> given;
    bool reads_results;
  };
  static constexpr size_t kNowSize = 200;
  static char* now() {
    static char text[kNowSize];
    return text;
  }
  static void out_of_bounds(int) {
    const char* text = now();
    if (write(2, "out of bounds: ", 15) < 0 || write(2, text, std::strlen(text)) < 0) _exit(2);
    _exit(1);
  }

  // Scratch memory behind guard pages, poisoned; parallel loops in two chunks.
  struct Context : codegen_test::TestContext {
    Context(Side side, uint8_t poison) : side(side), poison(poison) {
      context.runtime = this;
      context.scratch = [](const relay_kernel_context* c, int64_t bytes) -> void* {
        auto* self = static_cast<Context*>(c->runtime);
        // Aligned to 64 bytes, so a little may lie between its end and the guard page.
        auto size = static_cast<size_t>((bytes + 63) / 64 * 64);
        self->scratch_memory.emplace_back(size, self->side);
        std::memset(self->scratch_memory.back().data(), self->poison, size);
        return self->scratch_memory.back().data();
      };
    }
    Side side;
    uint8_t poison;
    std::list<Memory> scratch_memory;
  };

  std::vector<std::string> run(size_t index, relay_kernel kernel, Side side, uint8_t poison) {
    const tir::PrimFuncNode& f = *functions_[index].get();
    std::list<Memory> memory;
    std::vector<void*> buffers;
    std::vector<size_t> sizes;
    for (const tir::Buffer& b : f.params) {
      std::vector<int64_t> shape;
      for (const tir::PrimExpr& d : b->shape) shape.push_back(tir::as_int(d).value());
      size_t bytes =
          static_cast<size_t>(runtime::checked_num_elements(b->dtype, shape)) * b->dtype.bytes();
      Memory& m = memory.emplace_back(bytes, side);
      std::memset(m.data(), poison, bytes);
      if (buffers.size() < static_cast<size_t>(f.num_inputs)) {
        Tensor t = Tensor::from_external(m.data(), b->dtype, shape, nullptr);
        const Case& c = cases_[index];
        if (c.given.size() == static_cast<size_t>(f.num_inputs)) {
          const std::vector<double>& values = c.given[buffers.size()];
          for (size_t k = 0; k < values.size(); ++k)
            t.set_from_double(static_cast<int64_t>(k), values[k]);
        } else {
          fill(t, c.low, c.high, buffers.size() + 1);
        }
      } else if (const Case& c = cases_[index]; c.reads_results) {
        fill(Tensor::from_external(m.data(), b->dtype, shape, nullptr), c.low, c.high, 1);
      }
      buffers.push_back(m.data());
      sizes.push_back(bytes);
    }
    Context context(side, poison);
    EXPECT_EQ(context.run(kernel, buffers.data()), 0);
    std::vector<std::string> out;
    for (auto i = static_cast<size_t>(f.num_inputs); i < buffers.size(); ++i) {
      out.emplace_back(static_cast<const char*>(buffers[i]), sizes[i]);
    }
    return out;
  }

  CompileOptions options_;
  std::vector<tir::PrimFunc> functions_;
  std::vector<Case> cases_;
};

}  // namespace relay::driver_test
