// Dtypes, tensors, DLPack, values.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <thread>
#include <vector>

#include "runtime/core/float16.h"
#include "runtime/core/large_blocks.h"
#include "runtime/core/middle_blocks.h"
#include "runtime/core/object_pool.h"
#include "runtime/core/tensor.h"
#include "runtime/core/value.h"

namespace relay::runtime {
namespace {

std::string code_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.diagnostics().empty() ? "?" : std::string(error.diagnostics()[0].code);
  }
  return "";
}

TEST(dtype, prints_and_parses_back) {
  for (DType t : {DType::Float(32), DType::Float(16), DType::Float(64), DType::Int(8),
                  DType::Int(64), DType::UInt(1 << 3), DType::Bool(), DType::BFloat16(),
                  DType::Float(32, 16), DType::BFloat16(32), DType::Bool(4)}) {
    EXPECT_EQ(DType::parse(t.to_string()), t) << t.to_string();
    EXPECT_EQ(DType::from_key(t.key()), t);
  }
  EXPECT_EQ(DType::Float(32, 16).to_string(), "float32x16");
  EXPECT_EQ(DType::BFloat16().to_string(), "bfloat16");
  EXPECT_EQ(DType::Float(32, 16).bytes(), 64u);
}

TEST(dtype, refuses_what_is_no_dtype) {
  for (const char* text :
       {"", "float", "float31", "float8", "int128", "int", "int-8", "int08", "bool8", "bfloat32",
        "float32x", "float32x0", "float32x70000", "float32 ", "complex64", "float32x16x2"}) {
    EXPECT_FALSE(DType::parse(text)) << text;
  }
}

TEST(float16, all_halves_survive_the_round_trip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    float value = float16_to_float(static_cast<uint16_t>(bits));
    uint16_t back = float_to_float16(value);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(float16_to_float(back)));
    } else {
      ASSERT_EQ(back, bits);
    }
    float brain = bfloat16_to_float(static_cast<uint16_t>(bits));
    if (!std::isnan(brain)) {
      ASSERT_EQ(float_to_bfloat16(brain), bits);
    }
  }
}

TEST(float16, rounds_to_nearest_even) {
  EXPECT_EQ(float_to_float16(65519.0f), 0x7BFF);
  EXPECT_EQ(float_to_float16(65520.0f), 0x7C00);
  EXPECT_EQ(float_to_float16(1.0f + 0x1p-11f), 0x3C00);             // a tie, to even
  EXPECT_EQ(float_to_float16(1.0f + 0x1p-11f + 0x1p-20f), 0x3C01);  // above the tie
  EXPECT_EQ(float_to_float16(0x1p-25f), 0);                         // a tie, to zero
  EXPECT_EQ(float_to_float16(0x1.8p-25f), 1);
  EXPECT_EQ(float_to_bfloat16(std::numeric_limits<float>::max()), 0x7F80);
  EXPECT_TRUE(std::isnan(bfloat16_to_float(float_to_bfloat16(std::nanf("")))));
}

TEST(tensor, memory_of_large_ones_is_used_again) {
#if !defined(__SANITIZE_ADDRESS__)
  auto made = [](int64_t n) { return Tensor::empty(DType::Float(32), {n}); };
  constexpr int64_t kMebi = int64_t{1} << 18;  // elements of a MiB
  Tensor a = made(kMebi), b = made(2 * kMebi);
  void *first = a.data(), *second = b.data();
  a = b = nullptr;
  Tensor c = made(2 * kMebi), d = made(kMebi);
  EXPECT_EQ(c.data(), second);
  EXPECT_EQ(d.data(), first);
  // As much as is said, however much is freed.
  std::vector<Tensor> many;
  for (int i = 0; i < 40; ++i) many.push_back(made(4 * kMebi));
  many.clear();
  EXPECT_GT(kept_large_bytes(), kMostLargeBytes / 2);
  EXPECT_LE(kept_large_bytes(), kMostLargeBytes);
  EXPECT_TRUE(drop_large_blocks());
  EXPECT_EQ(kept_large_bytes(), 0u);
  EXPECT_FALSE(drop_large_blocks());
#endif
}

TEST(tensor, memory_of_middle_ones_is_used_again_by_the_thread) {
#if !defined(__SANITIZE_ADDRESS__)
  using detail::MiddleBlocks;
  // Less than a quarter larger, in whole cache lines, and the same for all sizes of a list.
  for (size_t bytes = MiddleBlocks::kBelow + 1; bytes < kSmallestLargeBlock; ++bytes) {
    const size_t block = MiddleBlocks::block_bytes(bytes);
    ASSERT_GE(block, bytes);
    ASSERT_LT(4 * block, 5 * bytes) << bytes;
    ASSERT_EQ(block % 64, 0u);
    ASSERT_EQ(MiddleBlocks::block_bytes(block - 63), block);
  }
  drop_kept_blocks();
  auto made = [](int64_t n) { return Tensor::empty(DType::Float(32), {n}); };
  Tensor large = made(1 << 18), a = made(1000), b = made(10000);
  void *first = a.data(), *second = b.data(), *shared = large.data();
  large = a = b = nullptr;
  std::thread([&] {
    Tensor mine = made(1000);
    EXPECT_NE(mine.data(), first);
    EXPECT_EQ(made(1 << 18).data(), shared);
  }).join();
  // Every byte of a block that was asked for a smaller tensor belongs to it.
  Tensor c = made(10200), d = made(1010);
  EXPECT_EQ(c.data(), second);
  EXPECT_EQ(d.data(), first);
  std::memset(c.data(), 1, c.byte_size());
  c = d = nullptr;
  // As much as is said, however many sizes are freed, and however many of one; larger ones stay.
  std::vector<Tensor> many;
  for (int i = 0; i < 400; ++i) many.push_back(made(100 + 60 * i));
  many.clear();
  EXPECT_GT(kept_bytes() - kept_large_bytes(), MiddleBlocks::kMostBytes / 2);
  EXPECT_LE(kept_bytes() - kept_large_bytes(), MiddleBlocks::kMostBytes);
  for (int i = 0; i < 100; ++i) many.push_back(made(20000));
  many.clear();
  EXPECT_LE(kept_bytes() - kept_large_bytes(), MiddleBlocks::kMostBytes);
  // The others have given way.
  Tensor last = made(20000);
  void* latest = last.data();
  last = nullptr;
  EXPECT_EQ(made(20000).data(), latest);
  EXPECT_EQ(made(1 << 18).data(), shared);
  EXPECT_TRUE(drop_kept_blocks());
  EXPECT_EQ(kept_bytes(), 0u);
  EXPECT_FALSE(drop_kept_blocks());
#endif
}

TEST(tensor, basics) {
  Tensor null;
  EXPECT_FALSE(null);
  Tensor t = Tensor::empty(DType::Float(32), {2, 3});
  EXPECT_EQ(reinterpret_cast<uintptr_t>(t.data()) % 64, 0u);
  EXPECT_EQ(t.num_elements(), 6);
  EXPECT_EQ(t.byte_size(), 24u);
  for (int i = 0; i < 6; ++i) t.set_from_int(i, i);
  Tensor view = t.reshape({3, 2});
  EXPECT_EQ(view.data(), t.data());
  const float* data = t.data<float>();
  t = nullptr;
  EXPECT_EQ(view.get_as_double(5), 5.0);
  EXPECT_EQ(view.data<float>(), data);
  Tensor copy = view.copy();
  EXPECT_TRUE(bit_equal(copy, view));
  EXPECT_EQ(bit_hash(copy), bit_hash(view));
  copy.set_from_double(0, -0.0);
  EXPECT_FALSE(bit_equal(copy, view));
  EXPECT_FALSE(bit_equal(view.reshape({6}), view));
}

TEST(tensor, zero_size_and_rank_0) {
  Tensor none = Tensor::empty(DType::Int(64), {3, 0, 5});
  EXPECT_EQ(none.num_elements(), 0);
  EXPECT_NE(none.data(), nullptr);
  EXPECT_TRUE(bit_equal(none, none.copy()));
  // Zero elements are zero elements, whatever the other dimensions are.
  EXPECT_EQ(Tensor::empty(DType::Int(64), {int64_t{1} << 62, int64_t{1} << 62, 0}).byte_size(), 0u);
  Tensor scalar = Tensor::scalar(2.5, DType::BFloat16());
  EXPECT_EQ(scalar.rank(), 0);
  EXPECT_EQ(scalar.get_as_double(0), 2.5);
  EXPECT_EQ(shape_to_string(scalar.shape()), "()");
  EXPECT_TRUE(Tensor::from_external(nullptr, DType::Bool(), none.shape(), nullptr));
}

TEST(tensor, element_access_converts) {
  EXPECT_EQ(Tensor::scalar(7, DType::Bool()).get_as_int(0), 1);
  EXPECT_EQ(Tensor::scalar(300, DType::UInt(8)).get_as_int(0), 44);
  EXPECT_EQ(Tensor::scalar(300.0, DType::UInt(8)).get_as_int(0), 255);
  EXPECT_EQ(Tensor::scalar(-5.9, DType::Int(8)).get_as_int(0), -5);
  EXPECT_EQ(Tensor::scalar(-1.0, DType::UInt(32)).get_as_int(0), 0);
  EXPECT_EQ(Tensor::scalar(NAN, DType::Int(32)).get_as_int(0), 0);
  EXPECT_EQ(Tensor::scalar(1e30, DType::Int(64)).get_as_int(0), INT64_MAX);
  EXPECT_EQ(Tensor::scalar(-1e30, DType::Float(64)).get_as_int(0), INT64_MIN);
  EXPECT_EQ(Tensor::scalar(INT64_MIN, DType::Int(64)).get_as_int(0), INT64_MIN);
  EXPECT_EQ(Tensor::scalar((int64_t{1} << 53) + 1, DType::Int(64)).get_as_int(0),
            (int64_t{1} << 53) + 1);
  // One rounding, not two: by way of float this would round up.
  EXPECT_EQ(Tensor::scalar(1.0 + 0x1p-11 + 0x1p-40, DType::Float(16)).data<uint16_t>()[0], 0x3C01);
  EXPECT_EQ(Tensor::scalar(1.0 + 0x1p-11 - 0x1p-40, DType::Float(16)).data<uint16_t>()[0], 0x3C00);
}

TEST(tensor, must_fail_E0601_sizes) {
  auto make = [](std::initializer_list<int64_t> shape) {
    return code_of([&] { Tensor::empty(DType::Float(32), shape); });
  };
  EXPECT_EQ(make({-1}), "E0601");
  EXPECT_EQ(make({int64_t{1} << 61}), "E0601");
  EXPECT_EQ(make({int64_t{1} << 32, int64_t{1} << 32}), "E0601");
  EXPECT_EQ(make({INT64_MAX, INT64_MAX, INT64_MAX}), "E0601");
  std::vector<int64_t> deep(1000000, 1);
  EXPECT_EQ(code_of([&] { Tensor::empty(DType::Int(8), deep); }), "E0601");
}

TEST(tensor, must_fail_E0604_out_of_memory) {
  EXPECT_EQ(code_of([] { Tensor::empty(DType::Float(32), {int64_t{1} << 55}); }), "E0604");
}

struct Managed {
  std::vector<int64_t> shape, strides;
  std::vector<float> data;
  int deleted = 0;
  DLManagedTensor legacy{};
  DLManagedTensorVersioned versioned{};

  DLTensor tensor() {
    return {data.data(),
            {kDLCPU, 0},
            static_cast<int32_t>(shape.size()),
            {kDLFloat, 32, 1},
            shape.data(),
            strides.empty() ? nullptr : strides.data(),
            0};
  }
  DLManagedTensor* get() {
    legacy.dl_tensor = tensor();
    legacy.manager_ctx = this;
    legacy.deleter = [](DLManagedTensor* self) {
      ++static_cast<Managed*>(self->manager_ctx)->deleted;
    };
    return &legacy;
  }
  DLManagedTensorVersioned* get_versioned(uint64_t flags) {
    versioned.version = {1, 0};
    versioned.flags = flags;
    versioned.dl_tensor = tensor();
    versioned.manager_ctx = this;
    versioned.deleter = [](DLManagedTensorVersioned* self) {
      ++static_cast<Managed*>(self->manager_ctx)->deleted;
    };
    return &versioned;
  }
};

TEST(dlpack, imports_without_a_copy) {
  Managed m{{2, 3}, {3, 1}, {0, 1, 2, 3, 4, 5}};
  {
    Tensor t = from_dlpack(m.get());
    EXPECT_EQ(t.data(), m.data.data());
    EXPECT_FALSE(t.read_only());
    EXPECT_EQ(m.deleted, 0);
    Tensor view = t.reshape({6});
    t = nullptr;
    EXPECT_EQ(m.deleted, 0);
  }
  EXPECT_EQ(m.deleted, 1);
  {
    Tensor t = from_dlpack(m.get_versioned(DLPACK_FLAG_BITMASK_READ_ONLY));
    EXPECT_TRUE(t.read_only());
    EXPECT_EQ(t.data(), m.data.data());
  }
  EXPECT_EQ(m.deleted, 2);
}

TEST(dlpack, copies_strided_and_negative_strides) {
  Managed transposed{{3, 2}, {1, 3}, {0, 1, 2, 3, 4, 5}};
  Tensor t = from_dlpack(transposed.get());
  EXPECT_EQ(transposed.deleted, 1);
  std::vector<double> got;
  for (int i = 0; i < 6; ++i) got.push_back(t.get_as_double(i));
  EXPECT_EQ(got, (std::vector<double>{0, 3, 1, 4, 2, 5}));

  Managed reversed{{3}, {-1}, {0, 1, 2}};
  reversed.get();
  reversed.legacy.dl_tensor.byte_offset = 8;
  Tensor r = from_dlpack(&reversed.legacy);
  EXPECT_EQ(r.get_as_double(0), 2);
  EXPECT_EQ(r.get_as_double(2), 0);

  Managed broadcast{{2, 2}, {0, 1}, {7, 8}};
  Tensor b = from_dlpack(broadcast.get());
  EXPECT_EQ(b.get_as_double(3), 8);
}

TEST(dlpack, zero_size_and_rank_0) {
  Managed none{{0, 4}, {4, 1}, {}};
  EXPECT_EQ(from_dlpack(none.get()).num_elements(), 0);
  Managed scalar{{}, {}, {3}};
  EXPECT_EQ(from_dlpack(scalar.get()).get_as_double(0), 3);
}

TEST(dlpack, keeps_the_device_of_pinned_memory) {
  Managed m{{2}, {}, {1, 2}};
  m.get()->dl_tensor.device = {kDLCUDAHost, 1};
  Tensor t = from_dlpack(&m.legacy);
  EXPECT_EQ(t.device().to_string(), "cuda_host:1");
  EXPECT_EQ(t.reshape({1, 2}).device(), t.device());
  DLManagedTensor* out = to_dlpack(t);
  EXPECT_EQ(out->dl_tensor.device.device_type, kDLCUDAHost);
  EXPECT_EQ(out->dl_tensor.device.device_id, 1);
  out->deleter(out);
  EXPECT_EQ(t.copy().device(), Device::cpu());
}

TEST(dlpack, must_fail_E0602_and_still_deletes) {
  Managed m{{2}, {}, {1, 2}};
  auto with = [&](auto&& change) {
    m.get();
    change(m.legacy.dl_tensor);
    return code_of([&] { from_dlpack(&m.legacy); });
  };
  EXPECT_EQ(with([](DLTensor& t) { t.device.device_type = kDLCUDA; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.dtype.code = kDLComplex; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.dtype.lanes = 4; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.dtype.bits = 7; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.ndim = -1; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.data = nullptr; }), "E0602");
  EXPECT_EQ(with([](DLTensor& t) { t.shape[0] = -2; }), "E0601");
  EXPECT_EQ(m.deleted, 7);
  m.shape[0] = 2;
  m.get_versioned(0)->version.major = 2;
  EXPECT_EQ(code_of([&] { from_dlpack(&m.versioned); }), "E0602");
  EXPECT_EQ(code_of([] { from_dlpack(static_cast<DLManagedTensor*>(nullptr)); }), "E0602");
}

TEST(dlpack, exports_and_keeps_the_data_alive) {
  Tensor t = Tensor::scalar(4.0, DType::Float(64)).reshape({1, 1});
  DLManagedTensor* out = to_dlpack(t);
  EXPECT_EQ(out->dl_tensor.data, t.data());
  EXPECT_EQ(out->dl_tensor.ndim, 2);
  t = nullptr;
  EXPECT_EQ(*static_cast<double*>(out->dl_tensor.data), 4.0);
  out->deleter(out);

  for (DType dtype : {DType::Bool(), DType::BFloat16(), DType::UInt(16)}) {
    Tensor source = Tensor::scalar(1, dtype);
    Tensor back = from_dlpack(to_dlpack_versioned(source));
    EXPECT_TRUE(bit_equal(source, back));
    EXPECT_EQ(source.data(), back.data());
  }
  // The legacy form cannot say "read-only": it gets a copy.
  float x = 1;
  Tensor constant = Tensor::from_external(&x, DType::Float(32), Shape{}, nullptr, true);
  Tensor copied = from_dlpack(to_dlpack(constant));
  EXPECT_NE(copied.data(), &x);
  Tensor shared = from_dlpack(to_dlpack_versioned(constant));
  EXPECT_TRUE(shared.read_only());
  EXPECT_EQ(shared.data(), &x);
}

TEST(value, scalars_need_no_object) {
  int64_t before = thread_object_bytes();
  for (DType dtype : kImmediateDtypes) {
    EXPECT_TRUE(is_immediate_dtype(dtype));
    const int64_t one = dtype == DType::Float(64) ? std::bit_cast<int64_t>(1.0) : 1;
    for (int64_t bits : {int64_t{0}, one}) {
      Value value = Value::adopt(make_immediate(bits, dtype));
      Value pair = Value::tuple({value, value});
      EXPECT_EQ(pair.field(1).object(), value.object());
      ASSERT_TRUE(value.is_tensor());
      EXPECT_EQ(value.kind(), ObjectKind::tensor);
      EXPECT_FALSE(value.is_tuple());
      Tensor tensor = value.tensor();
      EXPECT_EQ(tensor.dtype(), dtype);
      EXPECT_EQ(tensor.rank(), 0);
      EXPECT_TRUE(bit_equal(tensor, box_scalar(bits, dtype)));
      EXPECT_EQ(immediate_bits(value.object()), bits);
    }
  }
  EXPECT_EQ(thread_object_bytes(), before);
  EXPECT_FALSE(is_immediate_dtype(DType::Int(8)));
  EXPECT_FALSE(is_immediate_dtype(DType::Float(16)));

  constexpr int64_t kEnd = int64_t{1} << 59;
  for (int64_t n : {kEnd - 1, -kEnd}) {
    EXPECT_TRUE(fits_immediate(n, DType::Int(64)));
    EXPECT_EQ(Value::adopt(make_immediate(n, DType::Int(64))).tensor().get_as_int(0), n);
  }
  for (int64_t n : {kEnd, -kEnd - 1, INT64_MAX, INT64_MIN}) {
    EXPECT_FALSE(fits_immediate(n, DType::Int(64)));
  }
  int64_t bits = std::bit_cast<int32_t>(-1.5f);
  EXPECT_EQ(Value::adopt(make_immediate(bits, DType::Float(32))).tensor().get_as_double(0), -1.5);
}

// True for a double that needs no object, which then has all its bits.
bool keeps_double(uint64_t bits) {
  const auto element = static_cast<int64_t>(bits);
  if (!fits_immediate(element, DType::Float(64))) return false;
  const Object* word = make_immediate(element, DType::Float(64));
  EXPECT_TRUE(is_immediate(word)) << std::hex << bits;
  EXPECT_EQ(immediate_bits(word), element) << std::hex << bits;
  EXPECT_EQ(immediate_dtype(word), DType::Float(64)) << std::hex << bits;
  return true;
}

TEST(value, doubles_keep_all_their_bits) {
  const double inf = INFINITY;
  for (double x : {0.0, -0.0, 1.0, -1.0, 0.1, -1e100, 1e154, -1e-153, 0x1p-511,
                   0x1.fffffffffffffp512, inf, -inf, std::nan(""), 0x1p-1000, -0x1p1000}) {
    EXPECT_TRUE(keeps_double(std::bit_cast<uint64_t>(x))) << x;
  }
  // The rest is a tensor: what is very large or small, denormal, or NaN with a payload.
  for (double x : {1.1e155, -1.3e-160, 5e-324, std::bit_cast<double>(0x7ff8000000000001)}) {
    EXPECT_FALSE(keeps_double(std::bit_cast<uint64_t>(x))) << x;
  }
  // Every exponent and sign, with few and with many bits behind; then anything.
  for (uint64_t high = 0; high < 4096; ++high) {
    const uint64_t exponent = high & 2047;
    for (uint64_t low : {uint64_t{0}, uint64_t{1}, uint64_t{16}, (uint64_t{1} << 52) - 1}) {
      const bool common = exponent >= 512 && exponent < 1536;
      EXPECT_EQ(keeps_double(high << 52 | low), common || (low & 15) == 0);
    }
  }
  uint64_t state = 1;
  for (int i = 0; i < 1'000'000; ++i) {
    state = state * 6364136223846793005 + 1442695040888963407;
    keeps_double(state ^ state >> 29);
  }
}

TEST(value, million_cells_are_freed_without_recursion_deep) {
  int64_t before = thread_object_bytes();
  {
    Value list = Value::adt(0, {});
    for (int i = 0; i < 1000000; ++i) list = Value::adt(1, {Value(), std::move(list)});
    EXPECT_EQ(list.tag(), 1);
    EXPECT_EQ(list.num_fields(), 2u);
    // A shared tail survives its list.
    Value tail = list.field(1).field(1);
    list = Value();
    EXPECT_EQ(tail.tag(), 1);
  }
  EXPECT_EQ(thread_object_bytes(), before);
}

TEST(value, trees_and_shared_parts_are_freed_once) {
  int64_t before = thread_object_bytes();
  {
    Value leaf = Tensor::scalar(1, DType::Int(32));
    Value node = leaf;
    for (int i = 0; i < 100; ++i) node = Value::tuple({node, node, leaf, Value::ref(node)});
    EXPECT_EQ(node.num_fields(), 4u);
  }
  EXPECT_EQ(thread_object_bytes(), before);
}

TEST(value, cross_threads) {
  Value list = Value::adt(0, {});
  for (int i = 0; i < 10000; ++i) {
    list = Value::adt(1, {Value(Tensor::scalar(i, DType::Int(64))), std::move(list)});
  }
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([copy = list]() mutable {
      int64_t n = 0;
      while (copy.tag() == 1) {
        copy = copy.field(1);
        ++n;
      }
      EXPECT_EQ(n, 10000);
    });
  }
  list = Value();
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace relay::runtime
