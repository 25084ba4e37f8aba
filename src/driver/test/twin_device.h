// A device for tests: this processor with memory of its own, which the host cannot touch.
//
//   TwinDevice::install();                         // the kind of target "twin", and the driver of ext_dev
//   options.target = "native; twin";
//
// A queue is a thread that takes its time. Memory of the device may be accessed only while one of its threads is at work, so that
// a kernel of the host that reads it, or a wait that is missing, ends in a fault or a wrong number. What is not in that
// memory is refused to kernels.
#pragma once

#include <cstdint>

#include "runtime/core/device.h"

namespace relay::driver_test {

class TwinDevice {
 public:
  static void install();
  static runtime::Device device(uint16_t id = 0);

  // Since `forget`, on all queues.
  struct Counts {
    int64_t launches = 0;
    int64_t bytes_to_device = 0;
    int64_t bytes_to_host = 0;
    int64_t foreign_buffers = 0;  // of kernels, outside the device's memory
  };
  static Counts counts();
  static void forget();
  // Bytes that are allocated.
  static int64_t allocated();
};

}  // namespace relay::driver_test
