// Linking with LLD as a library.
#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

#include "base/diagnostic_codes.h"
#include "codegen/llvm/codegen.h"

LLD_HAS_DRIVER(elf)

namespace relay {
namespace codegen {
void leave_out_other_targets();
std::string descriptor_object(const std::vector<tir::PrimFunc>& kernels, const Target& target);
}  // namespace codegen

namespace {

// A folder that goes away with its contents.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "relay-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) {
      throw UserError(Diagnostic(codes::codegen_failed, {}, "no temporary folder can be made")
                          .help("set TMPDIR to a folder that can be written"));
    }
    path_ = pattern;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_file(const std::string& path, const std::string& bytes) {
  std::ofstream out(path, std::ios::binary);
  out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out.flush();
  if (!out)
    throw UserError(Diagnostic(codes::codegen_failed, {}, "a temporary file cannot be written"));
}

}  // namespace

std::string link_shared(const std::vector<ObjectCode>& objects,
                        const std::vector<tir::PrimFunc>& kernels, const Target& target) {
  codegen::leave_out_other_targets();
  TemporaryFolder folder;
  std::vector<std::string> args{"ld.lld",
                                "-shared",
                                "--build-id=none",
                                "--gc-sections",
                                "--as-needed",
                                "-Bsymbolic",
                                "--hash-style=sysv",
                                "-z",
                                "noexecstack",
                                "--threads=1",
                                "-o",
                                folder.file("out.so")};
  std::string descriptor = folder.file("descriptor.o");
  write_file(descriptor, codegen::descriptor_object(kernels, target));
  args.push_back(descriptor);
  for (size_t i = 0; i < objects.size(); ++i) {
    args.push_back(folder.file("k" + std::to_string(i) + ".o"));
    write_file(args.back(), objects[i]);
  }
  // Named, so that the file finds the mathematics library by itself wherever it is loaded.
  for (const char* libm : {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"}) {
    if (std::filesystem::exists(libm)) {
      args.emplace_back(libm);
      break;
    }
  }
  std::vector<const char*> argv;
  for (const std::string& a : args) argv.push_back(a.c_str());
  std::string output;
  {
    // The linker keeps its state in globals.
    static std::mutex mutex;
    std::lock_guard<std::mutex> lock(mutex);
    llvm::raw_string_ostream stream(output);
    lld::Result result = lld::lldMain(argv, stream, stream, {{lld::Gnu, &lld::elf::link}});
    if (result.retCode != 0) {
      throw UserError(Diagnostic(codes::codegen_failed, {}, "linking failed: " + output));
    }
  }
  std::ifstream in(folder.file("out.so"), std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

}  // namespace relay
