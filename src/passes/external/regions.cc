#include "passes/external/regions.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/codes/passes.h"
#include "base/disjoint_sets.h"
#include "ir/external.h"
#include "ir/scope.h"
#include "node/walk.h"

namespace relay {
namespace {

// Marks, each with its number in the order of the walk.
using Marks = std::vector<std::pair<size_t, const CallNode*>>;

struct Part {
  std::optional<std::string> compiler;  // nothing: no mark yet
  Marks begins;
  Marks ends;
};

std::vector<const CallNode*> in_order(Marks marks) {
  std::ranges::sort(marks);
  std::vector<const CallNode*> out;
  for (const auto& [number, mark] : marks) out.push_back(mark);
  return out;
}

[[noreturn]] void refuse_marks(const Span& place, const std::string& what,
                               const std::string& expected, const std::string& found) {
  throw UserError(Diagnostic(codes::external_codegen, place, what)
                      .expected(expected)
                      .found(found)
                      .help("AnnotateTarget sets all marks of a region"));
}

bool can_be_inside(const ExprNode& e) {
  return isa<CallNode>(&e) || isa<TupleNode>(&e) || isa<TupleGetItemNode>(&e);
}

class Reader {
 public:
  explicit Reader(const FunctionNode& f) {
    post_order_if(
        f.body,
        [](const Node& n) {
          auto* inner = as<FunctionNode>(&n);
          return inner == nullptr || !(inner->is_primitive() || inner->has_attr(attr::kComposite));
        },
        [&](const Node& n) {
          if (isa<ExprNode>(&n)) read(static_cast<const ExprNode&>(n));
        },
        family::program);
    check_outside(f.body, f.span);
  }

  NodeMap<int> part_of;
  DisjointSets sets;
  std::vector<Part> parts;

 private:
  size_t num_marks_ = 0;

  size_t new_part(const ExprNode& e) {
    const size_t part = sets.add();
    parts.emplace_back();
    part_of[&e] = static_cast<int>(part);
    return part;
  }

  // The part of what computes a value that does not leave its region here.
  std::optional<size_t> inside(const Expr& e) {
    if (compiler_end_of(e) != nullptr) return std::nullopt;
    const int* part = part_of.find(e.get());
    return part == nullptr ? std::nullopt : std::optional(sets.find(static_cast<size_t>(*part)));
  }

  void name(size_t part, const std::string& compiler, const CallNode& mark) {
    Part& p = parts[sets.find(part)];
    if (!p.compiler) p.compiler = compiler;
    if (*p.compiler == compiler) return;
    refuse_marks(mark.span, "a region has marks of two external code generators", *p.compiler,
                 compiler);
  }

  void join(size_t a, size_t b, const ExprNode& at) {
    a = sets.find(a);
    b = sets.find(b);
    if (a == b) return;
    if (parts[a].compiler && parts[b].compiler && *parts[a].compiler != *parts[b].compiler) {
      refuse_marks(at.span, "regions of two external code generators meet without marks",
                   *parts[a].compiler, *parts[b].compiler);
    }
    const size_t both = sets.join(a, b);
    Part& into = parts[both];
    Part& from = parts[both == a ? b : a];
    if (!into.compiler) into.compiler = from.compiler;
    into.begins.insert(into.begins.end(), from.begins.begin(), from.begins.end());
    into.ends.insert(into.ends.end(), from.ends.begin(), from.ends.end());
    from = {};
  }

  void check_outside(const Expr& e, const Span& place) {
    auto part = inside(e);
    if (!part) return;
    refuse_marks(e->span ? e->span : place, "a value leaves its region without a mark",
                 std::string(kCompilerEnd) + " of \"" + parts[*part].compiler.value_or("") + "\"",
                 "none");
  }

  void read(const ExprNode& e) {
    auto* c = as<CallNode>(&e);
    const Expr now(&e);
    if (auto* begin = compiler_begin_of(now)) {
      check_outside(c->args[0], e.span);
      const size_t part = new_part(e);
      name(part, *begin, *c);
      parts[part].begins.emplace_back(num_marks_++, c);
      return;
    }
    if (auto* end = compiler_end_of(now)) {
      const Expr& value = c->args[0];
      auto part = inside(value);
      if (!part && (is_leaf(*value) || !can_be_inside(*value))) return;
      if (!part) part = new_part(*value);
      name(*part, *end, *c);
      parts[sets.find(*part)].ends.emplace_back(num_marks_++, c);
      part_of[&e] = static_cast<int>(*part);
      return;
    }
    for_each_operand(e, [&](const Expr& operand, bool opens_scope) {
      if (opens_scope || !can_be_inside(e)) return check_outside(operand, e.span);
      auto part = inside(operand);
      if (!part) return;
      const int* mine = part_of.find(&e);
      if (mine == nullptr) {
        part_of[&e] = static_cast<int>(*part);
      } else {
        join(static_cast<size_t>(*mine), *part, e);
      }
    });
  }
};

}  // namespace

Regions::Regions(const FunctionNode& f) {
  Reader reader(f);
  std::vector<int> region_of_set(reader.sets.size(), -1);
  region_of_part_.resize(reader.sets.size());
  for (size_t part = 0; part < reader.sets.size(); ++part) {
    const size_t set = reader.sets.find(part);
    if (region_of_set[set] < 0) {
      region_of_set[set] = static_cast<int>(regions_.size());
      Part& p = reader.parts[set];
      regions_.push_back({p.compiler.value_or(kNoCompiler), in_order(std::move(p.begins)),
                          in_order(std::move(p.ends))});
    }
    region_of_part_[part] = region_of_set[set];
  }
  part_of_ = std::move(reader.part_of);
}

}  // namespace relay
