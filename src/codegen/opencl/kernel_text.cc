#include "codegen/opencl/kernel_text.h"

namespace relay::codegen {

using tir::DType;

std::string KernelText::type_of(DType d) {
  if (d.lanes != 1) unsupported("vectors");
  if (d.is_bool()) return "bool";
  if (d.is_float(64)) uses_double_ = true;
  if (d.is_floating()) return d.bits == 64 ? "double" : "float";
  const DType s = d.storage();
  const std::string name = s.bits == 8    ? "char"
                           : s.bits == 16 ? "short"
                           : s.bits == 32 ? "int"
                                          : "long";
  return s.is_uint() ? "u" + name : name;
}

std::string KernelText::stored_type(DType d) {
  if (d.is_bool()) return "uchar";
  if (is_half(d)) return "ushort";
  return type_of(d);
}

std::string KernelText::helper(const std::string& name) {
  helpers_.insert(name);
  return name;
}

std::string KernelText::helper(const std::string& name, const std::string& a) {
  return helper(name) + "(" + a + ")";
}

std::string KernelText::helper(const std::string& name, const std::string& a,
                               const std::string& b) {
  return helper(name) + "(" + a + ", " + b + ")";
}

void KernelText::line(const std::string& text) {
  code_ << std::string(static_cast<size_t>(indent_) * 2, ' ') << text << "\n";
}

void KernelText::close() {
  --indent_;
  line("}");
}

std::string KernelText::identifier(const std::string& name) {
  std::string out = "r_";
  for (char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    out += plain ? c : '_';
  }
  return out;
}

std::string KernelText::dim_name(const tir::VarNode& v) const {
  for (size_t i = 0; i < f_.dims.size(); ++i) {
    if (f_.dims[i].get() == &v) return "relay_d" + std::to_string(i);
  }
  return "";
}

}  // namespace relay::codegen
