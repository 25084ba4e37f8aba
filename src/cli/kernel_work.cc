#include "cli/kernel_work.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace relay::cli {
namespace {

// A size in postfix (lower/open_work.h) of a kernel's sizes; nothing if it is not a valid size: an
// artifact may come from anywhere.
std::optional<double> size_in_postfix(const nlohmann::json& words, std::span<const int64_t> dims) {
  if (!words.is_array()) return std::nullopt;
  std::vector<int64_t> stack;
  for (const nlohmann::json& word : words) {
    if (!word.is_string()) return std::nullopt;
    const std::string& text = word.get_ref<const std::string&>();
    const bool is_name = text.starts_with('#');
    int64_t value = 0;
    const char *begin = text.data() + (is_name ? 1 : 0), *end = text.data() + text.size();
    if (begin != end && std::from_chars(begin, end, value).ptr == end) {
      if (is_name && (value < 0 || static_cast<size_t>(value) >= dims.size())) return std::nullopt;
      stack.push_back(is_name ? dims[static_cast<size_t>(value)] : value);
      continue;
    }
    if (stack.size() < 2) return std::nullopt;
    const int64_t b = stack.back();
    stack.pop_back();
    int64_t& a = stack.back();
    const bool divides = text == "//" || text == "ceil//" || text == "%";
    if (divides && b <= 0) return std::nullopt;
    const int64_t rest = divides ? ((a % b) + b) % b : 0;
    bool overflow = false;
    if (text == "+") {
      overflow = __builtin_add_overflow(a, b, &a);
    } else if (text == "-") {
      overflow = __builtin_sub_overflow(a, b, &a);
    } else if (text == "*") {
      overflow = __builtin_mul_overflow(a, b, &a);
    } else if (divides) {
      a = text == "%" ? rest : (a - rest) / b + (text == "ceil//" && rest > 0 ? 1 : 0);
    } else if (text == "max" || text == "min") {
      a = text == "max" ? std::max(a, b) : std::min(a, b);
    } else if (text == "broadcast") {
      a = a == 1 ? b : a;
    } else {
      return std::nullopt;
    }
    if (overflow) return std::nullopt;
  }
  return stack.size() == 1 ? std::optional(static_cast<double>(stack[0])) : std::nullopt;
}

// The value of a formula; negative where there is none.
double value_of_formula(const nlohmann::json& kernel, const char* key,
                        std::span<const int64_t> dims) {
  if (!kernel.contains(key) || !kernel[key].is_object()) return -1;
  const nlohmann::json products = kernel[key].value("products", nlohmann::json());
  if (!products.is_array()) return -1;
  double total = 0;
  for (const nlohmann::json& p : products) {
    if (!p.is_object() || !p.contains("number") || !p["number"].is_number()) return -1;
    double product = p["number"].get<double>();
    for (const nlohmann::json& words : p.value("sizes", nlohmann::json::array())) {
      auto size = size_in_postfix(words, dims);
      if (!size || *size < 0) return -1;
      product *= *size;
    }
    total += product;
  }
  return total;
}

}  // namespace

runtime::Profiler::WorkOf work_of(const runtime::Module& module) {
  nlohmann::json metadata = nlohmann::json::parse(module.metadata(), nullptr, false);
  nlohmann::json kernels = metadata.is_object() ? metadata.value("kernels", nlohmann::json::array())
                                                : nlohmann::json::array();
  return [module, kernels = std::move(kernels)](int32_t kernel, std::span<const int64_t> dims) {
    const auto i = static_cast<size_t>(kernel);
    const runtime::KernelInfo& info = module.program().kernels[i];
    if (dims.empty()) {
      return runtime::Profiler::Work{static_cast<double>(info.flops),
                                     static_cast<double>(info.bytes)};
    }
    if (i >= kernels.size() || !kernels[i].is_object()) return runtime::Profiler::Work{};
    return runtime::Profiler::Work{value_of_formula(kernels[i], "flops_by_sizes", dims),
                                   value_of_formula(kernels[i], "bytes_by_sizes", dims)};
  };
}

}  // namespace relay::cli
