#include "analysis/typical_sizes.h"

#include <algorithm>
#include <unordered_map>

#include "analysis/size_hints.h"

namespace relay {
namespace {

// Products of two sizes of tensors stay within 64 bits.
constexpr int64_t kLargestTypicalSize = int64_t{1} << 31;

}  // namespace

TypeParams typical_sizes(const FunctionNode& f) {
  std::unordered_map<std::string, int64_t> sizes;
  for (const SizeHint& h : size_hints(f)) {
    if (!h.likely.empty()) sizes[h.name] = h.likely.front();
  }
  auto it = f.attrs.find(attr::kTypicalSizes);
  auto* rows = it == f.attrs.end() ? nullptr : it->second.get_if<ValueList>();
  for (size_t i = 0; rows != nullptr && i < rows->size(); ++i) {
    auto* row = (*rows)[i].get_if<ValueList>();
    if (row == nullptr || row->size() != 2) return {};
    auto* name = (*row)[0].get_if<std::string>();
    auto* size = (*row)[1].get_if<int64_t>();
    if (name == nullptr || size == nullptr) return {};
    sizes[*name] = *size;
  }
  TypeParams out;
  for (const TypeVar& v : f.type_params) {
    auto size = sizes.find(v->name_hint);
    if (size == sizes.end()) continue;
    out.emplace(v.get(), dim(std::clamp<int64_t>(size->second, 0, kLargestTypicalSize)));
  }
  return out;
}

Function with_typical_sizes(const Function& f,
                            const std::vector<std::pair<std::string, int64_t>>& sizes) {
  if (sizes.empty()) return f;
  ValueList rows;
  for (const auto& [name, size] : sizes) {
    rows.emplace_back(ValueList{AttrValue(name), AttrValue(size)});
  }
  Dict attrs = f->attrs;
  attrs[attr::kTypicalSizes] = AttrValue(rows);
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

}  // namespace relay
