#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <limits>
#include <mutex>

#include "base/codes/runtime.h"
#include "base/fork.h"
#include "runtime/artifact.h"
#include "runtime/checksum.h"
#include "runtime/core/strings.h"
#include "runtime/cpu.h"
#include "runtime/elf_image.h"
#include "runtime/file_descriptor.h"
#include "runtime/memory.h"
#include "runtime/vm/verify.h"

namespace relay::runtime {

using namespace artifact_format;

namespace {

// Reads until all bytes are read; returns their number, or -1 with errno.
ssize_t read_at(int fd, char* data, uint64_t size, uint64_t offset) {
  uint64_t done = 0;
  while (done < size) {
    ssize_t got = pread(fd, data + done, size - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    done += static_cast<uint64_t>(got);
  }
  return static_cast<ssize_t>(done);
}

// Passes a section to `use` in blocks; false, perhaps with errno, if it cannot be read.
template <typename F>
bool in_pieces(int fd, uint64_t offset, uint64_t size, F&& use) {
  // Of a size that stays in the L2 cache.
  std::vector<char> piece(std::min(size, uint64_t{256} << 10));
  for (uint64_t done = 0; done < size;) {
    uint64_t bytes = std::min<uint64_t>(piece.size(), size - done);
    errno = 0;
    if (read_at(fd, piece.data(), bytes, offset + done) != static_cast<ssize_t>(bytes))
      return false;
    use(piece.data(), bytes);
    done += bytes;
  }
  return true;
}

using Written = ConstantFile::Written;

// File timestamps have ticks of up to 10 ms: a file that was written less than two of them ago may
// be written again without a change of its timestamp.
constexpr int64_t kTicks = 20'000'000;

bool is_recent(const Written& written) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  int64_t age = (now.tv_sec - written.seconds) * 1'000'000'000 + now.tv_nsec - written.nanoseconds;
  return age >= 0 && age < kTicks;
}

// One opened file, or its bytes in memory (fd -1). Everything but a file's large constants is read,
// not mapped, so that a file which shrinks meanwhile gives an error and not a signal.
class ArtifactReader {
 public:
  ArtifactReader(int fd, std::string_view bytes, const std::string& name)
      : fd_(fd), bytes_(bytes), name_("'" + escape_for_terminal(name, 300) + "'") {}

  uint32_t version() const { return footer_.version; }
  // All footers; the last version is the one that is read.
  void read_footers() {
    written_ = fd_ < 0 ? Written{static_cast<int64_t>(bytes_.size()), 0, 0} : Written::now(fd_);
    if (written_.size < 0) cannot_read();
    file_size_ = static_cast<uint64_t>(written_.size);
    // Of what follows, sizes and offsets are those of memory.
    if (file_size_ > uint64_t{std::numeric_limits<ptrdiff_t>::max()}) {
      throw UserError(
          Diagnostic(codes::artifact_io, {}, name_ + " is larger than this machine's address space")
              .expected("at most " + std::to_string(std::numeric_limits<ptrdiff_t>::max()) +
                        " bytes")
              .found(std::to_string(file_size_) + " bytes"));
    }
    if (file_size_ < sizeof(Footer)) not_an_artifact();
    read_footer(file_size_ - sizeof(Footer));
    const uint64_t count = footer_.footer_bytes / sizeof(Footer);
    const uint64_t most = footer_.version < kHasVersions ? 1 : kMostVersions;
    if (footer_.footer_bytes % sizeof(Footer) != 0 || count < 1 || count > most ||
        footer_.footer_bytes > file_size_) {
      damaged("its footer has a wrong size");
    }
    end_ = file_size_ - footer_.footer_bytes;
    const Footer last = footer_;
    footers_.clear();
    for (uint64_t v = 0; v < count; ++v) {
      read_footer(end_ + v * sizeof(Footer));
      if (footer_.version != last.version || footer_.footer_bytes != last.footer_bytes) {
        damaged("its footers belong to different files");
      }
      check_sections();
      footers_.push_back(footer_);
    }
    check_gaps();
  }

  size_t num_versions() const { return footers_.size(); }
  // What is read from now on is of this one.
  void choose(size_t version) { footer_ = footers_[version]; }

  // A section's bytes, their checksum verified.
  std::string section(SectionKind kind) {
    const Section& s = footer_.sections[kind];
    std::string bytes = read(s.offset, s.size);
    if (checksum(bytes) != s.checksum) wrong_checksum(kind);
    return bytes;
  }

  void read_index(ArtifactInfo& info, Digest& id) {
    index_ = section(kIndex);
    rest_ = index_;
    info.arch = string();
    info.compiler_version = string();
    id.low = number();
    id.high = number();
    uint64_t features = number();
    for (uint64_t n = 0; n < features; ++n) info.features.push_back(string());
    constexpr uint32_t kTellsLibraries = 7;
    if (footer_.version < kTellsLibraries) return;
    uint64_t libraries = number();
    for (uint64_t n = 0; n < libraries; ++n) info.libraries.push_back(string());
    constexpr uint32_t kTellsDenormals = 10;
    if (footer_.version < kTellsDenormals) return;
    const uint64_t denormals = number();
    if (denormals > static_cast<uint64_t>(Denormals::keep))
      damaged("its mode for denormals is none");
    info.denormals = static_cast<Denormals>(denormals);
    if (footer_.version >= kHasVersions) info.version = string();
  }

  const std::string& name() const { return name_; }

  // The rest of the index is the table of constants. `base` is their address.
  std::vector<Tensor> constants(const std::shared_ptr<void>& memory) {
    std::vector<Tensor> constants;
    char* base = static_cast<char*>(memory.get());
    const uint64_t size = footer_.sections[kConstants].size;
    uint64_t count = number();
    uint64_t end = 0;
    for (uint64_t n = 0; n < count; ++n) {
      uint64_t offset = number();
      // Versions share constants, which have the order of the first.
      if (footers_.size() > 1) end = 0;
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
      if (dtype.is_string()) {
        std::string_view rest(size == 0 ? "" : base + offset, size - offset);
        auto strings = unpack_strings(shape, rest);
        if (!strings) damaged("a constant of strings is invalid");
        end = size - rest.size();
        constants.push_back(*std::move(strings));
        continue;
      }
      end = offset + constant_bytes;
      constants.push_back(Tensor::from_external(constant_bytes == 0 ? nullptr : base + offset,
                                                dtype, shape, memory, /*read_only=*/true));
    }
    if (!rest_.empty()) damaged("its index is too long");
    return constants;
  }

  // Reads the constants, their checksum verified.
  std::shared_ptr<void> read_constants() const {
    const Section& s = footer_.sections[kConstants];
    if (s.size == 0) return nullptr;
    auto pages = std::make_shared<Pages>(s.size);
    read(pages->data(), s.size, s.offset);
    if (checksum({pages->data(), static_cast<size_t>(s.size)}) != s.checksum)
      wrong_checksum(kConstants);
    mprotect(pages->data(), pages->size(), PROT_READ);
    return std::shared_ptr<void>(pages, pages->data());
  }

  std::shared_ptr<const ConstantFile> map_constants() const {
    const Section& s = footer_.sections[kConstants];
    return std::make_shared<ConstantFile>(fd_, s.offset, s.size, s.checksum, written_);
  }

  void check_constants() const {
    const Section& s = footer_.sections[kConstants];
    Checksum sum;
    if (!in_pieces(fd_, s.offset, s.size,
                   [&](const char* data, uint64_t bytes) { sum.add(data, bytes); })) {
      cannot_read();
    }
    if (sum.value() != s.checksum) wrong_checksum(kConstants);
  }

  bool maps_constants() const { return fd_ >= 0 && constant_bytes() > kReadConstants; }
  // True when a change of the file from now on would not show.
  bool changes_hide() const { return is_recent(written_); }
  uint64_t constant_bytes() const { return footer_.sections[kConstants].size; }

 private:
  static constexpr uint32_t kHasVersions = 14;

  void read_footer(uint64_t at) {
    const std::string bytes = read(at, sizeof(Footer));
    std::memcpy(&footer_, bytes.data(), sizeof(Footer));
    if (std::memcmp(footer_.magic, kMagic, sizeof(footer_.magic)) != 0) not_an_artifact();
    if (footer_.version < kOldestArtifactVersion || footer_.version > kArtifactVersion) {
      other_version();
    }
    if (footer_.checksum != checksum({bytes.data(), offsetof(Footer, checksum)})) {
      damaged("the checksum of its footer is wrong");
    }
    if (footer_.file_size != file_size_) damaged("its size is wrong");
  }

  // The sections of a version are in order, and in the file.
  void check_sections() const {
    uint64_t end = 0;
    for (int kind = 0; kind < kSectionCount; ++kind) {
      const Section& s = footer_.sections[kind];
      if (s.offset < end || s.size > file_size_ || s.offset > file_size_ - s.size ||
          s.offset + s.size > end_) {
        damaged(std::string("its ") + kSectionNames[kind] + " section is out of place");
      }
      if (kind != kConstants && s.size > kMaxSmallSection) {
        damaged(std::string("its ") + kSectionNames[kind] + " section is too large");
      }
      end = s.offset + s.size;
    }
    if (footer_.sections[kElf].offset % kPage != 0 ||
        footer_.sections[kConstants].offset % kPage != 0) {
      damaged("its sections are not aligned");
    }
  }

  // The sections of all versions fill the file. Those of constants may be parts of each other, no others are.
  void check_gaps() const {
    std::vector<std::pair<Section, SectionKind>> all;
    for (const Footer& f : footers_) {
      for (int kind = 0; kind < kSectionCount; ++kind) {
        all.emplace_back(f.sections[kind], static_cast<SectionKind>(kind));
      }
    }
    std::ranges::stable_sort(all, {}, [](const auto& s) {
      return std::pair(s.first.offset, s.first.offset + s.first.size);
    });
    uint64_t end = 0;
    bool constants = false;  // what ends there
    for (const auto& [s, kind] : all) {
      if (s.offset < end && s.size > 0 && !(constants && kind == kConstants)) {
        damaged(std::string("its ") + kSectionNames[kind] + " section is out of place");
      }
      if (s.offset > end) check_gap(end, s.offset);
      if (s.offset + s.size < end || s.size == 0) continue;
      end = s.offset + s.size;
      constants = kind == kConstants;
    }
    check_gap(end, end_);
    if (footers_.front().sections[kElf].offset != 0) damaged("its sections are not aligned");
  }

  // After a read that failed, or that found the end of the file when errno is 0.
  [[noreturn]] void cannot_read() const {
    if (errno == 0) damaged("it has become shorter while it was read");
    throw UserError(
        Diagnostic(codes::artifact_io, {}, "cannot read " + name_ + ": " + std::strerror(errno)));
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
  // The version of Relay that wrote the file follows the architecture, in the index of every
  // format.
  [[noreturn]] void other_version() {
    std::string writer = "another version of Relay";
    const Section& s = footer_.sections[kIndex];
    if (s.size <= kMaxSmallSection && s.offset <= file_size_ && s.size <= file_size_ - s.offset) {
      index_ = section(kIndex);
      rest_ = index_;
      string();
      writer = escape_for_terminal(string(), 100);
    }
    throw UserError(Diagnostic(codes::artifact_version, {},
                               name_ + " has format version " + std::to_string(footer_.version) +
                                   ", written by " + writer)
                        .expected("format version " + std::to_string(kArtifactVersion))
                        .help("compile the model again with this version of Relay, or run it with "
                              "the version that wrote it"));
  }
  // Between the sections there is less than a page, all zero.
  void check_gap(uint64_t begin, uint64_t end) const {
    if (end - begin >= kPage) damaged("its sections are not aligned");
    std::string gap = read(begin, end - begin);
    if (gap.find_first_not_of('\0') != std::string::npos) damaged("a gap is not empty");
  }
  [[noreturn]] void wrong_checksum(SectionKind kind) const {
    damaged(std::string("the checksum of its ") + kSectionNames[kind] + " section is wrong");
  }

  std::string read(uint64_t offset, uint64_t size) const {
    std::string bytes(size, '\0');
    read(bytes.data(), size, offset);
    return bytes;
  }
  // Sizes and offsets are within the file that read_footer has found.
  void read(char* data, uint64_t size, uint64_t offset) const {
    errno = 0;
    if (fd_ < 0) {
      std::memcpy(data, bytes_.data() + offset, size);
    } else if (read_at(fd_, data, size, offset) != static_cast<ssize_t>(size)) {
      cannot_read();
    }
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

  int fd_;
  std::string_view bytes_;
  std::string name_;
  Written written_;
  uint64_t file_size_ = 0;
  uint64_t end_ = 0;  // where the footers begin
  std::vector<Footer> footers_;
  Footer footer_{};  // of the version that is read
  std::string index_;
  std::string_view rest_;  // of the index
};

}  // namespace

// --- Mapped constants --------------------------------------------------------------------------

struct ConstantFile::State {
  int fd = -1;
  uint64_t offset = 0, size = 0, checksum = 0;
  ForkSafeMutex mutex;
  Written known;  // when the constants were verified
};

Written Written::now(int fd) {
  struct stat status {};
  if (fstat(fd, &status) != 0) return {-1, 0, 0};
  return {status.st_size, status.st_mtim.tv_sec, status.st_mtim.tv_nsec};
}

ConstantFile::ConstantFile(int fd, uint64_t offset, uint64_t size, uint64_t checksum,
                           Written written)
    : state_(std::make_unique<State>()) {
  state_->offset = offset;
  state_->size = size;
  state_->checksum = checksum;
  state_->known = written;
  void* memory = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, static_cast<off_t>(offset));
  int copy = memory == MAP_FAILED ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    int error = errno;
    if (memory != MAP_FAILED) munmap(memory, size);
    throw UserError(
        Diagnostic(codes::artifact_io, {},
                   std::string("cannot map the artifact's constants: ") + std::strerror(error)));
  }
  state_->fd = copy;
  memory_ = memory;
}

ConstantFile::~ConstantFile() {
  munmap(memory_, state_->size);
  close(state_->fd);
}

bool ConstantFile::unchanged() const {
  std::lock_guard lock(state_->mutex);
  Written now = Written::now(state_->fd);
  if (now == state_->known) return true;
  Checksum sum;
  if (!in_pieces(state_->fd, state_->offset, state_->size,
                 [&](const char* data, uint64_t bytes) { sum.add(data, bytes); }) ||
      sum.value() != state_->checksum) {
    return false;
  }
  // Touched, or written with the same bytes.
  if (!is_recent(now)) state_->known = now;
  return true;
}

// --- Artifacts ---------------------------------------------------------------------------------

std::string to_string(const Digest& id) {
  char text[33];
  std::snprintf(text, sizeof(text), "%016llx%016llx", static_cast<unsigned long long>(id.high),
                static_cast<unsigned long long>(id.low));
  return text;
}

struct Artifact::Source {
  ArtifactReader reader;
};

namespace {

// "x86-64-v2, x86-64-v3".
std::string version_names(std::span<const ArtifactInfo> versions) {
  std::string out;
  for (const ArtifactInfo& v : versions) {
    out += (out.empty() ? "" : ", ") +
           (v.version.empty() ? "a version without a name" : escape_for_terminal(v.version, 200));
  }
  return out;
}

size_t find_version(std::span<const ArtifactInfo> versions, const std::string& wanted,
                    const std::string& name) {
  auto found = std::ranges::find(versions, wanted, &ArtifactInfo::version);
  if (found != versions.end()) return static_cast<size_t>(found - versions.begin());
  throw UserError(Diagnostic(codes::artifact_no_version, {},
                             name + " has no version '" + escape_for_terminal(wanted, 200) + "'")
                      .expected(version_names(versions))
                      .help("compile the model again with a --target that has this version"));
}

}  // namespace

size_t choose_version(std::span<const ArtifactInfo> versions, const std::string& wanted,
                      const std::string& name) {
  auto refusal = [&](size_t v) {
    const bool several = versions.size() > 1;
    return machine_refuses(
        several ? "version " + escape_for_terminal(versions[v].version, 200) + " of " + name : name,
        versions[v].arch, versions[v].features);
  };
  std::string named = wanted;
  // Of programs whose load cannot be changed. Files without versions have nothing to choose.
  const char* variable = std::getenv("RELAY_CODE_VERSION");
  if (named.empty() && variable != nullptr && versions.size() > 1) named = variable;
  if (!named.empty()) {
    const size_t v = find_version(versions, named, name);
    if (auto refused = refusal(v)) throw UserError(*refused);
    return v;
  }
  for (size_t v = versions.size(); v-- > 0;) {
    if (!refusal(v)) return v;
  }
  Diagnostic none = *refusal(0);
  if (versions.size() > 1 && versions[0].arch == host_arch())
    none.expected("a machine for one of " + version_names(versions));
  throw UserError(none);
}

Artifact Artifact::read(int fd, const std::string& name, bool for_this_machine,
                        const std::string& version) {
  return read(open({ArtifactReader(fd, {}, name)}), for_this_machine, version);
}

Artifact Artifact::from_bytes(std::string_view bytes, const std::string& name,
                              const std::string& version) {
  return read(open({ArtifactReader(-1, bytes, name)}), /*for_this_machine=*/true, version);
}

std::vector<Artifact> Artifact::read_versions(int fd, const std::string& name) {
  const Source source = open({ArtifactReader(fd, {}, name)});
  std::vector<Artifact> out;
  for (size_t v = 0; v < source.reader.num_versions(); ++v) out.push_back(read(source, v));
  return out;
}

Artifact::Source Artifact::open(Source source) {
  ArtifactReader& reader = source.reader;
  reader.read_footers();
  // For a file that is to be mapped, its content at the time of reading must be known.
  for (int round = 0; round < 5 && reader.maps_constants() && reader.changes_hide(); ++round) {
    timespec ticks{0, kTicks};
    nanosleep(&ticks, nullptr);
    reader.read_footers();
  }
  return source;
}

Artifact Artifact::read(Source source, bool for_this_machine, const std::string& version) {
  std::vector<ArtifactInfo> all(source.reader.num_versions());
  for (size_t v = 0; v < all.size(); ++v) {
    Digest id;
    source.reader.choose(v);
    source.reader.read_index(all[v], id);
  }
  const std::string& name = source.reader.name();
  size_t chosen = all.size() - 1;
  if (for_this_machine || !version.empty()) {
    chosen =
        for_this_machine ? choose_version(all, version, name) : find_version(all, version, name);
  }
  return read(std::move(source), chosen);
}

Artifact Artifact::read(Source source, size_t version) {
  Artifact artifact;
  artifact.source_ = std::make_shared<Source>(std::move(source));
  ArtifactReader& reader = artifact.source_->reader;
  reader.choose(version);
  reader.read_index(artifact.info, artifact.id);
  artifact.program = read_program(reader.section(kProgram), reader.version());
  artifact.metadata = reader.section(kMetadata);
  artifact.elf = reader.section(kElf);
  return artifact;
}

void Artifact::load_constants(bool verify) {
  ArtifactReader& reader = source_->reader;
  std::shared_ptr<void> memory;
  if (reader.maps_constants()) {
    constant_file = reader.map_constants();
    if (verify || reader.constant_bytes() <= kAlwaysVerifiedConstants) reader.check_constants();
    memory = std::shared_ptr<void>(constant_file, constant_file->memory());
  } else {
    memory = reader.read_constants();
  }
  program.constants = reader.constants(memory);
  verify_program(program);
  source_.reset();
}

std::vector<Artifact> check_artifact(const std::string& path) {
  FileDescriptor file(open_artifact_file(path));
  return check_artifact(file.get(), path);
}

std::vector<Artifact> check_artifact(int fd, const std::string& name) {
  std::vector<Artifact> all = Artifact::read_versions(fd, name);
  for (Artifact& artifact : all) {
    artifact.load_constants(/*verify=*/true);
    relay_artifact_descriptor_t descriptor;
    auto place = ElfFile(artifact.elf).find(RELAY_DESCRIPTOR_SYMBOL, sizeof(descriptor));
    if (place) std::memcpy(&descriptor, artifact.elf.data() + place->offset, sizeof(descriptor));
    check_descriptor(place ? &descriptor : nullptr, artifact.program.num_generated_kernels(),
                     artifact.id);
    relay_native_descriptor_t natives;
    auto native = ElfFile(artifact.elf).find(RELAY_NATIVE_DESCRIPTOR_SYMBOL, sizeof(natives));
    if (native) std::memcpy(&natives, artifact.elf.data() + native->offset, sizeof(natives));
    check_native_descriptor(native ? &natives : nullptr, artifact.program.num_native_functions());
  }
  return all;
}

void check_descriptor(const relay_artifact_descriptor_t* descriptor, size_t num_kernels,
                      const Digest& id) {
  auto damaged = [](std::string what) {
    return Diagnostic(codes::artifact_corrupt, {}, std::move(what));
  };
  if (descriptor == nullptr || descriptor->magic != RELAY_DESCRIPTOR_MAGIC) {
    throw UserError(damaged("the artifact's code does not describe its kernels"));
  }
  if (descriptor->abi_version != RELAY_KERNEL_ABI_VERSION) {
    throw UserError(Diagnostic(codes::artifact_version, {},
                               "the artifact's kernels have interface version " +
                                   std::to_string(descriptor->abi_version))
                        .expected(std::to_string(RELAY_KERNEL_ABI_VERSION))
                        .help("compile the model again with this version of Relay"));
  }
  if (descriptor->num_kernels != num_kernels) {
    throw UserError(
        damaged("the artifact's code has " + std::to_string(descriptor->num_kernels) + " kernels")
            .expected(std::to_string(num_kernels)));
  }
  const Digest found{descriptor->id[0], descriptor->id[1]};
  if (found != id) {
    throw UserError(damaged("the artifact's code belongs to another artifact")
                        .expected("id " + to_string(id))
                        .found("id " + to_string(found)));
  }
}

void check_native_descriptor(const relay_native_descriptor_t* descriptor, size_t num_functions) {
  if (descriptor == nullptr && num_functions == 0) return;
  if (descriptor == nullptr || descriptor->magic != RELAY_NATIVE_DESCRIPTOR_MAGIC) {
    throw UserError(Diagnostic(codes::artifact_corrupt, {},
                               "the artifact's code does not describe its native functions"));
  }
  if (descriptor->abi_version != RELAY_NATIVE_ABI_VERSION) {
    throw UserError(Diagnostic(codes::artifact_version, {},
                               "the artifact's native functions have interface version " +
                                   std::to_string(descriptor->abi_version))
                        .expected(std::to_string(RELAY_NATIVE_ABI_VERSION))
                        .help("compile the model again with this version of Relay"));
  }
  if (descriptor->num_functions != num_functions) {
    throw UserError(Diagnostic(codes::artifact_corrupt, {},
                               "the artifact's code has " +
                                   std::to_string(descriptor->num_functions) + " native functions")
                        .expected(std::to_string(num_functions)));
  }
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
