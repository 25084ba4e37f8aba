// What replaces a loop over a list of trees: all trees are computed first.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/purity.h"
#include "passes/trees/forest.h"

namespace relay::trees {

class RowLoop {
 public:
  // Finds the family of a function, and which one of it that is.
  using Find = std::function<std::pair<const Forest*, size_t>(const std::string& name)>;

  // `purity` knows the loop's expressions; all outlive it.
  RowLoop(Work& work, NodeLists& lists, PassContext& ctx, const Purity& purity,
          const ListLoop& loop)
      : work_(work), lists_(lists), ctx_(ctx), purity_(purity), loop_(loop) {}

  // Gives the loop another body.
  void make(const Find& find);

 private:
  Expr body(const Find& find, const std::vector<Expr>& own, const Var& nodes, const Var& token,
            const Var& last);
  Expr outside(const Expr& arg, const std::vector<Expr>& own) const;
  std::set<size_t> of_element_alone() const;
  Expr in_rows_alone(const std::set<size_t>& alone, const std::vector<size_t>& wanted,
                     const std::map<size_t, std::vector<Expr>>& tensors,
                     const std::vector<Expr>& own, const Var& token);

  Work& work_;
  NodeLists& lists_;
  PassContext& ctx_;
  const Purity& purity_;
  const ListLoop& loop_;
};

}  // namespace relay::trees
