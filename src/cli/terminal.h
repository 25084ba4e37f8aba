// What the command prints: tables, progress, colours, JSON. Colours and progress only on a
// terminal.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/quantities.h"

namespace relay::cli {

// True when the stream is a terminal and the user did not ask for plain output (NO_COLOR).
bool stdout_is_terminal();
bool stderr_is_terminal();

// Columns of the terminal on standard output; 0 when it is none.
size_t terminal_width();

// Columns for text that people read: the terminal's, at most 100; 100 when standard output is no terminal.
size_t text_width();

// A text in lines of at most `width` bytes, broken at blanks; a longer word has a line of its own.
std::vector<std::string> wrapped(const std::string& text, size_t width);

// How a line is coloured on a terminal.
enum class Tone { plain, good, fair, poor };

// An aligned table. Columns whose cells are all numbers are aligned right.
class Table {
 public:
  explicit Table(std::vector<std::string> header) : header_(std::move(header)) {}
  void row(std::vector<std::string> cells, Tone tone = Tone::plain) {
    rows_.push_back(std::move(cells));
    tones_.push_back(tone);
  }
  // The longest cell shown of a column; longer ones are cut with an ellipsis.
  void limit(size_t column, size_t width) { limits_.emplace_back(column, width); }
  // Makes the table at most `width` wide: columns are dropped in the order of `droppable`, until each column of `elastic`
  // has kLeastElastic characters; these share what the others leave. Returns the names of dropped columns. A width of 0
  // is any.
  static constexpr size_t kLeastElastic = 16;
  std::vector<std::string> fit(size_t width, const std::vector<size_t>& droppable,
                               const std::vector<size_t>& elastic);
  std::string text() const;

 private:
  std::vector<std::string> header_;
  std::vector<std::vector<std::string>> rows_;
  std::vector<Tone> tones_;
  std::vector<std::pair<size_t, size_t>> limits_;
  std::vector<size_t> dropped_;  // columns

  size_t width_of_column(size_t column) const;
};

// One line on stderr that is redrawn, with an estimate of what is left; silent in a pipe or with
// --quiet.
class ProgressLine {
 public:
  explicit ProgressLine(bool enabled);
  ~ProgressLine();
  void update(std::string_view phase, int64_t done, int64_t total);
  void clear();

 private:
  bool enabled_;
  bool drawn_ = false;
  std::string phase_;
  std::chrono::steady_clock::time_point phase_start_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace relay::cli
