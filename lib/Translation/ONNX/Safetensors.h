// Reads safetensors files.
#pragma once

#include "llvm/ADT/StringRef.h"
#include "llvm/Support/MemoryBuffer.h"
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace flow {

struct SafeTensor {
  std::string name, dtype; // dtype as the format spells it: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;
  llvm::StringRef bytes;
};

struct SafetensorsFile {
  std::unique_ptr<llvm::MemoryBuffer> file;
  std::vector<SafeTensor> tensors; // in the order of their names
};

/// Maps and checks the file at `path`: header, offsets, and sizes against shapes.
/// Returns false with one sentence in `error`.
bool readSafetensors(llvm::StringRef path, SafetensorsFile &result, std::string &error);

} // namespace flow
