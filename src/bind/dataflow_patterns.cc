// Dataflow patterns; relay.dataflow_pattern gives them their shape.
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/codes/passes.h"
#include "bind/python_code.h"
#include "passes/pattern/dataflow_pattern.h"
#include "passes/pattern/partition_pattern.h"
#include "passes/pattern/rewrite_patterns.h"

namespace relay::bind {
namespace {

std::vector<nb::object> wrap_all(const std::vector<Expr>& exprs) {
  std::vector<nb::object> out;
  for (const Expr& e : exprs) out.push_back(wrap(e));
  return out;
}

// What a match found. While the callback runs that it is given to it reads the match itself; what is kept longer has a
// copy of all that it may be asked for.
struct PyMatch {
  const DFMatch* live = nullptr;
  std::unordered_map<const DFPattern::Node*, std::vector<Expr>> found;

  std::vector<Expr> all(const DFPattern& part) const {
    if (live != nullptr) return live->find_all(part);
    auto it = found.find(part.get());
    return it == found.end() ? std::vector<Expr>() : it->second;
  }
  void keep() {
    live->for_each([&](const DFPattern::Node& node, const Expr& e) { found[&node].push_back(e); });
    live = nullptr;
  }
};

DFPattern with_condition(const DFPattern& self, nb::handle condition) {
  return self.with(condition_of(condition, "a condition of a pattern"));
}

Expr call_back(const Held& code, const Expr& pre, const Expr& post, const DFMatch& match) {
  return in_python(codes::pass_python, pre->span, "the callback of a pattern", [&] {
    nb::object found = nb::cast(PyMatch{&match, {}});
    nb::object result = code.get()(wrap(pre), wrap(post), found);
    if (Py_REFCNT(found.ptr()) > 1)
      nb::cast<PyMatch&>(found).keep();
    else
      nb::cast<PyMatch&>(found).live = nullptr;
    if (!nb::isinstance<PyExpr>(result)) {
      throw UserError(Diagnostic(codes::pass_result, pre->span,
                                 "the callback of a pattern gave something that is no expression")
                          .expected("a relay.Expr")
                          .found(class_name(result) + " " + python_text(result)));
    }
    return nb::cast<const PyExpr&>(result).expr();
  });
}

nb::object rewrite(nb::handle rules, const PyExpr& expr) {
  std::vector<PatternRewrite> rewrites;
  for (nb::handle rule : nb::iter(rules)) {
    Held code(rule[1]);
    rewrites.push_back({nb::cast<const DFPattern&>(rule[0]),
                        [code](const Expr& pre, const Expr& post, const DFMatch& m) {
                          return call_back(code, pre, post, m);
                        },
                        nb::cast<bool>(rule[2])});
  }
  return wrap(compile_unlocked([&] { return rewrite_patterns(rewrites, expr.expr()); }));
}

nb::object partition(const DFPattern& pattern, const PyExpr& expr, nb::handle attrs,
                     nb::handle check) {
  std::function<bool(const Expr&)> allowed;
  if (!check.is_none()) allowed = condition_of(check, "the check of a partition");
  Dict given = to_dict(attrs);
  return wrap(
      compile_unlocked([&] { return partition_pattern(pattern, expr.expr(), given, allowed); }));
}

std::optional<PyMatch> find_match(const DFPattern& pattern, const PyExpr& expr) {
  DFMatch m;
  if (!compile_unlocked([&] { return m.matches(pattern, expr.expr()); })) return std::nullopt;
  PyMatch out{&m, {}};
  out.keep();
  return out;
}

bool matches(const DFPattern& pattern, const PyExpr& expr) {
  DFMatch m;
  return compile_unlocked([&] { return m.matches(pattern, expr.expr()); });
}

DFPattern make_recursive(nb::handle body) {
  return recursive([&](const DFPattern& self) { return nb::cast<DFPattern>(body(self)); });
}

Type as_type(nb::handle object) { return nb::cast<const PyType&>(object).type(); }

}  // namespace

void bind_dataflow_patterns(nb::module_& m) {
  nb::class_<PyMatch>(m, "DFMatch", "What the parts of a pattern stand for.")
      .def("all",
           [](const PyMatch& self, const DFPattern& part) { return wrap_all(self.all(part)); });
  nb::class_<DFPattern>(m, "DFPattern", "What an expression looks like.")
      .def("call",
           [](const DFPattern& self, const std::vector<DFPattern>& args) { return self(args); })
      .def("call_any", &DFPattern::with_any_args)
      .def("either", [](const DFPattern& a, const DFPattern& b) { return a | b; })
      .def("either_order", [](const DFPattern& op, const DFPattern& a,
                              const DFPattern& b) { return either_order(op, a, b); })
      .def(
          "has_attr",
          [](const DFPattern& self, const std::string& name, nb::handle value) {
            return self.has_attr(name, to_value(value));
          },
          nb::arg("name"), nb::arg("value").none())
      .def("has_dtype",
           [](const DFPattern& self, nb::handle dtype) { return self.has_dtype(to_dtype(dtype)); })
      .def("has_shape", &DFPattern::has_shape)
      .def("has_type",
           [](const DFPattern& self, nb::handle type) { return self.has_type(as_type(type)); })
      .def("where", &with_condition)
      .def("match", &matches)
      .def("find", &find_match)
      .def("partition", &partition, nb::arg("expr"), nb::arg("attrs"), nb::arg("check").none());
  m.def("df_wildcard", &wildcard);
  m.def("df_constant", &is_constant);
  m.def("df_var", &is_var);
  m.def("df_expr", [](const PyExpr& e) { return is_expr(e.expr()); });
  m.def("df_op", &is_op);
  m.def("df_tuple", &is_tuple);
  m.def("df_any_tuple", &is_any_tuple);
  m.def("df_tuple_get_item", &is_tuple_get_item);
  m.def("df_if", &is_if);
  m.def("df_let", &is_let);
  m.def("df_function", &is_function);
  m.def("df_any_function", &is_any_function);
  m.def("df_dominates", &dominates);
  m.def("df_recursive", &make_recursive);
  m.def("df_rewrite", &rewrite);
}

}  // namespace relay::bind
