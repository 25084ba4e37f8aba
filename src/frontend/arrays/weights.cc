#include "frontend/arrays/weights.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "frontend/arrays/npz.h"
#include "frontend/common/archive.h"
#include "frontend/common/import_options.h"
#include "frontend/common/model_value.h"
#include "frontend/common/tensor_bytes.h"
#include "frontend/torch/pickle.h"
#include "frontend/torch/storage.h"

namespace relay {
namespace {

using namespace frontend;         // NOLINT: this file gives the namespaces their entry point
using namespace frontend::torch;  // NOLINT
using Tensors = std::map<std::string, Tensor>;

constexpr size_t kMaxTensors = 1'000'000;

uint64_t first_number(std::string_view bytes) {
  uint64_t out = 0;
  for (size_t i = 0; i < 8; ++i) out |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  return out;
}

[[noreturn]] void damaged(const Span& span, const std::string& why) {
  throw UserError(
      Diagnostic(codes::frontend_damaged, span, "the file of weights is damaged: " + why)
          .help("check that the file was copied or downloaded completely"));
}

// ---- safetensors: the length of a header, the header in JSON, elements ---------------------------

bool is_safetensors(std::string_view bytes) {
  if (bytes.size() < 10 || bytes[8] != '{') return false;
  const uint64_t header = first_number(bytes);
  return header >= 2 && header <= bytes.size() - 8;
}

std::optional<DType> dtype_of_safetensors(const std::string& name) {
  static const std::map<std::string, DType> kNames{{"BOOL", DType::Bool()},
                                                   {"U8", DType::UInt(8)},
                                                   {"I8", DType::Int(8)},
                                                   {"U16", DType::UInt(16)},
                                                   {"I16", DType::Int(16)},
                                                   {"U32", DType::UInt(32)},
                                                   {"I32", DType::Int(32)},
                                                   {"U64", DType::UInt(64)},
                                                   {"I64", DType::Int(64)},
                                                   {"F16", DType::Float(16)},
                                                   {"BF16", DType::BFloat16()},
                                                   {"F32", DType::Float(32)},
                                                   {"F64", DType::Float(64)},
                                                   {"F8_E4M3", DType::Narrow(DType::kFloat8E4M3FN)},
                                                   {"F8_E5M2", DType::Narrow(DType::kFloat8E5M2)}};
  auto it = kNames.find(name);
  return it == kNames.end() ? std::nullopt : std::optional(it->second);
}

Tensors read_safetensors(std::string_view bytes, const std::shared_ptr<const SourceFile>& source,
                         const std::shared_ptr<const MappedFile>& file) {
  using Json = nlohmann::json;
  const Span span = Span::place(source, "header");
  const uint64_t header = first_number(bytes);
  const Json json = Json::parse(bytes.substr(8, header), nullptr, false);
  if (json.is_discarded() || !json.is_object()) damaged(span, "its header is not a JSON object");
  const std::string_view data = bytes.substr(8 + header);
  auto numbers = [&](const Json& of, const char* name) {
    std::vector<int64_t> out;
    auto it = of.is_object() ? of.find(name) : of.end();
    const bool is_list = of.is_object() && it != of.end() && it->is_array();
    if (!is_list) damaged(span, std::string("a tensor has no '") + name + "'");
    for (const Json& n : *it) {
      if (!n.is_number_unsigned() || n.get<uint64_t>() > (uint64_t{1} << 62))
        damaged(span, std::string("'") + name + "' of a tensor is not a list of sizes");
      out.push_back(n.get<int64_t>());
    }
    return out;
  };
  Tensors out;
  for (const auto& [name, of] : json.items()) {
    if (name == "__metadata__") continue;
    const Span place = Span::place(source, "weight " + shorten(name));
    const std::vector<int64_t> shape = numbers(of, "shape"), ends = numbers(of, "data_offsets");
    auto type = of.find("dtype");
    auto dtype = type != of.end() && type->is_string()
                     ? dtype_of_safetensors(type->get<std::string>())
                     : std::nullopt;
    if (!dtype) bad_tensor(place, quoted_tensor(name) + " has an element type that Relay lacks");
    checked_shape(shape, name, *dtype, place);
    const uint64_t size =
        static_cast<uint64_t>(runtime::checked_num_elements(*dtype, shape)) * dtype->bytes();
    if (ends.size() != 2 || ends[0] > ends[1] || static_cast<uint64_t>(ends[1]) > data.size() ||
        static_cast<uint64_t>(ends[1] - ends[0]) != size) {
      bad_tensor(place, quoted_tensor(name) + " does not fit its bytes",
                 std::to_string(size) + " bytes");
    }
    out[name] =
        tensor_from_bytes(data.substr(static_cast<size_t>(ends[0]), size), *dtype, shape, file);
  }
  return out;
}

// ---- NumPy archives: a .npy file for each array ---------------------------------------------------

bool is_npz(std::string_view bytes) {
  if (!is_archive(bytes)) return false;
  // The name of the first entry is behind its record of 30 bytes, which says how long it is.
  constexpr size_t kRecord = 30;
  if (bytes.size() < kRecord) return false;
  const size_t length =
      static_cast<unsigned char>(bytes[26]) + 256 * static_cast<unsigned char>(bytes[27]);
  return bytes.substr(kRecord, length).ends_with(".npy");
}

// ---- State dictionaries: a pickle, and a file for each storage ------------------------------------

class StateReader {
 public:
  StateReader(std::string_view bytes, const std::shared_ptr<const SourceFile>& source,
              std::shared_ptr<const MappedFile> file)
      : source_(source), mapped_(std::move(file)), archive_(bytes, source) {}

  Tensors read() {
    const Archive::Entry* pickle = nullptr;
    for (const Archive::Entry& e : archive_.entries())
      if (e.name.ends_with("/data.pkl")) pickle = &e;
    if (pickle == nullptr) damaged(Span::place(source_, "archive"), "it holds no data.pkl");
    root_ = pickle->name.substr(0, pickle->name.size() - std::string("data.pkl").size());
    const Archive::Entry* order = archive_.find(root_ + "byteorder");
    if (order != nullptr && archive_.read(*order) != "little")
      damaged(Span::place(source_, "archive"), "its tensors have the highest byte first");
    const Span span = Span::place(source_, "data.pkl");
    const PicklePtr top = read_pickle(archive_.read(*pickle), span);
    if (top->kind != PickleValue::Kind::dict && top->kind != PickleValue::Kind::tensor) {
      throw UserError(
          Diagnostic(codes::frontend_attribute, span, "the file holds no dictionary of tensors")
              .help("save the state dictionary: torch.save(model.state_dict(), path)"));
    }
    collect(*top, "");
    return std::move(tensors_);
  }

 private:
  // At most as deep as a pickle is read.
  void collect(const PickleValue& v, const std::string& name) {
    if (++visited_ > kMaxTensors) {
      throw UserError(Diagnostic(codes::frontend_limit, Span::place(source_, "data.pkl"),
                                 "the dictionaries have too many entries")
                          .expected("at most " + std::to_string(kMaxTensors)));
    }
    if (v.kind == PickleValue::Kind::tensor) {
      tensors_[name] = tensor(v, name);
    } else if (v.kind == PickleValue::Kind::dict) {
      for (size_t i = 0; i + 1 < v.items.size(); i += 2) {
        const PickleValue& key = *v.items[i];
        const std::string own =
            key.kind == PickleValue::Kind::integer ? std::to_string(key.integer) : key.text;
        collect(*v.items[i + 1], name.empty() ? own : name + "." + own);
      }
    } else if (v.kind == PickleValue::Kind::list || v.kind == PickleValue::Kind::tuple) {
      for (size_t i = 0; i < v.items.size(); ++i)
        collect(*v.items[i], name + "." + std::to_string(i));
    }
  }

  Tensor tensor(const PickleValue& v, const std::string& name) {
    const Span span = Span::place(source_, "weight " + shorten(name));
    const Archive::Entry& entry = archive_.at(root_ + "data/" + v.items[0]->text);
    const bool stored = entry.is_stored;
    if (!stored && !owned_.contains(entry.name)) owned_[entry.name] = archive_.read(entry);
    const std::string_view bytes =
        stored ? archive_.view(entry) : std::string_view(owned_[entry.name]);
    return tensor_in_storage(bytes, v.dtype, v.layout, name, span, stored ? mapped_ : nullptr);
  }

  std::shared_ptr<const SourceFile> source_;
  std::shared_ptr<const MappedFile> mapped_;
  Archive archive_;
  std::string root_;
  std::map<std::string, std::string> owned_;  // entries that are deflated
  Tensors tensors_;
  size_t visited_ = 0;
};

}  // namespace

std::map<std::string, runtime::Tensor> read_weights(const std::string& path) {
  const auto file = MappedFile::open(path, ImportOptions().max_file_bytes);
  const auto source = SourceFile::make(path);
  const std::string_view bytes = file->bytes();
  if (is_npz(bytes)) return read_npz(path);
  Tensors out;
  if (is_archive(bytes)) {
    out = StateReader(bytes, source, file).read();
  } else if (is_safetensors(bytes)) {
    out = read_safetensors(bytes, source, file);
  } else {
    throw UserError(Diagnostic(codes::frontend_unknown, Span::place(source, "file"),
                               "the file holds no weights in a format that Relay reads")
                        .expected("a safetensors file, a NumPy archive, or a state dictionary that "
                                  "torch.save wrote")
                        .found(bytes.empty() ? "an empty file" : "other content"));
  }
  for (auto& [name, t] : out) t = aligned(t);
  file->check_unchanged();
  return out;
}

}  // namespace relay
