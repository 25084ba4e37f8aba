// A front end for tests: a small text format with branches and loops, read with nothing but frontend/common.
//
//   toy 1
//   input x float32 n 4            a tensor of named and fixed sizes
//   const ten int64 = 10           no size: a scalar
//   y = mul x x
//   r = if small                   the part that `small` chooses; `give` names its results
//     give x
//   else
//     give y
//   end
//   i z = while i0 r               carried values; `do` names them inside
//     do a b
//     t = less a ten
//     test t                       before each step; what stands above is computed for it
//     a2 = add a one
//     b2 = mul b two
//     give a2 b2
//   end
//   output z
#pragma once

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "base/codes/frontend.h"
#include "base/quantities.h"
#include "frontend/common/branches.h"
#include "frontend/common/control.h"
#include "frontend/common/front_end.h"
#include "frontend/common/mapped_file.h"
#include "frontend/common/open_args.h"
#include "frontend/common/operands.h"
#include "frontend/common/shape_args.h"

namespace relay::test {

using frontend::Operands;
using frontend::ValuePtr;
using frontend::Values;
using Words = std::vector<std::string>;

// A line of the model, and the lines of its parts.
struct ToyLine {
  int number = 0;
  Words words;
  std::vector<std::vector<ToyLine>> parts = {};
};

// What an operator makes of its operands.
using ToyOperator = Values (*)(const Operands& op);

inline Values toy_call(const Operands& op, const char* name) {
  return {frontend::value_of(op.call(name, op.all()))};
}

inline const std::map<std::string, ToyOperator>& toy_operators() {
  using frontend::value_of;
  static const std::map<std::string, ToyOperator> rows{
      {"add", [](const Operands& op) { return toy_call(op, "add"); }},
      {"mul", [](const Operands& op) { return toy_call(op, "multiply"); }},
      {"less", [](const Operands& op) { return toy_call(op, "less"); }},
      {"relu", [](const Operands& op) { return toy_call(op, "nn.relu"); }},
      {"matmul", [](const Operands& op) { return Values{value_of(op.matmul_input(op.in(0), 1))}; }},
      {"sizes", [](const Operands& op) { return Values{value_of(sizes_of(op, op.in(0)))}; }},
      {"reshape",
       [](const Operands& op) {
         return known_or_open(
             op,
             [](const Operands& known) {
               std::vector<Dim> shape = shape_elements(known, 1, "the new shape");
               return Values{value_of(known.reshape(known.in(0), shape))};
             },
             [](const Operands& open) {
               Expr sizes = int_vector(open, 1, "the new shape");
               return Values{value_of(open_reshape(open, open.in(0), sizes))};
             });
       }},
      {"sum",
       [](const Operands& op) {
         Expr x = op.in(0);
         std::vector<int64_t> axes = op.axes(op.const_ints(1, "the axes"), Operands::rank_of(x));
         return Values{value_of(op.reduce("sum", x, axes, false))};
       }},
  };
  return rows;
}

class ToyReader : public frontend::ProgramBuilder {
 public:
  ToyReader(std::string_view text, const std::string& name, const ImportOptions& options)
      : ProgramBuilder(SourceFile::make(name), options) {
    // Parts nest as deep as a ProgramBuilder reads; the stack is of lines that are open.
    std::vector<std::vector<ToyLine>> open(1);
    std::istringstream in{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(in, line); ++number) {
      std::istringstream words(line);
      ToyLine read{number, Words(std::istream_iterator<std::string>(words), {})};
      if (read.words.empty()) continue;
      const bool ends = read.words[0] == "end", turns = read.words[0] == "else";
      if (ends || turns) {
        if (open.size() < 2) wrong(read, "there is no part to end");
        open[open.size() - 2].back().parts.push_back(std::move(open.back()));
        open.pop_back();
        if (ends) continue;
        open.emplace_back();
        continue;
      }
      const bool begins = word_after_equals(read) == "if" || word_after_equals(read) == "while";
      open.back().push_back(std::move(read));
      if (begins) open.emplace_back();
      if (open.size() > frontend::kMaxNesting + 1) wrong(open.back().back(), "parts nest too deep");
    }
    if (open.size() != 1) wrong(open[open.size() - 2].back(), "`end` is missing");
    lines_ = std::move(open[0]);
  }

  ImportedModel read() {
    std::vector<frontend::DeclaredInput> inputs;
    for (const ToyLine& l : lines_) {
      if (l.words[0] != "input") continue;
      if (l.words.size() < 3) wrong(l, "an input has a name and a dtype");
      frontend::DeclaredInput input{l.words[1], DType::parse(l.words[2]), l.words[2]};
      input.shape.emplace();
      for (size_t i = 3; i < l.words.size(); ++i) {
        const bool number = std::isdigit(static_cast<unsigned char>(l.words[i][0])) != 0;
        input.shape->push_back(
            {number ? std::optional(number_of(l, i)) : std::nullopt, number ? "" : l.words[i]});
      }
      inputs.push_back(std::move(input));
    }
    declare_inputs(std::move(inputs));
    throw_if_errors();
    for (const ToyLine& l : lines_) {
      if (l.words[0] == "output")
        outputs_.insert(outputs_.end(), l.words.begin() + 1, l.words.end());
    }
    try {
      read_part(lines_, main_scope());
    } catch (const UserError& e) {
      report(e);
    } catch (const frontend::BranchesDiffer& branches) {
      report(open_branches(branches, place("outputs")));
    }
    throw_if_errors();
    std::vector<std::pair<std::string, ValuePtr>> outputs;
    for (const std::string& name : outputs_) outputs.emplace_back(name, main_scope().find(name));
    return finish(outputs);
  }

 private:
  Span place_of(const ToyLine& l) const { return place("line " + std::to_string(l.number)); }
  [[noreturn]] void wrong(const ToyLine& l, const std::string& why) const {
    throw UserError(Diagnostic(codes::frontend_damaged, place_of(l), why));
  }
  static std::string word_after_equals(const ToyLine& l) {
    auto at = std::ranges::find(l.words, "=");
    return at == l.words.end() || at + 1 == l.words.end() ? "" : at[1];
  }
  int64_t number_of(const ToyLine& l, size_t at) const {
    char* end = nullptr;
    const int64_t value = std::strtoll(l.words[at].c_str(), &end, 10);
    if (*end != '\0') wrong(l, "'" + frontend::shorten(l.words[at]) + "' is not a number");
    return value;
  }

  // The values that the words name, from that one on.
  Values values_of(const ToyLine& l, size_t from, const frontend::Scope& scope) const {
    Values out;
    for (size_t i = from; i < l.words.size(); ++i) {
      out.push_back(scope.find(l.words[i]));
      if (out.back() == nullptr) wrong(l, "'" + frontend::shorten(l.words[i]) + "' has no value");
    }
    return out;
  }

  Tensor constant_of(const ToyLine& l, size_t equals) const {
    auto dtype = DType::parse(l.words.size() > 2 ? l.words[2] : "");
    if (!dtype) wrong(l, "a constant has a name and a dtype");
    std::vector<int64_t> shape;
    for (size_t i = 3; i < equals; ++i) shape.push_back(number_of(l, i));
    shape = frontend::checked_shape(shape, l.words[1], *dtype, place_of(l));
    const auto given = static_cast<int64_t>(l.words.size() - equals - 1);
    if (given != runtime::checked_num_elements(*dtype, shape)) {
      frontend::bad_tensor(place_of(l), "a constant does not have the size of its shape", {},
                           counted(given, "element"));
    }
    Tensor t = Tensor::empty(*dtype, shape);
    for (int64_t i = 0; i < given; ++i) {
      t.set_from_double(i,
                        std::strtod(l.words[equals + 1 + static_cast<size_t>(i)].c_str(), nullptr));
    }
    return t;
  }

  // Reads lines into a scope; gives the values of the `give` that ends them.
  Values read_part(const std::vector<ToyLine>& lines, frontend::Scope& scope, size_t first = 0) {
    for (size_t line = first; line < lines.size(); ++line) {
      const ToyLine& l = lines[line];
      const Span span = place_of(l);
      check_budget(span);
      if (l.words[0] == "input" || l.words[0] == "output" || l.words[0] == "toy") continue;
      if (l.words[0] == "give") return values_of(l, 1, scope);
      auto sign = std::ranges::find(l.words, "=");
      const auto equals = static_cast<size_t>(sign - l.words.begin());
      if (equals + 1 >= l.words.size()) wrong(l, "a line is NAME... = OPERATOR OPERAND...");
      if (l.words[0] == "const") {
        define(scope, l.words.size() > 1 ? l.words[1] : "",
               frontend::value_of(constant_of(l, equals)), span);
        continue;
      }
      const std::string& name = l.words[equals + 1];
      Values results;
      try {
        results = operator_of(l, name, values_of(l, equals + 2, scope), scope);
      } catch (const frontend::BranchesDiffer& branches) {
        if (&lines != &lines_) throw;
        // What follows is read for each rank.
        import_both_ways(frontend::Builder(*this, name, span), branches,
                         {l.words.begin(), l.words.begin() + static_cast<std::ptrdiff_t>(equals)},
                         scope, outputs_, [&](frontend::Scope& way) {
                           try {
                             read_part(lines, way, line + 1);
                           } catch (const UserError& e) {
                             report(e);
                           }
                         });
        return {};
      }
      if (results.size() < equals) wrong(l, "the operator has fewer results");
      for (size_t i = 0; i < equals; ++i) define(scope, l.words[i], with_known(results[i]), span);
    }
    return {};
  }

  // A part one level deeper, in a scope of its own.
  Values nested_part(const ToyLine& l, const std::vector<ToyLine>& lines, frontend::Scope& inner) {
    Values out;
    nested(place_of(l), [&] { out = read_part(lines, inner); });
    return out;
  }

  Values operator_of(const ToyLine& l, const std::string& name, Values operands,
                     const frontend::Scope& scope) {
    Operands op(*this, name, std::move(operands), place_of(l));
    if (name == "if") {
      if (l.parts.size() != 2) wrong(l, "`if` has two parts");
      auto part = [&](size_t which) {
        return [this, &l, &scope, which] {
          frontend::Scope inner{{}, &scope};
          return nested_part(l, l.parts[which], inner);
        };
      };
      return choose(op, op.value(0), part(0), part(1));
    }
    if (name == "while") return while_of(op, l, scope);
    auto row = toy_operators().find(name);
    if (row == toy_operators().end()) {
      throw UserError(Diagnostic(codes::frontend_unsupported, place_of(l),
                                 "operator " + frontend::shorten(name) + " cannot be imported"));
    }
    return row->second(op);
  }

  Values while_of(const Operands& op, const ToyLine& l, const frontend::Scope& scope) {
    const auto is = [](const char* word) {
      return [word](const ToyLine& inner) { return inner.words[0] == word; };
    };
    if (l.parts.size() != 1 || l.parts[0].empty() || !is("do")(l.parts[0][0]))
      wrong(l, "`while` has a part that begins with `do`");
    const std::vector<ToyLine>& part = l.parts[0];
    auto test = std::ranges::find_if(part, is("test"));
    if (test == part.end()) wrong(l, "`while` has a `test`");
    const Words& names = part[0].words;
    // The carried values by their names inside, and what is computed for the test.
    auto begin = [&](const Values& carried, frontend::Scope& inner) {
      if (carried.size() + 1 != names.size()) wrong(part[0], "`do` names each carried value");
      for (size_t i = 0; i < carried.size(); ++i)
        define(inner, names[i + 1], carried[i], place_of(part[0]));
      nested_part(l, {part.begin() + 1, test}, inner);
      Values go = values_of(*test, 1, inner);
      if (go.size() != 1) wrong(*test, "`test` has one operand");
      return go[0];
    };
    frontend::ModelLoop loop;
    for (size_t i = 0; i < op.num_inputs(); ++i) loop.carried.push_back(op.value(i));
    frontend::Scope first{{}, &scope};
    loop.go = begin(loop.carried, first);
    loop.body = [&](const Values& inputs) {
      frontend::Scope now{{}, &scope}, then{{}, &scope};
      begin({inputs.begin() + 2, inputs.end()}, now);
      Values next = nested_part(l, {test + 1, part.end()}, now);
      next.insert(next.begin(), begin(next, then));
      return next;
    };
    return frontend::loop(op, loop);
  }

  std::vector<ToyLine> lines_;
  std::vector<std::string> outputs_;
};

inline FrontEnd toy_front_end() {
  return {
      .name = "toy",
      .title = "toy model",
      .endings = {".toy"},
      .sniff = [](std::string_view head) { return head.starts_with("toy 1\n"); },
      .import =
          [](const ModelSource& source, const ImportOptions& options) {
            std::shared_ptr<const frontend::MappedFile> file;
            if (!source.bytes)
              file = frontend::MappedFile::open(source.path, options.max_file_bytes);
            return ToyReader(source.bytes ? *source.bytes : file->bytes(), source.path, options)
                .read();
          },
  };
}

}  // namespace relay::test
