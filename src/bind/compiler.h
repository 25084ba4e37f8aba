// What the bindings of everything that compiles share.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bind/convert.h"
#include "codegen/kernel_cache.h"
#include "driver/compile.h"

namespace relay::bind {

class FunctionOwner;

struct Executable {
  runtime::Module module;
  std::shared_ptr<const CompiledModule>
      compiled;  // null when loaded from `path`, and for programs of the compiler's own
  std::string path;
  std::shared_ptr<FunctionOwner> functions;  // null when none can come out
  Module interface {};                       // of a loaded one (driver/interface.h)
  KernelCache::Counts cache{};               // of its compilation; zeros without a cache
  // All versions of its target, of which `compiled` is one; null as it is.
  std::shared_ptr<const std::vector<CompiledModule>> versions = nullptr;

  // The types that its functions take and give, as far as they are known; may be null.
  Module types() const { return compiled ? compiled->optimized : interface; }
};

// The module, typed; UserError E0103 where it calls a function that it does not have.
Module whole(const PyModule& mod);

// The values of a function's parameters, in order, by position or name. `mod` knows their types, or is null. `exchange`: takes
// the references and functions among them. `donated`: takes the objects that are donated, by the results that they are donated to; null where nothing is donated.
std::vector<runtime::Value> collect_arguments(const runtime::Function& f, const Module& mod,
                                              nb::tuple args, nb::dict kwargs, Exchange& exchange,
                                              std::vector<nb::object>* donated = nullptr);

}  // namespace relay::bind
