// Signatures derived from what ops mean: sections, one axis, all rows.
#include "dialects/Flow/Rules/Signature.h"
#include "dialects/Flow/Rules/Access.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "dialects/Flow/Rules/Rules.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace flow;

//===----------------------------------------------------------------------===//
// Sections
//===----------------------------------------------------------------------===//

bool flow::isInit(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op)
    return false;
  if (isa<tensor::EmptyOp>(op))
    return op->getNumOperands() == 0;
  if (auto fill = dyn_cast<linalg::FillOp>(op))
    return isInit(fill.value()) && isInit(fill.output());
  Attribute constant;
  if (!matchPattern(op, m_Constant(&constant)))
    return false;
  auto elements = dyn_cast<ElementsAttr>(constant);
  return !elements || elements.isSplat();
}

Section Section::of(ComputeOp op) {
  Section section;
  Block &block = op.getBody().front();
  for (Operation &inner : block.without_terminator())
    section.ops.push_back(&inner);
  llvm::append_range(section.inputs, block.getArguments());
  llvm::append_range(section.outputs, block.getTerminator()->getOperands());
  return section;
}

static SetVector<Value> valuesRead(Operation *op) {
  SetVector<Value> values(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), values);
  return values;
}

static void pullInits(Operation *op, SetVector<Operation *> &ops, SetVector<Value> &inputs) {
  for (Value v : valuesRead(op)) {
    if (isInit(v))
      pullInits(v.getDefiningOp(), ops, inputs);
    else
      inputs.insert(v);
  }
  ops.insert(op);
}

Section Section::withInits(Operation *op) {
  SetVector<Operation *> ops;
  SetVector<Value> inputs;
  pullInits(op, ops, inputs);
  Section section;
  section.ops = ops.takeVector();
  section.inputs = inputs.takeVector();
  llvm::append_range(section.outputs, op->getResults());
  return section;
}

Section Section::alone(Operation *op) {
  Section section;
  section.ops.push_back(op);
  section.inputs = valuesRead(op).takeVector();
  llvm::append_range(section.outputs, op->getResults());
  return section;
}

//===----------------------------------------------------------------------===//
// One axis
//===----------------------------------------------------------------------===//

AxisState AxisInfo::get(Value value) const {
  auto it = states.find(value);
  if (it != states.end())
    return it->second;
  return {AxisState::Held, {}, SbpAttr::broadcast(value.getContext())};
}

LogicalResult flow::refuse(AxisInfo &info, Operation *op, const Twine &reason) {
  info.reason = ("'" + op->getName().getStringRef() + "': " + reason).str();
  return failure();
}

void flow::setResults(Operation *op, AxisInfo &info, SbpAttr sbp) {
  for (Value result : op->getResults())
    info.states[result] = {AxisState::Held, {}, sbp};
}

static Factors factorsOf(const Section &section) {
  llvm::SmallPtrSet<Operation *, 8> inside(section.ops.begin(), section.ops.end());
  Factors factors;
  for (Operation *op : section.ops)
    factors.add(op, [&](Value v) { return inside.contains(v.getDefiningOp()) && isInit(v); });
  return factors;
}

/// The factor that the first split value names.
static SplitFactor splitFactorOf(const Section &section, const Factors &factors,
                                 ArrayRef<SbpAttr> inputs, ArrayRef<SbpAttr> outputs) {
  SplitFactor split{&factors, std::nullopt};
  auto scan = [&](ArrayRef<Value> values, ArrayRef<SbpAttr> states) {
    for (auto [value, sbp] : llvm::zip(values, states)) {
      if (split.factor || !sbp.isSplit())
        continue;
      if (auto member = factors.find(value, sbp.getDim())) {
        split.factor = member->factor;
        split.numerator = sbp.getUnit() * member->denominator;
        split.denominator = member->numerator;
      }
    }
  };
  scan(section.inputs, inputs);
  scan(section.outputs, outputs);
  return split;
}

static LogicalResult infer(const Section &section, ArrayRef<SbpAttr> inputs,
                           const SplitFactor &split, AxisInfo &info) {
  for (auto [value, sbp] : llvm::zip(section.inputs, inputs))
    info.states[value] = {AxisState::Held, {}, sbp};
  for (Operation *op : section.ops)
    if (failed(inferOther(op, split, info)))
      return failure();
  return success();
}

static bool fits(const AxisState &state, SbpAttr sbp) {
  switch (state.kind) {
  case AxisState::Undefined:
    return true;
  case AxisState::Uniform:
    return !sbp.isPartial() || isNeutral(state.element, sbp.getMonoid());
  case AxisState::Held:
    return state.sbp == sbp;
  }
  return false;
}

LogicalResult flow::inferAxis(const Section &section, ArrayRef<SbpAttr> inputs,
                              ArrayRef<SbpAttr> outputs, AxisInfo &info) {
  info = AxisInfo();
  Factors factors = factorsOf(section);
  SplitFactor split = splitFactorOf(section, factors, inputs, outputs);
  if (failed(infer(section, inputs, split, info)))
    return failure();
  for (auto [value, sbp] : llvm::zip(section.outputs, outputs)) {
    AxisState state = info.get(value);
    if (fits(state, sbp))
      continue;
    info.reason = "result is " + (state.kind == AxisState::Held ? state.sbp.str() : "a constant") +
                  ", its type says " + sbp.str();
    return failure();
  }
  return success();
}

FailureOr<SmallVector<AxisInfo>> flow::inferCompute(ComputeOp op) {
  MeshAttr mesh;
  for (Value v : llvm::concat<Value>(op->getOperands(), op->getResults()))
    if (auto dist = dyn_cast<DistType>(v.getType()))
      mesh = dist.getMesh();
  SmallVector<AxisInfo> axes(mesh ? mesh.getNumAxes() : 0);
  Section section = Section::of(op);
  auto entries = [&](TypeRange types, size_t axis) {
    return llvm::map_to_vector(types, [&](Type type) {
      auto dist = dyn_cast<DistType>(type);
      return dist ? dist.getSbp()[axis] : SbpAttr::broadcast(op.getContext());
    });
  };
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    SmallVector<SbpAttr> in = entries(op->getOperandTypes(), axis),
                         out = entries(op->getResultTypes(), axis);
    if (failed(inferAxis(section, in, out, axes[axis])))
      return op.emitOpError("has no legal signature on axis '")
             << mesh.getAxisNames()[axis].getValue() << "': " << stringifySbp(in) << " -> "
             << stringifySbp(out) << "; " << axes[axis].reason;
  }
  return axes;
}

bool flow::haveSameBorders(int64_t extent, int64_t ranks, int64_t unitA, int64_t unitB) {
  if (unitA == unitB || ranks == 1)
    return true;
  for (int64_t c = 0; c < ranks; ++c) {
    SplitRange a = balancedSplit(extent, ranks, c, unitA),
               b = balancedSplit(extent, ranks, c, unitB);
    if (a.size != b.size || (a.size && a.offset != b.offset))
      return false;
    if (a.size == 0 && b.offset >= extent && a.offset >= extent)
      return true; // all later shards are empty
  }
  return true;
}

//===----------------------------------------------------------------------===//
// All rows
//===----------------------------------------------------------------------===//

static void addRow(const Section &section, ArrayRef<SbpAttr> inputs, const AxisInfo &info,
                   SmallVectorImpl<Signature> &rows) {
  Signature row{SmallVector<SbpAttr>(inputs), {}};
  for (Value v : section.outputs) {
    AxisState s = info.get(v);
    row.outputs.push_back(s.kind == AxisState::Held ? s.sbp : SbpAttr::broadcast(v.getContext()));
  }
  if (llvm::none_of(rows, [&](const Signature &r) {
        return r.inputs == row.inputs && r.outputs == row.outputs;
      }))
    rows.push_back(row);
}

/// A destination that the body does not read is held like the result.
static Value resultOfUnreadInit(const Section &section, Value input) {
  for (Operation *op : section.ops) {
    auto l = dyn_cast<linalg::LinalgOp>(op);
    auto softmax = dyn_cast<linalg::SoftmaxOp>(op);
    if (softmax && softmax.getOutput() == input && softmax.getInput() != input)
      return softmax.getResult()[0];
    if (!l || isa<linalg::FillOp>(op))
      continue;
    for (OpOperand &init : l.getDpsInitsMutable())
      if (init.get() == input && !l.payloadUsesValueFromOperand(&init) &&
          llvm::count(op->getOperands(), input) == 1)
        return l.getTiedOpResult(&init);
  }
  return {};
}

/// True for shape-only operands, such as the window of a pooling.
static bool isUnread(const Section &section, Value input) {
  return llvm::all_of(section.ops,
                      [&](Operation *op) {
                        auto l = dyn_cast<linalg::LinalgOp>(op);
                        if (!l)
                          return !llvm::is_contained(op->getOperands(), input);
                        return llvm::none_of(op->getOpOperands(), [&](OpOperand &operand) {
                          return operand.get() == input && l.payloadUsesValueFromOperand(&operand);
                        });
                      }) &&
         llvm::any_of(section.ops,
                      [&](Operation *op) { return llvm::is_contained(op->getOperands(), input); });
}

static void addSplitRows(const Section &section, SmallVectorImpl<Signature> &rows) {
  MLIRContext *context = section.ops.front()->getContext();
  Factors factors = factorsOf(section);
  for (unsigned factor : factors.factors()) {
    int64_t base = factors.smallestUnit(factor);
    SmallVector<SbpAttr> inputs;
    bool twice = false;
    for (Value v : section.inputs) {
      SbpAttr sbp = SbpAttr::broadcast(context);
      auto type = dyn_cast<RankedTensorType>(v.getType());
      for (int64_t d = 0; type && d < type.getRank(); ++d) {
        auto member = factors.find(v, d);
        if (!member || member->factor != factor)
          continue;
        twice |= sbp.isSplit();
        sbp = SbpAttr::split(context, d, base * member->numerator / member->denominator);
      }
      inputs.push_back(sbp);
    }
    // The destination of a split reduction is a part like the result.
    for (Operation *op : section.ops) {
      auto l = dyn_cast<linalg::LinalgOp>(op);
      for (unsigned loop = 0; l && loop < l.getNumLoops(); ++loop) {
        auto member = factors.find(op, loop);
        if (!member || member->factor != factor)
          continue;
        for (auto [i, init] : llvm::enumerate(l.getDpsInitsMutable())) {
          auto at = llvm::find(section.inputs, init.get());
          auto monoid = combinerOf(l, i);
          if (at != section.inputs.end() && monoid &&
              splitOfOperand(l, init, loop).kind == SplitOfOperand::Whole)
            inputs[at - section.inputs.begin()] = SbpAttr::partial(context, *monoid);
        }
      }
    }
    AxisInfo info;
    SplitFactor split{&factors, factor, base, 1};
    if (!twice && succeeded(infer(section, inputs, split, info)))
      addRow(section, inputs, info, rows);
  }
}

/// Subsets of the operands that may be partial together. More than `kAll` of them:
/// singles, pairs and all.
static SmallVector<uint64_t> subsets(unsigned n) {
  constexpr unsigned kAll = 6;
  SmallVector<uint64_t> masks;
  if (n <= kAll) {
    for (uint64_t mask = 1; mask < (uint64_t(1) << n); ++mask)
      masks.push_back(mask);
    return masks;
  }
  n = std::min(n, 63u);
  for (unsigned i = 0; i < n; ++i)
    masks.push_back(uint64_t(1) << i);
  for (unsigned i = 0; i < n; ++i)
    for (unsigned j = i + 1; j < n; ++j)
      masks.push_back(uint64_t(1) << i | uint64_t(1) << j);
  masks.push_back((uint64_t(1) << n) - 1);
  return masks;
}

static void addPartialRows(const Section &section, SmallVectorImpl<Signature> &rows) {
  MLIRContext *context = section.ops.front()->getContext();
  SmallVector<unsigned> candidates;
  for (auto [i, v] : llvm::enumerate(section.inputs)) {
    auto type = dyn_cast<RankedTensorType>(v.getType());
    if (type && type.getElementType().isIntOrFloat() && !type.getElementType().isInteger(1) &&
        !resultOfUnreadInit(section, v) && !isUnread(section, v))
      candidates.push_back(i);
  }
  Factors none;
  SplitFactor split{&none, std::nullopt};
  for (Monoid monoid : {Monoid::Sum, Monoid::Max, Monoid::Min})
    for (uint64_t mask : subsets(candidates.size())) {
      SmallVector<SbpAttr> inputs(section.inputs.size(), SbpAttr::broadcast(context));
      for (auto [bit, i] : llvm::enumerate(candidates))
        if (mask >> bit & 1)
          inputs[i] = SbpAttr::partial(context, monoid);
      AxisInfo info;
      if (failed(infer(section, inputs, split, info)))
        continue;
      for (auto [i, v] : llvm::enumerate(section.inputs))
        if (Value result = resultOfUnreadInit(section, v))
          inputs[i] = info.get(result).sbp;
      addRow(section, inputs, info, rows);
    }
}

SmallVector<Signature> flow::enumerateSignatures(const Section &section) {
  SmallVector<Signature> rows;
  if (section.ops.empty())
    return rows;
  MLIRContext *context = section.ops.front()->getContext();
  SmallVector<SbpAttr> whole(section.inputs.size(), SbpAttr::broadcast(context));
  AxisInfo info;
  Factors none;
  if (succeeded(infer(section, whole, SplitFactor{&none, std::nullopt}, info)))
    addRow(section, whole, info, rows);
  addSplitRows(section, rows);
  addPartialRows(section, rows);
  return rows;
}
