# LLVM and LLD as archives, for the architectures that have a file of their own.
include_guard(GLOBAL)

# relay_llvm_targets(<archives> <folder>...): an architecture of ours is one that has a file in one of the folders, named
# like LLVM's target in small letters; without RELAY_OTHER_TARGETS, only that of the machine. <archives> becomes what to link for them, and relay_llvm_targets.def in the current
# binary folder the list: RELAY_LLVM_TARGET(X86) for each of ours, RELAY_OTHER_LLVM_TARGET for those that LLVM was built
# with besides. Sources that include LLVM's headers in this folder find them.
#
# With archives there is nothing to install beside Relay, and a process that compiles nothing does not map the whole of
# LLVM. (LLVM's CMake targets would ask for Polly, which stays out.)
macro(relay_llvm_targets archives)
  find_package(LLVM 19.1 REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/llvm)
  find_package(LLD REQUIRED CONFIG PATHS /usr/lib/llvm-19/lib/cmake/lld)
  include_directories(SYSTEM ${LLVM_INCLUDE_DIRS})
  set(ours "")
  set(targets "")
  string(REGEX REPLACE "^(x86|riscv).*" "\\1" host "${CMAKE_SYSTEM_PROCESSOR}")
  foreach(name IN LISTS LLVM_TARGETS_TO_BUILD)
    string(TOLOWER "${name}" component)
    set(list RELAY_OTHER_LLVM_TARGET)
    foreach(folder IN ITEMS ${ARGN})
      if(EXISTS "${folder}/${component}.cc" AND (RELAY_OTHER_TARGETS OR component STREQUAL host))
        list(APPEND ours "${component}")
        set(list RELAY_LLVM_TARGET)
      endif()
    endforeach()
    string(APPEND targets "${list}(${name})\n")
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/relay_llvm_targets.def" CONTENT "@targets@" @ONLY)
  include_directories("${CMAKE_CURRENT_BINARY_DIR}")
  execute_process(COMMAND "${LLVM_TOOLS_BINARY_DIR}/llvm-config" --link-static --libs ${ours} orcjit passes lto option
                  OUTPUT_VARIABLE ${archives} OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  separate_arguments(${archives})
  list(FILTER ${archives} EXCLUDE REGEX Polly)
  set_target_properties(lldCommon lldELF PROPERTIES INTERFACE_LINK_LIBRARIES "")
  set(${archives} -Wl,--start-group "$<TARGET_FILE:lldELF>" "$<TARGET_FILE:lldCommon>" "-L${LLVM_LIBRARY_DIR}"
      ${${archives}} -Wl,--end-group "${RELAY_ZLIB_ARCHIVE}" "${RELAY_ZSTD_ARCHIVE}")
endmacro()
