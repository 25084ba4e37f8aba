// Lines of standard input. On a terminal they are edited, with a history and completion, by libedit if the machine has
// it: the library is opened when it is needed, since artifacts, wheels and scripts do without.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace relay::cli {

// ~/.local/state/relay/NAME, as the XDG base directories say; empty where there is no home.
std::string history_file(const std::string& name);

class LineReader {
 public:
  // What can stand where `word` was begun.
  using Complete = std::function<std::vector<std::string>(std::string_view word)>;

  // `history`: the file that keeps the lines, or empty.
  LineReader(std::string history, Complete complete);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  // The next line without its end; nullopt at the end of the input, and where a signal came. The prompt is shown on terminals only.
  std::optional<std::string> read(const std::string& prompt);
  // Adds an entry, which may have several lines, to the history.
  void remember(const std::string& entry);

  bool is_terminal() const { return terminal_; }
  // Whether this machine has the library.
  static bool can_edit();
  bool edits() const { return library_ != nullptr; }

 private:
  struct Library;
  std::string history_;
  bool terminal_ = false;
  std::unique_ptr<Library> library_;
};

}  // namespace relay::cli
