"""Adapters on a language model: what its canaries are in, and that it resumes. ``make test-frameworks`` installs it."""

import json
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MISSING = [name for name in ("opacus", "transformers", "peft", "accelerate") if find_spec(name) is None]
pytestmark = pytest.mark.skipif(bool(MISSING), reason=f"needs the extra 'transformers' ({', '.join(MISSING)})")

# One process for all, since the libraries take most of the time.
PROGRAM = """
import json, sys
from pathlib import Path
import numpy as np
from transformer_training import *
setting = {"windows": 64, "batches": 4, "epochs": 2}
folder, text, facts = Path(sys.argv[1]), written(), {}
whole = train(text, folder / "whole", save_steps=3, **setting)
trained = {name: p.numel() for name, p in whole.model.named_parameters() if p.requires_grad}
facts["names"] = sorted({name.split(".")[-3] for name in trained})
facts["left out"] = cp.omitted_tensors(whole.model)
def said(training):
    answer = training.watch.answer()
    failed = [str(finding.question) for finding in answer.findings if finding.status == "failed"]
    return [str(answer.decision.outcome), failed, answer.steps]
facts["whole"] = said(whole)
because = whole.watch.answer().finding("noise").because
facts["measured"] = "of %s numbers" % format(sum(trained.values()), ",") in because
resumed = train(text, folder / "whole", save_steps=3, resume=str(folder / "whole" / "checkpoint-3"), **setting)
facts["resumed"] = said(resumed)
broken = train(text, folder / "broken", fault="noise-halved", **setting | {"epochs": 8})
facts["stopped"] = said(broken), broken.steps
loop = train(text, folder / "loop", loop=True, **setting)
facts["loop"] = said(loop)
inserted = train(text, folder / "inserted", insert=100, **setting)
noise = inserted.watch.canaries.scores("known rounds").record.traces.noise_multiplier(1 - 1e-7)
facts["dim"] = inserted.watch.canaries.dim == sum(trained.values())
facts["noise"] = [float(noise.low), float(noise.high)]
facts["files"] = sorted(str(path.relative_to(folder)) for path in folder.glob("*/**/watch.json"))
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path_factory.mktemp("trained"))]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_a_watch_and_its_canaries_look_at_the_adapters_alone(facts):
    assert facts["names"] == ["lora_A", "lora_B"]
    assert facts["measured"]
    assert facts["dim"]
    left_out = facts["left out"]
    assert {*left_out.values()} == {"frozen", "buffer"}
    assert sum(name.endswith("q_proj.base_layer.weight") for name in left_out) == 4


def test_the_noise_of_a_step_is_what_canaries_measure(facts):
    low, high = facts["noise"]
    # Eight steps of 25 canaries measure 1/σ with the standard error 1/√200, so that 1/low is 1.38 ± 0.07 at this level.
    assert low < 1.0 < high
    assert low > 0.5


def test_a_training_is_answered_whole_resumed_and_by_a_loop(facts):
    # Steps of 16 windows are too few for a wrong rate of a fifth.
    assert facts["whole"] == facts["resumed"] == facts["loop"] == ["CANNOT SAY", [], 8]


def test_half_of_the_noise_stops_the_training(facts):
    """The optimizer has half of the claimed noise, so that ε of some steps is above that claimed for all."""
    (outcome, failed, taken), planned = facts["stopped"]
    assert (outcome, failed) == ("NOT PASSED", ["accounting", "leak"])
    assert taken < planned == 32


def test_the_record_is_beside_each_checkpoint(facts):
    files = [f"{name}/watch.json" for name in ("broken", "inserted", "loop", "whole")]
    assert {*files, "whole/checkpoint-3/watch.json", "whole/checkpoint-8/watch.json"} <= {*facts["files"]}
