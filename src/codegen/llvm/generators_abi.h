// What the compiler and the library of code generators for other architectures say to each other (src/generators).
//
// Both contain LLVM and the C++ library, each its own copy of the same version. So only C types pass between them,
// modules as bitcode, and no exception.
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {

struct relay_machine_settings {
  const char* triple;
  const char* cpu;
  const char* features;
  int32_t kind;  // CodeKind of llvm_machine.h
  int32_t has_fma;
};

struct relay_code_request {
  const char* bitcode;
  size_t size;
  int32_t passes;  // CodePasses
  int32_t form;    // CodeForm
  // Called between steps; 0 ends the request with the status `stopped`.
  int32_t (*goes_on)(void* context);
  void* context;
};

enum relay_code_status : int32_t {
  relay_code_done = 0,
  relay_code_failed = 1,  // the text is the reason
  relay_code_stopped = 2,
  relay_code_no_memory = 3,
};

// Takes what a function returns, or the reason why it failed.
typedef void (*relay_take_text)(void* context, const char* bytes, size_t size);

struct relay_code_generators {
  const char* version;  // RELAY_CODE_GENERATORS_VERSION
  int32_t (*has_target)(const char* triple);
  int32_t (*has_feature)(const char* triple, const char* feature);
  // A machine belongs to one thread at a time.
  relay_code_status (*open)(const relay_machine_settings* settings, void** machine,
                            relay_take_text take, void* context);
  relay_code_status (*layout)(void* machine, relay_take_text take, void* context);
  relay_code_status (*emit)(void* machine, const relay_code_request* request, relay_take_text take,
                            void* context);
  void (*close)(void* machine);
};

typedef const relay_code_generators* (*relay_get_code_generators_function)();
}

#define RELAY_CODE_GENERATORS_SYMBOL "relay_get_code_generators"
#define RELAY_CODE_GENERATORS_VERSION \
  "relay " RELAY_VERSION ", LLVM " LLVM_VERSION_STRING ", interface 2"
