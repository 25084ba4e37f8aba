#include "runtime/donations.h"

#include <algorithm>
#include <cstring>
#include <unordered_set>
#include <vector>

#include "base/codes/donation.h"
#include "runtime/value_leaves.h"

namespace relay::runtime {
namespace {

// All tensors that a value holds, however deep.
void tensors_in(const Value& value, std::vector<Tensor>& out) {
  std::vector<Value> open{value};
  std::unordered_set<const Object*> seen;
  while (!open.empty()) {
    Value v = std::move(open.back());
    open.pop_back();
    if (!v) continue;
    if (v.is_tensor()) {
      out.push_back(v.tensor());
    } else if (seen.insert(v.object()).second) {
      for (size_t n = 0; n < v.num_fields(); ++n) open.push_back(v.field(n));
    }
  }
}

Tensor donated(const Donation& d, std::span<const Value> inputs) {
  return inputs[static_cast<size_t>(d.param)].tensor();
}

// Memory ranges, each with the number of its owner: finds in O(log n) whether a range of another
// owner overlaps a given one.
class Memory {
 public:
  void add(const Tensor& t, size_t owner) {
    if (t.byte_size() > 0) pieces_.push_back({begin_of(t), begin_of(t) + t.byte_size(), owner});
  }

  // All are added.
  void sort() {
    std::ranges::sort(pieces_, {}, &Piece::begin);
    Ends ends;
    for (const Piece& p : pieces_) {
      if (p.owner == ends.owner) {
        ends.last = std::max(ends.last, p.end);
      } else if (p.end > ends.last) {
        ends = {p.end, p.owner, ends.last};
      } else {
        ends.of_others = std::max(ends.of_others, p.end);
      }
      ends_.push_back(ends);
    }
  }

  bool is_of_other(const Tensor& t, size_t owner) const {
    if (t.byte_size() == 0) return false;
    const uintptr_t begin = begin_of(t), end = begin + t.byte_size();
    // Of those that begin before its end, the one that ends last.
    auto behind = std::ranges::lower_bound(pieces_, end, {}, &Piece::begin);
    if (behind == pieces_.begin()) return false;
    const Ends& ends = ends_[static_cast<size_t>(behind - pieces_.begin()) - 1];
    return (ends.owner == owner ? ends.of_others : ends.last) > begin;
  }

 private:
  struct Piece {
    uintptr_t begin, end;
    size_t owner;
  };
  // For a range and those before it: the last end, its owner, and the last end of all other owners.
  struct Ends {
    uintptr_t last = 0;
    size_t owner = static_cast<size_t>(-1);
    uintptr_t of_others = 0;
  };

  static uintptr_t begin_of(const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); }

  std::vector<Piece> pieces_;
  std::vector<Ends> ends_;
};

}  // namespace

bool overlap(const Tensor& a, const Tensor& b) {
  auto a_begin = reinterpret_cast<uintptr_t>(a.data());
  auto b_begin = reinterpret_cast<uintptr_t>(b.data());
  return a_begin < b_begin + b.byte_size() && b_begin < a_begin + a.byte_size();
}

const Donation* donation_of_param(const Function& f, size_t param) {
  auto d = std::ranges::find(f.donations, static_cast<int32_t>(param), &Donation::param);
  return d == f.donations.end() ? nullptr : &*d;
}

const Donation* donation_of_result(const Function& f, size_t output) {
  auto d = std::ranges::find(f.donations, static_cast<int32_t>(output), &Donation::output);
  return d == f.donations.end() ? nullptr : &*d;
}

void check_donated(const Function& f, std::span<const Value> inputs) {
  if (f.donations.empty()) return;
  std::vector<std::vector<Tensor>> tensors(inputs.size());
  Memory memory;
  for (size_t i = 0; i < inputs.size(); ++i) {
    tensors_in(inputs[i], tensors[i]);
    for (const Tensor& t : tensors[i]) memory.add(t, i);
  }
  memory.sort();
  std::vector<Diagnostic> errors;
  auto refuse = [&](const Donation& d, const std::string& expected, const std::string& found,
                    const std::string& help) {
    const Slot& slot = f.params[static_cast<size_t>(d.param)];
    const Slot& result = f.results[static_cast<size_t>(d.output)];
    errors.push_back(
        Diagnostic(codes::donation_memory, {},
                   "input '" + escape_for_terminal(slot.name, 200) + "' is donated to output '" +
                       escape_for_terminal(result.name, 200) + "', which cannot be written into it")
            .expected(expected)
            .found(found)
            .help(help));
  };
  for (const Donation& d : f.donations) {
    Tensor mine = donated(d, inputs);
    const Device expected = f.params[static_cast<size_t>(d.param)].tensor.device;
    if (mine.device() != expected && !(mine.device().is_host() && expected.is_host())) {
      refuse(d, "memory on " + expected.to_string(), "memory on " + mine.device().to_string(),
             "copy the tensor there");
      continue;
    }
    if (mine.read_only()) {
      refuse(d, "memory that may be written to", "read-only memory",
             "give a tensor that is writable: in Python an array of its own, in C "
             "relay_session_donate_input");
      continue;
    }
    if (!memory.is_of_other(mine, static_cast<size_t>(d.param))) continue;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (i == static_cast<size_t>(d.param)) continue;
      bool shared = std::ranges::any_of(tensors[i],
                                        [&](const Tensor& other) { return overlap(mine, other); });
      if (!shared) continue;
      refuse(d, "memory that no other input uses",
             "memory of input '" + escape_for_terminal(f.params[i].name, 200) + "' too",
             "give one of them a copy");
      break;
    }
  }
  if (!errors.empty()) throw UserError(std::move(errors));
}

Value in_donated_memory(const Function& f, std::span<const Value> inputs, Value result) {
  if (f.donations.empty()) return result;
  std::vector<Tensor> leaves;
  bool tensors = flatten_tensors(result, leaves);
  RELAY_CHECK(tensors && leaves.size() == f.results.size(),
              "a result of another form than its type");
  bool changed = false;
  Memory memory;  // of each donated input, owned by its output
  std::vector<const void*> given(leaves.size());
  for (const Donation& d : f.donations) {
    const Tensor mine = donated(d, inputs);
    memory.add(mine, static_cast<size_t>(d.output));
    given[static_cast<size_t>(d.output)] = mine.data();
  }
  memory.sort();
  for (size_t i = 0; i < leaves.size(); ++i) {
    const bool in_place = given[i] != nullptr && leaves[i].data() == given[i];
    if (!memory.is_of_other(leaves[i], in_place ? i : leaves.size())) continue;
    leaves[i] = leaves[i].copy();
    changed = true;
  }
  for (const Donation& d : f.donations) {
    Tensor mine = donated(d, inputs);
    Tensor& leaf = leaves[static_cast<size_t>(d.output)];
    RELAY_CHECK(leaf.byte_size() == mine.byte_size(), "a donation to a result of another size");
    if (leaf.data() != mine.data() && mine.byte_size() > 0) {
      std::memcpy(mine.data(), leaf.data(), mine.byte_size());
    }
    changed = changed || !leaf.same_as(mine);
    leaf = std::move(mine);
  }
  return changed ? with_leaves(result, leaves) : result;
}

}  // namespace relay::runtime
