// Fuzzes the artifact loader, the bytecode verifier and the interpreter. Expected: a UserError or a
// RuntimeError, or a program that runs within its limits; kernels only get buffers that are as
// large as the program's kernel table says.
//
// An input is read twice: as it is, and with its magic, sizes and checksums put right, so that
// changes reach what lies behind them. Programs run on stand-ins for their kernels.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <utility>

#include "base/diagnostic.h"
#include "runtime/artifact.h"
#include "runtime/checksum.h"
#include "runtime/module.h"
#include "runtime/test/fuzz/artifact_seeds.h"

using namespace relay;
using namespace relay::runtime;
using namespace relay::runtime::artifact_format;

namespace {

std::string with_checksums(std::string bytes) {
  if (bytes.size() < sizeof(Footer)) return bytes;
  Footer last;
  std::memcpy(&last, bytes.data() + bytes.size() - sizeof(last), sizeof(last));
  // As many versions as it says, where there may be so many.
  const size_t said = last.footer_bytes / sizeof(Footer);
  const bool fits = said >= 1 && said <= kMostVersions && said * sizeof(Footer) <= bytes.size();
  const size_t footers = (fits ? said : 1) * sizeof(Footer);
  const size_t end = bytes.size() - footers;
  for (size_t at = end; at < bytes.size(); at += sizeof(Footer)) {
    Footer footer;
    std::memcpy(&footer, bytes.data() + at, sizeof(footer));
    footer.version = kArtifactVersion;
    footer.footer_bytes = static_cast<uint32_t>(footers);
    footer.file_size = bytes.size();
    std::memcpy(footer.magic, kMagic, sizeof(footer.magic));
    for (Section& section : footer.sections) {
      if (section.offset > end || section.size > end - section.offset) continue;
      section.checksum = checksum({bytes.data() + section.offset, section.size});
    }
    footer.checksum =
        checksum({reinterpret_cast<const char*>(&footer), offsetof(Footer, checksum)});
    std::memcpy(bytes.data() + at, &footer, sizeof(footer));
  }
  return bytes;
}

// A kernel has no state of its own: the stand-in of kernel I finds its sizes in this table.
constexpr size_t kMaxKernels = 8;
const std::vector<KernelInfo>* kernel_table = nullptr;

// Reads every input and writes every output, over the whole of what the table promises.
template <size_t I>
void stand_in(void* const* buffers, const int64_t* dims, const relay_kernel_context*) {
  const KernelInfo& info = (*kernel_table)[I];
  volatile unsigned char sum = 0;
  for (uint32_t i = 0; i < info.num_dims; ++i) sum = sum + static_cast<unsigned char>(dims[i]);
  const size_t inputs = info.buffer_bytes.size() - info.num_outputs;
  for (size_t i = 0; i < info.buffer_bytes.size(); ++i) {
    if (info.buffer_bytes[i] <= 0) continue;
    const auto bytes = static_cast<size_t>(info.buffer_bytes[i]);
    auto* buffer = static_cast<unsigned char*>(buffers[i]);
    if (i >= inputs) {
      std::memset(buffer, 1, bytes);
    } else {
      for (size_t at = 0; at < bytes; ++at) sum = sum + buffer[at];
    }
  }
}

template <size_t... I>
constexpr std::array<relay_kernel, sizeof...(I)> make_stand_ins(std::index_sequence<I...>) {
  return {stand_in<I>...};
}
constexpr auto kStandIns = make_stand_ins(std::make_index_sequence<kMaxKernels>());

constexpr int64_t kMaxBytes = int64_t{1} << 20;

// Zeros for a parameter, open dimensions as 3; the unit value for what is not a small tensor.
Value argument(const Slot& slot) {
  if (!slot.is_tensor) return Value(Tensor::scalar(1, DType::Int(32)));
  TensorSpec spec = slot.tensor;
  for (int64_t& dim : spec.shape) {
    if (dim < 0) dim = 3;
  }
  if (spec.byte_size() > kMaxBytes) return Value(Tensor::scalar(1, DType::Int(32)));
  return Value(Tensor::zeros(spec.dtype, spec.shape));
}

void run_all(Program program) {
  if (program.kernels.size() > kMaxKernels) return;
  for (const Function& f : program.functions) {
    if (f.arena_bytes > kMaxBytes || f.num_registers > 10'000 || f.num_int_registers > 10'000)
      return;
  }
  std::vector<relay_kernel> kernels(kStandIns.begin(),
                                    kStandIns.begin() + program.num_generated_kernels());
  LoadOptions options;
  options.num_threads = 1;
  Module module = Module::from_kernels(std::move(program), std::move(kernels), "{}", {}, options);
  kernel_table = &module.program().kernels;
  RunOptions limits;
  limits.fuel = 2000;
  limits.memory_limit = 16 * kMaxBytes;
  for (const std::string& name : module.function_names()) {
    try {
      std::vector<Value> arguments;
      for (const Slot& slot : module.function(name).params) arguments.push_back(argument(slot));
      module.run_values(name, arguments, limits);
    } catch (const UserError&) {
    } catch (const RuntimeError&) {
    }
  }
}

// The bytes as a file in memory; the descriptor is closed at the end.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : fd(memfd_create("artifact", MFD_CLOEXEC)) {
    RELAY_CHECK(fd >= 0 && write(fd, bytes.data(), bytes.size()) == ssize_t(bytes.size()));
  }
  ~MemoryFile() { close(fd); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  const int fd;
};

void load(std::string_view bytes) {
  MemoryFile file(bytes);
  try {
    for (Artifact& artifact : Artifact::read_versions(file.fd, "fuzz.so")) {
      artifact.load_constants(/*verify=*/true);
      (void)to_string(artifact.program);
      run_all(std::move(artifact.program));
    }
  } catch (const UserError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string bytes(reinterpret_cast<const char*>(data), size);
  load(bytes);
  load(with_checksums(std::move(bytes)));
  return 0;
}

// libFuzzer's own mutations; null in the test that replays inputs.
extern "C" __attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t* data, size_t size,
                                                         size_t max_size);

// Called by libFuzzer. What is too short to be an artifact becomes one of the seeds.
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                          unsigned int random) {
  if (size >= sizeof(Footer)) return LLVMFuzzerMutate(data, size, max_size);
  static const std::vector<std::string> seeds = relay::runtime::test::artifact_seeds();
  const std::string& seed = seeds[random % seeds.size()];
  if (seed.size() > max_size) return size;
  std::memcpy(data, seed.data(), seed.size());
  return seed.size();
}
