// The words of a command as a new process takes them.
#pragma once

#include <string>
#include <vector>

namespace relay::cli {

// Pointers to the words, which must outlive them, and a null behind them.
inline std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

}  // namespace relay::cli
