#include "cli/literal.h"

#include <cmath>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/codes/driver.h"
#include "ir/text/token.h"
#include "runtime/core/strings.h"

namespace relay::cli {
namespace {

using runtime::DType;
using runtime::Tensor;

std::optional<bool> truth(std::string_view text) {
  if (text == "true" || text == "True") return true;
  if (text == "false" || text == "False") return false;
  return std::nullopt;
}

bool is_whole(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n'; }

// Writes the value of `text` to element `i`; false if the tensor's dtype cannot represent it.
bool store(const Tensor& t, int64_t i, std::string_view text) {
  DType d = t.dtype();
  if (d.is_bool()) {
    auto v = truth(text);
    if (v) t.set_from_int(i, *v ? 1 : 0);
    return v.has_value();
  }
  if (d.is_uint() && d.bits == 64) {
    auto v = number_of<uint64_t>(text);
    if (v) t.data<uint64_t>()[i] = *v;
    return v.has_value();
  }
  if (d.is_integer()) {
    auto v = number_of<int64_t>(text);
    if (!v) return false;
    t.set_from_int(i, *v);
    return t.get_as_int(i) == *v;
  }
  auto v = number_of<double>(text);
  if (!v) return false;
  t.set_from_double(i, *v);
  double stored = t.get_as_double(i);
  if (std::isfinite(*v) && !std::isfinite(stored)) return false;
  if (!is_whole(text)) return true;
  auto exact = number_of<int64_t>(text);
  // 2^63 itself is no int64.
  return exact && std::abs(stored) < 0x1p63 && static_cast<int64_t>(stored) == *exact;
}

bool is_quoted(std::string_view text) {
  return text.size() >= 2 && text.front() == '"' && text.back() == '"';
}

// The items of a list in order, and the shape that its brackets have.
class ListReader {
 public:
  ListReader(const std::string& input, const std::string& text) : input_(input), text_(text) {}

  void read() {
    bool may_close = true, wants_item = true;  // at the start of a list, or after a comma
    for (size_t at = 0; at < text_.size();) {
      char c = text_[at];
      if (is_blank(c)) {
        ++at;
      } else if (c == '[') {
        if (!wants_item || (ended_ && counts_.empty())) bad("a comma is missing");
        open();
        ++at;
        may_close = true;
      } else if (c == ']') {
        if (counts_.empty() || (wants_item && !may_close)) bad("the brackets do not fit");
        close();
        ++at;
        wants_item = false;
      } else if (c == ',') {
        if (wants_item || counts_.empty()) bad("an item is missing");
        ++at;
        wants_item = true;
        may_close = false;
      } else {
        size_t end = at;
        if (c == '"') {
          for (++end; end < text_.size() && text_[end] != '"';) end += text_[end] == '\\' ? 2 : 1;
          if (end >= text_.size()) bad("a string is never closed");
          ++end;
        }
        while (end < text_.size() && !is_blank(text_[end]) && text_[end] != ',' &&
               text_[end] != '[' && text_[end] != ']')
          ++end;
        if (!wants_item || counts_.empty()) bad("a comma is missing");
        item(std::string_view(text_).substr(at, end - at));
        at = end;
        wants_item = false;
      }
    }
    if (!counts_.empty() || !ended_) bad("the brackets do not fit");
  }

  const std::vector<int64_t>& shape() const { return sizes_; }
  const std::vector<std::string_view>& items() const { return items_; }

 private:
  static constexpr size_t kMaxDepth = 32;

  [[noreturn]] void bad(const std::string& why) const {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the list for input '" + escape_for_terminal(input_, 200) +
                                   "' cannot be read: " + why)
                        .expected("a list such as [1, 2, 3] or [[1, 2], [3, 4]]")
                        .found("'" + escape_for_terminal(text_, 200) + "'"));
  }

  void count() {
    if (!counts_.empty()) ++counts_.back();
  }

  void open() {
    count();
    counts_.push_back(0);
    if (counts_.size() > kMaxDepth) bad("it is nested too deeply");
    if (item_depth_ != 0 && counts_.size() > item_depth_) bad("its rows differ");
    if (counts_.size() > sizes_.size()) sizes_.push_back(-1);
  }

  void close() {
    int64_t& size = sizes_[counts_.size() - 1];
    if (size >= 0 && size != counts_.back()) bad("its rows differ in length");
    size = counts_.back();
    counts_.pop_back();
    ended_ = counts_.empty();
  }

  void item(std::string_view text) {
    count();
    if (item_depth_ == 0) item_depth_ = counts_.size();
    if (counts_.size() != item_depth_ || sizes_.size() != item_depth_) bad("its rows differ");
    items_.push_back(text);
  }

  const std::string& input_;
  const std::string& text_;
  std::vector<int64_t> counts_;  // items so far of each list that is open
  std::vector<int64_t> sizes_;   // by depth; -1: no list of this depth has ended
  std::vector<std::string_view> items_;
  size_t item_depth_ = 0;  // lists around an item; 0: there was none
  bool ended_ = false;
};

}  // namespace

LiteralKind literal_kind(std::string_view text) {
  if (text.starts_with('[')) return LiteralKind::list;
  if (is_quoted(text)) return LiteralKind::scalar;
  if (is_whole(text)) return LiteralKind::whole;
  return truth(text) || number_of<double>(text) ? LiteralKind::scalar : LiteralKind::none;
}

Tensor read_literal(const std::string& input, const std::string& text, DType dtype) {
  std::vector<int64_t> shape;
  std::vector<std::string_view> items{text};
  std::optional<ListReader> list;
  if (literal_kind(text) == LiteralKind::list) {
    list.emplace(input, text);
    list->read();
    shape = list->shape();
    items = list->items();
  }
  auto refuse = [&](std::string_view item, const std::string& expected) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the value for input '" + escape_for_terminal(input, 200) +
                                   "' does not fit its dtype")
                        .expected(expected)
                        .found("'" + escape_for_terminal(std::string(item), 100) + "'"));
  };
  if (dtype.is_string()) {
    std::vector<std::string> texts(items.size());
    for (size_t i = 0; i < items.size(); ++i) {
      bool read = is_quoted(items[i]) && text::unescape(items[i], texts[i]);
      if (!read || !runtime::is_utf8(texts[i])) refuse(items[i], "a string such as \"word\"");
    }
    return runtime::make_strings(shape, std::vector<std::string_view>(texts.begin(), texts.end()));
  }
  Tensor out = Tensor::empty(dtype, shape);
  for (size_t i = 0; i < items.size(); ++i) {
    if (!store(out, static_cast<int64_t>(i), items[i])) refuse(items[i], dtype.to_string());
  }
  return out;
}

}  // namespace relay::cli
