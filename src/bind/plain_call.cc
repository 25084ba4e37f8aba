// A function of a program for numbers and NumPy arrays of known dtypes and ranks: the shortest way in and out.
//
// The arguments of a call are compared with what it was made for while they are read; for anything else it returns
// NotImplemented, and has no effect.
#include "bind/plain_call.h"

#include <vector>

#include "bind/compiler.h"
#include "bind/device_arrays.h"
#include "bind/exchange.h"
#include "bind/unlocked.h"

namespace relay::bind {
namespace {

std::optional<Tensor> read_plain(nb::handle arg, const runtime::TensorSpec& wanted) {
  if (auto number = plain_number(arg, wanted.dtype)) return number;
  return shown_array(arg, wanted.dtype, wanted.shape.size());
}

}  // namespace

bool takes_plain_values(const Executable& exe, const runtime::Function& f) {
  return exe.functions == nullptr && f.donations.empty() &&
         std::ranges::all_of(f.params, &runtime::Slot::is_tensor);
}

std::optional<PlainArguments> PlainArguments::read(const runtime::Function& f,
                                                   const nb::tuple& args) {
  if (f.params.size() != args.size()) return std::nullopt;
  PlainArguments out;
  out.values_.reserve(f.params.size());
  const int64_t before = runtime::thread_object_bytes();
  size_t i = 0;
  for (nb::handle arg : args) {
    std::optional<Tensor> tensor = read_plain(arg, f.params[i++].tensor);
    if (!tensor) return std::nullopt;
    out.values_.emplace_back(std::move(*tensor));
  }
  out.bytes_ = runtime::thread_object_bytes() - before;
  return out;
}

runtime::Value PlainArguments::run(const runtime::Module& module, const std::string& name) const {
  return run_unlocked([&](const runtime::RunOptions& limits) {
    return module.run_values(name, values_, beside(bytes_, limits));
  });
}

nb::object plain_result(const runtime::Value& result, const Type& type, const Module& types) {
  if (result.is_tensor()) return to_array(result.tensor());
  Exchange exchange;
  return exchange.result(result, type, types);
}

namespace {

class PlainCall {
 public:
  // `args`: arguments such as those of the calls to come.
  PlainCall(const Executable& exe, nb::handle function, const nb::tuple& args)
      : module_(exe.module),
        types_(exe.types()),
        name_(to_text(function, "the name of a function")),
        function_(module_.function(name_)) {
    Function typed = types_ ? types_->find(name_) : nullptr;
    if (typed) result_type_ = typed->body->type;
    for (nb::handle arg : args) classes_.push_back(nb::borrow(arg.type()));
  }

  // Whether calls with such arguments take this way.
  static bool serves(const Executable& exe, nb::handle function, const nb::tuple& args) {
    std::string name = to_text(function, "the name of a function");
    if (exe.module.program().find_function(name) < 0) return false;
    const runtime::Function& f = exe.module.function(name);
    return takes_plain_values(exe, f) && PlainArguments::read(f, args);
  }

  nb::object run(const nb::tuple& args) const {
    nb::object other = nb::borrow(Py_NotImplemented);
    if (args.size() != classes_.size()) return other;
    for (size_t i = 0; i < classes_.size(); ++i) {
      nb::handle arg = args[i];
      if (reinterpret_cast<PyObject*>(Py_TYPE(arg.ptr())) != classes_[i].ptr()) return other;
    }
    const auto values = PlainArguments::read(function_, args);
    return values ? plain_result(values->run(module_, name_), result_type_, types_) : other;
  }

 private:
  runtime::Module module_;
  Module types_;
  std::string name_;
  const runtime::Function& function_;  // of the module
  Type result_type_;
  std::vector<nb::object> classes_;  // of the arguments
};

}  // namespace

void bind_plain_call(nb::module_& m) {
  nb::class_<PlainCall>(m, "PlainCall", "A function of a program on numbers and NumPy arrays.")
      .def_static(
          "of",
          [](const Executable& exe, nb::handle function, const nb::tuple& args) -> nb::object {
            if (!PlainCall::serves(exe, function, args)) return nb::none();
            return nb::cast(PlainCall(exe, function, args));
          },
          nb::arg("module"), nb::arg("function"), nb::arg("args"),
          "The call of a function with such arguments; None for those that it does not take.")
      .def("run", &PlainCall::run, nb::arg("args"),
           "The result; NotImplemented for arguments of other classes, dtypes or ranks.");
}

}  // namespace relay::bind
