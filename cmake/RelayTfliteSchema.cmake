# relay_use_tflite_schema(TARGET): the TFLite format and its metadata as C++, compiled by flatc from our descriptions of
# them, for the target's sources.
# They include them as "frontend/tflite/schema_generated.h" and "frontend/tflite/metadata_generated.h".
include_guard(GLOBAL)
find_program(RELAY_FLATC flatc REQUIRED)
find_path(RELAY_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)

set(RELAY_TFLITE_GENERATED "${PROJECT_BINARY_DIR}/tflite_schema")
set(RELAY_TFLITE_HEADERS "")
foreach(name IN ITEMS schema metadata)
  set(fbs "${PROJECT_SOURCE_DIR}/src/frontend/tflite/${name}.fbs")
  set(header "${RELAY_TFLITE_GENERATED}/frontend/tflite/${name}_generated.h")
  add_custom_command(
    OUTPUT "${header}"
    COMMAND "${RELAY_FLATC}" --cpp --scoped-enums --cpp-std c++17 -o "${RELAY_TFLITE_GENERATED}/frontend/tflite" "${fbs}"
    DEPENDS "${fbs}" VERBATIM)
  list(APPEND RELAY_TFLITE_HEADERS "${header}")
endforeach()

# A folder that the compiler searches anyway must not come before the standard library's.
set(RELAY_TFLITE_INCLUDES "${RELAY_TFLITE_GENERATED}")
if(NOT RELAY_FLATBUFFERS_INCLUDE IN_LIST CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES)
  list(APPEND RELAY_TFLITE_INCLUDES "${RELAY_FLATBUFFERS_INCLUDE}")
endif()

function(relay_use_tflite_schema target)
  target_sources(${target} PRIVATE ${RELAY_TFLITE_HEADERS})
  target_include_directories(${target} PRIVATE ${RELAY_TFLITE_INCLUDES})
  # Numbers in text, whose locale is a symbol of the flatbuffers library, are not read.
  target_compile_definitions(${target} PRIVATE FLATBUFFERS_LOCALE_INDEPENDENT=0)
endfunction()
