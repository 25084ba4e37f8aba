// What a reader of Python functions builds beyond plain calls: places in a source, errors at them,
// matches with their patterns, data types and modules of several functions.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <array>

#include "base/codes/batching.h"
#include "base/codes/frontend.h"
#include "base/codes/gradients.h"
#include "base/codes/python.h"
#include "base/diagnostic.h"
#include "bind/convert.h"
#include "bind/own_variables.h"
#include "bind/places.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "ir/bindings.h"
#include "types/infer.h"

namespace relay::bind {
namespace {

struct PySource {
  std::shared_ptr<const SourceFile> file;
};

thread_local Span place;

constexpr std::array kPythonCodes{
    codes::python_source,    codes::python_unsupported, codes::python_name,
    codes::python_mutation,  codes::python_value,       codes::python_static,
    codes::python_call,      codes::python_annotation,  codes::python_limit,
    codes::python_recursion, codes::batch_axis,         codes::batch_sizes,
    codes::batch_ragged,     codes::grad_integers,      codes::frontend_unsupported,
    codes::frontend_dynamic, codes::python_module};

const DiagnosticCode& python_code(const std::string& id) {
  for (const DiagnosticCode& code : kPythonCodes) {
    if (code.id == id) return code;
  }
  throw WrongArgument(("there is no code " + id).c_str());
}

Pattern to_pattern(nb::handle object) {
  if (nb::isinstance<PyNode>(object)) {
    const NodeRef& ref = nb::cast<const PyNode&>(object).ref;
    if (PatternNode::classof(*ref.get()) && !isa<ClauseNode>(ref)) return Pattern::unchecked(ref);
  }
  throw WrongArgument((python_text(object) + " is not a pattern").c_str());
}

std::vector<Pattern> to_patterns(nb::handle list) {
  std::vector<Pattern> out;
  for (nb::handle item : nb::iter(list)) out.push_back(to_pattern(item));
  return out;
}

template <class N, class Fill>
void set_pattern(PyPatternOf<N>* self, Fill&& fill) {
  new (self) PyPatternOf<N>;
  self->ref = make<N>([&](N& n) {
    n.span = place;
    fill(n);
  });
}

Type type_at(nb::handle object) {
  if (nb::isinstance<PyType>(object)) return nb::cast<const PyType&>(object).type();
  throw WrongArgument((python_text(object) + " is not a type").c_str());
}

// Completes a constructor that Python made: its type and tag follow from the data type it is listed in.
Constructor completed(const Constructor& listed, const GlobalTypeVar& header, Type type,
                      int64_t tag) {
  if (listed->belong_to.get() != header.get() &&
      listed->belong_to->name_hint != header->name_hint) {
    throw WrongArgument("the constructor " + listed->name_hint + " belongs to " +
                        listed->belong_to->name_hint + ", not to " + header->name_hint);
  }
  if (listed->type != nullptr) {
    throw WrongArgument("the constructor " + listed->name_hint +
                        " is in another definition already");
  }
  // No program holds it yet: the constructor has no type, and calls need one.
  auto& node = const_cast<ConstructorNode&>(*listed.get());
  node.type = std::move(type);
  node.tag = tag;
  return listed;
}

// A data type and its constructors: rows of a name and the types of its fields, in which `header`
// and `type_vars` may occur, or constructors.
TypeData make_type_data(const PyTypeOf<GlobalTypeVarNode>& header,
                        const std::vector<PyTypeOf<TypeVarNode>>& type_vars,
                        nb::handle constructors) {
  auto name = GlobalTypeVar::unchecked(header.ref);
  std::vector<TypeVar> vars;
  for (const auto& v : type_vars) vars.push_back(TypeVar::unchecked(v.ref));
  // A type without parameters is its name.
  Type result =
      vars.empty() ? Type(name) : type_call(name, std::vector<Type>(vars.begin(), vars.end()));
  std::vector<Constructor> made;
  for (nb::handle row : nb::iter(constructors)) {
    auto tag = static_cast<int64_t>(made.size());
    if (nb::isinstance<PyExprOf<ConstructorNode>>(row)) {
      Constructor listed = nb::cast<const PyExprOf<ConstructorNode>&>(row).get();
      made.push_back(completed(listed, name, func_type(listed->inputs, result, vars), tag));
      continue;
    }
    std::string hint = to_text(row[0], "the name of a constructor");
    std::vector<Type> inputs;
    for (nb::handle input : nb::iter(row[1])) inputs.push_back(type_at(input));
    made.push_back(make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = hint;
      n.inputs = inputs;
      n.belong_to = name;
      n.tag = tag;
      n.span = place;
      n.type = func_type(inputs, result, vars);
    }));
  }
  return make<TypeDataNode>([&](TypeDataNode& t) {
    t.header = name;
    t.type_vars = std::move(vars);
    t.constructors = std::move(made);
    t.span = place;
  });
}

// The module with functions, which may call each other and replace those of the same name, and with
// further data types.
PyModule with_definitions(const PyModule& self, nb::handle functions, nb::handle types) {
  std::vector<GlobalVar> names = self.module->global_vars;
  std::vector<Function> bodies = self.module->functions;
  std::vector<TypeData> definitions = self.module->type_definitions;
  for (auto [key, value] : to_named(functions, "a set of functions")) {
    const auto& f = nb::cast<const PyExprOf<FunctionNode>&>(value);
    check_bindings(f.get());
    GlobalVar name = global_var(to_text(key, "the name of a function"), f.get()->type);
    auto at = std::find_if(names.begin(), names.end(), [&](const GlobalVar& known) {
      return known->name_hint == name->name_hint;
    });
    if (at == names.end()) {
      names.push_back(name);
      bodies.push_back(f.get());
    } else {
      bodies[at - names.begin()] = f.get();
      *at = name;
    }
  }
  for (nb::handle type : nb::iter(types)) {
    auto* definition = as<TypeDataNode>(nb::cast<const PyNode&>(type).ref);
    if (definition == nullptr) {
      throw WrongArgument((python_text(type) + " is not a data type's definition").c_str());
    }
    definitions.push_back(TypeData(definition));
  }
  Module out =
      make_module(std::move(names), std::move(bodies), std::move(definitions), self.module->attrs);
  return {compile_unlocked([&] { return infer_types(with_own_variables(out)); }), self.source_name,
          self.source_hash};
}

void bind_patterns(nb::module_& m) {
  using PyWildcard = PyPatternOf<PatternWildcardNode>;
  nb::class_<PyWildcard, PyNode>(m, "PatternWildcard", "A pattern that fits anything.")
      .def("__init__", [](PyWildcard* self) { set_pattern(self, [](PatternWildcardNode&) {}); });
  using PyPatternVar = PyPatternOf<PatternVarNode>;
  nb::class_<PyPatternVar, PyNode>(m, "PatternVar", "A pattern that names what it fits.")
      .def(
          "__init__",
          [](PyPatternVar* self, const PyExprOf<VarNode>& v) {
            set_pattern(self, [&](PatternVarNode& n) { n.var = v.get(); });
          },
          nb::arg("var"));
  using PyPatternConstructor = PyPatternOf<PatternConstructorNode>;
  nb::class_<PyPatternConstructor, PyNode>(m, "PatternConstructor",
                                           "A pattern for the values of one constructor.")
      .def(
          "__init__",
          [](PyPatternConstructor* self, const PyExprOf<ConstructorNode>& constructor,
             nb::handle patterns) {
            std::vector<Pattern> parts = to_patterns(patterns);
            set_pattern(self, [&](PatternConstructorNode& n) {
              n.constructor = constructor.get();
              n.patterns = std::move(parts);
            });
          },
          nb::arg("constructor"), nb::arg("patterns") = nb::make_tuple());
  using PyPatternTuple = PyPatternOf<PatternTupleNode>;
  nb::class_<PyPatternTuple, PyNode>(m, "PatternTuple", "A pattern for the fields of a tuple.")
      .def(
          "__init__",
          [](PyPatternTuple* self, nb::handle patterns) {
            std::vector<Pattern> parts = to_patterns(patterns);
            set_pattern(self, [&](PatternTupleNode& n) { n.patterns = std::move(parts); });
          },
          nb::arg("patterns"));
  using PyClause = PyPatternOf<ClauseNode>;
  nb::class_<PyClause, PyNode>(m, "Clause", "A pattern, and the value where it fits.")
      .def(
          "__init__",
          [](PyClause* self, nb::handle lhs, const PyExpr& rhs) {
            new (self) PyClause;
            self->ref = clause(to_pattern(lhs), rhs.expr());
          },
          nb::arg("lhs"), nb::arg("rhs"));
}

void bind_data_types(nb::module_& m) {
  using PyGlobalTypeVar = PyTypeOf<GlobalTypeVarNode>;
  nb::class_<PyGlobalTypeVar, PyType>(m, "GlobalTypeVar", "The name of a data type.")
      .def(
          "__init__",
          [](PyGlobalTypeVar* self, const std::string& name) {
            new (self) PyGlobalTypeVar;
            self->ref = global_type_var(name);
          },
          nb::arg("name"));
  nb::class_<PyExprOf<ConstructorNode>, PyExpr>(
      m, "Constructor",
      "Of an algebraic data type.\n\n"
      "inputs: the types of the fields; belong_to: the name of the data type, a `GlobalTypeVar`.\n"
      "`TypeData(header, type_vars, [constructor, ...])` completes it; calls need that.")
      .def(
          "__init__",
          [](PyExprOf<ConstructorNode>* self, const std::string& name_hint, nb::handle inputs,
             const PyGlobalTypeVar& belong_to) {
            std::vector<Type> types;
            for (nb::handle input : nb::iter(inputs)) types.push_back(type_at(input));
            new (self) PyExprOf<ConstructorNode>;
            self->ref = make<ConstructorNode>([&](ConstructorNode& n) {
              n.name_hint = name_hint;
              n.inputs = types;
              n.belong_to = GlobalTypeVar::unchecked(belong_to.ref);
              n.span = place;
            });
          },
          nb::arg("name_hint"), nb::arg("inputs"), nb::arg("belong_to"));
  using PyTypeData = PyTypeOf<TypeDataNode>;
  nb::class_<PyTypeData, PyType>(
      m, "TypeData",
      "The definition of a data type, for `IRModule.with_type`.\n\n"
      "header: `relay.GlobalTypeVar(name)`; the types of fields may refer to it.\n"
      "constructors: each a `Constructor`, or a pair of a name and the types of the fields; what\n"
      "    programs call is in `definition.constructors`.")
      .def(
          "__init__",
          [](PyTypeData* self, const PyGlobalTypeVar& header,
             const std::vector<PyTypeOf<TypeVarNode>>& type_vars, nb::handle constructors) {
            TypeData made = make_type_data(header, type_vars, constructors);
            new (self) PyTypeData;
            self->ref = made;
          },
          nb::arg("header"), nb::arg("type_vars"), nb::arg("constructors"));
}

}  // namespace

const Span& current_place() { return place; }

Span span_of(nb::handle source, int64_t begin, int64_t end) {
  if (source.is_none()) return {};
  return Span::range(nb::cast<const PySource&>(source).file, static_cast<uint32_t>(begin),
                     static_cast<uint32_t>(end));
}

void bind_builders(nb::module_& m) {
  nb::class_<PySource>(m, "SourceFile", "A text that expressions come from.")
      .def(
          "__init__",
          [](PySource* self, const std::string& name, const std::string& text) {
            new (self) PySource{SourceFile::make(name, text)};
          },
          nb::arg("name"), nb::arg("text"));
  m.def(
      "set_place",
      [](nb::handle source, int64_t begin, int64_t end) { place = span_of(source, begin, end); },
      nb::arg("source").none(), nb::arg("begin") = 0, nb::arg("end") = 0,
      "Says where the expressions that this thread builds from now on come from.");
  m.def(
      "fail",
      [](const std::string& code, nb::handle source, int64_t begin, int64_t end,
         const std::string& message, const std::string& expected, const std::string& found,
         const std::string& help) {
        Diagnostic problem(python_code(code), span_of(source, begin, end), message);
        problem.expected(expected).found(found).help(help);
        throw UserError(problem);
      },
      nb::arg("code"), nb::arg("source").none(), nb::arg("begin"), nb::arg("end"),
      nb::arg("message"), nb::arg("expected"), nb::arg("found"), nb::arg("help"),
      "Raises the UserError of a Python function.");
  m.def("with_definitions", &with_definitions, nb::arg("mod"), nb::arg("functions"),
        nb::arg("types"), "The module with further functions and data types, typed.");
  bind_patterns(m);
  bind_data_types(m);
}

}  // namespace relay::bind
