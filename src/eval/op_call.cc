#include "eval/op_call.h"

#include <algorithm>

#include "base/codes/lowering.h"
#include "base/codes/runtime.h"
#include "ir/op.h"
#include "lower/interface/compute_rule.h"
#include "node/structural.h"
#include "runtime/core/kernel_errors.h"
#include "runtime/core/print.h"
#include "runtime/core/strings.h"
#include "tir/compute.h"
#include "tir/passes/block_sums.h"
#include "tir/passes/lower_blocks.h"

namespace relay {
namespace {

using runtime::Object;
using runtime::ObjectKind;

// A program with endless many shapes does not fill the memory with kernels.
constexpr size_t kMaxKernels = 4096;

[[noreturn]] void fail(const DiagnosticCode& code, const Span& span, std::string message,
                       std::string help = {}) {
  throw RuntimeError(Diagnostic(code, span, std::move(message)).help(std::move(help)));
}

// Calls `visit` for each object of a value in pre-order: tuples, then their fields.
template <class Visit>
void for_each_part(const Object* value, const Visit& visit) {
  std::vector<const Object*> stack{value};
  while (!stack.empty()) {
    const Object* at = stack.back();
    stack.pop_back();
    visit(at);
    if (kind_of(at) != ObjectKind::tuple) continue;
    const runtime::Cell* cell = &runtime::cell_of(at);
    for (uint32_t i = cell->count; i-- > 0;) stack.push_back(cell->fields[i]);
  }
}

// The header is reference-counted.
Tensor shared(const Object* part) { return runtime::tensor_of(const_cast<Object*>(part)); }

// Dtypes and shapes as numbers; equal for arguments that the same kernel takes.
std::vector<int64_t> signature_of(const OpNode& op, std::span<const runtime::Value> args,
                                  const Span& span) {
  std::vector<int64_t> out;
  for (const runtime::Value& arg : args) {
    for_each_part(arg.object(), [&](const Object* part) {
      if (kind_of(part) == ObjectKind::tuple) {
        out.push_back(-1 - int64_t{runtime::cell_of(part).count});
      } else if (kind_of(part) == ObjectKind::tensor) {
        Tensor tensor = shared(part);
        out.push_back(tensor.dtype().key());
        out.push_back(tensor.rank());
        out.insert(out.end(), tensor.shape().begin(), tensor.shape().end());
      } else {
        fail(codes::run_failed, span, op.name + " is applied to something that is not a tensor");
      }
    });
  }
  return out;
}

std::vector<Tensor> tensors_of(std::span<const runtime::Value> values) {
  std::vector<Tensor> out;
  for (const runtime::Value& value : values) {
    for_each_part(value.object(), [&](const Object* part) {
      if (kind_of(part) == ObjectKind::tensor) out.push_back(shared(part));
    });
  }
  return out;
}

Type type_of_tensor(const Tensor& t) {
  return tensor_type(std::vector<int64_t>(t.shape().begin(), t.shape().end()), t.dtype());
}

// The type of a tensor or of a tuple, from the inside out.
Type type_of(const runtime::Value& value) {
  std::vector<const Object*> order;
  for_each_part(value.object(), [&](const Object* part) { order.push_back(part); });
  // Backwards in pre-order a tuple comes after its fields, the first field last.
  std::vector<Type> done;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    if (kind_of(*it) == ObjectKind::tensor) {
      done.push_back(type_of_tensor(shared(*it)));
      continue;
    }
    size_t count = runtime::cell_of(*it).count;
    std::vector<Type> fields(done.rbegin(), done.rbegin() + static_cast<std::ptrdiff_t>(count));
    done.resize(done.size() - count);
    done.push_back(tuple_type(std::move(fields)));
  }
  return done.back();
}

// The value of a type whose tensors are given in order; the inverse of flattening.
runtime::Value value_of(const Type& type, std::vector<Tensor> tensors) {
  std::vector<const TypeNode*> order, stack{type.get()};
  while (!stack.empty()) {
    const TypeNode* t = stack.back();
    stack.pop_back();
    order.push_back(t);
    if (auto* tuple = as<TupleTypeNode>(t)) {
      for (auto f = tuple->fields.rbegin(); f != tuple->fields.rend(); ++f) {
        stack.push_back(f->get());
      }
    }
  }
  std::vector<runtime::Value> done;
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    auto* tuple = as<TupleTypeNode>(*it);
    if (tuple == nullptr) {
      done.emplace_back(std::move(tensors.back()));
      tensors.pop_back();
      continue;
    }
    auto count = static_cast<std::ptrdiff_t>(tuple->fields.size());
    std::vector<runtime::Value> fields(done.rbegin(), done.rbegin() + count);
    done.resize(done.size() - static_cast<size_t>(count));
    done.push_back(runtime::Value::tuple(fields));
  }
  return std::move(done.back());
}

// The type of tensors with the sizes, which are those of all its tensors one after the other.
Type with_sizes(const Type& type, const std::vector<int64_t>& sizes) {
  std::vector<Type> tensors;
  auto next = sizes.begin();
  const std::vector<TensorType> open = *flatten_tensor_types(type);
  for (const TensorType& t : open) {
    std::vector<int64_t> shape(next, next + t->rank());
    next += t->rank();
    runtime::checked_num_elements(t->dtype, shape);
    tensors.push_back(tensor_type(shape, t->dtype));
  }
  return isa<TensorTypeNode>(type) ? tensors[0] : Type(tuple_type(std::move(tensors)));
}

}  // namespace

std::shared_ptr<OpCaller::Kernel> OpCaller::find(const OpNode& op, const Attrs& attrs,
                                                 std::span<const runtime::Value> args,
                                                 const Span& span,
                                                 const std::vector<int64_t>* sizes) {
  std::vector<int64_t> signature = signature_of(op, args, span);
  if (sizes != nullptr) signature.insert(signature.end(), sizes->begin(), sizes->end());
  uint64_t hash = reinterpret_cast<uintptr_t>(&op) ^ (attrs ? structural_hash(attrs) : 0);
  for (int64_t n : signature) hash = (hash ^ static_cast<uint64_t>(n)) * 0x9E3779B97F4A7C15u;
  for (const auto& k : kernels_[hash]) {
    if (k->op == &op && k->signature == signature &&
        (k->attrs == attrs || (k->attrs && attrs && structural_equal(k->attrs, attrs)))) {
      return k;
    }
  }
  auto made = std::make_shared<Kernel>();
  made->op = &op;
  made->attrs = attrs;
  made->signature = std::move(signature);
  Attrs complete = attrs;
  if (!complete && op.row->attrs != nullptr)
    complete = make_attrs(*op.row->attrs, {}, op.name, span);
  std::vector<Type> types;
  std::vector<Expr> params;
  std::vector<tir::Tensor> inputs;
  DimScope dims;
  for (const runtime::Value& arg : args) {
    types.push_back(type_of(arg));
    params.push_back(var("p", types.back()));
    const std::vector<TensorType> parts = *flatten_tensor_types(types.back());
    for (const TensorType& t : parts) {
      inputs.push_back(tir::placeholder("p" + std::to_string(inputs.size()), t->dtype.storage(),
                                        dims.lower(t->shape)));
    }
  }
  made->result = apply_relation(*op.row, types, complete, span);
  if (sizes != nullptr) made->result = with_sizes(made->result, *sizes);
  auto outputs = made->result ? flatten_tensor_types(made->result) : std::nullopt;
  bool is_static = outputs.has_value();
  for (size_t i = 0; is_static && i < outputs->size(); ++i) {
    auto shape = (*outputs)[i]->const_shape();
    is_static = shape.has_value();
    if (is_static) made->outputs.emplace_back((*outputs)[i]->dtype, *shape);
  }
  if (!is_static && outputs.has_value() && data_decides_shape(*op.row)) {
    made->gives_sizes = true;
    made->outputs.clear();
    for (const TensorType& t : *outputs) {
      made->outputs.emplace_back(DType::Int(64), std::vector<int64_t>{t->rank()});
    }
  } else if (!is_static) {
    fail(codes::lower_unsupported, span,
         "the shape of the result of " + op.name + " is not known before it is computed",
         made->result ? "its type is " + to_string(made->result) : "");
  }
  Call call = make<CallNode>([&](CallNode& c) {
    c.op = ref(op);
    c.args = params;
    c.attrs = complete;
    c.span = span;
    c.type = made->result;
  });
  std::vector<tir::Tensor> results;
  for (const tir::Tensor& t : made->gives_sizes ? compute_call_shapes(*call.get(), inputs, dims)
                                                : compute_call(*call.get(), inputs, dims)) {
    // Only intermediate tensors are kept as float64: sums are formed in separate memory.
    bool copied = options_.wide_floats ||
                  std::find(inputs.begin(), inputs.end(), t) != inputs.end() ||
                  std::find(results.begin(), results.end(), t) != results.end();
    results.push_back(
        copied ? tir::compute("copy", t->shape(), [&](const tir::Indices& i) { return t(i); }) : t);
  }
  tir::InterpretOptions options;
  options.wide_floats = options_.wide_floats;
  tir::PrimFunc kernel = tir::create_prim_func(op.name, inputs, results);
  if (!options.wide_floats && options_.compile_kernel)
    made->compiled = options_.compile_kernel(kernel);
  // Long sums are as accurate as in compiled programs.
  if (!options.wide_floats && !made->compiled) kernel = tir::block_sums(tir::lower_blocks(kernel));
  if (!made->compiled) made->interpreter.emplace(kernel, std::vector<int64_t>(), options);
  if (++num_kernels_ > kMaxKernels) {
    kernels_.clear();
    num_kernels_ = 1;
  }
  kernels_[hash].push_back(made);
  return made;
}

std::vector<Tensor> OpCaller::run(Kernel& kernel, const std::vector<Tensor>& inputs,
                                  const Span& span) {
  std::vector<Tensor> buffers = inputs, outputs;
  int64_t error = 0;
  for (const auto& [dtype, shape] : kernel.outputs) {
    int64_t elements = runtime::checked_num_elements(dtype, shape);
    if (options_.reserve) options_.reserve(elements * static_cast<int64_t>(dtype.bytes()));
    outputs.push_back(Tensor::empty(dtype, shape));
    buffers.push_back(outputs.back());
  }
  try {
    std::optional<runtime::DenormalScope> scope;
    if (!options_.wide_floats) scope.emplace(options_.denormals);
    error = kernel.compiled ? kernel.compiled->run(buffers) : kernel.interpreter->run(buffers);
  } catch (const UserError& e) {
    Diagnostic d = e.diagnostics().front();
    d.span = span;
    throw RuntimeError(std::move(d));
  }
  if (error == 0) {
    for (const Tensor& t : outputs) {
      if (t.dtype().is_string()) runtime::own_strings(t);
    }
  } else {
    std::optional<std::string> said = runtime::take_failure();
    if (said && error == RELAY_KERNEL_CHECK_FAILED) fail(codes::run_assertion, span, *said);
    fail(runtime::kernel_error_code(error), span,
         said ? *said : kernel.op->name + " fails: " + runtime::kernel_error_text(error));
  }
  return outputs;
}

runtime::Value OpCaller::call(const OpNode& op, const Attrs& attrs,
                              std::span<const runtime::Value> args, const Span& span) {
  try {
    std::shared_ptr<Kernel> kernel = find(op, attrs, args, span);
    std::vector<Tensor> inputs = tensors_of(args);
    if (kernel->gives_sizes) {
      std::vector<int64_t> sizes;
      for (const Tensor& t : run(*kernel, inputs, span)) {
        sizes.insert(sizes.end(), t.data<int64_t>(), t.data<int64_t>() + t.num_elements());
      }
      kernel = find(op, attrs, args, span, &sizes);
    }
    return value_of(kernel->result, run(*kernel, inputs, span));
  } catch (const UserError& e) {
    // That shapes do not fit is found out in a run: it is the run's failure.
    throw RuntimeError(e.diagnostics().front());
  }
}

}  // namespace relay
