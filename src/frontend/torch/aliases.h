// Views and writes of PyTorch, as functions.
//
// A tensor is a storage and a chain of views of it. Reading it applies the views to what the storage holds now; writing
// it folds the new elements back, from the last view to the storage. Everything that shares the storage reads the new
// elements from then on:
//
//   y = x[0]          storage of x, views {select 0}
//   y.add_(1)         x = select_scatter(x, y + 1, 0)
//   return x          reads the new value
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "frontend/common/model_value.h"

namespace relay::frontend::torch {

// A part or another arrangement of a tensor.
struct View {
  // Whether the elements are those of the base, or new ones; strides decide, which are not always known.
  enum class How { view, copy, unknown };

  std::function<Expr(const Expr& base)> read;
  // The base with other elements in the view; null where one element of the base stands for several of the view.
  std::function<Expr(const Expr& base, const Expr& elements)> write = nullptr;
  How how = How::view;
};

struct Storage {
  ValuePtr value;
  int64_t writes = 0;
};

// A value of the graph. Values that are no tensors have a storage that is never written.
struct TensorValue {
  std::shared_ptr<Storage> storage;
  std::vector<View> views;
  // Of what may be a view or a copy: the number of writes when it was made; it holds only until the next. Else -1.
  int64_t known_at = -1;

  // What was read last, and at which number of writes.
  ValuePtr read;
  int64_t read_at = -1;
};

}  // namespace relay::frontend::torch
