// Tensors at run time: a dtype, a shape, and contiguous row-major data on a device (core/device.h):
// the host, but for tensors that a program has made elsewhere.
//
//   Tensor t = Tensor::empty(DType::Float(32), {2, 3});
//   std::fill_n(t.data<float>(), t.num_elements(), 0.0f);
//   Tensor row = t.reshape({6});             // the same data
//   DLManagedTensor* out = to_dlpack(t);     // no copy
//
// A Tensor is a reference-counted handle: copying it shares the data. A default-constructed one
// is null. Zero-size tensors and rank 0 are ordinary; data() of a zero-size tensor is not null.
// Data that Relay allocates is aligned to 64 bytes; foreign data only to its element.
//
// Errors: sizes that are negative or do not fit memory's addresses raise UserError E0601; failing
// to allocate raises RuntimeError E0604.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>

#include "runtime/core/device.h"
#include "runtime/core/dlpack.h"
#include "runtime/core/dtype.h"
#include "runtime/core/object.h"

namespace relay::runtime {

using Shape = std::span<const int64_t>;

// The number of elements, checked: UserError E0601 for a negative dimension or when the bytes
// exceed 2^62. A zero anywhere gives zero, whatever the other dimensions are.
int64_t checked_num_elements(DType dtype, Shape shape);

// "(2, 3)"; "()" for rank 0, "(4,)" for rank 1. A negative dimension is shown as "?".
std::string shape_to_string(Shape shape);

class Tensor {
 public:
  Tensor() = default;
  Tensor(std::nullptr_t) {}
  Tensor(const Tensor& other) : rep_(other.rep_) { retain(rep_); }
  Tensor(Tensor&& other) noexcept : rep_(std::exchange(other.rep_, nullptr)) {}
  Tensor& operator=(Tensor other) noexcept {
    std::swap(rep_, other.rep_);
    return *this;
  }
  ~Tensor() { release(rep_); }

  // Uninitialised memory of the given dtype (one lane) and shape.
  static Tensor empty(DType dtype, Shape shape);
  static Tensor empty(DType dtype, std::initializer_list<int64_t> shape) {
    return empty(dtype, Shape(shape.begin(), shape.size()));
  }
  // All bytes zero.
  static Tensor zeros(DType dtype, Shape shape);
  static Tensor zeros(DType dtype, std::initializer_list<int64_t> shape) {
    return zeros(dtype, Shape(shape.begin(), shape.size()));
  }
  // A view of foreign memory, contiguous and aligned to its element; `owner` is kept as long as
  // the data is used. The bytes behind a read-only tensor are never written.
  static Tensor from_external(void* data, DType dtype, Shape shape, std::shared_ptr<void> owner,
                              bool read_only = false, Device device = {});
  // A rank-0 tensor with the value converted to `dtype`.
  static Tensor scalar(double value, DType dtype);
  static Tensor scalar(int64_t value, DType dtype);
  static Tensor scalar(int value, DType dtype) { return scalar(int64_t{value}, dtype); }

  explicit operator bool() const { return rep_ != nullptr; }

  DType dtype() const { return rep_->dtype; }
  Shape shape() const { return Shape(rep_->shape, static_cast<size_t>(rep_->rank)); }
  int64_t dim(size_t axis) const { return rep_->shape[axis]; }
  int rank() const { return rep_->rank; }
  int64_t num_elements() const { return rep_->num_elements; }
  size_t byte_size() const { return static_cast<size_t>(rep_->num_elements) * rep_->dtype.bytes(); }
  bool read_only() const { return rep_->read_only; }
  Device device() const { return rep_->device; }

  void* data() const { return rep_->data; }
  template <typename T>
  T* data() const {
    return static_cast<T*>(rep_->data);
  }

  // Element `i` in row-major order, converted. An integer conversion of a float truncates and
  // saturates (NaN gives 0); a write to a narrower integer from int64 wraps; a write to a bool
  // stores whether the value is nonzero.
  double get_as_double(int64_t i) const;
  int64_t get_as_int(int64_t i) const;
  void set_from_double(int64_t i, double value) const;
  void set_from_int(int64_t i, int64_t value) const;

  // A new tensor with the same contents, writable.
  Tensor copy() const;
  // The same data with another shape of as many elements.
  Tensor reshape(Shape shape) const;
  Tensor reshape(std::initializer_list<int64_t> shape) const {
    return reshape(Shape(shape.begin(), shape.size()));
  }

  // The same bytes as elements of another dtype of the same width.
  Tensor as_dtype(DType dtype) const;

  // True for two handles of one tensor.
  bool same_as(const Tensor& other) const { return rep_ == other.rep_; }
  // How many handles and views of this very tensor object exist.
  uint32_t use_count() const { return rep_->refs.load(std::memory_order_acquire); }

  // The header; the shape and the tensor's own data follow it in the same allocation. Used by the
  // virtual machine, which holds tensors among other objects.
  struct Rep : Object {
    Rep() : Object(ObjectKind::tensor) {}
    DType dtype;
    int32_t rank = 0;
    bool read_only = false;
    Device device;
    int64_t num_elements = 0;
    int64_t own_bytes = 0;  // of this allocation
    void* data = nullptr;
    std::shared_ptr<void> owner;
    int64_t shape[1] = {0};  // `rank` entries
  };
  static Tensor adopt(Rep* rep) {
    Tensor t;
    t.rep_ = rep;
    return t;
  }
  static Tensor share(Rep* rep) {
    retain(rep);
    return adopt(rep);
  }
  Rep* rep() const { return rep_; }
  Rep* take() && { return std::exchange(rep_, nullptr); }

 private:
  static Rep* make_rep(DType dtype, Shape shape, bool with_data);
  Rep* rep_ = nullptr;
};

// Equal dtype, shape and bytes; so NaN equals the same NaN, and -0.0 is not 0.0. Two null
// handles are equal.
bool bit_equal(const Tensor& a, const Tensor& b);

// A hash of dtype, shape and bytes, equal for bit_equal tensors.
uint64_t bit_hash(const Tensor& tensor);

// "Tensor[(2, 3), float32]".
std::string type_string(DType dtype, Shape shape);

// DLPack. The from_ functions take over the managed tensor and call its deleter when the data is
// no longer used (also when they fail). Strided or misaligned input is copied into a contiguous
// tensor; everything else is shared, and keeps its device. Errors: UserError E0602 for a device
// whose memory the CPU cannot read, an unknown dtype, several lanes, or an inconsistent structure.
Tensor from_dlpack(DLManagedTensor* managed);
Tensor from_dlpack(DLManagedTensorVersioned* managed);
// The returned structure keeps the tensor alive until its deleter is called. The legacy form cannot
// say that data is read-only, so it copies read-only tensors.
DLManagedTensor* to_dlpack(const Tensor& tensor);
DLManagedTensorVersioned* to_dlpack_versioned(const Tensor& tensor);

}  // namespace relay::runtime

namespace relay {
using runtime::Tensor;
}
