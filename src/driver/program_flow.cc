#include "driver/program_flow.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <unordered_map>

#include "runtime/vm/opcode_table.h"

namespace relay {
namespace {

using runtime::Instruction;
using runtime::Opcode;
using runtime::OpcodeRow;
using runtime::Operand;
using runtime::Role;

// Registers that hold parts of more values than this, such as lists, are not followed.
constexpr size_t kMostInRegister = 32;

// The nodes of each call, by kernel, in the order of the calls; a kernel without them has an empty list.
std::vector<std::vector<std::string>> call_names(const runtime::Program& program,
                                                 std::string_view metadata) {
  std::vector<std::vector<std::string>> out(program.kernels.size());
  const nlohmann::json root = nlohmann::json::parse(metadata, nullptr, false);
  if (!root.is_object() || !root.contains("kernels") || !root["kernels"].is_array()) return out;
  const nlohmann::json& kernels = root["kernels"];
  for (size_t k = 0; k < std::min(out.size(), kernels.size()); ++k) {
    const nlohmann::json& row = kernels[k];
    if (!row.is_object() || !row.contains("sites") || !row["sites"].is_array()) continue;
    for (const nlohmann::json& site : row["sites"])
      out[k].push_back(site.is_object() ? site.value("nodes", "") : "");
  }
  return out;
}

class Reader {
 public:
  Reader(const runtime::Program& program, size_t function, std::string_view metadata)
      : program_(program), f_(program.functions[function]), names_(call_names(program, metadata)) {
    // Calls of functions before this one come first in the lists of names.
    calls_.resize(program.kernels.size());
    for (size_t g = 0; g < program.functions.size(); ++g) {
      for (const Instruction& i : program.functions[g].code) {
        if (i.op != Opcode::invoke_kernel) continue;
        const auto k = static_cast<size_t>(i.a);
        if (g < function) ++calls_[k];
        ++all_calls_[k];
      }
    }
  }

  ProgramFlow read() {
    out_.function = f_.name;
    arena_begin_.push_back(0);
    out_.arena_bytes = f_.arena_bytes;
    for (const runtime::DeviceArena& d : f_.devices) {
      arena_begin_.push_back(out_.arena_bytes);
      out_.arena_bytes += d.bytes;
    }
    for (size_t p = 0; p < f_.params.size(); ++p) {
      const size_t v = add(FlowValue::Home::parameter, f_.params[p].name, 0);
      registers_[static_cast<int32_t>(p)] = {v};
    }
    // A function has one loop at most; several jumps may lead to its start.
    int32_t loop_begin = -1, loop_end = -1;
    for (size_t i = 0; i < f_.code.size(); ++i) {
      steps_before_.push_back(step());
      read_instruction(f_.code[i]);
      for (int32_t target : targets_of(f_.code[i])) {
        if (static_cast<size_t>(target) > i) continue;
        const int32_t begin = steps_before_[static_cast<size_t>(target)];
        loop_begin = loop_begin < 0 ? begin : std::min(loop_begin, begin);
        loop_end = step() - 1;
      }
    }
    extend_over(loop_begin, loop_end);
    find_alive();
    return std::move(out_);
  }

 private:
  using Values = std::set<size_t>;

  int32_t step() const { return static_cast<int32_t>(out_.steps.size()); }
  // The step that an instruction between steps belongs to.
  int32_t last_step() const { return std::max(step() - 1, 0); }

  size_t add(FlowValue::Home home, std::string name, int32_t first) {
    FlowValue v;
    v.home = home;
    v.name = std::move(name);
    v.first = v.last = first;
    out_.values.push_back(std::move(v));
    return out_.values.size() - 1;
  }

  // ---- The arena: which value is at which bytes

  struct Segment {
    int64_t end;
    size_t value;
  };

  void split_at(int64_t at) {
    auto next = arena_.upper_bound(at);
    if (next == arena_.begin()) return;
    auto it = std::prev(next);
    if (it->first < at && at < it->second.end) {
      arena_.emplace(at, it->second);
      it->second.end = at;
    }
  }

  Values values_in(int64_t begin, int64_t end) {
    Values out;
    split_at(begin);
    for (auto it = arena_.lower_bound(begin); it != arena_.end() && it->first < end; ++it)
      out.insert(it->second.value);
    return out;
  }

  size_t write_arena(int64_t begin, int64_t bytes, const std::string& name, bool has_gaps) {
    const int64_t end = begin + bytes;
    size_t value = out_.values.size();
    // Parts of one tensor that are written in turn are one value.
    if (has_gaps) {
      for (size_t v : values_in(begin, end))
        if (with_gaps_.contains(v)) value = v;
    }
    if (value == out_.values.size()) {
      add(FlowValue::Home::arena, name, step());
      out_.values[value].offset = begin;
      out_.values[value].bytes = bytes;
      if (has_gaps) with_gaps_.insert(value);
    } else {
      FlowValue& v = out_.values[value];
      const int64_t all = std::max(v.offset + v.bytes, end);
      v.offset = std::min(v.offset, begin);
      v.bytes = all - v.offset;
      v.last = step();
      v.name += ", " + name;
    }
    split_at(begin);
    split_at(end);
    const auto first = arena_.lower_bound(begin), behind = arena_.lower_bound(end);
    arena_.erase(first, behind);
    if (bytes > 0) arena_.emplace(begin, Segment{end, value});
    return value;
  }

  // ---- Operands

  void reads(const Values& values, FlowStep* into) {
    for (size_t v : values) {
      out_.values[v].last = std::max(out_.values[v].last, into != nullptr ? step() : last_step());
      with_gaps_.erase(v);
      if (into != nullptr) into->reads.push_back(v);
    }
  }

  Values values_of(const Operand& o, size_t device) {
    switch (o.kind) {
      case Operand::kArena: {
        const int64_t begin = arena_begin_[device] + o.index;
        return values_in(begin, begin + o.bytes);
      }
      case Operand::kRegister:
        return registers_[static_cast<int32_t>(o.index)];
      case Operand::kPlace:
        return places_[o.index];
      case Operand::kOutput:
        return outputs_[o.index];
      default:
        return {};
    }
  }

  void read_operand(const Operand& o, size_t device, FlowStep* into) {
    if (o.kind == Operand::kConstant && into != nullptr)
      into->constants.push_back(static_cast<size_t>(o.index));
    reads(values_of(o, device), into);
  }

  void write_operand(const Operand& o, size_t device, FlowStep& into, int64_t bytes,
                     bool has_gaps) {
    size_t value = 0;
    switch (o.kind) {
      case Operand::kArena:
        value = write_arena(arena_begin_[device] + o.index, o.bytes, into.name, has_gaps);
        break;
      case Operand::kRegister:
        value = add(FlowValue::Home::open, into.name, step());
        registers_[static_cast<int32_t>(o.index)] = {value};
        break;
      case Operand::kPlace:
        value = add(FlowValue::Home::open, into.name, step());
        places_[o.index] = {value};
        break;
      case Operand::kOutput:
        value = add(FlowValue::Home::output, into.name, step());
        outputs_[o.index].insert(value);
        break;
      default:
        return;
    }
    if (o.kind != Operand::kArena) out_.values[value].bytes = std::max<int64_t>(bytes, 0);
    into.writes.push_back(value);
  }

  std::span<const Operand> operands_of(const Instruction& i) const {
    return std::span(f_.operands).subspan(static_cast<size_t>(i.b), i.count);
  }

  // ---- Instructions

  void read_instruction(const Instruction& i) {
    switch (i.op) {
      case Opcode::invoke_kernel:
        return call_kernel(i);
      case Opcode::copy:
      case Opcode::to_device:
      case Opcode::to_host:
        return copy(i);
      case Opcode::swap:
        return std::swap(registers_[i.dst], registers_[i.a]);
      default:
        break;
    }
    const OpcodeRow& row = runtime::opcode_row(i.op);
    Values read;
    auto take = [&](Role role, int32_t reg) {
      if (role != Role::reg && role != Role::last_reg && role != Role::moved_reg) return;
      const Values& v = registers_[reg];
      read.insert(v.begin(), v.end());
    };
    take(row.a, i.a);
    if (row.list == runtime::ListRole::none) take(row.b, i.b);
    if (row.list == runtime::ListRole::regs) {
      for (uint32_t n = 0; n < i.count; ++n) {
        const int32_t reg = f_.lists[static_cast<size_t>(i.b) + n];
        take(Role::reg, reg < 0 ? ~reg : reg);
      }
    }
    if (row.list == runtime::ListRole::operands) {
      const size_t device = row.sub == runtime::SubRole::device ? i.sub : 0;
      for (const Operand& o : operands_of(i)) {
        const Values v = values_of(o, o.kind == Operand::kArena ? device : 0);
        read.insert(v.begin(), v.end());
      }
    }
    reads(read, nullptr);
    if (row.dst != Role::new_reg) return;
    if (read.size() > kMostInRegister) read.clear();
    registers_[i.dst] = std::move(read);
  }

  void call_kernel(const Instruction& i) {
    const auto k = static_cast<size_t>(i.a);
    const runtime::KernelInfo& kernel = program_.kernels[k];
    const size_t call = calls_[k]++;
    FlowStep s;
    s.kernel = i.a;
    s.name = names_[k].size() == all_calls_[k] ? names_[k][call] : kernel.origin;
    if (s.name.empty()) s.name = kernel.name;
    const auto device = static_cast<size_t>(std::max(f_.device_index(kernel.device), 0));
    const std::span<const Operand> all = operands_of(i);
    const size_t buffers = kernel.buffer_bytes.size(), inputs = buffers - kernel.num_outputs;
    for (size_t n = 0; n < inputs; ++n) read_operand(all[n], device, &s);
    for (size_t n = inputs; n < buffers; ++n)
      write_operand(all[n], device, s, kernel.buffer_bytes[n], kernel.has_gaps);
    out_.steps.push_back(std::move(s));
  }

  void copy(const Instruction& i) {
    const std::span<const Operand> both = operands_of(i);
    const size_t device = i.sub;
    FlowStep s;
    const size_t from = i.op == Opcode::to_device ? 0 : device;
    const Values source = values_of(both[1], from);
    s.name = "copy of " + (source.empty() ? "a constant" : out_.values[*source.begin()].name);
    read_operand(both[1], from, &s);
    write_operand(both[0], i.op == Opcode::to_host ? 0 : device, s, 0, false);
    out_.steps.push_back(std::move(s));
  }

  std::vector<int32_t> targets_of(const Instruction& i) const {
    const OpcodeRow& row = runtime::opcode_row(i.op);
    std::vector<int32_t> out;
    if (row.b == Role::target) out.push_back(i.b);
    if (row.list == runtime::ListRole::targets) {
      for (uint32_t n = 0; n < i.count; ++n) out.push_back(f_.lists[static_cast<size_t>(i.b) + n]);
    }
    return out;
  }

  // What an iteration reads that was written before the loop.
  void extend_over(int32_t begin, int32_t end) {
    for (FlowValue& v : out_.values) {
      if (v.first < begin && v.last >= begin && v.last < end) v.last = end;
    }
  }

  void find_alive() {
    std::vector<Values> begin(out_.steps.size()), end(out_.steps.size());
    for (size_t v = 0; v < out_.values.size(); ++v) {
      const FlowValue& value = out_.values[v];
      if (value.home != FlowValue::Home::arena) continue;
      begin[static_cast<size_t>(value.first)].insert(v);
      end[static_cast<size_t>(value.last)].insert(v);
    }
    // By offset: a result may take the memory of an operand, and a part lies in a whole.
    std::set<std::pair<int64_t, size_t>> alive;
    for (size_t s = 0; s < out_.steps.size(); ++s) {
      for (size_t v : begin[s]) alive.emplace(out_.values[v].offset, v);
      int64_t bytes = 0, counted = 0;
      for (const auto& [offset, v] : alive) {
        const int64_t behind = offset + out_.values[v].bytes;
        bytes += std::max<int64_t>(behind - std::max(offset, counted), 0);
        counted = std::max(counted, behind);
      }
      out_.alive.push_back(bytes);
      for (size_t v : end[s]) alive.erase({out_.values[v].offset, v});
    }
  }

  const runtime::Program& program_;
  const runtime::Function& f_;
  const std::vector<std::vector<std::string>> names_;
  std::vector<size_t> calls_;
  std::unordered_map<size_t, size_t> all_calls_;
  ProgramFlow out_;
  std::vector<int64_t> arena_begin_;
  std::map<int64_t, Segment> arena_;
  Values with_gaps_;  // written in part, and not read yet
  std::unordered_map<int32_t, Values> registers_;
  std::unordered_map<int64_t, Values> places_, outputs_;
  std::vector<int32_t> steps_before_;  // each instruction
};

}  // namespace

size_t ProgramFlow::peak() const {
  return alive.empty() ? 0 : static_cast<size_t>(std::ranges::max_element(alive) - alive.begin());
}

ProgramFlow program_flow(const runtime::Program& program, size_t function,
                         std::string_view metadata) {
  return Reader(program, function, metadata).read();
}

}  // namespace relay
