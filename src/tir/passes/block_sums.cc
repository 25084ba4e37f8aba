#include "tir/passes/block_sums.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "node/structural.h"
#include "node/walk.h"
#include "tir/arith/analyzer.h"
#include "tir/matrix_nest.h"
#include "tir/passes/simplify.h"
#include "tir/passes/statements.h"

namespace relay::tir {
namespace {

constexpr DType kNarrow = DType::Float(32), kWide = DType::Float(64);
// Elements of a buffer that is put away whole.
constexpr int64_t kMostElements = 4096;
// Vectors that are put away by as many statements; more of them by a loop.
constexpr int64_t kMostStatements = 32;
// Accumulators of a thin product: more are a tile, which takes the registers.
constexpr size_t kThinTile = 8;

// Either may be null.
bool same(const PrimExpr& a, const PrimExpr& b) {
  return a == b || (a && b && a->kind() == b->kind() && structural_equal(a, b));
}
bool same_place(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
  return std::ranges::equal(a, b, same);
}

// The buffers and variables of an expression.
struct Leaves {
  std::vector<Buffer> buffers;
  std::vector<const Node*> variables;

  void add(const PrimExpr& e) {
    if (!e || isa<IntImmNode>(e)) return;
    post_order(
        e,
        [&](const Node& n) {
          if (isa<VarNode>(&n)) variables.push_back(&n);
          auto* l = as<LoadNode>(&n);
          if (l != nullptr && !reads(l->buffer)) buffers.push_back(l->buffer);
        },
        family::tir_code);
  }
  bool reads(const Buffer& b) const { return std::ranges::find(buffers, b) != buffers.end(); }
  bool uses(const Node* variable) const {
    return std::ranges::find(variables, variable) != variables.end();
  }
};

// What the store adds to the element that it stores; null when it does something else. Other elements of the buffer may be
// among what it reads.
PrimExpr addend_of(const StoreNode& s) {
  auto is_old = [&](const PrimExpr& e) {
    auto* l = as<LoadNode>(e);
    return l != nullptr && l->buffer == s.buffer && same_place(l->indices, s.indices);
  };
  PrimExpr addend;
  if (auto* b = as<BinaryNode>(s.value); b != nullptr && b->op == BinaryOp::Add) {
    addend = is_old(b->a) ? b->b : is_old(b->b) ? b->a : nullptr;
  } else if (auto* c = as<CallNode>(s.value); c != nullptr && c->name == "fma") {
    if (is_old(c->args[2])) addend = c->args[0] * c->args[1];
  }
  return addend;
}

// A product of elements of different tensors, or the sum of a word's.
bool is_product(const PrimExpr& e) {
  auto tensors = [](const PrimExpr& side) {
    std::unordered_set<const Node*> out;
    post_order(
        side,
        [&](const Node& n) {
          if (auto* l = as<LoadNode>(&n)) out.insert(l->buffer.get());
        },
        family::tir_code);
    return out;
  };
  bool found = false;
  post_order(
      e,
      [&](const Node& n) {
        auto* m = as<BinaryNode>(&n);
        auto* dot = as<CallNode>(&n);
        found = found || (dot != nullptr && dot->name == "bfloat16_dot");
        if (found || m == nullptr || m->op != BinaryOp::Mul || !m->dtype.is_floating()) return;
        auto left = tensors(m->a), right = tensors(m->b);
        found = !left.empty() && !right.empty() && left != right;
      },
      family::tir_code);
  return found;
}

// What the pass asks of a store, whatever loops stand around it.
struct Facts {
  PrimExpr addend;  // to the float32 element that it stores; null when it does something else
  Leaves indices;
  std::vector<Buffer> reads;    // but for the element that it adds to
  std::optional<size_t> place;  // once it was asked for
};

// The facts of a function's stores, each found once however many loops ask for them.
class Stores {
 public:
  const Facts& of(const StoreNode& s) { return facts(s); }

  // The same number for the same indices.
  size_t place_of(const StoreNode& s) {
    std::optional<size_t>& place = facts(s).place;
    if (!place) place = find_place(s);
    return *place;
  }

  // How often the statement adds to float32 elements at the most, whatever the elements are.
  double additions(const Stmt& s) {
    auto [it, added] = additions_.try_emplace(s.get(), 0);
    if (!added) return it->second;
    double count = 0;
    if (auto* store = as<StoreNode>(s)) count = may_add(*store) ? 1 : 0;
    for_each_inner(*s.get(), [&](const Stmt& inner) { count += additions(inner); });
    if (auto* f = as<ForNode>(s); f != nullptr && count > 0) count *= trips(*f);
    return additions_[s.get()] = count;
  }

  static double trips(const ForNode& f) {
    auto extent = as_int(f.extent);
    return extent ? static_cast<double>(*extent) : std::numeric_limits<double>::infinity();
  }

 private:
  static bool may_add(const StoreNode& s) {
    if (s.buffer->dtype != kNarrow) return false;
    auto* b = as<BinaryNode>(s.value);
    return b != nullptr ? b->op == BinaryOp::Add : isa<CallNode>(s.value);
  }

  Facts& facts(const StoreNode& s) {
    auto [it, added] = facts_.try_emplace(&s);
    if (added) it->second = find(s);
    return it->second;
  }

  static Facts find(const StoreNode& s) {
    Facts out;
    for (const PrimExpr& e : s.indices) out.indices.add(e);
    if (s.buffer->dtype == kNarrow && out.indices.buffers.empty()) out.addend = addend_of(s);
    Leaves others{out.indices.buffers, {}};
    others.add(s.predicate);
    others.add(out.addend ? out.addend : s.value);
    if (others.reads(s.buffer)) out.addend = nullptr;
    out.reads = std::move(others.buffers);
    return out;
  }

  size_t find_place(const StoreNode& s) {
    uint64_t hash = 0;
    for (const PrimExpr& e : s.indices) hash = hash * 31 + structural_hash(e);
    auto [first, last] = places_.equal_range(hash);
    auto known = std::find_if(first, last, [&](const auto& entry) {
      return same_place(entry.second.first->indices, s.indices);
    });
    if (known != last) return known->second.second;
    const size_t number = places_.size();
    places_.emplace(hash, std::pair(&s, number));
    return number;
  }

  std::unordered_map<const StoreNode*, Facts> facts_;
  std::unordered_map<const Node*, double> additions_;
  std::unordered_multimap<uint64_t, std::pair<const StoreNode*, size_t>> places_;
};

// What a loop adds in one place, under these conditions.
struct Update {
  const StoreNode* store;
  std::vector<PrimExpr> conditions;
  size_t place;  // the same number for the same indices, counted from 0 in the accumulator
};

// A buffer that a loop adds to, and whether it uses it for nothing else.
struct Accumulator {
  Buffer buffer;
  std::vector<Update> updates;
  bool legal = true;
  std::unordered_map<size_t, size_t> places;  // of the function to those of the accumulator
};

// All that a loop reads and writes.
class Accesses {
 public:
  Accesses(const ForNode& f, Stores& stores) : stores_(stores) { look(f); }

  // The accumulators of the loop; empty when it is one that stays as it is.
  std::vector<Accumulator> accumulators(const Var& var) const {
    std::vector<Accumulator> out;
    if (!plain_) return out;
    std::ranges::copy_if(all_, std::back_inserter(out), [&](const Accumulator& a) {
      return a.legal && std::ranges::none_of(a.updates, [&](const Update& u) {
               return stores_.of(*u.store).indices.uses(var.get());
             });
    });
    return out;
  }
  // Variables that the loop gives values to, its own among them.
  const std::vector<Var>& variables() const { return variables_; }

 private:
  Accumulator& at(const Buffer& b) {
    auto found = std::ranges::find_if(all_, [&](const Accumulator& a) { return a.buffer == b; });
    if (found == all_.end()) found = all_.insert(found, Accumulator{b, {}, true, {}});
    return *found;
  }

  void see(const PrimExpr& e) {
    Leaves leaves;
    leaves.add(e);
    for (const Buffer& b : leaves.buffers) at(b).legal = false;
  }

  void look(const ForNode& f) {
    plain_ = plain_ && f.loop_kind == ForKind::Serial && !in_matrix_nest(f) &&
             f.hints.order == LoopOrder::Forward;
    see(f.min);
    see(f.extent);
    variables_.push_back(f.var);
    look(f.body);
  }

  void look(const Stmt& s) {
    if (!plain_) return;
    switch (s->kind()) {
      case StmtKind::Store: {
        auto& store = static_cast<const StoreNode&>(*s.get());
        // Copies of a body may be one statement that stands in several places.
        if (!seen_.insert(&store).second) return;
        const Facts& facts = stores_.of(store);
        for (const Buffer& b : facts.reads) at(b).legal = false;
        Accumulator& a = at(store.buffer);
        a.legal = a.legal && facts.addend;
        if (!a.legal) return;
        const size_t place =
            a.places.try_emplace(stores_.place_of(store), a.places.size()).first->second;
        a.updates.push_back({&store, conditions_, place});
        return;
      }
      case StmtKind::For:
        return look(static_cast<const ForNode&>(*s.get()));
      case StmtKind::If: {
        auto& choice = static_cast<const IfNode&>(*s.get());
        see(choice.cond);
        conditions_.push_back(choice.cond);
        look(choice.then_body);
        conditions_.back() = logical_not(choice.cond);
        if (choice.else_body) look(choice.else_body);
        conditions_.pop_back();
        return;
      }
      case StmtKind::LetStmt:
        see(static_cast<const LetStmtNode&>(*s.get()).value);
        variables_.push_back(static_cast<const LetStmtNode&>(*s.get()).var);
        break;
      case StmtKind::Check:
        see(static_cast<const CheckNode&>(*s.get()).cond);
        break;
      case StmtKind::Evaluate:
        see(static_cast<const EvaluateNode&>(*s.get()).value);
        break;
      case StmtKind::Allocate:
        at(static_cast<const AllocateNode&>(*s.get()).buffer).legal = false;
        break;
      default:
        plain_ = plain_ && s->kind() == StmtKind::Seq;
        break;
    }
    for_each_inner(*s.get(), [&](const Stmt& inner) { look(inner); });
  }

  Stores& stores_;
  std::vector<Accumulator> all_;
  std::unordered_set<const StoreNode*> seen_;
  std::vector<Var> variables_;
  std::vector<PrimExpr> conditions_;
  bool plain_ = true;
};

// How often each store of some statement adds to one element.
using Counts = std::unordered_map<const StoreNode*, double>;

Counts counts_of(const Stmt& s, Stores& stores) {
  Counts out;
  if (auto* store = as<StoreNode>(s)) out[store] = 1;
  for_each_inner(*s.get(), [&](const Stmt& inner) {
    for (const auto& [store, count] : counts_of(inner, stores)) out[store] += count;
  });
  auto* f = as<ForNode>(s);
  if (f == nullptr) return out;
  const double trips = Stores::trips(*f);
  for (auto& [store, count] : out) {
    if (!stores.of(*store).indices.uses(f->var.get())) count *= trips;
  }
  return out;
}

// An element or a vector of a sum that is added to in one place.
struct Part {
  Buffer sum;
  std::vector<PrimExpr> at;
  PrimExpr lanes;       // of the vector; null: all
  PrimExpr guard;       // without it there is no such element; null: there is
  Buffer block, total;  // the same element of the sum of a block, and of that of all blocks
};

// A buffer that holds sums and nothing else, and is the sum of a block itself.
struct Whole {
  Buffer sum, total;
  int64_t size, lanes;
};

// One loop that adds to some accumulators.
class BlockedLoop {
 public:
  BlockedLoop(const ForNode& f, const std::vector<Var>& dims, Stores& stores, Analyzer& analyzer)
      : loop_(f), dims_(dims), stores_(stores), analyzer_(analyzer) {
    Accesses accesses(f, stores);
    size_t updates = 0;
    bool products = false;
    for (Accumulator& a : accesses.accumulators(f.var)) {
      if (a.updates.empty() || !takes(a, accesses.variables())) continue;
      updates += a.updates.size();
      for (const Update& u : a.updates)
        products = products || is_product(stores.of(*u.store).addend);
      sums_.push_back(std::move(a));
    }
    if (!products) return;
    block_ = updates > kThinTile ? kProductBlock : kThinProductBlock;
    least_ = kShortProductSum;
  }

  // The loop in blocks; null when it adds few terms to each element.
  Stmt run() {
    Stmt loop(&loop_);
    if (sums_.empty() || terms(loop) <= static_cast<double>(least_)) return nullptr;
    PrimExpr few = few_terms();
    std::vector<Stmt> steps;
    for_each_part(steps, [](const Part& p, const PrimExpr& place) {
      return guarded(p, store(p.total, {place}, cast(kWide, load(p.sum, p.at, p.lanes))));
    });
    steps.push_back(in_registers(cut(loop)));
    for_each_part(steps, [](const Part& p, const PrimExpr& place) {
      return guarded(p, store(p.sum, p.at, cast(kNarrow, load(p.total, {place})), p.lanes));
    });
    Stmt out = seq(std::move(steps));
    for (const Buffer& b : made_) out = allocate(b, out);
    return few ? if_(few, loop, out) : out;
  }

 private:
  Buffer made(const std::string& name, DType dtype, int64_t size) {
    made_.push_back(buffer(name, dtype, {index(size)}, Scope::Register));
    return made_.back();
  }

  // False where the elements that are added to are not known to be few, or to be apart.
  bool takes(const Accumulator& a, const std::vector<Var>& variables) {
    const bool own = a.buffer->scope == Scope::Register || a.buffer->scope == Scope::Local;
    auto size = a.buffer->shape.size() == 1 ? as_int(a.buffer->shape[0]) : std::nullopt;
    if (own && size && *size <= kMostElements) {
      int64_t lanes = 1;
      for (const Update& u : a.updates) {
        lanes = std::max<int64_t>(lanes, u.store->value->dtype.lanes);
      }
      wholes_.push_back(
          {a.buffer, made(a.buffer->name + "_total", kWide, *size), *size, std::min(lanes, *size)});
      return true;
    }
    std::vector<Part> places;
    std::unordered_map<size_t, size_t> numbers;  // of the accumulator's places to those in `places`
    for (const Update& u : a.updates) {
      auto moves = [&](const PrimExpr& e) {
        return std::ranges::any_of(variables, [&](const Var& v) { return uses(e, v.get()); });
      };
      const PrimExpr& lanes = u.store->predicate;
      if (std::ranges::any_of(u.store->indices, moves) || (lanes && moves(lanes))) return false;
      Part part{a.buffer, u.store->indices, lanes, nullptr, nullptr, nullptr};
      for (const PrimExpr& c : u.conditions) {
        if (!moves(c)) {
          part.guard = part.guard ? logical_and(part.guard, c) : c;
        } else if (!is_about(c, variables)) {
          return false;
        }
      }
      auto [number, added] = numbers.try_emplace(u.place, places.size());
      if (added) {
        places.push_back(part);
      } else if (const Part& known = places[number->second];
                 !same(known.guard, part.guard) || !same(known.lanes, part.lanes)) {
        return false;
      }
    }
    if (static_cast<int64_t>(places.size()) > kMostStatements) return false;
    for (size_t i = 0; i < places.size(); ++i) {
      for (size_t j = i + 1; j < places.size(); ++j) {
        if (!apart(places[i].at, places[j].at)) return false;
      }
    }
    for (Part& p : places) {
      int lanes = 1;
      for (const PrimExpr& e : p.at) lanes = std::max<int>(lanes, e->dtype.lanes);
      p.block = made(a.buffer->name + "_block", kNarrow, lanes);
      p.total = made(a.buffer->name + "_total", kWide, lanes);
      parts_.push_back(std::move(p));
    }
    return true;
  }

  // Whether the condition is on the loop's own variables and on sizes alone.
  bool is_about(const PrimExpr& condition, const std::vector<Var>& variables) const {
    bool alone = true;
    post_order(
        condition,
        [&](const Node& n) {
          auto is = [&](const Var& v) { return v.get() == &n; };
          alone = alone && (!isa<VarNode>(&n) || std::ranges::any_of(variables, is) ||
                            std::ranges::any_of(dims_, is));
        },
        family::tir_code);
    return alone;
  }

  // Vectors of neighbours that have no element in common.
  bool apart(const std::vector<PrimExpr>& a, const std::vector<PrimExpr>& b) {
    if (a.size() != 1 || b.size() != 1) return false;
    auto first = [](const PrimExpr& e) -> PrimExpr {
      if (e->dtype.lanes == 1) return e;
      auto* r = as<RampNode>(e);
      return r != nullptr && as_int(r->stride) == 1 ? r->base : nullptr;
    };
    PrimExpr x = first(a[0]), y = first(b[0]);
    auto distance = x && y ? analyzer_.constant_difference(x, y) : std::nullopt;
    return distance && (*distance >= b[0]->dtype.lanes || -*distance >= a[0]->dtype.lanes);
  }

  // ---- Steps between blocks

  static Stmt guarded(const Part& p, Stmt s) { return p.guard ? if_(p.guard, s) : s; }

  static PrimExpr lanes_from(const PrimExpr& first, int64_t lanes) {
    return lanes == 1 ? first : ramp(first, index(1), static_cast<int>(lanes));
  }

  // What `step` makes of each part and its place in the buffers of blocks and totals.
  template <class Step>
  void for_each_part(std::vector<Stmt>& out, const Step& step) const {
    for (const Part& p : parts_) {
      out.push_back(step(p, lanes_from(index(0), *as_int(p.total->shape[0]))));
    }
    for (const Whole& w : wholes_) {
      auto at = [&](const PrimExpr& first, int64_t lanes) {
        PrimExpr place = lanes_from(first, lanes);
        return step(Part{w.sum, {place}, nullptr, nullptr, w.sum, w.total}, place);
      };
      int64_t vectors = w.size / w.lanes;
      if (vectors > kMostStatements) {
        Var v = var("part");
        out.push_back(for_(v, index(0), index(vectors), at(v * w.lanes, w.lanes)));
      } else {
        for (int64_t i = 0; i < vectors; ++i) out.push_back(at(index(i * w.lanes), w.lanes));
      }
      for (int64_t done = vectors * w.lanes, lanes = w.lanes; done < w.size; done += lanes) {
        while (done + lanes > w.size) lanes /= 2;
        out.push_back(at(index(done), lanes));
      }
    }
  }

  Stmt block(std::vector<Stmt> body) const {
    std::vector<Stmt> out;
    for_each_part(out, [](const Part& p, const PrimExpr& place) {
      return store(p.block, {place}, imm_float(kNarrow, 0));
    });
    std::ranges::move(body, std::back_inserter(out));
    for_each_part(out, [](const Part& p, const PrimExpr& place) {
      return store(p.total, {place}, load(p.total, {place}) + cast(kWide, load(p.block, {place})));
    });
    return seq(std::move(out));
  }

  // Updates of sums that are not a block's own go to those.
  Stmt in_registers(const Stmt& s) const {
    auto* update = as<StoreNode>(s);
    if (update == nullptr) {
      return map_inner(s, [&](const Stmt& inner) { return in_registers(inner); });
    }
    for (const Part& p : parts_) {
      if (!(p.sum == update->buffer) || !same_place(p.at, update->indices)) continue;
      PrimExpr place = lanes_from(index(0), update->value->dtype.lanes);
      return store(p.block, {place}, load(p.block, {place}) + stores_.of(*update).addend);
    }
    return s;
  }

  // ---- Cutting

  // Whether a sum is short after all, where a run decides that; null where nothing can be said of it.
  PrimExpr few_terms() const {
    Stmt loop(&loop_);
    if (as_int(loop_.extent) && *as_int(loop_.extent) > least_) return nullptr;
    // What the loop does in one iteration, times how often it runs.
    const double each = terms(loop_.body);
    if (each > static_cast<double>(least_)) return nullptr;
    return le(loop_.extent, index(least_ / static_cast<int64_t>(each)));
  }

  // Terms that the statement adds to one element, at the most.
  double terms(const Stmt& s) const {
    const Counts counts = counts_of(s, stores_);
    double most = 0;
    for (const Accumulator& a : sums_) {
      std::vector<double> sums(a.places.size());
      for (const Update& u : a.updates) {
        if (auto it = counts.find(u.store); it != counts.end()) sums[u.place] += it->second;
      }
      most = std::max(most, *std::ranges::max_element(sums));
    }
    return most;
  }

  Stmt cut(const Stmt& s) const {
    const double count = terms(s);
    if (count == 0) return s;
    if (count <= static_cast<double>(block_)) return block({s});
    if (auto* f = as<ForNode>(s)) {
      const double each = terms(f->body);
      return each > static_cast<double>(block_) ? with_body(*f, cut(f->body)) : cut_loop(*f, each);
    }
    if (auto* all = as<SeqNode>(s)) return cut_sequence(*all);
    return map_inner(s, [&](const Stmt& inner) { return cut(inner); });
  }

  Stmt cut_sequence(const SeqNode& all) const {
    std::vector<Stmt> out, pending;
    double count = 0;
    auto finish = [&] {
      if (!pending.empty()) out.push_back(block(std::move(pending)));
      pending.clear();
      count = 0;
    };
    for (const Stmt& s : all.stmts) {
      const double mine = terms(s);
      if (count + mine > static_cast<double>(block_)) finish();
      if (mine > static_cast<double>(block_)) {
        out.push_back(cut(s));
      } else if (mine == 0 && pending.empty()) {
        out.push_back(s);
      } else {
        pending.push_back(s);
        count += mine;
      }
    }
    finish();
    return seq(std::move(out));
  }

  Stmt cut_loop(const ForNode& f, double each) const {
    int64_t step = std::max<int64_t>(1, static_cast<int64_t>(static_cast<double>(block_) / each));
    auto extent = as_int(f.extent);
    // Blocks of about one length.
    if (extent) step = (*extent + (*extent + step - 1) / step - 1) / ((*extent + step - 1) / step);
    Var b = var(f.var->name + "_block");
    PrimExpr first = b * step;
    PrimExpr count =
        extent && *extent % step == 0 ? index(step) : min(index(step), f.extent - first);
    Stmt part = make<ForNode>([&](ForNode& n) {
      n.var = f.var;
      n.min = f.min + first;
      n.extent = count;
      n.hints = f.hints;
      n.body = f.body;
    });
    return for_(b, index(0), floor_div(f.extent + (step - 1), index(step)), block({part}));
  }

  const ForNode& loop_;
  const std::vector<Var>& dims_;
  Stores& stores_;
  Analyzer& analyzer_;
  std::vector<Accumulator> sums_;
  std::vector<Part> parts_;
  std::vector<Whole> wholes_;
  std::vector<Buffer> made_;
  int64_t block_ = kSumBlock, least_ = kShortSum;
};

}  // namespace

PrimFunc block_sums(const PrimFunc& f) {
  Analyzer analyzer;
  analyzer.bind_function(f);
  Stores stores;
  std::function<Stmt(const Stmt&)> run = [&](const Stmt& s) {
    if (stores.additions(s) <= static_cast<double>(kShortSum)) return s;
    if (auto* loop = as<ForNode>(s)) {
      if (Stmt done = BlockedLoop(*loop, f->dims, stores, analyzer).run()) return done;
    }
    return map_inner(s, run);
  };
  Stmt body = run(f->body);
  return body == f->body ? f : simplify(with_body(f, body));
}

}  // namespace relay::tir
