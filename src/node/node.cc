#include "node/node.h"

#include <charconv>
#include <cmath>
#include <new>

namespace relay {

void NodeRef::destroy(const Node* node) {
  // A node's destructor releases its children, which come back here; they are queued instead of
  // nesting, so that a chain of any length is freed in constant stack.
  static constinit thread_local std::vector<const Node*>* queue = nullptr;
  try {
    if (queue != nullptr) {
      queue->push_back(node);
      return;
    }
    std::vector<const Node*> pending{node};
    queue = &pending;
    while (!pending.empty()) {
      const Node* next = pending.back();
      pending.pop_back();
      next->info().destroy(next);
    }
    queue = nullptr;
  } catch (const std::bad_alloc&) {
    // A node for which the queue has no room stays: the work that ran out of memory ends anyway.
  }
}

const Field* NodeInfo::find(std::string_view field_name) const {
  for (const Field& f : fields) {
    if (f.name == field_name) return &f;
  }
  return nullptr;
}

uint64_t hash_bytes(const void* data, size_t size, uint64_t seed) {
  const unsigned char* p = static_cast<const unsigned char*>(data);
  uint64_t h = hash_combine(seed, size);
  for (; size >= 8; size -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    h = (h ^ word) * 0x9FB21C651E98DF25ull;
    h ^= h >> 29;
  }
  uint64_t tail = 0;
  std::memcpy(&tail, p, size);
  return hash_combine(h, tail);
}

namespace {

std::string quote(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20) {
          static const char* digits = "0123456789abcdef";
          out += "\\x";
          out += digits[(c >> 4) & 15];
          out += digits[c & 15];
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string float_text(double v) {
  if (std::isnan(v)) return "nanf";
  if (std::isinf(v)) return v < 0 ? "-inff" : "inff";
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, v).ptr;
  return std::string(buffer, end) + "f";
}

}  // namespace

std::string to_string(const AttrValue& value) {
  // Attribute values nest at most a few levels (the parser bounds them), so this recursion is
  // bounded by the attribute's type, not by the program.
  if (value.is_none()) return "None";
  if (auto* b = value.get_if<bool>()) return *b ? "True" : "False";
  if (auto* i = value.get_if<int64_t>()) return std::to_string(*i);
  if (auto* d = value.get_if<double>()) return float_text(*d);
  if (auto* s = value.get_if<std::string>()) return quote(*s);
  if (const NodeRef* node = node_in(value)) return node->get()->info().text(*node->get());
  std::string out = "[";
  for (const AttrValue& item : *value.get_if<ValueList>()) {
    if (out.size() > 1) out += ", ";
    out += to_string(item);
  }
  return out + "]";
}

}  // namespace relay
