#include "ir/text/metadata.h"

#include <charconv>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/codes/text.h"
#include "runtime/core/strings.h"

namespace relay::text {
namespace {

constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string encode(const unsigned char* data, size_t size) {
  std::string out;
  out.reserve((size + 2) / 3 * 4);
  for (size_t i = 0; i < size; i += 3) {
    uint32_t word = data[i] << 16;
    if (i + 1 < size) word |= data[i + 1] << 8;
    if (i + 2 < size) word |= data[i + 2];
    out += kDigits[word >> 18];
    out += kDigits[word >> 12 & 63];
    out += i + 1 < size ? kDigits[word >> 6 & 63] : '=';
    out += i + 2 < size ? kDigits[word & 63] : '=';
  }
  return out;
}

bool decode(const std::string& text, unsigned char* data, size_t size) {
  if (text.size() != (size + 2) / 3 * 4) return false;
  int8_t value[256];
  std::memset(value, -1, sizeof value);
  for (int i = 0; i < 64; ++i)
    value[static_cast<unsigned char>(kDigits[i])] = static_cast<int8_t>(i);
  size_t at = 0;
  for (size_t i = 0; i < text.size(); i += 4) {
    uint32_t word = 0;
    for (size_t j = 0; j < 4; ++j) {
      char c = text[i + j];
      int v = c == '=' && i + j >= text.size() - 2 ? 0 : value[static_cast<unsigned char>(c)];
      if (v < 0) return false;
      word = word << 6 | static_cast<uint32_t>(v);
    }
    for (int shift = 16; shift >= 0 && at < size; shift -= 8) {
      data[at++] = static_cast<unsigned char>(word >> shift);
    }
  }
  return true;
}

[[noreturn]] void bad(const Span& span, std::string what) {
  throw UserError(Diagnostic(codes::text_bad_metadata, span, "the metadata section is damaged")
                      .expected("what `relay show --format text` writes")
                      .found(std::move(what)));
}

// ---- The section as TVM's printer wrote it
//
// A graph of nodes: {"root": 1, "nodes": [{"type_key": "Map", "keys": ["relay.Constant"], "data":
// [2]}, {"type_key": "Array", "data": [3]}, {"type_key": "relay.Constant", "attrs": {"data": "0"}},
// ...], "b64ndarrays": [...]}. References are indices of nodes; a constant's data is an index of
// b64ndarrays, each a tensor with a header.

class GraphReader {
 public:
  GraphReader(const nlohmann::json& root, const Span& span) : root_(root), span_(span) {}

  std::vector<Constant> read() {
    const nlohmann::json& sections = node(member(root_, "root"));
    const nlohmann::json& keys = member(sections, "keys");
    const nlohmann::json& data = member(sections, "data");
    std::vector<Constant> out;
    for (size_t i = 0; i < keys.size() && i < data.size(); ++i) {
      if (keys[i] != "relay.Constant") continue;
      for (const auto& index : member(node(data[i]), "data")) {
        const nlohmann::json& attrs = member(node(index), "attrs");
        const nlohmann::json& tensors = member(root_, "b64ndarrays");
        const nlohmann::json& text = at(tensors, number(member(attrs, "data")));
        if (!text.is_string()) bad(span_, "a tensor that is not text");
        out.push_back(constant(tensor(text.get_ref<const std::string&>()), span_));
      }
    }
    return out;
  }

 private:
  const nlohmann::json& member(const nlohmann::json& object, const char* key) {
    if (!object.is_object() || !object.contains(key)) {
      bad(span_, std::string("a node without \"") + key + "\"");
    }
    return object[key];
  }
  const nlohmann::json& at(const nlohmann::json& list, size_t i) {
    if (!list.is_array() || i >= list.size()) bad(span_, "a reference to nothing");
    return list[i];
  }
  const nlohmann::json& node(const nlohmann::json& index) {
    return at(member(root_, "nodes"), number(index));
  }
  // An index, written as a number or as text.
  size_t number(const nlohmann::json& j) {
    if (j.is_number_unsigned()) return j.get<size_t>();
    size_t n = 0;
    if (j.is_string()) {
      const std::string& text = j.get_ref<const std::string&>();
      auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), n);
      if (error == std::errc() && end == text.data() + text.size()) return n;
    }
    bad(span_, "an index that is not a number");
  }

  Tensor tensor(const std::string& text) {
    constexpr uint64_t kMagic = 0xDD5E40F096B4A13F;
    struct Header {
      uint64_t magic, reserved;
      int32_t device_type, device_id, rank;
      uint8_t code, bits;
      uint16_t lanes;
    };
    static_assert(sizeof(Header) == 32);
    if (text.size() % 4 != 0 || text.size() < 4) bad(span_, "a tensor cut off");
    size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
    std::vector<unsigned char> bytes(text.size() / 4 * 3 - padding);
    if (!decode(text, bytes.data(), bytes.size())) bad(span_, "a tensor that is not base64");
    size_t place = 0;
    auto take = [&](auto& value) {
      if (bytes.size() - place < sizeof value) bad(span_, "a tensor cut off");
      std::memcpy(&value, bytes.data() + place, sizeof value);
      place += sizeof value;
    };
    Header h;
    take(h);
    if (h.magic != kMagic || h.rank < 0 || h.rank > 32) bad(span_, "a tensor without its header");
    std::vector<int64_t> shape(static_cast<size_t>(h.rank));
    for (int64_t& d : shape) take(d);
    int64_t size = 0;
    take(size);
    static constexpr const char* kKinds[] = {"int", "uint", "float", "", "bfloat"};
    bool boolean = h.bits == 1 && h.code == 1;
    std::string name = boolean ? "bool" : h.code < 5 ? kKinds[h.code] + std::to_string(h.bits) : "";
    auto dtype = DType::parse(name);
    if (!dtype || h.lanes != 1) bad(span_, "a tensor of an unknown dtype");
    int64_t expected = static_cast<int64_t>(dtype->bytes());
    for (int64_t d : shape) {
      if (d < 0 || __builtin_mul_overflow(expected, d, &expected))
        bad(span_, "a tensor's bad shape");
    }
    if (size != expected || static_cast<size_t>(size) != bytes.size() - place) {
      bad(span_, "a tensor whose data does not fit its shape");
    }
    Tensor out = Tensor::empty(*dtype, shape);
    if (size > 0)
      std::memcpy(out.data<unsigned char>(), bytes.data() + place, bytes.size() - place);
    return out;
  }

  const nlohmann::json& root_;
  const Span& span_;
};

Tensor strings(const nlohmann::json& data, const std::vector<int64_t>& shape, const Span& span,
               const std::string& where) {
  std::vector<std::string_view> texts;
  if (data.is_array()) {
    for (const auto& text : data) {
      if (!text.is_string()) bad(span, where + " has data that is not a list of strings");
      texts.push_back(text.get_ref<const std::string&>());
    }
  }
  if (!data.is_array() ||
      runtime::checked_num_elements(DType::String(), shape) != static_cast<int64_t>(texts.size())) {
    bad(span, where + " has data that does not fit its shape");
  }
  return runtime::make_strings(shape, texts);
}

}  // namespace

std::string write_metadata(const std::vector<Constant>& constants) {
  nlohmann::ordered_json list = nlohmann::ordered_json::array();
  for (const Constant& c : constants) {
    nlohmann::ordered_json item;
    item["dtype"] = c->data.dtype().to_string();
    item["shape"] = std::vector<int64_t>(c->data.shape().begin(), c->data.shape().end());
    if (!c->name_hint.empty()) item["name"] = c->name_hint;
    if (c->data.dtype().is_string()) {
      item["data"] = nlohmann::ordered_json::array();
      for (int64_t i = 0; i < c->data.num_elements(); ++i) {
        item["data"].push_back(std::string(runtime::string_at(c->data, i)));
      }
    } else {
      item["data"] = encode(c->data.data<unsigned char>(), c->data.byte_size());
    }
    list.push_back(std::move(item));
  }
  nlohmann::ordered_json root;
  root["relay.Constant"] = std::move(list);
  return root.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

std::vector<Constant> read_metadata(std::string_view json, const Span& span) {
  // The parser of the JSON library recurses over arrays only as deep as the text nests; the depth
  // is checked first.
  int depth = 0;
  for (char c : json) {
    depth += c == '[' || c == '{' ? 1 : c == ']' || c == '}' ? -1 : 0;
    if (depth > 16) bad(span, "JSON nested deeper than any metadata");
  }
  nlohmann::json root = nlohmann::json::parse(json, nullptr, false);
  if (root.is_discarded() || !root.is_object()) bad(span, "no JSON object");
  if (root.contains("b64ndarrays")) return GraphReader(root, span).read();
  std::vector<Constant> out;
  auto list = root.find("relay.Constant");
  if (list == root.end() || !list->is_array()) bad(span, "no list \"relay.Constant\"");
  for (const auto& item : *list) {
    std::string where = "entry " + std::to_string(out.size());
    if (!item.is_object() || !item.contains("dtype") || !item["dtype"].is_string() ||
        !item.contains("shape") || !item["shape"].is_array() || !item.contains("data") ||
        item["data"].is_string() == (item["dtype"] == "string")) {
      bad(span, where + " lacks dtype, shape or data");
    }
    auto dtype = DType::parse(item["dtype"].get<std::string>());
    if (!dtype || dtype->lanes != 1 || !dtype->valid()) bad(span, where + " has no such dtype");
    std::vector<int64_t> shape;
    int64_t bytes = static_cast<int64_t>(dtype->bytes());
    for (const auto& d : item["shape"]) {
      if (!d.is_number_integer() || d.get<int64_t>() < 0) bad(span, where + " has a bad shape");
      shape.push_back(d.get<int64_t>());
      if (__builtin_mul_overflow(bytes, shape.back(), &bytes)) bad(span, where + " is too large");
    }
    const nlohmann::json& data = item["data"];
    Tensor t;
    if (dtype->is_string()) {
      t = strings(data, shape, span, where);
    } else {
      const std::string& text = data.get_ref<const std::string&>();
      if (static_cast<size_t>(bytes) > text.size()) bad(span, where + " has too little data");
      t = Tensor::empty(*dtype, shape);
      if (!decode(text, t.data<unsigned char>(), t.byte_size())) {
        bad(span, where + " has data that does not fit its shape");
      }
    }
    std::string name = item.contains("name") && item["name"].is_string()
                           ? item["name"].get<std::string>()
                           : std::string();
    out.push_back(constant(std::move(t), span, std::move(name)));
  }
  return out;
}

}  // namespace relay::text
