#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <functional>
#include <numeric>
#include <unordered_map>
#include <vector>

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
  void put(const void* data, uint64_t size) {
    if (sum_ != nullptr && size > 0) sum_->add(data, size);
    put_unsummed(data, size);
  }
  void put_unsummed(const void* data, uint64_t size) {
    if (size == 0) return;
    sink_(data, size);
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

// The bytes of a constant in the file; `packed` keeps those that are made for it.
std::string_view bytes_of(const Tensor& constant, std::deque<std::string>& packed) {
  if (!constant.dtype().is_string()) return {constant.data<char>(), constant.byte_size()};
  return packed.emplace_back(pack_strings(constant));
}

uint64_t round_up(uint64_t value, uint64_t unit) { return (value + unit - 1) / unit * unit; }

// `offsets`: of the constants in the section of their version.
std::string index_bytes(const ArtifactContents& contents, const Digest& id,
                        std::span<const uint64_t> offsets) {
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
  put_string(out, contents.info.version);
  const std::vector<Tensor>& constants = contents.program->constants;
  put_number(out, constants.size());
  for (size_t i = 0; i < constants.size(); ++i) {
    put_number(out, offsets[i]);
    put_number(out, constants[i].dtype().key());
    put_number(out, constants[i].shape().size());
    for (int64_t dim : constants[i].shape()) put_number(out, static_cast<uint64_t>(dim));
  }
  return out;
}

// The constants of all versions as the file holds them, each once. Constants of one version stay apart from each other
// though they are equal, so that an artifact of one version lies as its program does.
class ConstantPool {
 public:
  explicit ConstantPool(std::span<const ArtifactContents> versions) {
    for (const ArtifactContents& v : versions) add(v);
    // Those of the last version only, those that it shares, and the others: what it needs lies together.
    const uint32_t last = uint32_t{1} << (versions.size() - 1);
    order_.resize(entries_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    auto place = [&](size_t i) {
      const uint32_t users = entries_[i].users;
      if (users == last) return 0;
      if ((users & last) != 0) return 1;
      return std::popcount(users) > 1 ? 2 : 3 + std::countl_zero(users);
    };
    std::ranges::stable_sort(order_, {}, place);
    for (size_t i : order_) {
      entries_[i].offset = round_up(size_, kConstantAlignment);
      size_ = entries_[i].offset + entries_[i].bytes.size();
    }
  }

  // Where the constants of a version lie: a range of the pool that begins at a page, and their offsets in it.
  struct Range {
    uint64_t begin = 0, end = 0;
    std::vector<uint64_t> offsets;
  };
  Range range_of(size_t version) const {
    Range out;
    if (places_[version].empty()) return out;
    out.begin = size_;
    for (size_t i : places_[version]) {
      out.begin = std::min(out.begin, entries_[i].offset);
      out.end = std::max(out.end, entries_[i].offset + entries_[i].bytes.size());
    }
    out.begin = out.begin / kPage * kPage;
    for (size_t i : places_[version]) out.offsets.push_back(entries_[i].offset - out.begin);
    return out;
  }

  // Passes the part [begin, end) of the pool to `put` in pieces, with zeros between the constants.
  void each(uint64_t begin, uint64_t end, const std::function<void(std::string_view)>& put) const {
    static constexpr char zeros[kConstantAlignment] = {};
    auto clipped = [&](uint64_t at, std::string_view bytes) {
      const uint64_t from = std::max(at, begin), to = std::min(at + bytes.size(), end);
      if (from < to) put(bytes.substr(from - at, to - from));
    };
    uint64_t at = 0;
    for (size_t i : order_) {
      const Entry& e = entries_[i];
      clipped(at, {zeros, static_cast<size_t>(e.offset - at)});
      clipped(e.offset, e.bytes);
      at = e.offset + e.bytes.size();
    }
  }
  uint64_t size() const { return size_; }

  // What the constants of a version are, wherever they lie.
  Digest digest_of(size_t version) const {
    Checksum sum;
    for (size_t i : places_[version]) {
      const uint64_t size = entries_[i].bytes.size();
      sum.add(&size, sizeof(size));
      sum.add(entries_[i].bytes.data(), size);
    }
    return sum.digest();
  }

 private:
  struct Entry {
    std::string_view bytes;
    uint32_t users = 0;  // a bit for each version
    uint64_t offset = 0;
  };

  void add(const ArtifactContents& contents) {
    const uint32_t user = uint32_t{1} << places_.size();
    std::vector<size_t>& places = places_.emplace_back();
    // Entries of a sum before this one are used by this version.
    std::unordered_map<uint64_t, size_t> unused_from;
    for (const Tensor& constant : contents.program->constants) {
      const std::string_view bytes = bytes_of(constant, packed_);
      const uint64_t sum = checksum(bytes);
      std::vector<size_t>& equal = by_sum_[sum];
      size_t& from = unused_from[sum];
      auto used = [&](size_t entry) { return (entries_[entry].users & user) != 0; };
      while (from < equal.size() && used(equal[from])) ++from;
      const auto found = std::find_if(
          equal.begin() + static_cast<ptrdiff_t>(from), equal.end(),
          [&](size_t entry) { return !used(entry) && entries_[entry].bytes == bytes; });
      if (found == equal.end()) {
        places.push_back(entries_.size());
        equal.push_back(entries_.size());
        entries_.push_back({bytes, user, 0});
      } else {
        places.push_back(*found);
        entries_[*found].users |= user;
      }
    }
  }

  std::deque<std::string> packed_;
  std::vector<Entry> entries_;
  std::vector<size_t> order_;                // of the entries in the file
  std::vector<std::vector<size_t>> places_;  // entries of each version, in the order of its program
  // Entries by the checksum of their bytes.
  std::unordered_map<uint64_t, std::vector<size_t>> by_sum_;
  uint64_t size_ = 0;
};

// The digest of all contents of a version, with zeros in place of the digest itself.
Digest id_of(const ArtifactContents& contents, const std::string& program, const std::string& index,
             const Digest& constants) {
  Checksum id;
  auto add = [&id](std::string_view bytes) {
    const uint64_t size = bytes.size();
    id.add(&size, sizeof(size));
    id.add(bytes.data(), bytes.size());
  };
  add(contents.elf);
  add(index);
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

// What of a version is made before the file is written.
struct Prepared {
  std::string program;
  ConstantPool::Range constants;
  Digest id;
  Footer footer{};
};

void emit(std::span<const ArtifactContents> versions, const Sink& sink) {
  RELAY_CHECK(!versions.empty() && versions.size() <= kMostVersions);
  const ConstantPool pool(versions);
  std::vector<Prepared> all(versions.size());
  for (size_t v = 0; v < versions.size(); ++v) {
    Prepared& p = all[v];
    p.program = write_program(*versions[v].program);
    p.constants = pool.range_of(v);
    p.id = id_of(versions[v], p.program, index_bytes(versions[v], {}, p.constants.offsets),
                 pool.digest_of(v));
  }
  SectionWriter writer(sink);
  auto section = [&](Prepared& p, SectionKind kind, uint64_t alignment, std::string_view bytes) {
    writer.align(alignment);
    writer.begin();
    writer.put(bytes.data(), bytes.size());
    p.footer.sections[kind] = writer.end();
  };
  for (size_t v = 0; v < versions.size(); ++v) {
    section(all[v], kElf, kPage, with_id(versions[v].elf, all[v].id));
  }
  writer.align(kPage);
  const uint64_t begin = writer.offset();
  pool.each(0, pool.size(),
            [&](std::string_view bytes) { writer.put_unsummed(bytes.data(), bytes.size()); });
  for (Prepared& p : all) {
    Checksum sum;
    pool.each(p.constants.begin, p.constants.end,
              [&](std::string_view bytes) { sum.add(bytes.data(), bytes.size()); });
    p.footer.sections[kConstants] = {begin + p.constants.begin, p.constants.end - p.constants.begin,
                                     sum.value()};
  }
  for (size_t v = 0; v < versions.size(); ++v) {
    section(all[v], kIndex, kConstantAlignment,
            index_bytes(versions[v], all[v].id, all[v].constants.offsets));
    section(all[v], kProgram, kConstantAlignment, all[v].program);
    section(all[v], kMetadata, kConstantAlignment, versions[v].metadata);
  }
  writer.align(kConstantAlignment);
  const uint64_t footer_bytes = versions.size() * sizeof(Footer);
  const uint64_t file_size = writer.offset() + footer_bytes;
  for (Prepared& p : all) {
    p.footer.version = kArtifactVersion;
    p.footer.footer_bytes = static_cast<uint32_t>(footer_bytes);
    p.footer.file_size = file_size;
    p.footer.checksum =
        checksum({reinterpret_cast<const char*>(&p.footer), offsetof(Footer, checksum)});
    std::memcpy(p.footer.magic, kMagic, sizeof(p.footer.magic));
    writer.put_unsummed(&p.footer, sizeof(Footer));
  }
}

}  // namespace

std::string write_artifact(std::span<const ArtifactContents> versions) {
  std::string out;
  emit(versions,
       [&out](const void* data, size_t size) { out.append(static_cast<const char*>(data), size); });
  return out;
}

std::string write_artifact(const ArtifactContents& contents) {
  return write_artifact(std::span(&contents, 1));
}

void write_artifact_file(std::span<const ArtifactContents> versions, const std::string& path,
                         bool overwrite) {
  TemporaryFile file(path);
  emit(versions, [&file](const void* data, size_t size) { file.write(data, size); });
  file.rename_to_target(overwrite);
}

void write_artifact_file(const ArtifactContents& contents, const std::string& path,
                         bool overwrite) {
  write_artifact_file(std::span(&contents, 1), path, overwrite);
}

}  // namespace relay::runtime
