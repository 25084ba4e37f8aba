#include "backends/onednn/library.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <vector>

namespace relay::onednn {
namespace {

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
  find(a.attributes_set_scales, "dnnl_primitive_attr_set_scales_mask");
  find(a.attributes_set_zero_points, "dnnl_primitive_attr_set_zero_points_mask");
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

}  // namespace

const Opened& onednn() {
  // Never closed: its threads live as long as the process.
  static const Opened* const opened = new Opened(open_onednn());
  return *opened;
}

void check(int status, const char* step) {
  if (status != kSuccess) throw Failure(step, status);
}

Engine* engine() {
  static Engine* const cpu = [] {
    Engine* out = nullptr;
    check(api().engine_create(&out, kCpu, 0), "dnnl_engine_create");
    return out;
  }();
  return cpu;
}

OwnedLayout layout_of(std::span<const int64_t> dims, ElementType type,
                      std::span<const int64_t> strides) {
  Layout* out = nullptr;
  check(api().layout_with_strides(&out, static_cast<int>(dims.size()), dims.data(),
                                  static_cast<int>(type), strides.data()),
        "dnnl_memory_desc_create_with_strides");
  return OwnedLayout(out);
}
OwnedLayout row_major(std::span<const int64_t> dims, ElementType type) {
  if (dims.size() > kMaxRank) throw std::runtime_error("a tensor has more than 12 dimensions");
  Dims strides = {};
  int64_t next = 1;
  for (size_t i = dims.size(); i-- > 0; next *= std::max<int64_t>(dims[i], 1)) strides[i] = next;
  return layout_of(dims, type, {strides.data(), dims.size()});
}
OwnedLayout any_layout(std::span<const int64_t> dims, ElementType type) {
  Layout* out = nullptr;
  check(api().layout_with_tag(&out, static_cast<int>(dims.size()), dims.data(),
                              static_cast<int>(type), kAnyLayout),
        "dnnl_memory_desc_create_with_tag");
  return OwnedLayout(out);
}
OwnedLayout copy_of(const Layout* layout) {
  Layout* out = nullptr;
  check(api().layout_clone(&out, layout), "dnnl_memory_desc_clone");
  return OwnedLayout(out);
}

}  // namespace relay::onednn
