#include "strategies/attention/rewrite.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <unordered_map>

#include "analysis/calls.h"
#include "analysis/uses.h"
#include "ir/dim_fields.h"
#include "ir/op.h"
#include "ir/views.h"
#include "node/walk.h"

namespace relay {
namespace {

using Ints = std::vector<int64_t>;

// A product that is this small or smaller changes nothing when it is added.
constexpr double kMasked = -1e30;

const CallNode* call_to(const Expr& e, std::string_view op) {
  return is_call_to(e, op) ? as<CallNode>(e) : nullptr;
}

// The argument of a call that only names the elements anew, else null.
Expr viewed(const Expr& e) {
  auto* c = as<CallNode>(e);
  auto* op = c == nullptr ? nullptr : as<OpNode>(c->op);
  return op != nullptr && only_reshapes(*op->row) ? c->args[0] : Expr();
}

std::optional<double> scalar(const Expr& e) {
  auto* c = as<ConstantNode>(e);
  if (c == nullptr || c->data.num_elements() != 1 || !c->data.dtype().is_float(32)) {
    return std::nullopt;
  }
  return c->data.get_as_double(0);
}

// What `e` is when scalar factors are left out, which `scale` then has; null when it is no product
// with a scalar.
Expr unscaled(const Expr& e, double& scale) {
  auto* c = as<CallNode>(e);
  if (c == nullptr || c->args.size() != 2) return nullptr;
  bool divides = is_call_to(e, "divide");
  if (!divides && !is_call_to(e, "multiply")) return nullptr;
  for (size_t side = divides ? 1 : 0; side < 2; ++side) {
    auto factor = scalar(c->args[side]);
    const Expr& rest = c->args[1 - side];
    if (!factor || !same_shape(rest, e)) continue;
    scale = divides ? scale / *factor : scale * *factor;
    return rest;
  }
  return nullptr;
}

// The sizes of a tensor that all have a value or a name.
std::optional<Dims> sizes_of(const Expr& e) {
  auto* t = tensor_of(e);
  if (t == nullptr || std::any_of(t->shape.begin(), t->shape.end(), is_any)) return std::nullopt;
  return Dims(t->shape.begin(), t->shape.end());
}

bool equal_sizes(const Dims& a, const Dims& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), dim_equal);
}

// Whether the size is the keys' number where the program runs at all: products that were broadcast with a mask of
// another name meet as many values as there are keys.
bool counts_keys(const Dim& size, const Dim& keys) {
  auto* joined = as<DimOpNode>(size);
  return dim_equal(size, keys) || (joined != nullptr && joined->op == DimOpKind::Broadcast &&
                                   (dim_equal(joined->a, keys) || dim_equal(joined->b, keys)));
}

// Whether the last two sizes are those of the matrix.
bool ends_in(const Dims& shape, const Dims& matrix) {
  return shape.size() >= 2 && dim_equal(shape.end()[-2], matrix[0]) &&
         counts_keys(shape.back(), matrix[1]);
}

// Whether `scores` are the products that masking made `masked` of.
bool same_products(const Expr& scores, const Expr& masked) {
  auto a = sizes_of(scores), b = sizes_of(masked);
  if (!a || !b || a->size() != b->size() || a->empty()) return false;
  return counts_keys(b->back(), a->back()) &&
         std::equal(a->begin(), a->end() - 1, b->begin(), dim_equal);
}

bool below(const Dim& size, int64_t least) {
  auto value = as_const(size);
  return value && *value < least;
}

Ints axes_of(const CallNode& transpose) {
  int64_t rank = tensor_of(transpose.args[0])->rank();
  Ints axes = ints_attr(transpose, "axes").value_or(Ints{});
  if (axes.empty()) {
    for (int64_t a = rank; a-- > 0;) axes.push_back(a);
  }
  for (int64_t& a : axes) a += a < 0 ? rank : 0;
  return axes;
}

// The letters of x's axes when transpose(x) has `letters`.
std::string before_transpose(const CallNode& c, const std::string& letters) {
  std::string out(letters.size(), ' ');
  Ints axes = axes_of(c);
  for (size_t i = 0; i < letters.size(); ++i) out[static_cast<size_t>(axes[i])] = letters[i];
  return out;
}

// Axes are letters: G for batch and heads in one, as products have them, or B and H; S for the
// sequence, D for the depth.
std::string with_heads(const std::string& letters) {
  size_t at = letters.find('G');
  return at == letters.npos ? letters : letters.substr(0, at) + "BH" + letters.substr(at + 1);
}

// An operand of a product as the operator reads it: of four axes, or of three with G among them.
struct Operand {
  Expr value;
  std::string letters;
  Dims shape = {};  // as which it is read first; empty: its own
};

struct Match {
  Operand query, key, value;
  double scale = 1;
  Expr mask;        // null: none
  Dims mask_shape;  // as which it is read; empty: its own
  Expr condition;   // where it holds, or does not, `fill` takes the place of the product
  bool fills_where_true = false;
  double fill = 0;
  Dims result;  // batch, heads, queries, width
  // Weights that are no numbers, as those of a query that may see no key, count as 0.
  bool safe = false;
};

using Found = std::unordered_map<const Node*, Match>;  // by the second product

class Matches {
 public:
  explicit Matches(const Function& f) : uses_(f) {}

  // For the second product.
  std::optional<Match> match(const CallNode& product) const {
    auto out = sizes_of(Expr(&product)), values = sizes_of(product.args[1]);
    if (!out || !values || !is_float32(Expr(&product)) || bool_attr(product, "transpose_a")) {
      return std::nullopt;
    }
    Match m;
    // The softmax, along the keys.
    Expr at = product.args[0];
    auto weights = sizes_of(at);
    if (!weights) return std::nullopt;
    Dim queries = (*out)[1], width = (*out)[2];
    Dim keys = (*values)[bool_attr(product, "transpose_b") ? 2 : 1];
    // Of the values there are as many where the program runs at all.
    if (!counts_keys((*weights)[2], keys)) keys = (*weights)[2];
    Dims matrix{queries, keys};
    at = through_views(at, matrix);
    if (Expr inner = without_safety(at)) {
      m.safe = true;
      at = inner;
    }
    auto* softmax = call_to(at, "nn.softmax");
    if (softmax == nullptr || uses_.of(at) != (m.safe ? 2 : 1)) return std::nullopt;
    int64_t axis = int_attr(*softmax, "axis"), rank = tensor_of(at)->rank();
    if (axis != -1 && axis != rank - 1) return std::nullopt;
    at = softmax->args[0];
    // Batch and heads are those that the model works with.
    Dims score_shape = *sizes_of(at);
    const Dim& groups = (*out)[0];
    std::optional<Dims> heads;
    if (score_shape.size() == 4) heads = Dims{score_shape[0], score_shape[1]};

    const CallNode* first = nullptr;
    bool masked = false;
    while (first == nullptr) {
      at = through_views(at, matrix);
      if (!at || !used_once(at)) return std::nullopt;
      if (Expr rest = unscaled(at, m.scale)) {
        at = rest;
        continue;
      }
      first = call_to(at, "nn.batch_matmul");
      if (first != nullptr) break;
      // A scale behind the mask would be the mask's, too.
      if (masked || m.scale != 1) return std::nullopt;
      score_shape = *sizes_of(at);
      Expr rest = unmasked(at, m);
      if (!rest) return std::nullopt;
      masked = true;
      at = rest;
    }
    auto left = sizes_of(first->args[0]), right = sizes_of(first->args[1]);
    if (!left || !right || !dim_equal((*left)[0], groups) || !dim_equal((*right)[0], groups) ||
        !dim_equal((*values)[0], groups) || !is_float32(at)) {
      return std::nullopt;
    }
    bool queries_last = bool_attr(*first, "transpose_a"),
         keys_first = bool_attr(*first, "transpose_b");
    // The kernel's vectors and register tiles lie along them.
    auto depth = as_const((*left)[queries_last ? 1 : 2]);
    if (!depth || *depth < 2 || !as_const(width) || below(width, 2) || below(keys, 2)) {
      return std::nullopt;
    }
    m.query = operand(first->args[0], heads, queries_last ? "GDS" : "GSD", &m.scale);
    m.key = operand(first->args[1], heads, keys_first ? "GSD" : "GDS", &m.scale);
    m.value =
        operand(product.args[1], heads, bool_attr(product, "transpose_b") ? "GDS" : "GSD", nullptr);
    if (m.value.letters.back() != 'D') return std::nullopt;
    if (heads) {
      auto keys_shared = shared(m.key, *heads), values_shared = shared(m.value, *heads);
      if (keys_shared && values_shared &&
          dim_equal(keys_shared->shape[1], values_shared->shape[1])) {
        m.key = *keys_shared;
        m.value = *values_shared;
      }
    }
    if (!heads) heads = Dims{dim(1), groups};
    if (!dim_equal((*heads)[0] * (*heads)[1], groups)) return std::nullopt;
    m.result = {(*heads)[0], (*heads)[1], queries, width};
    if (!fit_mask(m, score_shape)) return std::nullopt;
    return m;
  }

  // The second product whose result a transpose turns, and the layout of that, when no other
  // reads the product and its depth stays last.
  std::optional<std::pair<Expr, std::string>> turned(const CallNode& transpose,
                                                     const Found& found) const {
    Expr at = transpose.args[0];
    auto shape = sizes_of(at);
    if (!shape) return std::nullopt;
    while (used_once(at)) {
      auto it = found.find(at.get());
      if (it == found.end()) {
        at = viewed(at);
        if (!at) break;
        continue;
      }
      std::string letters = "BHSD";
      if (equal_sizes(*shape, *sizes_of(at))) {
        letters = "GSD";
      } else if (!equal_sizes(*shape, it->second.result)) {
        break;
      }
      std::string out;
      for (int64_t axis : axes_of(transpose)) out += letters[static_cast<size_t>(axis)];
      if (out.back() != 'D') break;
      return std::pair(at, with_heads(out));
    }
    return std::nullopt;
  }

 private:
  bool used_once(const Expr& e) const { return uses_.of(e) == 1; }
  static bool is_float32(const Expr& e) {
    auto* t = tensor_of(e);
    return t != nullptr && t->dtype.is_float(32);
  }

  // Behind views without other uses that keep the last two axes.
  Expr through_views(Expr e, const Dims& matrix) const {
    while (true) {
      auto shape = sizes_of(e);
      if (!shape || shape->size() < 3 || shape->size() > 4 || !ends_in(*shape, matrix)) {
        return nullptr;
      }
      Expr inner = viewed(e);
      if (!inner) return e;
      if (!used_once(e)) return nullptr;
      e = inner;
    }
  }

  // Softmax of where(isnan(softmax), 0, softmax); null for anything else.
  Expr without_safety(const Expr& e) const {
    auto* choice = e ? call_to(e, "where") : nullptr;
    if (choice == nullptr || !used_once(e) || scalar(choice->args[1]) != 0.0) return nullptr;
    auto* test = call_to(choice->args[0], "isnan");
    bool same = test != nullptr && test->args[0] == choice->args[2] && used_once(choice->args[0]);
    return same ? choice->args[2] : Expr();
  }

  // The products without what masks them; null when nothing does.
  static Expr unmasked(const Expr& e, Match& m) {
    if (auto* c = call_to(e, "add")) {
      for (size_t side = 0; side < 2; ++side) {
        if (!same_products(c->args[side], e) || !is_scores(c->args[side])) continue;
        m.mask = c->args[1 - side];
        return sizes_of(m.mask) ? c->args[side] : Expr();
      }
      return nullptr;
    }
    auto* c = call_to(e, "where");
    if (c == nullptr) return nullptr;
    for (size_t side = 1; side < 3; ++side) {
      auto fill = scalar(c->args[3 - side]);
      if (!fill || *fill > kMasked || !same_products(c->args[side], e)) continue;
      m.condition = c->args[0];
      m.fills_where_true = side == 2;
      m.fill = *fill;
      return sizes_of(m.condition) ? c->args[side] : Expr();
    }
    return nullptr;
  }

  // Whether an operand of an addition is what the first product gave, as far as one can see.
  static bool is_scores(const Expr& e) {
    Expr at = e;
    double ignored = 1;
    while (true) {
      if (is_call_to(at, "nn.batch_matmul")) return true;
      Expr next = viewed(at);
      if (!next) next = unscaled(at, ignored);
      if (!next) return false;
      at = next;
    }
  }

  // The operand of a product, as far behind views, a transpose and, when `scale` is not null,
  // scales as is known how it is read. The first that has four axes says what the heads are.
  static Operand operand(const Expr& e, std::optional<Dims>& heads, const std::string& letters,
                         double* scale) {
    Dims shape = *sizes_of(e), matrix{shape.end()[-2], shape.back()};
    Operand out{e, letters};
    double factor = 1;
    for (Expr at = e; at;) {
      auto now = sizes_of(at);
      if (!now || !ends_in(*now, matrix)) break;
      bool three = now->size() == 3 && dim_equal((*now)[0], shape[0]);
      bool four = now->size() == 4 && (!heads || equal_sizes({(*now)[0], (*now)[1]}, *heads));
      if (three || four) {
        if (four) heads = Dims{(*now)[0], (*now)[1]};
        if (scale != nullptr) *scale *= factor;
        factor = 1;
        out = {at, four ? with_heads(letters) : letters};
        if (auto* turn = call_to(at, "transpose")) {
          Operand before{turn->args[0], before_transpose(*turn, out.letters)};
          bool depth_last = before.letters.back() == 'D';
          return depth_last || scale != nullptr ? before : out;
        }
      }
      Expr next = viewed(at);
      if (!next && scale != nullptr) next = unscaled(at, factor);
      at = next;
    }
    return out;
  }

  // Keys or values of fewer heads, where the operand repeats each of them for the heads of queries that share it.
  static std::optional<Operand> shared(const Operand& o, const Dims& heads) {
    if (o.letters != "BHSD" && o.letters != "GSD") return std::nullopt;
    Dims all = *sizes_of(o.value), matrix{all.end()[-2], all.back()};
    Expr at = o.value;
    while (at && !is_call_to(at, "broadcast_to")) at = viewed(at);
    if (!at) return std::nullopt;
    const Expr& one = as<CallNode>(at)->args[0];
    auto wide = sizes_of(at), narrow = sizes_of(one);
    if (!wide || !narrow || wide->size() != 5 || narrow->size() != 5) return std::nullopt;
    for (size_t i = 0; i < 5; ++i) {
      bool repeats = i == 2;
      if (repeats ? as_const((*narrow)[i]) != 1 : !dim_equal((*narrow)[i], (*wide)[i])) {
        return std::nullopt;
      }
    }
    bool fits = as_const((*wide)[1]) && as_const((*wide)[2]) && dim_equal((*wide)[0], heads[0]) &&
                dim_equal((*wide)[1] * (*wide)[2], heads[1]) && ends_in(*wide, matrix);
    if (!fits) return std::nullopt;
    return Operand{one, "BHSD", {(*wide)[0], (*wide)[1], matrix[0], matrix[1]}};
  }

  // The mask as it broadcasts to batch, heads, queries and keys.
  static bool fit_mask(Match& m, const Dims& scores) {
    const Expr& e = m.mask ? m.mask : m.condition;
    if (!e) return true;
    Dims shape = *sizes_of(e);
    if (shape.size() > scores.size()) return false;
    if (scores.size() == 4) {
      return dim_equal(scores[0], m.result[0]) && dim_equal(scores[1], m.result[1]);
    }
    if (shape.size() == 3 && as_const(shape[0]) != 1) {
      m.mask_shape = {m.result[0], m.result[1], shape[1], shape[2]};
    }
    return true;
  }

  UseCounts uses_;
};

// The values that the rewritten program has for those of the match.
using Rebuilt = std::unordered_map<const Node*, NodeRef>;

class Builder {
 public:
  explicit Builder(const Rebuilt& rebuilt) : rebuilt_(rebuilt) {}

  Expr attention(const Match& m, const std::string& out_layout, const CallNode& at) const {
    Dims result = *sizes_of(Expr(&at));
    Expr masks = mask(m, at);
    // The kernel has neighbouring queries in its vectors.
    Dims mask_shape = *sizes_of(masks);
    Ints axes(mask_shape.size());
    bool each_query = axes.size() > 1 && as_const(mask_shape.end()[-2]) != 1;
    if (each_query) {
      std::iota(axes.begin(), axes.end(), 0);
      std::swap(axes.end()[-1], axes.end()[-2]);
      masks = make_call("transpose", {masks}, {{"axes", to_value(axes)}}, at);
    }
    Expr call = make_call("nn.attention",
                          {read(m, m.query, at), read(m, m.key, at), read(m, m.value, at), masks},
                          {{"scale", AttrValue(m.scale)},
                           {"query_layout", AttrValue(with_heads(m.query.letters))},
                           {"key_layout", AttrValue(with_heads(m.key.letters))},
                           {"value_layout", AttrValue(with_heads(m.value.letters))},
                           {"out_layout", AttrValue(out_layout)},
                           {"transpose_mask", AttrValue(each_query)}},
                          at);
    if (m.safe) {
      Expr test = make_call("isnan", {call}, {}, at);
      Expr none = constant(Tensor::scalar(0, DType::Float(32)));
      call = make_call("where", {test, none, call}, {}, at);
    }
    return view(call, result, at);
  }

  static Expr view(const Expr& e, const Dims& shape, const CallNode& at) {
    auto now = sizes_of(e);
    if (shape.empty() || (now && equal_sizes(*now, shape))) return e;
    return make_call("reshape", {e}, {{"newshape", to_value(shape)}}, at);
  }

 private:
  Expr now(const Expr& e) const {
    auto it = rebuilt_.find(e.get());
    return it == rebuilt_.end() ? e : Expr::unchecked(it->second);
  }
  Expr read(const Match& m, const Operand& o, const CallNode& at) const {
    Dims shape = o.shape.empty() ? *sizes_of(o.value) : o.shape;
    if (size_t group = o.letters.find('G'); group != o.letters.npos) {
      shape[group] = m.result[1];
      shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(group), m.result[0]);
    }
    return view(now(o.value), shape, at);
  }

  Expr mask(const Match& m, const CallNode& at) const {
    auto constant_of = [](double v) { return constant(Tensor::scalar(v, DType::Float(32))); };
    if (m.mask) return view(now(m.mask), m.mask_shape, at);
    if (!m.condition) return constant_of(0);
    Expr fill = constant_of(m.fill), none = constant_of(0);
    Expr chosen = make_call(
        "where",
        {now(m.condition), m.fills_where_true ? fill : none, m.fills_where_true ? none : fill}, {},
        at);
    return view(chosen, m.mask_shape, at);
  }

  const Rebuilt& rebuilt_;
};

Function fuse(const Function& f) {
  Matches matches(f);
  Found found;
  std::unordered_map<const Node*, std::pair<Expr, std::string>> turned;
  post_order(
      f,
      [&](const Node& n) {
        auto* c = as<CallNode>(&n);
        if (c == nullptr) return;
        if (is_call_to(Expr(c), "nn.batch_matmul")) {
          if (auto m = matches.match(*c)) found.emplace(&n, std::move(*m));
        } else if (!found.empty() && is_call_to(Expr(c), "transpose")) {
          if (auto product = matches.turned(*c, found)) turned.emplace(&n, *product);
        }
      },
      family::program);
  if (found.empty()) return f;
  Rebuilt rebuilt;
  Builder builder(rebuilt);
  return cast<FunctionNode>(rewrite(
      f,
      [&](const NodeRef& before, NodeRef after) -> NodeRef {
        const Node* n = before.get();
        if (auto it = found.find(n); it != found.end()) {
          auto& product = static_cast<const CallNode&>(*n);
          after = builder.attention(it->second, "BHSD", product);
        } else if (auto t = turned.find(n); t != turned.end()) {
          const auto& [product, layout] = t->second;
          auto& transpose = static_cast<const CallNode&>(*n);
          after = builder.attention(found.at(product.get()), layout, transpose);
        }
        rebuilt[before.get()] = after;
        return after;
      },
      family::program));
}

Module run_fuse_attention(const Module& mod, PassContext& ctx) {
  if (!ctx.target.has_blocked_kernels) return mod;
  return map_functions(mod, [&](const GlobalVar&, const Function& f) { return fuse(f); });
}

}  // namespace

const Pass kFuseAttention{"FuseAttention",
                          3,
                          Form::any,
                          Form::any,
                          "Makes one operator of the products around a softmax.",
                          run_fuse_attention};

}  // namespace relay
