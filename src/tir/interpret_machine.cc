#include "tir/interpret_machine.h"

#include "base/quantities.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "base/budget.h"
#include "base/codes/runtime.h"
#include "runtime/core/float16.h"
#include "runtime/core/kernel_abi.h"
#include "tir/intrinsics.h"
#include "tir/scalar.h"

namespace relay::tir::interpret_detail {
namespace {

// ---- Slots as values ---------------------------------------------------------------------------

template <class T>
T get(Slot s) {
  if constexpr (std::is_same_v<T, float>) {
    return s.f;
  } else if constexpr (std::is_same_v<T, double>) {
    return s.d;
  } else if constexpr (std::is_unsigned_v<T>) {
    return static_cast<T>(s.u);
  } else {
    return static_cast<T>(s.i);
  }
}

// Integers of any width are extended to the slot's.
template <class T>
Slot slot_of(T v) {
  Slot s;
  s.u = 0;
  if constexpr (std::is_same_v<T, float>) {
    s.f = v;
  } else if constexpr (std::is_same_v<T, double>) {
    s.d = v;
  } else if constexpr (std::is_unsigned_v<T>) {
    s.u = v;
  } else {
    s.i = v;
  }
  return s;
}

// Calls `make` with a value of the C++ type that stands for the dtype's elements.
struct Half {
  uint16_t bits;
};
struct Brain {
  uint16_t bits;
};
struct Truth {
  uint8_t byte;
};
template <class Make>
Handler for_element(DType dtype, Make make) {
  if (dtype.is_bool()) return make(Truth{});
  if (dtype.is_bfloat16()) return make(Brain{});
  if (dtype.is_floating()) {
    return dtype.bits == 64 ? make(double{}) : dtype.bits == 32 ? make(float{}) : make(Half{});
  }
  bool is_signed = dtype.is_int();
  switch (dtype.bits) {
    case 8:
      return is_signed ? make(int8_t{}) : make(uint8_t{});
    case 16:
      return is_signed ? make(int16_t{}) : make(uint16_t{});
    case 32:
      return is_signed ? make(int32_t{}) : make(uint32_t{});
    default:
      return is_signed ? make(int64_t{}) : make(uint64_t{});
  }
}

// Conversion between an element and its slot; F is what floats in slots are.
template <class T, class F>
Slot to_slot(T v) {
  if constexpr (std::is_same_v<T, Truth>) {
    return slot_of<int64_t>(v.byte != 0);
  } else if constexpr (std::is_same_v<T, Half>) {
    return slot_of<F>(runtime::float16_to_float(v.bits));
  } else if constexpr (std::is_same_v<T, Brain>) {
    return slot_of<F>(runtime::bfloat16_to_float(v.bits));
  } else if constexpr (std::is_same_v<T, float>) {
    return slot_of<F>(v);
  } else {
    return slot_of<T>(v);
  }
}
template <class T, class F>
T from_slot(Slot s) {
  if constexpr (std::is_same_v<T, Truth>) {
    return Truth{static_cast<uint8_t>(s.i != 0)};
  } else if constexpr (std::is_same_v<T, Half>) {
    return Half{runtime::float_to_float16(static_cast<float>(get<F>(s)))};
  } else if constexpr (std::is_same_v<T, Brain>) {
    return Brain{runtime::float_to_bfloat16(static_cast<float>(get<F>(s)))};
  } else if constexpr (std::is_same_v<T, float>) {
    return static_cast<float>(get<F>(s));
  } else {
    return get<T>(s);
  }
}

// ---- Arithmetic --------------------------------------------------------------------------------

template <auto kOp, bool kVector>
const Instr* unary(const Instr* pc, Machine& m) {
  if constexpr (kVector) {
    for (int l = 0; l < pc->lanes.count; ++l) {
      m[pc->dst + l] = kOp(m[pc->a + l * pc->lanes.step_a]);
    }
  } else {
    m[pc->dst] = kOp(m[pc->a]);
  }
  return pc + 1;
}
template <auto kOp, bool kVector>
const Instr* binary(const Instr* pc, Machine& m) {
  if constexpr (kVector) {
    for (int l = 0; l < pc->lanes.count; ++l) {
      m[pc->dst + l] = kOp(m[pc->a + l * pc->lanes.step_a], m[pc->b + l * pc->lanes.step_b]);
    }
  } else {
    m[pc->dst] = kOp(m[pc->a], m[pc->b]);
  }
  return pc + 1;
}

template <auto kOp>
Handler unary_for(int lanes) {
  return lanes == 1 ? &unary<kOp, false> : &unary<kOp, true>;
}

// One operator on int64, uint64, float or double. Every operation is total, so that one whose value
// is not used may be carried out: a division by zero, which no program does, gives the dividend
// and leaves no rest.
template <class T, BinaryOp op>
Slot apply(Slot x, Slot y) {
  using enum BinaryOp;
  constexpr bool is_float = std::is_floating_point_v<T>;
  T a = get<T>(x), b = get<T>(y);
  if constexpr (op == Eq) return slot_of<int64_t>(a == b);
  if constexpr (op == Ne) return slot_of<int64_t>(a != b);
  if constexpr (op == Lt) return slot_of<int64_t>(a < b);
  if constexpr (op == Le) return slot_of<int64_t>(a <= b);
  if constexpr (op == Gt) return slot_of<int64_t>(a > b);
  if constexpr (op == Ge) return slot_of<int64_t>(a >= b);
  if constexpr (is_float) {
    if constexpr (op == Add) return slot_of<T>(a + b);
    if constexpr (op == Sub) return slot_of<T>(a - b);
    if constexpr (op == Mul) return slot_of<T>(a * b);
    if constexpr (op == Div) return slot_of<T>(a / b);
    if constexpr (op == Mod) return slot_of<T>(std::fmod(a, b));
    if constexpr (op == FloorDiv) return slot_of<T>(std::floor(a / b));
    if constexpr (op == FloorMod) {
      T r = std::fmod(a, b);
      return slot_of<T>(r != 0 && (r < 0) != (b < 0) ? r + b : r);
    }
    if constexpr (op == Min) return slot_of<T>(std::isnan(a) || a < b ? a : b);
    if constexpr (op == Max) return slot_of<T>(std::isnan(a) || a > b ? a : b);
  } else {
    if constexpr (op == Add) return slot_of<uint64_t>(x.u + y.u);
    if constexpr (op == Sub) return slot_of<uint64_t>(x.u - y.u);
    if constexpr (op == Mul) return slot_of<uint64_t>(x.u * y.u);
    if constexpr (op == Div || op == FloorDiv || op == Mod || op == FloorMod) {
      constexpr bool rest = op == Mod || op == FloorMod;
      if (b == 0) return slot_of<T>(rest ? 0 : a);
      if constexpr (std::is_signed_v<T>) {
        if (b == -1) return rest ? slot_of<T>(0) : slot_of<uint64_t>(0 - x.u);
        if constexpr (op == FloorDiv) return slot_of<T>(floor_div_int(a, b));
        if constexpr (op == FloorMod) return slot_of<T>(floor_mod_int(a, b));
      }
      return slot_of<T>(rest ? a % b : a / b);
    }
    if constexpr (op == Min) return a < b ? x : y;
    if constexpr (op == Max) return a < b ? y : x;
    if constexpr (op == And) return slot_of<int64_t>(a != 0 && b != 0);
    if constexpr (op == Or) return slot_of<int64_t>(a != 0 || b != 0);
    if constexpr (op == BitAnd) return slot_of<uint64_t>(x.u & y.u);
    if constexpr (op == BitOr) return slot_of<uint64_t>(x.u | y.u);
    if constexpr (op == BitXor) return slot_of<uint64_t>(x.u ^ y.u);
  }
  internal_error(__FILE__, __LINE__, "operator " + std::string(to_string(op)) + " on a float");
}

// Shifts by the width or more leave the number's sign, or zero.
template <class T>
Slot shift_left(Slot x, Slot y) {
  return slot_of<T>(y.u >= sizeof(T) * 8 ? T{0} : static_cast<T>(x.u << y.u));
}
template <class T>
Slot shift_right(Slot x, Slot y) {
  constexpr uint64_t width = sizeof(T) * 8;
  if (y.u >= width) return slot_of<T>(std::is_signed_v<T> && x.i < 0 ? static_cast<T>(-1) : T{0});
  return slot_of<T>(static_cast<T>(get<T>(x) >> y.u));
}

template <class T, bool kVector, size_t... op>
constexpr std::array<Handler, sizeof...(op)> operator_table(std::index_sequence<op...>) {
  return {&binary<&apply<T, static_cast<BinaryOp>(op)>, kVector>...};
}
template <class T>
Handler operator_for(BinaryOp op, int lanes) {
  constexpr size_t count = static_cast<size_t>(BinaryOp::BitXor) + 1;
  static constexpr auto scalars = operator_table<T, false>(std::make_index_sequence<count>());
  static constexpr auto vectors = operator_table<T, true>(std::make_index_sequence<count>());
  return (lanes == 1 ? scalars : vectors)[static_cast<size_t>(op)];
}

// ---- Casts -------------------------------------------------------------------------------------

// Truncates towards zero and saturates; NaN gives 0.
template <class To>
To saturate(double v) {
  if (std::isnan(v)) return 0;
  constexpr To least = std::numeric_limits<To>::min(), greatest = std::numeric_limits<To>::max();
  // 2^digits is exact where `greatest` may not be.
  const double limit = std::ldexp(1.0, std::numeric_limits<To>::digits);
  if (v >= limit) return greatest;
  if (v <= (std::is_signed_v<To> ? -limit : 0.0)) return least;
  return static_cast<To>(v);
}

// From a slot that holds a From (int64, uint64, float, double) to the slot of a To; F is what
// floats in slots are.
template <class From, class To, class F>
Slot convert(Slot s) {
  From v = get<From>(s);
  if constexpr (std::is_same_v<To, Truth>) {
    return slot_of<int64_t>(v != 0);
  } else if constexpr (std::is_integral_v<To>) {
    if constexpr (std::is_floating_point_v<From>) {
      return slot_of<To>(saturate<To>(v));
    } else {
      return slot_of<To>(static_cast<To>(v));
    }
  } else if constexpr (std::is_same_v<To, double>) {
    return slot_of<double>(static_cast<double>(v));
  } else {
    Slot f = slot_of<F>(static_cast<F>(v));
    if constexpr (std::is_same_v<F, double> || std::is_same_v<To, float>) return f;
    return to_slot<To, F>(from_slot<To, F>(f));
  }
}

template <class From, class F>
Handler cast_from(DType to, int lanes) {
  return for_element(to, [&](auto t) { return unary_for<&convert<From, decltype(t), F>>(lanes); });
}

// ---- Memory ------------------------------------------------------------------------------------

[[noreturn]] void out_of_bounds(const Machine& m, const Access& access, uint64_t lanes) {
  const Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  auto list = [](const auto& values) {
    std::string text;
    for (auto v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
    return "[" + text + "]";
  };
  std::vector<int64_t> indices;
  for (int32_t at : access.indices) indices.push_back(m.slots[static_cast<size_t>(at)].i);
  std::string text = memory.buffer->name + list(indices);
  if (lanes > 1) text += " and the " + counted(lanes - 1, "element") + " after it";
  internal_error(__FILE__, __LINE__,
                 (access.is_store ? "store to " : "load of ") + text +
                     " out of bounds of its shape " + list(memory.extents));
}

// The element's address. One index counts elements, whatever the rank; kRank -1 is any.
template <int kRank>
std::byte* address(Machine& m, const Access& access, size_t element_bytes) {
  Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  uint64_t at = 0;
  if constexpr (kRank == 1) {
    at = m[access.indices[0]].u;
    if (at >= memory.elements) [[unlikely]]
      out_of_bounds(m, access, 1);
  } else if constexpr (kRank == 2) {
    uint64_t i = m[access.indices[0]].u, j = m[access.indices[1]].u;
    if (i >= memory.extents[0] || j >= memory.extents[1]) [[unlikely]]
      out_of_bounds(m, access, 1);
    at = i * memory.pitches[1] + j;
  } else {
    for (size_t d = 0; d < access.indices.size(); ++d) {
      uint64_t i = m[access.indices[d]].u;
      if (i >= memory.extents[d]) [[unlikely]]
        out_of_bounds(m, access, 1);
      at = at * memory.pitches[d] + i;
    }
  }
  return memory.data + at * element_bytes;
}

const Access& access_of(const Instr* pc, const Machine& m) {
  return m.accesses[static_cast<size_t>(pc->a)];
}

template <class T, class F, int kRank, bool kGuarded>
const Instr* load(const Instr* pc, Machine& m) {
  if (kGuarded && m[pc->c].i == 0) {
    m[pc->dst] = Slot{};
    return pc + 1;
  }
  T v;
  std::memcpy(&v, address<kRank>(m, access_of(pc, m), sizeof(T)), sizeof(T));
  m[pc->dst] = to_slot<T, F>(v);
  return pc + 1;
}

template <class T, class F>
const Instr* load_run(const Instr* pc, Machine& m) {
  const Access& access = access_of(pc, m);
  const Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  uint64_t at = m[access.indices[0]].u, count = pc->lanes.count;
  if (at >= memory.elements || memory.elements - at < count) [[unlikely]]
    out_of_bounds(m, access, count);
  const std::byte* from = memory.data + at * sizeof(T);
  for (int l = 0; l < pc->lanes.count; ++l, from += sizeof(T)) {
    T v;
    std::memcpy(&v, from, sizeof(T));
    m[pc->dst + l] = to_slot<T, F>(v);
  }
  return pc + 1;
}

template <class T, class F, int kRank, bool kGuarded>
const Instr* store(const Instr* pc, Machine& m) {
  if (kGuarded && m[pc->c].i == 0) return pc + 1;
  T v = from_slot<T, F>(m[pc->b]);
  std::memcpy(address<kRank>(m, access_of(pc, m), sizeof(T)), &v, sizeof(T));
  return pc + 1;
}

template <class T, class F, template <class, class, int, bool> class Family>
Handler by_rank(size_t indices, bool guarded) {
  switch (indices) {
    case 1:
      return guarded ? Family<T, F, 1, true>::run : Family<T, F, 1, false>::run;
    case 2:
      return guarded ? Family<T, F, 2, true>::run : Family<T, F, 2, false>::run;
    default:
      return guarded ? Family<T, F, -1, true>::run : Family<T, F, -1, false>::run;
  }
}
template <class T, class F, int kRank, bool kGuarded>
struct LoadFamily {
  static constexpr Handler run = &load<T, F, kRank, kGuarded>;
};
template <class T, class F, int kRank, bool kGuarded>
struct StoreFamily {
  static constexpr Handler run = &store<T, F, kRank, kGuarded>;
};

// Calls `make` with the types of the element in memory and of floats in slots.
template <class Make>
Handler for_storage(DType dtype, const Storage& storage, Make make) {
  if (!storage.wide_slots) return for_element(dtype, [&](auto t) { return make(t, float{}); });
  if (storage.wide_memory && dtype.is_floating()) return make(double{}, double{});
  return for_element(dtype, [&](auto t) { return make(t, double{}); });
}

}  // namespace

size_t element_bytes(DType dtype, const Storage& storage) {
  return storage.wide_memory && dtype.is_floating() ? sizeof(double) : dtype.bytes();
}

// ---- The choice of handlers --------------------------------------------------------------------

namespace {

bool in_double(DType dtype, bool wide) { return wide || dtype.bits == 64; }

template <class T>
Handler shift_for(BinaryOp op, int lanes) {
  if (op == BinaryOp::Shl) {
    return lanes == 1 ? &binary<&shift_left<T>, false> : &binary<&shift_left<T>, true>;
  }
  return lanes == 1 ? &binary<&shift_right<T>, false> : &binary<&shift_right<T>, true>;
}

// A float cut to the precision of T, which is narrower than what slots hold; an integer wrapped.
template <class T>
Slot rounded(Slot s) {
  if constexpr (std::is_integral_v<T>) {
    return slot_of<T>(static_cast<T>(s.u));
  } else {
    return to_slot<T, float>(from_slot<T, float>(s));
  }
}

template <class T, class F>
Slot bits_of(Slot s) {
  T v = from_slot<T, F>(s);
  Slot out{};
  std::memcpy(&out.u, &v, sizeof(T));
  return out;
}
template <class T, class F>
Slot of_bits(Slot s) {
  T v;
  std::memcpy(&v, &s.u, sizeof(T));
  return to_slot<T, F>(v);
}

Slot negate_truth(Slot s) { return slot_of<int64_t>(s.i == 0); }
Slot both(Slot a, Slot b) { return slot_of<int64_t>(a.i != 0 && b.i != 0); }
Slot same(Slot s) { return s; }
Slot magnitude(Slot s) { return s.i < 0 ? slot_of<uint64_t>(0 - s.u) : s; }

template <bool kSigned>
Slot integer_power(Slot a, Slot b) {
  return slot_of<int64_t>(power_of_integers(a.i, b.i, kSigned));
}

template <bool kVector>
const Instr* pick(const Instr* pc, Machine& m) {
  for (int l = 0; l < (kVector ? pc->lanes.count : 1); ++l) {
    int32_t from = m[pc->a + l * pc->lanes.step_a].i != 0 ? pc->b + l * pc->lanes.step_b
                                                          : pc->c + l * pc->lanes.step_c;
    m[pc->dst + l] = m[from];
  }
  return pc + 1;
}

template <class T, bool kTest>
const Instr* call_function(const Instr* pc, Machine& m) {
  T a = get<T>(m[pc->a]), b = get<T>(m[pc->b]), c = get<T>(m[pc->c]);
  T v;
  if constexpr (std::is_same_v<T, float>) {
    v = pc->narrow(a, b, c);
  } else {
    v = pc->wide(a, b, c);
  }
  m[pc->dst] = kTest ? slot_of<int64_t>(v != 0) : slot_of<T>(v);
  return pc + 1;
}

const Instr* count_bits(const Instr* pc, Machine& m) {
  m[pc->dst] = slot_of<int64_t>(std::popcount(m[pc->a].u & static_cast<uint64_t>(pc->number)));
  return pc + 1;
}

const Instr* call_string_function(const Instr* pc, Machine& m) {
  const int64_t args[] = {m[pc->a].i, m[pc->b].i, m[pc->c].i};
  m[pc->dst].i = runtime::string_functions()[pc->number](&m.context, args);
  if (m.error == RELAY_KERNEL_OK) return pc + 1;
  m.result = m.error;
  return nullptr;
}

const Instr* ramp(const Instr* pc, Machine& m) {
  m[pc->dst] = slot_of<uint64_t>(m[pc->a].u + static_cast<uint64_t>(pc->number) * m[pc->b].u);
  return pc + 1;
}

}  // namespace

Handler binary_handler(BinaryOp op, DType dtype, bool wide, int lanes) {
  if (op == BinaryOp::Shl || op == BinaryOp::Shr) {
    return for_element(dtype, [&](auto t) -> Handler {
      if constexpr (std::is_integral_v<decltype(t)>) return shift_for<decltype(t)>(op, lanes);
      internal_error(__FILE__, __LINE__, "shift of " + dtype.to_string());
    });
  }
  if (dtype.is_floating()) {
    return in_double(dtype, wide) ? operator_for<double>(op, lanes)
                                  : operator_for<float>(op, lanes);
  }
  return dtype.is_uint() ? operator_for<uint64_t>(op, lanes) : operator_for<int64_t>(op, lanes);
}

Handler round_handler(DType dtype, bool wide, int lanes) {
  if (dtype.is_bool() || dtype.bits == 64) return nullptr;
  if (dtype.is_floating() && (wide || dtype.bits == 32)) return nullptr;
  return for_element(dtype, [&](auto t) { return unary_for<&rounded<decltype(t)>>(lanes); });
}

Handler cast_handler(DType from, DType to, bool wide, int lanes) {
  if (from.is_floating()) {
    if (wide) return cast_from<double, double>(to, lanes);
    return from.bits == 64 ? cast_from<double, float>(to, lanes)
                           : cast_from<float, float>(to, lanes);
  }
  if (from.is_uint()) {
    return wide ? cast_from<uint64_t, double>(to, lanes) : cast_from<uint64_t, float>(to, lanes);
  }
  return wide ? cast_from<int64_t, double>(to, lanes) : cast_from<int64_t, float>(to, lanes);
}

Handler not_handler(int lanes) { return unary_for<&negate_truth>(lanes); }
Handler pick_handler(int lanes) { return lanes == 1 ? &pick<false> : &pick<true>; }
Handler move_handler(int lanes) { return unary_for<&same>(lanes); }
Handler and_handler(int lanes) { return lanes == 1 ? &binary<&both, false> : &binary<&both, true>; }

Handler function_handler(DType dtype, bool wide, bool test) {
  if (in_double(dtype, wide)) {
    return test ? &call_function<double, true> : &call_function<double, false>;
  }
  return test ? &call_function<float, true> : &call_function<float, false>;
}
Handler abs_int_handler() { return &unary<&magnitude, false>; }
Handler power_int_handler(DType dtype) {
  return dtype.is_uint() ? &binary<&integer_power<false>, false>
                         : &binary<&integer_power<true>, false>;
}
Handler count_bits_handler() { return &count_bits; }
Handler string_handler() { return &call_string_function; }
Handler to_bits_handler(DType from, bool wide) {
  return for_storage(from, {wide, false}, [](auto t, auto f) -> Handler {
    return &unary<&bits_of<decltype(t), decltype(f)>, false>;
  });
}
Handler from_bits_handler(DType to, bool wide) {
  return for_storage(to, {wide, false}, [](auto t, auto f) -> Handler {
    return &unary<&of_bits<decltype(t), decltype(f)>, false>;
  });
}
Handler ramp_handler() { return &ramp; }

Handler load_handler(DType dtype, const Storage& storage, size_t indices, bool guarded) {
  return for_storage(dtype, storage, [&](auto t, auto f) -> Handler {
    return by_rank<decltype(t), decltype(f), LoadFamily>(indices, guarded);
  });
}
Handler load_run_handler(DType dtype, const Storage& storage) {
  return for_storage(dtype, storage,
                     [](auto t, auto f) -> Handler { return &load_run<decltype(t), decltype(f)>; });
}
Handler store_handler(DType dtype, const Storage& storage, size_t indices, bool guarded) {
  return for_storage(dtype, storage, [&](auto t, auto f) -> Handler {
    return by_rank<decltype(t), decltype(f), StoreFamily>(indices, guarded);
  });
}

// ---- Undefined elements ------------------------------------------------------------------------

namespace {

std::string element_text(const Memory& memory, uint64_t at) {
  std::string text;
  for (size_t d = memory.pitches.size(); d-- > 0;) {
    text = std::to_string(at % memory.pitches[d]) + (text.empty() ? "" : ", ") + text;
    at /= memory.pitches[d];
  }
  return memory.buffer->name + "[" + text + "]";
}

// The place of the element in its memory.
uint64_t place_of(Machine& m, const Access& access) {
  const Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  std::byte* at = access.indices.size() == 1 ? address<1>(m, access, memory.element_bytes)
                                             : address<-1>(m, access, memory.element_bytes);
  return static_cast<uint64_t>(at - memory.data) / memory.element_bytes;
}

}  // namespace

const Instr* note_read(const Instr* pc, Machine& m) {
  const Access& access = access_of(pc, m);
  const Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  if (!memory.tracked || !m.undefined.empty() || (pc->b != 0 && m[pc->c].i == 0)) return pc + 1;
  const uint64_t first = place_of(m, access);
  for (uint64_t l = 0; l < pc->lanes.count && first + l < memory.elements; ++l) {
    if (memory.written[first + l]) continue;
    m.undefined = "reads " + element_text(memory, first + l);
    break;
  }
  return pc + 1;
}

const Instr* note_write(const Instr* pc, Machine& m) {
  const Access& access = access_of(pc, m);
  Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  if (memory.tracked && (pc->b == 0 || m[pc->c].i != 0)) memory.written[place_of(m, access)] = true;
  return pc + 1;
}

namespace {

std::string axes_text(const ItemState::Axes& axes) {
  std::string out;
  for (int64_t a : axes) out += (out.empty() ? "(" : ", ") + std::to_string(a);
  return out + ")";
}

std::string item_text(const ItemState& s) {
  return "item " + axes_text(s.item) + " of group " + axes_text(s.group);
}

// Whether nothing says which of the two comes first.
bool unordered(const Machine& m, const Memory& memory, const ItemState& before,
               const ItemState& now) {
  if (before.launch != now.launch || before.launch == 0) return false;
  // Each group has its own.
  if (memory.buffer->scope != Scope::Global && before.group != now.group) return false;
  if (before.group != now.group) return true;
  if (before.lot > 0) {
    // Not even the item itself sees what it has not waited for.
    const auto lot = static_cast<size_t>(before.lot);
    if (lot > m.arrivals.size()) return true;
    return before.item != now.item && m.arrivals[lot - 1] == now.phase;
  }
  const bool own = memory.buffer->scope == Scope::Register;
  return before.item != now.item && (own || before.phase == now.phase);
}

void note_race(Machine& m, const Memory& memory, uint64_t at, const ItemState& before,
               const ItemState& now, const char* did, const char* does) {
  if (!m.race.empty()) return;
  m.race = element_text(memory, at) + " is " + did + " by " + item_text(before) + " and " + does +
           " by " + item_text(now);
}

// `lot`: of the copies with which a write arrives, or 0.
void touch(Machine& m, Memory& memory, uint64_t at, bool writes, int64_t lot) {
  Touch& t = memory.touches[at];
  ItemState now = m.items;
  if (m.lanes > 0 && memory.buffer->scope != Scope::Register) now.item[0] = 0;
  const char* const does = writes ? "written" : "read";
  if (unordered(m, memory, t.write, now)) {
    note_race(m, memory, at, t.write, now, "written", does);
  }
  if (!writes) {
    const bool here = t.read.launch == now.launch;
    t.read_by_groups = here && (t.read_by_groups || t.read.group != now.group);
    const bool in_phase = here && t.read.group == now.group && t.read.phase == now.phase;
    t.read_by_items = in_phase && (t.read_by_items || t.read.item != now.item);
    t.read = now;
    return;
  }
  const bool among =
      t.read.launch == now.launch && memory.buffer->scope == Scope::Global && t.read_by_groups;
  const bool in_phase = t.read.launch == now.launch && t.read.group == now.group &&
                        t.read.phase == now.phase && t.read_by_items;
  if (among || in_phase || unordered(m, memory, t.read, now)) {
    note_race(m, memory, at, t.read, now, "read", does);
  }
  t.write = now;
  t.write.lot = lot;
  t.read = {};
  t.read_by_groups = t.read_by_items = false;
}

}  // namespace

const Instr* note_access(const Instr* pc, Machine& m) {
  const Access& access = access_of(pc, m);
  Memory& memory = m.memories[static_cast<size_t>(access.memory)];
  if (memory.touches.empty() || m.items.launch == 0 || (pc->b != 0 && m[pc->c].i == 0)) {
    return pc + 1;
  }
  const uint64_t first = place_of(m, access);
  for (uint64_t l = 0; l < pc->lanes.count && first + l < memory.elements; ++l) {
    touch(m, memory, first + l, access.is_store, pc->dst != 0 ? m.ended_lots + 1 : 0);
  }
  return pc + 1;
}

const Instr* begin_launch(const Instr* pc, Machine& m) {
  ++m.items.launch;
  return pc + 1;
}

const Instr* enter_item(const Instr* pc, Machine& m) {
  const auto axis = static_cast<size_t>(pc->number);
  (axis < m.items.item.size() ? m.items.item[axis] : m.items.group[axis - m.items.item.size()]) =
      m[pc->a].i;
  return pc + 1;
}

const Instr* leave_items(const Instr* pc, Machine& m) {
  const auto axis = static_cast<size_t>(pc->number);
  (axis < m.items.item.size() ? m.items.item[axis] : m.items.group[axis - m.items.item.size()]) = 0;
  return pc + 1;
}

const Instr* begin_lanes(const Instr* pc, Machine& m) {
  ++m.lanes;
  return pc + 1;
}

const Instr* end_lanes(const Instr* pc, Machine& m) {
  --m.lanes;
  return pc + 1;
}

const Instr* pass_barrier(const Instr* pc, Machine& m) {
  ++m.items.phase;
  return pc + 1;
}

const Instr* end_copies(const Instr* pc, Machine& m) {
  ++m.ended_lots;
  return pc + 1;
}

const Instr* wait_copies(const Instr* pc, Machine& m) {
  const int64_t arrived = m.ended_lots - pc->number;
  while (static_cast<int64_t>(m.arrivals.size()) < arrived) m.arrivals.push_back(m.items.phase);
  return pc + 1;
}

void note_unwritten(Machine& m, const Memory& memory) {
  for (uint64_t at = 0; at < memory.elements && m.undefined.empty(); ++at) {
    if (memory.written[at]) continue;
    // What is beside the buffer in the array that it lies in is not its own.
    bool inside = true;
    uint64_t rest = at;
    for (size_t d = memory.pitches.size(); d-- > 0; rest /= memory.pitches[d]) {
      inside = inside && rest % memory.pitches[d] < memory.extents[d];
    }
    if (inside) m.undefined = "leaves " + element_text(memory, at) + " unwritten";
  }
}

// ---- Control -----------------------------------------------------------------------------------

namespace {

[[noreturn]] void stop(const DiagnosticCode& code, const char* why) {
  throw UserError(Diagnostic(code, {}, std::string("interpretation of a kernel ") + why));
}

// The extents from their slots; false when the size is not a size.
bool measure(Machine& m, Memory& memory) {
  memory.extents.clear();
  memory.pitches.clear();
  memory.elements = 1;
  for (size_t d = 0; d < memory.shape_slots.size(); ++d) {
    int64_t extent = m[memory.shape_slots[d]].i, pitch = m[memory.memory_slots[d]].i;
    if (extent < 0 || pitch < extent) return false;
    memory.extents.push_back(static_cast<uint64_t>(extent));
    memory.pitches.push_back(static_cast<uint64_t>(pitch));
    if (__builtin_mul_overflow(memory.elements, memory.pitches.back(), &memory.elements)) {
      return false;
    }
  }
  return memory.elements <= (uint64_t{1} << 62) / memory.element_bytes;
}

}  // namespace

const Instr* jump(const Instr* pc, Machine&) { return pc + pc->number; }

const Instr* jump_back(const Instr* pc, Machine&) {
  check_budget();
  return pc + pc->number;
}

const Instr* jump_unless(const Instr* pc, Machine& m) {
  return m[pc->a].i != 0 ? pc + 1 : pc + pc->number;
}

const Instr* loop_begin(const Instr* pc, Machine& m) {
  int64_t begin = m[pc->a].i, end = begin + m[pc->b].i;
  m[pc->dst].i = begin;
  m[pc->c].i = end;
  return begin < end ? pc + 1 : pc + pc->number;
}

const Instr* loop_next(const Instr* pc, Machine& m) {
  check_budget();
  return ++m[pc->dst].i < m[pc->c].i ? pc + pc->number : pc + 1;
}

const Instr* count_step(const Instr* pc, Machine& m) {
  if (--m.steps_left < 0) [[unlikely]]
    stop(codes::run_out_of_fuel, "takes more steps than allowed");
  return pc + 1;
}

const Instr* check(const Instr* pc, Machine& m) {
  if (m[pc->a].i != 0) return pc + 1;
  m.result = pc->number;
  return nullptr;
}

const Instr* allocate(const Instr* pc, Machine& m) {
  Memory& memory = m.memories[static_cast<size_t>(pc->a)];
  try {
    if (!measure(m, memory)) throw std::bad_alloc();
    int poison = memory.buffer->dtype.is_floating() ? 0xFF : 0xCB;
    if (m.poison) poison = *m.poison;
    memory.own.assign(memory.elements * memory.element_bytes, static_cast<std::byte>(poison));
    if (memory.tracked) memory.written.assign(memory.elements, false);
    // What a group shares is the same memory each time that the group comes by.
    const bool stays = memory.buffer->scope == Scope::Shared;
    if (memory.contended && !(stays && memory.touches.size() == memory.elements)) {
      memory.touches.assign(memory.elements, {});
    }
  } catch (const std::exception&) {  // bad_alloc or length_error
    m.result = RELAY_KERNEL_OUT_OF_MEMORY;
    return nullptr;
  }
  memory.data = memory.own.data();
  return pc + 1;
}

const Instr* bind_parameter(const Instr* pc, Machine& m) {
  Memory& memory = m.memories[static_cast<size_t>(pc->a)];
  runtime::Shape shape = memory.tensor.shape();
  bool fits = measure(m, memory) && shape.size() == memory.pitches.size();
  for (size_t d = 0; fits && d < shape.size(); ++d) {
    fits = static_cast<uint64_t>(shape[d]) == memory.pitches[d];
  }
  RELAY_CHECK(fits, "parameter " + memory.buffer->name + " is given a tensor of shape " +
                        runtime::shape_to_string(shape));
  memory.data = static_cast<std::byte*>(memory.tensor.data());
  if (memory.tracked) memory.written.assign(memory.elements, false);
  if (memory.contended) memory.touches.assign(memory.elements, {});
  return pc + 1;
}

const Instr* end(const Instr*, Machine&) { return nullptr; }

}  // namespace relay::tir::interpret_detail
