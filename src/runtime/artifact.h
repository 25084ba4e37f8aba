// The artifact: one file with everything a compiled model needs.
//
//   +-----------------------+ 0
//   | ELF shared object     |  kernels; exports `relay_artifact_descriptor`
//   +-----------------------+ page-aligned
//   | constants             |  each 64-byte aligned; mapped at load, never copied
//   +-----------------------+
//   | index                 |  architecture, features, compiler version, table of constants
//   | program               |  bytecode (write_program)
//   | metadata              |  JSON text: provenance, kernel table with reasons
//   | footer                |  fixed size: magic, version, sections with checksums
//   +-----------------------+ end of file
//
// All numbers are little-endian. The dynamic loader ignores what follows the ELF image. Equal
// contents give equal bytes: gaps are zero and nothing depends on time, addresses or paths.
//
// The metadata is for people and tools; running does not read it. Its keys: "compiler" (version),
// "target", "options" (object), "source" (object: name, hash), "kernels" (array in the order of the
// kernel table: name, nodes, flops, bytes, fusion and schedule with their reasons).
//
// Loading reads and checks everything but the constants (a few megabytes, milliseconds) before the
// ELF image is mapped executable: magic, version, section bounds and order, checksums, CPU,
// bytecode. The constants are mapped; their checksum is verified as well when they are small (below
// 128 MB, about 15 ms) or when asked for, so that a large model loads in the time of its code.
//
// The file is used through one opened descriptor, so what has been checked is what is loaded. As
// with any shared library, a file in use must be replaced by a rename and not be overwritten or
// truncated; write_artifact_file does that.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/vm/bytecode.h"

namespace relay::runtime {

inline constexpr uint32_t kArtifactVersion = 5;

// What an artifact is for and by whom it was made.
struct ArtifactInfo {
  std::string arch;                   // host_arch() of the machine that runs it
  std::vector<std::string> features;  // instruction sets that the kernels use, LLVM names
  std::string compiler_version;
};

struct ArtifactContents {
  std::string_view elf;
  const Program* program = nullptr;  // with its constants
  std::string_view metadata;         // JSON text
  ArtifactInfo info;
};

// The artifact's bytes.
std::string write_artifact(const ArtifactContents& contents);

// Writes a file that appears complete or not at all. UserError E0611 when it cannot be written, or
// when it exists and `overwrite` is false.
void write_artifact_file(const ArtifactContents& contents, const std::string& path,
                         bool overwrite = false);

// An opened, checked artifact. Nothing of it has been executed.
class Artifact {
 public:
  // `fd` stays owned by the caller and open as long as the artifact is used; `name` is for
  // messages. Errors: UserError E0608 to E0611, E0613.
  static Artifact read(int fd, const std::string& name, bool verify_constants);

  ArtifactInfo info;
  Program program;  // verified; constants are read-only views of the file
  std::string metadata;
  uint64_t elf_bytes = 0;
};

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

struct Footer {
  uint32_t version;
  uint32_t footer_bytes;
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
inline constexpr uint64_t kAlwaysVerifiedConstants = uint64_t{128} << 20;

}  // namespace artifact_format

}  // namespace relay::runtime
