// EtaExpand: makes functions of constructors and global functions that are used as values.
//
// before                                   after
//   @apply(Both, %x)                         @apply(fn (%p0, %p1) { Both(%p0, %p1) }, %x)
//
// Afterwards every constructor is called where it stands. Constructors are expanded unless
// `relay.EtaExpand.expand_constructor` is False in the context's config; functions of the module
// only when `relay.EtaExpand.expand_global_var` is True. Legal always.
// Loses a closure for each value. Does not touch callees.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kEtaExpand;

// The pass with its options.
Module eta_expand(const Module& mod, bool constructors, bool globals);

}  // namespace relay
