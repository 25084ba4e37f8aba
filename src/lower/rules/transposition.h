// Elements of 8 to 64 bits that change places in blocks: rows of one tensor are columns of the other.
#pragma once

#include "lower/rules/common.h"

namespace relay {

// Schedules a block of data-parallel loops that reads elements along one axis and writes along another: what it reads is
// turned in blocks of a register by shuffles (tir/transposed_nest.h), and the rest goes by vectors. A sentence; empty, with
// nothing done, when the block is no such.
std::string schedule_transposition(tir::Schedule& s, const tir::BlockRV& block,
                                   const Target& target);

}  // namespace relay
