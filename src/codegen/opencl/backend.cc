#include "codegen/opencl/backend.h"

#include "base/codes/lowering.h"
#include "base/parallel.h"
#include "codegen/opencl/print_expressions.h"
#include "codegen/opencl/print_kernel.h"
#include "runtime/core/dlpack.h"
#include "tir/lower_loops.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/compact_buffers.h"
#include "tir/passes/flatten_buffers.h"
#include "tir/passes/hoist_checks.h"
#include "tir/passes/insert_barriers.h"
#include "tir/passes/lower_blocks.h"
#include "tir/passes/pad_shared_rows.h"
#include "tir/passes/separate_items.h"
#include "tir/passes/simplify.h"
#include "tir/passes/unroll_loops.h"

namespace relay::codegen {
namespace {

class OpenclReader : public TargetReader {
 public:
  std::vector<std::string> names() const override { return {"opencl"}; }
  std::span<const TargetOption> options() const override { return {}; }
  Target read(const TargetWords& words) const override {
    Target t;
    t.name = words.name();
    t.vector_bits = 32;
    t.has_blocked_kernels = false;
    return t;
  }
};

class OpenclBackend : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }
  bool supports(const Target& target) const override {
    return target.kind == "opencl" && target.arch.empty();
  }
  const TargetReader& reader() const override { return reader_; }
  bool has_intrinsic(const tir::Intrinsic& intrinsic) const override {
    return has_opencl_form(intrinsic);
  }
  bool makes_objects() const override { return false; }
  std::vector<ObjectCode> compile(const std::vector<tir::PrimFunc>& kernels, const Target&,
                                  int threads, KernelCache*,
                                  const std::function<void()>& each) const override {
    std::vector<ObjectCode> out(kernels.size());
    for_each_parallel(kernels.size(), threads, [&](size_t i) {
      out[i] = runtime::to_bytes(opencl_source(*kernels[i].get()));
      if (each) each();
    });
    return out;
  }
  std::string link(const std::vector<ObjectCode>&, const std::vector<tir::PrimFunc>&,
                   const Target& target) const override {
    needs_host(target);
  }
  LoadedKernels load(const std::vector<tir::PrimFunc>&, const Target& target,
                     KernelCache*) const override {
    needs_host(target);
  }
  std::string text(CodeText, const std::vector<tir::PrimFunc>& kernels,
                   const Target&) const override {
    std::string out;
    for (const tir::PrimFunc& f : kernels) {
      out += "// " + f->name + "\n" + runtime::to_text(opencl_source(*f.get())) + "\n";
    }
    return out;
  }

 private:
  [[noreturn]] static void needs_host(const Target& target) {
    throw UserError(Diagnostic(codes::codegen_failed, {},
                               "kernels of '" + target.name + "' cannot run without a host")
                        .help("compile a program for a host and the device: \"native; opencl\""));
  }

  OpenclReader reader_;
};

const Backend& opencl_backend() {
  static const OpenclBackend backend;
  return backend;
}

// As processors have it, without what is for vectors and caches: the loops that are bound stay whole.
constexpr tir::LoweringPass kLowering[] = {
    {"LowerBlocks", tir::lower_blocks},
    {"CompactBuffers", tir::compact_buffers},
    {"Simplify", tir::simplify},             // no loop of one iteration around a launch
    {"SeparateItems", tir::separate_items},  // no register of a group is another item's
    {"PadSharedRows", tir::pad_shared_rows},
    {"FlattenBuffers", tir::flatten_buffers},
    {"Simplify", tir::simplify},
    {"HoistChecks", tir::hoist_checks},
    {"UnrollLoops", tir::unroll_loops},
    {"Simplify", tir::simplify},
    {"BlockSums", tir::block_sums},
    {"InsertBarriers", tir::insert_barriers},
};

std::span<const tir::LoweringPass> opencl_lowering() { return kLowering; }

}  // namespace

TargetKind opencl_kind() {
  TargetKind kind;
  kind.name = "opencl";
  kind.backend = opencl_backend;
  kind.lowering = opencl_lowering;
  kind.device = kDLOpenCL;
  return kind;
}

}  // namespace relay::codegen
