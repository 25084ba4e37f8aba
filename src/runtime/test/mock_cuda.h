/* A CUDA driver without a device (mock_cuda.c): it keeps memory, does work only when it is waited for, counts what lives, and
 * fails when it is asked to. Tests name it by RELAY_CUDA. */
#ifndef RELAY_RUNTIME_TEST_MOCK_CUDA_H_
#define RELAY_RUNTIME_TEST_MOCK_CUDA_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct mock_cuda {
  /* What it is told, for the next calls. */
  int refuses_modules;
  int fault; /* the error of the call that `fault_after` counts to; what frees something does not fail */
  int fault_after;         /* calls that still succeed; negative: all */
  size_t memory;           /* bytes that it has */
  int threads;             /* of a block of any function */
  int tells_other_context; /* of memory of the device */
  /* What it tells: objects that live, and calls since a test has set them to 0. */
  int blocks, pinned, streams, events, graphs;
  size_t bytes;
  int launches, graph_launches, loads, contexts_on_stack;
  int given; /* work that streams were given, done or not */
  int context_waits;
  /* Of the last launch. */
  uint32_t grid[3], block[3];
  char kernel[64];
  uint64_t parameters[16];
  /* Kernels in the order in which they were done, and copies as "h" (to the host), "d" and "w". */
  char journal[512];
} mock_cuda;

/* The function of this name gives the state. */
#define MOCK_CUDA_STATE "mock_cuda_state"
typedef mock_cuda* (*mock_cuda_function)(void);

/* An error after which nothing succeeds any more, of the calls that follow. */
enum { MOCK_CUDA_ILLEGAL_ADDRESS = 700 };

#ifdef __cplusplus
}
#endif

#endif /* RELAY_RUNTIME_TEST_MOCK_CUDA_H_ */
