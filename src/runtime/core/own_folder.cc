#include "runtime/core/own_folder.h"

#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

namespace relay::runtime {

std::string own_folder() {
  Dl_info self{};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &self) == 0) return {};
  std::string folder = self.dli_fname != nullptr ? self.dli_fname : "";
  // Of a command that was found by PATH the name tells no folder.
  if (folder.find('/') == std::string::npos) folder = "/proc/self/exe";
  if (char* real = realpath(folder.c_str(), nullptr); real != nullptr) {
    folder = real;
    std::free(real);
  }
  folder.resize(folder.rfind('/') + 1);
  return folder;
}

std::string find_in_targets(const std::string& name, int mode) {
  const std::string folder = own_folder();
  if (folder.empty()) return {};
  for (const char* below : {"targets/", "../lib/relay/targets/", "../../targets/"}) {
    std::string path = folder + below + name;
    if (access(path.c_str(), mode) == 0) return path;
  }
  return {};
}

}  // namespace relay::runtime
