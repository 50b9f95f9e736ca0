// What a user may ask about distribution, parsed from the command line.
#pragma once

#include "dialects/Flow/IR/FlowAttrs.h"
#include "mlir/IR/BuiltinOps.h"

namespace flow {

struct DistributionRequest {
  struct Sbp {
    std::string pattern;
    llvm::SmallVector<SbpAttr> entries; // one per mesh axis
  };
  struct Stage {
    std::string pattern;
    int64_t stage;
  };
  MeshAttr mesh; // null: one rank
  std::vector<Sbp> sbp;
  std::vector<Stage> stages;
};

/// `dp=2,tp=2`. Returns null and sets `error` (one sentence) if it is something else.
MeshAttr parseMesh(llvm::StringRef text, mlir::MLIRContext *context, std::string &error);

/// `NAME=[B,S(0)]` and `PATTERN=K`, appended to the request.
llvm::LogicalResult parseSbpRequest(llvm::StringRef text, mlir::MLIRContext *context,
                                    DistributionRequest &request, std::string &error);
llvm::LogicalResult parseStageRequest(llvm::StringRef text, DistributionRequest &request,
                                      std::string &error);

/// Writes the request into a module of forms II or III (see
/// --flow-apply-constraints). Fails with one sentence that names the request if it
/// matches nothing or does not fit: a usage error of the user.
llvm::LogicalResult applyConstraints(mlir::ModuleOp module, const DistributionRequest &request,
                                     std::string &error);

} // namespace flow
