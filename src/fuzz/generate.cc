#include "fuzz/generate.h"

#include <unordered_set>

#include "driver/compile.h"
#include "fuzz/generator.h"
#include "grad/call_gradient.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

// Definitions that every program may have: data types with and without parameters, recursive and
// mutually recursive ones, and polymorphic functions over them.
constexpr std::string_view kLibrary = R"(#[version = "0.0.5"]
type List[A] { Cons(A, List[A]), Nil, }
type Option[A] { Some(A), None, }
type Tree[A] { Node(Tree[A], A, Tree[A]), Leaf, }
type Either[A, B] { Left(A), Right(B), Both(A, B), }
type Rose[A] { Rose(A, List[Rose[A]]), }
type Pair[A] { Pair(A, A), Single(A), }
type Colour { Red, Green, Blue, }
def @identity[A](%x: A) -> A { %x }
def @first[A, B](%x: A, %y: B) -> A { %x }
def @compose[A, B, C](%f: fn (B) -> C, %g: fn (A) -> B, %x: A) -> C { %f(%g(%x)) }
def @twice[A](%f: fn (A) -> A, %x: A) -> A { %f(%f(%x)) }
def @map[A, B](%f: fn (A) -> B, %l: List[A]) -> List[B] {
  match (%l) {
    Cons(%h, %t) => Cons(%f(%h), @map(%f, %t)),
    Nil => Nil,
  }
}
def @foldl[A, B](%f: fn (B, A) -> B, %z: B, %l: List[A]) -> B {
  match (%l) {
    Cons(%h, %t) => @foldl(%f, %f(%z, %h), %t),
    Nil => %z,
  }
}
def @get_or[A](%o: Option[A], %x: A) -> A {
  match (%o) {
    Some(%y) => %y,
    None => %x,
  }
}
def @exchange[A](%r: ref(A), %x: A) -> A {
  let %old = ref_read(%r);
  let %u = ref_write(%r, %x);
  %old
}
def @even_bits(%n: int32) -> bool {
  if (less_equal(%n, 0)) { True } else { @odd_bits(divide(%n, 2)) }
}
def @odd_bits(%n: int32) -> bool {
  if (less_equal(%n, 0)) { False } else { @even_bits(divide(%n, 2)) }
}
)";

const Module& library() {
  static const Module mod = [] {
    initialize();
    return infer_types(parse_module("library.relay", std::string(kLibrary)));
  }();
  return mod;
}

// Some dtype of every program is a float.
template <class Draw>
Type drawn_until(bool (*fits)(const Type&), Draw draw) {
  Type out = draw();
  while (!fits(out)) out = draw();
  return out;
}

class ProgramSource {
 public:
  ProgramSource(uint64_t seed, const GenerateOptions& options)
      : options_(options),
        random_(seed),
        types_(random_, data_, options.pitfalls, options.floats) {}

  Module draw() {
    if (random_.percent(60)) take_library();
    for (int64_t i = random_.between(0, options_.functions); i > 0; --i) {
      std::string name = "f" + std::to_string(i);
      // Often of the type of the last one: what takes one for the other is not ill-typed.
      const FuncTypeNode* like = nullptr;
      if (options_.pitfalls && !callable_.empty() && callable_.back().type->type_params.empty() &&
          random_.percent(40)) {
        like = callable_.back().type.get();
      }
      Type result = like != nullptr ? like->ret_type : types_.any(2);
      add(name, draw_function(static_cast<int>(random_.between(0, 2)), result, like));
      callable_.push_back({names_.back(), cast<FuncTypeNode>(functions_.back()->type)});
    }
    add("main",
        draw_function(static_cast<int>(random_.between(options_.floats ? 1 : 0, 3)), nullptr));
    if (!random_.percent(10)) drop_unused();
    return infer_types(make_module(names_, functions_, data_));
  }

 private:
  // Leaves the functions and data types that @main needs.
  void drop_unused() {
    std::unordered_set<std::string> used{"main"};
    std::vector<NodeRef> todo{functions_.back()};
    auto need = [&](const std::string& name, const NodeRef& definition) {
      if (used.insert(name).second) todo.push_back(definition);
    };
    while (!todo.empty()) {
      NodeRef at = std::move(todo.back());
      todo.pop_back();
      auto visit = [&](const Node& n) {
        if (auto* g = as<GlobalVarNode>(&n)) {
          for (size_t i = 0; i < names_.size(); ++i) {
            if (names_[i]->name_hint == g->name_hint) need(g->name_hint, functions_[i]);
          }
        } else if (auto* t = as<GlobalTypeVarNode>(&n)) {
          for (const TypeData& d : data_) {
            if (d->header->name_hint == t->name_hint) need("type " + t->name_hint, d);
          }
        }
      };
      post_order(at, visit);
    }
    std::vector<GlobalVar> names;
    std::vector<Function> functions;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (!used.count(names_[i]->name_hint)) continue;
      names.push_back(names_[i]);
      functions.push_back(functions_[i]);
    }
    names_ = std::move(names);
    functions_ = std::move(functions);
    std::erase_if(data_,
                  [&](const TypeData& d) { return !used.count("type " + d->header->name_hint); });
  }

  void take_library() {
    const Module& lib = library();
    data_ = lib->type_definitions;
    if (!options_.pitfalls) {
      std::erase_if(data_, [](const TypeData& d) { return d->header->name_hint == "Pair"; });
    }
    names_ = lib->global_vars;
    functions_ = lib->functions;
    for (size_t i = 0; i < names_.size(); ++i) {
      callable_.push_back({names_[i], cast<FuncTypeNode>(functions_[i]->type)});
    }
  }

  void add(const std::string& name, const Function& f) {
    names_.push_back(global_var(name, f->type));
    functions_.push_back(f);
  }

  // With a result of the given type, or of one that @main may have; with the parameters of a type.
  Function draw_function(int num_params, Type result, const FuncTypeNode* like = nullptr) {
    bool main = !result;
    ExpressionSource source(random_, types_, data_, callable_);
    ExpressionSource::Scope scope(source);
    std::vector<TypeVar> type_params;
    std::vector<Var> params;
    bool symbolic = options_.symbolic && !like && num_params > 0 && random_.percent(main ? 25 : 10);
    if (symbolic) type_params.push_back(type_var("n", Kind::Dim));
    auto draw_type = [&] { return main ? types_.first_order(2) : types_.any(2); };
    const bool with_floats = main && options_.floats;
    Type last;
    const size_t count = like ? like->arg_types.size() : static_cast<size_t>(num_params);
    for (size_t i = 0; i < count; ++i) {
      const bool alike = options_.pitfalls && last && random_.percent(40);
      Type t = like ? like->arg_types[i] : alike ? last : draw_type();
      if (with_floats && i + 1 == count)
        t = drawn_until(is_floating, [&] { return types_.tensor(); });
      last = t;
      if (auto* tensor = as<TensorTypeNode>(t); symbolic && tensor && tensor->rank() > 0) {
        std::vector<Dim> shape = tensor->shape;
        shape[random_.below(shape.size())] = dim(type_params[0]);
        t = tensor_type(shape, tensor->dtype);
        if (main && !result && random_.percent(70) && (!with_floats || is_floating(t))) result = t;
      }
      params.push_back(var("x" + std::to_string(i), t));
      source.bind(params.back());
    }
    // Of one type, so that the one is often made of the other.
    if (!result && with_floats && random_.percent(70)) result = last;
    if (!result) {
      result = with_floats ? drawn_until(has_floats, [&] { return types_.first_order(2); })
                           : types_.first_order(2);
    }
    Expr body = source.draw(result, options_.budget);
    return function(params, body, result, type_params);
  }

  const GenerateOptions& options_;
  Random random_;
  std::vector<TypeData> data_;
  TypeSource types_;
  std::vector<Callable> callable_;
  std::vector<GlobalVar> names_;
  std::vector<Function> functions_;
};

}  // namespace

Module generate(uint64_t seed, const GenerateOptions& options) {
  return ProgramSource(seed, options).draw();
}

}  // namespace relay::fuzz
