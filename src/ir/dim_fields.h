// Fields of attributes that say sizes: `newshape=[n, 12, 64]`, `stop=n + 1`.
//
// A size is a constant or an expression over named dimensions, never `?`. Sizes are sub-nodes of the
// attributes, so that equality, hashes, walks and rewriting see them. A constant may be below zero
// where the operator gives that a meaning (a code of reshape, a position from the end). What has a
// name is 0 or more, whatever its names stand for.
#pragma once

#include <optional>
#include <vector>

#include "ir/type.h"

namespace relay {

struct Dims : std::vector<Dim> {
  using vector::vector;
};
// Such as begin and end for each axis.
using DimLists = std::vector<Dims>;
// A size where a float or None may stand too.
struct DimOrNumber {
  AttrValue value;
};

// An integer or a node, and back; false for other values and for `?`.
AttrValue to_value(const Dim& size);
AttrValue to_value(const Dims& sizes);
bool from_value(const AttrValue& value, Dim& size);
bool from_value(const AttrValue& value, Dims& sizes);

template <>
struct FieldTraits<Dims> {
  static const FieldOps ops;
};
template <>
struct FieldTraits<std::optional<Dims>> {
  static const FieldOps ops;
};
template <>
struct FieldTraits<DimLists> {
  static const FieldOps ops;
};
template <>
struct FieldTraits<DimOrNumber> {
  static const FieldOps ops;
};
// Lists of sizes as an AttrValue, for attributes that are made at run time; the second may be None.
extern const FieldOps kDimsValue, kOptionalDimsValue;

// `NodeInfo::rebuilt` of attributes: throws UserError E0801 when a size that had a name is now below
// zero.
void check_known_sizes(Node& now, const Node& before);

}  // namespace relay
