// Target strings of processors, which `TargetKind` cpu has: a level of an architecture, a processor by the code
// generator's name, or this machine, and options that change them.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "target/architectures.h"
#include "target/target_text.h"

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

// The target by which any processor of the architecture is meant, "aarch64-linux"; -mcpu refines it.
std::string architecture_target(const Architecture& arch);

class ProcessorReader : public TargetReader {
 public:
  // `processors` lives as long as the reader.
  explicit ProcessorReader(const Processors& processors) : processors_(processors) {}
  std::vector<std::string> names() const override;
  std::span<const TargetOption> options() const override;
  // Throws UserError E0403, which lists what there is, for a processor, a feature or an architecture that is not there.
  Target read(const TargetWords& words) const override;

 private:
  const Processors& processors_;
};

}  // namespace relay
