// Finds tensor bytes by walking protobuf's wire format, maps external files.
#include "lib/Translation/ONNX/OnnxTensors.h"
#include "dialects/Flow/IR/FlowAttrs.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/wire_format_lite.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace flow;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

/// Tensors up to this size are elements in the IR.
static constexpr int64_t kInlineElements = 16;
/// Integer tensors up to this size are: they may be shapes, and shapes must fold.
static constexpr int64_t kInlineIntegers = 1024;

Type flow::onnxElementType(MLIRContext *context, int32_t dataType) {
  Builder b(context);
  switch (dataType) {
  case onnx::TensorProto::FLOAT:
    return b.getF32Type();
  case onnx::TensorProto::DOUBLE:
    return b.getF64Type();
  case onnx::TensorProto::FLOAT16:
    return b.getF16Type();
  case onnx::TensorProto::BFLOAT16:
    return b.getBF16Type();
  case onnx::TensorProto::BOOL:
    return b.getI1Type();
  case onnx::TensorProto::INT8:
    return b.getI8Type();
  case onnx::TensorProto::INT16:
    return b.getI16Type();
  case onnx::TensorProto::INT32:
    return b.getI32Type();
  case onnx::TensorProto::INT64:
    return b.getI64Type();
  case onnx::TensorProto::UINT8:
    return b.getIntegerType(8, /*isSigned=*/false);
  case onnx::TensorProto::UINT16:
    return b.getIntegerType(16, /*isSigned=*/false);
  case onnx::TensorProto::UINT32:
    return b.getIntegerType(32, /*isSigned=*/false);
  case onnx::TensorProto::UINT64:
    return b.getIntegerType(64, /*isSigned=*/false);
  default:
    return {};
  }
}

std::string flow::onnxElementName(int32_t dataType) {
  if (onnx::TensorProto::DataType_IsValid(dataType))
    return onnx::TensorProto::DataType_Name(static_cast<onnx::TensorProto::DataType>(dataType));
  return "element type " + std::to_string(dataType);
}

//===----------------------------------------------------------------------===//
// Wire format
//===----------------------------------------------------------------------===//

namespace {
/// What the walk learns about one message; strings point into the file.
struct TensorFields {
  StringRef name;
  ByteRange bytes;
  unsigned pieces = 0;
};

/// Walks the fields of messages without building them. A malformed file ends the walk:
/// the parser proper reports it.
class WireWalk {
public:
  explicit WireWalk(StringRef data)
      : data(data),
        in(reinterpret_cast<const uint8_t *>(data.data()), static_cast<int>(data.size())) {
    in.SetTotalBytesLimit(INT_MAX);
  }

  /// Calls `onBytes(field, range)` for each length-delimited field of the message that
  /// ends at `end`.
  template <typename F> bool fields(uint64_t end, F onBytes) {
    while (position() < end) {
      uint32_t tag = in.ReadTag();
      if (!tag)
        return false;
      if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
        if (!WireFormatLite::SkipField(&in, tag))
          return false;
        continue;
      }
      uint32_t size;
      if (!in.ReadVarint32(&size) || size > end - position())
        return false;
      uint64_t start = position();
      if (!onBytes(WireFormatLite::GetTagFieldNumber(tag), ByteRange{start, size}))
        return false;
      if (position() < start + size && !in.Skip(static_cast<int>(start + size - position())))
        return false;
    }
    return position() == end;
  }

  StringRef text(ByteRange range) const { return data.substr(range.offset, range.size); }

private:
  uint64_t position() const { return static_cast<uint64_t>(in.CurrentPosition()); }

  StringRef data;
  CodedInputStream in;
};
} // namespace

static bool walkTensor(WireWalk &walk, ByteRange range, TensorFields &tensor) {
  return walk.fields(range.offset + range.size, [&](int field, ByteRange value) {
    switch (field) {
    case onnx::TensorProto::kNameFieldNumber:
      tensor.name = walk.text(value);
      break;
    case onnx::TensorProto::kRawDataFieldNumber:
    case onnx::TensorProto::kFloatDataFieldNumber:
    case onnx::TensorProto::kDoubleDataFieldNumber:
      tensor.bytes = value;
      ++tensor.pieces;
      break;
    }
    return true;
  });
}

static bool walkNode(WireWalk &walk, ByteRange range, StringRef &output, TensorFields &tensor) {
  return walk.fields(range.offset + range.size, [&](int field, ByteRange value) {
    if (field == onnx::NodeProto::kOutputFieldNumber)
      output = walk.text(value);
    if (field != onnx::NodeProto::kAttributeFieldNumber)
      return true;
    return walk.fields(value.offset + value.size, [&](int inner, ByteRange attribute) {
      return inner != onnx::AttributeProto::kTFieldNumber || walkTensor(walk, attribute, tensor);
    });
  });
}

llvm::StringMap<ByteRange> flow::findTensorBytes(StringRef model) {
  llvm::StringMap<ByteRange> result;
  if (model.size() > INT_MAX)
    return result;
  auto add = [&](const Twine &key, const TensorFields &tensor) {
    if (tensor.pieces == 1)
      result[key.str()] = tensor.bytes;
  };
  WireWalk walk(model);
  (void)walk.fields(model.size(), [&](int field, ByteRange graph) {
    if (field != onnx::ModelProto::kGraphFieldNumber)
      return true;
    return walk.fields(graph.offset + graph.size, [&](int inner, ByteRange value) {
      TensorFields tensor;
      if (inner == onnx::GraphProto::kInitializerFieldNumber) {
        if (!walkTensor(walk, value, tensor))
          return false;
        add(tensor.name, tensor);
      } else if (inner == onnx::GraphProto::kNodeFieldNumber) {
        StringRef output;
        if (!walkNode(walk, value, output, tensor))
          return false;
        add("\t" + output, tensor);
      }
      return true;
    });
  });
  return result;
}

//===----------------------------------------------------------------------===//
// Elements
//===----------------------------------------------------------------------===//

/// Elements as row-major little-endian bytes; bools have a byte each.
static DenseElementsAttr denseFromBytes(RankedTensorType type, ArrayRef<char> bytes) {
  if (type.getNumElements() == 0)
    return DenseElementsAttr::get(type, ArrayRef<Attribute>());
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> values(llvm::map_range(bytes, [](char c) { return c != 0; }));
    return DenseElementsAttr::get(type, values);
  }
  return DenseElementsAttr::getFromRawBuffer(type, bytes);
}

template <typename To, typename Values> static std::vector<char> packAs(const Values &values) {
  std::vector<char> bytes(values.size() * sizeof(To));
  for (int i = 0, e = values.size(); i < e; ++i) {
    To value = static_cast<To>(values.Get(i));
    memcpy(bytes.data() + i * sizeof(To), &value, sizeof(To));
  }
  return bytes;
}

/// The elements from the typed fields, in the layout of raw_data.
static std::vector<char> packTypedData(const onnx::TensorProto &t) {
  switch (t.data_type()) {
  case onnx::TensorProto::FLOAT:
    return packAs<float>(t.float_data());
  case onnx::TensorProto::DOUBLE:
    return packAs<double>(t.double_data());
  case onnx::TensorProto::INT64:
    return packAs<int64_t>(t.int64_data());
  case onnx::TensorProto::UINT64:
    return packAs<uint64_t>(t.uint64_data());
  case onnx::TensorProto::UINT32:
    return packAs<uint32_t>(t.uint64_data());
  case onnx::TensorProto::INT32:
    return packAs<int32_t>(t.int32_data());
  case onnx::TensorProto::INT16:
  case onnx::TensorProto::UINT16:
  case onnx::TensorProto::FLOAT16:
  case onnx::TensorProto::BFLOAT16:
    return packAs<uint16_t>(t.int32_data());
  default:
    return packAs<uint8_t>(t.int32_data());
  }
}

static int64_t bytesPerElement(Type type) {
  return static_cast<int64_t>(llvm::divideCeil(type.getIntOrFloatBitWidth(), 8));
}

static bool isInlined(RankedTensorType type) {
  int64_t count = type.getNumElements();
  // Booleans have a bit in the IR's types and a byte in files: they are always inlined.
  return count <= kInlineElements || type.getElementType().isInteger(1) ||
         (type.getElementType().isInteger() && count <= kInlineIntegers);
}

TypedAttr TensorReader::fail(const onnx::TensorProto &tensor, const Twine &what) {
  error = ("tensor '" + Twine(tensor.name()) + "': " + what).str();
  return {};
}

TypedAttr TensorReader::read(const onnx::TensorProto &tensor, StringRef key) {
  Type element = onnxElementType(context, tensor.data_type());
  if (!element)
    return fail(tensor,
                "elements of type " + onnxElementName(tensor.data_type()) + " are not supported");
  SmallVector<int64_t> shape;
  int64_t bytesNeeded = bytesPerElement(element);
  for (int64_t dim : tensor.dims()) {
    if (dim < 0 || llvm::MulOverflow(bytesNeeded, dim, bytesNeeded))
      return fail(tensor, "the shape has a negative dim or is too large");
    shape.push_back(dim);
  }
  auto type = RankedTensorType::get(shape, element);
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return readExternal(tensor, type);
  std::vector<char> packed;
  ArrayRef<char> elements(tensor.raw_data().data(), tensor.raw_data().size());
  if (!tensor.has_raw_data()) {
    packed = packTypedData(tensor);
    elements = packed;
  }
  if (static_cast<int64_t>(elements.size()) != bytesNeeded)
    return fail(tensor, "expected " + Twine(bytesNeeded) +
                            " bytes of elements for its shape, got " + Twine(elements.size()));
  auto found = bytes.find(key);
  if (isInlined(type) || found == bytes.end() ||
      static_cast<int64_t>(found->second.size) != bytesNeeded)
    return denseFromBytes(type, elements);
  return WeightsAttr::get(context, StringAttr::get(context, modelPath), found->second.offset,
                          bytesNeeded, type);
}

//===----------------------------------------------------------------------===//
// External files
//===----------------------------------------------------------------------===//

/// Whether `location` leads to a file inside `folder` without leaving it: relative, no
/// `..`, no symbolic link on the way.
static bool staysInside(StringRef folder, StringRef location, std::string &why) {
  namespace path = llvm::sys::path;
  if (location.empty() || path::is_absolute(location)) {
    why = "must be a relative path";
    return false;
  }
  SmallString<256> at(folder);
  for (StringRef part : llvm::make_range(path::begin(location), path::end(location))) {
    if (part == "..") {
      why = "must not contain '..'";
      return false;
    }
    path::append(at, part);
    if (llvm::sys::fs::is_symlink_file(at)) {
      why = "must not lead through a symbolic link";
      return false;
    }
  }
  return true;
}

std::optional<std::pair<StringRef, ByteRange>>
TensorReader::findExternal(const onnx::TensorProto &tensor, std::string &path) {
  std::string location, offsetText, lengthText;
  for (const auto &entry : tensor.external_data()) {
    if (entry.key() == "location")
      location = entry.value();
    else if (entry.key() == "offset")
      offsetText = entry.value();
    else if (entry.key() == "length")
      lengthText = entry.value();
  }
  StringRef folder = llvm::sys::path::parent_path(modelPath);
  std::string why;
  if (location.find('\0') != std::string::npos ||
      !staysInside(folder.empty() ? "." : folder, location, why)) {
    fail(tensor, "the place of its external data, '" + location + "', " + why);
    return {};
  }
  SmallString<256> full(folder);
  llvm::sys::path::append(full, location);
  path = std::string(full);
  auto &file = files[path];
  if (!file) {
    auto opened =
        llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
    if (!opened) {
      fail(tensor, "cannot open its external data '" + path + "': " + opened.getError().message());
      return {};
    }
    file = std::move(*opened);
  }
  ByteRange range{0, 0};
  if (!offsetText.empty() && StringRef(offsetText).getAsInteger(10, range.offset)) {
    fail(tensor, "the offset of its external data is no number: '" + offsetText + "'");
    return {};
  }
  range.size = file->getBufferSize() - std::min<uint64_t>(range.offset, file->getBufferSize());
  if (!lengthText.empty() && StringRef(lengthText).getAsInteger(10, range.size)) {
    fail(tensor, "the length of its external data is no number: '" + lengthText + "'");
    return {};
  }
  if (range.offset > file->getBufferSize() || range.size > file->getBufferSize() - range.offset) {
    fail(tensor, "its external data ends at byte " + Twine(range.offset) + " + " +
                     Twine(range.size) + ", but '" + path + "' has " +
                     Twine(file->getBufferSize()) + " bytes");
    return {};
  }
  return std::make_pair(file->getBuffer(), range);
}

TypedAttr TensorReader::readExternal(const onnx::TensorProto &tensor, RankedTensorType type) {
  std::string path;
  auto found = findExternal(tensor, path);
  if (!found)
    return {};
  auto [data, range] = *found;
  int64_t expected = type.getNumElements() * bytesPerElement(type.getElementType());
  bool lengthGiven =
      llvm::any_of(tensor.external_data(), [](const auto &e) { return e.key() == "length"; });
  if (lengthGiven ? static_cast<int64_t>(range.size) != expected
                  : static_cast<int64_t>(range.size) < expected)
    return fail(tensor, "expected " + Twine(expected) + " bytes of external data, got " +
                            Twine(range.size));
  range.size = expected;
  if (isInlined(type))
    return denseFromBytes(type, ArrayRef<char>(data.data() + range.offset, range.size));
  return WeightsAttr::get(context, StringAttr::get(context, path), range.offset, expected, type);
}
