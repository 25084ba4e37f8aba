/* The contract between native functions and the runtime, in plain C.
 *
 * A native function is a function of the program that the artifact has as machine code beside its bytecode. It runs on
 * a stack of its own (runtime/vm/native_stack.h), whose limit it compares with its stack pointer when it is entered, and
 * it counts calls and iterations in `fuel`. It asks the runtime for everything else through a table of helpers.
 *
 * A word is a value as an object register of the virtual machine has it: a pointer to an object, or an immediate
 * (runtime/core/immediate.h). A result that failed has no value; the runtime has kept the reason, and the caller
 * releases what it owns and fails as well. Nothing is thrown through native code.
 */
#ifndef RELAY_RUNTIME_CORE_NATIVE_ABI_H_
#define RELAY_RUNTIME_CORE_NATIVE_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with the context, the helpers, the layout of objects and the form of immediates. */
#define RELAY_NATIVE_ABI_VERSION 1

typedef struct relay_native_result {
  int64_t value;
  int64_t failed; /* 0 or 1 */
} relay_native_result;

struct relay_native_context;

/* Why a function ends the run, for `fail`. */
enum relay_native_failure {
  RELAY_NATIVE_DIVISION = 0,      /* of an integer by zero */
  RELAY_NATIVE_SIZE_DIVISION = 1, /* of a size by zero, rounded down */
  RELAY_NATIVE_CHECK = 2,         /* a: string with the message, b: string with the place, or -1 */
  RELAY_NATIVE_NO_MATCH = 3, /* a: string with the place, or -1, b: 1 + that with the constructors,
                                or 0, c: the value, or 0 */
  RELAY_NATIVE_INDEX = 4,    /* a: index, b: size, c: string with the place, or -1 */
  RELAY_NATIVE_NOT_DATA = 5, /* a value of another kind than its type says */
  RELAY_NATIVE_NOT_A_FUNCTION = 6, /* the same for what is called */
  RELAY_NATIVE_CALLED =
      7, /* a callee has failed; a: the caller, b: string with the place of the call, or -1 */
  RELAY_NATIVE_FAILURE_COUNT = 8
};

typedef struct relay_native_helpers {
  /* The stack pointer is below the limit: lowers the limit, or fails. */
  relay_native_result (*more_stack)(struct relay_native_context* ctx);
  /* `fuel` is negative: looks at the limits of the run. */
  relay_native_result (*out_of_fuel)(struct relay_native_context* ctx);
  /* Always fails. `kind` is a relay_native_failure. */
  relay_native_result (*fail)(struct relay_native_context* ctx, int64_t kind, int64_t a, int64_t b,
                              int64_t c);
  /* A tensor with the scalar, for one that has no immediate form. `dtype` is DType::key(). */
  relay_native_result (*box)(struct relay_native_context* ctx, int64_t bits, int64_t dtype);
  /* The element of a value that is not an immediate; the value stays its owner's. */
  relay_native_result (*unbox)(struct relay_native_context* ctx, int64_t word, int64_t dtype);
  /* A constant of the program, with a reference for the caller. */
  relay_native_result (*constant)(struct relay_native_context* ctx, int64_t index);
  /* A cell with `count` empty fields. */
  relay_native_result (*cell)(struct relay_native_context* ctx, int64_t kind, int64_t tag,
                              int64_t count);
  /* Frees an object whose last reference the caller gives up. */
  void (*destroy)(struct relay_native_context* ctx, int64_t word);
  /* References: a new one that takes `content` over, the content with a reference for the caller, and new content,
   * which is taken over. They take their operands over when they fail, too. */
  relay_native_result (*ref_new)(struct relay_native_context* ctx, int64_t content);
  relay_native_result (*ref_read)(struct relay_native_context* ctx, int64_t ref);
  relay_native_result (*ref_write)(struct relay_native_context* ctx, int64_t ref, int64_t content);
} relay_native_helpers;

typedef struct relay_native_context {
  /* Calls and iterations until the run looks at its limits. */
  int64_t fuel;
  /* A function that is entered below it asks for more. There is room for helpers and signals below. */
  char* stack_limit;
  const relay_native_helpers* helpers;
  /* Belongs to the runtime. */
  void* runtime;
} relay_native_context;

/* A native function as the interpreter calls it. It takes the arguments, which are words, over; its result is a word. */
typedef relay_native_result (*relay_native_function)(relay_native_context* ctx,
                                                     const int64_t* args);

/* What an artifact's ELF image exports, as the object `relay_native_descriptor`, where functions are native. */
typedef struct relay_native_descriptor_t {
  uint32_t magic; /* RELAY_NATIVE_DESCRIPTOR_MAGIC */
  uint32_t abi_version;
  uint64_t num_functions;
  const relay_native_function* functions; /* the native ones, in the order of the program */
} relay_native_descriptor_t;

#define RELAY_NATIVE_DESCRIPTOR_MAGIC 0x314E4C52u /* "RLN1" */
#define RELAY_NATIVE_DESCRIPTOR_SYMBOL "relay_native_descriptor"

#ifdef __cplusplus
}
#endif

#endif /* RELAY_RUNTIME_CORE_NATIVE_ABI_H_ */
