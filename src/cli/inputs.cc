#include "cli/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "base/diagnostic_codes.h"
#include "cli/npy.h"
#include "ir/op.h"
#include "node/node.h"

namespace relay::cli {

using runtime::Tensor;

namespace {

Tensor invent(const runtime::Slot& slot, const ModelOptions& given, std::mt19937_64& random) {
  std::vector<int64_t> shape = slot.tensor.shape;
  if (auto it = given.shapes.find(slot.name); it != given.shapes.end()) {
    for (size_t i = 0; i < std::min(shape.size(), it->second.size()); ++i) {
      if (shape[i] < 0) shape[i] = it->second[i];
    }
  }
  bool open = std::any_of(shape.begin(), shape.end(), [](int64_t d) { return d < 0; });
  if (!slot.is_tensor || open) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "no value can be invented for input '" + slot.name + "'")
                        .found(slot.type_string())
                        .help("give its value, --input " + slot.name +
                              "=FILE.npy, or its sizes, --input " + slot.name + "=SHAPE"));
  }
  Tensor t = Tensor::empty(slot.tensor.dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (t.dtype().is_floating()) {
      // Box and Muller by hand: the standard distributions differ between libraries.
      double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
      double v = static_cast<double>(random() >> 11) * 0x1p-53;
      t.set_from_double(i, std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
    } else {
      t.set_from_int(i, static_cast<int64_t>(random() % (t.dtype().is_bool() ? 2 : 100)));
    }
  }
  return t;
}

}  // namespace

void check_shapes(const runtime::Function& function, const ModelOptions& given) {
  std::vector<std::string_view> names;
  std::string known;
  for (const runtime::Slot& s : function.params) {
    names.push_back(s.name);
    known += (known.empty() ? "" : ", ") + s.name;
  }
  auto slot_of = [&](const std::string& name) -> const runtime::Slot& {
    auto at = std::find(names.begin(), names.end(), name);
    if (at != names.end()) return function.params[static_cast<size_t>(at - names.begin())];
    throw UserError(Diagnostic(codes::frontend_input, {},
                               "input '" + escape_for_terminal(name, 200) + "' does not exist")
                        .expected(known.empty() ? "no inputs" : known)
                        .help(suggest(name, names)));
  };
  auto wrong = [](const runtime::Slot& slot, const char* why, std::string found) {
    throw UserError(Diagnostic(codes::frontend_input, {},
                               "input '" + escape_for_terminal(slot.name, 200) + "' " + why)
                        .expected(slot.type_string())
                        .found(std::move(found)));
  };
  for (const auto& [name, shape] : given.shapes) {
    const runtime::Slot& slot = slot_of(name);
    std::string found = runtime::shape_to_string(shape);
    if (!slot.is_tensor) wrong(slot, "has no shape to give", found);
    if (slot.tensor.shape.size() != shape.size()) wrong(slot, "has another rank", found);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t fixed = slot.tensor.shape[i];
      if (fixed >= 0 && shape[i] >= 0 && fixed != shape[i]) wrong(slot, "has other sizes", found);
    }
  }
  for (const auto& [name, dtype] : given.dtypes) {
    const runtime::Slot& slot = slot_of(name);
    if (!slot.is_tensor || !(slot.tensor.dtype == dtype))
      wrong(slot, "has another dtype", dtype.to_string());
  }
}

std::vector<Tensor> make_inputs(const runtime::Function& function,
                                const std::vector<std::pair<std::string, std::string>>& files,
                                const ModelOptions& shapes, uint64_t seed) {
  std::vector<std::string_view> names;
  for (const runtime::Slot& s : function.params) names.push_back(s.name);
  for (const auto& [name, file] : files) {
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    std::string known;
    for (std::string_view n : names) known += (known.empty() ? "" : ", ") + std::string(n);
    throw UserError(Diagnostic(codes::driver_option, {}, "there is no input '" + name + "'")
                        .expected(known.empty() ? "no inputs" : "one of " + known)
                        .help(suggest(name, names)));
  }
  std::mt19937_64 random(seed);
  std::vector<Tensor> out;
  for (const runtime::Slot& slot : function.params) {
    Tensor t;
    for (const auto& [name, file] : files) {
      if (name == slot.name) t = read_npy(file);
    }
    out.push_back(t ? t : invent(slot, shapes, random));
  }
  return out;
}

std::string digest(const Tensor& t) {
  std::string type = t.dtype().to_string();
  uint64_t h = hash_bytes(type.data(), type.size());
  for (int64_t d : t.shape()) h = hash_combine(h, static_cast<uint64_t>(d));
  h = hash_bytes(t.data(), t.byte_size(), h);
  char buffer[17];
  std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(h));
  return buffer;
}

std::string summary(const Tensor& t) {
  if (t.num_elements() == 0) return "empty";
  if (t.num_elements() == 1) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.7g", t.get_as_double(0));
    return buffer;
  }
  double low = HUGE_VAL, high = -HUGE_VAL, sum = 0;
  int64_t nans = 0;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    double v = t.get_as_double(i);
    if (std::isnan(v)) {
      ++nans;
      continue;
    }
    low = std::min(low, v);
    high = std::max(high, v);
    sum += v;
  }
  char buffer[120];
  int64_t count = t.num_elements() - nans;
  std::snprintf(buffer, sizeof buffer, "min %.4g, max %.4g, mean %.4g", low, high,
                sum / static_cast<double>(std::max<int64_t>(1, count)));
  return nans == 0 ? buffer : std::string(buffer) + ", " + std::to_string(nans) + " NaN";
}

}  // namespace relay::cli
