/* Prints the tables as a program that includes abi.h sees them: a field at the
 * wrong place would show. */
#include "include/flow/Runtime/abi.h"
#include <inttypes.h>
#include <stdio.h>

static void sbp(const flow_sbp *s, uint32_t n) {
  printf(" sbp");
  for (uint32_t i = 0; i < n; ++i)
    printf(" %u/%u/%" PRId64 "/%" PRId64, s[i].kind, s[i].monoid, s[i].dim, s[i].unit);
  printf("\n");
}

static void shape(const int64_t *d, uint32_t rank) {
  printf(" shape");
  for (uint32_t i = 0; i < rank; ++i)
    printf(" %" PRId64, d[i]);
}

static void class_(const flow_class *c, uint32_t axes) {
  printf("class stage %u lo %" PRId64 " hi %" PRId64 " arena %" PRIu64 "\n", c->stage, c->lo[axes - 1], c->hi[axes - 1], c->arena_bytes);
  for (uint32_t i = 0; i < c->num_registers; ++i) {
    const flow_register *r = &c->registers[i];
    printf("register %u kind %u state %u bytes %" PRIu64 " stride %" PRIu64 "\n", i, r->kind, r->state, r->bytes, r->step_stride);
  }
  for (uint32_t i = 0; i < c->num_actors; ++i) {
    const flow_actor *a = &c->actors[i];
    printf("actor %u '%s' op %u phase %u stream %u in %u out %u scratch %u regs", i, a->name, a->op, a->phase, a->stream, a->num_inputs,
           a->num_outputs, a->num_scratch);
    for (uint32_t k = 0; k < a->num_inputs + a->num_outputs + a->num_scratch; ++k)
      printf(" %u", a->regs[k]);
    printf(" axes %u monoid %u dtype %u channel %u elements %" PRId64 " peer %u tensor %u", a->axes, a->monoid, a->dtype, a->channel,
           a->elements, a->peer_stage, a->tensor);
    if (a->kernel) {
      int64_t seen = -1;
      void *buffers[] = {&seen};
      a->kernel(buffers, NULL);
      printf(" kernel %" PRId64, seen);
    }
    printf("\n");
  }
  for (uint32_t s = 0; s < FLOW_NUM_STREAMS; ++s)
    for (uint32_t i = 0; i < c->orders[s].num_firings; ++i) {
      const flow_firing *f = &c->orders[s].firings[i];
      const flow_actor *a = &c->actors[f->actor];
      printf("stream %u fires %u mb %u at", s, f->actor, f->micro_batch);
      for (uint32_t k = 0; k < a->num_inputs + a->num_outputs + a->num_scratch; ++k)
        printf(" %" PRIu64, f->offsets[k]);
      for (uint32_t k = 0; k < f->num_waits; ++k)
        printf(" wait %u/%u/%u", f->waits[k].stream, f->waits[k].previous_step, f->waits[k].count);
      printf("\n");
    }
}

int main(void) {
  const flow_executable *e = &flow_main_executable;
  printf("abi %u kind %u model %s batch %" PRId64 " loss %u weights %s\n", e->abi_version, e->kind, e->model, e->batch, e->loss,
         e->weights_file ? e->weights_file : "none");
  for (uint32_t i = 0; i < e->num_scalars; ++i)
    printf("scalar %s = %g\n", e->scalars[i].name, e->scalars[i].value);
  for (uint32_t p = 0; p < e->num_plans; ++p) {
    const flow_plan *plan = &e->plans[p];
    printf("plan");
    for (uint32_t i = 0; i < plan->num_axes; ++i)
      printf(" %s=%" PRId64, plan->axis_names[i], plan->axis_sizes[i]);
    printf(" stages %u state bytes %" PRIu64 "\n", plan->num_stages, plan->state_arena_bytes);
    for (uint32_t i = 0; i < plan->num_states; ++i) {
      const flow_state *s = &plan->states[i];
      printf("state %s dtype %u stage %u parameter %u file %" PRId64 " arena %" PRIu64, s->name, s->dtype, s->stage, s->is_parameter,
             s->file_offset, s->arena_offset);
      shape(s->shape, s->rank);
      sbp(s->sbp, plan->num_axes);
    }
    for (uint32_t k = 0; k < plan->num_programs; ++k) {
      const flow_program *program = &plan->programs[k];
      printf("program %s micro-batches %u\n", program->name, program->micro_batches);
      for (uint32_t i = 0; i < program->num_tensors; ++i) {
        const flow_tensor *t = &program->tensors[i];
        printf("tensor %s kind %u dtype %u stage %u reg %u optional %u classes %" PRId64 " default %" PRId64, t->name, t->kind, t->dtype,
               t->stage, t->reg, t->optional, t->classes, t->default_offset);
        shape(t->shape, t->rank);
        sbp(t->sbp, plan->num_axes);
      }
      for (uint32_t i = 0; i < program->num_classes; ++i)
        class_(&program->classes[i], plan->num_axes);
    }
  }
  return 0;
}
