// RUN: not flow-opt %s --flow-schedule="template=zigzag" 2>&1 | FileCheck %s --check-prefix=TEMPLATE
// RUN: not flow-opt %s --flow-schedule="comm=never" 2>&1 | FileCheck %s --check-prefix=COMM
// TEMPLATE: unknown template 'zigzag', expected one of 1f1b gpipe
// COMM: unknown comm 'never', expected early or late
module {
}
