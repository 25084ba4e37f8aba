// Strings as elements of tensors.
//
// An element is a word: the address of the string's size (uint32_t) and its bytes behind it, which
// are UTF-8; 0 is the empty string. Kernels move words and never look behind them.
//
//   Tensor t = make_strings({2}, {"one", "zwei"});
//   string_at(t, 1);                    // "zwei"
//
// A tensor owns the bytes of its strings exactly when it is read-only: words and bytes are one block
// then. All tensors outside of a run do. Within a run, tensors that kernels write refer to the bytes
// of arguments, constants and of what the run has made; `own_strings` ends that.
//
// In files a tensor of strings is its offsets and bytes: for each string an int64_t, where it ends,
// and behind these the bytes of all.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "runtime/core/string_functions.h"
#include "runtime/core/tensor.h"
#include "runtime/core/value.h"

namespace relay::runtime {

inline constexpr size_t kMaxStringBytes = 0xFFFFFFFF;

// Valid as long as the owner of the strings.
std::string_view string_at(const Tensor& t, int64_t i);

// Whether the bytes are UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool is_utf8(std::string_view bytes);

// A tensor that owns the strings, in row-major order, as many as the shape has. UserError E0601 for
// one of 4 GiB and more, and for bytes that are not UTF-8.
Tensor make_strings(Shape shape, std::span<const std::string_view> strings);
Tensor make_strings(std::initializer_list<int64_t> shape,
                    std::initializer_list<std::string_view> strings);

// The same of strings of `length` code points each, without the zeros at their ends; nullopt where there are others than those
// of Unicode.
std::optional<Tensor> make_strings(Shape shape, const uint32_t* code_points, size_t length);

// Makes the tensor own its strings, if it does not yet. Equal words of long strings keep sharing their bytes.
void own_strings(const Tensor& t);
// The same for all tensors of strings that can be reached from a value.
void own_strings(const Value& value);

// The form in files. `unpack_strings` takes what it needs from the front of `bytes`; nothing when
// they are not of this form.
std::string pack_strings(const Tensor& t);
std::optional<Tensor> unpack_strings(Shape shape, std::string_view& bytes);

}  // namespace relay::runtime
