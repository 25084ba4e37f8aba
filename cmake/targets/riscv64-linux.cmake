# RISC-V of 64 bits with Linux, by Debian's cross compiler (g++-riscv64-linux-gnu).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR riscv64)
set(CMAKE_C_COMPILER riscv64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER riscv64-linux-gnu-g++)
# Atomic operations on bytes, which GCC 12 does not expand.
set(CMAKE_CXX_STANDARD_LIBRARIES_INIT "-l:libatomic.a")
set(CMAKE_C_STANDARD_LIBRARIES_INIT "-l:libatomic.a")
