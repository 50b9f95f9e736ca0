/* The contract between a compiled program and libflow_runtime: constant tables
 * that the compiler emits, and the functions that kernels may call. C11.
 *
 * Everything a rank does is in these tables: which kernels and collectives
 * fire, in which order on which stream, after which other firings, on which
 * bytes of the arena. The runtime adds nothing but waiting.
 */
#ifndef FLOW_RUNTIME_ABI_H
#define FLOW_RUNTIME_ABI_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define FLOW_ABI_VERSION 1u

enum flow_dtype {
  FLOW_F32,
  FLOW_F64,
  FLOW_F16,
  FLOW_BF16,
  FLOW_I8,
  FLOW_I16,
  FLOW_I32,
  FLOW_I64,
  FLOW_U8,
  FLOW_U16,
  FLOW_U32,
  FLOW_U64,
  FLOW_BOOL
};
enum flow_monoid { FLOW_SUM, FLOW_MAX, FLOW_MIN, FLOW_PROD };
enum flow_sbp_kind { FLOW_SPLIT, FLOW_BROADCAST, FLOW_PARTIAL };

/* How one mesh axis holds a tensor. `unit` elements stay together in a split
 * along `dim`; of n units on p ranks the first n mod p ranks hold one more. */
typedef struct flow_sbp {
  uint32_t kind;   /* flow_sbp_kind */
  uint32_t monoid; /* flow_monoid, for FLOW_PARTIAL */
  int64_t dim;
  int64_t unit;
} flow_sbp;

enum flow_tensor_kind {
  FLOW_STATE,  /* kept from step to step, initialised from the weights file */
  FLOW_INPUT,  /* a key of the data file; rows of dim 0 are samples in a trainer */
  FLOW_LABEL,  /* the key `label` of the data file */
  FLOW_SCALAR, /* set by the runtime for each step, such as `lr` */
  FLOW_OUTPUT, /* written to the output file */
  FLOW_LOSS,   /* scalar; training: mean over the batch; evaluation: sum over the first `count`
                  samples */
  FLOW_CORRECT /* i64 scalar: how many labels were the largest class, over the first `count` samples
                */
};

/* A value that a program exchanges with the world. One that two stages hold
 * appears twice, once per stage. FLOW_LOSS and FLOW_CORRECT are read right after
 * the firing that writes them; FLOW_OUTPUT when all has ended. */
typedef struct flow_tensor {
  const char *name;
  uint32_t kind;  /* flow_tensor_kind */
  uint32_t dtype; /* flow_dtype */
  uint32_t rank;
  uint32_t stage;       /* the pipeline stage that holds it */
  const int64_t *shape; /* global; of one micro-batch for FLOW_INPUT and FLOW_LABEL of a step */
  const flow_sbp *sbp;  /* one per mesh axis */
  uint32_t
      reg; /* register, of all classes of the stage; the index in flow_plan.states for FLOW_STATE */
  uint32_t
      optional;    /* FLOW_INPUT: 1 if `default_offset` holds a default that a missing key takes */
  int64_t classes; /* FLOW_LABEL: number of classes; 0: no such limit */
  int64_t default_offset; /* in the weights file's data, of the whole tensor; -1: none */
} flow_tensor;

/* A tensor that lives as long as the job, shared by the programs of a plan. */
typedef struct flow_state {
  const char *name;
  uint32_t dtype;
  uint32_t rank;
  uint32_t stage;
  uint32_t is_parameter; /* 1: written to model.safetensors under its name */
  const int64_t *shape;  /* global */
  const flow_sbp *sbp;   /* one per mesh axis; never partial */
  int64_t file_offset;   /* in the weights file's data; -1: zeros */
  uint64_t arena_offset; /* in every rank's state arena */
} flow_state;

/* `buffers`: inputs, then outputs, then scratch if the kernel has any; rank's
 * mesh coordinates in `coords`, one per axis. */
typedef void (*flow_kernel)(void *const *buffers, const int64_t *coords);

enum flow_actor_op {
  FLOW_KERNEL,
  FLOW_ALL_REDUCE,     /* in: block; out: block */
  FLOW_ALL_GATHER,     /* in: block; out: one block per member, in mesh order */
  FLOW_REDUCE_SCATTER, /* in: one block per member; out: block */
  FLOW_ALL_TO_ALL,     /* in, out: one block per member */
  FLOW_SEND,           /* in: block; to the rank with the same coordinates of stage `peer_stage` */
  FLOW_RECV,           /* out: block; from such a rank */
  FLOW_LOAD, /* out: this rank's part of tensor `tensor`, read from the data source; a scalar's
                value of this step */
  FLOW_COPY  /* in, out: same bytes */
};
enum flow_phase { FLOW_PHASE_FORWARD, FLOW_PHASE_BACKWARD, FLOW_PHASE_UPDATE, FLOW_PHASE_OTHER };
enum flow_stream { FLOW_STREAM_COMPUTE, FLOW_STREAM_COMM, FLOW_STREAM_IO, FLOW_NUM_STREAMS };

/* A unit of execution. It fires once per micro-batch or once per step. */
typedef struct flow_actor {
  const char *name; /* the model's node(s); alike on all members of a collective */
  uint32_t op;      /* flow_actor_op */
  uint32_t phase;   /* flow_phase */
  uint32_t stream;  /* flow_stream */
  uint32_t num_inputs, num_outputs, num_scratch;
  const uint32_t *regs; /* inputs, outputs, scratch */
  flow_kernel kernel;   /* FLOW_KERNEL */
  /* collectives */
  uint32_t axes;       /* bit i: mesh axis i takes part; members in mesh order */
  uint32_t monoid;     /* flow_monoid */
  uint32_t dtype;      /* flow_dtype */
  uint32_t channel;    /* equal on all members or both sides, unique in the program */
  int64_t elements;    /* of one block */
  uint32_t peer_stage; /* FLOW_SEND, FLOW_RECV */
  uint32_t tensor;     /* FLOW_LOAD: index in flow_program.tensors */
} flow_actor;

enum flow_register_kind {
  FLOW_REG_PACKED, /* in the rank's arena; offset per firing */
  FLOW_REG_STATE   /* flow_plan.states[state], read or updated in place */
};
typedef struct flow_register {
  uint32_t kind;  /* flow_register_kind */
  uint32_t state; /* FLOW_REG_STATE */
  uint64_t bytes;
  uint64_t step_stride; /* added to the offset in every odd step: a second slot; arena_bytes covers
                           both */
} flow_register;

/* A firing waits until `stream` of this rank has finished its first `count`
 * firings of the step that is `previous_step` (0, 1, 2) steps before its own;
 * steps before the first count as finished. */
typedef struct flow_wait {
  uint32_t stream;
  uint32_t previous_step;
  uint32_t count;
} flow_wait;

typedef struct flow_firing {
  uint32_t actor;
  uint32_t micro_batch;
  const uint64_t
      *offsets; /* arena offset of each of the actor's registers; unused for FLOW_REG_STATE */
  uint32_t num_waits;
  const flow_wait *waits;
} flow_firing;

/* A total order of firings for one stream and one step. */
typedef struct flow_order {
  uint32_t num_firings;
  const flow_firing *firings;
} flow_order;

/* Rank = stage * ranks of the mesh + place in the mesh, last axis fastest.
 * What the ranks of one class execute. A class is a box of coordinates of one
 * stage: lo[i] <= coordinate i < hi[i]. Every rank is in exactly one. */
typedef struct flow_class {
  uint32_t stage;
  const int64_t *lo, *hi;
  uint32_t num_registers;
  const flow_register *registers;
  uint32_t num_actors;
  const flow_actor *actors;
  flow_order orders[FLOW_NUM_STREAMS];
  uint64_t arena_bytes;
} flow_class;

/* One function of the model: a training step, an evaluation, an inference. */
typedef struct flow_program {
  const char *name; /* "step", "eval", "main" */
  uint32_t micro_batches;
  uint32_t num_tensors;
  const flow_tensor *tensors;
  uint32_t num_classes;
  const flow_class *classes;
} flow_program;

/* The programs for one mesh. */
typedef struct flow_plan {
  uint32_t num_axes;
  const char *const *axis_names;
  const int64_t *axis_sizes;
  uint32_t num_stages;
  uint32_t num_states;
  const flow_state *states;
  uint64_t state_arena_bytes;
  uint32_t num_programs;
  const flow_program *programs;
} flow_plan;

enum flow_executable_kind { FLOW_INFERENCE, FLOW_TRAINER };
enum flow_loss_kind { FLOW_LOSS_NONE, FLOW_LOSS_CROSS_ENTROPY, FLOW_LOSS_MSE, FLOW_LOSS_OUTPUT };

typedef struct flow_scalar_default {
  const char *name; /* of a FLOW_SCALAR tensor that the command line may set, such as "lr" */
  double value;
} flow_scalar_default;

typedef struct flow_executable {
  uint32_t abi_version;
  uint32_t kind;     /* flow_executable_kind */
  const char *model; /* file name of the model, for messages */
  int64_t batch;     /* global samples per step of a trainer; 0 for inference */
  uint32_t loss;     /* flow_loss_kind */
  const char
      *weights_file; /* safetensors file name, relative to the executable; NULL: no weights */
  uint32_t num_scalars;
  const flow_scalar_default *scalars;
  uint32_t num_plans;
  const flow_plan *plans; /* the first one is the default; no two of equal size */
} flow_executable;

/* Emitted by the compiler into every executable. */
extern const flow_executable flow_main_executable;

/* The runtime's entry: parses the command line and runs. Returns an exit code:
 * 0 ok, 1 an input is wrong, 2 usage, 3 not supported here, 75 a rank was lost. */
int flow_runtime_main(const flow_executable *executable, int argc, char **argv);

/* ---- what kernels may call ---- */

/* Runs body(context, i) for i in [0, chunks) on the rank's compute threads and
 * returns when all are done. Chunks are claimed dynamically. */
void flow_rt_parallel(void (*body)(void *context, int64_t chunk), void *context, int64_t chunks);

#ifdef __cplusplus
}
#endif
#endif
