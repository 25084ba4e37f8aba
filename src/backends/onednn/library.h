// oneDNN's C interface, version 3, as far as regions use it, by its own numbers, and owners of its objects. The library is
// opened when the first program that needs it is loaded.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "backends/onednn/description.h"

namespace relay::onednn {

struct Engine;
struct Stream;
struct Layout;  // dnnl_memory_desc
struct Memory;
struct Attributes;
struct PostOps;
struct PrimitiveDesc;
struct Primitive;
struct Argument {
  int number;
  Memory* memory;
};
struct Version {
  int major, minor, patch;
};

using Dims = std::array<int64_t, kMaxRank>;

enum Status { kSuccess = 0, kOutOfMemory = 1 };
inline constexpr int kCpu = 1, kInOrder = 1, kForwardInference = 96, kAnyLayout = 1;
inline constexpr int kConvolutionAuto = 3, kUserScratchpad = 1;
inline constexpr int kSource = 1, kSource1 = 2, kResult = 17, kWeights = 33, kBias = 41,
                     kScratchpad = 80;
// Of an argument: its scales and zero points.
inline constexpr int kScales = 4096, kZeroPoints = 8192;
inline constexpr int kQuerySource = 129, kQueryWeights = 131, kQueryResult = 133,
                     kQueryScratchpad = 136;

struct Api {
  const Version* (*version)();
  int (*engine_create)(Engine**, int kind, size_t index);
  int (*stream_create)(Stream**, Engine*, unsigned flags);
  int (*stream_wait)(Stream*);
  int (*stream_destroy)(Stream*);
  int (*layout_with_tag)(Layout**, int rank, const int64_t* dims, int dtype, int tag);
  int (*layout_with_strides)(Layout**, int rank, const int64_t* dims, int dtype,
                             const int64_t* strides);
  int (*layout_clone)(Layout**, const Layout*);
  int (*layout_equal)(const Layout*, const Layout*);
  int (*layout_destroy)(Layout*);
  size_t (*layout_size)(const Layout*);
  int (*memory_create)(Memory**, const Layout*, Engine*, void* address);
  int (*memory_set_address)(Memory*, void* address);
  int (*memory_destroy)(Memory*);
  int (*attributes_create)(Attributes**);
  int (*attributes_set_scratchpad)(Attributes*, int mode);
  int (*attributes_set_post_ops)(Attributes*, const PostOps*);
  int (*attributes_set_scales)(Attributes*, int argument, int mask);
  int (*attributes_set_zero_points)(Attributes*, int argument, int mask);
  int (*attributes_destroy)(Attributes*);
  int (*post_ops_create)(PostOps**);
  int (*post_ops_sum)(PostOps*, float scale, int32_t zero_point, int dtype);
  int (*post_ops_eltwise)(PostOps*, int algorithm, float alpha, float beta);
  int (*post_ops_destroy)(PostOps*);
  int (*convolution)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                     const Layout* weights, const Layout* bias, const Layout* result,
                     const int64_t* strides, const int64_t* dilations, const int64_t* before,
                     const int64_t* after, const Attributes*);
  int (*matmul)(PrimitiveDesc**, Engine*, const Layout* source, const Layout* weights,
                const Layout* bias, const Layout* result, const Attributes*);
  int (*pooling)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                 const Layout* result, const int64_t* strides, const int64_t* window,
                 const int64_t* dilations, const int64_t* before, const int64_t* after,
                 const Attributes*);
  int (*eltwise)(PrimitiveDesc**, Engine*, int propagation, int algorithm, const Layout* source,
                 const Layout* result, float alpha, float beta, const Attributes*);
  int (*binary)(PrimitiveDesc**, Engine*, int algorithm, const Layout* source,
                const Layout* source1, const Layout* result, const Attributes*);
  int (*reorder)(PrimitiveDesc**, const Layout* from, Engine*, const Layout* to, Engine*,
                 const Attributes*);
  const Layout* (*query_layout)(const PrimitiveDesc*, int what, int index);
  int (*desc_destroy)(PrimitiveDesc*);
  int (*primitive_create)(Primitive**, const PrimitiveDesc*);
  int (*primitive_execute)(const Primitive*, Stream*, int count, const Argument*);
  int (*primitive_destroy)(Primitive*);
  int (*omp_max_threads)();
  void (*omp_set_threads)(int);
};

struct Opened {
  Api api = {};
  std::string fault;  // why there is none; empty: there is
};
// Opens libdnnl.so.3 at the first call.
const Opened& onednn();
inline const Api& api() { return onednn().api; }

// A function of oneDNN did not return success.
struct Failure : std::runtime_error {
  Failure(const char* step, int status)
      : std::runtime_error(std::string(step) + " gave status " + std::to_string(status)),
        status(status) {}
  int status;
};
void check(int status, const char* step);

// An object of oneDNN with the function that destroys it.
template <typename T, auto Destroy>
struct Destroyer {
  void operator()(T* object) const { (api().*Destroy)(object); }
};
template <typename T, auto Destroy>
using Owned = std::unique_ptr<T, Destroyer<T, Destroy>>;
using OwnedLayout = Owned<Layout, &Api::layout_destroy>;
using OwnedMemory = Owned<Memory, &Api::memory_destroy>;
using OwnedStream = Owned<Stream, &Api::stream_destroy>;
using OwnedDesc = Owned<PrimitiveDesc, &Api::desc_destroy>;
using OwnedPrimitive = Owned<Primitive, &Api::primitive_destroy>;
using OwnedAttributes = Owned<Attributes, &Api::attributes_destroy>;
using OwnedPostOps = Owned<PostOps, &Api::post_ops_destroy>;

// The processor, for the life of the process.
Engine* engine();

OwnedLayout layout_of(std::span<const int64_t> dims, ElementType type,
                      std::span<const int64_t> strides);
// std::runtime_error for more than kMaxRank dimensions.
OwnedLayout row_major(std::span<const int64_t> dims, ElementType type);
// The layout that a primitive chooses.
OwnedLayout any_layout(std::span<const int64_t> dims, ElementType type);
OwnedLayout copy_of(const Layout* layout);

}  // namespace relay::onednn
