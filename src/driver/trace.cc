#include "driver/trace.h"

#include <algorithm>
#include <unordered_set>

#include "base/codes/driver.h"

namespace relay {
namespace {

using runtime::Value;

class Recorder : public CallWatcher {
 public:
  explicit Recorder(Trace& trace) : trace_(trace) {}

  void after(const WatchedCall& c) override {
    TraceStep& step = trace_.steps.emplace_back();
    step.operation = c.operation;
    step.node = c.node;
    step.origin = c.origin;
    if (c.primitive) {
      // The memory is the run's.
      for (const Tensor& t : c.outputs) step.outputs.push_back(t ? t.copy() : t);
      trace_.has_producers = false;
      return;
    }
    step.inputs.assign(c.inputs.begin(), c.inputs.end());
    step.outputs.assign(c.outputs.begin(), c.outputs.end());
    for (const Tensor& t : step.inputs) {
      if (auto made = producers_.find(t.rep()); made != producers_.end())
        step.producers.push_back(made->second);
    }
    // The trace holds the tensors, so that no other one has their address.
    for (const Tensor& t : step.outputs) producers_[t.rep()] = trace_.steps.size() - 1;
  }

  void find_producers_of_results() {
    for (const Tensor& t : trace_.results) {
      auto made = producers_.find(t.rep());
      trace_.result_producers.push_back(made == producers_.end() ? trace_.steps.size()
                                                                 : made->second);
    }
  }

 private:
  Trace& trace_;
  std::unordered_map<const void*, size_t> producers_;
};

// A node without what is behind its name: "conv1 (Conv)" -> "conv1".
std::string name_of(const std::string& node) { return node.substr(0, node.find(" (")); }

std::string type_of(const Tensor& t) { return runtime::type_string(t.dtype(), t.shape()); }

}  // namespace

Trace trace(WatchedProgram& program, const std::string& function, const std::vector<Value>& args) {
  Trace out;
  out.has_producers = true;
  for (const Value& v : args) runtime::flatten_tensors(v, out.arguments);
  Recorder recorder(out);
  const Value result = program.run(function, args, recorder);
  if (!runtime::flatten_tensors(result, out.results)) {
    throw UserError(Diagnostic(codes::driver_option, {},
                               "the result of @" + function + " is not made of tensors only")
                        .help("give a function of tensors with --function"));
  }
  recorder.find_producers_of_results();
  return out;
}

ValueIndex::ValueIndex(const Trace& trace, const Tolerances& tolerances) : tolerances_(tolerances) {
  for (const Tensor& t : trace.arguments) add(t);
  for (const TraceStep& s : trace.steps) {
    for (const Tensor& t : s.inputs) add(t);
    for (const Tensor& t : s.outputs) add(t);
  }
  for (const Tensor& t : trace.results) add(t);
}

void ValueIndex::add(const Tensor& value) {
  if (!value) return;
  std::vector<Tensor>& all = by_type_[type_of(value)];
  if (std::ranges::none_of(all, [&](const Tensor& t) { return t.same_as(value); }))
    all.push_back(value);
}

bool ValueIndex::contains(const Tensor& value) const {
  auto all = by_type_.find(type_of(value));
  if (all == by_type_.end()) return false;
  return std::ranges::any_of(all->second, [&](const Tensor& t) {
    return t.same_as(value) || !difference(t, value, tolerances_, /*first_only=*/true).differs();
  });
}

bool same_node(const std::string& a, const std::string& b) {
  return !a.empty() && name_of(a) == name_of(b);
}

std::vector<size_t> different_results(const std::vector<Tensor>& got,
                                      const std::vector<Tensor>& want,
                                      const Tolerances& tolerances) {
  std::vector<size_t> out;
  for (size_t i = 0; i < std::max(got.size(), want.size()); ++i) {
    if (i >= got.size() || i >= want.size() || difference(got[i], want[i], tolerances).differs())
      out.push_back(i);
  }
  return out;
}

std::optional<size_t> first_missing(const Trace& want, const Trace& got,
                                    const std::vector<size_t>& wrong,
                                    const Tolerances& tolerances) {
  std::vector<bool> needed(want.steps.size(), !want.has_producers);
  for (size_t r : wrong) {
    if (r < want.result_producers.size() && want.result_producers[r] < needed.size())
      needed[want.result_producers[r]] = true;
  }
  for (size_t i = want.steps.size(); i-- > 0;) {
    if (!needed[i]) continue;
    for (size_t p : want.steps[i].producers) needed[p] = true;
  }
  const ValueIndex values(got, tolerances);
  std::unordered_map<std::string, std::vector<Tensor>> of_node;
  for (const TraceStep& s : got.steps) {
    if (s.node.empty()) continue;
    std::vector<Tensor>& list = of_node[name_of(s.node)];
    list.insert(list.end(), s.outputs.begin(), s.outputs.end());
  }
  // Values of the same node decide; where it has none of the type, any value does.
  auto has = [&](const TraceStep& step, const Tensor& t) {
    bool comparable = false;
    if (auto same = of_node.find(name_of(step.node)); same != of_node.end()) {
      for (const Tensor& other : same->second) {
        const Difference d = difference(other, t, tolerances, /*first_only=*/true);
        if (!d.differs()) return true;
        comparable |= d.same_type;
      }
    }
    return !comparable && values.contains(t);
  };
  std::vector<bool> missing(want.steps.size(), false);
  for (size_t i = 0; i < want.steps.size(); ++i) {
    if (!needed[i]) continue;
    const TraceStep& step = want.steps[i];
    missing[i] =
        std::ranges::any_of(step.outputs, [&](const Tensor& t) { return t && !has(step, t); });
    if (missing[i] && std::ranges::none_of(step.producers, [&](size_t p) { return missing[p]; }))
      return i;
  }
  return std::nullopt;
}

}  // namespace relay
