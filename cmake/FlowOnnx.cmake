# ONNX's own C++ (protobuf schema, checker, shape inference, function inliner),
# compiled from the sources that its PyPI package carries. Debian's libonnx is
# too old. The sources are fetched at configure time, once per checkout.
set(FLOW_ONNX_VERSION 1.23.2)
set(FLOW_ONNX_ROOT "${PROJECT_SOURCE_DIR}/build/deps/onnx-${FLOW_ONNX_VERSION}" CACHE PATH
  "folder that holds onnx/onnx-ml.proto")
if(NOT EXISTS ${FLOW_ONNX_ROOT}/onnx/onnx-ml.proto)
  find_package(Python3 COMPONENTS Interpreter REQUIRED)
  set(_venv ${PROJECT_SOURCE_DIR}/build/deps/pip)
  message(STATUS "fetching the sources of onnx ${FLOW_ONNX_VERSION}")
  execute_process(COMMAND ${Python3_EXECUTABLE} -m venv ${_venv} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${_venv}/bin/pip install --quiet --no-deps --disable-pip-version-check
    --target ${FLOW_ONNX_ROOT} onnx==${FLOW_ONNX_VERSION} COMMAND_ERROR_IS_FATAL ANY)
endif()
find_package(Protobuf 3.12 REQUIRED)
set(_gen ${PROJECT_BINARY_DIR}/onnx-gen)
file(MAKE_DIRECTORY ${_gen}/onnx)
set(_pb)
foreach(p onnx-ml onnx-operators-ml onnx-data)
  add_custom_command(OUTPUT ${_gen}/onnx/${p}.pb.cc ${_gen}/onnx/${p}.pb.h
    COMMAND protobuf::protoc --cpp_out=${_gen} -I ${FLOW_ONNX_ROOT} ${FLOW_ONNX_ROOT}/onnx/${p}.proto
    DEPENDS ${FLOW_ONNX_ROOT}/onnx/${p}.proto VERBATIM)
  list(APPEND _pb ${_gen}/onnx/${p}.pb.cc)
endforeach()
set(_o ${FLOW_ONNX_ROOT}/onnx)
file(GLOB_RECURSE _src ${_o}/common/*.cc ${_o}/defs/*.cc ${_o}/inliner/*.cc
  ${_o}/shape_inference/*.cc ${_o}/version_converter/*.cc)
add_library(flow_onnx STATIC ${_o}/checker.cc ${_src} ${_pb})
target_include_directories(flow_onnx SYSTEM PUBLIC ${_gen} ${FLOW_ONNX_ROOT})
target_compile_definitions(flow_onnx PUBLIC ONNX_NAMESPACE=onnx ONNX_ML=1)
target_compile_options(flow_onnx PRIVATE -w -O1 -g0)
target_link_libraries(flow_onnx PUBLIC protobuf::libprotobuf)
