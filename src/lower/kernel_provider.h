// Every kernel of a program: what the plan knows of it, and the chain from operators to loops.
//
//   auto provider = std::make_shared<KernelProvider>(options);
//   int32_t k = provider->add(primitive);               // composed; its signature is known
//   int32_t v = provider->variant(k, {.within = ...});  // the kernel for buffers with these strides
//   int32_t w = provider->variant(k, {.sizes = ...});   // the kernel for calls with these sizes
//   provider->schedule();                               // all variants that were asked for
//   provider->lower(v)                                  // loops and stores, for code generation
//
// A kernel is composed once and scheduled once for each variant that the plan asks for, in parallel;
// what is not asked for is neither scheduled nor lowered. The plan and the virtual machine see
// signatures and numbers of variants, never a body (lower/kernel_body.h).
//
// A kernel is for the device of its primitive function (attr::kDevice), and compiled for that device's target.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/size_hints.h"
#include "ir/expr.h"
#include "lower/kernel_signature.h"

namespace relay {

struct KernelBody;
struct Target;
struct ProviderOptions;

// What a variant knows of sizes that a kernel leaves open.
struct VariantSizes {
  KnownSizes known{};
  // What the kernel's names for compound sizes (LoweredCall::named) are then: numbers, or sizes over the names that stay.
  std::vector<std::pair<TypeVar, Dim>> named{};
  KnownSizes at_most{};  // greatest values of sizes that stay open

  bool empty() const { return known.empty() && at_most.empty(); }
  friend bool operator==(const VariantSizes& a, const VariantSizes& b) {
    return a.known == b.known && a.at_most == b.at_most &&
           std::ranges::equal(a.named, b.named, [](const auto& x, const auto& y) {
             return x.first == y.first && dim_equal(x.second, y.second);
           });
  }
};

// "n = 128", "n <= 64": for reports.
std::string to_string(const VariantSizes& sizes);

// How a call uses a kernel. Equal requests give the same variant.
struct VariantRequest {
  // For each input and result the shape of the tensor that it is part of, or none; empty when every
  // buffer is dense.
  std::vector<std::vector<int64_t>> within{};
  // The inputs whose memory results take though their elements are read at other indices than they are
  // written (Aliasing::written_over).
  std::vector<InPlace> in_place{};
  // Empty: a variant for all sizes.
  VariantSizes sizes{};

  friend bool operator==(const VariantRequest&, const VariantRequest&) = default;
};

// Whether a result of a kernel may share the memory of an input.
enum class Aliasing {
  none,
  same_index,  // of every variant (KernelSignature::in_place)
  written_over,  // of the variant for this input: the kernel begins with a copy of it, which that omits
};

class KernelProvider {
 public:
  // Without options kernels stay as they are composed.
  KernelProvider();
  explicit KernelProvider(ProviderOptions options);
  ~KernelProvider();
  KernelProvider(const KernelProvider&) = delete;
  KernelProvider& operator=(const KernelProvider&) = delete;

  // The kernel of a primitive function; functions that compute the same have one. Throws UserError E0401, with the place, for
  // what has no kernel.
  int32_t add(const Function& primitive, KernelOf what = KernelOf::result);
  // The same for a function without symbolic sizes. Where several differ only in the positions at which they read their inputs, one
  // kernel serves all but the first few: its sizes have the names that `name` gives from 0 on, and `positions` are their values.
  int32_t add_alike(const Function& primitive, const std::function<TypeVar(size_t)>& name,
                    std::vector<Dim>& positions);
  const KernelSignature& signature(int32_t kernel) const;
  // That of the kernel's variants for these sizes.
  const KernelSignature& signature(int32_t kernel, const VariantSizes& sizes);
  Aliasing aliasing(int32_t kernel, const InPlace& pair) const;
  // Whether the kernel reduces, and whether it is a matrix product all of whose rows are symbolic.
  bool reduces(int32_t kernel) const;
  bool has_symbolic_rows(int32_t kernel) const;
  // The most rows for which another order of the kernel's product takes less time than that for any number of them; nullopt
  // where there is no such order, or where another size is open, too.
  std::optional<int64_t> few_rows(int32_t kernel) const;

  // The variant for a request. Throws UserError E0405 for one that the kernel cannot give.
  int32_t variant(int32_t kernel, const VariantRequest& request = {});
  size_t num_variants() const;
  // Unlike that of its kernel it has the strides and sizes of the request and a name of its own.
  const KernelSignature& variant_signature(int32_t variant) const;
  // What it is compiled for.
  const Target& variant_target(int32_t variant) const;
  // What it computes, with the sizes of the request.
  const Function& variant_primitive(int32_t variant) const;
  // Of one that a source has, what the source says of it; empty where it is composed of operators.
  const std::string& variant_source(int32_t variant) const;
  // What it knows of sizes: "n = 128"; empty where it serves all.
  const std::string& variant_version(int32_t variant) const;

  // Schedules the variants that are not scheduled yet, on all threads. `begin` gets how many there
  // are; what it returns (may be null) is called behind each, by the thread that scheduled it.
  using Steps = std::function<std::function<void()>(size_t count)>;
  void schedule(const Steps& begin = nullptr);
  // The body of a variant, scheduled and lowered to loops where that is not done yet. May be called
  // from several threads for different variants.
  const KernelBody& lower(int32_t variant);
  // The body as far as it was made.
  const KernelBody& body(int32_t variant) const;

 private:
  struct Kernel;
  struct Variant;
  struct Alike;  // kernels that differ only in where they read their inputs

  Kernel& at(int32_t kernel) const;
  Variant& variant_at(int32_t variant) const;
  // The index of a kernel that computes this; nullopt where there is none.
  std::optional<int32_t> find(const Function& primitive, uint64_t hash, KernelOf what) const;
  std::unique_ptr<Kernel> made_of(const Function& primitive, KernelOf what,
                                  const VariantSizes& sizes) const;
  int32_t keep(std::unique_ptr<Kernel> kernel);
  // Of the host or one of the program's devices. Throws UserError E0401, with the place, for another device.
  const Target& target_of(const FunctionNode& primitive) const;
  // Of the first source that has one; null where none has.
  std::unique_ptr<Kernel> offered(const Function& primitive, const std::string& name) const;
  int32_t add(const Function& primitive, KernelOf what, const VariantSizes& sizes);
  // The kernel of the primitive function with these sizes.
  int32_t sized(int32_t kernel, const VariantSizes& sizes);
  void add_variant(Kernel& kernel, int32_t index, const VariantRequest& request);
  std::string unique_name(const std::string& base);
  void schedule(Variant& v) const;

  std::unique_ptr<const ProviderOptions> options_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<Variant>> variants_;
  std::unordered_map<uint64_t, std::vector<int32_t>> by_hash_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<Alike>>> alike_;
  // Of variants: how many there are of a name before they are distinguished, and their own names.
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_set<std::string> names_;
};

}  // namespace relay
