// The serialised form of a program: declared in bytecode.h. Numbers are little-endian and of fixed
// width; strings and tables are preceded by their length.

#include <bit>
#include <cstring>

#include "base/codes/runtime.h"
#include "runtime/vm/bytecode.h"

namespace relay::runtime {

static_assert(std::endian::native == std::endian::little, "the stored form is little-endian");

namespace {

class Writer {
 public:
  explicit Writer(uint32_t format) : version(format) {}

  template <typename T>
  void number(T value) {
    static_assert(std::is_arithmetic_v<T>);
    out.append(reinterpret_cast<const char*>(&value), sizeof(T));
  }
  void string(const std::string& text) {
    number<uint64_t>(text.size());
    out += text;
  }
  template <typename T, typename F>
  void table(const std::vector<T>& items, F&& f) {
    number<uint64_t>(items.size());
    for (const T& item : items) f(item);
  }
  template <typename T>
  void numbers(const std::vector<T>& items) {
    table(items, [this](T item) { number(item); });
  }

  void spec(const TensorSpec& type) {
    number<uint32_t>(type.dtype.key());
    numbers(type.shape);
    table(type.symbols, [this](const std::string& s) { string(s); });
    device(type.device);
  }
  void device(Device d) {
    number(d.type);
    number(d.id);
  }
  void slot(const Slot& slot) {
    string(slot.name);
    number<uint8_t>(slot.is_tensor);
    spec(slot.tensor);
    string(slot.type_text);
    table(slot.parts, [this](const TypePart& part) {
      number<uint8_t>(part.kind);
      number(part.fields);
      spec(part.spec);
    });
  }
  void function(const Function& f) {
    string(f.name);
    table(f.params, [this](const Slot& s) { slot(s); });
    table(f.results, [this](const Slot& s) { slot(s); });
    number<uint8_t>(f.returns_tuple);
    number<uint8_t>(f.writes_outputs);
    number<uint8_t>(f.internal);
    number(f.arena_bytes);
    number(f.num_registers);
    number(f.num_int_registers);
    table(f.code, [this](const Instruction& in) {
      number(static_cast<uint8_t>(in.op));
      number(in.sub);
      number(in.count);
      number(in.dst);
      number(in.a);
      number(in.b);
    });
    numbers(f.lists);
    table(f.operands, [this](const Operand& o) {
      number(static_cast<uint8_t>(o.kind));
      number(o.index);
      number(o.bytes);
    });
    table(f.types, [this](const TensorSpec& t) { spec(t); });
    if (version < kDonationVersion) return;
    table(f.donations, [this](const Donation& d) {
      number(d.param);
      number(d.output);
      number<uint8_t>(d.in_place);
    });
    number(f.num_places);
    if (version < kNativeVersion) return;
    number<uint8_t>(f.native);
    if (version < kProgramVersion) return;
    table(f.devices, [this](const DeviceArena& a) {
      device(a.device);
      number(a.bytes);
    });
  }
  void kernel(const KernelInfo& k) {
    string(k.name);
    string(k.origin);
    numbers(k.buffer_bytes);
    number(k.num_outputs);
    number(k.num_dims);
    number(k.flops);
    number(k.bytes);
    number(static_cast<uint8_t>(k.has_gaps));
    device(k.device);
    if (version < kLinkageVersion) return;
    number(static_cast<uint8_t>(k.linkage));
    string(k.library);
    string(k.symbol);
  }

  const uint32_t version;
  std::string out;
};

class Reader {
 public:
  Reader(std::string_view bytes, uint32_t version) : bytes_(bytes), version_(version) {}

  template <typename T>
  T number() {
    T value;
    need(sizeof(T));
    std::memcpy(&value, bytes_.data(), sizeof(T));
    bytes_.remove_prefix(sizeof(T));
    return value;
  }
  std::string string() {
    uint64_t size = number<uint64_t>();
    need(size);
    std::string text(bytes_.substr(0, size));
    bytes_.remove_prefix(size);
    return text;
  }
  // `smallest` is the least number of bytes that an item takes: a length that cannot be true is
  // refused before memory is reserved for it.
  template <typename T, typename F>
  std::vector<T> table(size_t smallest, F&& f) {
    uint64_t size = number<uint64_t>();
    if (size > bytes_.size() / smallest) fail();
    std::vector<T> items;
    items.reserve(size);
    for (uint64_t i = 0; i < size; ++i) items.push_back(f());
    return items;
  }
  template <typename T>
  std::vector<T> numbers() {
    return table<T>(sizeof(T), [this] { return number<T>(); });
  }
  bool flag() {
    uint8_t value = number<uint8_t>();
    if (value > 1) fail();
    return value == 1;
  }

  TensorSpec spec() {
    TensorSpec type;
    type.dtype = DType::from_key(number<uint32_t>());
    type.shape = numbers<int64_t>();
    type.symbols = table<std::string>(8, [this] { return string(); });
    type.device = device();
    return type;
  }
  Device device() {
    Device d;
    d.type = number<uint16_t>();
    d.id = number<uint16_t>();
    return d;
  }
  Slot slot() {
    Slot slot;
    slot.name = string();
    slot.is_tensor = flag();
    slot.tensor = spec();
    slot.type_text = string();
    slot.parts = table<TypePart>(29, [this] {
      TypePart part;
      uint8_t kind = number<uint8_t>();
      if (kind > TypePart::other) fail();
      part.kind = static_cast<TypePart::Kind>(kind);
      part.fields = number<uint32_t>();
      part.spec = spec();
      return part;
    });
    return slot;
  }
  Function function() {
    Function f;
    f.name = string();
    f.params = table<Slot>(49, [this] { return slot(); });
    f.results = table<Slot>(49, [this] { return slot(); });
    f.returns_tuple = flag();
    f.writes_outputs = flag();
    f.internal = flag();
    f.arena_bytes = number<int64_t>();
    f.num_registers = number<int32_t>();
    f.num_int_registers = number<int32_t>();
    f.code = table<Instruction>(18, [this] {
      Instruction in;
      in.op = static_cast<Opcode>(number<uint8_t>());
      in.sub = number<uint8_t>();
      in.count = number<uint32_t>();
      in.dst = number<int32_t>();
      in.a = number<int32_t>();
      in.b = number<int32_t>();
      return in;
    });
    f.lists = numbers<int32_t>();
    f.operands = table<Operand>(17, [this] {
      Operand o;
      o.kind = static_cast<Operand::Kind>(number<uint8_t>());
      o.index = number<int64_t>();
      o.bytes = number<int64_t>();
      return o;
    });
    f.types = table<TensorSpec>(24, [this] { return spec(); });
    if (version_ >= kDonationVersion) {
      f.donations = table<Donation>(9, [this] {
        Donation d;
        d.param = number<int32_t>();
        d.output = number<int32_t>();
        d.in_place = flag();
        return d;
      });
      f.num_places = number<int32_t>();
    }
    if (version_ >= kNativeVersion) f.native = flag();
    if (version_ >= kProgramVersion) {
      f.devices = table<DeviceArena>(12, [this] {
        DeviceArena a;
        a.device = device();
        a.bytes = number<int64_t>();
        return a;
      });
    }
    return f;
  }
  KernelInfo kernel() {
    KernelInfo k;
    k.name = string();
    k.origin = string();
    k.buffer_bytes = numbers<int64_t>();
    k.num_outputs = number<uint32_t>();
    k.num_dims = number<uint32_t>();
    k.flops = number<int64_t>();
    k.bytes = number<int64_t>();
    k.has_gaps = flag();
    k.device = device();
    if (version_ < kLinkageVersion) return k;
    const uint8_t linkage = number<uint8_t>();
    if (linkage > static_cast<uint8_t>(KernelLinkage::host)) fail();
    k.linkage = static_cast<KernelLinkage>(linkage);
    k.library = string();
    k.symbol = string();
    return k;
  }
  void end() {
    if (!bytes_.empty()) fail();
  }

 private:
  void need(uint64_t size) {
    if (size > bytes_.size()) fail();
  }
  [[noreturn]] void fail() {
    throw UserError(Diagnostic(codes::artifact_corrupt, {}, "the artifact's bytecode is damaged")
                        .help("compile the model again"));
  }

  std::string_view bytes_;
  uint32_t version_;
};

}  // namespace

std::string write_program(const Program& program, uint32_t version) {
  Writer w(version);
  w.table(program.functions, [&w](const Function& f) { w.function(f); });
  w.table(program.kernels, [&w](const KernelInfo& k) { w.kernel(k); });
  w.table(program.strings, [&w](const std::string& s) { w.string(s); });
  if (version >= kProgramVersion) {
    w.table(program.constant_devices, [&w](Device d) { w.device(d); });
  }
  return std::move(w.out);
}

Program read_program(std::string_view bytes, uint32_t version) {
  Reader r(bytes, version);
  Program program;
  program.functions = r.table<Function>(64, [&r] { return r.function(); });
  program.kernels = r.table<KernelInfo>(53, [&r] { return r.kernel(); });
  program.strings = r.table<std::string>(8, [&r] { return r.string(); });
  if (version >= kProgramVersion) {
    program.constant_devices = r.table<Device>(4, [&r] { return r.device(); });
  }
  r.end();
  return program;
}

}  // namespace relay::runtime
