// SimplifyExpr's rules for tensors that are put together of parts.
#include <algorithm>
#include <cmath>

#include "ir/op.h"
#include "ir/views.h"
#include "passes/simplify/rules/rule.h"

namespace relay::simplify {
namespace {

// The value that all elements have of what is cut out of a fill, in whatever shape.
std::optional<double> fill_of(Expr e) {
  for (auto* c = as<CallNode>(e); c != nullptr; c = as<CallNode>(e)) {
    auto* op = as<OpNode>(c->op);
    const bool part = op != nullptr && c->args.size() == 1 &&
                      (only_reshapes(*op->row) || op->name == "strided_slice");
    if (!part) break;
    e = c->args[0];
  }
  return uniform(e);
}

// A field of a concatenation, where it begins and ends along the axis, and whether all of it is zero.
struct Part {
  Expr value;
  int64_t begin = 0, end = 0;
  bool is_zero = false;
};

// Nothing where a size along the axis is open.
std::vector<Part> parts_of(const CallNode& joined, size_t axis) {
  auto* all = as<TupleNode>(joined.args[0]);
  std::vector<Part> out;
  int64_t end = 0;
  for (size_t i = 0; all != nullptr && i < all->fields.size(); ++i) {
    auto* type = tensor_of(all->fields[i]);
    const auto size =
        type == nullptr || type->shape_var ? std::nullopt : as_const(type->shape[axis]);
    if (!size) return {};
    out.push_back({all->fields[i], end, end + *size, fill_of(all->fields[i]) == 0});
    end += *size;
  }
  return out;
}

// Zeros along [begin, end) of the axis, where `zeros` has some for each place.
void add_zeros(const std::vector<Part>& zeros, int64_t begin, int64_t end, size_t axis,
               const CallNode& root, std::vector<Expr>& out) {
  while (begin < end) {
    auto whole = std::ranges::find_if(
        zeros, [&](const Part& p) { return p.begin == begin && p.begin < p.end && p.end <= end; });
    auto some = std::ranges::find_if(
        zeros, [&](const Part& p) { return p.begin <= begin && begin < p.end; });
    if (whole != zeros.end()) {
      out.push_back(whole->value);
      begin = whole->end;
      continue;
    }
    const int64_t to = std::min(some->end, end);
    out.push_back(make_call("strided_slice", {some->value},
                            {{"begin", to_value(std::vector<int64_t>{begin - some->begin})},
                             {"end", to_value(std::vector<int64_t>{to - some->begin})},
                             {"axes", to_value(std::vector<int64_t>{static_cast<int64_t>(axis)})}},
                            root));
    begin = to;
  }
}

// A part that zeros are added to: 0 makes 0 of -0, -0 changes nothing.
Expr with_zeros(const Expr& part, bool negative, const CallNode& root) {
  const DType dtype = tensor_of(part)->dtype;
  if (!dtype.is_floating() || negative) return part;
  if (is_call_to(part, "add")) {
    for (const Expr& e : as<CallNode>(part)->args) {
      const auto value = uniform(e);
      if (value == 0 && !std::signbit(*value)) return part;
    }
  }
  return make_call("add", {part, constant(0, dtype, root.span)}, {}, root);
}

// The parts of the sum of two concatenations, where one of the two is zero at each place along the axis; nothing elsewhere, or
// where zeros have several signs.
std::vector<Expr> sum_of_parts(const std::vector<Part>& a, const std::vector<Part>& b, size_t axis,
                               const CallNode& root) {
  std::vector<Part> numbers, zeros;
  for (const std::vector<Part>* parts : {&a, &b}) {
    for (const Part& p : *parts) (p.is_zero ? zeros : numbers).push_back(p);
  }
  auto is_negative = [](const Part& p) { return std::signbit(*fill_of(p.value)); };
  const bool negative = !zeros.empty() && is_negative(zeros[0]);
  if (std::ranges::any_of(zeros, [&](const Part& p) { return is_negative(p) != negative; }))
    return {};
  std::ranges::sort(numbers, {}, &Part::begin);
  std::vector<Expr> out;
  int64_t at = 0;
  for (const Part& p : numbers) {
    if (p.begin == p.end) continue;
    if (p.begin < at) return {};
    add_zeros(zeros, at, p.begin, axis, root, out);
    out.push_back(with_zeros(p.value, negative, root));
    at = p.end;
  }
  add_zeros(zeros, at, a.back().end, axis, root, out);
  return out;
}

// The gradient of what is cut into parts: each part's among zeros, added up.
Rule add_parts() {
  DFPattern a = is_op("concatenate")(wildcard()), b = is_op("concatenate")(wildcard());
  return {"add_parts", is_op("add")(a, b), [=](const DFMatch& m, const CallNode& root) -> Expr {
            auto &first = *as<CallNode>(m[a]), &second = *as<CallNode>(m[b]);
            if (!same_shape(m[a], m[b]) || !same_shape(m[a], Expr(&root))) return nullptr;
            const int64_t rank = tensor_of(m[a])->rank();
            auto axis_of = [&](const CallNode& c) {
              const int64_t axis = int_attr(c, "axis");
              return static_cast<size_t>(axis < 0 ? axis + rank : axis);
            };
            const size_t axis = axis_of(first);
            if (axis != axis_of(second)) return nullptr;
            const std::vector<Part> left = parts_of(first, axis), right = parts_of(second, axis);
            if (left.empty() || right.empty()) return nullptr;
            std::vector<Expr> sum = sum_of_parts(left, right, axis, root);
            if (sum.empty()) return nullptr;
            return make_call("concatenate", {tuple(std::move(sum), root.span)},
                             {{"axis", AttrValue(static_cast<int64_t>(axis))}}, root);
          }};
}

// What is cut out of a fill is a fill.
Rule slice_of_fill() {
  DFPattern value = wildcard(), fill = is_op("full")(value);
  return {"slice_of_fill", is_op("strided_slice")(fill),
          [=](const DFMatch& m, const CallNode& root) -> Expr {
            auto shape = static_shape(Expr(&root));
            if (!shape) return nullptr;
            return with_attrs(*as<CallNode>(m[fill]), {m[value]}, {{"shape", to_value(*shape)}});
          }};
}

}  // namespace

std::vector<Rule> part_rules() { return {slice_of_fill(), add_parts()}; }

}  // namespace relay::simplify
