// Convolutions by minimal filtering (the operator nn.contrib_conv2d_winograd_*): tiles of results
// in groups, so that the transformed data of a group stays in L2 while all
// transformed weights pass by; or, where the weights are many and the tiles few, all tiles at
// once, phase after phase.
#pragma once

#include "lower/rules/common.h"

namespace relay {

std::string schedule_winograd(tir::Schedule& s, const Target& target);

}  // namespace relay
