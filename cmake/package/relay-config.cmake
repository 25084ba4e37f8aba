# find_package(relay): the targets relay::runtime, a shared library, relay::runtime_static, which needs the C library
# alone, and relay::headers, for plug-ins.
get_filename_component(_relay_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET relay::runtime)
  add_library(relay::headers INTERFACE IMPORTED)
  set_target_properties(relay::headers PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${_relay_root}/include")
  add_library(relay::runtime SHARED IMPORTED)
  set_target_properties(relay::runtime PROPERTIES
    IMPORTED_LOCATION "${_relay_root}/lib/librelay_runtime.so"
    IMPORTED_NO_SONAME ON
    INTERFACE_INCLUDE_DIRECTORIES "${_relay_root}/include")
  add_library(relay::runtime_static STATIC IMPORTED)
  set_target_properties(relay::runtime_static PROPERTIES
    IMPORTED_LOCATION "${_relay_root}/lib/librelay_runtime.a"
    INTERFACE_INCLUDE_DIRECTORIES "${_relay_root}/include"
    INTERFACE_LINK_LIBRARIES "-static-libgcc;-l:libstdc++.a;m;dl;-pthread")
endif()
