#include "run/arguments.h"

#include <cmath>
#include <string_view>

#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "runtime/core/strings.h"

namespace relay {

using runtime::DType;
using runtime::Slot;
using runtime::Tensor;

namespace {

// The names of a parameter's symbolic dimensions; "" if a dimension is constant or has no name.
std::string symbol_of(const Slot& slot, size_t axis) {
  bool named = slot.tensor.shape[axis] < 0 && axis < slot.tensor.symbols.size();
  return named ? slot.tensor.symbols[axis] : std::string();
}

// Of sizes such as "2 * n", which follow from others.
bool is_expression(const std::string& symbol) {
  return symbol.find_first_of(" (,") != std::string::npos;
}

}  // namespace

Tensor random_tensor(DType dtype, const std::vector<int64_t>& shape, std::mt19937_64& random) {
  if (dtype.is_string()) {
    std::vector<std::string> words(
        static_cast<size_t>(runtime::checked_num_elements(dtype, shape)));
    for (std::string& word : words) word = "word" + std::to_string(random() % 100);
    return runtime::make_strings(shape, std::vector<std::string_view>(words.begin(), words.end()));
  }
  Tensor t = Tensor::empty(dtype, shape);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (t.dtype().is_floating()) {
      // Box and Muller by hand: the standard distributions differ between libraries.
      double u = (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53;
      double v = static_cast<double>(random() >> 11) * 0x1p-53;
      t.set_from_double(i, std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v));
    } else {
      t.set_from_int(i, static_cast<int64_t>(random() % 2));
    }
  }
  return t;
}

OpenSizes::OpenSizes(const runtime::Function& function,
                     const std::map<std::string, std::vector<int64_t>>& shapes,
                     const std::map<std::string, int64_t>& dims, const std::vector<Tensor>& given)
    : shapes_(shapes), dims_(dims) {
  for (size_t i = 0; i < function.params.size(); ++i) {
    const Slot& slot = function.params[i];
    if (!slot.is_tensor) continue;
    auto shape = shapes.find(slot.name);
    for (size_t a = 0; a < slot.tensor.shape.size(); ++a) {
      std::string symbol = symbol_of(slot, a);
      if (symbol.empty()) continue;
      open_.insert(symbol);
      if (given[i]) {
        if (a < given[i].shape().size()) known_.try_emplace(symbol, given[i].dim(a));
      } else if (shape != shapes.end() && a < shape->second.size() && shape->second[a] >= 0) {
        known_.try_emplace(symbol, shape->second[a]);
      }
    }
  }
}

void OpenSizes::check_dims(const std::function<std::string(const std::string&)>& help) const {
  std::string known;
  for (const std::string& n : open_) known += (known.empty() ? "" : ", ") + n;
  for (const auto& [name, size] : dims_) {
    if (!open_.contains(name)) {
      throw UserError(
          Diagnostic(codes::driver_option, {},
                     "no input has an open dimension " + quoted_name(name))
              .expected(known.empty() ? "no --dim: no open dimension has a name" : known)
              .help(help(name)));
    }
    auto it = known_.find(name);
    if (it == known_.end() || it->second == size) continue;
    throw UserError(Diagnostic(codes::driver_option, {},
                               "--dim says another size of dimension " + quoted_name(name) +
                                   " than the inputs that are given")
                        .expected(std::to_string(it->second))
                        .found(std::to_string(size)));
  }
}

std::vector<int64_t> OpenSizes::shape_of(const Slot& slot) {
  std::vector<int64_t> shape = slot.tensor.shape;
  auto given = shapes_.find(slot.name);
  for (size_t a = 0; a < shape.size(); ++a) {
    if (shape[a] >= 0) continue;
    if (given != shapes_.end() && a < given->second.size()) shape[a] = given->second[a];
    if (shape[a] < 0) shape[a] = size_of(slot, a);
  }
  return shape;
}

int64_t OpenSizes::size_of(const Slot& slot, size_t axis) {
  std::string symbol = symbol_of(slot, axis);
  if (is_expression(symbol)) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "no value can be invented for input " + quoted_name(slot.name))
                        .found(slot.type_string())
                        .help("its size " + symbol + " follows from others: give --input " +
                              slot.name + "=SHAPE"));
  }
  if (symbol.empty()) {
    invented_.emplace_back("dimension " + std::to_string(axis) + " of " + slot.name, 1);
    return 1;
  }
  auto [it, fresh] = known_.try_emplace(symbol, 1);
  if (!fresh) return it->second;
  if (auto dim = dims_.find(symbol); dim != dims_.end()) it->second = dim->second;
  invented_.emplace_back(symbol, it->second);
  return it->second;
}

}  // namespace relay
