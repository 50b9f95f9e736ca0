// The type of a distributed value.
#pragma once

#include "dialects/Flow/IR/FlowAttrs.h"

#define GET_TYPEDEF_CLASSES
#include "dialects/Flow/IR/FlowTypes.h.inc"
