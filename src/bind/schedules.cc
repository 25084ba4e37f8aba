// Kernels of the tensor IR, and schedules that rewrite their loops.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <unordered_set>

#include "bind/tensor_expressions.h"
#include "bind/unlocked.h"
#include "tir/interpret.h"
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
      throw nb::type_error(("the input " + t.tensor->name + " is not a placeholder").c_str());
    if (!seen.insert(t.tensor.get()).second)
      throw nb::value_error(("the input " + t.tensor->name + " is given twice").c_str());
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
      throw nb::value_error(("the placeholder " + t->name + " is not among the inputs").c_str());
    for (const tir::Tensor& i : t->inputs) work.push_back(i);
  }
  tir::PrimFunc f = tir::create_prim_func(name, tensors_of(inputs), tensors_of(outputs), dims);
  tir::verify(f);
  return {f};
}

// The outputs for arrays of the inputs, by the meaning of the statements.
nb::object run(const PyPrimFunc& self, const nb::args& args) {
  const tir::PrimFuncNode& f = *self.func.get();
  auto inputs = static_cast<size_t>(f.num_inputs);
  if (args.size() != inputs) {
    throw nb::type_error((f.name + " takes " + std::to_string(inputs) + " arrays, not " +
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
      throw nb::value_error((b.name + " is given an array of another shape or dtype").c_str());
    buffers.push_back(t.copy());
  }
  std::vector<int64_t> dims;
  for (const tir::Var& v : f.dims) dims.push_back(sizes.at(v.get()));
  for (size_t i = inputs; i < f.params.size(); ++i) {
    std::vector<int64_t> shape;
    for (const tir::PrimExpr& d : f.params[i]->shape) {
      auto size = tir::as_int(d);
      if (!size && !sizes.contains(d.get()))
        throw nb::value_error("the sizes of the result are not those of an input");
      shape.push_back(size ? *size : sizes.at(d.get()));
    }
    buffers.push_back(Tensor::empty(f.params[i]->dtype, shape));
  }
  int64_t error = compile_unlocked([&] { return tir::interpret(self.func, buffers, dims); });
  if (error != 0) throw nb::value_error((f.name + " fails: a check of it does not hold").c_str());
  nb::list out;
  for (size_t i = inputs; i < buffers.size(); ++i) out.append(to_numpy(buffers[i]));
  return nb::len(out) == 1 ? nb::object(out[0]) : nb::object(nb::tuple(out));
}

tir::Scope scope_of(const std::string& name) {
  for (tir::Scope s : {tir::Scope::Global, tir::Scope::Local, tir::Scope::Register}) {
    if (tir::to_string(s) == name) return s;
  }
  throw nb::value_error(("a scope is 'global', 'local' or 'register', not '" + name + "'").c_str());
}

}  // namespace

void bind_schedules(nb::module_& m) {
  nb::class_<PyPrimFunc>(m, "TirPrimFunc", "A kernel: buffers, and loops around blocks.")
      .def("__str__", [](const PyPrimFunc& f) { return tir::to_string(f.func); })
      .def("__repr__", [](const PyPrimFunc& f) { return "<te.PrimFunc " + f.func->name + ">"; })
      .def(
          "astext", [](const PyPrimFunc& f) { return tir::to_string(f.func); }, "The text form.")
      .def("__call__", &run);
  m.def("te_create_prim_func", &create);
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
          "__init__", [](Schedule* self, const PyPrimFunc& f) { new (self) Schedule(f.func); },
          nb::arg("func"))
      .def_prop_ro("func", [](const Schedule& s) { return PyPrimFunc{s.func()}; })
      .def_prop_ro(
          "trace", [](const Schedule& s) { return s.trace_text(); },
          "The steps so far, one a line.")
      .def_static(
          "replay",
          [](const PyPrimFunc& f, const std::string& trace) {
            return PyPrimFunc{Schedule::replay(f.func, trace)};
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
      .def("split", &Schedule::split, nb::arg("loop"), nb::arg("factors"))
      .def(
          "fuse", [](Schedule& s, const std::vector<LoopRV>& loops) { return s.fuse(loops); },
          nb::arg("loops"))
      .def("reorder", &Schedule::reorder, nb::arg("loops"))
      .def("parallel", &Schedule::parallel, nb::arg("loop"))
      .def("vectorize", &Schedule::vectorize, nb::arg("loop"))
      .def("unroll", &Schedule::unroll, nb::arg("loop"), nb::arg("factor") = 0)
      .def(
          "partition",
          [](Schedule& s, const LoopRV& loop, int64_t point) {
            tir::Partition p = s.partition(loop, point);
            return std::pair(p.head, p.tail);
          },
          nb::arg("loop"), nb::arg("point"))
      .def("compute_inline", &Schedule::compute_inline, nb::arg("block"))
      .def("reverse_compute_inline", &Schedule::reverse_compute_inline, nb::arg("block"))
      .def("compute_at", &Schedule::compute_at, nb::arg("block"), nb::arg("loop"))
      .def("reverse_compute_at", &Schedule::reverse_compute_at, nb::arg("block"), nb::arg("loop"))
      .def(
          "cache_read",
          [](Schedule& s, const BlockRV& b, const std::string& buffer, const std::string& scope) {
            return s.cache_read(b, buffer, scope_of(scope));
          },
          nb::arg("block"), nb::arg("buffer"), nb::arg("scope"))
      .def(
          "cache_write",
          [](Schedule& s, const BlockRV& b, const std::string& scope) {
            return s.cache_write(b, scope_of(scope));
          },
          nb::arg("block"), nb::arg("scope"))
      .def(
          "set_scope",
          [](Schedule& s, const BlockRV& b, const std::string& scope) {
            s.set_scope(b, scope_of(scope));
          },
          nb::arg("block"), nb::arg("scope"))
      .def("decompose_reduction", &Schedule::decompose_reduction, nb::arg("block"), nb::arg("loop"))
      .def("rfactor", &Schedule::rfactor, nb::arg("block"), nb::arg("loop"));
}

}  // namespace relay::bind
