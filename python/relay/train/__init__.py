"""Training: a step - forward, backward, update - is one compiled function.

    trainer = relay.train.Trainer(loss, model, relay.train.adam(1e-3), key=0)
    data = relay.train.Batches((images, labels), 32, key=1)
    trainer.fit(data, epochs=10)
    trainer.save("model.safetensors")

`loss(model, *batch)` is a relay.function that returns a number; a model is any structure of tensors
(`relay.tree`). Optimisers, schedules and losses are functions of the same kind, so all of it is read
into one program; docs/training.md shows it step by step.
"""

from relay.train import initializers as initializers
from relay.train import layers as layers
from relay.train import losses as losses
from relay.train import schedules as schedules
from relay.train.data import Batches as Batches
from relay.train.files import load_tensors as load_tensors
from relay.train.files import save_tensors as save_tensors
from relay.train.imported import with_key as with_key
from relay.train.optimizers import adam as adam
from relay.train.optimizers import adamw as adamw
from relay.train.optimizers import clip_by_norm as clip_by_norm
from relay.train.optimizers import global_norm as global_norm
from relay.train.optimizers import sgd as sgd
from relay.train.trainer import LossScale as LossScale
from relay.train.trainer import State as State
from relay.train.trainer import Trainer as Trainer
