#include "ir/text/prelude/prelude.h"

#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "base/diagnostic.h"
#include "ir/text/prelude/prelude_files.h"

namespace relay::text {
namespace {

// What a token stands for at the top level of a text: a name with its tokens, and for a data type
// its constructors.
struct Definition {
  std::string_view name;
  bool is_type = false;
  size_t begin = 0;
  size_t end = 0;
  std::vector<std::string_view> constructors;
};

bool is(const Token& t, std::string_view symbol) {
  return t.kind == TokenKind::symbol && t.text == symbol;
}
bool is_word(const Token& t, std::string_view word) {
  return t.kind == TokenKind::identifier && t.text == word;
}

// The constructors between the braces behind a type's name. The text may be wrong; then the parser
// will say so.
std::vector<std::string_view> constructors_of(const std::vector<Token>& tokens, size_t at) {
  std::vector<std::string_view> out;
  while (!is(tokens[at], "{")) {
    bool header = is(tokens[at], "[") || is(tokens[at], "]") || is(tokens[at], ",") ||
                  is(tokens[at], ":") || tokens[at].kind == TokenKind::identifier;
    if (!header || is_word(tokens[at], "type") || is_word(tokens[at], "def")) return out;
    ++at;
  }
  int depth = 0;
  for (; tokens[at].kind != TokenKind::end; ++at) {
    const Token& t = tokens[at];
    if (depth == 1 && t.kind == TokenKind::identifier) out.push_back(t.text);
    if (is(t, "{") || is(t, "(") || is(t, "[")) ++depth;
    if ((is(t, "}") || is(t, ")") || is(t, "]")) && --depth == 0) break;
  }
  return out;
}

// `def`, `type` and `extern` are keywords: they start a definition wherever they stand.
std::vector<Definition> definitions_of(const std::vector<Token>& tokens) {
  std::vector<Definition> out;
  for (size_t i = 0; i + 1 < tokens.size(); ++i) {
    bool is_def = is_word(tokens[i], "def") && tokens[i + 1].kind == TokenKind::global;
    bool is_type = is_word(tokens[i], "type") && tokens[i + 1].kind == TokenKind::identifier;
    if (!is_def && !is_type) continue;
    if (!out.empty()) out.back().end = i;
    Definition d{tokens[i + 1].text, is_type, i, tokens.size() - 1, {}};
    if (is_type) d.constructors = constructors_of(tokens, i + 2);
    out.push_back(std::move(d));
  }
  return out;
}

// The prelude's tokens with an index of its names.
class Prelude {
 public:
  static const Prelude& instance() {
    static const Prelude prelude;
    return prelude;
  }

  // The parts reached from `tokens`, without the names in `own`.
  class Search {
   public:
    explicit Search(const Prelude& prelude) : prelude_(prelude) {}

    void define(std::string_view name, bool is_type) {
      (is_type ? own_types_ : own_functions_).insert(name);
    }
    void define(const Definition& d) {
      define(d.name, d.is_type);
      own_constructors_.insert(d.constructors.begin(), d.constructors.end());
    }
    void reach(const std::vector<Token>& tokens, size_t begin, size_t end) {
      scan(tokens, begin, end);
      while (!work_.empty()) {
        Place place = work_.back();
        work_.pop_back();
        const File& file = prelude_.files_[place.first];
        const Definition& d = file.definitions[place.second];
        scan(file.tokens, d.begin + 2, d.end);
      }
    }
    void reach_file(size_t index) {
      const File& file = prelude_.files_[index];
      for (size_t i = 0; i < file.definitions.size(); ++i) {
        const Definition& d = file.definitions[i];
        add(d.name, d.is_type ? own_types_ : own_functions_,
            d.is_type ? prelude_.types_ : prelude_.functions_);
      }
      reach(file.tokens, 0, 0);
    }

    std::vector<PreludePart> parts() const {
      std::vector<PreludePart> out;
      for (auto [file_index, i] : found_) {
        const File& file = prelude_.files_[file_index];
        if (out.empty() || out.back().source != file.source) out.push_back({file.source, {}});
        const Definition& d = file.definitions[i];
        out.back().tokens.insert(out.back().tokens.end(), file.tokens.begin() + d.begin,
                                 file.tokens.begin() + d.end);
      }
      for (PreludePart& part : out) {
        Token last = part.tokens.back();
        part.tokens.push_back({TokenKind::end, last.end, last.end, {}});
      }
      return out;
    }

   private:
    using Names = std::unordered_set<std::string_view>;

    void scan(const std::vector<Token>& tokens, size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const Token& t = tokens[i];
        if (t.kind == TokenKind::global) {
          add(t.text, own_functions_, prelude_.functions_);
        } else if (t.kind == TokenKind::identifier) {
          // `axis=None` is an attribute, no constructor.
          bool attribute =
              i >= 2 && is(tokens[i - 1], "=") && tokens[i - 2].kind == TokenKind::identifier;
          if (attribute) continue;
          add(t.text, own_types_, prelude_.types_);
          if (!own_constructors_.contains(t.text)) {
            auto type = prelude_.constructors_.find(t.text);
            if (type != prelude_.constructors_.end()) {
              add(type->second, own_types_, prelude_.types_);
            }
          }
        }
      }
    }
    void add(std::string_view name, const Names& own,
             const std::unordered_map<std::string_view, std::pair<size_t, size_t>>& index) {
      auto it = index.find(name);
      if (it == index.end() || own.contains(name)) return;
      if (found_.insert(it->second).second) work_.push_back(it->second);
    }

    using Place = std::pair<size_t, size_t>;  // file, definition
    const Prelude& prelude_;
    Names own_functions_, own_types_, own_constructors_;
    std::set<Place> found_;
    std::vector<Place> work_;
  };

  size_t find_file(std::string_view name) const {
    size_t i = 0;
    while (i < files_.size() && files_[i].source->name() != name) ++i;
    return i;
  }
  size_t file_count() const { return files_.size(); }

 private:
  struct File {
    std::shared_ptr<const SourceFile> source;
    std::vector<Token> tokens;
    std::vector<Definition> definitions;
  };

  Prelude() {
    for (const EmbeddedFile& file : prelude_texts()) {
      Diagnostics diags;
      File made;
      made.source = SourceFile::make(std::string(file.name), std::string(file.text));
      made.tokens = tokenize(made.source, diags).tokens;
      diags.throw_if_errors();
      made.definitions = definitions_of(made.tokens);
      size_t index = files_.size();
      for (size_t i = 0; i < made.definitions.size(); ++i) {
        const Definition& d = made.definitions[i];
        (d.is_type ? types_ : functions_).emplace(d.name, std::make_pair(index, i));
        for (std::string_view c : d.constructors) constructors_.emplace(c, d.name);
      }
      files_.push_back(std::move(made));
    }
  }

  std::vector<File> files_;
  // Places by name, as pairs of file and definition; types by their constructors.
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> functions_, types_;
  std::unordered_map<std::string_view, std::string_view> constructors_;
};

}  // namespace

std::vector<PreludePart> reached_prelude(const std::vector<Token>& text) {
  Prelude::Search search(Prelude::instance());
  for (const Definition& d : definitions_of(text)) search.define(d);
  search.reach(text, 0, text.size());
  return search.parts();
}

std::vector<PreludePart> whole_prelude(std::string_view file,
                                       const std::vector<std::string_view>& defined) {
  const Prelude& prelude = Prelude::instance();
  size_t index = prelude.find_file(file);
  if (index == prelude.file_count()) return {};
  Prelude::Search search(prelude);
  for (std::string_view name : defined) {
    bool is_function = name.starts_with("@");
    search.define(name.substr(is_function ? 1 : 0), !is_function);
  }
  search.reach_file(index);
  return search.parts();
}

std::vector<std::string_view> prelude_files() {
  std::vector<std::string_view> out;
  for (const EmbeddedFile& file : prelude_texts()) out.push_back(file.name);
  return out;
}

}  // namespace relay::text
