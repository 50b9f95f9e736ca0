// Parts of tensors and their joining: Slice, Split, Concat, Pad.
#include "lib/Legalize/ONNX/ConstantElements.h"
#include "lib/Legalize/ONNX/GatherBuilder.h"
#include "lib/Legalize/ONNX/ReductionBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace mlir;
using namespace flow::onnx_rules;
using B = ImplicitLocOpBuilder;

static Value extractSlice(B &b, Value x, ArrayRef<int64_t> offsets, ArrayRef<int64_t> sizes,
                          ArrayRef<int64_t> strides) {
  // A slice without elements could not name an offset inside its operand.
  if (llvm::is_contained(sizes, 0))
    return tensor::EmptyOp::create(b, sizes, cast<RankedTensorType>(x.getType()).getElementType());
  MLIRContext *c = b.getContext();
  return tensor::ExtractSliceOp::create(b, x, getAsIndexOpFoldResult(c, offsets),
                                        getAsIndexOpFoldResult(c, sizes),
                                        getAsIndexOpFoldResult(c, strides));
}

//===----------------------------------------------------------------------===//
// Slice
//===----------------------------------------------------------------------===//

namespace {
struct SliceRange {
  SmallVector<int64_t> offsets, sizes, strides;
};
} // namespace

static FailureOr<SliceRange> sliceRange(Node &node) {
  bool failedToRead[4];
  auto starts = node.integersFrom("starts", 1, failedToRead[0]),
       ends = node.integersFrom("ends", 2, failedToRead[1]);
  auto axes = node.integersFrom("axes", 3, failedToRead[2]),
       steps = node.integersFrom("steps", 4, failedToRead[3]);
  if (llvm::is_contained(failedToRead, true))
    return failure();
  if (!starts || !ends || starts->size() != ends->size())
    return LogicalResult(node.wrong("starts and ends must have as many entries as each other"));
  if (!axes)
    axes = llvm::to_vector(llvm::seq<int64_t>(0, starts->size()));
  auto mapped = node.axes(*axes, node.rank(0));
  if (failed(mapped))
    return failure();
  if (mapped->size() != starts->size() || (steps && steps->size() != starts->size()))
    return LogicalResult(node.wrong("axes and steps must have as many entries as starts"));
  SliceRange range{SmallVector<int64_t>(node.rank(0), 0), SmallVector<int64_t>(node.shape(0)),
                   SmallVector<int64_t>(node.rank(0), 1)};
  for (auto [i, axis] : llvm::enumerate(*mapped)) {
    int64_t extent = node.shape(0)[axis], step = steps ? (*steps)[i] : 1;
    if (step == 0 || step == INT64_MIN)
      return LogicalResult(node.wrong("a step of " + Twine(step)));
    auto fromEnd = [&](int64_t at) { return at < 0 ? at + extent : at; };
    int64_t low = step > 0 ? 0 : -1, high = step > 0 ? extent : extent - 1;
    int64_t start = std::clamp(fromEnd((*starts)[i]), step > 0 ? low : std::min<int64_t>(0, high),
                               std::max(high, low));
    int64_t end = std::clamp(fromEnd((*ends)[i]), low, std::max(high, low));
    int64_t distance = step > 0 ? end - start : start - end;
    int64_t stride = step > 0 ? step : -step;
    range.offsets[axis] = start;
    range.sizes[axis] = distance <= 0 ? 0 : (distance - 1) / stride + 1;
    range.strides[axis] = step;
    // A stride beyond the extent picks one element at most.
    if (range.sizes[axis] <= 1)
      range.strides[axis] = 1;
    if (range.sizes[axis] == 0)
      range.offsets[axis] = 0;
  }
  return range;
}

static Types inferSlice(Node &node) {
  auto range = sliceRange(node);
  if (failed(range))
    return failure();
  return oneType(node, range->sizes, node.element(0));
}

static Folded foldSlice(Node &node) {
  auto input = foldable(node, 0);
  auto result = emptyResult(node);
  auto range = sliceRange(node);
  if (!input || !result || failed(range))
    return {};
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at;
    for (auto [i, d] : llvm::enumerate(index))
      at.push_back(range->offsets[i] + d * range->strides[i]);
    result->append(*input, broadcastPosition(input->shape, at));
  });
  return {result->attribute()};
}

static Lowered lowerSlice(Node &node, B &b) {
  SliceRange range = *sliceRange(node);
  auto negative = [](int64_t stride) { return stride < 0; };
  if (llvm::none_of(range.strides, negative))
    return one(extractSlice(b, node.input(0), range.offsets, range.sizes, range.strides));
  return one(gather(b, node.input(0), range.sizes, {}, {}, [&](B &ib, ValueRange) {
    SmallVector<Value> at;
    for (size_t d = 0; d < range.sizes.size(); ++d) {
      Value step = arith::MulIOp::create(ib, linalg::IndexOp::create(ib, d),
                                         arith::ConstantIndexOp::create(ib, range.strides[d]));
      at.push_back(
          arith::AddIOp::create(ib, step, arith::ConstantIndexOp::create(ib, range.offsets[d])));
    }
    return at;
  }));
}

//===----------------------------------------------------------------------===//
// Split
//===----------------------------------------------------------------------===//

static FailureOr<SmallVector<int64_t>> splitSizes(Node &node, int64_t extent) {
  bool failedToRead;
  auto given = node.integersFrom("split", 1, failedToRead);
  if (failedToRead)
    return failure();
  int64_t count = node.numOutputs();
  if (given) {
    int64_t total = 0;
    for (int64_t size : *given)
      if (size < 0 || llvm::AddOverflow(total, size, total))
        return LogicalResult(node.wrong("a split size of " + Twine(size)));
    if (total != extent || static_cast<int64_t>(given->size()) != count)
      return LogicalResult(node.wrong("the " + Twine(given->size()) + " split sizes add up to " +
                                      Twine(total) + ", expected " + Twine(extent) + " in " +
                                      Twine(count) + " results"));
    return *given;
  }
  if (int64_t outputs = node.integer("num_outputs", count); outputs != count)
    return LogicalResult(node.wrong("num_outputs is " + Twine(outputs) + ", but there are " +
                                    Twine(count) + " results"));
  if (node.version() < 18 && extent % count)
    return LogicalResult(
        node.wrong(Twine(extent) + " elements can't be split evenly in " + Twine(count)));
  // The last part is smaller where it doesn't come out even.
  int64_t size = llvm::divideCeil(extent, count);
  SmallVector<int64_t> sizes;
  for (int64_t i = 0; i < count; ++i)
    sizes.push_back(std::clamp<int64_t>(extent - i * size, 0, size));
  return sizes;
}

static Types inferSplit(Node &node) {
  auto axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  auto sizes = splitSizes(node, node.shape(0)[*axis]);
  if (failed(sizes))
    return failure();
  SmallVector<Type> types;
  for (int64_t size : *sizes) {
    SmallVector<int64_t> shape(node.shape(0));
    shape[*axis] = size;
    types.push_back(node.type(0).clone(shape));
  }
  return types;
}

static Lowered lowerSplit(Node &node, B &b) {
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  SmallVector<int64_t> offsets(node.rank(0), 0), strides(node.rank(0), 1);
  SmallVector<Value> results;
  for (unsigned i = 0; i < node.numOutputs(); ++i) {
    auto shape = node.resultType(i).getShape();
    results.push_back(extractSlice(b, node.input(0), offsets, shape, strides));
    offsets[axis] += shape[axis];
  }
  return results;
}

//===----------------------------------------------------------------------===//
// Concat
//===----------------------------------------------------------------------===//

static Types inferConcat(Node &node) {
  auto axis = node.axis(node.integer("axis", 0), node.rank(0));
  if (failed(axis))
    return failure();
  SmallVector<int64_t> shape(node.shape(0));
  for (unsigned i = 1; i < node.numInputs(); ++i) {
    if (node.rank(i) != node.rank(0))
      return LogicalResult(node.wrong("operand " + Twine(i) + " has rank " + Twine(node.rank(i)) +
                                      ", operand 0 rank " + Twine(node.rank(0))));
    for (int64_t d = 0; d < node.rank(0); ++d)
      if (d != *axis && node.shape(i)[d] != shape[d])
        return LogicalResult(node.wrong("operand " + Twine(i) + " has " + Twine(node.shape(i)[d]) +
                                        " elements along dim " + Twine(d) + ", operand 0 " +
                                        Twine(shape[d])));
    shape[*axis] += node.shape(i)[*axis];
  }
  return oneType(node, shape, node.element(0));
}

static Folded foldConcat(Node &node) {
  auto inputs = foldableInputs(node);
  auto result = emptyResult(node);
  if (!inputs || !result)
    return {};
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  forEachIndex(result->shape, [&](ArrayRef<int64_t> index) {
    SmallVector<int64_t> at(index);
    for (const Elements &input : *inputs) {
      if (at[axis] < input.shape[axis]) {
        result->append(input, broadcastPosition(input.shape, at));
        return;
      }
      at[axis] -= input.shape[axis];
    }
  });
  return {result->attribute()};
}

static Lowered lowerConcat(Node &node, B &b) {
  int64_t axis = *node.axis(node.integer("axis", 0), node.rank(0));
  SmallVector<Value> parts;
  // Empty parts would be lowered to subviews out of bounds.
  for (unsigned i = 0; i < node.numInputs(); ++i)
    if (node.shape(i)[axis] != 0)
      parts.push_back(node.input(i));
  if (parts.empty())
    return one(node.input(0));
  if (parts.size() == 1)
    return one(parts.front());
  return one(tensor::ConcatOp::create(b, node.resultType(), axis, parts));
}

//===----------------------------------------------------------------------===//
// Pad
//===----------------------------------------------------------------------===//

namespace {
struct Pads {
  SmallVector<int64_t> low, high;
};
} // namespace

static FailureOr<Pads> readPads(Node &node) {
  bool failedToRead, failedAxes;
  auto given = node.integersFrom("pads", 1, failedToRead),
       axes = node.integersFrom("axes", 3, failedAxes);
  if (failedToRead || failedAxes)
    return failure();
  if (!given)
    return LogicalResult(node.wrong("pads are missing"));
  auto mapped =
      node.axes(axes.value_or(llvm::to_vector(llvm::seq<int64_t>(0, node.rank(0)))), node.rank(0));
  if (failed(mapped))
    return failure();
  if (given->size() != 2 * mapped->size())
    return LogicalResult(
        node.wrong("expected " + Twine(2 * mapped->size()) + " pads, got " + Twine(given->size())));
  Pads pads{SmallVector<int64_t>(node.rank(0), 0), SmallVector<int64_t>(node.rank(0), 0)};
  for (auto [i, axis] : llvm::enumerate(*mapped)) {
    pads.low[axis] = (*given)[i];
    pads.high[axis] = (*given)[mapped->size() + i];
    for (int64_t pad : {pads.low[axis], pads.high[axis]})
      if (pad < -node.shape(0)[axis] || pad > (int64_t(1) << 40))
        return LogicalResult(node.wrong("a pad of " + Twine(pad) + " along dim " + Twine(axis) +
                                        " of " + Twine(node.shape(0)[axis]) + " elements"));
  }
  return pads;
}

static Types inferPad(Node &node) {
  auto pads = readPads(node);
  if (failed(pads))
    return failure();
  std::string mode = node.text("mode", "constant");
  SmallVector<int64_t> shape;
  for (auto [extent, low, high] : llvm::zip(node.shape(0), pads->low, pads->high)) {
    shape.push_back(extent + low + high);
    if (mode == "reflect" && std::max(low, high) > 0 && std::max(low, high) >= extent)
      return LogicalResult(node.wrong("reflects " + Twine(std::max(low, high)) +
                                      " elements of a dim of " + Twine(extent)));
    if (mode != "constant" && extent == 0 && shape.back())
      return LogicalResult(node.wrong("pads a dim without elements by its elements"));
  }
  return oneType(node, shape, node.element(0));
}

/// The element at a place that may lie outside: `at` relative to the operand.
static Value foldedPlace(B &b, Value at, int64_t extent, StringRef mode) {
  Value zero = arith::ConstantIndexOp::create(b, 0),
        last = arith::ConstantIndexOp::create(b, extent - 1);
  if (mode == "wrap") {
    Value size = arith::ConstantIndexOp::create(b, extent);
    Value rest = arith::RemSIOp::create(b, at, size);
    Value negative = arith::CmpIOp::create(b, arith::CmpIPredicate::slt, rest, zero);
    return arith::SelectOp::create(b, negative, arith::AddIOp::create(b, rest, size), rest);
  }
  if (mode == "reflect") {
    Value mirrored = arith::MaxSIOp::create(b, at, arith::SubIOp::create(b, zero, at));
    Value twice = arith::ConstantIndexOp::create(b, 2 * (extent - 1));
    return arith::MinSIOp::create(b, mirrored, arith::SubIOp::create(b, twice, mirrored));
  }
  return arith::MinSIOp::create(b, arith::MaxSIOp::create(b, at, zero), last); // edge
}

/// tensor.pad with zeros or a value; negative pads were cut off before.
static Lowered padByConstant(Node &node, B &b, Value x, ArrayRef<int64_t> low,
                             ArrayRef<int64_t> high) {
  Type element = node.resultType().getElementType();
  Value value;
  if (node.version() < 11) {
    value = arith::ConstantOp::create(
        b, isa<FloatType>(element) ? TypedAttr(b.getFloatAttr(element, node.real("value", 0)))
                                   : TypedAttr(b.getIntegerAttr(element, 0)));
  } else if (!node.has(2)) {
    value = arith::ConstantOp::create(b, neutralElement(Combiner::Sum, element));
  } else if (DenseElementsAttr constant = node.constant(2, /*withWeights=*/true);
             constant && constant.getNumElements() == 1) {
    auto signless = constant.bitcast(element);
    value = arith::ConstantOp::create(b, cast<TypedAttr>(*signless.getValues<Attribute>().begin()));
  } else {
    SmallVector<Value> first(node.rank(2), arith::ConstantIndexOp::create(b, 0));
    value = tensor::ExtractOp::create(b, node.input(2), first);
  }
  return one(tensor::PadOp::create(b, node.resultType(), x,
                                   getAsIndexOpFoldResult(b.getContext(), low),
                                   getAsIndexOpFoldResult(b.getContext(), high), value));
}

static Lowered lowerPad(Node &node, B &b) {
  Pads pads = *readPads(node);
  Value x = node.input(0);
  SmallVector<int64_t> offsets, sizes, low, high;
  for (auto [extent, before, after] : llvm::zip(node.shape(0), pads.low, pads.high)) {
    offsets.push_back(std::max<int64_t>(0, -before));
    sizes.push_back(
        std::max<int64_t>(0, extent + std::min<int64_t>(0, before) + std::min<int64_t>(0, after)));
    low.push_back(std::max<int64_t>(0, before));
    high.push_back(std::max<int64_t>(0, after));
  }
  std::string mode = node.text("mode", "constant");
  if (ArrayRef(sizes) != node.shape(0) && mode == "constant")
    x = extractSlice(b, x, offsets, sizes, SmallVector<int64_t>(sizes.size(), 1));
  auto isZero = [](int64_t pad) { return pad == 0; };
  if (mode == "constant")
    return llvm::all_of(low, isZero) && llvm::all_of(high, isZero)
               ? one(x)
               : padByConstant(node, b, x, low, high);
  if (mode != "edge" && mode != "reflect" && mode != "wrap")
    return LogicalResult(node.wrong("unknown mode '" + mode + "'"));
  return one(gather(b, x, node.resultType().getShape(), {}, {}, [&](B &ib, ValueRange) {
    SmallVector<Value> at;
    for (int64_t d = 0; d < node.rank(0); ++d) {
      Value place = arith::SubIOp::create(ib, linalg::IndexOp::create(ib, d),
                                          arith::ConstantIndexOp::create(ib, pads.low[d]));
      at.push_back(pads.low[d] || pads.high[d] ? foldedPlace(ib, place, node.shape(0)[d], mode)
                                               : place);
    }
    return at;
  }));
}

void flow::onnx_rules::addSlicingRules(OperatorRegistry &registry) {
  registry.add("onnx.Slice", 1, {.infer = inferSlice, .lower = lowerSlice, .fold = foldSlice});
  registry.add("onnx.Split", 2, {.infer = inferSplit, .lower = lowerSplit});
  registry.add("onnx.Concat", 4, {.infer = inferConcat, .lower = lowerConcat, .fold = foldConcat});
  registry.add("onnx.Pad", 2, {.infer = inferPad, .lower = lowerPad});
}
