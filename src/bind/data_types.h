// The data types that a conversion of values meets, each looked at once.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "ir/module.h"

namespace relay::bind {

// A data type applied to its arguments.
struct DataType {
  Type type;
  TypeData definition;
  std::vector<std::vector<Type>> fields;  // by constructor
  // As the prelude defines them, but for order: then Python has lists, and values or None, for them.
  bool is_list = false;
  bool is_option = false;
  size_t full = 0;   // Cons or Some
  size_t empty = 0;  // Nil or None

  size_t size() const { return fields.size(); }
  const ConstructorNode& constructor(size_t i) const { return *definition->constructors[i]; }
  // The index of the constructor of that name; size() when there is none.
  size_t find(std::string_view name) const;
};

class DataTypes {
 public:
  // `mod` has the definitions, and may be null.
  explicit DataTypes(const Module& mod) : mod_(mod) {}
  DataTypes(const DataTypes&) = delete;
  DataTypes& operator=(const DataTypes&) = delete;

  // Null for what is not a data type, or one that is not known. One object for equal types, as long
  // as this lives.
  const DataType* of(const Type& type);

 private:
  std::unique_ptr<DataType> make(const Type& type) const;
  bool is_option(const DataType& data) const;

  const Module& mod_;
  std::unordered_map<const Node*, const DataType*> known_;
  std::vector<Type> kept_;  // the keys of known_
  std::vector<std::unique_ptr<DataType>> made_;
};

}  // namespace relay::bind
