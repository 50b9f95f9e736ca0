// What all actors have in common.
#ifndef ACTOR_INTERFACES_TD
#define ACTOR_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Actor_ActorOpInterface : OpInterface<"ActorOpInterface"> {
  let cppNamespace = "::flow::actor";
  let description = [{
    A unit of execution: reads its input registers, writes its output registers.
  }];
  let methods = [
    InterfaceMethod<"the model's node(s), for people", "::llvm::StringRef", "getActorName">,
    InterfaceMethod<"the part of a step", "::flow::actor::Phase", "getPhase">,
    InterfaceMethod<"how often it fires", "::flow::actor::Rate", "getRate">,
    InterfaceMethod<"the stream that it fires on", "::flow::actor::Stream", "getStream", (ins), [{
      return streamOf($_op.getOperation());
    }]>,
    InterfaceMethod<"registers that it reads", "::mlir::OperandRange", "getReads", (ins), [{
      return $_op.getODSOperands(0);
    }]>,
    InterfaceMethod<"registers that it writes", "::mlir::OperandRange", "getWrites", (ins), [{
      return $_op.getODSOperands(1);
    }]>,
    InterfaceMethod<"registers in the order of the tables: inputs, outputs, scratch",
                    "::llvm::SmallVector<::mlir::Value>", "getRegisters", (ins), [{
      return ::llvm::SmallVector<::mlir::Value>($_op->getOperands());
    }]>
  ];
}

#endif
