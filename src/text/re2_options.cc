// What sets of RE2 need of the file of class RE2. As Debian builds RE2's archive, that file alone is code for programs only,
// and cannot be part of a shared library.
#include <re2/re2.h>

namespace re2 {

// Of the options that RE2 has by default; the numbers are those of Regexp::ParseFlags.
int RE2::Options::ParseFlags() const {
  constexpr int kClassNewline = 1 << 2, kOneLine = 1 << 4, kPerlClasses = 1 << 7;
  constexpr int kPerlBoundary = 1 << 8, kPerlExtensions = 1 << 9, kUnicodeGroups = 1 << 10;
  return kClassNewline | kOneLine | kPerlClasses | kPerlBoundary | kPerlExtensions | kUnicodeGroups;
}

// The automaton's progress is not reported.
namespace hooks {

thread_local const RE2* context = nullptr;
DFAStateCacheResetCallback* GetDFAStateCacheResetHook() {
  return [](const DFAStateCacheReset&) {};
}
DFASearchFailureCallback* GetDFASearchFailureHook() {
  return [](const DFASearchFailure&) {};
}

}  // namespace hooks
}  // namespace re2
