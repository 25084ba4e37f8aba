// Arguments and attributes of operator calls, drawn at random: some fit, some do not.
#pragma once

#include <cstdlib>
#include <random>

#include "ir/op.h"
#include "ops/test/programs.h"

namespace relay {

// RELAY_EXAMPLES: so many instead.
inline int calls_of_a_row(int usual) {
  const char* given = std::getenv("RELAY_EXAMPLES");
#ifdef __SANITIZE_ADDRESS__
  usual = (usual + 2) / 3;  // twenty times as slow, and what it looks for shows in few
#endif
  return given == nullptr ? usual : std::atoi(given);
}

class Draw {
 public:
  explicit Draw(uint32_t seed) : random_(seed) {}

  size_t below(size_t n) { return random_() % n; }
  bool once_in(size_t n) { return below(n) == 0; }
  template <class T>
  const T& one_of(const std::vector<T>& list) {
    return list[below(list.size())];
  }

  // A tensor of rank 0 to 6, of few sizes, so that some fit each other.
  std::string tensor(const std::string& like) {
    static const std::vector<std::string> sizes{"1", "2", "3", "4", "8", "2", "3", "0", "n", "?"};
    static const std::vector<std::string> dtypes{"float32", "float64", "int32", "int64",
                                                 "bool",    "float16", "uint8", "int4"};
    std::string dtype = one_of(dtypes);
    size_t comma = like.rfind(", "), end = like.rfind(']');
    if (!once_in(4) && like.starts_with("Tensor[") && end != std::string::npos) {
      dtype = like.substr(comma + 2, end - comma - 2);
    }
    size_t rank = below(7);
    std::string shape;
    for (size_t i = 0; i < rank; ++i) {
      shape +=
          (once_in(40) ? "1099511627776" : one_of(sizes)) + (i + 1 == rank && rank > 1 ? "" : ",");
    }
    return "Tensor[(" + shape + "), " + dtype + "]";
  }

  std::string argument(const std::string& like) {
    if (once_in(2)) return like;
    if (once_in(10)) return "(" + tensor(like) + ", " + tensor(like) + ")";
    return once_in(20) ? "fn (int32) -> int32" : tensor(like);
  }

  std::string attribute(std::string_view type) {
    static const std::vector<std::string> integers{
        "0", "1", "2", "-1", "-2", "100", "-7", "1099511627776", "-9223372036854775808"};
    static const std::vector<std::string> words{"NCHW", "NHWC", "NCHW4c", "OIHW",    "HWI",
                                                "clip", "add",  "linear", "float32", ""};
    auto list = [&](const std::vector<std::string>& from) {
      std::string out;
      for (size_t i = below(5); i > 0; --i) out += (out.empty() ? "" : ", ") + one_of(from);
      return "[" + out + "]";
    };
    if (type == "int") return one_of(integers);
    if (type.starts_with("list")) return list(integers);
    if (type == "float") return one_of<std::string>({"0f", "0.5f", "-2f", "nan", "inf"});
    if (type == "bool") return once_in(2) ? "True" : "False";
    return "\"" + one_of(words) + "\"";
  }

 private:
  std::mt19937 random_;
};

// The example's attributes, with some of the row's that it does not set.
inline std::string with_drawn(Draw& draw, const OpInfo& row, std::string attrs) {
  if (row.attrs == nullptr) return attrs;
  if (draw.once_in(4)) attrs.clear();
  for (const Field& field : row.attrs->fields) {
    bool set = attrs.find(std::string(field.name) + "=") != std::string::npos;
    if (set || !draw.once_in(3)) continue;
    attrs += (attrs.empty() ? "" : ", ") + std::string(field.name) + "=" +
             draw.attribute(field.ops->type_name);
  }
  return attrs;
}

}  // namespace relay
