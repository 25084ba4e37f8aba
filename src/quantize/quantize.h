// Quantisation after training: a float program and some of its inputs in, a program of 8-bit integers out.
//
//   Quantized q = quantize_model(model.module, samples, options);
//   compile(q.module, options.compile);
//   q.report.output_error            how far its results are from the float program's
//
// The program is run on the samples once to see how far the data of its layers reach (and once more where the
// choice of the range counts numbers), and once with each layer in both forms, which tells how much each loses: these
// are the layers that go back to floats first where an aim is missed.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "driver/compile.h"
#include "quantize/range.h"

namespace relay::quantize {

// Inputs of @main for some runs, one tensor for each parameter.
using Samples = std::vector<std::vector<Tensor>>;

struct Options {
  Calibration calibration = Calibration::min_max;
  double percentile = 99.99;  // of the numbers that stay in the range, for Calibration::percentile
  IntegerForm form;
  bool bias_correction = true;          // takes the mean of the error of each output channel away
  double global_scale = 8;              // data are from -8 to 8, for Calibration::global_scale
  std::vector<std::string> keep_float;  // names of layers that stay in floats
  std::vector<int64_t>
      skip_conv_layers;  // so do these convolutions, counted from 0 in the order of evaluation
  bool skip_dense_layer = false;  // and so do all layers that are no convolutions

  // Aims. As long as one is missed, the layers that lose most go back to floats.
  // Largest relative error of the results: the square root of sum (q - f)^2 / sum f^2 over all samples.
  std::optional<double> max_error;
  // Least share of rows of the first result whose largest element is at the same place.
  std::optional<double> min_agreement;
  // Largest loss of `score`, which is asked with the float program and with quantised ones.
  std::optional<double> max_loss;
  std::function<double(const runtime::Module&)> score;

  CompileOptions compile;
};

struct LayerReport {
  std::string name;
  std::string op;
  std::string result;  // type of the result
  bool quantized = false;
  std::string obstacle;  // why not; empty for quantised layers
  Range range;           // of the data
  Scale scale;           // that their integers have
  double error = 0;      // relative, of the layer alone on exact data; after bias correction
  double flops = 0;      // 0: unknown
  int64_t weight_bytes = 0, quantized_weight_bytes = 0;
  double seconds = 0, quantized_seconds = 0;  // of the kernels that hold the layer; 0: unknown
};

struct Report {
  std::vector<LayerReport> layers;
  Calibration calibration = Calibration::min_max;
  size_t samples = 0;
  double output_error = 0;
  std::optional<double> agreement;                           // none where no result has rows
  std::optional<double> score, quantized_score;              // where a score was asked for
  int64_t constant_bytes = 0, quantized_constant_bytes = 0;  // as the programs store them
  // Packed for the target; a float convolution may hold filters that are several times larger (minimal filtering).
  int64_t compiled_bytes = 0, quantized_compiled_bytes = 0;
  double seconds = 0, quantized_seconds = 0;  // of one run, the fastest of several
  size_t tried = 0;                           // programs that were compared with the float one

  size_t quantized_layers() const;
};

struct Quantized {
  Module module;  // typed; quantised numbers in the form that FakeQuantizationToInteger reads
  Report report;
};

// Throws UserError: E0706 for no samples, for samples with data that are not finite somewhere in the program, and for a
// program without a layer that can be quantised; E0603 for a sample that does not fit the parameters; E0702 for a name in
// `keep_float` that is no layer's, for a number that is no convolution's, and for a scale and aims out of range.
Quantized quantize_model(const Module& mod, const Samples& samples, const Options& options);

}  // namespace relay::quantize
