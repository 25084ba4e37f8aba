// What the archives of LLVM and LLD ask of zstd. It would compress debug information, which nothing here asks for, and read
// sections of object files that are compressed with it: these are refused, as damaged ones are. Half a megabyte of each library
// is saved.
#include <stddef.h>
#include <stdlib.h>

static const size_t failed = (size_t)-1;

void* ZSTD_createCCtx(void) { return NULL; }
size_t ZSTD_freeCCtx(void* context) { return context == NULL ? 0 : failed; }
size_t ZSTD_CCtx_setParameter(void* context, int parameter, int value) {
  (void)context, (void)parameter, (void)value;
  return failed;
}
size_t ZSTD_compressBound(size_t size) { return size; }
size_t ZSTD_compress2(void* context, void* to, size_t room, const void* from, size_t size) {
  (void)context, (void)to, (void)room, (void)from, (void)size;
  return failed;
}
// LLD would call it again until it returns 0.
size_t ZSTD_compressStream2(void* context, void* to, void* from, int end) {
  (void)context, (void)to, (void)from, (void)end;
  abort();
}
size_t ZSTD_decompress(void* to, size_t room, const void* from, size_t size) {
  (void)to, (void)room, (void)from, (void)size;
  return failed;
}
unsigned ZSTD_isError(size_t code) { return code == failed; }
const char* ZSTD_getErrorName(size_t code) {
  (void)code;
  return "Relay is built without zstd";
}
