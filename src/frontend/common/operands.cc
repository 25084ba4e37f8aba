#include "frontend/common/operands.h"

#include "base/codes/frontend.h"
#include "base/quantities.h"
#include "frontend/common/tensor_bytes.h"

namespace relay::frontend {

const ValuePtr& Operands::value(size_t i) const {
  if (!has(i)) {
    fail(codes::frontend_graph, "input " + std::to_string(i) + " is missing",
         "at least " + counted(i + 1, "input"), std::to_string(inputs_.size()));
  }
  return inputs_[i];
}
std::vector<Expr> Operands::all() const {
  std::vector<Expr> out;
  for (size_t i = 0; i < inputs_.size(); ++i) out.push_back(in(i));
  if (out.empty()) value(0);
  return out;
}
std::optional<KnownValue> Operands::known(size_t i) const {
  return has(i) ? inputs_[i]->known : std::nullopt;
}
KnownValue Operands::must_know(size_t i, const char* what) const {
  const ValuePtr& v = value(i);
  if (v->known) return *v->known;
  if (v->data) {
    fail(codes::frontend_limit, std::string(what) + " has too many elements",
         "at most " + std::to_string(kMaxKnownElements), std::to_string(v->data.num_elements()));
  }
  fail(codes::frontend_dynamic, std::string(what) + " is known only when the model runs",
       std::string(what) + " computed from constants and input shapes",
       "the value '" + v->name.substr(0, 200) + "'",
       "give fixed input shapes, or simplify the model so that this becomes a constant");
}
std::vector<int64_t> Operands::const_ints(size_t i, const char* what) const {
  KnownValue k = must_know(i, what);
  std::vector<int64_t> out;
  for (int64_t e = 0; e < k.size(); ++e) {
    if (k.is_int() && !as_const(k.ints[static_cast<size_t>(e)])) {
      fail(codes::frontend_dynamic, std::string(what) + " depends on an input's open dimension",
           "a number", to_string(k.ints[static_cast<size_t>(e)]),
           "give the input's shape, as in --input NAME=1x3x224x224");
    }
    if (!k.is_int()) {
      fail(codes::frontend_attribute, std::string(what) + " must hold integers", "integers",
           k.dtype.to_string());
    }
    out.push_back(k.int_at(e));
  }
  return out;
}
int64_t Operands::const_int(size_t i, const char* what) const {
  std::vector<int64_t> v = const_ints(i, what);
  if (v.size() != 1) {
    fail(codes::frontend_attribute, std::string(what) + " must be one number", "1 element",
         std::to_string(v.size()));
  }
  return v[0];
}
std::optional<double> Operands::const_scalar(size_t i) const {
  auto k = known(i);
  if (!k || k->size() != 1 || !k->is_constant()) return std::nullopt;
  return k->float_at(0);
}

Expr Operands::matmul_input(Expr a, size_t b) const {
  // A larger matrix is exchanged when the program is compiled, so that weights which are mapped stay so.
  constexpr size_t kLarge = size_t{1} << 20;
  const ValuePtr& v = value(b);
  const bool is_matrix = !v->failed && v->data && !v->is_parameter && v->data.shape().size() == 2;
  if (!is_matrix || rank_of(a) == 0 || dim_differs(shape_of(a).back(), dim(v->data.dim(0)))) {
    return matmul(std::move(a), in(b));
  }
  if (!v->transposed) {
    v->transposed = v->data.byte_size() > kLarge
                        ? transpose(in(b), {1, 0})
                        : relay::constant(transpose_matrix(v->data), v->span, v->name);
  }
  return call("nn.dense", {std::move(a), v->transposed});
}

}  // namespace relay::frontend
