#include "frontend/common/lists.h"

#include "base/codes/frontend.h"
#include "frontend/common/builder.h"
#include "ir/text/text.h"
#include "types/infer.h"

namespace relay::frontend {
namespace {

// What the prelude (ir/text/prelude) lacks. Positions below zero count from the end.
constexpr const char* kLibrary = R"(#[version = "0.0.5"]
def @sequence.from_front[A](%xs: List[A], %n: int32) -> int32 {
  if (%n < 0) { %n + @length(%xs) } else { %n }
}
def @sequence.at[A](%xs: List[A], %n: int32) -> A {
  @nth(%xs, @sequence.from_front(%xs, %n))
}
def @sequence.length[A](%xs: List[A]) -> int32 {
  @length(%xs)
}
def @sequence.insert[A](%xs: List[A], %n: int32, %x: A) -> List[A] {
  @sequence.insert_onto(%xs, @sequence.from_front(%xs, %n), %x, Nil)
}
def @sequence.insert_onto[A](%xs: List[A], %n: int32, %x: A, %before: List[A]) -> List[A] {
  if (%n <= 0) {
    @list.reverse_onto(%before, Cons(%x, %xs))
  } else {
    match? (%xs) {
      Cons(%y, %rest) => @sequence.insert_onto(%rest, %n - 1, %x, Cons(%y, %before)),
    }
  }
}
def @sequence.append[A](%xs: List[A], %x: A) -> List[A] {
  @concat(%xs, Cons(%x, Nil))
}
def @sequence.erase[A](%xs: List[A], %n: int32) -> List[A] {
  @sequence.erase_onto(%xs, @sequence.from_front(%xs, %n), Nil)
}
def @sequence.erase_onto[A](%xs: List[A], %n: int32, %before: List[A]) -> List[A] {
  match? (%xs) {
    Cons(%y, %rest) => if (%n <= 0) {
      @list.reverse_onto(%before, %rest)
    } else {
      @sequence.erase_onto(%rest, %n - 1, Cons(%y, %before))
    },
  }
}
def @sequence.built[A](%f: fn (int64) -> A, %n: int64, %onto: List[A]) -> List[A] {
  if (%n <= 0i64) {
    %onto
  } else {
    @sequence.built(%f, %n - 1i64, Cons(%f(%n - 1i64), %onto))
  }
}
def @sequence.empty[A]() -> List[A] {
  Nil
}
def @sequence.of_numbers[A](%f: fn (int32) -> A, %n: int32) -> List[A] {
  @sequence.of_numbers_onto(%f, %n, Nil)
}
def @sequence.of_numbers_onto[A](%f: fn (int32) -> A, %n: int32, %behind: List[A]) -> List[A] {
  if (%n <= 0) {
    %behind
  } else {
    let %i = %n - 1;
    @sequence.of_numbers_onto(%f, %i, Cons(%f(%i), %behind))
  }
}
def @sequence.map[A, B](%f: fn (A) -> B, %xs: List[A]) -> List[B] {
  @map(%f, %xs)
}
def @sequence.zip[A, B](%xs: List[A], %ys: List[B]) -> List[(A, B)] {
  @zip(%xs, %ys)
}
def @sequence.joined[A](%f: fn (A, A) -> A, %xs: List[A]) -> A {
  @foldl(%f, @hd(%xs), @tl(%xs))
}
def @branch.never[A]() -> A {
  @hd(Nil)
}
def @optional.has[A](%x: Option[A]) -> bool {
  match (%x) {
    Some(_) => True,
    None => False,
  }
}
def @optional.some[A](%x: A) -> Option[A] {
  Some(%x)
}
def @optional.none[A]() -> Option[A] {
  None
}
def @optional.get[A](%x: Option[A]) -> A {
  match? (%x) {
    Some(%y) => %y,
  }
}
)";

Type applied(const char* name, Type element) {
  return type_call(list_library()->find_type(name)->header, {std::move(element)});
}

}  // namespace

const Module& list_library() {
  static const Module library = infer_types(parse_module("sequences", kLibrary));
  return library;
}

Type list_type(Type element) { return applied("List", std::move(element)); }
Type option_type(Type element) { return applied("Option", std::move(element)); }

Type element_of(const Type& type, std::string_view name) {
  auto* c = as<TypeCallNode>(type);
  auto* data = c == nullptr ? nullptr : as<GlobalTypeVarNode>(c->func);
  return data != nullptr && data->name_hint == name && c->args.size() == 1 ? c->args[0] : nullptr;
}

Type opened(const Type& type) {
  if (auto* t = as<TensorTypeNode>(type)) {
    return tensor_type(std::vector<Dim>(t->shape.size(), dim_any()), t->dtype);
  }
  if (auto* t = as<TupleTypeNode>(type)) {
    std::vector<Type> fields;
    for (const Type& f : t->fields) fields.push_back(opened(f));
    return tuple_type(std::move(fields));
  }
  return type;
}

Expr library_call(const Builder& build, std::string_view function, std::vector<Expr> args,
                  std::vector<Type> types) {
  build.program().use_list_library();
  GlobalVar f = list_library()->find_global_var(function);
  return call(f, std::move(args), nullptr, build.span(), std::move(types));
}

bool is_run_time_list(const ValuePtr& v) {
  return v->expr && element_of(v->expr->type, "List") != nullptr;
}

Expr as_run_time_list(const Builder& build, const ValuePtr& v, Type element) {
  if (is_run_time_list(v)) return v->expr;
  if (!v->is_list) {
    build.fail(codes::frontend_attribute, "a tensor is given for a sequence", "a sequence",
               to_string(build.expr_of(v)->type));
  }
  if (element == nullptr && !v->list.empty()) element = opened(build.expr_of(v->list[0])->type);
  if (element == nullptr) {
    build.fail(codes::frontend_dynamic, "what an empty sequence may hold is not known",
               "a sequence that something is inserted into");
  }
  Expr list = library_call(build, "sequence.empty", {}, {element});
  const Constructor cons = list_library()->find_constructor("Cons");
  for (size_t i = v->list.size(); i-- > 0;) {
    list = call(cons, {build.expr_of(v->list[i]), list}, nullptr, build.span(), {element});
  }
  return list;
}

}  // namespace relay::frontend
