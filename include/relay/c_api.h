/* The C interface of Relay's runtime: load a compiled model, run it, read the results.
 *
 *   relay_module* module;
 *   relay_session* session;
 *   if (relay_module_load("model.so", 0, &module) != RELAY_OK) puts(relay_last_error());
 *   relay_session_create(module, "main", &session);
 *   relay_session_set_input(session, 0, data, &type);   // data stays the caller's, no copy
 *   relay_session_run(session);
 *   relay_session_output(session, 0, &result);
 *   relay_session_free(session);
 *   relay_module_free(module);
 *
 * Every function returns RELAY_OK or another status; then relay_last_error() is a paragraph for a
 * person, valid until the next call of the same thread. Nothing is thrown and nothing aborts. A
 * module may be used by several threads; a session belongs to one thread at a time, and keeps its
 * module loaded.
 */
#ifndef RELAY_C_API_H_
#define RELAY_C_API_H_

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define RELAY_API __attribute__((visibility("default")))
#else
#define RELAY_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define RELAY_C_API_VERSION 5

typedef enum relay_status {
  RELAY_OK = 0,
  RELAY_USER_ERROR = 1,    /* a wrong file, name, input or argument */
  RELAY_RUNTIME_ERROR = 2, /* the run failed on its data, or ran out of memory */
  RELAY_INTERNAL_ERROR = 3 /* a defect of Relay */
} relay_status;

typedef enum relay_dtype_code {
  RELAY_INT = 0,
  RELAY_UINT = 1,
  RELAY_FLOAT = 2,
  RELAY_BFLOAT = 3,
  RELAY_BOOL = 4,   /* 8 bits, 0 or 1 */
  RELAY_STRING = 15 /* read and given by functions of their own */
} relay_dtype_code;

/* Kinds of devices, with DLPack's numbers. Those other than RELAY_CUDA and RELAY_OPENCL have memory that the CPU can read. */
typedef enum relay_device_type {
  RELAY_CPU = 1,
  RELAY_CUDA = 2,      /* since version 5 */
  RELAY_CUDA_HOST = 3, /* pinned for CUDA */
  RELAY_OPENCL = 4,    /* since version 5 */
  RELAY_ROCM_HOST = 11 /* pinned for ROCm */
} relay_device_type;

/* A tensor's type. `shape` has `rank` entries and belongs to whoever filled in the structure; an
 * entry of -1, in the type of a parameter or result only, is known at run time. A device of zeros
 * is the CPU. */
typedef struct relay_tensor_type {
  int32_t dtype_code; /* a relay_dtype_code */
  int32_t dtype_bits;
  int32_t rank;
  const int64_t* shape;
  int32_t device_type; /* a relay_device_type */
  int32_t device_id;
} relay_tensor_type;

/* A tensor: contiguous, row-major, in the memory of the CPU. */
typedef struct relay_tensor {
  relay_tensor_type type;
  const void* data;
  size_t bytes;
} relay_tensor;

typedef struct relay_module relay_module;
typedef struct relay_session relay_session;

/* RELAY_C_API_VERSION of the library. */
RELAY_API int32_t relay_api_version(void);
/* The message of this thread's last failing call; "" when there was none. */
RELAY_API const char* relay_last_error(void);

/* Loads an artifact. `num_threads` 0 means as many as the machine offers. */
RELAY_API relay_status relay_module_load(const char* path, int32_t num_threads,
                                         relay_module** module);
/* The same of an artifact with several versions, of which `version` is the name of one ("x86-64-v3"); "" is the last that
 * the machine runs, as relay_module_load takes it. Since version 4. */
RELAY_API relay_status relay_module_load_version(const char* path, const char* version,
                                                 int32_t num_threads, relay_module** module);
RELAY_API void relay_module_free(relay_module* module);
/* JSON text: compiler version, target, options, kernels. Valid as long as the module. */
RELAY_API relay_status relay_module_metadata(const relay_module* module, const char** text);

/* The module's functions. Names are valid as long as the module. */
RELAY_API relay_status relay_module_num_functions(const relay_module* module, size_t* count);
RELAY_API relay_status relay_module_function_name(const relay_module* module, size_t index,
                                                  const char** name);

/* A session holds the inputs and outputs of one function. */
RELAY_API relay_status relay_session_create(relay_module* module, const char* function,
                                            relay_session** session);
RELAY_API void relay_session_free(relay_session* session);

/* Parameters and results of the session's function; what is returned is valid as long as the
 * session. A parameter or result that is not a tensor is a user error here. */
RELAY_API relay_status relay_session_num_inputs(const relay_session* session, size_t* count);
RELAY_API relay_status relay_session_input_info(const relay_session* session, size_t index,
                                                const char** name, relay_tensor_type* type);
RELAY_API relay_status relay_session_input_index(const relay_session* session, const char* name,
                                                 size_t* index);
RELAY_API relay_status relay_session_num_outputs(const relay_session* session, size_t* count);
RELAY_API relay_status relay_session_output_info(const relay_session* session, size_t index,
                                                 const char** name, relay_tensor_type* type);

/* Gives an input in memory that the CPU can read. The data is not copied, unless the parameter is on a device: it must stay valid
 * and unchanged until the session's next run has ended; it must be aligned to its element. */
RELAY_API relay_status relay_session_set_input(relay_session* session, size_t index,
                                               const void* data, const relay_tensor_type* type);
/* The number of the output that an input is donated to, -1 when it is donated to none. A run writes
 * that output into the memory of the input, which is where relay_session_output then finds it; after a
 * run that fails it may hold parts of the new value. Such an input is given by
 * relay_session_donate_input, or as a DLPack tensor that is not read-only, and shares memory with no
 * other input: otherwise the run is a user error. */
RELAY_API relay_status relay_session_input_donation(const relay_session* session, size_t index,
                                                    int64_t* output);
/* Gives an input as relay_session_set_input does, in memory that the run may write to. */
RELAY_API relay_status relay_session_donate_input(relay_session* session, size_t index, void* data,
                                                  const relay_tensor_type* type);
/* Gives an input of strings: pointers to zero-terminated UTF-8 in row-major order, which are copied. */
RELAY_API relay_status relay_session_set_input_strings(relay_session* session, size_t index,
                                                       const char* const* strings,
                                                       const int64_t* shape, int32_t rank);
/* The same from a DLManagedTensor, which the session takes over, also on failure. Since version 5 it may be on a CUDA or an
 * OpenCL device (its data is a cl_mem then, of the context of the outputs that Relay gives): a run uses it as it is where the
 * parameter is on that device, and copies it otherwise. For CUDA the call waits for all that was submitted to the device; for
 * OpenCL the caller has waited for what writes the memory. */
RELAY_API relay_status relay_session_set_input_dlpack(relay_session* session, size_t index,
                                                      void* dl_managed_tensor);

/* What a run may take; 0 is no limit. A run that would take more ends with RELAY_RUNTIME_ERROR, and the
 * session can run again. Time is looked at between kernels, calls and jumps. */
typedef struct relay_limits {
  int64_t fuel;         /* calls and jumps */
  int64_t memory_bytes; /* held at once: values, frames, working memory */
  double seconds;
} relay_limits;

/* The limits of the session's further runs; NULL for none, as at first. */
RELAY_API relay_status relay_session_set_limits(relay_session* session, const relay_limits* limits);

/* Runs the function. All inputs must have been set; they stay set. */
RELAY_API relay_status relay_session_run(relay_session* session);

/* An output of the last run; valid until the next run or the end of the session. Of one on a device it is a copy. */
RELAY_API relay_status relay_session_output(const relay_session* session, size_t index,
                                            relay_tensor* tensor);
/* An element of an output of strings: UTF-8 that may hold zeros and ends with none. As long valid. */
RELAY_API relay_status relay_session_output_string(const relay_session* session, size_t index,
                                                   size_t element, const char** bytes,
                                                   size_t* size);
/* The same as a DLManagedTensor of its own lifetime: the caller calls its deleter. One on a device stays there (since version 5),
 * where its data is complete: for CUDA an address, for OpenCL a cl_mem, with the byte_offset. */
RELAY_API relay_status relay_session_output_dlpack(const relay_session* session, size_t index,
                                                   void** dl_managed_tensor);

/* What a kernel is called with beside its buffers and sizes. */
struct relay_kernel_context;

/* A kernel of the process. `buffers` are those of its inputs, then of its results; results do not overlap inputs. `sizes` are the
 * dimensions of all of them, in the same order. It may be called from several threads at once, for several sessions. */
typedef void (*relay_host_kernel)(void* const* buffers, const int64_t* sizes,
                                  const struct relay_kernel_context* context);

/* Makes a kernel known to artifacts that call it by name, as those do whose operators were given one when they were compiled
 * (relay/plugin.h; host_kernel of relay.register_op in Python). To load such an artifact without it is a user error. For one name
 * the last registration holds, for modules that are loaded after it; NULL removes the name. Since version 3. */
RELAY_API relay_status relay_register_host_kernel(const char* name, relay_host_kernel kernel);
/* In a host kernel: its data are wrong, and the run ends with RELAY_RUNTIME_ERROR when it returns. Since version 3. */
RELAY_API void relay_kernel_fail(const struct relay_kernel_context* context);

#ifdef __cplusplus
}
#endif

#endif /* RELAY_C_API_H_ */
