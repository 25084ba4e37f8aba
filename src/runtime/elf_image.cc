#include "runtime/elf_image.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>

#include "base/codes/runtime.h"
#include "runtime/cpu.h"
#include "runtime/elf_records.h"
#include "runtime/file_descriptor.h"
#include "runtime/system_symbols.h"

namespace relay::runtime {

namespace {

constexpr uint64_t kMaxSpan = uint64_t{1} << 31;

[[noreturn]] void damaged(const std::string& what) {
  throw UserError(
      Diagnostic(codes::artifact_corrupt, {}, "the artifact's code is unusable: " + what)
          .help("compile the model again"));
}

[[noreturn]] void refused(const std::string& what) {
  throw UserError(
      Diagnostic(codes::artifact_io, {},
                 "cannot load the artifact's kernels: " + what + ": " + std::strerror(errno))
          .help("the process needs memory that it may execute"));
}

uint64_t page() {
  static const auto bytes = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}
uint64_t round_down(uint64_t value) { return value / page() * page(); }
uint64_t round_up(uint64_t value) { return round_down(value + page() - 1); }

// Replaces pages that may not become executable because they were written, as hardened services and
// systems require, by a mapping of a file with the same bytes. False with errno if that is refused too.
bool map_executable(char* begin, uint64_t size) {
  FileDescriptor file(memfd_create("relay-kernels", MFD_CLOEXEC));
  if (file.get() < 0) return false;
  for (uint64_t done = 0; done < size;) {
    ssize_t written = write(file.get(), begin + done, size - done);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    done += static_cast<uint64_t>(written);
  }
  return mmap(begin, size, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file.get(), 0) !=
         MAP_FAILED;
}

}  // namespace

ElfFile::ElfFile(std::string_view bytes) : bytes_(bytes) {
  read_segments();
  read_dynamic();
}

void ElfFile::read_segments() {
  if (bytes_.size() < sizeof(Elf64_Ehdr)) damaged("it is too short");
  is_wide_ = bytes_[EI_CLASS] == ELFCLASS64;
  const auto header = records_at<Elf32_Ehdr, Elf64_Ehdr>(0, 1)[0];
  const size_t entry = is_wide_ ? sizeof(Elf64_Phdr) : sizeof(Elf32_Phdr);
  if (std::memcmp(bytes_.data(), ELFMAG, SELFMAG) != 0 ||
      (!is_wide_ && bytes_[EI_CLASS] != ELFCLASS32) || bytes_[EI_DATA] != ELFDATA2LSB ||
      header.e_type != ET_DYN || header.e_phentsize != entry) {
    damaged("it is not a shared object");
  }
  machine_ = header.e_machine;
  if (header.e_phoff > bytes_.size() || header.e_phnum > (bytes_.size() - header.e_phoff) / entry) {
    damaged("its table of segments is out of place");
  }
  for (const Elf64_Phdr& segment :
       records_at<Elf32_Phdr, Elf64_Phdr>(header.e_phoff, header.e_phnum)) {
    if (segment.p_vaddr > kMaxSpan || segment.p_memsz > kMaxSpan) damaged("it is too large");
    if (segment.p_type == PT_TLS) damaged("it has thread-local data");
    if (segment.p_type == PT_DYNAMIC) dynamic_ = segment;
    if (segment.p_type == PT_GNU_RELRO) constant_after_relocation_ = segment;
    if (segment.p_type != PT_LOAD) continue;
    bool apart = segment.p_vaddr >= span_;
    if (segment.p_filesz > segment.p_memsz || segment.p_offset > bytes_.size() ||
        segment.p_filesz > bytes_.size() - segment.p_offset || !apart ||
        ((segment.p_flags & PF_W) != 0 && (segment.p_flags & PF_X) != 0)) {
      damaged("a segment is out of place");
    }
    segments_.push_back(segment);
    span_ = round_up(segment.p_vaddr + segment.p_memsz);
  }
  const Elf64_Phdr& relro = constant_after_relocation_;
  if (segments_.empty() || relro.p_vaddr + relro.p_memsz > span_) {
    damaged("it has no memory, or too little");
  }
}

void ElfFile::read_dynamic() {
  uint64_t symbols = 0, hash = 0, strings = 0, string_bytes = 0;
  uint64_t relocations = 0, relocation_bytes = 0, plt = 0, plt_bytes = 0;
  for (const Elf64_Dyn& entry :
       records<Elf32_Dyn, Elf64_Dyn>(dynamic_.p_vaddr, dynamic_.p_filesz)) {
    const uint64_t value = entry.d_un.d_val;
    if (entry.d_tag == DT_NULL) break;
    switch (entry.d_tag) {
      case DT_SYMTAB:
        symbols = value;
        break;
      case DT_HASH:
        hash = value;
        break;
      case DT_STRTAB:
        strings = value;
        break;
      case DT_STRSZ:
        string_bytes = value;
        break;
      case DT_RELA:
      case DT_REL:
        if ((entry.d_tag == DT_RELA) != is_wide_) damaged("its relocations have another form");
        relocations = value;
        break;
      case DT_RELASZ:
      case DT_RELSZ:
        relocation_bytes = value;
        break;
      case DT_JMPREL:
        plt = value;
        break;
      case DT_PLTRELSZ:
        plt_bytes = value;
        break;
      case DT_INIT:
      case DT_INIT_ARRAY:
      case DT_FINI:
      case DT_FINI_ARRAY:
      case DT_TEXTREL:
        damaged("it is not code of kernels");
      default:
        break;
    }
  }
  if (hash == 0 || symbols == 0 || strings == 0) damaged("it has no table of names");
  // The second word of the hash table is the number of symbols.
  const uint64_t count = table<uint32_t>(hash, 2 * sizeof(uint32_t))[1];
  symbols_ = records<Elf32_Sym, Elf64_Sym>(
      symbols, count * (is_wide_ ? sizeof(Elf64_Sym) : sizeof(Elf32_Sym)));
  strings_ = bytes_.substr(offset(strings, string_bytes), string_bytes);
  if (strings_.empty() || strings_.back() != '\0') damaged("its names have no end");
  relocations_ = records<Elf32_Rel, Elf64_Rela>(relocations, relocation_bytes);
  std::vector<Elf64_Rela> more = records<Elf32_Rel, Elf64_Rela>(plt, plt_bytes);
  relocations_.insert(relocations_.end(), more.begin(), more.end());
}

uint64_t ElfFile::offset(uint64_t address, uint64_t size) const {
  for (const Elf64_Phdr& s : segments_) {
    if (address >= s.p_vaddr && address - s.p_vaddr <= s.p_filesz &&
        size <= s.p_filesz - (address - s.p_vaddr)) {
      return s.p_offset + (address - s.p_vaddr);
    }
  }
  damaged("a table is out of place");
}

template <typename Narrow, typename Wide>
std::vector<Wide> ElfFile::records_at(uint64_t offset, size_t count) const {
  std::vector<Wide> out(count);
  for (size_t n = 0; n < count; ++n) {
    if (is_wide_) {
      std::memcpy(&out[n], bytes_.data() + offset + n * sizeof(Wide), sizeof(Wide));
    } else {
      Narrow record;
      std::memcpy(&record, bytes_.data() + offset + n * sizeof(Narrow), sizeof(Narrow));
      out[n] = wide(record);
    }
  }
  return out;
}

template <typename Narrow, typename Wide>
std::vector<Wide> ElfFile::records(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return {};
  return records_at<Narrow, Wide>(offset(address, bytes),
                                  bytes / (is_wide_ ? sizeof(Wide) : sizeof(Narrow)));
}

template <typename T>
std::vector<T> ElfFile::table(uint64_t address, uint64_t bytes) const {
  if (bytes == 0) return {};
  const char* begin = bytes_.data() + offset(address, bytes);
  std::vector<T> out(bytes / sizeof(T));
  std::memcpy(out.data(), begin, out.size() * sizeof(T));
  return out;
}

std::string_view ElfFile::name(const Elf64_Sym& symbol) const {
  if (symbol.st_name >= strings_.size()) damaged("a name is out of place");
  return strings_.data() + symbol.st_name;
}

std::optional<ElfFile::Place> ElfFile::find(std::string_view symbol, uint64_t size) const {
  for (const Elf64_Sym& s : symbols_) {
    if (s.st_shndx != SHN_UNDEF && ELF64_ST_TYPE(s.st_info) == STT_OBJECT && s.st_size >= size &&
        name(s) == symbol) {
      return Place{s.st_value, offset(s.st_value, size)};
    }
  }
  return std::nullopt;
}

ElfImage::ElfImage(const ElfFile& file) : span_(file.span_) {
  if (file.machine_ != host_code_form().machine || file.is_wide_ != (sizeof(void*) == 8)) {
    damaged("it is for another architecture");
  }
  void* memory = mmap(nullptr, span_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) refused("no memory of " + std::to_string(span_) + " bytes");
  base_ = static_cast<char*>(memory);
  try {
    copy_segments(file);
    relocate(file);
    protect(file);
  } catch (...) {
    munmap(base_, span_);
    throw;
  }
}

ElfImage::~ElfImage() { munmap(base_, span_); }

void ElfImage::copy_segments(const ElfFile& file) {
  for (const Elf64_Phdr& s : file.segments_) {
    std::memcpy(base_ + s.p_vaddr, file.bytes_.data() + s.p_offset, s.p_filesz);
  }
}

void ElfImage::relocate(const ElfFile& file) {
  const CodeForm& code = host_code_form();
  for (const Elf64_Rela& r : file.relocations_) {
    const uint32_t type = ELF64_R_TYPE(r.r_info), index = ELF64_R_SYM(r.r_info);
    if (r.r_offset > span_ - sizeof(uintptr_t)) damaged("a relocation is out of place");
    auto offset = static_cast<uintptr_t>(r.r_addend);
    if (!file.is_wide_ && (type == code.relative || type == code.words[0]))
      std::memcpy(&offset, base_ + r.r_offset, sizeof(offset));
    uintptr_t word = reinterpret_cast<uintptr_t>(base_) + offset;
    if (type != code.relative) {
      if (std::ranges::find(code.words, type) == std::end(code.words))
        damaged("an unknown relocation");
      if (index >= file.symbols_.size()) damaged("a relocation is out of place");
      const Elf64_Sym& symbol = file.symbols_[index];
      if (symbol.st_shndx != SHN_UNDEF) {
        word += static_cast<uintptr_t>(symbol.st_value);
      } else {
        const std::string name(file.name(symbol));
        void* found = system_symbol(name);
        if (found == nullptr && ELF64_ST_BIND(symbol.st_info) != STB_WEAK) {
          damaged("it needs '" + escape_for_terminal(name, 100) +
                  "', which the C and mathematics libraries do not have");
        }
        word = found == nullptr ? 0 : reinterpret_cast<uintptr_t>(found) + offset;
      }
    }
    std::memcpy(base_ + r.r_offset, &word, sizeof(word));
  }
}

void ElfImage::protect(const ElfFile& file) const {
  // Processors that do not do so themselves read what was written as instructions from here on.
  __builtin___clear_cache(base_, base_ + span_);
  auto set = [&](uint64_t begin, uint64_t end, int protection) {
    if (mprotect(base_ + begin, end - begin, protection) == 0) return;
    if ((protection & PROT_EXEC) == 0 || !map_executable(base_ + begin, end - begin)) {
      refused("no executable memory");
    }
  };
  // Pages between the segments are never touched.
  uint64_t end = 0;
  for (const Elf64_Phdr& s : file.segments_) {
    const uint64_t begin = round_down(s.p_vaddr);
    if (begin > end) set(end, begin, PROT_NONE);
    end = round_up(s.p_vaddr + s.p_memsz);
    set(begin, end,
        PROT_READ | ((s.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
            ((s.p_flags & PF_X) != 0 ? PROT_EXEC : 0));
  }
  const Elf64_Phdr& relro = file.constant_after_relocation_;
  const uint64_t last = round_down(relro.p_vaddr + relro.p_memsz);
  if (relro.p_memsz > 0 && last > round_down(relro.p_vaddr)) {
    set(round_down(relro.p_vaddr), last, PROT_READ);
  }
}

}  // namespace relay::runtime
