#include "backends/onednn/description.h"

#include <algorithm>
#include <bit>
#include <map>
#include <span>
#include <stdexcept>
#include <string>

namespace relay::onednn {
namespace {

// "RELAYDNN" and the version of the description; behind it, the id.
constexpr int64_t kMagic = 0x4e4e4459414c4552;
constexpr int64_t kFormat = 2;
constexpr int64_t kHeaderWords = 4, kWordBytes = 8;
// Elements of a tensor, and settings of a window: far above what memory holds, far below an overflow.
constexpr int64_t kMaxElements = int64_t{1} << 40, kMaxSetting = int64_t{1} << 20;
constexpr double kMaxScale = 1e30;
// dnnl_alg_kind_t.
constexpr int kMaxPooling = 0x1ff, kMeanOfAll = 0x2ff, kMeanOfInside = 0x3ff, kAdd = 0x1fff0;

void need(bool holds, const char* fault) {
  if (!holds)
    throw std::runtime_error(std::string("the description of a region is damaged: ") + fault);
}

// Words of 64 bits, read in order.
class Words {
 public:
  Words(const int64_t* words, size_t count) : words_(words, count) {}
  int64_t next() {
    need(at_ < words_.size(), "it is too short");
    return words_[at_++];
  }
  bool flag() {
    const int64_t word = next();
    need(word == 0 || word == 1, "a flag is neither 0 nor 1");
    return word == 1;
  }
  // A number of things that follow, each of at least one word.
  size_t count() {
    const int64_t n = next();
    need(n >= 0 && static_cast<size_t>(n) <= words_.size() - at_, "a list is too long");
    return static_cast<size_t>(n);
  }
  int algorithm() {
    const int64_t word = next();
    need(word >= 0 && word <= INT32_MAX, "an algorithm is out of range");
    return static_cast<int>(word);
  }
  double wide_number() { return std::bit_cast<double>(next()); }
  float number() { return static_cast<float>(wide_number()); }
  Quantization quantization() {
    Quantization out;
    out.scale = wide_number();
    need(out.scale > 0 && out.scale < kMaxScale, "a scale is out of range");
    const int64_t zero = next();
    need(zero >= -128 && zero <= 255, "a zero point is out of range");
    out.zero = static_cast<int32_t>(zero);
    return out;
  }
  std::vector<int64_t> list() {
    std::vector<int64_t> out(count());
    for (int64_t& v : out) v = next();
    return out;
  }

 private:
  std::span<const int64_t> words_;
  size_t at_ = 0;
};

int64_t elements(std::span<const int64_t> dims) {
  int64_t out = 1;
  for (int64_t d : dims) {
    need(d >= 0 && d <= kMaxElements / std::max<int64_t>(out, 1), "a dimension is out of range");
    out *= d;
  }
  return out;
}

// The sizes of a call, in the order of the inputs, and what they say of symbolic ones.
class CallSizes {
 public:
  explicit CallSizes(const int64_t* sizes) : next_(sizes + 1) {}
  // The dimensions of an input. Nothing is read behind a size that is none.
  void bind(std::vector<int64_t>& dims) {
    for (int64_t& d : dims) {
      const int64_t given = *next_++;
      need(given >= 0, "a size of the call is out of range");
      if (d < 0) d = symbols_.try_emplace(d, given).first->second;
      if (d != given) {
        throw std::runtime_error(
            "the sizes of a region's operands are not those of its description");
      }
    }
  }
  // Those of a computed value.
  void resolve(std::vector<int64_t>& dims) const {
    for (int64_t& d : dims) {
      if (d >= 0) continue;
      auto found = symbols_.find(d);
      need(found != symbols_.end(), "no input has a size of its");
      d = found->second;
    }
  }

 private:
  const int64_t* next_;
  std::map<int64_t, int64_t> symbols_;
};

int64_t bytes_of(ElementType type) {
  return type == ElementType::float32 || type == ElementType::int32 ? 4 : 1;
}

ValueRow read_value(Words& words, int64_t bytes, CallSizes& call) {
  ValueRow out;
  const int64_t role = words.next();
  need(role >= 0 && role <= static_cast<int64_t>(Role::computed), "a value has no role");
  out.role = static_cast<Role>(role);
  const int64_t type = words.next();
  need(type >= static_cast<int64_t>(ElementType::float32) &&
           type <= static_cast<int64_t>(ElementType::uint8),
       "a dtype is unknown");
  out.type = static_cast<ElementType>(type);
  out.dims = words.list();
  need(!out.dims.empty() && out.dims.size() <= kMaxRank, "a rank is out of range");
  if (out.role == Role::input) call.bind(out.dims);
  if (out.role == Role::computed) call.resolve(out.dims);
  const int64_t size = elements(out.dims) * bytes_of(out.type);
  out.offset = words.next();
  need(out.role != Role::constant || (size <= bytes && out.offset >= 0 &&
                                      out.offset <= bytes - size && out.offset % kWordBytes == 0),
       "a constant is outside of it");
  return out;
}

OpRow read_op(Words& words) {
  OpRow out;
  const int64_t kind = words.next();
  need(kind >= 0 && kind <= static_cast<int64_t>(Kind::conversion), "a primitive is unknown");
  out.kind = static_cast<Kind>(kind);
  out.operands = words.list();
  out.result = static_cast<size_t>(words.next());
  out.algorithm = words.algorithm();
  out.has_bias = words.flag();
  out.has_scales = words.flag();
  for (Quantization* q : {&out.source, &out.quantized, &out.addend}) *q = words.quantization();
  for (size_t n = words.count(); n > 0; --n) out.settings.push_back(words.list());
  for (size_t n = words.count(); n > 0; --n) {
    PostOp& p = out.post_ops.emplace_back();
    p.sum = words.flag();
    p.algorithm = words.algorithm();
    p.alpha = words.number();
    p.beta = words.number();
  }
  return out;
}

// The lists of settings of a window over `rank` dimensions.
void check_window(const OpRow& op, size_t count, size_t rank) {
  need(op.settings.size() == count, "a window lacks settings");
  for (size_t i = 0; i < count; ++i) {
    const bool positive = i == 0 || i == 4;  // strides and the window; the others may be 0
    need(op.settings[i].size() == rank, "a setting is of another rank");
    for (int64_t v : op.settings[i]) {
      need(v >= (positive ? 1 : 0) && v <= kMaxSetting, "a setting is out of range");
    }
  }
}

void check_matmul(const OpRow& op, std::vector<int64_t> source, std::vector<int64_t> weights,
                  std::vector<int64_t> result) {
  need(op.settings.size() == 1 && op.settings[0].size() == 1, "a product lacks its setting");
  need(weights.size() >= 2 && source.size() >= weights.size() && result.size() == source.size() &&
           (weights.size() == 2 || source.size() == weights.size()),
       "the ranks of a product differ");
  if (op.settings[0][0] != 0) std::swap(weights.end()[-1], weights.end()[-2]);
  need(source.back() == weights.end()[-2] && result.back() == weights.back(),
       "the matrices of a product do not fit together");
  source.pop_back();
  result.pop_back();
  need(source == result, "a product has another number of rows");
  weights.resize(weights.size() - 2);
  source.pop_back();
  need(weights.empty() || weights == source, "the batches of a product differ");
}

// Whether the dtypes of a primitive's values are those that it is called with.
void check_types(const OpRow& op, const std::vector<ValueRow>& values) {
  auto type = [&](size_t operand) {
    return values[static_cast<size_t>(op.operands[operand])].type;
  };
  auto is_byte = [](ElementType t) { return t == ElementType::int8 || t == ElementType::uint8; };
  const ElementType source = type(0), result = values[op.result].type;
  const bool head = op.kind == Kind::convolution || op.kind == Kind::matmul;
  const bool floats = source == ElementType::float32 && result == ElementType::float32;
  for (size_t i = 2; i < op.operands.size(); ++i) {
    const bool addend = op.adds() && i + 1 == op.operands.size();
    need(type(i) == (addend ? result : ElementType::float32), "a dtype is that of no operand");
  }
  const bool plain = op.source.scale == 1 && op.source.zero == 0 && op.quantized.scale == 1 &&
                     op.quantized.zero == 0;
  if (head && is_byte(source)) {
    return need(type(1) == ElementType::int8 && result != ElementType::int32,
                "the dtypes of a product differ");
  }
  if (op.kind == Kind::conversion) {
    return need(is_byte(source) != is_byte(result) && (is_byte(source) || is_byte(result)) &&
                    source != ElementType::int32 && result != ElementType::int32,
                "a conversion has other dtypes");
  }
  need(plain && !op.has_scales, "floats are not quantised");
  if (op.kind == Kind::pooling && op.algorithm == kMaxPooling && is_byte(source)) {
    return need(source == result, "the dtypes of a window differ");
  }
  need(floats && (!head || type(1) == ElementType::float32) &&
           (op.kind != Kind::binary || type(1) == ElementType::float32),
       "the dtypes of a primitive differ");
}

// Whether the values of a primitive fit together as far as oneDNN does not check it.
void check_op(const OpRow& op, const std::vector<ValueRow>& values) {
  auto dims = [&](size_t operand) -> const std::vector<int64_t>& {
    return values[static_cast<size_t>(op.operands[operand])].dims;
  };
  const std::vector<int64_t>& result = values[op.result].dims;
  const bool head = op.kind == Kind::convolution || op.kind == Kind::matmul;
  const bool two = head || op.kind == Kind::binary;
  need(op.operands.size() == size_t{1} + two + op.has_bias + op.has_scales + op.adds(),
       "a primitive lacks operands");
  need(head || (!op.has_bias && !op.has_scales && !op.adds()), "a primitive cannot add");
  check_types(op, values);
  if (op.has_scales) {
    const std::vector<int64_t>& scales = dims(op.has_bias ? 3 : 2);
    const size_t channel = op.kind == Kind::matmul ? result.size() - 1 : 1;
    need(channel < result.size() && scales.size() == 1 &&
             (scales[0] == 1 || scales[0] == result[channel]),
         "the scales do not fit the channels");
  }
  for (size_t i = 1; i < op.post_ops.size(); ++i)
    need(!op.post_ops[i].sum, "a sum is not the first");
  need(!op.adds() || dims(op.operands.size() - 1) == result, "an addend is of another shape");
  switch (op.kind) {
    case Kind::convolution:
      need(result.size() > 2 && dims(0).size() == result.size(),
           "the rank of an image is out of range");
      need(!op.has_bias || dims(2).size() == 1, "a bias is not a vector");
      return check_window(op, 4, result.size() - 2);
    case Kind::matmul:
      need(!op.has_bias || dims(2) == std::vector<int64_t>{result.back()},
           "a bias is of another shape");
      return check_matmul(op, dims(0), dims(1), result);
    case Kind::pooling:
      need(result.size() > 2 && dims(0).size() == result.size(),
           "the rank of an image is out of range");
      need(op.algorithm == kMaxPooling || op.algorithm == kMeanOfAll ||
               op.algorithm == kMeanOfInside,
           "an algorithm is unknown");
      need(op.post_ops.empty(), "a primitive cannot apply an activation");
      return check_window(op, 5, result.size() - 2);
    case Kind::eltwise:
      need(op.post_ops.size() == 1, "an activation is missing");
      return need(dims(0) == result, "an activation is of another shape");
    case Kind::binary:
      need(op.algorithm == kAdd, "an algorithm is unknown");
      need(op.post_ops.empty(), "a primitive cannot apply an activation");
      return need(dims(0) == result && dims(1) == result, "a sum is of another shape");
    case Kind::conversion:
      need(op.post_ops.empty(), "a primitive cannot apply an activation");
      return need(dims(0) == result, "a conversion is of another shape");
  }
}

// A product over no terms gets operands of one term, which is 0.
void fill_empty_operands(OpRow& op, std::vector<ValueRow>& values) {
  if (values[op.result].is_empty()) return;
  auto row = [&](size_t operand) -> const ValueRow& {
    return values[static_cast<size_t>(op.operands[operand])];
  };
  auto fill = [&](size_t operand, size_t dim) {
    ValueRow zeros = row(operand);
    zeros.role = Role::zeros;
    zeros.dims[dim] = 1;
    op.operands[operand] = static_cast<int64_t>(values.size());
    values.push_back(std::move(zeros));
  };
  if (op.kind == Kind::matmul && row(0).dims.back() == 0) {
    fill(0, row(0).dims.size() - 1);
    fill(1, row(1).dims.size() - (op.settings[0][0] != 0 ? 1 : 2));
  }
  for (size_t i = 0; i < op.operands.size(); ++i) need(!row(i).is_empty(), "an operand is empty");
}

}  // namespace

Id id_of(const void* data, int64_t bytes) {
  need(bytes >= kHeaderWords * 8, "it is too short");
  auto* words = static_cast<const int64_t*>(data);
  if (words[0] != kMagic || words[1] != kFormat) {
    throw std::runtime_error("the region was compiled for another librelay_onednn.so");
  }
  return {words[2], words[3]};
}

Description read(const void* data, const int64_t* sizes) {
  const int64_t bytes = sizes[0];
  id_of(data, bytes);
  Words words(static_cast<const int64_t*>(data) + kHeaderWords,
              static_cast<size_t>(bytes / 8 - kHeaderWords));
  Description out;
  CallSizes call(sizes);
  for (size_t n = words.count(); n > 0; --n) out.values.push_back(read_value(words, bytes, call));
  std::vector<bool> known;
  for (const ValueRow& v : out.values) known.push_back(v.role != Role::computed);
  auto is_known = [&](int64_t v) {
    return v >= 0 && static_cast<size_t>(v) < known.size() && known[static_cast<size_t>(v)];
  };
  out.outputs = words.list();
  for (size_t n = words.count(); n > 0; --n) {
    const OpRow& op = out.ops.emplace_back(read_op(words));
    need(std::ranges::all_of(op.operands, is_known), "an operand is not computed");
    need(op.result < known.size() && !known[op.result], "a value is computed twice");
    check_op(op, out.values);
    known[op.result] = true;
    fill_empty_operands(out.ops.back(), out.values);
  }
  need(std::ranges::all_of(out.outputs, is_known), "an output is not computed");
  return out;
}

std::vector<int64_t> Description::sizes(int64_t bytes) const {
  std::vector<int64_t> out = {bytes};
  for (const ValueRow& v : values) {
    if (v.role == Role::input) out.insert(out.end(), v.dims.begin(), v.dims.end());
  }
  for (int64_t v : outputs) {
    const std::vector<int64_t>& dims = values[static_cast<size_t>(v)].dims;
    out.insert(out.end(), dims.begin(), dims.end());
  }
  return out;
}

}  // namespace relay::onednn
