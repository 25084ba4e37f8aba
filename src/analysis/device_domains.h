// Sets of values that are on one device, by unification.
//
//   DeviceDomains domains;
//   Domain* x = domains.of_type(type);       // a leaf for each tensor of a tuple, a function, a reference
//   domains.place(x, device, span);          // all leaves of x
//   domains.unify(x, y, span);               // part for part; UserError E0409 where their devices differ
//
// The tensors in a value of a data type are on one device: such a value, and one of a type variable, is a leaf.
#pragma once

#include <deque>
#include <optional>
#include <vector>

#include "base/source.h"
#include "ir/type.h"
#include "runtime/core/device.h"

namespace relay {

// Of one value. Handled by pointers, which stay valid; `root` gives what stands for it by now.
struct Domain {
  Domain* parent = nullptr;
  // Of a tuple its fields, of a function its parameters and then its result, of a reference its content. Empty: a leaf.
  std::vector<Domain*> parts{};
  // Of a leaf, once it is known, and what decided it.
  std::optional<runtime::Device> device{};
  Span decided{};
  const char* why = nullptr;

  bool is_leaf() const { return parts.empty(); }
};

class DeviceDomains {
 public:
  // A new domain with the structure of the type.
  Domain* of_type(const Type& type);
  Domain* leaf();
  static Domain* root(Domain* d);

  // A part of a value, for a leaf itself.
  static Domain* part(Domain* whole, size_t index);
  // Makes one leaf of all parts.
  Domain* collapse(Domain* d, const Span& span);
  void unify(Domain* a, Domain* b, const Span& span);
  // Unifies leaves that are not known to be on different devices; others stay apart.
  void unify_where_possible(Domain* a, Domain* b);
  // `why`: a static text for people; null where the place says enough.
  void place(Domain* d, runtime::Device device, const Span& span, const char* why = nullptr);
  // The leaves of a value, in order.
  static std::vector<Domain*> leaves(Domain* d);
  // The leaves of `a` beside those of `b`, which has the same structure or is a leaf where `a` is not.
  static std::vector<std::pair<Domain*, Domain*>> leaves(Domain* a, Domain* b);

  // The host for what nothing decides.
  static runtime::Device device(Domain* leaf);

 private:
  Domain* join(Domain* a, Domain* b, const Span& span);

  std::deque<Domain> all_;
};

}  // namespace relay
