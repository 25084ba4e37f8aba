#include "runtime/core/kernel_errors.h"

#include "base/codes/runtime.h"
#include "runtime/core/kernel_abi.h"

namespace relay::runtime {

namespace {

struct KernelError {
  const char* text;
  const DiagnosticCode& code = codes::run_kernel_failed;
  const char* help = "";
};

constexpr const char* kConvert = "convert the image to PNG or JPEG first";

const KernelError& row(int64_t error) {
  static const KernelError rows[RELAY_KERNEL_ERROR_COUNT] = {
      {"no error"},
      {"an index lies outside the tensor", codes::run_kernel_failed,
       "check the indices in the input data"},
      {"an integer is divided by zero"},
      {"there is not enough memory", codes::run_out_of_memory},
      {"a condition on the data does not hold"},
      {"sizes do not fit together, or one is negative"},
      {"a string is not a number or not a pattern"},
      {"it needs librelay_text.so, which is not beside the runtime", codes::run_library},
      {"it needs librelay_image.so, which is not beside the runtime", codes::run_library},
      {"an image is damaged, or no PNG, JPEG, BMP or PNM", codes::run_image},
      {"an image has more than 134217728 pixels", codes::run_image},
      {"an image is WebP, which is not decoded", codes::run_image, kConvert},
      {"an image is TIFF, which is not decoded", codes::run_image, kConvert},
      {"an image is JPEG 2000, which is not decoded", codes::run_image, kConvert},
      {"sizes need indices of more bits than the target has", codes::tensor_size,
       "compile for a target with 64-bit indices"},
  };
  static const KernelError unknown{"it reported an unknown error"};
  return error >= 0 && error < RELAY_KERNEL_ERROR_COUNT ? rows[error] : unknown;
}

}  // namespace

const char* kernel_error_text(int64_t error) { return row(error).text; }
const DiagnosticCode& kernel_error_code(int64_t error) { return row(error).code; }
const char* kernel_error_help(int64_t error) { return row(error).help; }

}  // namespace relay::runtime
