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

Tensor invent(const runtime::Slot& slot, std::mt19937_64& random) {
  if (!slot.is_tensor || !slot.tensor.is_static()) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "no value can be invented for input '" + slot.name + "'")
                        .found(slot.type_string())
                        .help("give it: --input " + slot.name + "=FILE.npy"));
  }
  Tensor t = Tensor::empty(slot.tensor.dtype, slot.tensor.shape);
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

std::vector<Tensor> make_inputs(const runtime::Function& function,
                                const std::vector<std::pair<std::string, std::string>>& files,
                                uint64_t seed) {
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
    out.push_back(t ? t : invent(slot, random));
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
