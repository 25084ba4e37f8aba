#include "driver/error_help.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>

namespace relay {
namespace {

std::string_view text_of(std::string_view name) {
  for (const EmbeddedFile& file : error_help_texts())
    if (file.name == name) return file.text;
  return {};
}

// The next string literal of a declaration, behind `at`, which moves behind it.
std::string_view next_literal(std::string_view text, size_t& at) {
  size_t begin = text.find('"', at);
  size_t end = begin == text.npos ? text.npos : text.find('"', begin + 1);
  if (end == text.npos) return {};
  at = end + 1;
  return text.substr(begin + 1, end - begin - 1);
}

// `inline constexpr DiagnosticCode name{"E0101", "title"};`
void read_declarations(std::string_view text, std::map<std::string, std::string>& titles) {
  constexpr std::string_view kDeclaration = "constexpr DiagnosticCode ";
  for (size_t at = text.find(kDeclaration); at != text.npos; at = text.find(kDeclaration, at)) {
    std::string_view code = next_literal(text, at);
    titles.emplace(code, next_literal(text, at));
  }
}

const std::map<std::string, std::string>& titles() {
  static const std::map<std::string, std::string> kTitles = [] {
    std::map<std::string, std::string> out;
    for (const EmbeddedFile& file : error_help_texts())
      if (file.name.ends_with(".h")) read_declarations(file.text, out);
    return out;
  }();
  return kTitles;
}

// The shortest program whose first message has the code.
void find_program(ErrorHelp& help) {
  for (const EmbeddedFile& file : error_help_texts()) {
    constexpr std::string_view kEnding = ".expected";
    if (!file.name.ends_with(kEnding)) continue;
    if (!file.text.starts_with("error[" + help.code + "]")) continue;
    std::string name(file.name.substr(0, file.name.size() - kEnding.size()));
    std::string_view program = text_of(name + ".relay");
    if (program.empty() || (!help.program.empty() && program.size() >= help.program.size()))
      continue;
    help.program = program;
    help.message = file.text;
  }
}

}  // namespace

std::optional<ErrorHelp> error_help(std::string_view code) {
  std::string name(code);
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  auto title = titles().find(name);
  if (title == titles().end()) return std::nullopt;
  ErrorHelp out;
  out.code = name;
  out.title = title->second;
  static const nlohmann::json kAdvice = nlohmann::json::parse(text_of("errors.json"));
  const nlohmann::json& row = kAdvice.at(name);
  out.fix = row.at("fix").get<std::string>();
  out.when = row.value("when", "");
  out.command = row.value("run", "");
  for (const nlohmann::json& line : row.value("python", nlohmann::json::array()))
    out.python += line.get<std::string>() + "\n";
  if (row.size() == 1) find_program(out);
  return out;
}

std::vector<std::pair<std::string, std::string>> error_codes() {
  return {titles().begin(), titles().end()};
}

}  // namespace relay
