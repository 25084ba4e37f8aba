// Several tensors that the same statements write.
#pragma once

#include <string>
#include <vector>

#include "tir/compute.h"

namespace relay::tir {

struct JointOutput {
  std::string name;
  DType dtype;
  std::vector<PrimExpr> shape;
};

// One tensor for each of `outputs`, of which there is one at least; `build` gives the statements that write them all from
// the inputs. A kernel that needs one of the tensors has these statements, once.
std::vector<Tensor> joint_tensors(
    const std::vector<JointOutput>& outputs, std::vector<Tensor> inputs,
    std::function<Stmt(const std::vector<Buffer>& inputs, const std::vector<Buffer>& outputs)>
        build);

}  // namespace relay::tir
