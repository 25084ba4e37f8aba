#include "plan/places.h"

#include <algorithm>
#include <map>
#include <numeric>

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
  struct Shared {
    OpenPlace place;
    size_t holds;  // the group that was put there last
  };
  std::vector<Shared> shared;
  std::vector<int32_t> now(groups.size(), -1);
  for (size_t g : order) {
    const Group& group = groups[g];
    // The smallest place that is free and large enough; equal sizes are found first.
    auto fits = [&](const Shared& s) {
      const Group& before = groups[s.holds];
      if (f.places[static_cast<size_t>(group.place)].device != s.place.device) return false;
      if (!is_at_most(*group.type.get(), *s.place.type.get())) return false;
      if (before.last < group.made) return true;
      // Read for the last time by the kernel that writes the new value.
      bool kernel = group.written >= 0 && before.last == group.written;
      return kernel && writes_in_place(f, f.steps[static_cast<size_t>(group.written)], kernels,
                                       before.place, group.place);
    };
    size_t best = shared.size();
    for (size_t i = 0; i < shared.size(); ++i) {
      if (!fits(shared[i])) continue;
      if (best == shared.size() ||
          is_at_most(*shared[i].place.type.get(), *shared[best].place.type.get())) {
        best = i;
      }
    }
    if (best == shared.size()) {
      shared.push_back({{group.type, f.places[static_cast<size_t>(group.place)].device}, g});
    } else {
      shared[best].holds = g;
    }
    now[g] = static_cast<int32_t>(best);
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
