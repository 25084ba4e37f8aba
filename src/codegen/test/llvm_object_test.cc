#include "codegen/llvm/llvm_object.h"

#include <gtest/gtest.h>

#include <optional>
#include <stdexcept>

namespace relay::codegen {
namespace {

struct Counted {
  explicit Counted(int& destroyed) : destroyed_(destroyed) {}
  ~Counted() { ++destroyed_; }
  int& destroyed_;
};

TEST(LlvmObject, is_destroyed_at_the_end_of_its_scope) {
  int destroyed = 0;
  { LlvmObject<Counted> object(destroyed); }
  EXPECT_EQ(destroyed, 1);
}

TEST(LlvmObject, is_leaked_where_an_exception_leaves_it) {
  int destroyed = 0;
  auto fails = [&] {
    LlvmObject<Counted> object(destroyed);
    throw std::runtime_error("no memory");
  };
  EXPECT_THROW(fails(), std::runtime_error);
  EXPECT_EQ(destroyed, 0);
}

TEST(LlvmObject, is_destroyed_in_a_catch_block) {
  int destroyed = 0;
  std::optional<LlvmObject<Counted>> object(std::in_place, destroyed);
  try {
    throw std::runtime_error("cancelled");
  } catch (const std::runtime_error&) {
    object.reset();
  }
  EXPECT_EQ(destroyed, 1);
}

// What a destructor makes and drops while an exception is being thrown is destroyed.
TEST(LlvmObject, is_destroyed_when_it_is_made_during_an_exception) {
  int destroyed = 0;
  struct Other {
    ~Other() { LlvmObject<Counted> object(destroyed_); }
    int& destroyed_;
  };
  auto fails = [&] {
    Other other{destroyed};
    throw std::runtime_error("cancelled");
  };
  EXPECT_THROW(fails(), std::runtime_error);
  EXPECT_EQ(destroyed, 1);
}

}  // namespace
}  // namespace relay::codegen
