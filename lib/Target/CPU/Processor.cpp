#include "lib/Target/CPU/Processor.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Target/TargetOptions.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/SubtargetFeature.h"
#include "llvm/TargetParser/X86TargetParser.h"

using namespace llvm;

namespace flow {

static bool isLegalName(const Triple &triple, const MCSubtargetInfo &subtarget, StringRef name,
                        SmallVectorImpl<StringRef> &names) {
  if (triple.isX86())
    X86::fillValidCPUArchList(names, /*Only64Bit=*/true);
  else
    for (const SubtargetSubTypeKV &entry : subtarget.getAllProcessorDescriptions())
      names.push_back(entry.Key);
  return is_contained(names, name);
}

static Error unknownName(StringRef name, ArrayRef<StringRef> names) {
  StringRef nearest;
  unsigned best = 3;
  for (StringRef candidate : names)
    if (unsigned distance = name.edit_distance(candidate, true, best); distance < best) {
      best = distance;
      nearest = candidate;
    }
  std::string text = ("unknown processor '" + name + "' in --target-cpu").str();
  if (!nearest.empty())
    text += ("; did you mean '" + nearest + "'?").str();
  else
    text += "; use native, x86-64, x86-64-v2, x86-64-v3, x86-64-v4 or a name "
            "that clang's -march "
            "takes, such as znver4";
  return createStringError(text);
}

Expected<Processor> Processor::get(StringRef name) {
  InitializeNativeTarget();
  InitializeNativeTargetAsmPrinter();
  Processor result;
  result.triple = Triple(sys::getDefaultTargetTriple());
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(result.triple, error);
  if (!target)
    return createStringError(error);
  result.cpu = name == "native" ? sys::getHostCPUName().str() : name.str();
  if (name == "native") {
    SubtargetFeatures features;
    for (const auto &feature : sys::getHostCPUFeatures())
      features.AddFeature(feature.first(), feature.second);
    result.features = features.getString();
  } else {
    std::unique_ptr<MCSubtargetInfo> generic(target->createMCSubtargetInfo(result.triple, "", ""));
    SmallVector<StringRef> names;
    if (!isLegalName(result.triple, *generic, name, names))
      return unknownName(name, names);
  }
  std::unique_ptr<MCSubtargetInfo> subtarget(
      target->createMCSubtargetInfo(result.triple, result.cpu, result.features));
  if (result.triple.isX86()) {
    if (subtarget->checkFeatures("+avx512f"))
      result.vectorBits = 512, result.vectorRegisters = 32;
    else if (subtarget->checkFeatures("+avx"))
      result.vectorBits = 256;
  } else if (result.triple.isAArch64()) {
    result.vectorRegisters = 32;
  }
  return result;
}

std::unique_ptr<TargetMachine> Processor::createTargetMachine(unsigned optLevel) const {
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  TargetOptions options;
  options.AllowFPOpFusion = FPOpFusion::Fast;
  options.FunctionSections = true;
  options.DataSections = true;
  return std::unique_ptr<TargetMachine>(target->createTargetMachine(
      triple, cpu, features, options, Reloc::PIC_, std::nullopt,
      CodeGenOpt::getLevel(optLevel).value_or(CodeGenOptLevel::Default)));
}

} // namespace flow
