// The header is a JSON object after its length; the tensors' bytes follow it.
#include "lib/Translation/ONNX/Safetensors.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>

using namespace flow;
using llvm::StringRef;

static int64_t bytesOf(StringRef dtype) {
  return llvm::StringSwitch<int64_t>(dtype)
      .Cases({"BOOL", "I8", "U8", "F8_E4M3", "F8_E5M2"}, 1)
      .Cases({"I16", "U16", "F16", "BF16"}, 2)
      .Cases({"I32", "U32", "F32"}, 4)
      .Cases({"I64", "U64", "F64"}, 8)
      .Default(0);
}

/// One entry of the header; the sentence in `why` says what is wrong with it.
static bool readEntry(const llvm::json::Object &entry, StringRef data, SafeTensor &tensor,
                      std::string &why) {
  auto dtype = entry.getString("dtype");
  const llvm::json::Array *shape = entry.getArray("shape"),
                          *offsets = entry.getArray("data_offsets");
  if (!dtype || !shape || !offsets || offsets->size() != 2) {
    why = "has no dtype, shape and data_offsets";
    return false;
  }
  tensor.dtype = dtype->str();
  int64_t size = bytesOf(*dtype);
  if (!size) {
    why = "has an unknown dtype '" + tensor.dtype + "'";
    return false;
  }
  for (const llvm::json::Value &dim : *shape) {
    auto extent = dim.getAsInteger();
    if (!extent || *extent < 0 || llvm::MulOverflow(size, *extent, size)) {
      why = "has a wrong shape";
      return false;
    }
    tensor.shape.push_back(*extent);
  }
  auto begin = (*offsets)[0].getAsInteger(), end = (*offsets)[1].getAsInteger();
  if (!begin || !end || *begin < 0 || *end < *begin || static_cast<uint64_t>(*end) > data.size() ||
      *end - *begin != size) {
    why = "has data_offsets that do not fit its shape or the file";
    return false;
  }
  tensor.bytes = data.substr(*begin, size);
  return true;
}

bool flow::readSafetensors(StringRef path, SafetensorsFile &result, std::string &error) {
  auto opened =
      llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!opened) {
    error = "cannot open '" + path.str() + "': " + opened.getError().message();
    return false;
  }
  result.file = std::move(*opened);
  StringRef all = result.file->getBuffer();
  uint64_t headerSize = all.size() < 8 ? 0 : llvm::support::endian::read64le(all.data());
  if (all.size() < 8 || headerSize > all.size() - 8) {
    error = "'" + path.str() + "' is not a safetensors file: its header is incomplete";
    return false;
  }
  auto header = llvm::json::parse(all.substr(8, headerSize));
  if (!header) {
    error = "'" + path.str() + "' is not a safetensors file: " + llvm::toString(header.takeError());
    return false;
  }
  const llvm::json::Object *entries = header->getAsObject();
  if (!entries) {
    error = "'" + path.str() + "' is not a safetensors file: its header is no object";
    return false;
  }
  for (const auto &[key, value] : *entries) {
    StringRef name(key);
    if (name == "__metadata__")
      continue;
    SafeTensor tensor;
    tensor.name = name.str();
    std::string why = "is no object";
    if (!value.getAsObject() ||
        !readEntry(*value.getAsObject(), all.drop_front(8 + headerSize), tensor, why)) {
      error = "'" + path.str() + "': tensor '" + tensor.name + "' " + why;
      return false;
    }
    result.tensors.push_back(std::move(tensor));
  }
  std::sort(result.tensors.begin(), result.tensors.end(),
            [](const SafeTensor &a, const SafeTensor &b) { return a.name < b.name; });
  return true;
}
