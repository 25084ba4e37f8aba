# Text files that become parts of a program.
#
#   relay_embed(<target> <header> <function> <file>...)
#
# adds to the target a source that defines <function>, which <header> declares as
# `std::span<const EmbeddedFile> <function>();` in namespace relay (base/embedded_file.h): the names and texts
# of the files, in their order.
#
# As a script it writes that source: -DHEADER= -DFUNCTION= -DFILES= -DOUTPUT=.
if(CMAKE_SCRIPT_MODE_FILE)
  set(source "// Written by cmake/RelayEmbed.cmake when the program is built.\n")
  string(APPEND source "#include \"${HEADER}\"\n\nnamespace relay {\n\n")
  string(APPEND source "std::span<const EmbeddedFile> ${FUNCTION}() {\n  static constexpr EmbeddedFile kFiles[] = {\n")
  foreach(file IN LISTS FILES)
    file(READ "${file}" text)
    get_filename_component(name "${file}" NAME)
    string(APPEND source "      {\"${name}\", R\"TEXT(${text})TEXT\"},\n")
  endforeach()
  string(APPEND source "  };\n  return kFiles;\n}\n\n}  // namespace relay\n")
  file(WRITE "${OUTPUT}" "${source}")
  return()
endif()

include_guard(GLOBAL)
set(RELAY_EMBED "${CMAKE_CURRENT_LIST_FILE}")

function(relay_embed target header function)
  set(output "${CMAKE_CURRENT_BINARY_DIR}/${function}.cc")
  add_custom_command(
    OUTPUT "${output}"
    COMMAND "${CMAKE_COMMAND}" "-DHEADER=${header}" "-DFUNCTION=${function}" "-DFILES=${ARGN}" "-DOUTPUT=${output}" -P "${RELAY_EMBED}"
    DEPENDS ${ARGN} "${RELAY_EMBED}" VERBATIM)
  target_sources(${target} PRIVATE "${output}")
endfunction()
