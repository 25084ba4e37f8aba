#include "driver/prompt_session.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <set>

#include "analysis/function_types.h"
#include "base/budget.h"
#include "base/codes/driver.h"
#include "base/quantities.h"
#include "base/quoted_name.h"
#include "base/suggest.h"
#include "codegen/targets.h"
#include "driver/evaluate.h"
#include "driver/options.h"
#include "eval/evaluator.h"
#include "frontend/read_source.h"
#include "ir/op.h"
#include "ir/text/print_value.h"
#include "ir/text/text.h"
#include "ir/text/token.h"
#include "passes/gradient/derivative_pass.h"
#include "passes/pass_list.h"
#include "target/target_text.h"
#include "types/infer.h"

namespace relay {
namespace {

using text::Token;
using text::TokenKind;

constexpr std::string_view kPrompt = "prompt";
constexpr std::string_view kHeader = "#[version = \"0.0.5\"]";

const std::vector<PromptCommand> kCommands = {
    {":type", "EXPR", "The type of an expression"},
    {":ast", "EXPR", "An expression as the compiler reads it, with all types"},
    {":opt", "EXPR|@f", "The program after the passes"},
    {":tir", "EXPR|@f", "The scheduled tensor IR of each kernel"},
    {":asm", "EXPR|@f", "The assembly of each kernel"},
    {":plan", "EXPR|@f", "The steps between kernels, and the memory of values"},
    {":grad", "@f", "The function that computes the gradient"},
    {":time", "EXPR", "The time to compile an expression, and to run it"},
    {":doc", "OPERATOR", "What an operator does: arguments, attributes, defaults"},
    {":load", "FILE", "Definitions of a file: Relay text, or a model as @main"},
    {":list", "", "The definitions and values of this session"},
    {":clear", "[NAME]", "Forget a definition or value; without a name, all"},
    {":help", "", "This list"},
    {":quit", "", "End the session; so does the end of the input"},
};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

// The tokens of a text, with the source that they refer to.
struct Tokens {
  std::shared_ptr<const SourceFile> source;
  Diagnostics problems;
  text::TokenStream stream;

  explicit Tokens(const std::string& text)
      : source(SourceFile::make(std::string(kPrompt), text)),
        stream(text::tokenize(source, problems)) {}
  const Token& operator[](size_t i) const {
    return stream.tokens[std::min(i, stream.tokens.size() - 1)];
  }
  size_t size() const { return stream.tokens.size() - 1; }  // without the end
  bool is(size_t i, std::string_view word) const { return (*this)[i].text == word; }
};

int nesting(const Token& t) {
  if (t.kind != TokenKind::symbol || t.text.size() != 1) return 0;
  return std::string_view("([{").find(t.text[0]) != std::string_view::npos   ? 1
         : std::string_view(")]}").find(t.text[0]) != std::string_view::npos ? -1
                                                                             : 0;
}

bool begins_definition(const Tokens& tokens, size_t i) {
  if (tokens[i].kind != TokenKind::identifier) return false;
  return (tokens.is(i, "def") && tokens[i + 1].kind == TokenKind::global) ||
         (tokens.is(i, "type") && tokens[i + 1].kind == TokenKind::identifier) ||
         (tokens.is(i, "extern") && tokens.is(i + 1, "type"));
}

std::string defined_name(const Tokens& tokens, size_t i) {
  if (tokens.is(i, "def")) return "@" + std::string(tokens[i + 1].text);
  return std::string(tokens[tokens.is(i, "extern") ? i + 2 : i + 1].text);
}

std::vector<std::string> variables_in(const std::string& text) {
  Tokens tokens(text);
  std::vector<std::string> out;
  for (const Token& t : tokens.stream.tokens)
    if (t.kind == TokenKind::local) out.emplace_back(t.text);
  return out;
}

bool contains(const std::vector<std::string>& list, std::string_view name) {
  return std::ranges::find(list, name) != list.end();
}

// `let %x: T = e`, with `let` or without, and nothing behind a semicolon.
struct BindingEntry {
  std::string name, annotation, expression;
};
std::optional<BindingEntry> read_binding(const std::string& entry) {
  Tokens tokens(entry);
  size_t at = tokens.is(0, "let") ? 1 : 0;
  if (tokens[at].kind != TokenKind::local) return std::nullopt;
  if (!tokens.is(at + 1, "=") && !tokens.is(at + 1, ":")) return std::nullopt;
  BindingEntry out{std::string(tokens[at].text), {}, {}};
  size_t equals = at + 1;
  for (int depth = 0; equals < tokens.size() && (depth > 0 || !tokens.is(equals, "=")); ++equals)
    depth += nesting(tokens[equals]);
  if (equals >= tokens.size()) return std::nullopt;
  if (equals > at + 1)
    out.annotation =
        entry.substr(tokens[at + 2].begin, tokens[equals].begin - tokens[at + 2].begin);
  size_t end = entry.size();
  int depth = 0;
  for (size_t i = equals + 1; i < tokens.size(); ++i) {
    depth += nesting(tokens[i]);
    if (depth > 0 || !tokens.is(i, ";")) continue;
    if (i + 1 < tokens.size()) return std::nullopt;  // an expression with a body
    end = tokens[i].begin;
  }
  out.expression = trimmed(entry.substr(tokens[equals].end, end - tokens[equals].end));
  return out;
}

// The functions that the named one reaches.
Module reached_from(const Module& mod, std::string_view name, PassContext ctx) {
  ctx.config["relay.RemoveUnusedFunctions.entry_functions"] =
      AttrValue(ValueList{AttrValue(std::string(name))});
  return run_pass(mod, find_pass("RemoveUnusedFunctions"), ctx);
}

// A definition that has the function's signature and calls itself: the parser learns its type from it.
std::string signature_text(const std::string& name, const Function& f) {
  GlobalVar self = global_var(name);
  std::vector<Expr> arguments(f->params.begin(), f->params.end());
  Function stub = function(f->params, call(self, arguments),
                           f->ret_type ? f->ret_type : f->body->type, f->type_params);
  std::string text = print_module(make_module({self}, {stub}));
  return text.substr(text.find('\n') + 1);
}

}  // namespace

PromptSession::PromptSession(PromptOptions options) : options_(std::move(options)) { initialize(); }
PromptSession::~PromptSession() = default;

const std::vector<PromptCommand>& PromptSession::commands() { return kCommands; }

bool PromptSession::is_open(const std::string& entry) {
  if (trimmed(entry).starts_with(":")) return false;
  Tokens tokens(entry);
  int depth = 0;
  for (const Token& t : tokens.stream.tokens) depth += nesting(t);
  if (depth > 0) return true;
  if (depth < 0 || tokens.size() == 0) return false;
  // `def @f(...) -> T` ends with its body; `let %x =` with its value.
  const Token& last = tokens[tokens.size() - 1];
  if (begins_definition(tokens, 0)) return last.text != "}" && !tokens.is(0, "extern");
  return last.kind == TokenKind::symbol && (last.text == "=" || last.text == ",");
}

Module PromptSession::parse(const std::string& text,
                            const std::vector<Definition>& definitions) const {
  std::string all = std::string(kHeader) + text + "\n";
  for (const Definition& d : definitions) all += d.text + "\n";
  Module mod = parse_module(std::string(kPrompt), all);
  for (const Definition& d : definitions)
    if (d.function) mod = with_function(mod, mod->find_global_var(d.name.substr(1)), d.function);
  return infer_types(mod);
}

PromptSession::Wrapped PromptSession::wrap(const std::string& expression) const {
  Wrapped out;
  // The variables that it needs, the ones that others need among them.
  std::set<std::string> needed;
  std::vector<std::string> used = variables_in(expression);
  needed.insert(used.begin(), used.end());
  std::string parameters, lets;
  for (auto b = bindings_.rbegin(); b != bindings_.rend(); ++b) {
    if (!needed.contains(b->name)) continue;
    out.uses.push_back(b->name);
    needed.insert(b->uses.begin(), b->uses.end());
    if (!b->text.empty()) {
      lets = "let %" + b->name + " = " + b->text + ";\n" + lets;
      continue;
    }
    parameters += (parameters.empty() ? "%" : ", %") + b->name + ": " + to_string(b->type);
    out.arguments.push_back(b->value);
  }
  // The expression begins in the second line, as definitions do.
  out.module =
      parse("def @prompt(" + parameters + ") {" + lets + "\n" + expression + "\n}", definitions_);
  out.type = out.module->find(kPrompt)->body->type;
  return out;
}

PromptSession::Wrapped PromptSession::program_of(const std::string& argument) const {
  Tokens tokens(argument);
  if (tokens.size() != 1 || tokens[0].kind != TokenKind::global) return wrap(argument);
  Wrapped out;
  out.module = parse("", definitions_);
  Function f = out.module->find(tokens[0].text);
  if (!f) {
    throw wrong_usage("the session has no function " + quoted_name(argument),
                      ":list shows its definitions");
  }
  out.module = with_function(out.module, global_var(std::string(kPrompt), f->type), f);
  out.type = f->type;
  return out;
}

void PromptSession::run(const std::function<void()>& work) {
  BudgetLimits limits = options_.limits;
  limits.seconds = options_.time_limit;
  limits.kind = BudgetKind::run;
  compiling_.reset();
  {
    BudgetScope scope(std::move(limits));
    work();
  }
  compiling_.emplace(options_.limits);
}

runtime::Value PromptSession::evaluate(const Wrapped& program, std::string* text) {
  EvalOptions options;
  options.fuel = options_.fuel;
  options.memory_limit = options_.memory_limit;
  options.denormals = denormals_of(parse_program_target(options_.compile.target).host);
  runtime::Value value;
  run([&] {
    Evaluator evaluator(program.module, options);
    value = evaluator.call(kPrompt, program.arguments);
    PrintValueOptions print;
    print.closure_name = [&](int32_t tag) { return evaluator.closure_name(tag); };
    *text = print_value(value, program.type, program.module, print);
  });
  return value;
}

std::string PromptSession::enter(const std::string& entry) {
  struct Limits {
    std::optional<BudgetScope>& scope;
    ~Limits() { scope.reset(); }
  } limits{compiling_};
  compiling_.emplace(options_.limits);
  std::string text(trimmed(entry));
  if (text.starts_with(":")) return command(text);
  Tokens tokens(text);
  if (tokens.size() == 0 && !tokens.problems.has_errors()) return "";
  if (begins_definition(tokens, 0)) return define(text);
  if (std::optional<BindingEntry> b = read_binding(text))
    return bind(b->name, b->annotation, b->expression);
  return show(text);
}

std::string PromptSession::show(const std::string& expression) {
  Wrapped program = wrap(expression);
  std::string text;
  evaluate(program, &text);
  return text + " : " + to_string(program.type) + "\n";
}

std::string PromptSession::bind(const std::string& name, const std::string& annotation,
                                const std::string& expression) {
  for (const Binding& b : bindings_) {
    if (contains(b.uses, name)) {
      throw wrong_usage("%" + name + " is part of %" + b.name + ", which holds a function",
                        ":clear %" + b.name + " first, or choose another name");
    }
  }
  std::string value = annotation.empty()
                          ? expression
                          : "let %" + name + ": " + annotation + " = " + expression + "; %" + name;
  Wrapped program = wrap(value);
  Binding made{name, program.type, {}, {}, {}};
  std::string text;
  made.value = evaluate(program, &text);
  if (mentions_function(program.type) ||
      FunctionalData(program.module).mentioned_in(program.type)) {
    made.value = {};
    made.text = "{" + value + "}";
    made.uses = program.uses;
  }
  std::erase_if(bindings_, [&](const Binding& b) { return b.name == name; });
  bindings_.push_back(std::move(made));
  return "%" + name + ": " + to_string(program.type) + " = " + text + "\n";
}

std::string PromptSession::define(const std::string& entry) {
  Tokens tokens(entry);
  std::vector<Definition> added;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= tokens.size(); ++i) {
    bool next = depth == 0 && (i == tokens.size() || begins_definition(tokens, i)) &&
                !(i > 0 && tokens.is(i - 1, "extern"));
    if (next && i > begin) {
      size_t end = i == tokens.size() ? entry.size() : tokens[i].begin;
      added.push_back({defined_name(tokens, begin),
                       entry.substr(tokens[begin].begin, end - tokens[begin].begin)});
      begin = i;
    }
    depth += nesting(tokens[i]);
  }
  std::vector<Definition> kept;
  for (const Definition& d : definitions_) {
    bool replaced = std::ranges::find(added, d.name, &Definition::name) != added.end();
    if (!replaced) kept.push_back(d);
  }
  for (const Definition& d : added) {
    if (d.name == "@" + std::string(kPrompt))
      throw wrong_usage("@prompt is the session's own name", "choose another name");
  }
  Module mod = parse("\n" + entry, kept);
  std::string out;
  for (const Definition& d : added) {
    kept.push_back(d);
    if (d.name[0] == '@') {
      out += d.name + ": " + to_string(mod->find(d.name.substr(1))->type) + "\n";
      continue;
    }
    out += "type " + d.name + "\n";
    // Values of the type as it was do not fit the new one.
    std::erase_if(bindings_, [&](const Binding& b) {
      Tokens words(to_string(b.type));
      bool old = std::ranges::any_of(words.stream.tokens,
                                     [&](const Token& t) { return t.text == d.name; });
      if (old) out += "%" + b.name + " is forgotten: it is of the old type\n";
      return old;
    });
  }
  definitions_ = std::move(kept);
  for (std::string name = first_broken(); !name.empty(); name = first_broken()) {
    out += "%" + name + " is forgotten: it does not fit the new definition\n";
    std::erase_if(bindings_, [&](const Binding& b) { return b.name == name; });
  }
  return out;
}

std::string PromptSession::first_broken() const {
  for (auto b = bindings_.rbegin(); b != bindings_.rend(); ++b) {
    if (b->text.empty()) continue;
    try {
      if (to_string(wrap("%" + b->name).type) == to_string(b->type)) continue;
    } catch (const UserError&) {
    }
    return b->name;
  }
  return "";
}

std::string PromptSession::load(const std::string& path) {
  LoadedModel model = load_model(path);
  std::string text;
  if (model.format == "relay") {
    text = read_source(path)->text();
    Tokens tokens(text);
    if (tokens.stream.metadata == std::string_view::npos) {
      size_t first = 0;
      while (first < tokens.size() && !begins_definition(tokens, first)) ++first;
      return define(text.substr(tokens[first].begin));
    }
  }
  text.clear();
  for (size_t i = 0; i < model.module->functions.size(); ++i) {
    const std::string& name = model.module->global_vars[i]->name_hint;
    text += signature_text(name, model.module->functions[i]);
  }
  std::string out = define(text);
  for (Definition& d : definitions_)
    if (d.name[0] == '@')
      if (Function f = model.module->find(d.name.substr(1))) d.function = f;
  return out;
}

std::string PromptSession::clear(const std::string& name) {
  if (name.empty()) {
    definitions_.clear();
    bindings_.clear();
    return "";
  }
  for (const Binding& b : bindings_) {
    if (name[0] == '%' && contains(b.uses, name.substr(1)))
      throw wrong_usage(name + " is part of %" + b.name, ":clear %" + b.name + " first");
  }
  size_t before = definitions_.size() + bindings_.size();
  std::vector<Definition> definitions = definitions_;
  std::erase_if(definitions, [&](const Definition& d) { return d.name == name; });
  if (definitions.size() < definitions_.size()) {
    parse("", definitions);  // others may use it
    std::swap(definitions_, definitions);
    std::string user = first_broken();
    if (!user.empty()) {
      std::swap(definitions_, definitions);
      throw wrong_usage("%" + user + " uses " + name, ":clear %" + user + " first");
    }
  }
  std::erase_if(bindings_, [&](const Binding& b) { return "%" + b.name == name; });
  if (definitions_.size() + bindings_.size() == before) {
    throw wrong_usage("the session has no " + quoted_name(name), ":list shows what it has");
  }
  return "";
}

std::string PromptSession::list() const {
  std::string out;
  Module mod = parse("", definitions_);
  for (const Definition& d : definitions_) {
    out += d.name[0] == '@' ? d.name + ": " + to_string(mod->find(d.name.substr(1))->type) + "\n"
                            : "type " + d.name + "\n";
  }
  for (const Binding& b : bindings_) out += "%" + b.name + ": " + to_string(b.type) + "\n";
  return out;
}

std::string PromptSession::time(const std::string& argument) {
  Wrapped program = wrap(argument);
  using Clock = std::chrono::steady_clock;
  auto seconds_since = [](Clock::time_point begin) {
    return std::chrono::duration<double>(Clock::now() - begin).count();
  };
  auto begin = Clock::now();
  Module reached = reached_from(program.module, kPrompt, pass_context(options_.compile));
  runtime::Module ready = compile(reached, options_.compile).load();
  double compilation = seconds_since(begin), least = 1e30, all = 0;
  int runs = 0;
  constexpr int kMostRuns = 1000;
  constexpr double kMostSeconds = 0.5;
  runtime::RunOptions limits;
  if (options_.fuel > 0) limits.fuel = options_.fuel;
  if (options_.memory_limit > 0) limits.memory_limit = options_.memory_limit;
  run([&] {
    while (runs < kMostRuns && (runs == 0 || all < kMostSeconds)) {
      begin = Clock::now();
      ready.run_values(kPrompt, program.arguments, limits);
      double one = seconds_since(begin);
      least = std::min(least, one);
      all += one;
      ++runs;
    }
  });
  return "compiled in " + format_seconds(compilation) + "; a run takes " + format_seconds(least) +
         " (minimum of " + std::to_string(runs) + ")\n";
}

std::string PromptSession::gradient(const std::string& argument) const {
  Tokens tokens(argument);
  Wrapped program = program_of(argument);
  Function f = program.module->find(kPrompt);
  if (tokens.size() != 1 || tokens[0].kind != TokenKind::global) {
    throw wrong_usage(":grad takes the name of a function",
                      "define one: def @f(%x: float32) { exp(%x) }");
  }
  const std::string name = std::string(tokens[0].text) + "_gradient";
  PassContext ctx = pass_context(options_.compile);
  Module mod = reached_from(add_derivative(program.module, f, DerivativeKind::gradient, name, ctx),
                            name, ctx);
  for (const char* pass :
       {"SimplifyExpr", "EliminateCommonSubexpr", "DeadCodeElimination", "ToGraphNormalForm"})
    mod = run_pass(mod, find_pass(pass), ctx);
  PrintOptions print;
  print.show_metadata = false;
  std::string text = print_module(mod, print);
  return text.substr(text.find_first_not_of('\n', text.find('\n')));
}

std::string PromptSession::command(const std::string& entry) {
  size_t blank = entry.find_first_of(" \t\n");
  std::string name = entry.substr(0, blank);
  std::string argument(blank == entry.npos ? std::string_view() : trimmed(entry.substr(blank)));
  const PromptCommand* found = nullptr;
  for (const PromptCommand& c : kCommands)
    if (c.name == name) found = &c;
  if (found == nullptr)
    throw wrong_usage("there is no command " + quoted_name(name), ":help lists the commands");
  bool takes = !found->arguments.empty(), optional = found->arguments.starts_with("[");
  if (argument.empty() == takes && !optional) {
    throw wrong_usage(
        takes ? name + " needs " + std::string(found->arguments) : name + " takes nothing",
        ":help lists the commands");
  }
  if (name == ":quit") return over_ = true, "";
  if (name == ":help") {
    std::string out;
    for (const PromptCommand& c : kCommands) {
      std::string title = std::string(c.name) + " " + std::string(c.arguments);
      title.resize(18, ' ');
      out += title + std::string(c.doc) + "\n";
    }
    return out;
  }
  if (name == ":list") return list();
  if (name == ":clear") return clear(argument);
  if (name == ":load") return load(argument);
  if (name == ":grad") return gradient(argument);
  if (name == ":time") return time(argument);
  if (name == ":doc") {
    std::string out = operator_text(argument);
    if (!out.empty()) return out;
    std::vector<std::string_view> known;
    for (const Op& op : OpRegistry::global().all()) known.push_back(op->name);
    throw wrong_usage("there is no operator " + quoted_name(argument), suggest(argument, known));
  }
  if (name == ":type") return to_string(wrap(argument).type) + "\n";
  if (name == ":ast") {
    PrintOptions print;
    print.show_types = true;
    print.show_metadata = false;
    return print_expr(wrap(argument).module->find(kPrompt)->body, print) + "\n";
  }
  const CompileOptions& options = options_.compile;
  Wrapped program = program_of(argument);
  program.module = reached_from(program.module, kPrompt, pass_context(options));
  if (name == ":asm") return assembly_text(compile(program.module, options), options);
  Module optimized = optimize(program.module, options);
  if (name == ":opt") {
    PrintOptions print;
    print.show_metadata = false;
    return print_module(optimized, print);
  }
  PlanText plan;
  CompileOptions observed = options;
  observed.observers.push_back(&plan);
  Bytecode bytecode = make_bytecode(optimized, observed);
  if (name == ":plan") return plan.text;
  std::string out;
  for (const CompiledKernel& k : lower_kernels(bytecode)) out += scheduled_text(k);
  return out;
}

std::vector<std::string> PromptSession::completions(std::string_view word, size_t most) const {
  std::vector<std::string> out;
  auto add = [&](std::string_view name) {
    if (out.size() < most && name.starts_with(word)) out.emplace_back(name);
  };
  for (const PromptCommand& c : kCommands) add(c.name);
  for (const Definition& d : definitions_) add(d.name);
  for (const Binding& b : bindings_) add("%" + b.name);
  for (std::string_view keyword : {"def", "type", "let", "fn", "if", "else", "match", "ref"})
    add(keyword);
  if (!word.empty()) {
    for (const Op& op : OpRegistry::global().all()) add(op->name);
  }
  return out;
}

std::string operator_text(std::string_view name) {
  Op op = OpRegistry::global().find(name);
  if (!op) return {};
  const OpInfo& row = *op->row;
  std::string out = row.name + "(";
  for (size_t i = 0; i < row.args.size(); ++i) out += (i == 0 ? "" : ", ") + row.args[i].name;
  out += ")\n" + row.doc + "\n";
  for (const ArgInfo& a : row.args) out += "  " + a.name + ": " + a.doc + "\n";
  if (row.attrs == nullptr) return out;
  NodeRef defaults(row.attrs->create(*row.attrs));
  for (const Field& f : row.attrs->fields) {
    std::string value = to_string(f.ops->get(f.in(*defaults.get())));
    out += "  " + std::string(f.name) + ": " + f.ops->type_name + " = " + value +
           (f.doc.empty() ? "" : "  " + std::string(f.doc)) + "\n";
  }
  return out;
}

}  // namespace relay
