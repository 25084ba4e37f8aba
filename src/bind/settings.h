// Settings of Python as options of the compiler.
#pragma once

#include <memory>
#include <vector>

#include "bind/convert.h"
#include "driver/compile.h"

namespace relay::bind {

// Options that keep their instruments, which are Python's.
struct Settings : CompileOptions {
  void add_instrument(nb::handle object);

 private:
  std::vector<std::shared_ptr<PassInstrument>> owned_;
};

// TypeError for values of the wrong type.
Settings make_options(nb::handle settings);

}  // namespace relay::bind
