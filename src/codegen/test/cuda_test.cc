// Kernels as PTX: what a launch is, and the mathematics of devices, which this processor computes here.
#include <gtest/gtest.h>
#include <llvm/IR/IRBuilder.h>

#include <barrier>
#include <cmath>
#include <random>
#include <thread>

#include "base/diagnostic.h"
#include "codegen/cuda/backend.h"
#include "codegen/cuda/cuda_kernel.h"
#include "codegen/cuda/device_math.h"
#include "codegen/llvm/codegen.h"
#include "codegen/llvm/kernel_builder.h"
#include "codegen/llvm/machine.h"
#include "codegen/targets.h"
#include "codegen/test/kernel_harness.h"
#include "codegen/test/warp_emulation.h"
#include "runtime/device_source.h"
#include "target/own_kinds.h"
#include "tir/interpret.h"
#include "tir/lower_loops.h"
#include "tir/thread_tags.h"

namespace relay::codegen_test::cuda {
namespace {

const DType f32 = DType::Float(32), f64 = DType::Float(64);

class CudaKind : public testing::Environment {
 public:
  void SetUp() override {
    TargetKind kind = codegen::cuda_kind();
    kind.rules = [] { return std::span<const ScheduleRule* const>(); };
    if (find_target_kind(kind.name) == nullptr) register_own_target_kind(std::move(kind));
  }
};
[[maybe_unused]] testing::Environment* const known =
    testing::AddGlobalTestEnvironment(new CudaKind);

class Cuda : public testing::Test {
 protected:
  void SetUp() override {
    try {
      backend_of(parse_target("cuda")).check_installed(parse_target("cuda"));
    } catch (const UserError& e) {
      GTEST_SKIP() << e.what();
    }
  }
};

runtime::DeviceSource source_of(const PrimFunc& f, const std::string& words = "cuda") {
  const Target target = parse_target(words);
  const PrimFunc lowered = tir::lower_loops(f, kind_of(target).lowering());
  const std::string bytes = backend_of(target).compile({lowered}, target, 1, nullptr)[0];
  return runtime::read_device_source(
      reinterpret_cast<relay_kernel>(const_cast<char*>(bytes.data())));
}

bool has(const runtime::DeviceSource& s, std::string_view text) {
  return s.code.find(text) != std::string::npos;
}

Stmt bound(const Var& v, PrimExpr extent, std::string_view tag, Stmt body) {
  return modified(*as<ForNode>(for_(v, index(0), std::move(extent), std::move(body))),
                  [&](ForNode& n) {
                    n.loop_kind = ForKind::ThreadBound;
                    n.thread_tag = tag;
                  });
}

// out[i] = body(a[i]), an item for each of `n` elements.
PrimFunc by_items(const std::string& name, DType d, const PrimExpr& n,
                  const std::function<PrimExpr(PrimExpr)>& body, std::vector<Var> dims = {}) {
  Buffer a = buffer("a", d, {n}), out = buffer("out", d, {n});
  Var i = var("i");
  return kernel(name, {a}, {out}, bound(i, n, kGlobalTags[0], store(out, {i}, body(load(a, {i})))),
                std::move(dims));
}

TEST_F(Cuda, a_launch_takes_addresses_sizes_and_the_failure_word_and_any_number_of_items) {
  const Var n = var("n");
  const runtime::DeviceSource s =
      source_of(by_items("twice", f32, n, [](const PrimExpr& x) { return x + x; }, {n}));
  ASSERT_EQ(s.launches.size(), 1u);
  EXPECT_EQ(s.launches[0].name, "twice");
  EXPECT_EQ(s.launches[0].buffers, (std::vector<size_t>{0, 1}));
  EXPECT_EQ(s.launches[0].items[0].text(), "d0");
  EXPECT_EQ(s.launches[0].group[0], 0);
  EXPECT_FALSE(s.launches[0].may_fail);
  EXPECT_TRUE(has(s, ".target sm_75"));
  EXPECT_TRUE(has(s,
                  ".visible .entry twice(\n"
                  "\t.param .u64 twice_param_0,\n\t.param .u64 twice_param_1,\n"
                  "\t.param .u64 twice_param_2,\n\t.param .u64 twice_param_3,\n"
                  "\t.param .u32 twice_param_4\n)"))
      << s.code;
  // Items stand at a distance of their number; those along other axes have nothing to do.
  for (const char* word : {"%nctaid.x", "%ctaid.x", "%ntid.x", "%tid.x", "%ctaid.y", "%tid.z",
                           "ld.global.nc.f32", "st.global.f32"}) {
    EXPECT_TRUE(has(s, word)) << word << "\n" << s.code;
  }
}

// Two groups of four items, which copy a tile in each of three steps and add the tile backwards to registers of theirs.
PrimFunc reversed_sums() {
  Var b = var("b"), k = var("k"), t = var("t"), u = var("u"), v = var("v"), w = var("w");
  Buffer a = buffer("a", f32, {index(2), index(3), index(4)}),
         out = buffer("out", f32, {index(2), index(4)}),
         tile = buffer("tile", f32, {index(4)}, Scope::Shared),
         acc = buffer("acc", f32, {index(8)}, Scope::Register);
  auto items = [&](const Var& item, Stmt body) {
    return bound(item, index(4), kItemTags[0], std::move(body));
  };
  Stmt step =
      seq({items(t, store(tile, {t}, load(a, {b, k, t}))),
           items(u, store(acc, {u * 2 + 1}, load(acc, {u * 2 + 1}) + load(tile, {index(3) - u})))});
  Stmt group =
      seq({items(v, store(acc, {v * 2 + 1}, imm_float(f32, 0))), for_(k, index(0), index(3), step),
           items(w, store(out, {b, w}, load(acc, {w * 2 + 1})))});
  return kernel("sums", {a}, {out},
                bound(b, index(2), kGroupTags[0], allocate(acc, allocate(tile, group))));
}

TEST_F(Cuda, a_group_has_shared_memory_barriers_and_registers) {
  const runtime::DeviceSource s = source_of(reversed_sums());
  EXPECT_EQ(s.launches[0].group, (std::array<int64_t, 3>{4, 1, 1}));
  EXPECT_EQ(s.launches[0].items[0].evaluate({}), 8);
  for (const char* word : {".reqntid 4, 1, 1", ".shared .align 16 .b8 sums_shared[16]", "bar.sync",
                           "%ctaid.x", "ld.shared.f32"}) {
    EXPECT_TRUE(has(s, word)) << word << "\n" << s.code;
  }
  EXPECT_FALSE(has(s, ".local")) << s.code;
}

// LLVM's printer of PTX keeps shared memory by the functions that have it, whose addresses the next kernel's may have.
TEST_F(Cuda, kernels_one_after_the_other_have_no_memory_of_others) {
  const Target target = parse_target("cuda");
  constexpr size_t kCount = 200;
  std::vector<PrimFunc> kernels;
  for (size_t i = 0; i < kCount; ++i) {
    const PrimFunc f = i % 2 == 0 ? reversed_sums()
                                  : by_items("twice", f32, index(8), [](auto x) { return x + x; });
    kernels.push_back(tir::lower_loops(f, kind_of(target).lowering()));
  }
  const std::vector<ObjectCode> all = backend_of(target).compile(kernels, target, 1, nullptr);
  for (size_t i = 2; i < kCount; ++i) EXPECT_EQ(all[i], all[i - 2]) << i;
}

// Items of a group read four neighbours of shared memory each.
TEST_F(Cuda, aligned_neighbours_in_shared_memory_are_read_as_one) {
  Var b = var("b"), t = var("t"), u = var("u");
  Buffer a = buffer("a", f32, {index(128)}), out = buffer("out", f32, {index(32)}),
         tile = buffer("tile", f32, {index(128)}, Scope::Shared);
  PrimExpr sum = load(tile, {u * 4});
  for (int64_t i = 1; i < 4; ++i) sum = sum + load(tile, {u * 4 + i});
  Stmt group = seq({bound(t, index(128), kItemTags[0], store(tile, {t}, load(a, {t}))),
                    bound(u, index(32), kItemTags[0], store(out, {u}, sum))});
  const runtime::DeviceSource s = source_of(
      kernel("quads", {a}, {out}, bound(b, index(1), kGroupTags[0], allocate(tile, group))));
  EXPECT_TRUE(has(s, "ld.shared.v4.f32")) << s.code;
}

TEST_F(Cuda, a_failing_check_is_stored_once) {
  Buffer a = buffer("a", DType::Int(64), {index(8)}), out = buffer("out", f32, {index(8)});
  Var i = var("i");
  auto checked = [&](std::string_view tag) {
    return bound(i, index(8), tag,
                 seq({check(lt(load(a, {i}), index(8)), RELAY_KERNEL_CHECK_FAILED, "too large"),
                      store(out, {i}, imm_float(f32, 1))}));
  };
  const runtime::DeviceSource s = source_of(kernel("checked", {a}, {out}, checked(kGlobalTags[0])));
  EXPECT_TRUE(s.launches[0].may_fail);
  EXPECT_TRUE(has(s, "atom.global.cas.b32") || has(s, "cas.b32")) << s.code;
  // The others of a group would wait for the item for ever.
  try {
    Var b = var("b");
    source_of(
        kernel("grouped", {a}, {out}, bound(b, index(1), kGroupTags[0], checked(kItemTags[0]))));
    FAIL() << "a check in a group has code";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("which PTX cannot say"), std::string::npos) << e.what();
  }
}

TEST_F(Cuda, large_memory_of_an_item_is_a_slice_of_working_memory) {
  Buffer a = buffer("a", f32, {index(4096)}), out = buffer("out", f32, {index(1000)}),
         own = buffer("own", f32, {index(4096)});
  Var i = var("i"), j = var("j"), k = var("k");
  Stmt fill = for_(j, index(0), index(4096), store(own, {j}, load(a, {j})));
  Stmt body =
      seq({fill, for_(k, index(0), index(4096), store(out, {i}, load(own, {index(4095) - k})))});
  const runtime::DeviceSource s = source_of(
      kernel("sliced", {a}, {out}, bound(i, index(1000), kGlobalTags[0], allocate(own, body))));
  ASSERT_EQ(s.workspace.size(), 1u);
  EXPECT_EQ(s.workspace[0].evaluate({}), int64_t{64} * 4096 * 4);
  EXPECT_EQ(s.launches[0].buffers, (std::vector<size_t>{0, 1, 2}));
  EXPECT_TRUE(has(s, "min.s64")) << s.code;
}

// ---- Launches on this processor: the items of a group are threads, and groups run one after the other.

int32_t read_register(int32_t number) { return item_registers[static_cast<size_t>(number)]; }
void wait_for_group() { group_barrier->arrive_and_wait(); }

class Launches {
 public:
  explicit Launches(const PrimFunc& f, const std::string& words = "cuda")
      : Launches(tir::lower_loops(f, kind_of(parse_target(words)).lowering()), Lowered{}, words) {}
  struct Lowered {};
  Launches(const PrimFunc& lowered, Lowered, const std::string& words = "cuda") {
    const Target device = parse_target(words), host = native_target();
    llvm::LLVMContext context;
    auto machine = codegen::make_machine(host);
    llvm::Module module("launches", context);
    module.setTargetTriple(host.triple);
    module.setDataLayout(machine->layout());
    source_ = codegen::build_cuda_kernel(module, lowered, device);
    llvm::IRBuilder<> b(context);
    auto replace_calls = [&](const std::string& name, auto* by, std::vector<llvm::Value*> args) {
      llvm::Function* f = module.getFunction(name);
      if (f == nullptr) return;
      std::vector<llvm::Type*> types;
      for (llvm::Value* v : args) types.push_back(v->getType());
      auto* type = llvm::FunctionType::get(f->getReturnType(), types, false);
      llvm::Value* address = llvm::ConstantExpr::getIntToPtr(
          b.getInt64(reinterpret_cast<uintptr_t>(by)), b.getPtrTy());
      while (!f->use_empty()) {
        auto* call = llvm::cast<llvm::CallInst>(*f->user_begin());
        b.SetInsertPoint(call);
        call->replaceAllUsesWith(b.CreateCall(type, address, args));
        call->eraseFromParent();
      }
    };
    for (size_t i = 0; i < kRegisters.size(); ++i) {
      replace_calls("llvm.nvvm.read.ptx.sreg." + kRegisters[i], &read_register,
                    {b.getInt32(static_cast<uint32_t>(i))});
    }
    replace_calls("llvm.nvvm.barrier0", &wait_for_group, {});
    warp_calls_ = emulate_warps(module);
    copies_ = emulate_copies(module);
    exchanges_ = emulate_exchanges(module);
    std::vector<PrimFunc> named;
    for (const runtime::DeviceLaunch& launch : source_.launches) {
      llvm::Function* entry = module.getFunction(launch.name);
      entry->setCallingConv(llvm::CallingConv::C);
      for (llvm::StringRef a : {"target-cpu", "target-features"}) entry->removeFnAttr(a);
      named.push_back(kernel(launch.name, {}, {}, seq({})));
      auto* wrapper = llvm::Function::Create(
          llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false),
          llvm::GlobalValue::ExternalLinkage, codegen::kernel_symbol(*named.back().get()), module);
      b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", wrapper));
      std::vector<llvm::Value*> args;
      auto argument = [&](llvm::Value* from, size_t at) {
        llvm::Type* word = entry->getArg(static_cast<unsigned>(args.size()))->getType();
        args.push_back(b.CreateLoad(word, b.CreateConstGEP1_64(b.getInt64Ty(), from, at)));
      };
      for (size_t number : launch.buffers) argument(wrapper->getArg(0), number);
      for (size_t i = 0; i < lowered->dims.size(); ++i) argument(wrapper->getArg(1), i);
      args.push_back(b.CreateAddrSpaceCast(
          wrapper->getArg(2), entry->getArg(static_cast<unsigned>(args.size()))->getType()));
      args.push_back(b.getInt32(kNumber));
      b.CreateCall(entry, args);
      b.CreateRetVoid();
    }
    const std::string object =
        machine->emit(module, codegen::CodePasses::none, codegen::CodeForm::object);
    loaded_.emplace(codegen::load_objects({object}, named, host));
  }

  // Grids of so many groups and items along each axis, from a failure word on, which it returns as it is in the end.
  std::array<int32_t, 2> run(std::vector<void*> buffers, const std::vector<int64_t>& dims,
                             std::array<int32_t, 3> groups, std::array<int32_t, 3> items,
                             std::array<int32_t, 2> failed = {}, int32_t most_groups = 1 << 16) {
    std::vector<std::vector<char>> workspace;
    for (const runtime::SizeFormula& bytes : source_.workspace) {
      workspace.emplace_back(static_cast<size_t>(bytes.evaluate(dims)));
      buffers.push_back(workspace.back().data());
    }
    for (size_t l = 0; l < source_.launches.size(); ++l) {
      const runtime::DeviceLaunch& launch = source_.launches[l];
      const bool has_groups = launch.group[0] > 0;
      for (size_t i = 0; has_groups && i < 3; ++i) {
        items[i] = static_cast<int32_t>(launch.group[i]);
        groups[i] = static_cast<int32_t>(launch.items[i].evaluate(dims)) / items[i];
        if (i > 0) groups[i] = std::min(groups[i], most_groups);
      }
      const int32_t each = items[0] * items[1] * items[2];
      for (int32_t g = 0; g < groups[0] * groups[1] * groups[2]; ++g) {
        auto item = [&](int32_t t) {
          item_registers = {t % items[0],
                            t / items[0] % items[1],
                            t / items[0] / items[1],
                            items[0],
                            items[1],
                            items[2],
                            g % groups[0],
                            g / groups[0] % groups[1],
                            g / groups[0] / groups[1],
                            groups[0],
                            groups[1],
                            groups[2]};
          loaded_->functions()[l](buffers.data(), dims.data(),
                                  reinterpret_cast<const relay_kernel_context*>(failed.data()));
        };
        if (!has_groups) {
          for (int32_t t = each; t-- > 0;) item(t);
          continue;
        }
        std::barrier<> barrier(each);
        group_barrier = &barrier;
        std::vector<std::jthread> threads;
        for (int32_t t = 0; t < each; ++t) threads.emplace_back(item, t);
      }
    }
    return failed;
  }

  // Calls of instructions of a warp in the code.
  size_t warp_calls_found() const { return warp_calls_; }
  // Exchanges of a word between the items of a warp.
  size_t exchanges_found() const { return exchanges_; }
  // Copies in the code that arrive later, by their bytes.
  const std::map<uint32_t, size_t>& copies_found() const { return copies_; }

  static constexpr int32_t kNumber = 5;

 private:
  const std::vector<std::string> kRegisters{"tid.x",   "tid.y",    "tid.z",    "ntid.x",
                                            "ntid.y",  "ntid.z",   "ctaid.x",  "ctaid.y",
                                            "ctaid.z", "nctaid.x", "nctaid.y", "nctaid.z"};
  runtime::DeviceSource source_;
  std::optional<LoadedKernels> loaded_;
  size_t warp_calls_ = 0, exchanges_ = 0;
  std::map<uint32_t, size_t> copies_;
};

TEST_F(Cuda, any_grid_computes_each_element_once) {
  const Var n = var("n"), i = var("i"), j = var("j");
  // An element counts how often it is computed.
  Buffer out = buffer("out", f32, {n, index(7)});
  Stmt body = store(out, {i, j}, load(out, {i, j}) + cast(f32, i * 7 + j + 1));
  Launches launches(kernel("counts", {}, {out},
                           bound(i, n, kGlobalTags[1], bound(j, index(7), kGlobalTags[0], body)),
                           {n}));
  for (int64_t rows : {0, 1, 5, 64}) {
    for (std::array<int32_t, 3> items : {std::array{1, 1, 1}, {4, 2, 1}, {32, 8, 2}}) {
      for (std::array<int32_t, 3> groups : {std::array{1, 1, 1}, {1, 3, 2}}) {
        std::vector<float> got(static_cast<size_t>(rows * 7) + 1);
        launches.run({got.data()}, {rows}, groups, items);
        for (size_t k = 0; k + 1 < got.size(); ++k) {
          ASSERT_EQ(got[k], static_cast<float>(k + 1)) << rows << " rows, element " << k;
        }
        EXPECT_EQ(got.back(), 0);
      }
    }
  }
}

TEST_F(Cuda, nests_are_launches_that_share_working_memory) {
  Buffer a = buffer("a", f32, {index(30)}), out = buffer("out", f32, {index(30)}),
         between = buffer("between", f32, {index(30)});
  Var i = var("i"), j = var("j"), k = var("k");
  Stmt square =
      bound(i, index(30), kGlobalTags[0], store(between, {i}, load(a, {i}) * load(a, {i})));
  // One item.
  Stmt sum = for_(k, index(1), index(29),
                  store(between, {k}, load(between, {k}) + load(between, {k - 1})));
  Stmt copy = bound(j, index(30), kGlobalTags[0], store(out, {j}, load(between, {index(29) - j})));
  Launches launches(kernel("scan", {a}, {out}, allocate(between, seq({square, sum, copy}))));
  std::vector<float> in(30), got(30);
  for (size_t at = 0; at < in.size(); ++at) in[at] = static_cast<float>(at + 1);
  launches.run({in.data(), got.data()}, {}, {2, 1, 1}, {8, 2, 1});
  float want = 0;
  for (size_t at = 0; at < in.size(); ++at) {
    want += in[at] * in[at];
    EXPECT_EQ(got[29 - at], want) << at;
  }
}

TEST_F(Cuda, items_of_a_group_see_what_others_have_written) {
  Launches launches(reversed_sums());
  std::vector<float> in(24), got(8);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i * i);
  launches.run({in.data(), got.data()}, {}, {}, {});
  for (size_t b = 0; b < 2; ++b) {
    for (size_t u = 0; u < 4; ++u) {
      float want = 0;
      for (size_t k = 0; k < 3; ++k) want += in[(b * 3 + k) * 4 + 3 - u];
      EXPECT_EQ(got[b * 4 + u], want) << b << ", " << u;
    }
  }
}

// Two groups of four items that copy a tile of 4 x `run` elements in each of six steps ahead of its use, and add the tile
// backwards. Elements from `length` on are a border of zeros.
PrimFunc copies_ahead(DType d, int64_t run, int64_t slots, int64_t length, bool later = true) {
  Var b = var("b"), k = var("k"), t = var("t"), i = var("i"), u = var("u"), j = var("j"),
      v = var("v"), jv = var("jv"), w = var("w"), jw = var("jw");
  const int64_t tile_size = 4 * run;
  Buffer a = buffer("a", d, {index(2), index(6), index(length)}),
         out = buffer("out", f32, {index(2), index(tile_size)}),
         tile = buffer("tile", d, {index(tile_size)}, Scope::Shared),
         acc = buffer("acc", f32, {index(tile_size)}, Scope::Register);
  auto items = [&](const Var& item, Stmt body, bool copies = false) {
    return modified(*as<ForNode>(bound(item, index(4), kItemTags[0], std::move(body))),
                    [&](ForNode& n) {
                      if (copies) n.hints.nest = LoopNest::Copy;
                    });
  };
  auto each = [&](const Var& element, Stmt body) {
    return for_(element, index(0), index(run), std::move(body));
  };
  const PrimExpr at = t * run + i, mine = u * run + j;
  PrimExpr value = load(a, {b, k, at});
  if (length < tile_size) {
    value = select(lt(run == 1 ? at : PrimExpr(t * run), index(length)), value,
                   d.is_floating() ? imm_float(d, 0) : imm(d, 0));
  }
  Stmt step =
      seq({items(t, each(i, store(tile, {at}, value)), later),
           items(u, each(j, store(acc, {mine},
                                  load(acc, {mine}) +
                                      cast(f32, load(tile, {index(tile_size - 1) - mine})))))});
  Stmt loop = modified(*as<ForNode>(for_(k, index(0), index(6), allocate(tile, step))),
                       [&](ForNode& n) { n.hints.pipeline = slots; });
  Stmt group = seq({items(v, each(jv, store(acc, {v * run + jv}, imm_float(f32, 0)))), loop,
                    items(w, each(jw, store(out, {b, w * run + jw}, load(acc, {w * run + jw}))))});
  return kernel("ahead", {a}, {out}, bound(b, index(2), kGroupTags[0], allocate(acc, group)));
}

// The sums, with copies that arrive no sooner than an item waits for them, also from memory that begins anywhere.
TEST_F(Cuda, copies_arrive_while_items_go_on) {
  struct Case {
    DType dtype;
    int64_t run, slots, length;
    std::map<uint32_t, size_t> copies;  // in front of the loop, and in it
  };
  const DType i32 = DType::Int(32), u8 = DType::UInt(8);
  const std::vector<Case> cases{
      {f32, 1, 2, 4, {{4, 2}}},           {f32, 1, 3, 3, {{4, 3}}},
      {i32, 1, 4, 4, {{4, 4}}},           {f32, 4, 2, 16, {{4, 2}, {16, 2}}},
      {f32, 4, 3, 12, {{4, 3}, {16, 3}}}, {f32, 2, 2, 8, {{4, 2}, {8, 2}}},
      {u8, 16, 2, 64, {{16, 2}}},         {u8, 8, 2, 32, {{8, 2}}},
      {u8, 4, 3, 16, {{4, 3}}},           {u8, 2, 2, 8, {}},
  };
  for (const Case& c : cases) {
    const PrimFunc f = copies_ahead(c.dtype, c.run, c.slots, c.length);
    Launches launches(f, "cuda -arch=sm_80");
    EXPECT_EQ(launches.copies_found(), c.copies) << c.run << " of " << c.dtype.to_string();
    const runtime::Shape in_shape({2, 6, c.length}), out_shape({2, 4 * c.run});
    const auto in = runtime::Tensor::zeros(c.dtype, in_shape),
               want = runtime::Tensor::zeros(f32, out_shape),
               got = runtime::Tensor::zeros(f32, out_shape);
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      c.dtype.is_floating() ? in.set_from_double(i, static_cast<double>(i * 7 % 31))
                            : in.set_from_int(i, i * 7 % 31);
    }
    ASSERT_EQ(tir::interpret(f, {in, want}, {}), 0);
    for (size_t offset : {size_t{0}, c.dtype.bytes()}) {
      std::vector<char> memory(in.byte_size() + 64);
      char* first = memory.data() + (16 - std::bit_cast<uintptr_t>(memory.data()) % 16) + offset;
      std::memcpy(first, in.data(), in.byte_size());
      std::memset(got.data(), 0xFF, got.byte_size());
      launches.run({first, got.data()}, {}, {}, {});
      for (int64_t i = 0; i < got.num_elements(); ++i) {
        EXPECT_EQ(got.get_as_double(i), want.get_as_double(i))
            << i << " of " << c.run << " " << c.dtype.to_string() << ", offset " << offset;
      }
    }
  }
  const runtime::DeviceSource s = source_of(copies_ahead(f32, 4, 3, 16), "cuda -arch=sm_80");
  for (const char* word : {"cp.async.cg.shared.global", "cp.async.ca.shared.global",
                           "cp.async.commit_group", "cp.async.wait_group"}) {
    EXPECT_TRUE(has(s, word)) << word << "\n" << s.code;
  }
  // Through registers, on any device.
  EXPECT_FALSE(has(source_of(copies_ahead(f32, 4, 2, 16, false)), "cp.async"));
}

// Two groups of two warps, whose items have an element each and reduce it with those of their warp.
PrimFunc lane_reductions(BinaryOp op, DType d, const PrimExpr& start, int64_t lanes = 32) {
  Var b = var("b"), y = var("y"), x = var("x"), yr = var("yr"), xr = var("xr"), yo = var("yo"),
      xo = var("xo");
  Buffer a = buffer("a", d, {index(2), index(2), index(lanes)}),
         out = buffer("out", d, {index(2), index(2), index(lanes)}),
         own = buffer("own", d, {index(2), index(lanes)}, Scope::Register),
         sums = buffer("sums", d, {index(2)}, Scope::Shared);
  auto items = [&](const Var& warp, const Var& lane, Stmt body, LoopNest nest = LoopNest::None) {
    Stmt inner = modified(*as<ForNode>(bound(lane, index(lanes), kItemTags[0], std::move(body))),
                          [&](ForNode& n) { n.hints.nest = nest; });
    return bound(warp, index(2), kItemTags[1], inner);
  };
  Stmt reduce = store(sums, {yr}, binary(op, load(sums, {yr}), load(own, {yr, xr})));
  if (start) reduce = seq({if_(eq(xr, index(0)), store(sums, {yr}, start)), reduce});
  const Stmt first = items(y, x, store(own, {y, x}, load(a, {b, y, x})));
  Stmt group = seq({first, items(yr, xr, reduce, LoopNest::Lanes),
                    items(yo, xo, store(out, {b, yo, xo}, load(sums, {index(1) - yo})))});
  return kernel("lanes", {a}, {out},
                bound(b, index(2), kGroupTags[0], allocate(own, allocate(sums, group))));
}

TEST_F(Cuda, items_of_a_warp_exchange_registers) {
  const DType i32 = DType::Int(32), i64 = DType::Int(64), f16 = DType::Float(16);
  struct Case {
    BinaryOp op;
    DType dtype;
    PrimExpr start;
    size_t exchanges;
  };
  const std::vector<Case> cases{
      {BinaryOp::Add, f32, imm_float(f32, 0), 5},
      {BinaryOp::Max, f32, imm_float(f32, -1e30), 5},
      {BinaryOp::Add, f16, imm_float(f16, 0), 5},
      {BinaryOp::Add, f64, imm_float(f64, 0.5), 10},
      {BinaryOp::Min, i64, imm(i64, 1 << 20), 10},
      {BinaryOp::Add, i32, imm(i32, 3), 5},
      {BinaryOp::Or, DType::Bool(), imm(DType::Bool(), 0), 5},
  };
  for (const Case& c : cases) {
    const PrimFunc f = lane_reductions(c.op, c.dtype, c.start);
    Launches launches(f);
    EXPECT_EQ(launches.exchanges_found(), c.exchanges) << c.dtype.to_string();
    const runtime::Shape shape({2, 2, 32});
    const auto in = runtime::Tensor::zeros(c.dtype, shape),
               want = runtime::Tensor::zeros(c.dtype, shape),
               got = runtime::Tensor::zeros(c.dtype, shape);
    for (int64_t i = 0; i < in.num_elements(); ++i) {
      if (c.dtype.is_bool()) {
        in.set_from_int(i, i == 40);
      } else if (c.dtype.is_floating()) {
        in.set_from_double(i, static_cast<double>(i * 7 % 31 - 15));
      } else {
        in.set_from_int(i, i * 7 % 31 - 15);
      }
    }
    ASSERT_EQ(tir::interpret(f, {in, want}, {}), 0);
    launches.run({in.data(), got.data()}, {}, {}, {});
    EXPECT_TRUE(runtime::bit_equal(got, want)) << c.dtype.to_string();
    tir::KernelInterpreter races(tir::lower_loops(f, kind_of(parse_target("cuda")).lowering()), {},
                                 {.find_races = true});
    races.run({in, want});
    EXPECT_EQ(races.race(), "");
  }
  EXPECT_TRUE(
      has(source_of(lane_reductions(BinaryOp::Add, f32, imm_float(f32, 0))), "shfl.sync.bfly.b32"));
}

TEST_F(Cuda, must_fail_reductions_that_no_warp_does_E0401) {
  for (const PrimFunc& f : {lane_reductions(BinaryOp::Sub, f32, imm_float(f32, 0)),
                            lane_reductions(BinaryOp::Add, f32, imm_float(f32, 0), 16)}) {
    try {
      source_of(f);
      ADD_FAILURE() << to_string(f);
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find("a reduction across a warp"), std::string::npos)
          << e.what();
    }
  }
}

TEST_F(Cuda, must_fail_copies_that_arrive_later_E0401) {
  try {
    source_of(copies_ahead(f32, 1, 2, 4), "cuda -arch=sm_75");
    ADD_FAILURE();
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("copies that arrive later"), std::string::npos)
        << e.what();
  }
}

// Two warps that add a product of 2 x 2 of the instruction's tiles below each other: operands in shared memory whose terms lie
// side by side, or do not.
PrimFunc by_warps(DType a_type, DType b_type, DType sums, int64_t rows, int64_t terms,
                  bool adjoin) {
  const int64_t m = 2 * rows, n = 16, depth = 2 * terms;
  Buffer a = buffer("a", a_type, {index(m), index(depth)}),
         b = buffer("b", b_type, {index(n), index(depth)}),
         out = buffer("out", sums, {index(m), index(n)}),
         a_tile = buffer("a_tile", a_type, {index(adjoin ? m : depth), index(adjoin ? depth : m)},
                         Scope::Shared),
         b_tile = buffer("b_tile", b_type, {index(adjoin ? n : depth), index(adjoin ? depth : n)},
                         Scope::Shared),
         acc = buffer("acc", sums, {index(m), index(n)}, Scope::Register);
  auto in_tile = [&](const PrimExpr& row, const PrimExpr& term) {
    return adjoin ? std::vector<PrimExpr>{row, term} : std::vector<PrimExpr>{term, row};
  };
  struct Items {
    Var z = var("z"), y = var("y"), x = var("x");
  };
  auto phase = [&](const Items& at, Stmt body) {
    return bound(
        at.z, index(2), kItemTags[2],
        bound(at.y, index(8), kItemTags[1], bound(at.x, index(4), kItemTags[0], std::move(body))));
  };
  auto matrix = [](const Var& v, int64_t extent, Stmt body) {
    return modified(*as<ForNode>(for_(v, index(0), index(extent), std::move(body))),
                    [](ForNode& f) { f.hints.nest = LoopNest::Matrix; });
  };
  auto loop = [](const Var& v, int64_t extent, Stmt body) {
    return for_(v, index(0), index(extent), std::move(body));
  };
  auto nest = [&](bool marked,
                  const std::function<Stmt(const PrimExpr&, const PrimExpr&, const Items&)>& of) {
    const Items at;
    const Var i = var("i"), t = var("t"), j = var("j");
    const PrimExpr row = at.z * rows + i * 8 + at.y, column = t * 8 + at.x * 2 + j;
    Stmt body = of(row, column, at);
    if (!marked) return phase(at, loop(i, rows / 8, loop(t, 2, loop(j, 2, body))));
    const Var s = var("s"), k = var("k");
    const PrimExpr term = s * terms + k;
    body = store(acc, {row, column},
                 load(acc, {row, column}) + cast(sums, load(a_tile, in_tile(row, term))) *
                                                cast(sums, load(b_tile, in_tile(column, term))));
    return phase(at,
                 loop(s, 2, loop(t, 2, matrix(k, terms, matrix(i, rows / 8, matrix(j, 2, body))))));
  };
  auto copy = [&](const Buffer& from, const Buffer& to, int64_t count) {
    const Items at;
    const Var k = var("k"), i = var("i");
    const PrimExpr row = i * 8 + at.y;
    return phase(at, loop(i, count / 8,
                          loop(k, depth / 8,
                               store(to, in_tile(row, k * 8 + at.z * 4 + at.x),
                                     load(from, {row, k * 8 + at.z * 4 + at.x})))));
  };
  const Var g = var("g");
  Stmt group = seq({nest(false,
                         [&](const auto& r, const auto& c, const auto&) {
                           return store(acc, {r, c}, cast(sums, r - c));
                         }),
                    copy(a, a_tile, m), copy(b, b_tile, n),
                    nest(true, [&](const auto&, const auto&, const auto&) { return seq({}); }),
                    nest(false, [&](const auto& r, const auto& c, const auto&) {
                      return store(out, {r, c}, load(acc, {r, c}));
                    })});
  return kernel(
      "products", {a, b}, {out},
      bound(g, index(1), kGroupTags[0], allocate(acc, allocate(a_tile, allocate(b_tile, group)))));
}

struct WarpCase {
  DType a, b, sums;
  int64_t rows, terms;
  std::string target, instruction;
};

// The sums of the loops, through registers of the items as the instructions have them; and PTX has the instructions.
TEST_F(Cuda, warps_multiply_matrices) {
  const DType f16 = DType::Float(16), bf16 = DType::BFloat16(), s8 = DType::Int(8),
              u8 = DType::UInt(8), i32 = DType::Int(32);
  const std::vector<WarpCase> cases{
      {f16, f16, f32, 16, 16, "sm_80", "m16n8k16.row.col.f32.f16.f16.f32"},
      {f16, f16, f32, 16, 8, "sm_75", "m16n8k8.row.col.f32.f16.f16.f32"},
      {bf16, bf16, f32, 16, 16, "sm_90a", "m16n8k16.row.col.f32.bf16.bf16.f32"},
      {f32, f32, f32, 16, 8, "sm_80 +tf32", "m16n8k8.row.col.f32.tf32.tf32.f32"},
      {s8, s8, i32, 16, 32, "sm_80", "m16n8k32.row.col.s32.s8.s8.s32"},
      {s8, u8, i32, 16, 32, "sm_86", "m16n8k32.row.col.s32.s8.u8.s32"},
      {s8, s8, i32, 8, 16, "sm_75", "m8n8k16.row.col.s32.s8.s8.s32"},
      {u8, s8, i32, 8, 16, "sm_75", "m8n8k16.row.col.s32.u8.s8.s32"}};
  for (const WarpCase& c : cases) {
    for (bool adjoin : {true, false}) {
      const PrimFunc f = by_warps(c.a, c.b, c.sums, c.rows, c.terms, adjoin);
      const runtime::DeviceSource s = source_of(f, "cuda -arch=" + c.target);
      EXPECT_TRUE(has(s, "mma.sync.aligned." + c.instruction)) << s.code;
      EXPECT_EQ(has(s, "ldmatrix.sync.aligned"), adjoin) << s.code;
      EXPECT_FALSE(has(s, ".local")) << s.code;
      Launches launches(f);
      EXPECT_GT(launches.warp_calls_found(), 0u);
      std::vector<runtime::Tensor> data;
      for (const Buffer& p : f->params) {
        data.push_back(runtime::Tensor::zeros(
            p->dtype,
            runtime::Shape(std::vector<int64_t>{*as_int(p->shape[0]), *as_int(p->shape[1])})));
      }
      for (size_t i = 0; i < 2; ++i) {
        for (int64_t at = 0; at < data[i].num_elements(); ++at) {
          const int64_t value = (at * 7 + at / 5 + static_cast<int64_t>(i)) % 13;
          data[i].set_from_int(at, c.a == u8 || c.b == u8
                                       ? value * 15 - (data[i].dtype() == s8 ? 90 : 0)
                                       : value - 6);
        }
      }
      launches.run({data[0].data(), data[1].data(), data[2].data()}, {}, {}, {});
      std::vector<runtime::Tensor> want = data;
      want[2] = runtime::Tensor::zeros(c.sums, data[2].shape());
      ASSERT_EQ(tir::interpret(f, want, std::vector<int64_t>()), 0);
      for (int64_t at = 0; at < want[2].num_elements(); ++at) {
        ASSERT_EQ(data[2].get_as_double(at), want[2].get_as_double(at))
            << c.instruction << " at " << at << (adjoin ? "" : ", element by element");
      }
    }
  }
}

TEST_F(Cuda, must_fail_matrix_nests_without_an_instruction_E0401) {
  const PrimFunc f = by_warps(f64, f64, f64, 16, 16, true);
  try {
    source_of(f, "cuda -arch=sm_80");
    FAIL() << "a product of float64 has code";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("16 terms of float64 and float64 to float64"),
              std::string::npos)
        << e.what();
  }
}

TEST_F(Cuda, must_fail_words_for_tf32_E0403) {
  EXPECT_EQ(parse_target("cuda -arch=sm_80 +tf32 +tf32").features,
            parse_target("cuda -arch=sm_80 +tf32").features);
  for (const char* words : {"cuda +tf32", "cuda -arch=sm_80 +bf16"}) {
    try {
      parse_target(words);
      ADD_FAILURE() << words << " is a target";
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find("E0403"), std::string::npos) << e.what();
    }
  }
}

// A grid has fewer groups along y and z than there are indices.
TEST_F(Cuda, groups_take_every_index_of_an_open_axis) {
  const Var n = var("n"), b = var("b"), t = var("t"), u = var("u");
  Buffer a = buffer("a", f32, {n, index(4)}), out = buffer("out", f32, {n, index(4)}),
         shared = buffer("shared", f32, {index(4)}, Scope::Shared);
  Stmt group = allocate(
      shared,
      seq({bound(t, index(4), kItemTags[0], store(shared, {t}, load(a, {b, t}))),
           bound(u, index(4), kItemTags[0], store(out, {b, u}, load(shared, {index(3) - u})))}));
  Launches launches(kernel("reversed", {a}, {out}, bound(b, n, kGroupTags[1], group), {n}));
  std::vector<float> in(4 * 9), got(4 * 9);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  launches.run({in.data(), got.data()}, {9}, {}, {}, {}, 2);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(got[i], in[i / 4 * 4 + 3 - i % 4]) << i;
}

TEST_F(Cuda, must_fail_more_parameters_than_a_launch_has_E0401) {
  const Var i = var("i");
  std::vector<Buffer> inputs;
  Buffer out = buffer("out", f32, {index(8)});
  PrimExpr sum = imm_float(f32, 0);
  for (int k = 0; k < 545; ++k) {
    inputs.push_back(buffer("a" + std::to_string(k), f32, {index(8)}));
    sum = sum + load(inputs.back(), {i});
  }
  try {
    source_of(
        kernel("wide", inputs, {out}, bound(i, index(8), kGlobalTags[0], store(out, {i}, sum))));
    FAIL() << "a launch of 548 parameters has code";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0401"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("548 parameters, more than 544"), std::string::npos)
        << e.what();
  }
}

// A vector of four from shared memory to registers and on.
TEST_F(Cuda, items_of_a_group_take_vectors) {
  Var b = var("b"), t = var("t"), u = var("u"), v = var("v");
  Buffer a = buffer("a", f32, {index(16)}), out = buffer("out", f32, {index(16)}),
         tile = buffer("tile", f32, {index(16)}, Scope::Shared),
         acc = buffer("acc", f32, {index(4), index(4)}, Scope::Register);
  auto four = [](const PrimExpr& first) { return ramp(first, index(1), 4); };
  Stmt group = seq(
      {bound(t, index(16), kItemTags[0], store(tile, {t}, load(a, {index(15) - t}))),
       tir::evaluate(tir::call("barrier", DType::Int(32), {})),
       bound(u, index(4), kItemTags[0], store(acc, {u, four(index(0))}, load(tile, {four(u * 4)}))),
       bound(v, index(4), kItemTags[0],
             store(out, {four(v * 4)}, load(acc, {v, four(index(0))})))});
  Launches launches(kernel("fours", {a}, {out},
                           bound(b, index(1), kGroupTags[0], allocate(acc, allocate(tile, group)))),
                    Launches::Lowered{});
  std::vector<float> in(16), got(16);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i);
  launches.run({in.data(), got.data()}, {}, {}, {});
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(got[i], in[15 - i]) << i;
}

TEST_F(Cuda, items_have_slices_of_their_own) {
  Buffer a = buffer("a", f32, {index(2000)}), out = buffer("out", f32, {index(100), index(3)}),
         own = buffer("own", f32, {index(2000)});
  Var i = var("i"), j = var("j"), k = var("k"), z = var("z");
  Stmt fill = for_(j, index(0), index(2000), store(own, {j}, load(a, {j}) + cast(f32, i * 3 + z)));
  Stmt last = for_(k, index(0), index(2000), store(out, {i, z}, load(own, {k})));
  Launches launches(
      kernel("sliced", {a}, {out},
             bound(z, index(3), kGlobalTags[1],
                   bound(i, index(100), kGlobalTags[0], allocate(own, seq({fill, last}))))));
  std::vector<float> in(2000);
  in.back() = 1000;
  for (std::array<int32_t, 3> items : {std::array{1, 1, 1}, {256, 1, 1}, {8, 8, 1}}) {
    std::vector<float> got(300);
    launches.run({in.data(), got.data()}, {}, {2, 2, 1}, items);
    for (size_t at = 0; at < got.size(); ++at) ASSERT_EQ(got[at], 1000 + static_cast<float>(at));
  }
}

TEST_F(Cuda, the_first_failure_is_kept) {
  Buffer a = buffer("a", DType::Int(64), {index(8)}),
         out = buffer("out", DType::Int(64), {index(8)});
  Var i = var("i");
  const PrimExpr place = tir::call("index_in", tir::kIndex, {load(a, {i}), index(8), index(0)});
  Launches launches(
      kernel("places", {a}, {out}, bound(i, index(8), kGlobalTags[0], store(out, {i}, place))));
  std::vector<int64_t> in{0, 7, -1, -8, 3, 4, 5, 6}, got(8, 99);
  EXPECT_EQ(launches.run({in.data(), got.data()}, {}, {1, 1, 1}, {8, 1, 1})[0], 0);
  EXPECT_EQ(got, (std::vector<int64_t>{0, 7, 7, 0, 3, 4, 5, 6}));
  for (int64_t bad : {int64_t{8}, int64_t{-9}, std::numeric_limits<int64_t>::max()}) {
    in[3] = bad;
    got.assign(8, 99);
    const auto failed = launches.run({in.data(), got.data()}, {}, {1, 1, 1}, {8, 1, 1});
    EXPECT_EQ(failed,
              (std::array<int32_t, 2>{RELAY_KERNEL_INDEX_OUT_OF_BOUNDS, Launches::kNumber}));
    // Items that come later have nothing to do.
    EXPECT_EQ(got[3], 99);
    EXPECT_EQ(got[0], 99);
  }
}

TEST_F(Cuda, what_reads_indices_ends_after_a_failure) {
  Buffer a = buffer("a", DType::Int(64), {index(8)}),
         out = buffer("out", DType::Int(64), {index(8)});
  Var i = var("i");
  auto launch = [&](Stmt body) {
    return Launches(kernel("later", {a}, {out}, bound(i, index(8), kGlobalTags[0], body)));
  };
  std::vector<int64_t> in{7, 6, 5, 4, 3, 2, 1, 0}, got(8, 99);
  Launches gathers = launch(store(out, {i}, load(a, {load(a, {i})})));
  gathers.run({in.data(), got.data()}, {}, {1, 1, 1}, {8, 1, 1}, {1, 3});
  EXPECT_EQ(got, std::vector<int64_t>(8, 99));
  Launches copies = launch(store(out, {i}, load(a, {i})));
  copies.run({in.data(), got.data()}, {}, {1, 1, 1}, {8, 1, 1}, {1, 3});
  EXPECT_EQ(got, in);
}

TEST_F(Cuda, no_function_is_external) {
  for (DType d : {f32, f64, DType::Float(16), DType::BFloat16()}) {
    for (const tir::Intrinsic& one : tir::intrinsics()) {
      if (one.rule != tir::IntrinsicRule::Float && one.name != "pow") continue;
      const std::string name(one.name);
      const PrimFunc f = by_items("of_" + name, d, index(64), [&](const PrimExpr& x) {
        std::vector<PrimExpr> args(static_cast<size_t>(one.arity), x);
        return tir::call(name, d, args);
      });
      const runtime::DeviceSource s = source_of(f);
      EXPECT_FALSE(has(s, ".extern")) << name << " of " << d.to_string() << "\n" << s.code;
    }
  }
}

TEST_F(Cuda, a_target_names_its_architecture) {
  const PrimFunc f = by_items("twice", f32, index(64), [](const PrimExpr& x) { return x + x; });
  for (const char* arch : {"sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"}) {
    const std::string words = std::string("cuda -arch=") + arch;
    EXPECT_EQ(parse_target(words).name, words);
    EXPECT_TRUE(has(source_of(f, words), std::string(".target ") + arch + "\n"));
  }
  try {
    parse_target("cuda -arch=sm_9");
    FAIL() << "there is no such architecture";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("E0403"), std::string::npos);
    EXPECT_NE(std::string(e.what()).find("sm_75, sm_80, sm_86, sm_89, sm_90, sm_90a"),
              std::string::npos);
  }
  const Target target = parse_target("cuda");
  EXPECT_THROW(backend_of(target).load({f}, target, nullptr), UserError);
}

// ---- Mathematics

// The functions, compiled for this machine.
class Functions {
 public:
  Functions(const std::vector<std::string>& names, size_t count) {
    const Target target = native_target();
    llvm::LLVMContext context;
    auto machine = codegen::make_machine(target);
    llvm::Module module("math", context);
    module.setTargetTriple(target.triple);
    module.setDataLayout(machine->layout());
    llvm::IRBuilder<> b(context);
    std::vector<PrimFunc> named;
    for (const std::string& name : names) {
      named.push_back(kernel(name, {}, {}, seq({})));
      auto* type =
          llvm::FunctionType::get(b.getVoidTy(), {b.getPtrTy(), b.getPtrTy(), b.getPtrTy()}, false);
      auto* f = llvm::Function::Create(type, llvm::GlobalValue::ExternalLinkage,
                                       codegen::kernel_symbol(*named.back().get()), module);
      b.SetInsertPoint(llvm::BasicBlock::Create(context, "entry", f));
      std::vector<llvm::Value*> args;
      for (size_t i = 0; i < count; ++i) {
        args.push_back(
            b.CreateLoad(b.getDoubleTy(), b.CreateConstGEP1_64(b.getDoubleTy(), f->getArg(0), i)));
      }
      llvm::Function* callee =
          codegen::device_function(module, target, name, b.getDoubleTy(), count);
      EXPECT_NE(callee, nullptr) << name;
      callee->addFnAttr("target-features", target.features);
      b.CreateStore(b.CreateCall(callee, args), f->getArg(1));
      b.CreateRetVoid();
    }
    const std::string object =
        machine->emit(module, codegen::CodePasses::none, codegen::CodeForm::object);
    loaded_.emplace(codegen::load_objects({object}, named, target));
  }
  double of(size_t function, std::vector<double> args) const {
    double out = 0;
    loaded_->functions()[function](reinterpret_cast<void* const*>(args.data()),
                                   reinterpret_cast<const int64_t*>(&out), nullptr);
    return out;
  }

 private:
  std::optional<LoadedKernels> loaded_;
};

struct Known {
  std::string name;
  long double (*value)(long double x, long double y);
  std::vector<std::pair<double, double>> ranges;  // of arguments, whose logarithms are even
  double units;
};

double units_off(double got, long double want) {
  if (std::isnan(want) || std::isinf(static_cast<double>(want))) {
    const bool same = std::isnan(want) ? std::isnan(got) : got == static_cast<double>(want);
    return same ? 0 : HUGE_VAL;
  }
  const double near = static_cast<double>(want);
  const double unit =
      std::max(std::nextafter(std::abs(near), HUGE_VAL) - std::abs(near), 0x1p-1074);
  return static_cast<double>(std::abs(static_cast<long double>(got) - want) / unit);
}

#define OF_X(f) [](long double x, long double) -> long double { return f(x); }
#define OF_BOTH(f) [](long double x, long double y) -> long double { return f(x, y); }

TEST(CudaMath, error_is_within_the_stated_bounds) {
  const std::vector<Known> all[] = {{{"sin", OF_X(std::sin), {{1e-8, 1e5}, {1e5, 1e300}}, 3},
                                     {"cos", OF_X(std::cos), {{1e-8, 1e5}, {1e5, 1e300}}, 3},
                                     {"tan", OF_X(std::tan), {{1e-8, 1e5}, {1e5, 1e300}}, 4},
                                     {"asin", OF_X(std::asin), {{1e-8, 1}}, 2},
                                     {"acos", OF_X(std::acos), {{1e-8, 1}}, 3},
                                     {"atan", OF_X(std::atan), {{1e-8, 1e8}}, 2},
                                     {"sinh", OF_X(std::sinh), {{1e-8, 711}}, 4},
                                     {"cosh", OF_X(std::cosh), {{1e-8, 711}}, 4},
                                     {"asinh", OF_X(std::asinh), {{1e-8, 1e300}}, 4},
                                     {"acosh", OF_X(std::acosh), {{1, 3}, {3, 1e300}}, 4},
                                     {"atanh", OF_X(std::atanh), {{1e-8, 1}}, 4},
                                     {"log2", OF_X(std::log2), {{1e-300, 1e300}, {0.5, 2}}, 2},
                                     {"log10", OF_X(std::log10), {{1e-300, 1e300}, {0.5, 2}}, 2},
                                     {"erf", OF_X(std::erf), {{1e-8, 7}}, 2}},
                                    {{"atan2", OF_BOTH(std::atan2), {{1e-8, 1e8}}, 2},
                                     {"pow", OF_BOTH(std::pow), {{1e-2, 1e2}}, 8},
                                     {"fmod", OF_BOTH(std::fmod), {{1e-3, 1e12}}, 0}}};
  constexpr double kSpecial[] = {0.0,      -0.0,      1.0, -1.0,   0.5, 2.0,
                                 HUGE_VAL, -HUGE_VAL, NAN, 1e-310, 3.0, -2.5};
  std::mt19937_64 random(7);
  for (size_t count : {1u, 2u}) {
    std::vector<std::string> names;
    for (const Known& k : all[count - 1]) names.push_back(k.name);
    const Functions functions(names, count);
    for (size_t f = 0; f < names.size(); ++f) {
      const Known& k = all[count - 1][f];
      double worst = 0, where = 0, where_y = 0;
      auto test = [&](double x, double y) {
        std::vector<double> args{x, y};
        const double off = units_off(functions.of(f, args), k.value(x, y));
        if (off > worst) worst = off, where = x, where_y = y;
      };
      for (auto [low, high] : k.ranges) {
        std::uniform_real_distribution<double> size(std::log(low), std::log(high));
        auto drawn = [&] {
          const double x = std::exp(size(random));
          return random() % 2 == 0 || low >= 1 || k.name.starts_with("log") ? x : -x;
        };
        for (int i = 0; i < 20000; ++i) {
          const double x = k.name == "pow" ? std::abs(drawn()) : drawn();
          test(x, drawn());
        }
      }
      for (double x : kSpecial) {
        for (double y : kSpecial) {
          // Denormal divisors are zeros.
          if (k.name == "fmod" && std::abs(y) == 1e-310) continue;
          test(x, y);
        }
      }
      if (k.name == "acosh") test(-1e200, 0);
      EXPECT_LE(worst, k.units) << k.name << " of " << where << ", " << where_y;
    }
  }
}

}  // namespace
}  // namespace relay::codegen_test::cuda
