#include "driver/breakpoints.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "analysis/definitions.h"
#include "base/codes/driver.h"
#include "base/quoted_name.h"
#include "driver/options.h"
#include "driver/value_difference.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// "conv1 (Conv) -> y" -> "conv1".
std::string short_name(const std::string& node) { return node.substr(0, node.find(" (")); }

double number_of(const std::string& word) {
  char* end = nullptr;
  const double value = std::strtod(word.c_str(), &end);
  if (word.empty() || *end != '\0')
    throw wrong_usage(quoted_name(word) + " is not a number", "for example: break range -10 10");
  return value;
}

std::vector<int64_t> dims_of(const std::vector<std::string>& words) {
  std::vector<int64_t> out;
  std::string digits;
  auto flush = [&] {
    if (!digits.empty()) out.push_back(std::strtoll(digits.c_str(), nullptr, 10));
    digits.clear();
  };
  for (size_t i = 2; i < words.size(); ++i) {
    for (char c : words[i]) {
      if (c >= '0' && c <= '9' && digits.size() < 18) {
        digits += c;
      } else if (c == ',' || c == 'x' || c == '(' || c == ')') {
        flush();
      } else {
        throw wrong_usage(quoted_name(words[i]) + " is not a shape",
                          "for example: break shape 2,3");
      }
    }
    flush();
  }
  return out;
}

bool calls_operator(const WatchedCall& c, const std::string& name) {
  if (c.operation == name) return true;
  if (!c.primitive) return false;
  bool found = false;
  post_order(c.primitive, [&](const Node& n) {
    auto* op = as<OpNode>(&n);
    found |= op != nullptr && op->name == name;
  });
  return found;
}

// Whether one of the nodes of the call has the name, in full or without what is behind it.
bool computes_node(const WatchedCall& c, const std::string& name) {
  if (c.node == name || short_name(c.node) == name) return true;
  std::string rest = c.origin;
  while (!rest.empty()) {
    const size_t at = rest.find(" + ");
    const std::string part = rest.substr(0, at);
    if (part == name || short_name(part) == name) return true;
    rest = at == std::string::npos ? "" : rest.substr(at + 3);
  }
  return false;
}

}  // namespace

Breakpoints::Breakpoints(const Module& mod, const std::string& source_name) {
  for (const GlobalVar& g : mod->global_vars) names_.insert("@" + g->name_hint);
  post_order(expand_definitions(mod), [&](const Node& n) {
    auto* call = as<CallNode>(&n);
    if (call == nullptr) return;
    if (auto* op = as<OpNode>(call->op)) operators_.insert(std::string(op->name));
    const Span* span = &call->span;
    while (!span->parts().empty()) span = &span->parts().back();
    if (!*span) return;
    if (span->file() != nullptr && !span->file()->text().empty()) {
      lines_.insert(span->file()->position(span->begin()).line);
    } else {
      const std::string node = place_text(*span, source_name);
      nodes_.insert(node);
      nodes_.insert(short_name(node));
      names_.insert(short_name(node));
    }
  });
  names_.insert(operators_.begin(), operators_.end());
}

std::string Breakpoints::add(const std::vector<std::string>& words) {
  if (words.size() < 2) {
    throw wrong_usage(
        "break needs something to stop at",
        "break OPERATOR, NODE, :LINE, @FUNCTION, nan, inf, range LOW HIGH, shape D,D");
  }
  Breakpoint b{};
  b.name = words[1];
  for (size_t i = 2; i < words.size(); ++i) b.name += " " + words[i];
  const size_t colon = words[1].rfind(':');
  const std::string line = words[1].substr(colon == std::string::npos ? 0 : colon + 1);
  const bool is_line = !line.empty() && line.find_first_not_of("0123456789") == std::string::npos;
  if (words[1] == "nan" || words[1] == "inf") {
    b.kind = words[1] == "nan" ? Breakpoint::nan : Breakpoint::inf;
  } else if (words[1] == "range") {
    if (words.size() != 4) throw wrong_usage("range needs two numbers", "break range LOW HIGH");
    b.kind = Breakpoint::range;
    b.low = number_of(words[2]);
    b.high = number_of(words[3]);
  } else if (words[1] == "shape") {
    b.kind = Breakpoint::shape;
    b.dims = dims_of(words);
  } else if (words[1].starts_with("@")) {
    if (!names_.contains(b.name)) {
      throw wrong_usage("the program has no function " + quoted_name(b.name), "break @main, say");
    }
    b.kind = Breakpoint::function;
  } else if (operators_.contains(b.name) || b.name.starts_with("fused_")) {
    b.kind = Breakpoint::operation;
  } else if (nodes_.contains(b.name)) {
    b.kind = Breakpoint::node;
  } else if (is_line) {
    b.kind = Breakpoint::line;
    b.line_number = static_cast<uint32_t>(std::strtoul(line.c_str(), nullptr, 10));
    if (!lines_.contains(b.line_number)) {
      auto next = lines_.lower_bound(b.line_number);
      throw wrong_usage("no call begins in line " + line,
                        next == lines_.end() ? "`list` shows the source"
                                             : "the next one is in line " + std::to_string(*next));
    }
  } else {
    throw wrong_usage("the program has no operator, node or line " + quoted_name(b.name),
                      "Tab completes names");
  }
  b.number = next_++;
  list_.push_back(b);
  return text_of(b);
}

void Breakpoints::remove(const std::vector<std::string>& words) {
  if (words.size() < 2) return list_.clear();
  const size_t before = list_.size();
  std::erase_if(list_, [&](const Breakpoint& b) { return std::to_string(b.number) == words[1]; });
  if (list_.size() == before)
    throw wrong_usage("there is no breakpoint " + quoted_name(words[1]), "`breaks` lists them");
}

std::optional<std::string> Breakpoints::hit(const WatchedCall& c) {
  std::optional<std::string> out;
  for (Breakpoint& b : list_) {
    if (hits(b, c) && !out) out = text_of(b);
  }
  return out;
}

bool Breakpoints::hits(Breakpoint& b, const WatchedCall& c) {
  switch (b.kind) {
    case Breakpoint::operation:
      return calls_operator(c, b.name);
    case Breakpoint::node:
      return computes_node(c, b.name);
    case Breakpoint::line:
      return c.line == b.line_number;
    case Breakpoint::function: {
      // The first call of a stay in the function.
      const bool was = std::exchange(b.inside, "@" + c.function == b.name);
      return b.inside && !was;
    }
    case Breakpoint::nan:
      return std::ranges::any_of(c.outputs, [](const Tensor& t) { return not_finite(t).nans > 0; });
    case Breakpoint::inf:
      return std::ranges::any_of(c.outputs,
                                 [](const Tensor& t) { return not_finite(t).infinities > 0; });
    case Breakpoint::range:
      return std::ranges::any_of(c.outputs, [&](const Tensor& t) {
        if (!t || t.dtype().is_string()) return false;
        for (int64_t i = 0; i < t.num_elements(); ++i) {
          const double v = t.get_as_double(i);
          if (!(v >= b.low && v <= b.high)) return true;
        }
        return false;
      });
    case Breakpoint::shape:
      return std::ranges::any_of(
          c.outputs, [&](const Tensor& t) { return t && std::ranges::equal(t.shape(), b.dims); });
  }
  return false;
}

std::string Breakpoints::text_of(const Breakpoint& b) {
  return std::to_string(b.number) + ": " + b.name;
}

std::string Breakpoints::text() const {
  std::string out;
  for (const Breakpoint& b : list_) out += text_of(b) + "\n";
  return out.empty() ? "there are no breakpoints\n" : out;
}

}  // namespace relay
