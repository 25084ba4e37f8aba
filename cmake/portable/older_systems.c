/* What the compiler's headers and the archives of others expect of glibc after 2.28, for systems that have no more than
 * that: one wheel runs on all of them. Nothing here is seen outside of the library that it is part of. */

#include <fcntl.h>
#include <malloc.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#pragma GCC visibility push(hidden)

/* 2.30 */
pid_t relay_gettid(void) __asm__("gettid");
pid_t relay_gettid(void) { return (pid_t)syscall(SYS_gettid); }

/* 2.32. Counts of std::shared_ptr are plain where it is not 0; a compiler has threads. */
char relay_single_threaded __asm__("__libc_single_threaded") = 0;

/* 2.33: functions of the library that were inline before. With 64-bit files both forms are one. The kernel's structure is
 * the C library's. */
static int file_status(int folder, const char* path, struct stat* to, int flags) {
  return (int)syscall(SYS_newfstatat, folder, path, to, flags);
}
int relay_stat(const char* path, struct stat* to) __asm__("stat");
int relay_stat(const char* path, struct stat* to) { return file_status(AT_FDCWD, path, to, 0); }
int relay_stat64(const char* path, struct stat* to) __asm__("stat64");
int relay_stat64(const char* path, struct stat* to) { return file_status(AT_FDCWD, path, to, 0); }
int relay_lstat(const char* path, struct stat* to) __asm__("lstat");
int relay_lstat(const char* path, struct stat* to) {
  return file_status(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
int relay_lstat64(const char* path, struct stat* to) __asm__("lstat64");
int relay_lstat64(const char* path, struct stat* to) {
  return file_status(AT_FDCWD, path, to, AT_SYMLINK_NOFOLLOW);
}
int relay_fstat(int file, struct stat* to) __asm__("fstat");
int relay_fstat(int file, struct stat* to) { return (int)syscall(SYS_fstat, file, to); }
int relay_fstat64(int file, struct stat* to) __asm__("fstat64");
int relay_fstat64(int file, struct stat* to) { return (int)syscall(SYS_fstat, file, to); }
int relay_mknod(const char* path, mode_t mode, dev_t device) __asm__("mknod");
int relay_mknod(const char* path, mode_t mode, dev_t device) {
  return (int)syscall(SYS_mknodat, AT_FDCWD, path, mode, device);
}

/* 2.33: mallinfo, in words that hold more than 2 GiB. LLVM prints with it how much memory its passes take. */
struct mallinfo2 relay_mallinfo2(void) __asm__("mallinfo2");
struct mallinfo2 relay_mallinfo2(void) {
  struct mallinfo2 none = {0};
  return none;
}

/* 2.36. LLVM draws names of temporary files with it. */
uint32_t relay_arc4random(void) __asm__("arc4random");
uint32_t relay_arc4random(void) {
  uint32_t drawn = 0;
  if (getentropy(&drawn, sizeof drawn) != 0) abort();
  return drawn;
}

#pragma GCC visibility pop
