// A program with its machine code in memory, and what keeps them there.
//
// The same artifact loaded again while it is loaded is the same object: artifacts are known by
// their id (runtime/artifact.h), whatever file they come from.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "runtime/artifact.h"
#include "runtime/elf_image.h"
#include "runtime/vm/device_state.h"

namespace relay::runtime {

struct LoadedProgram {
  // Errors of all: UserError E0608 to E0611, E0613, E0623. `verify_constants`: however large they are. `version`: of an
  // artifact with several (choose_version).
  static std::shared_ptr<const LoadedProgram> from_file(const std::string& path,
                                                        bool verify_constants,
                                                        const std::string& version = {});
  static std::shared_ptr<const LoadedProgram> from_bytes(std::string_view bytes,
                                                         bool verify_constants,
                                                         const std::string& version = {});
  // Parts of a program that has not been written as an artifact. What this machine cannot run becomes a program that can
  // be looked at, and that runs refuse (require_machine).
  static std::shared_ptr<const LoadedProgram> from_elf(std::string_view elf, Program program,
                                                       std::string metadata, ArtifactInfo info);
  static std::shared_ptr<const LoadedProgram> from_kernels(Program program,
                                                           std::vector<relay_kernel> kernels,
                                                           std::string metadata,
                                                           std::shared_ptr<void> keep_alive,
                                                           Denormals denormals);

  // See Module.
  void copy_artifact(const std::string& from, const std::string& to, bool overwrite) const;
  // RuntimeError E0614 when the file behind mapped constants is not what it was.
  void require_constants() const;
  // UserError E0610 when the machine cannot run the kernels.
  void require_machine() const {
    if (refusal) throw UserError(*refusal);
  }

  Program program;
  std::string metadata;
  ArtifactInfo info;
  Digest id;  // of the artifact; zeros when it is not from one
  std::vector<relay_kernel> kernels;
  // Of each function, null for those that are interpreted; empty when all are.
  std::vector<relay_native_function> natives;
  // Why the machine cannot run them; there are none then.
  std::optional<Diagnostic> refusal;
  // Whether it runs on anything but the host; and its constants there.
  bool uses_devices = false;
  std::shared_ptr<DeviceConstants> device_constants = std::make_shared<DeviceConstants>();
  // What the program and the kernels lie in.
  std::shared_ptr<const ConstantFile> constant_file;
  std::unique_ptr<ElfImage> image;
  std::shared_ptr<void> keep_alive;
};

}  // namespace relay::runtime
