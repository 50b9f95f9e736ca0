// --flow-apply-constraints: writes the user's wishes into the module.
#include "dialects/Flow/IR/FlowOps.h"
#include "dialects/Flow/Rules/Signature.h"
#include "dialects/Flow/Transforms/DistributionRequest.h"
#include "dialects/Flow/Transforms/Passes.h"
#include "dialects/Flow/Transforms/Stages.h"
#include "lib/Planning/Plan.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/GlobPattern.h"

namespace flow {
#define GEN_PASS_DEF_APPLYCONSTRAINTS
#include "dialects/Flow/Transforms/Passes.h.inc"
} // namespace flow

using namespace mlir;
using namespace flow;

namespace {
/// A name as it stands, or a shell pattern.
class NamePattern {
public:
  explicit NamePattern(StringRef text) : text(text) {
    if (llvm::Expected<llvm::GlobPattern> parsed = llvm::GlobPattern::create(text))
      glob = std::move(*parsed);
    else
      llvm::consumeError(parsed.takeError()); // brackets in a name: matches literally
  }
  bool matches(StringRef name) const { return name == text || (glob && glob->match(name)); }

private:
  StringRef text;
  std::optional<llvm::GlobPattern> glob;
};

struct Match {
  Value value;
  std::string name;
  int64_t droppedDims; // leading dims that the model does not have
};

class ConstraintWriter {
public:
  ConstraintWriter(ModuleOp module, const DistributionRequest &request, std::string &error)
      : module(module), request(request), error(error) {
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      if (!function.isExternal())
        functions.push_back(function);
  }

  LogicalResult run() {
    MeshAttr mesh = request.mesh;
    if (mesh)
      module->setAttr("flow.mesh", mesh);
    for (const DistributionRequest::Sbp &sbp : request.sbp)
      if (failed(constrain(sbp, mesh)))
        return failure();
    for (const DistributionRequest::Stage &stage : request.stages)
      if (failed(tag(stage)))
        return failure();
    return checkStages();
  }

private:
  LogicalResult fail(const Twine &message) {
    error = message.str();
    return failure();
  }

  static StringRef nameOf(func::FuncOp function, unsigned argument,
                          StringRef attribute = "flow.name") {
    auto name = function.getArgAttrOfType<StringAttr>(argument, attribute);
    return name ? name.getValue() : StringRef();
  }

  /// Function arguments, then nodes; each value once.
  SmallVector<Match> find(const NamePattern &pattern) {
    SmallVector<Match> found;
    for (func::FuncOp function : functions) {
      for (BlockArgument argument : function.getArguments()) {
        unsigned number = argument.getArgNumber();
        StringRef owner = nameOf(function, number, "flow.slot_of");
        StringRef name = owner.empty() ? nameOf(function, number) : owner;
        if (isa<RankedTensorType>(argument.getType()) && !name.empty() && pattern.matches(name))
          found.push_back({argument, name.str(), batchDimOf(argument)});
      }
      findNodes(function, pattern, found);
      findResults(function, pattern, found);
    }
    return found;
  }

  static void addOnce(Value value, StringRef name, SmallVectorImpl<Match> &found) {
    if (auto constrain = value.getDefiningOp<ConstrainOp>())
      value = constrain.getInput();
    if (llvm::none_of(found, [&](const Match &m) { return m.value == value; }))
      found.push_back({value, name.str(), 0});
  }

  /// The last forward op of each matching node, or of a node's matching output.
  static void findNodes(func::FuncOp function, const NamePattern &pattern,
                        SmallVectorImpl<Match> &found) {
    llvm::MapVector<Attribute, Value> last;
    function.walk([&](Operation *op) {
      if (op == function || isa<ConstrainOp>(op) || !isForward(op) || op->getNumResults() == 0 ||
          !isa<RankedTensorType>(op->getResult(0).getType()) || isInit(op->getResult(0)))
        return;
      for (StringAttr name : namesOf(op->getLoc()))
        if (pattern.matches(name)) {
          last[name] = op->getResult(0);
          return;
        }
    });
    for (auto &[name, value] : last)
      addOnce(value, cast<StringAttr>(name), found);
  }

  static void findResults(func::FuncOp function, const NamePattern &pattern,
                          SmallVectorImpl<Match> &found) {
    Operation *terminator = function.getBody().front().getTerminator();
    for (OpOperand &operand : terminator->getOpOperands()) {
      unsigned number = operand.getOperandNumber();
      auto name = function.getResultAttrOfType<StringAttr>(number, "flow.name");
      if (name && !function.getResultAttr(number, "flow.tied") && pattern.matches(name) &&
          isa<RankedTensorType>(operand.get().getType()))
        addOnce(operand.get(), name, found);
    }
  }

  LogicalResult constrain(const DistributionRequest::Sbp &sbp, MeshAttr mesh) {
    size_t axes = mesh ? mesh.getNumAxes() : 1;
    auto spelled = [&] { return "sbp '" + sbp.pattern + "=" + stringifySbp(sbp.entries) + "': "; };
    if (!mesh)
      return fail(spelled() + "there is no mesh to hold it on; give one with --mesh");
    if (sbp.entries.size() != axes)
      return fail(spelled() + "expected " + Twine(axes) + " entries, one per mesh axis, got " +
                  Twine(sbp.entries.size()));
    NamePattern pattern(sbp.pattern);
    SmallVector<Match> matches = find(pattern);
    if (matches.empty())
      return fail(spelled() + "no input, parameter, node or output is named '" + sbp.pattern + "'" +
                  known());
    for (const Match &match : matches)
      if (failed(constrainValue(match, sbp, mesh)))
        return failure();
    return success();
  }

  LogicalResult constrainValue(const Match &match, const DistributionRequest::Sbp &sbp,
                               MeshAttr mesh) {
    auto type = cast<RankedTensorType>(match.value.getType());
    MLIRContext *context = type.getContext();
    SmallVector<Attribute> entries;
    for (SbpAttr entry : sbp.entries) {
      int64_t rank = type.getRank() - match.droppedDims;
      if (entry.isSplit() && entry.getDim() >= rank)
        return fail("sbp '" + sbp.pattern + "': '" + match.name + "' has no dim " +
                    Twine(entry.getDim()) + ", it has " + Twine(rank) +
                    (rank == 1 ? " dim" : " dims"));
      entries.push_back(
          entry.isSplit()
              ? SbpAttr::split(context, entry.getDim() + match.droppedDims, entry.getUnit())
              : entry);
    }
    OpBuilder builder(context);
    // A later request about the same value replaces an earlier one.
    for (Operation *user : match.value.getUsers())
      if (auto earlier = dyn_cast<ConstrainOp>(user)) {
        earlier.setSbpAttr(builder.getArrayAttr(entries));
        return success();
      }
    builder.setInsertionPointAfterValue(match.value);
    auto op = ConstrainOp::create(builder, match.value.getLoc(), type, match.value, mesh,
                                  builder.getArrayAttr(entries));
    Value value = match.value;
    value.replaceAllUsesExcept(op.getResult(), op);
    return success();
  }

  /// What there is, for the message.
  std::string known() {
    llvm::SetVector<StringRef> names;
    for (func::FuncOp function : functions)
      for (unsigned i = 0; i < function.getNumArguments(); ++i)
        if (StringRef name = nameOf(function, i);
            !name.empty() && nameOf(function, i, "flow.slot_of").empty())
          names.insert(name);
    constexpr size_t kShown = 8;
    std::string text;
    for (auto [i, name] : llvm::enumerate(names.getArrayRef().take_front(kShown)))
      text += (i ? ", " : "; there are ") + name.str();
    return text + (names.size() > kShown ? ", .." : "");
  }

  LogicalResult tag(const DistributionRequest::Stage &stage) {
    NamePattern pattern(stage.pattern);
    Builder builder(module.getContext());
    bool found = false;
    for (func::FuncOp function : functions)
      function.walk([&](Operation *op) {
        if (op == function || !isForward(op) || op->getNumResults() == 0 ||
            isInit(op->getResult(0)) || !isa<RankedTensorType>(op->getResult(0).getType()))
          return;
        if (llvm::none_of(namesOf(op->getLoc()),
                          [&](StringAttr name) { return pattern.matches(name); }))
          return;
        op->setAttr("flow.stage", builder.getI64IntegerAttr(stage.stage));
        found = true;
      });
    if (found)
      return success();
    return fail("stage '" + stage.pattern + "=" + Twine(stage.stage) + "': no node is named '" +
                stage.pattern + "'");
  }

  LogicalResult checkStages() {
    if (request.stages.empty())
      return success();
    for (func::FuncOp function : functions) {
      SmallVector<int64_t> used = StageAssignment(function).stagesUsed();
      for (auto [i, stage] : llvm::enumerate(used))
        if (stage != static_cast<int64_t>(i))
          return fail("stages are counted from 0 without holes: there is a stage " + Twine(stage) +
                      ", but no node is on stage " + Twine(i));
    }
    return success();
  }

  ModuleOp module;
  const DistributionRequest &request;
  std::string &error;
  SmallVector<func::FuncOp> functions;
};
} // namespace

LogicalResult flow::applyConstraints(ModuleOp module, const DistributionRequest &request,
                                     std::string &error) {
  return ConstraintWriter(module, request, error).run();
}

namespace {
struct ApplyConstraints : flow::impl::ApplyConstraintsBase<ApplyConstraints> {
  using ApplyConstraintsBase::ApplyConstraintsBase;

  static SmallVector<StringRef> partsOf(ArrayRef<std::string> options) {
    SmallVector<StringRef> parts;
    for (StringRef option : options)
      option.split(parts, ';', -1, /*KeepEmpty=*/false);
    return parts;
  }

  void runOnOperation() override {
    std::string error;
    DistributionRequest request;
    auto run = [&]() -> LogicalResult {
      MLIRContext *context = &getContext();
      if (!mesh.empty() && !(request.mesh = parseMesh(mesh, context, error)))
        return failure();
      for (StringRef part : partsOf(sbp))
        if (failed(parseSbpRequest(part, context, request, error)))
          return failure();
      for (StringRef part : partsOf(stages))
        if (failed(parseStageRequest(part, request, error)))
          return failure();
      return applyConstraints(getOperation(), request, error);
    };
    if (failed(run())) {
      emitError(UnknownLoc::get(&getContext())) << error;
      signalPassFailure();
    }
  }
};
} // namespace
