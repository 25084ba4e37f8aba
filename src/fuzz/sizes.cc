#include "fuzz/sizes.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "codegen/backend.h"
#include "codegen/targets.h"
#include "driver/compile.h"
#include "fuzz/interpreted_kernels.h"
#include "fuzz/outcome.h"
#include "fuzz/random.h"
#include "fuzz/values.h"
#include "ir/op.h"
#include "ir/open_types.h"
#include "ir/text/text.h"
#include "node/walk.h"
#include "runtime/module.h"
#include "types/infer.h"

namespace relay::fuzz {
namespace {

using runtime::Value;

constexpr int64_t kFuel = 100'000;
constexpr int64_t kInstructions = 1'000'000;
// Elements of an argument at most: what is interpreted takes tens of nanoseconds each.
constexpr int64_t kMostElements = 2000;
// Their arguments describe trees to each other, which only a front end does right: beside the row's
// own there are no others to draw.
constexpr std::string_view kTrees = "ml.tree_ensemble";
// Short lines are sorted in a room of a vector's lanes, which are compared whether they hold an entry
// or not (ops/index/order.cc): what becomes of those that do not is not read.
constexpr std::string_view kSpareLanes = " reads entries";
constexpr uint8_t kPoisons[] = {0xFF, 0x5A};
// Widths of vectors, with one thread and with two, and a processor with a matrix unit.
const char* const kTargets[] = {"x86-64-v4 -num-threads=1", "x86-64-v4 -num-threads=2",
                                "x86-64-v3 -num-threads=1", "x86-64-v2 -num-threads=1",
                                "llvm -mcpu=sapphirerapids -num-threads=2"};

// Calls that schedule rules take whose kernels none of the rows' examples is large enough for.
struct More {
  const char* op;
  OpExample example;
};
const std::vector<More>& more_examples() {
  static const std::vector<More> all{
      {"nn.conv2d",
       {{"Tensor[(2, 3, 9, 37), float32]", "Tensor[(3, 1, 3, 3), float32]"},
        "groups=3, channels=3, kernel_size=[3, 3], padding=[1, 1, 1, 1]"}},
      {"nn.contrib_conv2d_winograd_without_weight_transform",
       {{"Tensor[(1, 7, 6, 16), float32]", "Tensor[(6, 6, 32, 16), float32]"},
        "tile_size=4, padding=[1, 1], data_layout=\"NHWC\""}},
      {"nn.max_pool2d",
       {{"Tensor[(1, 2, 16, 37), float32]"}, "pool_size=[5, 5], padding=[2, 2, 2, 2]"}},
      {"nn.softmax", {{"Tensor[(37, 5), float32]"}, "axis=-1"}},
      {"nn.dense", {{"Tensor[(17, 37), float32]", "Tensor[(33, 37), float32]"}, ""}},
      {"nn.dense", {{"Tensor[(9, 40), float32]", "Tensor[(291, 40), float32]"}, ""}},
      {"nn.dense", {{"Tensor[(3, 261), float32]", "Tensor[(5, 261), float32]"}, ""}},
      {"nn.conv2d",
       {{"Tensor[(1, 7, 8, 9), float32]", "Tensor[(3, 3, 9, 33), float32]"},
        "kernel_size=[3, 3], padding=[1, 1, 1, 1], data_layout=\"NHWC\", kernel_layout=\"HWIO\""}},
      {"sum", {{"Tensor[(37, 33), float32]"}, "axis=[0]"}},
      {"prod", {{"Tensor[(5, 37, 17), float32]"}, "axis=[1]"}},
      {"nn.attention",
       {{"Tensor[(1, 2, 17, 8), float32]", "Tensor[(1, 2, 37, 8), float32]",
         "Tensor[(1, 2, 37, 8), float32]", "Tensor[(17, 37), float32]"},
        "scale=0.5"}},
      {"nn.contrib_dense_bits",
       {{"Tensor[(3, 64), float32]", "Tensor[(5, 8, 8), int32]", "Tensor[(5, 4, 8), float32]",
         "Tensor[(5, 4, 8), uint8]"},
        "units=37, weight_layout=\"NC8n\"",
        0,
        7}},
  };
  return all;
}

// So many programs more of an example are drawn while the row has not been compared.
constexpr int kFurtherPrograms = 40;

// A size of an argument: a number, an open size, or the n-th of the names.
struct Size {
  enum Kind { number, open, named } kind = number;
  int64_t value = 0;  // the number, or which name
  int64_t usual = 0;  // in the example
};
using Sizes = std::vector<std::vector<Size>>;  // of each tensor of the arguments

// A call with its arguments' sizes still to be chosen.
class Variant {
 public:
  Variant(const Op& op, const OpExample& example) : op_(op), example_(example) {
    for (const std::string& arg : example.args) {
      types_.push_back(parse_type(arg));
      auto tensors = flatten_tensor_types(types_.back());
      usable_ = usable_ && tensors.has_value();
      if (!usable_) return;
      for (const TensorType& t : *tensors) {
        usable_ = usable_ && !t->dtype.is_string() && !t->shape_var;
        sizes_.emplace_back();
        for (const Dim& d : t->shape) {
          auto known = as_const(d);
          // An example that is open itself: its sizes are drawn as others'.
          sizes_.back().push_back({Size::number, known.value_or(3), known.value_or(3)});
        }
      }
    }
    if (op->row->attrs != nullptr) {
      attrs_ = parse_attrs(*op->row->attrs, example.attrs, op->row->name);
    }
    usable_ = usable_ && result_of(sizes_, attrs_);
  }

  bool usable() const { return usable_; }
  const Sizes& sizes() const { return sizes_; }
  size_t names() const { return names_.size(); }
  const OpExample& example() const { return example_; }

  // Changes sizes as far as the operator takes them.
  void draw(Random& random) {
    struct Move {
      std::vector<std::pair<size_t, size_t>> places;
      int64_t usual;
    };
    std::vector<Move> moves;
    for (size_t t = 0; t < sizes_.size(); ++t) {
      for (size_t d = 0; d < sizes_[t].size(); ++d) {
        const int64_t usual = sizes_[t][d].usual;
        auto known = std::ranges::find(moves, usual, &Move::usual);
        if (known == moves.end()) known = moves.insert(moves.end(), Move{{}, usual});
        known->places.emplace_back(t, d);
      }
    }
    // One place on its own: what is equal in the example need not be.
    const size_t classes = moves.size();
    for (size_t i = 0; i < classes; ++i) {
      if (moves[i].places.size() > 1) {
        moves.push_back({{random.pick(moves[i].places)}, moves[i].usual});
      }
    }
    for (size_t i = moves.size(); i > 1; --i) std::swap(moves[i - 1], moves[random.below(i)]);
    for (const Move& move : moves) {
      if (random.percent(25)) continue;
      const Size drawn = draw_size(random, move.usual);
      Sizes changed = sizes_;
      for (auto [t, d] : move.places) changed[t][d] = drawn;
      if (elements_of(changed) > std::max(kMostElements, elements_of(sizes_))) continue;
      Attrs with = drawn.kind == Size::number ? with_number(move.usual, drawn.value) : attrs_;
      if (with && result_of(changed, with)) {
        sizes_ = std::move(changed);
        attrs_ = with;
      } else if (result_of(changed, attrs_)) {
        sizes_ = std::move(changed);
      }
    }
  }

  bool is_open() const {
    for (const auto& shape : sizes_) {
      for (const Size& s : shape) {
        if (s.kind != Size::number) return true;
      }
    }
    return false;
  }

  // A function of one call, with other operators around it.
  Module program(Random& random) const {
    std::vector<Var> params;
    std::vector<Expr> args;
    const bool in_front = random.percent(25), plain_range = has_plain_range();
    for (const Type& t : types_of(sizes_)) {
      params.push_back(var("x" + std::to_string(params.size()), t));
      auto* tensor = as<TensorTypeNode>(t);
      const bool changes = in_front && plain_range && tensor != nullptr &&
                           tensor->dtype.is_floating() && tensor->dtype.bits >= 32;
      args.push_back(changes ? Expr(relay::call("negative", {params.back()})) : params.back());
    }
    Expr plain = relay::call(op_, args, attrs_);
    Expr body = plain;
    auto* result = as<TensorTypeNode>(plain->type);
    if (result != nullptr && result->dtype.is_floating() && result->dtype.bits >= 32) {
      body = behind(plain, result->rank(), random);
    }
    std::vector<TypeVar> type_params = names_;
    auto made = [&](const Expr& e) {
      return infer_types(
          make_module({global_var("main")}, {function(params, e, nullptr, type_params)}, {}));
    };
    try {
      return made(body);
    } catch (const UserError&) {
      return made(plain);
    }
  }

  // Numbers for all sizes; the same for a name.
  std::vector<std::vector<int64_t>> choose(Random& random) const {
    std::vector<int64_t> of_name(names_.size(), -1);
    // What is equal in the example mostly is here.
    std::map<int64_t, int64_t> of_class;
    std::vector<std::vector<int64_t>> out;
    for (const auto& shape : sizes_) {
      out.emplace_back();
      for (const Size& s : shape) {
        auto known = of_class.try_emplace(s.usual, draw_number(random, s.usual)).first;
        int64_t n = s.kind == Size::number ? s.value : known->second;
        if (s.kind != Size::number && random.percent(8)) n = draw_number(random, s.usual);
        if (s.kind == Size::named) {
          int64_t& chosen = of_name[static_cast<size_t>(s.value)];
          if (chosen < 0) chosen = n;
          n = chosen;
        }
        out.back().push_back(n);
      }
    }
    return out;
  }

  std::vector<Value> arguments(const std::vector<std::vector<int64_t>>& sizes,
                               Random& random) const {
    size_t next = 0;
    auto tensor = [&](DType dtype) -> Value {
      Tensor out = Tensor::empty(dtype, sizes[next]);
      const bool stored = next < example_.inputs.size() &&
                          static_cast<int64_t>(example_.inputs[next].size()) == out.num_elements();
      if (stored) {
        for (int64_t i = 0; i < out.num_elements(); ++i) {
          out.set_from_double(i, example_.inputs[next][static_cast<size_t>(i)]);
        }
      } else {
        fill(out, example_.low, example_.high, random);
      }
      ++next;
      return out;
    };
    std::vector<Value> out;
    for (const Type& t : types_) {
      if (auto* leaf = as<TensorTypeNode>(t)) {
        out.push_back(tensor(leaf->dtype));
        continue;
      }
      std::vector<Value> fields;
      for (const Type& f : as<TupleTypeNode>(t)->fields) {
        fields.push_back(tensor(as<TensorTypeNode>(f)->dtype));
      }
      out.push_back(Value::tuple(fields));
    }
    return out;
  }

 private:
  bool has_plain_range() const { return example_.low == -2 && example_.high == 2; }

  static int64_t draw_number(Random& random, int64_t usual) {
    static const std::vector<int64_t> primes{3, 5, 7, 17, 37};
    switch (random.below(10)) {
      case 0:
      case 1:
      case 2:
        return 0;
      case 3:
      case 4:
        return 1;
      case 5:
        return 2;
      case 6:
      case 7:
        return random.pick(primes);
      default:
        return usual;
    }
  }
  Size draw_size(Random& random, int64_t usual) {
    if (random.percent(60)) return {Size::number, draw_number(random, usual), usual};
    if (random.percent(40)) return {Size::open, 0, usual};
    names_.push_back(type_var("n" + std::to_string(names_.size()), Kind::Dim));
    return {Size::named, static_cast<int64_t>(names_.size()) - 1, usual};
  }

  // Of the largest argument, with the example's numbers for open sizes.
  static int64_t elements_of(const Sizes& sizes) {
    int64_t most = 0;
    for (const auto& shape : sizes) {
      int64_t count = 1;
      for (const Size& s : shape) count *= s.kind == Size::number ? s.value : s.usual;
      most = std::max(most, count);
    }
    return most;
  }

  std::vector<Type> types_of(const Sizes& sizes) const {
    size_t next = 0;
    auto tensor = [&](const TensorTypeNode& like) -> Type {
      std::vector<Dim> shape;
      for (const Size& s : sizes[next++]) {
        shape.push_back(s.kind == Size::number  ? dim(s.value)
                        : s.kind == Size::named ? dim(names_[static_cast<size_t>(s.value)])
                                                : dim_any());
      }
      return tensor_type(std::move(shape), like.dtype);
    };
    std::vector<Type> out;
    for (const Type& t : types_) {
      if (auto* leaf = as<TensorTypeNode>(t)) {
        out.push_back(tensor(*leaf));
        continue;
      }
      std::vector<Type> fields;
      for (const Type& f : as<TupleTypeNode>(t)->fields) {
        fields.push_back(tensor(*as<TensorTypeNode>(f)));
      }
      out.push_back(tuple_type(std::move(fields)));
    }
    return out;
  }

  // The result's type; null when the operator takes no such arguments.
  Type result_of(const Sizes& sizes, const Attrs& attrs) const {
    try {
      Type result = apply_relation(*op_->row, types_of(sizes), attrs, {});
      auto tensors = result ? flatten_tensor_types(result) : std::nullopt;
      if (!tensors) return nullptr;
      for (const TensorType& t : *tensors) {
        if (t->dtype.is_string()) return nullptr;
        int64_t count = 1;
        for (const Dim& d : t->shape) count *= as_const(d).value_or(1);
        if (count > 8 * kMostElements) return nullptr;
      }
      return result;
    } catch (const UserError&) {
      return nullptr;
    }
  }

  // The attributes with another number in their lists; null when it is in none.
  Attrs with_number(int64_t from, int64_t to) const {
    if (!attrs_) return nullptr;
    bool changed = false;
    auto values = attr_values(attrs_);
    for (auto& [name, value] : values) {
      auto* list = value.get_if<ValueList>();
      if (list == nullptr) continue;
      ValueList other = *list;
      for (AttrValue& v : other) {
        if (auto* n = v.get_if<int64_t>(); n != nullptr && *n == from) {
          v = AttrValue(to);
          changed = true;
        }
      }
      value = AttrValue(std::move(other));
    }
    try {
      return changed ? make_attrs(*op_->row->attrs, values, op_->name, {}) : nullptr;
    } catch (const UserError&) {
      return nullptr;
    }
  }

  static Expr behind(const Expr& e, int64_t rank, Random& random) {
    if (random.percent(60)) return e;
    if (rank == 0 || random.percent(40)) return relay::call("negative", {e});
    const OpInfo& sum = *OpRegistry::global().get("sum")->row;
    auto axis = static_cast<int64_t>(random.below(static_cast<size_t>(rank)));
    Attrs attrs =
        make_attrs(*sum.attrs, {{"axis", AttrValue(ValueList{AttrValue(axis)})}}, sum.name, {});
    return relay::call("sum", {e}, attrs);
  }

  Op op_;
  OpExample example_;
  std::vector<Type> types_;
  Sizes sizes_;
  Attrs attrs_;
  std::vector<TypeVar> names_;
  bool usable_ = true;
};

// Whether two values have the same bits.
bool same_bits(const Value& a, const Value& b) {
  std::vector<std::pair<Value, Value>> work{{a, b}};
  while (!work.empty()) {
    auto [x, y] = std::move(work.back());
    work.pop_back();
    if (x.is_tensor() != y.is_tensor()) return false;
    if (x.is_tensor()) {
      if (!runtime::bit_equal(x.tensor(), y.tensor())) return false;
      continue;
    }
    if (x.num_fields() != y.num_fields()) return false;
    for (size_t i = 0; i < x.num_fields(); ++i) work.emplace_back(x.field(i), y.field(i));
  }
  return true;
}

// Runs the program on the same arguments as the evaluator has; "" when all is well.
class Comparison {
 public:
  Comparison(const Module& mod, std::vector<Value> args, bool may_vanish)
      : mod_(mod),
        args_(std::move(args)),
        may_vanish_(may_vanish),
        want_(evaluate_main(mod, args_, kFuel)) {}

  const Outcome& want() const { return want_; }
  const std::vector<Value>& args() const { return args_; }

  std::string problem(const Outcome& got) const {
    if (want_.kind == Outcome::defect) return "the evaluator fails: " + want_.text;
    if (got.kind == Outcome::defect) return "internal error: " + got.text;
    if (got.kind == Outcome::user_error) {
      return want_.kind == Outcome::user_error ? "" : "an error instead of a value: " + got.text;
    }
    if (want_.kind == Outcome::user_error) {
      // Sizes that a pass learns are valid results; the sizes of an unused annotation are not checked.
      const bool fits = want_.code.starts_with("E02") || want_.code.starts_with("E08");
      return may_vanish_ || fits ? "" : "a value instead of " + want_.text;
    }
    auto difference = first_difference(got.result, want_.result);
    if (!difference || explained_by_rounding(mod_, args_, got.result, want_.result, kFuel)) {
      return "";
    }
    return *difference;
  }

 private:
  const Module& mod_;
  std::vector<Value> args_;
  bool may_vanish_;
  Outcome want_;
};

Outcome run_program(const runtime::Program& bytecode, std::vector<relay_kernel> entries,
                    const std::vector<Value>& args, uint8_t poison) {
  return outcome_of([&] {
    runtime::LoadOptions load;
    load.num_threads = 1;
    runtime::Module module =
        runtime::Module::from_kernels(bytecode, std::move(entries), "{}", nullptr, load);
    runtime::RunOptions run;
    run.fuel = kInstructions;
    run.poison = poison;
    return module.run_values("main", args, run);
  });
}

class Checker {
 public:
  Checker(const SizesOptions& options, SizesResult& result) : options_(options), out_(result) {}

  // `about` names the program in findings; `level`: the optimisation level, one that is drawn without it.
  void check(const Variant& variant, const std::string& row, const std::string& about,
             Random random, std::optional<int> level) {
    Module mod;
    Outcome typed = outcome_of([&]() -> Value {
      mod = variant.program(random);
      return {};
    });
    if (typed.kind != Outcome::value) {
      if (typed.kind == Outcome::defect) found(about, nullptr, typed.text);
      return;
    }
    ++out_.programs;
    out_.open += variant.is_open() ? 1 : 0;
    const bool compiled = options_.compiled > 0 && out_.programs % options_.compiled == 0;
    CompileOptions options;
    options.num_threads = 1;
    options.verify = true;
    options.observers = options_.observers;
    const int drawn_level = random.percent(80) ? 3 : random.percent(50) ? 1 : 0;
    options.opt_level = level.value_or(drawn_level);
    if (!compiled) options.target = kTargets[random.below(std::size(kTargets))];
    const std::string how = about + ", " + options.target + ", level " +
                            std::to_string(options.opt_level) + (compiled ? ", compiled" : "");
    runtime::Program bytecode;
    std::vector<tir::PrimFunc> lowered;
    Outcome made = outcome_of([&]() -> Value {
      Bytecode made_of = make_bytecode(optimize(mod, options), options);
      for (CompiledKernel& k : lower_kernels(made_of)) {
        ++out_.rules[k.rule.empty() ? "none" : k.rule];
        lowered.push_back(k.lowered);
      }
      bytecode = std::move(made_of.program);
      return {};
    });
    if (made.kind == Outcome::defect) return found(how, mod, "compiling: " + made.text);
    if (lowered.size() > InterpretedKernels::kMost) return;
    std::optional<LoadedKernels> code;
    if (made.kind == Outcome::value && compiled) {
      ++out_.compiled;
      code = load_kernels(lowered, parse_target(options.target));
    }
    bool refused = false;
    for (int run = 0; run < (variant.is_open() ? options_.runs : 1); ++run) {
      auto sizes = variant.choose(random);
      if (too_large(sizes)) continue;
      Comparison comparison(mod, variant.arguments(sizes, random), row.starts_with("annotation."));
      // How much a program may compute is no part of its meaning.
      if (comparison.want().code == "E0606") continue;
      std::string at = how + ", sizes " + text_of(sizes);
      if (made.kind != Outcome::value) {
        // An error that every run of the program ends with may be found earlier.
        if (comparison.want().kind == Outcome::user_error) continue;
        if (made.code != "E0401") return found(at, mod, "compiling: " + made.text);
        refused = true;
        continue;
      }
      std::optional<Outcome> first;
      for (uint8_t poison : kPoisons) {
        std::optional<InterpretedKernels> interpreted;
        if (!code) interpreted.emplace(lowered, poison);
        Outcome got = run_program(bytecode, code ? code->functions() : interpreted->entries(),
                                  comparison.args(), poison);
        if (std::string problem = comparison.problem(got); !problem.empty()) {
          return found(at, mod, problem);
        }
        const std::string undefined = interpreted ? interpreted->undefined() : std::string();
        if (got.kind == Outcome::value && !undefined.empty() &&
            undefined.find(kSpareLanes) == std::string::npos) {
          return found(at, mod, undefined);
        }
        if (!first) {
          first = got;
        } else if (first->kind != got.kind ||
                   (got.kind == Outcome::value && !same_bits(first->result, got.result))) {
          return found(at, mod, "the result depends on what was in memory");
        }
      }
      if (comparison.want().kind == Outcome::value) {
        ++out_.compared[row];
      } else {
        ++out_.errors[comparison.want().code];
      }
    }
    if (refused) ++out_.refused[made.text.substr(0, made.text.find('\n'))];
  }

 private:
  static bool too_large(const std::vector<std::vector<int64_t>>& sizes) {
    return std::ranges::any_of(sizes, [](const std::vector<int64_t>& shape) {
      int64_t count = 1;
      for (int64_t n : shape) count *= n;
      return count > 16 * kMostElements;
    });
  }

  static std::string text_of(const std::vector<std::vector<int64_t>>& sizes) {
    std::string out;
    for (const auto& shape : sizes)
      out += (out.empty() ? "" : " ") + runtime::shape_to_string(shape);
    return out;
  }

  void found(const std::string& about, const Module& mod, const std::string& problem) {
    out_.findings.push_back(about + ":\n" + problem + "\n" + (mod ? print_module(mod) : ""));
  }

  const SizesOptions& options_;
  SizesResult& out_;
};

}  // namespace

SizesResult check_sizes(const SizesOptions& options) {
  initialize();
  native_target();  // the code generator knows its processors from here on
  SizesResult out;
  Checker checker(options, out);
  for (const Op& op : OpRegistry::global().all()) {
    const OpInfo& row = *op->row;
    if (!row.name.starts_with(options.rows) || row.effect == Effect::Io) continue;
    std::vector<OpExample> examples = row.examples;
    for (const More& more : more_examples()) {
      if (more.op == row.name) examples.push_back(more.example);
    }
    std::vector<std::pair<size_t, Variant>> usable;
    for (size_t e = 0; e < examples.size(); ++e) {
      Variant plain(op, examples[e]);
      if (plain.usable()) usable.emplace_back(e, std::move(plain));
    }
    // Sizes that are drawn may disagree at every run, and the row is not compared: more are drawn until it is.
    const auto wanted = [&](int n) {
      return n < options.programs ||
             (out.compared[row.name] == 0 && n < options.programs + kFurtherPrograms);
    };
    for (const auto& [e, plain] : usable) {
      for (int n = 0; wanted(n); ++n) {
        // A stream of its own for each program, so that one alone can be drawn again.
        Random random(std::hash<std::string_view>()(row.name) ^ (options.seed << 32) ^ (e << 16) ^
                      static_cast<uint64_t>(n));
        Variant variant = plain;
        // The first call for a rule is as large as the rule asks for, and files are what they are.
        const bool for_rule = e >= row.examples.size();
        const bool as_written = n == 0 && (for_rule || !examples[e].inputs.empty());
        if (!as_written && !row.name.starts_with(kTrees)) variant.draw(random);
        std::string about = row.name + " example " + std::to_string(e) + ", seed " +
                            std::to_string(options.seed) + ", program " + std::to_string(n);
        checker.check(variant, row.name, about, random.split(),
                      for_rule && n == 0 ? std::optional(3) : std::nullopt);
      }
    }
  }
  return out;
}

}  // namespace relay::fuzz
