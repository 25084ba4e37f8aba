#include "plan/scalar_code.h"

namespace relay::plan {

using runtime::FloatOp;
using runtime::IntOp;
using runtime::ScalarConversion;

int64_t scalar_bits(const Tensor& constant) {
  const runtime::DType t = constant.dtype();
  return t.is_floating() ? float_bits(t, constant.get_as_double(0)) : constant.get_as_int(0);
}

ValueId write_scalar_form(const ScalarForm& form, StepWriter& to, std::span<const ValueId> inputs,
                          const std::function<int32_t(const std::string&)>& string) {
  using Instruction = ScalarForm::Instruction;
  std::vector<ValueId> values(inputs.begin(), inputs.end());
  auto at = [&](int32_t i) { return values[static_cast<size_t>(i)]; };
  for (const Instruction& s : form.instructions) {
    if (!s.used) {
      values.push_back(-1);
      continue;
    }
    switch (s.kind) {
      case Instruction::kConstant:
        values.push_back(to.number(s.constant));
        break;
      case Instruction::kInt:
        values.push_back(to.int_op(static_cast<IntOp>(s.op), at(s.a), at(s.b), s.bits));
        break;
      case Instruction::kFloat:
        values.push_back(to.float_op(static_cast<FloatOp>(s.op), at(s.a), at(s.b), s.bits));
        break;
      case Instruction::kIndex:
        values.push_back(to.index(at(s.a), at(s.b), s.place.empty() ? -1 : string(s.place)));
        break;
      case Instruction::kConvert:
        values.push_back(to.convert(static_cast<ScalarConversion>(s.op), at(s.a)));
        break;
    }
  }
  return at(form.result);
}

}  // namespace relay::plan
