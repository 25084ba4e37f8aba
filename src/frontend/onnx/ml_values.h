// What converters of ai.onnx.ml share: samples, scores and labels.
#pragma once

#include <string>
#include <vector>

#include "frontend/onnx/importer.h"

namespace relay::frontend::onnx {

// Numbers of an attribute as a vector.
Tensor floats(const std::vector<double>& values, DType dtype = DType::Float(32));

// An input as floats, integers as float32: samples by features. One line of features is one sample.
Expr samples(NodeContext& ctx, size_t input = 0);

// Scores as the attribute 'post_transform' wants them.
Expr transformed(NodeContext& ctx, const Expr& scores);

// The classes' labels: strings, or integers of the attribute `ints`.
Tensor class_labels(NodeContext& ctx, const char* ints);
// The label at the place of the highest score.
Expr best_label(NodeContext& ctx, const Expr& scores, const Tensor& labels);

// Scores of one column as those of two classes: of the second it is the column, of the first its
// negative or what is left to 1.
Expr two_columns(NodeContext& ctx, const Expr& second, bool to_one);

}  // namespace relay::frontend::onnx
