// A few operators for tests of rooms that do not see the real ones.
#pragma once

namespace relay::test {

// test.id(x), test.pair(x, y): the type of x. test.attrs(x; level, name, list): the type of x.
// add, subtract, multiply: the type of the left side. Idempotent.
void register_test_ops();

}  // namespace relay::test
