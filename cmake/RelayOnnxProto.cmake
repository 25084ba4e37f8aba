# relay_onnx_proto: the ONNX schema as C++, from the .proto file that the onnx Python package ships.
# RELAY_ONNX_PROTO_DIR is the folder that holds onnx/onnx-ml.proto; it is found in the project's .venv or through
# the Python of the environment.
include_guard(GLOBAL)
find_package(Protobuf REQUIRED)
# The archive of the part that needs no descriptions of messages: nothing is to be installed beside Relay.
find_library(RELAY_PROTOBUF_ARCHIVE libprotobuf-lite.a REQUIRED)

if(NOT RELAY_ONNX_PROTO_DIR)
  foreach(python "${Python_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/.venv/bin/python" python3)
    execute_process(
      COMMAND "${python}" -c
        "import importlib.util as u, os; print(os.path.dirname(u.find_spec('onnx').submodule_search_locations[0]))"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(NOT failed AND EXISTS "${found}/onnx/onnx-ml.proto")
      set(RELAY_ONNX_PROTO_DIR "${found}" CACHE PATH "The folder that holds onnx/onnx-ml.proto")
      break()
    endif()
  endforeach()
endif()
if(NOT EXISTS "${RELAY_ONNX_PROTO_DIR}/onnx/onnx-ml.proto")
  message(FATAL_ERROR "The ONNX schema onnx/onnx-ml.proto is not found. Run `make setup`, or `pip install onnx`, "
    "or set RELAY_ONNX_PROTO_DIR to the folder that holds it.")
endif()

set(proto "${RELAY_ONNX_PROTO_DIR}/onnx/onnx-ml.proto")
set(generated "${PROJECT_BINARY_DIR}/onnx_proto")
file(MAKE_DIRECTORY "${generated}/onnx")
add_custom_command(
  OUTPUT "${generated}/onnx/onnx-ml.pb.cc" "${generated}/onnx/onnx-ml.pb.h"
  COMMAND protobuf::protoc --cpp_out "lite:${generated}" --proto_path "${RELAY_ONNX_PROTO_DIR}" "${proto}"
  DEPENDS "${proto}" VERBATIM)
add_library(relay_onnx_proto STATIC "${generated}/onnx/onnx-ml.pb.cc" "${generated}/onnx/onnx-ml.pb.h"
            "${CMAKE_CURRENT_LIST_DIR}/portable/no_arenas.cc" "${CMAKE_CURRENT_LIST_DIR}/portable/thread_cache.c")
target_include_directories(relay_onnx_proto SYSTEM PUBLIC "${generated}" ${Protobuf_INCLUDE_DIRS})
target_link_libraries(relay_onnx_proto PUBLIC "${RELAY_PROTOBUF_ARCHIVE}" Threads::Threads)
