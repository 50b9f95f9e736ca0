// Registers the dialect's attributes, types and ops; aliases for meshes.
#include "dialects/Flow/IR/FlowDialect.h"
#include "dialects/Flow/IR/FlowOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace flow;

#include "dialects/Flow/IR/FlowDialect.cpp.inc"

namespace {
struct MeshAliases : OpAsmDialectInterface {
  using OpAsmDialectInterface::OpAsmDialectInterface;
  AliasResult getAlias(Attribute attr, raw_ostream &os) const override {
    if (!isa<MeshAttr>(attr))
      return AliasResult::NoAlias;
    os << "mesh";
    return AliasResult::FinalAlias;
  }
};
} // namespace

void FlowDialect::initialize() {
  registerAttributes();
  registerTypes();
  addOperations<
#define GET_OP_LIST
#include "dialects/Flow/IR/FlowOps.cpp.inc"
      >();
  addInterfaces<MeshAliases>();
}
