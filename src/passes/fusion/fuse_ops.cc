#include "passes/fusion/fuse_ops.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/primitives.h"
#include "base/ancestors.h"
#include "base/disjoint_sets.h"
#include "ir/contraction.h"
#include "ir/op.h"
#include "ir/scope.h"
#include "node/structural.h"
#include "node/walk.h"
#include "passes/layout/matrix_products.h"
#include "target/rows_by_rows.h"

namespace relay {
namespace {

// A fused kernel with more operators than this costs more registers and compile time than the
// saved memory traffic is worth.
constexpr size_t kDefaultMaxDepth = 64;

struct GraphNode {
  const CallNode* call = nullptr;  // null: not an operator call (an opaque user)
  FusionClass fusion = FusionClass::Opaque;
  int scope = 0;
  std::vector<int> users;  // indices of nodes that use the result; -1 for an unfusable use
  int ipdom = -1;          // immediate post-dominator, -1: leaves the dataflow region
  // In the tree of post-dominators (base/ancestors.h).
  int depth = 0;
  int jump = -1;
};

// A kernel as it grows.
struct Group {
  int last = 0;  // the node whose value leaves it so far
  size_t size = 1;
  bool heavy = false;
  const CallNode* reduction = nullptr;  // the first, if it holds one
  std::string reason;                   // why it took no more
};

FusionClass wider(FusionClass a, FusionClass b) { return std::max(a, b); }

class Fuser {
 public:
  Fuser(const Function& f, size_t max_depth) : f_(f), max_depth_(max_depth) {}

  Function run() {
    build_graph();
    if (nodes_.empty()) return f_;
    build_post_dominators();
    for (size_t i = 0; i < nodes_.size(); ++i) {
      sets_.add();
      Group g;
      g.last = static_cast<int>(i);
      g.heavy = nodes_[i].fusion == FusionClass::OutEWiseFusable;
      if (nodes_[i].fusion == FusionClass::CommReduce) g.reduction = nodes_[i].call;
      groups_.push_back(std::move(g));
    }
    for (int phase = 0; phase < 3; ++phase) {
      if (phase == 1) keep_joins();
      for (size_t i = 0; i < nodes_.size(); ++i) try_fuse(static_cast<int>(i), phase);
    }
    return rewrite_function();
  }

 private:
  // ---- The graph of operator calls -------------------------------------------------------------

  static FusionClass class_of(const CallNode& call) {
    const OpInfo& row = *as<OpNode>(call.op)->row;
    if (row.effect != Effect::Pure) return FusionClass::Opaque;
    if (!isa<TensorTypeNode>(call.type)) {
      // Several results leave a kernel together; followers read them through memory.
      return row.fusion == FusionClass::OutEWiseFusable ? FusionClass::Opaque
                                                        : wider(row.fusion, FusionClass::Injective);
    }
    return row.fusion;
  }

  void build_graph() {
    scopes_ = analyze_scopes(*f_.get());
    for (const ExprNode* e : scopes_.order) {
      auto* call = as<CallNode>(e);
      if (call == nullptr || !isa<OpNode>(call->op)) continue;
      if (scopes_.scopes[scopes_.scope_of.at(e)].primitive) continue;
      index_[e] = static_cast<int>(nodes_.size());
      GraphNode n;
      n.call = call;
      n.fusion = class_of(*call);
      n.scope = scopes_.scope_of.at(e);
      nodes_.push_back(std::move(n));
    }
    for (const ExprNode* e : scopes_.order) {
      auto user = index_.find(e);
      for_each_child(*e, [&](const NodeRef& child) {
        auto* clause = as<ClauseNode>(child);
        add_use(clause != nullptr ? clause->rhs.get() : child.get(), user);
      });
    }
    add_use(f_->body.get(), index_.end());
  }

  void add_use(const Node* operand, std::unordered_map<const Node*, int>::const_iterator user) {
    auto it = index_.find(operand);
    if (it == index_.end()) return;
    nodes_[it->second].users.push_back(user == index_.end() ? -1 : user->second);
  }

  // Users come after operands in nodes_, so one backward sweep finds all post-dominators.
  void build_post_dominators() {
    for (int i = static_cast<int>(nodes_.size()) - 1; i >= 0; --i) {
      GraphNode& n = nodes_[i];
      int dom = -2;  // none seen yet
      for (int u : n.users) {
        if (u >= 0 && nodes_[u].scope != n.scope) u = -1;
        dom = u < 0 || dom == -2 ? u : common_post_dominator(dom, u);
        if (dom == -1) break;
      }
      put_below(i, std::max(dom, -1));
    }
  }

  TreeStep step(int i) const { return {nodes_[i].ipdom, nodes_[i].depth, nodes_[i].jump}; }

  void put_below(int i, int dom) {
    auto at = [&](int k) { return step(k); };
    const TreeStep mine = dom < 0 ? TreeStep{-1, 0, i} : step_below(dom, at);
    nodes_[i].ipdom = mine.parent;
    nodes_[i].depth = mine.depth;
    nodes_[i].jump = mine.jump;
  }

  // -1 where there is none.
  int common_post_dominator(int a, int b) const {
    return common_ancestor(a, b, [&](int k) { return step(k); });
  }

  // ---- Grouping

  Group& group(int i) { return groups_[sets_.find(static_cast<size_t>(i))]; }

  // Calls `visit` for every node strictly between `from` and `to`; false stops, and so do more nodes
  // than a kernel may have: in a program of n nodes they could be n for each of them.
  bool all_between(int from, int to, const std::function<bool(int)>& visit) const {
    std::vector<int> stack(nodes_[from].users.begin(), nodes_[from].users.end());
    std::vector<int> seen;
    while (!stack.empty()) {
      int at = stack.back();
      stack.pop_back();
      if (at == to || std::find(seen.begin(), seen.end(), at) != seen.end()) continue;
      if (at < 0 || seen.size() + 2 >= max_depth_ || !visit(at)) return false;
      seen.push_back(at);
      stack.insert(stack.end(), nodes_[at].users.begin(), nodes_[at].users.end());
    }
    return true;
  }

  // The widest class in the node's group so far.
  FusionClass group_class(int i) {
    const Group& g = group(i);
    if (g.heavy) return FusionClass::OutEWiseFusable;
    FusionClass own = wider(nodes_[i].fusion, nodes_[g.last].fusion);
    return g.reduction != nullptr ? wider(own, FusionClass::CommReduce) : own;
  }

  // Whether element-wise operators on one shape lead from one node to the other, the last of its
  // kernel so far.
  bool keeps_shape(int from, int to) const {
    auto fits = [&](int at) {
      return nodes_[at].fusion <= FusionClass::Broadcast &&
             same_shape(nodes_[at].call->type, nodes_[from].call->type);
    };
    return fits(to) && all_between(from, to, fits);
  }

  void try_fuse(int i, int phase) {
    const GraphNode& n = nodes_[i];
    if (n.fusion == FusionClass::Opaque || n.ipdom < 0) return;
    if (&group(i) == &group(n.ipdom)) return;
    FusionClass mine = group_class(i);
    auto all_at_most = [&](FusionClass limit) {
      auto fits = [&](int at) { return nodes_[at].fusion <= limit; };
      return fits(n.ipdom) && all_between(i, n.ipdom, fits);
    };
    bool fuse = false;
    if (phase == 0 && begins_with(i)) {
      fuse = true;
    } else if (phase == 2) {
      fuse = mine <= FusionClass::CommReduce && works_by_rows(i);
    } else if (mine == FusionClass::OutEWiseFusable || mine == FusionClass::CommReduce) {
      // The epilogue keeps the tile's shape.
      fuse = phase == 0 && (keeps_shape(i, group(n.ipdom).last) || lengthens_rows(i));
      if (!fuse && phase == 0) group(i).reason = "no element-wise epilogue of the same shape";
    } else if (mine <= FusionClass::Broadcast) {
      fuse = phase == 0 ? all_at_most(FusionClass::Broadcast)
                        : all_at_most(FusionClass::Injective) || reduces_into(i) ||
                              normalised_by(i) || widens_for_few_rows(i);
    } else if (mine == FusionClass::Injective) {
      fuse = phase == 1 && (all_at_most(FusionClass::Injective) || reduces_into(i) ||
                            is_image_for(i) || reads_selected(i));
    }
    if (!fuse) return;
    std::vector<int> members{i};
    all_between(i, n.ipdom, [&](int at) { return members.push_back(at), true; });
    // A kernel is built around one heavy operator at most.
    std::vector<const Group*> groups{&group(n.ipdom)};
    for (int m : members) {
      if (std::ranges::find(groups, &group(m)) == groups.end()) groups.push_back(&group(m));
    }
    size_t total = 0;
    int heavy = 0, reductions = 0;
    // So does what follows a heavy operator or a reduction whose kernel a member is in already.
    for (size_t m = 1; phase < 2 && m < members.size(); ++m) {
      if (group_class(members[m]) >= FusionClass::CommReduce &&
          !keeps_shape(members[m], group(n.ipdom).last)) {
        group(i).reason = "no element-wise epilogue of the same shape";
        return;
      }
    }
    for (const Group* g : groups) {
      total += g->size;
      heavy += g->heavy;
      reductions += g->reduction != nullptr;
    }
    if (phase < 2 && heavy + reductions > 1 && heavy < 2) {
      group(i).reason = "two reductions of different kinds in one kernel";
      return;
    }
    if (heavy > 1) {
      group(i).reason = "two heavy operators in one kernel";
      return;
    }
    if (total > max_depth_) {
      group(i).reason = "more operators in one kernel than are allowed";
      return;
    }
    for (int m : members) join(m, n.ipdom);
  }

  // Tensors that are joined in memory, most of them made by kernels that end there, are written
  // where they belong: no kernel joins them, and none reads them one by one.
  void keep_joins() {
    for (size_t i = 0; i < nodes_.size(); ++i) {
      const CallNode& call = *nodes_[i].call;
      const Column<MemoryRule>& memory = as<OpNode>(call.op)->row->memory;
      auto* parts = memory ? as<TupleNode>(call.args[0]) : nullptr;
      auto* type = as<TensorTypeNode>(call.type);
      if (parts == nullptr || type == nullptr || !type->const_shape() ||
          memory(call) != Memory::Joined) {
        continue;
      }
      auto ends_there = [&](const Expr& part) {
        auto it = index_.find(part.get());
        if (it == index_.end()) return false;
        const GraphNode& n = nodes_[it->second];
        return n.fusion == FusionClass::Opaque || n.ipdom != static_cast<int>(i) ||
               group_class(it->second) >= FusionClass::CommReduce;
      };
      auto kept = std::count_if(parts->fields.begin(), parts->fields.end(), ends_there);
      if (2 * kept > static_cast<int64_t>(parts->fields.size())) {
        nodes_[i].fusion = FusionClass::Opaque;
      }
    }
  }

  // What has no operands and is as large as the result of a kernel of its own, which begins with it: zeros to which that adds.
  bool begins_with(int i) {
    const GraphNode& n = nodes_[i];
    const GraphNode& user = nodes_[n.ipdom];
    const CallNode& call = *user.call;
    return n.call->args.empty() && n.fusion <= FusionClass::Broadcast && n.users.size() == 1 &&
           user.fusion == FusionClass::Opaque && as<OpNode>(call.op)->row->effect == Effect::Pure &&
           call.args.size() > 1 && call.args[0].get() == n.call &&
           same_shape(n.call->type, call.type);
  }

  // Element-wise producers of a plain reduction are computed inside it.
  bool reduces_into(int i) {
    const GraphNode& n = nodes_[i];
    return nodes_[n.ipdom].fusion == FusionClass::CommReduce && n.users.size() == 1;
  }

  // A change of layout, alone, before a sum of products that reads few channels, as of an image:
  // the sum reads them where they are, element by element.
  bool is_image_for(int i) {
    constexpr int64_t kMostChannels = 4;
    const GraphNode& n = nodes_[i];
    auto* to = as<TensorTypeNode>(n.call->type);
    const GraphNode& user = nodes_[n.ipdom];
    if (to == nullptr || to->shape.empty() || n.users.size() != 1 || group(i).size != 1 ||
        user.fusion != FusionClass::OutEWiseFusable || n.call->args.size() != 1 ||
        user.call->args.size() < 2 || user.call->args[0].get() != n.call) {
      return false;
    }
    // Not the vectors of a normalisation.
    auto* weight = as<TensorTypeNode>(user.call->args[1]->type);
    if (weight == nullptr || weight->shape.size() < 2) return false;
    auto* from = as<TensorTypeNode>(n.call->args[0]->type);
    auto count = [](const TensorTypeNode& t) {
      Dim out = dim(1);
      for (const Dim& d : t.shape) out = out * d;
      return out;
    };
    auto channels = as_const(to->shape.back());
    return from != nullptr && channels && *channels <= kMostChannels &&
           from->shape.size() == to->shape.size() && dim_equal(count(*from), count(*to));
  }

  // What alone makes wider elements of a matrix whose rows the few rows of a product are multiplied with as they lie: each
  // is widened as often as it is read, a few times, and the wide matrix is neither written nor read.
  bool widens_for_few_rows(int i) {
    constexpr int64_t kFewRows = 32;
    const GraphNode& n = nodes_[i];
    const GraphNode& user = nodes_[n.ipdom];
    if (user.fusion != FusionClass::OutEWiseFusable || n.users.size() != 1 || group(i).size != 1 ||
        n.call->args.size() != 1 || user.call->args.size() != 2 ||
        user.call->args[1].get() != n.call) {
      return false;
    }
    auto* narrow = as<TensorTypeNode>(n.call->args[0]->type);
    auto* wide = as<TensorTypeNode>(n.call->type);
    auto* result = as<TensorTypeNode>(user.call->type);
    if (narrow == nullptr || wide == nullptr || result == nullptr || wide->shape.size() != 2 ||
        narrow->dtype.bits >= wide->dtype.bits ||
        !same_shape(n.call->args[0]->type, n.call->type)) {
      return false;
    }
    const std::optional<Contraction> product = contraction_of(*user.call);
    auto column = product ? product->only(ContractionRole::Column) : std::nullopt;
    if (!column || !product->operands[1][0].has(*column) || product->operands[1][0].blocked()) {
      return false;
    }
    const int64_t most =
        std::min(kFewRows, most_rows_along_sum(as_const(wide->shape[1]).value_or(0)));
    int64_t rows = 1;
    for (size_t d = 0; d + 1 < result->shape.size(); ++d) {
      auto extent = as_const(result->shape[d]);
      if (!extent || *extent > most || (rows *= *extent) > most) return false;
    }
    return true;
  }

  // What alone selects a matrix for each product of a batch, such as the weights of the expert of a block of rows: the product
  // reads it where it is.
  bool reads_selected(int i) {
    const GraphNode& n = nodes_[i];
    const GraphNode& user = nodes_[n.ipdom];
    if (n.users.size() != 1 || user.fusion != FusionClass::OutEWiseFusable ||
        user.call->args.size() != 2 || user.call->args[1].get() != n.call) {
      return false;
    }
    const std::optional<Contraction> product = contraction_of(*user.call);
    if (!product || !selects_matrices(*user.call, *product)) return false;
    // The indices may be computed in the kernel, but not the matrices.
    auto from = index_.find(n.call->args[0].get());
    return from == index_.end() || &group(from->second) != &group(i);
  }

  // Element-wise producers of what computes each element of its first operand from a few others,
  // such as a softmax or a normalisation: of that operand's shape, all other operands vectors.
  bool normalised_by(int i) {
    const GraphNode& n = nodes_[i];
    const CallNode& user = *nodes_[n.ipdom].call;
    if (nodes_[n.ipdom].fusion != FusionClass::OutEWiseFusable || n.users.size() != 1 ||
        user.args.empty() || user.args[0].get() != n.call || !same_shape(user.type, n.call->type)) {
      return false;
    }
    return std::all_of(user.args.begin() + 1, user.args.end(), [](const Expr& a) {
      auto* t = as<TensorTypeNode>(a->type);
      return t != nullptr && t->shape.size() <= 1;
    });
  }

  // Whether what follows a softmax only writes a constant behind each of its rows, up to a whole number of parts where their size
  // is symbolic. Short rows have kernels of their own, and long ends are faster written by themselves.
  bool lengthens_rows(int i) const {
    constexpr int64_t kLeastRow = 64;
    const CallNode& pad = *nodes_[nodes_[i].ipdom].call;
    if (!is_call_to(Expr(&pad), "nn.pad") || pad.args[0].get() != nodes_[i].call ||
        !isa<ConstantNode>(pad.args[1]) || nodes_[i].users.size() != 1 ||
        text_attr(pad, "pad_mode") != "constant") {
      return false;
    }
    Expr rows = pad.args[0];
    const std::vector<Dim>&to = tensor_of(Expr(&pad))->shape, &from = tensor_of(rows)->shape;
    const AttrValue widths = attr_value(pad.attrs, "pad_width");
    for (const AttrValue& axis : *widths.get_if<ValueList>()) {
      if ((*axis.get_if<ValueList>())[0] != AttrValue(int64_t{0})) return false;
    }
    for (size_t d = 0; d + 1 < to.size(); ++d) {
      if (!dim_equal(to[d], from[d])) return false;
    }
    const auto length = as_const(from.back()), more = as_const(to.back() - from.back());
    const bool is_short_end = length
                                  ? more && *length >= kLeastRow && *more >= 0 && *more <= *length
                                  : dim_equal(min(to.back(), from.back()), from.back());
    while (is_call_to(rows, "cast")) rows = as<CallNode>(rows)->args[0];
    if (!is_short_end || !is_call_to(rows, "nn.softmax")) return false;
    const int64_t axis = int_attr(*as<CallNode>(rows), "axis");
    return axis == -1 || axis == static_cast<int64_t>(to.size()) - 1;
  }

  // How many axes at the end a reduction makes one long, if it is such a reduction: of rows.
  static std::optional<size_t> row_axes(const CallNode& call) {
    auto* from = as<TensorTypeNode>(call.args[0]->type);
    auto* to = as<TensorTypeNode>(call.type);
    if (from == nullptr || to == nullptr || from->shape.size() != to->shape.size()) {
      return std::nullopt;
    }
    size_t kept = from->shape.size();
    while (kept > 0 && dim_equal(to->shape[kept - 1], dim(1))) --kept;
    for (size_t d = 0; d < kept; ++d) {
      if (!dim_equal(from->shape[d], to->shape[d])) return std::nullopt;
    }
    return from->shape.size() - kept;
  }

  // Whether what lies between node i and its post-dominator are reductions of the same rows and
  // element-wise operators on whole rows or on one value a row: then a kernel computes them row
  // after row, and nothing but the last result leaves the caches.
  bool works_by_rows(int i) {
    const GraphNode& n = nodes_[i];
    std::vector<int> members{i};
    if (!all_between(i, n.ipdom, [&](int at) { return members.push_back(at), true; })) return false;
    members.push_back(n.ipdom);
    const CallNode* rows = nullptr;
    for (int m : members) {
      FusionClass c = group_class(m);
      if (c > FusionClass::CommReduce || c == FusionClass::Injective) return false;
      const CallNode* mine = group(m).reduction;
      if (mine == nullptr) continue;
      if (rows == nullptr) rows = mine;
      auto axes = row_axes(*mine);
      if (!axes || *axes == 0 || axes != row_axes(*rows) ||
          !same_shape(mine->args[0]->type, rows->args[0]->type)) {
        return false;
      }
    }
    if (rows == nullptr) return false;
    return std::all_of(members.begin(), members.end(), [&](int m) {
      const Type& type = nodes_[m].call->type;
      return same_shape(type, rows->type) || same_shape(type, rows->args[0]->type);
    });
  }

  void join(int from, int to) {
    if (&group(from) == &group(to)) return;
    const Group first = std::move(group(from));
    Group joined = std::move(group(to));
    joined.size += first.size;
    joined.heavy = joined.heavy || first.heavy;
    if (joined.reduction == nullptr) joined.reduction = first.reduction;
    groups_[sets_.join(static_cast<size_t>(from), static_cast<size_t>(to))] = std::move(joined);
  }

  // ---- Rewriting

  // One kernel as it is being put together.
  struct Kernel {
    std::vector<int> members;
    int last = -1;  // the member whose value leaves
  };

  Function rewrite_function() {
    std::unordered_map<int, Kernel> kernels;
    for (size_t i = 0; i < nodes_.size(); ++i) {
      Kernel& k = kernels[group(static_cast<int>(i)).last];
      k.members.push_back(static_cast<int>(i));
      k.last = std::max(k.last, static_cast<int>(i));
    }
    class Rewrite : public RewriterOutsidePrimitives {
     public:
      Rewrite(Fuser& fuser, const std::unordered_map<int, Kernel>& kernels)
          : fuser_(fuser), kernels_(kernels) {}
      NodeRef post(const NodeRef& original, NodeRef rebuilt) override {
        auto it = fuser_.index_.find(original.get());
        if (it == fuser_.index_.end()) return rebuilt;
        const Kernel& k = kernels_.at(fuser_.group(it->second).last);
        // Members before the last stay as they are: only the last one's kernel refers to them.
        if (it->second != k.last) return original;
        return fuser_.make_kernel(k, *this);
      }

     private:
      Fuser& fuser_;
      const std::unordered_map<int, Kernel>& kernels_;
    };
    return Rewrite(*this, kernels).apply(f_);
  }

  // What keeps the kernel whose value is node i's from taking the next operator, by that operator's
  // name; empty when no operator uses the value.
  std::string why_it_ends(int i) {
    constexpr size_t kNamed = 3;
    const GraphNode& n = nodes_[i];
    std::string users;
    std::vector<std::string_view> named;
    bool elsewhere = false;
    for (int u : n.users) {
      if (u < 0 || nodes_[u].scope != n.scope) elsewhere = true;
      if (u < 0) continue;
      std::string_view name = as<OpNode>(nodes_[u].call->op)->name;
      if (std::find(named.begin(), named.end(), name) != named.end()) continue;
      named.push_back(name);
      if (named.size() <= kNamed) users += (users.empty() ? "" : ", ") + std::string(name);
    }
    if (named.empty()) return "";
    if (named.size() > kNamed) users += ", ...";
    std::string reason = group(i).reason;
    if (n.fusion == FusionClass::Opaque) {
      reason = std::string(as<OpNode>(n.call->op)->name) + " is a kernel of its own";
    } else if (n.ipdom < 0) {
      reason = elsewhere ? "something outside this scope needs the value, too"
                         : "several need the value and do not meet again";
    } else if (reason.empty()) {
      reason = "it takes no operator of this kind in front of it";
    }
    return users + ": " + reason;
  }

  // Scalars are worth more as immediates than as arguments. A string is where it is.
  static bool is_immediate(const Expr& e) {
    auto* c = as<ConstantNode>(e);
    return c != nullptr && c->data.rank() == 0 && !c->data.dtype().is_string();
  }

  Expr make_kernel(const Kernel& k, Rewriter& outer) {
    std::unordered_map<const Node*, Expr> inside;
    std::vector<Var> params;
    std::vector<Expr> args;
    std::vector<std::pair<Expr, Var>> by_arg;
    auto param_for = [&](const Expr& original) -> Expr {
      NodeRef rewritten = outer.lookup(original.get());
      Expr arg = rewritten ? Expr::unchecked(rewritten) : original;
      if (is_immediate(arg)) return arg;
      for (auto& [known, p] : by_arg) {
        if (known == arg) return p;
      }
      Var p = var("p" + std::to_string(params.size()), original->type, original->span);
      by_arg.emplace_back(arg, p);
      params.push_back(p);
      args.push_back(arg);
      return p;
    };
    std::function<Expr(const Expr&)> operand = [&](const Expr& e) -> Expr {
      auto it = inside.find(e.get());
      if (it != inside.end()) return it->second;
      // A tuple of operands (concatenate) is taken apart so that the kernel gets tensors; operands
      // nest one level only, by the operators' signatures.
      if (auto* t = as<TupleNode>(e)) {
        std::vector<Expr> fields;
        for (const Expr& field : t->fields) {
          auto known = inside.find(field.get());
          fields.push_back(known != inside.end() ? known->second : param_for(field));
        }
        Expr made = tuple(std::move(fields), e->span);
        inside.emplace(e.get(), made);
        return made;
      }
      Expr p = param_for(e);
      inside.emplace(e.get(), p);
      return p;
    };
    std::vector<Span> spans;
    Expr body;
    for (int m : k.members) {
      const CallNode& c = *nodes_[m].call;
      // Operands have the types that they had, and so has the call.
      std::vector<NodeRef> parts = children_of(c);
      for (size_t i = 0; i < c.args.size(); ++i) parts[1 + i] = operand(c.args[i]);
      body = cast<ExprNode>(with_children(ref(c), parts));
      inside[&c] = body;
      spans.push_back(c.span);
    }
    Dict attrs{{attr::kPrimitive, AttrValue(int64_t{1})}};
    std::string reason = why_it_ends(k.last);
    if (!reason.empty()) attrs[attr::kFusionReason] = AttrValue(reason);
    Span span = Span::join(spans);
    Function f = function(std::move(params), body, body->type, {}, std::move(attrs), span);
    return call(f, std::move(args), nullptr, span);
  }

  Function f_;
  size_t max_depth_;
  ScopeTree scopes_;
  std::vector<GraphNode> nodes_;
  std::unordered_map<const Node*, int> index_;
  DisjointSets sets_;          // of nodes_
  std::vector<Group> groups_;  // by the element that stands for the set
};

Module fuse_ops(const Module& mod, PassContext& ctx) {
  auto max_depth =
      static_cast<size_t>(std::max<int64_t>(1, ctx.option<int64_t>(kFuseOps, "max_depth")));
  if (ctx.opt_level < 1) max_depth = 1;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) {
    return f->is_primitive() ? f : Fuser(f, max_depth).run();
  });
}

}  // namespace

const Pass kFuseOps{
    "FuseOps",
    0,
    Form::any,
    Form::fused,
    "Groups operator calls into primitive functions, one kernel each.",
    fuse_ops,
    {{"max_depth", PassOption::Type::integer, AttrValue(static_cast<int64_t>(kDefaultMaxDepth)),
      "Most operators in a kernel."}}};

}  // namespace relay
