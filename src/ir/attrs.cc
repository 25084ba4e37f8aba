#include "ir/attrs.h"

#include "base/diagnostic_codes.h"
#include "ir/op.h"

namespace relay {

Attrs make_attrs(const NodeInfo& info, const std::vector<std::pair<std::string, Value>>& values,
                 std::string_view op_name, const Span& span) {
  // What has no attributes has no node either; then every name is one too many.
  Node* node = info.create == nullptr ? nullptr : info.create();
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

std::vector<std::pair<std::string, Value>> attr_values(const Attrs& attrs, bool only_changed) {
  std::vector<std::pair<std::string, Value>> out;
  if (!attrs) return out;
  const NodeInfo& info = attrs->info();
  NodeRef defaults(info.create());
  for (const Field& f : info.fields) {
    if (only_changed && f.ops->equal(f.in(*attrs.get()), f.in(*defaults.get()))) continue;
    out.emplace_back(std::string(f.name), f.ops->get(f.in(*attrs.get())));
  }
  return out;
}

Value attr_value(const Attrs& attrs, std::string_view name) {
  const Field* f = attrs ? attrs->info().find(name) : nullptr;
  RELAY_CHECK(f != nullptr, std::string(name));
  return f->ops->get(f->in(*attrs.get()));
}

}  // namespace relay
