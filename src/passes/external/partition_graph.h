// PartitionGraph: every region of an external code generator is a function of the module.
//
// before   def @main(%x: Tensor[(2), float32]) { end(nn.relu(begin(%x, "dnnl")), "dnnl") }
// after    def @main(%x: Tensor[(2), float32]) { @tvmgen_default_dnnl_main_0(%x) }
//          def @tvmgen_default_dnnl_main_0(%dnnl_0_i0: Tensor[(2), float32], global_symbol="tvmgen_default_dnnl_main_0",
//              Primitive=1, Compiler="dnnl", Inline=1) -> Tensor[(2), float32] { nn.relu(%dnnl_0_i0) }
//
// Names are those of the first Relay: tvmgen_<mod_name>_<name>_<function>_<number of the region>. Several results are a tuple.
// With bind_constants, constants that a region reads become part of its function. Regions that the code generator declines,
// those with a named size that no input tells, and those of "default" lose their marks. A region that needs its own result is UserError E0318.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kPartitionGraph;

}  // namespace relay
