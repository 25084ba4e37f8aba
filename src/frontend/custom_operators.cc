#include "frontend/common/custom_operators.h"

#include <map>
#include <mutex>
#include <utility>

#include "base/fork.h"

namespace relay {
namespace {

struct CustomOperators {
  ForkSafe<std::mutex> mutex;
  std::map<std::pair<std::string, std::string>, CustomConverter> rows;
};

CustomOperators& converters() {
  static CustomOperators all;
  return all;
}

}  // namespace

void register_custom_operator(const std::string& front_end, const std::string& name,
                              CustomConverter convert) {
  std::lock_guard lock(converters().mutex);
  if (convert) {
    converters().rows[{front_end, name}] = std::move(convert);
  } else {
    converters().rows.erase({front_end, name});
  }
}

CustomConverter custom_operator(std::string_view front_end, std::string_view name) {
  std::lock_guard lock(converters().mutex);
  auto row = converters().rows.find({std::string(front_end), std::string(name)});
  return row == converters().rows.end() ? nullptr : row->second;
}

}  // namespace relay
