#include "runtime/core/data_text.h"

#include <bit>
#include <vector>

#include "runtime/core/immediate.h"
#include "runtime/core/print.h"
#include "runtime/core/tensor.h"

namespace relay::runtime {
namespace {

// Constructors that a message shows.
constexpr int kMostConstructors = 8;

// "Cons(_,*)" of a list of constructors; empty if there is none.
std::string_view constructor_at(std::string_view all, int32_t tag) {
  for (; tag > 0; --tag) {
    const size_t end = all.find(';');
    if (end == std::string_view::npos) return {};
    all.remove_prefix(end + 1);
  }
  return tag < 0 ? std::string_view() : all.substr(0, all.find(';'));
}

std::string field_text(const Object* field) {
  if (field == nullptr || kind_of(field) != ObjectKind::tensor) return "_";
  const Tensor t = tensor_of(const_cast<Object*>(field));  // to count one more handle
  const std::optional<TextNumber> kind = text_number(t.dtype());
  if (t.rank() > 0 || !kind || t.device() != Device::cpu())
    return type_string(t.dtype(), t.shape());
  return number_text(
      t.dtype().is_floating() ? std::bit_cast<int64_t>(t.get_as_double(0)) : t.get_as_int(0),
      *kind);
}

}  // namespace

std::string data_text(const Object* value, std::string_view constructors) {
  struct Piece {
    const Object* data;  // null: the text
    std::string text;
  };
  std::string out;
  int shown = 0;
  std::vector<Piece> stack;
  if (value != nullptr) stack.push_back({value, {}});
  while (!stack.empty()) {
    const Piece piece = std::move(stack.back());
    stack.pop_back();
    if (piece.data == nullptr) {
      out += piece.text;
      continue;
    }
    const bool is_data = kind_of(piece.data) == ObjectKind::adt;
    std::string_view fields =
        is_data ? constructor_at(constructors, cell_of(piece.data).tag) : std::string_view();
    if (fields.empty() || ++shown > kMostConstructors) {
      out += shown > kMostConstructors ? "..." : out.empty() ? "" : "_";
      continue;
    }
    const Cell& cell = cell_of(piece.data);
    const size_t name = fields.find('(');
    out += fields.substr(0, name);
    if (name == std::string_view::npos || cell.count == 0) continue;
    fields.remove_prefix(name);
    out += "(";
    stack.push_back({nullptr, ")"});
    for (uint32_t i = cell.count; i-- > 0;) {
      // "(_,*)": the mark of field i is at 1 + 2 i.
      const size_t mark = 1 + 2 * static_cast<size_t>(i);
      const bool same = mark < fields.size() && fields[mark] == '*' && cell.fields[i] != nullptr;
      stack.push_back(same ? Piece{cell.fields[i], {}}
                           : Piece{nullptr, field_text(cell.fields[i])});
      if (i > 0) stack.push_back({nullptr, ", "});
    }
  }
  return out;
}

}  // namespace relay::runtime
