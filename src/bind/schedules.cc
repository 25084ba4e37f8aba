// Kernels of the tensor IR, and schedules that rewrite their loops.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_set>

#include "bind/places.h"
#include "bind/tensor_expressions.h"
#include "bind/unlocked.h"
#include "bind/wrong_argument.h"
#include "node/walk.h"
#include "tir/blocks_of_loops.h"
#include "tir/interpret.h"
#include "tir/passes/lower_blocks.h"
#include "tir/schedule/loop_tree.h"
#include "tir/schedule/schedule.h"
#include "tir/text.h"
#include "tir/verify.h"

namespace relay::bind {
namespace {

using tir::BlockRV;
using tir::LoopRV;
using tir::Schedule;

struct PyPrimFunc {
  tir::PrimFunc func;
};

// The named sizes of the inputs, in order; `args` must be placeholders, each once.
PyPrimFunc create(const std::vector<PyTensor>& inputs, const std::vector<PyTensor>& outputs,
                  const std::string& name) {
  std::unordered_set<const Node*> seen;
  std::vector<tir::Var> dims;
  for (const PyTensor& t : inputs) {
    if (!t.tensor->bodies.empty() || t.tensor->imperative)
      throw WrongArgument(("the input " + t.tensor->name + " is not a placeholder").c_str());
    if (!seen.insert(t.tensor.get()).second)
      throw WrongArgument(("the input " + t.tensor->name + " is given twice").c_str());
    for (const tir::PrimExpr& d : t.tensor->shape()) {
      auto* v = as<tir::VarNode>(d);
      if (v != nullptr && seen.insert(v).second) dims.push_back(tir::Var(v));
    }
  }
  // What outputs read that is nowhere computed is an input that was left out.
  std::vector<tir::Tensor> work = tensors_of(outputs);
  while (!work.empty()) {
    tir::Tensor t = work.back();
    work.pop_back();
    if (!seen.insert(t.get()).second) continue;
    if (t->bodies.empty() && !t->imperative)
      throw WrongArgument(("the placeholder " + t->name + " is not among the inputs").c_str());
    for (const tir::Tensor& i : t->inputs) work.push_back(i);
  }
  tir::PrimFunc f = tir::create_prim_func(name, tensors_of(inputs), tensors_of(outputs), dims);
  tir::verify(f);
  return {f};
}

// The kernel with the loops of its statements around blocks; `places` are rows of a statement, its source, and the bytes in it.
PyPrimFunc open_loops(const PyPrimFunc& self, nb::handle places) {
  std::unordered_map<const Node*, Span> known;
  for (nb::handle row : nb::iter(places)) {
    known[nb::cast<const PyStmt&>(row[0]).stmt.get()] =
        span_of(row[1], nb::cast<int64_t>(row[2]), nb::cast<int64_t>(row[3]));
  }
  tir::PrimFunc f = tir::blocks_of_loops(self.func, [&](const tir::StmtNode& s) {
    auto found = known.find(&s);
    return found == known.end() ? Span() : found->second;
  });
  tir::verify(f);
  return {f};
}

// The statements of the kernel on other buffers, with variables and memory of their own: one kernel may have them twice.
PyStmt emit(const PyPrimFunc& self, const std::vector<PyBuffer>& inputs,
            const std::vector<PyBuffer>& outputs) {
  const tir::PrimFuncNode& f = *self.func.get();
  std::vector<PyBuffer> given = inputs;
  given.insert(given.end(), outputs.begin(), outputs.end());
  if (given.size() != f.params.size() || inputs.size() != static_cast<size_t>(f.num_inputs)) {
    throw WrongArgument((f.name + " reads " + std::to_string(f.num_inputs) +
                         " tensors and writes " +
                         std::to_string(static_cast<int64_t>(f.params.size()) - f.num_inputs))
                            .c_str());
  }
  tir::VarMap map;
  for (size_t i = 0; i < given.size(); ++i) {
    const tir::BufferNode& wanted = *f.params[i].get();
    const tir::BufferNode& have = *given[i].buffer.get();
    bool fits = wanted.dtype == have.dtype && wanted.shape.size() == have.shape.size();
    for (size_t d = 0; d < wanted.shape.size() && fits; ++d) {
      const tir::PrimExpr& size = wanted.shape[d];
      if (isa<tir::VarNode>(size)) map.try_emplace(size.get(), have.shape[d]);
      fits = tir::Analyzer().constant_difference(tir::replace_vars(size, map), have.shape[d]) == 0;
    }
    if (!fits) {
      throw WrongArgument(
          (f.name + " is given a tensor of another shape or dtype as " + wanted.name).c_str());
    }
    map[&wanted] = given[i].buffer;
  }
  tir::Stmt body = tir::lower_blocks(self.func)->body;
  tir::VarMap own = map;
  auto renew = [&](const tir::Var& v) { own[v.get()] = tir::var(v->name, v->dtype); };
  post_order(
      body,
      [&](const Node& n) {
        if (auto* l = as<tir::ForNode>(&n)) renew(l->var);
        if (auto* l = as<tir::LetStmtNode>(&n)) renew(l->var);
        if (auto* l = as<tir::LetNode>(&n)) renew(l->var);
        if (auto* a = as<tir::AllocateNode>(&n)) {
          own[a->buffer.get()] = tir::modified(*a->buffer, [&](tir::BufferNode& b) {
            for (tir::PrimExpr& d : b.shape) d = tir::replace_vars(d, map);
          });
        }
      },
      family::tir_stmt | family::tir_expr);
  return {tir::replace_vars(body, own)};
}

// A kernel, or that of a function that relay.prim_func made.
PyPrimFunc kernel_of(nb::handle func) {
  if (nb::isinstance<PyPrimFunc>(func)) return nb::cast<const PyPrimFunc&>(func);
  if (nb::hasattr(func, "kernel")) {
    nb::object made = func.attr("kernel")();
    if (nb::isinstance<PyPrimFunc>(made)) return nb::cast<const PyPrimFunc&>(made);
  }
  throw WrongArgument(("a schedule is of a kernel of te.create_prim_func or of a function made by "
                       "relay.prim_func, not of " +
                       python_text(func))
                          .c_str());
}

// The outputs for arrays of the inputs, by the meaning of the statements.
nb::object run(const PyPrimFunc& self, const nb::args& args) {
  const tir::PrimFuncNode& f = *self.func.get();
  auto inputs = static_cast<size_t>(f.num_inputs);
  if (args.size() != inputs) {
    throw WrongArgument((f.name + " takes " + std::to_string(inputs) + " arrays, not " +
                         std::to_string(args.size()))
                            .c_str());
  }
  std::unordered_map<const Node*, int64_t> sizes;
  std::vector<Tensor> buffers;
  for (size_t i = 0; i < inputs; ++i) {
    const tir::BufferNode& b = *f.params[i].get();
    Tensor t = to_tensor_of(args[i], b.dtype);
    bool fits = t.dtype() == b.dtype && t.shape().size() == b.shape.size();
    for (size_t d = 0; d < b.shape.size() && fits; ++d) {
      auto size = tir::as_int(b.shape[d]);
      int64_t known =
          size ? *size : sizes.try_emplace(b.shape[d].get(), t.shape()[d]).first->second;
      fits = known == t.shape()[d];
    }
    if (!fits)
      throw WrongArgument((b.name + " is given an array of another shape or dtype").c_str());
    buffers.push_back(t.copy());
  }
  std::vector<int64_t> dims;
  for (const tir::Var& v : f.dims) dims.push_back(sizes.at(v.get()));
  for (size_t i = inputs; i < f.params.size(); ++i) {
    std::vector<int64_t> shape;
    for (const tir::PrimExpr& d : f.params[i]->shape) {
      auto size = tir::as_int(d);
      if (!size && !sizes.contains(d.get()))
        throw WrongArgument("the sizes of the result are not those of an input");
      shape.push_back(size ? *size : sizes.at(d.get()));
    }
    buffers.push_back(Tensor::empty(f.params[i]->dtype, shape));
  }
  int64_t error = compile_unlocked([&] { return tir::interpret(self.func, buffers, dims); });
  if (error != 0) throw WrongArgument((f.name + " fails: a check of it does not hold").c_str());
  nb::list out;
  for (size_t i = inputs; i < buffers.size(); ++i) out.append(to_numpy(buffers[i]));
  return nb::len(out) == 1 ? nb::object(out[0]) : nb::object(nb::tuple(out));
}

tir::Scope scope_of(const std::string& name) {
  for (tir::Scope s : {tir::Scope::Global, tir::Scope::Local, tir::Scope::Register}) {
    if (tir::to_string(s) == name) return s;
  }
  throw WrongArgument(("a scope is 'global', 'local' or 'register', not '" + name + "'").c_str());
}

// A step as Python takes it: one that is not legal is an error.
template <class T, class... Args>
auto step(tir::StepResult<T> (Schedule::*take)(Args...)) {
  return [take](Schedule& s, Args... args) {
    tir::StepResult<T> done = (s.*take)(std::forward<Args>(args)...);
    if constexpr (std::is_same_v<T, tir::Done>) {
      std::move(done).value();
    } else {
      return std::move(done).value();
    }
  };
}

}  // namespace

void bind_schedules(nb::module_& m) {
  nb::class_<PyPrimFunc>(m, "TirPrimFunc", "A kernel: buffers, and loops around blocks.")
      .def("__str__", [](const PyPrimFunc& f) { return tir::to_string(f.func); })
      .def("__repr__", [](const PyPrimFunc& f) { return "<te.PrimFunc " + f.func->name + ">"; })
      .def(
          "astext", [](const PyPrimFunc& f) { return tir::to_string(f.func); }, "The text form.")
      .def("emit", &emit, nb::arg("inputs"), nb::arg("outputs"),
           "The statements on these buffers: a kernel is what `te.extern` compiles.")
      .def("__call__", &run);
  m.def("te_create_prim_func", &create);
  m.def("te_open_loops", &open_loops);
  nb::class_<BlockRV>(m, "Block", "A block of a schedule.")
      .def_ro("name", &BlockRV::name)
      .def("__eq__", [](const BlockRV& a, const BlockRV& b) { return a == b; })
      .def("__hash__", [](const BlockRV& b) { return std::hash<std::string>()(b.name) >> 1; })
      .def("__repr__", [](const BlockRV& b) { return "<te.Block " + b.name + ">"; });
  nb::class_<LoopRV>(m, "Loop", "A loop of a schedule.")
      .def_prop_ro("name",
                   [](const LoopRV& l) { return l.var ? l.var->name : std::string("none"); })
      .def("__repr__", [](const LoopRV& l) {
        return "<te.Loop " + (l.var ? l.var->name : std::string("none")) + ">";
      });
  nb::class_<Schedule>(m, "Schedule",
                       "Rewrites the loops of a kernel, one checked and recorded step at a time; "
                       "UserError E0402 for a step that is not legal.")
      .def(
          "__init__", [](Schedule* self, nb::handle f) { new (self) Schedule(kernel_of(f).func); },
          nb::arg("func"))
      .def_prop_ro("func", [](const Schedule& s) { return PyPrimFunc{s.func()}; })
      .def_prop_ro(
          "trace", [](const Schedule& s) { return s.trace_text(); },
          "The steps so far, one a line.")
      .def_static(
          "replay",
          [](nb::handle f, const std::string& trace) {
            return PyPrimFunc{Schedule::replay(kernel_of(f).func, trace)};
          },
          nb::arg("func"), nb::arg("trace"), "The kernel after the steps of a trace.")
      .def(
          "get_block", [](const Schedule& s, const std::string& name) { return s.get_block(name); },
          nb::arg("name"))
      .def("get_blocks", &Schedule::get_blocks)
      .def(
          "get_loops", [](const Schedule& s, const BlockRV& b) { return s.get_loops(b); },
          nb::arg("block"))
      .def("extent", &Schedule::extent, nb::arg("loop"))
      .def("split", step(&Schedule::split), nb::arg("loop"), nb::arg("factors"))
      .def(
          "fuse",
          [](Schedule& s, const std::vector<LoopRV>& loops) { return s.fuse(loops).value(); },
          nb::arg("loops"))
      .def("reorder", step(&Schedule::reorder), nb::arg("loops"))
      .def("parallel", step(&Schedule::parallel), nb::arg("loop"))
      .def("vectorize", step(&Schedule::vectorize), nb::arg("loop"))
      .def("unroll", step(&Schedule::unroll), nb::arg("loop"), nb::arg("factor") = 0)
      .def(
          "partition",
          [](Schedule& s, const LoopRV& loop, int64_t point) {
            tir::Partition p = s.partition(loop, point).value();
            return std::pair(p.head, p.tail);
          },
          nb::arg("loop"), nb::arg("point"))
      .def("compute_inline", step(&Schedule::compute_inline), nb::arg("block"))
      .def("reverse_compute_inline", step(&Schedule::reverse_compute_inline), nb::arg("block"))
      .def("compute_at", step(&Schedule::compute_at), nb::arg("block"), nb::arg("loop"))
      .def("reverse_compute_at", step(&Schedule::reverse_compute_at), nb::arg("block"),
           nb::arg("loop"))
      .def(
          "cache_read",
          [](Schedule& s, const BlockRV& b, const std::string& buffer, const std::string& scope) {
            return s.cache_read(b, buffer, scope_of(scope)).value();
          },
          nb::arg("block"), nb::arg("buffer"), nb::arg("scope"))
      .def(
          "cache_write",
          [](Schedule& s, const BlockRV& b, const std::string& scope) {
            return s.cache_write(b, scope_of(scope)).value();
          },
          nb::arg("block"), nb::arg("scope"))
      .def(
          "set_scope",
          [](Schedule& s, const BlockRV& b, const std::string& scope) {
            s.set_scope(b, scope_of(scope)).value();
          },
          nb::arg("block"), nb::arg("scope"))
      .def("decompose_reduction", step(&Schedule::decompose_reduction), nb::arg("block"),
           nb::arg("loop"))
      .def("rfactor", step(&Schedule::rfactor), nb::arg("block"), nb::arg("loop"));
}

}  // namespace relay::bind
