#include "passes/alter_op_layout.h"

#include "ir/layout.h"
#include "ir/op.h"
#include "node/walk.h"
#include "passes/constant_expressions.h"

namespace relay {
namespace {

std::string text_attr(const CallNode& c, std::string_view name) {
  return *attr_value(c.attrs, name).get_if<std::string>();
}

// The attributes of a call with some of them changed.
Attrs with_attrs(const CallNode& c, const NodeInfo& info,
                 std::vector<std::pair<std::string, Value>> changes) {
  std::vector<std::pair<std::string, Value>> values;
  for (auto& [name, value] : attr_values(c.attrs)) {
    if (info.find(name) != nullptr) values.emplace_back(name, value);
  }
  for (auto& change : changes) values.push_back(std::move(change));
  return make_attrs(info, values, as<OpNode>(c.op)->name, c.span);
}

Expr transform(const Expr& e, const std::string& from, const std::string& to) {
  const OpInfo& row = *OpRegistry::global().get("layout_transform")->row;
  return call("layout_transform", {e},
              make_attrs(*row.attrs, {{"src_layout", Value(from)}, {"dst_layout", Value(to)}},
                         row.name, e->span),
              e->span);
}

std::optional<std::vector<int64_t>> static_shape(const Expr& e) {
  auto* t = as<TensorTypeNode>(e->type);
  return t == nullptr ? std::nullopt : t->const_shape();
}

Expr pack_dense(const CallNode& c, const TargetTraits& target, ConstantExpressions& constants) {
  auto* type = as<TensorTypeNode>(c.args[1]->type);
  auto shape = static_shape(c.args[1]);
  if (!shape || !type->dtype.is_float(32) || !constants.contains(c.args[1])) return nullptr;
  std::string layout = "NC" + std::to_string(2 * target.vector_lanes_f32) + "n";
  const OpInfo& row = *OpRegistry::global().get("nn.contrib_dense_pack")->row;
  Attrs attrs = make_attrs(*row.attrs,
                           {{"units", Value((*shape)[0])},
                            {"out_dtype", attr_value(c.attrs, "out_dtype")},
                            {"weight_layout", Value(layout)}},
                           row.name, c.span);
  return call("nn.contrib_dense_pack", {c.args[0], transform(c.args[1], "NC", layout)}, attrs,
              c.span);
}

Expr pack_conv2d(const CallNode& c, const TargetTraits& target, ConstantExpressions& constants) {
  auto* type = as<TensorTypeNode>(c.args[1]->type);
  auto data = static_shape(c.args[0]);
  auto shape = static_shape(c.args[1]);
  if (!data || !shape || !type->dtype.is_float(32) || !constants.contains(c.args[1])) {
    return nullptr;
  }
  std::string layout = text_attr(c, "kernel_layout");
  if (text_attr(c, "data_layout") != "NHWC" || layout.find_first_of("0123456789") != layout.npos) {
    return nullptr;
  }
  Layout kernel = Layout::of(layout);
  int64_t groups = *attr_value(c.attrs, "groups").get_if<int64_t>();
  auto axis = [&](char name) { return (*shape)[static_cast<size_t>(kernel.index_of(name))]; };
  std::string packed;
  if (groups == 1) {
    packed = "OHWI" + std::to_string(2 * target.vector_lanes_f32) + "o";
  } else if (axis('I') == 1 && groups == data->back() && axis('O') == groups) {
    packed = "HWIO";
  } else {
    return nullptr;
  }
  if (packed == layout) return nullptr;
  ValueList kernel_size{Value(axis('H')), Value(axis('W'))};
  Attrs attrs = with_attrs(c, *as<OpNode>(c.op)->row->attrs,
                           {{"kernel_layout", Value(packed)},
                            {"channels", Value(axis('O'))},
                            {"kernel_size", Value(std::move(kernel_size))}});
  return call(c.op, {c.args[0], transform(c.args[1], layout, packed)}, attrs, c.span);
}

// Output channels last, so that lanes over them read neighbouring weights.
Expr pack_conv2d_transpose(const CallNode& c, ConstantExpressions& constants) {
  std::string layout = text_attr(c, "kernel_layout");
  if (text_attr(c, "data_layout") != "NHWC" || layout == "HWIO" ||
      *attr_value(c.attrs, "groups").get_if<int64_t>() != 1 || !constants.contains(c.args[1])) {
    return nullptr;
  }
  Attrs attrs =
      with_attrs(c, *as<OpNode>(c.op)->row->attrs, {{"kernel_layout", Value(std::string("HWIO"))}});
  return call(c.op, {c.args[0], transform(c.args[1], layout, "HWIO")}, attrs, c.span);
}

Module run(const Module& mod, PassContext& ctx) {
  if (!ctx.target.layouts || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    ConstantExpressions constants;
    return cast<FunctionNode>(rewrite(
        f,
        [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
          auto* c = as<CallNode>(rebuilt);
          if (c == nullptr) return rebuilt;
          Expr e = Expr::unchecked(rebuilt);
          Expr packed;
          if (is_call_to(e, "nn.dense")) packed = pack_dense(*c, ctx.target, constants);
          if (is_call_to(e, "nn.conv2d")) packed = pack_conv2d(*c, ctx.target, constants);
          if (is_call_to(e, "nn.conv2d_transpose")) packed = pack_conv2d_transpose(*c, constants);
          return packed ? NodeRef(packed) : rebuilt;
        },
        family::expr | family::pattern));
  });
}

}  // namespace

const Pass kAlterOpLayout{"AlterOpLayout",
                          3,
                          Form::graph,
                          Form::graph,
                          "Packs constant weights the way the target's kernels read them.",
                          run};

}  // namespace relay
