// Schedule step as_product.
#include <algorithm>

#include "tir/block_contraction.h"
#include "tir/schedule/edit.h"

namespace relay::tir {
namespace {

// Iterations as one mixed-radix number, the first one slowest.
struct MergedIters {
  std::vector<IterVar> iters;

  // Only the first extent may be symbolic.
  bool is_regular() const {
    for (size_t i = 0; i < iters.size(); ++i) {
      if (as_int(iters[i]->min) != 0 || (i > 0 && !as_int(iters[i]->extent))) return false;
    }
    return !iters.empty();
  }
  PrimExpr count() const {
    PrimExpr out = iters[0]->extent;
    for (size_t i = 1; i < iters.size(); ++i) {
      auto known = as_int(out);
      const int64_t extent = *as_int(iters[i]->extent);
      out = known ? index(*known * extent) : out * extent;
    }
    return out;
  }
  PrimExpr number(const VarMap& values) const {
    PrimExpr out;
    for (const IterVar& i : iters) {
      const auto& value = PrimExpr::unchecked(values.at(i->var.get()));
      out = out ? out * i->extent + value : value;
    }
    return out;
  }
  void values(const PrimExpr& number, VarMap& out) const {
    PrimExpr rest = number;
    for (size_t i = iters.size(); i-- > 0;) {
      out[iters[i]->var.get()] = i == 0 ? rest : floor_mod(rest, iters[i]->extent);
      if (i > 0) rest = floor_div(rest, iters[i]->extent);
    }
  }
};

// The least multiple that is at least as large.
PrimExpr padded(const PrimExpr& count, int64_t multiple) {
  if (multiple == 1) return count;
  if (auto known = as_int(count)) return index((*known + multiple - 1) / multiple * multiple);
  return floor_div(count + (multiple - 1), index(multiple)) * multiple;
}

bool uses_iter(const std::vector<PrimExpr>& indices, const IterVar& iter) {
  return std::ranges::any_of(indices,
                             [&](const PrimExpr& e) { return uses_var(e, iter->var.get()); });
}

// The iterations by the first index in which they stand; those that are in none keep their order behind them.
void sort_by_indices(std::vector<IterVar>& iters, const std::vector<PrimExpr>& indices) {
  auto place = [&](const IterVar& iter) {
    return std::ranges::find_if(indices,
                                [&](const PrimExpr& e) { return uses_var(e, iter->var.get()); }) -
           indices.begin();
  };
  std::ranges::stable_sort(iters, {}, place);
}

// An operand: rows or columns, and terms.
struct Operand {
  const LoadNode* load = nullptr;
  MergedIters own;
  bool terms_adjoin = false;
};

// A product of the operands, or of casts of them, is 0 where both are.
bool is_plain_product(const PrimExpr& value, const LoadNode* a, const LoadNode* b) {
  auto under_casts = [](PrimExpr e) {
    while (auto* c = as<CastNode>(e)) e = c->value;
    return e;
  };
  auto* product = as<BinaryNode>(under_casts(value));
  if (product == nullptr || product->op != BinaryOp::Mul) return false;
  return under_casts(product->a).get() == a && under_casts(product->b).get() == b;
}

struct Nest {
  std::string name;
  std::vector<IterVar> iters;
  std::vector<PrimExpr> bindings;               // of each iteration
  std::vector<std::pair<Var, PrimExpr>> loops;  // with their extents
  Stmt init, body;
};

Block block_of(const Nest& nest) {
  return make<BlockNode>([&](BlockNode& n) {
    n.name = nest.name;
    n.iters = nest.iters;
    n.bindings = nest.bindings;
    n.init = nest.init;
    n.body = nest.body;
  });
}

Stmt loops_around(const Nest& nest, const Block& block) {
  Stmt out = with_access_regions(block);
  for (size_t i = nest.loops.size(); i-- > 0;) {
    out = for_(nest.loops[i].first, index(0), nest.loops[i].second, out);
  }
  return out;
}

}  // namespace

StepResult<ProductBlocks> Schedule::as_product(const BlockRV& rv, const ProductShape& shape) {
  ScheduleEdit edit(*this, "as_product");
  const BlockNode* b = RELAY_TRY(edit.block(rv));
  if (shape.rows < 1 || shape.columns < 1 || shape.terms < 1 || shape.parts < 1) {
    return edit.fail("a multiple or the number of parts is not positive");
  }
  if (!b->init || b->predicate) {
    return edit.fail("block " + b->name + " has no initialisation inside, or a guard");
  }
  const ScheduleEdit::Update update = RELAY_TRY(edit.update_of(*b));
  const Buffer to = RELAY_TRY(edit.written_buffer(*b));
  auto* init = as<StoreNode>(b->init);
  const bool from_zero =
      init != nullptr &&
      ((isa<FloatImmNode>(init->value) && as<FloatImmNode>(init->value)->value == 0) ||
       as_int(init->value) == 0);
  if (update.op != BinaryOp::Add || !from_zero) {
    return edit.fail("block " + b->name + " is no sum from 0");
  }
  const Node* place = ScheduleEdit::top_level(edit.tree, b);
  for (const BlockNode* other : edit.tree.blocks()) {
    if (other != b && edit.tree.contains(place, other)) {
      return edit.fail("block " + other->name + " stands in the loops of block " + b->name);
    }
  }

  // The operands, and the iterations that belong to each.
  std::vector<const LoadNode*> loads;
  post_order(update.value, [&](const Node& n) {
    if (auto* l = as<LoadNode>(&n)) loads.push_back(l);
  });
  if (loads.size() != 2 || loads[0]->predicate || loads[1]->predicate) {
    return edit.fail("block " + b->name + " does not read two operands");
  }
  Operand first{loads[0], {}}, second{loads[1], {}};
  MergedIters batch, terms;
  VarMap units;  // iterations of one value
  for (const IterVar& iter : b->iters) {
    const bool in_first = uses_iter(first.load->indices, iter),
               in_second = uses_iter(second.load->indices, iter);
    if (as_int(iter->extent) == 1) {
      units[iter->var.get()] = iter->min;
    } else if (iter->kind == IterKind::Reduce) {
      terms.iters.push_back(iter);
    } else if (iter->kind != IterKind::DataParallel || (!in_first && !in_second)) {
      return edit.fail("neither operand of block " + b->name + " depends on " + iter->var->name);
    } else if (in_first && in_second) {
      batch.iters.push_back(iter);
    } else {
      (in_first ? first : second).own.iters.push_back(iter);
    }
  }
  if (first.own.iters.empty() || second.own.iters.empty()) {
    return edit.fail("block " + b->name + " has no rows or no columns");
  }
  const std::vector<PrimExpr>& places = update.store->indices;
  for (MergedIters* of_result : {&batch, &first.own, &second.own}) {
    sort_by_indices(of_result->iters, places);
    for (const IterVar& iter : of_result->iters) {
      if (std::ranges::find(places, PrimExpr(iter->var)) != places.end()) continue;
      return edit.fail("block " + b->name + " does not store at its plain iteration variable " +
                       iter->var->name);
    }
  }
  // The weights' order of terms.
  sort_by_indices(terms.iters, second.load->indices);
  if (std::ranges::any_of(batch.iters, [](const IterVar& i) { return as_int(i->min) != 0; })) {
    return edit.fail("an iteration of block " + b->name + " does not start at 0");
  }
  if (!first.own.is_regular() || !second.own.is_regular() || !terms.is_regular() ||
      !as_int(terms.iters[0]->extent)) {
    return edit.fail("the extents of block " + b->name + " are symbolic");
  }
  for (Operand* o : {&first, &second}) {
    const PrimExpr& last = o->load->indices.back();
    o->terms_adjoin = uses_var(last, terms.iters.back()->var.get()) &&
                      !uses_var(last, o->own.iters.back()->var.get());
  }
  bool first_in_rows = true;
  for (size_t d = places.size(); d-- > 0;) {
    if (as_int(places[d]) || units.contains(places[d].get())) continue;
    first_in_rows = std::ranges::none_of(
        first.own.iters, [&](const IterVar& iter) { return PrimExpr(iter->var) == places[d]; });
    break;
  }

  const int64_t all_terms = *as_int(terms.count());
  const int64_t part =
      *as_int(padded(index((all_terms + shape.parts - 1) / shape.parts), shape.terms));
  const bool pads_terms = part * shape.parts != all_terms;
  if (pads_terms && !is_plain_product(update.value, first.load, second.load)) {
    return edit.fail("terms cannot be added to block " + b->name +
                     ", which is no product of its operands");
  }
  const PrimExpr term_count = index(part * shape.parts);

  // Iterations of the new blocks, with loops of their own.
  auto add = [&](Nest& nest, const std::string& name, const PrimExpr& extent,
                 IterKind kind = IterKind::DataParallel) -> Var {
    nest.iters.push_back(iter_var(var("v" + name), extent, kind));
    nest.loops.emplace_back(fresh_var(name, kIndex), extent);
    nest.bindings.push_back(nest.loops.back().first);
    return nest.iters.back()->var;
  };
  auto add_batch = [&](Nest& nest, VarMap& values) {
    std::vector<PrimExpr> out;
    for (const IterVar& iter : batch.iters) {
      out.push_back(add(nest, "b", iter->extent));
      values[iter->var.get()] = out.back();
    }
    return out;
  };
  auto own_buffer = [&](const std::string& name, DType dtype, const std::vector<IterVar>& iters) {
    std::vector<PrimExpr> extents;
    for (const IterVar& i : iters) extents.push_back(i->extent);
    return buffer(fresh_name(name), dtype, extents);
  };

  // A copy of an operand.
  std::unordered_map<const Node*, Buffer> copies;
  std::vector<Stmt> nests;
  auto copy = [&](const Operand& o, int64_t multiple) {
    Nest nest{fresh_name(o.load->buffer->name + "_read"), {}, {}, {}, nullptr, nullptr};
    VarMap values = units;
    std::vector<PrimExpr> at = add_batch(nest, values);
    const PrimExpr count = o.own.count(), extent = padded(count, multiple);
    at.push_back(add(nest, "m", extent));
    at.push_back(add(nest, "k", term_count));
    o.own.values(at[at.size() - 2], values);
    terms.values(at.back(), values);
    PrimExpr inside;
    // The first of merged iterations alone may leave its range.
    auto in_range = [&](const MergedIters& of) {
      const IterVar& iter = of.iters[0];
      inside = conjoin(inside, lt(PrimExpr::unchecked(values.at(iter->var.get())), iter->extent));
    };
    const auto known = as_int(count);
    if (!(extent == count) && (!known || known != as_int(extent))) in_range(o.own);
    if (pads_terms) in_range(terms);
    std::vector<PrimExpr> from;
    for (const PrimExpr& e : o.load->indices) from.push_back(replace_vars(e, values));
    PrimExpr value = load(o.load->buffer, from);
    if (inside) value = select(inside, value, cast(o.load->dtype, imm(DType::Int(32), 0)));
    const Buffer out =
        own_buffer(o.load->buffer->name + "_matrix", o.load->buffer->dtype, nest.iters);
    nest.body = store(out, at, value);
    nests.push_back(loops_around(nest, block_of(nest)));
    copies[o.load] = out;
    return BlockRV{nest.name};
  };
  const Operand &row = first_in_rows ? first : second, &column = first_in_rows ? second : first;
  ProductBlocks out;
  out.row_operand = copy(row, shape.rows);
  out.column_operand = copy(column, shape.columns);
  out.row_terms_adjoin = row.terms_adjoin;
  out.column_terms_adjoin = column.terms_adjoin;

  // The product.
  Nest product{fresh_name(b->name + "_product"), {}, {}, {}, nullptr, nullptr};
  VarMap unused;
  const std::vector<PrimExpr> in_front = add_batch(product, unused);
  std::vector<PrimExpr> at = in_front;
  const Var of_part = shape.parts > 1 ? add(product, "p", index(shape.parts)) : Var(nullptr);
  if (of_part) at.push_back(of_part);
  const Var m = add(product, "m", padded(row.own.count(), shape.rows)),
            j = add(product, "j", padded(column.own.count(), shape.columns));
  at.insert(at.end(), {m, j});
  const Buffer sums = own_buffer(b->name + "_sums", to->dtype, product.iters);
  const Var k = add(product, "k", index(part), IterKind::Reduce);
  const PrimExpr term = of_part ? PrimExpr(of_part) * part + k : PrimExpr(k);
  const NodeRef value = rewrite(
      update.value,
      [&](const NodeRef& old, NodeRef rebuilt) -> NodeRef {
        auto known = copies.find(old.get());
        if (known == copies.end()) return rebuilt;
        std::vector<PrimExpr> from = in_front;
        from.push_back(old.get() == row.load ? m : j);
        from.push_back(term);
        return load(known->second, from);
      },
      family::tir_expr);
  product.init = store(sums, at, init->value);
  product.body = store(sums, at, load(sums, at) + PrimExpr::unchecked(value));
  std::vector<BlockDimension> dims;
  for (const IterVar& iter : product.iters) {
    const bool of_first = iter->var == (first_in_rows ? m : j),
               of_second = iter->var == (first_in_rows ? j : m);
    dims.push_back(block_dimension(iter->var, iter->extent,
                                   iter->kind == IterKind::Reduce ? ContractionRole::Reduced
                                   : of_first                     ? ContractionRole::Row
                                   : of_second                    ? ContractionRole::Column
                                                                  : ContractionRole::Batch));
  }
  out.product = {product.name};
  nests.push_back(loops_around(product, modified(*block_of(product), [&](BlockNode& n) {
                                 n.contraction = state_contraction(dims, n.iters, n.body);
                               })));

  // The result, or what is to be added to it.
  std::vector<Buffer> buffers{copies.at(first.load), copies.at(second.load), sums};
  auto axes = [&](Nest& nest, const MergedIters& of, VarMap& values, std::vector<LoopRV>& loops) {
    for (const IterVar& iter : of.iters) {
      values[iter->var.get()] = add(nest, iter->var->name, iter->extent);
      loops.push_back({nest.loops.back().first});
    }
  };
  // Rows, or columns: one loop. The block iterates over their number, too, so that it reads P by no quotients.
  auto merged_axis = [&](Nest& nest, const MergedIters& of, VarMap& values,
                         std::vector<LoopRV>& loops) {
    if (of.iters.size() == 1) {
      axes(nest, of, values, loops);
      return of.number(values);
    }
    const PrimExpr number = add(nest, "m", of.count());
    loops.push_back({nest.loops.back().first});
    VarMap bindings;
    of.values(nest.loops.back().first, bindings);
    for (const IterVar& iter : of.iters) {
      nest.iters.push_back(iter_var(var("v" + iter->var->name), iter->extent));
      nest.bindings.push_back(PrimExpr::unchecked(bindings.at(iter->var.get())));
      values[iter->var.get()] = nest.iters.back()->var;
    }
    return number;
  };
  Nest result{fresh_name(b->name + "_result"), {}, {}, {}, nullptr, nullptr};
  VarMap values = units;
  if (shape.parts == 1) {
    axes(result, batch, values, out.batch);
    const PrimExpr of_row = merged_axis(result, row.own, values, out.rows),
                   of_column = merged_axis(result, column.own, values, out.columns);
    std::vector<PrimExpr> from, into;
    for (const IterVar& iter : batch.iters)
      from.push_back(PrimExpr::unchecked(values.at(iter->var.get())));
    from.insert(from.end(), {of_row, of_column});
    for (const PrimExpr& e : places) into.push_back(replace_vars(e, values));
    result.body = store(to, into, load(sums, from));
    nests.push_back(loops_around(result, block_of(result)));
  } else {
    std::vector<PrimExpr> mine;
    for (const IterVar& iter : product.iters) {
      if (iter->kind == IterKind::Reduce) continue;
      const bool is_row = iter->var == m, is_column = iter->var == j;
      const PrimExpr extent = is_row      ? row.own.count()
                              : is_column ? column.own.count()
                                          : iter->extent;
      mine.push_back(add(result, iter->var->name.substr(1), extent));
      (is_row      ? out.rows
       : is_column ? out.columns
                   : out.batch)
          .push_back({result.loops.back().first});
    }
    const Buffer partial = own_buffer(b->name + "_parts", to->dtype, result.iters);
    result.body = store(partial, mine, load(sums, mine));
    nests.push_back(loops_around(result, block_of(result)));
    buffers.push_back(partial);
    // The block itself adds the parts.
    Nest total{b->name, {}, {}, {}, nullptr, nullptr};
    for (const IterVar& iter : b->iters) {
      if (iter->kind == IterKind::Reduce) continue;
      values[iter->var.get()] = add(total, iter->var->name, iter->extent);
    }
    const Var p = add(total, "p", index(shape.parts), IterKind::Reduce);
    std::vector<PrimExpr> from, into;
    for (const IterVar& iter : batch.iters)
      from.push_back(PrimExpr::unchecked(values.at(iter->var.get())));
    from.insert(from.end(), {p, row.own.number(values), column.own.number(values)});
    for (const PrimExpr& e : places) into.push_back(replace_vars(e, values));
    total.init = store(to, into, init->value);
    total.body = store(to, into, load(to, into) + load(partial, from));
    nests.push_back(loops_around(total, block_of(total)));
  }
  out.result = {result.name};
  Stmt body = replace_stmts(func_->body, {{place, seq(nests)}});
  for (const Buffer& made : buffers) body = allocate(made, body);
  set_body(body);
  record("as_product",
         {b->name, std::to_string(shape.rows), std::to_string(shape.columns),
          std::to_string(shape.terms), std::to_string(shape.parts)},
         {out.row_operand.name, out.column_operand.name, out.product.name, out.result.name});
  return out;
}

}  // namespace relay::tir
