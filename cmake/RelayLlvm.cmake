# LLVM and LLD as archives, for the architectures that have a file of their own.
include_guard(GLOBAL)

# relay_llvm_targets(<archives> [LLD] LINKED <which>... COMPONENTS <component>... FOLDERS <folder>...): an architecture of
# ours is one that has a file in one of the folders, named like LLVM's target in small letters. LINKED are those whose code
# generators are linked: `host`, the machine's; `others`, ours without it; or a name. <archives> becomes what to link for
# them and for LLVM's components, and relay_llvm_targets.def in the current binary folder the list, of all that LLVM was built with:
# RELAY_LLVM_TARGET(X86) for each of ours, and RELAY_LINKED_LLVM_TARGET or RELAY_EMPTY_LLVM_TARGET for each. Sources that
# include LLVM's headers in this folder find them. LLD: what links with it.
#
# With archives there is nothing to install beside Relay, and a process that compiles nothing does not map the whole of
# LLVM. (LLVM's CMake targets would ask for Polly, which stays out.)
macro(relay_llvm_targets archives)
  find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/llvm)
  find_package(LLD REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/lld)
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS})
  cmake_parse_arguments(arg "LLD" "" "LINKED;COMPONENTS;FOLDERS" ${ARGN})
  set(linked "")
  set(targets "")
  string(REGEX REPLACE "^(x86|riscv).*" "\\1" host "${CMAKE_SYSTEM_PROCESSOR}")
  foreach(name IN LISTS LLVM_TARGETS_TO_BUILD)
    string(TOLOWER "${name}" component)
    set(which "${component}")
    foreach(folder IN LISTS arg_FOLDERS)
      if(EXISTS "${folder}/${component}.cc")
        string(APPEND targets "RELAY_LLVM_TARGET(${name})\n")
        list(APPEND which others)
      endif()
    endforeach()
    if(component STREQUAL "${host}")
      set(which host)
    endif()
    set(list RELAY_EMPTY_LLVM_TARGET)
    foreach(word IN LISTS which)
      if(word IN_LIST arg_LINKED AND NOT component IN_LIST linked)
        list(APPEND linked "${component}")
        set(list RELAY_LINKED_LLVM_TARGET)
      endif()
    endforeach()
    string(APPEND targets "${list}(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/relay_llvm_targets.def" CONTENT "@targets@" @ONLY)
  include_directories("${CMAKE_CURRENT_BINARY_DIR}")
  execute_process(COMMAND "${LLVM_TOOLS_BINARY_DIR}/llvm-config" --link-static --libs ${linked} ${arg_COMPONENTS}
                  OUTPUT_VARIABLE ${archives} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(${archives})
  list(FILTER ${archives} EXCLUDE REGEX Polly)
  set(lld "")
  if(arg_LLD)
    set_target_properties(lldCommon lldELF PROPERTIES INTERFACE_LINK_LIBRARIES "")
    set(lld "$<TARGET_FILE:lldELF>" "$<TARGET_FILE:lldCommon>")
  endif()
  if(NOT TARGET relay_no_zstd)
    add_library(relay_no_zstd STATIC "${PROJECT_SOURCE_DIR}/cmake/portable/no_zstd.c")
    set_target_properties(relay_no_zstd PROPERTIES POSITION_INDEPENDENT_CODE ON)
  endif()
  set(${archives} -Wl,--start-group ${lld} "-L${LLVM_LIBRARY_DIR}" ${${archives}} -Wl,--end-group "${RELAY_ZLIB_ARCHIVE}"
      relay_no_zstd)
endmacro()
