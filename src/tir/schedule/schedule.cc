#include "tir/schedule/schedule.h"

#include <algorithm>

#include "base/codes/lowering.h"
#include "tir/schedule/edit.h"

namespace relay::tir {

BlockRV Partition::copy_of(const BlockRV& block) const {
  for (const auto& [from, to] : blocks) {
    if (from == block) return to;
  }
  internal_error(__FILE__, __LINE__, "the block is not in the partition: " + block.name);
}

LoopRV Partition::copy_of(const LoopRV& loop) const {
  for (const auto& [from, to] : loops) {
    if (from == loop) return to;
  }
  internal_error(__FILE__, __LINE__, "the loop is not in the partition: " + loop.var->name);
}

Schedule::Schedule(PrimFunc func) : func_(std::move(func)) {
  // Unique names: handles and traces name blocks and loop variables.
  const LoopTree tree(func_->body);
  VarMap renamed;
  std::unordered_map<const Node*, Stmt> edits;
  for (const ForNode* f : tree.loops()) {
    std::string name = fresh_name(f->var->name);
    if (name != f->var->name) renamed[f->var.get()] = var(name, f->var->dtype);
  }
  for (const BlockNode* b : tree.blocks()) {
    std::string name = fresh_name(b->name);
    if (name != b->name) edits[b] = modified(*b, [&](BlockNode& n) { n.name = name; });
  }
  Stmt body = replace_stmts(func_->body, edits);
  set_body(replace_vars(body, renamed));
}

std::string Schedule::trace_text() const {
  std::string out;
  for (const std::string& line : trace_) out += line + "\n";
  return out;
}

std::string Schedule::fresh_name(const std::string& base) {
  std::string name = base.empty() ? "v" : base;
  for (char& c : name) {
    bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    if (!plain) c = '_';
  }
  std::string candidate = name;
  for (int n = 1; !names_.insert(candidate).second; ++n) {
    candidate = name + "_" + std::to_string(n);
  }
  return candidate;
}

Var Schedule::fresh_var(const Var& like) { return fresh_var(like->name, like->dtype); }
Var Schedule::fresh_var(const std::string& name, DType dtype) {
  return var(fresh_name(name), dtype);
}

void Schedule::set_body(Stmt body) {
  if (body == func_->body) return;
  func_ = modified(*func_, [&](PrimFuncNode& n) { n.body = std::move(body); });
}

const std::shared_ptr<const LoopTree>& Schedule::tree() const {
  // A tree keeps its root alive, so another body is another object.
  if (tree_ == nullptr || !(tree_->root() == func_->body)) {
    tree_ = std::make_shared<const LoopTree>(func_->body);
  }
  return tree_;
}

void Schedule::record(std::string step, const std::vector<std::string>& args,
                      const std::vector<std::string>& results) {
  std::string line = std::move(step) + "(";
  for (size_t i = 0; i < args.size(); ++i) line += (i ? ", " : "") + args[i];
  line += ")";
  for (size_t i = 0; i < results.size(); ++i) line += (i ? ", " : " -> ") + results[i];
  trace_.push_back(std::move(line));
}

// ---- Looking around

bool Schedule::has_block(std::string_view name) const {
  return tree()->find_block(name) != nullptr;
}

BlockRV Schedule::get_block(std::string_view name) const {
  ScheduleEdit edit(*this, "get_block");
  return BlockRV{edit.block(BlockRV{std::string(name)}).value()->name};
}

std::vector<BlockRV> Schedule::get_blocks() const {
  std::vector<BlockRV> out;
  for (const BlockNode* b : tree()->blocks()) out.push_back({b->name});
  return out;
}

std::vector<LoopRV> Schedule::get_loops(const BlockRV& block) const {
  ScheduleEdit edit(*this, "get_loops");
  std::vector<LoopRV> out;
  for (const ForNode* f : edit.tree.loops_around(edit.block(block).value()))
    out.push_back({f->var});
  return out;
}

Block Schedule::block(const BlockRV& block) const {
  return ref(*ScheduleEdit(*this, "block").block(block).value());
}

Ref<ForNode> Schedule::loop(const LoopRV& loop) const {
  return ref(*ScheduleEdit(*this, "loop").loop(loop).value());
}

int64_t Schedule::extent(const LoopRV& rv) const { return as_int(loop(rv)->extent).value_or(-1); }

std::vector<BlockRV> Schedule::producers(const BlockRV& block) const {
  ScheduleEdit edit(*this, "producers");
  std::vector<BlockRV> out;
  for (const BlockNode* b : edit.producers(*edit.block(block).value())) out.push_back({b->name});
  return out;
}

std::vector<BlockRV> Schedule::consumers(const BlockRV& block) const {
  ScheduleEdit edit(*this, "consumers");
  std::vector<BlockRV> out;
  for (const BlockNode* b : edit.consumers(*edit.block(block).value())) out.push_back({b->name});
  return out;
}

bool Schedule::is_output(const Buffer& buffer) const {
  return std::find(func_->params.begin(), func_->params.end(), buffer) != func_->params.end();
}

void Schedule::require_features(const std::vector<std::string>& features) {
  func_ = modified(*func_, [&](PrimFuncNode& n) { n.features = features; });
  std::vector<std::string> args;
  for (const std::string& f : features) args.push_back(quoted(f));
  record("require_features", args);
}

// ---- Shared by the steps

ScheduleEdit::ScheduleEdit(const Schedule& s, std::string step)
    : held_(s.tree()), schedule(s), tree(*held_), step_(std::move(step)) {}

void throw_illegal(const Illegal& why) {
  Diagnostic d(codes::schedule_illegal, Span{}, why.reason);
  if (!why.help.empty()) d.help(why.help);
  throw UserError(std::move(d));
}

Illegal ScheduleEdit::fail(const std::string& reason, const std::string& help) const {
  return {step_ + " in kernel " + schedule.func()->name + ": " + reason, help};
}

StepResult<const BlockNode*> ScheduleEdit::block(const BlockRV& rv) const {
  const BlockNode* b = tree.find_block(rv.name);
  if (b == nullptr) return fail("there is no block " + rv.name);
  return b;
}

StepResult<const ForNode*> ScheduleEdit::loop(const LoopRV& rv) const {
  if (!rv.var) return fail("the loop is gone (an empty handle)");
  const ForNode* f = tree.find_loop(rv.var);
  if (f == nullptr) return fail("there is no loop " + rv.var->name);
  return f;
}

bool ScheduleEdit::touches(const std::vector<Region>& regions, const Buffer& buffer) {
  return std::any_of(regions.begin(), regions.end(),
                     [&](const Region& r) { return r->buffer == buffer; });
}

std::vector<const BlockNode*> ScheduleEdit::producers(const BlockNode& b) const {
  std::vector<const BlockNode*> out;
  for (const BlockNode* other : tree.blocks()) {
    if (other == &b) continue;
    bool feeds = std::any_of(b.reads.begin(), b.reads.end(),
                             [&](const Region& r) { return touches(other->writes, r->buffer); });
    if (feeds) out.push_back(other);
  }
  return out;
}

std::vector<const BlockNode*> ScheduleEdit::consumers(const BlockNode& b) const {
  std::vector<const BlockNode*> out;
  for (const BlockNode* other : tree.blocks()) {
    if (other == &b) continue;
    bool feeds = std::any_of(b.writes.begin(), b.writes.end(),
                             [&](const Region& w) { return touches(other->reads, w->buffer); });
    if (feeds) out.push_back(other);
  }
  return out;
}

std::vector<const BlockNode*> ScheduleEdit::writers(const Buffer& buffer) const {
  std::vector<const BlockNode*> out;
  for (const BlockNode* b : tree.blocks()) {
    if (touches(b->writes, buffer)) out.push_back(b);
  }
  return out;
}

std::vector<const BlockNode*> ScheduleEdit::users(const Buffer& buffer) const {
  std::vector<const BlockNode*> out;
  for (const BlockNode* b : tree.blocks()) {
    if (touches(b->writes, buffer) || touches(b->reads, buffer)) out.push_back(b);
  }
  return out;
}

StepResult<Buffer> ScheduleEdit::written_buffer(const BlockNode& b) const {
  if (b.writes.size() != 1) return fail("block " + b.name + " does not write exactly one buffer");
  return b.writes[0]->buffer;
}

bool ScheduleEdit::is_reduction(const BlockNode& b) {
  return std::any_of(b.iters.begin(), b.iters.end(),
                     [](const IterVar& v) { return v->kind == IterKind::Reduce; });
}

bool ScheduleEdit::bound_to(const ForNode& f, const BlockNode& b, IterKind kind) {
  for (size_t i = 0; i < b.iters.size(); ++i) {
    if (b.iters[i]->kind == kind && uses_var(b.bindings[i], f.var.get())) return true;
  }
  return false;
}

StepResult<> ScheduleEdit::check_data_parallel(const ForNode& f) const {
  for (const BlockNode* b : tree.blocks_in(&f)) {
    if (bound_to(f, *b, IterKind::Reduce)) {
      return fail("loop " + f.var->name + " is a reduction loop of block " + b->name,
                  "factor the reduction with rfactor first");
    }
    if (bound_to(f, *b, IterKind::Opaque)) {
      return fail("the order of loop " + f.var->name + " matters to block " + b->name);
    }
    if (bound_to(f, *b, IterKind::DataParallel)) continue;
    std::optional<int64_t> extent = as_int(f.extent);
    if (extent && *extent <= 1) continue;
    // Every iteration runs the same instances of the block; fine when each has its own buffer.
    for (const Region& w : b->writes) {
      const AllocateNode* a = tree.allocation_of(w->buffer);
      if (a == nullptr || !tree.contains(&f, a)) {
        return fail("all iterations of loop " + f.var->name + " write the same elements of " +
                    w->buffer->name + " in block " + b->name);
      }
    }
  }
  return {};
}

StepResult<> ScheduleEdit::check_guarded_by_ranges(const BlockNode& b) const {
  Analyzer analyzer;
  bind_loops(analyzer, tree.loops_around(&b));
  std::vector<Analyzer::Scope> ranges;
  for (size_t i = 0; i < b.iters.size(); ++i) {
    const IterVar& v = b.iters[i];
    ranges.push_back(analyzer.assume(ge(b.bindings[i], v->min)));
    ranges.push_back(analyzer.assume(lt(b.bindings[i], v->min + v->extent)));
  }
  bool implied = true;
  for (const PrimExpr& c : conjuncts(b.predicate)) implied = implied && analyzer.can_prove(c);
  while (!ranges.empty()) ranges.pop_back();  // facts are let go of in reverse
  if (!implied)
    return fail("block " + b.name + " is guarded by more than the ranges of its iterations");
  return {};
}

Stmt ScheduleEdit::place_allocation(const Stmt& body, const Buffer& buffer) {
  LoopTree before(body);
  const AllocateNode* a = before.allocation_of(buffer);
  if (a == nullptr) return body;
  Stmt bare = replace_stmts(body, {{a, a->body}});
  LoopTree after(bare);
  std::vector<const Node*> users;
  for (const BlockNode* b : after.blocks()) {
    if (touches(b->writes, buffer) || touches(b->reads, buffer)) users.push_back(b);
  }
  if (users.empty()) return bare;
  const StmtNode* home = after.common_ancestor(users);
  if (isa<BlockNode>(home)) return body;  // written by one block and read by none
  Stmt inner = ref(*home);
  return replace_stmts(bare, {{home, allocate(buffer, inner)}});
}

Stmt ScheduleEdit::reach_moved(Stmt body, const BlockNode& moved) {
  std::vector<Region> regions = moved.reads;
  regions.insert(regions.end(), moved.writes.begin(), moved.writes.end());
  for (const Region& r : regions) {
    LoopTree tree(body);
    const AllocateNode* a = tree.allocation_of(r->buffer);
    const BlockNode* now = tree.find_block(moved.name);
    if (a != nullptr && !tree.contains(a, now)) body = place_allocation(body, r->buffer);
  }
  return body;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace relay::tir
