// A text that a kernel writes while it runs: printed, or the message of the error that ends the run.
#pragma once

#include <algorithm>
#include <string_view>
#include <vector>

#include "ops/loops.h"
#include "ops/text_words.h"
#include "runtime/core/print.h"

namespace relay::ops {

// The text of a kernel while it grows. Each step reads what the one before it gave.
class Text {
 public:
  // `dtype` is Relay's: kernels see words in the place of strings.
  tir::Stmt element(const PrimExpr& x, runtime::DType dtype, bool quoted) const {
    if (dtype.is_string()) return step("print_text", {x, text_word(quoted ? 1 : 0)});
    return step("print_number", {number_word(x), text_number_of(x->dtype)});
  }
  // Letters of ASCII.
  tir::Stmt mark(std::string_view letters) const {
    constexpr size_t kLetters = 8;
    std::vector<tir::Stmt> steps;
    for (size_t at = 0; at < letters.size(); at += kLetters) {
      uint64_t packed = 0;
      for (size_t k = std::min(letters.size(), at + kLetters); k-- > at;) {
        packed = packed << 8 | static_cast<unsigned char>(letters[k]);
      }
      steps.push_back(step("print_mark", {text_word(static_cast<int64_t>(packed))}));
    }
    return tir::seq(std::move(steps));
  }
  tir::Stmt end(runtime::PrintEnd as) const {
    return step("print_end", {text_word(static_cast<int64_t>(as))});
  }
  PrimExpr steps() const { return steps_.get(); }
  tir::Stmt in(tir::Stmt body) const {
    return steps_.in(tir::seq({steps_.set(text_word(0)), std::move(body)}));
  }

 private:
  tir::Stmt step(const char* name, std::vector<PrimExpr> args) const {
    args.push_back(steps_.get());
    return steps_.set(tir::call(name, runtime::DType::Int(64), std::move(args)));
  }

  Cell steps_{"printed", runtime::DType::Int(64)};
};

}  // namespace relay::ops
