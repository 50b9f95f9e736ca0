"""Writes a random actor program: python random_program.py SEED. Stages, classes,
micro-batches, accumulators, states, collectives, sends; always schedulable."""
import random
import sys

rng = random.Random(int(sys.argv[1]))
stages = rng.randint(1, 3)
micro_batches = rng.choice([1, 2, 3, 5])
ranks = 2
print(f'actor.plan @m axes ["dp"] sizes [{ranks}] stages {stages} {{')
layers = rng.randint(1, 4)
for s in range(stages):
    for l in range(layers):
        print(f'  %w{s}_{l} = actor.state "w{s}.{l}" stage {s} parameter : tensor<4xf32>')
print(f'  actor.program "step" micro_batches {micro_batches} {{')
print('    %x = actor.tensor "x" input stage 0 : tensor<4xf32>')
print(f'    %loss = actor.tensor "loss" loss stage {stages - 1} : tensor<f32>')
# The structure is the same for all classes of a stage; sizes may differ.
structure = [[(rng.random() < 0.4, rng.random() < 0.7, rng.randint(1, 9)) for _ in range(layers)] for _ in range(stages)]


def one_class(stage, lo, hi):
    count = 0

    def reg(rate='micro', of='', elements=None):
        nonlocal count
        count += 1
        size = 4 * (elements or rng.randint(1, 70))
        print(f'      %r{count} = actor.register "r{count}" {rate} bytes {size}{of}')
        return f'%r{count}', size

    def actor(text):
        nonlocal count
        count += 1
        print(f'      %a{count} = actor.{text}')

    print(f'    actor.class stage {stage} from [{lo}] to [{hi}] {{')
    forward = []
    if stage == 0:
        value, _ = reg(of=' of %x : !actor.tensor')
        actor(f'load "x" forward micro -> ({value})')
    else:
        value, _ = reg(elements=4)
        actor(f'recv "act" forward micro from {stage - 1} channel {2 * stage} elements 4 : f32 -> ({value})')
    states = []
    for l in range(layers):
        tensor_parallel, reduces, work = structure[stage][l]
        old, _ = reg('step', f' of %w{stage}_{l} : !actor.state', 4)
        new, _ = reg('step', f' updated of %w{stage}_{l} : !actor.state', 4)
        states.append((old, new))
        out, size = reg(elements=8)
        actor(f'kernel @k "f{l}" forward micro ({value}, {old}) -> ({out}) {{flops = {work * 10000}}}')
        if tensor_parallel:
            reduced, _ = reg(elements=8)
            actor(f'collective all_reduce by sum "tp{l}" forward micro axes ["dp"] elements 8 : f32 ({out}) -> ({reduced})')
            out = reduced
        forward.append((value, out))
        value = out
    if stage + 1 < stages:
        actor(f'send "act" forward micro to {stage + 1} channel {2 * (stage + 1)} elements 4 : f32 ({value})')
        grad, _ = reg(elements=4)
        actor(f'recv "grad" backward micro from {stage + 1} channel {2 * (stage + 1) + 1} elements 4 : f32 -> ({grad})')
    else:
        grad = value
        zero, _ = reg('step', elements=1)
        actor(f'kernel @z "zero" forward step () -> ({zero})')
        count += 1
        carried = f'%r{count}'
        total, _ = reg(elements=1)
        print(f'      {carried}c = actor.carried {zero}, {total}')
        actor(f'kernel @k "sum" forward micro ({carried}c, {value}) -> ({total}) inplace [0]')
        out, _ = reg('step', ' of %loss : !actor.tensor', 1)
        actor(f'copy "loss" other step ({total}) -> ({out})')
    for l in reversed(range(layers)):
        tensor_parallel, reduces, work = structure[stage][l]
        before, after = forward[l]
        old, new = states[l]
        zero, _ = reg('step', elements=4)
        actor(f'kernel @z "zero{l}" backward step () -> ({zero})')
        acc, _ = reg(elements=4)
        print(f'      {acc}c = actor.carried {zero}, {acc}')
        dx, _ = reg(elements=8)
        scratch, _ = reg()
        order = f'({acc}c, {before}, {after}, {grad}, {old})'
        actor(f'kernel @k "b{l}" backward micro {order} -> ({acc}, {dx}) scratch ({scratch}) inplace [0, {rng.choice([-1, 3])}] {{flops = {work * 20000}}}')
        grad = dx
        reduced = acc
        if reduces:
            reduced, _ = reg('step', elements=4)
            actor(f'collective all_reduce by sum "g{l}" backward step axes ["dp"] elements 4 : f32 ({acc}) -> ({reduced})')
        actor(f'kernel @u "u{l}" update step ({old}, {reduced}) -> ({new}) inplace [0]')
    if stage:
        actor(f'send "grad" backward micro to {stage - 1} channel {2 * stage + 1} elements 4 : f32 ({grad})')
    print('    }')


for s in range(stages):
    if rng.random() < 0.5:
        one_class(s, 0, ranks)
    else:
        one_class(s, 0, 1)
        one_class(s, 1, ranks)
print('  }\n}')
