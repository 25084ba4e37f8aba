/* Work is done when it is put into the queue. A kernel writes nothing, but for one that is named "fails": that writes the
 * failure word. */
#include "runtime/test/mock_opencl.h"

#include <stdlib.h>
#include <string.h>

enum {
  kOutOfMemory = -4,
  kInvalid = -30,
  kBuildFailure = -11,
  kInvalidBinary = -42,
  kInvalidKernelName = -46,
  kLost = -9999
};
enum { kMostArguments = 16 };

typedef struct Buffer {
  size_t size;
  int owners;
  char* data;
} Buffer;

typedef struct Kernel {
  char name[64];
  size_t count;
  unsigned char values[kMostArguments][8];
} Kernel;

static const char kBinary[] = "a program that the mock has built";
static mock_opencl state = {.memory = (size_t)1 << 30, .driver = "1.0"};
static int platform, device, context, other_context, queue, program, event;
static int has_kernels; /* of the program that was made last */

mock_opencl* mock_opencl_state(void);
mock_opencl* mock_opencl_state(void) { return &state; }

#define API(type, name, ...) \
  type name(__VA_ARGS__);    \
  type name(__VA_ARGS__)

static int32_t now(void** event_out) {
  if (state.is_lost) return kLost;
  if (event_out != NULL) {
    *event_out = &event;
    ++state.events;
  }
  return 0;
}

API(int32_t, clGetPlatformIDs, uint32_t n, void** out, uint32_t* count) {
  if (count != NULL) *count = 1;
  if (n > 0 && out != NULL) *out = &platform;
  return 0;
}
API(int32_t, clGetDeviceIDs, void* p, uint64_t type, uint32_t n, void** out, uint32_t* count) {
  (void)p, (void)type;
  if (count != NULL) *count = 1;
  if (n > 0 && out != NULL) *out = &device;
  return 0;
}
API(int32_t, clGetDeviceInfo, void* d, uint32_t what, size_t size, void* out, size_t* needed) {
  const uint64_t flags = state.is_gpu ? 4 : 2;
  const size_t group = 1024, axes[4] = {1024, 1024, 64, 1};
  const uint32_t units = 2;
  const char* text = what == 0x102B ? "a mock" : what == 0x102D ? state.driver : NULL;
  const void* value = &flags;
  size_t bytes = sizeof(flags);
  (void)d;
  if (text != NULL) value = text, bytes = strlen(text) + 1;
  if (what == 0x1002) value = &units, bytes = sizeof(units);
  if (what == 0x1004) value = &group, bytes = sizeof(group);
  if (what == 0x1005) value = axes, bytes = sizeof(axes);
  if (needed != NULL) *needed = bytes;
  if (out == NULL) return 0;
  if (size < bytes) return kInvalid;
  memcpy(out, value, bytes);
  return 0;
}
API(void*, clCreateContext, const intptr_t* properties, uint32_t n, void* const* devices,
    void (*notify)(const char*, const void*, size_t, void*), void* user, int32_t* error) {
  (void)properties, (void)n, (void)devices, (void)notify, (void)user;
  *error = 0;
  return &context;
}
API(int32_t, clReleaseContext, void* c) {
  (void)c;
  return 0;
}
API(void*, clCreateCommandQueue, void* c, void* d, uint64_t properties, int32_t* error) {
  (void)c, (void)d, (void)properties;
  *error = 0;
  ++state.queues;
  return &queue;
}
API(int32_t, clReleaseCommandQueue, void* q) {
  (void)q;
  --state.queues;
  return 0;
}
API(void*, clCreateBuffer, void* c, uint64_t flags, size_t size, void* host, int32_t* error) {
  Buffer* b = NULL;
  (void)c, (void)flags, (void)host;
  *error = kOutOfMemory;
  if (size > state.memory || state.bytes > state.memory - size) return NULL;
  b = malloc(sizeof(Buffer));
  b->size = size;
  b->owners = 1;
  b->data = malloc(size);
  memset(b->data, 0xA5, size);
  state.bytes += size;
  ++state.buffers;
  *error = 0;
  return b;
}
API(int32_t, clRetainMemObject, void* memory) {
  ++((Buffer*)memory)->owners;
  return 0;
}
API(int32_t, clGetMemObjectInfo, void* memory, uint32_t what, size_t size, void* out,
    size_t* needed) {
  const uint32_t type = 0x10F0;
  void* const owner = state.tells_other_context ? (void*)&other_context : (void*)&context;
  (void)needed;
  if (what == 0x1100) memcpy(out, &type, size);
  if (what == 0x1102) memcpy(out, &((Buffer*)memory)->size, size);
  if (what == 0x1106) memcpy(out, &owner, size);
  return 0;
}
API(int32_t, clReleaseMemObject, void* memory) {
  Buffer* b = memory;
  if (--b->owners > 0) return 0;
  state.bytes -= b->size;
  --state.buffers;
  free(b->data);
  free(b);
  return 0;
}
API(void*, clCreateProgramWithSource, void* c, uint32_t n, const char** texts, const size_t* sizes,
    int32_t* error) {
  (void)c, (void)n, (void)texts, (void)sizes;
  *error = 0;
  ++state.programs;
  has_kernels = 1;
  return &program;
}
API(void*, clCreateProgramWithBinary, void* c, uint32_t n, void* const* devices,
    const size_t* sizes, const unsigned char** binaries, int32_t* status, int32_t* error) {
  (void)c, (void)n, (void)devices;
  *error = state.binary == kMockRefusedBinary || sizes[0] != sizeof(kBinary) ||
                   memcmp(binaries[0], kBinary, sizeof(kBinary)) != 0
               ? kInvalidBinary
               : 0;
  if (*error != 0) return NULL;
  *status = state.binary == kMockInvalidBinary ? kInvalidBinary : 0;
  ++state.programs;
  ++state.from_binaries;
  has_kernels = state.binary != kMockNoKernelsBinary;
  return &program;
}
API(int32_t, clGetProgramInfo, void* p, uint32_t what, size_t size, void* out, size_t* needed) {
  (void)p, (void)size, (void)needed;
  if (what == 0x1165) *(size_t*)out = state.binary == kMockEmptyBinary ? 0 : sizeof(kBinary);
  if (what == 0x1166) memcpy(*(void**)out, kBinary, sizeof(kBinary));
  return 0;
}
API(int32_t, clBuildProgram, void* p, uint32_t n, void* const* devices, const char* options,
    void (*notify)(void*, void*), void* user) {
  (void)p, (void)n, (void)devices, (void)options, (void)notify, (void)user;
  ++state.builds;
  return state.refuses_programs ? kBuildFailure : 0;
}
API(int32_t, clGetProgramBuildInfo, void* p, void* d, uint32_t what, size_t size, void* out,
    size_t* needed) {
  const char log[] = "the mock refuses it\n";
  (void)p, (void)d, (void)what;
  if (needed != NULL) *needed = sizeof(log);
  if (out != NULL && size >= sizeof(log)) memcpy(out, log, sizeof(log));
  return 0;
}
API(int32_t, clReleaseProgram, void* p) {
  (void)p;
  --state.programs;
  return 0;
}
API(void*, clCreateKernel, void* p, const char* name, int32_t* error) {
  Kernel* k = NULL;
  (void)p;
  *error = kInvalidKernelName;
  if (!has_kernels) return NULL;
  k = calloc(1, sizeof(Kernel));
  strncpy(k->name, name, sizeof(k->name) - 1);
  ++state.kernels;
  *error = 0;
  return k;
}
API(int32_t, clReleaseKernel, void* k) {
  --state.kernels;
  free(k);
  return 0;
}
API(int32_t, clGetKernelWorkGroupInfo, void* k, void* d, uint32_t what, size_t size, void* out,
    size_t* needed) {
  /* A kernel whose name says so has smaller groups than the device. */
  const size_t items = strcmp(((Kernel*)k)->name, "small_groups") == 0 ? 64 : 1024;
  (void)d, (void)needed;
  if (what != 0x11B0 || size < sizeof(items)) return kInvalid;
  memcpy(out, &items, sizeof(items));
  return 0;
}
API(int32_t, clSetKernelArg, void* kernel, uint32_t at, size_t size, const void* value) {
  Kernel* k = kernel;
  if (at >= kMostArguments || size > sizeof(k->values[0])) return kInvalid;
  memcpy(k->values[at], value, size);
  if (at + 1 > k->count) k->count = at + 1;
  return 0;
}
API(int32_t, clEnqueueNDRangeKernel, void* q, void* kernel, uint32_t n, const size_t* offset,
    const size_t* items, const size_t* group, uint32_t waits, void* const* events, void** out) {
  Kernel* k = kernel;
  (void)q, (void)offset, (void)waits, (void)events;
  if (n != 3) return kInvalid;
  ++state.launches;
  memset(state.group, 0, sizeof(state.group));
  if (group != NULL) memcpy(state.group, group, sizeof(state.group));
  memcpy(state.items, items, sizeof(state.items));
  memcpy(state.kernel, k->name, sizeof(state.kernel));
  state.arguments = k->count;
  memcpy(&state.first_offset, k->values[1], sizeof(state.first_offset));
  if (strcmp(k->name, "fails") == 0) {
    Buffer* word = NULL;
    const int32_t code = 1;
    memcpy(&word, k->values[k->count - 2], sizeof(word));
    memcpy(word->data, &code, sizeof(code));
    memcpy(word->data + sizeof(code), k->values[k->count - 1], sizeof(code));
  }
  return now(out);
}
API(int32_t, clEnqueueReadBuffer, void* q, void* memory, uint32_t blocks, size_t offset,
    size_t size, void* to, uint32_t waits, void* const* events, void** out) {
  (void)q, (void)blocks, (void)waits, (void)events;
  memcpy(to, ((Buffer*)memory)->data + offset, size);
  return now(out);
}
API(int32_t, clEnqueueWriteBuffer, void* q, void* memory, uint32_t blocks, size_t offset,
    size_t size, const void* from, uint32_t waits, void* const* events, void** out) {
  (void)q, (void)blocks, (void)waits, (void)events;
  memcpy(((Buffer*)memory)->data + offset, from, size);
  return now(out);
}
API(int32_t, clEnqueueCopyBuffer, void* q, void* from, void* to, size_t from_offset,
    size_t to_offset, size_t size, uint32_t waits, void* const* events, void** out) {
  (void)q, (void)waits, (void)events;
  memmove(((Buffer*)to)->data + to_offset, ((Buffer*)from)->data + from_offset, size);
  return now(out);
}
API(int32_t, clWaitForEvents, uint32_t n, void* const* events) {
  (void)n, (void)events;
  return now(NULL);
}
API(int32_t, clReleaseEvent, void* e) {
  (void)e;
  --state.events;
  return 0;
}
API(int32_t, clFlush, void* q) {
  (void)q;
  return 0;
}
API(int32_t, clFinish, void* q) {
  (void)q;
  return now(NULL);
}
