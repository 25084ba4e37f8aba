// What Relay uses of OpenCL 1.2, by the names and numbers of its standard (https://registry.khronos.org/OpenCL/). The
// library is opened when a program first uses an OpenCL device, so that neither Relay nor an artifact needs it otherwise.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace relay::runtime::opencl {

using Int = int32_t;
using UInt = uint32_t;
using Flags = uint64_t;
using Platform = struct PlatformStruct*;
using DeviceId = struct DeviceStruct*;
using Context = struct ContextStruct*;
using Queue = struct QueueStruct*;
using Memory = struct MemoryStruct*;
using Program = struct ProgramStruct*;
using Kernel = struct KernelStruct*;
using Event = struct EventStruct*;

inline constexpr Int kSuccess = 0, kDeviceNotFound = -1, kMemObjectAllocationFailure = -4,
                     kOutOfResources = -5, kOutOfHostMemory = -6, kBuildProgramFailure = -11,
                     kInvalidBufferSize = -61;
inline constexpr Flags kDeviceTypeCpu = 1 << 1, kDeviceTypeGpu = 1 << 2,
                       kDeviceTypeAll = 0xFFFFFFFF;
inline constexpr UInt kDeviceType = 0x1000, kDeviceMaxComputeUnits = 0x1002,
                      kDeviceMaxWorkGroupSize = 0x1004, kDeviceMaxWorkItemSizes = 0x1005,
                      kDeviceSingleFpConfig = 0x101B, kDeviceName = 0x102B, kDriverVersion = 0x102D,
                      kDeviceExtensions = 0x1030;
inline constexpr UInt kKernelWorkGroupSize = 0x11B0;
inline constexpr Flags kFpCorrectlyRoundedDivideSqrt = 1 << 7;
inline constexpr Flags kMemReadWrite = 1 << 0;
inline constexpr UInt kProgramBuildLog = 0x1183, kProgramBinarySizes = 0x1165,
                      kProgramBinaries = 0x1166;
inline constexpr UInt kMemType = 0x1100, kMemSize = 0x1102, kMemContext = 0x1106,
                      kMemObjectBuffer = 0x10F0;
inline constexpr UInt kTrue = 1, kFalse = 0;

// The functions: name, result, parameters.
#define RELAY_OPENCL_FUNCTIONS(F)                                                               \
  F(clGetPlatformIDs, Int, (UInt, Platform*, UInt*))                                            \
  F(clGetDeviceIDs, Int, (Platform, Flags, UInt, DeviceId*, UInt*))                             \
  F(clGetDeviceInfo, Int, (DeviceId, UInt, size_t, void*, size_t*))                             \
  F(clCreateContext, Context,                                                                   \
    (const intptr_t*, UInt, const DeviceId*, void (*)(const char*, const void*, size_t, void*), \
     void*, Int*))                                                                              \
  F(clReleaseContext, Int, (Context))                                                           \
  F(clCreateCommandQueue, Queue, (Context, DeviceId, Flags, Int*))                              \
  F(clReleaseCommandQueue, Int, (Queue))                                                        \
  F(clCreateBuffer, Memory, (Context, Flags, size_t, void*, Int*))                              \
  F(clRetainMemObject, Int, (Memory))                                                           \
  F(clReleaseMemObject, Int, (Memory))                                                          \
  F(clGetMemObjectInfo, Int, (Memory, UInt, size_t, void*, size_t*))                            \
  F(clCreateProgramWithSource, Program, (Context, UInt, const char**, const size_t*, Int*))     \
  F(clCreateProgramWithBinary, Program,                                                         \
    (Context, UInt, const DeviceId*, const size_t*, const unsigned char**, Int*, Int*))         \
  F(clGetProgramInfo, Int, (Program, UInt, size_t, void*, size_t*))                             \
  F(clBuildProgram, Int,                                                                        \
    (Program, UInt, const DeviceId*, const char*, void (*)(Program, void*), void*))             \
  F(clGetProgramBuildInfo, Int, (Program, DeviceId, UInt, size_t, void*, size_t*))              \
  F(clReleaseProgram, Int, (Program))                                                           \
  F(clCreateKernel, Kernel, (Program, const char*, Int*))                                       \
  F(clReleaseKernel, Int, (Kernel))                                                             \
  F(clGetKernelWorkGroupInfo, Int, (Kernel, DeviceId, UInt, size_t, void*, size_t*))            \
  F(clSetKernelArg, Int, (Kernel, UInt, size_t, const void*))                                   \
  F(clEnqueueNDRangeKernel, Int,                                                                \
    (Queue, Kernel, UInt, const size_t*, const size_t*, const size_t*, UInt, const Event*,      \
     Event*))                                                                                   \
  F(clEnqueueReadBuffer, Int,                                                                   \
    (Queue, Memory, UInt, size_t, size_t, void*, UInt, const Event*, Event*))                   \
  F(clEnqueueWriteBuffer, Int,                                                                  \
    (Queue, Memory, UInt, size_t, size_t, const void*, UInt, const Event*, Event*))             \
  F(clEnqueueCopyBuffer, Int,                                                                   \
    (Queue, Memory, Memory, size_t, size_t, size_t, UInt, const Event*, Event*))                \
  F(clWaitForEvents, Int, (UInt, const Event*))                                                 \
  F(clReleaseEvent, Int, (Event))                                                               \
  F(clFlush, Int, (Queue))                                                                      \
  F(clFinish, Int, (Queue))

struct Api {
#define RELAY_OPENCL_MEMBER(name, result, parameters) result(*name) parameters = nullptr;
  RELAY_OPENCL_FUNCTIONS(RELAY_OPENCL_MEMBER)
#undef RELAY_OPENCL_MEMBER
};

// The functions of libOpenCL.so.1, or of the library that RELAY_OPENCL names. Throws RuntimeError E0620 where it cannot be
// opened or lacks one.
const Api& api();

// Whether the result says that memory is exhausted.
bool is_out_of_memory(Int result);

// Throws for a result that is no success: RuntimeError E0604 for what says that memory is exhausted, else E0622. `what` is
// what was done: "a kernel cannot be started".
void check(Int result, const char* what);

}  // namespace relay::runtime::opencl
