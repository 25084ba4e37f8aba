#include "cli/line_reader.h"

#include <dlfcn.h>
#include <editline/readline.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace relay::cli {
namespace {

constexpr int kMostHistory = 1000;

// libedit's interface has no argument for the caller's data.
LineReader::Complete completing;
std::vector<std::string> candidates;
size_t next_candidate = 0;

// The candidates of a word, one for each call; null at their end.
char* give_candidate(const char* word, int state) {
  if (state == 0) {
    candidates = completing ? completing(word) : std::vector<std::string>();
    next_candidate = 0;
  }
  return next_candidate < candidates.size() ? strdup(candidates[next_candidate++].c_str())
                                            : nullptr;
}

}  // namespace

std::string history_file(const std::string& name) {
  const char* state = std::getenv("XDG_STATE_HOME");
  const char* home = std::getenv("HOME");
  if (state != nullptr && state[0] == '/') return std::string(state) + "/relay/" + name;
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.local/state/relay/" + name : "";
}

struct LineReader::Library {
  void* handle = nullptr;
  decltype(&::readline) readline = nullptr;
  decltype(&::add_history) add_history = nullptr;
  decltype(&::read_history) read_history = nullptr;
  decltype(&::write_history) write_history = nullptr;
  decltype(&::stifle_history) stifle_history = nullptr;

  template <class F>
  bool find(const char* name, F& function) {
    function = reinterpret_cast<F>(dlsym(handle, name));
    return function != nullptr;
  }

  // Null on a machine without the library, or with one that lacks a function.
  static std::unique_ptr<Library> open() {
    auto out = std::make_unique<Library>();
    for (const char* name : {"libedit.so.2", "libedit.so.0", "libedit.so"}) {
      out->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
      if (out->handle != nullptr) break;
    }
    if (out->handle == nullptr) return nullptr;
    decltype(&::rl_completion_entry_function) entry = nullptr;
    decltype(&::rl_readline_name) program = nullptr;
    if (!out->find("readline", out->readline) || !out->find("add_history", out->add_history) ||
        !out->find("read_history", out->read_history) ||
        !out->find("write_history", out->write_history) ||
        !out->find("stifle_history", out->stifle_history) ||
        !out->find("rl_completion_entry_function", entry) ||
        !out->find("rl_readline_name", program))
      return nullptr;
    *entry = give_candidate;
    *program = "relay";
    return out;
  }

  Library() = default;
  Library(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) dlclose(handle);
  }
};

bool LineReader::can_edit() { return Library::open() != nullptr; }

LineReader::LineReader(std::string history, Complete complete) : history_(std::move(history)) {
  terminal_ = isatty(STDIN_FILENO) != 0 && isatty(STDOUT_FILENO) != 0;
  if (!terminal_) return;
  library_ = Library::open();
  if (!library_) return;
  completing = std::move(complete);
  library_->stifle_history(kMostHistory);
  if (!history_.empty()) library_->read_history(history_.c_str());
}

LineReader::~LineReader() {
  if (!library_) return;
  completing = nullptr;
  if (history_.empty()) return;
  std::error_code none;
  std::filesystem::create_directories(std::filesystem::path(history_).parent_path(), none);
  mode_t before = umask(077);  // what was typed is for its writer alone
  library_->write_history(history_.c_str());
  umask(before);
}

std::optional<std::string> LineReader::read(const std::string& prompt) {
  std::fflush(stdout);
  if (library_) {
    char* line = library_->readline(prompt.c_str());
    if (line == nullptr) return std::nullopt;
    std::string out(line);
    std::free(line);
    return out;
  }
  if (terminal_) {
    std::fputs(prompt.c_str(), stdout);
    std::fflush(stdout);
  }
  std::string out;
  int c = EOF;
  while ((c = std::getchar()) != EOF && c != '\n') out += static_cast<char>(c);
  if (c == EOF && std::ferror(stdin) != 0) {
    std::clearerr(stdin);  // a signal came
    return std::nullopt;
  }
  if (c == EOF && out.empty()) return std::nullopt;
  return out;
}

void LineReader::remember(const std::string& entry) {
  if (library_ && !entry.empty()) library_->add_history(entry.c_str());
}

}  // namespace relay::cli
