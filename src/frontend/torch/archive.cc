#include "frontend/torch/archive.h"

#include <algorithm>
#include <charconv>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/torch/complex.h"
#include "frontend/torch/node_context.h"
#include "frontend/torch/storage.h"

namespace relay::frontend::torch {
namespace {

constexpr int64_t kVersion = 0;  // of archives

// The files of an archive are in one folder, whose name says nothing.
class Reader {
 public:
  Reader(std::string_view bytes, const std::string& path, std::shared_ptr<const MappedFile> mapped,
         int64_t max_bytes)
      : file_(SourceFile::make(path)),
        mapped_(std::move(mapped)),
        archive_(bytes, file_, limits(max_bytes)) {
    const auto& entries = archive_.entries();
    if (!entries.empty()) root_ = entries[0].name.substr(0, entries[0].name.find('/') + 1);
    check_format();
  }

  ExportedArchive read(const std::string& asked) {
    const std::string model = choose(asked);
    ExportedArchive out;
    out.program =
        read_program(archive_.read(archive_.at(root_ + "models/" + model + ".json")), file_);
    read_tensors("data/weights/", model + "_weights_config.json", out);
    read_tensors("data/constants/", model + "_constants_config.json", out);
    return out;
  }

 private:
  static Archive::Limits limits(int64_t max_bytes) {
    Archive::Limits out;
    out.bytes = static_cast<uint64_t>(max_bytes);
    return out;
  }
  Span place(const std::string& label) const { return Span::place(file_, label); }

  void check_format() const {
    auto text = [&](const char* name) -> std::optional<std::string> {
      const Archive::Entry* e = archive_.find(root_ + name);
      return e == nullptr || e->size > 100 ? std::nullopt : std::optional(archive_.read(*e));
    };
    if (text("archive_format") != "pt2") {
      throw UserError(Diagnostic(codes::frontend_damaged, place("archive"),
                                 "the archive holds no exported program")
                          .expected("an archive that torch.export.save wrote")
                          .help("save the program with torch.export.save(ep, 'model.pt2')"));
    }
    const std::string version = text("archive_version").value_or("0");
    int64_t number = -1;
    std::from_chars(version.data(), version.data() + version.size(), number);
    if (number != kVersion) {
      throw UserError(Diagnostic(codes::frontend_version, place("archive"),
                                 "the archive has a version that is not read")
                          .expected("version " + std::to_string(kVersion))
                          .found("version " + escape_for_terminal(version, 20))
                          .help("save the program with PyTorch 2.13"));
    }
    if (text("byteorder").value_or("little") != "little") {
      throw UserError(Diagnostic(codes::frontend_attribute, place("archive"),
                                 "tensors with the highest byte first are not supported"));
    }
  }

  // The name of the program to read.
  std::string choose(const std::string& asked) const {
    const std::string folder = root_ + "models/", ending = ".json";
    std::vector<std::string> names;
    for (const Archive::Entry& e : archive_.entries()) {
      if (!e.name.starts_with(folder) || !e.name.ends_with(ending)) continue;
      names.push_back(e.name.substr(folder.size(), e.name.size() - folder.size() - ending.size()));
    }
    if (names.empty()) {
      throw UserError(Diagnostic(codes::frontend_damaged, place("archive"),
                                 "the archive holds no exported program")
                          .help("an archive of compiled code alone cannot be imported"));
    }
    if (asked.empty() && names.size() == 1) return names[0];
    if (std::ranges::find(names, asked) != names.end()) return asked;
    std::string known;
    for (const std::string& n : names) known += (known.empty() ? "" : ", ") + shorten(n);
    throw UserError(Diagnostic(codes::frontend_option, place("archive"),
                               asked.empty()
                                   ? "the archive holds several programs"
                                   : "the archive has no program '" + shorten(asked) + "'")
                        .expected("the option 'model' of the front end 'torch': " + known));
  }

  void read_tensors(const std::string& folder, const std::string& config, ExportedArchive& out) {
    const Archive::Entry* entry = archive_.find(root_ + folder + config);
    if (entry == nullptr) return;
    const Span span = place("entry " + shorten(folder + config));
    for (const auto& [name, payload] : read_payloads(archive_.read(*entry), span)) {
      // A payload that is not a tensor is refused where the program uses it.
      if (payload.pickled || !payload.meta) continue;
      out.tensors[name] = read_tensor(name, payload, folder);
      std::string& place_of = out.places[name];
      place_of = folder + payload.file;
      for (const auto* numbers : {&payload.meta->sizes, &payload.meta->strides})
        for (const SizeText& n : *numbers) place_of += "," + std::to_string(std::get<int64_t>(n));
      place_of += "," + std::to_string(std::get<int64_t>(payload.meta->offset));
    }
  }

  static std::vector<int64_t> numbers(const std::vector<SizeText>& sizes, const std::string& name,
                                      const Span& span) {
    std::vector<int64_t> out;
    for (const SizeText& s : sizes) {
      const auto* n = std::get_if<int64_t>(&s);
      if (n == nullptr) bad_tensor(span, quoted_tensor(name) + " has an open size", "a number");
      out.push_back(*n);
    }
    return out;
  }

  Tensor read_tensor(const std::string& name, const Payload& payload, const std::string& folder) {
    const Span span = place("weight " + shorten(name));
    const TensorMeta& meta = *payload.meta;
    const std::optional<int64_t> parts = type_of_parts(meta.dtype);
    auto dtype = dtype_of(parts.value_or(meta.dtype));
    if (!dtype) {
      bad_tensor(span, quoted_tensor(name) + " has an element type that Relay lacks",
                 "a float, integer or bool type", name_of_scalar_type(meta.dtype));
    }
    if (meta.layout != TensorMeta::kStrided)
      bad_tensor(span, quoted_tensor(name) + " is not strided", "a dense tensor");
    const auto* offset = std::get_if<int64_t>(&meta.offset);
    if (offset == nullptr) bad_tensor(span, quoted_tensor(name) + " has an open place");
    Strided layout{numbers(meta.sizes, name, span), numbers(meta.strides, name, span), *offset};
    if (parts) {
      // The real and the imaginary part lie side by side. Strides that overflow lie in no storage.
      for (int64_t& stride : layout.strides)
        if (__builtin_mul_overflow(stride, int64_t{2}, &stride)) stride = -1;
      if (__builtin_mul_overflow(layout.offset, int64_t{2}, &layout.offset)) layout.offset = -1;
      layout.sizes.push_back(2);
      layout.strides.push_back(1);
    }
    if (archive_.find(root_ + folder + payload.file) == nullptr) {
      bad_tensor(
          span, "the archive lacks the elements of " + quoted_tensor(name),
          "an entry '" + shorten(folder + payload.file) + "', as torch.export.save writes it");
    }
    const std::string_view stored = bytes_of(folder + payload.file);
    const bool mapped = !owned_.contains(folder + payload.file);
    return tensor_in_storage(stored, *dtype, layout, name, span, mapped ? mapped_ : nullptr);
  }

  std::string_view bytes_of(const std::string& name) {
    const Archive::Entry& entry = archive_.at(root_ + name);
    if (entry.is_stored) return archive_.view(entry);
    auto [it, inserted] = owned_.try_emplace(name);
    if (inserted) it->second = archive_.read(entry);
    return it->second;
  }

  std::shared_ptr<const SourceFile> file_;
  std::shared_ptr<const MappedFile> mapped_;
  Archive archive_;
  std::string root_;
  std::map<std::string, std::string> owned_;  // entries that are deflated
};

}  // namespace

bool is_exported_archive(std::string_view head) {
  if (!is_archive(head)) return false;
  // The name of the first entry is behind its record of 30 bytes, which says how long it is.
  constexpr size_t kRecord = 30;
  if (head.size() < kRecord) return false;
  const size_t length =
      static_cast<unsigned char>(head[26]) + 256 * static_cast<unsigned char>(head[27]);
  const std::string_view name = head.substr(kRecord, length);
  const size_t slash = name.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view rest = name.substr(slash + 1);
  return rest.starts_with("data/weights/") || rest.starts_with("data/constants/") ||
         rest.starts_with("models/") || rest == "archive_format" || rest == "archive_version";
}

ExportedArchive read_exported_archive(std::string_view bytes, const std::string& path,
                                      const std::shared_ptr<const MappedFile>& file,
                                      const std::string& model, int64_t max_bytes) {
  return Reader(bytes, path, file, max_bytes).read(model);
}

}  // namespace relay::frontend::torch
