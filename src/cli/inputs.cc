#include "cli/inputs.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <set>

#include "base/codes/driver.h"
#include "base/codes/frontend.h"
#include "base/quoted_name.h"
#include "base/suggest.h"
#include "cli/commands.h"
#include "cli/literal.h"
#include "driver/size_options.h"
#include "driver/value_difference.h"
#include "frontend/arrays/npz.h"
#include "ir/op.h"
#include "ir/prepack.h"
#include "node/node.h"
#include "run/arguments.h"
#include "run/npy.h"
#include "runtime/core/strings.h"

namespace relay::cli {

using runtime::DType;
using runtime::Slot;
using runtime::Tensor;

namespace {

// The parameter of that name; UserError E0510 when there is none.
const Slot& slot_of(const runtime::Function& function, const std::string& name) {
  std::vector<std::string_view> names;
  std::string known;
  for (const Slot& s : function.params) {
    if (s.name == name) return s;
    names.push_back(s.name);
    known += (known.empty() ? "" : ", ") + s.name;
  }
  throw UserError(
      Diagnostic(codes::frontend_input, {}, "input " + quoted_name(name) + " does not exist")
          .expected(known.empty() ? "no inputs" : known)
          .help(suggest(name, names)));
}

// Digits of whole numbers that a float type holds exactly.
int mantissa_bits(DType d) {
  return d.is_bfloat16() ? 8 : d.bits == 16 ? 11 : d.bits == 32 ? 24 : 53;
}

// Whether every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from) return true;
  if (to.is_bool() || from.is_bool() || to.is_only_moved() || from.is_only_moved()) return false;
  if (from.is_integer()) {
    int digits = from.bits - (from.is_int() ? 1 : 0);
    if (to.is_floating()) return digits <= mantissa_bits(to);
    if (to.is_uint()) return from.is_uint() && from.bits <= to.bits;
    return digits <= to.bits - 1;
  }
  if (!to.is_floating()) return false;
  // bfloat16 and float16 have different ranges and precisions.
  return to.bits > from.bits && (to.bits > 16 || from == to);
}

// `t` in the dtype where that changes no value, else as it is.
Tensor widened(const Tensor& t, DType dtype) {
  if (t.dtype() == dtype || !holds(dtype, t.dtype())) return t;
  Tensor out = Tensor::empty(dtype, t.shape());
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    if (t.dtype().is_integer()) {
      out.set_from_int(i, t.get_as_int(i));
    } else {
      out.set_from_double(i, t.get_as_double(i));
    }
  }
  return out;
}

[[noreturn]] void bad_option(const std::string& message, const std::string& expected) {
  throw UserError(Diagnostic(codes::driver_option, {}, message).expected(expected));
}

// The array that `--input NAME=FILE.npz` means.
Tensor array_of(const std::string& name, const std::string& file) {
  std::map<std::string, Tensor> arrays = read_npz(file);
  if (auto it = arrays.find(name); it != arrays.end()) return it->second;
  if (arrays.size() == 1) return arrays.begin()->second;
  std::string known;
  for (const auto& [n, array] : arrays)
    known += (known.empty() ? "" : ", ") + escape_for_terminal(n, 100);
  bad_option(quoted_name(file) + " has no array " + quoted_name(name),
             known.empty() ? "no arrays" : known);
}

void read_input(const std::string& text, Inputs& out) {
  auto new_name = [&](const std::string& name) {
    if (out.literals.contains(name) || out.arrays.contains(name) || out.images.contains(name) ||
        out.shapes.shapes.contains(name))
      bad_option("input " + quoted_name(name) + " is given twice", "one --input for each input");
  };
  // Names may have "=" in them; values have none, but files may.
  size_t equals = text.find('=');
  bool npz = text.ends_with(".npz");
  if (npz && equals == std::string::npos) {
    for (auto& [name, array] : read_npz(text)) {
      new_name(name);
      out.arrays[name] = std::move(array);
    }
    return;
  }
  if (equals != std::string::npos && equals > 0 && (npz || text.ends_with(".npy"))) {
    std::string name = text.substr(0, equals), file = text.substr(equals + 1);
    new_name(name);
    out.arrays[name] = npz ? array_of(name, file) : read_npy(file);
    return;
  }
  if (equals != std::string::npos && equals > 0 && is_image_value(text.substr(equals + 1))) {
    std::string name = text.substr(0, equals);
    new_name(name);
    out.images[name] = read_image_input(name, text.substr(equals + 1));
    return;
  }
  equals = text.rfind('=');
  std::string name = equals == std::string::npos ? std::string() : text.substr(0, equals);
  std::string value = equals == std::string::npos ? std::string() : text.substr(equals + 1);
  LiteralKind kind = name.empty() ? LiteralKind::none : literal_kind(value);
  if (kind != LiteralKind::none) {
    new_name(name);
    out.literals[name] = value;
    if (kind != LiteralKind::whole) return;
    // A number that is not a size can only be a value.
    if (value.starts_with('-') || value.size() > 18) return;
    out.shapes.numbers.insert(name);
  }
  if (kind == LiteralKind::none) {
    if (!name.empty()) new_name(name);
    try {
      parse_input_option(text, out.shapes);
    } catch (const UserError& e) {
      Diagnostic d = e.diagnostics().front();
      throw UserError(
          std::move(d)
              .expected("NAME=VALUE, NAME=SHAPE or NAME=FILE")
              .help("x=1.5 and x=[1,2,3] are values, x=1x3x224x224 a shape, x=FILE.npy, "
                    "x=FILE.npz and x=photo.jpg files"));
    }
    return;
  }
  parse_input_option(text, out.shapes);
}

}  // namespace

std::vector<Option> InputFlags::table() {
  return {
      option(
          "--input NAME=VALUE", inputs,
          "An input: x=FILE.npy or x=FILE.npz (FILE.npz alone: every array by its name); an image "
          "x=photo.jpg, with ,resize or ,resize=HxW and ,layout=nchw, ,mean=M and ,std=S (or "
          "R:G:B) for its levels of 0 to 255 behind it; a number, true, false or "
          "a list x=[[1,2],[3,4]]; or its shape, x=1x3x224x224 or x=1x3x224x224:DTYPE, for "
          "random values. One "
          "whole number is the value of an input of rank 0 and the size of one of rank 1, whose "
          "values are a list: "
          "x=[5]; may be repeated"),
      option("--dim NAME=SIZE", dims,
             "The size of an open dimension in random inputs, without it 1, or several sizes "
             "n=1,128 where there is a line for each; the program itself keeps it open. "
             "NAME=LOW..HIGH: the sizes that it may have; may be repeated"),
      option("--random-inputs SEED", seed, "Seed for the inputs that are not given"),
  };
}

namespace {

// A number, a truth value or a list as a tensor; null if it is none of these. If a model declares
// the dtype, the tensor is converted later.
Tensor untyped_literal(const std::string& name, const std::string& value) {
  if (literal_kind(value) == LiteralKind::none) return {};
  if (value == "true" || value == "false" || value == "True" || value == "False") {
    return read_literal(name, value, DType::Bool());
  }
  bool whole = value.find_first_not_of("-0123456789[], \t\n") == std::string::npos;
  return read_literal(name, value, whole ? DType::Int(64) : DType::Float(64));
}

// The text at commas outside of brackets.
std::vector<std::string> split_values(const std::string& text) {
  std::vector<std::string> out{""};
  int depth = 0;
  for (char c : text) {
    depth += c == '[' ? 1 : c == ']' ? -1 : 0;
    if (c == ',' && depth == 0) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

}  // namespace

std::vector<std::string> read_dim_options(const std::vector<std::string>& texts,
                                          ModelOptions& options) {
  std::vector<std::string> ranges;
  for (const std::string& text : texts) {
    if (text.find("..") != std::string::npos) {
      ranges.push_back(text);
      continue;
    }
    auto [name, sizes] = read_sizes("--dim", text);
    if (sizes.size() > 1) {
      bad_option("--dim " + escape_for_terminal(text, 200) + " gives several sizes",
                 "NAME=SIZE, or a range NAME=LOW..HIGH, such as n=1..512");
    }
    if (!options.dims.emplace(name, sizes[0]).second)
      bad_option("dimension " + quoted_name(name) + " is given twice",
                 "one --dim for each dimension");
  }
  return ranges;
}

void read_freeze_options(const std::vector<std::string>& texts, ModelOptions& options) {
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals),
                value = equals == std::string::npos ? "" : text.substr(equals + 1);
    Tensor t;
    if (value.ends_with(".npy") || value.ends_with(".npz")) {
      t = value.ends_with(".npz") ? array_of(name, value) : read_npy(value);
    } else {
      t = equals == 0 ? Tensor() : untyped_literal(name, value);
    }
    if (!t) {
      bad_option("--freeze " + escape_for_terminal(text, 200) + " cannot be read",
                 "INPUT=VALUE: a number, true, false, a list such as [1,2], or FILE.npy");
    }
    if (!options.frozen.emplace(name, std::move(t)).second) {
      bad_option("input " + quoted_name(name) + " is frozen twice", "one --freeze for each input");
    }
  }
}

std::map<std::string, std::vector<Tensor>> read_specialise_options(
    const std::vector<std::string>& texts) {
  std::map<std::string, std::vector<Tensor>> out;
  for (const std::string& text : texts) {
    size_t equals = text.find('=');
    std::string name = text.substr(0, equals);
    std::vector<Tensor> values;
    if (equals != std::string::npos && equals > 0) {
      for (const std::string& v : split_values(text.substr(equals + 1))) {
        values.push_back(untyped_literal(name, v));
      }
    }
    if (values.empty() || !std::ranges::all_of(values, [](const Tensor& t) { return bool(t); })) {
      bad_option("--specialise " + escape_for_terminal(text, 200) + " cannot be read",
                 "INPUT=VALUE,VALUE,...: numbers, or lists such as [0],[0,1]");
    }
    if (!out.emplace(name, std::move(values)).second) {
      bad_option("--specialise names input " + quoted_name(name) + " twice", "one for each input");
    }
  }
  return out;
}

void read_one_specialisation(const std::vector<std::string>& texts, ModelOptions& options) {
  for (auto& [name, values] : read_specialise_options(texts)) {
    if (values.size() > 1) {
      bad_option("--specialise gives several values of input " + quoted_name(name),
                 "one: relay compile makes a program for each");
    }
    options.values[name] = values[0];
  }
}

std::map<std::string, Tensor> given_values(const Inputs& inputs) {
  std::map<std::string, Tensor> out = inputs.arrays;
  for (const auto& [name, text] : inputs.literals) {
    // If this cannot be parsed, the error is reported when the parameter's dtype is known.
    try {
      if (Tensor t = untyped_literal(name, text)) out[name] = std::move(t);
    } catch (const UserError&) {
      continue;
    }
  }
  return out;
}

Inputs InputFlags::read(const std::string& model) const {
  Inputs out;
  for (const std::string& text : inputs) read_input(text, out);
  for (const std::string& text : dims) {
    if (read_range(text, out.ranges)) continue;
    auto [name, sizes] = read_sizes("--dim", text);
    if (out.dims.contains(name) || out.lists.contains(name)) {
      bad_option("dimension " + quoted_name(name) + " is given twice",
                 "one --dim for each dimension");
    }
    if (sizes.size() == 1) {
      out.dims.emplace(name, sizes[0]);
    } else {
      out.lists.emplace(name, std::move(sizes));
    }
  }
  if (!out.images.empty()) out.metadata = metadata_of_file(model);
  return out;
}

std::vector<Inputs> Inputs::single() const {
  std::vector<Inputs> out{*this};
  out[0].lists.clear();
  for (const auto& [name, sizes] : lists) {
    std::vector<Inputs> longer;
    for (const Inputs& i : out) {
      for (int64_t size : sizes) {
        longer.push_back(i);
        longer.back().dims[name] = size;
      }
    }
    out = std::move(longer);
  }
  return out;
}

void Inputs::refuse_lists() const {
  if (lists.empty()) return;
  bad_option("several sizes are given for dimension " + quoted_name(lists.begin()->first),
             "one size: relay bench measures several");
}

void check_shapes(const runtime::Function& function, const ModelOptions& given) {
  auto wrong = [](const Slot& slot, const char* why, std::string found) {
    throw UserError(
        Diagnostic(codes::frontend_input, {}, "input " + quoted_name(slot.name) + " " + why)
            .expected(slot.type_string())
            .found(std::move(found)));
  };
  for (const auto& [name, shape] : given.shapes) {
    const Slot& slot = slot_of(function, name);
    if (slot.is_tensor && slot.tensor.shape.empty() && given.numbers.contains(name)) continue;
    std::string found = runtime::shape_to_string(shape);
    if (!slot.is_tensor) wrong(slot, "has no shape to give", found);
    if (slot.tensor.shape.size() != shape.size()) wrong(slot, "has another rank", found);
    for (size_t i = 0; i < shape.size(); ++i) {
      int64_t fixed = slot.tensor.shape[i];
      if (fixed >= 0 && shape[i] >= 0 && fixed != shape[i]) wrong(slot, "has other sizes", found);
    }
  }
  for (const auto& [name, dtype] : given.dtypes) {
    const Slot& slot = slot_of(function, name);
    if (!slot.is_tensor || !(slot.tensor.dtype == dtype))
      wrong(slot, "has another dtype", dtype.to_string());
  }
}

std::string Arguments::notes(uint64_t seed, const std::string& margin) const {
  if (invented == 0) return "";
  std::string out = margin + std::to_string(invented) + (invented == 1 ? " input" : " inputs") +
                    " not given: random values (seed " + std::to_string(seed) + ")\n";
  for (const auto& [name, size] : sizes) {
    bool named = name.find(' ') == std::string::npos;
    out += margin + (named ? "dimension " : "") + escape_for_terminal(name, 200) + " is " +
           std::to_string(size) + " in them; " +
           (named ? "--dim " + escape_for_terminal(name, 200) + "=SIZE"
                  : std::string("--input NAME=SHAPE")) +
           " sets another size\n";
  }
  return out;
}

std::optional<ModelMetadata> metadata_of_file(const std::string& path) {
  if (is_artifact(path)) return std::nullopt;
  const FrontEnd& front_end = front_end_of(path);
  return front_end.check ? front_end.check(path).metadata : std::nullopt;
}

Arguments make_arguments(const runtime::Function& function, const Inputs& inputs, uint64_t seed) {
  for (const auto& [name, text] : inputs.literals) slot_of(function, name);
  for (const auto& [name, array] : inputs.arrays) slot_of(function, name);
  for (const auto& [name, image] : inputs.images) slot_of(function, name);
  std::vector<Tensor> given;
  for (const Slot& slot : function.params) {
    Tensor t;
    auto array = inputs.arrays.find(slot.name);
    auto literal = inputs.literals.find(slot.name);
    // A whole number is the size where there is a dimension.
    bool size =
        slot.is_tensor && !slot.tensor.shape.empty() && inputs.shapes.numbers.contains(slot.name);
    if (array != inputs.arrays.end()) {
      t = slot.is_tensor ? widened(array->second, slot.tensor.dtype) : array->second;
    } else if (auto image = inputs.images.find(slot.name); image != inputs.images.end()) {
      t = image_value(image->second, slot,
                      inputs.metadata ? inputs.metadata->input(slot.name) : nullptr);
    } else if (literal != inputs.literals.end() && !size) {
      if (!slot.is_tensor) {
        throw UserError(
            Diagnostic(codes::driver_option, {},
                       "the command line has no values for input " + quoted_name(slot.name))
                .found(slot.type_string()));
      }
      t = read_literal(slot.name, literal->second, slot.tensor.dtype);
    }
    given.push_back(t);
  }
  Arguments out;
  OpenSizes sizes(function, inputs.shapes.shapes, inputs.dims, given);
  sizes.check_dims([&](const std::string& name) {
    return suggest(name, {sizes.open().begin(), sizes.open().end()});
  });
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < given.size(); ++i) {
    const Slot& slot = function.params[i];
    if (!given[i] && !slot.is_tensor) {
      throw UserError(Diagnostic(codes::driver_option, {},
                                 "no value can be invented for input " + quoted_name(slot.name))
                          .found(slot.type_string())
                          .help("run a function whose inputs are tensors: --function NAME"));
    }
    out.invented += given[i] ? 0 : 1;
    out.values.emplace_back(
        given[i] ? given[i] : random_tensor(slot.tensor.dtype, sizes.shape_of(slot), random));
  }
  out.sizes = sizes.take_invented();
  return out;
}

Arguments make_arguments(const runtime::Module& module, const std::string& function,
                         const Inputs& inputs, uint64_t seed) {
  const std::string prepack = prepack_function(function);
  if (module.program().find_function(prepack) < 0) {
    return make_arguments(module.function(function), inputs, seed);
  }
  const runtime::Function& once = module.function(prepack);
  // The inputs of the prepack function, whose sizes are known, are passed to it only, unless the
  // function itself reads them as well.
  Inputs of_once, of_each = inputs;
  const std::vector<Slot>& params = module.function(function).params;
  for (const Slot& slot : once.params) {
    bool both = std::ranges::find(params, slot.name, &Slot::name) != params.end();
    auto move = [&](auto& from, auto& to) {
      auto it = from.find(slot.name);
      if (it == from.end()) return;
      to.insert(*it);
      if (!both) from.erase(it);
    };
    move(of_each.literals, of_once.literals);
    move(of_each.arrays, of_once.arrays);
    move(of_each.images, of_once.images);
    move(of_each.shapes.numbers, of_once.shapes.numbers);
  }
  Arguments first = make_arguments(once, of_once, seed);
  std::vector<Tensor> made;
  runtime::flatten_tensors(module.run_values(prepack, first.values), made);
  for (size_t i = 0; i < made.size(); ++i) of_each.arrays[once.results[i].name] = made[i];
  // An input that both read is the same for both, also where it was invented.
  for (size_t i = 0; i < first.values.size(); ++i) {
    const std::string& name = once.params[i].name;
    if (std::ranges::find(params, name, &Slot::name) != params.end()) {
      of_each.literals.erase(name);
      of_each.images.erase(name);
      of_each.arrays[name] = first.values[i].tensor();
    }
  }
  Arguments out = make_arguments(module.function(function), of_each, seed);
  out.invented += first.invented;
  return out;
}

namespace {

std::string hexadecimal(uint64_t h) {
  char buffer[17];
  std::snprintf(buffer, sizeof buffer, "%016llx", static_cast<unsigned long long>(h));
  return buffer;
}

// The first strings, as literals.
std::string first_strings(const Tensor& t) {
  constexpr int64_t kShown = 3;
  constexpr size_t kShownBytes = 40;
  std::string out;
  for (int64_t i = 0; i < std::min(t.num_elements(), kShown); ++i) {
    const std::string literal = to_string(AttrValue(std::string(runtime::string_at(t, i))));
    out += (i > 0 ? ", " : "") + escape_for_terminal(literal, kShownBytes);
  }
  return out + (t.num_elements() > kShown ? ", ..." : "");
}

}  // namespace

std::string digest(const Tensor& t) {
  if (t.dtype().is_string()) return hexadecimal(bit_hash(t));
  std::string type = t.dtype().to_string();
  uint64_t h = hash_bytes(type.data(), type.size());
  for (int64_t d : t.shape()) h = hash_combine(h, static_cast<uint64_t>(d));
  h = hash_bytes(t.data(), t.byte_size(), h);
  return hexadecimal(h);
}

std::string summary(const Tensor& t) {
  if (t.num_elements() == 0) return "empty";
  if (t.dtype().is_string()) return first_strings(t);
  if (t.num_elements() == 1) {
    char buffer[40];
    std::snprintf(buffer, sizeof buffer, "%.7g", t.get_as_double(0));
    return buffer;
  }
  return element_statistics(t);
}

}  // namespace relay::cli
