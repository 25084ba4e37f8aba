#include "tir/joint_tensors.h"

namespace relay::tir {

std::vector<Tensor> joint_tensors(
    const std::vector<JointOutput>& outputs, std::vector<Tensor> inputs,
    std::function<Stmt(const std::vector<Buffer>&, const std::vector<Buffer>&)> build) {
  RELAY_CHECK(!outputs.empty(), "no tensors");
  std::vector<Buffer> others;
  for (size_t i = 1; i < outputs.size(); ++i)
    others.push_back(buffer(outputs[i].name, outputs[i].dtype, outputs[i].shape));
  // The first tensor has the statements, the others come behind it and have none.
  const JointOutput& o = outputs[0];
  std::vector<Tensor> out = {imperative(
      o.name, o.dtype, o.shape, std::move(inputs),
      [others, build = std::move(build)](const std::vector<Buffer>& in, const Buffer& first) {
        std::vector<Buffer> all{first};
        all.insert(all.end(), others.begin(), others.end());
        return build(in, all);
      })};
  for (const Buffer& b : others) {
    out.push_back(make<TensorNode>([&](TensorNode& n) {
      n.name = b->name;
      n.dtype = b->dtype;
      n.buffer = b;
      n.inputs = {out[0]};
      n.imperative = [](const std::vector<Buffer>&, const Buffer&) { return Stmt(); };
    }));
  }
  return out;
}

}  // namespace relay::tir
