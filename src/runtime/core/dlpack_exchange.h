/* The table of C functions by which a library of Python gives and takes its arrays without calls of Python:
 * `type.__dlpack_c_exchange_api__`, a capsule named "dlpack_exchange_api". Published by DLPack 1.3 and declared
 * here as dlpack.h declares the structures.
 */
#ifndef RELAY_RUNTIME_CORE_DLPACK_EXCHANGE_H_
#define RELAY_RUNTIME_CORE_DLPACK_EXCHANGE_H_

#include "runtime/core/dlpack.h"

#ifndef DLPACK_VERSION

#ifdef __cplusplus
extern "C" {
#endif

typedef struct DLPackExchangeAPIHeader {
  DLPackVersion version;
  struct DLPackExchangeAPIHeader* prev_api; /* of an older major version, or null */
} DLPackExchangeAPIHeader;

typedef struct DLPackExchangeAPI {
  DLPackExchangeAPIHeader header;
  int (*managed_tensor_allocator)(DLTensor* prototype, DLManagedTensorVersioned** out, void* error,
                                  void (*set_error)(void* error, const char* kind,
                                                    const char* message));
  /* These return 0, or -1 with an exception of Python set. The first leaves the object alone; the
   * second takes the tensor over. */
  int (*managed_tensor_from_py_object_no_sync)(void* object, DLManagedTensorVersioned** out);
  int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** out);
  int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* out); /* may be null */
  int (*current_work_stream)(int32_t device_type, int32_t device_id, void** out);
} DLPackExchangeAPI;

#ifdef __cplusplus
}
#endif

#endif /* DLPACK_VERSION */

#endif /* RELAY_RUNTIME_CORE_DLPACK_EXCHANGE_H_ */
