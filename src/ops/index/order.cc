#include "ops/index/order.h"

#include <algorithm>
#include <limits>

namespace relay::ops {

using namespace tir;  // NOLINT

namespace {

constexpr int64_t kDigitBits = 8;
constexpr int64_t kBuckets = int64_t{1} << kDigitBits;
// Up to as many entries as one vector operation may have lanes.
constexpr int64_t kFewEntries = 64;

PrimExpr bit_and(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitAnd, a, b); }
PrimExpr bit_or(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitOr, a, b); }
PrimExpr bit_xor(const PrimExpr& a, const PrimExpr& b) { return binary(BinaryOp::BitXor, a, b); }
PrimExpr shift_right(const PrimExpr& a, int64_t bits) {
  return binary(BinaryOp::Shr, a, imm(a->dtype.element(), bits));
}

DType same_lanes(DType element, const PrimExpr& e) { return element.with_lanes(e->dtype.lanes); }

// The greatest bit of a key dtype.
PrimExpr top_bit(DType key) {
  return imm(key, key.bits == 64 ? INT64_MIN : int64_t{1} << (key.bits - 1));
}

// Digit `shift` / 8 of a key as an index.
PrimExpr digit_of(const PrimExpr& key, int64_t shift) {
  PrimExpr moved = shift == 0 ? key : shift_right(key, shift);
  return tir::cast(kIndex, bit_and(moved, imm(key->dtype, kBuckets - 1)));
}

// Entries whose ranks are counted at once.
constexpr int64_t kRanked = 8;

// By how many entries come before each of them: no branches, and nothing to count buckets for. Those of a group are compared with
// entries before the group, in it and behind it, as entries of equal keys keep their order. Lanes behind the `n` entries are not used.
Stmt sort_few(const Entries& entries, const Entries& other, const PrimExpr& n, int64_t room) {
  Buffer rank = buffer("rank", kIndex, {index(room)}, Scope::Local);
  auto at = [&](const PrimExpr& i) { return load(rank, {i}); };
  auto in_lanes = [&](const PrimExpr& begin, const std::function<Stmt(const PrimExpr&)>& body) {
    return each(
        "lane", index(kRanked), [&](const PrimExpr& lane) { return body(begin + lane); },
        ForKind::Vectorized);
  };
  Stmt count =
      each("group", floor_div(n + (kRanked - 1), index(kRanked)), [&](const PrimExpr& group) {
        PrimExpr begin = group * kRanked, end = min(begin + kRanked, n);
        auto add = [&](const PrimExpr& from, const PrimExpr& to, Entries::Order order) {
          return each("j", to - from, [&](const PrimExpr& j) {
            return in_lanes(begin, [&](const PrimExpr& i) {
              PrimExpr before = entries.precedes(from + j, i, order);
              return store(rank, {i}, at(i) + tir::cast(kIndex, before));
            });
          });
        };
        Stmt clear = in_lanes(begin, [&](const PrimExpr& i) { return store(rank, {i}, index(0)); });
        if (entries.packed()) return seq({clear, add(index(0), n, Entries::Order::Any)});
        return seq({clear, add(index(0), begin, Entries::Order::First),
                    add(begin, end, Entries::Order::Any), add(end, n, Entries::Order::Second)});
      });
  Stmt move = each("i", n, [&](const PrimExpr& i) { return other.take(at(i), entries, i); });
  Stmt back = each("i", n, [&](const PrimExpr& i) { return entries.take(i, other, i); });
  return allocate(rank, seq({count, move, back}));
}

class RadixSort {
 public:
  RadixSort(PrimExpr n, DType key, int64_t parts) : n_(std::move(n)), key_(key), parts_(parts) {}

  Stmt run(const Entries& entries, const Entries& other) {
    Cell least("least", key_), greatest("greatest", key_);
    PrimExpr varies = bit_xor(least.get(), greatest.get());
    std::vector<Stmt> passes{find_range(entries, least, greatest)};
    for (int64_t shift = 0; shift < key_.bits; shift += 2 * kDigitBits) {
      // Two passes at a time, so that the entries end where they began. All keys are alike above
      // the first bit in which the least and the greatest differ.
      PrimExpr above = shift == 0 ? varies : shift_right(varies, shift);
      passes.push_back(
          if_(ne(above, imm(key_, 0)),
              seq({pass(entries, other, shift), pass(other, entries, shift + kDigitBits)})));
    }
    return if_(gt(n_, index(0)), allocate(counts_, least.in(greatest.in(seq(std::move(passes))))));
  }

 private:
  Stmt find_range(const Entries& entries, const Cell& least, const Cell& greatest) {
    return named("first", entries.key(index(0)), [&](const PrimExpr& first) {
      return seq(
          {least.set(first), greatest.set(first), each_in_lanes("i", n_, [&](const PrimExpr& i) {
             return seq({least.set(min(least.get(), entries.key(i))),
                         greatest.set(max(greatest.get(), entries.key(i)))});
           })});
    });
  }

  // Runs the body for each entry of each part, after `before` for the part.
  Stmt each_part(const std::function<Stmt(const PrimExpr& part)>& before,
                 const std::function<Stmt(const PrimExpr& part, const PrimExpr& i)>& body) {
    if (parts_ == 1) {
      Stmt loop = each("i", n_, [&](const PrimExpr& i) { return body(index(0), i); });
      Stmt first = before(index(0));
      return first ? seq({first, loop}) : loop;
    }
    PrimExpr size = floor_div(n_ + (parts_ - 1), index(parts_));
    return each(
        "part", index(parts_),
        [&](const PrimExpr& part) {
          PrimExpr count = max(min(size, n_ - part * size), index(0));
          Stmt loop =
              each("k", count, [&](const PrimExpr& k) { return body(part, part * size + k); });
          Stmt first = before(part);
          return first ? seq({first, loop}) : loop;
        },
        ForKind::Parallel);
  }

  Stmt pass(const Entries& from, const Entries& to, int64_t shift) {
    auto count_of = [&](const PrimExpr& part, const PrimExpr& bucket) {
      return Indices{part, bucket};
    };
    Stmt count = each_part(
        [&](const PrimExpr& part) {
          return each_in_lanes("b", index(kBuckets), [&](const PrimExpr& b) {
            return store(counts_, count_of(part, b), index(0));
          });
        },
        [&](const PrimExpr& part, const PrimExpr& i) {
          return named("digit", digit_of(from.key(i), shift), [&](const PrimExpr& digit) {
            Indices at = count_of(part, digit);
            return store(counts_, at, load(counts_, at) + 1);
          });
        });
    // Where the entries of each part and digit go.
    Cell total("total", kIndex);
    Stmt places = total.in(
        seq({total.set(index(0)), each("b", index(kBuckets), [&](const PrimExpr& b) {
               return each("part", index(parts_), [&](const PrimExpr& part) {
                 Indices at = count_of(part, b);
                 return named("count", load(counts_, at), [&](const PrimExpr& count) {
                   return seq({store(counts_, at, total.get()), total.set(total.get() + count)});
                 });
               });
             })}));
    Stmt move = each_part([](const PrimExpr&) { return Stmt(); },
                          [&](const PrimExpr& part, const PrimExpr& i) {
                            Indices at = count_of(part, digit_of(from.key(i), shift));
                            return named("to", load(counts_, at), [&](const PrimExpr& place) {
                              return seq({to.take(place, from, i), store(counts_, at, place + 1)});
                            });
                          });
    return seq({count, places, move});
  }

  PrimExpr n_;
  DType key_;
  int64_t parts_;
  Buffer counts_ = buffer("counts", kIndex, {index(parts_), index(kBuckets)});
};

}  // namespace

DType order_key_dtype(DType data) { return DType::UInt(working_dtype(data).bits == 64 ? 64 : 32); }

PrimExpr order_key(const PrimExpr& value, bool ascending) {
  DType data = working_dtype(value->dtype.element());
  DType key = order_key_dtype(data);
  PrimExpr v = tir::cast(same_lanes(data, value), value);
  PrimExpr top = top_bit(key), all = imm(key, -1), out;
  if (!data.is_floating()) {
    out = tir::cast(same_lanes(key, v), v);
    if (!data.is_uint()) out = bit_xor(out, top);
    return ascending ? out : bit_xor(out, all);
  }
  // In whole numbers alone: a comparison of floats may take a denormal for zero. The zeros become
  // one, and the bits of a negative number grow with its size.
  PrimExpr given = tir::call("bitcast", same_lanes(key, v), {v});
  PrimExpr bits = select(eq(given, top), imm(key, 0), given);
  PrimExpr negative = imm(key, 0) - shift_right(bits, key.bits - 1);
  PrimExpr mask = bit_or(negative, top);
  out = bit_xor(bits, ascending ? mask : bit_xor(mask, all));
  PrimExpr infinity = imm(key, key.bits == 64 ? 0x7FF0000000000000 : 0x7F800000);
  return select(gt(bit_and(bits, bit_xor(top, all)), infinity), all, out);
}

Entries::Entries(const std::string& name, DType key, const PrimExpr& size, const PrimExpr& places)
    : key_(key) {
  auto known = as_int(places);
  bool fit = key.bits == 32 && known && *known <= int64_t{1} << 32;
  // Whole groups of what sort_few compares.
  auto room = as_int(size);
  const bool few = room && *room <= kFewEntries;
  PrimExpr whole = few ? index((*room + kRanked - 1) / kRanked * kRanked) : size;
  keys_ = buffer(name, fit ? DType::UInt(64) : key, {whole});
  if (!fit) places_ = buffer(name + "_places", kIndex, {whole});
}

Stmt Entries::in(Stmt body) const {
  if (!packed()) body = allocate(places_, std::move(body));
  return allocate(keys_, std::move(body));
}

Stmt Entries::put(const PrimExpr& at, const PrimExpr& key, const PrimExpr& place) const {
  if (!packed()) return seq({store(keys_, {at}, key), store(places_, {at}, place)});
  DType word = DType::UInt(64);
  PrimExpr high = binary(BinaryOp::Shl, tir::cast(word, key), imm(word, 32));
  return store(keys_, {at}, bit_or(high, tir::cast(word, place)));
}

Stmt Entries::take(const PrimExpr& at, const Entries& other, const PrimExpr& from) const {
  Stmt key = store(keys_, {at}, load(other.keys_, {from}));
  return packed() ? key : seq({key, store(places_, {at}, load(other.places_, {from}))});
}

PrimExpr Entries::key(const PrimExpr& at) const {
  PrimExpr word = load(keys_, {at});
  return packed() ? tir::cast(same_lanes(key_, word), shift_right(word, 32)) : word;
}

PrimExpr Entries::precedes(const PrimExpr& a, const PrimExpr& b, Order order) const {
  PrimExpr first = load(keys_, {a}), second = load(keys_, {b});
  if (packed() || order == Order::Second) return lt(first, second);
  if (order == Order::First) return le(first, second);
  return logical_or(lt(first, second), logical_and(eq(first, second), lt(a, b)));
}

PrimExpr Entries::place(const PrimExpr& at) const {
  if (!packed()) return load(places_, {at});
  return tir::cast(kIndex, bit_and(load(keys_, {at}), imm(DType::UInt(64), 0xFFFFFFFF)));
}

Stmt sort_entries(const Entries& entries, const Entries& other, const PrimExpr& n, int64_t parts) {
  auto room = as_int(entries.size());
  if (room && *room <= kFewEntries) return sort_few(entries, other, n, *room);
  return RadixSort(n, entries.key_dtype(), parts).run(entries, other);
}

namespace {

// Entries of which one key is kept: about the root of some thousands of them.
constexpr int64_t kQueueBlock = 64;
constexpr DType kNumber = DType::Int(32);

}  // namespace

EntryQueue::EntryQueue(const Entries& entries, const PrimExpr& n, const PrimExpr& room)
    : entries_(entries),
      n_(n),
      keys_(buffer("keys", entries.key_dtype(), {room})),
      least_(buffer("least", entries.key_dtype(),
                    {floor_div(room + (kQueueBlock - 1), index(kQueueBlock))})),
      key_("key", entries.key_dtype()),
      block_("block", kNumber),
      at_("at", kNumber) {}

Stmt EntryQueue::in(Stmt body) const {
  return allocate(keys_, allocate(least_, key_.in(block_.in(at_.in(std::move(body))))));
}

PrimExpr EntryQueue::blocks() const {
  return floor_div(n_ + (kQueueBlock - 1), index(kQueueBlock));
}

PrimExpr EntryQueue::size_of(const PrimExpr& block) const {
  return min(n_ - block * kQueueBlock, index(kQueueBlock));
}

Stmt EntryQueue::refresh(const PrimExpr& block) const {
  Stmt look = each_in_lanes("i", size_of(block), [&](const PrimExpr& i) {
    return key_.set(min(key_.get(), load(keys_, {block * kQueueBlock + i})));
  });
  return seq({key_.set(imm(entries_.key_dtype(), -1)), look, store(least_, {block}, key_.get())});
}

Stmt EntryQueue::fill() const {
  Stmt keys =
      each_in_lanes("i", n_, [&](const PrimExpr& i) { return store(keys_, {i}, entries_.key(i)); });
  return seq(
      {keys, each("block", blocks(), [&](const PrimExpr& block) { return refresh(block); })});
}

Stmt EntryQueue::take(const std::function<Stmt(const PrimExpr& place)>& body) const {
  const PrimExpr none = imm(kNumber, std::numeric_limits<int32_t>::max());
  // The first of `count` keys from `begin` on that is the one in the cell.
  auto find = [&](const Cell& found, const Buffer& keys, const PrimExpr& begin,
                  const PrimExpr& count) {
    Stmt look = each_in_lanes("i", count, [&](const PrimExpr& i) {
      PrimExpr is = eq(load(keys, {begin + i}), key_.get());
      return found.set(min(found.get(), select(is, tir::cast(kNumber, i), none)));
    });
    return seq({found.set(none), look});
  };
  Stmt least = each_in_lanes("block", blocks(), [&](const PrimExpr& block) {
    return key_.set(min(key_.get(), load(least_, {block})));
  });
  Stmt remove = named("block", tir::cast(kIndex, block_.get()), [&](const PrimExpr& block) {
    PrimExpr begin = block * kQueueBlock;
    Stmt entry = named("entry", begin + tir::cast(kIndex, at_.get()), [&](const PrimExpr& entry) {
      return seq({store(keys_, {entry}, imm(entries_.key_dtype(), -1)), refresh(block),
                  named("place", entries_.place(entry), body)});
    });
    return seq({find(at_, keys_, begin, size_of(block)), entry});
  });
  return seq({key_.set(imm(entries_.key_dtype(), -1)), least,
              find(block_, least_, index(0), blocks()), remove});
}

Stmt sort_places(const Buffer& places, const Buffer& other, const PrimExpr& n,
                 const Precedes& precedes) {
  // Runs double in length in each round.
  int64_t rounds = 48;
  if (auto size = as_int(n)) {
    for (rounds = 0; (int64_t{1} << rounds) < *size;) ++rounds;
  }
  Cell left("left", kIndex), right("right", kIndex);
  auto merge = [&](const PrimExpr& begin, const PrimExpr& length) {
    return named("middle", min(begin + length, n), [&](const PrimExpr& middle) {
      return named("end", min(middle + length, n), [&](const PrimExpr& end) {
        Stmt step = each("k", end - begin, [&](const PrimExpr& k) {
          // Past the end of its run, a side repeats an entry, which is not taken.
          PrimExpr a = load(places, {min(left.get(), middle - 1)});
          PrimExpr b = load(places, {min(right.get(), n - 1)});
          return named("from_left", a, [&](const PrimExpr& from_left) {
            return named("from_right", b, [&](const PrimExpr& from_right) {
              PrimExpr behind = precedes(from_right, from_left);
              PrimExpr takes_right =
                  logical_and(lt(right.get(), end), logical_or(ge(left.get(), middle), behind));
              return if_(takes_right,
                         seq({store(other, {begin + k}, from_right), right.set(right.get() + 1)}),
                         seq({store(other, {begin + k}, from_left), left.set(left.get() + 1)}));
            });
          });
        });
        return seq({left.set(begin), right.set(middle), step});
      });
    });
  };
  Stmt start = each_in_lanes("i", n, [&](const PrimExpr& i) { return store(places, {i}, i); });
  Stmt sort = each("round", index(rounds), [&](const PrimExpr& round) {
    return named("length", binary(BinaryOp::Shl, index(1), round), [&](const PrimExpr& length) {
      PrimExpr pairs = binary(BinaryOp::Shr, n + length * 2 - 1, round + 1);
      Stmt pass = each("pair", pairs,
                       [&](const PrimExpr& pair) { return merge(length * 2 * pair, length); });
      Stmt back = each_in_lanes(
          "i", n, [&](const PrimExpr& i) { return store(places, {i}, load(other, {i})); });
      return if_(lt(length, n), seq({pass, back}));
    });
  });
  return left.in(right.in(seq({start, sort})));
}

namespace {

// Elements that are compared at once with the last of those that are kept.
constexpr int64_t kSelectBlock = 16;

}  // namespace

// The more room, the less often it is sorted; beyond this many entries it no longer fits into L1.
constexpr int64_t kRoomyEntries = 1024;

int64_t select_room(int64_t k) {
  // Few are sorted again soon, so that little passes the last of them; sorting takes the square of their number.
  if (k <= kFewEntries / 2) {
    const int64_t room = k + std::max<int64_t>(k / 2, 3) + kSelectBlock + 1;
    return std::min((room + kRanked - 1) / kRanked * kRanked, kFewEntries);
  }
  return (k <= kRoomyEntries ? 4 : 2) * k + kSelectBlock;
}

Stmt select_first(const Buffer& data, const LineIndex& at, const PrimExpr& n, int64_t k,
                  bool ascending, const Entries& kept, const Entries& other) {
  const int64_t block = kSelectBlock, most = select_room(k) - block - 1;
  auto key_at = [&](const PrimExpr& i) { return order_key(load(data, at(i)), ascending); };
  // Of those seen: how many are kept, whether that many are sorted, and then the key of the k-th.
  Cell count("count", kIndex), full("full", DType::Bool()), last("last", kept.key_dtype());
  Cell some("some", DType::Bool());
  // An element that does not come before the last is written over by the next.
  auto offer = [&](const PrimExpr& i) {
    return named("key", key_at(i), [&](const PrimExpr& mine) {
      PrimExpr belongs = logical_or(lt(mine, last.get()), logical_not(full.get()));
      return seq(
          {kept.put(count.get(), mine, i), count.set(count.get() + tir::cast(kIndex, belongs))});
    });
  };
  Stmt cut = seq({sort_entries(kept, other, count.get(), 1), count.set(index(k)),
                  last.set(kept.key(index(k - 1))), full.set(boolean(true))});
  PrimExpr blocks = floor_div(n + (block - 1), index(block));
  Stmt scan = each("block", blocks, [&](const PrimExpr& number) {
    return named("begin", number * block, [&](const PrimExpr& begin) {
      return named("at_end", eq(number, blocks - 1), [&](const PrimExpr& at_end) {
        Stmt test = each(
            "lane", index(block),
            [&](const PrimExpr& lane) {
              return some.set(logical_or(some.get(), lt(key_at(begin + lane), last.get())));
            },
            ForKind::Vectorized);
        Stmt take = seq({each("lane", min(index(block), n - begin),
                              [&](const PrimExpr& lane) { return offer(begin + lane); }),
                         if_(logical_or(at_end, gt(count.get(), index(most))), cut)});
        return seq({some.set(logical_or(at_end, logical_not(full.get()))),
                    if_(logical_not(some.get()), test), if_(some.get(), take)});
      });
    });
  });
  Stmt start =
      seq({count.set(index(0)), full.set(boolean(false)), last.set(imm(kept.key_dtype(), 0))});
  return count.in(full.in(last.in(some.in(seq({start, scan})))));
}

}  // namespace relay::ops
