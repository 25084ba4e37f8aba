#include "extend/host_kernel.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "base/fork.h"
#include "lower/kernel_body.h"
#include "lower/kernel_sources.h"

namespace relay::extend {
namespace {

class HostFunctions : public KernelSource {
 public:
  std::string_view name() const override { return "host function"; }

  void add(const Op& op, const std::string& function) {
    std::lock_guard lock(mutex_);
    rows_.insert_or_assign(op->row.get(), Row{op->row, function});
  }

  std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
    auto* call = as<CallNode>(f.body);
    auto* op = call == nullptr ? nullptr : as<OpNode>(call->op);
    if (op == nullptr) return std::nullopt;
    std::string function;
    {
      std::lock_guard lock(mutex_);
      auto row = rows_.find(op->row.get());
      if (row == rows_.end()) return std::nullopt;
      function = row->second.function;
    }
    if (!std::ranges::equal(leaves(*call), f.params,
                            [](const Expr& a, const Var& p) { return a.get() == p.get(); })) {
      return std::nullopt;
    }
    auto sizes = dimensions_of_operands(f);
    if (!sizes) return std::nullopt;
    OfferedKernel out{HostFunction{function}};
    out.sizes = std::move(*sizes);
    out.how = function;
    return out;
  }

 private:
  struct Row {
    std::shared_ptr<const OpInfo> op;  // the key, which stays so
    std::string function;
  };

  // The arguments, and the fields of those that are tuples.
  static std::vector<Expr> leaves(const CallNode& call) {
    std::vector<Expr> out;
    for (const Expr& a : call.args) {
      if (auto* fields = as<TupleNode>(a)) {
        out.insert(out.end(), fields->fields.begin(), fields->fields.end());
      } else {
        out.push_back(a);
      }
    }
    return out;
  }

  mutable ForkSafe<std::mutex> mutex_;
  std::unordered_map<const OpInfo*, Row> rows_;
};

HostFunctions& functions() {
  static const std::shared_ptr<HostFunctions> source = [] {
    auto made = std::make_shared<HostFunctions>();
    register_kernel_source(made);
    return made;
  }();
  return *source;
}

}  // namespace

void compute_by_host_function(const Op& op, const std::string& function) {
  functions().add(op, function);
}

}  // namespace relay::extend
