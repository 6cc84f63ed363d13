"""Shows that transformers and planc read each other's models, for every fixture: transformers saves one, a program
of planc starts from it (train.init) and exports it (--export), transformers loads that, and both give the same
logits, bit for bit.

    go build -o /tmp/planc ./cmd/planc
    python golden/reference/roundtrip.py /tmp/planc /tmp/roundtrip         # all of it
    python golden/reference/roundtrip.py --load /tmp/roundtrip             # load planc's again, with another transformers
"""

import argparse
import dataclasses
import pathlib
import subprocess
import sys

import reference  # first: it sets what torch reads when it is imported

import numpy as np
import torch
import transformers

JOB = """model: ./theirs/config.json
{data}train: {{seq_len: {seq}, global_batch: 1, steps: 1, precision: f32, init: ./theirs}}
cluster: 1xcpu
plan: {{dp: 1, tp: 1}}
"""
DATA = "data: {train: [tokens.bin]}\n"  # of models that predict what comes next


def fixtures() -> list[reference.Fixture]:
    import families
    import gpt2
    import llama

    return gpt2.FIXTURES + llama.FIXTURES + families.FIXTURES


def export(planc: pathlib.Path, f: reference.Fixture, folder: pathlib.Path) -> None:
    model = reference.build(dataclasses.replace(f, prepare=lambda model: None), torch.float32).eval()
    model.save_pretrained(folder / "theirs")
    (np.arange(1000) % 37).astype(np.uint16).tofile(folder / "tokens.bin")  # no vocabulary is smaller
    (folder / "planc.yaml").write_text(JOB.format(seq=f.seq, data=DATA if f.inputs == "tokens" else ""))
    for command in ([planc, "compile", "-o", "train"], ["./train", "--resume", "never", "--export", "ours"]):
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"{f.name}: {command} failed with {done.returncode}:\n{done.stderr}")
    inputs = {reference.ARGUMENTS[n]: x for n, x in reference.make_batch(f).to(torch.float32).inputs.items()}
    with torch.no_grad():
        torch.save((f.model.__name__, inputs, model(**inputs).logits), folder / "batch.pt")


def compare(folder: pathlib.Path, exact: bool) -> str:
    name, inputs, want = torch.load(folder / "batch.pt")
    if not hasattr(transformers, name):
        return f"transformers {transformers.__version__} has no {name}"
    try:
        model, info = getattr(transformers, name).from_pretrained(folder / "ours", attn_implementation="eager", output_loading_info=True)
    except (ValueError, TypeError, RuntimeError) as e:  # an old transformers does not know all options
        return f"is REFUSED: {str(e).splitlines()[0]}"
    wrong = {k: v for k, v in info.items() if v}
    if wrong:
        return f"DIFFERS: {wrong}"
    model.config._experts_implementation = "eager"  # as the fixture's; transformers 5 would take another
    with torch.no_grad():
        logits = model.eval()(**inputs).logits
    off = ((logits - want).norm() / want.norm()).item()
    if exact and not torch.equal(logits, want) or not off < 1e-6:
        return f"DIFFERS by {off:.1e}"
    return f"{tuple(logits.shape)} logits {'bit for bit' if torch.equal(logits, want) else f'within {off:.1e}'}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Compares models that planc exports with what it was given.")
    parser.add_argument("--load", action="store_true", help="only load what an earlier call made")
    parser.add_argument("planc", type=pathlib.Path, nargs="?")
    parser.add_argument("folder", type=pathlib.Path)
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    print(f"torch {torch.__version__}, transformers {transformers.__version__}")
    if not args.load:
        for f in fixtures():
            (args.folder / f.name).mkdir(parents=True)
            export(args.planc.resolve(), f, args.folder / f.name)
    for folder in sorted(args.folder.iterdir()):
        print(f"{folder.name:16} {compare(folder, exact=not args.load)}")


if __name__ == "__main__":
    main()
