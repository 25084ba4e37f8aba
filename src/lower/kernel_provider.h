// Every kernel of a program: what the plan knows of it, and the chain from operators to loops.
//
//   auto provider = std::make_shared<KernelProvider>(options);
//   int32_t k = provider->add(primitive);               // composed; its signature is known
//   int32_t v = provider->variant(k, {.within = ...});  // the kernel for buffers with these strides
//   provider->schedule();                               // all variants that were asked for
//   provider->lower(v)                                  // loops and stores, for code generation
//
// A kernel is composed once and scheduled once for each variant that the plan asks for, in parallel;
// what is not asked for is neither scheduled nor lowered. The plan and the virtual machine see
// signatures and numbers of variants, never a body (lower/kernel_body.h).
#pragma once

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
struct ProviderOptions;

// How a call uses a kernel. Equal requests give the same variant.
struct VariantRequest {
  // For each input and result the shape of the tensor that it is part of, or none; empty when every
  // buffer is dense.
  std::vector<std::vector<int64_t>> within{};
  // The input whose memory the result takes though its elements are read at other indices than they
  // are written (Aliasing::written_over).
  std::optional<size_t> in_place{};
  runtime::Device device{};

  friend bool operator==(const VariantRequest&, const VariantRequest&) = default;
};

// Whether the only result of a kernel may share the memory of an input.
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

  // The kernel of a primitive function; functions that compute the same have one. `sizes`: those of which the function is a
  // version, for its name and reports. Throws UserError E0401, with the place, for what has no kernel.
  int32_t add(const Function& primitive, KernelOf what = KernelOf::result,
              const KnownSizes& sizes = {});
  const Function& primitive(int32_t kernel) const;
  const KernelSignature& signature(int32_t kernel) const;
  // The sizes of which it is a version: "n = 128"; empty where it serves all.
  const std::string& version(int32_t kernel) const;
  Aliasing aliasing(int32_t kernel, size_t input) const;
  // Of a kernel of a source, what the source says of it; empty where it is composed of operators.
  const std::string& source(int32_t kernel) const;
  // Whether the kernel reduces, and whether it is a matrix product all of whose rows are symbolic.
  bool reduces(int32_t kernel) const;
  bool has_symbolic_rows(int32_t kernel) const;

  // The variant for a request. Throws UserError E0405 for one that the kernel cannot give.
  int32_t variant(int32_t kernel, const VariantRequest& request = {});
  size_t num_variants() const;
  // Unlike that of its kernel it has the strides of the request and a name of its own.
  const KernelSignature& variant_signature(int32_t variant) const;
  int32_t kernel_of(int32_t variant) const;

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

  Kernel& at(int32_t kernel) const;
  Variant& variant_at(int32_t variant) const;
  // Of the first source that has one; null where none has.
  std::unique_ptr<Kernel> offered(const Function& primitive, const std::string& name) const;
  void add_variant(Kernel& kernel, int32_t index, const VariantRequest& request);
  std::string unique_name(const std::string& base);
  void schedule(Variant& v) const;

  std::unique_ptr<const ProviderOptions> options_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
  std::vector<std::unique_ptr<Variant>> variants_;
  std::unordered_map<uint64_t, std::vector<int32_t>> by_hash_;
  // Of variants: how many there are of a name before they are distinguished, and their own names.
  std::unordered_map<std::string, int> name_counts_;
  std::unordered_set<std::string> names_;
};

}  // namespace relay
