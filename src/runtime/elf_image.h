// The machine code of kernels: an ELF shared object, mapped by Relay itself.
//
//   ElfFile file(bytes);                                    // checked
//   auto place = file.find("relay_artifact_descriptor", sizeof(relay_artifact_descriptor_t));
//   ElfImage image(file);                                   // mapped, relocated, executable
//   const void* descriptor = image.at(place->address);
//
// The dynamic loader knows an object by its names and by its file: one file under several names, or
// one name (such as /proc/self/fd/5) for several files in turn, can give another object's code. An
// image that is mapped here has no name. Its bytes are copied into memory of its own, so that it
// does not matter what becomes of the file, and neither /proc nor a temporary folder is needed.
//
// What is supported is what the linker makes of kernels: no code that runs at loading, no
// thread-local data, no names from outside but those of the C and mathematics libraries. Anything
// else, and everything that is out of bounds, is UserError E0608.
#pragma once

#include <elf.h>

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace relay::runtime {

// The parts of a shared object's bytes that mapping needs. The bytes must outlive it.
class ElfFile {
 public:
  // Where an object stands: in the image's memory, from its beginning, and among the bytes.
  struct Place {
    uint64_t address;
    uint64_t offset;
  };

  explicit ElfFile(std::string_view bytes);

  // An exported object of at least `size` bytes; nothing when there is none.
  std::optional<Place> find(std::string_view symbol, uint64_t size) const;

 private:
  friend class ElfImage;

  // Files of machines with addresses of 32 bits have other records, which are read as those of 64 bits (elf_records.h).
  void read_segments();
  void read_dynamic();
  // The records of the table, each of which `Narrow` is in a file of 32 bits.
  template <typename Narrow, typename Wide>
  std::vector<Wide> records(uint64_t address, uint64_t bytes) const;
  template <typename Narrow, typename Wide>
  std::vector<Wide> records_at(uint64_t offset, size_t count) const;
  // Where a piece of the image's memory stands among the bytes.
  uint64_t offset(uint64_t address, uint64_t size) const;
  template <typename T>
  std::vector<T> table(uint64_t address, uint64_t bytes) const;
  std::string_view name(const Elf64_Sym& symbol) const;

  std::string_view bytes_;
  std::vector<Elf64_Phdr> segments_;  // to load, in the order of their addresses
  uint16_t machine_ = 0;
  bool is_wide_ = true;  // addresses have 64 bits, and relocations their offsets
  Elf64_Phdr dynamic_{};
  Elf64_Phdr constant_after_relocation_{};
  uint64_t span_ = 0;  // bytes of memory, whole pages
  std::vector<Elf64_Sym> symbols_;
  std::vector<Elf64_Rela> relocations_;
  std::string_view strings_;
};

// A mapped image; gone at its end, so that nothing may run in it any more.
class ElfImage {
 public:
  // UserError E0608 for another architecture, E0611 when the system gives no memory, or none that
  // may be executed.
  explicit ElfImage(const ElfFile& file);
  ~ElfImage();
  ElfImage(const ElfImage&) = delete;
  ElfImage& operator=(const ElfImage&) = delete;

  const void* at(uint64_t address) const { return base_ + address; }

 private:
  void copy_segments(const ElfFile& file);
  void relocate(const ElfFile& file);
  void protect(const ElfFile& file) const;

  char* base_ = nullptr;
  uint64_t span_ = 0;
};

}  // namespace relay::runtime
