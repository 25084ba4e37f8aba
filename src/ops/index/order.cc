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
  Cell left("left", kIndex), right("right", kIndex), behind("behind", kIndex);
  auto merge = [&](const PrimExpr& begin, const PrimExpr& length) {
    return named("middle", min(begin + length, n), [&](const PrimExpr& middle) {
      return named("end", min(middle + length, n), [&](const PrimExpr& end) {
        Stmt step = each("k", end - begin, [&](const PrimExpr& k) {
          // Past the end of its run, a side repeats an entry, which is not taken.
          PrimExpr a = load(places, {min(left.get(), middle - 1)});
          PrimExpr b = load(places, {min(right.get(), n - 1)});
          return named("from_left", a, [&](const PrimExpr& from_left) {
            return named("from_right", b, [&](const PrimExpr& from_right) {
              PrimExpr takes_right =
                  logical_and(lt(right.get(), end),
                              logical_or(ge(left.get(), middle), ne(behind.get(), index(0))));
              // Neither side is more likely than the other: no branch.
              Stmt take =
                  named("taken", tir::cast(kIndex, takes_right), [&](const PrimExpr& taken) {
                    return seq({store(other, {begin + k},
                                      select(ne(taken, index(0)), from_right, from_left)),
                                right.set(right.get() + taken), left.set(left.get() + 1 - taken)});
                  });
              return seq({precedes(behind, from_right, from_left), take});
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
  return behind.in(left.in(right.in(seq({start, sort}))));
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

namespace {

// Beyond as many, the entries of the lanes no longer fit into registers.
constexpr int64_t kMostInLanes = 8;
// Measured on AVX-512: on longer lines most vectors hold nothing that comes before the k-th element, and passing over them is cheaper.
constexpr int64_t kLongestInLanes = 4096;

// The first `k` entries of each lane in order, in local buffers of k x lanes words. An entry is one word where keys have 32 bits, the
// key and below it the place, else a key and a place. No two entries are alike, and absent ones come last.
class FirstOfLanes {
 public:
  FirstOfLanes(DType key, int64_t k)
      : key_(key),
        word_(DType::UInt(64)),
        lanes_(key.bits == 32 ? 16 : 8),
        k_(k),
        words_(buffer("firsts", word_, {index(k * lanes_)}, Scope::Local)) {
    if (key.bits != 32) places_ = buffer("first_places", word_, {index(k * lanes_)}, Scope::Local);
  }

  int64_t lanes() const { return lanes_; }

  Stmt in(Stmt body) const {
    if (places_) body = allocate(places_, std::move(body));
    return allocate(words_, std::move(body));
  }

  Stmt clear() const {
    return each_lane([&](const PrimExpr& lane) {
      std::vector<Stmt> out;
      for (int64_t level = 0; level < k_; ++level) out.push_back(set(level, lane, absent()));
      return seq(std::move(out));
    });
  }

  // Offers each lane the element whose place is begin + lane; those before `from` are passed over.
  Stmt offer(const PrimExpr& begin, const PrimExpr& from,
             const std::function<PrimExpr(const PrimExpr& place)>& key_at) const {
    return each_lane([&](const PrimExpr& lane) {
      PrimExpr place = begin + lane, number = tir::cast(word_, place);
      PrimExpr key = tir::cast(word_, key_at(place));
      Entry entry = places_ ? Entry{key, number}
                            : Entry{bit_or(binary(BinaryOp::Shl, key, imm(word_, 32)), number), {}};
      if (from) entry = choose(ge(place, from), entry, absent());
      return sink(std::move(entry), 0, lane);
    });
  }

  // Takes the first entry of all lanes as entry `rank` of `kept`.
  Stmt take(const PrimExpr& rank, const Entries& kept) const {
    Cell word("word", word_), place("place", word_);
    auto least = [&](const Cell& cell, const std::function<PrimExpr(const PrimExpr&)>& value) {
      return seq({cell.set(imm(word_, -1)), each_lane([&](const PrimExpr& lane) {
                    return cell.set(min(cell.get(), value(lane)));
                  })});
    };
    std::vector<Stmt> steps{least(word, [&](const PrimExpr& lane) { return at(words_, 0, lane); })};
    if (places_) {
      steps.push_back(least(place, [&](const PrimExpr& lane) {
        return select(eq(at(words_, 0, lane), word.get()), at(places_, 0, lane), imm(word_, -1));
      }));
      steps.push_back(kept.put(rank, word.get(), tir::cast(kIndex, place.get())));
    } else {
      steps.push_back(kept.put(rank, tir::cast(key_, shift_right(word.get(), 32)),
                               tir::cast(kIndex, bit_and(word.get(), imm(word_, 0xFFFFFFFF)))));
    }
    steps.push_back(each_lane([&](const PrimExpr& lane) {
      PrimExpr is_taken =
          places_ ? eq(at(places_, 0, lane), place.get()) : eq(at(words_, 0, lane), word.get());
      return named(
          "taken", select(is_taken, imm(word_, 1), imm(word_, 0)), [&](const PrimExpr& taken) {
            std::vector<Stmt> out;
            for (int64_t level = 0; level < k_; ++level) {
              Entry next = level + 1 < k_ ? get(level + 1, lane) : absent();
              out.push_back(
                  set(level, lane, choose(ne(taken, imm(word_, 0)), next, get(level, lane))));
            }
            return seq(std::move(out));
          });
    }));
    return word.in(place.in(seq(std::move(steps))));
  }

 private:
  struct Entry {
    PrimExpr word, place;
  };

  Stmt each_lane(const std::function<Stmt(const PrimExpr& lane)>& body) const {
    return each("lane", index(lanes_), body, ForKind::Vectorized);
  }
  PrimExpr at(const Buffer& buffer, int64_t level, const PrimExpr& lane) const {
    return load(buffer, {lane + level * lanes_});
  }
  Entry get(int64_t level, const PrimExpr& lane) const {
    return {at(words_, level, lane), places_ ? at(places_, level, lane) : PrimExpr()};
  }
  Stmt set(int64_t level, const PrimExpr& lane, const Entry& entry) const {
    Stmt word = store(words_, {lane + level * lanes_}, entry.word);
    return places_ ? seq({word, store(places_, {lane + level * lanes_}, entry.place)}) : word;
  }
  Entry absent() const { return {imm(word_, -1), places_ ? imm(word_, -1) : PrimExpr()}; }
  Entry choose(const PrimExpr& condition, const Entry& a, const Entry& b) const {
    return {select(condition, a.word, b.word),
            places_ ? select(condition, a.place, b.place) : PrimExpr()};
  }

  // Puts the entry at its level; the last one of the lane falls out.
  Stmt sink(const Entry& entry, int64_t level, const PrimExpr& lane) const {
    if (level == k_) return seq({});
    return named("word", entry.word, [&](const PrimExpr& word) {
      return named("old", at(words_, level, lane), [&](const PrimExpr& old) {
        if (!places_) {
          return seq({set(level, lane, {min(word, old), {}}),
                      sink({max(word, old), {}}, level + 1, lane)});
        }
        return named("old_place", at(places_, level, lane), [&](const PrimExpr& old_place) {
          return named("place", entry.place, [&](const PrimExpr& place) {
            Entry mine{word, place}, theirs{old, old_place};
            PrimExpr first =
                logical_or(lt(word, old), logical_and(eq(word, old), lt(place, old_place)));
            return seq({set(level, lane, choose(first, mine, theirs)),
                        sink(choose(first, theirs, mine), level + 1, lane)});
          });
        });
      });
    });
  }

  DType key_, word_;
  int64_t lanes_, k_;
  Buffer words_, places_;
};

}  // namespace

bool selects_in_lanes(std::optional<int64_t> n, std::optional<int64_t> k) {
  return n && k && *k <= kMostInLanes && *n >= 2 * kSelectBlock && *n <= kLongestInLanes;
}

Stmt select_in_lanes(const Buffer& data, const LineIndex& at, int64_t n, int64_t k, bool ascending,
                     const Entries& kept) {
  FirstOfLanes firsts(kept.key_dtype(), k);
  auto key_at = [&](const PrimExpr& i) { return order_key(load(data, at(i)), ascending); };
  const int64_t lanes = firsts.lanes(), whole = n / lanes * lanes;
  std::vector<Stmt> steps{firsts.clear(), each("vector", index(n / lanes), [&](const PrimExpr& v) {
                            return firsts.offer(v * lanes, nullptr, key_at);
                          })};
  // The rest is the end of a vector that ends with the line.
  if (whole != n) steps.push_back(firsts.offer(index(n - lanes), index(whole), key_at));
  steps.push_back(
      each("rank", index(k), [&](const PrimExpr& rank) { return firsts.take(rank, kept); }));
  return firsts.in(seq(std::move(steps)));
}

}  // namespace relay::ops
