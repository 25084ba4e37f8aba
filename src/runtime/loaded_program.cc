#include "runtime/loaded_program.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>

#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/core/string_functions.h"
#include "runtime/cpu.h"
#include "runtime/external_kernels.h"
#include "runtime/file_descriptor.h"
#include "runtime/temporary_file.h"
#include "runtime/vm/native_stack.h"
#include "runtime/vm/verify.h"

namespace relay::runtime {

namespace {

// The loaded artifacts. The next load removes the entry of a program that was freed.
class LoadedArtifacts {
 public:
  // Never destroyed: modules may live until the end of the process.
  static LoadedArtifacts& instance() {
    static auto* const artifacts = new LoadedArtifacts;
    return *artifacts;
  }

  std::shared_ptr<const LoadedProgram> find(const Digest& id) {
    std::shared_ptr<const LoadedProgram> found;
    {
      std::lock_guard lock(mutex_);
      auto it = programs_.find(id);
      if (it != programs_.end()) found = it->second.lock();
    }
    // A file that was overwritten is loaded anew, from wherever it is whole.
    if (found != nullptr && found->constant_file != nullptr && !found->constant_file->unchanged()) {
      return nullptr;
    }
    return found;
  }

  void insert(const Digest& id, const std::shared_ptr<const LoadedProgram>& program) {
    std::lock_guard lock(mutex_);
    std::erase_if(programs_, [](const auto& entry) { return entry.second.expired(); });
    programs_.insert_or_assign(id, program);
  }

 private:
  ForkSafeMutex mutex_;
  std::map<Digest, std::weak_ptr<const LoadedProgram>> programs_;
};

// Finds the native functions in the mapped code.
void load_natives(LoadedProgram& loaded, const ElfFile& file) {
  const size_t count = loaded.program.num_native_functions();
  auto place = file.find(RELAY_NATIVE_DESCRIPTOR_SYMBOL, sizeof(relay_native_descriptor_t));
  const relay_native_descriptor_t* descriptor = nullptr;
  if (place) {
    descriptor = static_cast<const relay_native_descriptor_t*>(loaded.image->at(place->address));
  }
  check_native_descriptor(descriptor, count);
  // For debugging: everything is interpreted.
  const char* wanted = std::getenv("RELAY_NATIVE");
  if (count == 0 || !has_native_stack() || (wanted != nullptr && std::string_view(wanted) == "0")) {
    return;
  }
  const relay_native_function* next = descriptor->functions;
  for (const Function& f : loaded.program.functions) {
    loaded.natives.push_back(f.native ? *next++ : nullptr);
  }
}

// Why the process cannot run the program on its devices.
std::optional<Diagnostic> devices_refused(LoadedProgram& loaded) {
  const std::vector<Device> devices = loaded.program.devices();
  loaded.uses_devices = !devices.empty();
  for (Device d : devices) {
    if (has_device_driver(d)) continue;
    return Diagnostic(
               codes::run_no_device, {},
               "the program runs on " + d.to_string() + ", for which the process has no driver")
        .help("load the library of the device before the program");
  }
  return std::nullopt;
}

// Maps the code; `id` is the id in its descriptor.
void load_kernels(LoadedProgram& loaded, std::string_view elf, const Digest& id) {
  for (const std::string& library : loaded.info.libraries) {
    if (open_library(library) != nullptr) continue;
    throw UserError(
        Diagnostic(codes::run_library, {},
                   "the program calls functions of " + escape_for_terminal(library, 200) +
                       ", which is not beside the runtime, or is of another version of it")
            .help("copy it from where the runtime was installed: it belongs to the same package"));
  }
  const ElfFile file(elf);
  auto place = file.find(RELAY_DESCRIPTOR_SYMBOL, sizeof(relay_artifact_descriptor_t));
  loaded.image = std::make_unique<ElfImage>(file);
  const relay_artifact_descriptor_t* descriptor = nullptr;
  if (place) {
    descriptor = static_cast<const relay_artifact_descriptor_t*>(loaded.image->at(place->address));
  }
  check_descriptor(descriptor, loaded.program.num_generated_kernels(), id);
  loaded.kernels = with_external_kernels(
      loaded.program, {descriptor->kernels, static_cast<size_t>(descriptor->num_kernels)});
  load_natives(loaded, file);
}

std::shared_ptr<const LoadedProgram> load(Artifact artifact, bool verify_constants) {
  // Everything outside the constants has been checked; the constants have been loaded.
  if (!verify_constants) {
    if (auto known = LoadedArtifacts::instance().find(artifact.id)) return known;
  }
  artifact.load_constants(verify_constants);
  auto loaded = std::make_shared<LoadedProgram>();
  loaded->program = std::move(artifact.program);
  loaded->metadata = std::move(artifact.metadata);
  loaded->info = std::move(artifact.info);
  loaded->id = artifact.id;
  loaded->constant_file = std::move(artifact.constant_file);
  if (auto refusal = request_state_of(loaded->info.features)) throw UserError(*refusal);
  if (auto refusal = devices_refused(*loaded)) throw UserError(*refusal);
  load_kernels(*loaded, artifact.elf, artifact.id);
  LoadedArtifacts::instance().insert(artifact.id, loaded);
  return loaded;
}

}  // namespace

std::shared_ptr<const LoadedProgram> LoadedProgram::from_file(const std::string& path,
                                                              bool verify_constants,
                                                              const std::string& version) {
  FileDescriptor file(open_artifact_file(path));
  return load(Artifact::read(file.get(), path, /*for_this_machine=*/true, version),
              verify_constants);
}

std::shared_ptr<const LoadedProgram> LoadedProgram::from_bytes(std::string_view bytes,
                                                               bool verify_constants,
                                                               const std::string& version) {
  return load(Artifact::from_bytes(bytes, "(memory)", version), verify_constants);
}

std::shared_ptr<const LoadedProgram> LoadedProgram::from_elf(std::string_view elf, Program program,
                                                             std::string metadata,
                                                             ArtifactInfo info) {
  verify_program(program);
  auto loaded = std::make_shared<LoadedProgram>();
  loaded->program = std::move(program);
  loaded->metadata = std::move(metadata);
  loaded->info = std::move(info);
  loaded->refusal = machine_refuses("the program", loaded->info.arch, loaded->info.features);
  if (!loaded->refusal) loaded->refusal = request_state_of(loaded->info.features);
  if (auto refusal = devices_refused(*loaded); !loaded->refusal) loaded->refusal = refusal;
  if (!loaded->refusal) load_kernels(*loaded, elf, Digest());
  return loaded;
}

std::shared_ptr<const LoadedProgram> LoadedProgram::from_kernels(Program program,
                                                                 std::vector<relay_kernel> kernels,
                                                                 std::string metadata,
                                                                 std::shared_ptr<void> keep_alive,
                                                                 Denormals denormals) {
  RELAY_CHECK(kernels.size() == program.num_generated_kernels());
  verify_program(program);
  auto loaded = std::make_shared<LoadedProgram>();
  loaded->program = std::move(program);
  loaded->metadata = std::move(metadata);
  loaded->info.arch = host_arch();
  loaded->info.denormals = denormals;
  loaded->refusal = devices_refused(*loaded);
  loaded->kernels = with_external_kernels(loaded->program, kernels);
  loaded->keep_alive = std::move(keep_alive);
  return loaded;
}

void LoadedProgram::copy_artifact(const std::string& from, const std::string& to,
                                  bool overwrite) const {
  FileDescriptor file(open_artifact_file(from));
  TemporaryFile copy(to);
  std::vector<char> piece(size_t{1} << 20);
  for (;;) {
    ssize_t got = read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) {
      throw UserError(Diagnostic(
          codes::artifact_io, {},
          "cannot read '" + escape_for_terminal(from, 300) + "': " + std::strerror(errno)));
    }
    if (got == 0) break;
    copy.write(piece.data(), static_cast<size_t>(got));
  }
  // Checks the copy, not its source, which may change meanwhile.
  bool same = false;
  try {
    const std::vector<Artifact> versions = check_artifact(copy.descriptor(), to);
    same = std::ranges::find(versions, id, &Artifact::id) != versions.end();
  } catch (const UserError&) {
  }
  if (!same) {
    throw UserError(Diagnostic(codes::artifact_changed, {},
                               "'" + escape_for_terminal(from, 300) +
                                   "' is not the artifact that was loaded any more")
                        .help("load it again"));
  }
  copy.rename_to_target(overwrite);
}

void LoadedProgram::require_constants() const {
  if (constant_file == nullptr || constant_file->unchanged()) return;
  throw RuntimeError(Diagnostic(codes::artifact_changed, {},
                                "the artifact's file was overwritten while the model was in use")
                         .help("load it again; replace a file in use by renaming another onto it"));
}

}  // namespace relay::runtime
