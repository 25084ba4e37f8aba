// The records of ELF files for addresses of 32 bits, as those for 64 bits.
#pragma once

#include <elf.h>

namespace relay::runtime {

inline Elf64_Ehdr wide(const Elf32_Ehdr& h) {
  Elf64_Ehdr out{};
  out.e_type = h.e_type;
  out.e_machine = h.e_machine;
  out.e_phoff = h.e_phoff;
  out.e_phentsize = h.e_phentsize;
  out.e_phnum = h.e_phnum;
  return out;
}

inline Elf64_Phdr wide(const Elf32_Phdr& s) {
  return {s.p_type, s.p_flags, s.p_offset, s.p_vaddr, s.p_paddr, s.p_filesz, s.p_memsz, s.p_align};
}

inline Elf64_Dyn wide(const Elf32_Dyn& d) {
  Elf64_Dyn out{};
  out.d_tag = d.d_tag;
  out.d_un.d_val = d.d_un.d_val;
  return out;
}

inline Elf64_Sym wide(const Elf32_Sym& s) {
  return {s.st_name, s.st_info, s.st_other, s.st_shndx, s.st_value, s.st_size};
}

// Without the offset, which lies at the place.
inline Elf64_Rela wide(const Elf32_Rel& r) {
  return {r.r_offset, ELF64_R_INFO(uint64_t{ELF32_R_SYM(r.r_info)}, ELF32_R_TYPE(r.r_info)), 0};
}

}  // namespace relay::runtime
