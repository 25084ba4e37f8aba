#include "frontend/frontend.h"

#include <algorithm>
#include <deque>
#include <mutex>

#include "base/codes/frontend.h"
#include "base/fork.h"
#include "base/suggest.h"
#include "frontend/front_ends.h"
#include "ir/op.h"

namespace relay {
namespace {

// The rows do not move when others are added.
struct FrontEndList {
  ForkSafe<std::mutex> mutex;
  std::deque<FrontEnd> rows;

  FrontEndList() {
    for (FrontEnd& row : built_in_front_ends()) add(std::move(row));
  }
  void add(FrontEnd row) {
    RELAY_CHECK(!row.name.empty() && !row.title.empty() && row.sniff && row.import,
                "a front end has a name, a title, `sniff` and `import`");
    if (std::ranges::find(rows, row.name, &FrontEnd::name) != rows.end()) {
      throw UserError(Diagnostic(codes::frontend_twice, {},
                                 "the front end '" + row.name + "' is registered twice")
                          .help("give the second one another name"));
    }
    rows.push_back(std::move(row));
  }
};

FrontEndList& list() {
  static FrontEndList all;
  return all;
}

std::string joined(const std::vector<std::string>& words, const char* last) {
  std::string out;
  for (size_t i = 0; i < words.size(); ++i) {
    out += (i == 0 ? "" : i + 1 == words.size() ? last : ", ") + words[i];
  }
  return out;
}

const char* type_name(const AttrValue& value) {
  static constexpr const char* kNames[] = {"nothing",  "a bool", "an integer", "a number",
                                           "a string", "a list", "a size"};
  return kNames[value.index()];
}

}  // namespace

void register_front_end(FrontEnd row) {
  std::lock_guard lock(list().mutex);
  list().add(std::move(row));
}

std::vector<const FrontEnd*> front_ends() {
  std::lock_guard lock(list().mutex);
  std::vector<const FrontEnd*> out;
  for (const FrontEnd& row : list().rows) out.push_back(&row);
  return out;
}

const FrontEnd& front_end_named(std::string_view name) {
  std::vector<std::string> names;
  std::vector<std::string_view> known;
  for (const FrontEnd* row : front_ends()) {
    if (row->name == name) return *row;
    names.push_back(row->name);
    known.push_back(row->name);
  }
  const std::string asked = escape_for_terminal(std::string(name), 100);
  throw UserError(
      Diagnostic(codes::frontend_unknown, {}, "there is no front end named '" + asked + "'")
          .expected(joined(names, " or "))
          .help(suggest(std::string(name), known)));
}

const FrontEnd& front_end_for(const std::string& path, std::string_view head) {
  const std::vector<const FrontEnd*> rows = front_ends();
  std::vector<const FrontEnd*> claims;
  const auto claim = [&](const auto& claimed) {
    std::ranges::copy_if(rows, std::back_inserter(claims),
                         [&](const FrontEnd* row) { return claimed(*row); });
  };
  claim([&](const FrontEnd& row) { return row.sniff(head); });
  const bool by_content = !claims.empty();
  if (!by_content) {
    claim([&](const FrontEnd& row) {
      return std::ranges::any_of(row.endings,
                                 [&](const std::string& ending) { return path.ends_with(ending); });
    });
  }
  if (claims.size() == 1) return *claims[0];
  const Span span = Span::place(SourceFile::make(path), "file");
  std::vector<std::string> titles;
  if (claims.empty()) {
    throw UserError(
        Diagnostic(codes::frontend_unknown, span, "the file is of no format that Relay reads")
            .expected(titles_of_front_ends())
            .found(head.empty() ? "an empty file" : "other content")
            .help("check that the file was copied or downloaded completely"));
  }
  for (const FrontEnd* row : claims) titles.push_back(row->name);
  throw UserError(Diagnostic(codes::frontend_ambiguous, span,
                             std::string("more than one front end claims the file by its ") +
                                 (by_content ? "content" : "ending"))
                      .expected("one front end")
                      .found(joined(titles, " and "))
                      .help("the front ends must look for what only their own format has"));
}

std::string titles_of_front_ends(std::string_view also) {
  std::vector<std::string> titles;
  for (const FrontEnd* row : front_ends()) titles.push_back(row->title);
  if (!also.empty()) titles.emplace_back(also);
  return joined(titles, " or ");
}

ImportedModel import_model(const FrontEnd& front_end, const ModelSource& source,
                           const ImportOptions& options) {
  for (const auto& [name, value] : options.own) {
    auto row = std::ranges::find(front_end.options, name, &FrontEndOption::name);
    if (row != front_end.options.end() && row->standard.index() == value.index()) continue;
    std::vector<std::string> names;
    std::vector<std::string_view> known;
    for (const FrontEndOption& o : front_end.options) {
      names.push_back(o.name);
      known.push_back(o.name);
    }
    const std::string shown = escape_for_terminal(name, 100);
    if (row != front_end.options.end()) {
      throw UserError(Diagnostic(codes::frontend_option, {},
                                 "the option '" + shown + "' of the front end '" + front_end.name +
                                     "' has another type")
                          .expected(type_name(row->standard))
                          .found(to_string(value)));
    }
    throw UserError(
        Diagnostic(codes::frontend_option, {},
                   "the front end '" + front_end.name + "' has no option '" + shown + "'")
            .expected(names.empty() ? "no options" : joined(names, " or "))
            .help(suggest(name, known)));
  }
  return front_end.import(source, options);
}

}  // namespace relay
