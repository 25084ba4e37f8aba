#include "bind/data_types.h"

#include "ir/type_params.h"
#include "node/structural.h"

namespace relay::bind {
namespace {

// Whether the definition is that of the prelude: one constructor with so many fields, one without.
bool is_like(const DataType& data, std::string_view type, std::string_view full, size_t fields,
             std::string_view empty) {
  if (data.size() != 2 || data.definition->header->name_hint != type) return false;
  size_t some = data.find(full), none = data.find(empty);
  return some < 2 && none < 2 && data.fields[some].size() == fields && data.fields[none].empty();
}

}  // namespace

size_t DataType::find(std::string_view name) const {
  size_t i = 0;
  while (i < size() && constructor(i).name_hint != name) ++i;
  return i;
}

// An option of an option is none of Python's: None could be either.
bool DataTypes::is_option(const DataType& data) const {
  if (!is_like(data, "Option", "Some", 1, "None")) return false;
  std::unique_ptr<DataType> inner = make(data.fields[data.find("Some")][0]);
  return inner == nullptr || !is_like(*inner, "Option", "Some", 1, "None");
}

std::unique_ptr<DataType> DataTypes::make(const Type& type) const {
  auto* applied = as<TypeCallNode>(type);
  auto* header = as<GlobalTypeVarNode>(applied != nullptr ? applied->func : type);
  if (header == nullptr || !mod_) return nullptr;
  auto out = std::make_unique<DataType>();
  out->type = type;
  out->definition = mod_->find_type(header->name_hint);
  size_t given = applied != nullptr ? applied->args.size() : 0;
  if (!out->definition || out->definition->type_vars.size() != given) return nullptr;
  TypeParams arguments;
  for (size_t i = 0; i < given; ++i) {
    arguments[out->definition->type_vars[i].get()] = applied->args[i];
  }
  for (const Constructor& c : out->definition->constructors) {
    std::vector<Type>& fields = out->fields.emplace_back();
    for (const Type& input : c->inputs) fields.push_back(with_type_params(input, arguments));
  }
  return out;
}

const DataType* DataTypes::of(const Type& type) {
  if (!type) return nullptr;
  auto found = known_.find(type.get());
  if (found != known_.end()) return found->second;
  const DataType* data = nullptr;
  for (const auto& other : made_) {
    if (structural_equal(other->type, type)) data = other.get();
  }
  if (data == nullptr) {
    if (std::unique_ptr<DataType> made = make(type)) {
      if (is_like(*made, "List", "Cons", 2, "Nil")) {
        made->full = made->find("Cons");
        made->empty = made->find("Nil");
        made->is_list = structural_equal(made->fields[made->full][1], type);
      } else if (is_option(*made)) {
        made->is_option = true;
        made->full = made->find("Some");
        made->empty = made->find("None");
      }
      data = made_.emplace_back(std::move(made)).get();
    }
  }
  kept_.push_back(type);
  known_[type.get()] = data;
  return data;
}

}  // namespace relay::bind
