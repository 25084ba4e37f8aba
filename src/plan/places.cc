#include "plan/places.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

#include "node/structural.h"
#include "plan/joins.h"
#include "plan/memory.h"

namespace relay::plan {
namespace {

// Bytes as a number times sizes that are no numbers, in an order of their own.
struct Product {
  int64_t number = 1;
  std::vector<std::pair<std::string, Dim>> factors;
};

Product product_of(const TensorTypeNode& t) {
  Product out{static_cast<int64_t>(t.dtype.bytes()), {}};
  std::vector<Dim> open(t.shape.begin(), t.shape.end());
  while (!open.empty()) {
    Dim d = std::move(open.back());
    open.pop_back();
    auto* op = as<DimOpNode>(d);
    if (auto value = as_const(d)) {
      out.number *= *value;
    } else if (op != nullptr && op->op == DimOpKind::Mul) {
      open.push_back(op->a);
      open.push_back(op->b);
    } else {
      out.factors.emplace_back(to_string(d), d);
    }
  }
  std::ranges::stable_sort(out.factors, {}, [](const auto& f) { return f.first; });
  return out;
}

bool same_factors(const Product& a, const Product& b) {
  return std::ranges::equal(a.factors, b.factors, [](const auto& x, const auto& y) {
    return structural_equal(x.second, y.second);
  });
}

std::string text_of(const std::vector<std::pair<std::string, Dim>>& factors) {
  std::string out;
  for (const auto& [text, d] : factors) {
    bool plain = isa<DimVarNode>(d);
    out += "*" + (plain ? text : "(" + text + ")");
  }
  return out;
}

// Numbers for what places have in common that one may hold the values of another: the device, and all of the size but
// its constant factor.
class Kinds {
 public:
  size_t number(const Product& p, Device device) {
    // Different factors may have one text.
    std::vector<Known>& alike = by_text_[text_of(p.factors)];
    for (const Known& k : alike) {
      if (k.device == device && same_factors(k.product, p)) return k.number;
    }
    alike.push_back({p, device, count_});
    return count_++;
  }

 private:
  struct Known {
    Product product;
    Device device;
    size_t number;
  };
  std::unordered_map<std::string, std::vector<Known>> by_text_;
  size_t count_ = 0;
};

// A group of values that are one: what a `place` step gives, and the views of it.
struct Group {
  int32_t place = 0;     // before any is shared
  int32_t made = -1;     // the step that takes the place
  int32_t written = -1;  // the first step that writes
  int32_t last = -1;
  TensorType type;
};

std::vector<Group> groups_of(const PlanFunction& f) {
  std::vector<Group> out(f.places.size());
  for (size_t i = 0; i < out.size(); ++i) out[i].place = static_cast<int32_t>(i);
  for (size_t s = 0; s < f.steps.size(); ++s) {
    const Step& step = f.steps[s];
    for (const auto* ids : {&step.results, &step.operands}) {
      for (ValueId id : *ids) {
        const PlanValue& v = f.value(id);
        if (v.place != Place::open) continue;
        Group& g = out[static_cast<size_t>(v.index)];
        g.last = static_cast<int32_t>(s);
        if (step.kind == StepKind::place) {
          g.made = static_cast<int32_t>(s);
          g.type = cast<TensorTypeNode>(v.type);
        } else if (ids == &step.results && step.kind != StepKind::alias && g.written < 0) {
          g.written = static_cast<int32_t>(s);
        }
      }
    }
  }
  return out;
}

// Whether a kernel reads the place `from` through operands that its only result may overwrite, and the
// result is in `to`. Working memory overwrites nothing: a kernel writes it before it has read all operands.
bool writes_in_place(const PlanFunction& f, const Step& s,
                     const std::vector<ProgramKernel>& kernels, int32_t from, int32_t to) {
  if (s.kind != StepKind::kernel) return false;
  const KernelSignature& kernel = kernels[static_cast<size_t>(s.number)].signature;
  auto is_in = [&](ValueId id, int32_t place) {
    const PlanValue& v = f.value(id);
    return v.place == Place::open && v.index == place;
  };
  if (kernel.results.size() != 1 || !is_in(s.results[0], to)) return false;
  bool reads = false;
  for (size_t i = 0; i < s.operands.size(); ++i) {
    if (!is_in(s.operands[i], from)) continue;
    if (!kernel.may_overwrite({.input = i})) return false;
    reads = true;
  }
  return reads;
}

}  // namespace

bool is_at_most(const TensorTypeNode& a, const TensorTypeNode& b) {
  Product x = product_of(a), y = product_of(b);
  return x.number <= y.number && same_factors(x, y);
}

void share_places(PlanFunction& f, const std::vector<ProgramKernel>& kernels) {
  std::vector<Group> groups = groups_of(f);
  std::vector<size_t> order(groups.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::ranges::stable_sort(order, {}, [&](size_t g) { return groups[g].made; });
  // The constant factor of a shared place, and its number below zero: the smallest place comes first, of equal ones the
  // last.
  using Size = std::pair<int64_t, int64_t>;
  struct Shared {
    OpenPlace place;
    size_t kind;
    Size size;
    int32_t holds = 0;  // the place before any is shared whose values were put there last
  };
  std::vector<Shared> shared;
  std::vector<int32_t> now(groups.size(), -1);
  Kinds kinds;
  std::unordered_map<size_t, std::set<Size>> free;  // by kind
  std::multimap<int32_t, size_t> read;              // others by the last step that reads them
  for (size_t g : order) {
    const Group& group = groups[g];
    const Device device = f.places[static_cast<size_t>(group.place)].device;
    const Product product = product_of(*group.type.get());
    const size_t kind = kinds.number(product, device);
    while (!read.empty() && read.begin()->first < group.made) {
      const Shared& s = shared[read.begin()->second];
      free[s.kind].insert(s.size);
      read.erase(read.begin());
    }
    // The smallest place that is free and large enough, or read for the last time by the kernel that writes the new value.
    std::set<Size>& fitting = free[kind];
    const auto found = fitting.lower_bound({product.number, std::numeric_limits<int64_t>::min()});
    std::optional<Size> best = found == fitting.end() ? std::nullopt : std::optional(*found);
    auto overwritten = read.end();
    if (group.written >= 0) {
      auto [first, end] = read.equal_range(group.written);
      for (; first != end; ++first) {
        const Shared& s = shared[first->second];
        if (s.kind == kind && s.size.first >= product.number && (!best || s.size < *best) &&
            writes_in_place(f, f.steps[static_cast<size_t>(group.written)], kernels, s.holds,
                            group.place)) {
          best = s.size;
          overwritten = first;
        }
      }
    }
    if (overwritten != read.end()) {
      read.erase(overwritten);
    } else if (best) {
      fitting.erase(found);
    } else {
      best = Size{product.number, -static_cast<int64_t>(shared.size())};
      shared.push_back({{group.type, device}, kind, *best});
    }
    const auto at = static_cast<size_t>(-best->second);
    shared[at].holds = group.place;
    read.emplace(group.last, at);
    now[g] = static_cast<int32_t>(at);
  }
  for (PlanValue& v : f.values) {
    if (v.place == Place::open) v.index = now[static_cast<size_t>(v.index)];
  }
  f.places.clear();
  for (Shared& s : shared) f.places.push_back(std::move(s.place));
}

std::string working_memory(const PlanFunction& f) {
  int64_t fixed = aligned(f.arena_bytes);
  // Multiples of whole lines add up; the others are rounded one by one.
  std::map<std::string, int64_t> lines, rounded;
  for (const OpenPlace& p : f.places) {
    if (p.device != Device::cpu()) continue;
    Product bytes = product_of(*p.type.get());
    std::string sizes = text_of(bytes.factors);
    if (bytes.number % kAlignment == 0) {
      lines[sizes] += bytes.number;
    } else {
      ++rounded["align64(" + std::to_string(bytes.number) + sizes + ")"];
    }
  }
  std::vector<std::string> terms;
  if (fixed > 0 || (lines.empty() && rounded.empty())) terms.push_back(std::to_string(fixed));
  for (const auto& [sizes, number] : lines) terms.push_back(std::to_string(number) + sizes);
  for (const auto& [term, count] : rounded) {
    terms.push_back((count > 1 ? std::to_string(count) + "*" : "") + term);
  }
  std::string out;
  for (const std::string& t : terms) out += (out.empty() ? "" : " + ") + t;
  return out;
}

int64_t working_memory(const PlanFunction& f, const TypeParams& sizes) {
  int64_t total = aligned(f.arena_bytes);
  for (const OpenPlace& p : f.places) {
    if (p.device != Device::cpu()) continue;
    total += aligned(bytes_of(with_type_params(p.type, sizes)));
  }
  return total;
}

}  // namespace relay::plan
