#include "analysis/evaluate_constants.h"

#include "node/structural.h"
#include "node/walk.h"

namespace relay {
namespace {

// Keeping that much costs nothing.
constexpr int64_t kSmallBytes = 64 * 1024;
constexpr int64_t kMaxCalls = 16;

// An expression that is computed by itself, from constants and other pieces.
struct Piece {
  const ExprNode* root;
  std::vector<const Node*> inputs;  // in the order of their first use
};

class Pieces {
 public:
  Pieces(const Function& f, const std::unordered_set<const Node*>& constant) : constant_(constant) {
    std::vector<const Node*> order, open;
    // Tuples of constants stay tuples, at any depth: what they hold is evaluated.
    auto want = [&](const NodeRef& child) {
      if (!constant_.contains(child.get())) return;
      if (!isa<TupleNode>(child)) {
        wanted_.insert(child.get());
      } else if (tuples_.insert(child.get()).second) {
        open.push_back(child.get());
      }
    };
    post_order(
        f,
        [&](const Node& n) {
          if (constant_.contains(&n)) {
            order.push_back(&n);
            // What a tuple holds is used wherever the tuple is.
            int64_t uses = isa<TupleNode>(&n) ? 2 : 1;
            for_each_child(n, [&](const NodeRef& child) { uses_[child.get()] += uses; });
          } else {
            for_each_child(n, want);
          }
        },
        family::program);
    while (!open.empty()) {
      const Node* tuple = open.back();
      open.pop_back();
      for_each_child(*tuple, want);
    }
    for (const Node* n : order) cut(*static_cast<const ExprNode*>(n));
  }

  bool is_wanted(const Node* n) const { return wanted_.contains(n); }
  const std::vector<Piece>& all() const { return pieces_; }

 private:
  // Decides whether an expression, of which the operands are decided, is a piece.
  void cut(const ExprNode& n) {
    int64_t calls = isa<CallNode>(&n) ? 1 : 0;
    for_each_child(n, [&](const NodeRef& child) {
      auto it = calls_.find(child.get());
      if (it != calls_.end() && !is_piece_.contains(child.get())) calls += it->second;
    });
    calls_[&n] = calls;
    if (isa<TupleNode>(&n)) return;
    auto bytes = bytes_of(n.type);
    bool own = is_wanted(&n) || uses_[&n] > 1 || calls >= kMaxCalls || !isa<TensorTypeNode>(n.type);
    if (!own && bytes && *bytes > kSmallBytes) return;
    is_piece_.insert(&n);
    Piece piece{&n, {}};
    post_order_if(
        NodeRef(&n),
        [&](const Node& inner) {
          if (&inner == &n || !is_piece_.contains(&inner)) return true;
          piece.inputs.push_back(&inner);
          return false;
        },
        [&](const Node& inner) {
          if (isa<ConstantNode>(&inner)) piece.inputs.push_back(&inner);
        },
        family::expr);
    pieces_.push_back(std::move(piece));
  }

  const std::unordered_set<const Node*>& constant_;
  std::unordered_set<const Node*> wanted_, tuples_, is_piece_;
  std::unordered_map<const Node*, int64_t> uses_;
  std::unordered_map<const Node*, int64_t> calls_;  // of an expression, down to pieces
  std::vector<Piece> pieces_;
};

// The value of a piece, given those of its inputs; null when one is missing.
NodeRef evaluate_piece(const Piece& piece, const std::unordered_map<const Node*, NodeRef>& values,
                       const ConstantEvaluator& evaluate) {
  const ExprNode& root = *piece.root;
  if (auto* g = as<TupleGetItemNode>(&root)) {
    auto it = values.find(g->tuple.get());
    if (it != values.end()) return as<TupleNode>(it->second)->fields[static_cast<size_t>(g->index)];
  }
  ConstantFunction f;
  std::unordered_map<const Node*, NodeRef> by;
  std::string name;  // the weight's own, when there is one big leaf
  size_t biggest = 0;
  auto param = [&](const NodeRef& value) -> Expr {
    Constant c = cast<ConstantNode>(value);
    if (c->data.byte_size() > biggest && !c->name_hint.empty()) {
      biggest = c->data.byte_size();
      name = c->name_hint;
    }
    return f.param(c);
  };
  for (const Node* input : piece.inputs) {
    if (by.contains(input)) continue;
    if (isa<ConstantNode>(input)) {
      by.emplace(input, param(NodeRef(input)));
      continue;
    }
    auto it = values.find(input);
    if (it == values.end()) return nullptr;
    auto* t = as<TupleNode>(it->second);
    if (t == nullptr) {
      by.emplace(input, param(it->second));
      continue;
    }
    std::vector<Expr> fields;
    for (const Expr& field : t->fields) fields.push_back(param(field));
    by.emplace(input, tuple(std::move(fields)));
  }
  auto results = f.evaluate(Expr(&root), evaluate, std::move(by));
  if (!results) return nullptr;
  if (isa<TensorTypeNode>(root.type)) return constant(results->at(0), root.span, name);
  std::vector<Expr> fields;
  for (Tensor& t : *results) fields.push_back(constant(std::move(t), root.span));
  return tuple(std::move(fields), root.span);
}

// The values of expressions without operands (zeros, a range): each is computed once, however many of
// the program's are equal. Those of its steps are, where a loop was written out.
class ValuesOfNothing {
 public:
  // Null where it is not known.
  NodeRef find(const Piece& piece) const {
    if (!piece.inputs.empty()) return nullptr;
    auto same_hash = known_.find(structural_hash(Expr(piece.root)));
    if (same_hash == known_.end()) return nullptr;
    for (const auto& [root, value] : same_hash->second) {
      if (structural_equal(Expr(root), Expr(piece.root))) return value;
    }
    return nullptr;
  }
  NodeRef add(const Piece& piece, NodeRef value) {
    if (value && piece.inputs.empty()) {
      known_[structural_hash(Expr(piece.root))].emplace_back(piece.root, value);
    }
    return value;
  }

 private:
  std::unordered_map<uint64_t, std::vector<std::pair<const ExprNode*, NodeRef>>> known_;
};

}  // namespace

Var ConstantFunction::param(const Constant& c) {
  auto [it, is_new] = param_of_.try_emplace(c.get());
  if (is_new) {
    it->second = var("p" + std::to_string(params_.size()), c->type, c->span);
    params_.push_back(it->second);
    arguments_.push_back(c->data);
  }
  return it->second;
}

std::optional<std::vector<Tensor>> ConstantFunction::evaluate(
    const Expr& root, const ConstantEvaluator& evaluate,
    std::unordered_map<const Node*, NodeRef> by) const {
  for (const auto& [constant, param] : param_of_) by.emplace(constant, param);
  Expr body = cast<ExprNode>(substitute(root, by, family::expr));
  try {
    return evaluate(function(params_, body, body->type, {}, {}, root->span), arguments_);
  } catch (const RuntimeError&) {
    return std::nullopt;
  }
}

bool grows_too_much(int64_t bytes, int64_t arg_bytes) {
  constexpr int64_t kFreeBytes = 64 * 1024, kMaxGrowth = 16;
  return bytes > kFreeBytes && bytes / kMaxGrowth > arg_bytes;
}

std::optional<int64_t> bytes_of(const Type& type) {
  auto tensors = flatten_tensor_types(type);
  if (!tensors) return std::nullopt;
  int64_t total = 0;
  for (const TensorType& t : *tensors) {
    auto shape = t->const_shape();
    if (!shape) return std::nullopt;
    int64_t bytes = static_cast<int64_t>(t->dtype.bytes());
    for (int64_t d : *shape) {
      if (__builtin_mul_overflow(bytes, d, &bytes)) return std::nullopt;
    }
    if (__builtin_add_overflow(total, bytes, &total)) return std::nullopt;
  }
  return total;
}

std::unordered_map<const Node*, NodeRef> evaluate_constants(
    const Function& f, const std::unordered_set<const Node*>& constant,
    const ConstantEvaluator& evaluate) {
  Pieces pieces(f, constant);
  std::unordered_map<const Node*, size_t> last_use;
  for (size_t i = 0; i < pieces.all().size(); ++i) {
    for (const Node* input : pieces.all()[i].inputs) last_use[input] = i;
  }
  std::unordered_map<const Node*, NodeRef> values;
  ValuesOfNothing known;
  for (size_t i = 0; i < pieces.all().size(); ++i) {
    const Piece& piece = pieces.all()[i];
    NodeRef value = known.find(piece);
    if (!value) value = known.add(piece, evaluate_piece(piece, values, evaluate));
    if (value) values.emplace(piece.root, std::move(value));
    for (const Node* input : piece.inputs) {
      if (last_use[input] == i && !pieces.is_wanted(input)) values.erase(input);
    }
  }
  return values;
}

}  // namespace relay
