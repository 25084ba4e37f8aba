// Modules: the version, definitions of types and functions, and what is left of a text with errors.
#include <algorithm>

#include "base/codes/text.h"
#include "base/suggest.h"
#include "ir/op.h"
#include "ir/text/prelude/prelude.h"
#include "ir/text/reader.h"
#include "ir/text/text.h"
#include "node/walk.h"

namespace relay {
namespace {

using text::GiveUp;
using text::PreludePart;
using text::Reader;
using text::Token;
using text::TokenKind;

void read_version(Reader& r, bool required) {
  if (!r.is("#")) {
    if (!required) return;
    r.report(codes::text_bad_version, r.span(r.peek()), "a module starts with its version")
        .expected("#[version = \"0.0.5\"]")
        .help("put that line first");
    return;
  }
  try {
    r.take();
    r.expect("[");
    r.expect_word("version");
    r.expect("=");
    Token v = r.expect(TokenKind::string, "a version string");
    if (v.text != "\"0.0.5\"") {
      r.report(codes::text_bad_version, r.span(v), "this version of the text format is not known")
          .expected("\"0.0.5\"")
          .found(std::string(v.text));
    }
    r.expect("]");
  } catch (const GiveUp&) {
  }
}

class ModuleReader {
 public:
  explicit ModuleReader(Reader& r) : r_(r) {}

  // The definitions that are whole and depend on such only.
  Module read() {
    read_version(r_, true);
    bool types_are_whole = define(text::reached_prelude(r_.tokens()));
    for (const auto& [name, entry] : r_.globals()) {
      if (functions_.contains(name)) continue;
      r_.unknown(codes::text_unbound_name, name, entry.second, "there is no function @" + name,
                 [&] {
                   std::vector<std::string_view> known;
                   for (const auto& [n, f] : functions_) known.push_back(n);
                   return known;
                 });
    }
    if (!types_are_whole) return make_module({}, {});
    drop_dependants();
    return whole();
  }

  // The module with further definitions of the prelude.
  Module extend(const Module& mod, const std::vector<PreludePart>& prelude) {
    for (size_t i = 0; i < mod->functions.size(); ++i) {
      const GlobalVar& g = mod->global_vars[i];
      r_.add_global(g);
      order_.push_back(g);
      functions_.emplace(g->name_hint, mod->functions[i]);
    }
    types_ = mod->type_definitions;
    for (const TypeData& t : types_) {
      r_.types.emplace(t->header->name_hint, t->header);
      for (const Constructor& c : t->constructors) r_.constructors.emplace(c->name_hint, c);
    }
    define(prelude);
    return whole(mod->attrs);
  }

 private:
  Module whole(Dict attrs = {}) {
    std::vector<GlobalVar> names;
    std::vector<Function> functions;
    for (const GlobalVar& g : order_) {
      const Function& f = functions_.at(g->name_hint);
      if (!f) continue;
      names.push_back(g);
      functions.push_back(f);
    }
    return make_module(std::move(names), std::move(functions), std::move(types_), std::move(attrs));
  }

  // Reads the definitions of the text, and those of the prelude behind them. Definitions may be
  // used before they stand: the names of all types come first, then their constructors, then the
  // functions. False when a type has errors.
  bool define(const std::vector<PreludePart>& prelude) {
    auto everywhere = [&](auto&& read) {
      size_t begin = r_.at();
      read();
      r_.go_to(begin);
      for (const PreludePart& part : prelude) r_.read_other(part.source, part.tokens, read);
    };
    r_.broken = false;
    everywhere([&] { declare_types(); });
    everywhere([&] { define_types(); });
    bool types_are_whole = !r_.broken;
    everywhere([&] {
      while (!r_.at_end()) definition();
    });
    return types_are_whole;
  }

  // ---- Types

  void declare_types() {
    for (; !r_.at_end(); r_.take()) {
      if (!r_.is_word("type") || !r_.at_definition()) continue;
      const Token& name = r_.peek(1);
      std::string text(name.text);
      if (!r_.types.emplace(text, global_type_var(text)).second) {
        r_.report(codes::text_duplicate_name, r_.span(name),
                  "the type " + text + " is defined twice");
      }
    }
  }

  void define_types() {
    bool is_extern = false;
    while (!r_.at_end()) {
      bool is_type = r_.is_word("type") && r_.at_definition();
      bool after_extern = std::exchange(is_extern, r_.is_word("extern"));
      r_.take();
      if (!is_type || !defined_types_.insert(std::string(r_.peek().text)).second) continue;
      try {
        types_.push_back(type_data(after_extern));
      } catch (const GiveUp&) {
      } catch (const UserError& e) {
        r_.report(e);
      }
      r_.forget_locals();
    }
  }

  TypeData type_data(bool is_extern) {
    Token name = r_.take();
    GlobalTypeVar header = r_.types.at(std::string(name.text));
    std::vector<TypeVar> vars = text::read_type_params(r_);
    std::vector<Constructor> constructors;
    if (!is_extern) {
      r_.expect("{");
      if (!r_.accept("}")) {
        do {
          auto tag = static_cast<int64_t>(constructors.size());
          constructors.push_back(constructor(header, vars, tag));
        } while (r_.more("}"));
      }
    }
    return make<TypeDataNode>([&](TypeDataNode& t) {
      t.header = header;
      t.type_vars = std::move(vars);
      t.constructors = std::move(constructors);
      t.span = r_.span(name);
    });
  }

  Constructor constructor(const GlobalTypeVar& header, const std::vector<TypeVar>& vars,
                          int64_t tag) {
    Token name = r_.expect(TokenKind::identifier, "a constructor's name or '}'");
    std::vector<Type> inputs;
    if (r_.accept("(") && !r_.accept(")")) {
      do {
        inputs.push_back(text::read_type(r_));
      } while (r_.more(")"));
    }
    std::string text(name.text);
    Type result = type_call(header, std::vector<Type>(vars.begin(), vars.end()));
    Constructor c = make<ConstructorNode>([&](ConstructorNode& n) {
      n.name_hint = text;
      n.inputs = inputs;
      n.belong_to = header;
      n.tag = tag;
      n.span = r_.span(name);
      n.type = func_type(inputs, result, vars);
    });
    auto [known, fresh] = r_.constructors.emplace(text, c);
    if (!fresh) {
      r_.report(codes::text_duplicate_name, r_.span(name),
                "the constructor " + text + " is defined twice")
          .note(known->second->span,
                "it is a constructor of " + known->second->belong_to->name_hint + " already");
    }
    return c;
  }

  // ---- Functions

  // Reads the current definition, or goes on behind it.
  void definition() {
    size_t begin = r_.at();
    r_.broken = false;
    try {
      if (r_.accept_word("extern") || r_.is_word("type")) {
        r_.expect_word("type");
        r_.expect(TokenKind::identifier, "a type's name");
        if (r_.is("[")) r_.skip_brackets();
        if (r_.is("{")) r_.skip_brackets();
      } else {
        function();
      }
    } catch (const GiveUp&) {
      r_.go_to(std::max(r_.at(), begin + 1));
      while (!r_.at_end() && !r_.at_definition()) r_.take();
    }
    r_.forget_locals();
  }

  void function() {
    if (!r_.accept_word("def")) r_.unexpected("'def' or 'type'");
    Token name = r_.expect(TokenKind::global, "a function's name, such as @main");
    GlobalVar g = r_.global(name);
    auto [slot, fresh] = functions_.emplace(g->name_hint, nullptr);
    if (fresh) {
      order_.push_back(g);
    } else {
      r_.report(codes::text_duplicate_name, r_.span(name),
                "the function @" + g->name_hint + " is defined twice");
    }
    Function f = text::read_function(r_, name);
    if (fresh) slot->second = r_.broken ? stand_in(g, f) : f;
  }

  // ---- What is left after errors

  // A function with the signature of one that has errors, if that is complete; its body calls
  // itself, which fits any signature. Its callers can be checked.
  static Function stand_in(const GlobalVar& g, const Function& f) {
    if (!f->ret_type) return nullptr;
    bool complete = true;
    auto look = [&](const Type& t) {
      complete = complete && t;
      if (!complete) return;
      post_order(
          t, [&](const Node& n) { complete &= n.kind() != TypeKind::IncompleteType; },
          family::type);
    };
    look(f->ret_type);
    for (const Var& p : f->params) look(p->type_annotation);
    if (!complete) return nullptr;
    std::vector<Expr> args(f->params.begin(), f->params.end());
    return relay::function(f->params, call(g, std::move(args)), f->ret_type, f->type_params);
  }

  // Functions that mention one that is not there are of no use.
  void drop_dependants() {
    std::unordered_map<std::string, std::vector<std::string>> users;
    std::vector<std::string> lost;
    for (const auto& [name, f] : functions_) {
      if (!f) {
        lost.push_back(name);
        continue;
      }
      post_order(
          f,
          [&, user = &name](const Node& n) {
            auto* g = as<GlobalVarNode>(&n);
            if (g == nullptr) return;
            users[g->name_hint].push_back(*user);
            if (!functions_.contains(g->name_hint)) lost.push_back(g->name_hint);
          },
          family::program);
    }
    while (!lost.empty()) {
      std::string name = std::move(lost.back());
      lost.pop_back();
      for (const std::string& user : users[name]) {
        if (std::exchange(functions_[user], nullptr)) lost.push_back(user);
      }
    }
  }

  Reader& r_;
  std::vector<TypeData> types_;
  std::set<std::string> defined_types_;
  std::vector<GlobalVar> order_;
  std::map<std::string, Function> functions_;  // null when it is of no use
};

// Reads the whole text with `read`.
template <class Read>
auto read_all(const std::shared_ptr<const SourceFile>& source, const char* what, Read&& read) {
  Diagnostics diags;
  decltype(read(std::declval<Reader&>())) out{};
  try {
    Reader r(source, diags);
    out = read(r);
    if (!r.at_end()) r.unexpected("the end of the " + std::string(what));
  } catch (const GiveUp&) {
  }
  diags.throw_if_errors();
  return out;
}

Expr read_expression(Reader& r, const std::map<std::string, Expr>& scope) {
  read_version(r, false);
  for (const auto& [name, e] : scope) r.locals.bind(name, e);
  if (r.accept_word("free_type")) {
    text::read_type_params(r);
    r.expect(";");
  }
  while (r.accept_word("free_var")) {
    Token name = r.expect(TokenKind::local, "a variable");
    Type type;
    if (r.accept(":")) type = text::read_type(r);
    r.expect(";");
    std::string text(name.text);
    r.locals.bind(text, var(text, type, r.span(name)));
  }
  return text::read_lines(r);
}

std::vector<std::pair<std::string, AttrValue>> read_attributes(Reader& r) {
  std::vector<std::pair<std::string, AttrValue>> out;
  while (!r.at_end()) {
    std::string name(r.expect(TokenKind::identifier, "an attribute's name").text);
    r.expect("=");
    out.emplace_back(std::move(name), text::read_value(r));
    if (!r.accept(",")) break;
  }
  return out;
}

}  // namespace

Module parse_module(std::shared_ptr<const SourceFile> source, Diagnostics& diags) {
  LeaveTypesOpen open;
  Reader r(std::move(source), diags);
  return ModuleReader(r).read();
}

Module parse_module(std::shared_ptr<const SourceFile> source) {
  Diagnostics diags;
  Module mod = parse_module(std::move(source), diags);
  diags.throw_if_errors();
  return mod;
}

Module parse_module(std::string name, std::string text) {
  return parse_module(SourceFile::make(std::move(name), std::move(text)));
}

Module import_prelude(const Module& mod, std::string_view file) {
  Diagnostics diags;
  std::vector<std::string_view> files = text::prelude_files();
  if (std::find(files.begin(), files.end(), file) == files.end()) {
    diags.error(codes::text_unbound_name, Span(), "the prelude has no file " + std::string(file))
        .expected("prelude.rly, nat.rly or tensor_array.rly")
        .help(suggest(file, files));
    diags.throw_if_errors();
  }
  std::vector<std::string> defined;
  for (const GlobalVar& g : mod->global_vars) defined.push_back("@" + g->name_hint);
  for (const TypeData& t : mod->type_definitions) defined.push_back(t->header->name_hint);
  std::vector<PreludePart> parts = text::whole_prelude(file, {defined.begin(), defined.end()});
  if (parts.empty()) return mod;
  Reader r(SourceFile::make(std::string(file), ""), diags);
  Module out = ModuleReader(r).extend(mod, parts);
  diags.throw_if_errors();
  return out;
}

Expr parse_expr(std::string name, std::string text, const std::map<std::string, Expr>& scope) {
  return read_all(SourceFile::make(std::move(name), std::move(text)), "expression",
                  [&](Reader& r) { return read_expression(r, scope); });
}

Type parse_type(std::string text) {
  return read_all(SourceFile::make("<type>", std::move(text)), "type", text::read_type);
}

Attrs parse_attrs(const NodeInfo& info, std::string text, std::string_view op_name) {
  auto source = SourceFile::make("<attributes>", std::move(text));
  auto values = read_all(source, "attributes", read_attributes);
  return make_attrs(info, values, op_name, Span::range(source, 0, 1));
}

}  // namespace relay
