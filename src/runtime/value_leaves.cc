#include "runtime/value_leaves.h"

#include <utility>

#include "base/budget.h"

namespace relay::runtime {

bool flatten_tensors(const Value& value, std::vector<Tensor>& out) {
  std::vector<Value> stack = {value};
  while (!stack.empty()) {
    check_budget();
    Value top = std::move(stack.back());
    stack.pop_back();
    if (top.is_tensor()) {
      out.push_back(top.tensor());
    } else if (top.is_tuple()) {
      for (size_t n = top.num_fields(); n-- > 0;) stack.push_back(top.field(n));
    } else {
      return false;
    }
  }
  return true;
}

Value with_leaves(const Value& value, const std::vector<Tensor>& leaves) {
  struct Open {
    Value tuple;
    std::vector<Value> fields;
  };
  std::vector<Open> open;
  size_t next = 0;
  Value now = value;
  for (;;) {
    while (now.is_tuple() && now.num_fields() > 0) {
      open.push_back({now, {}});
      now = now.field(0);
    }
    Value done = now.is_tensor() ? Value(leaves[next++]) : now;
    // Closes the tuples that are complete.
    while (!open.empty()) {
      open.back().fields.push_back(std::move(done));
      size_t count = open.back().fields.size();
      if (count < open.back().tuple.num_fields()) {
        now = open.back().tuple.field(count);
        break;
      }
      done = Value::tuple(open.back().fields);
      open.pop_back();
    }
    if (open.empty()) return done;
  }
}

}  // namespace relay::runtime
