// What all parts of a printed kernel share: lines, names, and the types of OpenCL C.
#pragma once

#include <set>
#include <sstream>
#include <string>
#include <unordered_map>

#include "codegen/device/device_kernel.h"
#include "tir/stmt.h"

namespace relay::codegen {

class KernelText {
 protected:
  explicit KernelText(const tir::PrimFuncNode& f) : f_(f), device_(f, "OpenCL C") {}

  // Throws UserError E0401.
  [[noreturn]] void unsupported(const std::string& what) const { device_.unsupported(what); }
  // Of a value in an expression.
  std::string type_of(tir::DType d);
  // Of an element in memory.
  std::string stored_type(tir::DType d);
  static bool is_half(tir::DType d) { return d.is_floating() && d.bits == 16; }
  static std::string half_name(tir::DType d) { return d.is_bfloat16() ? "bf16" : "f16"; }
  static std::string suffix(tir::DType d) { return d.bits == 64 ? "_d" : "_f"; }
  // A function of helpers.h, which the source then contains: its name, or a call of it.
  std::string helper(const std::string& name);
  std::string helper(const std::string& name, const std::string& a);
  std::string helper(const std::string& name, const std::string& a, const std::string& b);
  // Appends a line with the indentation of the open blocks.
  void line(const std::string& text);
  // Ends a block.
  void close();
  // A name that no other call returns.
  std::string fresh(const std::string& base) { return base + "_" + std::to_string(++names_); }
  static std::string identifier(const std::string& name);
  // A name for the variable, from here on.
  std::string bind(const tir::VarNode& v) { return vars_[&v] = fresh(identifier(v.name)); }
  // The parameter of a dimension of the kernel; empty for another variable.
  std::string dim_name(const tir::VarNode& v) const;

  const tir::PrimFuncNode& f_;
  DeviceKernel device_;
  std::unordered_map<const tir::VarNode*, std::string> vars_;
  std::ostringstream code_;
  int indent_ = 0;
  int names_ = 0;
  std::set<std::string> helpers_;
  bool uses_double_ = false;
};

}  // namespace relay::codegen
