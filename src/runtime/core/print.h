// What programs print, and what their assertions say: the operators debug.print and debug.check.
//
// A kernel adds a text piece by piece, on the thread that runs it, and ends it: the whole then goes to
// standard output in one go, or becomes the message of the error that ends the run. Each function
// takes what the one before returned as its last argument, so that no compiler leaves one out, joins
// two or changes their order. The first takes 0, which begins a text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "runtime/core/dtype.h"
#include "runtime/core/kernel_abi.h"
#include "runtime/core/string_functions.h"

namespace relay::runtime {

// What becomes of a text at its end: it is printed, or says which assertion or which index ends the run.
enum class PrintEnd : int64_t { Output, OutputLine, Failure, IndexFailure };

// (a string, whether in quotes, so far)
int64_t print_text(const relay_kernel_context* ctx, const int64_t* args);
// (a number's word, its TextNumber, so far): as Python writes it, with the fewest digits that give a
// float back.
int64_t print_number(const relay_kernel_context* ctx, const int64_t* args);
// (up to eight letters of ASCII, from the lowest byte on, so far)
int64_t print_mark(const relay_kernel_context* ctx, const int64_t* args);
// (a PrintEnd, so far). Failures end the kernel with RELAY_KERNEL_CHECK_FAILED and
// RELAY_KERNEL_INDEX_OUT_OF_BOUNDS.
int64_t print_end(const relay_kernel_context* ctx, const int64_t* args);

// (an index, the size of an axis, so far): the place in the axis that the index names, from the end where
// it is negative. Where there is none the kernel ends with RELAY_KERNEL_INDEX_OUT_OF_BOUNDS; what is so
// far in the text says where in the source the index is.
int64_t index_in(const relay_kernel_context* ctx, const int64_t* args);
// "index 7 is out of bounds for an axis of size 5 (model.py:12)"; the place may be empty.
std::string index_failure(int64_t index, int64_t size, const std::string& place);

// The kind of a dtype's numbers; nothing for what is none.
std::optional<TextNumber> text_number(DType dtype);
// A number as print_number writes it; the word is an integer, or the bits of a double.
std::string number_text(int64_t word, TextNumber kind);

// The text of the failure that ended this thread's kernel, which is then forgotten.
std::optional<std::string> take_failure();

// Takes each text instead of standard output, for the whole process; null: standard output again. It
// throws nothing, and may be called on any thread.
using PrintFunction = void (*)(const char* text, size_t size);
void set_print_function(PrintFunction print);

// The same until the end of a scope.
class PrintScope {
 public:
  explicit PrintScope(PrintFunction print);
  ~PrintScope() { set_print_function(before_); }
  PrintScope(const PrintScope&) = delete;
  PrintScope& operator=(const PrintScope&) = delete;

 private:
  PrintFunction before_;
};

}  // namespace relay::runtime
