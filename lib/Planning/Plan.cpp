// The decision: SBP of every value that a function reads and makes.
#include "lib/Planning/Plan.h"
#include "dialects/Flow/Rules/Monoids.h"
#include "lib/Planning/AxisSolver.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace flow;

int64_t flow::batchDimOf(BlockArgument argument) {
  bool sliced = !argument.use_empty();
  for (Operation *user : argument.getUsers()) {
    if (auto constrain = dyn_cast<ConstrainOp>(user)) {
      sliced &=
          !constrain.getResult().use_empty() &&
          llvm::all_of(constrain.getResult().getUsers(), llvm::IsaPred<tensor::ExtractSliceOp>);
      continue;
    }
    auto slice = dyn_cast<tensor::ExtractSliceOp>(user);
    sliced &= slice && slice->getParentOfType<scf::ForOp>() && slice.getDroppedDims().test(0) &&
              !getConstantIntValue(slice.getMixedOffsets()[0]);
  }
  return sliced ? 1 : 0;
}

namespace {
/// Requests along one axis.
struct AxisRequest {
  llvm::DenseMap<unsigned, SmallVector<SbpAttr>> arguments; // states an argument may take
  SmallVector<SbpAttr> results;                             // per function result
  bool trivial = true;                                      // nothing is split or partial
};

class FunctionPlanner {
public:
  FunctionPlanner(func::FuncOp function, MeshAttr mesh, const CostModel &model,
                  const llvm::MapVector<Attribute, NdSbp> &fixedStates)
      : function(function), mesh(mesh), model(model), fixedStates(fixedStates), graph(function),
        context(function.getContext()) {
    function.walk([&](ConstrainOp op) { constraints.push_back(op); });
  }

  FunctionPlan run() {
    size_t axes = mesh.getNumAxes();
    std::vector<std::vector<Signature>> chosen(axes); // per axis, per node
    for (size_t axis = 0; axis < axes; ++axis)
      chosen[axis] = planAxis(axis);
    FunctionPlan plan;
    auto nd = [&](unsigned node, bool input, unsigned i) {
      NdSbp sbp;
      for (size_t axis = 0; axis < axes; ++axis) {
        const Signature &row = chosen[axis][node];
        sbp.push_back(input ? row.inputs[i] : row.outputs[i]);
      }
      return sbp;
    };
    for (ProgramValue &v : graph.values)
      plan.values[v.value] = nd(v.producer, false, v.output);
    for (auto [n, node] : llvm::enumerate(graph.nodes)) {
      if (node.kind != ProgramNode::Compute)
        continue;
      auto &reads = plan.reads[node.op];
      for (unsigned i = 0; i < node.inputs.size(); ++i)
        reads.push_back(nd(n, true, i));
    }
    planResults(plan);
    return plan;
  }

private:
  SbpAttr broadcast() const { return SbpAttr::broadcast(context); }
  StringRef kindOf(BlockArgument argument) const {
    auto kind = function.getArgAttrOfType<StringAttr>(argument.getArgNumber(), "flow.kind");
    return kind ? kind.getValue() : StringRef();
  }
  static ConstrainOp constraintOf(Value value) {
    for (Operation *user : value.getUsers())
      if (auto constrain = dyn_cast<ConstrainOp>(user))
        return constrain;
    return {};
  }

  /// Only a mesh given: samples are spread over the axis named dp, else over the
  /// first axis unless the user split something along it.
  bool splitsBatch(size_t axis) const {
    if (mesh.getAxisSizes()[axis] == 1)
      return false;
    if (std::optional<size_t> dp = mesh.findAxis("dp"))
      return *dp == axis;
    return axis == 0 && llvm::none_of(constraints, [&](ConstrainOp op) {
             return !cast<SbpAttr>(op.getSbp()[axis]).isBroadcast();
           });
  }

  /// The results of a function that are no states: as constrained, else whole.
  SbpAttr resultState(unsigned number, size_t axis) const {
    Value value = function.getBody().front().getTerminator()->getOperand(number);
    if (auto constrain = value.getDefiningOp<ConstrainOp>())
      return cast<SbpAttr>(constrain.getSbp()[axis]);
    return broadcast();
  }

  AxisRequest requestOf(size_t axis) const {
    AxisRequest request;
    bool batch = splitsBatch(axis);
    for (ConstrainOp op : constraints)
      request.trivial &= cast<SbpAttr>(op.getSbp()[axis]).isBroadcast();
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type)
        continue;
      auto &states = request.arguments[argument.getArgNumber()];
      StringRef kind = kindOf(argument);
      Attribute initial = function.getArgAttr(argument.getArgNumber(), "flow.initial");
      auto fixed = initial ? fixedStates.find(initial) : fixedStates.end();
      if (fixed != fixedStates.end()) {
        states = {fixed->second[axis]};
      } else if (ConstrainOp constrain = constraintOf(argument)) {
        // Parts of an input are made from the whole.
        SbpAttr sbp = cast<SbpAttr>(constrain.getSbp()[axis]);
        states = {sbp.isPartial() ? broadcast() : sbp};
      } else if (batch && (kind == "input" || kind == "label") &&
                 type.getRank() > batchDimOf(argument) &&
                 type.getDimSize(batchDimOf(argument)) > 1) {
        states = {SbpAttr::split(context, batchDimOf(argument))};
      } else {
        states = {broadcast()};
        if (kind == "state" && !batch)
          for (int64_t d = 0; d < type.getRank(); ++d)
            states.push_back(SbpAttr::split(context, d));
      }
      request.trivial &= states.front().isBroadcast();
    }
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      request.results.push_back(resultState(i, axis));
      request.trivial &= request.results.back().isBroadcast();
    }
    return request;
  }

  /// Factors that the user's splits name: work along them should stay split.
  llvm::DenseSet<unsigned> askedFactors(size_t axis, const AxisRequest &request) const {
    llvm::DenseSet<unsigned> asked;
    auto ask = [&](Value value, SbpAttr sbp) {
      if (sbp.isSplit())
        if (auto member = graph.factors.find(value, sbp.getDim()))
          asked.insert(member->factor);
    };
    for (BlockArgument argument : function.getArguments())
      if (auto it = request.arguments.find(argument.getArgNumber()); it != request.arguments.end())
        ask(argument, it->second.front());
    for (ConstrainOp op : constraints)
      ask(op.getResult(), cast<SbpAttr>(op.getSbp()[axis]));
    return asked;
  }

  bool isAsked(const ProgramNode &node, const llvm::DenseSet<unsigned> &asked) const {
    if (node.op->hasTrait<OpTrait::ConstantLike>())
      return false;
    if (auto l = dyn_cast<linalg::LinalgOp>(node.op)) {
      for (unsigned loop = 0; loop < l.getNumLoops(); ++loop)
        if (auto member = graph.factors.find(node.op, loop);
            member && asked.contains(member->factor))
          return true;
      return false;
    }
    for (Value result : node.op->getResults())
      if (auto type = dyn_cast<RankedTensorType>(result.getType()))
        for (int64_t d = 0; d < type.getRank(); ++d)
          if (auto member = graph.factors.find(result, d); member && asked.contains(member->factor))
            return true;
    return false;
  }

  /// The part of the work that the busiest rank does. Only splits along what the
  /// user split count: others are as good, but nobody asked for them.
  double busiestPart(const ProgramNode &node, const Signature &row, int64_t ranks,
                     const llvm::DenseSet<unsigned> &asked) const {
    auto part = [&](ArrayRef<unsigned> ids, ArrayRef<SbpAttr> entries) -> std::optional<double> {
      for (auto [id, sbp] : llvm::zip(ids, entries)) {
        if (!sbp.isSplit())
          continue;
        const ProgramValue &v = graph.values[id];
        auto member = graph.factors.find(v.value, sbp.getDim());
        if (!member || !asked.contains(member->factor))
          continue;
        int64_t extent = std::max<int64_t>(v.type.getDimSize(sbp.getDim()), 1);
        int64_t units = llvm::divideCeil(extent, sbp.getUnit());
        return double(llvm::divideCeil(units, ranks)) / units;
      }
      return std::nullopt;
    };
    if (auto p = part(node.inputs, row.inputs))
      return *p;
    return part(node.outputs, row.outputs).value_or(1.0);
  }

  void fillNode(AxisProblem &problem, const ProgramNode &node, size_t axis,
                const AxisRequest &request) {
    auto &rows = problem.rows.emplace_back();
    auto uniform = [&](SbpAttr sbp) {
      rows.push_back({SmallVector<SbpAttr>(node.inputs.size(), sbp),
                      SmallVector<SbpAttr>(node.outputs.size(), sbp)});
    };
    switch (node.kind) {
    case ProgramNode::Argument:
      for (SbpAttr sbp : request.arguments.lookup(node.number))
        uniform(sbp);
      break;
    case ProgramNode::Constrain:
      uniform(cast<SbpAttr>(cast<ConstrainOp>(node.op).getSbp()[axis]));
      break;
    case ProgramNode::Result:
      uniform(request.results[node.number]);
      break;
    case ProgramNode::Compute:
      rows = node.rows;
      break;
    case ProgramNode::Carry:
    case ProgramNode::Branch:
      for (const Signature &row : node.rows) {
        SbpAttr sbp = row.outputs[0];
        if (node.hasFreeInit && sbp.isPartial() && !isNeutral(node.initElement, sbp.getMonoid()))
          continue;
        uniform(sbp);
      }
      break;
    }
  }

  static bool isWhole(const Signature &row) {
    return llvm::none_of(llvm::concat<const SbpAttr>(row.inputs, row.outputs),
                         [](SbpAttr sbp) { return sbp.isSplit(); });
  }

  void remarkWhole(const ProgramNode &node, size_t axis, bool hasRule) const {
    emitRemark(node.op->getLoc(), "'")
        << node.op->getName() << "' runs whole on every rank of axis '"
        << mesh.getAxisNames()[axis].getValue() << "': "
        << (hasRule ? "splitting it would move more bytes than that saves work"
                    : "it has no rule for a split along the dims asked for");
  }

  std::vector<Signature> planAxis(size_t axis) {
    int64_t ranks = mesh.getAxisSizes()[axis];
    AxisRequest request = requestOf(axis);
    AxisProblem problem{graph, model, ranks, {}, {}};
    llvm::DenseSet<unsigned> asked = askedFactors(axis, request);
    SmallVector<bool> isAskedNode;
    for (const ProgramNode &node : graph.nodes) {
      fillNode(problem, node, axis, request);
      bool counts = node.kind == ProgramNode::Compute && isAsked(node, asked);
      isAskedNode.push_back(counts);
      auto &work = problem.work.emplace_back();
      for (const Signature &row : problem.rows.back()) {
        double replicated = counts ? busiestPart(node, row, ranks, asked) - 1.0 / ranks : 0.0;
        work.push_back(model.replicatedFlopInBytes * node.flops * node.executions * replicated);
      }
    }
    std::vector<unsigned> choice(graph.nodes.size(), 0);
    if (!request.trivial)
      choice = solveAxis(problem);
    std::vector<Signature> chosen;
    for (auto [n, node] : llvm::enumerate(graph.nodes)) {
      chosen.push_back(problem.rows[n][choice[n]]);
      if (isAskedNode[n] && ranks > 1 && isWhole(chosen.back()) && node.flops > 1)
        remarkWhole(node, axis, llvm::any_of(problem.rows[n], [&](const Signature &row) {
                      return busiestPart(node, row, ranks, asked) < 1;
                    }));
    }
    return chosen;
  }

  void planResults(FunctionPlan &plan) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (unsigned i = 0; i < function.getNumResults(); ++i) {
      NdSbp sbp;
      if (auto tied = function.getResultAttrOfType<IntegerAttr>(i, "flow.tied"))
        sbp = plan.values.lookup(function.getArgument(tied.getInt()));
      else if (isa<RankedTensorType>(terminator->getOperand(i).getType()))
        for (size_t axis = 0; axis < mesh.getNumAxes(); ++axis)
          sbp.push_back(resultState(i, axis));
      plan.results.push_back(sbp);
    }
  }

  mutable func::FuncOp function; // op handles have no const accessors
  MeshAttr mesh;
  const CostModel &model;
  const llvm::MapVector<Attribute, NdSbp> &fixedStates;
  ProgramGraph graph;
  MLIRContext *context;
  SmallVector<ConstrainOp> constraints;
};
} // namespace

FunctionPlan flow::planFunction(func::FuncOp function, MeshAttr mesh, const CostModel &model,
                                llvm::MapVector<Attribute, NdSbp> &fixedStates) {
  FunctionPlan plan = FunctionPlanner(function, mesh, model, fixedStates).run();
  for (BlockArgument argument : function.getArguments())
    if (Attribute initial = function.getArgAttr(argument.getArgNumber(), "flow.initial"))
      if (isa<RankedTensorType>(argument.getType()))
        fixedStates.insert({initial, plan.values.lookup(argument)});
  return plan;
}
