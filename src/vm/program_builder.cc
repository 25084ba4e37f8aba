#include "vm/program_builder.h"

#include <algorithm>

#include "base/budget.h"
#include "vm/function_compiler.h"

namespace relay::vm {

int32_t ProgramBuilder::constant(const Tensor& t) {
  auto [it, fresh] =
      constants_.emplace(t.data(), static_cast<int32_t>(out.program.constants.size()));
  if (!fresh) {
    const Tensor& known = out.program.constants[static_cast<size_t>(it->second)];
    bool same = known.dtype() == t.dtype() && std::ranges::equal(known.shape(), t.shape());
    if (same) return it->second;
    out.program.constants.push_back(t);
    return static_cast<int32_t>(out.program.constants.size()) - 1;
  }
  out.program.constants.push_back(t);
  return it->second;
}

int32_t ProgramBuilder::string(const std::string& text) {
  auto [it, fresh] = strings_.emplace(text, static_cast<int32_t>(out.program.strings.size()));
  if (fresh) out.program.strings.push_back(text);
  return it->second;
}

int32_t ProgramBuilder::kernel(int32_t lowered, const KernelSite& site,
                               const std::vector<std::vector<int64_t>>& within) {
  auto [it, fresh] =
      kernels_.emplace(std::pair(lowered, within), static_cast<int32_t>(out.kernels.size()));
  if (!fresh) {
    out.kernels[static_cast<size_t>(it->second)].sites.push_back(site);
    return it->second;
  }
  const LoweredKernel& from = lowered_.kernel(lowered);
  std::string name = from.composed.func->name;
  int count = name_counts_[name]++;
  if (count > 0) name += "_" + std::to_string(count);
  ComposedKernel composed = renamed(from.composed, name);
  if (!within.empty()) composed = in_larger_tensors(std::move(composed), within);
  ProgramKernel k{name, from.primitive, std::move(composed), {site}};
  runtime::KernelInfo info;
  info.name = name;
  info.origin = site.origin;
  const tir::PrimFuncNode& f = *k.composed.func.get();
  for (const tir::Buffer& b : f.params) {
    info.buffer_bytes.push_back(tir::bytes_in_memory(*b.get()).value_or(-1));
  }
  info.has_gaps = std::any_of(f.params.begin() + f.num_inputs, f.params.end(),
                              [](const tir::Buffer& b) { return !b->within.empty(); });
  info.num_outputs = static_cast<uint32_t>(f.params.size() - static_cast<size_t>(f.num_inputs));
  info.num_dims = static_cast<uint32_t>(f.dims.size());
  info.flops = static_cast<int64_t>(k.composed.flops);
  info.bytes = static_cast<int64_t>(k.composed.bytes);
  out.program.kernels.push_back(std::move(info));
  out.kernels.push_back(std::move(k));
  return it->second;
}

int32_t ProgramBuilder::local(const Function& f, std::vector<Var> captured, Var self) {
  int32_t index = next_function_++;
  queue_.push_back({f, "fn" + std::to_string(index), std::move(captured), std::move(self), index});
  return index;
}

int32_t ProgramBuilder::constructor_function(const ConstructorNode& c) {
  auto [it, fresh] = constructor_functions_.emplace(&c, next_function_);
  if (!fresh) return it->second;
  runtime::FunctionBuilder b(c.name_hint);
  std::vector<int32_t> fields;
  for (const Type& t : c.inputs) {
    fields.push_back(b.param("p" + std::to_string(fields.size()), to_string(t)));
  }
  b.result(c.name_hint, c.name_hint);
  b.internal();
  int32_t r = b.reg();
  b.alloc_adt(r, static_cast<int32_t>(c.tag), fields);
  b.ret(r);
  place(next_function_, std::move(b).finish());
  return next_function_++;
}

void ProgramBuilder::place(int32_t index, runtime::Function f) {
  auto at = static_cast<size_t>(index);
  if (out.program.functions.size() <= at) out.program.functions.resize(at + 1);
  out.program.functions[at] = std::move(f);
}

Bytecode ProgramBuilder::run() {
  for (size_t i = 0; i < mod_->functions.size(); ++i) {
    const std::string& name = mod_->global_vars[i]->name_hint;
    globals_[name] = next_function_;
    queue_.push_back({mod_->functions[i], name, {}, nullptr, next_function_++});
  }
  size_t globals = queue_.size();
  while (!queue_.empty()) {
    check_budget();
    Job job = std::move(queue_.front());
    queue_.pop_front();
    size_t index = static_cast<size_t>(job.index);
    FunctionCompiler compiler(*this, job.f, job.name, std::move(job.captured), job.self, job.index,
                              index >= globals);
    place(job.index, compiler.run());
    if (compiler.report().arena_bytes > 0) out.arenas.push_back(compiler.report());
  }
  return std::move(out);
}

}  // namespace relay::vm
