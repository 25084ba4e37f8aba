#include "fuzz/interpreted_kernels.h"

#include <array>
#include <map>
#include <utility>

#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/interpret.h"

namespace relay::fuzz {

struct InterpretedKernels::State {
  std::vector<tir::PrimFunc> lowered;
  uint8_t poison = 0;
  std::string undefined;
  // By kernel and sizes.
  std::map<std::pair<size_t, std::vector<int64_t>>, tir::KernelInterpreter> interpreters;

  void run(size_t index, void* const* buffers, const int64_t* dims,
           const relay_kernel_context* context);
};

namespace {

thread_local InterpretedKernels::State* current = nullptr;

template <size_t kIndex>
void entry(void* const* buffers, const int64_t* dims, const relay_kernel_context* context) {
  current->run(kIndex, buffers, dims, context);
}

template <size_t... kIndex>
constexpr std::array<relay_kernel, sizeof...(kIndex)> table(std::index_sequence<kIndex...>) {
  return {&entry<kIndex>...};
}
constexpr auto kEntries = table(std::make_index_sequence<InterpretedKernels::kMost>());

bool overlap(const Tensor& a, const Tensor& b) {
  auto begin = [](const Tensor& t) { return reinterpret_cast<uintptr_t>(t.data()); };
  return begin(a) < begin(b) + b.byte_size() && begin(b) < begin(a) + a.byte_size();
}

}  // namespace

void InterpretedKernels::State::run(size_t index, void* const* buffers, const int64_t* dims,
                                    const relay_kernel_context* context) {
  const tir::PrimFunc& f = lowered[index];
  std::vector<int64_t> sizes(dims, dims + f->dims.size());
  std::unordered_map<const Node*, NodeRef> values;
  for (size_t i = 0; i < sizes.size(); ++i) values[f->dims[i].get()] = tir::index(sizes[i]);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < f->params.size(); ++i) {
    const tir::Buffer& p = f->params[i];
    std::vector<int64_t> shape;
    for (const tir::PrimExpr& e : p->memory_shape()) {
      tir::PrimExpr size = tir::PrimExpr::unchecked(substitute(e, values));
      auto known = tir::as_int(tir::Analyzer().simplify(size));
      RELAY_CHECK(known.has_value(), "the size of " + p->name + " in " + f->name);
      shape.push_back(*known);
    }
    tensors.push_back(Tensor::from_external(buffers[i], p->dtype, shape, nullptr));
  }
  tir::InterpretOptions options;
  options.poison = poison;
  options.find_undefined = true;
  auto found = interpreters.find({index, sizes});
  if (found == interpreters.end()) {
    found = interpreters.emplace(std::pair(index, sizes), tir::KernelInterpreter(f, sizes, options))
                .first;
  }
  const int64_t error = found->second.run(tensors);
  if (error != RELAY_KERNEL_OK) *context->error = static_cast<int32_t>(error);
  const std::string& problem = found->second.undefined();
  if (problem.empty() || !undefined.empty()) return;
  const auto inputs = static_cast<size_t>(f->num_inputs);
  for (size_t out = inputs; out < tensors.size(); ++out) {
    for (size_t in = 0; in < inputs; ++in) {
      if (overlap(tensors[out], tensors[in])) return;
    }
  }
  undefined = "kernel " + f->name + " " + problem;
}

InterpretedKernels::InterpretedKernels(std::vector<tir::PrimFunc> lowered, uint8_t poison)
    : state_(std::make_unique<State>()) {
  RELAY_CHECK(lowered.size() <= kMost, "a program of too many kernels");
  RELAY_CHECK(current == nullptr, "another program's kernels are interpreted");
  state_->lowered = std::move(lowered);
  state_->poison = poison;
  current = state_.get();
}

InterpretedKernels::~InterpretedKernels() { current = nullptr; }

std::vector<relay_kernel> InterpretedKernels::entries() const {
  return {kEntries.begin(), kEntries.begin() + static_cast<int64_t>(state_->lowered.size())};
}

const std::string& InterpretedKernels::undefined() const { return state_->undefined; }

}  // namespace relay::fuzz
