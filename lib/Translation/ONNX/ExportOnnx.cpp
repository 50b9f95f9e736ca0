// Puts trained weights back into their ONNX model.
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/stubs/logging.h"
#include "lib/Translation/ONNX/OnnxTensors.h"
#include "lib/Translation/ONNX/OnnxTranslation.h"
#include "lib/Translation/ONNX/Safetensors.h"
#include "mlir/IR/MLIRContext.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace flow;
using llvm::StringRef;
using llvm::Twine;

namespace {
/// Writes beside the target and renames, so that no half-written file carries its name.
class AtomicFile {
public:
  explicit AtomicFile(StringRef path) : path(path.str()), temporary(path.str() + ".tmp") {}
  ~AtomicFile() {
    if (!renamed)
      llvm::sys::fs::remove(temporary);
  }
  template <typename F> bool write(F body, std::string &error) {
    std::error_code ec;
    llvm::raw_fd_ostream out(temporary, ec);
    if (!ec) {
      body(out);
      out.close();
      ec = out.error();
      out.clear_error();
    }
    if (ec)
      error = "cannot write '" + path + "': " + ec.message();
    return !ec;
  }
  bool commit(std::string &error) {
    if (std::error_code ec = llvm::sys::fs::rename(temporary, path)) {
      error = "cannot write '" + path + "': " + ec.message();
      return false;
    }
    return renamed = true;
  }

private:
  std::string path, temporary;
  bool renamed = false;
};

class Exporter {
public:
  Exporter(StringRef modelPath, StringRef outPath, std::string &error)
      : modelPath(modelPath), outPath(outPath), reader(&context, modelPath, {}), error(error) {}
  bool run(StringRef weightsPath);

private:
  bool fail(const Twine &what) {
    error = what.str();
    return false;
  }
  bool readModel();
  bool replace(onnx::TensorProto &tensor, const SafeTensor &by);
  bool moveExternal(onnx::TensorProto &tensor, StringRef bytes, bool replaced);
  bool write();

  mlir::MLIRContext context;
  std::string modelPath, outPath;
  TensorReader reader;
  std::string &error;
  onnx::ModelProto model;
  /// Bytes of external tensors in the order of their places in the new data file.
  std::vector<StringRef> external;
  uint64_t externalSize = 0;
};
} // namespace

static int32_t onnxTypeOf(StringRef dtype) {
  return llvm::StringSwitch<int32_t>(dtype)
      .Case("F32", onnx::TensorProto::FLOAT)
      .Case("F64", onnx::TensorProto::DOUBLE)
      .Case("F16", onnx::TensorProto::FLOAT16)
      .Case("BF16", onnx::TensorProto::BFLOAT16)
      .Case("BOOL", onnx::TensorProto::BOOL)
      .Case("I8", onnx::TensorProto::INT8)
      .Case("I16", onnx::TensorProto::INT16)
      .Case("I32", onnx::TensorProto::INT32)
      .Case("I64", onnx::TensorProto::INT64)
      .Case("U8", onnx::TensorProto::UINT8)
      .Case("U16", onnx::TensorProto::UINT16)
      .Case("U32", onnx::TensorProto::UINT32)
      .Case("U64", onnx::TensorProto::UINT64)
      .Default(onnx::TensorProto::UNDEFINED);
}

template <typename Range> static std::string shapeText(const Range &shape) {
  std::vector<std::string> dims;
  for (int64_t dim : shape)
    dims.push_back(std::to_string(dim));
  return "[" + llvm::join(dims, ", ") + "]";
}

bool Exporter::readModel() {
  auto file =
      llvm::MemoryBuffer::getFile(modelPath, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return fail("cannot open '" + modelPath + "': " + file.getError().message());
  StringRef data = (*file)->getBuffer();
  if (data.size() > INT_MAX)
    return fail("'" + modelPath + "' is larger than 2 GiB");
  google::protobuf::LogSilencer quiet;
  google::protobuf::io::CodedInputStream in(reinterpret_cast<const uint8_t *>(data.data()),
                                            static_cast<int>(data.size()));
  in.SetTotalBytesLimit(INT_MAX);
  if (!model.ParseFromCodedStream(&in) || !in.ConsumedEntireMessage() || !model.has_graph())
    return fail("'" + modelPath +
                "' is not an ONNX model: malformed protobuf (is the file complete?)");
  return true;
}

/// Gives an external tensor its place in the new data file.
bool Exporter::moveExternal(onnx::TensorProto &tensor, StringRef bytes, bool replaced) {
  if (!replaced) {
    std::string path;
    auto found = reader.findExternal(tensor, path);
    if (!found)
      return fail("'" + modelPath + "': " + reader.error);
    bytes = found->first.substr(found->second.offset, found->second.size);
  }
  // Page alignment lets readers map each tensor.
  uint64_t offset = llvm::alignTo(externalSize, 4096);
  tensor.clear_external_data();
  auto set = [&](const char *key, const std::string &value) {
    auto *entry = tensor.add_external_data();
    entry->set_key(key);
    entry->set_value(value);
  };
  set("location", (llvm::sys::path::filename(outPath) + ".data").str());
  set("offset", std::to_string(offset));
  set("length", std::to_string(bytes.size()));
  external.push_back(bytes);
  externalSize = offset + bytes.size();
  return true;
}

bool Exporter::replace(onnx::TensorProto &tensor, const SafeTensor &by) {
  if (onnxTypeOf(by.dtype) != tensor.data_type())
    return fail("tensor '" + by.name + "': expected " + onnxElementName(tensor.data_type()) +
                " as in the model, got " + by.dtype);
  if (!llvm::equal(tensor.dims(), by.shape))
    return fail("tensor '" + by.name + "': expected shape " + shapeText(tensor.dims()) +
                " as in the model, got " + shapeText(by.shape));
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL)
    return moveExternal(tensor, by.bytes, /*replaced=*/true);
  tensor.clear_float_data();
  tensor.clear_double_data();
  tensor.clear_int32_data();
  tensor.clear_int64_data();
  tensor.clear_uint64_data();
  tensor.set_raw_data(by.bytes.data(), by.bytes.size());
  return true;
}

bool Exporter::write() {
  // The data first: a model must not name a file that is not there yet.
  if (!external.empty()) {
    AtomicFile data(outPath + ".data");
    bool written = data.write(
        [&](llvm::raw_ostream &out) {
          for (StringRef bytes : external) {
            out.write_zeros(llvm::alignTo(out.tell(), 4096) - out.tell());
            out << bytes;
          }
        },
        error);
    if (!written || !data.commit(error))
      return false;
  }
  std::string bytes;
  if (model.ByteSizeLong() > INT_MAX || !model.SerializeToString(&bytes))
    return fail("'" + outPath + "' would be larger than 2 GiB");
  AtomicFile file(outPath);
  return file.write([&](llvm::raw_ostream &out) { out << bytes; }, error) && file.commit(error);
}

bool Exporter::run(StringRef weightsPath) {
  SafetensorsFile weights;
  if (!readModel() || !readSafetensors(weightsPath, weights, error))
    return false;
  llvm::StringMap<const SafeTensor *> byName;
  for (const SafeTensor &tensor : weights.tensors)
    byName[tensor.name] = &tensor;
  for (onnx::TensorProto &tensor : *model.mutable_graph()->mutable_initializer()) {
    auto found = byName.find(tensor.name());
    if (found != byName.end()) {
      if (!replace(tensor, *found->second))
        return false;
      byName.erase(found);
    } else if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
      if (!moveExternal(tensor, {}, /*replaced=*/false))
        return false;
    }
  }
  for (const SafeTensor &tensor : weights.tensors)
    if (byName.count(tensor.name))
      return fail("tensor '" + tensor.name + "' of '" + weightsPath + "' is no initializer of '" +
                  modelPath + "'");
  return write();
}

Outcome flow::exportOnnx(StringRef modelPath, StringRef weightsPath, StringRef outPath,
                         std::string &error) {
  try {
    if (Exporter(modelPath, outPath, error).run(weightsPath))
      return Outcome::Success;
  } catch (const std::exception &e) {
    error = "'" + modelPath.str() + "': " + e.what();
  }
  return Outcome::WrongInput;
}
