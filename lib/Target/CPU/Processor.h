// The processor that code is generated for: checked name, features, widths.
#pragma once
#include "llvm/Support/Error.h"
#include "llvm/TargetParser/Triple.h"
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace flow {

/// A processor of this machine's architecture by one of LLVM's names.
class Processor {
public:
  /// `name` is `native`, a level such as `x86-64-v3`, or a processor such as
  /// `znver4`. Fails with one sentence that says what would be legal.
  static llvm::Expected<Processor> get(llvm::StringRef name);

  llvm::StringRef getCpu() const { return cpu; }
  /// Bits of the widest vector registers.
  unsigned getVectorBits() const { return vectorBits; }
  /// Number of those registers.
  unsigned getVectorRegisters() const { return vectorRegisters; }

  std::unique_ptr<llvm::TargetMachine> createTargetMachine(unsigned optLevel) const;

private:
  llvm::Triple triple;
  std::string cpu;
  std::string features;
  unsigned vectorBits = 128;
  unsigned vectorRegisters = 16;
};

} // namespace flow
