#include "frontend/given_weights.h"

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "base/suggest.h"
#include "frontend/common/model_value.h"
#include "frontend/common/tensor_bytes.h"
#include "ir/op.h"

namespace relay::frontend {
namespace {

// "'a', 'b' and 3 more".
std::string listed(const std::vector<std::string>& names) {
  constexpr size_t kShown = 5;
  std::string out;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    out += (i == 0 ? "'" : ", '") + shorten(names[i]) + "'";
  if (names.size() > kShown) out += " and " + std::to_string(names.size() - kShown) + " more";
  return out;
}

}  // namespace

Tensor GivenWeights::take(const std::string& name, DType dtype, const std::vector<int64_t>& shape) {
  if (!file_) return {};
  known_.insert(name);
  auto it = file_->tensors.find(name);
  if (it == file_->tensors.end()) return {};
  const Tensor& value = it->second;
  if (value.dtype() != dtype || !std::ranges::equal(value.shape(), shape)) {
    throw UserError(
        Diagnostic(codes::frontend_tensor,
                   Span::place(SourceFile::make(file_->name), "weight " + shorten(name)),
                   "weight '" + shorten(name) + "' does not have the type of the model")
            .expected(runtime::type_string(dtype, shape))
            .found(runtime::type_string(value.dtype(), value.shape()))
            .help("give the weights of this model, in its element types"));
  }
  return value;
}

void GivenWeights::miss(const std::string& name) {
  if (file_) missing_.push_back(name);
}

void GivenWeights::finish() const {
  if (!file_) return;
  const Span span = Span::place(SourceFile::make(file_->name), "file");
  std::vector<Diagnostic> found;
  std::vector<std::string> extra;
  for (const auto& [name, value] : file_->tensors)
    if (!known_.contains(name)) extra.push_back(name);
  if (!missing_.empty()) {
    Diagnostic d(codes::frontend_tensor, span,
                 "the file has no value for the model's " + listed(missing_));
    // A state that is part of a larger dictionary has the name of that part before its own.
    auto longer = std::ranges::find_if(
        extra, [&](const std::string& name) { return name.ends_with("." + missing_[0]); });
    if (longer != extra.end()) {
      d.help("the file calls it '" + shorten(*longer) +
             "': save the weights alone, by the "
             "model's names");
    } else {
      d.help("every parameter and buffer of the model needs a value");
    }
    found.push_back(std::move(d));
  }
  if (!extra.empty()) {
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    found.push_back(
        Diagnostic(codes::frontend_input, span, "the model has no weight " + listed(extra))
            .help(suggest(extra[0], names)));
  }
  if (!found.empty()) throw UserError(std::move(found));
}

}  // namespace relay::frontend
