// What compiles and runs: front ends, passes, build, executables.
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/set.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>

#include "analysis/purity.h"
#include "base/codes/driver.h"
#include "base/codes/passes.h"
#include "base/quantities.h"
#include "base/suggest.h"
#include "base/thread_locals.h"
#include "bind/compiler.h"
#include "bind/data_values.h"
#include "bind/device_arrays.h"
#include "bind/exchange.h"
#include "bind/functions.h"
#include "bind/plain_call.h"
#include "bind/python_code.h"
#include "bind/settings.h"
#include "bind/tensor_expressions.h"
#include "bind/torch.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "codegen/kernel_cache.h"
#include "codegen/targets.h"
#include "driver/bind_params.h"
#include "driver/check_model.h"
#include "driver/compile.h"
#include "driver/evaluate.h"
#include "driver/evaluate_constant.h"
#include "driver/interface.h"
#include "driver/options.h"
#include "driver/size_options.h"
#include "driver/specialise.h"
#include "frontend/arrays/weights.h"
#include "ir/bindings.h"
#include "ir/donation.h"
#include "ir/interface_devices.h"
#include "ir/op.h"
#include "ir/prepack.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "passes/gradient/batch_pass.h"
#include "passes/gradient/derivative_pass.h"
#include "passes/pass_list.h"
#include "runtime/donations.h"
#include "runtime/external_kernels.h"
#include "types/infer.h"

namespace relay::bind {
namespace {

// The functions of a module on the reference evaluator, which serves one thread at a time.
class EvaluatedFunctions : public FunctionOwner {
 public:
  explicit EvaluatedFunctions(const Module& module) : FunctionOwner(module), evaluator_(module) {}

  runtime::Value run(const std::string& name, std::vector<runtime::Value> args,
                     const runtime::RunOptions& limits) override {
    limit(limits);
    return evaluator_.call(name, on_host(std::move(args)));
  }
  runtime::Value call(const runtime::Value& function, std::vector<runtime::Value> args,
                      const runtime::RunOptions& limits) override {
    limit(limits);
    return evaluator_.apply(function, on_host(std::move(args)));
  }

 private:
  // The evaluator computes on the host, whatever the program says of devices.
  static std::vector<runtime::Value> on_host(std::vector<runtime::Value> args) {
    for (runtime::Value& arg : args) arg = value_on_host(arg);
    return args;
  }
  void limit(const runtime::RunOptions& limits) {
    evaluator_.set_limits(std::max<int64_t>(limits.fuel, 0),
                          std::max<int64_t>(limits.memory_limit, 0));
  }

  Evaluator evaluator_;
};

struct Evaluation {
  Module module;
  std::shared_ptr<FunctionOwner> functions;
};

[[noreturn]] void bad_argument(const std::string& message) {
  throw UserError(Diagnostic(codes::driver_option, Span(), message));
}

// A function of Python that is told how far a compilation is.
Progress progress_of(nb::handle function) {
  if (!PyCallable_Check(function.ptr()))
    throw WrongArgument(("progress is a function of a phase, what is done and what is to do, not " +
                         python_text(function))
                            .c_str());
  return [code = Held(function)](std::string_view phase, int64_t done, int64_t total) {
    in_python(codes::pass_python, {}, "progress at " + std::string(phase),
              [&] { code.get()(std::string(phase), done, total); });
  };
}

}  // namespace

Module whole(const PyModule& mod) {
  check_calls(mod.module);
  return infer_types(mod.module);
}

Settings make_options(nb::handle settings) {
  Settings out;
  bool cache = true;
  auto text_set = [](nb::handle names, const std::string& what) {
    std::set<std::string, std::less<>> set;
    for (nb::handle name : nb::iter(names)) set.insert(to_text(name, what.c_str()));
    return set;
  };
  auto number = [](nb::handle value, const std::string& what) {
    if (PyBool_Check(value.ptr()) || !PyIndex_Check(value.ptr())) {
      throw WrongArgument((what + " is an integer, not " + python_text(value)).c_str());
    }
    int64_t n = to_int64(value);
    if (n != static_cast<int>(n)) bad_argument(what + " is out of range: " + std::to_string(n));
    return static_cast<int>(n);
  };
  auto flag = [](nb::handle value, const std::string& what) {
    if (PyBool_Check(value.ptr())) return value.ptr() == Py_True;
    throw WrongArgument((what + " is True or False, not " + python_text(value)).c_str());
  };
  for (auto [key, value] : to_named(settings, "a set of settings")) {
    std::string name = to_text(key, "the name of a setting");
    if (name == "target") {
      out.target = to_text(value, "a target");
    } else if (name == "opt_level") {
      out.opt_level = number(value, name);
    } else if (name == "num_threads") {
      out.num_threads = number(value, name);
    } else if (name == "cache") {
      cache = flag(value, name);
    } else if (name == "verify") {
      out.verify = flag(value, name);
    } else if (name == "required_pass") {
      out.required_pass = text_set(value, "the name of a pass");
    } else if (name == "disabled_pass") {
      out.disabled_pass = text_set(value, "the name of a pass");
    } else if (name == "config") {
      out.config = to_dict(value);
    } else if (name == "dims") {
      for (auto [dim, range] : to_named(value, "a set of ranges")) {
        SizeHint& hint = hint_of(out.sizes, to_text(dim, "the name of a dimension"));
        std::vector<int64_t> ends;
        for (nb::handle end : nb::iter(range)) ends.push_back(to_int64(end));
        if (ends.size() != 2)
          bad_argument("a range of dims is a pair: the least and the greatest size");
        hint.low = ends[0];
        hint.high = ends[1];
      }
    } else if (name == "hot") {
      for (auto [dim, sizes] : to_named(value, "a set of sizes")) {
        SizeHint& hint = hint_of(out.sizes, to_text(dim, "the name of a dimension"));
        for (nb::handle size : nb::iter(sizes)) hint.likely.push_back(to_int64(size));
      }
    } else if (name == "progress") {
      if (!value.is_none()) out.progress = progress_of(value);
    } else if (name == "instruments") {
      for (nb::handle i : nb::iter(value)) out.add_instrument(i);
    } else {
      bad_argument("there is no setting '" + name + "'");
    }
  }
  check_options(out);
  if (cache) out.cache = KernelCache::of_user();
  return out;
}

namespace {

nb::list describe(const std::vector<runtime::Slot>& slots);

// The values of parameters by name; a later change of an array does not change the program.
std::map<std::string, Tensor> to_tensors(nb::handle params) {
  std::map<std::string, Tensor> out;
  for (auto [key, value] : to_named(params, "`params`")) {
    std::string name = to_text(key, "the name of a parameter");
    out[name] = to_tensor(value).copy();
  }
  return out;
}

std::pair<PyModule, nb::dict> import_with(const std::string& front_end, nb::handle model,
                                          nb::dict shapes, nb::dict dtypes, bool freeze_params,
                                          const std::string& folder, nb::dict own, nb::dict frozen,
                                          nb::dict specialised, nb::dict elements, nb::list open,
                                          nb::handle weights) {
  ImportOptions options;
  options.freeze_params = freeze_params;
  for (auto [key, value] : own) {
    options.own[to_text(key, "the name of an option")] = to_value(value);
  }
  for (auto [key, value] : frozen) {
    options.frozen[to_text(key, "the name of an input")] = to_tensor(value).copy();
  }
  for (auto [key, value] : specialised) {
    options.specialised[to_text(key, "the name of an input")] = to_tensor(value).copy();
  }
  options.evaluate = make_constant_evaluator();
  auto to_shape = [](nb::handle shape) {
    std::vector<int64_t> dims;
    for (nb::handle d : nb::iter(shape)) dims.push_back(to_int64(d));
    return dims;
  };
  for (auto [key, shape] : shapes) {
    options.shapes[to_text(key, "the name of an input")] = to_shape(shape);
  }
  for (auto [key, held] : elements) {
    auto& all = options.elements[to_text(key, "the name of an input")];
    if (held.is_none()) continue;
    all.emplace();
    for (nb::handle shape : nb::iter(held)) all->push_back(to_shape(shape));
  }
  for (auto [key, dtype] : dtypes) {
    options.dtypes[to_text(key, "the name of an input")] = to_dtype(dtype);
  }
  bool is_path = PyUnicode_Check(model.ptr()) != 0;
  std::string path = is_path ? to_text(model, "a path") : "<memory>";
  std::string_view bytes;
  if (!is_path) {
    auto data = nb::cast<nb::bytes>(model);
    bytes = std::string_view(data.c_str(), data.size());
  }
  std::optional<WeightFile> given;
  if (PyUnicode_Check(weights.ptr())) {
    const std::string path = to_text(weights, "a path");
    given = WeightFile{path, compile_unlocked([&] { return read_weights(path); })};
  } else if (!weights.is_none()) {
    given = WeightFile{"params", to_tensors(weights)};
  }
  std::optional<RankIsOpen> refused;
  ImportedModel imported = compile_unlocked([&]() -> ImportedModel {
    try {
      ModelSource source{.path = path, .weights = given};
      if (!is_path) {
        source.bytes = bytes;
        source.folder = folder;
      }
      return import_model(front_end_named(front_end), source, options);
    } catch (const RankIsOpen& e) {
      refused = e;
      return {};
    }
  });
  if (refused) {
    // What a program may be specialised for, and all inputs of the model.
    nb::list deciding, inputs;
    for (const DecidingInput& d : refused->deciding()) {
      static constexpr const char* kBy[] = {"sizes", "elements", "value"};
      deciding.append(nb::make_tuple(d.name, kBy[d.by]));
    }
    for (const ModelInput& input : refused->inputs()) {
      inputs.append(describe({slot_of(input.name, input.type)})[0]);
    }
    open.append(deciding);
    open.append(inputs);
    throw *refused;
  }
  nb::dict params;
  for (const auto& [name, tensor] : imported.params) params[name.c_str()] = to_numpy(tensor);
  return {PyModule{imported.module, path, imported.source_hash}, params};
}

// Pairs of an input and an output: the names of both, or the number of the output.
std::vector<std::pair<std::string, std::string>> donation_pairs(nb::handle donate) {
  std::vector<std::pair<std::string, std::string>> out;
  for (auto [input, output] : to_named(donate, "what is donated")) {
    bool name = PyUnicode_Check(output.ptr());
    out.emplace_back(
        to_text(input, "the name of an input"),
        name ? to_text(output, "the name of an output") : std::to_string(to_int64(output)));
  }
  return out;
}

// Pairs of an input or result, by its name or number, and a device.
std::vector<std::pair<std::string, std::string>> placement_pairs(nb::handle placed) {
  std::vector<std::pair<std::string, std::string>> out;
  for (auto [name, device] : to_named(placed, "what is placed on devices")) {
    const bool is_name = PyUnicode_Check(name.ptr());
    out.emplace_back(is_name ? to_text(name, "a name") : std::to_string(to_int64(name)),
                     to_text(device, "a device"));
  }
  return out;
}

Executable build(const PyModule& mod, nb::handle params, nb::handle settings, nb::handle donate,
                 nb::handle prepack, nb::handle param_devices, nb::handle result_devices) {
  const auto inputs_on = placement_pairs(param_devices),
             results_on = placement_pairs(result_devices);
  std::vector<std::pair<std::string, std::string>> donated = donation_pairs(donate);
  std::vector<std::string> prepacked;
  for (nb::handle name : nb::borrow<nb::sequence>(prepack)) {
    prepacked.push_back(to_text(name, "the name of an input"));
  }
  Settings options = make_options(settings);
  options.source_name = mod.source_name;
  options.source_hash = mod.source_hash;
  std::map<std::string, Tensor> tensors = to_tensors(params);
  return compile_unlocked([&] {
    Module typed = bind_params(whole(mod), tensors);
    typed = with_prepacked(with_donations(typed, donated), prepacked);
    typed = with_interface_devices(typed, inputs_on, results_on);
    auto versions =
        std::make_shared<const std::vector<CompiledModule>>(compile_versions(typed, options));
    const std::shared_ptr<const CompiledModule> compiled(
        versions, &(*versions)[version_for_machine(*versions)]);
    runtime::LoadOptions load;
    load.num_threads = options.num_threads;
    runtime::Module loaded = compiled->load(load);
    Executable out{loaded, compiled, "", owner_of(loaded, compiled->optimized)};
    if (options.cache != nullptr) out.cache = options.cache->counts();
    out.versions = versions;
    return out;
  });
}

}  // namespace

std::vector<runtime::Value> collect_arguments(const runtime::Function& f, const Module& mod,
                                              nb::tuple args, nb::dict kwargs, Exchange& exchange,
                                              std::vector<nb::object>* donated) {
  const std::string& name = f.name;
  Function typed = mod ? mod->find(name) : nullptr;
  auto type = [&](size_t i) { return typed ? typed->params[i]->type : Type(); };
  std::vector<runtime::Value> values;
  values.reserve(f.params.size());
  if (args.size() > f.params.size()) {
    bad_argument("@" + name + " takes " + counted(f.params.size(), "input") + ", " +
                 std::to_string(args.size()) + " are given");
  }
  // A name that no input has: that it is missing is the mistake, not that another input is.
  for (auto [key, value] : kwargs) {
    std::string given = to_text(key, "the name of an input");
    std::vector<std::string_view> known;
    for (const runtime::Slot& slot : f.params) known.push_back(slot.name);
    if (std::ranges::find(known, given) != known.end()) continue;
    Diagnostic problem(codes::driver_option, Span(), "@" + name + " has no input '" + given + "'");
    std::string near = suggest(given, known);
    if (near.empty() && !known.empty()) {
      near = "the inputs are ";
      for (size_t i = 0; i < known.size(); ++i) {
        near += (i > 0 ? ", " : "") + std::string(known[i]);
      }
    }
    throw UserError(problem.help(near));
  }
  std::vector<const runtime::Donation*> donations(f.params.size());
  if (donated != nullptr && !f.donations.empty()) {
    donated->resize(f.results.size());
    for (const runtime::Donation& d : f.donations) donations[static_cast<size_t>(d.param)] = &d;
  }
  auto add = [&](nb::handle given, size_t i) {
    const runtime::Slot& slot = f.params[i];
    const runtime::Donation* donation = donations[i];
    if (donation == nullptr) {
      values.push_back(to_run_value(given, slot, type(i), mod, exchange));
      return;
    }
    values.push_back(to_donated(given, slot));
    (*donated)[static_cast<size_t>(donation->output)] = nb::borrow(given);
  };
  for (size_t i = 0; i < f.params.size(); ++i) {
    const runtime::Slot& slot = f.params[i];
    bool named = kwargs.size() != 0 && kwargs.contains(slot.name.c_str());
    if (i < args.size()) {
      if (named) bad_argument("input '" + slot.name + "' is given twice");
      add(args[i], i);
    } else if (named) {
      add(kwargs[slot.name.c_str()], i);
    } else {
      bad_argument("@" + name + " needs input '" + slot.name + "' of type " + slot.type_string());
    }
  }
  exchange.read_captured(mod);
  return values;
}

namespace {

// The result with the arrays that were donated in place of the tensors that are in their memory.
nb::object with_donated(const runtime::Value& result, const Type& type, const Module& mod,
                        Exchange& exchange, const std::vector<nb::object>& donated, size_t& next) {
  Nesting deeper;
  if (!result.is_tuple()) {
    const nb::object& given = donated[next++];
    return given.is_valid() ? given : from_run_value(result, type, mod, exchange);
  }
  auto* tuple = as<TupleTypeNode>(type);
  nb::list fields;
  for (size_t i = 0; i < result.num_fields(); ++i) {
    fields.append(with_donated(result.field(i), tuple == nullptr ? Type() : tuple->fields[i], mod,
                               exchange, donated, next));
  }
  return nb::tuple(fields);
}

// The name comes as it is: nanobind's own conversion to a string ends the process when memory is short.
// The entry function for these arguments, of a program that was compiled for several values of inputs.
std::string entry_function(const runtime::Module& module, nb::tuple args, nb::dict kwargs) {
  const std::vector<std::string> names = module.function_names();
  std::map<std::string, Tensor> inputs;
  const std::vector<runtime::Slot>& params = module.function(names.at(0)).params;
  for (size_t i = 0; i < params.size(); ++i) {
    nb::object given;
    if (i < args.size()) {
      given = args[i];
    } else if (kwargs.contains(params[i].name.c_str())) {
      given = kwargs[params[i].name.c_str()];
    }
    if (given.is_valid() && params[i].is_tensor) inputs[params[i].name] = to_tensor(given);
  }
  return entry_for(module, "main", inputs);
}

nb::object run(const Executable& exe, nb::handle function, nb::tuple args, nb::dict kwargs) {
  std::string name = to_text(function, "the name of a function");
  if (name == "main" && exe.module.program().find_function(name) < 0 &&
      !exe.module.function_names().empty()) {
    name = entry_function(exe.module, args, kwargs);
  }
  const runtime::Function& signature = exe.module.function(name);
  Module types = exe.types();
  Function typed = types ? types->find(name) : nullptr;
  const Type type = typed ? typed->body->type : Type();
  if (kwargs.size() == 0 && takes_plain_values(exe, signature)) {
    const auto values = PlainArguments::read(signature, args);
    if (values) return plain_result(values->run(exe.module, name), type, types);
  }
  bool functions = exe.functions && typed && exchanges_functions(types, typed);
  std::optional<FunctionOwner::Turn> turn;
  if (functions) turn.emplace(*exe.functions);
  std::vector<nb::object> donated;
  Exchange exchange(functions ? exe.functions : nullptr);
  const int64_t before = runtime::thread_object_bytes();
  std::vector<runtime::Value> values =
      collect_arguments(signature, types, args, kwargs, exchange, &donated);
  const int64_t taken = runtime::thread_object_bytes() - before;
  if (functions) bind_sizes(typed, values, exchange.sizes());
  runtime::Value result = run_with(exchange, types, [&](const runtime::RunOptions& limits) {
    const runtime::RunOptions options = beside(taken, limits);
    runtime::Value out = functions ? exe.functions->run(name, values, options)
                                   : exe.module.run_values(name, values, options);
    values.clear();
    return out;
  });
  if (donated.empty()) return exchange.result(result, type, types);
  size_t next = 0;
  nb::object out = with_donated(result, type, types, exchange, donated, next);
  exchange.write_back(types);
  return out;
}

Evaluation make_evaluator(const PyModule& mod, nb::handle params) {
  std::map<std::string, Tensor> tensors = to_tensors(params);
  Module typed = compile_unlocked([&] { return bind_params(whole(mod), tensors); });
  return {typed, std::make_shared<EvaluatedFunctions>(typed)};
}

nb::object evaluate(const Evaluation& e, const std::string& name, nb::tuple args, nb::dict kwargs) {
  FunctionOwner::Turn turn(*e.functions);
  Exchange exchange(e.functions);
  std::vector<runtime::Value> values =
      collect_arguments(signature_of(e.module, name), e.module, args, kwargs, exchange);
  Function typed = e.module->find(name);
  bind_sizes(typed, values, exchange.sizes());
  runtime::Value result = run_with(exchange, e.module, [&](const runtime::RunOptions& limits) {
    return e.functions->run(name, std::move(values), limits);
  });
  return exchange.result(result, typed->body->type, e.module);
}

// (name, type, shape, dtype, device) of each parameter or result; the last three are None for a
// non-tensor.
nb::list describe(const std::vector<runtime::Slot>& slots) {
  nb::list out;
  for (const runtime::Slot& slot : slots) {
    nb::object shape = nb::none();
    nb::object dtype = nb::none();
    nb::object device = nb::none();
    if (slot.is_tensor) {
      nb::list dims;
      for (size_t i = 0; i < slot.tensor.shape.size(); ++i) {
        int64_t size = slot.tensor.shape[i];
        bool has_name = i < slot.tensor.symbols.size() && !slot.tensor.symbols[i].empty();
        if (size >= 0)
          dims.append(size);
        else if (has_name)
          dims.append(nb::str(slot.tensor.symbols[i].c_str()));
        else
          dims.append(nb::none());
      }
      shape = nb::tuple(dims);
      dtype = nb::cast(slot.tensor.dtype.to_string());
      device = nb::cast(slot.tensor.device.to_string());
    }
    out.append(nb::make_tuple(slot.name, slot.type_string(), shape, dtype, device));
  }
  return out;
}

void export_library(const Executable& exe, const std::string& path, bool overwrite) {
  Unlocked unlocked;
  if (exe.versions) return write_versions(*exe.versions, path, overwrite);
  exe.module.copy_artifact(exe.path, path, overwrite);
}

// `always`: whatever the context says; otherwise a pass that it leaves out changes nothing.
PyModule run_pass_by_name(const std::string& name, const PyModule& mod, nb::handle settings,
                          bool always) {
  Settings options = make_options(settings);
  Module out = compile_unlocked([&] {
    Module typed = whole(mod);
    PassContext ctx = pass_context(options);
    const Pass& pass = find_pass(name);
    return always || ctx.enabled(pass) ? run_pass(typed, pass, ctx) : typed;
  });
  return {out, mod.source_name, mod.source_hash};
}

// The module with a derivative of one of its functions under `name`, and whether that function is all
// that was added.
std::pair<PyModule, bool> add_derivative_by_name(const PyModule& mod, const std::string& of,
                                                 const std::string& name, const std::string& kind,
                                                 const std::string& mode, nb::handle settings,
                                                 size_t count) {
  Settings options = make_options(settings);
  const DerivativeKind* wanted = find_derivative(kind);
  if (wanted == nullptr) bad_argument("there is no derivative '" + kind + "'");
  bool first_order = mode == "first_order";
  if (!first_order && mode != "higher_order")
    bad_argument("mode is 'higher_order' or 'first_order', not '" + mode + "'");
  if (first_order && *wanted != DerivativeKind::gradient)
    bad_argument("the mode first_order has gradients only, no " + kind);
  bool alone = true;
  Module out = compile_unlocked([&] {
    Module typed = whole(mod);
    Function f = typed->find(of);
    if (!f) bad_argument("the module has no function @" + of);
    PassContext ctx = pass_context(options);
    Module with = first_order ? add_first_order_gradient(typed, f, name)
                              : add_derivative(typed, f, *wanted, name, ctx, count);
    alone = with->functions.size() == typed->functions.size() + 1 &&
            with->type_definitions.size() == typed->type_definitions.size();
    return with;
  });
  return {PyModule{out, mod.source_name, mod.source_hash}, alone};
}

// An axis, None, or a tuple of these for the fields of a tuple.
BatchAxes batch_axes(nb::handle axes, int depth = 0) {
  constexpr int kDeepest = 200;
  if (depth > kDeepest) bad_argument("axes are nested too deep");
  BatchAxes out{std::nullopt};
  if (axes.is_none()) return out;
  if (nb::isinstance<nb::tuple>(axes) || nb::isinstance<nb::list>(axes)) {
    for (nb::handle field : nb::borrow<nb::sequence>(axes))
      out.fields.push_back(batch_axes(field, depth + 1));
    return out;
  }
  if (!nb::isinstance<nb::int_>(axes) || nb::isinstance<nb::bool_>(axes))
    bad_argument("an axis is an int, None, or a tuple of these");
  out.axis = nb::cast<int64_t>(axes);
  return out;
}

// The module with a function for a batch under `name`, whether that function is all that was added,
// and what is computed lane by lane: what, why and where.
std::tuple<PyModule, bool, std::vector<std::tuple<std::string, std::string, std::string>>>
add_batched_by_name(const PyModule& mod, const std::string& of, const std::string& name,
                    nb::handle in_axes, nb::handle out_axes, std::optional<int64_t> lanes,
                    bool strict, nb::handle settings) {
  CompileOptions options = make_options(settings);
  BatchOptions wanted{.in_axis = batch_axes(in_axes), .out_axes = batch_axes(out_axes)};
  bool each = nb::isinstance<nb::tuple>(in_axes) || nb::isinstance<nb::list>(in_axes);
  if (each) wanted.in_axes = std::exchange(wanted.in_axis, {}).fields;
  if (lanes && *lanes < 0) bad_argument("axis_size is not negative");
  if (lanes) wanted.lanes = dim(*lanes);
  wanted.strict = strict;
  bool alone = true;
  std::vector<LaneByLane> report;
  Module out = compile_unlocked([&] {
    Module typed = whole(mod);
    Function f = typed->find(of);
    if (!f) bad_argument("the module has no function @" + of);
    PassContext ctx = pass_context(options);
    Module with = add_batched(typed, of, wanted, name, ctx, &report);
    alone = with->functions.size() == typed->functions.size() + 1 &&
            with->type_definitions.size() == typed->type_definitions.size();
    return with;
  });
  std::vector<std::tuple<std::string, std::string, std::string>> rows;
  for (const LaneByLane& l : report) rows.emplace_back(l.what, l.why, l.span.describe());
  return {PyModule{out, mod.source_name, mod.source_hash}, alone, std::move(rows)};
}

}  // namespace

void bind_compiler(nb::module_& m) {
  nb::class_<Executable>(m, "Module", "A compiled program.")
      .def("run", &run, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"))
      .def("export_library", &export_library, nb::arg("path"), nb::arg("overwrite"))
      .def_prop_ro("function_names", [](const Executable& e) { return e.module.function_names(); })
      .def_prop_ro("num_threads", [](const Executable& e) { return e.module.num_threads(); })
      // Kernels that the cache had when the program was built, and those that were compiled.
      .def_prop_ro("cached",
                   [](const Executable& e) { return nb::make_tuple(e.cache.hits, e.cache.misses); })
      .def_prop_ro("metadata", [](const Executable& e) { return e.module.metadata(); })
      .def("params", [](const Executable& e,
                        const std::string& f) { return describe(e.module.function(f).params); })
      .def("results", [](const Executable& e,
                         const std::string& f) { return describe(e.module.function(f).results); })
      // Of each donation the numbers of the parameter and the result, and whether it is in place.
      .def("donations", [](const Executable& e, const std::string& f) {
        nb::list out;
        for (const runtime::Donation& d : e.module.function(f).donations) {
          out.append(nb::make_tuple(d.param, d.output, d.in_place));
        }
        return out;
      });

  nb::class_<Evaluation>(m, "Evaluator", "A program on the reference evaluator.")
      .def("run", &evaluate, nb::arg("function"), nb::arg("args"), nb::arg("kwargs"))
      .def_prop_ro("module",
                   [](const Evaluation& e) {
                     return PyModule{e.module, "", ""};
                   })
      .def("params",
           [](const Evaluation& e, const std::string& f) {
             return describe(signature_of(e.module, f).params);
           })
      .def("results", [](const Evaluation& e, const std::string& f) {
        return describe(signature_of(e.module, f).results);
      });
  m.def("evaluator", &make_evaluator, nb::arg("mod"), nb::arg("params"));

  m.def("build", &build, nb::arg("mod"), nb::arg("params"), nb::arg("settings"), nb::arg("donate"),
        nb::arg("prepack"), nb::arg("param_devices"), nb::arg("result_devices"));
  m.def("prepack_function",
        [](nb::handle name) { return prepack_function(to_text(name, "the name of a function")); });
  m.def("optimize", [](const PyModule& mod, nb::handle settings) {
    Settings options = make_options(settings);
    Module out = compile_unlocked([&] { return optimize(whole(mod), options); });
    return PyModule{out, mod.source_name, mod.source_hash};
  });
  m.def(
      "check_settings",
      [](nb::handle settings) {
        const Settings options = make_options(settings);
        if (options.target == Settings().target) return;
        for (const TargetVersion& v : target_versions(options.target)) parse_program_target(v.text);
      },
      nb::arg("settings"));
  m.def(
      "load_module",
      [](nb::handle file, nb::handle num_threads, nb::handle version) {
        std::string path = to_text(file, "a path");
        nb::dict settings;
        settings["num_threads"] = num_threads;
        runtime::LoadOptions options;
        options.num_threads = make_options(settings).num_threads;
        if (!version.is_none()) options.version = to_text(version, "a version of the target");
        Unlocked unlocked;
        runtime::Module loaded = runtime::Module::load(path, options);
        Module interface = interface_of(loaded);
        return Executable{std::move(loaded), nullptr, path, nullptr, std::move(interface)};
      },
      nb::arg("path"), nb::arg("num_threads"), nb::arg("version") = nb::none());
  // By the address of a function; 0 removes the name.
  m.def("register_host_kernel", [](const std::string& name, uintptr_t address) {
    runtime::register_host_kernel(name, reinterpret_cast<relay_kernel>(address));
  });
  m.def("import_model", &import_with, nb::arg("front_end"), nb::arg("model"), nb::arg("shapes"),
        nb::arg("dtypes"), nb::arg("freeze_params"), nb::arg("folder"), nb::arg("own"),
        nb::arg("frozen"), nb::arg("specialised"), nb::arg("elements"), nb::arg("open"),
        nb::arg("weights").none());
  m.def("check_model", [](const std::string& front_end, const std::string& path, nb::dict shapes,
                          nb::dict frozen) {
    ModelOptions options;
    for (auto [key, shape] : shapes) {
      std::vector<int64_t>& dims = options.shapes[to_text(key, "the name of an input")];
      for (nb::handle d : nb::iter(shape)) dims.push_back(to_int64(d));
    }
    for (auto [key, value] : frozen) {
      options.frozen[to_text(key, "the name of an input")] = to_tensor(value).copy();
    }
    return compile_unlocked([&] {
      return check_imported_model(front_end_named(front_end), path, options)
          .dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
    });
  });
  m.def("imported_operators", [](const std::string& front_end) {
    nb::list out;
    const FrontEnd& row = front_end_named(front_end);
    if (!row.operators) return out;
    for (const SupportedOperator& op : row.operators()) {
      out.append(nb::make_tuple(op.domain, op.name, op.since));
    }
    return out;
  });
  m.def("bind_params", [](const PyModule& mod, nb::handle params) {
    std::map<std::string, Tensor> tensors = to_tensors(params);
    Module out = compile_unlocked([&] { return bind_params(whole(mod), tensors); });
    return PyModule{out, mod.source_name, mod.source_hash};
  });
  m.def(
      "has_effects",
      [](const PyModule& mod, const std::string& name) {
        const Effects does = Purity(mod.module).of_body(mod.module->find(name));
        return does.reads() || !does.droppable();
      },
      nb::arg("mod"), nb::arg("name"),
      "Whether calls of a function of a typed module stay where they are, and as often.");
  m.def("pass_rows", [] {
    nb::list out;
    for (const Pass* pass : all_passes()) {
      nb::list options;
      for (const PassOption& o : pass->all_options()) {
        options.append(
            nb::make_tuple(o.name, std::string(to_string(o.type)), o.doc, from_value(o.standard)));
      }
      out.append(nb::make_tuple(pass->name, pass->opt_level, pass->doc, options));
    }
    return out;
  });
  m.def("run_pass", &run_pass_by_name);
  m.def("add_derivative", &add_derivative_by_name, nb::arg("mod"), nb::arg("of"), nb::arg("name"),
        nb::arg("kind"), nb::arg("mode"), nb::arg("settings"), nb::arg("count") = kAllParams);
  m.def("add_batched", &add_batched_by_name, nb::arg("mod"), nb::arg("of"), nb::arg("name"),
        nb::arg("in_axes").none(), nb::arg("out_axes").none(), nb::arg("lanes").none(),
        nb::arg("strict"), nb::arg("settings").none());
}

}  // namespace relay::bind

NB_MODULE(_core, m) {
  namespace bind = relay::bind;
  relay::require_thread_locals();
  m.doc() = "Relay's compiler and runtime; the package relay gives it its shape.";
  relay::initialize();
  m.attr("__version__") = RELAY_VERSION;
  bind::bind_python_code(m);
  bind::bind_errors(m);
  bind::bind_nodes(m);
  bind::bind_builders(m);
  bind::bind_limits(m);
  bind::bind_printing();
  bind::bind_data_values(m);
  bind::bind_functions(m);
  bind::bind_compiler(m);
  bind::bind_device_arrays(m);
  bind::bind_array_function(m);
  bind::bind_plain_call(m);
  bind::bind_command(m);
  bind::bind_quantize(m);
  bind::bind_passes(m);
  bind::bind_dataflow_patterns(m);
  bind::bind_external_codegen(m);
  bind::bind_tensor_expressions(m);
  bind::bind_schedules(m);
  bind::bind_operators(m);
  bind::bind_torch(m);
}
