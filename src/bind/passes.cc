// Passes and instruments that are written in Python.
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "base/codes/passes.h"
#include "bind/compiler.h"
#include "bind/python_code.h"
#include "bind/settings.h"
#include "bind/wrong_argument.h"
#include "extend/pass.h"
#include "node/walk.h"
#include "passes/pass_list.h"
#include "passes/simplify/eliminate_common_subexpr.h"
#include "types/infer.h"

namespace relay::bind {
namespace {

nb::object pass_info(const Pass& pass, double seconds) {
  return nb::module_::import_("relay.transform")
      .attr("PassInfo")(pass.name, pass.opt_level, nb::list(), false, pass.doc, seconds);
}

// Calls the methods that the object has.
class PythonInstrument : public PassInstrument {
 public:
  explicit PythonInstrument(nb::handle object) : object_(object), name_(class_name(object)) {}

  bool should_run(const Pass& pass, const Module& mod) override {
    return call("should_run", pass, mod, 0);
  }
  void before(const Pass& pass, const Module& mod) override {
    call("run_before_pass", pass, mod, 0);
  }
  void after(const Pass& pass, const Module&, const Module& after,
             std::chrono::nanoseconds time) override {
    call("run_after_pass", pass, after, std::chrono::duration<double>(time).count());
  }

 private:
  bool call(const char* method, const Pass& pass, const Module& mod, double seconds) {
    return in_python(
        codes::pass_python, {}, "instrument " + name_ + ", " + method + " of pass " + pass.name,
        [&] {
          nb::object object = object_.get();
          if (!nb::hasattr(object, method)) return true;
          nb::object result = object.attr(method)(PyModule{mod, "", ""}, pass_info(pass, seconds));
          int truth = PyObject_IsTrue(result.ptr());
          if (truth < 0) throw nb::python_error();
          return truth != 0;
        });
  }

  Held object_;
  std::string name_;
};

struct PythonPass {
  std::shared_ptr<const Pass> pass;
  Held code;
};

[[noreturn]] void refuse_result(const std::string& pass, const std::string& wanted,
                                nb::handle found) {
  throw UserError(
      Diagnostic(codes::pass_result, {}, "pass " + pass + " gave something that is no program")
          .expected(wanted)
          .found(class_name(found) + " " + python_text(found)));
}

Module run_on_module(const Held& code, const std::string& name, const Module& mod) {
  return in_python(codes::pass_python, {}, "pass " + name, [&] {
    nb::object result = code.get()(PyModule{mod, "", ""});
    if (!nb::isinstance<PyModule>(result)) refuse_result(name, "a relay.IRModule", result);
    return nb::cast<const PyModule&>(result).module;
  });
}

Module run_on_functions(const Held& code, const std::string& name, const Module& mod) {
  return map_functions(mod, [&](const GlobalVar& global, const Function& f) {
    // Functions of the compiler's own making are passed over.
    if (f->is_primitive()) return f;
    return in_python(codes::pass_python, f->span, "pass " + name + ", @" + global->name_hint, [&] {
      nb::object result = code.get()(wrap(f), PyModule{mod, "", ""});
      if (!nb::isinstance<PyExprOf<FunctionNode>>(result))
        refuse_result(name, "a relay.Function", result);
      return nb::cast<const PyExprOf<FunctionNode>&>(result).get();
    });
  });
}

PythonPass make_pass(nb::handle code, const std::string& name, int64_t level,
                     const std::string& doc, bool of_functions,
                     const std::vector<std::string>& required) {
  extend::check_level(name, level);
  for (const std::string& other : required) find_pass(other);
  Held held(code);
  Pass pass{name, static_cast<int>(level), Form::any, Form::any, doc, nullptr};
  pass.run = [held, name, of_functions, required](const Module& mod, PassContext& ctx) {
    Module in = mod;
    for (const std::string& other : required) in = run_pass(in, find_pass(other), ctx);
    Module out = of_functions ? run_on_functions(held, name, in) : run_on_module(held, name, in);
    return extend::checked_result(in, out, name);
  };
  return {std::make_shared<const Pass>(std::move(pass)), held};
}

PyModule run_python_pass(const PythonPass& self, const PyModule& mod, nb::handle settings,
                         bool always) {
  Settings options = make_options(settings);
  Module out = compile_unlocked([&] {
    Module typed = whole(mod);
    PassContext ctx = pass_context(options);
    return always || ctx.enabled(*self.pass) ? run_pass(typed, *self.pass, ctx) : typed;
  });
  return {out, mod.source_name, mod.source_hash};
}

// The expression with other parts; a part that binds a variable stays a variable.
nb::object with_parts(const PyExpr& self, const std::vector<PyExpr>& parts, nb::handle others) {
  class OneStep : public Rewriter {
   public:
    explicit OneStep(const NodeRef& root) : Rewriter(family::program), root_(root) {}
    NodeRef pre(const NodeRef& node) override {
      bool goes_on = node == root_ || node.get()->info().family != family::expr;
      return goes_on ? NodeRef() : node;
    }

   private:
    NodeRef root_;
  };
  std::unordered_set<const Node*> binders;
  auto bind = [&](const Node& n) {
    for (const Field& f : n.info().fields) {
      if (f.role != Role::binder) continue;
      for (size_t i = 0; i < f.ops->count(f.in(n)); ++i)
        binders.insert(f.ops->get_child(f.in(n), i).get());
    }
  };
  post_order_if(
      self.ref,
      [&](const Node& n) { return &n == self.ref.get() || n.info().family != family::expr; }, bind,
      family::program);
  OneStep step(self.ref);
  size_t i = 0;
  bool changed = false;
  for (nb::handle other : nb::iter(others)) {
    if (i == parts.size()) throw WrongArgument("there are more parts than the expression has");
    const NodeRef& part = parts[i++].ref;
    std::string wanted = binders.contains(part.get())
                             ? "a relay.Var: a function, let or clause binds it"
                             : "a relay.Expr";
    bool fits = nb::isinstance<PyExpr>(other) &&
                (!binders.contains(part.get()) || nb::isinstance<PyExprOf<VarNode>>(other));
    if (!fits) {
      throw UserError(Diagnostic(codes::pass_result, static_cast<const ExprNode*>(part.get())->span,
                                 "an expression was replaced by something that cannot stand there")
                          .expected(wanted)
                          .found(class_name(other) + " " + python_text(other)));
    }
    const NodeRef& now = nb::cast<const PyExpr&>(other).ref;
    if (now == part) continue;
    changed = true;
    step.set(part, now);
  }
  return wrap(changed ? step.run(self.ref) : self.ref);
}

}  // namespace

void Settings::add_instrument(nb::handle object) {
  owned_.push_back(std::make_shared<PythonInstrument>(object));
  instruments.push_back(owned_.back().get());
}

void bind_passes(nb::module_& m) {
  nb::class_<PythonPass>(m, "PythonPass", "A pass that is written in Python.")
      .def("__init__",
           [](PythonPass* self, nb::handle code, const std::string& name, int64_t opt_level,
              const std::string& doc, bool of_functions, const std::vector<std::string>& required) {
             new (self) PythonPass(make_pass(code, name, opt_level, doc, of_functions, required));
           })
      .def("run", &run_python_pass)
      .def("add",
           [](const PythonPass& self, const std::string& place) { add_pass(*self.pass, place); });
  m.def(
      "eliminate_common_subexpr",
      [](const PyModule& mod, const nb::callable& keeps) {
        Module typed = whole(mod);
        return PyModule{eliminate_common_subexpr(typed, condition_of(keeps, "fskip")),
                        mod.source_name, mod.source_hash};
      },
      nb::arg("mod"), nb::arg("keeps"));
  m.def("remove_pass", [](const std::string& name) { return remove_pass(name); });
  m.def("with_parts", &with_parts, nb::arg("expr"), nb::arg("parts"), nb::arg("others"),
        "The expression with other parts, the same object where none differs.");
}

}  // namespace relay::bind
