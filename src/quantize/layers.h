// The layers of a program that quantisation is about, and the program with some of them quantised.
//
//   before                        after
//     nn.conv2d(%x, %w)             %q = qnn.quantize(%x, 0.02f, 3, out_dtype="uint8");
//                                   nn.conv2d(qnn.dequantize(%q, 0.02f, 3), qnn.dequantize(%v, %s, 0))
//
// with %v the weights in int8, one scale for each output channel. The pass FakeQuantizationToInteger makes these
// convolutions ones of integers.
#pragma once

#include <string>
#include <vector>

#include "analysis/output_channels.h"
#include "ir/module.h"
#include "quantize/range.h"

namespace relay::quantize {

struct Layer {
  Call call;
  std::string name;         // the model's, or "nn.conv2d 3"; unique
  std::string obstacle;     // why the layer stays in floats; empty: it can be quantised
  size_t source = 0;        // index of its data in Layers::sources
  bool by_channel = false;  // its weights have a scale for each output channel
  std::optional<OutputChannels> channels;
  Expr weights;  // in int8, as the numbers that they stand for; null where they have no such form

  bool quantizable() const { return obstacle.empty(); }
  int64_t weight_bytes() const;
  double flops() const;
};

// A program as quantisation sees it. Batch normalisations are part of weights, explicit paddings of convolutions.
struct Layers {
  Module module;
  IntegerForm form;
  std::vector<Layer> layers;  // in the order of evaluation
  // Tensors that are quantised: the data of layers, before what only moves their elements.
  std::vector<Expr> sources;

  // The program with @main giving these instead.
  Module with_results(std::vector<Expr> results) const;
};

// `mod` is typed; `prepared` is the result of the passes that quantisation needs.
Layers find_layers(const Module& prepared, const IntegerForm& form);

// What calibration found.
struct Parameters {
  std::vector<Range> ranges;  // of Layers::sources
  // What is added to each output channel of a layer, since its quantised weights give that much less on average;
  // null: nothing.
  std::vector<Tensor> corrections;
};

// The layer's sum with its data and weights rounded to integers, in floats.
Expr quantized_layer(const Layer& layer, const Expr& data, const Range& range,
                     const IntegerForm& form);

// The program with the layers `chosen` quantised; the others stay in floats.
Module with_quantized(const Layers& layers, const std::vector<bool>& chosen,
                      const Parameters& parameters);

}  // namespace relay::quantize
