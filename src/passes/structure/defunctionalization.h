// Defunctionalization: makes data of functions used as values (Reynolds, "Definitional interpreters
// for higher-order programming languages", 1972).
//
// before                                   after
//   def @twice(%f: fn (int32) -> int32,      type Fn { Fn_main_fn(int32), }
//              %x: int32) { %f(%f(%x)) }     def @twice(%f: Fn, %x: int32) {
//   def @main() {                              @apply(%f, @apply(%f, %x)) }
//     let %n = ref_read(ref(3));             def @main() { let %n = ref_read(ref(3));
//     @twice(fn (%y: int32) {                  @twice(Fn_main_fn(%n), 1) }
//       add(%n, %y) }, 1) }                  def @main_fn(%n: int32, %y: int32) { add(%n, %y) }
//                                            def @apply(%f: Fn, %p0: int32) { match (%f) {
//                                              Fn_main_fn(%c) => { @main_fn(%c, %p0) }, } }
//
// The whole program from the entries (entry_functions.h) on, in monomorphic instances
// (specialize.h): a data type for each type of functions, a constructor for each function that
// becomes a value, holding what it captures, and a function that applies the values. Afterwards no
// value is a function and no function has type parameters. Legal always. Loses the calls through
// `@apply` where a closure would be called at once.
//
// Leaves the program alone when an entry is polymorphic or takes or gives functions, when a data
// type is defined with functions in it (List[fn ...] is none: its elements are), when a function of
// the program has named dimensions, or calls itself with ever larger types.
#pragma once

#include "passes/pass.h"

namespace relay {

extern const Pass kDefunctionalization;

}  // namespace relay
