// External code generators that are written in Python; relay.external gives them their shape.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/codes/passes.h"
#include "bind/python_code.h"
#include "passes/external/external_codegen.h"

namespace relay::bind {
namespace {

// None or a reason.
std::optional<std::string> reason_of(nb::handle result) {
  if (result.is_none()) return std::nullopt;
  return to_text(result, "a reason");
}

std::variant<ExternalCode, Refused> code_of(nb::handle result) {
  if (PyUnicode_Check(result.ptr())) return Refused{to_text(result, "a reason")};
  ExternalCode out{.library = to_text(result[0], "a library"),
                   .function = to_text(result[1], "a function")};
  if (nb::object data = result[2]; !data.is_none()) {
    auto bytes = nb::cast<nb::bytes>(data);
    out.data = std::string(bytes.c_str(), bytes.size());
  }
  return out;
}

// `supports`: a call's check by operator; it, `declines` and `compile` may be None.
void register_codegen(const std::string& name, nb::handle patterns, nb::handle supports,
                      nb::handle declines, nb::handle compile, nb::handle divide,
                      nb::handle explain) {
  ExternalCodegen row{.name = name};
  for (nb::handle p : nb::iter(patterns)) {
    row.patterns.push_back(
        {to_text(p[0], "the name of a pattern"), nb::cast<const DFPattern&>(p[1])});
    nb::object check = p[2];
    if (!check.is_none()) {
      row.patterns.back().check = condition_of(check, name + ", the check of a pattern");
    }
  }
  if (!supports.is_none()) {
    row.supports = [check = condition_of(supports, name + ", supports")](const CallNode& c) {
      return check(Expr(&c));
    };
  }
  if (!declines.is_none()) {
    Held held(declines);
    row.declines = [held, name](const Function& f) {
      return in_python(codes::pass_python, f->span, name + ", declines",
                       [&] { return reason_of(held.get()(wrap(f))); });
    };
  }
  if (!compile.is_none()) {
    Held held(compile);
    row.compile = [held, name](const std::string& function, const Function& f, const Target&) {
      return in_python(codes::pass_python, f->span, name + ", compilation of @" + function, [&] {
        const nb::object result = held.get()(function, wrap(f));
        if (!result.is_none()) return code_of(result);
        throw UserError(Diagnostic(codes::external_codegen, f->span,
                                   "'" + name + "' computes @" + function +
                                       " by a Python function, which a compiled file cannot hold")
                            .help("return a relay.external.Code of a library from `compile`, or "
                                  "use relay run"));
      });
    };
  }
  row.divide = [held = Held(divide), name](const Module& mod) {
    return in_python(codes::pass_python, {}, name + ", division of the program", [&] {
      return nb::cast<const PyModule&>(held.get()(PyModule{mod, "", ""})).module;
    });
  };
  row.explain = [held = Held(explain), name](const Module& divided) {
    return in_python(codes::pass_python, {}, name + ", explanation", [&] {
      return to_text(held.get()(PyModule{divided, "", ""}), "a table");
    });
  };
  register_external_codegen(std::move(row));
}

// Rows (name, pattern, check or None) of a code generator; None where there is none of that name.
nb::object patterns_of(const std::string& name) {
  auto row = find_external_codegen(name);
  if (row == nullptr) return nb::none();
  nb::list out;
  for (const CompositePattern& p : row->patterns) {
    nb::object check = nb::none();
    if (p.check) {
      check = nb::cpp_function([check = p.check](const PyExpr& e) { return check(e.expr()); });
    }
    out.append(nb::make_tuple(p.name, p.pattern, check));
  }
  return out;
}

}  // namespace

void bind_external_codegen(nb::module_& m) {
  m.def("register_external_codegen", &register_codegen, nb::arg("name"), nb::arg("patterns"),
        nb::arg("supports").none(), nb::arg("declines").none(), nb::arg("compile").none(),
        nb::arg("divide"), nb::arg("explain"));
  m.def("external_codegen_names", &external_codegen_names);
  m.def("external_patterns", &patterns_of, nb::arg("name"));
}

}  // namespace relay::bind
