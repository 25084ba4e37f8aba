/* Hand-made kernels in the form of an artifact's code, for the tests. */
#include "runtime/core/kernel_abi.h"

/* y[i] = 2 * x[i] for 8 floats */
static void twice(void* const* buffers, const int64_t* dims, const relay_kernel_context* ctx) {
  const float* x = buffers[0];
  float* y = buffers[1];
  (void)dims;
  (void)ctx;
  for (int i = 0; i < 8; ++i) y[i] = 2 * x[i];
}

/* z[i] = x[i] + y[i] for 8 floats; fails when x[0] is negative */
static void add(void* const* buffers, const int64_t* dims, const relay_kernel_context* ctx) {
  const float* x = buffers[0];
  const float* y = buffers[1];
  float* z = buffers[2];
  (void)dims;
  if (x[0] < 0) {
    *ctx->error = RELAY_KERNEL_INDEX_OUT_OF_BOUNDS;
    return;
  }
  for (int i = 0; i < 8; ++i) z[i] = x[i] + y[i];
}

static const relay_kernel kernels[] = {twice, add};

__attribute__((visibility("default")))
const relay_artifact_descriptor_t relay_artifact_descriptor = {
    RELAY_DESCRIPTOR_MAGIC, RELAY_KERNEL_ABI_VERSION, 2, kernels, {0, 0}};
