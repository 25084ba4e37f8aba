// x86-64.
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/fork.h"
#include "codegen/llvm/architecture.h"
#include "codegen/llvm/llvm_machine.h"
#include "codegen/llvm/register_parts.h"
#include "target/dot_products.h"

namespace relay::codegen {
namespace {

using llvm::Value;

void initialize_x86() {
  LLVMInitializeX86TargetInfo();
  LLVMInitializeX86Target();
  LLVMInitializeX86TargetMC();
  LLVMInitializeX86AsmPrinter();
  LLVMInitializeX86AsmParser();
}

std::optional<std::string> x86_features_of(std::string_view cpu) {
  llvm::SmallVector<llvm::StringRef, 64> known;
  llvm::X86::fillValidCPUArchList(known, /*Only64Bit=*/true);
  if (std::find(known.begin(), known.end(), llvm::StringRef(cpu)) == known.end())
    return std::nullopt;
  llvm::SmallVector<llvm::StringRef, 64> list;
  llvm::X86::getFeaturesForCPU(cpu, list);
  std::string features;
  for (llvm::StringRef f : list) features += (features.empty() ? "+" : ",+") + f.str();
  return features;
}

bool gathers_fast(const Target& target) {
  static ForkSafeMutex mutex;
  static std::map<std::string, bool> known;
  const std::lock_guard lock(mutex);
  auto [it, is_new] = known.emplace(target.cpu, false);
  if (is_new) {
    std::string error;
    const llvm::Target* t = llvm::TargetRegistry::lookupTarget(target.triple, error);
    std::unique_ptr<llvm::MCSubtargetInfo> info(
        t == nullptr ? nullptr : t->createMCSubtargetInfo(target.triple, target.cpu, ""));
    it->second = info != nullptr && info->checkFeatures("+fast-gather");
  }
  return it->second;
}

std::string x86_emitter_options(const Target& target, CodeKind kind) {
  // Processors of the Skylake family keep no decoded instructions of a block in which a jump crosses or ends at a multiple of
  // 32 bytes (Intel, "Mitigations for Jump Conditional Code Erratum", 2019): by where it lies, a loop takes up to a fourth
  // longer.
  constexpr std::array<std::string_view, 3> kFamily = {"skylake", "skylake-avx512", "cascadelake"};
  const bool is_member = std::ranges::find(kFamily, target.cpu) != kFamily.end();
  std::string options = is_member ? "x86-branches-within-32B-boundaries=true" : "";
  // With 16 vector registers, the constants of an exponential and what it computes are one or two too many. LLVM then splits the
  // ranges of all of them over the loop, and a third of its instructions are moves between registers: where such regions
  // may not grow, it loads a constant where it is used. A sigmoid takes 0.66 of the time, a small
  // transformer 0.95 (Zen 1).
  if (kind == CodeKind::kernels && !target.has_feature("avx512vl"))
    options += std::string(options.empty() ? "" : " ") + "grow-region-complexity-budget=1";
  return options;
}

// vscalefps of AVX-512 on vectors of 4, 8 or 16; a scalar is the first lane of four.
Value* scale(llvm::IRBuilder<>& b, const Target& target, Value* x, Value* n) {
  if (!target.has_feature("avx512vl")) return nullptr;
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  unsigned lanes = v == nullptr ? 1 : v->getNumElements();
  if (lanes == 1) {
    auto* four = llvm::FixedVectorType::get(b.getFloatTy(), 4);
    auto widen = [&](Value* s) {
      return b.CreateInsertElement(llvm::Constant::getNullValue(four), s, uint64_t{0});
    };
    return b.CreateExtractElement(scale(b, target, widen(x), widen(n)), uint64_t{0});
  }
  Value* all = b.getIntN(lanes == 16 ? 16 : 8, lanes == 4 ? 15 : lanes == 8 ? 255 : 65535);
  switch (lanes) {
    case 4:
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_128, {}, {x, n, x, all});
    case 8:
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_256, {}, {x, n, x, all});
    case 16: {
      Value* current_rounding = b.getInt32(4);
      return b.CreateIntrinsic(llvm::Intrinsic::x86_avx512_mask_scalef_ps_512, {},
                               {x, n, x, all, current_rounding});
    }
    default:
      return nullptr;
  }
}

// vpdpbusd of VNNI on a register of 4, 8 or 16 lanes.
Value* x86_register_byte_dot(llvm::IRBuilder<>& b, unsigned lanes, Value* acc, Value* x, Value* y) {
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpbusd_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpbusd_256
                                        : llvm::Intrinsic::x86_avx512_vpdpbusd_128;
  return b.CreateIntrinsic(id, {}, {acc, x, y});
}

// Vectors of other sizes in registers of which the last may be part full.
Value* x86_byte_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x, Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType()) || !has_byte_dot(target)) return nullptr;
  constexpr unsigned kWidths[] = {4, 8, 16};
  const std::span widths(kWidths, target.vector_bits >= 512 ? 3 : 2);
  return by_registers(b, widths, acc, x, y,
                      [&](unsigned width, Value* sum, Value* left, Value* right) {
                        return x86_register_byte_dot(b, width, sum, left, right);
                      });
}

// vdpbf16ps.
Value* x86_bfloat16_dot(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x,
                        Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType()) || !has_bfloat16_dot(target)) {
    return nullptr;
  }
  constexpr unsigned kWidths[] = {4, 8, 16};
  const std::span widths(kWidths, target.vector_bits >= 512 ? 3 : 2);
  return by_registers(
      b, widths, acc, x, y, [&](unsigned width, Value* sum, Value* left, Value* right) {
        llvm::Intrinsic::ID id = width == 16  ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_512
                                 : width == 8 ? llvm::Intrinsic::x86_avx512bf16_dpbf16ps_256
                                              : llvm::Intrinsic::x86_avx512bf16_dpbf16ps_128;
        auto* pairs = llvm::FixedVectorType::get(b.getBFloatTy(), 2 * width);
        return b.CreateIntrinsic(
            id, {}, {sum, b.CreateBitCast(left, pairs), b.CreateBitCast(right, pairs)});
      });
}

// ---- AMX. Nothing but these instructions and memory sees the registers, whose numbers are part of them.

constexpr unsigned kTiles = 8;

void configure_tiles(llvm::IRBuilder<>& b, const LlvmMatrixUnit::Shapes& shapes) {
  // Palette 1; bytes of rows from 16 on, rows from 48 on.
  std::array<uint8_t, 64> bytes{1};
  for (unsigned i = 0; i < kTiles; ++i) {
    bytes[16 + 2 * i] = static_cast<uint8_t>(shapes.row_bytes[i]);
    bytes[48 + i] = shapes.rows[i];
  }
  auto* data = llvm::ConstantDataArray::get(b.getContext(), bytes);
  // Equal shapes are one constant, by its name.
  std::string name = "tiles";
  for (unsigned i = 0; i < kTiles; ++i) {
    name += "_" + std::to_string(shapes.rows[i]) + "x" + std::to_string(shapes.row_bytes[i]);
  }
  auto* memory = define_constant(*b.GetInsertBlock()->getModule(), name, data);
  memory->setLinkage(llvm::GlobalValue::PrivateLinkage);
  memory->setAlignment(llvm::Align(64));
  b.CreateIntrinsic(llvm::Intrinsic::x86_ldtilecfg, {}, {memory});
}

void release_tiles(llvm::IRBuilder<>& b) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilerelease, {}, {});
}

void zero_tile(llvm::IRBuilder<>& b, unsigned tile) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilezero, {}, {b.getInt8(tile)});
}

void load_tile(llvm::IRBuilder<>& b, unsigned tile, Value* memory, Value* step, bool streamed) {
  auto id = streamed ? llvm::Intrinsic::x86_tileloaddt164 : llvm::Intrinsic::x86_tileloadd64;
  b.CreateIntrinsic(id, {}, {b.getInt8(tile), memory, step});
}

void store_tile(llvm::IRBuilder<>& b, unsigned tile, Value* memory, Value* step) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_tilestored64, {}, {b.getInt8(tile), memory, step});
}

bool multiply_tiles(llvm::IRBuilder<>& b, const Target& target, DType x_dtype, DType y_dtype,
                    unsigned sum, unsigned x, unsigned y) {
  bool floats = x_dtype.is_bfloat16() && y_dtype.is_bfloat16();
  bool bytes =
      x_dtype.is_integer() && y_dtype.is_integer() && x_dtype.bits == 8 && y_dtype.bits == 8;
  auto factors = floats ? MatrixFactors::BFloat16 : MatrixFactors::Byte;
  if (!(floats || bytes) || !matrix_unit(target, factors)) return false;
  llvm::Intrinsic::ID id =
      floats ? llvm::Intrinsic::x86_tdpbf16ps
      : x_dtype.is_int()
          ? (y_dtype.is_int() ? llvm::Intrinsic::x86_tdpbssd : llvm::Intrinsic::x86_tdpbsud)
          : (y_dtype.is_int() ? llvm::Intrinsic::x86_tdpbusd : llvm::Intrinsic::x86_tdpbuud);
  b.CreateIntrinsic(id, {}, {b.getInt8(sum), b.getInt8(x), b.getInt8(y)});
  return true;
}

// vpmuldq multiplies the even lanes. The odd ones are moved there, and their products stay in the upper halves.
Value* fixed_point_product(llvm::IRBuilder<>& b, Value* x, Value* y) {
  auto* v = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (v == nullptr || v->getNumElements() % 2 != 0) return nullptr;
  constexpr uint64_t kHalf = uint64_t{1} << 30;
  auto* wide = llvm::FixedVectorType::get(b.getInt64Ty(), v->getNumElements() / 2);
  auto number = [&](uint64_t n) { return llvm::ConstantInt::get(wide, n); };
  Value *a = b.CreateBitCast(x, wide), *c = b.CreateBitCast(y, wide);
  auto even = [&](Value* lanes) {
    return b.CreateAShr(b.CreateShl(lanes, number(32)), number(32));
  };
  auto odd = [&](Value* lanes) { return b.CreateAShr(lanes, number(32)); };
  Value* low = b.CreateAdd(b.CreateMul(even(a), even(c)), number(kHalf));
  Value* high = b.CreateAdd(b.CreateMul(odd(a), odd(c)), number(kHalf));
  llvm::SmallVector<int, 16> lanes;
  for (unsigned i = 0; i < v->getNumElements(); ++i) {
    lanes.push_back(static_cast<int>(i % 2 == 0 ? i : i + v->getNumElements()));
  }
  return b.CreateShuffleVector(b.CreateBitCast(b.CreateLShr(low, number(31)), v),
                               b.CreateBitCast(b.CreateShl(high, number(1)), v), lanes);
}

// vpdpwssd of VNNI or vpmaddwd add the products of both halves of a lane. The upper half of y is 0; that of x is the
// sign.
Value* register_short_product(llvm::IRBuilder<>& b, bool accumulates, unsigned lanes, Value* acc,
                              Value* x, Value* y) {
  Value* low = b.CreateAnd(y, llvm::ConstantInt::get(y->getType(), 0xFFFF));
  if (accumulates) {
    llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_vpdpwssd_512
                             : lanes == 8 ? llvm::Intrinsic::x86_avx512_vpdpwssd_256
                                          : llvm::Intrinsic::x86_avx512_vpdpwssd_128;
    return b.CreateIntrinsic(id, {}, {acc, x, low});
  }
  llvm::Intrinsic::ID id = lanes == 16  ? llvm::Intrinsic::x86_avx512_pmaddw_d_512
                           : lanes == 8 ? llvm::Intrinsic::x86_avx2_pmadd_wd
                                        : llvm::Intrinsic::x86_sse2_pmadd_wd;
  auto* halves = llvm::FixedVectorType::get(b.getInt16Ty(), 2 * lanes);
  return b.CreateAdd(
      acc, b.CreateIntrinsic(id, {}, {b.CreateBitCast(x, halves), b.CreateBitCast(low, halves)}));
}

Value* add_short_product(llvm::IRBuilder<>& b, const Target& target, Value* acc, Value* x,
                         Value* y) {
  if (!llvm::isa<llvm::FixedVectorType>(acc->getType())) return nullptr;
  constexpr unsigned kWidths[] = {4, 8, 16};
  const bool accumulates = has_byte_dot(target);
  const bool widest = target.vector_bits >= 512 && target.has_feature("avx512bw");
  const std::span widths(kWidths, widest ? 3 : target.has_feature("avx2") ? 2 : 1);
  return by_registers(b, widths, acc, x, y,
                      [&](unsigned width, Value* sum, Value* left, Value* right) {
                        return register_short_product(b, accumulates, width, sum, left, right);
                      });
}

constexpr LlvmMatrixUnit kAmx{configure_tiles, release_tiles, zero_tile,
                              load_tile,       store_tile,    multiply_tiles};

constexpr const char* kX86Libm[] = {"/lib/x86_64-linux-gnu/libm.so.6", "/lib64/libm.so.6"};

constexpr LlvmHostCalls kX86HostCalls{.stack_pointer = "rsp"};

}  // namespace

extern const LlvmArchitecture kLlvmX86;
const LlvmArchitecture kLlvmX86{.name = "x86_64",
                                .initialize = initialize_x86,
                                .features_of = x86_features_of,
                                .scale = scale,
                                .gathers = true,
                                .libm = kX86Libm,
                                .byte_dot = x86_byte_dot,
                                .bfloat16_dot = x86_bfloat16_dot,
                                .matrix = &kAmx,
                                .gathers_fast = gathers_fast,
                                .fixed_point_product = fixed_point_product,
                                .add_short_product = add_short_product,
                                .host_calls = &kX86HostCalls,
                                .emitter_options = x86_emitter_options};

}  // namespace relay::codegen
