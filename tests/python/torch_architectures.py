"""Architectures of torchvision, timm and transformers with random weights, beside eager mode.

    python tests/python/torch_architectures.py                        all checks: a table
    python tests/python/torch_architectures.py --check training --only resnet18,bert

The three packages are extras of the slow tests: `pip install timm==1.0.31 transformers==5.23.0`, and
`pip install --no-deps torchvision==0.28.0`.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

import relay
import relay.torch

# torchvision from PyPI is made for CUDA: the operators that its import needs are declared here.
_LIBRARY = torch.library.Library("torchvision", "FRAGMENT")
for _name in ("nms", "qnms"):
    with contextlib.suppress(RuntimeError):  # a torchvision with its operators
        _LIBRARY.define(f"{_name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


def _names(text: str) -> list[str]:
    return text.split()


# Image models of timm, at 64 pixels where they allow it.
TIMM = _names("""
    resnet18 resnet26d resnext26ts ecaresnet26t resnetblur18 skresnet18 resnest14d res2net50_14w_8s
    densenet121 dla34 dla46_c vgg11 vgg11_bn mobilenetv1_100 mobilenetv2_050 mobilenetv3_small_050
    mobilenetv4_conv_small_050 mobilenet_edgetpu_v2_xs efficientnet_lite0 efficientnet_b0
    tf_efficientnetv2_b0 tinynet_e lcnet_035 mnasnet_small semnasnet_050 fbnetc_100 ghostnet_050
    ghostnetv2_100 hardcorenas_a mixnet_s rexnet_100 regnetx_002 regnety_002 regnetz_005 convnext_atto
    convnextv2_atto mambaout_femto hrnet_w18_small selecsls42 repvgg_a0 repghostnet_050 mobileone_s0
    cspresnet50 darknet17 gernet_s nf_resnet26 eca_nfnet_l0 resnetv2_18 bat_resnext26ts starnet_s1
    edgenext_xx_small efficientvit_b0 efficientvit_m0 efficientformer_l1 efficientformerv2_s0 fastvit_t8
    repvit_m0_9 levit_128s mobilevit_xxs mobilevitv2_050 tiny_vit_5m_224 poolformer_s12 caformer_s18
    inception_next_atto swin_tiny_patch4_window7_224 swinv2_tiny_window8_256 gcvit_xxtiny
    focalnet_tiny_srf davit_tiny cait_xxs24_224 crossvit_tiny_240 coat_lite_tiny convit_tiny
    deit_tiny_patch16_224 eva02_tiny_patch14_224 vit_tiny_patch16_224 xcit_nano_12_p16_224
    visformer_tiny mixer_s32_224 gmlp_ti16_224 resmlp_12_224 pit_ti_224 pvt_v2_b0 twins_svt_small
    nest_tiny mvitv2_tiny hiera_tiny_224 sequencer2d_s hgnetv2_b0 ese_vovnet19b_slim shvit_s1
    swiftformer_xs fasternet_t0
""")

TORCHVISION = _names("""
    alexnet squeezenet1_1 googlenet shufflenet_v2_x0_5 mnasnet0_5 segmentation.lraspp_mobilenet_v3_large
    segmentation.fcn_resnet50 video.r3d_18
""")

# Models of sequences: the type by which transformers knows them, and sizes beside those of SMALL.
SMALL = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "vocab_size": 99,
    "max_position_embeddings": 64,
}
TRANSFORMERS: dict[str, dict[str, Any]] = {
    "bert": {},
    "roberta": {"max_position_embeddings": 80},
    "distilbert": {},
    "albert": {"embedding_size": 16},
    "electra": {"embedding_size": 16},
    "mpnet": {},
    "deberta-v2": {"relative_attention": True},
    "gpt2": {},
    "gpt_neox": {},
    "opt": {"word_embed_proj_dim": 32, "ffn_dim": 64},
    "bloom": {},
    "llama": {"num_key_value_heads": 2},
    "mistral": {"num_key_value_heads": 2},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 8},
    "gemma": {"num_key_value_heads": 2, "head_dim": 8},
    "gemma2": {"num_key_value_heads": 2, "head_dim": 8},
    "phi": {},
    "phi3": {"num_key_value_heads": 2, "pad_token_id": 0},
    "stablelm": {"num_key_value_heads": 2},
    "olmo": {"num_key_value_heads": 2},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 4},
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
    },
    "fnet": {},
    "squeezebert": {"embedding_size": 32},
    "esm": {"pad_token_id": 1, "mask_token_id": 2},
}

INFERENCE = [*TIMM, *TORCHVISION, *TRANSFORMERS]
TRAINING = _names("""
    resnet18 resnet26d densenet121 vgg11_bn mobilenetv2_050 mobilenetv3_small_050 efficientnet_b0 lcnet_035
    ghostnet_050 regnety_002 convnext_atto convnextv2_atto repvgg_a0 nf_resnet26 starnet_s1
    efficientvit_b0 mobilevit_xxs poolformer_s12 vit_tiny_patch16_224 mixer_s32_224 resmlp_12_224
    squeezenet1_1 bert roberta albert gpt2 llama qwen2 t5 fnet
""")
DYNAMIC = _names("""
    resnet18 vgg11 mobilenetv2_050 mobilenetv3_small_050 efficientnet_b0 regnetx_002 convnext_atto repvgg_a0
    ghostnet_050 vit_tiny_patch16_224 mixer_s32_224 resmlp_12_224 squeezenet1_1 bert roberta distilbert
    gpt2 llama qwen2 t5
""")

# Models whose norms, rotations or attention are in float32, whatever the type of the parameters is.
IN_FLOAT32 = _names("llama qwen2 t5 efficientvit_b0")

SIZE = 64  # pixels of an image
LENGTH = 16  # tokens of a sequence


class Model(nn.Module):
    """A model as a function of tensors whose results are a list of floating-point tensors."""

    def __init__(self, inner: nn.Module, names: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.inner = inner
        self.names = names

    def forward(self, *given: torch.Tensor) -> list[torch.Tensor]:
        if not self.names:
            made = self.inner(*given)
        else:
            made = self.inner(**dict(zip(self.names, given, strict=True)), return_dict=False)
        return [
            t
            for t in pytree.tree_leaves(list(made.values()) if isinstance(made, dict) else made)
            if isinstance(t, torch.Tensor) and t.is_floating_point()
        ]


def make(name: str) -> tuple[Model, Callable[[int], tuple[torch.Tensor, ...]]]:
    """A model with random weights, and its arguments for a batch."""
    torch.manual_seed(3)
    if name in TIMM:
        return _timm(name)
    return _transformer(name) if name in TRANSFORMERS else _torchvision(name)


def _images(size: int) -> Callable[[int], tuple[torch.Tensor, ...]]:
    return lambda batch: (torch.randn(batch, 3, size, size),)


def _timm(name: str) -> tuple[Model, Callable[[int], tuple[torch.Tensor, ...]]]:
    import timm

    given = timm.get_pretrained_cfg(name)
    size = SIZE
    if given is not None and given.fixed_input_size:
        size = given.input_size[-1]
    elif given is not None and given.min_input_size:
        size = max(size, given.min_input_size[-1])
    return Model(timm.create_model(name, pretrained=False, num_classes=10)), _images(size)


def _torchvision(name: str) -> tuple[Model, Callable[[int], tuple[torch.Tensor, ...]]]:
    import torchvision

    home, _, function = name.rpartition(".")
    where = getattr(torchvision.models, home) if home else torchvision.models
    keywords: dict[str, Any] = {"weights": None, "num_classes": 10}
    if home == "segmentation":
        keywords["weights_backbone"] = None
    if name == "googlenet":
        keywords["init_weights"] = False
        keywords["aux_logits"] = False
    model = Model(getattr(where, function)(**keywords))
    if home == "video":
        return model, lambda batch: (torch.randn(batch, 3, 4, 32, 32),)
    return model, _images(SIZE)


def _transformer(name: str) -> tuple[Model, Callable[[int], tuple[torch.Tensor, ...]]]:
    import transformers

    config = transformers.AutoConfig.for_model(name, **(SMALL | TRANSFORMERS[name]))
    config.use_cache = False
    inner = transformers.AutoModel.from_config(config)
    names = ["input_ids"]
    if name != "fnet":
        names.append("attention_mask")
    if config.is_encoder_decoder:
        names.append("decoder_input_ids")

    def arguments(batch: int) -> tuple[torch.Tensor, ...]:
        tokens = torch.randint(5, 99, (batch, LENGTH))
        mask = torch.ones_like(tokens)
        mask[0, LENGTH - 3 :] = 0
        all_of_them = {
            "input_ids": tokens,
            "attention_mask": mask,
            "decoder_input_ids": tokens.roll(1, 1),
        }
        return tuple(all_of_them[n] for n in names)

    return Model(inner, tuple(names)), arguments


class Different(AssertionError):
    """A result that is not eager mode's."""


def compare(
    mine: list[torch.Tensor], want: list[torch.Tensor], tolerance: float, what: str
) -> None:
    """Rounding of deep networks is relative to their largest results."""
    if len(mine) != len(want):
        raise Different(f"{what}: {len(mine)} results for {len(want)}")
    scale = max([float(w.abs().max()) for w in want if w.numel()], default=0.0)
    for i, (a, b) in enumerate(zip(mine, want, strict=True)):
        if a.shape != b.shape or a.dtype != b.dtype:
            raise Different(f"{what} {i}: {a.dtype} {a.shape} for {b.dtype} {b.shape}")
        if not b.numel():
            continue
        difference = float((a - b).abs().max())
        if not difference <= tolerance * scale + 1e-7:
            raise Different(f"{what} {i}: {difference:.3g} off, the largest is {scale:.3g}")


def inference(name: str) -> None:
    """All operators are Relay's, and the results are eager mode's."""
    model, arguments = make(name)
    model.eval()
    fast = torch.compile(model, backend="relay", options={"fallback": False})
    given = arguments(2)
    with torch.no_grad():
        compare(fast(*given), model(*given), 1e-4, "result")
    all_are_compiled()


def all_are_compiled() -> None:
    """Without dropout no operator draws random numbers, so none is PyTorch's."""
    if not relay.torch.report().graphs:
        raise Different("no graph was compiled")
    left = sorted({f.operator for f in relay.torch.report().fallbacks})
    if left:
        raise Different(f"PyTorch runs {', '.join(left)}")


def training(name: str) -> None:
    """The loss, the gradients and a step are eager mode's."""
    model, arguments = make(name)
    # In float64 the rounding of normalised small batches does not show.
    model.double().train()
    twin = copy.deepcopy(model)
    fast = torch.compile(model, backend="relay")
    given = tuple(t.double() if t.is_floating_point() else t for t in arguments(4))
    losses = []
    for m, run in ((model, fast), (twin, twin)):
        optimizer = torch.optim.SGD(m.parameters(), lr=0.01, momentum=0.9)
        torch.manual_seed(5)
        loss = sum(
            (r * torch.linspace(0, 1, r.numel(), dtype=r.dtype).view_as(r)).sum()
            for r in run(*given)
        )
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    factor = 100 if name in IN_FLOAT32 else 1
    compare(losses[:1], losses[1:], factor * 1e-8, "loss")
    pairs = list(zip(model.parameters(), twin.parameters(), strict=True))
    for mine, other in pairs:
        if (mine.grad is None) != (other.grad is None):
            raise Different("a gradient is missing on one side")
    both = [(a.grad, b.grad) for a, b in pairs if a.grad is not None]
    compare([a for a, _ in both], [b for _, b in both], factor * 1e-7, "gradient")
    parameters = [a.detach() for a, _ in pairs], [b.detach() for _, b in pairs]
    compare(*parameters, factor * 1e-7, "parameter")
    if {g.kind for g in relay.torch.report().graphs} != {"forward", "backward"}:
        raise Different("no graph was compiled, or only one direction")


def dynamic(name: str) -> None:
    """Three batches run by at most two programs."""
    model, arguments = make(name)
    model.eval()
    fast = torch.compile(model, backend="relay", dynamic=True)
    with torch.no_grad():
        for batch in (2, 3, 5):
            given = arguments(batch)
            compare(fast(*given), model(*given), 1e-4, "result")
    all_are_compiled()
    if len(relay.torch.report().graphs) > 2:
        raise Different(f"{len(relay.torch.report().graphs)} graphs for three batches")


CHECKS: dict[str, tuple[Callable[[str], None], list[str]]] = {
    "inference": (inference, INFERENCE),
    "training": (training, TRAINING),
    "dynamic": (dynamic, DYNAMIC),
}


def fresh() -> None:
    """Forgets what was compiled before. Recurrent layers are parts of graphs."""
    torch._dynamo.config.allow_rnn = True
    torch._dynamo.reset()
    relay.torch.reset()


def cases() -> Iterator[tuple[str, str]]:
    for check, (_, names) in CHECKS.items():
        for name in names:
            yield check, name


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="architectures, with commas")
    parser.add_argument("--check", choices=CHECKS)
    given = parser.parse_args()
    only = given.only.split(",") if given.only else None
    failed = passed = 0
    for check, name in cases():
        if (only and name not in only) or (given.check and check != given.check):
            continue
        fresh()
        begin = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                CHECKS[check][0](name)
            passed += 1
            outcome = "passes"
        except Exception as problem:
            failed += 1
            outcome = f"{type(problem).__name__}: {' '.join(str(problem).split())}"[:300]
        print(f"{check} {name}: {outcome} ({time.perf_counter() - begin:.1f} s)", flush=True)
    print(f"{passed} of {passed + failed} pass")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
