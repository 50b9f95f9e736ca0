// A global function as a graph of choices.
#include "lib/Planning/ProgramGraph.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace flow;

bool flow::isTensorOp(Operation *op) {
  auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
  return llvm::any_of(op->getOperandTypes(), isTensor) ||
         llvm::any_of(op->getResultTypes(), isTensor);
}

unsigned ProgramGraph::addNode(ProgramNode node) {
  nodes.push_back(std::move(node));
  return nodes.size() - 1;
}

void ProgramGraph::addOutput(unsigned node, Value value) {
  ProgramValue v;
  v.value = value;
  v.type = cast<RankedTensorType>(value.getType());
  v.producer = node;
  v.output = nodes[node].outputs.size();
  v.executions = nodes[node].executions;
  valueIds[value] = values.size();
  nodes[node].outputs.push_back(values.size());
  values.push_back(v);
}

void ProgramGraph::addInput(unsigned node, Value value) {
  unsigned id = valueIds.lookup(value);
  values[id].users.push_back({node, static_cast<unsigned>(nodes[node].inputs.size())});
  nodes[node].inputs.push_back(id);
}

/// Scalar operations of one execution, roughly.
static double flopsOf(Operation *op) {
  if (auto l = dyn_cast<linalg::LinalgOp>(op)) {
    double flops = std::max<size_t>(1, l.getBlock()->getOperations().size() - 1);
    for (int64_t extent : l.getStaticLoopRanges())
      flops *= ShapedType::isDynamic(extent) ? 1 : extent;
    return flops;
  }
  double elements = 0;
  for (Type type : op->getResultTypes())
    if (auto tensor = dyn_cast<RankedTensorType>(type); tensor && tensor.hasStaticShape())
      elements += tensor.getNumElements();
  return elements;
}

void ProgramGraph::addCompute(Operation *op, double executions) {
  Section section = Section::withInits(op);
  unsigned node = addNode({ProgramNode::Compute, op});
  nodes[node].executions = executions;
  nodes[node].flops = flopsOf(op);
  SmallVector<unsigned> tensors;
  for (auto [i, v] : llvm::enumerate(section.inputs))
    if (isa<RankedTensorType>(v.getType())) {
      tensors.push_back(i);
      addInput(node, v);
    }
  for (Value v : op->getResults())
    if (isa<RankedTensorType>(v.getType()))
      addOutput(node, v);
  factors.add(op, isInit);
  for (Signature &row : enumerateSignatures(section)) {
    Signature own;
    for (unsigned i : tensors)
      own.inputs.push_back(row.inputs[i]);
    for (auto [i, v] : llvm::enumerate(op->getResults()))
      if (isa<RankedTensorType>(v.getType()))
        own.outputs.push_back(row.outputs[i]);
    nodes[node].rows.push_back(own);
  }
}

/// States in which a value may travel through control flow.
static SmallVector<Signature> statesOf(RankedTensorType type) {
  MLIRContext *context = type.getContext();
  SmallVector<Signature> states;
  auto add = [&](SbpAttr sbp) { states.push_back({{sbp}, {sbp}}); };
  add(SbpAttr::broadcast(context));
  for (int64_t d = 0; d < type.getRank(); ++d)
    add(SbpAttr::split(context, d));
  if (type.getElementType().isIntOrFloat() && !type.getElementType().isInteger(1))
    for (Monoid monoid : {Monoid::Sum, Monoid::Max, Monoid::Min})
      add(SbpAttr::partial(context, monoid));
  return states;
}

static Attribute elementOf(Value init) {
  Attribute element;
  if (auto fill = init.getDefiningOp<linalg::FillOp>())
    matchPattern(fill.value(), m_Constant(&element));
  else if (matchPattern(init, m_Constant(&element)))
    if (auto dense = dyn_cast<DenseElementsAttr>(element); dense && dense.isSplat())
      return dense.getSplatValue<Attribute>();
  return element;
}

void ProgramGraph::addFor(Operation *op, double executions) {
  auto loop = cast<scf::ForOp>(op);
  double trips = 8; // unknown at compile time
  if (std::optional<APInt> count = loop.getStaticTripCount())
    trips = std::max<int64_t>(1, count->getSExtValue());
  SmallVector<std::pair<unsigned, unsigned>> carries; // node, carried value
  for (auto [i, init] : llvm::enumerate(loop.getInitArgs())) {
    auto type = dyn_cast<RankedTensorType>(init.getType());
    if (!type)
      continue;
    unsigned node = addNode({ProgramNode::Carry, op, static_cast<unsigned>(i)});
    nodes[node].executions = executions;
    nodes[node].rows = statesOf(type);
    nodes[node].hasFreeInit = isInit(init);
    if (nodes[node].hasFreeInit)
      nodes[node].initElement = elementOf(init);
    else {
      addInput(node, init);
      factors.tie(init, loop.getResult(i));
    }
    addOutput(node, loop.getRegionIterArg(i));
    addOutput(node, loop.getResult(i));
    values[nodes[node].outputs[0]].executions = executions * trips;
    factors.tie(loop.getRegionIterArg(i), loop.getResult(i));
    carries.push_back({node, i});
  }
  addBlock(*loop.getBody(), executions * trips);
  for (auto [node, i] : carries) {
    Value yield = loop.getBody()->getTerminator()->getOperand(i);
    if (isInit(yield))
      continue;
    addInput(node, yield);
    factors.tie(yield, loop.getResult(i));
  }
}

void ProgramGraph::addIf(Operation *op, double executions) {
  auto branch = cast<scf::IfOp>(op);
  for (Region &region : branch->getRegions())
    if (!region.empty())
      addBlock(region.front(), executions);
  for (auto [i, result] : llvm::enumerate(branch.getResults())) {
    auto type = dyn_cast<RankedTensorType>(result.getType());
    if (!type)
      continue;
    unsigned node = addNode({ProgramNode::Branch, op, static_cast<unsigned>(i)});
    nodes[node].executions = executions;
    nodes[node].rows = statesOf(type);
    for (Region &region : branch->getRegions()) {
      Value yield = region.front().getTerminator()->getOperand(i);
      if (isInit(yield))
        continue;
      addInput(node, yield);
      factors.tie(yield, result);
    }
    addOutput(node, result);
  }
}

void ProgramGraph::addBlock(Block &block, double executions) {
  for (Operation &op : block.without_terminator()) {
    if (op.getNumResults() && llvm::all_of(op.getResults(), isInit))
      continue;
    if (isa<scf::ForOp>(op)) {
      addFor(&op, executions);
    } else if (isa<scf::IfOp>(op)) {
      addIf(&op, executions);
    } else if (auto constrain = dyn_cast<ConstrainOp>(op)) {
      unsigned node = addNode({ProgramNode::Constrain, &op});
      nodes[node].executions = executions;
      if (!isInit(constrain.getInput())) {
        addInput(node, constrain.getInput());
        factors.tie(constrain.getInput(), constrain.getResult());
      }
      addOutput(node, constrain.getResult());
    } else if (isTensorOp(&op)) {
      addCompute(&op, executions);
    }
  }
}

ProgramGraph::ProgramGraph(func::FuncOp function) {
  for (BlockArgument argument : function.getArguments()) {
    if (!isa<RankedTensorType>(argument.getType()))
      continue;
    unsigned node = addNode({ProgramNode::Argument, function, argument.getArgNumber()});
    addOutput(node, argument);
  }
  Block &body = function.getBody().front();
  addBlock(body, 1);
  connectStates(function);
  offerUnits();
}

/// A state's result must come back as its argument is held.
void ProgramGraph::connectStates(func::FuncOp function) {
  Operation *terminator = function.getBody().front().getTerminator();
  for (OpOperand &operand : terminator->getOpOperands()) {
    if (!isa<RankedTensorType>(operand.get().getType()) || isInit(operand.get()))
      continue;
    unsigned number = operand.getOperandNumber();
    if (auto tied = function.getResultAttrOfType<IntegerAttr>(number, "flow.tied")) {
      Value argument = function.getArgument(tied.getInt());
      unsigned node = values[valueIds.lookup(argument)].producer;
      addInput(node, operand.get());
      factors.tie(argument, operand.get());
      continue;
    }
    unsigned node = addNode({ProgramNode::Result, terminator, number});
    addInput(node, operand.get());
  }
}

static std::optional<Signature> scaledRow(const Signature &row, int64_t by) {
  Signature scaled = row;
  for (SmallVector<SbpAttr> *entries : {&scaled.inputs, &scaled.outputs})
    for (SbpAttr &sbp : *entries)
      if (sbp.isSplit())
        sbp = SbpAttr::split(sbp.getContext(), sbp.getDim(), sbp.getUnit() * by);
  return scaled;
}

/// Reshapes and windows hand on splits in units; rows of their neighbours are
/// repeated in those units.
void ProgramGraph::offerUnits() {
  constexpr int kRounds = 4, kMaxRows = 64;
  for (int round = 0; round < kRounds; ++round) {
    std::vector<llvm::SetVector<SbpAttr>> offered(values.size());
    bool changed = false;
    for (ProgramNode &node : nodes)
      for (Signature &row : node.rows) {
        if (node.kind != ProgramNode::Compute) {
          for (unsigned v : llvm::concat<unsigned>(node.inputs, node.outputs))
            offered[v].insert(row.outputs[0]);
          continue;
        }
        for (auto [v, sbp] : llvm::zip(node.inputs, row.inputs))
          offered[v].insert(sbp);
        for (auto [v, sbp] : llvm::zip(node.outputs, row.outputs))
          offered[v].insert(sbp);
      }
    auto add = [&](ProgramNode &node, const Signature &row) {
      if (node.rows.size() < kMaxRows && llvm::none_of(node.rows, [&](const Signature &r) {
            return r.inputs == row.inputs && r.outputs == row.outputs;
          })) {
        node.rows.push_back(row);
        changed = true;
      }
    };
    for (ProgramNode &node : nodes) {
      if (node.kind == ProgramNode::Carry || node.kind == ProgramNode::Branch) {
        for (unsigned v : llvm::concat<unsigned>(node.inputs, node.outputs))
          for (SbpAttr sbp : offered[v])
            if (sbp.isSplit())
              add(node, {{sbp}, {sbp}});
        continue;
      }
      if (node.kind != ProgramNode::Compute)
        continue;
      SmallVector<Signature> base = node.rows;
      for (const Signature &row : base) {
        auto scale = [&](ArrayRef<unsigned> ids, ArrayRef<SbpAttr> entries) {
          for (auto [v, sbp] : llvm::zip(ids, entries))
            for (SbpAttr other : offered[v])
              if (sbp.isSplit() && other.isSplit(sbp.getDim()) && other.getUnit() > sbp.getUnit() &&
                  other.getUnit() % sbp.getUnit() == 0)
                add(node, *scaledRow(row, other.getUnit() / sbp.getUnit()));
        };
        scale(node.inputs, row.inputs);
        scale(node.outputs, row.outputs);
      }
    }
    if (!changed)
      return;
  }
}
