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

}  // namespace relay
