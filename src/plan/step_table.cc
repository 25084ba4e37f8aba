#include "plan/step_table.h"

#include <array>
#include <cstring>
#include <utility>

namespace relay::plan {
namespace {

using K = StepKind;
using F = StepFlow;
using N = NumberRole;

// clang-format off
constexpr std::array<StepRow, kStepKindCount> kRows{{
    {K::kernel, "kernel", "{number}({list})", "m*", "t*", F::next, N::kernel, "calls a kernel on its inputs and its sizes"},
    {K::copy, "copy", "copy {list}", "w", "t", F::next, N::none, "copies a tensor"},
    {K::alloc, "alloc", "alloc", "o", "", F::next, N::none, "a tensor of static type"},
    {K::alloc_sized, "alloc", "alloc {dtype}({list})", "o", "s*", F::next, N::none, "a tensor with these dimensions"},
    {K::alloc_from_shape, "alloc from shape", "alloc {dtype} of shape {list}", "o", "o", F::next, N::none, "a tensor whose shape is a vector"},
    {K::view, "view", "view {0}({rest})", "o", "os*", F::next, N::none, "the same elements with these dimensions"},
    {K::alias, "view", "view {list}", "a", "a", F::next, N::none, "the same memory under another shape; takes no code"},
    {K::join, "join", "join {list}", "w", "w*", F::next, N::none, "the value around parts that are there already; takes no code"},
    {K::update, "update", "update {0}({rest})", "o", "ost*", F::next, N::none, "the tensor with lines written over it, from the line on that a scalar says; in its own memory if it has no other reference, else in a copy; without lines it is made for a kernel to write over"},
    {K::size, "size", "{list} size {number}", "s", "o", F::next, N::axis, "a dimension"},
    {K::number, "number", "{number}", "s", "", F::next, N::number, "a number"},
    {K::load, "load", "load {list}", "s", "t", F::next, N::none, "the one element of a tensor"},
    {K::box, "box", "box {list}", "o", "s", F::next, N::none, "a scalar as a value"},
    {K::constant, "constant", "constant {list}", "o", "c", F::next, N::none, "a constant as a value"},
    {K::set, "set", "set {list}", "o", "o", F::next, N::none, "gives a branch its value, or a parameter its next one"},
    {K::set_scalar, "set", "set {list}", "s", "s", F::next, N::none, "the same for a scalar"},
    {K::swap, "swap", "swap {list}", "", "oo", F::next, N::none, "exchanges two values and their memory"},
    {K::int_op, "int_op", "{0} {op} {1}", "s", "ss", F::next, N::bits, "integer arithmetic"},
    {K::float_op, "float_op", "{0} {op} {1}", "s", "ss", F::next, N::bits, "arithmetic on floats"},
    {K::convert, "convert", "convert {list} {op}", "s", "s", F::next, N::none, "a scalar in another dtype"},
    {K::check, "check", "check {0} else {text}", "", "ss*", F::next, N::none, "ends the run with a message where it is 0; the message shows the other numbers, at most 2"},
    {K::if_, "if", "if {list}", "a*", "s", F::open, N::none, "the steps up to else, or those behind it where it is 0"},
    {K::else_, "else", "else", "", "", F::part, N::none, "the other branch"},
    {K::match, "match", "match {list}", "a*", "o", F::open, N::none, "the first clause whose tags all fit"},
    {K::clause, "clause", "clause", "", "", F::part, N::none, "the next clause of a match"},
    {K::tag, "tag", "tag {list} is {number}", "", "o", F::next, N::tag, "goes on to the next clause unless data have the tag"},
    {K::end, "end", "end", "", "", F::close, N::none, "of an if or a match; that of a match ends the run where no clause fits"},
    {K::field, "field", "{list}.{number}", "o", "o", F::next, N::field, "a field of data or of a tuple"},
    {K::call, "call", "call {number}({list})", "o", "o*", F::next, N::function, "a function's result"},
    {K::tail_call, "tail call", "tail call {number}({list})", "", "o*", F::leave, N::function, "returns a function's result"},
    {K::invoke, "invoke", "invoke {0}({rest})", "o", "oo*", F::next, N::none, "a closure's result"},
    {K::tail_invoke, "tail invoke", "tail invoke {0}({rest})", "", "oo*", F::leave, N::none, "returns a closure's result"},
    {K::closure, "closure", "closure {number}[{list}]", "o", "o*", F::next, N::function, "a function with what it has captured"},
    {K::data, "data", "data {number}({list})", "o", "o*", F::next, N::tag, "data of a tag with these fields"},
    {K::tuple, "tuple", "tuple({list})", "o", "o*", F::next, N::none, "a tuple of these fields"},
    {K::ref_new, "ref", "ref {list}", "o", "o", F::next, N::none, "a reference"},
    {K::ref_read, "ref_read", "ref_read {list}", "o", "o", F::next, N::none, "what a reference holds"},
    {K::ref_write, "ref_write", "ref_write {list}", "", "oo", F::next, N::none, "changes what a reference holds"},
    {K::return_value, "return", "return {list}", "", "o", F::leave, N::none, "ends the function"},
    {K::return_scalar, "return", "return {list}", "", "s", F::leave, N::none, "ends the function"},
    {K::return_outputs, "return outputs", "return outputs", "", "", F::leave, N::none, "ends the function"},
    {K::loop, "loop", "loop", "", "", F::next, N::none, "where `next` goes"},
    {K::next, "next", "next", "", "", F::leave, N::none, "the next iteration"},
    {K::place, "place", "place {dtype}({list})", "p", "s*", F::next, N::none, "memory for a tensor with these dimensions, which others have at other times"},
    {K::index, "index", "index {0} of {1} at {text}", "s", "ss", F::next, N::none, "the place in an axis that an index names, from the end where it is negative; ends the run where there is none"},
    {K::transfer, "transfer", "transfer {list}", "ws", "t", F::next, N::none, "begins to copy a tensor between the host and a device; the scalar is the event that it ends with"},
    {K::wait, "wait", "wait for {0}: {rest}", "", "st*", F::next, N::none, "waits for an event; the transfers of these values are over"},
}};
// clang-format on

consteval bool in_order() {
  for (size_t n = 0; n < kRows.size(); ++n) {
    if (static_cast<size_t>(kRows[n].kind) != n) return false;
  }
  return true;
}
static_assert(in_order(), "the rows stand in the order of the kinds");

}  // namespace

std::span<const StepRow> step_rows() { return kRows; }
const StepRow& step_row(StepKind kind) { return kRows[static_cast<size_t>(kind)]; }

bool ends_transfers(StepKind kind) {
  return step_row(kind).flow != StepFlow::next || kind == StepKind::call ||
         kind == StepKind::invoke || kind == StepKind::loop;
}

std::string step_reference() {
  auto values = [](std::string_view signature) {
    std::string out;
    for (char c : signature) out += c == '*' ? "*" : (out.empty() ? "" : " ") + std::string(1, c);
    return out;
  };
  constexpr const char* numbers[] = {"",    "kernel", "function", "axis",
                                     "tag", "field",  "number",   ""};
  std::string out;
  for (const StepRow& row : kRows) {
    std::string text = row.text;
    for (auto [part, plain] : {std::pair("{list}", "L"),
                               {"{0}", "a"},
                               {"{1}", "b"},
                               {"{rest}", "L"},
                               {"{number}", numbers[static_cast<size_t>(row.number)]},
                               {"{dtype}", "dtype"},
                               {"{op}", "op"},
                               {"{text}", "message"}}) {
      size_t at = text.find(part);
      if (at != text.npos) text.replace(at, std::strlen(part), plain);
    }
    out += "| `" + text + "` | " + values(row.results) + " | " + values(row.operands) + " | " +
           row.effect + " |\n";
  }
  return out;
}

}  // namespace relay::plan
