// Operators whose columns are written in Python: relay.register_op.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

#include "base/codes/frontend.h"
#include "base/codes/python.h"
#include "base/quantities.h"
#include "bind/python_code.h"
#include "bind/tensor_expressions.h"
#include "bind/wrong_argument.h"
#include "extend/operator.h"
#include "extend/plugin.h"
#include "frontend/common/custom_operators.h"
#include "ops/common.h"

namespace relay::bind {
namespace {

using extend::OutsideOperator;
using extend::refuse_result;

std::string described(nb::handle object) { return class_name(object) + " " + python_text(object); }

nb::dict attrs_dict(const Attrs& attrs) {
  nb::dict out;
  if (!attrs) return out;
  for (const auto& [name, value] : attr_values(attrs)) out[name.c_str()] = from_value(value);
  return out;
}

bool is_sequence(nb::handle object) {
  return PyTuple_Check(object.ptr()) || PyList_Check(object.ptr());
}

// A function of Python that gives an expression.
auto definition_of(const std::string& op, const Held& code) {
  return [op, code](const std::vector<Expr>& args, const Attrs& attrs, const Span& span) {
    return in_python(codes::python_operator, span, op + ", definition", [&] {
      nb::list given;
      for (const Expr& a : args) given.append(wrap(a));
      nb::object result = code.get()(*nb::tuple(given), **attrs_dict(attrs));
      if (!nb::isinstance<PyExpr>(result))
        refuse_result(op, "what the definition gives", span, "a relay.Expr", described(result));
      return nb::cast<const PyExpr&>(result).expr();
    });
  };
}

auto relation_of(const std::string& op, const Held& code) {
  return [op, code](const std::vector<Type>& args, const Attrs& attrs, const Span& span) {
    return in_python(codes::python_operator, span, op + ", type relation", [&] {
      nb::list types;
      for (const Type& t : args) types.append(wrap(t));
      nb::object result = code.get()(*nb::tuple(types), **attrs_dict(attrs));
      if (!nb::isinstance<PyType>(result))
        refuse_result(op, "what the type relation gives", span, "a relay.Type", described(result));
      return nb::cast<const PyType&>(result).type();
    });
  };
}

auto compute_of(const std::string& op, const Held& code) {
  return [op, code](const std::vector<tir::Tensor>& inputs, const Attrs& attrs, const Span& span) {
    return in_python(codes::python_operator, span, op + ", compute", [&] {
      nb::list given;
      for (const tir::Tensor& t : inputs) given.append(nb::cast(PyTensor{t}));
      nb::object result = code.get()(*nb::tuple(given), **attrs_dict(attrs));
      std::vector<tir::Tensor> out;
      auto add = [&](nb::handle h) {
        if (!nb::isinstance<PyTensor>(h))
          refuse_result(op, "what the compute function gives", span,
                        "a te.Tensor, or a list of them", described(h));
        out.push_back(nb::cast<const PyTensor&>(h).tensor);
      };
      if (is_sequence(result)) {
        for (nb::handle h : nb::iter(result)) add(h);
      } else {
        add(result);
      }
      return out;
    });
  };
}

GradientRule gradient_of(const std::string& op, const Held& code) {
  return [op, code](const GradientContext& ctx) {
    Expr call(&ctx.call);
    return in_python(codes::python_operator, call->span, op + ", gradient", [&] {
      nb::object adjoint = ctx.adjoints.size() == 1 ? wrap(ctx.adjoints[0]) : nb::object();
      if (ctx.adjoints.size() != 1) {
        nb::list all;
        for (const Expr& a : ctx.adjoints) all.append(wrap(a));
        adjoint = all;
      }
      nb::object result = code.get()(wrap(call), adjoint, wrap(ctx.result));
      if (!is_sequence(result))
        refuse_result(op, "what the gradient gives", call->span,
                      "a list, of an expression or None for each tensor of the arguments",
                      described(result));
      std::vector<Expr> exprs;
      for (nb::handle h : nb::iter(result)) {
        if (h.is_none()) {
          exprs.push_back(nullptr);
        } else if (nb::isinstance<PyExpr>(h)) {
          exprs.push_back(nb::cast<const PyExpr&>(h).expr());
        } else {
          refuse_result(op, "what the gradient gives", call->span, "a relay.Expr or None",
                        described(h));
        }
      }
      return exprs;
    });
  };
}

nb::object from_layout(const Layout& layout) {
  return layout.defined() ? nb::cast(layout.to_string()) : nb::none();
}

// The layouts of a list of texts, with None where nothing is to change.
std::vector<Layout> to_layouts(const std::string& op, nb::handle list, const Span& span) {
  if (!is_sequence(list))
    refuse_result(op, "what the layout rule gives", span, "a list of layouts", described(list));
  std::vector<Layout> out;
  for (nb::handle h : nb::iter(list)) {
    if (h.is_none()) {
      out.emplace_back();
      continue;
    }
    auto layout = PyUnicode_Check(h.ptr()) ? Layout::parse(to_text(h, "a layout")) : std::nullopt;
    if (!layout)
      refuse_result(op, "what the layout rule gives", span, "a layout, such as \"NHWC\", or None",
                    described(h));
    out.push_back(*layout);
  }
  return out;
}

// Integers with scale, zero point and, of vectors, their axis.
nb::object from_quantized(const QuantizedTensor& x) {
  return nb::make_tuple(wrap(x.data), wrap(x.scale), wrap(x.zero), x.axis);
}

QuantizedTensor to_quantized(const std::string& op, nb::handle given, const Span& span) {
  const size_t parts = is_sequence(given) ? nb::len(given) : 0;
  auto part = [&](size_t i) -> Expr {
    const auto e = nb::object(given[i]);
    return nb::isinstance<PyExpr>(e) ? nb::cast<const PyExpr&>(e).expr() : nullptr;
  };
  auto is_part = [&](size_t i) { return part(i) || nb::object(given[i]).is_none(); };
  if ((parts != 3 && parts != 4) || !part(0) || !is_part(1) || !is_part(2) ||
      (parts == 4 && !PyLong_Check(nb::object(given[3]).ptr())))
    refuse_result(op, "what the quantised form gives", span,
                  "(data, scale, zero point) or (data, scale, zero point, axis)", described(given));
  return {part(0), part(1), part(2), parts == 4 ? nb::cast<int64_t>(nb::object(given[3])) : -1};
}

QuantizedRule quantized_of(const std::string& op, const Held& code) {
  return [op, code](const QuantizedCall& q) {
    Expr self(&q.call);
    return in_python(codes::python_operator, q.call.span, op + ", quantised form", [&] {
      nb::list operands;
      for (const auto& x : q.operands) operands.append(x ? from_quantized(*x) : nb::none());
      nb::object wanted = nb::none();
      if (q.wanted != nullptr) {
        wanted =
            nb::make_tuple(q.wanted_dtype.to_string(), wrap(q.wanted->scale), wrap(q.wanted->zero));
      }
      nb::object result = code.get()(wrap(self), operands, wanted);
      std::vector<QuantizedTensor> out;
      if (PyList_Check(result.ptr())) {
        for (nb::handle h : nb::iter(result)) out.push_back(to_quantized(op, h, q.call.span));
      } else if (!result.is_none()) {
        out.push_back(to_quantized(op, result, q.call.span));
      }
      return out;
    });
  };
}

LayoutRule layout_of(const std::string& op, const Held& code) {
  return [op, code](const CallNode& call, std::span<const Layout> offered,
                    const Layout& desired) -> std::optional<LayoutDecision> {
    Expr self(&call);
    return in_python(
        codes::python_operator, call.span, op + ", layout rule",
        [&]() -> std::optional<LayoutDecision> {
          nb::list at_hand;
          for (const Layout& l : offered) at_hand.append(from_layout(l));
          nb::object result = code.get()(wrap(self), at_hand, from_layout(desired));
          if (result.is_none()) return std::nullopt;
          size_t parts = is_sequence(result) ? nb::len(result) : 0;
          if (parts != 2 && parts != 3)
            refuse_result(op, "what the layout rule gives", call.span,
                          "None, or (layouts of arguments, layouts of results, attributes)",
                          described(result));
          LayoutDecision out;
          out.inputs = to_layouts(op, result[0], call.span);
          out.outputs = to_layouts(op, result[1], call.span);
          out.attrs = call.attrs;
          if (parts == 3) {
            if (!call.attrs)
              refuse_result(op, "what the layout rule gives", call.span,
                            "no attributes: the operator has none", described(result[2]));
            std::vector<std::pair<std::string, AttrValue>> values = attr_values(call.attrs);
            for (const auto& [name, value] : to_dict(result[2])) {
              auto known = std::find_if(values.begin(), values.end(),
                                        [&](const auto& v) { return v.first == name; });
              if (known == values.end())
                refuse_result(op, "what the layout rule gives", call.span,
                              "attributes of the operator", "'" + name + "'");
              known->second = value;
            }
            out.attrs = make_attrs(call.attrs->info(), values, op, call.span);
          }
          return out;
        });
  };
}

using Arguments = std::vector<std::pair<std::string, std::string>>;

void register_operator(const std::string& name, const std::string& doc, const Arguments& args,
                       nb::handle attrs, const std::string& fusion,
                       const std::vector<std::vector<std::string>>& examples, nb::handle relation,
                       nb::handle definition, nb::handle compute, nb::handle gradient,
                       nb::handle layout, const std::string& host_kernel, nb::handle moves,
                       nb::handle quantized, const std::string& approximation) {
  OutsideOperator op;
  op.name = name;
  op.doc = doc;
  for (const auto& [arg, sentence] : args) op.args.push_back({arg, sentence});
  for (nb::handle a : nb::iter(attrs)) {
    std::string attr = to_text(a[0], "the name of an attribute");
    try {
      op.attrs.push_back({attr, to_text(a[1], "a type"), to_value(a[2]), to_text(a[3], "a doc")});
    } catch (nb::python_error& raised) {
      if (!raised.matches(PyExc_TypeError) && !raised.matches(PyExc_ValueError)) throw;
      throw WrongArgument(("the attribute " + attr + " has the default " + python_text(a[2]) +
                           ", which is not a number, a text, a dtype or a list of these")
                              .c_str());
    }
  }
  for (const std::vector<std::string>& e : examples)
    op.examples.push_back({.args = e, .attrs = ""});
  if (!fusion.empty()) {
    op.fusion = extend::fusion_class(fusion);
    if (!op.fusion)
      throw WrongArgument(("fusion is 'ElemWise', 'Broadcast', 'Injective', 'CommReduce', "
                           "'OutEWiseFusable' or 'Opaque', not '" +
                           fusion + "'")
                              .c_str());
  }
  if (!relation.is_none()) op.relation = relation_of(name, Held(relation));
  if (!definition.is_none()) op.definition = definition_of(name, Held(definition));
  if (!compute.is_none()) op.compute = compute_of(name, Held(compute));
  if (!gradient.is_none()) op.gradient = gradient_of(name, Held(gradient));
  if (PyUnicode_Check(layout.ptr())) {
    if (to_text(layout, "a layout rule") != "follow")
      throw WrongArgument("a layout rule is a function, or 'follow'");
    op.layout = ops::follow_layout;
  } else if (!layout.is_none()) {
    op.layout = layout_of(name, Held(layout));
  }
  op.host_kernel = host_kernel;
  if (!moves.is_none()) op.moves = ElementMoves{.of = nb::cast<std::vector<size_t>>(moves)};
  if (!quantized.is_none()) op.quantized = quantized_of(name, Held(quantized));
  op.approximation = approximation;
  extend::register_operator(std::move(op));
}

// The function that imports an operator which a front end does not know; None removes it.
void register_converter(const std::string& front_end, const std::string& name,
                        nb::handle function) {
  if (function.is_none()) return register_custom_operator(front_end, name, nullptr);
  Held held(function);
  register_custom_operator(front_end, name, [held, name](const CustomCall& call) {
    const std::string what = "the function for operator " + name;
    return in_python(codes::frontend_attribute, call.span, what, [&] {
      nb::list inputs;
      for (const Expr& e : call.inputs) inputs.append(wrap(e));
      nb::object out =
          held.get()(inputs, nb::bytes(call.options.data(), call.options.size()), call.num_outputs);
      std::vector<Expr> results;
      if (!is_sequence(out)) return std::vector<Expr>{nb::cast<PyExpr>(out).expr()};
      for (nb::handle e : nb::iter(out)) results.push_back(nb::cast<PyExpr>(e).expr());
      return results;
    });
  });
}

nb::object apply_function(const PyExprOf<FunctionNode>& f, const std::vector<PyExpr>& given) {
  std::vector<Expr> args;
  for (const PyExpr& a : given) args.push_back(a.expr());
  if (f.get()->params.size() != args.size()) {
    throw WrongArgument(("the function takes " + counted(f.get()->params.size(), "argument") +
                         ", not " + std::to_string(args.size()))
                            .c_str());
  }
  return wrap(extend::applied(f.get(), args));
}

}  // namespace

void bind_operators(nb::module_& m) {
  m.def("register_op", &register_operator, nb::arg("name"), nb::arg("doc"), nb::arg("args"),
        nb::arg("attrs"), nb::arg("fusion"), nb::arg("examples"), nb::arg("relation").none(),
        nb::arg("definition").none(), nb::arg("compute").none(), nb::arg("gradient").none(),
        nb::arg("layout").none(), nb::arg("host_kernel"), nb::arg("moves").none(),
        nb::arg("quantized").none(), nb::arg("approximation"));
  m.def("register_custom_operator", &register_converter, nb::arg("front_end"), nb::arg("name"),
        nb::arg("function").none());
  m.def("unregister_op", [](const std::string& name) { OpRegistry::global().remove(name); });
  // Path, operators and passes of each plug-in that is a shared library.
  auto row = [](const extend::Plugin& p) { return nb::make_tuple(p.path, p.operators, p.passes); };
  m.def("load_plugin", [row](const std::string& path) { return row(extend::load_plugin(path)); });
  m.def("loaded_plugins", [row] {
    nb::list out;
    for (const extend::Plugin& p : extend::loaded_plugins()) out.append(row(p));
    return out;
  });
  m.def("apply_function", &apply_function, nb::arg("function"), nb::arg("args"),
        "The body of a function with expressions in the place of its parameters.");
}

}  // namespace relay::bind
