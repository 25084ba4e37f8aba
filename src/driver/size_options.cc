#include "driver/size_options.h"

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "base/suggest.h"
#include "ir/op.h"

namespace relay {
namespace {

[[noreturn]] void refuse_size(const std::string& message, std::string expected,
                              std::string found = {}) {
  throw UserError(Diagnostic(codes::driver_option, {}, message)
                      .expected(std::move(expected))
                      .found(std::move(found)));
}

std::optional<int64_t> size_in(std::string_view text) {
  int64_t out = 0;
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size() || out < 0) return std::nullopt;
  return out;
}

std::string range_text(const SizeHint& h) {
  return std::to_string(h.low) + ".." + std::to_string(h.high);
}

void check(const SizeHint& h) {
  if (h.low < 0 || h.low > h.high) {
    refuse_size("the range of dimension " + quoted_name(h.name) + " is empty",
                "LOW..HIGH with 0 <= LOW <= HIGH", range_text(h));
  }
  for (int64_t size : h.likely) {
    if (size >= h.low && size <= h.high) continue;
    refuse_size("a likely size of dimension " + quoted_name(h.name) + " is outside of its range",
                range_text(h), std::to_string(size));
  }
}

}  // namespace

SizeHint& hint_of(std::vector<SizeHint>& hints, const std::string& name) {
  auto it = std::ranges::find(hints, name, &SizeHint::name);
  return it == hints.end() ? hints.emplace_back(SizeHint{.name = name, .likely = {}}) : *it;
}

bool read_range(const std::string& text, std::vector<SizeHint>& hints) {
  size_t equals = text.rfind('='), dots = text.rfind("..");
  if (equals == std::string::npos || dots == std::string::npos || dots < equals) return false;
  std::string name = text.substr(0, equals);
  auto low = size_in(std::string_view(text).substr(equals + 1, dots - equals - 1)),
       high = size_in(std::string_view(text).substr(dots + 2));
  if (name.empty() || !low || !high) {
    refuse_size("--dim " + escape_for_terminal(text, 200) + " cannot be read",
                "NAME=LOW..HIGH, such as n=1..512");
  }
  SizeHint& hint = hint_of(hints, name);
  if (hint.has_range()) {
    refuse_size("dimension " + quoted_name(name) + " is given twice",
                "one range for each dimension");
  }
  hint.low = *low;
  hint.high = *high;
  return true;
}

std::pair<std::string, std::vector<int64_t>> read_sizes(const std::string& option,
                                                        const std::string& text) {
  size_t equals = text.rfind('=');
  std::pair<std::string, std::vector<int64_t>> out;
  bool good = equals != std::string::npos && equals > 0;
  if (good) out.first = text.substr(0, equals);
  for (size_t at = equals + 1; good && at <= text.size();) {
    size_t end = std::min(text.find(',', at), text.size());
    auto size = size_in(std::string_view(text).substr(at, end - at));
    good = size.has_value();
    out.second.push_back(size.value_or(0));
    at = end + 1;
  }
  if (!good) {
    refuse_size(option + " " + escape_for_terminal(text, 200) + " cannot be read",
                "NAME=SIZE,SIZE,..., such as n=1,128");
  }
  return out;
}

Module with_size_hints(const Module& mod, const std::vector<SizeHint>& hints) {
  Function main = mod->find("main");
  std::vector<SizeHint> all = main ? size_hints(*main.get()) : std::vector<SizeHint>();
  if (all.empty() && main && main->attrs.contains(attr::kSizeHints)) {
    refuse_size("the attribute size_hints of @main cannot be read",
                "[[NAME, LOW, HIGH, [SIZE, ...]], ...] with at most " +
                    std::to_string(kMaxVersions) + " combinations of sizes");
  }
  for (const SizeHint& h : hints) hint_of(all, h.name) = h;
  if (all.empty()) return mod;
  std::vector<std::string_view> names;
  std::string known;
  for (const TypeVar& v : main ? main->type_params : std::vector<TypeVar>()) {
    if (v->kind != Kind::Dim) continue;
    names.push_back(v->name_hint);
    known += (known.empty() ? "" : ", ") + v->name_hint;
  }
  int64_t versions = 1;
  for (const SizeHint& h : all) {
    if (std::ranges::find(names, h.name) == names.end()) {
      throw UserError(
          Diagnostic(codes::driver_option, {}, "@main has no open dimension " + quoted_name(h.name))
              .expected(known.empty() ? "no sizes: no open dimension has a name" : known)
              .help(suggest(h.name, names)));
    }
    check(h);
    versions *= std::max<int64_t>(1, static_cast<int64_t>(h.likely.size()));
    if (versions > kMaxVersions) {
      refuse_size("there are too many combinations of likely sizes",
                  "at most " + std::to_string(kMaxVersions) + ", each a version of every kernel");
    }
  }
  if (hints.empty()) return mod;
  Function hinted = relay::with_size_hints(main, all);
  return with_function(mod, global_var("main", hinted->type), hinted);
}

}  // namespace relay
