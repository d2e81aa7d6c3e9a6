"""The programs that Hopscope is measured against, each as a few functions over token ids.

All compute on the CPU in float32 without gradients, on one GPT-J checkpoint folder. Shapes in brackets; T is the length
of a sequence, n = T - 1 the slot of its last token, whose attention is scored.
"""

from __future__ import annotations

import math
import os
import pathlib

os.environ["HF_HUB_OFFLINE"] = "1"  # everything comes from the checkpoint folder

import torch
import transformers
from transformer_lens import HookedTransformer, HookedTransformerConfig
from transformer_lens.pretrained.weight_conversions.gptj import convert_gptj_weights
from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb

TAU = 1e-4  # temperature of the weights of swaps


def _cosine(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Over the last axis, which has two entries; plain, without the norms' lower bound of torch."""
    return (a * b).sum(-1) / (a.norm(dim=-1) * b.norm(dim=-1))


def _weighted(weights: torch.Tensor, before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """Positional and symbolic score [..., 2] from pairs of attention before and after each swap [..., swaps, 2]."""
    positional = (weights * _cosine(after, before)).sum(-1)
    symbolic = (weights * _cosine(after, before.flip(-1))).sum(-1)
    return torch.stack([positional, symbolic], dim=-1)


class HuggingFace:
    """transformers' GPT-J."""

    def __init__(self, checkpoint: pathlib.Path) -> None:
        model = transformers.AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
        self.model = model.eval()

    @torch.inference_mode()
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, T, vocab]."""
        return self.model(ids).logits

    @torch.inference_mode()
    def closed_form(self, ids: torch.Tensor) -> torch.Tensor:
        """Scores [batch, layers, heads, 2] and the forward pass beside them.

        What a careful Python programmer would write: one matrix of logits of each content at each slot, from which
        every swap is read off; no layer runs twice.
        """
        config = self.model.config
        queries: list[torch.Tensor] = []
        keys: list[torch.Tensor] = []
        hooks = []
        for block in self.model.transformer.h:
            hooks.append(block.attn.q_proj.register_forward_hook(lambda _m, _i, out: queries.append(out)))
            hooks.append(block.attn.k_proj.register_forward_hook(lambda _m, _i, out: keys.append(out)))
        try:
            self.model(ids)
        finally:
            for hook in hooks:
                hook.remove()
        batch, n = ids.shape[0], ids.shape[1] - 1
        heads, width = config.n_head, config.n_embd // config.n_head
        swaps = torch.triu_indices(n, n, 1)
        # Rotating the query back by p is rotating the key to slot p.
        sin, cos = self.model.transformer.h[0].attn.embed_positions[: n + 1].split(config.rotary_dim // 2, dim=-1)
        back = torch.arange(n, -1, -1)
        layers = []
        for query, key in zip(queries, keys, strict=True):
            rotating = query[:, None, n].reshape(batch, 1, heads, width).expand(-1, n + 1, -1, -1)
            turned = torch.cat(
                [
                    apply_rotary_pos_emb(rotating[..., : config.rotary_dim], sin[back][None], cos[back][None]),
                    rotating[..., config.rotary_dim :],
                ],
                dim=-1,
            )
            contents = key.reshape(batch, n + 1, heads, width)
            # [batch, heads, content, slot]
            logits = torch.einsum("bahd,bphd->bhap", contents, turned) / math.sqrt(width)
            own = logits.diagonal(dim1=-2, dim2=-1)
            attention = own.softmax(-1).double()
            i, j = swaps
            before = torch.stack([own[..., i], own[..., j]], dim=-1)
            after = torch.stack([logits[..., j, i], logits[..., i, j]], dim=-1)
            top = torch.maximum(before.amax(-1, keepdim=True), after.amax(-1, keepdim=True))
            weights = ((attention[..., i] - attention[..., j]).abs() / TAU).softmax(-1)
            layers.append(_weighted(weights, (before - top).double().exp(), (after - top).double().exp()))
        return torch.stack(layers, dim=1)

    @torch.inference_mode()
    def literal(self, ids: torch.Tensor) -> torch.Tensor:
        """Scores [batch, layers, heads, 2] by the literal procedure (arXiv 2605.31558, App. D).

        Each layer runs again on its own input with two rows swapped, for every pair of keys: here all pairs of a
        sequence as one batch, and nothing written to disk. With a forward pass, which gives the layers' inputs.
        """
        return torch.stack([self._literal_of_one(row) for row in ids])

    def _literal_of_one(self, row: torch.Tensor) -> torch.Tensor:
        length = row.shape[0]
        n = length - 1
        i, j = torch.triu_indices(n, n, 1)
        swaps = i.shape[0]
        # The unchanged order comes first.
        orders = torch.arange(length).repeat(swaps + 1, 1)
        rows = torch.arange(1, swaps + 1)
        orders[rows, i] = j
        orders[rows, j] = i
        future = torch.full((length, length), torch.finfo(torch.float32).min).triu(1)[None, None]
        slots = torch.arange(length)[None]
        hidden = self.model(row[None], output_hidden_states=True).hidden_states
        layers = []
        for layer, block in enumerate(self.model.transformer.h):
            _, attention = block(hidden[layer][0][orders], attention_mask=future, position_ids=slots)
            last = attention[:, :, n].double()  # [1 + swaps, heads, T]
            before = torch.stack([last[0][:, i], last[0][:, j]], dim=-1)  # [heads, swaps, 2]
            moved = last[1:].transpose(0, 1)  # [heads, swaps, T]
            each = torch.arange(swaps)
            after = torch.stack([moved[:, each, i], moved[:, each, j]], dim=-1)
            weights = ((before[..., 0] - before[..., 1]).abs() / TAU).softmax(-1)
            layers.append(_weighted(weights, before, after))
        return torch.stack(layers)


class TransformerLens:
    """HookedTransformer with the weights of a transformers model, folded and centred as from_pretrained does."""

    def __init__(self, peer: HuggingFace) -> None:
        source = peer.model.config
        config = HookedTransformerConfig(
            d_model=source.n_embd,
            d_head=source.n_embd // source.n_head,
            n_heads=source.n_head,
            d_mlp=source.n_inner or 4 * source.n_embd,
            n_layers=source.n_layer,
            n_ctx=source.n_positions,
            eps=source.layer_norm_epsilon,
            d_vocab=source.vocab_size,
            act_fn=source.activation_function,
            parallel_attn_mlp=True,
            positional_embedding_type="rotary",
            rotary_dim=source.rotary_dim,
            rotary_adjacent_pairs=True,
            normalization_type="LN",
            device="cpu",
        )
        self.model = HookedTransformer(config)
        with torch.no_grad():
            weights = {name: value.detach().clone() for name, value in convert_gptj_weights(peer.model, config).items()}
            self.model.load_and_process_state_dict(weights)
        self.model.eval()

    @torch.inference_mode()
    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits [batch, T, vocab]."""
        return self.model(ids)

    @torch.inference_mode()
    def run_with_cache(self, ids: torch.Tensor) -> torch.Tensor:
        """Logits; every activation is kept, attention among them."""
        logits, _cache = self.model.run_with_cache(ids)
        return logits


@torch.inference_mode()
def multiply(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """a b^T: what the machine's matrix product is measured with."""
    return a @ b.T
