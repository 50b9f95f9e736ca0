# How the rooms declare their libraries, tools and generated files.

# flow_tablegen(TARGET FILE.td "Out.h.inc=-gen-op-decls" ...): one tblgen call
# per generated file, collected in TARGET.
function(flow_tablegen target td)
  set(LLVM_TARGET_DEFINITIONS ${td})
  foreach(spec ${ARGN})
    string(FIND ${spec} "=" at)
    string(SUBSTRING ${spec} 0 ${at} out)
    math(EXPR at "${at} + 1")
    string(SUBSTRING ${spec} ${at} -1 args)
    string(REPLACE " " ";" args ${args})
    mlir_tablegen(${out} ${args})
  endforeach()
  add_public_tablegen_target(${target})
endfunction()

# MLIR's headers cost 16 s per file to parse: they are parsed once.
add_library(FlowPrecompiledHeaders OBJECT ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.cpp)
llvm_update_compile_flags(FlowPrecompiledHeaders)
target_precompile_headers(FlowPrecompiledHeaders PRIVATE ${PROJECT_SOURCE_DIR}/cmake/PrecompiledHeaders.h)

# flow_add_library(NAME SOURCES .. [LIBS ..] [DEPENDS ..] [EXCEPTIONS]): the
# library of one room. Links libMLIR.so and libLLVM.so, never the archives:
# two copies of MLIR in one process would have two sets of type ids.
# EXCEPTIONS is for rooms that call libraries which throw.
function(flow_add_library name)
  cmake_parse_arguments(A "EXCEPTIONS" "" "SOURCES;DEPENDS;LIBS" ${ARGN})
  add_library(${name} ${A_SOURCES})
  if(A_EXCEPTIONS)
    target_compile_options(${name} PRIVATE -fexceptions)
  else()
    llvm_update_compile_flags(${name})
    target_precompile_headers(${name} REUSE_FROM FlowPrecompiledHeaders)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    target_compile_options(${name} PRIVATE -Wall -Wextra -Wno-unused-parameter -Werror=global-constructors)
  endif()
  target_link_libraries(${name} PUBLIC ${A_LIBS} MLIR LLVM)
  if(A_DEPENDS)
    add_dependencies(${name} ${A_DEPENDS})
  endif()
  set_property(GLOBAL APPEND PROPERTY FLOW_LIBRARIES ${name})
endfunction()

# flow_add_tool(NAME SOURCES .. LIBS ..): an executable in build/PRESET/bin.
function(flow_add_tool name)
  cmake_parse_arguments(A "" "" "SOURCES;LIBS" ${ARGN})
  add_executable(${name} ${A_SOURCES})
  llvm_update_compile_flags(${name})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  target_link_libraries(${name} PRIVATE ${A_LIBS} MLIR LLVM)
  set_target_properties(${name} PROPERTIES INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${name} RUNTIME DESTINATION bin)
endfunction()
