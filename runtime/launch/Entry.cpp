// main of every compiled program.
#include "include/flow/Runtime/abi.h"

int main(int argc, char **argv) {
  return flow_runtime_main(&flow_main_executable, argc, argv);
}
