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

CustomOperators& list() {
  static CustomOperators all;
  return all;
}

}  // namespace

void register_custom_operator(const std::string& front_end, const std::string& name,
                              CustomConverter convert) {
  std::lock_guard lock(list().mutex);
  if (convert) {
    list().rows[{front_end, name}] = std::move(convert);
  } else {
    list().rows.erase({front_end, name});
  }
}

CustomConverter custom_operator(std::string_view front_end, std::string_view name) {
  std::lock_guard lock(list().mutex);
  auto row = list().rows.find({std::string(front_end), std::string(name)});
  return row == list().rows.end() ? nullptr : row->second;
}

}  // namespace relay
