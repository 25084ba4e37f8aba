// What the binding says of an argument that a function of the package does not take: relay.ArgumentError,
// a TypeError and a ValueError of Python's with the code E0913.
#pragma once

#include <string>

#include "base/codes/python.h"
#include "base/diagnostic.h"

namespace relay::bind {

class WrongArgument : public UserError {
 public:
  explicit WrongArgument(const std::string& message)
      : UserError(Diagnostic(codes::python_argument, {}, message)), message_(message) {}
  // Without the code, for who says it otherwise.
  const std::string& message() const { return message_; }

 private:
  std::string message_;
};

}  // namespace relay::bind
