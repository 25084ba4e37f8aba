// Sums, means and maxima over bags of embeddings: rows of a table whose indices are one vector, split at offsets.
#pragma once

#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {

// The bags, the bag of each index, the number of rows in each bag, and the indices of maxima.
Values embedding_bag(NodeContext& ctx);
// The gradient of the table.
Values embedding_bag_backward(NodeContext& ctx);
// The gradient of the weights of the indices.
Values embedding_bag_weights_backward(NodeContext& ctx);

}  // namespace relay::frontend::torch
