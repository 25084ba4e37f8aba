#include "frontend/torch/pickle.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "base/codes/frontend.h"
#include "base/diagnostic.h"
#include "frontend/torch/node_context.h"

namespace relay::frontend::torch {
namespace {

constexpr int kMaxDepth = 100;
constexpr unsigned char kTupleOf1 = 0x85;  // those of 2 and 3 follow
using Kind = PickleValue::Kind;

struct StorageClass {
  std::string_view name;
  DType dtype;
};
const StorageClass kStorages[] = {
    {"torch.FloatStorage", DType::Float(32)},
    {"torch.DoubleStorage", DType::Float(64)},
    {"torch.HalfStorage", DType::Float(16)},
    {"torch.BFloat16Storage", DType::BFloat16()},
    {"torch.LongStorage", DType::Int(64)},
    {"torch.IntStorage", DType::Int(32)},
    {"torch.ShortStorage", DType::Int(16)},
    {"torch.CharStorage", DType::Int(8)},
    {"torch.ByteStorage", DType::UInt(8)},
    {"torch.BoolStorage", DType::Bool()},
    {"torch.storage.UntypedStorage", DType::UInt(8)},
};
// Names that stand for themselves; they are never called but for tensors.
constexpr std::string_view kGlobals[] = {
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_tensor_v3",
    "torch._utils._rebuild_parameter",
    "torch.Size",
    "torch.device",
    "torch.serialization._get_layout",
};

class Machine {
 public:
  Machine(std::string_view bytes, const Span& span) : bytes_(bytes), span_(span) {}

  PicklePtr run() {
    while (true) {
      const auto code = static_cast<unsigned char>(take(1)[0]);
      if (code == '.') break;
      step(code);
    }
    if (stack_.size() != 1 || !marks_.empty()) damaged("it ends with other than one value");
    return stack_[0];
  }

 private:
  [[noreturn]] void damaged(const std::string& why) const {
    throw UserError(Diagnostic(codes::frontend_damaged, span_, "the pickle is damaged: " + why)
                        .help("check that the file was copied or downloaded completely"));
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    throw UserError(
        Diagnostic(codes::frontend_attribute, span_,
                   "the pickle has " + what + ", which is not read")
            .expected("tensors, numbers and strings in dictionaries, lists and tuples")
            .help("save the state dictionary alone: torch.save(model.state_dict(), path)"));
  }

  std::string_view take(size_t count) {
    if (count > bytes_.size() - at_) damaged("it ends too early");
    const std::string_view out = bytes_.substr(at_, count);
    at_ += count;
    return out;
  }
  uint64_t number(size_t width) {
    uint64_t out = 0;
    const std::string_view part = take(width);
    for (size_t i = 0; i < width; ++i)
      out |= uint64_t{static_cast<unsigned char>(part[i])} << (8 * i);
    return out;
  }
  std::string_view line() {
    const size_t end = bytes_.find('\n', at_);
    if (end == std::string_view::npos) damaged("it ends too early");
    const std::string_view out = bytes_.substr(at_, end - at_);
    at_ = end + 1;
    return out;
  }

  PicklePtr make(Kind kind) const {
    auto v = std::make_shared<PickleValue>();
    v->kind = kind;
    return v;
  }
  void push(PicklePtr v) { stack_.push_back(std::move(v)); }
  void push_integer(int64_t value, Kind kind = Kind::integer) {
    PicklePtr v = make(kind);
    v->integer = value;
    push(std::move(v));
  }
  void push_text(std::string_view text, Kind kind = Kind::text) {
    PicklePtr v = make(kind);
    v->text = text;
    push(std::move(v));
  }
  size_t bottom() const { return marks_.empty() ? 0 : marks_.back(); }
  PicklePtr pop() {
    if (stack_.size() <= bottom()) damaged("its stack is empty");
    PicklePtr v = std::move(stack_.back());
    stack_.pop_back();
    return v;
  }
  PicklePtr& top() {
    if (stack_.size() <= bottom()) damaged("its stack is empty");
    return stack_.back();
  }
  std::vector<PicklePtr> pop_mark() {
    if (marks_.empty()) damaged("a mark is missing");
    std::vector<PicklePtr> out(
        std::make_move_iterator(stack_.begin() + static_cast<std::ptrdiff_t>(marks_.back())),
        std::make_move_iterator(stack_.end()));
    stack_.resize(marks_.back());
    marks_.pop_back();
    return out;
  }

  // Values are added to one that is not yet part of another, so that none holds itself.
  void add(const PicklePtr& to, std::vector<PicklePtr> values) {
    for (PicklePtr& v : values) {
      v->is_part = true;
      to->depth = std::max(to->depth, v->depth + 1);
      if (to->is_part) unsupported("a value that changes after its use");
      to->items.push_back(std::move(v));
    }
    if (to->depth > kMaxDepth) {
      throw UserError(
          Diagnostic(codes::frontend_limit, span_, "the values of the pickle are nested too deeply")
              .expected("at most " + std::to_string(kMaxDepth) + " levels"));
    }
  }
  void push_tuple(std::vector<PicklePtr> values) {
    PicklePtr v = make(Kind::tuple);
    add(v, std::move(values));
    push(std::move(v));
  }
  void push_last(size_t count) {
    std::vector<PicklePtr> values(count);
    for (size_t i = count; i-- > 0;) values[i] = pop();
    push_tuple(std::move(values));
  }
  void extend(Kind kind, std::vector<PicklePtr> values) {
    const PicklePtr to = top();
    if (to->kind != kind || (kind == Kind::dict && values.size() % 2 != 0))
      damaged("values are added to what does not take them");
    add(to, std::move(values));
  }

  void push_global(std::string_view module, std::string_view name) {
    const std::string full = std::string(module) + "." + std::string(name);
    const bool known =
        std::ranges::find(kGlobals, full) != std::end(kGlobals) ||
        std::ranges::find(kStorages, full, &StorageClass::name) != std::end(kStorages) ||
        dtype_named(full).has_value();
    if (!known) unsupported("'" + escape_for_terminal(full, 200) + "'");
    push_text(full, Kind::global);
  }
  static std::optional<DType> dtype_named(std::string_view full) {
    constexpr std::string_view kPrefix = "torch.";
    if (!full.starts_with(kPrefix)) return std::nullopt;
    for (int64_t type = 1; type < 64; ++type) {
      auto dtype = dtype_of(type);
      if (dtype && name_of_scalar_type(type) == full.substr(kPrefix.size())) return dtype;
    }
    return std::nullopt;
  }

  // ('storage', class, key, place, number of elements)
  void push_storage(const PicklePtr& id) {
    const std::vector<PicklePtr>& f = id->items;
    const bool fits = id->kind == Kind::tuple && f.size() == 5 && f[0]->text == "storage" &&
                      f[1]->kind == Kind::global && f[2]->kind == Kind::text &&
                      f[4]->kind == Kind::integer;
    auto type =
        fits ? std::ranges::find(kStorages, f[1]->text, &StorageClass::name) : std::end(kStorages);
    if (type == std::end(kStorages)) damaged("a storage is not one of PyTorch's");
    PicklePtr v = make(Kind::storage);
    v->text = f[2]->text;
    v->dtype = type->dtype;
    v->integer = f[4]->integer;
    push(std::move(v));
  }

  std::vector<int64_t> integers(const PicklePtr& v) const {
    std::vector<int64_t> out;
    if (v->kind != Kind::tuple) damaged("the sizes of a tensor are not a tuple");
    for (const PicklePtr& i : v->items) {
      if (i->kind != Kind::integer) damaged("a size of a tensor is not an integer");
      out.push_back(i->integer);
    }
    return out;
  }

  void reduce() {
    const PicklePtr arguments = pop(), function = pop();
    if (function->kind != Kind::global || arguments->kind != Kind::tuple)
      damaged("a call is not one of a function");
    const std::vector<PicklePtr>& f = arguments->items;
    const std::string& name = function->text;
    if (name == "collections.OrderedDict" && f.empty()) return push(make(Kind::dict));
    if (name == "torch.Size" && f.size() == 1 && f[0]->kind == Kind::tuple) return push(f[0]);
    if (name == "torch.device" || name == "torch.serialization._get_layout")
      return push(make(Kind::none));
    if (name == "torch._utils._rebuild_parameter" && !f.empty() && f[0]->kind == Kind::tensor)
      return push(f[0]);
    const bool third = name == "torch._utils._rebuild_tensor_v3";
    if ((name == "torch._utils._rebuild_tensor_v2" || third) && f.size() >= (third ? 7u : 4u) &&
        f[0]->kind == Kind::storage && f[1]->kind == Kind::integer) {
      PicklePtr v = make(Kind::tensor);
      v->dtype = f[0]->dtype;
      if (third) {
        auto dtype = f[6]->kind == Kind::global ? dtype_named(f[6]->text) : std::nullopt;
        if (!dtype) unsupported("a tensor of an element type that Relay lacks");
        v->dtype = *dtype;
      }
      v->layout = {integers(f[2]), integers(f[3]), f[1]->integer};
      add(v, {f[0]});
      return push(std::move(v));
    }
    unsupported("a call of '" + escape_for_terminal(name, 200) + "'");
  }

  void put(uint64_t key) { memo_[key] = top(); }
  void get(uint64_t key) {
    auto it = memo_.find(key);
    if (it == memo_.end()) damaged("a value is used that was not kept");
    push(it->second);
  }
  static int64_t signed_32(uint64_t value) {
    return static_cast<int32_t>(static_cast<uint32_t>(value));
  }

  void step(unsigned char code) {
    switch (code) {
      case 0x80:  // the version
        if (number(1) > 5) unsupported("a later version");
        return;
      case 0x95:  // the length of what follows
        take(8);
        return;
      case '(':
        marks_.push_back(stack_.size());
        return;
      case '0':
        pop();
        return;
      case 'N':
        return push(make(Kind::none));
      case 0x88:
      case 0x89:
        return push_integer(code == 0x88 ? 1 : 0, Kind::truth);
      case 'J':
        return push_integer(signed_32(number(4)));
      case 'K':
        return push_integer(static_cast<int64_t>(number(1)));
      case 'M':
        return push_integer(static_cast<int64_t>(number(2)));
      case 0x8a: {
        const size_t width = number(1);
        if (width > 8) unsupported("an integer of more than 64 bits");
        uint64_t value = number(width);
        // The sign is that of the highest byte.
        if (width > 0 && width < 8 && (value >> (8 * width - 1)) != 0)
          value |= ~uint64_t{0} << (8 * width);
        return push_integer(static_cast<int64_t>(value));
      }
      case 'G': {
        uint64_t bits = 0;
        for (char c : take(8)) bits = bits << 8 | static_cast<unsigned char>(c);
        PicklePtr v = make(Kind::real);
        v->real = std::bit_cast<double>(bits);
        return push(std::move(v));
      }
      case 'X':
        return push_text(take(number(4)));
      case 0x8c:
        return push_text(take(number(1)));
      case ')':
        return push(make(Kind::tuple));
      case ']':
        return push(make(Kind::list));
      case '}':
        return push(make(Kind::dict));
      case 't':
        return push_tuple(pop_mark());
      case kTupleOf1:
      case kTupleOf1 + 1:
      case kTupleOf1 + 2:
        return push_last(code - kTupleOf1 + 1u);
      case 'a': {
        PicklePtr v = pop();
        return extend(Kind::list, {std::move(v)});
      }
      case 'e':
        return extend(Kind::list, pop_mark());
      case 's': {
        PicklePtr value = pop(), key = pop();
        return extend(Kind::dict, {std::move(key), std::move(value)});
      }
      case 'u':
        return extend(Kind::dict, pop_mark());
      case 'q':
        return put(number(1));
      case 'r':
        return put(number(4));
      case 0x94:
        return put(memo_.size());
      case 'h':
        return get(number(1));
      case 'j':
        return get(number(4));
      case 'c': {
        const std::string_view module = line();
        return push_global(module, line());
      }
      case 0x93: {
        const PicklePtr name = pop(), module = pop();
        if (name->kind != Kind::text || module->kind != Kind::text)
          damaged("a name is not a string");
        return push_global(module->text, name->text);
      }
      case 'Q':
        return push_storage(pop());
      case 'R':
        return reduce();
      case 'b': {
        // What is told of a dictionary besides its entries: the versions of modules.
        pop();
        if (top()->kind != Kind::dict) unsupported("an object with a state");
        return;
      }
      default: {
        constexpr char kHex[] = "0123456789abcdef";
        unsupported(std::string("the instruction 0x") + kHex[code >> 4] + kHex[code & 15]);
      }
    }
  }

  std::string_view bytes_;
  const Span& span_;
  size_t at_ = 0;
  std::vector<PicklePtr> stack_;
  std::vector<size_t> marks_;
  std::unordered_map<uint64_t, PicklePtr> memo_;
};

}  // namespace

PicklePtr read_pickle(std::string_view bytes, const Span& span) {
  return Machine(bytes, span).run();
}

}  // namespace relay::frontend::torch
