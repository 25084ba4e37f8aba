// What Relay uses of the CUDA driver, by the names and numbers of NVIDIA's documentation of the driver API. The library is
// opened when a program first uses a CUDA device, so that neither Relay nor an artifact needs it otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace relay::runtime::cuda {

using Result = int32_t;
using DeviceHandle = int32_t;
using Address = uint64_t;
using Context = struct ContextStruct*;
using Stream = struct StreamStruct*;
using Event = struct EventStruct*;
using Module = struct ModuleStruct*;
using Function = struct FunctionStruct*;
using Graph = struct GraphStruct*;
using GraphExec = struct GraphExecStruct*;

inline constexpr Result kSuccess = 0, kOutOfMemory = 2, kNoDevice = 100;
inline constexpr int32_t kAttributeMultiprocessors = 16, kAttributeMajor = 75, kAttributeMinor = 76;
inline constexpr int32_t kFunctionMaxThreads = 0;
inline constexpr uint32_t kStreamNonBlocking = 1, kEventWithoutTime = 2, kHostPortable = 1;
inline constexpr int32_t kPointerContext = 1, kPointerMemoryType = 2, kPointerDevice = 9;
inline constexpr uint32_t kMemoryOfHost = 1, kMemoryOfDevice = 2;
inline constexpr int32_t kJitErrorLog = 5, kJitErrorLogBytes = 6;
inline constexpr int32_t kCaptureRelaxed = 2;

// The functions: name, result, parameters.
#define RELAY_CUDA_FUNCTIONS(F)                                                                 \
  F(cuInit, Result, (uint32_t))                                                                 \
  F(cuDriverGetVersion, Result, (int32_t*))                                                     \
  F(cuGetErrorName, Result, (Result, const char**))                                             \
  F(cuGetErrorString, Result, (Result, const char**))                                           \
  F(cuDeviceGetCount, Result, (int32_t*))                                                       \
  F(cuDeviceGet, Result, (DeviceHandle*, int32_t))                                              \
  F(cuDeviceGetName, Result, (char*, int32_t, DeviceHandle))                                    \
  F(cuDeviceGetAttribute, Result, (int32_t*, int32_t, DeviceHandle))                            \
  F(cuDeviceTotalMem_v2, Result, (size_t*, DeviceHandle))                                       \
  F(cuDevicePrimaryCtxRetain, Result, (Context*, DeviceHandle))                                 \
  F(cuCtxPushCurrent_v2, Result, (Context))                                                     \
  F(cuCtxPopCurrent_v2, Result, (Context*))                                                     \
  F(cuCtxSynchronize, Result, ())                                                               \
  F(cuMemGetInfo_v2, Result, (size_t*, size_t*))                                                \
  F(cuMemAlloc_v2, Result, (Address*, size_t))                                                  \
  F(cuMemFree_v2, Result, (Address))                                                            \
  F(cuMemHostAlloc, Result, (void**, size_t, uint32_t))                                         \
  F(cuMemFreeHost, Result, (void*))                                                             \
  F(cuPointerGetAttribute, Result, (void*, int32_t, Address))                                   \
  F(cuMemcpyHtoDAsync_v2, Result, (Address, const void*, size_t, Stream))                       \
  F(cuMemcpyDtoHAsync_v2, Result, (void*, Address, size_t, Stream))                             \
  F(cuMemcpyDtoDAsync_v2, Result, (Address, Address, size_t, Stream))                           \
  F(cuMemsetD32Async, Result, (Address, uint32_t, size_t, Stream))                              \
  F(cuStreamCreate, Result, (Stream*, uint32_t))                                                \
  F(cuStreamDestroy_v2, Result, (Stream))                                                       \
  F(cuStreamSynchronize, Result, (Stream))                                                      \
  F(cuStreamBeginCapture_v2, Result, (Stream, int32_t))                                         \
  F(cuStreamEndCapture, Result, (Stream, Graph*))                                               \
  F(cuEventCreate, Result, (Event*, uint32_t))                                                  \
  F(cuEventRecord, Result, (Event, Stream))                                                     \
  F(cuEventSynchronize, Result, (Event))                                                        \
  F(cuEventDestroy_v2, Result, (Event))                                                         \
  F(cuGraphInstantiateWithFlags, Result, (GraphExec*, Graph, unsigned long long))               \
  F(cuGraphLaunch, Result, (GraphExec, Stream))                                                 \
  F(cuGraphDestroy, Result, (Graph))                                                            \
  F(cuGraphExecDestroy, Result, (GraphExec))                                                    \
  F(cuModuleLoadDataEx, Result, (Module*, const void*, uint32_t, int32_t*, void**))             \
  F(cuModuleUnload, Result, (Module))                                                           \
  F(cuModuleGetFunction, Result, (Function*, Module, const char*))                              \
  F(cuFuncGetAttribute, Result, (int32_t*, int32_t, Function))                                  \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor, Result, (int32_t*, Function, int32_t, size_t)) \
  F(cuLaunchKernel, Result,                                                                     \
    (Function, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, uint32_t, Stream,    \
     void**, void**))

struct Api {
#define RELAY_CUDA_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  RELAY_CUDA_FUNCTIONS(RELAY_CUDA_MEMBER)
#undef RELAY_CUDA_MEMBER
};

// The functions of libcuda.so.1, or of the library that RELAY_CUDA names. Throws RuntimeError E0620 where it cannot be opened
// or lacks one.
const Api& api();

// "CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory access was encountered".
std::string name_of(Result result);

}  // namespace relay::runtime::cuda
