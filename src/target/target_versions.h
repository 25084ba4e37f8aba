// Targets of several versions: one program compiled for several processors of an architecture, of which a machine loads
// the best that it runs.
//
//   x86-64-v2+v3+v4                            three levels
//   x86-64-v3+sapphirerapids                   a level, and a processor by the code generator's name
//   aarch64-linux+dotprod+i8mm                 features: each version has those of the versions before it
//   aarch64-linux+scalable                     one for each length of vectors
//   x86-64-v2+v3 -num-threads=4; opencl        options and devices of all versions
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace relay {

struct TargetVersion {
  std::string name;  // "x86-64-v3", "aarch64-linux+dotprod"
  std::string text;  // a target of one version, as users write it
  // A length of vectors that the word "scalable" lists: the version is left out where its vectors are no longer than those
  // of the version before it.
  bool is_listed = false;
};

// The versions that a target string names, in its order: itself, where its first word has no plus sign inside. UserError
// E1505 where they do not belong to one architecture.
std::vector<TargetVersion> split_versions(std::string_view text);

}  // namespace relay
