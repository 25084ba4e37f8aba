# What a wheel holds runs on every system with glibc 2.28 or newer: RHEL 8, Debian 10, Ubuntu 20.04 and later.
#
#   relay_portable(<target>...)   shared libraries and programs that are installed into other people's systems
#
# They are linked against stubs of the C library in which symbols have the versions of old (portable/link_stubs.py), with
# the few functions that are younger (portable/older_systems.c), and with libstdc++ inside. So is the runtime for
# AArch64 and RISC-V of 64 bits that is cross-compiled as in cmake/targets; that for Armv7 has times of 64 bits, which came with
# glibc 2.34. A build without Python makes no wheel, and one with sanitizers none that anybody installs: there targets stay as
# they are.
#
#   relay_link_program_archives(<shared library> <archive>...)
#
# Archives that Debian builds for programs only become part of a shared library.
include_guard(GLOBAL)

set(RELAY_PORTABLE_DIR "${CMAKE_CURRENT_LIST_DIR}/portable")

set(RELAY_IS_PORTABLE OFF)
if((RELAY_PYTHON AND CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
   OR (RELAY_RUNTIME_ONLY AND CMAKE_TOOLCHAIN_FILE MATCHES "cmake/targets/(aarch64|riscv64)-linux\\.cmake$"))
  set(RELAY_IS_PORTABLE ON)
endif()
if(NOT CMAKE_BUILD_TYPE STREQUAL "Release" OR NOT CMAKE_SYSTEM_NAME STREQUAL "Linux" OR NOT CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  set(RELAY_IS_PORTABLE OFF)
endif()
if(RELAY_IS_PORTABLE)
  find_package(Python 3.10 REQUIRED COMPONENTS Interpreter)
  set(RELAY_LINK_STUBS "${PROJECT_BINARY_DIR}/link_stubs")
  execute_process(COMMAND "${Python_EXECUTABLE}" "${RELAY_PORTABLE_DIR}/link_stubs.py" "${CMAKE_C_COMPILER}" "${RELAY_LINK_STUBS}"
                  COMMAND_ERROR_IS_FATAL ANY)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${RELAY_PORTABLE_DIR}/link_stubs.py")
  add_library(relay_older_systems OBJECT "${RELAY_PORTABLE_DIR}/older_systems.c")
  target_compile_options(relay_older_systems PRIVATE ${RELAY_WARNINGS} -ffunction-sections -fdata-sections)
endif()

function(relay_portable)
  if(NOT RELAY_IS_PORTABLE)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:relay_older_systems>)
    target_link_options(${target} PRIVATE "-L${RELAY_LINK_STUBS}" "$<$<LINK_LANGUAGE:CXX>:-static-libstdc++>" -Wl,--exclude-libs,ALL
      -Wl,--gc-sections -Wl,--push-state,--no-as-needed -lpthread -ldl -Wl,--pop-state)
  endforeach()
endfunction()

function(relay_link_program_archives target)
  target_sources(${target} PRIVATE "${RELAY_PORTABLE_DIR}/standard_error.c")
  target_link_libraries(${target} PRIVATE ${ARGN})
  target_link_options(${target} PRIVATE -Wl,--wrap=stderr -Wl,--exclude-libs,ALL)
endfunction()
