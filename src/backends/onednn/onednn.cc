// librelay_onednn.so: regions of a program that oneDNN computes. The kernels that python/relay/onednn.py describes are the
// function relay_onednn_region; nothing links this library.
//
// A region is a list of primitives over values. The first run of a region makes a plan: primitives in the layouts that
// oneDNN prefers, constants in these layouts, reorders where two primitives disagree, and one offset in working memory for each
// intermediate result. Plans are found again by the id of the description, a hash of all its bytes. Inputs and results are
// row-major. oneDNN itself (libdnnl.so.3, any version 3) is opened when the first program that needs it
// is loaded.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "backends/onednn/description.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/print.h"
#include "runtime/core/string_functions.h"

namespace relay::onednn {
namespace {

// ---- oneDNN's C interface, version 3: what is used of it, by its own numbers.

struct Engine;
struct Stream;
struct Layout;  // dnnl_memory_desc
struct Memory;
struct Attributes;
struct PostOps;
struct PrimitiveDesc;
struct Primitive;
struct Argument {
  int number;
  Memory* memory;
};
struct Version {
  int major, minor, patch;
};

using Dims = std::array<int64_t, kMaxRank>;

enum Status { kSuccess = 0, kOutOfMemory = 1 };
constexpr int kCpu = 1, kInOrder = 1, kForwardInference = 96, kFloat32 = 3, kAnyLayout = 1;
constexpr int kConvolutionAuto = 3, kUserScratchpad = 1;
constexpr int kSource = 1, kSource1 = 2, kResult = 17, kWeights = 33, kBias = 41, kScratchpad = 80;
constexpr int kQuerySource = 129, kQueryWeights = 131, kQueryResult = 133, kQueryScratchpad = 136;

struct Api {
  const Version* (*version)();
  int (*engine_create)(Engine**, int kind, size_t index);
  int (*stream_create)(Stream**, Engine*, unsigned flags);
  int (*stream_wait)(Stream*);
  int (*stream_destroy)(Stream*);
  int (*layout_with_tag)(Layout**, int rank, const int64_t* dims, int dtype, int tag);
  int (*layout_with_strides)(Layout**, int rank, const int64_t* dims, int dtype,
                             const int64_t* strides);
  int (*layout_clone)(Layout**, const Layout*);
  int (*layout_equal)(const Layout*, const Layout*);
  int (*layout_destroy)(Layout*);
  size_t (*layout_size)(const Layout*);
  int (*memory_create)(Memory**, const Layout*, Engine*, void* address);
  int (*memory_set_address)(Memory*, void* address);
  int (*memory_destroy)(Memory*);
  int (*attributes_create)(Attributes**);
  int (*attributes_set_scratchpad)(Attributes*, int mode);
  int (*attributes_set_post_ops)(Attributes*, const PostOps*);
  int (*attributes_destroy)(Attributes*);
  int (*post_ops_create)(PostOps**);
  int (*post_ops_sum)(PostOps*, float scale, int32_t zero_point, int dtype);
  int (*post_ops_eltwise)(PostOps*, int algorithm, float alpha, float beta);
  int (*post_ops_destroy)(PostOps*);
  int (*convolution)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                     const Layout* weights, const Layout* bias, const Layout* result,
                     const int64_t* strides, const int64_t* dilations, const int64_t* before,
                     const int64_t* after, const Attributes*);
  int (*matmul)(PrimitiveDesc**, Engine*, const Layout* source, const Layout* weights,
                const Layout* bias, const Layout* result, const Attributes*);
  int (*pooling)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                 const Layout* result, const int64_t* strides, const int64_t* window,
                 const int64_t* dilations, const int64_t* before, const int64_t* after,
                 const Attributes*);
  int (*eltwise)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                 const Layout* result, float alpha, float beta, const Attributes*);
  int (*binary)(PrimitiveDesc**, Engine*, int algorithm, const Layout* source,
                const Layout* source1, const Layout* result, const Attributes*);
  int (*reorder)(PrimitiveDesc**, const Layout* from, Engine*, const Layout* to, Engine*,
                 const Attributes*);
  const Layout* (*query_layout)(const PrimitiveDesc*, int what, int index);
  int (*desc_destroy)(PrimitiveDesc*);
  int (*primitive_create)(Primitive**, const PrimitiveDesc*);
  int (*primitive_execute)(const Primitive*, Stream*, int count, const Argument*);
  int (*primitive_destroy)(Primitive*);
  int (*omp_max_threads)();
  void (*omp_set_threads)(int);
};

struct Opened {
  Api api = {};
  std::string fault;  // why there is none; empty: there is
};

// Files that may be oneDNN: what RELAY_ONEDNN names and nothing else; or that of the Python environment whose package this
// library is part of (lib/python3.x/site-packages/relay/lib), then that of the system.
std::vector<std::string> candidates() {
  const char* named = std::getenv("RELAY_ONEDNN");
  if (named != nullptr && *named != 0) return {named};
  Dl_info here = {};
  std::vector<std::string> out;
  if (dladdr(reinterpret_cast<const void*>(&candidates), &here) != 0 && here.dli_fname != nullptr) {
    const std::string own = here.dli_fname;
    // A relative name would be looked up from the working directory.
    if (own.starts_with('/')) {
      out.push_back(own.substr(0, own.rfind('/') + 1) + "../../../../libdnnl.so.3");
    }
  }
  out.emplace_back("libdnnl.so.3");
  return out;
}

Opened open_onednn() {
  Opened out;
  void* library = nullptr;
  std::string file;
  for (const std::string& candidate : candidates()) {
    if (library == nullptr) library = dlopen((file = candidate).c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (library == nullptr) {
    out.fault = "oneDNN, " + file +
                ", cannot be opened; install onednn-cpu-gomp, or name the library in RELAY_ONEDNN";
    return out;
  }
  auto find = [&](auto& function, const char* name) {
    void* found = dlsym(library, name);
    if (found == nullptr && out.fault.empty()) out.fault = file + " has no function " + name;
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(found);
  };
  Api& a = out.api;
  find(a.version, "dnnl_version");
  if (out.fault.empty() && a.version()->major != 3) {
    out.fault = file + " is version " + std::to_string(a.version()->major) +
                " of oneDNN instead of version 3";
    return out;
  }
  find(a.engine_create, "dnnl_engine_create");
  find(a.stream_create, "dnnl_stream_create");
  find(a.stream_wait, "dnnl_stream_wait");
  find(a.stream_destroy, "dnnl_stream_destroy");
  find(a.layout_with_tag, "dnnl_memory_desc_create_with_tag");
  find(a.layout_with_strides, "dnnl_memory_desc_create_with_strides");
  find(a.layout_clone, "dnnl_memory_desc_clone");
  find(a.layout_equal, "dnnl_memory_desc_equal");
  find(a.layout_destroy, "dnnl_memory_desc_destroy");
  find(a.layout_size, "dnnl_memory_desc_get_size");
  find(a.memory_create, "dnnl_memory_create");
  find(a.memory_set_address, "dnnl_memory_set_data_handle");
  find(a.memory_destroy, "dnnl_memory_destroy");
  find(a.attributes_create, "dnnl_primitive_attr_create");
  find(a.attributes_set_scratchpad, "dnnl_primitive_attr_set_scratchpad_mode");
  find(a.attributes_set_post_ops, "dnnl_primitive_attr_set_post_ops");
  find(a.attributes_destroy, "dnnl_primitive_attr_destroy");
  find(a.post_ops_create, "dnnl_post_ops_create");
  find(a.post_ops_sum, "dnnl_post_ops_append_sum");
  find(a.post_ops_eltwise, "dnnl_post_ops_append_eltwise");
  find(a.post_ops_destroy, "dnnl_post_ops_destroy");
  find(a.convolution, "dnnl_convolution_forward_primitive_desc_create");
  find(a.matmul, "dnnl_matmul_primitive_desc_create");
  find(a.pooling, "dnnl_pooling_forward_primitive_desc_create");
  find(a.eltwise, "dnnl_eltwise_forward_primitive_desc_create");
  find(a.binary, "dnnl_binary_primitive_desc_create");
  find(a.reorder, "dnnl_reorder_primitive_desc_create");
  find(a.query_layout, "dnnl_primitive_desc_query_md");
  find(a.desc_destroy, "dnnl_primitive_desc_destroy");
  find(a.primitive_create, "dnnl_primitive_create");
  find(a.primitive_execute, "dnnl_primitive_execute");
  find(a.primitive_destroy, "dnnl_primitive_destroy");
  // Of the OpenMP that it is linked with.
  find(a.omp_max_threads, "omp_get_max_threads");
  find(a.omp_set_threads, "omp_set_num_threads");
  return out;
}

const Opened& onednn() {
  // Never closed: its threads live as long as the process.
  static const Opened* const opened = new Opened(open_onednn());
  return *opened;
}
const Api& api() { return onednn().api; }

struct Failure : std::runtime_error {
  Failure(const char* step, int status)
      : std::runtime_error(std::string(step) + " gave status " + std::to_string(status)),
        status(status) {}
  int status;
};
void check(int status, const char* step) {
  if (status != kSuccess) throw Failure(step, status);
}

// An object of oneDNN with the function that destroys it.
template <typename T, auto Destroy>
struct Destroyer {
  void operator()(T* object) const { (api().*Destroy)(object); }
};
template <typename T, auto Destroy>
using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;
using OwnedLayout = Owned<Layout, &Api::layout_destroy>;
using OwnedMemory = Owned<Memory, &Api::memory_destroy>;
using OwnedStream = Owned<Stream, &Api::stream_destroy>;
using OwnedDesc = Owned<PrimitiveDesc, &Api::desc_destroy>;
using OwnedPrimitive = Owned<Primitive, &Api::primitive_destroy>;
using OwnedAttributes = Owned<Attributes, &Api::attributes_destroy>;
using OwnedPostOps = Owned<PostOps, &Api::post_ops_destroy>;

Engine* engine() {
  static Engine* const cpu = [] {
    Engine* out = nullptr;
    check(api().engine_create(&out, kCpu, 0), "dnnl_engine_create");
    return out;
  }();
  return cpu;
}

OwnedLayout layout_of(std::span<const int64_t> dims, std::span<const int64_t> strides) {
  Layout* out = nullptr;
  check(api().layout_with_strides(&out, static_cast<int>(dims.size()), dims.data(), kFloat32,
                                  strides.data()),
        "dnnl_memory_desc_create_with_strides");
  return OwnedLayout(out);
}
OwnedLayout row_major(std::span<const int64_t> dims) {
  if (dims.size() > kMaxRank) throw std::runtime_error("a tensor has more than 12 dimensions");
  Dims strides = {};
  int64_t next = 1;
  for (size_t i = dims.size(); i-- > 0; next *= std::max<int64_t>(dims[i], 1)) strides[i] = next;
  return layout_of(dims, {strides.data(), dims.size()});
}
OwnedLayout any_layout(std::span<const int64_t> dims) {
  Layout* out = nullptr;
  check(
      api().layout_with_tag(&out, static_cast<int>(dims.size()), dims.data(), kFloat32, kAnyLayout),
      "dnnl_memory_desc_create_with_tag");
  return OwnedLayout(out);
}
OwnedLayout copy_of(const Layout* layout) {
  Layout* out = nullptr;
  check(api().layout_clone(&out, layout), "dnnl_memory_desc_clone");
  return OwnedLayout(out);
}

// ---- Plans.

constexpr size_t kAlignment = 64;
struct AlignedDelete {
  void operator()(std::byte* bytes) const {
    ::operator delete(bytes, std::align_val_t(kAlignment));
  }
};
using AlignedBytes = std::unique_ptr<std::byte, AlignedDelete>;
AlignedBytes aligned_bytes(size_t count) {
  return AlignedBytes(static_cast<std::byte*>(::operator new(count, std::align_val_t(kAlignment))));
}

// Where a tensor lies: with this layout, in a buffer of the call, in working memory, or in memory of the plan.
struct Slot {
  enum Place { kInput, kOutput, kWorking, kConstant, kDescription };
  Place place;
  OwnedLayout layout;
  size_t index = 0;  // of the buffer; of working memory and of the description: the offset in bytes
  AlignedBytes bytes = nullptr;  // of a constant
  size_t first = 0, last = 0;    // steps that write and read it
  // Of the same memory as another slot, which comes before it.
  int64_t same_as = -1;
};

struct Step {
  OwnedPrimitive primitive;
  std::vector<std::pair<int, size_t>> arguments;  // number of oneDNN, slot
};

// What one thread at a time needs to run a plan.
struct Instance {
  OwnedStream stream;
  std::vector<OwnedMemory> memories;  // by slot
};

class Plan {
 public:
  // Of a description that fits `sizes`, those of a call.
  Plan(const Description& region, const void* data, const int64_t* sizes)
      : region_(region),
        data_(static_cast<const std::byte*>(data)),
        sizes_(region.sizes(sizes[0])) {
    check_sizes(sizes);
    values_.resize(region.values.size(), -1);
    last_use_.resize(region.values.size(), 0);
    for (size_t i = 0; i < region.ops.size(); ++i) {
      for (int64_t v : region.ops[i].operands) last_use_[static_cast<size_t>(v)] = i;
    }
    for (int64_t v : region.outputs) last_use_[static_cast<size_t>(v)] = region.ops.size();
    for (size_t v = 0; v < values_.size(); ++v) {
      const ValueRow& row = region.values[v];
      if (row.role == Role::computed) continue;
      const bool input = row.role == Role::input;
      values_[v] = static_cast<int64_t>(
          add({.place = input ? Slot::kInput : Slot::kDescription,
               .layout = row_major(row.dims),
               .index = input ? num_inputs_++ : static_cast<size_t>(row.offset)}));
    }
    for (now_ = 0; now_ < region.ops.size(); ++now_) add_op(region.ops[now_]);
    for (size_t i = 0; i < region.outputs.size(); ++i) {
      const auto v = static_cast<size_t>(region.outputs[i]);
      const size_t to =
          add({.place = Slot::kOutput, .layout = row_major(region.values[v].dims), .index = i});
      add_reorder(slot_of(v), to);
    }
    place_working_memory();
  }

  size_t working_bytes() const { return working_bytes_; }

  // Whether a call has the buffers that the plan reads and writes. Nothing is read behind the first size that differs.
  void check_sizes(const int64_t* sizes) const {
    if (!std::equal(sizes_.begin(), sizes_.end(), sizes)) {
      throw std::runtime_error("the sizes of a region's operands are not those of its description");
    }
  }

  void run(void* const* buffers, std::byte* working) {
    std::unique_ptr<Instance> instance = take();
    std::vector<Argument> arguments;
    for (size_t s = 0; s < slots_.size(); ++s) {
      const Slot& slot = slots_[s];
      void* address = nullptr;
      switch (slot.place) {
        // The description comes first, then the inputs and the results.
        case Slot::kInput:
          address = buffers[1 + slot.index];
          break;
        case Slot::kOutput:
          address = buffers[1 + num_inputs_ + slot.index];
          break;
        case Slot::kWorking:
          address = working + slot.index;
          break;
        case Slot::kConstant:
        case Slot::kDescription:
          continue;
      }
      check(api().memory_set_address(instance->memories[s].get(), address),
            "dnnl_memory_set_data_handle");
    }
    for (const Step& step : steps_) {
      execute(step, *instance, arguments);
    }
    check(api().stream_wait(instance->stream.get()), "dnnl_stream_wait");
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(instance));
  }

 private:
  size_t add(Slot slot) {
    slots_.push_back(std::move(slot));
    return slots_.size() - 1;
  }
  size_t slot_of(size_t value) const { return static_cast<size_t>(values_[value]); }

  OwnedMemory memory_of(const Slot& slot, const void* address) {
    Memory* out = nullptr;
    check(api().memory_create(&out, slot.layout.get(), engine(), const_cast<void*>(address)),
          "dnnl_memory_create");
    return OwnedMemory(out);
  }

  std::unique_ptr<Instance> take() {
    {
      std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto out = std::move(idle_.back());
        idle_.pop_back();
        return out;
      }
    }
    auto out = std::make_unique<Instance>();
    Stream* stream = nullptr;
    check(api().stream_create(&stream, engine(), kInOrder), "dnnl_stream_create");
    out->stream.reset(stream);
    for (size_t s = 0; s < slots_.size(); ++s) {
      // Of a view, the bytes are those of its owner.
      out->memories.push_back(memory_of(slots_[s], slots_[root(s)].bytes.get()));
    }
    return out;
  }

  static void execute(const Step& step, const Instance& instance,
                      std::vector<Argument>& arguments) {
    arguments.clear();
    for (auto [number, slot] : step.arguments) {
      arguments.push_back({number, instance.memories[slot].get()});
    }
    check(api().primitive_execute(step.primitive.get(), instance.stream.get(),
                                  static_cast<int>(arguments.size()), arguments.data()),
          "dnnl_primitive_execute");
  }

  static OwnedPrimitive primitive_of(const PrimitiveDesc* desc) {
    Primitive* out = nullptr;
    check(api().primitive_create(&out, desc), "dnnl_primitive_create");
    return OwnedPrimitive(out);
  }

  void add_reorder(size_t from, size_t to) {
    PrimitiveDesc* desc = nullptr;
    check(api().reorder(&desc, slots_[from].layout.get(), engine(), slots_[to].layout.get(),
                        engine(), nullptr),
          "dnnl_reorder_primitive_desc_create");
    const OwnedDesc owned(desc);
    push_step(desc, {{kSource, from}, {kResult, to}});
  }

  void push_step(const PrimitiveDesc* desc, std::vector<std::pair<int, size_t>> arguments) {
    for (auto [number, slot] : arguments) keep(slots_[root(slot)]);
    steps_.push_back({primitive_of(desc), std::move(arguments)});
  }
  // A constant that a step reads as it is becomes memory of the plan: the description is another buffer in another run.
  void keep(Slot& slot) {
    if (slot.place != Slot::kDescription) return;
    const size_t bytes = api().layout_size(slot.layout.get());
    slot.bytes = aligned_bytes(bytes);
    std::memcpy(slot.bytes.get(), data_ + slot.index, bytes);
    slot.place = Slot::kConstant;
  }
  // Where the bytes of a constant are while the plan is made; null for other slots.
  const std::byte* constant(size_t slot) const {
    const Slot& owner = slots_[root(slot)];
    return owner.place == Slot::kDescription ? data_ + owner.index : owner.bytes.get();
  }

  // A constant in another layout, computed once.
  size_t packed(size_t from, const Layout* wanted) {
    Slot to{.place = Slot::kConstant, .layout = copy_of(wanted)};
    to.bytes = aligned_bytes(api().layout_size(wanted));
    PrimitiveDesc* desc = nullptr;
    check(api().reorder(&desc, slots_[from].layout.get(), engine(), wanted, engine(), nullptr),
          "dnnl_reorder_primitive_desc_create");
    const OwnedDesc owned(desc);
    const OwnedPrimitive primitive = primitive_of(desc);
    const OwnedMemory source = memory_of(slots_[from], constant(from));
    const OwnedMemory result = memory_of(to, to.bytes.get());
    Stream* stream = nullptr;
    check(api().stream_create(&stream, engine(), kInOrder), "dnnl_stream_create");
    const OwnedStream owned_stream(stream);
    const std::array arguments = {Argument{kSource, source.get()}, Argument{kResult, result.get()}};
    check(api().primitive_execute(primitive.get(), stream, 2, arguments.data()),
          "dnnl_primitive_execute");
    check(api().stream_wait(stream), "dnnl_stream_wait");
    return add(std::move(to));
  }

  // The slot of `from`, which has the logical layout `as`, in the layout `wanted`.
  size_t in_layout(size_t from, const Layout* wanted) {
    if (api().layout_equal(slots_[from].layout.get(), wanted) != 0) return from;
    if (constant(from) != nullptr) return packed(from, wanted);
    const size_t to = add({.place = Slot::kWorking, .layout = copy_of(wanted)});
    add_reorder(from, to);
    return to;
  }
  // Of a value; later users find it in that layout.
  size_t value_in(size_t value, const Layout* wanted) {
    const size_t slot = in_layout(slot_of(value), wanted);
    if (region_.values[value].role != Role::constant) values_[value] = static_cast<int64_t>(slot);
    return slot;
  }
  // The row-major bytes of a value under other dimensions, or other strides.
  size_t viewed(size_t value, OwnedLayout layout) {
    const OwnedLayout plain = row_major(region_.values[value].dims);
    const size_t slot = value_in(value, plain.get());
    return add({.place = slots_[slot].place,
                .layout = std::move(layout),
                .index = slots_[slot].index,
                .same_as = static_cast<int64_t>(slot)});
  }

  OwnedAttributes attributes_of(const OpRow& op) {
    Attributes* out = nullptr;
    check(api().attributes_create(&out), "dnnl_primitive_attr_create");
    OwnedAttributes owned(out);
    check(api().attributes_set_scratchpad(out, kUserScratchpad),
          "dnnl_primitive_attr_set_scratchpad_mode");
    if (op.post_ops.empty()) return owned;
    PostOps* ops = nullptr;
    check(api().post_ops_create(&ops), "dnnl_post_ops_create");
    const OwnedPostOps owned_ops(ops);
    for (const PostOp& p : op.post_ops) {
      check(p.sum ? api().post_ops_sum(ops, 1, 0, kFloat32)
                  : api().post_ops_eltwise(ops, p.algorithm, p.alpha, p.beta),
            "dnnl_post_ops_append");
    }
    check(api().attributes_set_post_ops(out, ops), "dnnl_primitive_attr_set_post_ops");
    return owned;
  }

  // The slot of the result: that of the addend, where nothing else reads it, or one that holds a copy of it.
  size_t result_slot(const OpRow& op, const Layout* layout, bool adds, size_t source) {
    if (!adds) return add({.place = Slot::kWorking, .layout = copy_of(layout)});
    const auto addend = static_cast<size_t>(op.operands.back());
    const size_t from = slot_of(addend);
    const bool free = slots_[from].place == Slot::kWorking && last_use_[addend] == now_ &&
                      root(from) != root(source) &&
                      api().layout_equal(slots_[from].layout.get(), layout) != 0;
    if (free) return from;
    const size_t to = add({.place = Slot::kWorking, .layout = copy_of(layout)});
    add_reorder(from, to);
    return to;
  }
  size_t root(size_t slot) const {
    while (slots_[slot].same_as >= 0) slot = static_cast<size_t>(slots_[slot].same_as);
    return slot;
  }

  void add_step(const OpRow& op, const OwnedDesc& desc,
                std::vector<std::pair<int, size_t>> arguments, size_t result) {
    const Layout* scratch = api().query_layout(desc.get(), kQueryScratchpad, 0);
    if (scratch != nullptr && api().layout_size(scratch) > 0) {
      arguments.emplace_back(kScratchpad,
                             add({.place = Slot::kWorking, .layout = copy_of(scratch)}));
    }
    arguments.emplace_back(kResult, result);
    push_step(desc.get(), std::move(arguments));
    values_[op.result] = static_cast<int64_t>(result);
  }

  const std::vector<int64_t>& dims_of(int64_t value) const {
    return region_.values[static_cast<size_t>(value)].dims;
  }

  void add_op(const OpRow& op) {
    switch (op.kind) {
      case Kind::convolution:
        return add_convolution(op);
      case Kind::matmul:
        return add_matmul(op);
      case Kind::pooling:
        return add_pooling(op);
      case Kind::eltwise:
        return add_eltwise(op);
      case Kind::binary:
        return add_binary(op);
    }
  }

  void add_convolution(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const auto weights = static_cast<size_t>(op.operands[1]);
    const OwnedAttributes attributes = attributes_of(op);
    const OwnedLayout s = any_layout(dims_of(op.operands[0]));
    const OwnedLayout w = any_layout(dims_of(op.operands[1]));
    const OwnedLayout b = op.has_bias ? row_major(dims_of(op.operands[2])) : nullptr;
    const OwnedLayout r = any_layout(region_.values[op.result].dims);
    PrimitiveDesc* made = nullptr;
    check(api().convolution(&made, engine(), kForwardInference, kConvolutionAuto, s.get(), w.get(),
                            b.get(), r.get(), op.settings[0].data(), op.settings[1].data(),
                            op.settings[2].data(), op.settings[3].data(), attributes.get()),
          "dnnl_convolution_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = value_in(source, api().query_layout(made, kQuerySource, 0));
    std::vector<std::pair<int, size_t>> arguments = {
        {kSource, from}, {kWeights, value_in(weights, api().query_layout(made, kQueryWeights, 0))}};
    if (op.has_bias) {
      arguments.emplace_back(kBias, value_in(static_cast<size_t>(op.operands[2]), b.get()));
    }
    add_step(op, desc, std::move(arguments),
             result_slot(op, api().query_layout(made, kQueryResult, 0), op.adds(), from));
  }

  // Matrices of one number of rows, or batches of matrices. Source and result are row-major.
  void add_matmul(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const auto weights = static_cast<size_t>(op.operands[1]);
    std::vector<int64_t> w_dims = dims_of(op.operands[1]);
    std::vector<int64_t> s_dims = dims_of(op.operands[0]);
    const std::vector<int64_t>& full = region_.values[op.result].dims;
    std::vector<int64_t> r_dims = full;
    if (w_dims.size() == 2) {
      int64_t rows = 1;
      for (size_t i = 0; i + 1 < s_dims.size(); ++i) rows *= s_dims[i];
      s_dims = {rows, s_dims.back()};
      r_dims = {rows, r_dims.back()};
    }
    const size_t rank = w_dims.size();
    Dims strides = {};
    int64_t next = 1;
    for (size_t i = rank; i-- > 0; next *= w_dims[i]) strides[i] = next;
    if (op.settings[0][0] != 0) {
      std::swap(w_dims[rank - 1], w_dims[rank - 2]);
      std::swap(strides[rank - 1], strides[rank - 2]);
    }
    const OwnedAttributes attributes = attributes_of(op);
    const OwnedLayout s = row_major(s_dims);
    const OwnedLayout w_given = layout_of(w_dims, {strides.data(), rank});
    const bool constant = region_.values[weights].role == Role::constant;
    const OwnedLayout w = constant ? any_layout(w_dims) : copy_of(w_given.get());
    const std::vector<int64_t> b_dims = {1, r_dims.back()};
    const OwnedLayout b = op.has_bias ? row_major(b_dims) : nullptr;
    const OwnedLayout r = row_major(r_dims);
    PrimitiveDesc* made = nullptr;
    check(api().matmul(&made, engine(), s.get(), w.get(), b.get(), r.get(), attributes.get()),
          "dnnl_matmul_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = viewed(source, row_major(s_dims));
    size_t by = viewed(weights, copy_of(w_given.get()));
    if (constant) by = packed(by, api().query_layout(made, kQueryWeights, 0));
    std::vector<std::pair<int, size_t>> arguments = {{kSource, from}, {kWeights, by}};
    if (op.has_bias) {
      const size_t bias = viewed(static_cast<size_t>(op.operands[2]), row_major(b_dims));
      arguments.emplace_back(kBias, in_layout(bias, b.get()));
    }
    // The result under its own dimensions, of which the primitive sees a view.
    const OwnedLayout plain = row_major(full);
    const size_t result = result_slot(op, plain.get(), op.adds(), from);
    const size_t view = add({.place = Slot::kWorking,
                             .layout = row_major(r_dims),
                             .same_as = static_cast<int64_t>(result)});
    add_step(op, desc, std::move(arguments), view);
    values_[op.result] = static_cast<int64_t>(result);
  }

  void add_pooling(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const OwnedAttributes attributes = attributes_of(op);
    const OwnedLayout r = any_layout(region_.values[op.result].dims);
    PrimitiveDesc* made = nullptr;
    check(api().pooling(&made, engine(), kForwardInference, op.algorithm,
                        slots_[slot_of(source)].layout.get(), r.get(), op.settings[0].data(),
                        op.settings[4].data(), op.settings[1].data(), op.settings[2].data(),
                        op.settings[3].data(), attributes.get()),
          "dnnl_pooling_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = slot_of(source);
    add_step(op, desc, {{kSource, from}},
             result_slot(op, api().query_layout(made, kQueryResult, 0), false, from));
  }

  void add_eltwise(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const size_t from = slot_of(source);
    OpRow plain = op;
    plain.post_ops.clear();
    const OwnedAttributes attributes = attributes_of(plain);
    const Layout* layout = slots_[from].layout.get();
    const PostOp& f = op.post_ops.at(0);
    PrimitiveDesc* made = nullptr;
    check(api().eltwise(&made, engine(), kForwardInference, f.algorithm, layout, layout, f.alpha,
                        f.beta, attributes.get()),
          "dnnl_eltwise_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    add_step(op, desc, {{kSource, from}}, result_slot(op, layout, false, from));
  }

  void add_binary(const OpRow& op) {
    const OwnedAttributes attributes = attributes_of(op);
    const size_t a = slot_of(static_cast<size_t>(op.operands[0]));
    const OwnedLayout layout = copy_of(slots_[a].layout.get());
    const size_t b = value_in(static_cast<size_t>(op.operands[1]), layout.get());
    PrimitiveDesc* made = nullptr;
    check(api().binary(&made, engine(), op.algorithm, layout.get(), layout.get(), layout.get(),
                       attributes.get()),
          "dnnl_binary_primitive_desc_create");
    const OwnedDesc desc(made);
    add_step(op, desc, {{kSource, a}, {kSource1, b}}, result_slot(op, layout.get(), false, a));
  }

  // An offset for each slot in working memory; slots that are not live in one step share memory.
  void place_working_memory() {
    std::vector<bool> used(slots_.size(), false);
    for (size_t i = 0; i < steps_.size(); ++i) {
      for (auto [number, slot] : steps_[i].arguments) {
        const size_t owner = root(slot);
        if (!used[owner]) slots_[owner].first = i;
        slots_[owner].last = i;
        used[owner] = true;
      }
    }
    struct Block {
      size_t begin, end, last;
    };
    std::vector<size_t> order;
    for (size_t s = 0; s < slots_.size(); ++s) {
      if (slots_[s].place == Slot::kWorking && slots_[s].same_as < 0 && used[s]) order.push_back(s);
    }
    std::ranges::stable_sort(order, {}, [&](size_t s) { return slots_[s].first; });
    std::vector<Block> live;
    for (size_t s : order) {
      Slot& slot = slots_[s];
      std::erase_if(live, [&](const Block& b) { return b.last < slot.first; });
      std::ranges::sort(live, {}, &Block::begin);
      const size_t bytes =
          (api().layout_size(slot.layout.get()) + kAlignment - 1) / kAlignment * kAlignment;
      size_t at = 0;
      for (const Block& b : live) {
        if (b.begin >= at + bytes) break;
        at = std::max(at, b.end);
      }
      slot.index = at;
      live.push_back({at, at + bytes, slot.last});
      working_bytes_ = std::max(working_bytes_, at + bytes);
    }
    for (Slot& slot : slots_) {
      if (slot.same_as < 0) continue;
      const Slot& owner = slots_[root(static_cast<size_t>(slot.same_as))];
      slot.place = owner.place;
      slot.index = owner.index;
    }
  }

  // Both live while the plan is made, and no longer.
  const Description& region_;
  const std::byte* data_;
  std::vector<int64_t> sizes_;  // of each call
  size_t num_inputs_ = 0;
  size_t now_ = 0;               // the operator that is added
  std::vector<int64_t> values_;  // by value: its slot
  std::vector<size_t> last_use_;
  std::vector<Slot> slots_;
  std::vector<Step> steps_;
  size_t working_bytes_ = 0;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Instance>> idle_;
};

// The plans of the last regions that ran. Primitives are made for a number of threads.
class Plans {
 public:
  // The plan of a description for a call with these sizes.
  std::shared_ptr<Plan> of(const void* data, const int64_t* sizes, int threads) {
    const std::shared_ptr<Entry> entry = entry_of({id_of(data, sizes[0]), threads});
    // Runs of other regions go on while a plan is made.
    std::lock_guard lock(entry->mutex);
    if (entry->plan == nullptr) {
      entry->plan = std::make_shared<Plan>(read(data, sizes[0]), data, sizes);
    }
    entry->plan->check_sizes(sizes);
    return entry->plan;
  }

 private:
  static constexpr size_t kMaxPlans = 512;
  using Key = std::pair<Id, int>;
  struct Entry {
    std::mutex mutex;
    std::shared_ptr<Plan> plan;  // null until it is made
  };

  std::shared_ptr<Entry> entry_of(const Key& key) {
    std::lock_guard lock(mutex_);
    if (auto found = entries_.find(key); found != entries_.end()) {
      order_.splice(order_.begin(), order_, found->second.second);
      return found->second.first;
    }
    auto entry = std::make_shared<Entry>();
    order_.push_front(key);
    entries_.emplace(key, std::pair(entry, order_.begin()));
    if (entries_.size() > kMaxPlans) {
      entries_.erase(order_.back());
      order_.pop_back();
    }
    return entry;
  }

  std::mutex mutex_;
  std::list<Key> order_;  // the last used first
  std::map<Key, std::pair<std::shared_ptr<Entry>, std::list<Key>::iterator>> entries_;
};

Plans& plans() {
  static auto* const all = new Plans;
  return *all;
}

// OpenMP's number of threads for the calls of this thread, put back at the end.
class Threads {
 public:
  explicit Threads(int count) : before_(api().omp_max_threads()) { api().omp_set_threads(count); }
  ~Threads() { api().omp_set_threads(before_); }
  Threads(const Threads&) = delete;

 private:
  int before_;
};

// Ends the run with an error that says `reason`.
void fail(const relay_kernel_context* ctx, const std::string& reason) try {
  const std::string text = "oneDNN: " + reason;
  // A string as kernels have it: its size, then its bytes.
  const auto size = static_cast<uint32_t>(text.size());
  std::vector<char> string(sizeof(size) + text.size());
  std::memcpy(string.data(), &size, sizeof(size));
  std::memcpy(string.data() + sizeof(size), text.data(), text.size());
  const std::array<int64_t, 3> words = {std::bit_cast<int64_t>(string.data()), 0, 0};
  const int64_t so_far = ctx->strings[runtime::string_function("print_text")](ctx, words.data());
  const std::array end = {static_cast<int64_t>(runtime::PrintEnd::Failure), so_far};
  ctx->strings[runtime::string_function("print_end")](ctx, end.data());
} catch (const std::bad_alloc&) {
  *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
}

}  // namespace
}  // namespace relay::onednn

// Why no program that needs this library can run; null: it can. The runtime asks when it loads one.
extern "C" __attribute__((visibility("default"))) const char* relay_library_fault() {
  const std::string& fault = relay::onednn::onednn().fault;
  return fault.empty() ? nullptr : fault.c_str();
}

// Computes a region: a relay_kernel whose first buffer is the description.
extern "C" __attribute__((visibility("default"))) void relay_onednn_region(
    void* const* buffers, const int64_t* sizes, const relay_kernel_context* ctx) {
  using namespace relay::onednn;
  try {
    const Threads threads(ctx->num_threads);
    const std::shared_ptr<Plan> plan = plans().of(buffers[0], sizes, ctx->num_threads);
    auto* working = static_cast<std::byte*>(
        ctx->scratch(ctx, static_cast<int64_t>(std::max<size_t>(plan->working_bytes(), 1))));
    if (working == nullptr) {
      *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
      return;
    }
    plan->run(buffers, working);
  } catch (const std::bad_alloc&) {
    *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
  } catch (const std::exception& e) {
    auto* failure = dynamic_cast<const Failure*>(&e);
    if (failure != nullptr && failure->status == kOutOfMemory) {
      *ctx->error = RELAY_KERNEL_OUT_OF_MEMORY;
    } else {
      fail(ctx, e.what());
    }
  }
}
