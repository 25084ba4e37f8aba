/* An OpenCL library without a device (mock_opencl.c): it keeps memory, counts what lives, and fails when it is asked to. Tests
 * name it by RELAY_OPENCL. */
#ifndef RELAY_RUNTIME_TEST_MOCK_OPENCL_H_
#define RELAY_RUNTIME_TEST_MOCK_OPENCL_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What is wrong with the binary of a program. */
enum mock_opencl_binary {
  kMockGoodBinary,
  kMockRefusedBinary,   /* by the error of the call */
  kMockInvalidBinary,   /* by the status of the device */
  kMockNoKernelsBinary, /* built without error */
  kMockEmptyBinary      /* of a program that is built: it has no bytes */
};

typedef struct mock_opencl {
  /* What it is told, for the next calls. */
  int refuses_programs;
  int is_lost;
  int tells_other_context; /* of memory */
  enum mock_opencl_binary binary;
  int is_gpu;
  size_t memory;      /* bytes that it has */
  const char* driver; /* its version */
  /* What it tells: objects that live, and calls since a test has set them to 0. */
  int buffers, programs, kernels, queues, events;
  size_t bytes;
  int launches, builds;
  int from_binaries; /* programs that were made of binaries */
  /* Of the last launch. */
  size_t items[3], group[3]; /* a group of 0: the driver chooses */
  char kernel[64];
  size_t arguments;
  int64_t first_offset; /* its second argument */
} mock_opencl;

/* The function of this name gives the state. */
#define MOCK_OPENCL_STATE "mock_opencl_state"
typedef mock_opencl* (*mock_opencl_function)(void);

#ifdef __cplusplus
}
#endif

#endif /* RELAY_RUNTIME_TEST_MOCK_OPENCL_H_ */
