// Calls whose arguments are numbers and NumPy arrays of the dtypes and ranks of the parameters: the shortest way in and out.
//
//   if (auto values = PlainArguments::read(f, args)) return plain_result(values->run(module, f.name), type, types);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "bind/convert.h"
#include "runtime/module.h"

namespace relay::bind {

struct Executable;

// Whether all parameters of the function are tensors, and none is donated.
bool takes_plain_values(const Executable& exe, const runtime::Function& f);

// The arguments of one call. Needs the GIL, except while the call runs: releasing a buffer need not take it.
class PlainArguments {
 public:
  // nullopt, without an effect, for arguments of other classes, dtypes or ranks. `f` takes plain values.
  static std::optional<PlainArguments> read(const runtime::Function& f, const nb::tuple& args);

  // Other threads of Python run meanwhile.
  runtime::Value run(const runtime::Module& module, const std::string& name) const;

 private:
  std::vector<runtime::Value> values_;
  int64_t bytes_ = 0;  // that the values took
};

// The result of such a call. `type` and `types` may be null.
nb::object plain_result(const runtime::Value& result, const Type& type, const Module& types);

}  // namespace relay::bind
