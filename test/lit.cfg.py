# lit configuration of the whole test tree.
import os
import sys

import lit.formats
from lit.llvm import llvm_config

config.name = "flow"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.flow_test_dir
llvm_config.with_environment("PATH", [config.flow_bin_dir, config.llvm_tools_dir], append_path=True)
llvm_config.with_system_environment("FLOW_FULL")
tools = ["flow-opt", "flow-translate", "flow-compile", "flow-run", "FileCheck", "not", "split-file", "count"]
llvm_config.add_tool_substitutions(
    [t for t in tools if os.path.exists(os.path.join(config.flow_bin_dir, t)) or not t.startswith("flow-")],
    [config.flow_bin_dir, config.llvm_tools_dir])
# Python of the tests: numpy, onnx, onnxruntime, safetensors.
config.substitutions.append(("%python", config.flow_python))
config.substitutions.append(("%source", config.flow_source_dir))
# %exit N COMMAND: the command must exit with exactly N.
config.substitutions.append(("%exit", config.flow_source_dir + "/test/exit-code"))
