#include "extend/plugin.h"
#include "base/quantities.h"

#include <cxxabi.h>
#include <dlfcn.h>

#include <cstring>
#include <deque>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>

#include "base/codes/extensions.h"
#include "base/fork.h"
#include "extend/function_text.h"
#include "extend/operator.h"
#include "extend/pass.h"
#include "extend/tensor_function.h"
#include "ir/text/text.h"
#include "node/structural.h"
#include "ops/common.h"
#include "passes/pass_list.h"
#include "passes/pattern/rewrite_patterns.h"
#include "relay/plugin.h"
#include "runtime/external_kernels.h"

using relay::UserError;

// ---- What the C interface only knows by name

struct relay_call {
  std::vector<std::string> types;
  std::map<std::string, std::string> attrs;
};

struct relay_reply {
  std::optional<std::string> answer;
  std::string failure;
};

struct relay_plugin {
  relay::extend::Plugin made;
  std::string error;
  bool is_loading = true;
};

namespace relay::extend {
namespace {

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

[[noreturn]] void refuse_spec(const std::string& name, const std::string& what) {
  throw UserError(Diagnostic(codes::plugin_spec, {}, "what a plug-in adds is incomplete: " + what)
                      .found(name.empty() ? "no name" : "'" + name + "'"));
}

// The structure as far as the plug-in knows it.
template <class Spec>
Spec checked_spec(const Spec* given, const char* kind) {
  if (given == nullptr || given->size < sizeof(size_t) || given->size > sizeof(Spec))
    refuse_spec("", std::string("the size of ") + kind + " is not that of this interface");
  Spec out{};
  std::memcpy(&out, given, given->size);
  if (out.name == nullptr) refuse_spec("", std::string(kind) + " without a name");
  if (out.doc == nullptr) refuse_spec(out.name, std::string(kind) + " without a sentence about it");
  return out;
}

std::vector<std::string> texts(const char* const* list, size_t size, const std::string& name) {
  if (size > 0 && list == nullptr) refuse_spec(name, "a list that is null");
  std::vector<std::string> out;
  for (size_t i = 0; i < size; ++i) {
    if (list[i] == nullptr) refuse_spec(name, "a list with a null in it");
    out.emplace_back(list[i]);
  }
  return out;
}

// Runs a callback; what it answered, or nothing when it declined. UserError E1304 when it failed.
template <class F>
std::optional<std::string> ask(const std::string& what, const Span& span, const F& callback) {
  auto failed = [&](const std::string& why) {
    return UserError(Diagnostic(codes::plugin_failed, span, what + ": " + why));
  };
  relay_reply reply;
  relay_plugin_status status = RELAY_PLUGIN_FAILED;
  try {
    status = callback(&reply);
  } catch (abi::__forced_unwind&) {
    throw;
  } catch (const std::exception& e) {
    throw failed(std::string("an exception was thrown out of a callback: ") + e.what());
  } catch (...) {
    throw failed("an exception was thrown out of a callback");
  }
  if (status == RELAY_PLUGIN_DECLINED) return std::nullopt;
  if (status == RELAY_PLUGIN_OK) return reply.answer.value_or("");
  if (status != RELAY_PLUGIN_FAILED)
    throw failed("a callback gave the status " + std::to_string(static_cast<int>(status)) +
                 ", which is none");
  throw failed(reply.failure.empty() ? "it failed, and did not say why" : reply.failure);
}

relay_call described(const std::vector<Type>& types, const Attrs& attrs) {
  relay_call out;
  for (const Type& t : types) out.types.push_back(to_string(t));
  if (attrs) {
    for (const auto& [name, value] : attr_values(attrs)) out.attrs[name] = to_string(value);
  }
  return out;
}

std::string answer_of(const std::string& what, const relay_call& call, const Span& span,
                      relay_plugin_callback callback, void* state) {
  auto answer = ask(what, span, [&](relay_reply* r) { return callback(state, &call, r); });
  if (!answer || answer->empty())
    throw UserError(Diagnostic(codes::plugin_failed, span, what + ": it gave no answer"));
  return *answer;
}

std::string answer_for(const std::string& what, const std::vector<Type>& types, const Attrs& attrs,
                       const Span& span, relay_plugin_callback callback, void* state) {
  return answer_of(what, described(types, attrs), span, callback, state);
}

std::vector<Type> types_of(const std::vector<Expr>& exprs) {
  std::vector<Type> out;
  for (const Expr& e : exprs) out.push_back(e->type);
  return out;
}

// ---- Operators

AttrSpec attribute(const relay_attribute_spec& given, const std::string& op) {
  if (given.name == nullptr || given.type == nullptr || given.value == nullptr)
    refuse_spec(op, "an attribute without a name, a type or a default");
  const std::string type = given.type;
  AttrSpec out{given.name, type, {}, text_or_empty(given.doc)};
  // A value of the type, for the description by which the default is read.
  if (type == "bool") out.value = AttrValue(false);
  if (type == "int") out.value = AttrValue(int64_t{0});
  if (type == "float") out.value = AttrValue(0.0);
  if (type == "string") out.value = AttrValue(std::string());
  if (type == "dtype") out.value = AttrValue(std::string("float32"));
  if (type.starts_with("list of ")) out.value = AttrValue(ValueList{});
  AttrsInfo one = describe_attrs(op + ".Attrs", {out});
  Attrs read = parse_attrs(*one, out.name + "=" + given.value, op);
  out.value = attr_values(read)[0].second;
  return out;
}

// The adjoints that a gradient's text gives.
std::vector<Expr> adjoints_of(const Function& gradient, const GradientContext& ctx) {
  std::vector<Expr> args = ctx.call.args;
  std::vector<Expr> adjoints;
  auto tensors = flatten_tensor_types(ctx.call.type);
  for (size_t i = 0; i < ctx.adjoints.size(); ++i) {
    // Where the end result does not depend on a result.
    adjoints.push_back(
        ctx.adjoints[i]
            ? ctx.adjoints[i]
            : call("zeros_like", {tuple_get_item(ctx.result, static_cast<int64_t>(i))}));
  }
  args.push_back(adjoints.size() == 1 ? adjoints[0] : tuple(adjoints));
  args.push_back(ctx.result);
  Expr all = instantiated(gradient, args);
  std::vector<Expr> out;
  auto* fields = as<TupleTypeNode>(all->type);
  if (fields == nullptr) return {all};
  for (size_t i = 0; i < fields->fields.size(); ++i) {
    auto* none = as<TupleTypeNode>(fields->fields[i]);
    bool is_none = none != nullptr && none->fields.empty();
    out.push_back(is_none ? Expr() : tuple_get_item(all, static_cast<int64_t>(i)));
  }
  return out;
}

TensorFunction read_tensor_function(const std::string& op, const std::string& text, size_t count) {
  TensorFunction f = TensorFunction::read(op + ", tensor function", text);
  if (f.num_inputs() != count)
    refuse_spec(op, "a tensor function of " + counted(f.num_inputs(), "parameter") +
                        " that are read, for " + counted(count, "argument"));
  return f;
}

// The columns of an operator that is a tensor function.
void add_compute(OutsideOperator& op, const relay_operator_spec& spec) {
  const size_t count = op.args.size();
  std::function<TensorFunction(const relay_call&, const Span&)> function;
  if (spec.compute != nullptr) {
    TensorFunction only = read_tensor_function(op.name, spec.compute, count);
    function = [only](const relay_call&, const Span&) { return only; };
  } else {
    function = [spec, name = op.name, count](const relay_call& call, const Span& span) {
      std::string text =
          answer_of(name + ", tensor function", call, span, spec.make_compute, spec.state);
      return read_tensor_function(name, text, count);
    };
  }
  op.relation = [function](const std::vector<Type>& args, const Attrs& attrs, const Span& span) {
    relay_call call = described(args, attrs);
    return function(call, span).relation(args, span);
  };
  op.compute = [function](const std::vector<tir::Tensor>& inputs, const Attrs& attrs,
                          const Span& span) {
    relay_call call = described({}, attrs);
    for (const tir::Tensor& t : inputs) {
      std::string shape;
      for (const tir::PrimExpr& size : t->shape()) shape += tir::to_string(size) + ", ";
      if (t->rank() > 1) shape.resize(shape.size() - 2);
      if (t->rank() == 1) shape.pop_back();
      call.types.push_back("Tensor[(" + shape + "), " + t->dtype.to_string() + "]");
    }
    return function(call, span).compute(inputs);
  };
}

void add_operator(Plugin& plugin, const relay_operator_spec* given) {
  const auto spec = checked_spec(given, "an operator");
  OutsideOperator op;
  op.name = spec.name;
  op.doc = spec.doc;
  for (const std::string& arg : texts(spec.args, spec.num_args, op.name))
    op.args.push_back({arg, "The argument " + arg + "."});
  if (spec.num_attrs > 0 && spec.attrs == nullptr) refuse_spec(op.name, "a list that is null");
  for (size_t i = 0; i < spec.num_attrs; ++i) op.attrs.push_back(attribute(spec.attrs[i], op.name));
  const size_t count = op.args.size();
  const std::string what = op.name + ", definition";
  int ways = (spec.definition != nullptr) + (spec.define != nullptr) + (spec.compute != nullptr) +
             (spec.make_compute != nullptr);
  if (ways != 1)
    refuse_spec(op.name,
                "an operator has a definition, a tensor function, or a callback that gives one");
  if (spec.compute != nullptr || spec.make_compute != nullptr) {
    add_compute(op, spec);
  } else if (spec.definition != nullptr) {
    Function definition = read_function(what, spec.definition, count);
    op.definition = [definition](const std::vector<Expr>& args, const Attrs&, const Span&) {
      return instantiated(definition, args);
    };
  } else {
    op.definition = [what, spec](const std::vector<Expr>& args, const Attrs& attrs,
                                 const Span& span) {
      std::string text = answer_for(what, types_of(args), attrs, span, spec.define, spec.state);
      return instantiated(read_function(what, text, args.size()), args);
    };
  }
  if (spec.host_kernel != nullptr || spec.host_function != nullptr) {
    if (!op.compute)
      refuse_spec(op.name, "a host kernel of an operator that is not a tensor function");
    op.host_kernel = text_or_empty(spec.host_kernel);
    if (op.host_kernel.empty()) refuse_spec(op.name, "a host kernel without a name");
  }
  if (spec.relation != nullptr) {
    op.relation = [what = op.name + ", type relation", spec](const std::vector<Type>& args,
                                                             const Attrs& attrs, const Span& span) {
      return parse_type(answer_for(what, args, attrs, span, spec.relation, spec.state));
    };
  }
  if (spec.gradient != nullptr) {
    Function gradient = read_function(op.name + ", gradient", spec.gradient, count + 2);
    op.gradient = [gradient](const GradientContext& ctx) { return adjoints_of(gradient, ctx); };
  }
  if (spec.layout != nullptr) {
    if (std::string_view(spec.layout) != "follow")
      refuse_spec(op.name, "a layout rule other than \"follow\"");
    op.layout = ops::follow_layout;
  }
  std::string name = op.name;
  const std::string host_kernel = op.host_kernel;
  register_operator(std::move(op));
  if (spec.host_function != nullptr) {
    runtime::register_host_kernel(host_kernel, spec.host_function);
  }
  plugin.operators.push_back(std::move(name));
}

// ---- Passes

template <class Spec>
void add_checked_pass(Plugin& plugin, const Spec& spec,
                      std::function<Module(const Module& mod)> run) {
  std::string name = spec.name;
  check_level(name, spec.opt_level);
  add_pass({name, spec.opt_level, Form::any, Form::any, spec.doc,
            [name, run = std::move(run)](const Module& mod, PassContext&) {
              return checked_result(mod, run(mod), name);
            }},
           text_or_empty(spec.place));
  plugin.passes.push_back(std::move(name));
}

void add_program_pass(Plugin& plugin, const relay_pass_spec* given) {
  const auto spec = checked_spec(given, "a pass");
  if (spec.run == nullptr) refuse_spec(spec.name, "a pass without a callback");
  const std::string what = std::string("pass ") + spec.name;
  add_checked_pass(plugin, spec, [spec, what](const Module& mod) {
    std::string text = print_module(mod);
    auto answer =
        ask(what, {}, [&](relay_reply* r) { return spec.run(spec.state, text.c_str(), r); });
    return answer && !answer->empty() ? parse_module("<" + what + ">", *answer) : mod;
  });
}

void add_rewrite(Plugin& plugin, const relay_rewrite_spec* given) {
  const auto spec = checked_spec(given, "a rewrite");
  const std::string name = spec.name, what = "rewrite " + name;
  if (spec.pattern == nullptr || (spec.replacement == nullptr && spec.replace == nullptr))
    refuse_spec(spec.name, "a rewrite without a pattern or a replacement");
  auto parameters = [&](const char* text) {
    Expr e = parse_expr("<" + what + ", pattern>", text);
    auto* f = as<FunctionNode>(e);
    return f == nullptr ? size_t{0} : f->params.size();
  };
  std::vector<std::string> constants = texts(spec.constants, spec.num_constants, spec.name);
  size_t count = parameters(spec.pattern);
  Function shape = read_function(what + ", pattern", spec.pattern, count);
  FunctionPattern pattern = function_pattern(shape, {constants.begin(), constants.end()});
  Function replacement;
  if (spec.replacement != nullptr)
    replacement = read_function(what + ", replacement", spec.replacement, count);
  PatternRewrite rewrite{pattern.pattern, nullptr};
  rewrite.run = [=](const Expr& pre, const Expr& post, const DFMatch& match) {
    std::vector<Expr> args;
    for (const DFPattern& p : pattern.params) args.push_back(match[p]);
    Function f = replacement;
    if (spec.replace != nullptr) {
      relay_call asked = described(types_of(args), nullptr);
      auto answer =
          ask(what, pre->span, [&](relay_reply* r) { return spec.replace(spec.state, &asked, r); });
      if (!answer) return post;
      if (!f) f = read_function(what + ", replacement", *answer, count);
    }
    Expr out = instantiated(f, args);
    if (pre->type && !structural_equal(out->type, pre->type)) {
      refuse_result(name, "the type of the replacement", pre->span, to_string(pre->type),
                    to_string(out->type));
    }
    return out;
  };
  add_checked_pass(plugin, spec, [rewrite](const Module& mod) {
    return map_functions(mod, [&](const GlobalVar&, const Function& f) {
      // Functions of the compiler's own making are passed over.
      if (f->is_primitive()) return f;
      return Function::unchecked(rewrite_patterns({&rewrite, 1}, f));
    });
  });
}

// ---- The table. Nothing is thrown through it.

template <class F>
relay_plugin_status guarded(relay_plugin* plugin, const F& work) {
  if (plugin == nullptr) return RELAY_PLUGIN_FAILED;
  try {
    plugin->error.clear();
    if (!plugin->is_loading)
      refuse_spec("", "something is added while the plug-in is loaded, or never");
    work();
    return RELAY_PLUGIN_OK;
  } catch (const std::exception& e) {
    plugin->error = e.what();
    return RELAY_PLUGIN_FAILED;
  }
}

relay_plugin_api table_for(relay_plugin* plugin) {
  relay_plugin_api api{};
  api.version = RELAY_PLUGIN_API_VERSION;
  api.plugin = plugin;
  api.last_error = [](const relay_plugin* p) { return p == nullptr ? "" : p->error.c_str(); };
  api.add_operator = [](relay_plugin* p, const relay_operator_spec* spec) {
    return guarded(p, [&] { add_operator(p->made, spec); });
  };
  api.add_pass = [](relay_plugin* p, const relay_pass_spec* spec) {
    return guarded(p, [&] { add_program_pass(p->made, spec); });
  };
  api.add_rewrite = [](relay_plugin* p, const relay_rewrite_spec* spec) {
    return guarded(p, [&] { add_rewrite(p->made, spec); });
  };
  api.num_args = [](const relay_call* call) { return call->types.size(); };
  api.arg_type = [](const relay_call* call, size_t i) {
    return i < call->types.size() ? call->types[i].c_str() : nullptr;
  };
  api.attr = [](const relay_call* call, const char* name) -> const char* {
    auto it = name == nullptr ? call->attrs.end() : call->attrs.find(name);
    return it == call->attrs.end() ? nullptr : it->second.c_str();
  };
  api.answer = [](relay_reply* reply, const char* text) {
    if (text == nullptr) return RELAY_PLUGIN_FAILED;
    reply->answer = text;
    return RELAY_PLUGIN_OK;
  };
  api.fail = [](relay_reply* reply, const char* message) {
    reply->failure = text_or_empty(message);
    return RELAY_PLUGIN_FAILED;
  };
  return api;
}

// ---- Loading

struct Loaded {
  relay_plugin plugin;
  relay_plugin_api api;
};

struct Registry {
  ForkSafeMutex mutex;
  // Plug-ins keep pointers to their entries.
  std::deque<Loaded> entries;
};

Registry& registry() {
  static auto* all = new Registry;
  return *all;
}

[[noreturn]] void refuse_file(const DiagnosticCode& code, const std::string& path,
                              const std::string& why, const std::string& help = {}) {
  throw UserError(
      Diagnostic(code, {}, "the plug-in '" + path + "' cannot be loaded: " + why).help(help));
}

void take_back(const Plugin& made) {
  for (const std::string& name : made.passes) remove_pass(name);
  for (const std::string& name : made.operators) OpRegistry::global().remove(name);
}

}  // namespace

Plugin load_plugin(const std::string& path) {
  // With a slash: a bare name would be searched for in the system's folders.
  std::error_code error;
  std::string file = std::filesystem::canonical(path, error).string();
  if (error) refuse_file(codes::plugin_file, path, error.message());
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  for (const Loaded& l : r.entries) {
    if (l.plugin.made.path == file) return l.plugin.made;
  }
  void* library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) refuse_file(codes::plugin_file, path, text_or_empty(dlerror()));
  struct Close {
    void* library;
    ~Close() {
      if (library != nullptr) dlclose(library);
    }
  } close{library};
  auto* version = reinterpret_cast<uint32_t (*)()>(dlsym(library, "relay_plugin_version"));
  auto* init = reinterpret_cast<relay_plugin_status (*)(const relay_plugin_api*)>(
      dlsym(library, "relay_plugin_init"));
  if (version == nullptr || init == nullptr)
    refuse_file(codes::plugin_file, path,
                std::string("it has no ") +
                    (version == nullptr ? "relay_plugin_version" : "relay_plugin_init"),
                "a plug-in includes relay/plugin.h and says RELAY_PLUGIN(function)");
  if (uint32_t found = version(); found != RELAY_PLUGIN_API_VERSION)
    refuse_file(codes::plugin_version, path,
                "it is of version " + std::to_string(found) + " of the interface, this is " +
                    std::to_string(RELAY_PLUGIN_API_VERSION),
                "compile it with the header of this Relay");
  Loaded& entry = r.entries.emplace_back();
  entry.plugin.made.path = file;
  entry.api = table_for(&entry.plugin);
  try {
    ask("plug-in " + path, {}, [&](relay_reply* reply) {
      relay_plugin_status status = init(&entry.api);
      reply->failure = entry.plugin.error;
      return status == RELAY_PLUGIN_DECLINED ? RELAY_PLUGIN_FAILED : status;
    });
  } catch (...) {
    take_back(entry.plugin.made);
    r.entries.pop_back();
    throw;
  }
  entry.plugin.is_loading = false;
  close.library = nullptr;
  return entry.plugin.made;
}

std::vector<Plugin> loaded_plugins() {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::vector<Plugin> out;
  for (const Loaded& l : r.entries) out.push_back(l.plugin.made);
  return out;
}

}  // namespace relay::extend
