// Classic machine learning: the operators of ai.onnx.ml that prepare features, those on maps, and linear models.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/codes/frontend.h"
#include "base/codes/types.h"
#include "frontend/common/lists.h"
#include "frontend/onnx/ml_values.h"
#include "runtime/core/strings.h"

namespace relay::frontend::onnx {
namespace {

constexpr DType kF32 = DType::Float(32);

// ---- Preparing features

Values convert_scaler(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.in(0), kF32);
  auto with = [&](const char* op, const char* name) {
    std::vector<double> v = ctx.attr_floats(name);
    if (!v.empty()) x = ctx.call(op, {x, ctx.constant(floats(v))});
  };
  with("subtract", "offset");
  with("multiply", "scale");
  return {value_of(x)};
}

Values convert_normalizer(NodeContext& ctx) {
  Expr x = ctx.cast(ctx.in(0), kF32);
  const std::string norm = ctx.attr_string("norm", "MAX");
  const std::vector<int64_t> axis{NodeContext::rank_of(x) - 1};
  Expr size;
  if (norm == "MAX") {
    size = ctx.reduce("max", ctx.call("abs", {x}), axis, true);
  } else if (norm == "L1") {
    size = ctx.reduce("sum", ctx.call("abs", {x}), axis, true);
  } else if (norm == "L2") {
    size = ctx.call("sqrt", {ctx.reduce("sum", ctx.mul(x, x), axis, true)});
  } else {
    ctx.unsupported("norm '" + norm + "'");
  }
  return {value_of(ctx.div(x, ctx.call("maximum", {size, ctx.scalar_like(1e-30, x)})))};
}

Values convert_imputer(NodeContext& ctx) {
  Expr x = ctx.in(0);
  const DType dtype = NodeContext::dtype_of(x);
  const bool is_float = dtype.is_floating();
  Tensor values;
  Expr missing;
  if (is_float) {
    values = floats(ctx.attr_floats("imputed_value_floats"), dtype);
    const double replaced = ctx.attr_float("replaced_value_float", 0);
    missing = std::isnan(replaced) ? ctx.call("isnan", {x})
                                   : ctx.call("equal", {x, ctx.scalar_like(replaced, x)});
  } else {
    const std::vector<int64_t> ints = ctx.attr_ints("imputed_value_int64s");
    values = Tensor::empty(dtype, {static_cast<int64_t>(ints.size())});
    for (size_t i = 0; i < ints.size(); ++i) values.set_from_int(static_cast<int64_t>(i), ints[i]);
    Expr replaced = ctx.ints({ctx.attr("replaced_value_int64", 0)}, dtype);
    missing = ctx.call("equal", {x, replaced});
  }
  if (values.num_elements() == 0) {
    ctx.fail(codes::frontend_attribute, "there is no value to put in for missing ones",
             is_float ? "imputed_value_floats" : "imputed_value_int64s");
  }
  Expr imputed = ctx.broadcast_to(ctx.constant(values), NodeContext::shape_of(x));
  return {value_of(ctx.call("where", {missing, imputed, x}))};
}

Values convert_one_hot_encoder(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (ctx.attr("zeros", 1) == 0) {
    ctx.unsupported("zeros=0, by which a run fails for an unknown category",
                    "set zeros=1: an unknown category has no 1 then");
  }
  Tensor categories = string_vector(ctx.attr_strings("cats_strings"));
  if (!NodeContext::dtype_of(x).is_string()) {
    x = ctx.cast(x, DType::Int(64));
    std::vector<int64_t> ints = ctx.attr_ints("cats_int64s");
    categories = Tensor::empty(DType::Int(64), {static_cast<int64_t>(ints.size())});
    std::copy(ints.begin(), ints.end(), categories.data<int64_t>());
  }
  Expr hit =
      ctx.call("equal", {ctx.expand_dims(x, NodeContext::rank_of(x)), ctx.constant(categories)});
  return {value_of(ctx.cast(hit, kF32))};
}

Values convert_feature_vectorizer(NodeContext& ctx) {
  const std::vector<int64_t> sizes = ctx.attr_ints("inputdimensions");
  std::vector<Expr> parts;
  for (size_t i = 0; i < ctx.num_inputs(); ++i) {
    Expr x = ctx.cast(ctx.in(i), kF32);
    // A vector is the features of one sample; what has more dimensions is taken as lines of features.
    if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
    if (NodeContext::rank_of(x) < 2) {
      ctx.fail(codes::type_rank, "the inputs are samples by features", "rank 1 or more",
               to_string(x->type));
    }
    x = ctx.merge_axes(x, 1, static_cast<size_t>(NodeContext::rank_of(x)));
    const int64_t have = ctx.const_dim(x, 1, "the features");
    const int64_t want = i < sizes.size() ? sizes[i] : have;
    if (want < 0 || want > std::numeric_limits<int32_t>::max()) {
      ctx.fail(codes::frontend_attribute, "a size in 'inputdimensions' is out of range");
    }
    parts.push_back(want < have ? ctx.slice(x, 1, 0, want) : x);
    if (want > have) {
      parts.push_back(ctx.full(0, {NodeContext::shape_of(x)[0], dim(want - have)}, kF32));
    }
  }
  if (parts.empty()) ctx.fail(codes::frontend_attribute, "there are no inputs");
  return {value_of(ctx.concat(parts, 1))};
}

// ---- Records

// A record for each line: the labels beside their values.
Values convert_zip_map(NodeContext& ctx) {
  Expr x = ctx.in(0);
  if (NodeContext::rank_of(x) == 1) x = ctx.expand_dims(x, 0);
  Tensor labels = class_labels(ctx, "classlabels_int64s");
  if (NodeContext::rank_of(x) != 2 || ctx.const_dim(x, 1, "the values") != labels.num_elements()) {
    ctx.fail(codes::frontend_attribute, "the labels do not fit the values",
             std::to_string(labels.num_elements()) + " columns", to_string(x->type));
  }
  const DType i32 = DType::Int(32);
  Var i = var("i", tensor_type(std::vector<Dim>{}, i32), ctx.span());
  Expr record =
      ctx.tuple_of({ctx.constant(labels), ctx.call("take", {x, i}, {{"axis", int64_t{0}}})});
  Expr each = relay::function({i}, record, record->type, {}, {}, ctx.span());
  Expr sizes = ctx.call("shape_of", {x}, {{"dtype", to_value(i32)}});
  return {value_of(
      library_call(ctx, "sequence.of_numbers", {each, ctx.select(sizes, 0, 0)}, {record->type}))};
}

// ---- Maps: keys and values, a vector each

struct MapOf {
  Expr keys, values;
};

// The input as a map. What an input of the model, or a line that ZipMap makes, is: a pair of vectors.
MapOf map_of(NodeContext& ctx) {
  Expr x = ctx.in(0);
  auto* pair = as<TupleTypeNode>(x->type);
  if (pair == nullptr || pair->fields.size() != 2) {
    ctx.fail(codes::frontend_attribute, "the input is not a map",
             "a vector of keys and one of values", to_string(x->type));
  }
  return {ctx.item(x, 0), ctx.item(x, 1)};
}

// A number of the dtype that stands for 0; as a string, "0".
Expr zero_of(NodeContext& ctx, DType dtype) {
  Expr zero = ctx.scalar(0, dtype.is_string() ? DType::Int(64) : dtype);
  return dtype.is_string() ? ctx.call("text.format", {zero}) : zero;
}

// The values of the keys, in their order; of a key that the map has not it is `otherwise`.
Expr looked_up(NodeContext& ctx, const MapOf& map, const Tensor& keys, const Expr& otherwise) {
  const Dim count = dim(keys.num_elements());
  Expr hits = ctx.call("equal", {ctx.expand_dims(map.keys, 1), ctx.constant(keys)});
  // Behind all of them one that every key is found at.
  hits =
      ctx.concat({ctx.cast(hits, DType::Int(32)), ctx.full(1, {dim(1), count}, DType::Int(32))}, 0);
  Expr places = ctx.call("argmax", {hits}, {{"axis", to_value(std::vector<int64_t>{0})}});
  Expr values = ctx.concat({map.values, ctx.expand_dims(otherwise, 0)}, 0);
  return ctx.expand_dims(ctx.call("take", {values, places}, {{"axis", int64_t{0}}}), 0);
}

Tensor int_keys(const std::vector<int64_t>& keys) {
  Tensor t = Tensor::empty(DType::Int(64), {static_cast<int64_t>(keys.size())});
  std::copy(keys.begin(), keys.end(), t.data<int64_t>());
  return t;
}

Values convert_dict_vectorizer(NodeContext& ctx) {
  const MapOf map = map_of(ctx);
  const bool words = ctx.has_attr("string_vocabulary");
  const DType dtype = NodeContext::dtype_of(map.values);
  if (words != NodeContext::dtype_of(map.keys).is_string()) {
    ctx.fail(codes::frontend_attribute, "the vocabulary is not of the map's keys",
             NodeContext::dtype_of(map.keys).to_string(), words ? "strings" : "integers");
  }
  Tensor keys = words ? string_vector(ctx.attr_strings("string_vocabulary"))
                      : int_keys(ctx.attr_ints("int64_vocabulary"));
  Expr none =
      dtype.is_string() ? ctx.constant(runtime::make_strings({}, {""})) : ctx.scalar(0, dtype);
  return {value_of(looked_up(ctx, map, keys, none))};
}

// Values in the order of their keys, or each at the place that its key is.
Values convert_cast_map(NodeContext& ctx) {
  MapOf map = map_of(ctx);
  const std::string to = ctx.attr_string("cast_to", "TO_FLOAT"),
                    form = ctx.attr_string("map_form", "DENSE");
  static const std::map<std::string, DType> kTypes{
      {"TO_FLOAT", DType::Float(32)}, {"TO_INT64", DType::Int(64)}, {"TO_STRING", DType::String()}};
  auto type = kTypes.find(to);
  if (type == kTypes.end()) ctx.unsupported("cast_to '" + to + "'");
  const bool from_string = NodeContext::dtype_of(map.values).is_string();
  if (type->second.is_string()) {
    if (!from_string) map.values = ctx.call("text.format", {map.values});
  } else if (from_string) {
    map.values = ctx.call("text.parse", {map.values}, {{"dtype", to_value(type->second)}});
  } else {
    map.values = ctx.cast(map.values, type->second);
  }
  if (form == "DENSE") {
    Expr order = ctx.call("argsort", {map.keys},
                          {{"axis", int64_t{0}}, {"dtype", to_value(DType::Int(64))}});
    Expr sorted = ctx.call("take", {map.values, order}, {{"axis", int64_t{0}}});
    return {value_of(ctx.expand_dims(sorted, 0))};
  }
  if (form != "SPARSE") ctx.unsupported("map_form '" + form + "'");
  const int64_t size = ctx.attr("max_map", 1);
  if (size < 1) {
    ctx.fail(codes::frontend_attribute, "'max_map' is not a size", "1 or more",
             std::to_string(size));
  }
  ctx.charge_bytes(size, DType::Int(64));
  std::vector<int64_t> places(static_cast<size_t>(size));
  std::iota(places.begin(), places.end(), 0);
  // A key that has no place is an error of the run.
  map.keys =
      ctx.call("checked_index", {map.keys, ctx.scalar(static_cast<double>(size), DType::Int(64))});
  return {value_of(looked_up(ctx, map, int_keys(places), zero_of(ctx, type->second)))};
}

// ---- Linear models

// x times the rows of `coefficients` plus `intercepts`.
Expr linear(NodeContext& ctx, const Expr& x, int64_t rows) {
  const std::vector<double> coefficients = ctx.attr_floats("coefficients"),
                            intercepts = ctx.attr_floats("intercepts");
  const int64_t features = ctx.const_dim(x, 1, "the features");
  const DType dtype = NodeContext::dtype_of(x);
  if (rows <= 0 || static_cast<int64_t>(coefficients.size()) != rows * features ||
      (!intercepts.empty() && static_cast<int64_t>(intercepts.size()) != rows)) {
    ctx.fail(codes::frontend_attribute, "the coefficients do not fit the features",
             std::to_string(features) + " for each result", std::to_string(coefficients.size()));
  }
  Expr weights = ctx.constant(floats(coefficients, dtype).reshape({rows, features}));
  Expr y = ctx.call("nn.dense", {x, weights});
  return intercepts.empty() ? y : ctx.add(y, ctx.constant(floats(intercepts, dtype)));
}

Values convert_linear_regressor(NodeContext& ctx) {
  return {value_of(transformed(ctx, linear(ctx, samples(ctx), ctx.attr("targets", 1))))};
}

Values convert_linear_classifier(NodeContext& ctx) {
  Expr x = samples(ctx);
  Tensor labels = class_labels(ctx, "classlabels_ints");
  const int64_t features = std::max<int64_t>(ctx.const_dim(x, 1, "the features"), 1);
  const int64_t rows = static_cast<int64_t>(ctx.attr_floats("coefficients").size()) / features;
  Expr scores = linear(ctx, x, rows);
  const int64_t classes = labels.num_elements();
  if (rows == 1 && classes == 2) {
    scores = two_columns(ctx, scores, false);
  } else if (classes != rows) {
    ctx.unsupported("a classifier of " + std::to_string(classes) + " labels and " +
                    std::to_string(rows) + " scores");
  }
  scores = transformed(ctx, scores);
  return {value_of(best_label(ctx, scores, labels)), value_of(scores)};
}

}  // namespace

template <>
std::span<const ConverterRow> converter_rows<Converters::Ml>() {
  static constexpr ConverterRow rows[] = {
      {kMl, "CastMap", 1, convert_cast_map},
      {kMl, "DictVectorizer", 1, convert_dict_vectorizer},
      {kMl, "FeatureVectorizer", 1, convert_feature_vectorizer},
      {kMl, "Imputer", 1, convert_imputer},
      {kMl, "LinearClassifier", 1, convert_linear_classifier},
      {kMl, "LinearRegressor", 1, convert_linear_regressor},
      {kMl, "Normalizer", 1, convert_normalizer},
      {kMl, "OneHotEncoder", 1, convert_one_hot_encoder},
      {kMl, "Scaler", 1, convert_scaler},
      {kMl, "ZipMap", 1, convert_zip_map},
  };
  return rows;
}

}  // namespace relay::frontend::onnx
