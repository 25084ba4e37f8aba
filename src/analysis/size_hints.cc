#include "analysis/size_hints.h"

#include <algorithm>
#include <unordered_set>

#include "node/walk.h"

namespace relay {
namespace {

std::optional<int64_t> number_at(const ValueList& list, size_t i) {
  auto* n = i < list.size() ? list[i].get_if<int64_t>() : nullptr;
  return n == nullptr ? std::nullopt : std::optional(*n);
}

// The named dimensions in the types of a function's parameters, in order; some may be there more than once.
std::vector<TypeVar> dimensions_of(const FunctionNode& f) {
  std::vector<TypeVar> out;
  for (const Var& p : f.params) {
    post_order(p->type, [&](const Node& n) {
      if (auto* d = as<DimVarNode>(&n)) out.push_back(d->var);
    });
  }
  return out;
}

std::optional<SizeHint> hint_of(const FunctionNode& f, const TypeVarNode& size) {
  std::vector<SizeHint> all = size_hints(f);
  for (SizeHint& hint : all) {
    if (hint.name == size.name_hint) return std::move(hint);
  }
  return std::nullopt;
}

}  // namespace

std::vector<SizeHint> size_hints(const FunctionNode& f) {
  std::vector<SizeHint> out;
  auto it = f.attrs.find(attr::kSizeHints);
  auto* rows = it == f.attrs.end() ? nullptr : it->second.get_if<ValueList>();
  if (rows == nullptr) return out;
  for (const AttrValue& row : *rows) {
    auto* parts = row.get_if<ValueList>();
    auto* name = parts == nullptr || parts->empty() ? nullptr : (*parts)[0].get_if<std::string>();
    if (name == nullptr) return {};
    auto low = number_at(*parts, 1), high = number_at(*parts, 2);
    auto* likely = parts->size() == 4 ? (*parts)[3].get_if<ValueList>() : nullptr;
    if (!low || !high || likely == nullptr) return {};
    SizeHint hint{*name, *low, *high, {}};
    for (size_t i = 0; i < likely->size(); ++i) {
      auto size = number_at(*likely, i);
      if (!size || *size < 0) return {};
      hint.likely.push_back(*size);
    }
    out.push_back(std::move(hint));
  }
  int64_t versions = 1;
  for (const SizeHint& h : out) {
    versions *= std::max<int64_t>(1, static_cast<int64_t>(h.likely.size()));
    if (versions > kMaxVersions) return {};
  }
  return out;
}

Function with_size_hints(const Function& f, const std::vector<SizeHint>& hints) {
  if (hints.empty()) return f;
  ValueList rows;
  for (const SizeHint& h : hints) {
    ValueList likely;
    for (int64_t size : h.likely) likely.emplace_back(size);
    rows.emplace_back(
        ValueList{AttrValue(h.name), AttrValue(h.low), AttrValue(h.high), AttrValue(likely)});
  }
  Dict attrs = f->attrs;
  attrs[attr::kSizeHints] = AttrValue(rows);
  return function(f->params, f->body, f->ret_type, f->type_params, std::move(attrs), f->span);
}

std::optional<int64_t> greatest_size(const FunctionNode& f, const Dim& size) {
  auto* named = as<DimVarNode>(size);
  const auto hint = named == nullptr ? std::nullopt : hint_of(f, *named->var);
  if (!hint || hint->high == std::numeric_limits<int64_t>::max()) return std::nullopt;
  return hint->high;
}

int64_t least_size(const FunctionNode& f, const TypeVar& size) {
  const bool known = std::ranges::find(f.type_params, size) != f.type_params.end();
  const auto hint = known ? hint_of(f, *size) : std::nullopt;
  return hint ? hint->low : 0;
}

Function for_sizes(const Function& f, const TypeParams& sizes) {
  // Variables carry their types in annotations, expressions deduce theirs again.
  class Bind : public Rewriter {
   public:
    explicit Bind(const TypeParams& sizes)
        : Rewriter(family::program | family::attrs), sizes_(sizes) {}
    NodeRef pre(const NodeRef& node) override {
      return isa<AttrsNode>(node) ? with_type_params(Attrs::unchecked(node), sizes_) : Attrs();
    }
    NodeRef post(const NodeRef&, NodeRef rebuilt) override {
      auto* v = as<VarNode>(rebuilt);
      if (v == nullptr || !v->type) return rebuilt;
      Type t = with_type_params(v->type, sizes_);
      return t == v->type ? rebuilt : NodeRef(var(v->name_hint, t, v->span));
    }

   private:
    const TypeParams& sizes_;
  };
  std::vector<TypeVar> kept;
  for (const TypeVar& v : f->type_params) {
    if (!sizes.contains(v.get())) kept.push_back(v);
  }
  Bind bind(sizes);
  Expr body = bind.apply(f->body);
  std::vector<Var> params;
  for (const Var& p : f->params) params.push_back(bind.apply(p));
  return function(std::move(params), body, body->type, std::move(kept), f->attrs, f->span);
}

std::string to_string(const KnownSizes& sizes) {
  std::string out;
  for (const auto& [v, size] : sizes) {
    out += (out.empty() ? "" : ", ") + v->name_hint + " = " + std::to_string(size);
  }
  return out;
}

std::vector<TypeVar> open_dimensions(const FunctionNode& f, const FunctionNode& part) {
  const std::vector<TypeVar> mentioned = dimensions_of(part);
  std::vector<TypeVar> out;
  std::unordered_set<const Node*> left;
  for (const TypeVar& v : mentioned) left.insert(v.get());
  for (const std::vector<TypeVar>* names : {&f.type_params, &mentioned}) {
    for (const TypeVar& v : *names) {
      if (left.erase(v.get()) > 0) out.push_back(v);
    }
  }
  return out;
}

std::vector<KnownSizes> likely_sizes(const FunctionNode& f, const FunctionNode& part) {
  std::vector<KnownSizes> out{{}};
  std::vector<SizeHint> hints = size_hints(f);
  if (hints.empty()) return {};
  std::unordered_set<const Node*> mentioned;
  for (const TypeVar& v : dimensions_of(part)) mentioned.insert(v.get());
  for (const TypeVar& v : f.type_params) {
    auto hint = std::ranges::find(hints, v->name_hint, &SizeHint::name);
    if (hint == hints.end() || hint->likely.empty() || !mentioned.contains(v.get())) continue;
    std::vector<KnownSizes> longer;
    for (const KnownSizes& known : out) {
      for (int64_t size : hint->likely) {
        longer.push_back(known);
        longer.back().emplace_back(v, size);
      }
    }
    out = std::move(longer);
  }
  if (out.front().empty()) return {};
  return out;
}

}  // namespace relay
