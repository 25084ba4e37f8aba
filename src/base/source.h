// Source files and the spans that point into them.
//
// A span says where a piece of a program comes from. For text it is a byte range of a file; for a
// model file it is the name of the model's node; for a node made from several others (a fused
// function) it is a list of parts. Spans are ignored by equality and hash.
//
//   auto file = SourceFile::make("a.relay", "let %x = 1;");
//   Span s = Span::range(file, 4, 6);
//   s.describe();   // "a.relay:1:5"
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace relay {

// A named text, or a named model file (then `text` is empty). Immutable once made.
class SourceFile {
 public:
  static std::shared_ptr<const SourceFile> make(std::string name, std::string text = {});

  const std::string& name() const { return name_; }
  const std::string& text() const { return text_; }

  // One-based line and column (in bytes) of a byte offset; an offset past the end is the end.
  struct Position {
    uint32_t line = 1;
    uint32_t column = 1;
  };
  Position position(uint32_t offset) const;

  // The text of a one-based line without its line break; empty for a line that does not exist.
  std::string_view line(uint32_t number) const;

 private:
  SourceFile(std::string name, std::string text);
  std::string name_;
  std::string text_;
  std::vector<uint32_t> line_starts_;
};

// Where a node comes from; cheap to copy, empty by default.
class Span {
 public:
  Span() = default;

  // The bytes [begin, end) of a text file.
  static Span range(std::shared_ptr<const SourceFile> file, uint32_t begin, uint32_t end);
  // A named place of a model file, such as "node conv1 (Conv)".
  static Span place(std::shared_ptr<const SourceFile> file, std::string label);
  // Several places together, in order; empty parts are dropped, one part stays itself.
  static Span join(const std::vector<Span>& parts);

  explicit operator bool() const { return data_ != nullptr; }

  // The file, null for an empty or joined span.
  const SourceFile* file() const;
  uint32_t begin() const;
  uint32_t end() const;
  // The model's own name of the place; empty for text.
  const std::string& label() const;
  // The parts of a joined span; empty otherwise.
  const std::vector<Span>& parts() const;

  // "file:line:column", "file: label", or the parts joined with " + "; empty for an empty span.
  std::string describe() const;

  friend bool operator==(const Span&, const Span&) = default;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace relay
