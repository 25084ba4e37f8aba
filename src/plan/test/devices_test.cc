// Plans for several devices: their steps, their memory, and what the verifier refuses of them.
#include <functional>

#include "lower/kernel_body.h"
#include "plan/test/plan_of.h"

namespace relay::plan {
namespace {

using plan_test::complaint;
using plan_test::find_step;
using plan_test::plan_of;

constexpr Device kTwin{kDLExtDev, 0};

std::shared_ptr<KernelProvider> provider() {
  ProviderOptions options;
  options.devices.emplace_back(kTwin, Target{});
  return std::make_shared<KernelProvider>(std::move(options));
}

// Kernels of both, a value that is joined there, one that comes back and is read by a kernel and an output.
const PlanProgram& split() {
  static const PlanProgram plan = plan_of(R"(
def @main(%x: Tensor[(4, 16), float32], %w: Tensor[(16, 16), float32]) {
  let %a = on_device(nn.dense(nn.relu(nn.dense(%x, %w)), %w), virtual_device="ext_dev:0");
  let %b = on_device(concatenate((negative(%a), nn.dense(%a, %w)), axis=1), virtual_device="ext_dev:0");
  let %h = nn.dense(%x, %w);
  (add(nn.dense(%a, %w), nn.dense(%h, %w)), %b)
})",
                                          3, provider());
  return plan;
}

// An object of the device in a branch.
const PlanProgram& branch() {
  static const PlanProgram plan = plan_of(R"(
def @main(%x: Tensor[(4,), float32], %c: bool) {
  let %y = if (%c) { on_device(exp(%x), virtual_device="ext_dev:0") } else { %x };
  on_device(negative(%y), virtual_device="ext_dev:0")
})",
                                          3, provider());
  return plan;
}

void refused(const PlanProgram& good, const std::string& expected,
             const std::function<void(PlanFunction&, PlanProgram&)>& damage) {
  PlanProgram bad = good;
  damage(bad.functions[0], bad);
  const std::string found = complaint(bad);
  EXPECT_NE(found.find(expected), std::string::npos) << expected << "\n"
                                                     << found << "\n"
                                                     << to_string(bad);
}

// The n-th kernel of the device.
Step& kernel_on(PlanFunction& f, const PlanProgram& p, Device device, size_t n = 0) {
  for (Step& s : f.steps) {
    const bool is = s.kind == StepKind::kernel &&
                    p.kernels[static_cast<size_t>(s.number)].signature.device == device;
    if (is && n-- == 0) return s;
  }
  throw std::logic_error("no such kernel");
}

TEST(DevicePlan, has_an_arena_for_each_device_and_waits_before_it_reads) {
  const PlanProgram& p = split();
  verify(p);
  verify(branch());
  const PlanFunction& f = p.functions[0];
  ASSERT_EQ(f.device_arenas.size(), 1u) << to_string(p);
  EXPECT_EQ(f.device_arenas[0].device, kTwin);
  EXPECT_GT(f.device_arenas[0].bytes, 0);
  EXPECT_GT(f.arena_bytes, 0);
  const std::string text = to_string(p);
  // %x and %w go there once, %a and %b come back.
  size_t there = 0, back = 0;
  for (const Step& s : f.steps) {
    if (s.kind != StepKind::transfer) continue;
    ++(f.value(s.results[0]).device == kTwin ? there : back);
  }
  EXPECT_EQ(there, 2u) << text;
  EXPECT_EQ(back, 2u) << text;
  // The host works while the device does: its own product is before the wait for %a.
  const size_t product = find_step(f, StepKind::kernel, 0), wait = find_step(f, StepKind::wait);
  EXPECT_LT(product, wait) << text;
}

TEST(DevicePlan, must_fail_mixed_devices) {
  const PlanProgram &p = split(), &b = branch();
  refused(p, "not on the device of the kernel",
          [](auto& f, auto& plan) {  // 1: an operand of the host
            Step& s = kernel_on(f, plan, kTwin);
            s.operands[0] = 0;
          });
  refused(p, "not on the device of the kernel", [](auto& f, auto& plan) {  // 2: a result there
    kernel_on(f, plan, Device::cpu()).results = kernel_on(f, plan, kTwin).results;
  });
  refused(p, "is on another device than its buffer",
          [](auto& f, auto&) {  // 3: a value says one, its memory another
            for (PlanValue& v : f.values) {
              if (v.place == Place::arena && v.device == kTwin) v.device = Device::cpu();
            }
          });
  refused(p, "not on the device of the kernel", [](auto&, auto& plan) {  // 4: a kernel for another
    for (ProgramKernel& k : plan.kernels) k.signature.device = kTwin;
  });
  refused(p, "not between the host and a device", [](auto& f, auto&) {  // 5: a transfer on the host
    Step& s = f.steps[find_step(f, StepKind::transfer)];
    for (ValueId id = 0; id < static_cast<ValueId>(f.values.size()); ++id) {
      if (f.value(id).place == Place::arena && f.value(id).device == Device::cpu())
        s.results[0] = id;
    }
  });
  refused(p, "read before its copy is there", [](auto& f, auto&) {  // 6: no wait before the use
    const size_t wait = find_step(f, StepKind::wait);
    f.steps.erase(f.steps.begin() + static_cast<std::ptrdiff_t>(wait));
  });
  refused(p, "goes on where control leaves", [](auto& f, auto&) {  // 7: none before the end
    for (size_t i = f.steps.size(); i-- > 0;) {
      if (f.steps[i].kind != StepKind::wait) continue;
      f.steps.erase(f.steps.begin() + static_cast<std::ptrdiff_t>(i));
      return;
    }
  });
  refused(b, "values are on different devices",
          [](auto& f, auto&) {  // 8: a branch that gives a value of the host
            f.steps[find_step(f, StepKind::set)].operands[0] = 0;
          });
  refused(b, "an output is on a device", [](auto& f, auto&) {  // 9
    for (PlanValue& v : f.values) {
      if (v.place == Place::output) v.device = kTwin;
    }
  });
  refused(p, "values are on different devices", [](auto& f, auto&) {  // 10: a copy to the host
    const PlanValue& joined = f.value(f.steps[find_step(f, StepKind::join)].results[0]);
    f.values.push_back({Place::arena, joined.index, joined.type, "elsewhere", kTwin});
    f.values.push_back({Place::arena, 0, joined.type, "here", Device::cpu()});
    for (size_t i = 0; i < f.buffers.size(); ++i) {
      if (f.buffers[i].device == Device::cpu()) f.values.back().index = static_cast<int32_t>(i);
    }
    Step copy;
    copy.kind = StepKind::copy;
    copy.results = {static_cast<ValueId>(f.values.size()) - 1};
    copy.operands = {static_cast<ValueId>(f.values.size()) - 2};
    f.steps.insert(f.steps.begin() + static_cast<std::ptrdiff_t>(find_step(f, StepKind::join)) + 1,
                   copy);
  });
  refused(p, "a register is on a device", [](auto& f, auto&) {  // 11
    for (PlanValue& v : f.values) {
      if (v.place == Place::scalar) v.device = kTwin;
    }
  });
  refused(p, "not inside the arena", [](auto& f, auto&) { f.device_arenas.clear(); });  // 12
  refused(p, "a wait for a transfer that has not begun", [](auto& f, auto&) {           // 13
    const size_t wait = find_step(f, StepKind::wait);
    f.steps.insert(f.steps.begin() + static_cast<std::ptrdiff_t>(wait), f.steps[wait]);
  });
  refused(p, "a value is written while it is copied", [](auto& f, auto& plan) {  // 14
    const Step& s = f.steps[find_step(f, StepKind::transfer)];
    const ValueId copied = s.operands[0];
    Step set;
    set.kind = StepKind::copy;
    set.results = {copied};
    set.operands = {kernel_on(f, plan, Device::cpu()).operands[0]};
    f.steps.insert(
        f.steps.begin() + static_cast<std::ptrdiff_t>(find_step(f, StepKind::transfer)) + 1, set);
  });
}

}  // namespace
}  // namespace relay::plan
