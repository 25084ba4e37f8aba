// What this machine can do at most, measured, and how near a kernel comes to it.
//
//   MachineLimits limits = measure_limits(threads);
//   Bound bound = bound_of({flops, constant_bytes, other_bytes}, footprint, limits);
//   bound.name             "compute", "L1", "L2", "L3" or "memory"
//   bound.seconds / time   how near a kernel that took `time` is to it
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace relay {

struct MachineLimits {
  // A place that data are read from.
  struct Level {
    std::string name;
    int64_t bytes = 0;  // that it holds, of all threads together; for the last, everything
    double gbytes_per_second = 0;
  };

  int threads = 1;
  double gflops = 0;          // float32 multiply-adds
  std::vector<Level> levels;  // the nearest first; the last is memory
};

// Peak of float32 multiply-adds in GFLOP/s on `threads` threads, measured with a loop that only
// touches registers (about 20 ms).
double measure_peak_gflops(int threads);

// The same, and the bandwidth of reading from each cache and from memory, on as many threads at
// once. About a quarter of a second and up to half a gigabyte of memory for its time.
MachineLimits measure_limits(int threads);

// What a kernel does at least.
struct KernelWork {
  double flops = 0;
  double constant_bytes = 0;  // weights: read once in every run
  double other_bytes = 0;     // operands and results, which were, or will be, used nearby
};

struct Bound {
  std::string name;    // empty when the work is unknown
  double seconds = 0;  // no kernel can be faster on this machine
};

// The roofline model (Williams, Waterman and Patterson, "Roofline: An Insightful Visual Performance
// Model", 2009): a kernel takes as long as its arithmetic or as its data, whichever is longer.
// Weights come from the nearest place that holds `footprint`, all that a run touches between two
// uses of them; the rest from the nearest that holds all of the kernel's own data.
Bound bound_of(const KernelWork& work, double footprint, const MachineLimits& limits);

}  // namespace relay
