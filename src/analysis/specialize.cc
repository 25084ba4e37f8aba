#include "analysis/specialize.h"

#include <algorithm>
#include <deque>
#include <map>
#include <unordered_map>

#include "analysis/fresh_names.h"
#include "analysis/retype.h"
#include "ir/type_params.h"
#include "node/walk.h"

namespace relay {
namespace {

// More than any program has that people write; an endless recursion comes here in a moment.
constexpr size_t kMaxInstances = 4096;
// Nodes of a type argument, written out.
constexpr size_t kMaxTypeSize = 4096;

// Thrown where there is no instance, or would be too many.
struct NoInstance {};

struct Instance {
  Function generic;
  std::vector<Type> type_args;
  GlobalVar name;
};

class Instances {
 public:
  explicit Instances(const Module& mod) : mod_(mod), fresh_(mod) {}

  // The instance of a function for closed type arguments.
  const GlobalVar& get(const std::string& name, const std::vector<Type>& type_args) {
    std::string key = name;
    for (const Type& t : type_args) key += " " + key_of(t);
    auto [it, is_new] = known_.emplace(key, nullptr);
    if (!is_new) return it->second;
    Function f = mod_->find(name);
    const bool of_types =
        std::ranges::all_of(f->type_params, [](const TypeVar& t) { return t->kind == Kind::Type; });
    if (!of_types || known_.size() > kMaxInstances) throw NoInstance{};
    TypeParams args = substitution(f, type_args);
    std::vector<Type> params;
    for (const Var& p : f->params) params.push_back(with_type_params(p->type, args));
    Type type = func_type(std::move(params), with_type_params(f->body->type, args));
    it->second = global_var(type_args.empty() ? name : fresh_.fresh(name), type);
    queue_.push_back({f, type_args, it->second});
    return it->second;
  }

  bool next(Instance& out) {
    if (queue_.empty()) return false;
    out = std::move(queue_.front());
    queue_.pop_front();
    return true;
  }

  static TypeParams substitution(const Function& f, const std::vector<Type>& type_args) {
    TypeParams out;
    for (size_t i = 0; i < type_args.size(); ++i) out[f->type_params[i].get()] = type_args[i];
    return out;
  }

 private:
  static std::string key_of(const Type& t) {
    // Written out, what types share counts each time.
    std::unordered_map<const Node*, size_t> sizes;
    post_order(t, [&](const Node& n) {
      size_t size = 1;
      for_each_child(n, [&](const NodeRef& c) { size += sizes[c.get()]; });
      sizes[&n] = std::min(size, kMaxTypeSize + 1);
    });
    if (sizes[t.get()] > kMaxTypeSize) throw NoInstance{};
    return to_string(t);
  }

  const Module& mod_;
  FreshNames fresh_;
  std::map<std::string, GlobalVar> known_;
  std::deque<Instance> queue_;
};

class Specializer : public Retyper {
 public:
  Specializer(Instances& instances, const Instance& instance)
      : instances_(instances),
        instance_(instance),
        args_(Instances::substitution(instance.generic, instance.type_args)) {}

  Function run() {
    const Function& f = instance_.generic;
    Expr body = rewrite_body(f);
    return function(rewritten(f->params), body, body->type, {}, f->attrs, f->span);
  }

 private:
  Type retype(const Type& t) override { return with_type_params(t, args_); }

  Expr retype_call(const CallNode& c, std::vector<Expr> args) override {
    std::vector<Type> type_args = types(c.type_args);
    if (auto* g = as<GlobalVarNode>(c.op)) {
      return call(instances_.get(g->name_hint, type_args), std::move(args), c.attrs, c.span);
    }
    return call(rewritten(c.op), std::move(args), c.attrs, c.span, std::move(type_args));
  }

  Expr retype_global(const GlobalVar& g) override { return instances_.get(g->name_hint, {}); }

  Instances& instances_;
  const Instance& instance_;
  TypeParams args_;
};

}  // namespace

std::optional<Module> specialize(const Module& mod, const std::vector<std::string>& roots) {
  Instances instances(mod);
  std::vector<GlobalVar> globals;
  std::vector<Function> functions;
  try {
    for (const std::string& name : roots) instances.get(name, {});
    for (Instance i; instances.next(i);) {
      globals.push_back(i.name);
      functions.push_back(Specializer(instances, i).run());
    }
  } catch (const NoInstance&) {
    return std::nullopt;
  }
  return make_module(std::move(globals), std::move(functions), mod->type_definitions, mod->attrs);
}

}  // namespace relay
