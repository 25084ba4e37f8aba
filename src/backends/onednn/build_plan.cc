#include "backends/onednn/build_plan.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

namespace relay::onednn {
namespace {

using Arguments = std::vector<std::pair<int, size_t>>;  // number of oneDNN, slot

// A mask of all dimensions along which scales differ.
constexpr int kOneScale = 0;

class PlanBuilder {
 public:
  // The description is read while the plan is made, and no longer.
  PlanBuilder(const Description& region, const void* data, const int64_t* sizes)
      : region_(region), data_(static_cast<const std::byte*>(data)) {
    size_t num_inputs = 0;
    for (const ValueRow& v : region.values) num_inputs += v.role == Role::input;
    plan_ = std::make_shared<Plan>(region.sizes(sizes[0]), num_inputs);
    if (!plan_->fits(sizes)) {
      throw std::runtime_error("the sizes of a region's operands are not those of its description");
    }
    values_.resize(region.values.size(), -1);
    last_use_.resize(region.values.size(), 0);
    for (size_t i = 0; i < region.ops.size(); ++i) {
      for (int64_t v : region.ops[i].operands) last_use_[static_cast<size_t>(v)] = i;
    }
    for (int64_t v : region.outputs) last_use_[static_cast<size_t>(v)] = region.ops.size();
    size_t inputs = 0;
    for (size_t v = 0; v < values_.size(); ++v) {
      const ValueRow& row = region.values[v];
      if (row.role == Role::computed) continue;
      if (row.role == Role::zeros) {
        values_[v] = static_cast<int64_t>(add_zeros(row));
        continue;
      }
      const bool input = row.role == Role::input;
      values_[v] =
          static_cast<int64_t>(add({.place = input ? Slot::kInput : Slot::kDescription,
                                    .layout = row_major(row.dims, row.type),
                                    .index = input ? inputs++ : static_cast<size_t>(row.offset)}));
    }
  }

  std::shared_ptr<Plan> build() {
    for (now_ = 0; now_ < region_.ops.size(); ++now_) {
      const OpRow& op = region_.ops[now_];
      if (!region_.values[op.result].is_empty()) add_op(op);
    }
    for (size_t i = 0; i < region_.outputs.size(); ++i) {
      const auto v = static_cast<size_t>(region_.outputs[i]);
      if (region_.values[v].is_empty()) continue;
      const size_t to = add({.place = Slot::kOutput,
                             .layout = row_major(region_.values[v].dims, region_.values[v].type),
                             .index = i});
      add_reorder(slot_of(v), to);
    }
    plan_->place_working_memory();
    return std::move(plan_);
  }

 private:
  size_t add(Slot slot) { return plan_->add(std::move(slot)); }
  size_t slot_of(size_t value) const { return static_cast<size_t>(values_[value]); }
  const Layout* layout_in(size_t slot) const { return plan_->slot(slot).layout.get(); }

  void add_reorder(size_t from, size_t to) {
    PrimitiveDesc* desc = nullptr;
    check(api().reorder(&desc, layout_in(from), engine(), layout_in(to), engine(), nullptr),
          "dnnl_reorder_primitive_desc_create");
    const OwnedDesc owned(desc);
    push_step(desc, {{kSource, from}, {kResult, to}});
  }

  void push_step(const PrimitiveDesc* desc, Arguments arguments) {
    for (auto [number, slot] : arguments) keep(plan_->owner(slot));
    plan_->add_step(desc, std::move(arguments));
  }
  // A constant that a step reads as it is becomes memory of the plan: the description is another buffer in another run.
  void keep(Slot& slot) {
    if (slot.place != Slot::kDescription) return;
    const size_t bytes = api().layout_size(slot.layout.get());
    slot.bytes = aligned_bytes(bytes);
    std::memcpy(slot.bytes.get(), data_ + slot.index, bytes);
    slot.place = Slot::kConstant;
  }
  // Where the bytes of a constant are while the plan is made; null for other slots.
  const std::byte* constant(size_t slot) {
    const Slot& owner = plan_->owner(slot);
    return owner.place == Slot::kDescription ? data_ + owner.index : owner.bytes.get();
  }

  size_t add_zeros(const ValueRow& row) {
    Slot slot{.place = Slot::kConstant, .layout = row_major(row.dims, row.type)};
    const size_t bytes = api().layout_size(slot.layout.get());
    slot.bytes = aligned_bytes(bytes);
    std::memset(slot.bytes.get(), 0, bytes);
    return add(std::move(slot));
  }

  // A constant in another layout, computed once.
  size_t packed(size_t from, const Layout* wanted) {
    Slot to{.place = Slot::kConstant, .layout = copy_of(wanted)};
    to.bytes = aligned_bytes(api().layout_size(wanted));
    PrimitiveDesc* desc = nullptr;
    check(api().reorder(&desc, layout_in(from), engine(), wanted, engine(), nullptr),
          "dnnl_reorder_primitive_desc_create");
    const OwnedDesc owned(desc);
    const OwnedPrimitive primitive = primitive_of(desc);
    const OwnedMemory source = memory_of(plan_->slot(from), constant(from));
    const OwnedMemory result = memory_of(to, to.bytes.get());
    const OwnedStream stream = new_stream();
    const std::array arguments = {Argument{kSource, source.get()}, Argument{kResult, result.get()}};
    check(api().primitive_execute(primitive.get(), stream.get(), 2, arguments.data()),
          "dnnl_primitive_execute");
    check(api().stream_wait(stream.get()), "dnnl_stream_wait");
    return add(std::move(to));
  }

  // A number that a primitive reads from memory.
  template <typename T>
  size_t number(T value, ElementType type) {
    const std::array<int64_t, 1> dims = {1};
    Slot slot{.place = Slot::kConstant, .layout = row_major(dims, type)};
    slot.bytes = aligned_bytes(sizeof(T));
    std::memcpy(slot.bytes.get(), &value, sizeof(T));
    return add(std::move(slot));
  }

  // The slot of `from`, which has the logical layout `as`, in the layout `wanted`.
  size_t in_layout(size_t from, const Layout* wanted) {
    if (api().layout_equal(layout_in(from), wanted) != 0) return from;
    if (constant(from) != nullptr) return packed(from, wanted);
    const size_t to = add({.place = Slot::kWorking, .layout = copy_of(wanted)});
    add_reorder(from, to);
    return to;
  }
  // Of a value; later users find it in that layout.
  size_t value_in(size_t value, const Layout* wanted) {
    const size_t slot = in_layout(slot_of(value), wanted);
    if (region_.values[value].role != Role::constant) values_[value] = static_cast<int64_t>(slot);
    return slot;
  }
  // The row-major bytes of a value under other dimensions, or other strides.
  size_t viewed(size_t value, OwnedLayout layout) {
    const OwnedLayout plain = row_major(region_.values[value].dims, type_of(value));
    const size_t slot = value_in(value, plain.get());
    return add({.place = plan_->slot(slot).place,
                .layout = std::move(layout),
                .index = plan_->slot(slot).index,
                .same_as = static_cast<int64_t>(slot)});
  }

  // `scale_mask`: the dimensions of the weights along which their scales differ.
  OwnedAttributes attributes_of(const OpRow& op, int scale_mask = kOneScale) {
    Attributes* out = nullptr;
    check(api().attributes_create(&out), "dnnl_primitive_attr_create");
    OwnedAttributes owned(out);
    check(api().attributes_set_scratchpad(out, kUserScratchpad),
          "dnnl_primitive_attr_set_scratchpad_mode");
    if (op.has_scales) set_scales(out, kWeights, scale_mask);
    if (op.source.scale != 1) set_scales(out, kSource, kOneScale);
    if (op.source.zero != 0) set_zero_point(out, kSource);
    if (op.quantized.scale != 1) set_scales(out, kResult, kOneScale);
    if (op.quantized.zero != 0) set_zero_point(out, kResult);
    if (op.post_ops.empty()) return owned;
    PostOps* ops = nullptr;
    check(api().post_ops_create(&ops), "dnnl_post_ops_create");
    const OwnedPostOps owned_ops(ops);
    for (const PostOp& p : op.post_ops) {
      const auto type = static_cast<int>(type_of(op.result));
      check(p.sum
                ? api().post_ops_sum(ops, static_cast<float>(op.addend.scale), op.addend.zero, type)
                : api().post_ops_eltwise(ops, p.algorithm, p.alpha, p.beta),
            "dnnl_post_ops_append");
    }
    check(api().attributes_set_post_ops(out, ops), "dnnl_primitive_attr_set_post_ops");
    return owned;
  }
  static void set_scales(Attributes* to, int argument, int mask) {
    check(api().attributes_set_scales(to, argument, mask), "dnnl_primitive_attr_set_scales_mask");
  }
  static void set_zero_point(Attributes* to, int argument) {
    check(api().attributes_set_zero_points(to, argument, kOneScale),
          "dnnl_primitive_attr_set_zero_points_mask");
  }

  // The slot of the result: that of the addend, where nothing else reads it, or one that holds a copy of it.
  size_t result_slot(const OpRow& op, const Layout* layout, bool adds, size_t source) {
    if (!adds) return add({.place = Slot::kWorking, .layout = copy_of(layout)});
    const auto addend = static_cast<size_t>(op.operands.back());
    const size_t from = slot_of(addend);
    const bool free = plan_->slot(from).place == Slot::kWorking && last_use_[addend] == now_ &&
                      plan_->root(from) != plan_->root(source) &&
                      api().layout_equal(layout_in(from), layout) != 0;
    if (free) return from;
    const size_t to = add({.place = Slot::kWorking, .layout = copy_of(layout)});
    add_reorder(from, to);
    return to;
  }

  void add_step(const OpRow& op, const OwnedDesc& desc, Arguments arguments, size_t result) {
    const Layout* scratch = api().query_layout(desc.get(), kQueryScratchpad, 0);
    if (scratch != nullptr && api().layout_size(scratch) > 0) {
      arguments.emplace_back(kScratchpad,
                             add({.place = Slot::kWorking, .layout = copy_of(scratch)}));
    }
    if (op.has_scales) {
      const auto scales = static_cast<size_t>(op.operands[op.has_bias ? 3 : 2]);
      arguments.emplace_back(kScales | kWeights, slot_of(scales));
    }
    add_quantization(arguments, op.source, kSource);
    add_quantization(arguments, op.quantized, kResult);
    arguments.emplace_back(kResult, result);
    push_step(desc.get(), std::move(arguments));
    values_[op.result] = static_cast<int64_t>(result);
  }
  void add_quantization(Arguments& arguments, const Quantization& q, int argument) {
    if (q.scale != 1) {
      arguments.emplace_back(kScales | argument,
                             number(static_cast<float>(q.scale), ElementType::float32));
    }
    if (q.zero != 0) {
      arguments.emplace_back(kZeroPoints | argument, number(q.zero, ElementType::int32));
    }
  }

  const std::vector<int64_t>& dims_of(int64_t value) const {
    return region_.values[static_cast<size_t>(value)].dims;
  }
  ElementType type_of(size_t value) const { return region_.values[value].type; }
  OwnedLayout chosen(int64_t value) const {
    return any_layout(dims_of(value), type_of(static_cast<size_t>(value)));
  }

  void add_op(const OpRow& op) {
    switch (op.kind) {
      case Kind::convolution:
        return add_convolution(op);
      case Kind::matmul:
        return add_matmul(op);
      case Kind::pooling:
        return add_pooling(op);
      case Kind::eltwise:
        return add_eltwise(op);
      case Kind::binary:
        return add_binary(op);
      case Kind::conversion:
        return add_conversion(op);
    }
  }

  // Whether each channel of the weights has a scale of its own.
  bool scales_differ(const OpRow& op) const {
    return op.has_scales && dims_of(op.operands[op.has_bias ? 3 : 2])[0] > 1;
  }

  void add_convolution(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const auto weights = static_cast<size_t>(op.operands[1]);
    // Weights of groups have these before the channels.
    const bool grouped = dims_of(op.operands[1]).size() > dims_of(op.operands[0]).size();
    const OwnedAttributes attributes = attributes_of(op, !scales_differ(op) ? kOneScale
                                                         : grouped          ? 3
                                                                            : 1);
    const OwnedLayout s = chosen(op.operands[0]);
    const OwnedLayout w = chosen(op.operands[1]);
    const OwnedLayout b =
        op.has_bias ? row_major(dims_of(op.operands[2]), ElementType::float32) : nullptr;
    const OwnedLayout r = chosen(static_cast<int64_t>(op.result));
    PrimitiveDesc* made = nullptr;
    check(api().convolution(&made, engine(), kForwardInference, kConvolutionAuto, s.get(), w.get(),
                            b.get(), r.get(), op.settings[0].data(), op.settings[1].data(),
                            op.settings[2].data(), op.settings[3].data(), attributes.get()),
          "dnnl_convolution_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = value_in(source, api().query_layout(made, kQuerySource, 0));
    Arguments arguments = {
        {kSource, from}, {kWeights, value_in(weights, api().query_layout(made, kQueryWeights, 0))}};
    if (op.has_bias) {
      arguments.emplace_back(kBias, value_in(static_cast<size_t>(op.operands[2]), b.get()));
    }
    add_step(op, desc, std::move(arguments),
             result_slot(op, api().query_layout(made, kQueryResult, 0), op.adds(), from));
  }

  // Matrices of one number of rows, or batches of matrices. Source and result are row-major.
  void add_matmul(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const auto weights = static_cast<size_t>(op.operands[1]);
    std::vector<int64_t> w_dims = dims_of(op.operands[1]);
    std::vector<int64_t> s_dims = dims_of(op.operands[0]);
    const std::vector<int64_t>& full = dims_of(static_cast<int64_t>(op.result));
    std::vector<int64_t> r_dims = full;
    if (w_dims.size() == 2) {
      int64_t rows = 1;
      for (size_t i = 0; i + 1 < s_dims.size(); ++i) rows *= s_dims[i];
      s_dims = {rows, s_dims.back()};
      r_dims = {rows, r_dims.back()};
    }
    const size_t rank = w_dims.size();
    Dims strides = {};
    int64_t next = 1;
    for (size_t i = rank; i-- > 0; next *= w_dims[i]) strides[i] = next;
    if (op.settings[0][0] != 0) {
      std::swap(w_dims[rank - 1], w_dims[rank - 2]);
      std::swap(strides[rank - 1], strides[rank - 2]);
    }
    const OwnedAttributes attributes =
        attributes_of(op, scales_differ(op) ? 1 << (rank - 1) : kOneScale);
    const OwnedLayout s = row_major(s_dims, type_of(source));
    const OwnedLayout w_given = layout_of(w_dims, type_of(weights), {strides.data(), rank});
    const bool constant = region_.values[weights].role == Role::constant;
    const OwnedLayout w = constant ? any_layout(w_dims, type_of(weights)) : copy_of(w_given.get());
    const std::vector<int64_t> b_dims = {1, r_dims.back()};
    const OwnedLayout b = op.has_bias ? row_major(b_dims, ElementType::float32) : nullptr;
    const OwnedLayout r = row_major(r_dims, type_of(op.result));
    PrimitiveDesc* made = nullptr;
    check(api().matmul(&made, engine(), s.get(), w.get(), b.get(), r.get(), attributes.get()),
          "dnnl_matmul_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = viewed(source, row_major(s_dims, type_of(source)));
    size_t by = viewed(weights, copy_of(w_given.get()));
    if (constant) by = packed(by, api().query_layout(made, kQueryWeights, 0));
    Arguments arguments = {{kSource, from}, {kWeights, by}};
    if (op.has_bias) {
      const size_t bias =
          viewed(static_cast<size_t>(op.operands[2]), row_major(b_dims, ElementType::float32));
      arguments.emplace_back(kBias, in_layout(bias, b.get()));
    }
    // The result under its own dimensions, of which the primitive sees a view.
    const OwnedLayout plain = row_major(full, type_of(op.result));
    const size_t result = result_slot(op, plain.get(), op.adds(), from);
    const size_t view = add({.place = Slot::kWorking,
                             .layout = row_major(r_dims, type_of(op.result)),
                             .same_as = static_cast<int64_t>(result)});
    add_step(op, desc, std::move(arguments), view);
    values_[op.result] = static_cast<int64_t>(result);
  }

  void add_pooling(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const OwnedAttributes attributes = attributes_of(op);
    const OwnedLayout r = chosen(static_cast<int64_t>(op.result));
    PrimitiveDesc* made = nullptr;
    check(
        api().pooling(&made, engine(), kForwardInference, op.algorithm, layout_in(slot_of(source)),
                      r.get(), op.settings[0].data(), op.settings[4].data(), op.settings[1].data(),
                      op.settings[2].data(), op.settings[3].data(), attributes.get()),
        "dnnl_pooling_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    const size_t from = slot_of(source);
    add_step(op, desc, {{kSource, from}},
             result_slot(op, api().query_layout(made, kQueryResult, 0), false, from));
  }

  void add_eltwise(const OpRow& op) {
    const auto source = static_cast<size_t>(op.operands[0]);
    const size_t from = slot_of(source);
    OpRow plain = op;
    plain.post_ops.clear();
    const OwnedAttributes attributes = attributes_of(plain);
    const Layout* layout = layout_in(from);
    const PostOp& f = op.post_ops.at(0);
    PrimitiveDesc* made = nullptr;
    check(api().eltwise(&made, engine(), kForwardInference, f.algorithm, layout, layout, f.alpha,
                        f.beta, attributes.get()),
          "dnnl_eltwise_forward_primitive_desc_create");
    const OwnedDesc desc(made);
    add_step(op, desc, {{kSource, from}}, result_slot(op, layout, false, from));
  }

  void add_binary(const OpRow& op) {
    const OwnedAttributes attributes = attributes_of(op);
    const size_t a = slot_of(static_cast<size_t>(op.operands[0]));
    const OwnedLayout layout = copy_of(layout_in(a));
    const size_t b = value_in(static_cast<size_t>(op.operands[1]), layout.get());
    PrimitiveDesc* made = nullptr;
    check(api().binary(&made, engine(), op.algorithm, layout.get(), layout.get(), layout.get(),
                       attributes.get()),
          "dnnl_binary_primitive_desc_create");
    const OwnedDesc desc(made);
    add_step(op, desc, {{kSource, a}, {kSource1, b}}, result_slot(op, layout.get(), false, a));
  }

  // Between floats and integers with a scale and a zero point, element by element.
  void add_conversion(const OpRow& op) {
    const size_t from = slot_of(static_cast<size_t>(op.operands[0]));
    const OwnedAttributes attributes = attributes_of(op);
    const OwnedLayout r = row_major(dims_of(static_cast<int64_t>(op.result)), type_of(op.result));
    PrimitiveDesc* made = nullptr;
    check(api().reorder(&made, layout_in(from), engine(), r.get(), engine(), attributes.get()),
          "dnnl_reorder_primitive_desc_create");
    const OwnedDesc desc(made);
    add_step(op, desc, {{kSource, from}}, result_slot(op, r.get(), false, from));
  }

  const Description& region_;
  const std::byte* data_;
  std::shared_ptr<Plan> plan_;
  size_t now_ = 0;               // the operator that is added
  std::vector<int64_t> values_;  // by value: its slot
  std::vector<size_t> last_use_;
};

}  // namespace

std::shared_ptr<Plan> build_plan(const void* data, const int64_t* sizes) {
  const Description region = read(data, sizes);
  return PlanBuilder(region, data, sizes).build();
}

}  // namespace relay::onednn
