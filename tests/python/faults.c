/* Loaded before everything else: the allocation, thread or file operation `at` of the compiled extension fails, and
 * with `ever` all after it. What Python itself asks for is always granted. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

static long failing = -1, operations;
static int for_ever, busy;
static pthread_t owner;

void relay_fail(long at, int ever) {
  operations = 0;
  for_ever = ever;
  owner = pthread_self();
  failing = at;
}
/* Returns how many operations there were since relay_fail. */
long relay_succeed(void) {
  failing = -1;
  return operations;
}

static int refused(const void* caller) {
  Dl_info info;
  int ours;
  if (failing < 0 || busy || !pthread_equal(owner, pthread_self())) return 0;
  busy = 1;
  ours = dladdr(caller, &info) != 0 && info.dli_fname != NULL &&
         (strstr(info.dli_fname, "_core") != NULL || strstr(info.dli_fname, "libstdc++") != NULL);
  busy = 0;
  if (!ours) return 0;
  long number = operations++;
  return number == failing || (for_ever && number > failing);
}

void* __libc_malloc(size_t bytes);
void* __libc_calloc(size_t count, size_t bytes);
void* __libc_realloc(void* memory, size_t bytes);
void* __libc_memalign(size_t alignment, size_t bytes);
#define REFUSED refused(__builtin_return_address(0))

void* malloc(size_t bytes) { return REFUSED ? (errno = ENOMEM, NULL) : __libc_malloc(bytes); }
void* calloc(size_t count, size_t bytes) {
  return REFUSED ? (errno = ENOMEM, NULL) : __libc_calloc(count, bytes);
}
void* realloc(void* memory, size_t bytes) {
  return REFUSED ? (errno = ENOMEM, NULL) : __libc_realloc(memory, bytes);
}
void* aligned_alloc(size_t alignment, size_t bytes) {
  return REFUSED ? (errno = ENOMEM, NULL) : __libc_memalign(alignment, bytes);
}
int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  int mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(rest, int) : 0;
  va_end(rest);
  if (REFUSED) return errno = EMFILE, -1;
  return ((int (*)(const char*, int, ...))dlsym(RTLD_NEXT, "open"))(path, flags, mode);
}
void* mmap(void* at, size_t bytes, int protection, int flags, int fd, off_t offset) {
  if (REFUSED) return errno = ENOMEM, MAP_FAILED;
  return ((void* (*)(void*, size_t, int, int, int, off_t))dlsym(RTLD_NEXT, "mmap"))(
      at, bytes, protection, flags, fd, offset);
}
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*run)(void*),
                   void* argument) {
  if (REFUSED) return EAGAIN;
  return ((int (*)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*))dlsym(
      RTLD_NEXT, "pthread_create"))(thread, attributes, run, argument);
}
