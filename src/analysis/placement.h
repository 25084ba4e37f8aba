// Where the values of a program are: on the host, or on a device.
//
//   Placement where(mod);              // of a program whose copies are all written (PlanDevices)
//   where.device_of(var)               // of a tensor; of data, of the tensors in it
//   where.device_of(var, {0, 1})       // of field 1 of field 0
//   where.kernel_device(call)          // of what computes the call
//
// Devices follow from device_copy, on_device and the attribute of primitive functions, by unification
// (analysis/device_domains.h): all operands and results of a kernel are on one device, and so are the tensors in a value of
// a data type. Parameters and results of a function are where its attributes say (ir/interface_devices.h). Constants are wherever they are used. What nothing decides is on the host, and so are conditions,
// strings, values of sizes that only a run tells, and what operators with effects read and give.
#pragma once

#include <initializer_list>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "analysis/device_domains.h"
#include "ir/devices.h"
#include "ir/module.h"

namespace relay {

// A call of device_copy or on_device, also as a primitive function of its own; at most one is not null.
struct PlacingCall {
  const DeviceCopyAttrs* copy = nullptr;
  const OnDeviceAttrs* on_device = nullptr;
};
PlacingCall placing_call(const CallNode& call);
// Whether what `on_device` gives is on its device: it says so, or its argument is a variable or a part of one, which is not
// computed there.
bool gives_on_device(const CallNode& call, const OnDeviceAttrs& attrs);

// Why a kernel runs on the host only; null where it may run elsewhere.
const char* host_only(const CallNode& call);

// Whether the program says anything of devices by its calls and kernels: else all that it computes is on the host.
bool uses_devices(const Module& mod);

class Placement {
 public:
  // Throws UserError E0409 where a value is used on two devices.
  explicit Placement(const Module& mod) : Placement(mod, {}, false) {}

  // Of a program in which copies are still to be made: what on_device says is computed there, with what it is computed
  // from as far as nothing else decides; parameters and results of `entries` are on the host unless their attributes say
  // otherwise. `wanted` tells where operands
  // are needed. Throws as above, for what cannot be copied.
  static Placement propose(const Module& mod, const std::vector<Function>& entries) {
    return Placement(mod, entries, true);
  }

  runtime::Device device_of(const Expr& e, std::initializer_list<size_t> path = {}) const;
  // Of each part of a value of the type that is not a tuple, in order; null: the host.
  static std::vector<runtime::Device> devices_of(Domain* d, const Type& type);
  runtime::Device kernel_device(const CallNode& call) const;

  // The value of an expression, and where its user needs it: null where the value is there. Without `propose` that is
  // asked of constants alone. Operands are counted in the order of the node's fields: of a call its arguments, of a branch
  // its condition first.
  Domain* domain(const Expr& e) const;
  Domain* wanted(const Node& user, size_t operand) const;
  // What a function gives; null where all of it is on the host.
  Domain* result(const FunctionNode& f) const;

 private:
  struct Edge {
    const Node* user;
    size_t operand;
    Expr value;
    Domain* wanted;
    Span span;
  };

  Placement(const Module& mod, const std::vector<Function>& entries, bool proposes);

  Domain* of(const Expr& e);
  // What a variable stands for, before any use of it.
  void note_binding(const Node& n);
  void visit(const Node& n);
  void visit_call(const CallNode& c);
  void visit_placing(const CallNode& c, PlacingCall what);
  void visit_kernel(const CallNode& c);
  void visit_match(const MatchNode& m);
  void bind(const Pattern& p, Domain* d);
  // The operand goes where `to` is: by a copy, where one can be made.
  void use(const Node& user, size_t operand, const Expr& value, Domain* to, const Span& span);
  // Of each part of a value of the type that is not a tuple, in order; those that a kernel gives together share one.
  static std::vector<Domain*> parts_of(Domain* d, const Type& type);
  // The parameters and results that the attributes of the function name.
  void place_interface(const Function& f, const Module& mod);
  void resolve(const std::vector<Function>& entries);

  bool proposes_;
  mutable DeviceDomains domains_;
  std::unordered_map<const Node*, Domain*> of_;
  // Results of on_device that are wherever they are used.
  std::unordered_set<const Node*> boundaries_;
  std::unordered_map<const Node*, Domain*> kernels_;  // by calls
  std::vector<Domain*> interface_;                    // what attributes of functions place
  std::vector<Edge> edges_;
  std::map<std::pair<const Node*, size_t>, Domain*> wanted_;
  std::unordered_map<std::string, const Node*> globals_;
};

}  // namespace relay
