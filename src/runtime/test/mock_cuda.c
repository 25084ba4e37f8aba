/* Device memory is the process's. Work is kept until its stream or an event behind it is waited for. The kernel that is named
 * "fails" writes the failure word, "wild" ends the context, and "adds" adds 1 to the int32 at its first parameter. A kernel
 * has as many parameters as the code's comment "params N" says. */
#include "runtime/test/mock_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kInvalid = 1, kOutOfMemory = 2, kBadPtx = 218, kMostParameters = 16, kMostPinned = 64 };

typedef struct Function {
  char name[64];
  int parameters;
  struct Function* next;
} Function;

typedef struct Work {
  Function* function; /* null: a copy, or a fill where `from` is null, too */
  uint64_t parameters[kMostParameters];
  char *to, kind;
  const char* from;
  size_t bytes;
  uint32_t value;
  uint32_t grid[3], block[3];
  struct Work* next;
} Work;

typedef struct Graph {
  Work* first;
} Graph;

typedef struct Stream {
  Work *first, *last;
  Graph* captured;
  long given, done;
} Stream;

typedef struct Event {
  Stream* stream;
  long at;
} Event;

typedef struct Memory {
  size_t size;
  struct Memory *before, *behind; /* in the list of all */
  char data[];
} Memory;

static mock_cuda state = {.memory = (size_t)1 << 30, .fault_after = -1, .threads = 1024};
static int lost;
static int context, other;
static Memory all_memory = {.before = &all_memory, .behind = &all_memory};
static void* context_stack[16] = {&other};
static struct {
  char* begin;
  size_t bytes;
} pinned[kMostPinned];

mock_cuda* mock_cuda_state(void);
mock_cuda* mock_cuda_state(void) { return &state; }

#define API(name, ...)       \
  int32_t name(__VA_ARGS__); \
  int32_t name(__VA_ARGS__)
/* The call may fail. */
#define CALL()                                                          \
  do {                                                                  \
    if (lost) return lost;                                              \
    if (state.fault_after == 0) {                                       \
      state.fault_after = -1;                                           \
      if (state.fault == MOCK_CUDA_ILLEGAL_ADDRESS) lost = state.fault; \
      return state.fault;                                               \
    }                                                                   \
    if (state.fault_after > 0) --state.fault_after;                     \
  } while (0)
#define IN_CONTEXT()                                                    \
  do {                                                                  \
    if (context_stack[state.contexts_on_stack] != &context) return 201; \
  } while (0)

API(cuInit, uint32_t flags) {
  (void)flags;
  CALL();
  return 0;
}
API(cuDriverGetVersion, int32_t* out) {
  *out = 12080;
  return 0;
}
API(cuGetErrorName, int32_t result, const char** out) {
  *out = result == kOutOfMemory ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_OF_THE_MOCK";
  return 0;
}
API(cuGetErrorString, int32_t result, const char** out) {
  (void)result;
  *out = "as the test wants it";
  return 0;
}
API(cuDeviceGetCount, int32_t* out) {
  CALL();
  *out = 1;
  return 0;
}
API(cuDeviceGet, int32_t* out, int32_t number) {
  CALL();
  *out = number;
  return 0;
}
API(cuDeviceGetName, char* out, int32_t size, int32_t device) {
  (void)device;
  CALL();
  strncpy(out, "a mock", (size_t)size);
  return 0;
}
API(cuDeviceGetAttribute, int32_t* out, int32_t what, int32_t device) {
  (void)device;
  CALL();
  *out = what == 16 ? 4 : what == 75 ? 9 : 0;
  return 0;
}
API(cuDeviceTotalMem_v2, size_t* out, int32_t device) {
  (void)device;
  CALL();
  *out = state.memory;
  return 0;
}
API(cuDevicePrimaryCtxRetain, void** out, int32_t device) {
  (void)device;
  CALL();
  *out = &context;
  return 0;
}
API(cuCtxPushCurrent_v2, void* c) {
  if (lost) return lost;
  context_stack[++state.contexts_on_stack] = c;
  return 0;
}
API(cuCtxPopCurrent_v2, void** out) {
  *out = context_stack[state.contexts_on_stack--];
  return 0;
}
API(cuMemGetInfo_v2, size_t* unused, size_t* total) {
  IN_CONTEXT();
  *unused = state.memory - state.bytes;
  *total = state.memory;
  return 0;
}
API(cuMemAlloc_v2, uint64_t* out, size_t bytes) {
  Memory* m = NULL;
  CALL();
  IN_CONTEXT();
  if (bytes > state.memory || state.bytes > state.memory - bytes) return kOutOfMemory;
  m = malloc(sizeof(Memory) + bytes);
  m->size = bytes;
  m->before = &all_memory;
  m->behind = all_memory.behind;
  m->before->behind = m->behind->before = m;
  memset(m->data, 0xA5, bytes);
  state.bytes += bytes;
  ++state.blocks;
  *out = (uint64_t)m->data;
  return 0;
}
API(cuMemFree_v2, uint64_t memory) {
  Memory* m = (Memory*)(memory - sizeof(Memory));
  IN_CONTEXT();
  m->before->behind = m->behind;
  m->behind->before = m->before;
  state.bytes -= m->size;
  --state.blocks;
  memset(m->data, 0xDB, m->size);
  free(m);
  return 0;
}
API(cuMemHostAlloc, void** out, size_t bytes, uint32_t flags) {
  (void)flags;
  CALL();
  IN_CONTEXT();
  for (int i = 0; i < kMostPinned; ++i) {
    if (pinned[i].begin != NULL) continue;
    *out = pinned[i].begin = malloc(bytes);
    pinned[i].bytes = bytes;
    ++state.pinned;
    return 0;
  }
  return kOutOfMemory;
}
API(cuMemFreeHost, void* memory) {
  for (int i = 0; i < kMostPinned; ++i) {
    if (pinned[i].begin != memory) continue;
    free(memory);
    pinned[i].begin = NULL;
    --state.pinned;
    return 0;
  }
  return kInvalid;
}
API(cuPointerGetAttribute, void* out, int32_t what, uint64_t memory) {
  const uint32_t host = 1, device = 2;
  const int32_t number = 0;
  void* const owner = state.tells_other_context ? (void*)&other : (void*)&context;
  IN_CONTEXT();
  for (const Memory* m = all_memory.behind; m != &all_memory; m = m->behind) {
    if (memory < (uint64_t)m->data || memory >= (uint64_t)m->data + m->size) continue;
    if (what == 1) memcpy(out, &owner, sizeof(owner));
    if (what == 2) memcpy(out, &device, sizeof(device));
    if (what == 9) memcpy(out, &number, sizeof(number));
    return 0;
  }
  for (int i = 0; i < kMostPinned; ++i) {
    const uint64_t begin = (uint64_t)pinned[i].begin;
    if (begin == 0 || memory < begin || memory >= begin + pinned[i].bytes) continue;
    memcpy(out, &host, sizeof(host));
    return 0;
  }
  return kInvalid;
}

static void note(const char* what) {
  const size_t used = strlen(state.journal);
  snprintf(state.journal + used, sizeof(state.journal) - used, "%s ", what);
}
static void perform(const Work* w) {
  if (w->function == NULL && w->from == NULL) {
    for (size_t i = 0; i < w->bytes; i += 4) memcpy(w->to + i, &w->value, 4);
    return;
  }
  if (w->function == NULL) {
    const char kind[2] = {w->kind, 0};
    memmove(w->to, w->from, w->bytes);
    note(kind);
    return;
  }
  ++state.launches;
  note(w->function->name);
  memcpy(state.grid, w->grid, sizeof(state.grid));
  memcpy(state.block, w->block, sizeof(state.block));
  memcpy(state.parameters, w->parameters, sizeof(state.parameters));
  memcpy(state.kernel, w->function->name, sizeof(state.kernel));
  if (strcmp(w->function->name, "wild") == 0) lost = MOCK_CUDA_ILLEGAL_ADDRESS;
  if (strcmp(w->function->name, "adds") == 0) ++*(int32_t*)w->parameters[0];
  if (strcmp(w->function->name, "fails") == 0) {
    int32_t* word = (int32_t*)w->parameters[w->function->parameters - 2];
    word[0] = 1;
    word[1] = (int32_t)w->parameters[w->function->parameters - 1];
  }
}
static int32_t give(Stream* s, Work work) {
  Work* w = malloc(sizeof(Work));
  *w = work;
  w->next = NULL;
  if (s->captured != NULL) {
    Work** end = &s->captured->first;
    while (*end != NULL) end = &(*end)->next;
    *end = w;
    return 0;
  }
  if (s->last != NULL) s->last->next = w;
  if (s->first == NULL) s->first = w;
  s->last = w;
  ++s->given;
  ++state.given;
  return 0;
}
static int32_t work_until(Stream* s, long at) {
  while (s->first != NULL && s->done < at) {
    Work* w = s->first;
    if (!lost) perform(w);
    s->first = w->next;
    if (s->first == NULL) s->last = NULL;
    ++s->done;
    free(w);
  }
  return lost;
}

API(cuMemcpyHtoDAsync_v2, uint64_t to, const void* from, size_t bytes, void* stream) {
  uint32_t type = 0;
  CALL();
  IN_CONTEXT();
  if (cuPointerGetAttribute(&type, 2, (uint64_t)from) == 0) {
    return give(stream, (Work){.to = (char*)to, .from = from, .bytes = bytes, .kind = 'd'});
  }
  /* As a driver does with a copy of its own of the memory. */
  work_until(stream, ((Stream*)stream)->given);
  memcpy((char*)to, from, bytes);
  note("d");
  return 0;
}
API(cuMemcpyDtoHAsync_v2, void* to, uint64_t from, size_t bytes, void* stream) {
  uint32_t type = 0;
  CALL();
  IN_CONTEXT();
  give(stream, (Work){.to = to, .from = (const char*)from, .bytes = bytes, .kind = 'h'});
  if (cuPointerGetAttribute(&type, 2, (uint64_t)to) == 0) return 0;
  return work_until(stream, ((Stream*)stream)->given);
}
API(cuMemcpyDtoDAsync_v2, uint64_t to, uint64_t from, size_t bytes, void* stream) {
  CALL();
  IN_CONTEXT();
  return give(stream,
              (Work){.to = (char*)to, .from = (const char*)from, .bytes = bytes, .kind = 'w'});
}
API(cuMemsetD32Async, uint64_t to, uint32_t value, size_t count, void* stream) {
  CALL();
  IN_CONTEXT();
  return give(stream, (Work){.to = (char*)to, .value = value, .bytes = 4 * count});
}
API(cuCtxSynchronize, void) {
  CALL();
  IN_CONTEXT();
  ++state.context_waits;
  return 0;
}
API(cuStreamCreate, void** out, uint32_t flags) {
  (void)flags;
  CALL();
  IN_CONTEXT();
  *out = calloc(1, sizeof(Stream));
  ++state.streams;
  return 0;
}
API(cuStreamDestroy_v2, void* stream) {
  work_until(stream, ((Stream*)stream)->given);
  free(stream);
  --state.streams;
  return 0;
}
API(cuStreamSynchronize, void* stream) {
  CALL();
  IN_CONTEXT();
  return work_until(stream, ((Stream*)stream)->given);
}
API(cuEventCreate, void** out, uint32_t flags) {
  (void)flags;
  CALL();
  IN_CONTEXT();
  *out = calloc(1, sizeof(Event));
  ++state.events;
  return 0;
}
API(cuEventRecord, void* event, void* stream) {
  CALL();
  *(Event*)event = (Event){stream, ((Stream*)stream)->given};
  return 0;
}
API(cuEventSynchronize, void* event) {
  CALL();
  return work_until(((Event*)event)->stream, ((Event*)event)->at);
}
API(cuEventDestroy_v2, void* event) {
  --state.events;
  free(event);
  return 0;
}

API(cuStreamBeginCapture_v2, void* stream, int32_t mode) {
  (void)mode;
  CALL();
  ((Stream*)stream)->captured = calloc(1, sizeof(Graph));
  ++state.graphs;
  return 0;
}
API(cuStreamEndCapture, void* stream, void** out) {
  *out = ((Stream*)stream)->captured;
  ((Stream*)stream)->captured = NULL;
  return 0;
}
static void* copy_of(const Graph* graph) {
  Graph* out = calloc(1, sizeof(Graph));
  Work** end = &out->first;
  for (const Work* w = graph->first; w != NULL; w = w->next) {
    *end = malloc(sizeof(Work));
    **end = *w;
    (*end)->next = NULL;
    end = &(*end)->next;
  }
  ++state.graphs;
  return out;
}
API(cuGraphInstantiateWithFlags, void** out, void* graph, unsigned long long flags) {
  (void)flags;
  CALL();
  *out = copy_of(graph);
  return 0;
}
API(cuGraphLaunch, void* graph, void* stream) {
  CALL();
  ++state.graph_launches;
  for (const Work* w = ((Graph*)graph)->first; w != NULL; w = w->next) give(stream, *w);
  return 0;
}
API(cuGraphDestroy, void* graph) {
  for (Work* w = ((Graph*)graph)->first; w != NULL;) {
    Work* next = w->next;
    free(w);
    w = next;
  }
  --state.graphs;
  free(graph);
  return 0;
}
API(cuGraphExecDestroy, void* graph) { return cuGraphDestroy(graph); }

/* A module is its parameters: their number. */
static int modules[16];
API(cuModuleLoadDataEx, void** out, const void* code, uint32_t n, int32_t* options, void** values) {
  const char* count = strstr(code, "params ");
  CALL();
  IN_CONTEXT();
  if (state.refuses_modules || count == NULL) {
    for (uint32_t i = 0; i < n; ++i) {
      if (options[i] == 5) strcpy(values[i], "ptxas of the mock refuses it\n");
    }
    return kBadPtx;
  }
  const int parameters = atoi(count + 7);
  modules[parameters] = parameters;
  ++state.loads;
  *out = &modules[parameters];
  return 0;
}
API(cuModuleUnload, void* module) {
  (void)module;
  return 0;
}
/* Functions live as long as their modules: for ever. */
static Function* functions;
API(cuModuleGetFunction, void** out, void* module, const char* name) {
  Function* f = NULL;
  CALL();
  IN_CONTEXT();
  for (f = functions; f != NULL; f = f->next) {
    if (strcmp(f->name, name) == 0 && f->parameters == *(int*)module) break;
  }
  if (f == NULL) {
    f = calloc(1, sizeof(Function));
    strncpy(f->name, name, sizeof(f->name) - 1);
    f->parameters = *(int*)module;
    f->next = functions;
    functions = f;
  }
  *out = f;
  return 0;
}
API(cuFuncGetAttribute, int32_t* out, int32_t what, void* function) {
  (void)what, (void)function;
  CALL();
  *out = state.threads;
  return 0;
}
API(cuOccupancyMaxActiveBlocksPerMultiprocessor, int32_t* out, void* function, int32_t block,
    size_t shared) {
  (void)function, (void)block, (void)shared;
  CALL();
  *out = 2;
  return 0;
}
API(cuLaunchKernel, void* function, uint32_t gx, uint32_t gy, uint32_t gz, uint32_t bx, uint32_t by,
    uint32_t bz, uint32_t shared, void* stream, void** parameters, void** extra) {
  Function* f = function;
  Work w = {.function = f, .grid = {gx, gy, gz}, .block = {bx, by, bz}};
  (void)shared, (void)extra;
  CALL();
  IN_CONTEXT();
  for (int i = 0; i < f->parameters; ++i) {
    /* The last is the number of the kernel, of 4 bytes. */
    memcpy(&w.parameters[i], parameters[i], i + 1 == f->parameters ? 4 : 8);
  }
  return give(stream, w);
}
