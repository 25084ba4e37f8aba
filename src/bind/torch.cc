// Graphs of PyTorch that Python hands over, as JSON of torch.export with tensors beside it.
#include "bind/torch.h"

#include <dlfcn.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <forward_list>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "driver/evaluate_constant.h"
#include "frontend/arrays/weights.h"
#include "frontend/torch/torch.h"
#include "runtime/thread_pool.h"

namespace relay::bind {
namespace {

nb::object constant_of(const TorchOutput& o) {
  return std::visit(
      [](const auto& v) -> nb::object {
        if constexpr (std::is_same_v<std::decay_t<decltype(v)>, std::monostate>) {
          return nb::none();
        } else {
          return nb::cast(v);
        }
      },
      o.value);
}

nb::object index_of(const std::optional<size_t>& index) {
  return index ? nb::object(nb::int_(*index)) : nb::object(nb::none());
}

nb::dict description_of(const TorchProgram& program) {
  nb::list inputs, outputs, sizes;
  for (const TorchInput& i : program.inputs) {
    nb::dict d;
    d["name"] = i.name;
    d["kind"] = i.kind;
    d["role"] = i.role;
    d["target"] = i.target;
    d["parameter"] = index_of(i.parameter);
    if (!i.source.first.empty()) d["source"] = nb::make_tuple(i.source.first, i.source.second);
    inputs.append(d);
  }
  for (const TorchOutput& o : program.outputs) {
    nb::dict d;
    d["name"] = o.name;
    d["kind"] = o.kind;
    d["target"] = o.target;
    d["result"] = index_of(o.result);
    d["value"] = constant_of(o);
    d["number"] = o.number;
    d["alias_of"] = o.alias_of;
    outputs.append(d);
  }
  for (const TorchSize& s : program.sizes) {
    auto bound = [](const std::optional<int64_t>& b) {
      return b ? nb::object(nb::int_(*b)) : nb::object(nb::none());
    };
    sizes.append(nb::make_tuple(s.name, bound(s.least), bound(s.greatest)));
  }
  nb::dict out;
  out["inputs"] = inputs;
  out["outputs"] = outputs;
  out["sizes"] = sizes;
  return out;
}

nb::tuple import_torch(const std::string& program, nb::dict tensors, bool freeze,
                       const std::string& name) {
  ImportOptions options;
  options.freeze_params = freeze;
  options.evaluate = make_constant_evaluator();
  std::map<std::string, Tensor> values;
  for (auto [key, value] : tensors) values[to_text(key, "the name of a tensor")] = to_tensor(value);
  const TorchProgram imported =
      compile_unlocked([&] { return import_torch_graph(program, values, name, options); });
  nb::dict weights;
  for (const auto& [parameter, tensor] : imported.model.params)
    weights[parameter.c_str()] = to_numpy(tensor);
  return nb::make_tuple(PyModule{imported.model.module, name, ""}, weights,
                        description_of(imported));
}

nb::list torch_unsupported(const std::string& program) {
  ImportOptions options;
  options.evaluate = make_constant_evaluator();
  const std::vector<TorchGap> gaps =
      compile_unlocked([&] { return torch_gaps(program, "torch graph", options); });
  nb::list out;
  for (const TorchGap& g : gaps) out.append(nb::make_tuple(g.node, g.target, g.reason));
  return out;
}

nb::dict load_weights(const std::string& path) {
  const auto tensors = compile_unlocked([&] { return read_weights(path); });
  nb::dict out;
  for (const auto& [name, tensor] : tensors) out[name.c_str()] = to_numpy(tensor);
  return out;
}

// Lets kernels run on the threads of the OpenMP that a loaded library uses; false: the library is not loaded, or uses none.
bool share_openmp_of(const std::string& library) {
  void* loaded = dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (loaded == nullptr) return false;
  // Found in the libraries that it depends on, too.
  runtime::OpenMp openmp{};
  auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(loaded, name));
    return function != nullptr;
  };
  if (!find(openmp.parallel, "GOMP_parallel") || !find(openmp.max_threads, "omp_get_max_threads") ||
      !find(openmp.thread_num, "omp_get_thread_num")) {
    dlclose(loaded);
    return false;
  }
  // Neither the functions nor their library go again: another thread may be running a region.
  static std::forward_list<runtime::OpenMp> shared;
  runtime::share_openmp(&shared.emplace_front(openmp));
  return true;
}

}  // namespace

void bind_torch(nb::module_& m) {
  m.def("import_torch", &import_torch, nb::arg("program"), nb::arg("tensors"),
        nb::arg("freeze") = true, nb::arg("name") = "torch graph",
        "The module of a graph in the JSON of torch.export, its weights that are parameters, and "
        "what its inputs and outputs are.");
  m.def("torch_unsupported", &torch_unsupported, nb::arg("program"),
        "The nodes of a graph that cannot be imported: place, operator and reason of each.");
  m.def("load_weights", &load_weights, nb::arg("path"),
        "The tensors of a safetensors file, a NumPy archive, or a state dictionary of torch.save.");
  m.def("share_openmp_of", &share_openmp_of, nb::arg("library"),
        "Runs kernels on the threads of the OpenMP of a loaded library; whether it has one.");
  m.def("torch_rows", &torch_operators, "The operators of PyTorch that can be imported.");
}

}  // namespace relay::bind
