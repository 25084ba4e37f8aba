// What the values of one call share: its references and its functions.
//
// Each RefValue that is given is a reference of the program's, the same wherever it is given, and has
// what was written into it when the call is over. A function that is given or that comes out is one of
// the program that runs; what it may have captured goes with it (functions.h).
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "bind/convert.h"
#include "bind/unlocked.h"
#include "ir/type_params.h"

namespace relay::bind {

class FunctionOwner;
struct FunctionValue;

struct Reference {
  nb::object object;  // a RefValue
  runtime::Value cell;
  runtime::Value given;  // its content before the call; null for one that the program made
  Type type;             // ref(T), or null when it is not known
};

// Needs the GIL.
class Exchange {
 public:
  // Without an owner no functions are exchanged.
  explicit Exchange(std::shared_ptr<FunctionOwner> owner = nullptr) : owner_(std::move(owner)) {}

  const std::shared_ptr<FunctionOwner>& owner() const { return owner_; }

  // Null when the call has not met it.
  Reference* of_object(nb::handle ref);
  Reference* of_cell(const runtime::Object* cell);
  // The reference stays where it is.
  Reference& add(nb::object object, runtime::Value cell, Type type);

  // The references that a function may have captured are of this call. Whether none of them was given
  // before as another one.
  bool take_references(const FunctionValue& function);
  // Gives what they refer to now to the references that came with functions.
  void read_captured(const Module& mod);

  // The sizes of the call's arguments by the names that types have for them.
  TypeParams& sizes() { return sizes_; }
  // The object of a function that comes out, whose type has those sizes.
  nb::object function(const runtime::Value& value, const Type& type);
  // A function that is given is the same object when it comes out.
  void add_function(nb::object object, const runtime::Value& value);

  // What a run gives, when its references have what it wrote.
  nb::object result(const runtime::Value& value, const Type& type, const Module& mod);
  // Gives the objects what the program wrote; references within that are met on the way. Functions
  // that came out keep the references of the call.
  void write_back(const Module& mod);

 private:
  std::shared_ptr<FunctionOwner> owner_;
  TypeParams sizes_;
  // Nothing is allocated for a call without references.
  std::vector<std::unique_ptr<Reference>> all_;
  std::unordered_map<PyObject*, Reference*> by_object_;
  std::unordered_map<const runtime::Object*, Reference*> by_cell_;
  std::vector<Reference*> captured_;  // whose content is not read yet
  struct KnownFunction {
    nb::object object;
    bool given = false;
  };
  std::unordered_map<const runtime::Object*, KnownFunction> functions_;
};

// Runs a program; one that fails has written into its references what it wrote before.
template <class F>
runtime::Value run_with(Exchange& exchange, const Module& types, const F& work) {
  try {
    return run_unlocked(work);
  } catch (const Error&) {
    exchange.write_back(types);
    throw;
  }
}

}  // namespace relay::bind
