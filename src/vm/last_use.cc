#include "vm/last_use.h"

#include <algorithm>

#include "runtime/vm/opcode_table.h"

namespace relay::vm {

using runtime::Flow;
using runtime::Function;
using runtime::Instruction;
using runtime::kLastA;
using runtime::kLastB;
using runtime::ListRole;
using runtime::Opcode;
using runtime::OpcodeRow;
using runtime::Operand;

namespace {

// How a register takes part in an instruction, in the order in which it happens.
enum class Role : uint8_t {
  read,      // no flag can say that it is the last time
  read_a,    // kLastA
  read_b,    // kLastB
  entry,     // of a list: ~r
  moved,     // always moved out of (ret)
  exchange,  // read and written; what it holds afterwards is kept for its memory
  write,
};

template <typename Visit>
void for_each_register(const Function& f, const Instruction& in, const Visit& visit) {
  const OpcodeRow& row = runtime::opcode_row(in.op);
  auto field = [&](runtime::Role role, int32_t r, Role last) {
    if (role == runtime::Role::reg) visit(r, Role::read, 0u);
    if (role == runtime::Role::some_reg && r > 0) visit(r - 1, Role::read, 0u);
    if (role == runtime::Role::last_reg) visit(r, last, 0u);
    if (role == runtime::Role::moved_reg) visit(r, Role::moved, 0u);
    if (role == runtime::Role::exchanged_reg) visit(r, Role::exchange, 0u);
  };
  if (row.dst == runtime::Role::exchanged_reg) visit(in.dst, Role::exchange, 0u);
  field(row.a, in.a, Role::read_a);
  field(row.b, in.b, Role::read_b);
  const uint32_t begin = static_cast<uint32_t>(in.b), end = begin + in.count;
  if (row.list == ListRole::regs) {
    for (uint32_t at = begin; at < end; ++at) visit(f.lists[at], Role::entry, at);
  } else if (row.list == ListRole::operands) {
    for (uint32_t at = begin; at < end; ++at) {
      const Operand& o = f.operands[at];
      if (o.kind == Operand::kRegister) visit(static_cast<int32_t>(o.index), Role::read, 0u);
    }
  }
  if (row.dst == runtime::Role::new_reg) visit(in.dst, Role::write, 0u);
}

// Whether the instruction in b may come next.
bool jumps(Opcode op) { return runtime::opcode_row(op).b == runtime::Role::target; }
Flow flow(Opcode op) { return runtime::opcode_row(op).flow; }
bool leaves(Opcode op) { return flow(op) == Flow::leave; }
// After which it does not matter any more what is freed when.
bool takes_long(Opcode op) {
  return op == Opcode::call || op == Opcode::invoke_closure || op == Opcode::invoke_kernel;
}

class LastUses {
 public:
  explicit LastUses(Function& f) : f_(f) {}

  void run() {
    find_blocks();
    find_events();
    budget_ = 64 * f_.code.size() + 4096;
    for (int32_t r = 0; r < f_.num_registers; ++r) visit_register(r);
    insert_kills();
  }

 private:
  struct Block {
    uint32_t begin = 0, end = 0;
    std::vector<uint32_t> preds, succs;
    // Where the rest of the block leaves the function without a call or a kernel; `end` if it does
    // not leave.
    uint32_t last_kill = 0;
    // The last register for which the block was: live at its start, at its end, written in it.
    int32_t live_in = -1, live_out = -1, written = -1, killed = -1;
  };
  struct Event {
    uint32_t pc;
    uint32_t entry;
    Role role;
  };

  void find_blocks() {
    std::vector<uint8_t> starts(f_.code.size() + 1, 0);
    starts[0] = 1;
    for (uint32_t pc = 0; pc < f_.code.size(); ++pc) {
      const Instruction& in = f_.code[pc];
      if (jumps(in.op)) starts[static_cast<uint32_t>(in.b)] = 1;
      if (in.op == Opcode::jump_table) {
        for (uint32_t n = 0; n < in.count; ++n) {
          starts[static_cast<uint32_t>(f_.lists[static_cast<uint32_t>(in.b) + n])] = 1;
        }
      }
      if (flow(in.op) != Flow::next) starts[pc + 1] = 1;
    }
    block_of_.resize(f_.code.size());
    for (uint32_t pc = 0; pc < f_.code.size(); ++pc) {
      if (starts[pc] != 0) blocks_.emplace_back().begin = pc;
      block_of_[pc] = static_cast<uint32_t>(blocks_.size()) - 1;
      blocks_.back().end = pc + 1;
    }
    for (uint32_t b = 0; b < blocks_.size(); ++b) find_edges(b);
  }

  void find_edges(uint32_t b) {
    Block& block = blocks_[b];
    const Instruction& last = f_.code[block.end - 1];
    auto edge = [&](uint32_t pc) {
      block.succs.push_back(block_of_[pc]);
      blocks_[block_of_[pc]].preds.push_back(b);
    };
    if (jumps(last.op)) edge(static_cast<uint32_t>(last.b));
    if (last.op == Opcode::jump_table) {
      for (uint32_t n = 0; n < last.count; ++n) {
        edge(static_cast<uint32_t>(f_.lists[static_cast<uint32_t>(last.b) + n]));
      }
    }
    const bool goes_on = flow(last.op) == Flow::next || flow(last.op) == Flow::branch;
    if (goes_on && block.end < f_.code.size()) edge(block.end);
    block.last_kill = block.end;
    if (!leaves(last.op)) return;
    block.last_kill = block.begin;
    for (uint32_t pc = block.end; pc-- > block.begin;) {
      if (!takes_long(f_.code[pc].op)) continue;
      block.last_kill = pc;
      break;
    }
  }

  // The events of each register, in the order of the code.
  void find_events() {
    first_.assign(static_cast<size_t>(f_.num_registers) + 1, 0);
    auto visit_all = [&](auto&& visit) {
      for (uint32_t pc = 0; pc < f_.code.size(); ++pc) {
        for_each_register(f_, f_.code[pc], [&](int32_t r, Role role, uint32_t entry) {
          visit(static_cast<size_t>(r), Event{pc, entry, role});
        });
      }
    };
    visit_all([&](size_t r, const Event&) { ++first_[r + 1]; });
    for (size_t r = 1; r < first_.size(); ++r) first_[r] += first_[r - 1];
    events_.resize(first_.back());
    std::vector<size_t> next(first_.begin(), first_.end() - 1);
    visit_all([&](size_t r, const Event& e) { events_[next[r]++] = e; });
  }

  void visit_register(int32_t r) {
    std::span<const Event> events(events_.data() + first_[static_cast<size_t>(r)],
                                  events_.data() + first_[static_cast<size_t>(r) + 1]);
    std::vector<uint32_t> reached;  // blocks at whose start or end the register is live
    if (!find_live(r, events, reached)) return;
    for (size_t e = 0; e < events.size(); ++e) {
      bool last_here =
          e + 1 == events.size() || block_of_[events[e + 1].pc] != block_of_[events[e].pc];
      bool dies = last_here ? blocks_[block_of_[events[e].pc]].live_out != r
                            : events[e + 1].role == Role::write;
      if (dies) mark(r, events[e]);
    }
    bool is_param = r < static_cast<int32_t>(f_.params.size());
    if (is_param && blocks_[0].live_in != r && (events.empty() || events[0].pc >= blocks_[0].end)) {
      kill_at_start(0, r);
    }
    for (uint32_t b : reached) {
      if (blocks_[b].live_out != r) continue;
      for (uint32_t s : blocks_[b].succs) {
        if (blocks_[s].live_in != r) kill_at_start(s, r);
      }
    }
  }

  // Whether the work stays within the budget.
  bool find_live(int32_t r, std::span<const Event> events, std::vector<uint32_t>& reached) {
    for (const Event& e : events) {
      if (e.role == Role::write) blocks_[block_of_[e.pc]].written = r;
    }
    std::vector<uint32_t> work;
    uint32_t at = static_cast<uint32_t>(-1);
    for (const Event& e : events) {
      uint32_t b = block_of_[e.pc];
      if (b == at) continue;  // only the first event of a block looks backwards
      at = b;
      if (e.role != Role::write) work.push_back(b);
    }
    while (!work.empty()) {
      uint32_t b = work.back();
      work.pop_back();
      Block& block = blocks_[b];
      if (block.live_in == r) continue;
      block.live_in = r;
      reached.push_back(b);
      for (uint32_t p : block.preds) {
        if (budget_-- == 0) {
          budget_ = 0;
          return false;
        }
        Block& pred = blocks_[p];
        if (pred.live_out == r) continue;
        pred.live_out = r;
        reached.push_back(p);
        if (pred.written != r) work.push_back(p);
      }
    }
    return true;
  }

  void mark(int32_t r, const Event& e) {
    Instruction& in = f_.code[e.pc];
    switch (e.role) {
      case Role::read_a:
        in.sub |= kLastA;
        return;
      case Role::read_b:
        in.sub |= kLastB;
        return;
      case Role::entry:
        f_.lists[e.entry] = ~r;
        return;
      case Role::moved:
      case Role::exchange:
        return;
      case Role::read:
      case Role::write:
        break;
    }
    // What ends a block is followed by the starts of others, which see to it.
    const Block& block = blocks_[block_of_[e.pc]];
    if (e.pc >= block.last_kill) return;
    if (in.op == Opcode::if_not_tag) {
      for (uint32_t s : block.succs) kill_at_start(s, r);
      return;
    }
    kills_.push_back({e.pc + 1, r, true});
  }

  void kill_at_start(uint32_t b, int32_t r) {
    Block& block = blocks_[b];
    if (block.killed == r || block.last_kill == block.begin || budget_ == 0) return;
    --budget_;
    block.killed = r;
    kills_.push_back({block.begin, r, false});
  }

  // A jump to an instruction runs the kills that belong to the start of its block, and not those
  // after the instruction before.
  struct Kill {
    uint32_t pc;
    int32_t reg;
    bool after;
  };

  void insert_kills() {
    if (kills_.empty()) return;
    std::ranges::stable_sort(kills_, [](const Kill& a, const Kill& b) {
      return a.pc != b.pc ? a.pc < b.pc : a.after > b.after;
    });
    std::vector<Instruction> code;
    code.reserve(f_.code.size() + kills_.size());
    std::vector<int32_t> moved(f_.code.size() + 1);
    size_t next = 0;
    auto emit = [&](uint32_t pc, bool after) {
      Instruction kill;
      kill.op = Opcode::kill;
      kill.b = static_cast<int32_t>(f_.lists.size());
      for (; next < kills_.size() && kills_[next].pc == pc && kills_[next].after == after; ++next) {
        f_.lists.push_back(kills_[next].reg);
        ++kill.count;
      }
      if (kill.count > 0) code.push_back(kill);
    };
    for (uint32_t pc = 0; pc < f_.code.size(); ++pc) {
      emit(pc, true);
      moved[pc] = static_cast<int32_t>(code.size());
      emit(pc, false);
      code.push_back(f_.code[pc]);
    }
    for (Instruction& in : code) {
      if (jumps(in.op)) in.b = moved[static_cast<size_t>(in.b)];
      if (in.op != Opcode::jump_table) continue;
      for (uint32_t n = 0; n < in.count; ++n) {
        int32_t& target = f_.lists[static_cast<uint32_t>(in.b) + n];
        target = moved[static_cast<size_t>(target)];
      }
    }
    f_.code = std::move(code);
  }

  Function& f_;
  std::vector<Block> blocks_;
  std::vector<uint32_t> block_of_;
  std::vector<size_t> first_;  // of a register's events
  std::vector<Event> events_;
  std::vector<Kill> kills_;
  size_t budget_ = 0;
};

// A value's fields are read one after the other, the last of them where the value dies: that the
// others are not read again either, is said here.
void mark_last_fields(Function& f) {
  constexpr size_t kMaxFields = 64;
  for (size_t end = 0; end < f.code.size(); ++end) {
    const Instruction& last = f.code[end];
    if (last.op != Opcode::get_field || (last.sub & kLastA) == 0) continue;
    std::vector<int32_t> seen{last.b};
    for (size_t pc = end; pc-- > 0 && end - pc < kMaxFields;) {
      Instruction& in = f.code[pc];
      if (in.op != Opcode::get_field || in.dst == last.a) break;
      if (in.a != last.a || std::ranges::find(seen, in.b) != seen.end()) continue;
      in.sub |= runtime::kLastField;
      seen.push_back(in.b);
    }
  }
}

}  // namespace

void mark_last_uses(Function& function) {
  LastUses(function).run();
  mark_last_fields(function);
}

}  // namespace relay::vm
