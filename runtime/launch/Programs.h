// The two kinds of executables, and what they share.
#ifndef FLOW_RUNTIME_LAUNCH_PROGRAMS_H
#define FLOW_RUNTIME_LAUNCH_PROGRAMS_H

#include "include/flow/Runtime/abi.h"
#include "runtime/engine/Job.h"
#include "runtime/launch/CommandLine.h"
#include "runtime/launch/Environment.h"

namespace flow::runtime {

/// What has been decided before a program of either kind starts.
struct Launch {
  const flow_executable &executable;
  const flow_plan &plan;
  const CommandLine &commandLine;
  const Environment &environment;
};

void addTrainerFlags(CommandLine &commandLine, const flow_executable &executable);
Status runTrainer(const Launch &launch);

void addInferenceFlags(CommandLine &commandLine);
Status runInference(const Launch &launch);

/// The index of a program by name, or -1.
int findProgram(const flow_plan &plan, const char *name);

} // namespace flow::runtime

#endif
