#include "hostcode/code.h"
#include "runtime/core/scalar_ops.h"

namespace relay::hostcode {
namespace {

std::string name_of(const Function& f, LocalId id) {
  const Local& local = f.local(id);
  return (!local.is_word ? "s" : local.borrowed ? "b" : "w") + std::to_string(id);
}

std::string list_of(const Function& f, const std::vector<LocalId>& ids, size_t from) {
  std::string out;
  for (size_t i = from; i < ids.size(); ++i) {
    out += (i == from ? "" : ", ") + name_of(f, ids[i]);
  }
  return out;
}

std::string operation_of(const Inst& inst) {
  if (inst.op == Op::int_op) return text_of(static_cast<runtime::IntOp>(inst.sub));
  if (inst.op == Op::float_op) return text_of(static_cast<runtime::FloatOp>(inst.sub));
  return text_of(static_cast<runtime::ScalarConversion>(inst.sub));
}

std::string targets_of(const Inst& inst) {
  std::string out;
  for (BlockId b : inst.targets) out += (out.empty() ? "b" : " b") + std::to_string(b);
  return out;
}

// What a name in braces stands for.
std::string part_of(const Function& f, const Inst& inst, std::string_view name) {
  if (name == "0") return name_of(f, inst.operands[0]);
  if (name == "1") return name_of(f, inst.operands[1]);
  if (name == "rest") return list_of(f, inst.operands, 1);
  if (name == "list") return list_of(f, inst.operands, 0);
  if (name == "n") return std::to_string(inst.number);
  if (name == "op") return operation_of(inst);
  if (name == "dtype") return inst.dtype.to_string();
  if (name == "moves") return inst.moves ? " and give it up" : "";
  if (name == "targets") return targets_of(inst);
  switch (inst.kind) {
    case runtime::ObjectKind::tuple:
      return "tuple";
    case runtime::ObjectKind::closure:
      return "closure";
    default:
      return "data";
  }
}

std::string text_of_inst(const Function& f, const Inst& inst) {
  std::string out;
  if (inst.result >= 0) out += name_of(f, inst.result) + " = ";
  for (std::string_view text = op_row(inst.op).text; !text.empty();) {
    const size_t open = text.find('{');
    out += text.substr(0, open);
    if (open == text.npos) break;
    const size_t close = text.find('}', open);
    out += part_of(f, inst, text.substr(open + 1, close - open - 1));
    text.remove_prefix(close + 1);
  }
  if (!inst.cleanup.empty()) out += "  // else release " + list_of(f, inst.cleanup, 0);
  return out;
}

std::string text_of_type(const std::optional<DType>& type) {
  return type ? type->to_string() : "value";
}

}  // namespace

std::string to_string(const Function& f) {
  std::string out = "fn " + f.name + "(";
  for (size_t i = 0; i < f.signature.params.size(); ++i) {
    out += (i == 0 ? "" : ", ") + name_of(f, static_cast<LocalId>(i)) + ": " +
           text_of_type(f.signature.params[i]);
  }
  out += ") -> " + text_of_type(f.signature.result) + "\n";
  for (size_t b = 0; b < f.blocks.size(); ++b) {
    out += "b" + std::to_string(b) + ":\n";
    for (const Inst& inst : f.blocks[b].insts) out += "  " + text_of_inst(f, inst) + "\n";
  }
  return out;
}

std::string to_string(const Program& program) {
  std::string out;
  for (const Function& f : program.functions) {
    // Entries and closures follow from the bodies.
    if (f.kind == FunctionKind::body) out += (out.empty() ? "" : "\n") + to_string(f);
  }
  return out;
}

}  // namespace relay::hostcode
