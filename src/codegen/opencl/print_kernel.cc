#include "codegen/opencl/print_kernel.h"

#include <algorithm>
#include <array>
#include <utility>

#include "codegen/opencl/helpers.h"
#include "codegen/opencl/launches.h"
#include "codegen/opencl/print_groups.h"
#include "node/walk.h"
#include "tir/thread_nests.h"

namespace relay::codegen {
namespace {

using runtime::DeviceLaunch;
using runtime::DeviceSource;
using runtime::SizeFormula;
using tir::as_int;
using tir::BufferNode;
using tir::ForNode;
using tir::Stmt;
using tir::StmtNode;

// Work items of a launch that needs working memory for each, and of one whose number of iterations is no formula of the sizes.
constexpr int64_t kFewItems = 64, kManyItems = 4096;

// The launches of a kernel, each a function of OpenCL C.
class KernelPrinter : private GroupPrinter {
 public:
  explicit KernelPrinter(const tir::PrimFuncNode& f) : GroupPrinter(f) {}

  DeviceSource print() {
    const KernelLaunches launches = launches_of(f_);
    for (const tir::Buffer& b : f_.params) add_buffer(b.get());
    for (const tir::Buffer& b : launches.workspace) {
      source_.workspace.push_back(bytes_of(*b.get()));
      add_buffer(b.get());
    }
    std::string kernels;
    for (const LaunchPart& part : launches.parts) kernels += launch(part);
    // A kernel that does nothing.
    if (launches.parts.empty()) kernels += launch({});
    std::string code;
    if (uses_double_) code += "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n";
    code += "#pragma OPENCL FP_CONTRACT OFF\n";
    source_.code = code + opencl_helpers(helpers_) + kernels;
    return std::move(source_);
  }

 private:
  std::string launch(const LaunchPart& part) {
    DeviceLaunch out;
    out.name = f_.name +
               (source_.launches.empty() ? "" : "_part" + std::to_string(source_.launches.size()));
    places_.clear();
    slices_.clear();
    vars_.clear();
    may_fail_ = false;
    count_items(part, out);
    // The body says which buffers the function takes.
    code_.str("");
    indent_ = 1;
    group_ = part.group;
    shared_.clear();
    // A group goes on: all of its items reach its barriers, and it has no index that a failure makes wrong.
    if (!part.has_groups()) line("if (relay_failed[0] != 0) return;");
    for (const StmtNode* s : part.around) open(*s);
    size_t loops = 0;
    for (size_t i = part.axes.size(); i-- > 0;) {
      if (part.axes[i] == nullptr) continue;
      loops += open_axis(*part.axes[i], i);
    }
    for (const Stmt& s : part.body) part.has_groups() ? group_statement(s) : statement(*s.get());
    for (; loops > 0; --loops) close();
    const std::string body = code_.str();
    code_.str("");
    indent_ = 0;
    std::string parameters;
    for (const auto& [buffer, number] : used_buffers()) {
      const std::string name = places_.at(buffer).name;
      parameters += "__global char* " + name + "_memory, long " + name + "_first, ";
      out.buffers.push_back(number);
    }
    for (const tir::Var& d : f_.dims) parameters += "long " + dim_name(*d.get()) + ", ";
    line("__kernel void " + out.name + "(" + parameters +
         "volatile __global int* relay_failed, int relay_number) {");
    indent_ = 1;
    for (const auto& [buffer, number] : used_buffers()) {
      const Place& p = places_.at(buffer);
      const std::string type = "__global " + stored_type(buffer->dtype.element()) + "*";
      line(type + " " + p.name + " = (" + type + ")(" + p.name + "_memory + " + p.name +
           "_first);");
    }
    // An item that ends leaves the others of its group waiting at a barrier.
    if (part.has_groups() && may_fail_) unsupported("a check in a group of work items");
    for (const std::string& s : shared_) line(s);
    out.group = part.group;
    out.may_fail = may_fail_;
    source_.launches.push_back(std::move(out));
    return code_.str() + body + "}\n";
  }

  // Global buffers of the launch, with their numbers in the kernel, by these.
  std::vector<std::pair<const BufferNode*, size_t>> used_buffers() const {
    std::vector<std::pair<const BufferNode*, size_t>> out;
    for (const auto& [node, place] : places_) {
      auto known = numbers_.find(node);
      if (known != numbers_.end()) out.emplace_back(node, known->second);
    }
    for (const auto& [node, number] : slices_) out.emplace_back(node, number);
    std::ranges::sort(out, {}, &std::pair<const BufferNode*, size_t>::second);
    return out;
  }

  // Items along each axis. Where the launch has fewer of them than iterations, an item loops.
  void count_items(const LaunchPart& part, DeviceLaunch& out) {
    needs_slices_ = false;
    const auto registers = tir::registers_of_groups(f_.body);
    for (const Stmt& s : part.body) {
      post_order(
          s,
          [&](const Node& n) {
            auto* a = as<tir::AllocateNode>(&n);
            needs_slices_ |= a != nullptr && !is_small(*a->buffer.get()) &&
                             a->buffer->scope != tir::Scope::Shared &&
                             !registers.contains(a->buffer.get());
          },
          family::tir_stmt);
    }
    looped_.fill(false);
    if (part.has_groups()) return count_groups(part, out);
    for (size_t i = 0; i < part.axes.size(); ++i) {
      if (part.axes[i] == nullptr) continue;
      auto extent = formula(part.axes[i]->extent);
      looped_[i] = !extent || needs_slices_;
      const int64_t most = needs_slices_ ? kFewItems : kManyItems;
      if (!extent) {
        out.items[i] = SizeFormula(most);
      } else if (needs_slices_) {
        out.items[i] = SizeFormula(*extent + " " + std::to_string(most) + " min");
      } else {
        out.items[i] = SizeFormula(*extent);
      }
    }
    all_items_ =
        out.items[0].text() + " " + out.items[1].text() + " * " + out.items[2].text() + " *";
  }

  void count_groups(const LaunchPart& part, DeviceLaunch& out) {
    if (needs_slices_) unsupported("large memory of an item in a group");
    for (size_t i = 0; i < part.axes.size(); ++i) {
      auto extent = part.axes[i] == nullptr ? std::string("1") : formula(part.axes[i]->extent);
      if (!extent) unsupported("groups whose number is no formula of the call's sizes");
      out.items[i] = SizeFormula(*extent + " " + std::to_string(part.group[i]) + " *");
    }
  }

  // Returns the number of blocks that it opens.
  size_t open_axis(const ForNode& f, size_t axis) {
    const std::string id =
        (group_[0] > 0 ? "get_group_id(" : "get_global_id(") + std::to_string(axis) + ")";
    const std::string type = type_of(f.var->dtype), name = bind(*f.var.get());
    forget(0);
    const std::string min = value(f.min);
    if (!looped_[axis]) {
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

  // Of the launch that is printed: axes along which an item loops, and whether items need slices of working memory.
  std::array<bool, 3> looped_{};
  bool needs_slices_ = false;
};

}  // namespace

DeviceSource opencl_source(const tir::PrimFuncNode& f) { return KernelPrinter(f).print(); }

}  // namespace relay::codegen
