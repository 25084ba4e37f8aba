#include "ir/text/print_value.h"

#include <charconv>
#include <cmath>
#include <unordered_map>
#include <variant>

#include "base/budget.h"
#include "ir/type_params.h"
#include "node/structural.h"
#include "node/walk.h"
#include "runtime/core/strings.h"

namespace relay {
namespace {

using runtime::Cell;
using runtime::Object;
using runtime::ObjectKind;

// The fewest digits that give the number back in its own precision.
std::string float_text(const Tensor& t, int64_t i) {
  double value = t.get_as_double(i);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  auto end = t.dtype().bits == 64
                 ? std::to_chars(buffer, buffer + sizeof(buffer), value)
                 : std::to_chars(buffer, buffer + sizeof(buffer), static_cast<float>(value));
  return std::string(buffer, end.ptr);
}

std::string element_text(const Tensor& t, int64_t i) {
  DType dtype = t.dtype();
  if (dtype.is_string()) return to_string(AttrValue(std::string(runtime::string_at(t, i))));
  if (dtype.is_bool()) return t.get_as_int(i) != 0 ? "True" : "False";
  if (dtype.is_floating()) return float_text(t, i);
  if (dtype == DType::UInt(64)) return std::to_string(static_cast<uint64_t>(t.get_as_int(i)));
  return std::to_string(t.get_as_int(i));
}

// Nested brackets, one pair for each dimension.
std::string tensor_text(const Tensor& t, int64_t max_elements) {
  if (t.rank() == 0) return element_text(t, 0);
  if (t.num_elements() > max_elements || t.num_elements() == 0) {
    return runtime::type_string(t.dtype(), t.shape());
  }
  std::string out;
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    // Brackets open and close where the index of an axis starts over.
    int64_t stride = 1;
    int opened = 0;
    for (int axis = t.rank(); axis-- > 0;) {
      stride *= t.dim(static_cast<size_t>(axis));
      opened += i % stride == 0;
    }
    if (i > 0) out += std::string(static_cast<size_t>(opened), ']') + ", ";
    out += std::string(static_cast<size_t>(opened), '[') + element_text(t, i);
  }
  return out + std::string(static_cast<size_t>(t.rank()), ']');
}

class ValuePrinter {
 public:
  ValuePrinter(const Module& mod, const PrintValueOptions& options)
      : mod_(mod), options_(options) {}

  std::string run(const Object* value, const Type& type) {
    stack_.push_back(Part{value, type});
    while (!stack_.empty()) {
      check_budget();
      auto piece = std::move(stack_.back());
      stack_.pop_back();
      if (auto* text = std::get_if<std::string>(&piece)) {
        out_ += *text;
      } else {
        print(std::get<Part>(piece));
      }
    }
    return std::move(out_);
  }

 private:
  struct Part {
    const Object* value;
    Type type;
    // Of data in the last field of data of its type: how many further ones are shown before those
    // between the ends of the chain are passed over; -1 when all are.
    int64_t before_gap = -1;
    bool in_chain = false;
  };
  // A chain longer than this is not measured; it is cut by max_values.
  static constexpr int64_t kMaxMeasured = 100'000'000;

  void print(const Part& p) {
    if (p.value == nullptr || ++shown_ > options_.max_values) {
      out_ += "...";
      return;
    }
    switch (runtime::kind_of(p.value)) {
      case ObjectKind::tensor: {
        auto* word = const_cast<Object*>(p.value);  // to count one more handle
        out_ += tensor_text(runtime::tensor_of(word), options_.max_elements);
        return;
      }
      case ObjectKind::closure: {
        std::string name;
        if (options_.closure_name) name = options_.closure_name(cell(p).tag);
        out_ += "<" + (name.empty() ? "fn" : "@" + name);
        out_ += (p.type ? ": " + to_string(p.type) : "") + ">";
        return;
      }
      case ObjectKind::ref: {
        auto* t = as<RefTypeNode>(p.type);
        out_ += "ref(";
        stack_.push_back(")");
        stack_.push_back(Part{cell(p).fields[0], t != nullptr ? t->value : nullptr});
        return;
      }
      case ObjectKind::tuple: {
        auto* t = as<TupleTypeNode>(p.type);
        bool typed = t != nullptr && t->fields.size() == cell(p).count;
        out_ += "(";
        push_fields(cell(p), typed ? t->fields : std::vector<Type>(),
                    cell(p).count == 1 ? ",)" : ")");
        return;
      }
      case ObjectKind::adt:
        return print_data(p);
    }
  }

  void print_data(Part p) {
    auto* call = as<TypeCallNode>(p.type);
    auto* header = as<GlobalTypeVarNode>(call != nullptr ? call->func : p.type);
    TypeData data = mod_ && header != nullptr ? mod_->find_type(header->name_hint) : nullptr;
    if (!p.in_chain) {
      p.before_gap = chain_length(p) > options_.max_chain ? options_.max_chain / 2 : -1;
    } else if (p.before_gap == 0) {
      int64_t skipped = chain_length(p) - options_.max_chain / 2;
      for (int64_t i = 0; i < skipped; ++i) p.value = last_field(p.value);
      out_ += "... " + std::to_string(skipped) + " more ... ";
      p.before_gap = -1;
    }
    auto tag = static_cast<size_t>(cell(p).tag);
    std::vector<Type> types;
    if (data && tag < data->constructors.size()) {
      out_ += data->constructors[tag]->name_hint;
      types = field_types(data, tag, call);
    } else {
      out_ += "<constructor " + std::to_string(tag) + ">";
    }
    if (cell(p).count == 0) return;
    out_ += "(";
    push_fields(cell(p), types, ")");
    if (last_field(p.value) == nullptr) return;
    // Fields lie on the stack from the last one up, above the closing bracket.
    size_t above = 2 * cell(p).count - 1;
    auto& last = std::get<Part>(stack_[stack_.size() - above]);
    // The type of what is passed over must go on as it was.
    bool regular =
        last.type == p.type || (last.type && p.type && structural_equal(last.type, p.type));
    if (!regular) return;
    last.in_chain = true;
    last.before_gap = p.before_gap > 0 ? p.before_gap - 1 : -1;
  }

  // The data in the last field, or null when there is none.
  static const Object* last_field(const Object* value) {
    const Cell& c = runtime::cell_of(value);
    const Object* last = c.count == 0 ? nullptr : c.fields[c.count - 1];
    return last != nullptr && runtime::kind_of(last) == ObjectKind::adt ? last : nullptr;
  }
  int64_t chain_length(const Part& p) {
    int64_t length = 1;
    for (const Object* v = last_field(p.value); v != nullptr; v = last_field(v)) {
      if (++length + measured_ > kMaxMeasured) return 0;
    }
    measured_ += length;
    return length;
  }

  // The constructor's fields with the type's parameters filled in.
  std::vector<Type> field_types(const TypeData& data, size_t tag, const TypeCallNode* call) {
    std::vector<Type> types = data->constructors[tag]->inputs;
    if (call == nullptr || call->args.size() != data->type_vars.size()) return types;
    TypeParams arguments;
    for (size_t i = 0; i < call->args.size(); ++i) {
      arguments[data->type_vars[i].get()] = call->args[i];
    }
    for (Type& t : types) t = with_type_params(t, arguments);
    return types;
  }

  // Puts the fields on the stack, the first on top.
  void push_fields(const Cell& c, const std::vector<Type>& types, const char* end) {
    stack_.push_back(std::string(end));
    for (uint32_t i = c.count; i-- > 0;) {
      stack_.push_back(Part{c.fields[i], i < types.size() ? types[i] : nullptr});
      if (i > 0) stack_.push_back(std::string(", "));
    }
  }

  static const Cell& cell(const Part& p) { return runtime::cell_of(p.value); }

  const Module& mod_;
  const PrintValueOptions& options_;
  std::vector<std::variant<std::string, Part>> stack_;
  std::string out_;
  int64_t shown_ = 0;
  int64_t measured_ = 0;
};

}  // namespace

std::string print_value(const runtime::Value& value, const Type& type, const Module& mod,
                        const PrintValueOptions& options) {
  return ValuePrinter(mod, options).run(value.object(), type);
}

}  // namespace relay
