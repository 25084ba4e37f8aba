#include "plan/verify.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "plan/outputs.h"
#include "plan/places.h"
#include "plan/step_table.h"
#include "plan/verify_devices.h"

namespace relay::plan {
namespace {

bool accepts(char letter, Place place) {
  switch (letter) {
    case 'o':
      return place == Place::object;
    case 's':
      return place == Place::scalar;
    case 'c':
      return place == Place::constant;
    case 'w':
      return place == Place::object || place == Place::arena || place == Place::output ||
             place == Place::open;
    case 'm':
      return place == Place::scalar || accepts('w', place);
    case 'p':
      return place == Place::open;
    default:
      return true;
  }
}

class Verifier {
 public:
  Verifier(const PlanProgram& program, const PlanFunction& f) : program_(program), f_(f) {}

  void run() {
    check_values();
    check_buffers();
    check_donations();
    allocated_.assign(f_.values.size(), false);
    for (now_ = 0; now_ < f_.steps.size(); ++now_) {
      const Step& s = f_.steps[now_];
      check_step(s);
      follow(s);
    }
    now_ = kNowhere;
    check(open_.empty(), "a part is not closed");
    check(!reachable_, "the function ends without leaving");
    for (const Donation& d : f_.donations) {
      if (d.in_place) check_written_over(d);
    }
    check_memory();
    check_places();
    check_registers();
  }

 private:
  static constexpr size_t kNowhere = static_cast<size_t>(-1);

  void check(bool holds, const std::string& what) const {
    if (holds) return;
    std::string where = "plan of " + f_.name;
    if (now_ != kNowhere) {
      const Step& s = f_.steps[now_];
      where += ", step " + std::to_string(now_) + " (" + step_row(s.kind).name + ")";
    }
    throw InternalError(where + ": " + what);
  }

  template <typename T>
  static bool within(int64_t index, const std::vector<T>& table) {
    return index >= 0 && static_cast<size_t>(index) < table.size();
  }

  // ---- Tables ----

  void check_values() {
    std::vector<bool> aliases(f_.values.size());
    for (const Step& s : f_.steps) {
      if (s.results.size() != 1 || !within(s.results[0], f_.values)) continue;
      if (s.kind == StepKind::alias || donation_of(s.results[0]) != nullptr) {
        aliases[static_cast<size_t>(s.results[0])] = true;
      }
    }
    const auto params = static_cast<int32_t>(f_.params.size());
    for (size_t i = 0; i < f_.values.size(); ++i) {
      const PlanValue& v = f_.values[i];
      switch (v.place) {
        case Place::object:
          check(v.index >= 0 && v.index < f_.num_objects, "an object register is out of range");
          check(aliases[i] || i < f_.params.size() || v.index >= params,
                "a parameter's register belongs to two values");
          break;
        case Place::scalar:
          check(v.index >= 0 && v.index < f_.num_scalars, "an integer register is out of range");
          break;
        case Place::arena:
          check(within(v.index, f_.buffers), "a buffer is out of range");
          break;
        case Place::constant:
          check(within(v.index, program_.constants), "a constant is out of range");
          break;
        case Place::output:
          check(within(v.index, f_.results), "an output is out of range");
          break;
        case Place::open:
          check(within(v.index, f_.places), "a place is out of range");
          break;
      }
    }
    check(f_.values.size() >= f_.params.size(), "a parameter has no value");
    for (size_t i = 0; i < f_.params.size(); ++i) {
      const PlanValue& v = f_.values[i];
      check(v.place == Place::object && static_cast<size_t>(v.index) == i,
            "a parameter is not in its register");
    }
  }

  void check_buffers() {
    for (size_t i = 0; i < f_.buffers.size(); ++i) {
      const PlanBuffer& b = f_.buffers[i];
      check(b.bytes >= 0 && b.position >= 0, "a buffer has no place in the arena");
      check(b.position + b.bytes <= arena_bytes(b.device), "a buffer is not inside the arena");
      if (b.whole < 0) {
        check(b.position % 64 == 0, "a buffer is not aligned");
        continue;
      }
      check(b.whole < static_cast<int64_t>(i), "a sub-buffer comes before its whole");
      const PlanBuffer& whole = f_.buffer(b.whole);
      check(b.offset >= 0 && b.offset + b.bytes <= whole.bytes,
            "a sub-buffer is not inside its whole");
      check(b.position == whole.position + b.offset, "a sub-buffer is elsewhere than in its whole");
      check(b.device == whole.device, "a sub-buffer is on another device than its whole");
    }
  }

  int64_t arena_bytes(Device device) const {
    if (device == Device::cpu()) return f_.arena_bytes;
    auto arena = std::ranges::find(f_.device_arenas, device, &DeviceArena::device);
    return arena == f_.device_arenas.end() ? 0 : arena->bytes;
  }

  // ---- One step ----

  void check_signature(const char* signature, const std::vector<ValueId>& values) {
    const char* at = signature;
    for (ValueId id : values) {
      check(within(id, f_.values), "a value is out of range");
      bool repeats = at[0] != 0 && at[1] == '*';
      // Of "so*" the last entry stands for the rest.
      check(at[0] != 0 && accepts(at[0], f_.value(id).place),
            "a value is not of the kind that the step takes or gives");
      if (!repeats) ++at;
    }
    check(at[0] == 0 || at[1] == '*', "the step lacks a value");
  }

  void check_step(const Step& s) {
    const StepRow& row = step_row(s.kind);
    check_signature(row.results, s.results);
    check_signature(row.operands, s.operands);
    switch (row.number) {
      case NumberRole::kernel:
        check(within(s.number, program_.kernels), "a kernel is out of range");
        check_kernel(s, program_.kernels[static_cast<size_t>(s.number)]);
        break;
      case NumberRole::function:
        check(within(s.number, program_.functions), "a function is out of range");
        check(std::ranges::none_of(program_.functions[static_cast<size_t>(s.number)].donations,
                                   &Donation::in_place),
              "the program calls a function that writes over its parameters");
        break;
      default:
        check(s.number >= 0 || row.number == NumberRole::number, "a number is negative");
        break;
    }
    const bool may_have_text = s.kind == StepKind::index || s.kind == StepKind::match;
    bool has_text = s.kind == StepKind::check || (may_have_text && s.text != -1);
    check(!has_text || within(s.text, program_.strings), "a message is out of range");
    check(s.kind != StepKind::check || s.operands.size() <= 3, "a message shows too many numbers");
    check(s.where < 0 || within(s.where, program_.strings), "a place is out of range");
    if (s.kind == StepKind::alloc) {
      check(is_static_tensor(f_.value(s.results[0]).type), "a tensor of unknown size is allocated");
    }
    if (s.kind == StepKind::alias) {
      const PlanValue &from = f_.value(s.operands[0]), &to = f_.value(s.results[0]);
      bool same = from.place == to.place && from.index == to.index;
      bool part = from.place == Place::arena && to.place == Place::arena &&
                  f_.buffer(to.index).whole == from.index;
      bool given = is_donated(f_, s.operands[0], s.results[0]);
      check(same || part || given, "a view is elsewhere than what it shows");
    }
    if (s.kind == StepKind::alloc_sized) allocated_[static_cast<size_t>(s.results[0])] = true;
    if (s.kind == StepKind::join) check_join(s);
    const std::string defect = devices_.defect(s);
    check(defect.empty(), defect);
  }

  void check_join(const Step& s) {
    auto memory = [&](ValueId id) {
      const PlanValue& v = f_.value(id);
      return v.place == Place::arena ? f_.memory_of(v.index).first : -1;
    };
    int32_t whole = memory(s.results[0]);
    for (ValueId part : s.operands) {
      check(whole >= 0 && memory(part) == whole, "a part is elsewhere than what it is part of");
    }
  }

  void check_kernel(const Step& s, const ProgramKernel& kernel) {
    const KernelSignature& k = kernel.signature;
    const size_t inputs = k.inputs.size();
    check(s.operands.size() == inputs + k.sizes.size() &&
              s.results.size() == k.results.size() + k.workspace.size(),
          "the kernel takes another number of values");
    for (size_t i = k.results.size(); i < s.results.size(); ++i) {
      const PlanValue& v = f_.value(s.results[i]);
      const ValueId id = s.results[i];
      bool own =
          v.place == Place::arena || v.place == Place::open ||
          (allocated_[static_cast<size_t>(id)] && v.life.last == static_cast<int32_t>(now_) &&
           std::ranges::count(s.results, id) == 1 &&
           std::ranges::find(s.operands, id) == s.operands.end());
      check(own, "working memory is not the function's own");
      check(v.device == k.device, "working memory is not on the device of the kernel");
      const int64_t bytes = k.workspace[i - k.results.size()].bytes;
      check(v.place != Place::arena || (bytes >= 0 && bytes <= f_.buffer(v.index).bytes),
            "working memory is smaller than the kernel takes it to be");
    }
    check(within(s.text, kernel.sites), "a kernel's site is out of range");
    for (size_t i = inputs; i < s.operands.size(); ++i) {
      check(f_.value(s.operands[i]).place == Place::scalar, "a size is not a scalar");
    }
    for (size_t i = 0; i < inputs + k.results.size(); ++i) {
      const KernelOperand& operand = i < inputs ? k.inputs[i] : k.results[i - inputs];
      const PlanValue& v = f_.value(i < inputs ? s.operands[i] : s.results[i - inputs]);
      bool gaps = !operand.within.empty();
      if (v.place == Place::scalar) {
        check(i < inputs || (operand.bytes >= 0 && operand.bytes <= 8),
              "a kernel writes more than a scalar to one");
        check(k.device == Device::cpu(), "a kernel of a device reads or writes a register");
        continue;
      }
      check(v.device == k.device, "a value is not on the device of the kernel");
      if (v.place != Place::arena) {
        check(!gaps, "the kernel takes a value to have gaps");
        continue;
      }
      const PlanBuffer& b = f_.buffer(v.index);
      check(b.within == operand.within, "the kernel takes a value to have other gaps");
      check(operand.bytes <= b.bytes, "a buffer is smaller than the kernel takes it to be");
    }
  }

  // ---- Registers ----

  // Follows which value each register holds, and again through the loop: what is there before it is
  // there in each iteration.
  void check_registers() {
    std::vector<ValueId> shown(f_.values.size());  // what an alias shows
    std::vector<ValueId> objects(static_cast<size_t>(f_.num_objects), -1);
    std::vector<ValueId> scalars(static_cast<size_t>(f_.num_scalars), -1);
    // Null for a value in no register, or in a parameter's, of which others see to it.
    auto held = [&](ValueId id) -> ValueId* {
      const PlanValue& v = f_.value(id);
      auto at = static_cast<size_t>(v.index);
      if (v.place == Place::scalar) return &scalars[at];
      return v.place == Place::object && at >= f_.params.size() ? &objects[at] : nullptr;
    };
    auto follow_from = [&](size_t begin) {
      for (now_ = begin; now_ < f_.steps.size(); ++now_) {
        const Step& s = f_.steps[now_];
        for (ValueId id : s.operands) {
          const ValueId* in = held(id);
          check(in == nullptr || *in == shown[static_cast<size_t>(id)],
                "a register is read that another value has taken");
        }
        if (step_row(s.kind).flow == StepFlow::open) continue;  // its parts give the results
        for (ValueId id : s.results) {
          ValueId* in = held(id);
          if (in == nullptr) continue;
          bool alias = s.kind == StepKind::alias;
          shown[static_cast<size_t>(id)] = alias ? shown[static_cast<size_t>(s.operands[0])] : id;
          for (ValueId from : s.operands) {
            check(alias || from == id || held(from) != in,
                  "a step writes the register of another value that it reads");
          }
          *in = shown[static_cast<size_t>(id)];
        }
      }
      now_ = kNowhere;
    };
    follow_from(0);
    auto loop = std::ranges::find(f_.steps, StepKind::loop, &Step::kind);
    if (loop != f_.steps.end()) follow_from(static_cast<size_t>(loop - f_.steps.begin()));
  }

  // ---- Places ----

  // Follows which value each place holds: that of the `place` step behind what was written last.
  void check_places() {
    std::vector<ValueId> made(f_.values.size(), -1), holds(f_.places.size(), -1);
    std::vector<size_t> written(f_.places.size(), kNowhere);  // the last step that writes the place
    auto is_open = [&](ValueId id) { return f_.value(id).place == Place::open; };
    auto root = [&](ValueId id) -> ValueId& { return made[static_cast<size_t>(id)]; };
    for (now_ = 0; now_ < f_.steps.size(); ++now_) {
      const Step& s = f_.steps[now_];
      bool writes =
          s.kind == StepKind::kernel || s.kind == StepKind::copy || s.kind == StepKind::transfer;
      for (size_t i = 0; i < s.operands.size(); ++i) {
        if (!is_open(s.operands[i])) continue;
        check(root(s.operands[i]) >= 0 && holds[place_of(s.operands[i])] == root(s.operands[i]),
              "a value is read whose place another has taken");
        for (size_t r = 0; writes && r < s.results.size(); ++r) {
          bool taken = is_open(s.results[r]) && place_of(s.results[r]) == place_of(s.operands[i]);
          check(!taken || may_write_over(s, r, i), "a kernel writes where it reads");
        }
      }
      for (ValueId id : s.results) {
        if (!is_open(id)) continue;
        const PlanValue& v = f_.value(id);
        if (s.kind == StepKind::place) {
          const OpenPlace& p = f_.places[place_of(id)];
          auto* type = as<TensorTypeNode>(v.type);
          check(type != nullptr && is_at_most(*type, *p.type.get()) &&
                    s.operands.size() == type->shape.size(),
                "a value may be larger than its place");
          root(id) = id;
        } else if (s.kind == StepKind::alias) {
          root(id) = root(s.operands[0]);
        } else if (writes) {
          check(root(id) >= 0, "a place is written that is not taken");
          check(std::exchange(written[place_of(id)], now_) != now_,
                "two results of a step are in one place");
          holds[place_of(id)] = root(id);
        }
      }
    }
    now_ = kNowhere;
  }

  size_t place_of(ValueId id) const { return static_cast<size_t>(f_.value(id).index); }

  // Whether a result of the step may take the memory of an operand; both by their index in the step.
  bool may_write_over(const Step& s, size_t result, size_t operand) const {
    if (s.kind != StepKind::kernel) return false;
    const KernelSignature& k = program_.kernels[static_cast<size_t>(s.number)].signature;
    // The others are working memory.
    return result < k.results.size() && k.may_overwrite({operand, result});
  }

  // ---- Donated parameters ----

  // The donation in place of the parameter in whose register the value is, other than it; or null.
  const Donation* donation_of(ValueId id) const {
    const PlanValue& v = f_.value(id);
    if (v.place != Place::object || static_cast<size_t>(id) < f_.params.size()) return nullptr;
    auto d = std::ranges::find_if(f_.donations, [&](const Donation& donation) {
      return donation.in_place && donation.param == v.index;
    });
    return d == f_.donations.end() ? nullptr : &*d;
  }

  void check_donations() {
    std::vector<bool> params(f_.params.size()), outputs(f_.results.size());
    for (const Donation& d : f_.donations) {
      check(within(d.param, f_.params) && within(d.output, f_.results),
            "a donation is out of range");
      auto p = static_cast<size_t>(d.param), o = static_cast<size_t>(d.output);
      check(!params[p] && !outputs[o], "something is donated twice");
      params[p] = outputs[o] = true;
    }
  }

  void check_written_over(const Donation& d) {
    // What may be in the memory of the parameter as it was.
    std::vector<bool> old(f_.values.size());
    old[static_cast<size_t>(d.param)] = true;
    bool written = false;
    for (now_ = 0; now_ < f_.steps.size(); ++now_) {
      const Step& s = f_.steps[now_];
      check(s.kind != StepKind::loop, "a parameter of a loop is written over");
      auto is_old = [&](ValueId id) { return old[static_cast<size_t>(id)]; };
      bool reads = std::ranges::any_of(s.operands, is_old);
      check(!(written && reads) || s.kind == StepKind::size,
            "a donated parameter is read after it is written over");
      bool writes = s.kind != StepKind::alias && std::ranges::any_of(s.results, [&](ValueId id) {
                      return donation_of(id) == &d;
                    });
      if (writes) {
        check(!written && open_at(now_) == 0, "a donated parameter is written over twice");
        check_in_place(s, is_old);
        written = true;
        continue;
      }
      bool computes =
          s.kind == StepKind::kernel || s.kind == StepKind::copy || s.kind == StepKind::update;
      if (!reads || computes) continue;
      for (ValueId id : s.results) {
        if (f_.value(id).place != Place::scalar) old[static_cast<size_t>(id)] = true;
      }
    }
    now_ = kNowhere;
  }

  // How many parts are open around a step.
  int open_at(size_t step) const {
    int open = 0;
    for (size_t s = 0; s < step; ++s) {
      StepFlow flow = step_row(f_.steps[s].kind).flow;
      open += flow == StepFlow::open ? 1 : flow == StepFlow::close ? -1 : 0;
    }
    return open;
  }

  template <class IsOld>
  void check_in_place(const Step& s, const IsOld& is_old) const {
    bool update = s.kind == StepKind::update;
    check(update || s.kind == StepKind::kernel, "something else than a kernel writes a parameter");
    check(update || program_.kernels[static_cast<size_t>(s.number)].signature.results.size() == 1,
          "a kernel with several results writes over a parameter");
    for (size_t i = 0; i < s.operands.size(); ++i) {
      const bool allowed = update ? i == 0 : may_write_over(s, 0, i);
      check(!is_old(s.operands[i]) || allowed,
            "a kernel writes over a parameter that it reads elsewhere");
    }
  }

  // ---- The ways through the function ----

  struct Open {
    const Step* step;
    size_t mark;   // of the trail, where it begins
    bool in_part;  // a match's parts begin with a clause
    bool has_else = false;
    bool falls_through = false;
  };

  void define(ValueId id) {
    const PlanValue& v = f_.value(id);
    if (v.place == Place::arena) {
      // What it lies in is written in part.
      for (int32_t b = v.index; b >= 0 && !is_set(written_, b); b = part_of(b)) set(written_, b);
      set(complete_, v.index);
    }
    if (v.place == Place::output) set(outputs_, v.index);
    set(defined_, id);
  }

  void set(std::vector<bool>& table, int32_t index) {
    auto at = static_cast<size_t>(index);
    if (table.size() <= at) table.resize(at + 1);
    if (table[at]) return;
    table[at] = true;
    trail_.push_back({&table, at});
  }

  static bool is_set(const std::vector<bool>& table, int32_t index) {
    auto at = static_cast<size_t>(index);
    return at < table.size() && table[at];
  }

  // The buffer that one is a part of; -1 for memory of its own, or taken from an operand.
  int32_t part_of(int32_t b) const { return f_.buffer(b).in_place ? -1 : f_.buffer(b).whole; }

  bool is_defined(ValueId id) const {
    const PlanValue& v = f_.value(id);
    if (v.place == Place::constant) return true;
    if (v.place == Place::output) return is_set(outputs_, v.index);
    if (v.place != Place::arena) return is_set(defined_, id);
    if (is_set(written_, v.index)) return true;
    for (int32_t b = v.index; b >= 0; b = part_of(b)) {
      if (is_set(complete_, b)) return true;
    }
    return false;
  }

  void undo(size_t mark) {
    for (; trail_.size() > mark; trail_.pop_back()) {
      (*trail_.back().first)[trail_.back().second] = false;
    }
  }

  void end_part(Open& open) {
    if (reachable_ && open.in_part) {
      for (ValueId id : open.step->results) {
        check(is_defined(id), "a branch does not give its value");
      }
      open.falls_through = true;
    }
    undo(open.mark);
  }

  void follow(const Step& s) {
    if (now_ == 0) {
      for (size_t i = 0; i < f_.params.size(); ++i) define(static_cast<ValueId>(i));
    }
    StepFlow flow = step_row(s.kind).flow;
    bool goes_on = flow == StepFlow::part || flow == StepFlow::close;
    check(reachable_ || goes_on, "nothing gets here");
    if (goes_on) {
      check(!open_.empty(), "no part is open");
      return follow_part(s);
    }
    bool in_match = !open_.empty() && !open_.back().in_part;
    check(!in_match, "a match goes on with a clause");
    for (ValueId id : s.operands) {
      check(is_defined(id), "%" + f_.value(id).name + " is used before it is defined");
    }
    switch (s.kind) {
      case StepKind::loop:
        check(!in_loop_ && open_.empty(), "a loop begins inside something");
        in_loop_ = true;
        break;
      case StepKind::next:
        check(in_loop_, "there is no loop to go on with");
        break;
      case StepKind::tag:
        check(!open_.empty() && open_.back().step->kind == StepKind::match,
              "a tag is asked for outside of a clause");
        break;
      case StepKind::return_outputs:
        for (size_t i = 0; i < f_.results.size(); ++i) {
          check(is_set(outputs_, static_cast<int32_t>(i)), "an output is not written");
        }
        break;
      default:
        break;
    }
    if (flow == StepFlow::open) {
      open_.push_back({&s, trail_.size(), s.kind == StepKind::if_});
      return;
    }
    for (ValueId id : s.results) define(id);
    if (flow == StepFlow::leave) reachable_ = false;
  }

  void follow_part(const Step& s) {
    Open& open = open_.back();
    bool is_if = open.step->kind == StepKind::if_;
    if (s.kind == StepKind::end) {
      check(!is_if || open.has_else, "an if has no else");
      end_part(open);
      reachable_ = open.falls_through;
      const Step* step = open.step;
      open_.pop_back();
      for (ValueId id : step->results) define(id);
      return;
    }
    check(is_if == (s.kind == StepKind::else_) && !(is_if && open.has_else),
          "a part of something else begins");
    end_part(open);
    open.in_part = open.has_else = true;
    reachable_ = true;
  }

  // ---- Memory ----

  void check_lives() {
    auto contains = [](const Lifetime& outer, const Lifetime& inner) {
      return inner.empty() || (outer.first <= inner.first && inner.last <= outer.last);
    };
    for (now_ = 0; now_ < f_.steps.size(); ++now_) {
      auto at = static_cast<int32_t>(now_);
      for (const auto* ids : {&f_.steps[now_].results, &f_.steps[now_].operands}) {
        for (ValueId id : *ids) {
          check(contains(f_.value(id).life, {at, at}), "a value is used outside of its lifetime");
        }
      }
    }
    now_ = kNowhere;
    for (const PlanValue& v : f_.values) {
      check(v.place != Place::arena || contains(f_.buffer(v.index).life, v.life),
            "a buffer lives shorter than a value in it");
    }
    for (const PlanBuffer& b : f_.buffers) {
      check(b.whole < 0 || contains(f_.buffer(b.whole).life, b.life),
            "a buffer lives shorter than one inside it");
    }
  }

  // Buffers with memory of their own that are alive at once lie apart.
  void check_overlaps() {
    struct Event {
      int64_t step;
      bool begins;
      size_t buffer;
    };
    std::vector<Event> events;
    for (size_t i = 0; i < f_.buffers.size(); ++i) {
      const PlanBuffer& b = f_.buffers[i];
      if (b.whole >= 0 || b.bytes == 0 || b.life.empty()) continue;
      events.push_back({b.life.first, true, i});
      events.push_back({int64_t{b.life.last} + 1, false, i});
    }
    // What ends before a step is gone when it begins.
    std::ranges::sort(events, [](const Event& a, const Event& b) {
      return std::tuple(a.step, a.begins, a.buffer) < std::tuple(b.step, b.begins, b.buffer);
    });
    std::map<std::pair<uint16_t, uint16_t>, std::map<int64_t, int64_t>>
        by_device;  // ends by beginnings
    for (const Event& e : events) {
      const PlanBuffer& b = f_.buffers[e.buffer];
      std::map<int64_t, int64_t>& alive = by_device[{b.device.type, b.device.id}];
      if (!e.begins) {
        alive.erase(b.position);
        continue;
      }
      auto next = alive.lower_bound(b.position);
      bool apart = (next == alive.end() || next->first >= b.position + b.bytes) &&
                   (next == alive.begin() || std::prev(next)->second <= b.position);
      now_ = static_cast<size_t>(b.life.first);
      check(apart, "buffers that are alive at once overlap");
      alive.emplace(b.position, b.position + b.bytes);
    }
    now_ = kNowhere;
  }

  // Values whose memory results take are read for the last time by the kernels that take it.
  void check_in_place() {
    // For each buffer the one whose content it is part of, and the one whose memory it is in.
    std::vector<int32_t> owner, root;
    std::map<int32_t, std::vector<int32_t>> takers;  // of a root's memory
    for (size_t i = 0; i < f_.buffers.size(); ++i) {
      const PlanBuffer& b = f_.buffers[i];
      auto self = static_cast<int32_t>(i);
      auto whole = static_cast<size_t>(b.whole);
      root.push_back(b.whole < 0 ? self : root[whole]);
      owner.push_back(b.whole < 0 || b.in_place ? self : owner[whole]);
      if (!b.in_place) continue;
      check(b.whole == root.back() && b.offset == 0 && b.bytes == f_.buffer(b.whole).bytes,
            "a result takes memory of another size");
      takers[b.whole].push_back(self);
    }
    for (auto& [memory, list] : takers) {
      std::ranges::sort(list, {}, [&](int32_t b) { return f_.buffer(b).life.first; });
      for (size_t i = 0; i < list.size(); ++i) {
        check(i == 0 || f_.buffer(list[i]).life.first != f_.buffer(list[i - 1]).life.first,
              "two results of a step take the same memory");
        check_taker(list[i], memory, root);
      }
    }
    for (const PlanValue& v : f_.values) {
      if (v.place != Place::arena || v.life.empty()) continue;
      auto buffer = static_cast<size_t>(v.index);
      auto list = takers.find(root[buffer]);
      if (list == takers.end()) continue;
      // The first to take the memory of what it is part of.
      const PlanBuffer& own = f_.buffer(owner[buffer]);
      int32_t since = own.in_place ? own.life.first : -1;
      auto next = std::ranges::upper_bound(list->second, since, {},
                                           [&](int32_t b) { return f_.buffer(b).life.first; });
      check(next == list->second.end() || v.life.last <= f_.buffer(*next).life.first,
            "%" + v.name + " is used after its memory was taken");
    }
  }

  void check_taker(int32_t taker, int32_t memory, const std::vector<int32_t>& root) {
    now_ = static_cast<size_t>(f_.buffer(taker).life.first);
    const Step& s = f_.steps[now_];
    const auto written = std::ranges::find_if(s.results, [&](ValueId id) {
      return f_.value(id).place == Place::arena && f_.value(id).index == taker;
    });
    check(s.kind == StepKind::kernel && written != s.results.end(),
          "memory is taken by what is not a kernel's result");
    const auto result = static_cast<size_t>(written - s.results.begin());
    for (size_t i = 0; i < s.operands.size(); ++i) {
      const PlanValue& v = f_.value(s.operands[i]);
      if (v.place != Place::arena || root[static_cast<size_t>(v.index)] != memory) continue;
      bool fits =
          f_.buffer(v.index).position == f_.buffer(taker).position && may_write_over(s, result, i);
      check(fits, "the kernel still reads the memory that its result takes");
    }
    now_ = kNowhere;
  }

  void check_memory() {
    check_lives();
    check_in_place();
    check_overlaps();
  }

  const PlanProgram& program_;
  const PlanFunction& f_;
  DeviceRules devices_{program_, f_};
  size_t now_ = kNowhere;
  std::vector<Open> open_;
  bool reachable_ = true;
  bool in_loop_ = false;
  std::vector<bool> allocated_;  // by steps so far, with sizes that a run tells
  // Values, buffers that are written in part or as a whole, and outputs; and what to undo of them
  // where a branch ends.
  std::vector<bool> defined_, written_, complete_, outputs_;
  std::vector<std::pair<std::vector<bool>*, size_t>> trail_;
};

}  // namespace

void verify(const PlanProgram& program) {
  for (const PlanFunction& f : program.functions) Verifier(program, f).run();
}

}  // namespace relay::plan
