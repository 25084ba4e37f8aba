// Every kernel of a program, made before anything is decided about where values live.
//
//   LoweredProgram lowered(mod, provider);
//   const LoweredCall& call = lowered.call(primitive);
//   provider->signature(call.kernel)
//
// Primitive functions that compute the same are one kernel. What a kernel computes follows from the
// primitive function alone; the strides of its buffers are decided by the plan, which asks the
// provider for a variant (lower/kernel_provider.h).
#pragma once

#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "ir/module.h"
#include "lower/kernel_provider.h"

namespace relay {

// A call of a kernel: the model's nodes that it computes, and why it ends where it does (see
// attr::kFusionReason).
struct KernelSite {
  std::string origin;
  std::string ends;
};

// What the call of a primitive function comes to.
struct LoweredCall {
  // With a name for each size of a parameter that is `?` (LoweredProgram::size_name, from 0 in the
  // order of the parameters' sizes), and then for each in `named`.
  Function primitive;
  // Sizes that the kernel is given as numbers instead of computing them from names: quotients, remainders and products, which bounds
  // are hard to prove of, and the positions of a kernel that several calls share (lower/alike_kernels.h). In the order of their names.
  std::vector<Dim> named;
  // The same for data-dependent sizes of the result; the names go on from there.
  // Otherwise `primitive`.
  Function sized;
  KernelSite site;
  // Whether its operators assume something about sizes that only a run tells.
  bool assumes_sizes = false;
  // -1: nothing but sizes is computed, the result is a view; or the result's sizes are known to no
  // rule.
  int32_t kernel = -1;
  // The sizes for which a run calls a variant of the kernel that knows them: what is likely by the hints of the function around
  // the call, for kernels that reduce; without hints, one row of a product with large weights. Others wait for memory, whatever
  // is known of them.
  std::vector<VariantSizes> versions{};
  // Where sizes may be broadcast: the kernel for the case that all of them are equal. Else -1.
  int32_t equal_sizes = -1;
  // The kernel that gives the sizes of the result where they are data-dependent. Else -1.
  int32_t sizes = -1;
};

// Whether a tensor of the type has a size that only a run tells; for a function, of its parameters
// or result.
bool has_open_size(const Type& t);
bool has_open_size(const FunctionNode& f);

// A primitive function that only renames the shape of its first parameter.
bool is_view(const FunctionNode& f);

// A primitive function whose result is its first parameter under sizes that it computes from data.
bool is_view_sized_by_data(const FunctionNode& f);

// A primitive function that copies its parameter to another device.
bool is_device_copy(const FunctionNode& f);

// A view, of either kind: the result is the memory of the first operand.
bool shares_its_operand(const FunctionNode& f);

class LoweredProgram {
 public:
  // Composes the kernels of all primitive functions that are called in `mod`. Throws UserError
  // E0401, with the place, for what has no kernel. Weights of `large_weights` bytes are read from so far away that a product with
  // a single row waits for nothing else.
  LoweredProgram(const Module& mod, std::shared_ptr<KernelProvider> provider,
                 int64_t large_weights = std::numeric_limits<int64_t>::max());

  // `primitive` is called in the module.
  const LoweredCall& call(const FunctionNode& primitive) const { return calls_.at(&primitive); }
  const std::shared_ptr<KernelProvider>& provider() const { return provider_; }
  // The kernel that copies a tensor of the type on a device.
  int32_t copy(const Type& type, runtime::Device device);
  // The n-th name for a size that only a run tells. Kernels share these names, so that equal
  // kernels are one; a name means something for one call of a kernel.
  TypeVar size_name(size_t n);

 private:
  LoweredCall lower(const Function& f, const FunctionNode& around);
  // The call of a function that computes the same; null where none is known.
  const LoweredCall* find_same(const Function& f, uint64_t hash) const;
  // The versions of a call; `written` is its function with the sizes of the function around it, `names` stand for `call.named`.
  std::vector<VariantSizes> versions_of(const LoweredCall& call, const std::vector<TypeVar>& names,
                                        const Function& written, const FunctionNode& around) const;
  // The open sizes of `written` that make it the product of one row and large weights, all of them 1; else empty.
  KnownSizes one_row(int32_t general, const Function& written, const FunctionNode& around) const;
  Function with_named_parameters(const Function& f, size_t& named);
  // The function over names for the compound sizes of its parameters, which `sizes` gets; `f` where
  // there are none, or where the result says something else of them then.
  Function with_named_sizes(const Function& f, size_t& named, std::vector<Dim>& sizes);

  std::shared_ptr<KernelProvider> provider_;
  int64_t large_weights_;
  std::unordered_map<const Node*, LoweredCall> calls_;
  // Those of which nothing but the site is of one call alone: the steps of a loop that was written out
  // are many functions that compute the same.
  std::unordered_map<uint64_t, std::vector<const LoweredCall*>> calls_by_hash_;
  std::vector<TypeVar> size_names_;
};

}  // namespace relay
