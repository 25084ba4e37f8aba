// A loop of the program as blocks of what it computes, in the order in which its kernel does (lower/compose_loop.h).
#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/expr.h"

namespace relay {

bool is_scalar_type(const Type& type);
size_t count_of_tensors(const Type& type);

struct LoopBlock;

// What a Let of a block computes.
struct LoopItem {
  Var var;
  Expr value;
  int position = 0;
  // Of an If; of the call that enters a loop: its function's body.
  std::unique_ptr<LoopBlock> then_block{}, else_block{}, body{};
  const FunctionNode* loop = nullptr;
  // Whether the loop's function calls itself; otherwise its body runs once.
  bool repeats = false;
  // Positions [first, second) of the else branch.
  std::pair<int, int> else_range{};
  // The last position inside.
  int end = 0;
};

// A function that several ends of a block call: what follows them is composed once, behind the block's items.
struct LoopJoin {
  Var var;
  const FunctionNode* function = nullptr;
  std::unique_ptr<LoopBlock> body{};
  // The position before its body, and the last one inside.
  int position = 0;
  int end = 0;
};

struct LoopBlock {
  std::vector<LoopItem> items;
  // The ends of the items, and the bodies of later joins, call a join.
  std::vector<LoopJoin> joins;
  Expr result;
  bool ends_in_tail() const { return !items.empty() && result == items.back().var; }
};

// Reads the program, puts writes behind what reads the tensor they write to, and numbers what is left.
class LoopProgram {
 public:
  std::unique_ptr<LoopBlock> read(const Expr& body);
  // A tensor that a value is, unless it is written to a place of its own: a variable and one of the
  // tensors of its type.
  using Root = std::pair<const Node*, size_t>;
  // Of each tensor of a variable.
  const std::vector<Root>& roots(const Node* v);
  // What a variable of the program is bound to; else the expression.
  Expr definition(const Expr& e) const;
  // Whether a variable is read behind a position, but for the ranges in which control is not, and for fields of a tuple
  // that do not `matter` (kWhole: all of it).
  static constexpr int64_t kWhole = -1;
  bool is_used_after(const Node* v, int position, const std::vector<std::pair<int, int>>& excluded,
                     const std::function<bool(int64_t field)>& matters) const;

 private:
  // A kernel is nested as deep as the pass that made it allows. `tail`: the block is in the tail position of a loop.
  std::unique_ptr<LoopBlock> parse(Expr e, bool tail);
  // The variables that an item reads, those of the blocks inside included.
  static void variables_of(const LoopItem& item, std::unordered_set<const Node*>& out);
  static bool is_late(const LoopItem& item);
  // Whether it, or a block inside, may end the run by an assertion.
  static bool asserts(const LoopItem& item);
  // Whatever does not wait for a write comes before it. Writes keep their order.
  static void delay_writes(LoopBlock& block);
  // What the results of a loop are, where it ends in several places.
  struct Leaves {
    std::vector<Root> roots;
    bool any = false;
    void add(const std::vector<Root>& more) {
      if (!any) {
        roots = more;
      } else {
        for (size_t k = 0; k < roots.size(); ++k) {
          if (roots[k] != more[k]) roots[k] = {nullptr, 0};
        }
      }
      any = true;
    }
  };
  struct Use {
    int position;
    int64_t field;
  };
  void use(const Expr& e, int64_t field = kWhole);
  std::vector<Root> roots_of(const Expr& e);
  // `leaves`: those of the loop in whose tail position the block is; null: it is in none.
  void number(LoopBlock& block, Leaves* leaves);
  void number_items(LoopBlock& block, Leaves* leaves);
  void number(LoopJoin& join, Leaves* leaves);
  void number_body(LoopItem& item, Leaves& leaves);
  // What a loop was given for a parameter; other tensors as they are.
  Root given(const LoopItem& item, const Root& root, bool& is_parameter);
  // What a loop gives is what it was given where each of its ends gives that part of its state.
  std::vector<Root> results_of(const LoopItem& item, const Leaves& leaves);
  std::unordered_map<const Node*, const FunctionNode*> functions_;
  // What the calls of joins, and of loops that go on, give them.
  std::unordered_map<const Node*, Leaves> joined_;
  std::unordered_set<const Node*> open_;
  std::unordered_map<const Node*, Expr> definitions_;
  std::unordered_map<const Node*, std::vector<Use>> uses_;
  std::unordered_map<const Node*, std::vector<Root>> roots_;
  int next_ = 0;
};

}  // namespace relay
