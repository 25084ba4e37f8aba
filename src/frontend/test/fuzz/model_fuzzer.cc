// Fuzzes the readers of ONNX and TFLite models. Expected: a well-formed program or a UserError, within the importer's
// bounds on time and memory.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/diagnostic.h"
#include "frontend/frontend.h"
#include "ops/register_ops.h"
#include "types/verify.h"

using namespace relay;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  register_ops();
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  // ONNX models have no mark.
  const bool is_tflite = size > 8 && bytes.substr(4, 4) == "TFL3";
  const FrontEnd& front_end = front_end_named(is_tflite ? "tflite" : "onnx");
  ImportOptions options;
  options.max_nodes = 10'000;
  options.max_constant_bytes = int64_t{16} << 20;
  options.max_unrolled_steps = 64;
  options.max_seconds = 5;
  for (bool freeze : {true, false}) {
    options.freeze_params = freeze;
    try {
      ImportedModel model = import_model(front_end, {"fuzz", bytes}, options);
      std::optional<Diagnostic> violation = find_ill_formed(model.module);
      RELAY_CHECK(!violation.has_value(), violation->render());
    } catch (const UserError&) {
    }
  }
  return 0;
}
