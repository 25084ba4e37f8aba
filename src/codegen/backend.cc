#include "codegen/backend.h"

#include <set>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "runtime/core/string_functions.h"
#include "runtime/cpu.h"
#include "target/architectures.h"
#include "target/target_kind.h"

namespace relay {

const Backend& backend_of(const Target& target) {
  const Backend& backend = kind_of(target).backend();
  if (backend.supports(target)) return backend;
  std::string known;
  for (const TargetKind* kind : target_kinds()) {
    const Backend& other = kind->backend();
    for (const Architecture& a : architectures()) {
      Target asked;
      asked.kind = kind->name;
      asked.arch = a.name;
      if (!other.supports(asked)) continue;
      known += (known.empty() ? "" : ", ") + std::string(a.name) + " (" +
               std::string(other.name()) + ")";
    }
  }
  throw UserError(Diagnostic(codes::codegen_target, {},
                             "there is no code generator for '" + target.name + "', a " +
                                 target.kind + " of " +
                                 (target.arch.empty() ? "no architecture" : target.arch))
                      .expected(known));
}

std::vector<std::string> features_of(const std::vector<tir::PrimFunc>& kernels) {
  std::set<std::string> out;
  for (const tir::PrimFunc& f : kernels) {
    out.insert(f->features.begin(), f->features.end());
  }
  return {out.begin(), out.end()};
}

std::vector<std::string> libraries_of(const std::vector<tir::PrimFunc>& kernels) {
  std::set<std::string> out;
  for (const tir::PrimFunc& f : kernels) {
    post_order(f->body, [&](const Node& n) {
      if (n.kind() != tir::ExprKind::Call) return;
      auto* library = runtime::library_of(static_cast<const tir::CallNode&>(n).name);
      if (library != nullptr) out.insert(library->file);
    });
  }
  return {out.begin(), out.end()};
}

LoadedKernels load_kernels(const std::vector<tir::PrimFunc>& kernels, const Target& target,
                           KernelCache* cache) {
  std::vector<std::string> features = target.required_features();
  for (std::string& f : features_of(kernels)) features.push_back(std::move(f));
  auto refusal = runtime::machine_refuses("code for " + target.name, target.arch, features);
  if (!refusal) refusal = runtime::request_state_of(features);
  if (refusal) throw UserError(*refusal);
  return backend_of(target).load(kernels, target, cache);
}

std::optional<size_t> Backend::most_host_params(const Target&) const { return std::nullopt; }

ObjectCode Backend::compile_host(const hostcode::Program&, const Target&, KernelCache*) const {
  throw InternalError("internal error: the backend has no code for functions between kernels");
}

ObjectCode Backend::embed(const tir::PrimFunc&, const std::string&, const Target& target) const {
  throw UserError(Diagnostic(codes::lower_unsupported, {},
                             "'" + target.name +
                                 "' cannot be the host of devices whose drivers "
                                 "compile their kernels")
                      .help("compile for a processor and the device: \"native; opencl\""));
}

const tir::Intrinsic* missing_intrinsic(const Backend& backend, const tir::PrimFunc& kernel) {
  const tir::Intrinsic* missing = nullptr;
  post_order(kernel->body, [&](const Node& n) {
    if (n.kind() != tir::ExprKind::Call || missing != nullptr) return;
    const tir::Intrinsic* intrinsic =
        tir::find_intrinsic(static_cast<const tir::CallNode&>(n).name);
    if (intrinsic != nullptr && !backend.has_intrinsic(*intrinsic)) missing = intrinsic;
  });
  return missing;
}

void check_intrinsics(const Backend& backend, const std::vector<tir::PrimFunc>& kernels) {
  for (const tir::PrimFunc& f : kernels) {
    const tir::Intrinsic* missing = missing_intrinsic(backend, f);
    if (missing == nullptr) continue;
    throw UserError(Diagnostic(codes::lower_unsupported, {},
                               "kernel " + f->name + " calls " + std::string(missing->name) +
                                   ", for which " + std::string(backend.name()) + " makes no code")
                        .help("compile for another target"));
  }
}

}  // namespace relay
