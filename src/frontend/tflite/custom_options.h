// The options of a custom operator, whose bytes only the operator knows: a map of flexbuffers, or a struct of C.
#pragma once

#include <flatbuffers/flexbuffers.h>

#include <string>
#include <vector>

#include "frontend/tflite/node_context.h"

namespace relay::frontend::tflite {

// A map by names. Missing numbers are 0. E0504 for bytes that are damaged.
class OptionMap {
 public:
  explicit OptionMap(const NodeContext& ctx);

  bool has(const char* name) const { return !map_[name].IsNull(); }
  bool flag(const char* name) const { return has(name) && map_[name].AsBool(); }
  double number(const char* name) const { return static_cast<double>(map_[name].AsFloat()); }
  // E0504 for a number outside of [low, high].
  int64_t integer(const char* name, int64_t low, int64_t high) const;
  // The same for each number of a list.
  std::vector<int64_t> integers(const char* name, int64_t low, int64_t high) const;

 private:
  int64_t checked(const char* name, int64_t value, int64_t low, int64_t high) const;

  const NodeContext& ctx_;
  std::vector<uint8_t> bytes_;  // aligned, as numbers of eight bytes are read where they are
  flexbuffers::Map map_;
};

// The 32-bit integers of a struct, in order. E0504 where the bytes hold fewer than `count`.
std::vector<int32_t> option_fields(const NodeContext& ctx, size_t count);

}  // namespace relay::frontend::tflite
