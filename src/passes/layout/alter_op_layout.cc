#include "passes/layout/alter_op_layout.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "analysis/calls.h"
#include "analysis/constant_expressions.h"
#include "analysis/evaluate_constants.h"
#include "analysis/loop_invariants.h"
#include "ir/contraction.h"
#include "ir/layout.h"
#include "ir/op.h"
#include "ir/views.h"
#include "node/walk.h"
#include "passes/layout/hoist_layouts.h"
#include "passes/layout/matrix_products.h"
#include "passes/layout/packing.h"
#include "passes/simplify/rewrite_calls.h"
#include "target/dot_products.h"
#include "target/item_panels.h"
#include "target/rows_by_rows.h"

namespace relay {
namespace {

// Calls that multiply rows with one weight, and their rows together; open ones count for none.
struct Products {
  int64_t rows = 0;
  int64_t calls = 0;
};

// Channels up to which a product with planes is faster than transposing them: of 64 it took 0.72 to 0.95 of the time on
// a Xeon with AVX-512, of 128 0.89 to 1.08.
constexpr int64_t kMostPlanes = 64;

// Rows by panels of a matrix.
constexpr const char* kPackedProduct = "nn.contrib_dense_pack";

// Two bfloat16 in a word.
constexpr int64_t kPair = 2;

class Packer : public WeightPacker {
 public:
  Packer(const Function& f, const PassContext& ctx) : target_(ctx.target), constants_(f) {
    if (ctx.enabled(kHoistLayouts)) invariants_.emplace(f);
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          if (c != nullptr && c->args.size() == 2 && has_attr(*c, "units")) {
            Products& of_weight = products_[c->args[1].get()];
            of_weight.rows += rows_of_data(*c);
            ++of_weight.calls;
          }
          if (c != nullptr && is_call_to(Expr(c), "layout_transform")) {
            transformed_[c->args[0].get()] = c;
            return;
          }
          for_each_child(n, [&](const NodeRef& child) {
            auto [user, first] = used_.try_emplace(child.get(), c);
            if (!first && user->second != c) user->second = nullptr;
          });
        },
        family::program);
  }

  // The call with the columns of its weight last, or null: constants, and matrices that several rows are multiplied with.
  // Neighbouring work items then read neighbouring elements.
  Expr with_columns_last(const CallNode& c) {
    auto contraction = contraction_of(c);
    if (!contraction || c.args.size() != 2) return nullptr;
    const bool constant = constants_.contains(c.args[1]);
    const size_t windows = contraction->count(ContractionRole::Window);
    if (windows == 0) {
      if (constant) {
        if (Expr panels = item_panels(c, *contraction)) return panels;
      }
      return columns_last(c, *contraction, constant);
    }
    auto shape = static_shape(c.args[1]);
    if (!constant || !shape || !has_attr(c, "kernel_layout")) return nullptr;
    const std::string layout = text_attr(c, "kernel_layout");
    std::string space;
    for (char axis : layout) {
      if (axis >= '0' && axis <= '9') return nullptr;
      if (axis != 'O' && axis != 'I') space += axis;
    }
    // Items add the products of an image's neighbours first.
    const bool channels_first = text_attr(c, "data_layout").ends_with(space);
    const int64_t channels = (*shape)[static_cast<size_t>(Layout::of(layout).index_of('O'))];
    // Of grouped convolutions only those with 1 output channel for each group, where neighbours are channels.
    const int64_t groups = int_attr(c, "groups");
    if (groups != 1 && (channels_first || groups != channels || contraction->transposed())) {
      return nullptr;
    }
    // Weights of transposed convolutions have no blocks.
    const std::string to =
        groups == 1 && channels % kItemPanel == 0 && !contraction->transposed()
            ? (channels_first ? "OI" + space : "O" + space + "I") + std::to_string(kItemPanel) + "o"
            : space + "IO";
    if (layout == to) return nullptr;
    return with_attrs(c, {c.args[0], packed(c, c.args[1], layout, to)},
                      {{"kernel_layout", AttrValue(to)}});
  }

  // Whether the kernel of the call, which pack leaves as it is, multiplies rows with rows.
  bool stays_by_rows(const CallNode& c) {
    auto contraction = contraction_of(c);
    return contraction && c.args.size() == 2 && is_rows_by_matrix(c, *contraction) &&
           contraction->operands[1][0].has(*contraction->only(ContractionRole::Column)) &&
           pays(c) && by_rows(c);
  }

  // The call with its weight packed, or null. `original` is the call of the given function that `c` was.
  Expr pack(const CallNode& original, const CallNode& c) {
    original_ = &original;
    return pack(c);
  }

 private:
  Expr pack(const CallNode& c) {
    auto* op = as<OpNode>(c.op);
    if (op != nullptr && op->row->packing) return op->row->packing(c, *this);
    auto contraction = contraction_of(c);
    if (!contraction || c.args.size() != 2) return nullptr;
    if (by_pairs_of_batch(c, *contraction, target_) || selects_matrices(c, *contraction)) {
      return nullptr;
    }
    const Packing mine = packing(target_, c, *contraction, constants_.contains(c.args[1]));
    packing_ = mine;
    if (Expr as_it_was = of_unturned(c)) return as_it_was;
    if (Expr panels = of_open_sum(c)) return panels;
    if (has_open_columns(c)) return columns_last(c, *contraction, false);
    if (!packs(c.args[1])) return nullptr;
    constexpr const char* kSpaces[] = {"", "W", "HW", "DHW"};
    size_t windows = contraction->count(ContractionRole::Window);
    if (windows >= std::size(kSpaces)) return nullptr;
    if (windows > 0 && !has_attr(c, "kernel_layout")) return nullptr;
    if (Expr whole = with_whole_words(c, *contraction)) return whole;
    if (Expr shifted = with_signed_weights(c, *contraction)) return shifted;
    if (Expr shifted = with_unsigned_data(c, *contraction)) return shifted;
    packing_ = mine;  // these pack other calls
    if (contraction->transposed()) return conv_transpose(c, kSpaces[windows]);
    if (windows > 0) return conv(c, kSpaces[windows]);
    return contraction->count(ContractionRole::Batch) > 0 ? batch_matmul(c, *contraction)
                                                          : dense(c, *contraction);
  }

  bool packs(const Expr& weight) const override {
    auto* type = tensor_of(weight);
    return type != nullptr && type->const_shape() && !type->dtype.is_bool() &&
           (type->dtype.bits >= 32 || is_byte(type->dtype) || type->dtype.is_bfloat16() ||
            type->dtype.is_float(16));
  }

  static bool is_byte(DType d) { return d.is_integer() && d.bits == 8; }

  // The layout of a weight with its columns in panels, and words of the sum beside each other.
  std::string panels(const std::string& layout, char columns, char sum) const {
    std::string out = layout + std::to_string(packing_.panel) + columns;
    return packing_.word == 1 ? out : out + std::to_string(packing_.word) + sum;
  }

  static bool has_attr(const CallNode& c, std::string_view name) {
    auto* op = as<OpNode>(c.op);
    return op != nullptr && op->row->attrs != nullptr && op->row->attrs->find(name) != nullptr;
  }

  // Unsigned weights of rows by a matrix, where the target multiplies unsigned bytes by signed ones: 128 is taken off the
  // weights, and as often as each row's sum of its data is added to that row. Null for anything else: windows would need a
  // sum of their own for each place.
  Expr with_signed_weights(const CallNode& c, const Contraction& product) {
    auto *data = tensor_of(c.args[0]), *weight = tensor_of(c.args[1]);
    auto inputs = as_const(product.dims.back().extent);
    const std::vector<size_t> sums = product.axes_of(product.operands[0], product.dims.size() - 1);
    auto column = product.only(ContractionRole::Column);
    bool bytes = is_byte(data->dtype) && weight->dtype == DType::UInt(8) &&
                 tensor_of(Expr(&c))->dtype == DType::Int(32) && has_byte_dot(target_);
    if (!bytes || packing_.word != 1 || !column || !product.only(ContractionRole::Reduced) ||
        !inputs || *inputs % 4 != 0 || sums.size() != 1 ||
        sums[0] + 1 != product.operands[0].size() || product.operands[0].back().dims.size() != 1 ||
        product.count(ContractionRole::Window) + product.count(ContractionRole::Group) +
                product.count(ContractionRole::Batch) >
            0 ||
        !product.result.back().has(*column) || !constants_.contains(c.args[1])) {
      return nullptr;
    }
    Expr w =
        make_call("subtract", {as_type(c.args[1], "int32", c), shift(DType::Int(32), c)}, {}, c);
    Expr sum = with_attrs(c, {c.args[0], as_type(w, "int8", c)}, {});
    Expr packed = pack(*as<CallNode>(sum));
    if (!packed) return nullptr;
    Expr rows = make_call("sum", {as_type(c.args[0], "int32", c)},
                          {{"axis", to_value(std::vector<int64_t>{static_cast<int64_t>(sums[0])})},
                           {"keepdims", AttrValue(true)}},
                          c);
    rows = make_call("multiply", {rows, shift(DType::Int(32), c)}, {}, c);
    return make_call("add", {packed, rows}, {}, c);
  }

  // Between a signed byte and the unsigned one for it.
  static constexpr int64_t kShift = 128;
  static Expr shift(DType d, const CallNode& c) {
    Tensor t = Tensor::empty(d, {});
    t.set_from_int(0, kShift);
    return constant(t, c.span);
  }
  static Expr as_type(const Expr& e, const char* dtype, const CallNode& c) {
    return make_call("cast", {e}, {{"dtype", AttrValue(std::string(dtype))}}, c);
  }

  // Signed bytes by signed bytes, where the target multiplies unsigned ones by signed ones: 128 is added to the data, and
  // what that adds to each column taken off the sum. Null for anything else.
  Expr with_unsigned_data(const CallNode& c, const Contraction& product) {
    auto *data = tensor_of(c.args[0]), *weight = tensor_of(c.args[1]);
    auto inputs = as_const(product.dims.back().extent);
    auto column = product.only(ContractionRole::Column);
    bool bytes = data->dtype == DType::Int(8) && weight->dtype == DType::Int(8) &&
                 tensor_of(Expr(&c))->dtype == DType::Int(32) && has_byte_dot(target_);
    if (!bytes || packing_.word != 1 || !column || !inputs || *inputs % 4 != 0 ||
        product.transposed() ||
        product.count(ContractionRole::Group) + product.count(ContractionRole::Batch) > 0 ||
        !product.result.back().has(*column) || !constants_.contains(c.args[1])) {
      return nullptr;
    }
    Expr x = make_call("add", {as_type(c.args[0], "int32", c), shift(DType::Int(32), c)}, {}, c);
    x = as_type(x, "uint8", c);
    std::vector<std::pair<std::string, AttrValue>> changes;
    // Zeros around signed data are 128 around the unsigned.
    x = bordered(c, product, x, shift(DType::UInt(8), c), 0, changes);
    Expr sums = with_attrs(c, {x, c.args[1]}, std::move(changes));
    Expr packed = pack(*as<CallNode>(sums));
    if (!packed) return nullptr;
    std::vector<int64_t> others;
    for (size_t a = 0; a < product.operands[1].size(); ++a) {
      if (!product.operands[1][a].has(*column)) others.push_back(static_cast<int64_t>(a));
    }
    Expr added =
        make_call("sum", {as_type(c.args[1], "int32", c)}, {{"axis", to_value(others)}}, c);
    added = make_call("multiply", {added, shift(DType::Int(32), c)}, {}, c);
    return make_call("subtract", {packed, added}, {}, c);
  }

  // The data of `c` with what its windows read around them, of `value`, and `more` elements of it at the end of the sum's
  // dimension. The attributes that say so change.
  Expr bordered(const CallNode& c, const Contraction& product, const Expr& x, const Expr& value,
                int64_t more, std::vector<std::pair<std::string, AttrValue>>& changes) {
    const size_t windows = product.count(ContractionRole::Window), sum = product.dims.size() - 1;
    if (windows == 0 && more == 0) return x;
    std::vector<int64_t> padding(2 * windows, 0);
    if (windows > 0) {
      padding = *ints_attr(c, "padding");
      changes.emplace_back("padding", to_value(std::vector<int64_t>(2 * windows, 0)));
    }
    ValueList widths;
    size_t at = 0;
    for (const Contraction::Axis& axis : product.operands[0]) {
      int64_t begin = 0, end = axis.has(sum) ? more : 0;
      if (axis.window) {
        begin = axis.window->padding;
        end = padding.size() == 2 * windows ? padding[windows + at] : begin;
        ++at;
      }
      widths.push_back(AttrValue(ValueList{AttrValue(begin), AttrValue(end)}));
    }
    return make_call("nn.pad", {x, value}, {{"pad_width", AttrValue(widths)}}, c);
  }

  // A sum of bytes that is no whole number of words, with zeros where words end: the first convolution of a model has three
  // channels. The data are copied, which is less than what words save: 137 rows of 479 bytes by 128 columns took 3.7 times as
  // long one byte at a time. Null for anything else.
  Expr with_whole_words(const CallNode& c, const Contraction& product) {
    auto *data = tensor_of(c.args[0]), *weight = tensor_of(c.args[1]);
    auto inputs = as_const(product.dims.back().extent);
    constexpr int64_t kBytes = 4;
    const bool windows = product.count(ContractionRole::Window) > 0;
    // Weights of a window that are unsigned stay so, and have no words.
    bool bytes = is_byte(data->dtype) &&
                 (windows ? weight->dtype == DType::Int(8) : is_byte(weight->dtype)) &&
                 tensor_of(Expr(&c))->dtype == DType::Int(32) && has_byte_dot(target_);
    if (!bytes || !inputs || *inputs <= 1 || *inputs % kBytes == 0 || product.transposed() ||
        product.count(ContractionRole::Group) + product.count(ContractionRole::Batch) > 0 ||
        product.dims.back().role != ContractionRole::Reduced ||
        !product.only(ContractionRole::Reduced) || !product.only(ContractionRole::Column) ||
        !constants_.contains(c.args[1])) {
      return nullptr;
    }
    if (windows && (!has_attr(c, "groups") || int_attr(c, "groups") != 1 ||
                    !text_attr(c, "data_layout").ends_with('C'))) {
      return nullptr;
    }
    // Rows by a matrix whose data end in the sum, as with_signed_weights and dense take them.
    if (!windows &&
        (product.operands[0].empty() || !product.operands[0].back().has(product.dims.size() - 1) ||
         product.operands[0].back().dims.size() != 1)) {
      return nullptr;
    }
    const int64_t more = kBytes - *inputs % kBytes;
    auto zero = [&](DType d) { return constant(Tensor::zeros(d, {}), c.span); };
    std::vector<std::pair<std::string, AttrValue>> changes;
    Expr x = bordered(c, product, c.args[0], zero(data->dtype), more, changes);
    ValueList widths;
    for (const Contraction::Axis& axis : product.operands[1]) {
      int64_t end = axis.has(product.dims.size() - 1) ? more : 0;
      widths.push_back(AttrValue(ValueList{AttrValue(int64_t{0}), AttrValue(end)}));
    }
    Expr w = make_call("nn.pad", {c.args[1], zero(weight->dtype)},
                       {{"pad_width", AttrValue(widths)}}, c);
    Expr sums = with_attrs(c, {x, w}, std::move(changes));
    Expr packed = pack(*as<CallNode>(sums));
    return packed ? packed : sums;
  }

  int64_t panel(const Expr& weight) const override {
    return panel_columns(target_, tensor_of(weight)->dtype.bits);
  }
  bool is_constant(const Expr& e) override { return constants_.contains(e); }
  bool multiplies_bytes() const override { return has_byte_dot(target_); }
  Expr& shared(const Expr& weight, const std::string& name) override {
    return shared_[{weight.get(), name}];
  }

  // Whether packing is worth its time: a constant is packed once and for all, other weights at
  // every call, which is less than what their product with a second row would lose. Rows are the
  // axes [first_row, rank - 1) of the data.
  bool pays(const CallNode& c, size_t first_row = 0) {
    return is_packed_once(c) || !static_shape(c.args[0]) || rows_of_data(c, first_row) > 1;
  }

  // Whether packing takes no time beside the products: of constants, and of what a loop reads in every iteration, where
  // HoistLayouts takes the packed weight out of it.
  bool is_packed_once(const CallNode& c) {
    if (constants_.contains(c.args[1])) return true;
    if (!invariants_ || invariants_->loop_of(c.args[1]) == nullptr) return false;
    const auto bytes = bytes_of(c.args[1]->type);
    const auto contraction = contraction_of(c);
    const auto column = contraction ? contraction->only(ContractionRole::Column) : std::nullopt;
    if (!bytes || !column) return false;
    const auto columns = as_const(contraction->dims[*column].extent);
    if (!columns || *columns == 0) return false;
    // The last panel is filled with zeros.
    const int64_t panel = std::max<int64_t>(packing_.panel, 1);
    const int64_t whole = (*columns + panel - 1) / panel * panel;
    return is_hoisted(*bytes, *bytes) && is_hoisted(*bytes / *columns * whole, *bytes);
  }

  // Whether the kernel multiplies the rows of the data with the rows of a weight that is not packed before. As it lies, where
  // the rows are one axis, since the rule row_products tiles only the last axis of rows; by panels, where no other product
  // has the weight, and it is not the data, too.
  bool by_rows(const CallNode& c) {
    auto* data = tensor_of(c.args[0]);
    auto weight = static_shape(c.args[1]);
    const bool pairs = packing_.word == kPair && data->dtype.is_bfloat16();
    const DType sum = pairs ? DType::Float(32) : data->dtype;
    if (!weight || is_packed_once(c) || !data->dtype.is_floating() ||
        (data->dtype.bits < 32 && !pairs) || tensor_of(c.args[1])->dtype != data->dtype ||
        tensor_of(Expr(&c))->dtype != sum || data->shape.size() < 2) {
      return false;
    }
    const Products products = products_of(c);
    const RowsByRows product{products.rows, (*weight)[0], (*weight)[1],
                             static_cast<int64_t>(data->dtype.bytes())};
    switch (matrix_order(target_, product)) {
      case MatrixOrder::AsItLies:
        return (!pairs || fills_vectors_of_pairs(target_, product.sum)) &&
               as_const(data->shape[data->shape.size() - 2]) == rows_of_data(c);
      case MatrixOrder::ByPanel:
        return (!pairs || pairs_in_panels(target_, product) || words_in_panels(target_, product)) &&
               products.calls == 1 && !(c.args[0] == c.args[1]) && !before_turned(c.args[1]);
      case MatrixOrder::Packed:
        return false;
    }
    return false;
  }

  // Whether the kernel copies a matrix that has its columns last a panel at a time, and no other product has the matrix.
  bool copies_panels(const CallNode& c) const {
    const DType dtype = tensor_of(Expr(&c))->dtype;
    auto weight = static_shape(c.args[1]);
    if (!weight || !dtype.is_floating() || dtype.bits < 32 || products_of(c).calls != 1 ||
        (has_attr(c, "transpose_a") && bool_attr(c, "transpose_a")) ||
        std::ranges::any_of(c.args, [&](const Expr& e) { return tensor_of(e)->dtype != dtype; })) {
      return false;
    }
    // Rows of any number have a kernel for few beside it where nothing else is open.
    auto* data = tensor_of(c.args[0]);
    if (!data->const_shape() && data->rank() != 2) return false;
    RowsByRows product{rows_of_data(c), (*weight)[1], (*weight)[0],
                       static_cast<int64_t>(dtype.bytes())};
    product.columns_last = true;
    return matrix_order(target_, product) == MatrixOrder::ByPanel;
  }

  Expr packed(const CallNode& c, const Expr& weight, const std::string& from,
              const std::string& to) override {
    Expr& known = shared(weight, from + "->" + to);
    if (!known) {
      known = make_call("layout_transform", {weight},
                        {{"src_layout", AttrValue(from)}, {"dst_layout", AttrValue(to)}}, c);
    }
    return known;
  }

  // Whether the rows of a matrix are so far apart that reading some columns of each misses the caches.
  static constexpr int64_t kFarApart = 128;
  static constexpr int64_t kRowsForPacking = 64;
  bool is_far_apart(const CallNode& c, int64_t units) const {
    return static_shape(c.args[0]) && units >= kFarApart &&
           products_of(c).rows >= kRowsForPacking && !stays_in_cache(c, {c.args[1]});
  }
  // Whether kernels for vectors multiply factors as wide as sums, and these operands are read from caches where a tile reads some
  // columns of each of their rows: one of them stays in half of L2, and their rows do not drive each other out. Of the time over
  // panels, packing them included, on two cores of a Zen 4 (1 MB of L2) and of a Sapphire Rapids (2 MB): 256x256 with sums of 512
  // takes 0.87 and 0.94; 256x2048 by 2048x256, 2 MB of sets, 2.0 on the latter; 1024x512 by 512x256, 2.5 MB, 0.94 and 1.5;
  // 784x2048 by 2048x784, larger than L2, 1.7 there. With vectors that are shorter than a line nothing is: on a Zen 3 256x256
  // with sums of 512 takes 1.15 in place and 1.6 where the first is transposed, 128x128 with sums of 512 1.18 and 1.4.
  bool stays_in_cache(const CallNode& c, std::initializer_list<Expr> operands) const {
    auto* sum = tensor_of(Expr(&c));
    const bool as_they_are = std::ranges::all_of(c.args, [&](const Expr& e) {
      return tensor_of(e)->dtype == sum->dtype && sum->dtype.is_floating() && sum->dtype.bits >= 32;
    });
    if (!as_they_are || target_.vector_bits / 8 < kCacheLineBytes) return false;
    bool is_small = false;
    int64_t sets = 0;
    for (const Expr& e : operands) {
      const TensorTypeNode& matrix = *tensor_of(e);
      const auto columns = as_const(matrix.shape.back());
      if (!columns || *columns == 0) return false;
      const int64_t rows = as_const(matrix.shape.front()).value_or(kTypicalSum);
      const int64_t row = *columns * static_cast<int64_t>(matrix.dtype.bytes());
      is_small |= rows <= target_.l2_bytes / 2 / row;
      sets += std::min(rows, kMostSets) * std::clamp(row & -row, kCacheLineBytes, kMostSets);
    }
    return is_small && sets <= kMostSets;
  }
  // Of a sum whose length only a run knows.
  static constexpr int64_t kTypicalSum = 512;
  // Bytes of the sets of a cache that rows may take. Rows whose distance is a multiple of a power of two take as many sets as if
  // they were as long as that power.
  static constexpr int64_t kMostSets = int64_t{1} << 20;

  // Rows that the call multiplies with its weight: the axes [first_row, rank - 1) of the data; 0 for open sizes.
  static int64_t rows_of_data(const CallNode& c, size_t first_row = 0) {
    auto data = static_shape(c.args[0]);
    int64_t rows = data ? 1 : 0;
    for (size_t d = first_row; data && d + 1 < data->size(); ++d) rows *= (*data)[d];
    return rows;
  }

  // All products by the call's weight, which share its packed form: those of a recurrence have few rows each.
  Products products_of(const CallNode& c) const {
    auto all = products_.find(c.args[1].get());
    return all == products_.end() ? Products{rows_of_data(c), 1} : all->second;
  }

  // Whether a matrix product has so many rows and columns that matrices are turned and packed for it at each call.
  static bool is_worth_panels(const std::vector<int64_t>& result) {
    return std::max(result[0], result[1]) >= kFarApart &&
           std::min(result[0], result[1]) >= kRowsForPacking;
  }

  // The first matrix of a product with its rows as columns.
  static Expr turned_matrix(const CallNode& c) {
    return make_call("transpose", {c.args[0]}, {{"axes", to_value(std::vector<int64_t>{1, 0})}}, c);
  }

  // The product of a transposed matrix, as of gradients by weights: the matrix is turned where its rows are far apart,
  // or those of the other, and neither stays in L2. On two cores of a Zen 4, 1024 x 256 with sums of 512 takes 0.94 of the time
  // as the matrices lie, 256 x 256 with sums of 512 0.67, and 768 x 768 with sums of 8,192 1.34.
  Expr with_rows(const CallNode& c) {
    auto data = static_shape(c.args[0]), result = static_shape(Expr(&c));
    if (!data || !result || !is_worth_panels(*result) || constants_.contains(c.args[0]) ||
        stays_in_cache(c, {c.args[0], c.args[1]})) {
      return nullptr;
    }
    Expr straight =
        with_attrs(c, {turned_matrix(c), c.args[1]}, {{"transpose_a", AttrValue(false)}});
    auto& call = *as<CallNode>(straight);
    Expr packed = dense(call, *contraction_of(call));
    return packed ? packed : straight;
  }

  // A matrix that is turned in front of a product, as it was; null for anything else.
  static Expr before_turned(const Expr& e) {
    if (!is_call_to(e, "transpose") || tensor_of(e)->shape.size() != 2) return nullptr;
    auto& turned = *as<CallNode>(e);
    const auto axes = ints_attr(turned, "axes");
    return !axes || (*axes)[0] == 1 || (*axes)[0] == -1 ? turned.args[0] : nullptr;
  }

  // The product of matrices that are turned in front of it, as the adjoints of a dense layer are, of the matrices as they lie
  // where one stays in the cache, or the kernel copies the second in panels.
  Expr of_unturned(const CallNode& c) {
    const bool layer = is_call_to(Expr(&c), "nn.dense");
    if ((!layer && !is_call_to(Expr(&c), "nn.matmul")) || tensor_of(c.args[0])->shape.size() != 2 ||
        is_packed_once(c)) {
      return nullptr;
    }
    bool turned_a = !layer && bool_attr(c, "transpose_a");
    bool turned_b = layer || bool_attr(c, "transpose_b");
    Expr a = c.args[0], b = c.args[1];
    if (Expr before = turned_b ? before_turned(b) : nullptr) {
      b = before;
      turned_b = false;
    }
    if (Expr before = turned_b ? nullptr : before_turned(a)) {
      a = before;
      turned_a = !turned_a;
    }
    const bool nothing = a == c.args[0] && b == c.args[1];
    if (nothing || turned_b) return nullptr;
    auto product = [&](const Expr& rows, bool turned) {
      return make_call(
          "nn.matmul", {rows, b},
          {{"out_dtype", attr_value(c.attrs, "out_dtype")}, {"transpose_a", AttrValue(turned)}}, c);
    };
    if (turned_a ? stays_in_cache(c, {a, b}) : stays_in_cache(c, {b})) return product(a, turned_a);
    const Expr rows = !turned_a ? a : a == c.args[0] ? turned_matrix(c) : c.args[0];
    const Expr by_panels = product(rows, false);
    return copies_panels(*as<CallNode>(by_panels)) ? by_panels : nullptr;
  }

  // The product of matrices whose sum is as long as only a run knows, as of the gradient of a weight by rows of any number: where
  // they do not stay in caches as they are, by rows and panels. On a Sapphire Rapids, 256 x 1024 with sums of 512 takes 0.67 of
  // the time, with sums of 4,096 0.36.
  Expr of_open_sum(const CallNode& c) {
    if (!is_call_to(Expr(&c), "nn.matmul") || bool_attr(c, "transpose_b") || packing_.panel == 0) {
      return nullptr;
    }
    auto *a = tensor_of(c.args[0]), *b = tensor_of(c.args[1]), *sum = tensor_of(Expr(&c));
    auto result = static_shape(Expr(&c));
    const bool turned = bool_attr(c, "transpose_a");
    if (!result || a->rank() != 2 || b->rank() != 2 || b->const_shape() || is_any(b->shape[0]) ||
        a->dtype != sum->dtype || b->dtype != sum->dtype || !sum->dtype.is_floating() ||
        sum->dtype.bits < 32 || !is_worth_panels(*result) ||
        (turned ? stays_in_cache(c, {c.args[0], c.args[1]}) : stays_in_cache(c, {c.args[1]}))) {
      return nullptr;
    }
    return packed_product(c, turned ? turned_matrix(c) : c.args[0], c.args[1], false, (*result)[1],
                          panels("NC", 'n', 'c'));
  }

  // Rows of the data by a matrix. One column is a row already; a matrix whose columns are neighbours as it is is packed
  // when that is done once and for all, or its rows are far apart.
  Expr dense(const CallNode& c, const Contraction& product) {
    auto column = product.only(ContractionRole::Column),
         sum = product.only(ContractionRole::Reduced);
    const Contraction::Tensor &data = product.operands[0], &weight = product.operands[1];
    if (column && sum && data.size() == 2 && weight.size() == 2 && data[0].has(*sum) &&
        has_attr(c, "transpose_a")) {
      return with_rows(c);
    }
    if (!is_rows_by_matrix(c, product)) return nullptr;
    bool rows_are_columns = weight[0].has(*column);
    int64_t units = (*static_shape(c.args[1]))[rows_are_columns ? 0 : 1];
    if (units == 1 || !pays(c) || (rows_are_columns && by_rows(c)) ||
        (!rows_are_columns && !is_packed_once(c) &&
         (copies_panels(c) || !is_far_apart(c, units)))) {
      return nullptr;
    }
    auto [rows, matrix] =
        rows_are_columns ? in_order_of_data(c) : std::pair<Expr, Expr>{c.args[0], c.args[1]};
    if (Expr before = rows_are_columns ? before_turned(matrix) : nullptr) {
      matrix = before;
      rows_are_columns = false;
    }
    return packed_product(c, rows, matrix, rows_are_columns, units, panels("NC", 'n', 'c'));
  }

  // Rows with the sum along their last axis by a matrix.
  static bool is_rows_by_matrix(const CallNode& c, const Contraction& product) {
    auto column = product.only(ContractionRole::Column),
         sum = product.only(ContractionRole::Reduced);
    const Contraction::Tensor &data = product.operands[0], &weight = product.operands[1];
    bool plain = column && sum && weight.size() == 2 && !data.empty() && data.back().has(*sum) &&
                 has_attr(c, "units");
    for (size_t d = 0; plain && d + 1 < data.size(); ++d) {
      plain = data[d].dims == product.result[d].dims;
    }
    return plain && product.result.back().has(*column);
  }

  Expr packed_product(const CallNode& c, const Expr& rows, const Expr& matrix,
                      bool rows_are_columns, int64_t units, const std::string& layout) {
    return make_call(kPackedProduct,
                     {rows, packed(c, matrix, rows_are_columns ? "NC" : "CN", layout)},
                     {{"units", AttrValue(units)},
                      {"out_dtype", attr_value(c.attrs, "out_dtype")},
                      {"weight_layout", AttrValue(layout)}},
                     c);
  }

  // A constant matrix in panels of neighbouring work items.
  Expr item_panels(const CallNode& c, const Contraction& product) {
    if (!is_rows_by_matrix(c, product) || !static_shape(c.args[1])) return nullptr;
    const bool rows_are_columns =
        product.operands[1][0].has(*product.only(ContractionRole::Column));
    const int64_t units = (*static_shape(c.args[1]))[rows_are_columns ? 0 : 1];
    if (units % kItemPanel != 0) return nullptr;
    return packed_product(c, c.args[0], c.args[1], rows_are_columns, units,
                          "NC" + std::to_string(kItemPanel) + "n");
  }

  // What a matrix product multiplies, the data as they lie: when they are flattened after a change
  // of layout, the weight's columns are changed instead.
  std::pair<Expr, Expr> in_order_of_data(const CallNode& c) {
    std::pair<Expr, Expr> as_is{c.args[0], c.args[1]};
    auto* at = as<CallNode>(behind_views(c.args[0].get()));
    if (at == nullptr || Expr(at) == c.args[0] || !is_call_to(Expr(at), "layout_transform") ||
        !constants_.contains(c.args[1])) {
      return as_is;
    }
    auto from = Layout::parse(text_attr(*at, "src_layout"));
    auto to = Layout::parse(text_attr(*at, "dst_layout"));
    auto shape = static_shape(Expr(at)), flat = static_shape(c.args[0]);
    // All axes but the first as one; part of them would not be the weight's columns.
    if (!from || !to || !shape || !flat || flat->size() != 2 || (*flat)[0] != (*shape)[0] ||
        from->rank() != to->rank() || to->rank() < 2 || from->index_of('N') != 0 ||
        to->index_of('N') != 0) {
      return as_is;
    }
    // The weight's columns as the layout's axes, in the order of the data before the change.
    std::vector<int64_t> split{(*static_shape(c.args[1]))[0]}, order{0};
    split.insert(split.end(), shape->begin() + 1, shape->end());
    for (size_t d = 1; d < from->axes().size(); ++d) {
      if (from->axes()[d].block != 0) return as_is;
      order.push_back(to->index_of(from->axes()[d].name));
    }
    Expr weight = make_call("reshape", {c.args[1]}, {{"newshape", to_value(split)}}, c);
    weight = make_call("transpose", {weight}, {{"axes", to_value(order)}}, c);
    weight = make_call("reshape", {weight}, {{"newshape", to_value(*static_shape(c.args[1]))}}, c);
    return {make_call("reshape", {at->args[0]}, {{"newshape", to_value(*flat)}}, c), weight};
  }

  // Columns of the second operand side by side, as lanes read them. Kernels that multiply pairs write these from columns side
  // by side, too.
  Expr batch_matmul(const CallNode& c, const Contraction& product) {
    auto column = product.only(ContractionRole::Column);
    const Contraction::Tensor& weight = product.operands[1];
    if (!column || weight.size() != 3 || !weight[1].has(*column) || !has_attr(c, "transpose_b") ||
        (*static_shape(c.args[1]))[1] == 1 || !pays(c, 1)) {
      return nullptr;
    }
    Expr columns = make_call("transpose", {c.args[1]}, {{"axes", to_value({0, 2, 1})}}, c);
    return with_attrs(c, {c.args[0], columns}, {{"transpose_b", AttrValue(false)}});
  }

  static bool has_open_columns(const CallNode& c) {
    auto* type = tensor_of(c.args[1]);
    return type != nullptr && !type->const_shape() && type->dtype.is_floating();
  }

  // A matrix, or matrices, without panels: where a size is known at run time only, or kernels have none.
  static Expr columns_last(const CallNode& c, const Contraction& product, bool even_for_one_row) {
    auto column = product.only(ContractionRole::Column),
         sum = product.only(ContractionRole::Reduced);
    const Contraction::Tensor &data = product.operands[0], &weight = product.operands[1];
    const bool batched = product.count(ContractionRole::Batch) > 0;
    if (!column || !sum || weight.size() != (batched ? 3 : 2) || data.size() < weight.size() ||
        product.count(ContractionRole::Window) > 0 || !weight[batched ? 1 : 0].has(*column) ||
        !product.result.back().has(*column) || as_const(product.dims[*column].extent) == 1) {
      return nullptr;
    }
    // One row reads each column once, as it lies.
    const bool one_row = std::ranges::none_of(product.dims, [](const Contraction::Dimension& d) {
      return d.role == ContractionRole::Row && as_const(d.extent) != 1;
    });
    if (one_row && !even_for_one_row) return nullptr;
    const std::vector<int64_t> order =
        batched ? std::vector<int64_t>{0, 2, 1} : std::vector<int64_t>{1, 0};
    Expr columns = make_call("transpose", {c.args[1]}, {{"axes", to_value(order)}}, c);
    if (has_attr(c, "transpose_b")) {
      return with_attrs(c, {c.args[0], columns}, {{"transpose_b", AttrValue(false)}});
    }
    if (!is_call_to(Expr(&c), "nn.dense")) return nullptr;
    // Only the dense layer compares the rows of the weight with its `units`, which the result has.
    const auto* result = as<TensorTypeNode>(c.type);
    if (as_const(result->shape.back()) && !as_const(tensor_of(c.args[1])->shape[0])) return nullptr;
    return make_call("nn.matmul", {c.args[0], columns},
                     {{"out_dtype", attr_value(c.attrs, "out_dtype")}}, c);
  }

  // The gradient of a convolution's weight over the axes of `space`, whose weights are adjoints of pixels: a tile takes some
  // channels of each, a part of a line that shares the sets of the caches with those of all other pixels. Null for anything
  // else, and where copying them counts beside the products. Of the time on one core of a Zen 3, with the copy: 3x3 of 64
  // channels at 28x28 places 0.91, of 256 at 14x14 0.74; of 16 channels at 64x64 1.03.
  Expr weight_gradient(const CallNode& c, const std::string& space) {
    constexpr int64_t kRowsForCopy = 512;
    const std::string layout = text_attr(c, "kernel_layout"), to = panels("OI" + space, 'o', 'i');
    const auto result = static_shape(Expr(&c));
    if (text_attr(c, "data_layout") != "CN" + space || layout != "I" + space + "O" ||
        int_attr(c, "groups") != 1 || packing_.word != 1 || !result || !pays(c)) {
      return nullptr;
    }
    const std::vector<int64_t> shape = *static_shape(c.args[1]);
    const int64_t channels = shape.back();
    int64_t rows = 1;
    for (int64_t extent : *result) rows *= extent;
    if (channels <= packing_.panel || rows / channels < kRowsForCopy) return nullptr;
    const std::vector<int64_t> size(shape.begin() + 1, shape.end() - 1);
    return with_attrs(c, {c.args[0], packed(c, c.args[1], layout, to)},
                      {{"kernel_layout", AttrValue(to)},
                       {"channels", AttrValue(channels)},
                       {"kernel_size", to_value(size)}});
  }

  // A convolution over the axes of `space`.
  Expr conv(const CallNode& c, const std::string& space) {
    if (Expr gradient = weight_gradient(c, space)) return gradient;
    std::string layout = text_attr(c, "kernel_layout");
    if (!pays(c) || text_attr(c, "data_layout") != "N" + space + "C" ||
        layout.find_first_of("0123456789") != layout.npos) {
      return nullptr;
    }
    std::vector<int64_t> shape = *static_shape(c.args[1]);
    Layout kernel = Layout::of(layout);
    auto extent = [&](char name) { return shape[static_cast<size_t>(kernel.index_of(name))]; };
    int64_t groups = int_attr(c, "groups");
    std::string to;
    int64_t taps = 1;
    for (char s : space) taps *= extent(s);
    const bool depthwise = extent('I') == 1 && extent('O') == groups;
    if (taps == 1 && (groups == 1 || !depthwise)) {
      if (Expr product = product_of_planes(c, layout, space, extent('O'), groups)) return product;
    }
    if (groups == 1 && is_to_few_channels(c, extent('O'), taps)) return in_planes(c, space);
    if (groups == 1 && extent('O') == 1) {
      to = "O" + space + "I";  // one column: lanes go along the sum
    } else if (groups == 1) {
      to = panels("O" + space + "I", 'o', 'i');
    } else if (depthwise) {
      to = space + "IO";
    } else {
      return grouped(c, kernel, space, groups);
    }
    if (to == layout) return nullptr;
    std::vector<int64_t> size;
    for (char s : space) size.push_back(extent(s));
    std::vector<std::pair<std::string, AttrValue>> attrs{{"kernel_layout", AttrValue(to)},
                                                         {"channels", AttrValue(extent('O'))},
                                                         {"kernel_size", to_value(size)}};
    std::vector<Expr> args{c.args[0], packed(c, c.args[1], layout, to)};
    if (groups != 1 || !rows_are_items(c, size)) return with_attrs(c, args, std::move(attrs));
    const std::string items = space + "NC";
    attrs.emplace_back("out_layout", AttrValue(items));
    return make_call(
        "layout_transform", {with_attrs(c, args, std::move(attrs))},
        {{"src_layout", AttrValue(items)}, {"dst_layout", AttrValue(text_attr(c, "data_layout"))}},
        c);
  }

  Expr in_planes(const CallNode& c, const std::string& space) const {
    const std::string pixels = "N" + space + "C", planes = "NC" + space;
    auto turned = [&](const Expr& x, const std::string& from, const std::string& to) {
      return make_call("layout_transform", {x},
                       {{"src_layout", AttrValue(from)}, {"dst_layout", AttrValue(to)}}, c);
    };
    Expr sums = with_attrs(c, {turned(c.args[0], pixels, planes), c.args[1]},
                           {{"data_layout", AttrValue(planes)}});
    return turned(sums, planes, pixels);
  }

  static bool transforms(const CallNode* call, const std::string& from, const std::string& to) {
    return call != nullptr && is_call_to(Expr(call), "layout_transform") &&
           text_attr(*call, "src_layout") == from && text_attr(*call, "dst_layout") == to;
  }

  // Whether the result is used in another layout only, behind operators by element, as a bias is added, that have one user each.
  bool becomes(const CallNode& c, const std::string& from, const std::string& to) const {
    const CallNode* value = &c;
    for (;;) {
      auto after = transformed_.find(value);
      auto user = used_.find(value);
      if (user == used_.end())
        return after != transformed_.end() && transforms(after->second, from, to);
      auto* op = user->second == nullptr ? nullptr : as<OpNode>(user->second->op);
      if (after != transformed_.end() || op == nullptr ||
          (op->row->fusion != FusionClass::ElemWise && op->row->fusion != FusionClass::Broadcast)) {
        return false;
      }
      value = user->second;
    }
  }

  // A convolution of one tap with few channels of a group on one side, between images whose channels lie one after the other (NCHW):
  // for each group, the weights' matrix times the planes, whose pixels are its columns as they lie. Null for other convolutions.
  Expr product_of_planes(const CallNode& c, const std::string& kernel, const std::string& space,
                         int64_t channels, int64_t groups) {
    const std::string pixels = "N" + space + "C", planes = "NC" + space;
    auto shape = static_shape(c.args[0]), result = static_shape(Expr(&c));
    const DType dtype = tensor_of(Expr(&c))->dtype;
    if (!shape || !result || !dtype.is_floating() || dtype.bits < 32 ||
        !text_attr(c, "out_layout").empty() || dtype != tensor_of(c.args[0])->dtype) {
      return nullptr;
    }
    const std::vector<int64_t> steps = *ints_attr(c, "strides");
    if (std::ranges::any_of(steps, [](int64_t step) { return step != 1; })) return nullptr;
    int64_t positions = 1;
    for (size_t d = 1; d + 1 < shape->size(); ++d) {
      if ((*shape)[d] != (*result)[d]) return nullptr;  // a border
      positions *= (*shape)[d];
    }
    const int64_t inputs = shape->back(), lanes = target_.lanes(dtype.bits), items = shape->front();
    if (std::min(inputs, channels) > kMostPlanes * groups || positions < 2 * lanes) return nullptr;
    auto* before = as<CallNode>(c.args[0]);
    const bool from_planes = inputs == 1 || transforms(before, planes, pixels);
    if (!from_planes || (channels != 1 && !becomes(*original_, pixels, planes))) return nullptr;
    auto reshaped = [&](const Expr& x, const std::vector<int64_t>& to) {
      return make_call("reshape", {x}, {{"newshape", to_value(to)}}, c);
    };
    Expr data = reshaped(transforms(before, planes, pixels) ? before->args[0] : c.args[0],
                         {items * groups, inputs / groups, positions});
    const std::string rows = "OI" + space;
    Expr weight = kernel == rows ? c.args[1] : packed(c, c.args[1], kernel, rows);
    weight = reshaped(weight, {groups, channels / groups, inputs / groups});
    if (groups > 1 && items > 1) {
      weight =
          make_call("tile", {weight}, {{"reps", to_value(std::vector<int64_t>{items, 1, 1})}}, c);
    }
    Expr product =
        make_call("nn.batch_matmul", {weight, data}, {{"transpose_b", AttrValue(false)}}, c);
    std::vector<int64_t> image{items, channels};
    image.insert(image.end(), shape->begin() + 1, shape->end() - 1);
    return make_call("layout_transform", {reshaped(product, image)},
                     {{"src_layout", AttrValue(planes)}, {"dst_layout", AttrValue(pixels)}}, c);
  }

  // Whether lanes are better the columns of an image than channels of the result, most of which would be empty: the images
  // of the channels then lie one after the other, in the data and in the result.
  bool is_to_few_channels(const CallNode& c, int64_t channels, int64_t taps) const {
    auto result = static_shape(Expr(&c));
    const DType dtype = tensor_of(Expr(&c))->dtype;
    if (!result || taps == 1 || !dtype.is_floating() || dtype.bits < 32 ||
        !text_attr(c, "out_layout").empty()) {
      return false;
    }
    const int64_t columns = (*result)[result->size() - 2], lanes = target_.lanes(dtype.bits);
    const int64_t vectors = (columns + lanes - 1) / lanes;
    return 2 * columns >= lanes && columns >= 2 * channels * vectors;
  }

  // Whether neighbouring rows of a convolution are better those of different items, as of the gradient of a weight with few
  // taps: its windows are whole images, and it has as many items as the data had channels. A register tile holds 14 rows with
  // 32 registers. On a Xeon with AVX-512, the gradients of 1x1 convolutions took 0.41 to 0.5 of the time, those of 3x3, whose
  // taps are 9 rows, as long.
  bool rows_are_items(const CallNode& c, const std::vector<int64_t>& kernel) const {
    auto result = static_shape(Expr(&c));
    if (!result || kernel.size() < 2) return false;
    const int64_t most = (target_.num_vector_registers - 3) / 2, items = result->front();
    int64_t taps = 1, positions = 1;
    for (size_t d = 0; d < kernel.size(); ++d) {
      taps *= kernel[d];
      positions *= (*result)[d + 1];
    }
    return 2 * positions <= most && 2 * positions < items && taps > 16 * positions;
  }

  // Groups whose outputs fill panels are packed like one convolution each. Smaller groups are
  // merged until they fill one, with zeros for what each does not read of the others: more
  // products, but whole vectors of them.
  Expr grouped(const CallNode& c, const Layout& layout, const std::string& space, int64_t groups) {
    std::vector<int64_t> shape = *static_shape(c.args[1]), order, size;
    for (char name : "OI" + space) order.push_back(layout.index_of(name));
    for (char name : space) size.push_back(shape[static_cast<size_t>(layout.index_of(name))]);
    int64_t outputs = shape[static_cast<size_t>(order[0])];
    int64_t inputs = shape[static_cast<size_t>(order[1])];
    const int64_t each = outputs / groups, merged = packing_.merged;
    if (packing_.panel == 0) return narrow_groups(c, layout, space);
    Expr weight = c.args[1];
    if (layout.to_string() != "OI" + space) {
      weight = make_call("transpose", {weight}, {{"axes", to_value(order)}}, c);
    }
    if (merged > 1) {
      // [group, member, output, member of the input, input, space], zero between different members.
      auto with_space = [&](std::vector<int64_t> front) {
        front.insert(front.end(), size.begin(), size.end());
        return to_value(front);
      };
      weight = make_call("reshape", {weight},
                         {{"newshape", with_space({groups / merged, merged, each, 1, inputs})}}, c);
      std::vector<int64_t> mask(5 + size.size(), 1);
      mask[1] = mask[3] = merged;
      Tensor same = Tensor::empty(tensor_of(weight)->dtype, mask);
      for (int64_t i = 0; i < merged * merged; ++i) {
        same.set_from_double(i, i / merged == i % merged ? 1 : 0);
      }
      weight = make_call("multiply", {weight, constant(same, c.span)}, {}, c);
      weight =
          make_call("reshape", {weight}, {{"newshape", with_space({outputs, merged * inputs})}}, c);
    }
    std::string to = "O" + space + "I" + std::to_string(packing_.panel) + "o";
    return with_attrs(c, {c.args[0], packed(c, weight, "OI" + space, to)},
                      {{"kernel_layout", AttrValue(to)},
                       {"groups", AttrValue(groups / merged)},
                       {"channels", AttrValue(outputs)},
                       {"kernel_size", to_value(size)}});
  }

  // Lanes over the few outputs of a group read neighbouring weights.
  Expr narrow_groups(const CallNode& c, const Layout& layout, const std::string& space) {
    const std::string to = space + "IO";
    if (layout.to_string() == to) return nullptr;
    return with_attrs(c, {c.args[0], packed(c, c.args[1], layout.to_string(), to)},
                      {{"kernel_layout", AttrValue(to)}});
  }

  // Output channels last, so that lanes over them read neighbouring weights.
  Expr conv_transpose(const CallNode& c, const std::string& space) {
    std::string layout = text_attr(c, "kernel_layout"), to = space + "IO";
    if (text_attr(c, "data_layout") != "N" + space + "C" || layout == to ||
        int_attr(c, "groups") != 1) {
      return nullptr;
    }
    return with_attrs(c, {c.args[0], packed(c, c.args[1], layout, to)},
                      {{"kernel_layout", AttrValue(to)}});
  }

  const Target& target_;
  Packing packing_;  // of the call that is being packed
  ConstantExpressions constants_;
  std::optional<LoopInvariants> invariants_;  // where what is invariant is taken out of loops
  std::unordered_map<const Node*, Products> products_;  // by their weight
  // Of expressions of the given function: a call that changes its layout, and the call that does anything else with it;
  // null for several, and for what is not a call.
  std::unordered_map<const Node*, const CallNode*> transformed_, used_;
  const CallNode* original_ = nullptr;
  std::map<std::pair<const Node*, std::string>, Expr> shared_;  // by weight and name
};

Module run_alter_op_layout(const Module& mod, PassContext& ctx) {
  const bool blocked = ctx.target.has_blocked_kernels;
  const bool columns_last = !blocked && ctx.option<bool>(kAlterOpLayout, "columns_last");
  if ((!blocked && !columns_last) || !ctx.evaluate) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    Packer packer(f, ctx);
    if (columns_last) {
      return rewrite_calls(
          f, [&](const CallNode&, const CallNode& c) { return packer.with_columns_last(c); });
    }
    return rewrite_calls(
        f, [&](const CallNode& original, const CallNode& c) { return packer.pack(original, c); });
  });
}

}  // namespace

std::function<bool(const CallNode&)> packs_matrices(const Function& f, const PassContext& ctx) {
  return [packer = std::make_shared<Packer>(f, ctx)](const CallNode& c) {
    const Expr packed = packer->pack(c, c);
    return packed ? is_call_to(packed, kPackedProduct) : packer->stays_by_rows(c);
  };
}

const Pass kAlterOpLayout{"AlterOpLayout",
                          3,
                          Form::any,
                          Form::any,
                          "Packs constant weights the way the target's kernels read them.",
                          run_alter_op_layout,
                          {{"columns_last", PassOption::Type::boolean, AttrValue(false),
                            "Where rules have no kernels for blocked layouts: packs weights for "
                            "neighbouring work items."}}};

}  // namespace relay
