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
setting = {"windows": 64, "batches": 4, "epochs": 2, "canaries": 100}
folder, text, facts = Path(sys.argv[1]), written(), {}
whole = train(text, folder / "whole", save_steps=3, **setting)
trained = sum(p.numel() for p in whole.model.parameters() if p.requires_grad)
facts["dims"] = whole.training_audit._canaries.dim, trained
facts["names"] = sorted({name.split(".")[-3] for name, p in whole.model.named_parameters() if p.requires_grad})
facts["left out"] = omitted_tensors(whole.model)
facts["steps"] = whole.training_audit._canaries.canary_clients.rounds
facts["noise"] = whole.training_audit._canaries.scores("known rounds").record.traces.noise_multiplier(1 - 1e-7)
facts["noise"] = [float(facts["noise"].low), float(facts["noise"].high)]
resumed = train(text, folder / "whole", save_steps=3, resume=str(folder / "whole" / "checkpoint-3"), **setting)
logs = [each.training_audit._canaries.evidence(1.0).log_values[:3].tolist() for each in (whole, resumed)]
facts["first steps"] = logs[0] == logs[1]
facts["resumed"] = resumed.training_audit._canaries.canary_clients.rounds
facts["warnings"] = resumed.training_audit._canaries.warnings()
broken = train(text, folder / "broken", fault="noise-halved", **setting | {"epochs": 8})
facts["stopped"] = broken.training_audit._canaries.canary_clients.rounds, broken.steps
loop = train(text, folder / "loop", loop=True, **setting)
facts["loop"] = loop.training_audit._canaries.canary_clients.rounds
facts["files"] = sorted(str(path.relative_to(folder)) for path in folder.glob("*/**/audit.txt"))
facts["alarm"] = (folder / "broken" / "audit.txt").read_text()[:8]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def facts(tmp_path_factory):
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, str(tmp_path_factory.mktemp("trained"))]
    done = subprocess.run(command, cwd=ROOT / "examples", capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_canaries_are_in_the_adapters_alone(facts):
    dim, trained = facts["dims"]
    assert dim == trained
    assert facts["names"] == ["lora_A", "lora_B"]
    left_out = facts["left out"]
    assert {*left_out.values()} == {"frozen", "buffer"}
    assert sum(name.endswith("q_proj.base_layer.weight") for name in left_out) == 4


def test_the_noise_of_a_step_is_what_canaries_measure(facts):
    low, high = facts["noise"]
    # Eight steps of 25 canaries measure 1/σ with the standard error 1/√200, so that 1/low is 1.38 ± 0.07 at this level.
    assert low < 1.0 < high
    assert low > 0.5


def test_a_training_resumes_with_its_canaries(facts):
    assert facts["steps"] == facts["resumed"] == 8
    assert facts["first steps"]
    assert facts["warnings"] == []


def test_an_alarm_stops_the_training(facts):
    taken, planned = facts["stopped"]
    assert taken < planned
    assert facts["alarm"] == "Alarm at"


def test_a_loop_of_accelerates_has_the_audit_beside_its_checkpoint(facts):
    assert facts["loop"] == 8
    folders = ["broken", "loop", "whole"]
    files = [f"{name}/audit.txt" for name in folders]
    assert {*files, "whole/checkpoint-3/audit.txt", "whole/checkpoint-8/audit.txt"} <= {*facts["files"]}
