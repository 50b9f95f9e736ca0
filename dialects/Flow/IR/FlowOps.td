// Ops of the flow dialect, by life span: import, request, decision.
#ifndef FLOW_OPS_TD
#define FLOW_OPS_TD

include "dialects/Flow/IR/FlowImportOps.td"
include "dialects/Flow/IR/FlowDistributionOps.td"

#endif
