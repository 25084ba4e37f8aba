#include "ir/attrs.h"

#include <new>
#include <set>

#include "base/codes/operators.h"
#include "base/codes/text.h"
#include "base/suggest.h"
#include "ir/op.h"
#include "node/walk.h"

namespace relay {
namespace {

// A description made at run time. The strings that its fields name are those of `specs`.
struct AttrsSchema : NodeInfo, std::enable_shared_from_this<AttrsSchema> {
  std::string owned_name;
  std::vector<AttrSpec> specs;
};

// Attributes of such a description: behind the node lies one AttrValue for each field, in order.
struct DynamicAttrsNode : AttrsNode {
  std::shared_ptr<const AttrsSchema> schema;

  explicit DynamicAttrsNode(std::shared_ptr<const AttrsSchema> s)
      : AttrsNode(*s), schema(std::move(s)) {}

  static size_t offset_of(size_t field) {
    static_assert(sizeof(DynamicAttrsNode) % alignof(AttrValue) == 0);
    return sizeof(DynamicAttrsNode) + field * sizeof(AttrValue);
  }
  AttrValue* value(size_t field) const {
    auto* here = reinterpret_cast<const char*>(static_cast<const Node*>(this));
    return reinterpret_cast<AttrValue*>(const_cast<char*>(here) + offset_of(field));
  }

  static DynamicAttrsNode* make(const AttrsSchema& schema) {
    void* memory = ::operator new(offset_of(schema.specs.size()));
    auto* node = new (memory) DynamicAttrsNode(schema.shared_from_this());
    for (size_t i = 0; i < schema.specs.size(); ++i) new (node->value(i)) AttrValue();
    return node;
  }
  static Node* create(const NodeInfo& info) {
    auto& schema = static_cast<const AttrsSchema&>(info);
    DynamicAttrsNode* node = make(schema);
    for (size_t i = 0; i < schema.specs.size(); ++i) *node->value(i) = schema.specs[i].value;
    return node;
  }
  static Node* clone(const Node& n) {
    auto& from = static_cast<const DynamicAttrsNode&>(n);
    DynamicAttrsNode* node = make(*from.schema);
    for (size_t i = 0; i < from.schema->specs.size(); ++i) *node->value(i) = *from.value(i);
    return node;
  }
  static void destroy(const Node* n) {
    auto* node = const_cast<DynamicAttrsNode*>(static_cast<const DynamicAttrsNode*>(n));
    for (size_t i = 0; i < node->schema->specs.size(); ++i) node->value(i)->~AttrValue();
    node->~DynamicAttrsNode();
    ::operator delete(node);
  }
};

// A field that holds an AttrValue of which only those that convert to T are let in.
template <class T>
struct CheckedValue {
  using C = field_detail::Convert<T>;
  static T typed(const void* field) {
    T out{};
    C::from(*static_cast<const AttrValue*>(field), out);
    return out;
  }
  static constexpr FieldOps ops{
      field_detail::no_children,
      nullptr,
      nullptr,
      [](const void* a, const void* b) { return field_detail::plain_equal<T>(typed(a), typed(b)); },
      [](const void* f) { return C::hash(typed(f)); },
      [](const void* f) { return *static_cast<const AttrValue*>(f); },
      [](void* f, const AttrValue& v) {
        T item{};
        if (!C::from(v, item)) return false;
        return *static_cast<AttrValue*>(f) = C::to(item), true;
      },
      C::name};
};

struct AttrType {
  const FieldOps* ops;
  const FieldOps* or_none;
};
template <class T>
constexpr AttrType attr_type() {
  return {&CheckedValue<T>::ops, &CheckedValue<std::optional<T>>::ops};
}
using Floats = std::vector<double>;
using Strings = std::vector<std::string>;
constexpr AttrType kAttrTypes[] = {
    attr_type<bool>(),
    attr_type<int64_t>(),
    attr_type<double>(),
    attr_type<std::string>(),
    attr_type<DType>(),
    attr_type<std::vector<int64_t>>(),
    attr_type<Floats>(),
    attr_type<Strings>(),
    {&kDimsValue, &kOptionalDimsValue},
    {&CheckedValue<AttrValue>::ops, &CheckedValue<AttrValue>::ops},
};

bool is_identifier(std::string_view name) {
  bool start = true;
  for (char c : name) {
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && (start || c < '0' || c > '9')) return false;
    start = false;
  }
  return !start;
}

const FieldOps* ops_of(const AttrSpec& spec, const std::string& attrs) {
  std::string known;
  for (const AttrType& t : kAttrTypes) {
    if (t.ops->type_name == spec.type) return spec.value.is_none() ? t.or_none : t.ops;
    known += (known.empty() ? "" : ", ") + std::string(t.ops->type_name);
  }
  throw UserError(
      Diagnostic(codes::op_attribute_list, {},
                 "attribute '" + spec.name + "' of " + attrs + " has a type that is not known")
          .expected("one of " + known)
          .found(spec.type));
}

}  // namespace

std::shared_ptr<const NodeInfo> describe_attrs(std::string name, std::vector<AttrSpec> fields) {
  auto schema = std::make_shared<AttrsSchema>();
  schema->owned_name = std::move(name);
  schema->specs = std::move(fields);
  schema->name = schema->owned_name;
  schema->kind = AttrsKind::Attrs;
  schema->family = family::attrs;
  schema->create = &DynamicAttrsNode::create;
  schema->clone = &DynamicAttrsNode::clone;
  schema->destroy = &DynamicAttrsNode::destroy;
  schema->rebuilt = &check_known_sizes;
  std::set<std::string_view> seen;
  for (AttrSpec& spec : schema->specs) {
    auto refuse = [&](std::string what) {
      return Diagnostic(codes::op_attribute_list, {},
                        "attribute '" + spec.name + "' of " + schema->owned_name + std::move(what));
    };
    if (!is_identifier(spec.name))
      throw UserError(refuse(" has a bad name").expected("letters, digits and _"));
    if (!seen.insert(spec.name).second) throw UserError(refuse(" is there twice"));
    const FieldOps* ops = ops_of(spec, schema->owned_name);
    AttrValue given = spec.value;
    if (!ops->set(&spec.value, given)) {
      throw UserError(refuse(" has a default of another type")
                          .expected(ops->type_name)
                          .found(to_string(given)));
    }
    Role role = ops->get_child == nullptr ? Role::attribute : Role::child;
    schema->fields.push_back(
        {spec.name, role, DynamicAttrsNode::offset_of(schema->fields.size()), ops, spec.doc});
  }
  return schema;
}

Attrs make_attrs(const NodeInfo& info, const std::vector<std::pair<std::string, AttrValue>>& values,
                 std::string_view op_name, const Span& span) {
  // What has no attributes has no node either; then every name is one too many.
  Node* node = info.create == nullptr ? nullptr : info.create(info);
  NodeRef owner(node);
  for (const auto& [name, value] : values) {
    const Field* f = info.find(name);
    if (f == nullptr) {
      std::string known;
      std::vector<std::string_view> names;
      for (const Field& field : info.fields) {
        known += (known.empty() ? "" : ", ") + std::string(field.name);
        names.push_back(field.name);
      }
      throw UserError(Diagnostic(codes::text_bad_attribute, span,
                                 std::string(op_name) + " has no attribute '" + name + "'")
                          .expected(known.empty() ? "no attributes" : "one of " + known)
                          .found(name)
                          .help(suggest(name, names)));
    }
    if (!f->ops->set(f->in(*node), value)) {
      throw UserError(Diagnostic(codes::text_bad_attribute, span,
                                 "attribute '" + name + "' of " + std::string(op_name) +
                                     " has a value of the wrong type")
                          .expected(f->ops->type_name)
                          .found(to_string(value)));
    }
  }
  return Attrs::unchecked(std::move(owner));
}

std::vector<std::pair<std::string, AttrValue>> attr_values(const Attrs& attrs, bool only_changed) {
  std::vector<std::pair<std::string, AttrValue>> out;
  if (!attrs) return out;
  const NodeInfo& info = attrs->info();
  NodeRef defaults(info.create(info));
  for (const Field& f : info.fields) {
    if (only_changed && f.ops->equal(f.in(*attrs.get()), f.in(*defaults.get()))) continue;
    out.emplace_back(std::string(f.name), f.ops->get(f.in(*attrs.get())));
  }
  return out;
}

bool has_symbolic_sizes(const Attrs& attrs) {
  bool found = false;
  if (!attrs) return found;
  for_each_child(*attrs.get(), [&](const NodeRef& size) { found |= !isa<DimConstNode>(size); });
  return found;
}

AttrValue attr_value(const Attrs& attrs, std::string_view name) {
  const Field* f = attrs ? attrs->info().find(name) : nullptr;
  RELAY_CHECK(f != nullptr, std::string(name));
  return f->ops->get(f->in(*attrs.get()));
}

}  // namespace relay
