"""Writes a Llama model that lies in a GGUF file as a folder with config.json, safetensors weights and tokenizer.

    convert_smollm2.py MODEL.gguf FOLDER

transformers unpacks the quantised weights to float32. Its model then still counts as quantised and is not saved as a
plain one; so the same weights go into a model made from the config without that entry.
"""

from __future__ import annotations

import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"  # everything is in the file
os.environ["TQDM_DISABLE"] = "1"

import torch
import transformers


def convert(gguf: pathlib.Path, folder: pathlib.Path) -> None:
    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    unpacked = transformers.AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    entries = unpacked.config.to_dict()
    entries.pop("quantization_config", None)
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**entries)).to(torch.float32)
    model.load_state_dict(unpacked.state_dict())
    model.save_pretrained(folder)
    for weights in folder.glob("*.safetensors"):
        weights.chmod(0o644)
    transformers.AutoTokenizer.from_pretrained(str(gguf.parent), gguf_file=gguf.name).save_pretrained(folder)


def main() -> int:
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    convert(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
