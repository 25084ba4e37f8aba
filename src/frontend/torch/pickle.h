// Pickles of tensors and dictionaries, read without executing anything.
//
// A pickle is a program of a small machine with a stack. The reader has the instructions that tensors, dictionaries, lists
// and numbers are written with, and knows the few functions of PyTorch that make tensors by their names; it calls nothing,
// and refuses everything else.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frontend/torch/storage.h"

namespace relay::frontend::torch {

struct PickleValue;
using PicklePtr = std::shared_ptr<PickleValue>;

struct PickleValue {
  enum class Kind { none, truth, integer, real, text, tuple, list, dict, global, storage, tensor };
  Kind kind = Kind::none;
  int64_t integer = 0;  // of a truth value and an integer; the elements of a storage
  double real = 0;
  std::string text;              // of a text, of a global "module.name", the key of a storage
  std::vector<PicklePtr> items;  // of a tuple and a list; of a dictionary keys and values in turn
  DType dtype;                   // of a storage or a tensor
  Strided layout;                // of a tensor, in the storage items[0]
  int depth = 1;
  bool is_part = false;  // of another value: it does not change any more
};

// The value of a pickle. E0502 for what is damaged, E0504 for what it does not read - with the name of the class or
// function - and E0506 for values in each other beyond 100 levels.
PicklePtr read_pickle(std::string_view bytes, const Span& span);

}  // namespace relay::frontend::torch
