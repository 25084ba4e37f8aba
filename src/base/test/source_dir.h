// Where the sources of this build are, for tests that read files of the repository.
#pragma once

namespace relay::test {

// The root of the checkout, absolute and without a slash at the end. The build writes its
// definition, so that no other
// source depends on where the checkout is.
const char* source_dir();

}  // namespace relay::test
