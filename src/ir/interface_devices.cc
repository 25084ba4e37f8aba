#include "ir/interface_devices.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/codes/placement.h"
#include "ir/donation.h"
#include "ir/prepack.h"
#include "ir/slot_names.h"

namespace relay {
namespace {

using runtime::Device;
using Placed = std::vector<std::pair<size_t, Device>>;

std::string in_quotes(const std::string& name) {
  return "'" + escape_for_terminal(name, 200) + "'";
}

[[noreturn]] void not_there(const FunctionNode& f, const char* what, const std::string& name,
                            const std::vector<std::string>& known) {
  std::string names;
  for (const std::string& n : known) names += (names.empty() ? "" : ", ") + n;
  throw UserError(
      Diagnostic(
          codes::placement_unknown, f.span,
          "there is no " + std::string(what) + " " + in_quotes(name) + " to place on a device")
          .expected(names.empty() ? "the function has no tensors there" : "one of " + names));
}

Device device_named(const FunctionNode& f, const std::string& name) {
  std::optional<Device> device = Device::parse(name);
  if (device && device->is_host() && *device != Device::cpu()) {
    throw UserError(Diagnostic(codes::placement_unknown, f.span,
                               in_quotes(name) + " is not a device with memory of its own")
                        .expected("\"cpu\" for the host, or a device such as \"opencl:0\""));
  }
  if (device) return *device;
  throw UserError(
      Diagnostic(codes::placement_unknown, f.span, "there is no device " + in_quotes(name))
          .expected("one of " + Device::names() + ", and its number, such as \"opencl:0\""));
}

void check_tensor(const char* what, const std::string& name, const Type& type, const Span& span) {
  auto* tensor = as<TensorTypeNode>(type);
  if (tensor != nullptr && !tensor->dtype.is_string()) return;
  throw UserError(Diagnostic(codes::placement_type, span,
                             std::string(what) + " " + in_quotes(name) + " cannot be on a device")
                      .expected("a tensor of numbers")
                      .found(to_string(type)));
}

// The pairs of an attribute; `number` finds what the first of a pair names.
template <class Find>
Placed pairs_of(const FunctionNode& f, const char* attribute, const Find& number) {
  Placed out;
  auto it = f.attrs.find(attribute);
  if (it == f.attrs.end()) return out;
  auto malformed = [&] {
    throw UserError(Diagnostic(codes::placement_unknown, f.span,
                               "the attribute " + std::string(attribute) + " has another form")
                        .expected("a list of pairs such as [[\"x\", \"opencl:0\"]], of results "
                                  "[[0, \"opencl:0\"]]")
                        .found(to_string(it->second)));
  };
  auto* pairs = it->second.template get_if<ValueList>();
  if (pairs == nullptr) malformed();
  for (const AttrValue& pair : *pairs) {
    auto* both = pair.get_if<ValueList>();
    auto* device =
        both != nullptr && both->size() == 2 ? (*both)[1].template get_if<std::string>() : nullptr;
    std::optional<size_t> at;
    if (device != nullptr) at = number((*both)[0]);
    if (!at) malformed();
    for (const auto& [other, where] : out) {
      if (other != *at) continue;
      throw UserError(
          Diagnostic(codes::placement_unknown, f.span, to_string((*both)[0]) + " is placed twice")
              .expected("each input and each result at most once"));
    }
    out.emplace_back(*at, device_named(f, *device));
  }
  return out;
}

ValueList attribute_of(const Placed& results) {
  ValueList out;
  for (const auto& [number, device] : results) {
    out.emplace_back(ValueList{static_cast<int64_t>(number), device.to_string()});
  }
  return out;
}

// A donated input is written over by its caller's result, and a prepacked one is not an input of the runs: both are on the host.
void check_free(const FunctionNode& f, const InterfaceDevices& placed, const Module& mod) {
  auto refuse = [&](const char* what, const std::string& name, const char* found) {
    throw UserError(Diagnostic(codes::placement_type, f.span,
                               std::string(what) + " " + in_quotes(name) + " cannot be on a device")
                        .expected("an input or result that is not donated or prepacked")
                        .found(found));
  };
  const std::vector<DonatedInput> donated = donated_inputs(f, mod);
  const std::vector<Var> prepacked = prepacked_params(f);
  for (const auto& [number, device] : placed.params) {
    const Var& p = f.params[number];
    const std::string name = parameter_name(f, *p.get());
    for (const DonatedInput& d : donated) {
      if (d.param == number) refuse("input", name, "one that is donated");
    }
    if (std::ranges::find(prepacked, p) != prepacked.end()) {
      refuse("input", name, "one that is prepacked");
    }
  }
  for (const auto& [number, device] : placed.results) {
    for (const DonatedInput& d : donated) {
      if (d.output == number) refuse("result", result_name(f, number), "one that takes an input");
    }
  }
}

}  // namespace

InterfaceDevices interface_devices(const FunctionNode& f, const Module& mod) {
  InterfaceDevices out;
  if (!f.has_attr(attr::kParamDevices) && !f.has_attr(attr::kResultDevices)) return out;
  out.params = pairs_of(f, attr::kParamDevices, [&](const AttrValue& key) -> std::optional<size_t> {
    auto* name = key.get_if<std::string>();
    if (name == nullptr) return std::nullopt;
    auto p = std::ranges::find(f.params, *name, [](const Var& v) { return v->name_hint; });
    if (p == f.params.end()) not_there(f, "input", *name, parameter_names(f));
    check_tensor("input", parameter_name(f, *p->get()), (*p)->type, (*p)->span);
    return static_cast<size_t>(p - f.params.begin());
  });
  out.results =
      pairs_of(f, attr::kResultDevices, [&](const AttrValue& key) -> std::optional<size_t> {
        auto* number = key.get_if<int64_t>();
        if (number == nullptr) return std::nullopt;
        auto leaves = flatten_tensor_types(f.body->type);
        if (!leaves || *number < 0 || static_cast<size_t>(*number) >= leaves->size()) {
          not_there(f, "result", std::to_string(*number), result_names(f));
        }
        const auto at = static_cast<size_t>(*number);
        check_tensor("result", result_name(f, at), (*leaves)[at], f.span);
        return at;
      });
  check_free(f, out, mod);
  return out;
}

bool has_interface_devices(const Module& mod) {
  return std::ranges::any_of(mod->functions, [](const Function& f) {
    return f->has_attr(attr::kParamDevices) || f->has_attr(attr::kResultDevices);
  });
}

void check_interface_devices(const Module& mod) {
  for (const Function& f : mod->functions) interface_devices(*f.get(), mod);
}

Function with_result_devices(const Function& f, const Placed& results) {
  ValueList all;
  if (auto it = f->attrs.find(attr::kResultDevices); it != f->attrs.end()) {
    all = *it->second.get_if<ValueList>();
  }
  for (AttrValue& pair : attribute_of(results)) all.push_back(std::move(pair));
  Dict attrs = f->attrs;
  attrs[attr::kResultDevices] = AttrValue(std::move(all));
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

Module with_interface_devices(const Module& mod,
                              const std::vector<std::pair<std::string, std::string>>& params,
                              const std::vector<std::pair<std::string, std::string>>& results) {
  if (params.empty() && results.empty()) return mod;
  Function main = mod->find("main");
  if (!main) {
    throw UserError(Diagnostic(codes::placement_unknown, {},
                               "the program has no @main whose inputs could be on a device"));
  }
  const FunctionNode& f = *main.get();
  Dict attrs = main->attrs;
  if (!params.empty()) {
    const std::vector<std::string> inputs = parameter_names(f);
    ValueList all;
    for (const auto& [input, device] : params) {
      auto in = std::ranges::find(inputs, input);
      if (in == inputs.end()) not_there(f, "input", input, inputs);
      const Var& param = f.params[static_cast<size_t>(in - inputs.begin())];
      all.emplace_back(ValueList{param->name_hint, device_named(f, device).to_string()});
    }
    attrs[attr::kParamDevices] = AttrValue(std::move(all));
  }
  if (!results.empty()) {
    const std::vector<std::string> outputs = result_names(f);
    Placed all;
    for (const auto& [output, device] : results) {
      const Device where = device_named(f, device);
      if (output.empty()) {
        if (outputs.empty()) not_there(f, "result", "output0", outputs);
        for (size_t i = 0; i < outputs.size(); ++i) all.emplace_back(i, where);
        continue;
      }
      auto number = static_cast<size_t>(std::ranges::find(outputs, output) - outputs.begin());
      if (number == outputs.size()) {
        auto [end, error] = std::from_chars(output.data(), output.data() + output.size(), number);
        const bool whole = error == std::errc() && end == output.data() + output.size();
        if (!whole || number >= outputs.size()) not_there(f, "result", output, outputs);
      }
      all.emplace_back(number, where);
    }
    attrs[attr::kResultDevices] = AttrValue(attribute_of(all));
  }
  Function made = function(f.params, f.body, nullptr, f.type_params, std::move(attrs), f.span);
  Module out = with_function(mod, mod->find_global_var("main"), made);
  check_interface_devices(out);
  return out;
}

}  // namespace relay
