#include "codegen/opencl/print_kernel.h"

#include <utility>

#include "codegen/opencl/helpers.h"
#include "codegen/opencl/print_groups.h"

namespace relay::codegen {
namespace {

using runtime::DeviceSource;
using tir::as_int;
using tir::ForNode;
using tir::Stmt;
using tir::StmtNode;

// The launches of a kernel, each a function of OpenCL C.
class KernelPrinter : private GroupPrinter {
 public:
  explicit KernelPrinter(const tir::PrimFuncNode& f) : GroupPrinter(f) {}

  DeviceSource print() {
    std::string kernels;
    for (const LaunchPart& part : device_.parts()) kernels += launch(part);
    std::string code;
    if (uses_double_) code += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    code += "#pragma OPENCL FP_CONTRACT OFF\n";
    return device_.take(code + opencl_helpers(helpers_) + kernels);
  }

 private:
  std::string launch(const LaunchPart& part) {
    device_.begin_launch(part);
    begin_group(part.group);
    vars_.clear();
    shared_.clear();
    places_.clear();
    for (const LaunchBuffer& b : device_.launch_buffers()) {
      places_[b.buffer] = {identifier(b.buffer->name) + "_" + std::to_string(b.number), ""};
    }
    code_.str("");
    indent_ = 1;
    if (device_.ends_after_failure()) line("if (relay_failed[0] != 0) return;");
    for (const StmtNode* s : part.around) open(*s);
    size_t loops = 0;
    for (size_t i = part.axes.size(); i-- > 0;) {
      if (part.axes[i] == nullptr) continue;
      loops += open_axis(*part.axes[i], i, part.has_groups());
    }
    for (const Stmt& s : part.body) part.has_groups() ? group_statement(s) : statement(*s.get());
    for (; loops > 0; --loops) close();
    const std::string body = code_.str();
    code_.str("");
    indent_ = 0;
    std::string parameters;
    for (const LaunchBuffer& b : device_.launch_buffers()) {
      const std::string& name = places_.at(b.buffer).name;
      parameters += "__global char* " + name + "_memory, long " + name + "_first, ";
    }
    for (const tir::Var& d : f_.dims) parameters += "long " + dim_name(*d.get()) + ", ";
    line("__kernel void " + device_.launch().name + "(" + parameters +
         "volatile __global int* relay_failed, int relay_number) {");
    indent_ = 1;
    for (const LaunchBuffer& b : device_.launch_buffers()) {
      const std::string& name = places_.at(b.buffer).name;
      const std::string type = "__global " + stored_type(b.buffer->dtype.element()) + "*";
      line(type + " " + name + " = (" + type + ")(" + name + "_memory + " + name + "_first);");
    }
    for (const std::string& s : shared_) line(s);
    return code_.str() + body + "}\n";
  }

  // Returns the number of blocks that it opens.
  size_t open_axis(const ForNode& f, size_t axis, bool over_groups) {
    const std::string id =
        (over_groups ? "get_group_id(" : "get_global_id(") + std::to_string(axis) + ")";
    const std::string type = type_of(f.var->dtype), name = bind(*f.var.get());
    forget(0);
    const std::string min = value(f.min);
    if (!device_.loops(axis)) {
      line("const " + type + " " + name + " = (" + type + ")" + id +
           (as_int(f.min) == 0 ? "" : " + " + min) + ";");
      return 0;
    }
    const std::string first = fresh("first"), end = fresh("end");
    line("const " + type + " " + first + " = " + min + ", " + end + " = " + first + " + " +
         value(f.extent) + ";");
    line("for (" + type + " " + name + " = " + first + " + (" + type + ")" + id + "; " + name +
         " < " + end + "; " + name + " += (" + type + ")get_global_size(" + std::to_string(axis) +
         ")) {");
    ++indent_;
    return 1;
  }
};

}  // namespace

DeviceSource opencl_source(const tir::PrimFuncNode& f) { return KernelPrinter(f).print(); }

}  // namespace relay::codegen
