// The inputs of a run that are not given: random values, and sizes of open dimensions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/core/tensor.h"
#include "runtime/vm/bytecode.h"

namespace relay {

// Random numbers, the same on every machine: floats normal with deviation one, integers and bools 0 or 1, which are inside
// of every table that they may index.
runtime::Tensor random_tensor(runtime::DType dtype, const std::vector<int64_t>& shape,
                              std::mt19937_64& random);

// The sizes of a function's open dimensions: from the inputs that are given, else from sizes by name, else 1.
class OpenSizes {
 public:
  // `shapes`: of inputs by name, with -1 where a dimension stays open. `given` has a tensor or null for each parameter.
  // The maps must outlive this.
  OpenSizes(const runtime::Function& function,
            const std::map<std::string, std::vector<int64_t>>& shapes,
            const std::map<std::string, int64_t>& dims, const std::vector<runtime::Tensor>& given);

  // UserError E0702 for a size in `dims` of a dimension that no input has, or that the inputs give another size.
  void check_dims(const std::function<std::string(const std::string&)>& help) const;
  // UserError E0702 when the size follows from others by a formula.
  std::vector<int64_t> shape_of(const runtime::Slot& slot);

  // The names of the open dimensions.
  const std::set<std::string>& open() const { return open_; }
  // Those whose sizes no input gives, by their names or as "dimension 0 of x".
  std::vector<std::pair<std::string, int64_t>> take_invented() { return std::move(invented_); }

 private:
  int64_t size_of(const runtime::Slot& slot, size_t axis);

  const std::map<std::string, std::vector<int64_t>>& shapes_;
  const std::map<std::string, int64_t>& dims_;
  std::set<std::string> open_;
  std::map<std::string, int64_t> known_;
  std::vector<std::pair<std::string, int64_t>> invented_;
};

}  // namespace relay
