#include "bind/functions.h"
#include "base/quantities.h"

#include <nanobind/stl/string.h>

#include <chrono>
#include <set>

#include "base/codes/runtime.h"
#include "bind/data_values.h"
#include "bind/wrong_argument.h"
#include "node/walk.h"

namespace relay::bind {
namespace {

class CompiledFunctions : public FunctionOwner {
 public:
  CompiledFunctions(runtime::Module module, const Module& types)
      : FunctionOwner(types), module_(std::move(module)) {}

  runtime::Value run(const std::string& name, std::vector<runtime::Value> args,
                     const runtime::RunOptions& options) override {
    return module_.run_values(name, args, options);
  }
  runtime::Value call(const runtime::Value& function, std::vector<runtime::Value> args,
                      const runtime::RunOptions& options) override {
    return module_.call(function, args, options);
  }

 private:
  runtime::Module module_;
};

std::string type_text(const FuncType& type) { return to_string(Type(type)); }

nb::object call_function(FunctionValue& self, const nb::args& args) {
  std::shared_ptr<FunctionOwner> owner = self.owner;
  FuncType type = self.type;
  if (args.size() != type->arg_types.size()) {
    throw UserError(Diagnostic(codes::run_input, {},
                               "a function is called with " + counted(args.size(), "argument") +
                                   ", not " + std::to_string(type->arg_types.size()))
                        .expected(type_text(type)));
  }
  FunctionOwner::Turn turn(*owner);
  Exchange exchange(owner);
  exchange.take_references(self);
  std::vector<runtime::Value> values;
  for (size_t i = 0; i < type->arg_types.size(); ++i) {
    values.push_back(
        to_run_value(args[i], std::to_string(i), type->arg_types[i], owner->types(), exchange));
  }
  exchange.read_captured(owner->types());
  runtime::Value result =
      run_with(exchange, owner->types(), [&](const runtime::RunOptions& options) {
        return owner->call(self.value, std::move(values), options);
      });
  return exchange.result(result, type->ret_type, owner->types());
}

// What an object owns, for the collector of cycles. What a function captured is its owner's too, and
// is let go of in a turn.
int traverse(PyObject* self, visitproc visit, void* arg) {
  Py_VISIT(Py_TYPE(self));
  if (!nb::inst_ready(self)) return 0;
  for (const Reference& r : nb::inst_ptr<FunctionValue>(self)->captured) Py_VISIT(r.object.ptr());
  return 0;
}

int clear(PyObject* self) {
  if (!nb::inst_ready(self)) return 0;
  auto& function = *nb::inst_ptr<FunctionValue>(self);
  function.owner->let_go({{}, std::exchange(function.captured, {})});
  return 0;
}

PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void*>(traverse)},
                        {Py_tp_clear, reinterpret_cast<void*>(clear)},
                        {0, nullptr}};

constexpr const char* kDoc =
    "A function of the language that a program gave: calling it runs the program's code.\n\n"
    "Arguments and results are given as those of the program. It may be an argument of the\n"
    "program that it is of, and lives as long as Python holds it; what it captured lives with\n"
    "it, and a RefValue that it captured has after each call what the function wrote. Calls of\n"
    "the functions of one program take turns.";

}  // namespace

std::recursive_timed_mutex& FunctionOwner::turn() {
  if (process_ != fork_generation()) {
    process_ = fork_generation();
    // The old one may be locked, and stays.
    (void)turn_.release();
    turn_ = std::make_unique<std::recursive_timed_mutex>();
  }
  return *turn_;
}

FunctionOwner::Turn::Turn(FunctionOwner& owner) : owner_(owner), mutex_(owner.turn()) {
  if (mutex_.try_lock()) return;
  run_unlocked([&](const runtime::RunOptions&) {
    while (!mutex_.try_lock_for(std::chrono::milliseconds(20))) check_budget_after_work();
    return 0;
  });
}

FunctionOwner::Turn::~Turn() {
  owner_.drop_gone();
  mutex_.unlock();
}

void FunctionOwner::drop_gone() {
  // What is let go of may hold the last handle of another one.
  while (!gone_.empty()) std::exchange(gone_, {}).clear();
}

void FunctionOwner::let_go(Held held) {
  gone_.push_back(std::move(held));
  std::recursive_timed_mutex& mine = turn();
  if (!mine.try_lock()) return;
  drop_gone();
  mine.unlock();
}

FunctionValue::~FunctionValue() {
  if (owner) owner->let_go({std::move(value), std::move(captured)});
}

nb::object make_function_value(std::shared_ptr<FunctionOwner> owner, runtime::Value value,
                               const Type& type, const TypeParams& sizes) {
  auto* generic = as<FuncTypeNode>(type);
  if (owner == nullptr || generic == nullptr) {
    throw WrongArgument(
        "the result holds a function whose type is not known here: only a program that is built in "
        "this process gives functions");
  }
  FuncType known = FuncType::unchecked(with_type_params(type, sizes));
  std::set<const Node*> own;
  for (const TypeVar& p : known->type_params) own.insert(p.get());
  post_order(known, [&](const Node& node) {
    auto* named = as<DimVarNode>(&node);
    if (named == nullptr || own.contains(named->var.get())) return;
    throw WrongArgument(("the result holds a function of type " + type_text(known) +
                         ", and the size " + named->var->name_hint +
                         " is not known: no argument of the call has it")
                            .c_str());
  });
  return nb::cast(FunctionValue(std::move(owner), std::move(value), std::move(known)));
}

bool exchanges_functions(const Module& mod, const Function& function) {
  bool found = false;
  std::set<const Node*> seen;
  std::vector<NodeRef> left{function->body->type};
  for (const Var& p : function->params) left.push_back(p->type);
  while (!left.empty() && !found) {
    NodeRef type = std::move(left.back());
    left.pop_back();
    if (!type) continue;
    post_order(type, [&](const Node& node) {
      found = found || isa<FuncTypeNode>(&node);
      auto* header = as<GlobalTypeVarNode>(&node);
      if (header == nullptr || !seen.insert(&node).second) return;
      TypeData definition = mod->find_type(header->name_hint);
      if (!definition) return;
      for (const Constructor& c : definition->constructors) {
        left.insert(left.end(), c->inputs.begin(), c->inputs.end());
      }
    });
  }
  return found;
}

void bind_sizes(const Function& function, const std::vector<runtime::Value>& args,
                TypeParams& sizes) {
  std::vector<std::pair<Type, runtime::Value>> left;
  for (size_t i = 0; i < args.size(); ++i) left.emplace_back(function->params[i]->type, args[i]);
  while (!left.empty()) {
    auto [type, value] = std::move(left.back());
    left.pop_back();
    if (auto* tuple = as<TupleTypeNode>(type)) {
      for (size_t i = 0; i < tuple->fields.size(); ++i) {
        left.emplace_back(tuple->fields[i], value.field(i));
      }
    } else if (auto* tensor = as<TensorTypeNode>(type)) {
      // The run refuses an argument of another rank.
      Tensor given = value.tensor();
      for (size_t i = 0; i < std::min(tensor->shape.size(), given.shape().size()); ++i) {
        if (auto* named = as<DimVarNode>(tensor->shape[i])) {
          sizes.emplace(named->var.get(), dim(given.dim(i)));
        }
      }
    }
  }
}

std::shared_ptr<FunctionOwner> owner_of(const runtime::Module& module, const Module& types) {
  for (const runtime::Function& f : module.program().functions) {
    for (const runtime::Instruction& in : f.code) {
      if (in.op == runtime::Opcode::alloc_closure) {
        return std::make_shared<CompiledFunctions>(module.apart(), types);
      }
    }
  }
  return nullptr;
}

void bind_functions(nb::module_& m) {
  nb::class_<FunctionValue>(m, "FunctionValue", kDoc, nb::type_slots(kSlots))
      .def("__call__", &call_function, nb::sig("def __call__(self, *args: object) -> typing.Any"))
      .def_prop_ro(
          "checked_type", [](const FunctionValue& self) { return wrap(self.type); },
          nb::sig("def checked_type(self) -> FuncType"),
          "Its type; a size that an argument of the program had is a number.")
      .def("__repr__",
           [](const FunctionValue& self) {
             return "<relay.FunctionValue " + type_text(self.type) + ">";
           })
      .def(
          "__copy__", [](nb::object self) { return self; },
          nb::sig("def __copy__(self) -> FunctionValue"))
      .def(
          "__deepcopy__", [](nb::object self, nb::handle) { return self; }, nb::arg("memo"),
          nb::sig("def __deepcopy__(self, memo: object) -> FunctionValue"))
      .def(
          "__reduce__",
          [](nb::handle) -> nb::object {
            throw WrongArgument(
                "a function of a compiled program cannot be pickled: it is code of this process; "
                "pickle the module, and build it again");
          },
          nb::sig("def __reduce__(self) -> tuple"));
}

}  // namespace relay::bind
