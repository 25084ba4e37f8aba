#include "frontend/arrays/npz.h"

#include <memory>
#include <sstream>

#include "base/codes/driver.h"
#include "frontend/common/archive.h"
#include "frontend/common/archive_writer.h"
#include "frontend/common/import_options.h"
#include "frontend/common/mapped_file.h"
#include "run/npy.h"

namespace relay {
namespace {

using runtime::Tensor;

[[noreturn]] void bad(const std::string& path, const std::string& why) {
  throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"), why)
                      .expected("an archive as numpy.savez writes it"));
}

}  // namespace

std::map<std::string, Tensor> read_npz(const std::string& path) {
  // Errors of the archive are reported as errors of a file of the command line.
  auto checked = [&](const auto& read) {
    try {
      return read();
    } catch (const UserError& e) {
      bad(path, e.diagnostics()[0].message);
    } catch (const std::bad_alloc&) {
      bad(path, "its arrays do not fit into memory");
    }
  };
  const auto file =
      checked([&] { return frontend::MappedFile::open(path, ImportOptions().max_file_bytes); });
  // Entries are named like tensors, which models may call "/encoder/Add_output_0".
  auto archive = checked([&] {
    return std::make_unique<frontend::Archive>(file->bytes(), SourceFile::make(path),
                                               frontend::Archive::Limits{.names_are_paths = false});
  });
  std::map<std::string, Tensor> out;
  for (const frontend::Archive::Entry& entry : archive->entries()) {
    std::istringstream content(checked([&] { return archive->read(entry); }));
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    if (!out.try_emplace(name, read_array(content, path)).second)
      bad(path, "two arrays have the name '" + escape_for_terminal(name, 100) + "'");
  }
  file->check_unchanged();
  return out;
}

void write_npz(runtime::TemporaryFile& file, const std::map<std::string, Tensor>& arrays) {
  frontend::ArchiveWriter out([&](const void* data, size_t size) { file.write(data, size); });
  for (const auto& [name, tensor] : arrays) {
    const NpyFile npy = npy_file(tensor);
    out.add(name + ".npy", {npy.head, npy.elements});
  }
  out.finish();
}

}  // namespace relay
