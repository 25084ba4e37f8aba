#include "runtime/core/tensor.h"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <vector>

#include "base/codes/runtime.h"
#include "runtime/core/device_exchange.h"
#include "runtime/core/float16.h"
#include "runtime/core/immediate.h"
#include "runtime/core/narrow.h"
#include "runtime/core/object_pool.h"
#include "runtime/core/strings.h"

namespace relay::runtime {

namespace {

constexpr size_t kAlignment = 64;
// Of a tensor, which addresses count.
constexpr int64_t kMaxBytes =
    std::min<int64_t>(int64_t{1} << 62, std::numeric_limits<ptrdiff_t>::max());
constexpr size_t kMaxRank = 1024;
// No allocation beyond this is tried: it would be granted by overcommitment at best.
constexpr auto kMaxAllocation =
    static_cast<size_t>(std::min<int64_t>(int64_t{1} << 39, std::numeric_limits<ptrdiff_t>::max()));

// True when a float is inside the range where the conversion to int64 is defined.
int64_t saturate_to_int64(double value) {
  if (std::isnan(value)) return 0;
  if (value >= 0x1p63) return std::numeric_limits<int64_t>::max();
  if (value < -0x1p63) return std::numeric_limits<int64_t>::min();
  return static_cast<int64_t>(value);
}

template <typename T>
T saturate(double value) {
  if (std::isnan(value)) return 0;
  // The bounds are exact powers of two as doubles, so the comparison is exact.
  const double upper = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (value >= upper) return std::numeric_limits<T>::max();
  if (value <= static_cast<double>(std::numeric_limits<T>::min())) {
    return std::numeric_limits<T>::min();
  }
  return static_cast<T>(value);
}

template <typename T>
T load(const void* data, int64_t i) {
  T value;
  std::memcpy(&value, static_cast<const char*>(data) + i * static_cast<int64_t>(sizeof(T)),
              sizeof(T));
  return value;
}

template <typename T>
void store(void* data, int64_t i, T value) {
  std::memcpy(static_cast<char*>(data) + i * static_cast<int64_t>(sizeof(T)), &value, sizeof(T));
}

// Calls `f` with a zero of the C++ type that holds an integer or IEEE dtype of 32 bits and above.
template <typename F>
auto dispatch_integer(DType t, F&& f) {
  RELAY_CHECK(!t.is_string(), "a string is not a number");
  if (t.is_int()) {
    switch (t.bits) {
      case 8:
        return f(int8_t{});
      case 16:
        return f(int16_t{});
      case 32:
        return f(int32_t{});
      default:
        return f(int64_t{});
    }
  }
  switch (t.bits) {
    case 8:
      return f(uint8_t{});
    case 16:
      return f(uint16_t{});
    case 32:
      return f(uint32_t{});
    default:
      return f(uint64_t{});
  }
}

double load_float(DType t, const void* data, int64_t i) {
  if (t.is_bfloat16()) return bfloat16_to_float(load<uint16_t>(data, i));
  if (t.bits == 16) return float16_to_float(load<uint16_t>(data, i));
  if (t.bits == 32) return load<float>(data, i);
  return load<double>(data, i);
}

// Rounds to odd at float's precision, so that a second rounding to 16 bits is as if done once.
float to_float_round_odd(double value) {
  float rounded = static_cast<float>(value);
  if (!std::isfinite(rounded) || static_cast<double>(rounded) == value) return rounded;
  uint32_t bits = std::bit_cast<uint32_t>(rounded);
  if (bits & 1u) return rounded;
  // `rounded` is even and inexact: its neighbour on the other side of `value` is odd.
  float toward = value > rounded ? INFINITY : -INFINITY;
  return std::nextafterf(rounded, toward);
}

void store_float(DType t, void* data, int64_t i, double value) {
  if (t.is_bfloat16()) {
    store(data, i, float_to_bfloat16(to_float_round_odd(value)));
  } else if (t.bits == 16) {
    store(data, i, float_to_float16(to_float_round_odd(value)));
  } else if (t.bits == 32) {
    store(data, i, static_cast<float>(value));
  } else {
    store(data, i, value);
  }
}

}  // namespace

int64_t checked_num_elements(DType dtype, Shape shape) {
  if (shape.size() > kMaxRank) {
    throw UserError(
        Diagnostic(codes::tensor_size, {},
                   "a tensor of rank " + std::to_string(shape.size()) + " is not supported")
            .expected("at most " + std::to_string(kMaxRank) + " dimensions"));
  }
  bool zero = false;
  for (int64_t dim : shape) {
    if (dim < 0) {
      throw UserError(Diagnostic(codes::tensor_size, {},
                                 "a tensor dimension is negative: " + std::to_string(dim)));
    }
    zero = zero || dim == 0;
  }
  if (zero) return 0;
  int64_t bytes = static_cast<int64_t>(dtype.bytes());
  for (int64_t dim : shape) {
    if (bytes > kMaxBytes / dim) {
      throw UserError(Diagnostic(codes::tensor_size, {},
                                 "the size of " + type_string(dtype, shape) + " overflows")
                          .expected(kMaxBytes == int64_t{1} << 62 ? "at most 2^62 bytes"
                                                                  : "less than 2^31 bytes"));
    }
    bytes *= dim;
  }
  return bytes / static_cast<int64_t>(dtype.bytes());
}

std::string shape_to_string(Shape shape) {
  constexpr size_t kShown = 16;
  std::string text = "(";
  for (size_t i = 0; i < shape.size() && i < kShown; ++i) {
    if (i > 0) text += ", ";
    text += shape[i] < 0 ? "?" : std::to_string(shape[i]);
  }
  if (shape.size() > kShown) text += ", ...";
  if (shape.size() == 1) text += ",";
  return text + ")";
}

std::string type_string(DType dtype, Shape shape) {
  return "Tensor[" + shape_to_string(shape) + ", " + dtype.to_string() + "]";
}

namespace {

// Large tensors are mostly weights, which are streamed: huge pages spare misses in the translation
// buffer. Only a hint.
void advise_huge_pages(void* memory, size_t bytes) {
  constexpr size_t kPage = 4096;
  constexpr size_t kLarge = size_t{4} << 20;
  if (bytes < kLarge) return;
  auto begin = (reinterpret_cast<uintptr_t>(memory) + kPage - 1) / kPage * kPage;
  auto end = (reinterpret_cast<uintptr_t>(memory) + bytes) / kPage * kPage;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

// Bytes of a tensor's header with its shape, rounded so that data may follow it aligned.
size_t header_bytes(size_t rank) {
  size_t bytes = sizeof(Tensor::Rep) - sizeof(Tensor::Rep::shape) + rank * sizeof(int64_t);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace

Tensor::Rep* Tensor::make_rep(DType dtype, Shape shape, bool with_data) {
  RELAY_CHECK(dtype.lanes == 1 && dtype.valid(), dtype.to_string());
  int64_t elements = checked_num_elements(dtype, shape);
  size_t data = with_data ? static_cast<size_t>(elements) * dtype.bytes() : 0;
  size_t header = header_bytes(shape.size());
  size_t rounded = header + std::max(kAlignment, (data + kAlignment - 1) / kAlignment * kAlignment);
  void* memory = rounded <= kMaxAllocation ? allocate_object(rounded, true) : nullptr;
  if (memory == nullptr) {
    throw RuntimeError(Diagnostic(
        codes::run_out_of_memory, {},
        "no memory for " + type_string(dtype, shape) + " of " + std::to_string(data) + " bytes"));
  }
  advise_huge_pages(memory, rounded);
  Rep* rep = new (memory) Rep;
  rep->dtype = dtype;
  rep->rank = static_cast<int32_t>(shape.size());
  rep->num_elements = elements;
  rep->own_bytes = static_cast<int64_t>(rounded);
  rep->data = static_cast<char*>(memory) + header;
  std::copy(shape.begin(), shape.end(), rep->shape);
  add_thread_object_bytes(rep->own_bytes);
  return rep;
}

Tensor box_scalar(int64_t bits, DType dtype) {
  constexpr size_t kBytes = 2 * kAlignment;
  static_assert(sizeof(Tensor::Rep) - sizeof(Tensor::Rep::shape) <= kAlignment);
  void* memory = allocate_object(kBytes, true);
  if (memory == nullptr) {
    throw RuntimeError(Diagnostic(codes::run_out_of_memory, {}, "no memory for a scalar"));
  }
  auto* rep = new (memory) Tensor::Rep;
  rep->dtype = dtype;
  rep->num_elements = 1;
  rep->own_bytes = kBytes;
  rep->data = static_cast<char*>(memory) + kAlignment;
  add_thread_object_bytes(kBytes);
  // Little-endian: the element's bytes are the first ones.
  if (dtype.is_bool()) bits = bits != 0;
  std::memcpy(rep->data, &bits, dtype.bytes());
  return Tensor::adopt(rep);
}

Tensor tensor_of(Object* word) {
  if (!is_immediate(word)) return Tensor::share(static_cast<Tensor::Rep*>(word));
  return box_scalar(immediate_bits(word), immediate_dtype(word));
}

Tensor Tensor::empty(DType dtype, Shape shape) { return adopt(make_rep(dtype, shape, true)); }

Tensor Tensor::zeros(DType dtype, Shape shape) {
  Tensor tensor = empty(dtype, shape);
  std::memset(tensor.data(), 0, tensor.byte_size());
  return tensor;
}

Tensor Tensor::from_external(void* data, DType dtype, Shape shape, std::shared_ptr<void> owner,
                             bool read_only, Device device) {
  Tensor tensor = adopt(make_rep(dtype, shape, false));
  RELAY_CHECK(data != nullptr || tensor.num_elements() == 0);
  // Without data, the address after the header is as good as any other.
  if (data != nullptr) tensor.rep_->data = data;
  tensor.rep_->read_only = read_only;
  tensor.rep_->device = device;
  tensor.rep_->owner = std::move(owner);
  return tensor;
}

// Called by destroy_object for ObjectKind::tensor.
void destroy_tensor(Object* object) noexcept {
  auto* rep = static_cast<Tensor::Rep*>(object);
  auto bytes = static_cast<size_t>(rep->own_bytes);
  rep->~Rep();
  add_thread_object_bytes(-static_cast<int64_t>(bytes));
  free_object(rep, bytes, true);
}

Tensor Tensor::scalar(double value, DType dtype) {
  Tensor tensor = empty(dtype, Shape{});
  tensor.set_from_double(0, value);
  return tensor;
}

Tensor Tensor::scalar(int64_t value, DType dtype) {
  Tensor tensor = empty(dtype, Shape{});
  tensor.set_from_int(0, value);
  return tensor;
}

double Tensor::get_as_double(int64_t i) const {
  DType t = dtype();
  if (t.is_bool()) return load<uint8_t>(data(), i) != 0;
  if (t.is_narrow()) return narrow_to_double(narrow_format(t.code), load<uint8_t>(data(), i));
  if (t.is_floating()) return load_float(t, data(), i);
  return dispatch_integer(
      t, [&](auto zero) { return static_cast<double>(load<decltype(zero)>(data(), i)); });
}

int64_t Tensor::get_as_int(int64_t i) const {
  DType t = dtype();
  if (t.is_bool()) return load<uint8_t>(data(), i) != 0;
  if (t.is_narrow()) return saturate_to_int64(get_as_double(i));
  if (t.is_floating()) return saturate_to_int64(load_float(t, data(), i));
  return dispatch_integer(
      t, [&](auto zero) { return static_cast<int64_t>(load<decltype(zero)>(data(), i)); });
}

void Tensor::set_from_double(int64_t i, double value) const {
  DType t = dtype();
  if (t.is_bool()) {
    store<uint8_t>(data(), i, value != 0);
  } else if (t.is_narrow()) {
    store(data(), i, double_to_narrow(narrow_format(t.code), value, true));
  } else if (t.is_floating()) {
    store_float(t, data(), i, value);
  } else {
    dispatch_integer(t, [&](auto zero) { store(data(), i, saturate<decltype(zero)>(value)); });
  }
}

void Tensor::set_from_int(int64_t i, int64_t value) const {
  DType t = dtype();
  if (t.is_bool()) {
    store<uint8_t>(data(), i, value != 0);
  } else if (t.is_narrow()) {
    set_from_double(i, static_cast<double>(value));
  } else if (t.is_float(32)) {
    store(data(), i, static_cast<float>(value));
  } else if (t.is_floating()) {
    store_float(t, data(), i, static_cast<double>(value));
  } else {
    dispatch_integer(t, [&](auto zero) { store(data(), i, static_cast<decltype(zero)>(value)); });
  }
}

Tensor Tensor::copy() const {
  RELAY_CHECK(device().is_host(), "a tensor on " + device().to_string() + " is read by the host");
  Tensor result = empty(dtype(), shape());
  std::memcpy(result.data(), data(), byte_size());
  if (dtype().is_string()) own_strings(result);
  return result;
}

Tensor Tensor::reshape(Shape shape) const {
  Rep* rep = make_rep(dtype(), shape, false);
  Tensor view = adopt(rep);
  RELAY_CHECK(
      rep->num_elements == num_elements(),
      "reshape of " + type_string(dtype(), this->shape()) + " to " + shape_to_string(shape));
  rep->data = data();
  rep->read_only = read_only();
  rep->device = device();
  // The view keeps this tensor alive, not its owner: the data dies with the tensor that made it.
  rep->owner = rep_->owner != nullptr ? rep_->owner
                                      : std::shared_ptr<void>(data(), [base = *this](void*) {});
  return view;
}

Tensor Tensor::as_dtype(DType dtype) const {
  if (dtype == this->dtype()) return *this;
  RELAY_CHECK(dtype.bytes() == this->dtype().bytes() && dtype.lanes == 1, dtype.to_string());
  Tensor view = reshape(shape());
  view.rep_->dtype = dtype;
  return view;
}

bool bit_equal(const Tensor& a, const Tensor& b) {
  if (a.same_as(b)) return true;
  if (!a || !b) return false;
  if (a.dtype() != b.dtype() || !std::ranges::equal(a.shape(), b.shape())) return false;
  RELAY_CHECK(a.device().is_host() && b.device().is_host(), "the host compares what is elsewhere");
  if (!a.dtype().is_string()) return std::memcmp(a.data(), b.data(), a.byte_size()) == 0;
  for (int64_t i = 0; i < a.num_elements(); ++i) {
    if (string_at(a, i) != string_at(b, i)) return false;
  }
  return true;
}

namespace {

// The low half of a * b + c, as 128 bits, exclusive-or the high half.
uint64_t folded_product(uint64_t a, uint64_t b, uint64_t c) {
#if defined(__SIZEOF_INT128__)
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b + c;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
#else
  constexpr uint64_t kLow = 0xFFFFFFFFu;
  const uint64_t low = (a & kLow) * (b & kLow), cross = (a >> 32) * (b & kLow) + (low >> 32);
  const uint64_t other = (a & kLow) * (b >> 32) + (cross & kLow);
  const uint64_t sum = (other << 32 | (low & kLow)) + c;
  return sum ^ ((a >> 32) * (b >> 32) + (cross >> 32) + (other >> 32) + (sum < c ? 1 : 0));
#endif
}

}  // namespace

uint64_t bit_hash(const Tensor& tensor) {
  if (!tensor) return 0;
  // A multiply-and-fold hash over 8-byte words; equality is always checked on top of it.
  uint64_t hash = 0x9E3779B97F4A7C15u ^ tensor.dtype().key();
  auto mix = [&hash](uint64_t word) {
    hash = folded_product(hash ^ word, 0xD6E8FEB86659FD93u, 0xA0761D6478BD642Fu);
  };
  for (int64_t dim : tensor.shape()) mix(static_cast<uint64_t>(dim));
  const std::string packed = tensor.dtype().is_string() ? pack_strings(tensor) : std::string();
  const char* bytes = tensor.dtype().is_string() ? packed.data() : tensor.data<char>();
  size_t size = tensor.dtype().is_string() ? packed.size() : tensor.byte_size();
  size_t i = 0;
  for (; i + 8 <= size; i += 8) mix(load<uint64_t>(bytes + i, 0));
  uint64_t tail = 0;
  if (i < size) std::memcpy(&tail, bytes + i, size - i);
  mix(tail);
  return hash;
}

namespace {

[[noreturn]] void dlpack_error(std::string message, std::string help = {}) {
  throw UserError(Diagnostic(codes::tensor_dlpack, {}, std::move(message)).help(std::move(help)));
}

// The codes of DLPack 1.1 for floats of 8 bits, which older headers lack. It packs elements of fewer
// bits, so these have none.
constexpr uint8_t kFloat8Codes[] = {10, 11, 12, 13, 14};

std::optional<DType> dtype_from_dlpack(DLDataType t) {
  if (t.lanes != 1) return std::nullopt;
  DType result;
  switch (t.code) {
    case kDLInt:
      result = DType::Int(t.bits);
      break;
    case kDLUInt:
      result = DType::UInt(t.bits);
      break;
    case kDLFloat:
      result = DType::Float(t.bits);
      break;
    case kDLBfloat:
      result = DType::BFloat16();
      result.bits = t.bits;
      break;
    case kDLBool:
      result = DType::Bool();
      result.bits = t.bits;
      break;
    default: {
      const auto* at = std::ranges::find(kFloat8Codes, t.code);
      if (at == std::end(kFloat8Codes)) return std::nullopt;
      result = DType::Narrow(static_cast<DType::Code>(DType::kFloat8E4M3FN + (at - kFloat8Codes)));
      result.bits = t.bits;
    }
  }
  return result.valid() ? std::optional<DType>(result) : std::nullopt;
}

DLDataType dtype_to_dlpack(DType t) {
  if (t.is_only_moved()) {
    if (t.code > DType::kFloat8E8M0FNU) dlpack_error("DLPack has no elements of " + t.to_string());
    return DLDataType{kFloat8Codes[t.code - DType::kFloat8E4M3FN], 8, 1};
  }
  static constexpr uint8_t codes[] = {kDLInt, kDLUInt, kDLFloat, kDLBfloat, kDLBool};
  return DLDataType{codes[t.code], t.bits, t.lanes};
}

bool is_contiguous(const DLTensor& t, int64_t num_elements) {
  if (t.strides == nullptr || num_elements == 0) return true;
  int64_t expected = 1;
  for (int32_t i = t.ndim - 1; i >= 0; --i) {
    if (t.shape[i] == 1) continue;
    if (t.strides[i] != expected) return false;
    expected *= t.shape[i];
  }
  return true;
}

// Copies a strided tensor element by element, in row-major order.
Tensor copy_strided(const DLTensor& t, DType dtype, Shape shape) {
  Tensor result = Tensor::empty(dtype, shape);
  const int64_t size = static_cast<int64_t>(dtype.bytes());
  const int64_t count = result.num_elements();
  const char* source = static_cast<const char*>(t.data) + t.byte_offset;
  char* target = result.data<char>();
  std::vector<int64_t> strides(shape.size());
  int64_t contiguous = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    strides[i] = t.strides != nullptr ? t.strides[i] : contiguous;
    contiguous *= shape[i];
  }
  std::vector<int64_t> index(shape.size(), 0);
  int64_t offset = 0;
  for (int64_t n = 0; n < count; ++n) {
    std::memcpy(target + n * size, source + offset * size, static_cast<size_t>(size));
    for (size_t axis = shape.size(); axis-- > 0;) {
      offset += strides[axis];
      if (++index[axis] < shape[axis]) break;
      offset -= strides[axis] * shape[axis];
      index[axis] = 0;
    }
  }
  return result;
}

// Data on a device other than the host, which nothing here reads.
Tensor import_from_device(const DLTensor& t, Device device, DType dtype, Shape shape,
                          bool read_only, std::shared_ptr<void> owner,
                          const DeviceExchange& devices) {
  const std::string subject = "the DLPack tensor on " + device.to_string();
  const int64_t count = checked_num_elements(dtype, shape);
  if (!is_contiguous(t, count)) {
    dlpack_error(subject + " is not contiguous", "copy it, for instance by x.contiguous()");
  }
  const bool has_address = device.type != kDLOpenCL;
  const uint64_t place =
      t.byte_offset + (has_address ? reinterpret_cast<uintptr_t>(t.data) : uintptr_t{0});
  if (place % dtype.bytes() != 0) {
    dlpack_error(subject + " is not aligned to its elements of " + dtype.to_string(),
                 "copy it to memory of its own, for instance by x.clone()");
  }
  // Of a tensor without elements others may give no memory, and kernels get an address.
  if (count == 0) return devices.empty(dtype, shape, device);
  if (t.data == nullptr) dlpack_error("the DLPack tensor has no data");
  const auto bytes = static_cast<size_t>(count) * static_cast<size_t>(dtype.bytes());
  std::shared_ptr<void> memory =
      devices.take(device, {t.data, t.byte_offset}, bytes, std::move(owner));
  void* data = memory.get();
  return Tensor::from_external(data, dtype, shape, std::move(memory), read_only, device);
}

Tensor import_dlpack(const DLTensor& t, bool read_only, std::shared_ptr<void> owner,
                     const DeviceExchange* devices) {
  constexpr int32_t kMax = std::numeric_limits<uint16_t>::max();
  if (t.device.device_type < 0 || t.device.device_type > kMax || t.device.device_id < 0 ||
      t.device.device_id > kMax) {
    dlpack_error("the DLPack tensor's device (type " + std::to_string(t.device.device_type) +
                 ", number " + std::to_string(t.device.device_id) + ") does not exist");
  }
  const Device device{static_cast<uint16_t>(t.device.device_type),
                      static_cast<uint16_t>(t.device.device_id)};
  if (!device.is_host() && devices == nullptr) {
    dlpack_error("the DLPack tensor is on " + device.to_string() + ", not in the CPU's memory",
                 "copy it to the CPU first");
  }
  std::optional<DType> dtype = dtype_from_dlpack(t.dtype);
  if (!dtype) {
    dlpack_error("the DLPack tensor has an unsupported dtype (code " +
                     std::to_string(t.dtype.code) + ", " + std::to_string(t.dtype.bits) +
                     " bits, " + std::to_string(t.dtype.lanes) + " lanes)",
                 "convert it to an integer, float, bfloat16 or bool dtype");
  }
  if (t.ndim < 0 || (t.ndim > 0 && t.shape == nullptr)) {
    dlpack_error("the DLPack tensor has no shape");
  }
  Shape shape(t.shape, static_cast<size_t>(t.ndim));
  int64_t count = checked_num_elements(*dtype, shape);
  if (!device.is_host()) {
    return import_from_device(t, device, *dtype, shape, read_only, std::move(owner), *devices);
  }
  if (count > 0 && t.data == nullptr) dlpack_error("the DLPack tensor has no data");
  if (count == 0) return Tensor::empty(*dtype, shape);
  char* data = static_cast<char*>(t.data) + t.byte_offset;
  bool aligned = reinterpret_cast<uintptr_t>(data) % dtype->bytes() == 0;
  if (!aligned || !is_contiguous(t, count)) return copy_strided(t, *dtype, shape);
  return Tensor::from_external(data, *dtype, shape, std::move(owner), read_only, device);
}

template <typename Managed>
std::shared_ptr<void> own(Managed* managed) {
  return std::shared_ptr<void>(managed, [](void* pointer) {
    auto* m = static_cast<Managed*>(pointer);
    if (m->deleter != nullptr) m->deleter(m);
  });
}

// The objects that an exported tensor keeps alive.
template <typename Managed>
struct Export {
  Managed managed{};
  Tensor tensor;
  const DeviceExchange* devices = nullptr;  // null for one of the host
};

template <typename Managed>
Managed* export_dlpack(Tensor tensor, const DeviceExchange* devices) {
  auto holder = std::make_unique<Export<Managed>>();
  holder->tensor = std::move(tensor);
  const Tensor& kept = holder->tensor;
  DeviceExchange::Place place{kept.num_elements() == 0 ? nullptr : kept.data(), 0};
  if (!kept.device().is_host()) {
    RELAY_CHECK(devices != nullptr, "a tensor on a device is given without its driver");
    place = devices->give(kept);
    holder->devices = devices;
  }
  DLTensor& t = holder->managed.dl_tensor;
  t.data = place.data;
  t.device = DLDevice{kept.device().type, kept.device().id};
  t.ndim = kept.rank();
  t.dtype = dtype_to_dlpack(kept.dtype());
  t.shape = kept.rep()->shape;
  t.strides = nullptr;
  t.byte_offset = place.offset;
  holder->managed.manager_ctx = holder.get();
  holder->managed.deleter = [](Managed* self) {
    auto* kept = static_cast<Export<Managed>*>(self->manager_ctx);
    if (kept->devices != nullptr) kept->devices->settle(kept->tensor.device());
    delete kept;
  };
  return &holder.release()->managed;
}

Tensor from_managed(DLManagedTensor* managed, const DeviceExchange* devices) {
  if (managed == nullptr) dlpack_error("the DLPack tensor is null");
  auto owner = own(managed);
  return import_dlpack(managed->dl_tensor, false, std::move(owner), devices);
}

Tensor from_managed(DLManagedTensorVersioned* managed, const DeviceExchange* devices) {
  if (managed == nullptr) dlpack_error("the DLPack tensor is null");
  auto owner = own(managed);
  if (managed->version.major != DLPACK_MAJOR_VERSION) {
    dlpack_error("the DLPack tensor has version " + std::to_string(managed->version.major) + "." +
                 std::to_string(managed->version.minor) + "; version 1 is supported");
  }
  bool read_only = (managed->flags & DLPACK_FLAG_BITMASK_READ_ONLY) != 0;
  return import_dlpack(managed->dl_tensor, read_only, std::move(owner), devices);
}

DLManagedTensor* to_managed(const Tensor& tensor, const DeviceExchange* devices) {
  if (!tensor.read_only()) return export_dlpack<DLManagedTensor>(tensor, devices);
  const bool copies_there = devices != nullptr && !tensor.device().is_host();
  return export_dlpack<DLManagedTensor>(copies_there ? devices->copy(tensor) : tensor.copy(),
                                        devices);
}

DLManagedTensorVersioned* to_managed_versioned(const Tensor& tensor,
                                               const DeviceExchange* devices) {
  auto* managed = export_dlpack<DLManagedTensorVersioned>(tensor, devices);
  managed->version = DLPackVersion{DLPACK_MAJOR_VERSION, DLPACK_MINOR_VERSION};
  managed->flags = tensor.read_only() ? DLPACK_FLAG_BITMASK_READ_ONLY : 0;
  return managed;
}

}  // namespace

Tensor from_dlpack(DLManagedTensor* managed) { return from_managed(managed, nullptr); }
Tensor from_dlpack(DLManagedTensorVersioned* managed) { return from_managed(managed, nullptr); }
Tensor from_dlpack(DLManagedTensor* managed, const DeviceExchange& devices) {
  return from_managed(managed, &devices);
}
Tensor from_dlpack(DLManagedTensorVersioned* managed, const DeviceExchange& devices) {
  return from_managed(managed, &devices);
}

DLManagedTensor* to_dlpack(const Tensor& tensor) { return to_managed(tensor, nullptr); }
DLManagedTensor* to_dlpack(const Tensor& tensor, const DeviceExchange& devices) {
  return to_managed(tensor, &devices);
}
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor) {
  return to_managed_versioned(tensor, nullptr);
}
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor, const DeviceExchange& devices) {
  return to_managed_versioned(tensor, &devices);
}

}  // namespace relay::runtime
