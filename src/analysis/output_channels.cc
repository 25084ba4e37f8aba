#include "analysis/output_channels.h"

#include "analysis/calls.h"
#include "ir/layout.h"
#include "ir/op.h"

namespace relay {
namespace {

// The axis of the weight with a row for each result, and the attribute for their number.
struct Matrix {
  int64_t axis;
  std::string_view attribute;
};

std::optional<Matrix> matrix_of(const CallNode& c, std::string_view op) {
  if (op == "nn.dense") return Matrix{0, "units"};
  if (op == "nn.matmul") return Matrix{bool_attr(c, "transpose_b") ? 0 : 1, "units"};
  if (op == "nn.batch_matmul") return Matrix{bool_attr(c, "transpose_b") ? 1 : 2, {}};
  return std::nullopt;
}

}  // namespace

std::optional<OutputChannels> output_channels(const CallNode& c) {
  auto* op = as<OpNode>(c.op);
  if (op == nullptr || c.args.size() != 2) return std::nullopt;
  auto* result = as<TensorTypeNode>(c.type);
  auto weight = static_shape(c.args[1]);
  if (result == nullptr || !weight) return std::nullopt;
  auto extent = [&](int64_t axis) { return (*weight)[static_cast<size_t>(axis)]; };
  if (auto matrix = matrix_of(c, op->name)) {
    return OutputChannels{result->rank() - 1, matrix->axis, extent(matrix->axis), matrix->attribute,
                          false};
  }
  bool transposed = op->name == "nn.conv2d_transpose" || op->name == "nn.conv1d_transpose" ||
                    op->name == "nn.conv3d_transpose";
  bool conv = op->name == "nn.conv2d" || op->name == "nn.conv1d" || op->name == "nn.conv3d";
  if (!conv && !transposed) return std::nullopt;
  bool grouped = int_attr(c, "groups") != 1;
  if (transposed && grouped) return std::nullopt;
  std::string out = text_attr(c, "out_layout");
  Layout data = Layout::of(out.empty() ? text_attr(c, "data_layout") : out),
         kernel = Layout::of(text_attr(c, "kernel_layout"));
  int64_t at = data.index_of('C'), weight_at = kernel.index_of('O');
  if (data.block_of('C') != 1 || kernel.block_of('O') != 1 || at < 0 || weight_at < 0) {
    return std::nullopt;
  }
  return OutputChannels{at, weight_at, extent(weight_at), "channels", grouped};
}

}  // namespace relay
