/* The contract between generated kernels and the runtime, in plain C.
 *
 * A kernel computes one PrimFunc. It gets the buffers in the order of the PrimFunc's parameters
 * (inputs, then outputs), the values of the symbolic dimensions, and a context with the services
 * it may use. A kernel that fails writes a code of relay_kernel_error into the context's error
 * word; one that does not leaves the word as it is. So a kernel may run on a device that returns
 * nothing, or be started before the last one is done. Nothing is thrown.
 *
 * Buffers are aligned to their element size only (a caller's array may start anywhere); memory
 * from `scratch` is aligned to 64 bytes. Outputs never overlap inputs, unless the memory plan
 * gives an input's buffer to an output that the PrimFunc declares as in place.
 */
#ifndef RELAY_RUNTIME_CORE_KERNEL_ABI_H_
#define RELAY_RUNTIME_CORE_KERNEL_ABI_H_

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define RELAY_KERNEL_ABI_VERSION 2

enum relay_kernel_error {
  RELAY_KERNEL_OK = 0,
  RELAY_KERNEL_INDEX_OUT_OF_BOUNDS = 1, /* gather, scatter, take: an index outside the data */
  RELAY_KERNEL_DIVISION_BY_ZERO = 2,    /* integer division or modulo */
  RELAY_KERNEL_OUT_OF_MEMORY = 3,       /* scratch returned a null pointer */
  RELAY_KERNEL_CHECK_FAILED = 4,        /* an assertion of the PrimFunc does not hold */
  RELAY_KERNEL_SHAPE_MISMATCH = 5,      /* run-time dimensions do not fit together */
  RELAY_KERNEL_BAD_STRING = 6,          /* a string that is not a number or pattern */
  RELAY_KERNEL_NO_TEXT_LIBRARY = 7,     /* librelay_text.so is not beside the runtime */
  RELAY_KERNEL_NO_IMAGE_LIBRARY = 8,    /* librelay_image.so is not beside the runtime */
  RELAY_KERNEL_BAD_IMAGE = 9,           /* an image that is damaged, or of no format we know */
  RELAY_KERNEL_IMAGE_TOO_LARGE = 10,
  RELAY_KERNEL_IMAGE_IS_WEBP = 11, /* formats that are known and not decoded */
  RELAY_KERNEL_IMAGE_IS_TIFF = 12,
  RELAY_KERNEL_IMAGE_IS_JPEG2000 = 13,
  RELAY_KERNEL_INDEX_WIDTH = 14, /* sizes need more bits than the target's indices have */
  RELAY_KERNEL_ERROR_COUNT = 15
};

struct relay_kernel_context;

/* Runs the iterations [begin, end) of a parallel loop; returns 0 or an error code. */
typedef int32_t (*relay_parallel_body)(void* env, int64_t begin, int64_t end);

/* A function on strings or images. Its arguments and its result are 64-bit words: integers and bools,
 * the bits of a double, strings as tensors hold them (core/strings.h), and images, which only these
 * functions know. What it makes lives until the run's results own their strings. May be called from parallel bodies, on any thread. */
typedef int64_t (*relay_string_function)(const struct relay_kernel_context* ctx,
                                         const int64_t* args);

typedef struct relay_kernel_context {
  int32_t abi_version;
  /* Threads that parallel_for uses, at least 1. */
  int32_t num_threads;

  /* Runs `body` over [0, extent), split into num_threads contiguous chunks whose sizes differ by at most one; chunk t
   * always runs on worker t, so what a worker has in its caches stays useful from kernel to kernel. Chunks that are
   * empty are not run. Returns when all are done: 0, or the error code of the lowest failing chunk. Inside a body it
   * runs serially. Of an extent of 0 nothing is run: a long kernel asks so whether to go on, or with which code to end; `env` is then
   * no address but the number of iterations that its loops have run since, which count as calls and jumps of the run
   * (0 for loops whose length is known ahead of time). */
  int32_t (*parallel_for)(const struct relay_kernel_context* ctx, relay_parallel_body body,
                          void* env, int64_t extent);

  /* Working memory, 64-byte aligned, uninitialised, valid until the kernel returns; null when
   * memory is exhausted. May be called from parallel bodies, on any thread. */
  void* (*scratch)(const struct relay_kernel_context* ctx, int64_t bytes);

  /* Belongs to the runtime. */
  void* runtime;

  /* The error word, where the kernel's device can write it. The runtime sets it to 0 once and reads
   * it when the kernels that it started are done. */
  int32_t* error;

  /* The functions on strings and images, in the order of core/string_functions.h. Kernels of older
   * artifacts know of no such field. */
  const relay_string_function* strings;

  /* Memory for strings that outlive the kernel, valid until the run's results own theirs; null when
   * memory is exhausted. May be called from parallel bodies, on any thread. */
  void* (*keep)(const struct relay_kernel_context* ctx, int64_t bytes);
} relay_kernel_context;

typedef void (*relay_kernel)(void* const* buffers, const int64_t* dims,
                             const relay_kernel_context* ctx);

/* What an artifact's ELF image exports, as the object `relay_artifact_descriptor`. Everything
 * else about the kernels (names, costs, reasons) is in the artifact's metadata section. */
typedef struct relay_artifact_descriptor_t {
  uint32_t magic; /* RELAY_DESCRIPTOR_MAGIC */
  uint32_t abi_version;
  uint64_t num_kernels;
  const relay_kernel* kernels; /* in the order of the program's kernel table */
  uint64_t id[2];              /* of the artifact (runtime/artifact.h); zero outside of one */
} relay_artifact_descriptor_t;

#define RELAY_DESCRIPTOR_MAGIC 0x31594C52u /* "RLY1" */
#define RELAY_DESCRIPTOR_SYMBOL "relay_artifact_descriptor"

#ifdef __cplusplus
}
#endif

#endif /* RELAY_RUNTIME_CORE_KERNEL_ABI_H_ */
