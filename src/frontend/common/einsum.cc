#include "frontend/common/einsum.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>

#include "base/codes/frontend.h"
#include "base/codes/types.h"

namespace relay::frontend {
namespace {

// Moves the dimensions named by `from` into the order of `to`, a permutation of it.
Expr permute(const Builder& build, Expr e, const std::string& from, const std::string& to) {
  std::vector<int64_t> axes;
  for (char c : to) axes.push_back(static_cast<int64_t>(from.find(c)));
  return build.transpose(std::move(e), axes);
}

struct Term {
  Expr e;
  std::string labels;
};

// Sums over the labels that `keep` lacks.
void sum_out(const Builder& build, Term& t, const std::string& keep) {
  std::vector<int64_t> axes;
  std::string left;
  for (size_t i = 0; i < t.labels.size(); ++i) {
    if (keep.find(t.labels[i]) == std::string::npos) {
      axes.push_back(static_cast<int64_t>(i));
    } else {
      left += t.labels[i];
    }
  }
  t.e = build.reduce("sum", t.e, axes, false);
  t.labels = left;
}

// The product of two terms, keeping the labels of `keep`, as one batched matrix product.
Term contract(const Builder& build, Term a, Term b, const std::string& keep) {
  auto has = [](const std::string& s, char c) { return s.find(c) != std::string::npos; };
  sum_out(build, a, keep + b.labels);
  sum_out(build, b, keep + a.labels);
  std::string batch, inner, rows, columns;
  for (char c : a.labels) {
    if (has(b.labels, c)) {
      (has(keep, c) ? batch : inner) += c;
    } else {
      rows += c;
    }
  }
  for (char c : b.labels) {
    if (!has(a.labels, c)) columns += c;
  }
  std::map<char, Dim> sizes;
  for (const Term* t : {&a, &b}) {
    for (size_t i = 0; i < t->labels.size(); ++i) {
      const Dim& d = Builder::shape_of(t->e)[i];
      auto [it, fresh] = sizes.try_emplace(t->labels[i], d);
      if (!fresh && dim_differs(it->second, d)) {
        build.fail(codes::type_shape, "the sizes of an index differ", to_string(it->second),
                   to_string(d));
      }
    }
  }
  auto product = [&](const std::string& labels) {
    Dim p = dim(1);
    for (char c : labels) p = p * sizes.at(c);
    return p;
  };
  Expr left = permute(build, a.e, a.labels, batch + rows + inner);
  Expr right = permute(build, b.e, b.labels, batch + inner + columns);
  left = build.reshape(left, {product(batch), product(rows), product(inner)});
  right = build.reshape(right, {product(batch), product(inner), product(columns)});
  std::vector<Dim> result;
  std::string labels = batch + rows + columns;
  for (char c : labels) result.push_back(sizes.at(c));
  Expr y = build.call("nn.batch_matmul", {left, right},
                      {{"transpose_a", false}, {"transpose_b", false}});
  return {build.reshape(y, result), labels};
}

// A size of 1 is broadcast to the other operands' size of the index: it is one element, whatever
// the index, and its axis goes.
void drop_broadcast(const Builder& build, std::vector<Term>& terms) {
  std::set<char> larger;
  for (const Term& t : terms) {
    const std::vector<Dim>& shape = Builder::shape_of(t.e);
    for (size_t i = 0; i < shape.size(); ++i) {
      if (as_const(shape[i]) != 1) larger.insert(t.labels[i]);
    }
  }
  for (Term& t : terms) {
    const std::vector<Dim> shape = Builder::shape_of(t.e);
    std::set<char> own;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (as_const(shape[i]) != 1) own.insert(t.labels[i]);
    }
    std::vector<Dim> left;
    std::string labels;
    for (size_t i = 0; i < shape.size(); ++i) {
      if (larger.contains(t.labels[i]) && !own.contains(t.labels[i])) continue;
      left.push_back(shape[i]);
      labels += t.labels[i];
    }
    if (left.size() != shape.size()) t = {build.reshape(t.e, left), labels};
  }
}

bool has_diagonal(const Term& t) {
  return std::set<char>(t.labels.begin(), t.labels.end()).size() < t.labels.size();
}

// Letters in place of the labels of an ellipsis, in all of them; false where there are too few.
bool make_letters(std::vector<std::string*> all) {
  std::set<char> labels;
  for (const std::string* s : all) labels.insert(s->begin(), s->end());
  char next = 'A';
  for (char c : labels) {
    if (std::isalpha(static_cast<unsigned char>(c))) continue;
    while (next <= 'z' &&
           (labels.contains(next) || !std::isalpha(static_cast<unsigned char>(next))))
      ++next;
    if (next > 'z') return false;
    for (std::string* s : all) std::ranges::replace(*s, c, next);
    ++next;
  }
  return true;
}

}  // namespace

// An ellipsis stands for labels of its own, one per dimension.
Expr einsum(const Builder& build, std::string equation, const std::vector<Expr>& operands) {
  std::erase(equation, ' ');
  auto bad = [&](const std::string& why) {
    build.fail(codes::frontend_attribute, "the equation cannot be used: " + why, {},
               equation.substr(0, 200));
  };
  if (equation.size() > 1000) bad("it is too long");
  size_t arrow = equation.find("->");
  std::string left = equation.substr(0, arrow);
  std::vector<std::string> inputs(1);
  for (char c : left) {
    if (c == ',') {
      inputs.emplace_back();
    } else {
      inputs.back() += c;
    }
  }
  if (inputs.size() != operands.size()) bad("it has another number of operands");
  // Characters below 'A' serve as labels of the ellipsis' dimensions.
  size_t widest = 0;
  auto expand = [&](std::string labels, int64_t rank) {
    size_t dots = labels.find("...");
    if (dots == std::string::npos) return labels;
    auto more = static_cast<int64_t>(labels.size()) - 3;
    if (rank < more || rank - more > 16) bad("an operand has another rank");
    auto n = static_cast<size_t>(rank - more);
    widest = std::max(widest, n);
    std::string own;
    for (size_t i = 0; i < n; ++i) own += static_cast<char>('0' + 16 - n + i);
    return labels.replace(dots, 3, own);
  };
  std::vector<Term> terms;
  for (size_t i = 0; i < operands.size(); ++i) {
    int64_t rank = Builder::rank_of(operands[i]);
    std::string labels = expand(inputs[i], rank);
    if (static_cast<int64_t>(labels.size()) != rank) bad("an operand has another rank");
    for (char c : inputs[i]) {
      if (c != '.' && !std::isalpha(static_cast<unsigned char>(c))) bad("an index is not a letter");
    }
    terms.push_back({operands[i], labels});
  }
  drop_broadcast(build, terms);
  std::string output;
  if (arrow != std::string::npos) {
    output = equation.substr(arrow + 2);
    size_t dots = output.find("...");
    if (dots != std::string::npos) {
      std::string own;
      for (size_t i = 0; i < widest; ++i) own += static_cast<char>('0' + 16 - widest + i);
      output.replace(dots, 3, own);
    }
  } else {
    // Labels that occur once, in alphabetical order after the ellipsis.
    std::map<char, int> uses;
    for (const Term& t : terms) {
      for (char c : t.labels) uses[c] += 1;
    }
    for (auto [c, n] : uses) {
      if (n == 1 || c < 'A') output += c;
    }
  }
  for (char c : output) {
    bool found = std::any_of(terms.begin(), terms.end(),
                             [&](const Term& t) { return t.labels.find(c) != std::string::npos; });
    if (!found || std::count(output.begin(), output.end(), c) > 1) bad("its result is unclear");
  }
  if (std::ranges::any_of(terms, has_diagonal)) {
    // No matrix product.
    std::vector<std::string*> labels{&output};
    for (Term& t : terms) labels.push_back(&t.labels);
    if (!make_letters(labels)) bad("it has more than 52 indices");
    std::string text;
    std::vector<Expr> all;
    for (const Term& t : terms) {
      text += (all.empty() ? "" : ",") + t.labels;
      all.push_back(t.e);
    }
    text += "->" + output;
    return build.call("einsum", {build.tuple_of(all)}, {{"equation", text}});
  }
  Term at = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    std::string keep = output;
    for (size_t j = i + 1; j < terms.size(); ++j) keep += terms[j].labels;
    at = contract(build, std::move(at), terms[i], keep);
  }
  sum_out(build, at, output);
  return permute(build, at.e, at.labels, output);
}

}  // namespace relay::frontend
