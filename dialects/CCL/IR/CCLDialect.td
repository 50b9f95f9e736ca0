// The ccl dialect: collectives between the ranks of a mesh.
#ifndef CCL_DIALECT_TD
#define CCL_DIALECT_TD

include "mlir/IR/OpBase.td"

def CCL_Dialect : Dialect {
  let name = "ccl";
  let cppNamespace = "::flow::ccl";
  let summary = "collectives on tensors, synchronous, in destination style";
  let description = [{
    A function with ccl ops is what one rank executes. Every rank of a group
    must reach the same ops in the same order. The group of an op is spanned by
    the mesh axes it names: the ranks that differ only in those coordinates. Its
    members are in mesh order, the first listed axis outermost.

    Ops move equal contiguous blocks. Packing, unpacking and padding to the
    largest shard are tensor and linalg ops around them. `global` and `dim` name
    the extent and dim of the global value that a split serves; back ends that
    take per-rank counts and the certificate read them.
  }];
  let useDefaultAttributePrinterParser = 1;
}

class CCL_Op<string mnemonic, list<Trait> traits = []> : Op<CCL_Dialect, mnemonic, traits>;

#endif
