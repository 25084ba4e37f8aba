#include <cstring>
#include <functional>

#include "runtime/artifact.h"
#include "runtime/checksum.h"
#include "runtime/core/strings.h"
#include "runtime/elf_image.h"
#include "runtime/temporary_file.h"

namespace relay::runtime {

using namespace artifact_format;

namespace {

using Sink = std::function<void(const void* data, size_t size)>;

// Passes bytes to a sink, counts them, and sums the current section's.
class SectionWriter {
 public:
  explicit SectionWriter(Sink sink) : sink_(std::move(sink)) {}

  void align(uint64_t unit) {
    static constexpr char zeros[kPage] = {};
    uint64_t gap = (unit - offset_ % unit) % unit;
    put(zeros, gap);
  }
  void begin() {
    begin_ = offset_;
    sum_ = std::make_unique<Checksum>();
  }
  // Of a section that is summed already.
  void begin_summed() { begin_ = offset_; }
  Section end_summed(uint64_t checksum) const { return {begin_, offset_ - begin_, checksum}; }
  void put(const void* data, uint64_t size) {
    if (size == 0) return;
    sink_(data, size);
    if (sum_ != nullptr) sum_->add(data, size);
    offset_ += size;
  }
  Section end() {
    Section section{begin_, offset_ - begin_, sum_->value()};
    sum_.reset();
    return section;
  }
  uint64_t offset() const { return offset_; }

 private:
  Sink sink_;
  uint64_t offset_ = 0;
  uint64_t begin_ = 0;
  std::unique_ptr<Checksum> sum_;
};

void put_number(std::string& out, uint64_t value) {
  out.append(reinterpret_cast<const char*>(&value), sizeof(value));
}
void put_string(std::string& out, std::string_view text) {
  put_number(out, text.size());
  out += text;
}

// The bytes of a constant in the file; `packed` is a buffer for them.
std::string_view bytes_of(const Tensor& constant, std::string& packed) {
  if (!constant.dtype().is_string()) return {constant.data<char>(), constant.byte_size()};
  packed = pack_strings(constant);
  return packed;
}

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

std::string index_bytes(const ArtifactContents& contents, const Digest& id) {
  std::string out;
  put_string(out, contents.info.arch);
  put_string(out, contents.info.compiler_version);
  put_number(out, id.low);
  put_number(out, id.high);
  put_number(out, contents.info.features.size());
  for (const std::string& feature : contents.info.features) put_string(out, feature);
  put_number(out, contents.info.libraries.size());
  for (const std::string& library : contents.info.libraries) put_string(out, library);
  put_number(out, static_cast<uint64_t>(contents.info.denormals));
  put_number(out, contents.program->constants.size());
  uint64_t offset = 0;
  std::string packed;
  for (const Tensor& constant : contents.program->constants) {
    put_number(out, offset);
    put_number(out, constant.dtype().key());
    put_number(out, constant.shape().size());
    for (int64_t dim : constant.shape()) put_number(out, static_cast<uint64_t>(dim));
    offset = round_up(offset + bytes_of(constant, packed).size(), kConstantAlignment);
  }
  return out;
}

// Passes the section of constants to `put` in parts: each after a gap of zeros that aligns it. They
// are most of an artifact, so all consumers of their bytes share one walk.
void each_of_constants(const ArtifactContents& contents,
                       const std::function<void(std::string_view)>& put) {
  static constexpr char zeros[kConstantAlignment] = {};
  std::string packed;
  uint64_t size = 0;
  for (const Tensor& constant : contents.program->constants) {
    const uint64_t begin = round_up(size, kConstantAlignment);
    put({zeros, begin - size});
    const std::string_view bytes = bytes_of(constant, packed);
    put(bytes);
    size = begin + bytes.size();
  }
}

// The digest of all contents of the artifact, with zeros in place of the digest itself.
Digest id_of(const ArtifactContents& contents, const std::string& program,
             const Digest& constants) {
  Checksum id;
  auto add = [&id](std::string_view bytes) {
    const uint64_t size = bytes.size();
    id.add(&size, sizeof(size));
    id.add(bytes.data(), bytes.size());
  };
  add(contents.elf);
  add(index_bytes(contents, {}));
  add(program);
  add(contents.metadata);
  id.add(&constants.low, sizeof(constants.low));
  id.add(&constants.high, sizeof(constants.high));
  return id.digest();
}

// The code with the id in its descriptor. Where there is none there is nothing to load.
std::string with_id(std::string_view elf, const Digest& id) {
  std::string out(elf);
  if (out.empty()) return out;
  if (auto place =
          ElfFile(out).find(RELAY_DESCRIPTOR_SYMBOL, sizeof(relay_artifact_descriptor_t))) {
    const uint64_t words[2] = {id.low, id.high};
    std::memcpy(out.data() + place->offset + offsetof(relay_artifact_descriptor_t, id), words,
                sizeof(words));
  }
  return out;
}

void emit(const ArtifactContents& contents, const Sink& sink) {
  const std::string program = write_program(*contents.program);
  Checksum constants;
  each_of_constants(contents,
                    [&](std::string_view bytes) { constants.add(bytes.data(), bytes.size()); });
  const Digest id = id_of(contents, program, constants.digest());
  Footer footer{};
  SectionWriter writer(sink);
  auto section = [&](SectionKind kind, uint64_t alignment, std::string_view bytes) {
    writer.align(alignment);
    writer.begin();
    writer.put(bytes.data(), bytes.size());
    footer.sections[kind] = writer.end();
  };
  section(kElf, kPage, with_id(contents.elf, id));
  writer.align(kPage);
  writer.begin_summed();
  each_of_constants(contents,
                    [&](std::string_view bytes) { writer.put(bytes.data(), bytes.size()); });
  footer.sections[kConstants] = writer.end_summed(constants.value());
  section(kIndex, kConstantAlignment, index_bytes(contents, id));
  section(kProgram, kConstantAlignment, program);
  section(kMetadata, kConstantAlignment, contents.metadata);
  writer.align(kConstantAlignment);
  footer.version = kArtifactVersion;
  footer.footer_bytes = sizeof(Footer);
  footer.file_size = writer.offset() + sizeof(Footer);
  footer.checksum = checksum({reinterpret_cast<const char*>(&footer), offsetof(Footer, checksum)});
  std::memcpy(footer.magic, kMagic, sizeof(footer.magic));
  writer.put(&footer, sizeof(footer));
}

}  // namespace

std::string write_artifact(const ArtifactContents& contents) {
  std::string out;
  emit(contents,
       [&out](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  return out;
}

void write_artifact_file(const ArtifactContents& contents, const std::string& path,
                         bool overwrite) {
  TemporaryFile file(path);
  emit(contents, [&file](const void* data, size_t size) { file.write(data, size); });
  file.rename_to_target(overwrite);
}

}  // namespace relay::runtime
