#include "hostcode/counts.h"

#include <algorithm>
#include <unordered_map>

#include "base/diagnostic.h"

namespace relay::hostcode {
namespace {

class Words {
 public:
  explicit Words(size_t count) : bits_((count + 63) / 64) {}

  bool has(LocalId id) const { return (bits_[at(id)] >> (id & 63) & 1) != 0; }
  void add(LocalId id) { bits_[at(id)] |= uint64_t{1} << (id & 63); }
  void remove(LocalId id) { bits_[at(id)] &= ~(uint64_t{1} << (id & 63)); }
  // Whether it gained any.
  bool add(const Words& other) {
    bool changed = false;
    for (size_t i = 0; i < bits_.size(); ++i) {
      const uint64_t before = std::exchange(bits_[i], bits_[i] | other.bits_[i]);
      changed |= bits_[i] != before;
    }
    return changed;
  }
  template <typename F>
  void each(F&& f) const {
    for (size_t i = 0; i < bits_.size(); ++i) {
      for (uint64_t rest = bits_[i]; rest != 0; rest &= rest - 1) {
        f(static_cast<LocalId>(i * 64) + __builtin_ctzll(rest));
      }
    }
  }

 private:
  static size_t at(LocalId id) { return static_cast<size_t>(id) / 64; }
  std::vector<uint64_t> bits_;
};

class Counter {
 public:
  explicit Counter(Function& f) : f_(f) {}

  void run() {
    find_live();
    for (size_t b = 0; b < live_in_.size(); ++b) count_block(b);
    split_edges();
  }

 private:
  Words no_words() const { return Words(f_.locals.size()); }

  Words live_out(const Block& block) const {
    Words out = no_words();
    for (BlockId t : block.insts.back().targets) out.add(live_in_[static_cast<size_t>(t)]);
    return out;
  }

  void find_live() {
    live_in_.assign(f_.blocks.size(), no_words());
    std::vector<std::vector<size_t>> before(f_.blocks.size());
    std::vector<size_t> open;
    for (size_t b = 0; b < f_.blocks.size(); ++b) {
      for (BlockId t : f_.blocks[b].insts.back().targets) {
        before[static_cast<size_t>(t)].push_back(b);
      }
      open.push_back(b);
    }
    std::vector<bool> is_open(f_.blocks.size(), true);
    while (!open.empty()) {
      const size_t b = open.back();
      open.pop_back();
      is_open[b] = false;
      Words live = live_out(f_.blocks[b]);
      const auto& insts = f_.blocks[b].insts;
      for (auto inst = insts.rbegin(); inst != insts.rend(); ++inst) {
        if (inst->result >= 0) live.remove(inst->result);
        for (LocalId id : inst->operands) {
          if (f_.is_counted(id)) live.add(id);
        }
      }
      if (!live_in_[b].add(live)) continue;
      for (size_t p : before[b]) {
        if (!is_open[p]) open.push_back(p);
        is_open[p] = true;
      }
    }
  }

  static Inst count(Op op, LocalId id) {
    Inst out;
    out.op = op;
    out.operands = {id};
    return out;
  }

  // The instructions are written in reverse.
  void count_block(size_t b) {
    Words live = live_out(f_.blocks[b]);
    std::vector<Inst> insts = std::move(f_.blocks[b].insts);
    std::vector<Inst> out;
    reads_.clear();
    for (auto inst = insts.rbegin(); inst != insts.rend(); ++inst) {
      count_inst(std::move(*inst), live, out);
    }
    std::ranges::reverse(out);
    f_.blocks[b].insts = std::move(out);
  }

  void count_inst(Inst inst, Words& live, std::vector<Inst>& out) {
    if (inst.result >= 0 && f_.is_counted(inst.result)) {
      if (!live.has(inst.result)) out.push_back(count(Op::release, inst.result));
      live.remove(inst.result);
      reads_.erase(inst.result);
    }
    if (inst.op == Op::enter) {
      for (size_t i = 0; i < f_.signature.params.size(); ++i) {
        const auto param = static_cast<LocalId>(i);
        if (!f_.is_counted(param)) continue;
        inst.cleanup.push_back(param);
        if (!live.has(param)) out.push_back(count(Op::release, param));
      }
      out.push_back(std::move(inst));
      return;
    }
    find_moves(inst, live);
    std::vector<LocalId> read, dying, retained;
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      const LocalId id = inst.operands[i];
      if (f_.is_counted(id) && !takes_over(inst, i)) read.push_back(id);
    }
    for (LocalId id : read) {
      if (live.has(id) || std::ranges::find(dying, id) != dying.end()) continue;
      dying.push_back(id);
      // Behind an end there is nothing: the one that reads a word, no_match, releases it as it fails.
      if (!op_row(inst.op).ends) out.push_back(count(Op::release, id));
    }
    std::vector<LocalId> taken;
    for (size_t i = 0; i < inst.operands.size(); ++i) {
      const LocalId id = inst.operands[i];
      if (!f_.is_counted(id) || !takes_over(inst, i)) continue;
      const bool stays = live.has(id) || std::ranges::find(read, id) != read.end() ||
                         std::ranges::find(taken, id) != taken.end();
      if (stays) retained.push_back(id);
      taken.push_back(id);
    }
    if (may_fail(inst)) {
      live.each([&](LocalId id) { inst.cleanup.push_back(id); });
      inst.cleanup.insert(inst.cleanup.end(), dying.begin(), dying.end());
    }
    for (LocalId id : read) live.add(id);
    for (LocalId id : taken) live.add(id);
    out.push_back(std::move(inst));
    for (LocalId id : retained) out.push_back(count(Op::retain, id));
  }

  // Decides whether a word that is read for the last time is given up.
  void find_moves(Inst& inst, const Words& live) {
    if (inst.op == Op::invoke) {
      const LocalId closure = inst.operands[0];
      const bool again = std::ranges::count(inst.operands, closure) > 1;
      inst.moves = f_.is_counted(closure) && !live.has(closure) && !again;
    }
    const bool reads = inst.op == Op::field && f_.is_counted(inst.operands[0]);
    for (LocalId id : inst.operands) {
      if (!reads) reads_.erase(id);
    }
    if (!reads) return;
    const LocalId cell = inst.operands[0];
    if (!live.has(cell)) reads_[cell] = {};
    auto known = reads_.find(cell);
    if (known == reads_.end()) return;
    inst.moves = std::ranges::find(known->second, inst.number) == known->second.end();
    known->second.push_back(inst.number);
  }

  // A word that only one of a branch's ways needs is released at the start of the other.
  void split_edges() {
    const size_t count = f_.blocks.size();
    for (size_t b = 0; b < count; ++b) {
      const Words out = live_out(f_.blocks[b]);
      if (f_.blocks[b].insts.back().targets.size() < 2) continue;
      for (size_t t = 0; t < f_.blocks[b].insts.back().targets.size(); ++t) {
        const BlockId target = f_.blocks[b].insts.back().targets[t];
        Block edge;
        out.each([&](LocalId id) {
          if (live_in_[static_cast<size_t>(target)].has(id)) return;
          edge.insts.push_back(Counter::count(Op::release, id));
        });
        if (edge.insts.empty()) continue;
        edge.insts.emplace_back();
        edge.insts.back().op = Op::jump;
        edge.insts.back().targets = {target};
        f_.blocks[b].insts.back().targets[t] = static_cast<BlockId>(f_.blocks.size());
        f_.blocks.push_back(std::move(edge));
      }
    }
  }

  Function& f_;
  std::vector<Words> live_in_;  // counted words only
  // Of cells that die in the block behind the reads of these fields.
  std::unordered_map<LocalId, std::vector<int64_t>> reads_;
};

}  // namespace

void insert_counts(Function& function) { Counter(function).run(); }

}  // namespace relay::hostcode
