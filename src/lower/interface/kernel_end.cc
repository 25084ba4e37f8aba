#include "lower/interface/kernel_end.h"

#include <algorithm>
#include <string_view>

#include "lower/interface/compute_rule.h"
#include "node/walk.h"
#include "runtime/core/print.h"

namespace relay {
namespace {

// The functions on strings, images and indices that refuse what they are given.
constexpr std::string_view kRefusing[] = {"image_decode", "image_size",       "index_in",
                                          "text_match",   "text_parse_float", "text_parse_int"};

bool ends_run(const Node& n) {
  if (isa<tir::CheckNode>(&n)) return true;
  auto* c = as<tir::CallNode>(&n);
  if (c == nullptr) return false;
  if (c->name == "print_end")
    return tir::as_int(c->args[0]) >= static_cast<int64_t>(runtime::PrintEnd::Failure);
  // Patterns that cut tokens may be none.
  if (c->name == "text_count" && tir::as_int(c->args[2]).value_or(0) < 0) return true;
  return std::ranges::find(kRefusing, c->name) != std::end(kRefusing);
}

bool may_end_run(const std::vector<tir::Tensor>& inputs, const std::vector<tir::Tensor>& results) {
  bool found = false;
  post_order(tir::create_prim_func("kernel", inputs, results),
             [&](const Node& n) { found |= ends_run(n); });
  return found;
}

// Each `?` as a size with a name of its own.
Type with_names(const Type& type) {
  return Type::unchecked(rewrite(
      type,
      [](const NodeRef&, NodeRef rebuilt) -> NodeRef {
        if (!isa<DimAnyNode>(rebuilt)) return rebuilt;
        return dim(type_var("n", Kind::Dim));
      },
      family::type | family::dim));
}

}  // namespace

bool kernel_may_end_run(const CallNode& call) {
  DimScope dims;
  std::vector<tir::Tensor> inputs;
  std::vector<Expr> args;
  for (const Expr& a : call.args) {
    args.push_back(var("p", with_names(a->type)));
    const auto tensors = flatten_tensor_types(args.back()->type);
    for (const TensorType& t : *tensors) {
      inputs.push_back(tir::placeholder("p" + std::to_string(inputs.size()), t->dtype.storage(),
                                        dims.lower(t->shape)));
    }
  }
  Call named = make<CallNode>([&](CallNode& c) {
    c.op = call.op;
    c.args = args;
    c.attrs = call.attrs;
    c.span = call.span;
    c.type = with_names(call.type);
  });
  if (may_end_run(inputs, compute_call(*named.get(), inputs, dims))) return true;
  return data_decides_shape(*as<OpNode>(call.op)->row) &&
         may_end_run(inputs, compute_call_shapes(*named.get(), inputs, dims));
}

}  // namespace relay
