#include "lib/Driver/CommandLine.h"
#include "lib/Driver/Failure.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace flow {

namespace {

/// What both tools share. Options of LLVM's library register themselves when
/// they are made, so these live in the function that parses.
struct ModelFlags {
  cl::OptionCategory &category;
  cl::list<std::string> meshes{"mesh", cl::cat(category), cl::value_desc("AXIS=SIZE,..."),
                               cl::desc("grid of ranks, e.g. dp=2,tp=2")};
  cl::list<std::string> sbp{
      "sbp", cl::cat(category), cl::value_desc("NAME=[B,S(0)]"),
      cl::desc("how ranks hold a value: one entry per mesh axis, of S(i), B, P. NAME "
               "is an input, parameter, node output or output; * and ? match")};
  cl::list<std::string> stages{"stage", cl::cat(category), cl::value_desc("PATTERN=K"),
                               cl::desc("put matching nodes on pipeline stage K, counted from 0")};
  cl::opt<int64_t> microBatches{"micro-batches", cl::cat(category), cl::value_desc("M"),
                                cl::init(1), cl::desc("micro-batches of a training step")};
  cl::opt<std::string> schedule{
      "schedule", cl::cat(category), cl::value_desc("KEY=VALUE,..."),
      cl::desc("order of the work, which changes no result: template=1f1b|gpipe (of the "
               "micro-batches on a stage), comm=early|late (when gradients are reduced), "
               "seed=N (a random order)")};
  cl::list<std::string> dims{"dim", cl::cat(category), cl::value_desc("NAME=N"),
                             cl::desc("fix a dynamic dimension of the model")};
  cl::opt<std::string> loss{"loss", cl::cat(category), cl::value_desc("LOSS"),
                            cl::desc("softmax_cross_entropy (default), mse, or output:NAME")};
  cl::opt<std::string> targetCpu{
      "target-cpu", cl::cat(category), cl::value_desc("CPU"), cl::init("native"),
      cl::desc("processor to compile for: native, x86-64-v3, znver4, ...")};
  cl::opt<unsigned> optLevel;
  cl::opt<std::string> linker{"linker", cl::cat(category), cl::value_desc("lld|cc"),
                              cl::init("lld"),
                              cl::desc("lld inside this process, or the system's cc")};

  ModelFlags(cl::OptionCategory &category, unsigned optLevel)
      : category(category),
        optLevel("O", cl::cat(category), cl::Prefix, cl::value_desc("0..3"), cl::init(optLevel),
                 cl::desc("optimization of generated code")) {}
};

Expected<std::pair<std::string, int64_t>> parseDim(StringRef text) {
  auto [name, value] = text.rsplit('=');
  int64_t extent = 0;
  if (name.empty() || value.getAsInteger(10, extent) || extent < 1)
    return usageError("--dim '" + text + "': expected NAME=N with a positive N");
  return std::pair(name.str(), extent);
}

/// Ranks of `dp=2,tp=2`.
Expected<int64_t> checkMesh(StringRef text) {
  int64_t ranks = 1;
  SmallVector<StringRef> names;
  for (StringRef axis : split(text, ',')) {
    auto [name, value] = axis.split('=');
    int64_t size = 0;
    if (name.empty() || value.getAsInteger(10, size) || size < 1)
      return usageError("--mesh '" + text + "': expected AXIS=SIZE,... with positive sizes");
    if (is_contained(names, name))
      return usageError("--mesh '" + text + "': axis '" + name + "' stands twice");
    names.push_back(name);
    ranks *= size;
  }
  return ranks;
}

Error checkMeshes(ArrayRef<std::string> meshes) {
  SmallVector<int64_t> sizes;
  for (const std::string &mesh : meshes) {
    Expected<int64_t> ranks = checkMesh(mesh);
    if (!ranks)
      return ranks.takeError();
    if (is_contained(sizes, *ranks))
      return usageError("--mesh '" + mesh + "': another mesh has " + Twine(*ranks) +
                        " ranks too; --ranks could not tell them apart");
    sizes.push_back(*ranks);
  }
  return Error::success();
}

Error checkSbp(StringRef text) {
  // The name may contain `=`.
  size_t open = text.rfind("=[");
  if (open == StringRef::npos || open == 0 || !text.ends_with("]"))
    return usageError("--sbp '" + text +
                      "': expected NAME=[ENTRY,...] with one of S(i), B, P per mesh axis");
  return Error::success();
}

Error checkStage(StringRef text) {
  auto [pattern, value] = text.rsplit('=');
  unsigned stage;
  if (pattern.empty() || value.getAsInteger(10, stage))
    return usageError("--stage '" + text + "': expected PATTERN=K with K counted from 0");
  return Error::success();
}

Error checkLoss(StringRef loss) {
  if (loss == "softmax_cross_entropy" || loss == "mse" ||
      (loss.starts_with("output:") && loss.size() > 7))
    return Error::success();
  return usageError("--loss '" + loss + "': expected softmax_cross_entropy, mse or output:NAME");
}

Error checkOptimizer(StringRef text) {
  SmallVector<StringRef> parts(split(text, ','));
  if (parts.front() != "sgd")
    return usageError("--optimizer '" + text + "': unknown optimizer '" + parts.front() +
                      "'; expected sgd,lr=X[,momentum=X]");
  for (StringRef part : ArrayRef(parts).drop_front()) {
    auto [key, value] = part.split('=');
    double number;
    if ((key != "lr" && key != "momentum") || value.getAsDouble(number) || number < 0)
      return usageError("--optimizer '" + text + "': bad setting '" + part +
                        "'; expected sgd,lr=X[,momentum=X] with numbers that are not negative");
  }
  return Error::success();
}

Error checkSchedule(StringRef text) {
  for (StringRef entry : llvm::split(text, ',')) {
    auto [key, value] = entry.split('=');
    uint64_t seed;
    bool isKnown = (key == "template" && (value == "1f1b" || value == "gpipe")) ||
                   (key == "comm" && (value == "early" || value == "late")) ||
                   (key == "seed" && !value.getAsInteger(10, seed));
    if (!isKnown)
      return usageError("--schedule '" + text +
                        "': expected template=1f1b|gpipe, comm=early|late or seed=N");
  }
  return Error::success();
}

/// build/PRESET/bin/../lib/flow, and the same places after an installation.
std::string findLibraries(const char *argv0) {
  std::string executable =
      sys::fs::getMainExecutable(argv0, reinterpret_cast<void *>(&findLibraries));
  SmallString<128> path(sys::path::parent_path(sys::path::parent_path(executable)));
  sys::path::append(path, "lib", "flow");
  return path.str().str();
}

Error readModelFlags(const ModelFlags &flags, CompileOptions &options) {
  options.meshes.assign(flags.meshes.begin(), flags.meshes.end());
  options.sbp.assign(flags.sbp.begin(), flags.sbp.end());
  options.stages.assign(flags.stages.begin(), flags.stages.end());
  options.microBatches = flags.microBatches;
  options.schedule = flags.schedule;
  if (!options.schedule.empty())
    if (Error error = checkSchedule(options.schedule))
      return error;
  options.targetCpu = flags.targetCpu;
  options.optLevel = flags.optLevel;
  options.loss = flags.loss;
  if (Error error = checkMeshes(options.meshes))
    return error;
  for (StringRef text : options.sbp)
    if (Error error = checkSbp(text))
      return error;
  for (StringRef text : options.stages)
    if (Error error = checkStage(text))
      return error;
  for (StringRef text : flags.dims) {
    auto dim = parseDim(text);
    if (!dim)
      return dim.takeError();
    options.dims.push_back(*dim);
  }
  if (!options.loss.empty())
    if (Error error = checkLoss(options.loss))
      return error;
  if (options.microBatches < 1)
    return usageError("--micro-batches: expected a positive number, got " +
                      Twine(options.microBatches));
  if (options.optLevel > 3)
    return usageError("-O" + Twine(options.optLevel) + ": expected -O0, -O1, -O2 or -O3");
  if (flags.linker != "lld" && flags.linker != "cc")
    return usageError("--linker '" + flags.linker + "': expected lld or cc");
  options.linker = flags.linker == "cc" ? Linker::Cc : Linker::Lld;
  return Error::success();
}

Error readEmit(StringRef text, CompileOptions &options) {
  if (text == "object" || text == "executable") {
    options.emit =
        text == "object" ? CompileOptions::Emit::Object : CompileOptions::Emit::Executable;
    return Error::success();
  }
  options.emit = CompileOptions::Emit::Mlir;
  StringRef phase = text;
  auto name = StringSwitch<std::optional<PhaseName>>(phase.consume_front("mlir:") ? phase : "")
                  .Case("import", PhaseName::Import)
                  .Case("legalize", PhaseName::Legalize)
                  .Cases({"step", "train"}, PhaseName::Step)
                  .Case("distribute", PhaseName::Distribute)
                  .Case("localize", PhaseName::Localize)
                  .Case("kernels", PhaseName::Kernels)
                  .Case("schedule", PhaseName::Schedule)
                  .Case("llvm", PhaseName::LLVM)
                  .Default(std::nullopt);
  if (!name)
    return usageError(
        "--emit '" + text +
        "': expected executable, object or mlir:PHASE with PHASE one of import, legalize, "
        "step, distribute, localize, kernels, schedule, llvm");
  options.phase = *name;
  return Error::success();
}

/// MLIR's flags for debugging: --mlir-print-ir-after-all and the like.
void registerDebuggingFlags() {
  mlir::registerAsmPrinterCLOptions();
  mlir::registerMLIRContextCLOptions();
  mlir::registerPassManagerCLOptions();
  mlir::registerDefaultTimingManagerCLOptions();
}

/// Other libraries register flags as well (lld has -mcpu): `--help` shows ours.
Error parse(int argc, char **argv, cl::OptionCategory &category, StringRef overview) {
  registerDebuggingFlags();
  cl::HideUnrelatedOptions(category);
  std::string text;
  raw_string_ostream errors(text);
  if (cl::ParseCommandLineOptions(argc, argv, overview, &errors))
    return Error::success();
  // The library says in front of each line who it is; so does the caller.
  std::string message;
  for (StringRef line : split(StringRef(text).trim(), '\n')) {
    line.consume_front(sys::path::filename(argv[0]));
    line.consume_front(": ");
    message += (message.empty() ? "" : " ") + line.split("  Try: ").first.str();
  }
  return usageError(message + " See --help.");
}

/// Takes our flags out of LLVM's register before they die: lld resets all
/// that it finds there.
class Unregister {
public:
  Unregister(cl::OptionCategory &category, cl::Option &positional)
      : category(category), positional(positional) {}
  ~Unregister() {
    SmallVector<cl::Option *> flags{&positional};
    for (auto &entry : cl::getRegisteredOptions())
      if (is_contained(entry.second->Categories, &category))
        flags.push_back(entry.second);
    for (cl::Option *flag : flags)
      flag->removeArgument();
  }

private:
  cl::OptionCategory &category;
  cl::Option &positional;
};

Error readTraining(bool train, const cl::opt<std::string> &optimizer, const cl::opt<int64_t> &batch,
                   CompileOptions &options) {
  if (!train) {
    StringRef needless = optimizer.getNumOccurrences() ? "--optimizer"
                         : batch.getNumOccurrences()   ? "--batch"
                         : !options.loss.empty()       ? "--loss"
                         : options.microBatches != 1   ? "--micro-batches"
                                                       : "";
    return needless.empty() ? Error::success() : usageError(needless + " needs --train");
  }
  options.training = TrainingRequest{options.loss.empty() ? "softmax_cross_entropy" : options.loss,
                                     optimizer, batch};
  if (Error error = checkOptimizer(optimizer))
    return error;
  if (!batch.getNumOccurrences())
    return usageError("--train needs --batch=N, the global number of samples of a step");
  if (batch < 1)
    return usageError("--batch: expected a positive number, got " + Twine(batch));
  if (batch % options.microBatches != 0)
    return usageError("--micro-batches=" + Twine(options.microBatches) +
                      " does not divide --batch=" + Twine(batch));
  return Error::success();
}

/// `y:wrt=x,w`
Expected<GradientRequest> parseGradient(StringRef text) {
  auto [of, wrt] = text.split(":wrt=");
  if (of.empty() || wrt.empty())
    return usageError("--grad '" + text + "': expected OUTPUT:wrt=NAME,... or loss:wrt=NAME,...");
  GradientRequest request{of.str(), {}};
  for (StringRef name : split(wrt, ','))
    request.wrt.push_back(name.str());
  return request;
}

void printVersion(raw_ostream &stream) {
  stream << "flow 0.1.0, LLVM " LLVM_VERSION_STRING "\n";
}

} // namespace

Expected<CompileOptions> parseCompileCommandLine(int argc, char **argv) {
  cl::OptionCategory category("options");
  cl::list<std::string> model(cl::Positional, cl::cat(category), cl::desc("MODEL.{onnx,mlir}"));
  cl::opt<std::string> output("o", cl::cat(category), cl::value_desc("PROG"),
                              cl::desc("output file; its weights go to PROG.weights"));
  cl::opt<bool> train("train", cl::cat(category),
                      cl::desc("make a trainer instead of an inference program"));
  cl::opt<std::string> optimizer("optimizer", cl::cat(category),
                                 cl::value_desc("sgd,lr=X[,momentum=X]"), cl::init("sgd,lr=0.01"),
                                 cl::desc("how parameters are updated"));
  cl::opt<int64_t> batch("batch", cl::cat(category), cl::value_desc("N"), cl::init(0),
                         cl::desc("global number of samples of a training step"));
  cl::opt<std::string> emit(
      "emit", cl::cat(category), cl::value_desc("WHAT"), cl::init("executable"),
      cl::desc("executable, object, or mlir:PHASE (import, legalize, step, distribute, "
               "localize, kernels, schedule, llvm)"));
  ModelFlags flags(category, 3);
  Unregister unregister(category, model);
  cl::SetVersionPrinter(printVersion);
  if (Error error = parse(
          argc, argv, category,
          "compiles a model into a program that trains or runs it on many ranks\n\n"
          "  --mesh, --sbp, --stage and --dim may be given several times.\n"
          "  MLIR's debugging flags work too: --mlir-print-ir-after-all, --mlir-timing, ...\n"))
    return error;
  CompileOptions options;
  if (model.size() != 1)
    return usageError(model.empty() ? "no model is given; see --help"
                                    : "more than one model is given");
  options.model = model[0];
  options.output = output;
  options.libraries = findLibraries(argv[0]);
  if (Error error = readEmit(emit, options))
    return error;
  if (Error error = readModelFlags(flags, options))
    return error;
  if (Error error = readTraining(train, optimizer, batch, options))
    return error;
  if (output.empty() && options.emit != CompileOptions::Emit::Mlir)
    return usageError("no output is given: -o PROG");
  return options;
}

Expected<RunOptions> parseRunCommandLine(int argc, char **argv) {
  cl::OptionCategory category("options");
  cl::list<std::string> files(cl::Positional, cl::cat(category),
                              cl::desc("MODEL.{onnx,mlir} in.npz out.npz"));
  cl::opt<int64_t> ranks("ranks", cl::cat(category), cl::value_desc("N"),
                         cl::desc("number of ranks; default: those of the mesh"));
  cl::opt<std::string> gradient(
      "grad", cl::cat(category), cl::value_desc("OUT:wrt=NAME,..."),
      cl::desc("add the gradients of sum(OUT), or of the loss with OUT = loss, as "
               "grad_NAME; * stands for all parameters"));
  cl::opt<std::string> dumpLocal(
      "dump-local", cl::cat(category), cl::value_desc("DIR"),
      cl::desc("write DIR/rank-K.npz with each output as rank K holds it"));
  ModelFlags flags(category, 2);
  Unregister unregister(category, files);
  cl::SetVersionPrinter(printVersion);
  if (Error error = parse(
          argc, argv, category,
          "compiles a model and runs it once: in.npz and out.npz hold inputs and outputs by "
          "name\n\n"
          "  Dynamic dimensions are those of the arrays in in.npz.\n"
          "  MLIR's debugging flags work too: --mlir-print-ir-after-all, --mlir-timing, ...\n"))
    return error;
  RunOptions options;
  if (files.size() != 3)
    return usageError("expected MODEL in.npz out.npz; see --help");
  options.compile.model = files[0];
  options.input = files[1];
  options.output = files[2];
  options.compile.tool = "flow-run";
  options.compile.libraries = findLibraries(argv[0]);
  options.dumpLocal = dumpLocal;
  if (Error error = readModelFlags(flags, options.compile))
    return error;
  if (gradient.getNumOccurrences()) {
    auto request = parseGradient(gradient);
    if (!request)
      return request.takeError();
    options.compile.gradient = *request;
  }
  if (ranks.getNumOccurrences()) {
    if (ranks < 1)
      return usageError("--ranks: expected a positive number, got " + Twine(ranks));
    options.ranks = ranks;
  }
  return options;
}

} // namespace flow
