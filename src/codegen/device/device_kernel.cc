#include "codegen/device/device_kernel.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/codes/lowering.h"
#include "node/walk.h"
#include "tir/thread_nests.h"
#include "tir/while.h"

namespace relay::codegen {

using runtime::DeviceLaunch;
using runtime::DeviceSource;
using runtime::SizeFormula;
using tir::as_int;
using tir::BinaryNode;
using tir::BinaryOp;
using tir::BufferNode;
using tir::PrimExpr;

namespace {

// Buffers of an item that are at most as large are the item's own memory; larger ones are working memory of the kernel.
constexpr int64_t kItemBytes = 4096;
constexpr int64_t kMostElements = int64_t{1} << 24;
// Work items of a launch that needs working memory for each, and of one whose number of iterations is no formula of the sizes.
constexpr int64_t kFewItems = 64, kManyItems = 4096;

// What a launch does with memory.
struct MemoryUses {
  std::vector<const BufferNode*> allocated;
  std::unordered_set<const BufferNode*> used, stored;
  bool may_fail = false;
  // A place or a number of iterations depends on what lies in memory.
  bool is_indirect = false;

  void add(const NodeRef& root) {
    post_order(root, [&](const Node& n) {
      if (auto* l = as<tir::LoadNode>(&n)) read_by(l->indices);
      if (auto* s = as<tir::StoreNode>(&n)) read_by(s->indices);
      if (auto* f = as<tir::ForNode>(&n)) read_by({f->min, f->extent});
      if (auto* l = as<tir::LetStmtNode>(&n)) read_by({l->value});
      if (auto* l = as<tir::LetNode>(&n)) read_by({l->value});
      is_indirect |= isa<tir::WhileNode>(&n);
      if (n.kind() == tir::OtherKind::Buffer) used.insert(static_cast<const BufferNode*>(&n));
      if (auto* a = as<tir::AllocateNode>(&n)) allocated.push_back(a->buffer.get());
      if (auto* s = as<tir::StoreNode>(&n)) stored.insert(s->buffer.get());
      auto* c = as<tir::CallNode>(&n);
      may_fail |= n.kind() == tir::StmtKind::Check || (c != nullptr && c->name == "index_in");
    });
  }
  void read_by(const std::vector<PrimExpr>& places) {
    is_indirect |= std::ranges::any_of(places, [](const PrimExpr& e) { return tir::reads_memory(e); });
  }
};

}  // namespace

DeviceKernel::DeviceKernel(const tir::PrimFuncNode& f, std::string language)
    : f_(f), language_(std::move(language)), group_registers_(tir::registers_of_groups(f.body)) {
  KernelLaunches launches = launches_of(f);
  parts_ = std::move(launches.parts);
  if (parts_.empty()) parts_.emplace_back();
  for (const tir::Buffer& b : f.params) numbers_.emplace(b.get(), numbers_.size());
  for (const tir::Buffer& b : launches.workspace) {
    source_.workspace.push_back(bytes_of(*b.get()));
    numbers_.emplace(b.get(), numbers_.size());
  }
}

void DeviceKernel::unsupported(const std::string& what) const {
  throw UserError(
      Diagnostic(codes::lower_unsupported, {},
                 "kernel " + f_.name + " has " + what + ", which " + language_ + " cannot say")
          .help("place its operators on the host"));
}

void DeviceKernel::begin_launch(const LaunchPart& part) {
  DeviceLaunch out;
  out.name =
      f_.name + (source_.launches.empty() ? "" : "_part" + std::to_string(source_.launches.size()));
  out.group = part.group;
  source_.launches.push_back(std::move(out));
  find_buffers(part);
}

void DeviceKernel::find_buffers(const LaunchPart& part) {
  MemoryUses uses;
  for (const tir::StmtNode* s : part.around) {
    if (auto* l = as<tir::LetStmtNode>(s)) {
      uses.add(l->value);
    } else {
      uses.add(static_cast<const tir::IfNode*>(s)->cond);
    }
  }
  for (const tir::ForNode* f : part.axes) {
    if (f == nullptr) continue;
    uses.add(f->min);
    uses.add(f->extent);
  }
  for (const tir::Stmt& s : part.body) uses.add(s);
  slices_.clear();
  std::vector<const BufferNode*> slices;
  for (const BufferNode* b : uses.allocated) {
    if (is_small(*b) || b->scope == tir::Scope::Shared || group_registers_.contains(b)) continue;
    if (slices_.insert(b).second) slices.push_back(b);
  }
  // An item that ends leaves the others of its group waiting at a barrier.
  if (part.has_groups() && uses.may_fail) unsupported("a check in a group of work items");
  ends_after_failure_ = !part.has_groups() && (uses.may_fail || uses.is_indirect);
  source_.launches.back().may_fail = uses.may_fail;
  count_items(part);
  buffers_.clear();
  for (const auto& [buffer, number] : numbers_) {
    if (uses.used.contains(buffer)) {
      buffers_.push_back({buffer, number, uses.stored.contains(buffer)});
    }
  }
  const auto& items = launch().items;
  for (const BufferNode* b : slices) {
    buffers_.push_back({b, f_.params.size() + source_.workspace.size(), true});
    source_.workspace.emplace_back(bytes_of(*b).text() + " " + items[0].text() + " " +
                                   items[1].text() + " * " + items[2].text() + " * *");
  }
  std::ranges::sort(buffers_, {}, &LaunchBuffer::number);
  for (const LaunchBuffer& b : buffers_) source_.launches.back().buffers.push_back(b.number);
}

std::optional<int64_t> DeviceKernel::most_items() const {
  return slices_.empty() ? std::nullopt : std::optional(kFewItems);
}

// Where the launch has fewer items than iterations, an item loops.
void DeviceKernel::count_items(const LaunchPart& part) {
  loops_.fill(false);
  if (part.has_groups()) return count_groups(part);
  const bool needs_slices = !slices_.empty();
  for (size_t i = 0; i < part.axes.size(); ++i) {
    if (part.axes[i] == nullptr) continue;
    auto extent = formula(part.axes[i]->extent);
    loops_[i] = !extent || needs_slices;
    const int64_t most = needs_slices ? kFewItems : kManyItems;
    SizeFormula& items = source_.launches.back().items[i];
    if (!extent) {
      items = SizeFormula(most);
    } else if (needs_slices) {
      items = SizeFormula(*extent + " " + std::to_string(most) + " min");
    } else {
      items = SizeFormula(*extent);
    }
  }
}

void DeviceKernel::count_groups(const LaunchPart& part) {
  if (!slices_.empty()) unsupported("large memory of an item in a group");
  for (size_t i = 0; i < part.axes.size(); ++i) {
    auto extent = part.axes[i] == nullptr ? std::string("1") : formula(part.axes[i]->extent);
    if (!extent) unsupported("groups whose number is no formula of the call's sizes");
    source_.launches.back().items[i] =
        SizeFormula(*extent + " " + std::to_string(part.group[i]) + " *");
  }
}

DeviceSource DeviceKernel::take(std::string code) {
  source_.code = std::move(code);
  return std::move(source_);
}

std::optional<std::string> DeviceKernel::formula(const PrimExpr& e) const {
  if (auto v = as_int(e)) return std::to_string(*v);
  if (auto* c = as<tir::CastNode>(e)) {
    const bool keeps = c->dtype.is_integer() && c->dtype.bits >= 32 && c->value->dtype.is_integer();
    return keeps ? formula(c->value) : std::nullopt;
  }
  if (e->kind() == tir::ExprKind::Var) {
    for (size_t i = 0; i < f_.dims.size(); ++i) {
      if (f_.dims[i].get() == e.get()) return "d" + std::to_string(i);
    }
    return std::nullopt;
  }
  auto* n = as<BinaryNode>(e);
  if (n == nullptr || !n->dtype.is_integer()) return std::nullopt;
  static const std::map<BinaryOp, std::string> words{
      {BinaryOp::Add, "+"},      {BinaryOp::Sub, "-"},      {BinaryOp::Mul, "*"},
      {BinaryOp::FloorDiv, "/"}, {BinaryOp::FloorMod, "%"}, {BinaryOp::Min, "min"},
      {BinaryOp::Max, "max"}};
  auto word = words.find(n->op);
  if (word == words.end()) return std::nullopt;
  auto a = formula(n->a), b = formula(n->b);
  if (!a || !b) return std::nullopt;
  return *a + " " + *b + " " + word->second;
}

SizeFormula DeviceKernel::bytes_of(const BufferNode& b) const {
  std::string out = std::to_string(b.dtype.element().bytes());
  for (const PrimExpr& d : b.shape) {
    auto size = formula(d);
    if (!size) unsupported("memory of a size that is no formula of the call's sizes");
    out += " " + *size + " *";
  }
  return SizeFormula(out);
}

std::optional<int64_t> DeviceKernel::constant_elements(const BufferNode& b) {
  int64_t out = 1;
  for (const PrimExpr& d : b.shape) {
    auto size = as_int(d);
    if (!size || (out > 0 && *size > kMostElements / out)) return std::nullopt;
    out *= *size;
  }
  return std::max<int64_t>(out, 1);
}

bool DeviceKernel::is_small(const BufferNode& b) {
  auto elements = constant_elements(b);
  return elements && *elements * static_cast<int64_t>(b.dtype.element().bytes()) <= kItemBytes;
}

}  // namespace relay::codegen
