"""Architectures as PyTorch's two exporters write them: small, with random weights and open sizes.

Each is a module of the transformers package, made from a configuration (nothing is downloaded), with
the inputs for chosen sizes. `export` writes it as ONNX; `compare` runs a model at two sizes with
ONNX Runtime and with Relay.

    python tests/python/exported_models.py [--exporter torchscript|dynamo] [--keep FOLDER]
                                           [--threads N] [name...]

prints a line for each: whether the results agree, and the ratio of the times. Models in the folder
are not exported again. The weights are those of a seed, so a name is always the same model.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from model_comparison import Arrays, Result, compare

EXPORTERS = ("torchscript", "dynamo")
VOCABULARY = 101
Sizes = dict[str, int]


@dataclass(frozen=True)
class Model:
    """A module whose positional inputs `inputs` makes for sizes, and which axes these sizes name."""

    make: Callable[[], Any]
    inputs: Callable[[Sizes], Arrays]
    axes: dict[str, dict[int, str]]
    outputs: tuple[str, ...]
    first: Sizes
    second: Sizes
    # The sizes with which the module is traced: none of them 1, none alike.
    traced: Sizes


REGISTRY: dict[str, Callable[[], Model]] = {}


def _random(name: str) -> np.random.Generator:
    return np.random.default_rng(abs(hash_of(name)))


def hash_of(name: str) -> int:
    return sum(ord(c) * 31**i for i, c in enumerate(name)) % (1 << 32)


def _ids(shape: tuple[int, ...]) -> np.ndarray:
    return _random(f"ids{shape}").integers(3, VOCABULARY, shape, dtype=np.int64)


def _mask(shape: tuple[int, int]) -> np.ndarray:
    """Returns ones, with zeros at the end of every second line."""
    mask = np.ones(shape, np.int64)
    mask[1::2, shape[1] - shape[1] // 3 :] = 0
    return mask


def _floats(shape: tuple[int, ...]) -> np.ndarray:
    return _random(f"floats{shape}").standard_normal(shape).astype(np.float32)


# ---- Wrappers: modules whose inputs and outputs are tensors


def _module(forward: Callable[..., Any], **parts: Any) -> Any:
    """Returns a torch module whose forward is `forward(self, *tensors)`."""
    import torch

    class Wrapper(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name, part in parts.items():
                setattr(self, name, part)

    Wrapper.forward = forward  # type: ignore[method-assign]
    return Wrapper().eval()


def _build(name: str, config: Any) -> Any:
    """Returns transformers' class of that name for the configuration, in evaluation mode."""
    import torch
    import transformers

    torch.manual_seed(hash_of(name) % (1 << 31))
    return getattr(transformers, name)(config).eval()


def _config(name: str, **values: Any) -> Any:
    import transformers

    return getattr(transformers, name)(**values)


TEXT = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 128,
    "max_position_embeddings": 64,
}
BATCH_SEQUENCE = {0: "batch", 1: "sequence"}


def _encoder(name: str, model: str, config: str, **changes: Any) -> None:
    """An encoder of text: ids and mask in, the last hidden state out."""

    def make() -> Any:
        def forward(self: Any, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask)[0]

        return _module(forward, model=_build(model, _config(config, **{**TEXT, **changes})))

    def inputs(sizes: Sizes) -> Arrays:
        shape = (sizes["batch"], sizes["sequence"])
        return {"input_ids": _ids(shape), "attention_mask": _mask(shape)}

    axes = {"input_ids": BATCH_SEQUENCE, "attention_mask": BATCH_SEQUENCE}
    REGISTRY[name] = lambda: Model(
        make, inputs, axes, ("hidden",), {"batch": 1, "sequence": 8}, {"batch": 3, "sequence": 32},
        {"batch": 2, "sequence": 12})  # fmt: skip


def _decoder(name: str, model: str, config: str, heads: int, size: int, layers: int = 2,
             **changes: Any) -> None:  # fmt: skip
    """A decoder with the keys and values of what came before: logits and the longer ones out."""
    past_axes = {0: "batch", 2: "past"}
    names = [f"past_{i}_{what}" for i in range(layers) for what in ("key", "value")]

    def make() -> Any:
        def forward(self: Any, input_ids: Any, attention_mask: Any, *past: Any) -> Any:
            from transformers import DynamicCache

            cache = DynamicCache()
            for i in range(layers):
                cache.update(past[2 * i], past[2 * i + 1], i)
            out = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                past_key_values=cache,
                use_cache=True,
            )
            present = [
                t for layer in out.past_key_values.layers for t in (layer.keys, layer.values)
            ]
            return (out.logits, *present)

        return _module(forward, model=_build(model, _config(config, **changes)))

    def inputs(sizes: Sizes) -> Arrays:
        batch, length, past = sizes["batch"], sizes["sequence"], sizes["past"]
        found: Arrays = {"input_ids": _ids((batch, length)),
                         "attention_mask": np.ones((batch, past + length), np.int64)}  # fmt: skip
        for i, each in enumerate(names):
            found[each] = _floats((batch, heads, past, size)) * np.float32(0.1 * (i + 1))
        return found

    axes = {"input_ids": BATCH_SEQUENCE, "attention_mask": {0: "batch", 1: "total"},
            **dict.fromkeys(names, past_axes)}  # fmt: skip
    outputs = ("logits", *[n.replace("past", "present") for n in names])
    REGISTRY[name] = lambda: Model(
        make, inputs, axes, outputs, {"batch": 1, "sequence": 1, "past": 15},
        {"batch": 2, "sequence": 5, "past": 30}, {"batch": 2, "sequence": 3, "past": 9})  # fmt: skip


def _image(name: str, model: str, config: dict[str, Any], forward: Callable[..., Any],
           outputs: tuple[str, ...], sides: tuple[int, int, int] | None = None,
           side: int = 64) -> None:  # fmt: skip
    """A model of images; `sides` are those of the two runs and of the trace, where sizes are open."""
    axes = {0: "batch"} if sides is None else {0: "batch", 2: "height", 3: "width"}

    def make() -> Any:
        kind = config["kind"]
        changes = {k: v for k, v in config.items() if k != "kind"}
        return _module(forward, model=_build(model, _config(kind, **changes)))

    def inputs(sizes: Sizes) -> Arrays:
        return {"pixel_values": _floats((sizes["batch"], 3, sizes["height"], sizes["width"]))}

    def of(batch: int, i: int) -> Sizes:
        if sides is None:
            return {"batch": batch, "height": side, "width": side}
        return {"batch": batch, "height": sides[i], "width": sides[i] + (32 if i else 0)}

    REGISTRY[name] = lambda: Model(
        make, inputs, {"pixel_values": axes}, outputs, of(1, 0), of(3, 1), of(2, 2))  # fmt: skip


def _audio(name: str, model: str, config: str, **changes: Any) -> None:
    """A model of sound: samples in, one vector for each frame out."""

    def make() -> Any:
        def forward(self: Any, input_values: Any) -> Any:
            return self.model(input_values)[0]

        return _module(forward, model=_build(model, _config(config, **changes)))

    def inputs(sizes: Sizes) -> Arrays:
        return {"input_values": _floats((sizes["batch"], sizes["samples"]))}

    REGISTRY[name] = lambda: Model(
        make, inputs, {"input_values": {0: "batch", 1: "samples"}}, ("hidden",),
        {"batch": 1, "samples": 4000}, {"batch": 2, "samples": 9000},
        {"batch": 3, "samples": 5000})  # fmt: skip


def _text_to_text(name: str, model: str, config: str, **changes: Any) -> None:
    """An encoder and a decoder of text."""

    def make() -> Any:
        def forward(self: Any, input_ids: Any, attention_mask: Any, decoder_input_ids: Any) -> Any:
            out = self.model(
                input_ids=input_ids,
                attention_mask=attention_mask,
                decoder_input_ids=decoder_input_ids,
                use_cache=False,
            )
            return out.logits, out.encoder_last_hidden_state

        return _module(forward, model=_build(model, _config(config, **changes)))

    def inputs(sizes: Sizes) -> Arrays:
        shape = (sizes["batch"], sizes["sequence"])
        return {"input_ids": _ids(shape), "attention_mask": _mask(shape),
                "decoder_input_ids": _ids((sizes["batch"], sizes["target"]))}  # fmt: skip

    axes = {"input_ids": BATCH_SEQUENCE, "attention_mask": BATCH_SEQUENCE,
            "decoder_input_ids": {0: "batch", 1: "target"}}  # fmt: skip
    REGISTRY[name] = lambda: Model(
        make, inputs, axes, ("logits", "hidden"), {"batch": 1, "sequence": 9, "target": 1},
        {"batch": 3, "sequence": 24, "target": 7},
        {"batch": 2, "sequence": 12, "target": 5})  # fmt: skip


_encoder("bert", "BertModel", "BertConfig")
_encoder("roberta", "RobertaModel", "RobertaConfig")
_encoder("distilbert", "DistilBertModel", "DistilBertConfig",
         dim=64, n_layers=2, n_heads=4, hidden_dim=128)  # fmt: skip
_encoder("albert", "AlbertModel", "AlbertConfig", embedding_size=32)
_encoder("electra", "ElectraModel", "ElectraConfig", embedding_size=32)
_encoder("deberta_v2", "DebertaV2Model", "DebertaV2Config", relative_attention=True,
         pos_att_type=["p2c", "c2p"], position_buckets=16, max_relative_positions=-1,
         position_biased_input=False, share_att_key=True)  # fmt: skip
_encoder("mpnet", "MPNetModel", "MPNetConfig")
_encoder("mobilebert", "MobileBertModel", "MobileBertConfig", embedding_size=32,
         intra_bottleneck_size=32, true_hidden_size=32)  # fmt: skip
_encoder("convbert", "ConvBertModel", "ConvBertConfig", embedding_size=32)
_encoder("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", embedding_size=64)
_encoder("modernbert", "ModernBertModel", "ModernBertConfig", pad_token_id=0, cls_token_id=1,
         sep_token_id=2, bos_token_id=1, eos_token_id=2, local_attention=8)  # fmt: skip
_encoder("roformer", "RoFormerModel", "RoFormerConfig", embedding_size=32)

GPT = {"vocab_size": VOCABULARY, "n_positions": 64, "n_embd": 64, "n_layer": 2, "n_head": 4}
LLAMA = {**TEXT, "num_key_value_heads": 2}
_decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", 4, 16, **GPT)
_decoder("gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig", 4, 16, vocab_size=VOCABULARY,
         max_position_embeddings=64, hidden_size=64, num_layers=2, num_heads=4,
         attention_types=[[["global", "local"], 1]], window_size=8)  # fmt: skip
_decoder("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig", 4, 16, **TEXT)
_decoder("llama", "LlamaForCausalLM", "LlamaConfig", 2, 16, **LLAMA)
_decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", 2, 16, **LLAMA)
_decoder("qwen3", "Qwen3ForCausalLM", "Qwen3Config", 2, 16, head_dim=16, **LLAMA)
_decoder("mistral", "MistralForCausalLM", "MistralConfig", 2, 16, sliding_window=None, **LLAMA)
_decoder("gemma", "GemmaForCausalLM", "GemmaConfig", 2, 16, head_dim=16, **LLAMA)
_decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", 2, 16, head_dim=16, **LLAMA)
_decoder("olmo", "OlmoForCausalLM", "OlmoConfig", 2, 16, **LLAMA)
_decoder("opt", "OPTForCausalLM", "OPTConfig", 4, 16, vocab_size=VOCABULARY, hidden_size=64,
         num_hidden_layers=2, ffn_dim=128, max_position_embeddings=64, num_attention_heads=4,
         word_embed_proj_dim=64)  # fmt: skip
_decoder("bloom", "BloomForCausalLM", "BloomConfig", 4, 16, vocab_size=VOCABULARY, hidden_size=64,
         n_layer=2, n_head=4)  # fmt: skip
_decoder("phi", "PhiForCausalLM", "PhiConfig", 4, 16, **TEXT)
_decoder("falcon", "FalconForCausalLM", "FalconConfig", 1, 16, new_decoder_architecture=False,
         multi_query=True, **TEXT)  # fmt: skip
_decoder("starcoder2", "Starcoder2ForCausalLM", "Starcoder2Config", 2, 16, sliding_window=None,
         **LLAMA)  # fmt: skip

_text_to_text("t5", "T5ForConditionalGeneration", "T5Config", vocab_size=VOCABULARY, d_model=64,
              d_kv=16, d_ff=128, num_layers=2, num_heads=4)  # fmt: skip
_text_to_text("bart", "BartForConditionalGeneration", "BartConfig", vocab_size=VOCABULARY,
              d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4,
              decoder_attention_heads=4, encoder_ffn_dim=128, decoder_ffn_dim=128,
              max_position_embeddings=64)  # fmt: skip
_text_to_text("marian", "MarianMTModel", "MarianConfig", vocab_size=VOCABULARY, d_model=64,
              encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, pad_token_id=0,
              decoder_start_token_id=0, decoder_attention_heads=4, encoder_ffn_dim=128,
              decoder_ffn_dim=128, max_position_embeddings=64)  # fmt: skip

WHISPER = {"vocab_size": VOCABULARY, "d_model": 64, "encoder_layers": 2, "decoder_layers": 2,
           "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
           "decoder_ffn_dim": 128, "num_mel_bins": 16, "max_source_positions": 50,
           "max_target_positions": 64, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
           "decoder_start_token_id": 1, "suppress_tokens": None, "begin_suppress_tokens": None}  # fmt: skip


def _whisper_encoder() -> Model:
    def make() -> Any:
        def forward(self: Any, input_features: Any) -> Any:
            return self.model(input_features)[0]

        whisper = _build("WhisperModel", _config("WhisperConfig", **WHISPER))
        return _module(forward, model=whisper.encoder)

    return Model(
        make, lambda s: {"input_features": _floats((s["batch"], 16, 100))},
        {"input_features": {0: "batch"}}, ("hidden",), {"batch": 1}, {"batch": 3},
        {"batch": 2})  # fmt: skip


def _whisper_decoder() -> Model:
    def make() -> Any:
        def forward(self: Any, input_ids: Any, encoder_hidden_states: Any) -> Any:
            # Without a mask the export asks for an operator that ONNX lacks.
            return self.model(
                input_ids=input_ids,
                attention_mask=input_ids > 0,
                encoder_hidden_states=encoder_hidden_states,
                use_cache=False,
            )[0]

        whisper = _build("WhisperModel", _config("WhisperConfig", **WHISPER))
        return _module(forward, model=whisper.decoder)

    def inputs(s: Sizes) -> Arrays:
        return {"input_ids": _ids((s["batch"], s["sequence"])),
                "encoder_hidden_states": _floats((s["batch"], s["frames"], 64))}  # fmt: skip

    return Model(
        make, inputs,
        {"input_ids": BATCH_SEQUENCE, "encoder_hidden_states": {0: "batch", 1: "frames"}},
        ("hidden",), {"batch": 1, "sequence": 1, "frames": 50},
        {"batch": 2, "sequence": 9, "frames": 30},
        {"batch": 2, "sequence": 5, "frames": 40})  # fmt: skip


REGISTRY["whisper_encoder"] = _whisper_encoder
REGISTRY["whisper_decoder"] = _whisper_decoder


def _first(self: Any, pixel_values: Any) -> Any:
    return self.model(pixel_values)[0]


def _interpolated(self: Any, pixel_values: Any) -> Any:
    return self.model(pixel_values, interpolate_pos_encoding=True)[0]


def _boxes(self: Any, pixel_values: Any) -> Any:
    out = self.model(pixel_values)
    return out.logits, out.pred_boxes


VIT = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
       "intermediate_size": 128, "image_size": 64, "patch_size": 16}  # fmt: skip
OPEN_SIDES = (64, 96, 128)
_image("vit", "ViTForImageClassification", {"kind": "ViTConfig", **VIT}, _first, ("logits",))
_image("vit_any_size", "ViTModel", {"kind": "ViTConfig", **VIT}, _interpolated, ("hidden",),
       OPEN_SIDES)  # fmt: skip
_image("deit", "DeiTModel", {"kind": "DeiTConfig", **VIT}, _first, ("hidden",))
_image("beit", "BeitModel", {"kind": "BeitConfig", **VIT}, _first, ("hidden",))
_image("dinov2", "Dinov2Model", {"kind": "Dinov2Config", **VIT}, _first, ("hidden",), OPEN_SIDES)
_image("swin", "SwinModel",
       {"kind": "SwinConfig", "image_size": 64, "patch_size": 4, "embed_dim": 32, "depths": [2, 2],
        "num_heads": [2, 4], "window_size": 4}, _first, ("hidden",))  # fmt: skip
_image("convnext", "ConvNextModel",
       {"kind": "ConvNextConfig", "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 2, 1]},
       _first, ("hidden",), OPEN_SIDES)  # fmt: skip
_image("resnet", "ResNetForImageClassification",
       {"kind": "ResNetConfig", "embedding_size": 16, "hidden_sizes": [32, 48, 64, 96],
        "depths": [1, 1, 1, 1], "layer_type": "basic"}, _first, ("logits",), OPEN_SIDES)  # fmt: skip
_image("mobilenet_v2", "MobileNetV2ForImageClassification",
       {"kind": "MobileNetV2Config", "depth_multiplier": 0.35}, _first, ("logits",),
       OPEN_SIDES)  # fmt: skip
_image("efficientnet", "EfficientNetModel",
       {"kind": "EfficientNetConfig", "width_coefficient": 0.25, "depth_coefficient": 0.3,
        "hidden_dim": 320}, _first, ("hidden",), OPEN_SIDES)  # fmt: skip
_image("mobilevit", "MobileViTModel",
       {"kind": "MobileViTConfig", "hidden_sizes": [32, 48, 64],
        "neck_hidden_sizes": [8, 16, 24, 32, 40, 48, 64], "image_size": 64}, _first,
       ("hidden",))  # fmt: skip
_image("poolformer", "PoolFormerModel",
       {"kind": "PoolFormerConfig", "hidden_sizes": [16, 32, 48, 64], "depths": [1, 1, 1, 1]},
       _first, ("hidden",), OPEN_SIDES)  # fmt: skip
_image("regnet", "RegNetModel",
       {"kind": "RegNetConfig", "embedding_size": 16, "hidden_sizes": [16, 32, 48, 64],
        "depths": [1, 1, 1, 1], "groups_width": 16}, _first, ("hidden",), OPEN_SIDES)  # fmt: skip
_image("segformer", "SegformerForSemanticSegmentation",
       {"kind": "SegformerConfig", "hidden_sizes": [16, 32, 40, 64], "depths": [1, 1, 1, 1],
        "num_attention_heads": [1, 2, 4, 4], "decoder_hidden_size": 32}, _first, ("logits",),
       OPEN_SIDES)  # fmt: skip
_image("yolos", "YolosForObjectDetection",
       {"kind": "YolosConfig", **VIT, "image_size": [64, 64], "num_detection_tokens": 10}, _boxes,
       ("logits", "boxes"))  # fmt: skip
_image("detr", "DetrForObjectDetection",
       {"kind": "DetrConfig", "use_timm_backbone": False, "use_pretrained_backbone": False,
        "backbone": None, "d_model": 64, "encoder_layers": 1, "decoder_layers": 1,
        "encoder_attention_heads": 4, "decoder_attention_heads": 4, "encoder_ffn_dim": 128,
        "decoder_ffn_dim": 128, "num_queries": 10}, _boxes, ("logits", "boxes"),
       OPEN_SIDES)  # fmt: skip
_image("dpt", "DPTForDepthEstimation",
       {"kind": "DPTConfig", **VIT, "num_hidden_layers": 4, "backbone_out_indices": [0, 1, 2, 3],
        "neck_hidden_sizes": [16, 16, 32, 32], "fusion_hidden_size": 16, "is_hybrid": False},
       _first, ("depth",))  # fmt: skip


def _clip() -> Model:
    def make() -> Any:
        def forward(self: Any, input_ids: Any, pixel_values: Any, attention_mask: Any) -> Any:
            out = self.model(
                input_ids=input_ids, pixel_values=pixel_values, attention_mask=attention_mask
            )
            return out.logits_per_image, out.text_embeds, out.image_embeds

        text = {**TEXT, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0}
        config = _config("CLIPConfig", text_config=text, vision_config=VIT, projection_dim=32)
        return _module(forward, model=_build("CLIPModel", config))

    def inputs(s: Sizes) -> Arrays:
        shape = (s["texts"], s["sequence"])
        ids = _ids(shape)
        ids[:, -1] = 2
        return {"input_ids": ids, "pixel_values": _floats((s["images"], 3, 64, 64)),
                "attention_mask": np.ones(shape, np.int64)}  # fmt: skip

    text_axes = {0: "texts", 1: "sequence"}
    return Model(
        make, inputs,
        {"input_ids": text_axes, "pixel_values": {0: "images"}, "attention_mask": text_axes},
        ("logits", "text", "image"), {"texts": 1, "images": 1, "sequence": 6},
        {"texts": 4, "images": 2, "sequence": 15},
        {"texts": 3, "images": 2, "sequence": 11})  # fmt: skip


REGISTRY["clip"] = _clip

SPEECH = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4,
          "intermediate_size": 128, "conv_dim": [32] * 7, "num_conv_pos_embeddings": 16,
          "num_conv_pos_embedding_groups": 4, "vocab_size": VOCABULARY}  # fmt: skip
_audio("wav2vec2", "Wav2Vec2ForCTC", "Wav2Vec2Config", **SPEECH)
_audio("hubert", "HubertModel", "HubertConfig", **SPEECH)
_audio("wavlm", "WavLMModel", "WavLMConfig", **SPEECH)


def _audio_spectrogram() -> Model:
    def make() -> Any:
        def forward(self: Any, input_values: Any) -> Any:
            return self.model(input_values)[0]

        config = _config("ASTConfig", **{k: v for k, v in VIT.items() if k != "image_size"},
                         max_length=64, num_mel_bins=32)  # fmt: skip
        return _module(forward, model=_build("ASTForAudioClassification", config))

    return Model(
        make, lambda s: {"input_values": _floats((s["batch"], 64, 32))},
        {"input_values": {0: "batch"}}, ("logits",), {"batch": 1}, {"batch": 3},
        {"batch": 2})  # fmt: skip


REGISTRY["audio_spectrogram"] = _audio_spectrogram


# ---- Export and comparison


def export(name: str, exporter: str, path: Path) -> None:
    """Writes the model as ONNX, with open sizes, by one of PyTorch's exporters."""
    import torch

    model = REGISTRY[name]()
    module = model.make()
    example = tuple(torch.from_numpy(v) for v in model.inputs(model.traced).values())
    names = list(model.axes)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "torchscript":
            torch.onnx.export(module, example, str(path), dynamo=False, input_names=names,
                              output_names=list(model.outputs), opset_version=17,
                              dynamic_axes=model.axes)  # fmt: skip
            return
        dynamic = tuple(
            {axis: torch.export.Dim.DYNAMIC for axis in model.axes[each]} for each in names
        )
        # Of *args the shapes are one tuple.
        if any(each.startswith("past_") for each in names):
            dynamic = (*dynamic[:2], dynamic[2:])
        torch.onnx.export(module, example, str(path), dynamo=True, input_names=names,
                          output_names=list(model.outputs), dynamic_shapes=dynamic,
                          external_data=False, verbose=False)  # fmt: skip


def check(name: str, exporter: str, folder: Path, seconds: float = 0.2, threads: int = 1) -> Result:
    """Exports a model, unless the folder has it, and compares it at two sizes."""
    path = folder / f"{name}.{exporter}.onnx"
    if not path.exists():
        try:
            export(name, exporter, path)
        except Exception as error:
            path.unlink(missing_ok=True)
            where = traceback.extract_tb(error.__traceback__)[-1]
            return Result("no model", f"{type(error).__name__}: {str(error)[:300]} ({where.name})")
    model = REGISTRY[name]()
    inputs = [model.inputs(model.first), model.inputs(model.second)]
    return compare(path, inputs, seconds, threads=threads)


def main(argv: list[str]) -> int:
    """Prints the outcome for each model and exporter."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--exporter", choices=EXPORTERS, action="append")
    parser.add_argument("--keep", type=Path, help="where the models are kept")
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--threads", type=int, default=1, help="of both")
    parser.add_argument("names", nargs="*", default=list(REGISTRY))
    options = parser.parse_args(argv)
    with tempfile.TemporaryDirectory() as made:
        folder = options.keep or Path(made)
        for name in options.names:
            for exporter in options.exporter or EXPORTERS:
                result = check(name, exporter, folder, options.seconds, options.threads)
                print(f"{name:20} {exporter:12} {result}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
