#include "frontend/onnx/onnx.h"

#include <onnx/onnx-ml.pb.h>

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>

#include "base/codes/frontend.h"
#include "frontend/onnx/graph_importer.h"
#include "frontend/onnx/parse.h"
#include "frontend/onnx/wire.h"

namespace relay {
namespace {

using frontend::MappedFile;
using frontend::ModelFolder;

// A hash of the whole file, without keeping it all in memory.
std::string hash_of(std::string_view bytes, bool mapped) {
  constexpr size_t kChunk = 8u << 20;
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (size_t at = 0; at < bytes.size(); at += kChunk) {
    std::string_view chunk = bytes.substr(at, kChunk);
    XXH3_64bits_update(&state, chunk.data(), chunk.size());
    if (mapped) MappedFile::forget(chunk);
  }
  char text[17];
  std::snprintf(text, sizeof text, "%016" PRIx64,
                static_cast<uint64_t>(XXH3_64bits_digest(&state)));
  return text;
}

ImportedModel import_bytes(std::string_view bytes, const std::string& name,
                           std::shared_ptr<const MappedFile> mapped,
                           std::shared_ptr<const ModelFolder> folder, const OnnxOptions& options) {
  auto file = SourceFile::make(name);
  ::onnx::ModelProto model;
  std::vector<std::string_view> payloads = frontend::onnx::parse_model(bytes, file, model);
  std::string hash = hash_of(bytes, mapped != nullptr);
  frontend::onnx::TensorSource source{
      std::move(payloads), std::move(mapped), std::move(folder), {}};
  frontend::onnx::Importer run(file, options, std::move(source));
  ImportedModel out = run.run(model);
  out.source_hash = std::move(hash);
  return out;
}

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

}  // namespace

std::vector<std::string_view> frontend::onnx::parse_model(
    std::string_view bytes, const std::shared_ptr<const SourceFile>& file,
    ::onnx::ModelProto& model) {
  auto damaged = [&](const std::string& why) {
    throw UserError(Diagnostic(codes::frontend_damaged, Span::place(file, "model"),
                               "this is not an ONNX model, or it is damaged: " + why)
                        .help("check that the file was copied or downloaded completely"));
  };
  if (bytes.empty()) damaged("it is empty");
  StrippedModel stripped = strip_payloads(bytes, file);
  if (stripped.skeleton.size() > (size_t{1} << 30)) damaged("its graph is larger than 1 GiB");

  google::protobuf::io::ArrayInputStream array(stripped.skeleton.data(),
                                               static_cast<int>(stripped.skeleton.size()));
  google::protobuf::io::CodedInputStream coded(&array);
  coded.SetTotalBytesLimit(1 << 30);
  coded.SetRecursionLimit(100);
  if (!model.ParseFromCodedStream(&coded) || !coded.ConsumedEntireMessage()) {
    damaged("its fields do not have the types of the ONNX format");
  }
  return std::move(stripped.payloads);
}

ModelSummary frontend::onnx::with_parsed_file(
    const std::string& path, const std::function<ModelSummary(const ::onnx::ModelProto&)>& use) {
  auto mapped = MappedFile::open(path, OnnxOptions().max_file_bytes);
  ::onnx::ModelProto model;
  parse_model(mapped->bytes(), SourceFile::make(path), model);
  return use(model);
}

ImportedModel import_onnx_file(const std::string& path, const OnnxOptions& options) {
  auto mapped = MappedFile::open(path, options.max_file_bytes);
  auto folder = std::make_shared<const ModelFolder>(folder_of(path));
  ImportedModel out = import_bytes(mapped->bytes(), path, mapped, folder, options);
  mapped->check_unchanged();
  return out;
}

ImportedModel import_onnx_bytes(std::string_view data, const std::string& source_name,
                                const std::string& folder, const OnnxOptions& options) {
  return import_bytes(data, source_name, nullptr, std::make_shared<const ModelFolder>(folder),
                      options);
}

}  // namespace relay
