// Graphs of PyTorch that Python hands over (torch.cc).
#pragma once

#include <nanobind/nanobind.h>

namespace relay::bind {

void bind_torch(nanobind::module_& m);

}  // namespace relay::bind
