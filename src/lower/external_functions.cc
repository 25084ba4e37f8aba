#include "lower/external_functions.h"

#include <utility>

#include "ir/external.h"
#include "lower/kernel_sources.h"

namespace relay {
namespace {

const std::string* text_of(const FunctionNode& f, const char* key) {
  auto found = f.attrs.find(key);
  return found == f.attrs.end() ? nullptr : found->second.get_if<std::string>();
}

class ExternalFunctions : public KernelSource {
 public:
  std::string_view name() const override { return "external code generator"; }
  std::optional<OfferedKernel> offer(const FunctionNode& f, const Target&) const override {
    auto* function = text_of(f, attr::kExternalFunction);
    if (function == nullptr) return std::nullopt;
    auto sizes = dimensions_of_operands(f);
    RELAY_CHECK(sizes, "a kernel of an external code generator has a size without a name");
    auto* library = text_of(f, attr::kExternalLibrary);
    OfferedKernel out{library == nullptr ? KernelBody(HostFunction{*function})
                                         : KernelBody(ExternalCall{*library, *function})};
    out.sizes = std::move(*sizes);
    auto* compiler = compiler_of(f);
    out.how = (compiler == nullptr ? std::string() : *compiler + ", ") + *function;
    return out;
  }
};

}  // namespace

std::shared_ptr<const KernelSource> external_functions() {
  static const auto source = std::make_shared<const ExternalFunctions>();
  return source;
}

}  // namespace relay
