// One function of a plan to host code, without counts (hostcode/counts.h inserts them).
#pragma once

#include <string>
#include <vector>

#include "hostcode/code.h"
#include "plan/plan.h"

namespace relay {

// Why host code does not hold the step; empty when it does.
std::string why_not_host_code(const plan::PlanFunction& function, const plan::Step& step);

// What a function takes and gives by its types: a scalar wherever a type is one.
hostcode::Signature natural_signature(const plan::PlanFunction& function);

// What native functions call. `signatures`: of all functions of the plan.
hostcode::Function build_host_body(const plan::PlanProgram& plan, int32_t index,
                                   const std::vector<hostcode::Signature>& signatures);
// What the interpreter calls, and what `invoke` calls for closures with that many captured values.
hostcode::Function build_host_entry(const std::string& name, int32_t index,
                                    const hostcode::Signature& body);
hostcode::Function build_host_closure(const std::string& name, int32_t index,
                                      const hostcode::Signature& body, int32_t captured);

}  // namespace relay
