#include "lib/Driver/Compile.h"
#include "lib/Driver/DiagnosticText.h"
#include "lib/Driver/Failure.h"
#include "lib/Driver/Model.h"
#include "lib/Driver/ModelShapes.h"
#include "lib/Driver/OutputFile.h"
#include "lib/Driver/Weights.h"
#include "lib/Pipelines/JoinPlans.h"
#include "lib/Pipelines/Phases.h"
#include "lib/Pipelines/Registration.h"
#include "lib/Scheduling/Passes.h"
#include "lib/Training/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MLProgram/IR/MLProgram.h"
#include "mlir/IR/AsmState.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using llvm::Error;
using llvm::Expected;

namespace flow {

namespace {

/// One run of the compiler: the context, its messages, its clock.
class Compilation {
public:
  explicit Compilation(const CompileOptions &options)
      : options(options), context(makeRegistry()), messages(&context, options.tool) {
    applyDefaultTimingManagerCLOptions(timing);
    clock = timing.getRootScope();
  }

  Error run();

private:
  using Builder = llvm::function_ref<void(OpPassManager &)>;

  static DialectRegistry makeRegistry() {
    DialectRegistry registry;
    registerDialects(registry);
    registerLLVMTranslations(registry);
    return registry;
  }

  /// Runs passes; their first complaints become the message, with `code`.
  Error runPasses(ModuleOp module, StringRef name, ExitCode code, Builder build);
  Expected<OwningOpRef<ModuleOp>> readAndLegalize();
  Error makeStep(ModuleOp module);
  Error plan(ModuleOp module, StringRef mesh);
  Error lower(ModuleOp module, const Processor &target);
  void describeExecutable(ModuleOp module, bool hasWeights);
  Error writeText(ArrayRef<OwningOpRef<ModuleOp>> modules);
  Error writeProgram(ModuleOp module, const Processor &target, ModuleOp weights);
  bool stopsAfter(PhaseName phase) const {
    return options.emit == CompileOptions::Emit::Mlir && options.phase == phase;
  }

  const CompileOptions &options;
  MLIRContext context;
  DiagnosticText messages;
  DefaultTimingManager timing;
  TimingScope clock;
};

} // namespace

/// Only the initial values: lowering erases them, the weights file needs them.
static OwningOpRef<ModuleOp> copyGlobals(ModuleOp module) {
  OwningOpRef<ModuleOp> copy = ModuleOp::create(module.getLoc());
  for (auto global : module.getOps<ml_program::GlobalOp>())
    copy->push_back(global->clone());
  return copy;
}

static Error checkBatch(ModuleOp module, int64_t batch) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; i < main.getNumArguments(); ++i) {
    auto type = cast<RankedTensorType>(main.getArgumentTypes()[i]);
    auto kind = main.getArgAttrOfType<StringAttr>(i, "flow.kind");
    if (kind.getValue() != "input" || type.getRank() == 0 || type.isDynamicDim(0) ||
        type.getDimSize(0) == batch)
      continue;
    return usageError("a batch of " + Twine(batch) + " does not fit input '" +
                      main.getArgAttrOfType<StringAttr>(i, "flow.name").getValue() +
                      "', which has " + Twine(type.getDimSize(0)) + " samples in the model");
  }
  return Error::success();
}

static Error checkStatic(ModuleOp module) {
  auto main = module.lookupSymbol<func::FuncOp>("main");
  for (unsigned i = 0; main && i < main.getNumArguments(); ++i) {
    auto type = dyn_cast<RankedTensorType>(main.getArgumentTypes()[i]);
    if (!type || type.hasStaticShape())
      continue;
    StringRef name = main.getArgAttrOfType<StringAttr>(i, "flow.name").getValue();
    auto names = main.getArgAttrOfType<ArrayAttr>(i, "flow.dims");
    for (auto [d, extent] : llvm::enumerate(type.getShape()))
      if (ShapedType::isDynamic(extent)) {
        StringRef dim = names ? cast<StringAttr>(names[d]).getValue() : "";
        return usageError(
            "input '" + name + "': the size of dim " + Twine(d) + " is not known; " +
            (dim.empty() ? "fix it in the model" : "give it with --dim " + dim + "=N"));
      }
  }
  return Error::success();
}

/// Passes may leave in the module whose fault a failure is.
static ExitCode exitCodeOf(ModuleOp module, ExitCode otherwise) {
  auto failure = module->getAttrOfType<StringAttr>("flow.failure");
  return llvm::StringSwitch<ExitCode>(failure ? failure.getValue() : "")
      .Case("input", ExitCode::Input)
      .Case("usage", ExitCode::Usage)
      .Case("unsupported", ExitCode::Unsupported)
      .Default(otherwise);
}

Error Compilation::runPasses(ModuleOp module, StringRef name, ExitCode code, Builder build) {
  PassManager pm(&context);
  if (failed(applyPassManagerCLOptions(pm)))
    return usageError(messages.take());
  TimingScope scope = clock.nest(name);
  pm.enableTiming(scope);
  build(pm);
  if (failed(pm.run(module)))
    return llvm::make_error<Failure>(exitCodeOf(module, code), messages.take());
  return Error::success();
}

Expected<OwningOpRef<ModuleOp>> Compilation::readAndLegalize() {
  TimingScope scope = clock.nest("read the model");
  Expected<OwningOpRef<ModuleOp>> module = readModel(options.model, context, messages);
  scope.stop();
  if (!module)
    return module.takeError();
  if (!options.inputShapes.empty())
    if (Error error = checkInputShapes(**module, options.inputShapes))
      return error;
  std::vector<std::pair<std::string, int64_t>> dims = setInputShapes(**module, options.inputShapes);
  dims.insert(dims.end(), options.dims.begin(), options.dims.end());
  // ONNX's operators find their shapes anew, a body in linalg cannot.
  bool isText = llvm::sys::path::extension(options.model) == ".mlir";
  if (options.training && isText)
    if (Error error = checkBatch(**module, options.training->batch / options.microBatches))
      return error;
  int64_t batch = options.training ? options.training->batch / options.microBatches : 0;
  ImportOptions import;
  import.batch = batch;
  for (const auto &[name, extent] : dims)
    import.dims.push_back(name + "=" + std::to_string(extent));
  if (Error error = runPasses(**module, "import", ExitCode::Usage,
                              [&](OpPassManager &pm) { buildImportPipeline(pm, import); }))
    return error;
  if (isText)
    if (Error error = runPasses(**module, "refine", ExitCode::Unsupported, buildRefinePipeline))
      return error;
  if (stopsAfter(PhaseName::Import))
    return module;
  // Of an ONNX model legalization reports this with all else that is not supported.
  if (isText)
    if (Error error = checkStatic(**module))
      return error;
  if (Error error = runPasses(**module, "legalize", ExitCode::Input, buildLegalizePipeline))
    return error;
  return module;
}

Error Compilation::makeStep(ModuleOp module) {
  if (options.gradient) {
    training::GradientOptions gradient;
    gradient.of = options.gradient->of;
    if (options.gradient->wrt != std::vector<std::string>{"*"})
      gradient.wrt = llvm::ArrayRef(options.gradient->wrt);
    if (!options.loss.empty())
      gradient.loss = options.loss;
    return runPasses(module, "gradients", ExitCode::Usage,
                     [&](OpPassManager &pm) { training::buildGradientPipeline(pm, gradient); });
  }
  if (!options.training)
    return Error::success();
  training::TrainingOptions step;
  step.loss = options.training->loss;
  step.optimizer = options.training->optimizer;
  step.batch = options.training->batch;
  step.microBatches = options.microBatches;
  return runPasses(module, "step", ExitCode::Unsupported,
                   [&](OpPassManager &pm) { training::buildTrainingPipeline(pm, step); });
}

Error Compilation::plan(ModuleOp module, StringRef mesh) {
  DistributeOptions distribute;
  distribute.mesh = mesh.str();
  distribute.sbp = llvm::join(options.sbp, ";");
  distribute.stages = llvm::join(options.stages, ";");
  if (Error error = runPasses(module, "constrain", ExitCode::Usage,
                              [&](OpPassManager &pm) { buildConstrainPipeline(pm, distribute); }))
    return error;
  struct Part {
    PhaseName phase;
    StringRef name;
    void (*build)(OpPassManager &);
  };
  const Part parts[] = {{PhaseName::Distribute, "distribute", buildDistributePipeline},
                        {PhaseName::Localize, "localize", buildLocalizePipeline},
                        {PhaseName::Kernels, "kernels", buildKernelsPipeline}};
  for (const Part &part : parts) {
    if (Error error = runPasses(module, part.name, ExitCode::Unsupported, part.build))
      return error;
    if (stopsAfter(part.phase))
      return Error::success();
  }
  return runPasses(module, "actors", ExitCode::Unsupported, buildActorsPipeline);
}

/// What the tables say about the program as a whole.
void Compilation::describeExecutable(ModuleOp module, bool hasWeights) {
  mlir::Builder b(&context);
  NamedAttrList entries;
  StringRef loss = options.training ? StringRef(options.training->loss) : "none";
  entries.set("kind", b.getStringAttr(options.training ? "trainer" : "inference"));
  entries.set("model", b.getStringAttr(llvm::sys::path::filename(options.model)));
  entries.set("batch", b.getI64IntegerAttr(options.training ? options.training->batch : 0));
  entries.set("loss", b.getStringAttr(loss.split(':').first));
  if (hasWeights)
    entries.set("weights_file",
                b.getStringAttr(llvm::sys::path::filename(options.output) + ".weights"));
  NamedAttrList scalars;
  if (options.training)
    for (StringRef setting : llvm::split(options.training->optimizer, ','))
      if (double rate; setting.consume_front("lr=") && !setting.getAsDouble(rate))
        scalars.set("lr", b.getF64FloatAttr(rate));
  entries.set("scalars", scalars.getDictionary(&context));
  module->setAttr("flow.executable", entries.getDictionary(&context));
}

/// From plans of actors to one module in the LLVM dialect.
Error Compilation::lower(ModuleOp module, const Processor &target) {
  CpuTarget kernels;
  kernels.vectorBits = target.getVectorBits();
  kernels.registers = target.getVectorRegisters();
  if (Error error = runPasses(module, "lower kernels", ExitCode::Unsupported,
                              [&](OpPassManager &pm) { buildLowerKernelsPipeline(pm, kernels); }))
    return error;
  ScheduleOptions order;
  for (StringRef entry : llvm::split(options.schedule, ',')) {
    auto [key, value] = entry.split('=');
    if (key == "template")
      order.unitTemplate = value.str();
    else if (key == "comm")
      order.comm = value.str();
    else if (key == "seed")
      (void)value.getAsInteger(10, order.seed);
  }
  if (Error error = runPasses(module, "schedule", ExitCode::Unsupported,
                              [&](OpPassManager &pm) { buildSchedulePipeline(pm, order); }))
    return error;
  if (stopsAfter(PhaseName::Schedule))
    return Error::success();
  return runPasses(module, "llvm", ExitCode::Unsupported, buildTablesPipeline);
}

/// Several modules stand one after the other as flow-opt --split-input-file reads them.
Error Compilation::writeText(ArrayRef<OwningOpRef<ModuleOp>> modules) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  flags.enableDebugInfo(); // names of nodes are locations: without them no phase can be replayed
  for (const auto &module : modules) {
    if (&module != modules.begin())
      stream << "\n// -----\n\n";
    (*module)->print(stream, flags);
    stream << "\n";
  }
  if (options.output.empty() || options.output == "-") {
    llvm::outs() << text;
    return Error::success();
  }
  Expected<OutputFile> file = OutputFile::create(options.output, /*executable=*/false);
  if (!file)
    return file.takeError();
  if (Error error = file->write(text))
    return error;
  return file->keep();
}

Error Compilation::writeProgram(ModuleOp module, const Processor &target, ModuleOp weights) {
  bool linked = options.emit == CompileOptions::Emit::Executable;
  Expected<OutputFile> program = OutputFile::create(options.output, linked);
  if (!program)
    return program.takeError();
  TimingScope code = clock.nest("object code");
  auto objects = emitObjectCode(module, target, {options.optLevel, /*parts=*/linked ? 8u : 1u});
  code.stop();
  if (!objects)
    return unsupportedError(llvm::toString(objects.takeError()));
  TimingScope link = clock.nest("link");
  Error error = linked
                    ? linkExecutable(*objects, program->getTemporaryPath(),
                                     {options.linker, options.libraries})
                    : program->write(StringRef(objects->front().data(), objects->front().size()));
  link.stop();
  if (error)
    return error;
  if (!weights)
    return program->keep();
  TimingScope copy = clock.nest("weights");
  Expected<OutputFile> file = OutputFile::create(options.output + ".weights", /*executable=*/false);
  if (!file)
    return file.takeError();
  if (Error error = writeWeights(weights, file->getTemporaryPath()))
    return error;
  if (Error error = file->keep())
    return error;
  return program->keep();
}

Error Compilation::run() {
  Expected<Processor> target = Processor::get(options.targetCpu);
  if (!target)
    return usageError(llvm::toString(target.takeError()));
  Expected<OwningOpRef<ModuleOp>> step = readAndLegalize();
  if (!step)
    return step.takeError();
  if (stopsAfter(PhaseName::Import) || stopsAfter(PhaseName::Legalize))
    return writeText(*step);
  if (Error error = makeStep(**step))
    return error;
  if (stopsAfter(PhaseName::Step))
    return writeText(*step);

  std::vector<OwningOpRef<ModuleOp>> plans;
  std::vector<std::string> meshes = options.meshes;
  if (meshes.empty())
    meshes.push_back("");
  for (const std::string &mesh : meshes) {
    plans.emplace_back((*step)->clone());
    if (Error error = plan(*plans.back(), mesh))
      return error;
  }
  if (options.emit == CompileOptions::Emit::Mlir && options.phase <= PhaseName::Kernels)
    return writeText(plans);
  if (failed(joinPlans(plans)))
    return unsupportedError(messages.take());
  ModuleOp module = *plans.front();
  size_t stored = placeWeights(module);
  describeExecutable(module, stored != 0);
  OwningOpRef<ModuleOp> weights = copyGlobals(module);
  if (Error error = lower(module, *target))
    return error;
  if (options.emit == CompileOptions::Emit::Mlir)
    return writeText(ArrayRef(plans).take_front());
  return writeProgram(module, *target, stored ? *weights : ModuleOp());
}

Error compileModel(const CompileOptions &options) {
  return Compilation(options).run();
}

} // namespace flow
