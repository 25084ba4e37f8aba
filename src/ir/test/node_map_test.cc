#include "node/node_map.h"

#include <gtest/gtest.h>

#include "ir/type.h"

namespace relay {
namespace {

TEST(NodeMap, keeps_values_by_identity_as_it_grows) {
  std::vector<Dim> keys;
  NodeMap<size_t> map;
  EXPECT_EQ(map.find(dim(7).get()), nullptr);
  for (size_t i = 0; i < 10000; ++i) {
    keys.push_back(dim(1));  // equal as dimensions
    auto [value, fresh] = map.emplace(keys.back().get());
    EXPECT_TRUE(fresh);
    value = i;
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    ASSERT_NE(map.find(keys[i].get()), nullptr);
    EXPECT_EQ(*map.find(keys[i].get()), i);
    EXPECT_FALSE(map.emplace(keys[i].get()).second);
  }
  EXPECT_EQ(map.size(), keys.size());
  map.clear();
  EXPECT_FALSE(map.contains(keys[0].get()));
}

TEST(NodeMap, a_set_says_what_is_new) {
  Dim a = dim(1), b = dim(1);
  NodeSet set;
  EXPECT_TRUE(set.insert(a.get()));
  EXPECT_FALSE(set.insert(a.get()));
  EXPECT_FALSE(set.contains(b.get()));
}

}  // namespace
}  // namespace relay
