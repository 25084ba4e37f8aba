# relay_precompiled: the headers of the standard library that most sources include, parsed once for all rooms. Every source
# still includes what it uses; without this target (RELAY_PRECOMPILED=OFF) the tree builds all the same.
include_guard(GLOBAL)
option(RELAY_PRECOMPILED "Parse the headers of the standard library once for all rooms" ON)

if(RELAY_PRECOMPILED)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/precompiled.cc" CONTENT "")
  add_library(relay_precompiled OBJECT "${PROJECT_BINARY_DIR}/precompiled.cc")
  target_link_libraries(relay_precompiled PUBLIC Threads::Threads)
  target_precompile_headers(relay_precompiled PRIVATE
    <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <set> <span> <sstream> <string>
    <string_view> <tuple> <unordered_map> <unordered_set> <utility> <variant> <vector>)
endif()
