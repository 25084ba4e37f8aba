#include "passes/combine/combine_updates.h"

#include <algorithm>
#include <optional>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/uses.h"
#include "node/walk.h"
#include "passes/simplify/rewrite_calls.h"

namespace relay {
namespace {

// Lines [begin, end) of the first axis.
struct Lines {
  int64_t begin, end;
  bool operator==(const Lines&) const = default;
  bool apart(const Lines& other) const { return end <= other.begin || other.end <= begin; }
};

// What an update_slice of known place and sizes writes.
std::optional<Lines> written_by(const Expr& e) {
  if (!is_call_to(e, "update_slice")) return std::nullopt;
  auto* c = as<CallNode>(e);
  auto* start = as<ConstantNode>(c->args[2]);
  auto all = static_shape(c->args[0]), update = static_shape(c->args[1]);
  if (start == nullptr || !all || !update) return std::nullopt;
  int64_t begin =
      std::min(std::max<int64_t>(start->data.get_as_int(0), 0), (*all)[0] - (*update)[0]);
  return Lines{begin, begin + (*update)[0]};
}

// The lines that a take reads, which stand beside each other.
std::optional<Lines> read_by(const CallNode& c) {
  auto* places = as<ConstantNode>(c.args[1]);
  auto shape = static_shape(c.args[0]);
  if (places == nullptr || !shape || shape->empty() || places->data.rank() > 1 ||
      places->data.num_elements() == 0 || int_attr(c, "batch_dims") != 0) {
    return std::nullopt;
  }
  const AttrValue axis = attr_value(c.attrs, "axis");
  auto* number = axis.get_if<int64_t>();
  if (number == nullptr || *number != 0) return std::nullopt;
  const int64_t begin = places->data.get_as_int(0), count = places->data.num_elements();
  for (int64_t i = 1; i < count; ++i) {
    if (places->data.get_as_int(i) != begin + i) return std::nullopt;
  }
  if (begin < 0 || begin + count > (*shape)[0]) return std::nullopt;
  return Lines{begin, begin + count};
}

// A read that looks past the updates that write other lines, or takes those of the one that writes its own; null where the
// first update writes some of both.
Expr without_updates(const CallNode& c) {
  // Each read of a chain looks at no more of it than this.
  constexpr int kMostUpdates = 4096;
  if (!is_call_to(Expr(&c), "take") || !written_by(c.args[0])) return nullptr;
  auto read = read_by(c);
  if (!read) return nullptr;
  Expr from = c.args[0];
  for (int i = 0; i < kMostUpdates; ++i) {
    auto written = written_by(from);
    if (!written) break;
    auto* update = as<CallNode>(from);
    if (*written == *read) {
      return make_call("reshape", {update->args[1]},
                       {{"newshape", to_value(*static_shape(Expr(&c)))}}, c);
    }
    if (!written->apart(*read)) break;
    from = update->args[0];
  }
  return from == c.args[0] ? nullptr : with_attrs(c, {from, c.args[1]}, {});
}

class Chains {
 public:
  explicit Chains(const Function& f) {
    UseCounts uses{f};
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c == nullptr || !written_by(Expr(c))) return;
          const Expr& before = c->args[0];
          if (written_by(before) && uses.of(before) == 1) inner_.insert(before.get());
        },
        family::program);
  }

  NodeRef operator()(const NodeRef& original, NodeRef rebuilt) {
    auto* end = as<CallNode>(rebuilt);
    if (end == nullptr || inner_.contains(original.get()) || !written_by(Expr(end))) return rebuilt;
    std::vector<std::pair<Lines, Expr>> parts;
    auto *before = as<CallNode>(original), *now = end;
    for (;;) {
      parts.emplace_back(*written_by(Expr(now)), now->args[1]);
      if (!inner_.contains(before->args[0].get())) break;
      before = as<CallNode>(before->args[0]);
      now = as<CallNode>(now->args[0]);
    }
    return joined(std::move(parts), *end);
  }

 private:
  // The parts, the last that was written first, as one tensor; the end of their chain where they are not all of it.
  static Expr joined(std::vector<std::pair<Lines, Expr>> parts, const CallNode& end) {
    std::ranges::stable_sort(parts, {}, [](const auto& p) { return p.first.begin; });
    Lines last{0, 0};
    std::vector<Expr> pieces;
    for (auto& [lines, value] : parts) {
      if (lines == last) continue;  // written over
      if (lines.begin != last.end) return Expr(&end);
      last = lines;
      pieces.push_back(std::move(value));
    }
    if (last.end != (*static_shape(Expr(&end)))[0]) return Expr(&end);
    if (pieces.size() == 1) return pieces[0];
    return make_call("concatenate", {tuple(std::move(pieces), end.span)},
                     {{"axis", AttrValue(int64_t{0})}}, end);
  }

  std::unordered_set<const Node*> inner_;
};

Module run_combine_updates(const Module& mod, PassContext&) {
  return map_functions(mod, [](const GlobalVar&, const Function& f) {
    Function reads = rewrite_calls(f, without_updates);
    Chains chains(reads);
    return cast<FunctionNode>(rewrite(reads, std::ref(chains), family::program));
  });
}

}  // namespace

const Pass kCombineUpdates{"CombineUpdates",
                           3,
                           Form::any,
                           Form::any,
                           "Joins lines that are written one after the other, and reads them where "
                           "they come from.",
                           run_combine_updates,
                           {}};

}  // namespace relay
