// Sliding windows over spatial dims: geometry, and the generics of convolution and pooling.
#include "lib/Legalize/ONNX/WindowBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

/// An attribute with `count` entries above `least`.
static FailureOr<SmallVector<int64_t>> readList(Node &node, StringRef name, size_t count,
                                                int64_t otherwise, int64_t least) {
  auto values = node.integers(name);
  if (!values)
    return SmallVector<int64_t>(count, otherwise);
  if (values->size() != count)
    return LogicalResult(node.wrong("attribute '" + name + "': expected " + Twine(count) +
                                    " entries, got " + Twine(values->size())));
  for (int64_t value : *values)
    if (value < least || value > (int64_t(1) << 31))
      return LogicalResult(
          node.wrong("attribute '" + name + "': entry " + Twine(value) + " is out of range"));
  return *values;
}

FailureOr<Window> flow::onnx_rules::readWindow(Node &node,
                                               std::optional<ArrayRef<int64_t>> kernel) {
  if (node.rank(0) < 3)
    return LogicalResult(
        node.wrong("expected operand 0 of rank 3 or more, got rank " + Twine(node.rank(0))));
  size_t rank = node.rank(0) - 2;
  Window window;
  auto given = readList(node, "kernel_shape", rank, 0, 1);
  auto strides = readList(node, "strides", rank, 1, 1),
       dilations = readList(node, "dilations", rank, 1, 1);
  auto pads = readList(node, "pads", 2 * rank, 0, 0);
  if (failed(given) || failed(strides) || failed(dilations) || failed(pads))
    return failure();
  window.kernel = *given;
  if (kernel && !node.integers("kernel_shape"))
    window.kernel = SmallVector<int64_t>(*kernel);
  if (kernel && ArrayRef(window.kernel) != *kernel)
    return LogicalResult(node.wrong("kernel_shape differs from the weight's shape"));
  if (llvm::is_contained(window.kernel, 0))
    return LogicalResult(node.wrong("kernel_shape is missing"));
  window.strides = *strides;
  window.dilations = *dilations;
  bool ceil = node.integer("ceil_mode", 0);
  std::string mode = node.text("auto_pad", "NOTSET");
  for (size_t i = 0; i < rank; ++i) {
    int64_t in = node.shape(0)[2 + i], span = (window.kernel[i] - 1) * window.dilations[i] + 1;
    int64_t stride = window.strides[i], begin = 0, end = 0, out;
    if (mode == "SAME_UPPER" || mode == "SAME_LOWER") {
      out = (in + stride - 1) / stride;
      int64_t total = std::max<int64_t>(0, (out - 1) * stride + span - in);
      begin = mode == "SAME_UPPER" ? total / 2 : total - total / 2;
      end = total - begin;
    } else {
      if (mode == "NOTSET" || mode.empty()) {
        begin = (*pads)[i];
        end = (*pads)[rank + i];
      } else if (mode != "VALID") {
        return LogicalResult(node.wrong("unknown auto_pad '" + Twine(mode) + "'"));
      }
      int64_t room = in + begin + end - span;
      if (room < 0)
        return LogicalResult(node.wrong(
            "the window of " + Twine(span) + " elements is larger than the padded input of " +
            Twine(in + begin + end) + " along spatial dim " + Twine(i)));
      out = (ceil ? room + stride - 1 : room) / stride + 1;
      // With ceil_mode a window that starts in the padding at the end is dropped.
      if (ceil && (out - 1) * stride >= in + begin)
        --out;
    }
    window.padBegin.push_back(begin);
    window.padEnd.push_back(end);
    window.output.push_back(out);
    window.reach.push_back((out - 1) * stride + span - in - begin);
  }
  return window;
}

Value flow::onnx_rules::padForWindow(B &b, Value input, const Window &window, TypedAttr value) {
  auto type = cast<RankedTensorType>(input.getType());
  SmallVector<int64_t> low(2, 0), high(2, 0), shape(type.getShape());
  bool any = false;
  for (size_t i = 0; i < window.rank(); ++i) {
    low.push_back(window.padBegin[i]);
    high.push_back(std::max<int64_t>(0, window.reach[i]));
    shape[2 + i] += low.back() + high.back();
    any |= low.back() || high.back();
  }
  if (!any)
    return input;
  Value scalar = arith::ConstantOp::create(b, value);
  return tensor::PadOp::create(b, type.clone(shape), input,
                               getAsIndexOpFoldResult(b.getContext(), low),
                               getAsIndexOpFoldResult(b.getContext(), high), scalar);
}

AffineMap flow::onnx_rules::windowMap(MLIRContext *context, unsigned numDims,
                                      ArrayRef<unsigned> leading, ArrayRef<unsigned> outputLoops,
                                      ArrayRef<unsigned> kernelLoops, const Window &window) {
  SmallVector<AffineExpr> results;
  for (unsigned loop : leading)
    results.push_back(getAffineDimExpr(loop, context));
  for (size_t i = 0; i < window.rank(); ++i)
    results.push_back(getAffineDimExpr(outputLoops[i], context) * window.strides[i] +
                      getAffineDimExpr(kernelLoops[i], context) * window.dilations[i]);
  return AffineMap::get(numDims, 0, results, context);
}
