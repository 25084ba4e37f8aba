# A room is one folder of src/, one static library relay_<room> and one test program <room>_test.
#
#   relay_room(<room> [SMALL | LIGHT] [DEPS <room>...] [TEST_DEPS <room>...] [LIBRARIES <target>...] [PROGRAM <name>]
#              [PRECOMPILE <header>...])
#
# Sources are every .cc below the room except those in a folder named test/, which make up the test program.
# DEPS are the rooms that its sources include, TEST_DEPS the further ones that its tests include, LIBRARIES
# outside libraries. SMALL: a release compiles the room for size (-Os), where its size matters and its speed does not. LIGHT: a release
# compiles it with -O1, which takes the compiler half the time of -O2; for rooms in which a compilation spends little time.
# PRECOMPILE: large headers that several of its sources include, beside those of RELAY_COMMON_HEADERS.
# With RELAY_FUZZERS, every test/fuzz/<name>_fuzzer.cc becomes a program of its own. A room without sources is skipped; a dependency that is not there is left out, so that
# a tree with only the lower rooms builds. tools/check_layers.py checks the includes themselves.
include_guard(GLOBAL)

# The definition of test::source_dir() (src/base/test/source_dir.h).
set(RELAY_TEST_SOURCE_DIR "${PROJECT_BINARY_DIR}/source_dir.cc")
file(CONFIGURE OUTPUT "${RELAY_TEST_SOURCE_DIR}" @ONLY CONTENT [[
#include "base/test/source_dir.h"

const char* relay::test::source_dir() { return "@PROJECT_SOURCE_DIR@"; }
]])

# LLD, which comes with its library, links a program in a third of the time.
find_program(RELAY_LLD ld.lld HINTS /usr/lib/llvm-19/bin)
function(relay_link_with_lld target)
  if(RELAY_LLD)
    cmake_path(GET RELAY_LLD PARENT_PATH folder)
    target_link_options(${target} PRIVATE "-B${folder}" -fuse-ld=lld)
  endif()
endfunction()

function(relay_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "SMALL;LIGHT" "PROGRAM" "DEPS;TEST_DEPS;LIBRARIES;PRECOMPILE")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "relay_room(${room}): unknown arguments ${arg_UNPARSED_ARGUMENTS}")
  endif()

  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(.*/)?test/")
  list(FILTER sources EXCLUDE REGEX "^${CMAKE_CURRENT_SOURCE_DIR}/(.*/)?test/")
  set(program_source "${CMAKE_CURRENT_SOURCE_DIR}/main.cc")
  if(arg_PROGRAM)
    list(REMOVE_ITEM sources "${program_source}")
  endif()

  set(target relay_${room})
  if(sources)
    add_library(${target} STATIC ${sources})
    relay_compile_together(${target} ${sources})
    relay_compile_options(${target})
    set(options "")
    if(CMAKE_BUILD_TYPE STREQUAL "Release" AND arg_SMALL)
      set(options -Os)
    elseif(CMAKE_BUILD_TYPE STREQUAL "Release" AND arg_LIGHT)
      set(options -O1)
    endif()
    target_compile_options(${target} PRIVATE ${options})
    # One set of precompiled headers for all rooms that are compiled alike.
    string(MAKE_C_IDENTIFIER "libraries${options}${arg_PRECOMPILE}" headers)
    relay_precompiled_headers(${target} ${headers} HEADERS ${arg_PRECOMPILE} OPTIONS ${options})
    target_link_libraries(${target} PUBLIC Threads::Threads ${arg_LIBRARIES})
    foreach(dep IN LISTS arg_DEPS)
      target_link_libraries(${target} PUBLIC "$<TARGET_NAME_IF_EXISTS:relay_${dep}>")
    endforeach()
  endif()

  if(arg_PROGRAM AND EXISTS "${program_source}")
    add_executable(${arg_PROGRAM} "${program_source}")
    relay_compile_options(${arg_PROGRAM})
    relay_link_with_lld(${arg_PROGRAM})
    foreach(dep IN ITEMS ${room} ${arg_DEPS})
      target_link_libraries(${arg_PROGRAM} PRIVATE "$<TARGET_NAME_IF_EXISTS:relay_${dep}>")
    endforeach()
  endif()

  if(RELAY_TESTS AND tests)
    add_executable(${room}_test ${tests} "${RELAY_TEST_SOURCE_DIR}")
    relay_compile_together(${room}_test ${tests})
    relay_test_options(${room}_test)
    foreach(dep IN ITEMS ${room} ${arg_DEPS} ${arg_TEST_DEPS})
      target_link_libraries(${room}_test PRIVATE "$<TARGET_NAME_IF_EXISTS:relay_${dep}>")
    endforeach()
    target_link_libraries(${room}_test PRIVATE ${arg_LIBRARIES} GTest::gtest GTest::gtest_main)
    relay_add_tests(${room})
  endif()

  if(RELAY_FUZZERS)
    # Entry points of libFuzzer, one program each; the room's tests replay inputs through the same functions.
    file(GLOB fuzzers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/test/fuzz/*_fuzzer.cc")
    foreach(source IN LISTS fuzzers)
      cmake_path(GET source STEM name)
      add_executable(${name} "${source}")
      relay_compile_options(${name})
      foreach(dep IN ITEMS ${room} ${arg_DEPS} ${arg_TEST_DEPS})
        target_link_libraries(${name} PRIVATE "$<TARGET_NAME_IF_EXISTS:relay_${dep}>")
      endforeach()
      target_link_libraries(${name} PRIVATE ${arg_LIBRARIES})
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    endforeach()
  endif()
endfunction()

# The headers of the standard library that most sources include, parsed once for each set of options that sources are
# compiled with. A source includes what it uses all the same: CMAKE_DISABLE_PRECOMPILE_HEADERS=ON builds without them.
set(RELAY_COMMON_HEADERS <algorithm> <array> <atomic> <charconv> <cmath> <cstdint> <cstring> <functional> <limits> <map>
  <memory> <mutex> <numeric> <optional> <set> <shared_mutex> <span> <string> <string_view> <type_traits>
  <unordered_map> <unordered_set> <utility> <variant> <vector>)

#   relay_precompiled_headers(<target> <name> [HEADERS <header>...] [LIBRARIES <target>...] [OPTIONS <option>...])
#
# The target uses the headers precompiled as <name>, which this makes when it is the first to ask.
function(relay_precompiled_headers target name)
  if(CMAKE_DISABLE_PRECOMPILE_HEADERS)
    return()
  endif()
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "HEADERS;LIBRARIES;OPTIONS")
  set(headers relay_headers_${name})
  if(NOT TARGET ${headers})
    set(source "${PROJECT_BINARY_DIR}/headers/${name}.cc")
    file(CONFIGURE OUTPUT "${source}" CONTENT "// Only its precompiled headers matter.\nint main() { return 0; }\n")
    get_target_property(type ${target} TYPE)
    if(type STREQUAL "EXECUTABLE")
      # Compiled as programs are.
      add_executable(${headers} EXCLUDE_FROM_ALL "${source}")
    else()
      add_library(${headers} OBJECT EXCLUDE_FROM_ALL "${source}")
    endif()
    target_compile_options(${headers} PRIVATE ${RELAY_WARNINGS} ${arg_OPTIONS})
    target_link_libraries(${headers} PRIVATE ${arg_LIBRARIES})
    target_precompile_headers(${headers} PRIVATE ${RELAY_COMMON_HEADERS} ${arg_HEADERS})
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
endfunction()

# What each thread has of its own. The Python module has these from a library of their own, so each is a unit by itself.
set(RELAY_THREAD_SOURCES "${PROJECT_SOURCE_DIR}/src/base/budget_countdown.cc" "${PROJECT_SOURCE_DIR}/src/base/thread_locals.cc"
  "${PROJECT_SOURCE_DIR}/src/runtime/core/free_blocks.cc")

# What the test of the guides has in another form (tests/guides): what reads a list, and what a guide changes.
set(RELAY_LIST_SOURCES ops/register_ops.cc passes/pass_list.cc lower/rules/rules.cc codegen/llvm/architecture.cc
  codegen/llvm/other_targets.cc frontend/front_ends.cc)
list(TRANSFORM RELAY_LIST_SOURCES PREPEND "${PROJECT_SOURCE_DIR}/src/")
set(RELAY_GUIDED_SOURCES "${PROJECT_SOURCE_DIR}/src/frontend/onnx/convert_elementwise.cc" "${PROJECT_SOURCE_DIR}/src/target/architectures.cc")

# The sources of a folder are compiled eight at a time as one unit: what they include is parsed, and its templates are made, once,
# which is two thirds of the compiler's work on sources of a hundred lines. So the names in the unnamed namespaces of a room are
# distinct. A source includes what it uses all the same: RELAY_UNITY=OFF compiles each by itself.
function(relay_compile_together target)
  if(NOT RELAY_UNITY)
    return()
  endif()
  list(REMOVE_ITEM ARGN ${RELAY_THREAD_SOURCES} ${RELAY_LIST_SOURCES} ${RELAY_GUIDED_SOURCES})
  foreach(source IN LISTS ARGN)
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/src" OUTPUT_VARIABLE name)
    string(MAKE_C_IDENTIFIER "${name}" name)
    # Those that open a namespace by themselves are apart from those that do not.
    file(STRINGS "${source}" opened REGEX "^using namespace " LIMIT_COUNT 1)
    if(opened)
      string(REGEX REPLACE "^using namespace ([a-z_:]+).*" "\\1" opened "${opened}")
      string(MAKE_C_IDENTIFIER "${name}_${opened}" name)
    endif()
    math(EXPR unit "0${number_${name}} / 8")
    math(EXPR number_${name} "0${number_${name}} + 1")
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${name}_${unit}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# What every target of ours is compiled with.
function(relay_compile_options target)
  target_include_directories(${target} PUBLIC "${PROJECT_SOURCE_DIR}/src" "${PROJECT_SOURCE_DIR}/include")
  target_compile_options(${target} PRIVATE ${RELAY_WARNINGS}
    "$<$<CONFIG:Release>:-ffunction-sections;-fdata-sections>")
  target_link_options(${target} PRIVATE "$<$<CONFIG:Release>:-Wl,--gc-sections>")
endfunction()

# What every test program is compiled and linked with. It spends its time in the rooms' code, not in its own: -Og takes the
# compiler half the time of -O2.
function(relay_test_options target)
  set(options "$<$<CONFIG:Release>:-Og>")
  relay_compile_options(${target})
  target_compile_options(${target} PRIVATE ${options})
  relay_precompiled_headers(${target} tests HEADERS <gtest/gtest.h> LIBRARIES GTest::gtest OPTIONS ${options})
  relay_link_with_lld(${target})
endfunction()

# The tests of a room run on a small stack: no service, pass or printer may recurse over a program, and the tests that
# walk chains of 100,000 nodes are among the others. 256 KB; under the sanitizers, whose frames are several times larger,
# 8 MB, which a recursion of 100,000 frames exceeds too.
set(RELAY_LONG_TESTS lower strategies fuzz passes driver grad ir tir eval types frontend)
# Rooms whose tests take longer than the others' run in parts, so that they end with the others.
set(RELAY_TEST_PARTS 4)
function(relay_add_tests room)
  set(limit 256)
  if(CMAKE_BUILD_TYPE STREQUAL "Asan")
    set(limit 8192)
  endif()
  set(run "ulimit -s ${limit} && exec \"$0\" --gtest_brief=1")
  list(FIND RELAY_LONG_TESTS ${room} rank)
  if(rank EQUAL -1)
    add_test(NAME ${room} COMMAND bash -c "${run}" $<TARGET_FILE:${room}_test>)
    # A test that hangs ends; one that shares its processors with other work does not.
    set_tests_properties(${room} PROPERTIES TIMEOUT 3000)
    return()
  endif()
  # The name of the report is given: two parts that begin at the same time would choose the same one.
  string(APPEND run " \${GTEST_OUTPUT:+\"--gtest_output=\${GTEST_OUTPUT}$1_test.xml\"}")
  # The longest first, so that all processors are busy to the end.
  math(EXPR cost "100 - ${rank}")
  math(EXPR last "${RELAY_TEST_PARTS} - 1")
  foreach(part RANGE ${last})
    set(name ${room}.${part})
    add_test(NAME ${name} COMMAND bash -c "${run}" $<TARGET_FILE:${room}_test> ${name})
    set_tests_properties(${name} PROPERTIES TIMEOUT 3000 COST ${cost}
      ENVIRONMENT "GTEST_TOTAL_SHARDS=${RELAY_TEST_PARTS};GTEST_SHARD_INDEX=${part}")
  endforeach()
endfunction()
