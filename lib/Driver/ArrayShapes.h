// The shapes of the arrays in an .npz file, from the headers alone.
#pragma once
#include "llvm/Support/Error.h"
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace flow {

using ArrayShapes = std::vector<std::pair<std::string, std::vector<int64_t>>>;

/// Name and shape of every array, in the order of the file. What is not well
/// formed is left out: the program that reads the data reports it.
llvm::Expected<ArrayShapes> readArrayShapes(llvm::StringRef path);

} // namespace flow
