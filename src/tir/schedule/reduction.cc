// Schedule steps on reductions: decompose_reduction, mask_reduction and rfactor.
#include <algorithm>

#include "node/structural.h"
#include "tir/block_contraction.h"
#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// Whether the condition is true for every iteration of the other loops when the loops over `vars`
// are at their start. Only then is every element initialised whose reduction is guarded by it.
bool holds_at_start(const ScheduleEdit& edit, const BlockNode& b, const PrimExpr& condition,
                    const std::vector<const Node*>& vars) {
  Analyzer analyzer;
  VarMap start;
  for (const ForNode* f : edit.tree.loops_around(&b)) {
    analyzer.bind(f->var, f->min, f->extent);
    if (std::find(vars.begin(), vars.end(), f->var.get()) != vars.end()) {
      start[f->var.get()] = f->min;
    }
  }
  return as_int(analyzer.simplify(replace_vars(condition, start))) == 1;
}

// Whether two iterations of `loops` may compute the same element, as windows that overlap do:
// `binding` is a sum of the loops' variables in which a step of one is within reach of the others.
bool overlaps(const PrimExpr& binding, const std::vector<const ForNode*>& loops) {
  struct Term {
    int64_t step;
    std::optional<int64_t> extent;
  };
  Analyzer analyzer;
  std::vector<Term> terms;
  for (const ForNode* f : loops) {
    if (!uses_var(binding, f->var.get())) continue;
    PrimExpr next = replace_vars(binding, {{f->var.get(), f->var + 1}});
    auto step = analyzer.constant_difference(next, binding);
    if (!step) return false;  // a quotient or rest of a fused loop
    terms.push_back({std::abs(*step), as_int(f->extent)});
  }
  std::sort(terms.begin(), terms.end(),
            [](const Term& a, const Term& b) { return a.step < b.step; });
  int64_t reach = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    if (terms[i].extent == 1) continue;
    if (terms[i].step <= reach) return true;
    if (!terms[i].extent) return i + 1 < terms.size();
    reach += terms[i].step * (*terms[i].extent - 1);
  }
  return false;
}

}  // namespace

StepResult<BlockRV> Schedule::decompose_reduction(const BlockRV& rv, const LoopRV& loop_rv) {
  ScheduleEdit edit(*this, "decompose_reduction");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const ForNode* at = RELAY_TRY(edit.loop(loop_rv));
  if (!b->init) return edit.fail("block " + b->name + " has no initialisation inside");
  if (!edit.tree.contains(at, b)) {
    return edit.fail("loop " + at->var->name + " is not around block " + b->name);
  }
  std::vector<const ForNode*> inner;
  for (const ForNode* f : edit.tree.loops_around(b)) {
    if (f == at || edit.tree.contains(at, f)) {
      inner.push_back(f);
    } else if (ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) {
      return edit.fail("reduction loop " + f->var->name + " of block " + b->name +
                       " is around loop " + at->var->name);
    }
  }
  // The initialisation runs over the data-parallel iterations inside `at`.
  VarMap own;
  VarMap fresh;
  std::vector<const ForNode*> spatial;
  std::vector<const Node*> reduction_vars;
  for (const ForNode* f : inner) {
    if (ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel)) {
      if (ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) {
        return edit.fail("loop " + f->var->name + " belongs to the reduction and to the result");
      }
      spatial.push_back(f);
      fresh[f->var.get()] = fresh_var(f->var);
    } else {
      if (!ScheduleEdit::bound_to(*f, *b, IterKind::Reduce) && as_int(f->extent) != 1) {
        return edit.fail("block " + b->name + " reduces again in every iteration of loop " +
                         f->var->name);
      }
      reduction_vars.push_back(f->var.get());
    }
  }
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (b->iters[i]->kind != IterKind::Reduce && overlaps(b->bindings[i], spatial)) {
      return edit.fail("block " + b->name +
                       " reduces the same elements in several iterations inside loop " +
                       at->var->name);
    }
  }
  PrimExpr predicate;
  for (const PrimExpr& e : conjuncts(b->predicate)) {
    if (!uses_any_var(e, reduction_vars)) {
      predicate = conjoin(predicate, e);
      continue;
    }
    if (!holds_at_start(edit, *b, e, reduction_vars)) {
      return edit.fail("the first iteration of the reduction of block " + b->name +
                       " is not known to run for every element of the result");
    }
  }
  BlockRV out{fresh_name(b->name + "_init")};
  Block first = modified(*b, [&](BlockNode& n) {
    n.name = out.name;
    n.iters.clear();
    n.bindings.clear();
    for (size_t i = 0; i < b->iters.size(); ++i) {
      const IterVar& v = b->iters[i];
      if (v->kind == IterKind::Reduce) continue;
      Var copy = var(v->var->name, v->var->dtype);
      own[v->var.get()] = copy;
      n.iters.push_back(iter_var(copy, v->extent, v->kind, v->min));
      n.bindings.push_back(replace_vars(b->bindings[i], fresh));
    }
    n.predicate = predicate ? replace_vars(predicate, fresh) : predicate;
    n.reads.clear();
    for (Region& r : n.writes) r = replace_vars(r, own);
    n.body = replace_vars(b->init, own);
    n.init = nullptr;
    n.contraction = nullptr;
  });
  Stmt init = first;
  for (size_t i = spatial.size(); i-- > 0;) {
    init = modified(*spatial[i], [&](ForNode& n) {
      n.var = Var::unchecked(fresh[spatial[i]->var.get()]);
      n.body = init;
    });
  }
  Stmt update = modified(*b, [&](BlockNode& n) { n.init = nullptr; });
  Stmt loop_stmt = replace_stmts(ref(*at), {{b, update}});
  Stmt body = replace_stmts(func_->body, {{at, seq({init, loop_stmt})}});
  set_body(ScheduleEdit::reach_moved(body, *first));
  record("decompose_reduction", {b->name, at->var->name}, {out.name});
  return out;
}

StepResult<ScheduleEdit::Update> ScheduleEdit::update_of(const BlockNode& b) const {
  const StoreNode* s = single_store(b);
  const BinaryNode* update = s != nullptr && !s->predicate ? as<BinaryNode>(s->value) : nullptr;
  const LoadNode* old = update != nullptr ? as<LoadNode>(update->a) : nullptr;
  bool same = old != nullptr && old->buffer == s->buffer && !old->predicate;
  for (size_t d = 0; same && d < s->indices.size(); ++d) {
    same = structural_equal(old->indices[d], s->indices[d]);
  }
  bool known = false;
  if (same) {
    switch (update->op) {
      case BinaryOp::Add:
      case BinaryOp::Mul:
      case BinaryOp::Min:
      case BinaryOp::Max:
      case BinaryOp::And:
      case BinaryOp::Or:
        known = true;
        break;
      default:
        break;
    }
  }
  if (!known) {
    return fail("the reduction of block " + b.name +
                " is not one of sum, product, minimum, maximum");
  }
  return Update{s, update->op, update->a, update->b};
}

StepResult<> Schedule::mask_reduction(const BlockRV& rv) {
  ScheduleEdit edit(*this, "mask_reduction");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  if (!b->init)
    return edit.fail("block " + b->name + " is not a reduction with its initialisation inside");
  ScheduleEdit::Update update = RELAY_TRY(edit.update_of(*b));
  Buffer result = RELAY_TRY(edit.written_buffer(*b));
  auto* init = as<StoreNode>(b->init);
  bool constant =
      init != nullptr && (isa<IntImmNode>(init->value) || isa<FloatImmNode>(init->value));
  double start = 0;
  if (constant) {
    auto* f = as<FloatImmNode>(init->value);
    start = f != nullptr ? f->value : static_cast<double>(*as_int(init->value));
  }
  bool identity = constant && (update.op == BinaryOp::Add   ? start == 0
                               : update.op == BinaryOp::Mul ? start == 1
                                                            : true);
  if (!identity) return edit.fail("block " + b->name + " does not start from the identity");
  // Each reduction loop becomes an iteration of its own, so that the guard can be said in the
  // block's iterations.
  VarMap as_iters, own;
  std::vector<IterVar> iters;
  std::vector<PrimExpr> bindings;
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (b->iters[i]->kind == IterKind::Reduce) continue;
    iters.push_back(b->iters[i]);
    bindings.push_back(b->bindings[i]);
  }
  for (const ForNode* f : edit.tree.loops_around(b)) {
    if (!ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) continue;
    if (ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel)) {
      return edit.fail("loop " + f->var->name + " belongs to the reduction and to the result");
    }
    Var k = var(f->var->name, f->var->dtype);
    as_iters[f->var.get()] = k;
    iters.push_back(iter_var(k, f->extent, IterKind::Reduce, f->min));
    bindings.push_back(f->var);
  }
  for (size_t i = 0; i < b->iters.size(); ++i) {
    if (b->iters[i]->kind != IterKind::Reduce) continue;
    own[b->iters[i]->var.get()] = replace_vars(b->bindings[i], as_iters);
  }
  Analyzer analyzer;
  bind_loops(analyzer, edit.tree.loops_around(b));
  std::vector<PrimExpr> shape = result->shape;
  PrimExpr condition;
  for (const PrimExpr& e : conjuncts(b->predicate)) {
    bool reduction_only = true;
    for (const ForNode* f : edit.tree.loops_around(b)) {
      reduction_only &= as_iters.contains(f->var.get()) || !uses_var(e, f->var.get());
    }
    if (reduction_only) {
      condition = conjoin(condition, replace_vars(e, as_iters));
      continue;
    }
    size_t at = 0;
    for (; at < iters.size(); ++at) {
      if (iters[at]->kind != IterKind::DataParallel) continue;
      PrimExpr end = iters[at]->min + iters[at]->extent;
      if (structural_equal(analyzer.simplify(lt(bindings[at], end)), analyzer.simplify(e))) break;
    }
    Bounds reach = at < iters.size() ? analyzer.bounds(bindings[at]) : Bounds{};
    if (at == iters.size() || !reach.has_max() || is_output(result)) {
      return edit.fail("the guard " + to_string(e) + " of block " + b->name +
                       " cannot become a choice");
    }
    const IterVar old = iters[at];
    condition = conjoin(condition, lt(old->var, old->min + old->extent));
    iters[at] = iter_var(old->var, index(reach.max + 1) - old->min, old->kind, old->min);
    for (size_t d = 0; d < shape.size(); ++d) {
      const PrimExpr& stored = update.store->indices[d];
      if (stored == old->var) {
        shape[d] = index(reach.max + 1);
      } else if (uses_var(stored, old->var.get())) {
        return edit.fail("block " + b->name + " does not store at its plain iteration variable " +
                         old->var->name);
      }
    }
  }
  if (!condition) return {};
  PrimExpr value = replace_vars(update.value, own);
  Block masked = Block::unchecked(modified(*b, [&](BlockNode& n) {
    n.iters = iters;
    n.bindings = bindings;
    n.predicate = nullptr;
    n.body = store(result, update.store->indices,
                   binary(update.op, update.old, select(condition, value, init->value)));
  }));
  Stmt all = replace_stmts(func_->body, {{b, with_access_regions(masked)}});
  bool grows = false;
  for (size_t d = 0; d < shape.size(); ++d) grows |= !structural_equal(shape[d], result->shape[d]);
  if (grows) {
    Buffer larger = modified(*result, [&](BufferNode& n) { n.shape = shape; });
    all = replace_vars(all, {{result.get(), larger}});
  }
  set_body(all);
  record("mask_reduction", {b->name});
  return {};
}

StepResult<> Schedule::word_dot(const BlockRV& rv, const LoopRV& loop_rv) {
  ScheduleEdit edit(*this, "word_dot");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const ForNode* f = RELAY_TRY(edit.loop(loop_rv));
  constexpr int64_t kWordBits = 32;
  if (b->init || (b->predicate && uses_var(b->predicate, f->var.get()))) {
    return edit.fail("block " + b->name + " has an initialisation, or a guard that reads loop " +
                     f->var->name);
  }
  ScheduleEdit::Update update = RELAY_TRY(edit.update_of(*b));
  auto at = std::ranges::find_if(b->bindings, [&](const PrimExpr& e) { return e == f->var; });
  if (at == b->bindings.end()) {
    return edit.fail("block " + b->name + " has no iteration that is loop " + f->var->name);
  }
  const Var& k = b->iters[static_cast<size_t>(at - b->bindings.begin())]->var;
  auto factor_of = [&](const PrimExpr& e) -> const LoadNode* {
    auto* wide = as<CastNode>(e);
    auto* load = wide == nullptr ? nullptr : as<LoadNode>(wide->value);
    if (load == nullptr || load->predicate) return nullptr;
    const bool is_byte = load->dtype.is_integer() && load->dtype.bits == 8;
    return (is_byte && e->dtype == DType::Int(32)) ||
                   (load->dtype.is_bfloat16() && e->dtype == DType::Float(32))
               ? load
               : nullptr;
  };
  auto* product = as<BinaryNode>(update.value);
  const LoadNode *x = nullptr, *y = nullptr;
  if (update.op == BinaryOp::Add && product != nullptr && product->op == BinaryOp::Mul) {
    x = factor_of(product->a);
    y = factor_of(product->b);
  }
  if (x != nullptr && y != nullptr && x->dtype.is_int()) std::swap(x, y);
  const bool halves =
      x != nullptr && y != nullptr && x->dtype.is_bfloat16() && y->dtype.is_bfloat16();
  if (x == nullptr || y == nullptr || !(halves || (x->dtype.is_uint() && y->dtype.is_int()))) {
    return edit.fail("block " + b->name +
                     " adds no products of an unsigned byte and a signed one, or of bfloat16");
  }
  const int64_t elements = kWordBits / x->dtype.bits;
  if (!has_whole_tiles(loop_rv, elements) || as_int(f->min) != 0) {
    return edit.fail("loop " + f->var->name + " does not run over a multiple of " +
                     std::to_string(elements));
  }
  Analyzer analyzer;
  Var word = var("word");
  for (const LoadNode* l : {x, y}) {
    PrimExpr offset = element_offset(*l->buffer.get(), l->indices);
    auto place = [&](int64_t element) {
      return replace_vars(offset, {{k.get(), PrimExpr(word) * elements + element}});
    };
    for (int64_t element = 1; element < elements; ++element) {
      PrimExpr here = analyzer.simplify(place(element)), first = analyzer.simplify(place(0));
      if (analyzer.constant_difference(here, first) != element) {
        return edit.fail("block " + b->name + " does not read neighbouring elements of " +
                         l->buffer->name);
      }
    }
  }
  auto word_of = [](const LoadNode* l) { return call("load_word", DType::Int(32), {PrimExpr(l)}); };
  PrimExpr dot =
      call(halves ? "bfloat16_dot" : "byte_dot", update.value->dtype, {word_of(x), word_of(y)});
  Stmt block = modified(*b, [&](BlockNode& n) {
    n.bindings[static_cast<size_t>(at - b->bindings.begin())] = f->var * elements;
    n.body = store(update.store->buffer, update.store->indices, update.old + dot);
    n.contraction = nullptr;
  });
  Stmt body = replace_stmts(f->body, {{b, block}});
  Stmt loop = modified(*f, [&](ForNode& n) {
    n.extent = analyzer.simplify(floor_div(f->extent, index(elements)));
    n.body = body;
  });
  set_body(replace_stmts(func_->body, {{f, loop}}));
  record("word_dot", {b->name, f->var->name});
  return {};
}

StepResult<BlockRV> Schedule::rfactor(const BlockRV& rv, const LoopRV& loop_rv) {
  ScheduleEdit edit(*this, "rfactor");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  const ForNode* at = RELAY_TRY(edit.loop(loop_rv));
  if (!b->init)
    return edit.fail("block " + b->name + " is not a reduction with its initialisation inside");
  Buffer result = RELAY_TRY(edit.written_buffer(*b));
  ScheduleEdit::Update update = RELAY_TRY(edit.update_of(*b));
  const StoreNode* s = update.store;
  const StoreNode* init = as<StoreNode>(b->init);
  if (init == nullptr)
    return edit.fail("the initialisation of block " + b->name + " is not a single store");
  if (!ScheduleEdit::bound_to(*at, *b, IterKind::Reduce) || !edit.tree.contains(at, b)) {
    return edit.fail("loop " + at->var->name + " is not a reduction loop of block " + b->name);
  }
  if (!as_int(at->extent))
    return edit.fail("the extent of loop " + at->var->name + " is not a constant");
  std::vector<const ForNode*> around = edit.tree.loops_around(b);
  // From the outermost reduction loop on, the loops are the block's own.
  size_t first = 0;
  while (!ScheduleEdit::bound_to(*around[first], *b, IterKind::Reduce)) ++first;
  const ForNode* root = around[first];
  if (edit.tree.blocks_in(root).size() != 1) {
    return edit.fail("other blocks stand in the reduction loops of block " + b->name);
  }
  std::vector<const ForNode*> inner(around.begin() + static_cast<std::ptrdiff_t>(first),
                                    around.end());
  for (const ForNode* f : inner) {
    if (ScheduleEdit::bound_to(*f, *b, IterKind::Reduce) &&
        ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel)) {
      return edit.fail("loop " + f->var->name + " belongs to the reduction and to the result");
    }
  }

  std::vector<const Node*> rest;  // what is left to the first reduction
  for (const ForNode* f : inner) {
    if (f != at && ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) rest.push_back(f->var.get());
  }
  for (const PrimExpr& e : conjuncts(b->predicate)) {
    if (uses_var(e, at->var.get()) && !holds_at_start(edit, *b, e, rest)) {
      return edit.fail("some iterations of loop " + at->var->name +
                       " may run for no element of the " + "reduction of block " + b->name);
    }
  }

  Buffer partial = buffer(fresh_name(result->name + "_rf"), result->dtype, result->shape);
  std::vector<PrimExpr> shape = result->shape;
  shape.push_back(at->extent);
  partial = modified(*partial, [&](BufferNode& n) { n.shape = shape; });

  // The block that fills `partial`: the factored loop becomes a data-parallel iteration, each
  // other reduction loop an iteration of its own.
  BlockRV out{fresh_name(b->name + "_rf")};
  VarMap own;       // iteration variables of the block to those of the new one
  VarMap as_iters;  // loop variables to iteration variables
  Var lane = var(at->var->name, kIndex);
  Stmt partial_block = modified(*b, [&](BlockNode& n) {
    n.name = out.name;
    n.iters.clear();
    n.bindings.clear();
    for (size_t i = 0; i < b->iters.size(); ++i) {
      const IterVar& v = b->iters[i];
      if (v->kind == IterKind::Reduce) continue;
      Var copy = var(v->var->name, v->var->dtype);
      own[v->var.get()] = copy;
      n.iters.push_back(iter_var(copy, v->extent, v->kind, v->min));
      n.bindings.push_back(b->bindings[i]);
    }
    n.iters.push_back(iter_var(lane, at->extent));
    n.bindings.push_back(at->var);
    as_iters[at->var.get()] = lane;
    for (const ForNode* f : inner) {
      if (f == at || !ScheduleEdit::bound_to(*f, *b, IterKind::Reduce)) continue;
      Var k = var(f->var->name, f->var->dtype);
      as_iters[f->var.get()] = k;
      n.iters.push_back(iter_var(k, f->extent, IterKind::Reduce));
      n.bindings.push_back(f->var);
    }
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind == IterKind::Reduce) {
        own[b->iters[i]->var.get()] = replace_vars(b->bindings[i], as_iters);
      }
    }
    std::vector<PrimExpr> at_partial;
    for (const PrimExpr& e : s->indices) at_partial.push_back(replace_vars(e, own));
    at_partial.push_back(lane);
    // Without a loop left to reduce over, each element is one update of the initial value.
    n.init = rest.empty() ? nullptr : store(partial, at_partial, init->value);
    PrimExpr old = rest.empty() ? init->value : load(partial, at_partial);
    n.body = store(partial, at_partial, binary(update.op, old, replace_vars(update.value, own)));
    n.writes = {element_region(partial, at_partial)};
    if (b->contraction) {
      n.contraction = state_contraction(renamed_dimensions(*b, own), n.iters, n.body);
    }
  });
  partial_block = with_access_regions(Block::unchecked(partial_block));
  Stmt partial_nest = replace_stmts(ref(*root), {{b, partial_block}});

  // The final reduction over the new dimension keeps the block's name.
  VarMap fresh;
  std::vector<const ForNode*> spatial;
  std::vector<const Node*> gone;
  for (const ForNode* f : inner) {
    if (ScheduleEdit::bound_to(*f, *b, IterKind::DataParallel)) {
      spatial.push_back(f);
      fresh[f->var.get()] = fresh_var(f->var);
    } else {
      gone.push_back(f->var.get());
    }
  }
  PrimExpr predicate;
  for (const PrimExpr& e : conjuncts(b->predicate)) {
    if (!uses_any_var(e, gone)) predicate = conjoin(predicate, e);
  }
  Var final_loop = fresh_var(at->var->name + "_sum", kIndex);
  Var final_iter = var("r", kIndex);
  Stmt final_nest = modified(*b, [&](BlockNode& n) {
    n.iters.clear();
    n.bindings.clear();
    for (size_t i = 0; i < b->iters.size(); ++i) {
      if (b->iters[i]->kind == IterKind::Reduce) continue;
      n.iters.push_back(b->iters[i]);
      n.bindings.push_back(replace_vars(b->bindings[i], fresh));
    }
    n.iters.push_back(iter_var(final_iter, at->extent, IterKind::Reduce));
    n.bindings.push_back(final_loop);
    n.predicate = predicate ? replace_vars(predicate, fresh) : predicate;
    std::vector<PrimExpr> at_partial = s->indices;
    at_partial.push_back(final_iter);
    n.body = store(result, s->indices, binary(update.op, update.old, load(partial, at_partial)));
    n.reads = {element_region(partial, at_partial)};
    n.contraction = nullptr;
  });
  final_nest = for_(final_loop, index(0), at->extent, final_nest);
  for (size_t i = spatial.size(); i-- > 0;) {
    final_nest = modified(*spatial[i], [&](ForNode& n) {
      n.var = Var::unchecked(fresh[spatial[i]->var.get()]);
      n.body = final_nest;
    });
  }
  Stmt both = allocate(partial, seq({partial_nest, final_nest}));
  set_body(replace_stmts(func_->body, {{root, both}}));
  record("rfactor", {b->name, at->var->name}, {out.name, final_loop->name});
  return out;
}

}  // namespace relay::tir
