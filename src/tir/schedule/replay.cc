// Schedule::replay: reads a trace back.
#include <algorithm>
#include <charconv>

#include "base/codes/lowering.h"
#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// One line of a trace: a step's name and its arguments, lists flattened into their elements.
struct Step {
  std::string name;
  std::vector<std::vector<std::string>> args;
};

[[noreturn]] void bad_line(std::string_view line, const std::string& why) {
  throw UserError(
      Diagnostic(codes::schedule_illegal, Span{}, "the schedule trace cannot be read: " + why)
          .found(std::string(line)));
}

Step parse_step(std::string_view line) {
  Step step;
  size_t open = line.find('(');
  if (open == std::string_view::npos) bad_line(line, "no argument list");
  step.name = std::string(line.substr(0, open));
  std::vector<std::string> items;
  std::string item;
  bool in_text = false, in_list = false, any = false;
  auto end_item = [&] {
    if (any) items.push_back(item);
    item.clear();
    any = false;
  };
  auto end_arg = [&] {
    end_item();
    if (!items.empty()) step.args.push_back(items);
    items.clear();
  };
  for (size_t i = open + 1; i < line.size(); ++i) {
    char c = line[i];
    if (in_text) {
      if (c == '\\' && i + 1 < line.size()) {
        item += line[++i];
      } else if (c == '"') {
        in_text = false;
      } else {
        item += c;
      }
    } else if (c == '"') {
      in_text = any = true;
    } else if (c == '[') {
      in_list = true;
    } else if (c == ']') {
      in_list = false;
    } else if (c == ',') {
      in_list ? end_item() : end_arg();
    } else if (c == ')') {
      end_arg();
      return step;
    } else if (c != ' ') {
      item += c;
      any = true;
    }
  }
  bad_line(line, "the argument list does not end");
}

class Replayer {
 public:
  Replayer(PrimFunc func) : s_(std::move(func)) {}

  void run(std::string_view line) {
    line_ = line;
    step_ = parse_step(line);
    const std::string& n = step_.name;
    if (n == "split") {
      s_.split(loop(0), numbers(1)).value();
    } else if (n == "partition") {
      s_.partition(loop(0), number(1)).value();
    } else if (n == "word_dot") {
      s_.word_dot(block(0), loop(1)).value();
    } else if (n == "partition_tiles") {
      s_.partition_tiles(loop(0), number(1)).value();
    } else if (n == "fuse") {
      s_.fuse(loops(arg(0))).value();
    } else if (n == "reorder") {
      std::vector<LoopRV> all;
      for (size_t i = 0; i < step_.args.size(); ++i) all.push_back(loop(i));
      s_.reorder(all).value();
    } else if (n == "parallel") {
      s_.parallel(loop(0)).value();
    } else if (n == "vectorize") {
      s_.vectorize(loop(0)).value();
    } else if (n == "unroll") {
      s_.unroll(loop(0), number(1)).value();
    } else if (n == "bind") {
      s_.bind(loop(0), text(1)).value();
    } else if (n == "prefetch") {
      s_.prefetch(loop(0), number(1)).value();
    } else if (n == "prefetch_next") {
      s_.prefetch_next(loop(0), named(1, {NextOperand::Read, NextOperand::Copied}), number(2))
          .value();
    } else if (n == "reduce_lanes") {
      s_.reduce_lanes(loop(0)).value();
    } else if (n == "pipeline") {
      s_.pipeline(loop(0), number(1)).value();
    } else if (n == "nest") {
      s_.nest(loop(0),
              named(1, {LoopNest::None, LoopNest::Matrix, LoopNest::Transposed, LoopNest::Copy}),
              named(2, {StreamedOperand::Neither, StreamedOperand::A, StreamedOperand::B}))
          .value();
    } else if (n == "run_backward") {
      s_.run_backward(loop(0)).value();
    } else if (n == "require_features") {
      std::vector<std::string> features;
      for (size_t i = 0; i < step_.args.size(); ++i) features.push_back(text(i));
      s_.require_features(features);
    } else if (n == "compute_inline") {
      s_.compute_inline(block(0)).value();
    } else if (n == "reverse_compute_inline") {
      s_.reverse_compute_inline(block(0)).value();
    } else if (n == "compute_at") {
      s_.compute_at(block(0), loop(1)).value();
    } else if (n == "reverse_compute_at") {
      s_.reverse_compute_at(block(0), loop(1)).value();
    } else if (n == "cache_read") {
      s_.cache_read(block(0), text(1), scope(2)).value();
    } else if (n == "cache_write") {
      s_.cache_write(block(0), scope(1)).value();
    } else if (n == "set_scope") {
      s_.set_scope(block(0), scope(1)).value();
    } else if (n == "transform_layout") {
      std::vector<int64_t> flat = numbers(1);
      std::vector<LayoutAxis> layout;
      for (size_t i = 0; i + 2 < flat.size(); i += 3) {
        layout.push_back({flat[i], flat[i + 1], flat[i + 2]});
      }
      s_.transform_layout(block(0), layout).value();
    } else if (n == "decompose_reduction") {
      s_.decompose_reduction(block(0), loop(1)).value();
    } else if (n == "mask_reduction") {
      s_.mask_reduction(block(0)).value();
    } else if (n == "as_product") {
      s_.as_product(block(0), {number(1), number(2), number(3), number(4)}).value();
    } else if (n == "rfactor") {
      s_.rfactor(block(0), loop(1)).value();
    } else {
      bad_line(line_, "there is no step " + n);
    }
  }

  PrimFunc result() const { return s_.func(); }

 private:
  const std::vector<std::string>& arg(size_t i) const {
    if (i >= step_.args.size()) bad_line(line_, "an argument is missing");
    return step_.args[i];
  }
  const std::string& text(size_t i) const { return arg(i)[0]; }
  LoopRV find_loop(const std::string& name) const {
    LoopTree tree(s_.func()->body);
    for (const ForNode* f : tree.loops()) {
      if (f->var->name == name) return {f->var};
    }
    bad_line(line_, "there is no loop " + name);
  }
  LoopRV loop(size_t i) const { return find_loop(text(i)); }
  std::vector<LoopRV> loops(const std::vector<std::string>& names) const {
    std::vector<LoopRV> out;
    for (const std::string& n : names) out.push_back(find_loop(n));
    return out;
  }
  BlockRV block(size_t i) const { return s_.get_block(text(i)); }
  int64_t parse_number(const std::string& t) const {
    int64_t value = 0;
    auto [end, error] = std::from_chars(t.data(), t.data() + t.size(), value);
    if (error != std::errc() || end != t.data() + t.size()) bad_line(line_, "not a number: " + t);
    return value;
  }
  int64_t number(size_t i) const { return parse_number(text(i)); }
  std::vector<int64_t> numbers(size_t i) const {
    std::vector<int64_t> out;
    for (const std::string& t : arg(i)) out.push_back(parse_number(t));
    return out;
  }
  template <class E>
  E named(size_t i, std::initializer_list<E> all) const {
    for (E e : all) {
      if (to_string(e) == text(i)) return e;
    }
    bad_line(line_, "there is no such word as " + text(i) + " here");
  }
  Scope scope(size_t i) const {
    return named(i, {Scope::Global, Scope::Local, Scope::Register, Scope::Shared});
  }

  Schedule s_;
  Step step_;
  std::string_view line_;
};

}  // namespace

PrimFunc Schedule::replay(PrimFunc func, std::string_view trace) {
  Replayer replayer(std::move(func));
  while (!trace.empty()) {
    size_t end = std::min(trace.find('\n'), trace.size());
    std::string_view line = trace.substr(0, end);
    trace.remove_prefix(std::min(end + 1, trace.size()));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) replayer.run(line);
  }
  return replayer.result();
}

}  // namespace relay::tir
