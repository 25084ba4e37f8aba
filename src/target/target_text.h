// Targets as users write them: a name and options.
//
//   native                                        this machine
//   x86-64-v3 -num-threads=1                      a level of an architecture
//   llvm -mcpu=znver4                             a processor that the code generator knows
//   llvm -mtriple=x86_64-linux-gnu -mattr=+avx2   Relay's own way of saying it
//
// Every option is used or refused: none is read and forgotten.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "target/architectures.h"
#include "target/target.h"

namespace relay {

// What a code generator knows of processors.
class Processors {
 public:
  virtual ~Processors() = default;
  // The machine this runs on, with its caches and the cores that the process may use.
  virtual Target host() const = 0;
  // Whether code for the architecture can be made.
  virtual bool has_code_for(const Architecture& arch) const = 0;
  // The features of a processor by name, "+avx2,..."; nullopt when it is not known.
  virtual std::optional<std::string> features_of(const Architecture& arch,
                                                 std::string_view cpu) const = 0;
  // Whether that is a feature that the architecture may have.
  virtual bool knows_feature(const Architecture& arch, std::string_view feature) const = 0;
};

struct TargetOption {
  std::string_view name;   // "-mcpu"
  std::string_view value;  // what follows the equals sign, "CPU"
  std::string_view doc;    // one sentence
};

std::span<const TargetOption> target_options();

// The target that the text says. Throws UserError E0403, which lists what there is, for a name, a processor, a feature,
// an architecture or an option that is not there, and for options that contradict each other.
Target read_target(std::string_view text, const Processors& processors);

}  // namespace relay
