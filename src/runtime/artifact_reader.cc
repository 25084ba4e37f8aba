#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/diagnostic_codes.h"
#include "runtime/artifact.h"
#include "runtime/checksum.h"
#include "runtime/cpu.h"
#include "runtime/vm/verify.h"

namespace relay::runtime {

using namespace artifact_format;

namespace {

// One opened file; everything but the constants is read, not mapped, so that a file which shrinks
// meanwhile gives an error and not a signal.
class ArtifactReader {
 public:
  ArtifactReader(int fd, const std::string& name)
      : fd_(fd), name_("'" + escape_for_terminal(name, 300) + "'") {}

  void read_footer() {
    struct stat status {};
    if (fstat(fd_, &status) != 0) cannot_read(errno);
    file_size_ = static_cast<uint64_t>(status.st_size);
    if (file_size_ < sizeof(Footer)) not_an_artifact();
    std::string bytes = read(file_size_ - sizeof(Footer), sizeof(Footer));
    std::memcpy(&footer_, bytes.data(), sizeof(Footer));
    if (std::memcmp(footer_.magic, kMagic, sizeof(footer_.magic)) != 0) not_an_artifact();
    if (footer_.version != kArtifactVersion) {
      throw UserError(Diagnostic(codes::artifact_version, {},
                                 name_ + " has format version " + std::to_string(footer_.version))
                          .expected("format version " + std::to_string(kArtifactVersion))
                          .help("compile the model again with this version of Relay, or run it "
                                "with the version that made it"));
    }
    if (footer_.footer_bytes != sizeof(Footer)) damaged("its footer has a wrong size");
    if (footer_.checksum != checksum({bytes.data(), offsetof(Footer, checksum)})) {
      damaged("the checksum of its footer is wrong");
    }
    if (footer_.file_size != file_size_) damaged("its size is wrong");
    uint64_t end = 0;
    for (int kind = 0; kind < kSectionCount; ++kind) {
      const Section& s = footer_.sections[kind];
      if (s.offset < end || s.size > file_size_ || s.offset > file_size_ - s.size ||
          s.offset + s.size > file_size_ - sizeof(Footer)) {
        damaged(std::string("its ") + kSectionNames[kind] + " section is out of place");
      }
      if (kind != kConstants && s.size > kMaxSmallSection) {
        damaged(std::string("its ") + kSectionNames[kind] + " section is too large");
      }
      end = s.offset + s.size;
    }
    if (footer_.sections[kElf].offset != 0 || footer_.sections[kConstants].offset % kPage != 0) {
      damaged("its sections are not aligned");
    }
  }

  // A section's bytes, their checksum verified.
  std::string section(SectionKind kind) {
    const Section& s = footer_.sections[kind];
    std::string bytes = read(s.offset, s.size);
    if (checksum(bytes) != s.checksum) wrong_checksum(kind);
    return bytes;
  }

  // Verifies a section's checksum without keeping its bytes.
  void check_section(SectionKind kind) {
    const Section& s = footer_.sections[kind];
    constexpr uint64_t kPiece = uint64_t{1} << 20;
    Checksum sum;
    for (uint64_t done = 0; done < s.size;) {
      std::string piece = read(s.offset + done, std::min(kPiece, s.size - done));
      sum.add(piece.data(), piece.size());
      done += piece.size();
    }
    if (sum.value() != s.checksum) wrong_checksum(kind);
  }

  void read_index(ArtifactInfo& info, std::vector<Tensor>& constants) {
    std::string bytes = section(kIndex);
    rest_ = bytes;
    info.arch = string();
    info.compiler_version = string();
    uint64_t features = number();
    for (uint64_t n = 0; n < features; ++n) info.features.push_back(string());
    check_cpu(info);
    std::shared_ptr<void> mapping = map_constants();
    char* base = static_cast<char*>(mapping.get());
    const uint64_t size = footer_.sections[kConstants].size;
    uint64_t count = number();
    uint64_t end = 0;
    for (uint64_t n = 0; n < count; ++n) {
      uint64_t offset = number();
      DType dtype = DType::from_key(static_cast<uint32_t>(number()));
      uint64_t rank = number();
      if (!dtype.valid() || dtype.lanes != 1 || rank > 1024) damaged("a constant is invalid");
      std::vector<int64_t> shape;
      for (uint64_t axis = 0; axis < rank; ++axis) shape.push_back(static_cast<int64_t>(number()));
      uint64_t constant_bytes = constant_size(dtype, shape);
      if (offset % kConstantAlignment != 0 || offset < end || offset > size ||
          constant_bytes > size - offset) {
        damaged("a constant is out of place");
      }
      end = offset + constant_bytes;
      constants.push_back(Tensor::from_external(constant_bytes == 0 ? nullptr : base + offset,
                                                dtype, shape, mapping, /*read_only=*/true));
    }
    if (!rest_.empty()) damaged("its index is too long");
  }

  uint64_t constant_bytes() const { return footer_.sections[kConstants].size; }
  uint64_t elf_bytes() const { return footer_.sections[kElf].size; }

 private:
  void cannot_read(int error) const {
    throw UserError(
        Diagnostic(codes::artifact_io, {}, "cannot read " + name_ + ": " + std::strerror(error)));
  }
  [[noreturn]] void not_an_artifact() const {
    throw UserError(Diagnostic(codes::artifact_corrupt, {},
                               name_ + " is not a Relay artifact, or has been cut short")
                        .expected("a file written by Relay, complete to its last byte")
                        .help("copy it again, or compile the model again"));
  }
  [[noreturn]] void damaged(const std::string& what) const {
    throw UserError(
        Diagnostic(codes::artifact_corrupt, {}, "the artifact " + name_ + " is damaged: " + what)
            .help("copy it again, or compile the model again"));
  }
  [[noreturn]] void wrong_checksum(SectionKind kind) const {
    damaged(std::string("the checksum of its ") + kSectionNames[kind] + " section is wrong");
  }

  std::string read(uint64_t offset, uint64_t size) const {
    std::string bytes(size, '\0');
    for (uint64_t done = 0; done < size;) {
      ssize_t got = pread(fd_, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) cannot_read(errno);
      if (got == 0) damaged("it has become shorter while it was read");
      done += static_cast<uint64_t>(got);
    }
    return bytes;
  }

  uint64_t number() {
    uint64_t value;
    if (rest_.size() < sizeof(value)) damaged("its index is too short");
    std::memcpy(&value, rest_.data(), sizeof(value));
    rest_.remove_prefix(sizeof(value));
    return value;
  }
  std::string string() {
    uint64_t size = number();
    if (size > rest_.size()) damaged("its index is too short");
    std::string text(rest_.substr(0, size));
    rest_.remove_prefix(size);
    return text;
  }

  uint64_t constant_size(DType dtype, const std::vector<int64_t>& shape) const {
    try {
      return static_cast<uint64_t>(checked_num_elements(dtype, shape)) * dtype.bytes();
    } catch (const UserError&) {
      damaged("a constant is invalid");
    }
  }

  void check_cpu(const ArtifactInfo& info) const {
    std::string help = "compile the model on this machine, or with a --target that it supports";
    if (info.arch != host_arch()) {
      throw UserError(
          Diagnostic(codes::artifact_cpu, {}, name_ + " is compiled for another architecture")
              .expected(std::string(host_arch()))
              .found(info.arch)
              .help(help));
    }
    std::string list;
    for (const std::string& feature : missing_features(info.features)) {
      list += (list.empty() ? "" : ", ") + feature;
    }
    if (list.empty()) return;
    throw UserError(Diagnostic(codes::artifact_cpu, {},
                               name_ + " uses instructions that this processor lacks: " + list)
                        .help(help));
  }

  std::shared_ptr<void> map_constants() const {
    const Section& s = footer_.sections[kConstants];
    if (s.size == 0) return nullptr;
    void* memory = mmap(nullptr, s.size, PROT_READ, MAP_PRIVATE, fd_, static_cast<off_t>(s.offset));
    if (memory == MAP_FAILED) cannot_read(errno);
    return std::shared_ptr<void>(memory, [size = s.size](void* p) { munmap(p, size); });
  }

  int fd_;
  std::string name_;
  uint64_t file_size_ = 0;
  Footer footer_{};
  std::string_view rest_;
};

}  // namespace

Artifact Artifact::read(int fd, const std::string& name, bool verify_constants) {
  ArtifactReader reader(fd, name);
  reader.read_footer();
  Artifact artifact;
  std::vector<Tensor> constants;
  reader.read_index(artifact.info, constants);
  artifact.program = read_program(reader.section(kProgram));
  artifact.program.constants = std::move(constants);
  artifact.metadata = reader.section(kMetadata);
  artifact.elf_bytes = reader.elf_bytes();
  reader.check_section(kElf);
  if (verify_constants || reader.constant_bytes() <= kAlwaysVerifiedConstants) {
    reader.check_section(kConstants);
  }
  verify_program(artifact.program);
  return artifact;
}

int open_artifact_file(const std::string& path) {
  auto fail = [&path](const std::string& why) {
    throw UserError(Diagnostic(codes::artifact_io, {},
                               "cannot read '" + escape_for_terminal(path, 300) + "': " + why));
  };
  if (path.find('\0') != std::string::npos) fail("the name holds a zero byte");
  // Without O_NONBLOCK a FIFO would block here.
  int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) fail(std::strerror(errno));
  struct stat status {};
  if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(fd);
    fail("it is not a regular file");
  }
  return fd;
}

}  // namespace relay::runtime
