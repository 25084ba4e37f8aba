#include "cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace relay::cli {
namespace {

bool plain() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return (no_color != nullptr && *no_color != '\0') ||
         (term != nullptr && std::string_view(term) == "dumb");
}

bool is_number(const std::string& cell) {
  return !cell.empty() && (cell[0] == '-' || (cell[0] >= '0' && cell[0] <= '9'));
}

// Code points, for alignment of names that are not ASCII.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

std::string cut(const std::string& text, size_t width) {
  if (width_of(text) <= width) return text;
  std::string out;
  size_t count = 0;
  for (char c : text) {
    if ((static_cast<unsigned char>(c) & 0xC0) != 0x80 && ++count > width - 1) break;
    out += c;
  }
  return out + "\u2026";
}

const char* escape_of(Tone tone) {
  switch (tone) {
    case Tone::plain:
      return "";
    case Tone::good:
      return "\x1b[32m";
    case Tone::fair:
      return "\x1b[33m";
    case Tone::poor:
      return "\x1b[31m";
  }
  return "";
}

}  // namespace

size_t terminal_width() {
  winsize size{};
  // NO_COLOR takes the colours away, not the width.
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) return 0;
  return size.ws_col;
}

size_t text_width() {
  constexpr size_t kMost = 100;
  size_t width = terminal_width();
  return width == 0 ? kMost : std::min(width, kMost);
}

bool stdout_is_terminal() { return isatty(STDOUT_FILENO) != 0 && !plain(); }
bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0 && !plain(); }

std::vector<std::string> wrapped(const std::string& text, size_t width) {
  std::vector<std::string> out{""};
  size_t at = 0;
  while (at < text.size()) {
    size_t end = std::min(text.find(' ', at), text.size());
    std::string word = text.substr(at, end - at);
    std::string& line = out.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= width) {
      line += " " + word;
    } else {
      out.push_back(word);
    }
    at = end + 1;
  }
  return out;
}

size_t Table::width_of_column(size_t column) const {
  size_t out = width_of(header_[column]);
  for (const auto& row : rows_) {
    if (column < row.size()) out = std::max(out, width_of(row[column]));
  }
  for (const auto& [c, width] : limits_) {
    if (c == column) out = std::min(out, width);
  }
  return out;
}

std::vector<std::string> Table::fit(size_t width, const std::vector<size_t>& droppable,
                                    const std::vector<size_t>& elastic) {
  std::vector<std::string> out;
  if (width == 0) return out;
  constexpr size_t kGap = 2;
  std::vector<size_t> widths(header_.size());
  for (size_t c = 0; c < widths.size(); ++c) widths[c] = width_of_column(c);
  auto is_in = [](const std::vector<size_t>& list, size_t c) {
    return std::find(list.begin(), list.end(), c) != list.end();
  };
  // The width of a line, with elastic columns at their minimum.
  auto least = [&] {
    size_t sum = 0;
    for (size_t c = 0; c < widths.size(); ++c) {
      if (is_in(dropped_, c)) continue;
      sum += (is_in(elastic, c) ? std::min(widths[c], kLeastElastic) : widths[c]) + kGap;
    }
    return sum - std::min(sum, kGap);
  };
  for (size_t next = 0; next < droppable.size() && least() > width; ++next) {
    dropped_.push_back(droppable[next]);
    out.push_back(header_[droppable[next]]);
  }
  size_t left = width - std::min(width, least());
  for (size_t i = 0; i < elastic.size(); ++i) {
    const size_t c = elastic[i];
    if (is_in(dropped_, c)) continue;
    const size_t base = std::min(widths[c], kLeastElastic);
    const size_t more = std::min(widths[c] - base, left / (elastic.size() - i));
    left -= more;
    limit(c, base + more);
  }
  return out;
}

std::string Table::text() const {
  std::vector<std::vector<std::string>> all{header_};
  all.insert(all.end(), rows_.begin(), rows_.end());
  for (auto& row : all) {
    row.resize(header_.size());
    for (const auto& [column, width] : limits_) row[column] = cut(row[column], width);
  }
  std::vector<size_t> width(header_.size(), 0);
  std::vector<bool> right(header_.size(), !rows_.empty());
  for (size_t r = 0; r < all.size(); ++r) {
    for (size_t c = 0; c < width.size(); ++c) {
      width[c] = std::max(width[c], width_of(all[r][c]));
      if (r > 0 && !all[r][c].empty()) right[c] = right[c] && is_number(all[r][c]);
    }
  }
  bool color = stdout_is_terminal();
  std::string out;
  for (size_t r = 0; r < all.size(); ++r) {
    std::string line;
    for (size_t c = 0; c < width.size(); ++c) {
      if (std::find(dropped_.begin(), dropped_.end(), c) != dropped_.end()) continue;
      std::string pad(width[c] - width_of(all[r][c]), ' ');
      if (!line.empty()) line += "  ";
      line += right[c] ? pad + all[r][c] : all[r][c] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    const char* tone = r == 0 ? "\x1b[1m" : escape_of(tones_[r - 1]);
    out += (color && *tone != '\0' ? tone + line + "\x1b[0m" : line) + "\n";
  }
  return out;
}

ProgressLine::ProgressLine(bool enabled) : enabled_(enabled && stderr_is_terminal()) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::clear() {
  if (drawn_) std::fputs("\r\x1b[K", stderr);
  drawn_ = false;
}

void ProgressLine::update(std::string_view phase, int64_t done, int64_t total) {
  if (!enabled_) return;
  auto now = std::chrono::steady_clock::now();
  if (phase != phase_) {
    phase_ = std::string(phase);
    phase_start_ = now;
  } else if (now - last_ < std::chrono::milliseconds(80)) {
    return;
  }
  last_ = now;
  std::string line = phase_;
  if (total > 0) {
    constexpr int kWidth = 30;
    int filled = static_cast<int>(kWidth * done / total);
    line += " [" + std::string(static_cast<size_t>(filled), '#') +
            std::string(static_cast<size_t>(kWidth - filled), '.') + "] " + std::to_string(done) +
            "/" + std::to_string(total);
    double elapsed = std::chrono::duration<double>(now - phase_start_).count();
    if (done > 0 && elapsed > 0.5) {
      line +=
          ", " +
          format_seconds(elapsed * static_cast<double>(total - done) / static_cast<double>(done)) +
          " left";
    }
  } else {
    line += " ...";
  }
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  std::fflush(stderr);
  drawn_ = true;
}

}  // namespace relay::cli
