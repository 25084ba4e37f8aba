#include "lower/kernel_provider.h"

#include <algorithm>

#include "base/codes/kernels.h"
#include "base/codes/lowering.h"
#include "base/parallel.h"
#include "ir/devices.h"
#include "lower/alike_kernels.h"
#include "lower/compose.h"
#include "lower/index_width.h"
#include "lower/kernel_body.h"
#include "lower/rules/row_loops.h"
#include "lower/rules/rules.h"
#include "lower/scalar_form.h"
#include "lower/written_over.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/library_names.h"
#include "target/target_kind.h"
#include "tir/block_contraction.h"
#include "tir/lower_loops.h"
#include "tir/verify.h"
#include "tir/verify_accesses.h"

namespace relay {
namespace {

// So many kernels that differ only in where they read are compiled each by itself: constants may simplify the code.
constexpr int kOwnKernels = 8;

KernelOperand operand_of(const tir::BufferNode& b) {
  KernelOperand out{.dtype = b.dtype, .shape = {}};
  for (const tir::PrimExpr& d : b.shape) out.shape.push_back(tir::as_int(d).value_or(-1));
  for (const tir::PrimExpr& d : b.within) out.within.push_back(tir::as_int(d).value_or(-1));
  out.bytes = tir::bytes_in_memory(b).value_or(-1);
  return out;
}

// One launch that reads the inputs and writes all the rest.
KernelLaunch only_launch(const KernelSignature& s) {
  KernelLaunch out{.name = s.name, .reads = {}, .writes = {}};
  for (size_t i = 0; i < s.inputs.size(); ++i) out.reads.push_back(i);
  for (size_t i = 0; i < s.results.size() + s.workspace.size(); ++i) {
    out.writes.push_back(s.inputs.size() + i);
  }
  return out;
}

KernelSignature signature_of(const ComposedKernel& kernel) {
  const tir::PrimFuncNode& f = *kernel.func.get();
  KernelSignature out;
  out.name = f.name;
  for (size_t i = 0; i < f.params.size(); ++i) {
    const bool is_input = i < static_cast<size_t>(f.num_inputs);
    (is_input ? out.inputs : out.results).push_back(operand_of(*f.params[i].get()));
  }
  out.sizes = kernel.dims;
  out.in_place = kernel.in_place;
  out.launches = {only_launch(out)};
  out.flops = kernel.flops;
  out.bytes = kernel.bytes;
  return out;
}

// -1 where they depend on sizes that only a run tells.
int64_t dense_bytes(const TensorTypeNode& t) {
  auto shape = t.const_shape();
  if (!shape) return -1;
  const runtime::DType stored = t.dtype.storage();
  return runtime::checked_num_elements(stored, *shape) * static_cast<int64_t>(stored.bytes());
}

// The buffers of a parameter or result, stored densely.
void add_operands(const Type& type, std::vector<KernelOperand>& out) {
  const auto tensors = flatten_tensor_types(type);
  RELAY_CHECK(tensors, "only tensors go in and out of a kernel");
  for (const TensorType& t : *tensors) {
    KernelOperand operand{.dtype = t->dtype.storage(), .shape = {}, .takes_strides = false};
    for (const Dim& d : t->shape) operand.shape.push_back(as_const(d).value_or(-1));
    operand.bytes = dense_bytes(*t.get());
    out.push_back(std::move(operand));
  }
}

// The function of a launch under its name. It promises that its buffers do not overlap but for those
// which the plan may give one memory.
tir::PrimFunc of_launch(const tir::PrimFunc& f, const KernelLaunch& launch,
                        const std::vector<InPlace>& in_place) {
  auto* node = new tir::PrimFuncNode(*f.get());
  tir::PrimFunc out(node);
  node->name = launch.name;
  node->in_place.clear();
  for (size_t p = 0; p < launch.reads.size(); ++p) {
    if (std::ranges::find(in_place, InPlace{launch.reads[p]}) == in_place.end()) continue;
    node->in_place.push_back(static_cast<int64_t>(p));
  }
  return out;
}

KernelEntry entry_of(const KernelBody& body) {
  if (auto* call = std::get_if<ExternalCall>(&body)) {
    return {KernelEntry::Kind::library, call->library, call->symbol};
  }
  if (auto* host = std::get_if<HostFunction>(&body))
    return {KernelEntry::Kind::host, {}, host->name};
  return {};
}

// A source's defects are found where its kernel is made, not when it runs.
void check_offered(const OfferedKernel& kernel, const KernelSignature& s, std::string_view source) {
  const std::string who = std::string(source) + ", " + s.name + ": ";
  const size_t buffers = s.inputs.size() + s.results.size() + s.workspace.size();
  for (const KernelLaunch& l : s.launches) {
    for (size_t i : l.reads) RELAY_CHECK(i < buffers, who + "no such buffer");
    for (size_t i : l.writes)
      RELAY_CHECK(i >= s.inputs.size() && i < buffers, who + "a launch writes an input");
  }
  for (const InPlace& pair : s.in_place) {
    RELAY_CHECK(pair.input < s.inputs.size() && s.results.size() == 1, who + "no such input");
  }
  if (auto* call = std::get_if<ExternalCall>(&kernel.body)) {
    RELAY_CHECK(runtime::is_library_name(call->library), who + "no file name of a library");
  }
  RELAY_CHECK(s.entry.kind == KernelEntry::Kind::generated || !s.entry.symbol.empty(),
              who + "a function without a name");
  for (const KernelWorkspace& w : s.workspace) {
    for (const Dim& d : w.type->shape) {
      const bool known = as_const(d) || std::ranges::any_of(s.sizes, [&](const Dim& size) {
                           return dim_equal(size, d);
                         });
      RELAY_CHECK(known, who + "a dimension of working memory is not a size of the kernel");
    }
  }
  auto* tir = std::get_if<TirKernel>(&kernel.body);
  RELAY_CHECK(s.launches.size() == (tir == nullptr ? 1 : tir->launches.size()),
              who + "another number of launches");
  for (size_t i = 0; tir != nullptr && i < tir->launches.size(); ++i) {
    const tir::PrimFuncNode& f = *tir->launches[i].composed.get();
    RELAY_CHECK(static_cast<size_t>(f.num_inputs) == s.launches[i].reads.size() &&
                    f.params.size() == s.launches[i].reads.size() + s.launches[i].writes.size() &&
                    f.dims.size() == s.sizes.size(),
                who + "a launch takes other buffers");
  }
  // Only of one launch that writes nothing else is it known when the result's memory is written.
  RELAY_CHECK(
      s.in_place.empty() || tir == nullptr ||
          (s.launches.size() == 1 && s.launches[0].writes == std::vector<size_t>{s.inputs.size()}),
      who + "several launches or buffers are written in place of an input");
}

[[noreturn]] void refuse_variant(const Function& primitive, const KernelSignature& kernel,
                                 const std::string& what, const std::string& help) {
  throw UserError(Diagnostic(codes::kernel_variant, primitive->span,
                             "the kernel " + kernel.name + " has no variant " + what)
                      .help(help));
}

}  // namespace

// A primitive function's kernel, without a place in memory for its buffers.
struct KernelProvider::Kernel {
  Function primitive;
  KernelOf what = KernelOf::result;
  KernelSignature signature{};
  // One of the two: composed of operators, or from a source.
  ComposedKernel composed{};
  std::optional<KernelBody> offered{};
  std::string source{};
  std::string version{};
  std::vector<std::pair<VariantRequest, int32_t>> variants{};
  // With sizes known: the kernels of the primitive function with these sizes.
  std::vector<std::pair<VariantSizes, int32_t>> sized{};
};

struct KernelProvider::Variant {
  int32_t kernel;
  KernelSignature signature;
  KernelBody body;
  bool is_scheduled = false;
};

struct KernelProvider::Alike {
  tir::PrimFunc func;   // of all of them, with positions as sizes
  int count = 0;        // how many were asked for
  int32_t kernel = -1;  // -1: each has its own so far
};

KernelProvider::KernelProvider() : KernelProvider(ProviderOptions{}) {}
KernelProvider::KernelProvider(ProviderOptions options)
    : options_(std::make_unique<const ProviderOptions>(std::move(options))) {}
KernelProvider::~KernelProvider() = default;

std::string to_string(const VariantSizes& sizes) {
  std::string out = to_string(sizes.known);
  for (const auto& [v, most] : sizes.at_most) {
    out += (out.empty() ? "" : ", ") + v->name_hint + " <= " + std::to_string(most);
  }
  return out;
}

KernelProvider::Kernel& KernelProvider::at(int32_t kernel) const {
  return *kernels_[static_cast<size_t>(kernel)];
}
KernelProvider::Variant& KernelProvider::variant_at(int32_t variant) const {
  return *variants_[static_cast<size_t>(variant)];
}

const Target& KernelProvider::target_of(const FunctionNode& primitive) const {
  const runtime::Device device = kernel_device(primitive);
  if (device == runtime::Device::cpu()) return options_->target;
  for (const auto& [known, target] : options_->devices) {
    if (known == device) return target;
  }
  throw UserError(Diagnostic(codes::lower_unsupported, primitive.span,
                             "the program has no target for " + device.to_string())
                      .expected("a target for each device, behind the host's: \"native; ...\"")
                      .help("name the device's target, or place the operator elsewhere"));
}

int32_t KernelProvider::add(const Function& primitive, KernelOf what) {
  return add(primitive, what, {});
}

std::optional<int32_t> KernelProvider::find(const Function& primitive, uint64_t hash,
                                            KernelOf what) const {
  auto same_hash = by_hash_.find(hash);
  if (same_hash == by_hash_.end()) return std::nullopt;
  for (int32_t k : same_hash->second) {
    const Kernel& known = at(k);
    if (known.what == what && structural_equal(known.primitive, primitive)) return k;
  }
  return std::nullopt;
}

std::unique_ptr<KernelProvider::Kernel> KernelProvider::made_of(const Function& primitive,
                                                                KernelOf what,
                                                                const VariantSizes& sizes) const {
  std::string name = kernel_name(*primitive.get());
  if (what == KernelOf::sizes) name += "_sizes";
  for (const auto& [v, size] : sizes.known) name += "_" + std::to_string(size);
  for (const auto& [v, most] : sizes.at_most) name += "_most_" + std::to_string(most);
  if (what == KernelOf::result) {
    if (auto made = offered(primitive, name)) return made;
  }
  auto made = std::make_unique<Kernel>(Kernel{.primitive = primitive, .what = what});
  made->composed = compose(*primitive.get(), name, what);
  if (!sizes.empty()) made->version = to_string(sizes);
  made->signature = signature_of(made->composed);
  made->signature.device = kernel_device(*primitive.get());
  target_of(*primitive.get());
  // Registers are the host's.
  if (what == KernelOf::result && made->signature.device == runtime::Device::cpu()) {
    made->signature.scalar = scalar_form(*primitive.get(), made->composed.func);
  }
  return made;
}

int32_t KernelProvider::keep(std::unique_ptr<Kernel> kernel) {
  kernels_.push_back(std::move(kernel));
  return static_cast<int32_t>(kernels_.size()) - 1;
}

int32_t KernelProvider::add(const Function& primitive, KernelOf what, const VariantSizes& sizes) {
  const uint64_t hash = structural_hash(primitive);
  if (auto known = find(primitive, hash, what)) return *known;
  const int32_t made = keep(made_of(primitive, what, sizes));
  by_hash_[hash].push_back(made);
  return made;
}

int32_t KernelProvider::add_alike(const Function& primitive,
                                  const std::function<TypeVar(size_t)>& name,
                                  std::vector<Dim>& positions) {
  const uint64_t hash = structural_hash(primitive);
  if (auto known = find(primitive, hash, KernelOf::result)) return *known;
  auto made = made_of(primitive, KernelOf::result, {});
  const bool composed = !made->offered && !made->signature.scalar;
  auto alike = composed ? with_positions_as_sizes(made->composed, name) : std::nullopt;
  if (alike) {
    const tir::PrimFunc& f = alike->kernel.func;
    std::vector<std::unique_ptr<Alike>>& same_hash = alike_[structural_hash(f)];
    auto known = std::ranges::find_if(same_hash,
                                      [&](const auto& a) { return structural_equal(a->func, f); });
    if (known == same_hash.end())
      known = same_hash.insert(known, std::make_unique<Alike>(Alike{f}));
    Alike& all = **known;
    if (all.count++ >= kOwnKernels) {
      for (int64_t p : alike->positions) positions.push_back(dim(p));
      if (all.kernel < 0) {
        made->composed = std::move(alike->kernel);
        made->signature = signature_of(made->composed);
        made->signature.device = kernel_device(*primitive.get());
        all.kernel = keep(std::move(made));
      }
      return all.kernel;
    }
  }
  const int32_t index = keep(std::move(made));
  by_hash_[hash].push_back(index);
  return index;
}

std::unique_ptr<KernelProvider::Kernel> KernelProvider::offered(const Function& primitive,
                                                                const std::string& name) const {
  for (const auto& source : options_->sources) {
    auto kernel = source->offer(*primitive.get(), target_of(*primitive.get()));
    if (!kernel) continue;
    auto made = std::make_unique<Kernel>(Kernel{.primitive = primitive});
    KernelSignature& s = made->signature;
    s.name = name;
    s.device = kernel_device(*primitive.get());
    for (const Var& p : primitive->params) add_operands(p->type, s.inputs);
    add_operands(primitive->body->type, s.results);
    s.sizes = std::move(kernel->sizes);
    for (size_t i : kernel->in_place) s.in_place.push_back({.input = i});
    for (const TensorType& t : kernel->workspace) s.workspace.push_back({t, dense_bytes(*t.get())});
    s.launches = std::move(kernel->launches);
    if (s.launches.empty()) s.launches = {only_launch(s)};
    s.entry = entry_of(kernel->body);
    s.flops = kernel->flops;
    s.bytes = kernel->bytes;
    check_offered(*kernel, s, source->name());
    made->source = std::string(source->name()) + (kernel->how.empty() ? "" : ": " + kernel->how);
    made->offered = std::move(kernel->body);
    return made;
  }
  return nullptr;
}

int32_t KernelProvider::sized(int32_t kernel, const VariantSizes& sizes) {
  Kernel& k = at(kernel);
  auto known = std::ranges::find(k.sized, sizes, [](const auto& s) { return s.first; });
  if (known != k.sized.end()) return known->second;
  if (k.what != KernelOf::result) {
    refuse_variant(k.primitive, k.signature, "for " + to_string(sizes),
                   "only a kernel of the result is specialised for sizes");
  }
  TypeParams values;
  for (const auto& [v, size] : sizes.known) values[v.get()] = dim(size);
  for (const auto& [v, size] : sizes.named) values[v.get()] = size;
  std::vector<SizeHint> bounds;
  for (const auto& [v, most] : sizes.at_most) bounds.push_back({v->name_hint, 0, most, {}});
  const Function primitive = with_size_hints(for_sizes(k.primitive, values), bounds);
  if (!broadcasts_of(*primitive.get()).empty()) {
    refuse_variant(k.primitive, k.signature, "for " + to_string(sizes),
                   "which of its other sizes are equal is not known; give more of them");
  }
  const int32_t made = add(primitive, KernelOf::result, sizes);
  k.sized.emplace_back(sizes, made);
  return made;
}

const KernelSignature& KernelProvider::signature(int32_t kernel) const {
  return at(kernel).signature;
}
const KernelSignature& KernelProvider::signature(int32_t kernel, const VariantSizes& sizes) {
  return signature(sized(kernel, sizes));
}

Aliasing KernelProvider::aliasing(int32_t kernel, const InPlace& pair) const {
  const Kernel& k = at(kernel);
  if (k.signature.may_overwrite(pair)) return Aliasing::same_index;
  if (k.offered) return Aliasing::none;
  return written_over(k.composed, {&pair, 1}) ? Aliasing::written_over : Aliasing::none;
}

bool KernelProvider::reduces(int32_t kernel) const {
  if (at(kernel).offered) return false;
  bool found = false;
  post_order(at(kernel).composed.func->body, [&](const Node& n) {
    auto* iter = as<tir::IterVarNode>(&n);
    found = found || (iter != nullptr && iter->kind == tir::IterKind::Reduce);
  });
  return found;
}

bool KernelProvider::has_symbolic_rows(int32_t kernel) const {
  if (at(kernel).offered) return false;
  bool product = false, open = false, other = false;
  post_order(at(kernel).composed.func->body, [&](const Node& n) {
    auto* block = as<tir::BlockNode>(&n);
    if (block == nullptr) return;
    for (const tir::IterVar& iter : block->iters) {
      const ContractionRole role = role_of(*block, iter->var);
      product |= role == ContractionRole::Reduced;
      other |= role == ContractionRole::Window || role == ContractionRole::Batch ||
               role == ContractionRole::Group;
      if (role != ContractionRole::Row) continue;
      auto known = tir::as_int(iter->extent);
      open |= !known;
      other |= known && *known != 1;
    }
  });
  return product && open && !other;
}

std::optional<int64_t> KernelProvider::few_rows(int32_t kernel) const {
  const Kernel& k = at(kernel);
  if (k.signature.device != runtime::Device::cpu() || !has_symbolic_rows(kernel))
    return std::nullopt;
  const auto few = few_rows_of_product(k.composed.func, options_->target);
  return few ? few : few_rows_beside_panels(k.composed.func, options_->target);
}

std::string KernelProvider::unique_name(const std::string& base) {
  std::string name = base;
  for (int& count = name_counts_[base]; !names_.insert(name).second;) {
    name = base + "_" + std::to_string(++count);
  }
  return name;
}

int32_t KernelProvider::variant(int32_t kernel, const VariantRequest& request) {
  if (!request.sizes.empty()) {
    VariantRequest rest = request;
    rest.sizes = {};
    return variant(sized(kernel, request.sizes), rest);
  }
  Kernel& k = at(kernel);
  auto known = std::ranges::find(k.variants, request, [](const auto& v) { return v.first; });
  if (known != k.variants.end()) return known->second;
  const auto index = static_cast<int32_t>(variants_.size());
  add_variant(k, kernel, request);
  k.variants.emplace_back(request, index);
  return index;
}

void KernelProvider::add_variant(Kernel& k, int32_t kernel, const VariantRequest& request) {
  auto refuse = [&](const std::string& what, const std::string& help) {
    refuse_variant(k.primitive, k.signature, what, help);
  };
  const bool is_over = !request.in_place.empty();
  auto over = is_over && !k.offered ? written_over(k.composed, request.in_place) : std::nullopt;
  if (is_over && !over) {
    refuse(
        "whose result takes the memory of input " + std::to_string(request.in_place[0].input),
        "it reads this input at other indices than it writes; give the result memory of its own");
  }
  if (k.offered) {
    for (const std::vector<int64_t>& around : request.within) {
      if (!around.empty()) {
        refuse("for buffers that are parts of larger tensors",
               "kernels of " + k.source + " take dense buffers; copy the part first");
      }
    }
    KernelSignature s = k.signature;
    s.name = unique_name(s.name);
    KernelBody body = *k.offered;
    auto* tir = std::get_if<TirKernel>(&body);
    for (size_t i = 0; i < s.launches.size(); ++i) {
      s.launches[i].name = i == 0 ? s.name : unique_name(s.name + "_launch");
      if (tir == nullptr) continue;
      tir::PrimFunc& f = tir->launches[i].composed;
      f = of_launch(f, s.launches[i], s.in_place);
    }
    variants_.push_back(std::make_unique<Variant>(Variant{kernel, std::move(s), std::move(body)}));
    return;
  }
  ComposedKernel composed = over ? *std::move(over) : k.composed;
  if (!request.within.empty()) composed = in_larger_tensors(std::move(composed), request.within);
  composed = renamed(std::move(composed), unique_name(composed.func->name));
  KernelSignature s = signature_of(composed);
  s.scalar = k.signature.scalar;
  s.device = k.signature.device;
  variants_.push_back(std::make_unique<Variant>(
      Variant{kernel, std::move(s), TirKernel{{{.composed = composed.func}}}}));
}

size_t KernelProvider::num_variants() const { return variants_.size(); }
const KernelSignature& KernelProvider::variant_signature(int32_t variant) const {
  return variant_at(variant).signature;
}
const Target& KernelProvider::variant_target(int32_t variant) const {
  return target_of(*variant_primitive(variant).get());
}
const Function& KernelProvider::variant_primitive(int32_t variant) const {
  return at(variant_at(variant).kernel).primitive;
}
const std::string& KernelProvider::variant_source(int32_t variant) const {
  return at(variant_at(variant).kernel).source;
}
const std::string& KernelProvider::variant_version(int32_t variant) const {
  return at(variant_at(variant).kernel).version;
}

void KernelProvider::schedule(Variant& v) const {
  auto checked = [&](std::string_view stage, tir::PrimFunc f) {
    if (options_->observer) f = options_->observer(stage, std::move(f));
    if (options_->verify) tir::verify(f);
    return f;
  };
  const Target& target = target_of(*at(v.kernel).primitive.get());
  if (auto* body = std::get_if<TirKernel>(&v.body)) {
    for (TirLaunch& l : body->launches) {
      l.composed = checked("compose", l.composed);
      l.scheduled = checked("schedule", schedule_kernel(l.composed, target, options_->opt_level));
    }
  }
  v.is_scheduled = true;
}

void KernelProvider::schedule(const Steps& begin) {
  std::vector<Variant*> left;
  for (const auto& v : variants_) {
    if (!v->is_scheduled) left.push_back(v.get());
  }
  const std::function<void()> each = begin ? begin(left.size()) : nullptr;
  for_each_parallel(left.size(), options_->threads, [&](size_t i) {
    schedule(*left[i]);
    if (each) each();
  });
}

const KernelBody& KernelProvider::lower(int32_t variant) {
  Variant& v = variant_at(variant);
  if (!v.is_scheduled) schedule(v);
  auto* body = std::get_if<TirKernel>(&v.body);
  if (body == nullptr) return v.body;
  const Target& target = variant_target(variant);
  for (TirLaunch& l : body->launches) {
    if (l.lowered) continue;
    l.lowered = tir::lower_loops(l.scheduled, kind_of(target).lowering(), options_->observer);
    if (options_->verify) tir::verify(l.lowered);
    tir::verify_accesses(l.lowered, options_->verify ? tir::Accesses::All : tir::Accesses::Masked);
    tir::PrimFunc narrow = with_index_width(l.lowered, target, variant_primitive(variant)->span);
    const bool changed = narrow.get() != l.lowered.get();
    l.lowered = std::move(narrow);
    if (changed && options_->observer) {
      l.lowered = options_->observer("index_width", std::move(l.lowered));
    }
    if (options_->verify) tir::verify(l.lowered);
  }
  return v.body;
}

const KernelBody& KernelProvider::body(int32_t variant) const { return variant_at(variant).body; }

}  // namespace relay
