#include "lib/Target/CPU/ObjectCode.h"
#include "mlir/ExecutionEngine/OptUtils.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ThreadPool.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/Utils/SplitModule.h"

using namespace llvm;

namespace flow {

void registerLLVMTranslations(mlir::DialectRegistry &registry) {
  mlir::registerBuiltinDialectTranslation(registry);
  mlir::registerLLVMDialectTranslation(registry);
}

/// The widest vectors are chosen by the kernels, not by LLVM's cost model,
/// which prefers half-width ones on many processors.
static void preferFullVectors(llvm::Module &module, unsigned bits) {
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("prefer-vector-width", std::to_string(bits));
    function.addFnAttr("min-legal-vector-width", std::to_string(bits));
    function.addFnAttr(Attribute::NoUnwind);
    function.removeFnAttr(Attribute::UWTable);
  }
}

/// A module is divided along its external symbols. Functions that only tables
/// refer to would all stay with the tables, so they are made visible to the
/// linker (but not beyond the executable).
static void exposeFunctionsInTables(llvm::Module &module) {
  for (Function &function : module) {
    if (!function.hasLocalLinkage())
      continue;
    bool inTable = any_of(function.users(), [](User *user) { return isa<Constant>(user); });
    if (!inTable)
      continue;
    function.setLinkage(GlobalValue::ExternalLinkage);
    function.setVisibility(GlobalValue::HiddenVisibility);
  }
}

/// What earlier phases wrote on arguments means nothing to LLVM.
static void dropArgumentNotes(mlir::ModuleOp module) {
  module.walk([](mlir::LLVM::LLVMFuncOp function) {
    for (unsigned i = 0; i < function.getNumArguments(); ++i)
      if (auto notes = mlir::function_interface_impl::getArgAttrDict(function, i))
        for (mlir::NamedAttribute note : notes)
          if (note.getName().strref().starts_with("flow."))
            function.removeArgAttr(i, note.getName());
  });
}

static Error compile(llvm::Module &module, const Processor &target, unsigned optLevel,
                     ObjectFile &object) {
  std::unique_ptr<TargetMachine> machine = target.createTargetMachine(optLevel);
  module.setDataLayout(machine->createDataLayout());
  module.setTargetTriple(machine->getTargetTriple());
  if (Error error =
          mlir::makeOptimizingTransformer(optLevel, /*sizeLevel=*/0, machine.get())(&module))
    return error;
  raw_svector_ostream stream(object);
  legacy::PassManager passes;
  if (machine->addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("no object code can be written for this processor");
  passes.run(module);
  return Error::success();
}

/// Parts travel as bitcode: each thread needs a context of its own.
static Expected<std::vector<ObjectFile>> compileParts(llvm::Module &module, const Processor &target,
                                                      const ObjectCodeOptions &options) {
  std::vector<SmallString<0>> bitcode;
  SplitModule(
      module, options.parts,
      [&](std::unique_ptr<llvm::Module> part) {
        raw_svector_ostream stream(bitcode.emplace_back());
        WriteBitcodeToFile(*part, stream);
      },
      /*PreserveLocals=*/true, /*RoundRobin=*/true);
  std::vector<ObjectFile> objects(bitcode.size());
  std::vector<std::string> errors(bitcode.size());
  DefaultThreadPool pool;
  for (size_t i = 0; i < bitcode.size(); ++i)
    pool.async([&, i] {
      LLVMContext context;
      auto part = parseBitcodeFile(MemoryBufferRef(bitcode[i], "part"), context);
      Error error = part ? compile(**part, target, options.optLevel, objects[i]) : part.takeError();
      errors[i] = toString(std::move(error));
    });
  pool.wait();
  for (const std::string &error : errors)
    if (!error.empty())
      return createStringError(error);
  return objects;
}

Expected<std::vector<ObjectFile>> emitObjectCode(mlir::ModuleOp module, const Processor &target,
                                                 const ObjectCodeOptions &options) {
  dropArgumentNotes(module);
  LLVMContext context;
  std::unique_ptr<llvm::Module> llvmModule = mlir::translateModuleToLLVMIR(module, context);
  if (!llvmModule)
    return createStringError("the module is not in the LLVM dialect");
  preferFullVectors(*llvmModule, target.getVectorBits());
  if (options.parts > 1) {
    exposeFunctionsInTables(*llvmModule);
    return compileParts(*llvmModule, target, options);
  }
  std::vector<ObjectFile> objects(1);
  if (Error error = compile(*llvmModule, target, options.optLevel, objects[0]))
    return error;
  return objects;
}

} // namespace flow
