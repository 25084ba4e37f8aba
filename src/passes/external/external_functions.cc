#include "passes/external/external_functions.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/codes/passes.h"
#include "ir/external.h"
#include "node/walk.h"
#include "passes/external/external_codegen.h"
#include "passes/external/inline_compiler_functions.h"

namespace relay {
namespace {

bool is_compiled(const Function& f) { return f->has_attr(attr::kExternalFunction); }

bool has_unnamed_sizes(const Type& type) {
  const auto tensors = flatten_tensor_types(type);
  return !tensors || std::ranges::any_of(*tensors, [](const TensorType& t) {
    return std::ranges::any_of(t->shape, is_any);
  });
}
bool has_unnamed_sizes(const FunctionNode& f) {
  return has_unnamed_sizes(f.body->type) ||
         std::ranges::any_of(f.params, [](const Var& p) { return has_unnamed_sizes(p->type); });
}

// The functions that are used without being called.
std::set<std::string> used_as_values(const Module& mod) {
  std::set<std::string> out;
  for (const Function& f : mod->functions) {
    post_order(
        f,
        [&](const Node& n) {
          auto* c = as<CallNode>(&n);
          for_each_child(n, [&](const NodeRef& child) {
            auto* g = as<GlobalVarNode>(child);
            if (g != nullptr && (c == nullptr || child != c->op)) out.insert(g->name_hint);
          });
        },
        family::program);
  }
  return out;
}

std::shared_ptr<const ExternalCodegen> codegen_of(const std::string& name, const Function& f) {
  auto row = find_external_codegen(name);
  if (row != nullptr && row->compile) return row;
  std::string known;
  for (const std::string& n : external_codegen_names()) {
    if (find_external_codegen(n)->compile) known += (known.empty() ? "" : ", ") + n;
  }
  throw UserError(
      Diagnostic(codes::external_codegen, f->span,
                 "no external code generator \"" + name + "\" can compile a function")
          .expected(known.empty() ? "one that is registered; none is" : "one of " + known)
          .found("\"" + name + "\"")
          .help("register it, or let Relay compile the function: "
                "InlineCompilerFunctionsBoundTo"));
}

Constant bytes(const std::string& data) {
  Tensor t = Tensor::empty(DType::UInt(8), {static_cast<int64_t>(data.size())});
  std::memcpy(t.data(), data.data(), data.size());
  return constant(std::move(t));
}

Module compile_external_functions(const Module& mod, PassContext& ctx) {
  const bool any = std::ranges::any_of(mod->functions, [](const Function& f) {
    return compiler_of(*f.get()) != nullptr && !is_compiled(f);
  });
  if (!any) return mod;
  const std::set<std::string> values = used_as_values(mod);
  std::set<std::string> refused;
  // By function that gets data: its variable, which has another type, and the data.
  std::unordered_map<std::string, std::pair<GlobalVar, Expr>> data;
  std::vector<GlobalVar> names = mod->global_vars;
  std::vector<Function> functions = mod->functions;
  for (size_t i = 0; i < functions.size(); ++i) {
    Function& f = functions[i];
    const std::string& name = names[i]->name_hint;
    auto* compiler = compiler_of(*f.get());
    if (compiler == nullptr || is_compiled(f)) continue;
    const std::vector<Expr> params(f->params.begin(), f->params.end());
    auto row = codegen_of(*compiler, f);
    std::variant<ExternalCode, Refused> result = Refused{"its sizes do not follow from its inputs"};
    if (values.contains(name)) {
      result = Refused{"it is used as a value"};
    } else if (!has_unnamed_sizes(*f.get()) && for_arguments(f, params)) {
      result = row->compile(name, f, ctx.target);
    }
    auto* code = std::get_if<ExternalCode>(&result);
    if (code == nullptr) {
      refused.insert(name);
      continue;
    }
    Dict attrs = f->attrs;
    attrs.insert_or_assign(attr::kPrimitive, AttrValue(int64_t{1}));
    attrs.insert_or_assign(attr::kExternalFunction, AttrValue(code->function));
    if (!code->library.empty()) {
      attrs.insert_or_assign(attr::kExternalLibrary, AttrValue(code->library));
    }
    std::vector<Var> inputs = f->params;
    const Constant d = code->data ? bytes(*code->data) : nullptr;
    if (d) inputs.insert(inputs.begin(), var("data", d->type));
    f = function(std::move(inputs), f->body, f->ret_type, f->type_params, std::move(attrs),
                 f->span);
    if (!d) continue;
    names[i] = global_var(name, f->type);
    data.emplace(name, std::pair(names[i], d));
  }
  Module out =
      make_module(std::move(names), std::move(functions), mod->type_definitions, mod->attrs);
  if (!data.empty()) {
    out = map_functions(out, [&](const GlobalVar&, const Function& f) {
      return cast<FunctionNode>(rewrite(
          f,
          [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
            auto* c = as<CallNode>(rebuilt);
            auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
            auto found = g == nullptr ? data.end() : data.find(g->name_hint);
            if (found == data.end()) return rebuilt;
            const auto& [callee, bytes] = found->second;
            std::vector<Expr> args = {bytes};
            args.insert(args.end(), c->args.begin(), c->args.end());
            return call(callee, std::move(args), nullptr, c->span, c->type_args);
          },
          family::program));
    });
  }
  return inline_compiler_functions(out, refused);
}

// Relay's function that calls the kernel.
Function with_kernel(const Function& f) {
  std::vector<Var> params;
  for (const Var& p : f->params) params.push_back(var(p->name_hint, p->type, p->span));
  const Function kernel = function(f->params, f->body, f->ret_type, {}, f->attrs, f->span);
  Dict attrs = f->attrs;
  for (const char* key : {attr::kCompiler, attr::kPrimitive, attr::kGlobalSymbol, attr::kInline,
                          attr::kExternalLibrary, attr::kExternalFunction}) {
    attrs.erase(key);
  }
  const Expr body = call(kernel, std::vector<Expr>(params.begin(), params.end()), nullptr, f->span);
  return function(std::move(params), body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

Module place_external_functions(const Module& mod, PassContext&) {
  if (std::ranges::none_of(mod->functions, is_compiled)) return mod;
  std::set<std::string> called;  // whose sizes a call does not tell by name
  std::vector<GlobalVar> names;
  std::vector<Function> functions;
  auto place = [&](const NodeRef&, NodeRef rebuilt) -> NodeRef {
    auto* c = as<CallNode>(rebuilt);
    auto* g = c == nullptr ? nullptr : as<GlobalVarNode>(c->op);
    const Function f = g == nullptr ? nullptr : mod->find(g->name_hint);
    if (!f || !is_compiled(f)) return rebuilt;
    if (const Function known = for_arguments(f, c->args)) {
      return call(known, c->args, nullptr, c->span);
    }
    called.insert(g->name_hint);
    return rebuilt;
  };
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (is_compiled(mod->functions[i])) continue;
    names.push_back(mod->global_vars[i]);
    functions.push_back(cast<FunctionNode>(rewrite(mod->functions[i], place, family::program)));
  }
  for (size_t i = 0; i < mod->functions.size(); ++i) {
    if (!called.contains(mod->global_vars[i]->name_hint)) continue;
    names.push_back(mod->global_vars[i]);
    functions.push_back(with_kernel(mod->functions[i]));
  }
  return make_module(std::move(names), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace

Module with_external_bodies(const Module& before, const Module& after) {
  if (before == after) return after;
  return map_functions(after, [&](const GlobalVar& name, const Function& f) {
    if (compiler_of(*f.get()) == nullptr) return f;
    const Function was = before->find(name->name_hint);
    const bool changed =
        was && compiler_of(*was.get()) != nullptr && was->body->type && !(was->body == f->body);
    return changed ? was : f;
  });
}

const Pass kCompileExternalFunctions{"CompileExternalFunctions",
                                     0,
                                     Form::any,
                                     Form::any,
                                     "Lets external code generators compile their functions.",
                                     compile_external_functions};

const Pass kPlaceExternalFunctions{
    "PlaceExternalFunctions",
    0,
    Form::any,
    Form::any,
    "Makes kernels of the functions that external code generators have compiled.",
    place_external_functions};

}  // namespace relay
