#include "frontend/tflite/custom_options.h"

#include <cstring>

#include "base/codes/frontend.h"

namespace relay::frontend::tflite {

OptionMap::OptionMap(const NodeContext& ctx)
    : ctx_(ctx),
      bytes_(ctx.custom_options().begin(), ctx.custom_options().end()),
      map_(flexbuffers::Map::EmptyMap()) {
  if (bytes_.size() < 3 || !flexbuffers::VerifyBuffer(bytes_.data(), bytes_.size()) ||
      !flexbuffers::GetRoot(bytes_.data(), bytes_.size()).IsMap())
    ctx.fail(codes::frontend_attribute, "the options are no map");
  map_ = flexbuffers::GetRoot(bytes_.data(), bytes_.size()).AsMap();
}

int64_t OptionMap::checked(const char* name, int64_t value, int64_t low, int64_t high) const {
  if (value < low || value > high) {
    ctx_.fail(codes::frontend_attribute, std::string("'") + name + "' is out of range",
              std::to_string(low) + " to " + std::to_string(high), std::to_string(value));
  }
  return value;
}

int64_t OptionMap::integer(const char* name, int64_t low, int64_t high) const {
  return checked(name, map_[name].AsInt64(), low, high);
}

std::vector<int64_t> OptionMap::integers(const char* name, int64_t low, int64_t high) const {
  const flexbuffers::Reference list = map_[name];
  if (!list.IsAnyVector())
    ctx_.fail(codes::frontend_attribute, std::string("'") + name + "' is not a list of numbers");
  std::vector<int64_t> out;
  auto read = [&](const auto& vector) {
    for (size_t i = 0; i < vector.size(); ++i)
      out.push_back(checked(name, vector[i].AsInt64(), low, high));
  };
  if (list.IsTypedVector()) {
    read(list.AsTypedVector());
  } else if (list.IsFixedTypedVector()) {
    read(list.AsFixedTypedVector());
  } else {
    read(list.AsVector());
  }
  return out;
}

std::vector<int32_t> option_fields(const NodeContext& ctx, size_t count) {
  const std::string_view bytes = ctx.custom_options();
  std::vector<int32_t> out(count);
  if (bytes.size() < count * sizeof(int32_t)) {
    ctx.fail(codes::frontend_attribute, "the options are too short",
             std::to_string(count * sizeof(int32_t)) + " bytes or more",
             std::to_string(bytes.size()));
  }
  std::memcpy(out.data(), bytes.data(), count * sizeof(int32_t));
  return out;
}

}  // namespace relay::frontend::tflite
