#include "tir/interpret.h"

#include "tir/interpret_translator.h"

namespace relay::tir {

using namespace interpret_detail;  // NOLINT: the other half of this file

struct KernelInterpreter::Impl {
  PrimFunc func;
  InterpretOptions options;
  Machine machine;
  std::vector<Instr> code;
};

KernelInterpreter::KernelInterpreter(const PrimFunc& f, const std::vector<int64_t>& dims,
                                     InterpretOptions options)
    : impl_(std::make_unique<Impl>()) {
  impl_->func = f;
  impl_->options = std::move(options);
  Translator(*f, impl_->options).translate(impl_->machine, impl_->code, dims);
}
KernelInterpreter::~KernelInterpreter() = default;
KernelInterpreter::KernelInterpreter(KernelInterpreter&&) noexcept = default;
KernelInterpreter& KernelInterpreter::operator=(KernelInterpreter&&) noexcept = default;

int64_t KernelInterpreter::run(const std::vector<runtime::Tensor>& buffers) {
  const PrimFuncNode& f = *impl_->func;
  Machine& m = impl_->machine;
  RELAY_CHECK(buffers.size() == f.params.size(), "tensors for the parameters of " + f.name);
  struct LetGo {
    Machine& m;
    ~LetGo() {
      for (Memory& memory : m.memories) {
        memory.tensor = {};
        memory.own = {};
        memory.written = {};
        memory.touches = {};
      }
    }
  } let_go{m};
  for (size_t i = 0; i < buffers.size(); ++i) {
    RELAY_CHECK(buffers[i] && buffers[i].dtype().storage() == f.params[i]->dtype,
                "parameter " + f.params[i]->name + " is given another dtype");
    m.memories[i].tensor = buffers[i];
  }
  m.result = 0;
  m.error = RELAY_KERNEL_OK;
  m.made_strings.clear();
  m.context.runtime = &m.made_strings;
  m.context.error = &m.error;
  m.context.keep = [](const relay_kernel_context* ctx, int64_t bytes) {
    return static_cast<runtime::StringMemory*>(ctx->runtime)->allocate(bytes);
  };
  m.steps_left = impl_->options.max_steps > 0 ? impl_->options.max_steps : INT64_MAX;
  m.undefined.clear();
  m.race.clear();
  m.items = {};
  m.lanes = 0;
  m.ended_lots = 0;
  m.arrivals.clear();
  for (const Instr* pc = impl_->code.data(); pc != nullptr;) pc = pc->run(pc, m);
  if (impl_->options.find_undefined && m.result == RELAY_KERNEL_OK) {
    for (size_t i = static_cast<size_t>(f.num_inputs); i < buffers.size(); ++i) {
      note_unwritten(m, m.memories[i]);
    }
  }
  return m.result;
}

const std::string& KernelInterpreter::undefined() const { return impl_->machine.undefined; }
const std::string& KernelInterpreter::race() const { return impl_->machine.race; }

int64_t interpret(const PrimFunc& f, const std::vector<runtime::Tensor>& buffers,
                  const std::vector<int64_t>& dims, const InterpretOptions& options) {
  return KernelInterpreter(f, dims, options).run(buffers);
}

}  // namespace relay::tir
