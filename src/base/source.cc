#include "base/source.h"

#include <algorithm>

namespace relay {

struct Span::Data {
  std::shared_ptr<const SourceFile> file;
  uint32_t begin = 0;
  uint32_t end = 0;
  std::string label;
  std::vector<Span> parts;
};

SourceFile::SourceFile(std::string name, std::string text)
    : name_(std::move(name)), text_(std::move(text)) {
  line_starts_.push_back(0);
  for (uint32_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') line_starts_.push_back(i + 1);
  }
}

std::shared_ptr<const SourceFile> SourceFile::make(std::string name, std::string text) {
  return std::shared_ptr<const SourceFile>(new SourceFile(std::move(name), std::move(text)));
}

SourceFile::Position SourceFile::position(uint32_t offset) const {
  offset = std::min<uint32_t>(offset, static_cast<uint32_t>(text_.size()));
  auto it = std::upper_bound(line_starts_.begin(), line_starts_.end(), offset) - 1;
  return {static_cast<uint32_t>(it - line_starts_.begin()) + 1, offset - *it + 1};
}

std::string_view SourceFile::line(uint32_t number) const {
  if (number == 0 || number > line_starts_.size()) return {};
  uint32_t begin = line_starts_[number - 1];
  size_t end = text_.find('\n', begin);
  if (end == std::string::npos) end = text_.size();
  return std::string_view(text_).substr(begin, end - begin);
}

Span Span::range(std::shared_ptr<const SourceFile> file, uint32_t begin, uint32_t end) {
  Span s;
  s.data_ = std::make_shared<const Data>(Data{std::move(file), begin, end, {}, {}});
  return s;
}

Span Span::place(std::shared_ptr<const SourceFile> file, std::string label) {
  Span s;
  s.data_ = std::make_shared<const Data>(Data{std::move(file), 0, 0, std::move(label), {}});
  return s;
}

Span Span::join(const std::vector<Span>& parts) {
  std::vector<Span> kept;
  for (const Span& part : parts) {
    if (!part) continue;
    const std::vector<Span>& inner = part.parts();
    if (inner.empty()) {
      kept.push_back(part);
    } else {
      kept.insert(kept.end(), inner.begin(), inner.end());
    }
  }
  std::vector<Span> unique;
  for (const Span& part : kept) {
    if (std::find(unique.begin(), unique.end(), part) == unique.end()) unique.push_back(part);
  }
  if (unique.empty()) return {};
  if (unique.size() == 1) return unique[0];
  Span s;
  s.data_ = std::make_shared<const Data>(Data{nullptr, 0, 0, {}, std::move(unique)});
  return s;
}

const SourceFile* Span::file() const { return data_ ? data_->file.get() : nullptr; }
uint32_t Span::begin() const { return data_ ? data_->begin : 0; }
uint32_t Span::end() const { return data_ ? data_->end : 0; }

const std::string& Span::label() const {
  static const std::string empty;
  return data_ ? data_->label : empty;
}

const std::vector<Span>& Span::parts() const {
  static const std::vector<Span> empty;
  return data_ ? data_->parts : empty;
}

std::string Span::describe() const {
  if (!data_) return {};
  if (!data_->parts.empty()) {
    std::string out;
    for (const Span& part : data_->parts) {
      if (!out.empty()) out += " + ";
      out += part.describe();
    }
    return out;
  }
  if (!data_->label.empty()) return data_->file->name() + ": " + data_->label;
  SourceFile::Position p = data_->file->position(data_->begin);
  return data_->file->name() + ":" + std::to_string(p.line) + ":" + std::to_string(p.column);
}

}  // namespace relay
