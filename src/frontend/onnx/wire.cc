#include "frontend/onnx/wire.h"

#include <span>

#include "base/codes/frontend.h"

namespace relay::frontend::onnx {
namespace {

enum class Message { Model, Graph, Node, Attribute, Tensor, Sparse, Function };

// What happens to a length-delimited field of a message; fields not listed are copied.
struct Rule {
  Message parent;
  uint32_t field;
  enum Action { descend, drop, payload } action;
  Message child = Message::Model;
};

// Field numbers of onnx.proto.
constexpr Rule kRules[] = {
    {Message::Model, 6, Rule::drop},  // doc_string
    {Message::Model, 7, Rule::descend, Message::Graph},
    {Message::Model, 20, Rule::drop},  // training_info
    {Message::Model, 25, Rule::descend, Message::Function},
    {Message::Graph, 1, Rule::descend, Message::Node},
    {Message::Graph, 5, Rule::descend, Message::Tensor},
    {Message::Graph, 10, Rule::drop},  // doc_string
    {Message::Graph, 15, Rule::descend, Message::Sparse},
    {Message::Node, 5, Rule::descend, Message::Attribute},
    {Message::Node, 6, Rule::drop},  // doc_string
    {Message::Attribute, 5, Rule::descend, Message::Tensor},
    {Message::Attribute, 6, Rule::descend, Message::Graph},
    {Message::Attribute, 10, Rule::descend, Message::Tensor},
    {Message::Attribute, 11, Rule::descend, Message::Graph},
    {Message::Attribute, 13, Rule::drop},  // doc_string
    {Message::Attribute, 22, Rule::descend, Message::Sparse},
    {Message::Attribute, 23, Rule::descend, Message::Sparse},
    {Message::Tensor, 9, Rule::payload},
    {Message::Tensor, 12, Rule::drop},  // doc_string; the payload's index takes its place
    {Message::Sparse, 1, Rule::descend, Message::Tensor},
    {Message::Sparse, 2, Rule::descend, Message::Tensor},
    {Message::Function, 7, Rule::descend, Message::Node},
    {Message::Function, 8, Rule::drop},  // doc_string
    {Message::Function, 11, Rule::descend, Message::Attribute},
};

const Rule* rule_of(Message parent, uint32_t field) {
  for (const Rule& r : kRules) {
    if (r.parent == parent && r.field == field) return &r;
  }
  return nullptr;
}

void put_varint(std::string& out, uint64_t v) {
  for (; v >= 0x80; v >>= 7) out.push_back(static_cast<char>(v | 0x80));
  out.push_back(static_cast<char>(v));
}

// A number that is known only when what follows it is written has all bytes that one below 2^35 may need.
constexpr size_t kPaddedBytes = 5;
void put_padded(std::string& out, size_t at, uint64_t v) {
  for (size_t i = 0; i < kPaddedBytes; ++i, v >>= 7) {
    out[at + i] = static_cast<char>((v & 0x7f) | (i + 1 < kPaddedBytes ? 0x80 : 0));
  }
}

constexpr uint32_t kLengthDelimited = 2;

class Stripper {
 public:
  Stripper(std::string_view model, const std::shared_ptr<const SourceFile>& file)
      : base_(model.data()), file_(file) {}

  // The depth of the C++ stack is bounded by kMaxGraphDepth: messages nest only through graphs.
  void strip(std::string_view in, Message kind, int depth, std::string& out) {
    if (depth > kMaxGraphDepth) {
      throw UserError(
          Diagnostic(codes::frontend_limit, place(in.data()), "subgraphs are nested too deeply")
              .expected("at most " + std::to_string(kMaxGraphDepth) + " levels"));
    }
    bool has_payload = false;
    const char* p = in.data();
    const char* end = p + in.size();
    while (p < end) {
      const char* start = p;
      uint64_t tag = varint(p, end);
      auto field = static_cast<uint32_t>(tag >> 3);
      if (tag > UINT32_MAX || field == 0) corrupt(start, "a field has a bad number");
      switch (tag & 7) {
        case 0:
          varint(p, end);
          break;
        case 1:
          skip(p, end, 8);
          break;
        case 5:
          skip(p, end, 4);
          break;
        case kLengthDelimited: {
          uint64_t length = varint(p, end);
          const char* body = p;
          skip(p, end, length);
          std::string_view content(body, length);
          const Rule* rule = rule_of(kind, field);
          if (rule == nullptr) break;
          if (rule->action == Rule::drop) continue;
          if (rule->action == Rule::descend) {
            put_varint(out, tag);
            const size_t at = out.size();
            out.append(kPaddedBytes, '\0');
            strip(content, rule->child, depth + (rule->child == Message::Graph), out);
            put_padded(out, at, out.size() - at - kPaddedBytes);
            continue;
          }
          if (has_payload) corrupt(start, "a tensor has raw_data twice");
          has_payload = true;
          if (content.size() < kMinPayload) break;
          put_field(out, 12, std::to_string(model_.payloads.size()));
          model_.payloads.push_back(content);
          continue;
        }
        default:
          corrupt(start, "a field has an unknown wire type");
      }
      out.append(start, p);
    }
  }

  StrippedModel take() { return std::move(model_); }
  StrippedModel& model() { return model_; }

 private:
  static void put_field(std::string& out, uint32_t field, const std::string& bytes) {
    put_varint(out, field << 3 | kLengthDelimited);
    put_varint(out, bytes.size());
    out += bytes;
  }

  Span place(const char* at) const {
    return Span::place(file_, "byte " + std::to_string(at - base_));
  }

  [[noreturn]] void corrupt(const char* at, const std::string& why) const {
    throw UserError(Diagnostic(codes::frontend_damaged, place(at),
                               "this is not an ONNX model, or it is damaged: " + why)
                        .help("check that the file was copied or downloaded completely"));
  }

  uint64_t varint(const char*& p, const char* end) const {
    const char* start = p;
    uint64_t value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (p == end) corrupt(start, "it ends inside a number");
      auto byte = static_cast<unsigned char>(*p++);
      if (shift == 63 && byte > 1) break;
      value |= uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
    corrupt(start, "a number has too many bytes");
  }

  void skip(const char*& p, const char* end, uint64_t n) const {
    if (n > static_cast<uint64_t>(end - p)) corrupt(p, "it ends inside a field");
    p += n;
  }

  const char* base_;
  std::shared_ptr<const SourceFile> file_;
  StrippedModel model_;
};

}  // namespace

StrippedModel strip_payloads(std::string_view model,
                             const std::shared_ptr<const SourceFile>& file) {
  Stripper stripper(model, file);
  std::string skeleton;
  stripper.strip(model, Message::Model, 0, skeleton);
  stripper.model().skeleton = std::move(skeleton);
  return stripper.take();
}

}  // namespace relay::frontend::onnx
