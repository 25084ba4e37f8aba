// Tensor expressions: how an operator says what it computes.
//
// A Tensor is either a placeholder (an input) or the result of a body: an expression of its index
// variables, whose root may be one Reduce. Tensors that read other tensors form a graph;
// `create_prim_func` turns such a graph into a PrimFunc of one block per tensor.
//
//   Tensor a = placeholder("a", f32, {index(4), index(8)});
//   Tensor s = compute("s", {index(4)}, [&](const Indices& i) {
//     return sum(a->dtype, {index(8)}, [&](const Indices& k) { return a(i[0], k[0]); });
//   });
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tir/stmt.h"

namespace relay::tir {

struct TensorNode;
using Indices = std::vector<PrimExpr>;

// A handle with call syntax for element access.
class Tensor : public Ref<TensorNode> {
 public:
  using Ref::Ref;
  Tensor() = default;
  Tensor(Ref<TensorNode> r) : Ref(std::move(r)) {}  // NOLINT
  // The element at the indices (as many as the rank).
  PrimExpr operator()(const Indices& indices) const;
  template <class... I>
  requires(sizeof...(I) > 0 && (std::is_convertible_v<I, PrimExpr> && ...)) PrimExpr operator()(
      I... indices) const {
    return (*this)(Indices{PrimExpr(indices)...});
  }
};

struct TensorNode : Node {
  static constexpr int kKind = 0x5E0;
  std::string name;
  DType dtype = DType::Float(32);
  Buffer buffer;                 // carries the shape; Loads of it are reads of this tensor
  std::vector<IterVar> axes;     // one for each dimension; empty list for a placeholder
  std::vector<PrimExpr> bodies;  // empty: placeholder (or `imperative`)
  std::vector<Tensor> inputs;    // the tensors that the body reads
  BlockRole role;                // of the block that computes it
  // Of a sum of products: the dimensions of its axes, then of what it sums over.
  std::vector<BlockDimension> dims;
  // For what no expression can say (sort, scatter, cumulative sums): writes `buffer` from the
  // buffers of `inputs`. Such a tensor becomes an opaque block.
  std::function<Stmt(const std::vector<Buffer>& inputs, const Buffer& output)> imperative;
  TensorNode() : Node(static_info()) {}
  static const NodeInfo& static_info();

  const std::vector<PrimExpr>& shape() const { return buffer->shape; }
  int64_t rank() const { return static_cast<int64_t>(buffer->shape.size()); }
};

Tensor placeholder(std::string name, DType dtype, std::vector<PrimExpr> shape);

// The tensor whose element at i is body(i). Loads in the body must be of tensors.
Tensor compute(std::string name, std::vector<PrimExpr> shape,
               const std::function<PrimExpr(const Indices&)>& body, BlockRole role = {});

// A tensor written by statements.
Tensor imperative(std::string name, DType dtype, std::vector<PrimExpr> shape,
                  std::vector<Tensor> inputs,
                  std::function<Stmt(const std::vector<Buffer>&, const Buffer&)> build);

// A reduction over `extents` of body(k); only as the root of a compute body.
PrimExpr reduce(Combiner combiner, std::vector<PrimExpr> extents,
                const std::function<PrimExpr(const Indices&)>& body);
PrimExpr sum(std::vector<PrimExpr> extents, const std::function<PrimExpr(const Indices&)>& body);
// A dimension of a sum of products, of iteration `iteration`: the axes of the shape are counted first, then what is summed
// over. Without an extent it is the whole iteration.
struct StatedDimension {
  size_t iteration;
  ContractionRole role;
  PrimExpr extent = nullptr;
};
// A sum of products: the sum over `extents` of term(i, k) for each element i. An iteration of several dimensions lists them
// slowest first; without dimensions, the sum states no contraction.
Tensor contract(std::string name, std::vector<PrimExpr> shape, std::vector<PrimExpr> extents,
                const std::vector<StatedDimension>& dims,
                const std::function<PrimExpr(const Indices& i, const Indices& k)>& term);
// The same, with one dimension for each iteration.
Tensor contract(std::string name, std::vector<PrimExpr> shape, std::vector<PrimExpr> extents,
                const std::vector<ContractionRole>& roles,
                const std::function<PrimExpr(const Indices& i, const Indices& k)>& term);
// The index (int64) of the first least/greatest body(k) over one extent.
PrimExpr arg_reduce(Combiner arg_min_or_max, PrimExpr extent,
                    const std::function<PrimExpr(const PrimExpr&)>& body);

// The kernel that computes `outputs` from `inputs` (placeholders): a block for each tensor in
// dependency order, in loops over its axes; tensors that are not a parameter become Allocate'd
// buffers. Blocks of reductions have an init. Deterministic.
PrimFunc create_prim_func(std::string name, const std::vector<Tensor>& inputs,
                          const std::vector<Tensor>& outputs, std::vector<Var> dims = {});

}  // namespace relay::tir
