// The artifact: one file with everything a compiled model needs.
//
//   +-----------------------+ 0
//   | ELF shared object     |  kernels; exports `relay_artifact_descriptor`
//   +-----------------------+ page-aligned
//   | constants             |  each 64-byte aligned
//   +-----------------------+
//   | index                 |  architecture, compiler version, id, features, libraries, denormals, name, constants
//   | program               |  bytecode (write_program)
//   | metadata              |  JSON text: provenance, kernel table with reasons
//   | footer                |  fixed size: magic, version, sections with checksums
//   +-----------------------+ end of file
//
// All numbers are little-endian. Equal contents give equal bytes: gaps are zero and nothing depends
// on time, addresses or paths.
//
// The id is a digest of the code, the constants, the index, the bytecode and the metadata, made
// when the artifact is written. It stands in the index and, inside the code, in the descriptor. So
// what runs is known by its content: after loading, the id in the mapped image is compared with the
// file's, and what is loaded while the same content is loaded already shares its code and
// constants.
//
// The metadata is for people and tools; running does not read it. Its keys: "compiler" (version),
// "target", "options" (object), "source" (object: name, hash), "kernels" (array in the order of the
// kernel table: name, nodes, flops, bytes, fusion and schedule with their reasons).
//
// Loading reads and checks everything but the constants (a few megabytes, milliseconds) before any
// code is mapped: magic, version, section bounds and order, checksums, gaps, CPU, bytecode. Small
// constants are read into memory. Large ones are mapped, so that processes share them; they are
// checked up to 64 MB (15 ms), or when asked for (`relay check`), and not again while the
// same content is loaded. See ConstantFile for a file that is overwritten while it is mapped.
//
// An artifact may hold several versions of the program, for processors of one architecture, the least first:
//
//   | code of each version, page-aligned
//   | constants                             each once, however many versions have it
//   | index, program, metadata of each version
//   | footer of each version                the last one ends the file
//
// The constants of a version are a part of the section of all, in which those of others may lie as well. Each version has
// an id of its own. Loading takes the last version that the machine offers
// the features of; LoadOptions::version or RELAY_CODE_VERSION in the environment names another.
//
// Formats: 6 to 16 load (in 8 kernels may write scalars of a frame, in 9 indices are checked, and nothing else is
// new; runs of formats before 10 flush denormals; before 11 all kernels are in the artifact's own code, before 12 all
// functions are interpreted, before 14 there is one version without a name, before 15 no kernel hashes a string, and failures
// name neither values nor callers, before 16 no kernel asks for the key of a string, and none has binaries); older ones are
// refused with the version of Relay that wrote them, which stands at the same place in all of them. The footer keeps its
// form.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/checksum.h"
#include "runtime/core/denormals.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/native_abi.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {

inline constexpr uint32_t kArtifactVersion = 16;
inline constexpr uint32_t kOldestArtifactVersion = 6;
static_assert(kArtifactVersion >= kProgramVersion);

// What an artifact is for and by whom it was made.
struct ArtifactInfo {
  std::string arch;                   // host_arch() of the machine that runs it
  std::vector<std::string> features;  // instruction sets that the kernels use, LLVM names
  std::string compiler_version;
  // Libraries beside the runtime that the kernels call (core/string_functions.h): "librelay_text.so". Of version 6 none
  // are told: they are opened by the first call.
  std::vector<std::string> libraries;
  Denormals denormals = Denormals::flush;
  // The target as it was written, which names the version: "x86-64-v3". Empty of formats before 14.
  std::string version = {};
};

// A version of a program.
struct ArtifactContents {
  std::string_view elf;              // with an id of zeros
  const Program* program = nullptr;  // with its constants
  std::string_view metadata;         // JSON text
  ArtifactInfo info;
};

// The artifact's bytes.
std::string write_artifact(const ArtifactContents& contents);
// Of several versions, the least first: at least 1, at most kMostVersions.
std::string write_artifact(std::span<const ArtifactContents> versions);

// Writes a file that appears complete or not at all. UserError E0611 when it cannot be written, or
// when it exists and `overwrite` is false.
void write_artifact_file(const ArtifactContents& contents, const std::string& path,
                         bool overwrite = false);
void write_artifact_file(std::span<const ArtifactContents> versions, const std::string& path,
                         bool overwrite = false);

// "9f86d081884c7d65..."
std::string to_string(const Digest& id);

// A file whose constants are mapped. Nothing keeps a file from being overwritten in place; a
// mapping then shows the new bytes, or, where the file became shorter, memory that ends the
// process. Every run asks before and after whether the file is as it was, so that no run's results
// are made of two files; only a file cut short in the middle of a run is not survived. To replace a
// file in use by a rename, as write_artifact_file does, is always safe.
class ConstantFile {
 public:
  // What tells that a file was written to.
  struct Written {
    int64_t size = 0;
    int64_t seconds = 0, nanoseconds = 0;  // of the modification

    // A size of -1 when the system does not tell.
    static Written now(int fd);
    friend bool operator==(const Written&, const Written&) = default;
  };

  // The section of the file that holds the constants, and their checksum; `written` is from before
  // anything was read.
  ConstantFile(int fd, uint64_t offset, uint64_t size, uint64_t checksum, Written written);
  ~ConstantFile();
  ConstantFile(const ConstantFile&) = delete;
  ConstantFile& operator=(const ConstantFile&) = delete;

  void* memory() const { return memory_; }
  // Whether the constants are what they were. Asks for the time of modification only, as long as it
  // stays the same; else reads them again.
  bool unchanged() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
  void* memory_ = nullptr;
};

// An opened, checked artifact. Nothing of it has been executed.
class Artifact {
 public:
  // Reads all but the constants and checks it. `fd` stays owned by the caller and open until the
  // constants are there; `name` is for messages. `version` as for `choose_version`. Errors: UserError E0608, E0609,
  // E0611, E0623; E0610 when `for_this_machine`.
  static Artifact read(int fd, const std::string& name, bool for_this_machine = true,
                       const std::string& version = {});
  // The same from memory, which stays as it is until the constants are there.
  static Artifact from_bytes(std::string_view bytes, const std::string& name,
                             const std::string& version = {});
  // All versions of a file, for any machine.
  static std::vector<Artifact> read_versions(int fd, const std::string& name);
  // Adds the constants to the program and verifies the program. `verify`: check the constants
  // however many they are. Errors: UserError E0608, E0611, E0613.
  void load_constants(bool verify);

  ArtifactInfo info;
  Digest id;
  Program program;  // constants are read-only
  std::string metadata;
  std::string elf;
  std::shared_ptr<const ConstantFile> constant_file;  // null when they are not mapped

 private:
  struct Source;
  static Source open(Source source);
  static Artifact read(Source source, bool for_this_machine, const std::string& version);
  static Artifact read(Source source, size_t version);
  std::shared_ptr<Source> source_;  // until the constants are there
};

// The version to load of those of one artifact: the one that is named, else the last that this machine runs. UserError E0610
// when the machine cannot run it, or runs none; E0623 when there is none of the name. `name` is the artifact's, for messages.
size_t choose_version(std::span<const ArtifactInfo> versions, const std::string& wanted,
                      const std::string& name);

// Verifies an artifact to its last bit, for any machine, and returns its versions. Errors as above.
std::vector<Artifact> check_artifact(const std::string& path);
std::vector<Artifact> check_artifact(int fd, const std::string& name);

// Compares what the artifact's code says of itself (null: nothing) with the artifact. UserError
// E0608, E0609.
void check_descriptor(const relay_artifact_descriptor_t* descriptor, size_t num_kernels,
                      const Digest& id);

// The same for its native functions, of which the program has that many; null: the code has none. The descriptor's
// functions are in the order of the program.
void check_native_descriptor(const relay_native_descriptor_t* descriptor, size_t num_functions);

// Opens a regular file for reading; UserError E0611 when it cannot be, or is something else.
int open_artifact_file(const std::string& path);

namespace artifact_format {

struct Section {
  uint64_t offset;
  uint64_t size;
  uint64_t checksum;
};

enum SectionKind { kElf, kConstants, kIndex, kProgram, kMetadata, kSectionCount };
inline constexpr const char* kSectionNames[kSectionCount] = {"code", "constants", "index",
                                                             "bytecode", "metadata"};

// The same in all versions.
struct Footer {
  uint32_t version;
  uint32_t footer_bytes;  // of all footers of the file
  Section sections[kSectionCount];
  uint64_t file_size;
  uint64_t checksum;  // of the footer's bytes before this field
  char magic[8];      // the last bytes of the file
};
static_assert(sizeof(Footer) == 152);

inline constexpr char kMagic[9] = "RELAYART";
inline constexpr uint64_t kPage = 4096;
inline constexpr uint64_t kConstantAlignment = 64;
inline constexpr uint64_t kMaxSmallSection = uint64_t{1} << 31;
inline constexpr size_t kMostVersions = 16;
// Fewer bytes of constants are read (3 ms), more are mapped.
inline constexpr uint64_t kReadConstants = uint64_t{16} << 20;
inline constexpr uint64_t kAlwaysVerifiedConstants = uint64_t{64} << 20;

}  // namespace artifact_format

}  // namespace relay::runtime
