// Constant C data as LLVM globals: numbers, strings, addresses, structs, arrays.
#pragma once

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"
#include <string>
#include <vector>

namespace flow {

/// A constant, to be written into the initializer of a global.
struct Constant {
  enum class Kind { Integer, Double, Null, Address, Struct, Array };
  Kind kind = Kind::Null;
  mlir::Type type;
  int64_t integer = 0; ///< Address: index of the element of the array that is meant
  double number = 0;
  std::string symbol;
  mlir::Type pointee; ///< Address: the element type
  std::vector<Constant> fields;
};

class TableBuilder {
public:
  explicit TableBuilder(mlir::ModuleOp module);

  Constant u32(int64_t value) { return integer(value, 32); }
  Constant i64(int64_t value) { return integer(value, 64); }
  Constant f64(double value);
  Constant null();
  /// A zero-terminated string; equal ones are one global.
  Constant string(llvm::StringRef text);
  Constant symbol(llvm::StringRef name);
  Constant record(std::vector<Constant> fields);

  /// Pointers to new arrays; null for empty ones.
  Constant array(llvm::StringRef name, std::vector<Constant> elements);
  Constant integers(llvm::StringRef name, llvm::ArrayRef<int64_t> values, unsigned bits);
  /// A pointer to element `index` of an array made before.
  Constant element(const Constant &array, int64_t index);

  /// A constant with a name of its own that other modules see.
  void exported(llvm::StringRef name, const Constant &value);

private:
  mlir::ModuleOp module;
  mlir::OpBuilder builder;
  llvm::StringMap<std::string> strings;
  unsigned counter = 0;

  Constant integer(int64_t value, unsigned bits);
  std::string nextName(llvm::StringRef name);
  mlir::Value emit(const Constant &value, mlir::OpBuilder &inside);
  mlir::LLVM::GlobalOp define(llvm::StringRef name, const Constant &value,
                              mlir::LLVM::Linkage linkage);
};

} // namespace flow
