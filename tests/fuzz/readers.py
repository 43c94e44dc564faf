"""Feed bytes to every reader of files: atheris looks for those that crash one, take 10 CPU seconds, or 1 GB of memory.

Only a refusal in one line is allowed. ``make fuzz`` runs this for a minute; libFuzzer's options may be given, such as
``-max_total_time=3600`` or a file that it left, to run it again. Without atheris the property tests must do.
"""

import gzip
import io
import json
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

if find_spec("atheris") is None:
    print("atheris is not installed, or has no wheel for this Python: only hypothesis feeds the readers, by make test")
    sys.exit()

import atheris

with atheris.instrument_imports(include=["canaryproof.verify"]):
    from canaryproof.verify.audit.answer import report_check
    from canaryproof.verify.audit.answer.release_sums import all_sums
    from canaryproof.verify.audit.files import checkpoint
    from canaryproof.verify.audit.files.errors import InputError
    from canaryproof.verify.audit.files.other_results import read_result
    from canaryproof.verify.audit.files.reading import ScoreKind, read_release, read_score_columns, read_scores
    from canaryproof.verify.audit.files.stored_release import open_release
    from canaryproof.verify.papers.runs.run_file import RunFile
    from canaryproof.verify.papers.runs.run_folder import read_material
    from canaryproof.verify.papers.training import configuration
    from canaryproof.verify.papers.training.data import (
        cifar10,
        idx,
        leaf,
        plays,
        tff,
        tff_hdf5,
        tff_hdf5_reader,
        tokens,
    )

sys.path.insert(0, str(Path(__file__).parents[1] / "verify" / "papers" / "training" / "data"))

import made
import numpy as np
from PIL import Image

from canaryproof.kernels.canaries import Canaries
from canaryproof.verify.papers.check.results import Check, Context, Effort, Outcome, Run, Subject, Verdict, perform

# libFuzzer's own limit is of the clock, which other processes slow down: it is for hangs alone.
OPTIONS = ["-max_total_time=60", "-timeout=300", "-rss_limit_mb=1024", "-max_len=60000", "-print_final_stats=1"]
CPU_SECONDS = 10.0
ARRAYS = {"a": np.zeros(3), "b": np.zeros((2, 2), np.int64)}
PART = {"users": ["u"], "num_samples": [10], "user_data": {"u": {"x": ["abcd"] * 10, "y": ["e"] * 10}}}
CIFAR10 = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
FACES = {"users": ["u"], "num_samples": [10], "user_data": {"u": {"x": ["1.jpg"] * 10, "y": [1.0] * 10}}}
GLOVE = b"".join(word + b" 0.5" * 25 + b"\n" for word in (b"so", b"bad"))

# Leaves a state and two reports in its folder.
AUDITS = """
import numpy as np
import canaryproof as cp
from canaryproof.verify.audit.answer.release_sums import all_sums
from pathlib import Path
all_sums(cp.open_release("base.safetensors"), cp.Canaries(7, 3, 10), state=Path("state.npz"))
audited = cp.audit(cp.Scores(np.linspace(-0.1, 0.2, 9), dim=50), delta=1e-5, claim=4.0)
audited.report("report.json")
audited.report("report.md")
"""


def _image():
    file = io.BytesIO()
    Image.new("RGB", (20, 20), (9, 99, 199)).save(file, "JPEG")
    return file.getvalue()


def _saved(save, **arrays):
    file = io.BytesIO()
    save(file, *arrays.values()) if save is np.save else save(file, **arrays)
    return file.getvalue()


def _safetensors(**tensors):
    header, body = {}, b""
    for name, values in tensors.items():
        end = len(body) + values.nbytes
        header[name] = {"dtype": "F32", "shape": list(values.shape), "data_offsets": [len(body), end]}
        body += values.tobytes()
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + body


def _idx(*shape):
    return np.array([0x800 + len(shape), *shape], ">u4").tobytes() + bytes(int(np.prod(shape)))


def _run():
    check = Check("a.b", Subject.DOCUMENT, "p", "s", lambda _: Outcome(Verdict.CONFIRMED, "f", {"x": [1.5, None]}))
    return Run("0", Effort.QUICK, 0, (perform("claims", check, Context(Effort.QUICK, 0)),))


def _readers(place):
    """File, valid content, and who reads it, for each reader; what else it needs is made here."""
    for name in ("idx", "leaf", "plays", "run", "begun", "bin", "faces/img_align_celeba"):
        (place / name).mkdir(parents=True)
    for part, count in (("train", 4), ("t10k", 2)):
        (place / "idx" / f"{part}-images-idx3-ubyte").write_bytes(_idx(count, 2, 2))
        (place / "idx" / f"{part}-labels-idx1-ubyte").write_bytes(_idx(count))
    (place / "idx" / "train-images-idx3-ubyte").unlink()
    (place / "run" / "results.json").write_text(json.dumps(_run().to_json()))
    for name in CIFAR10:
        (place / "bin" / f"{name}.bin").write_bytes(bytes(3073))
    (place / "faces" / "a.json").write_text(json.dumps(FACES))
    checkpoint.write(place / "c.npz", {"rate": 0.5}, ARRAYS)
    origin = {"version": "0", "level": "quick", "seed": "0"}
    with RunFile(place / "begun" / "run.sqlite", origin, [("claims", "a.b")]) as file:
        file.add(0, json.dumps(_run().results[0].to_json()))
    cosines = np.linspace(-0.1, 0.2, 9)
    toml = (Path(__file__).parents[1] / "verify" / "tiny.toml").read_bytes()
    speech = b"A:\n" + b"words and words\n" * 12

    # In this process, which a crash of HDF5's library ends.
    tff_hdf5.Child = tff_hdf5_reader.Reader
    writers, users = made.images([2, 1]), made.sentences([2, 1])
    emnist = made.emnist(place / "emnist", "hdf5", writers, writers) / "fed_emnist_train.h5"
    strings = made.stackoverflow(place / "strings", "hdf5", users, users) / "stackoverflow_train.h5"
    database = made.stackoverflow(place / "database", "sqlite", users, users) / "stackoverflow.sqlite"

    def cohort(path):
        federation = tff.load(path.parent, 6, 4)
        federation.cohort(range(federation.clients), 3)

    def images(path):
        idx.load(path.parent, 2, 0)
        # The one that is packed comes after the other.
        path.unlink()

    def release(path):
        stored = open_release(path)
        if stored.dim <= 1000:
            stored.read(0, stored.dim)

    tensors = _safetensors(a=np.ones((2, 3), np.float32), b=np.zeros(4, np.float32))
    (place / "base.safetensors").write_bytes(tensors)
    # Numba compiles nothing under atheris.
    subprocess.run([sys.executable, "-c", AUDITS], cwd=place, check=True)
    base, canaries = open_release(place / "base.safetensors"), Canaries(7, 3, 10)
    lines = b"id,score,member\na,0.25,1\nb,-0.5,0\na,0.25,1\nc,0.5,1\nd,0.1,0\n"

    return [
        ("m.safetensors", tensors, release),
        ("i.safetensors.index.json", b'{"weight_map": {"a": "base.safetensors", "b": "base.safetensors"}}', release),
        ("state.npz", (place / "state.npz").read_bytes(), lambda path: all_sums(base, canaries, state=path)),
        ("report.json", (place / "report.json").read_bytes(), report_check.read),
        ("report.md", (place / "report.md").read_bytes(), report_check.read),
        ("t.csv", lines, lambda path: read_score_columns(path, "score", "member", ScoreKind.ANY, "id")),
        ("s.npy", _saved(np.save, observed=cosines), read_scores),
        ("s.npz", _saved(np.savez, observed=cosines), read_scores),
        ("z.npz", _saved(np.savez_compressed, observed=cosines, unobserved=cosines), read_scores),
        ("o.csv", b"score,member,eps\n0.25,1,2\n-0.5,0,\n0.5,1,\n0.1,0,\n", read_result),
        ("c.json", b'{"m": 10, "r": 5, "v": 4, "delta": 1e-5}', read_result),
        ("s.csv", b"observed,unobserved\n0.25,0.5\n-0.5,0\n0.125,\n", read_scores),
        ("r.npy", _saved(np.save, release=cosines), read_release),
        ("x.toml", toml, lambda path: configuration.read(str(path), "full")),
        ("idx/train-images-idx3-ubyte", _idx(4, 2, 2), images),
        ("idx/train-images-idx3-ubyte.gz", gzip.compress(_idx(4, 2, 2)), images),
        ("leaf/a.json", json.dumps(PART).encode(), lambda path: leaf.load(path.parent, 4)),
        ("bin/data_batch_2.bin", bytes(3073), lambda path: cifar10.load(path.parent, 1, 0)),
        ("faces/a.json", json.dumps(FACES).encode(), lambda path: leaf.load(path.parent, 4, 16)),
        ("faces/img_align_celeba/1.jpg", _image(), lambda path: leaf.load(path.parents[1], 4, 16)),
        ("glove.twitter.27B.25d.txt", GLOVE, lambda path: tokens.read_glove(path, {"so", "bad"})),
        ("plays/a.txt", speech, lambda path: plays.load(path.parent, 4)),
        ("emnist/fed_emnist_train.h5", emnist.read_bytes(), cohort),
        ("strings/stackoverflow_train.h5", strings.read_bytes(), cohort),
        ("strings/stackoverflow.word_count", b"the 9\na 8\nis 7\nto 6\n", cohort),
        ("database/stackoverflow.sqlite", database.read_bytes(), cohort),
        ("run/results.json", (place / "run/results.json").read_bytes(), lambda path: read_material(path.parent)),
        ("run/environment.json", b'{"command": "c"}', lambda path: read_material(path.parent)),
        ("begun/run.sqlite", (place / "begun/run.sqlite").read_bytes(), lambda path: read_material(path.parent)),
        ("c.npz", (place / "c.npz").read_bytes(), lambda path: checkpoint.read(path, {"rate": 0.5}, ARRAYS)),
    ]


def main():
    """Fuzz until the time is up; an error of libFuzzer's makes the exit status."""
    with tempfile.TemporaryDirectory(prefix="canaryproof-fuzz-") as folder:
        place, corpus = Path(folder) / "files", Path(folder) / "corpus"
        for path in (place, corpus):
            path.mkdir()
        readers = _readers(place)
        for i, (_, content, _) in enumerate(readers):
            (corpus / str(i)).write_bytes(bytes([i]) + content)

        def feed(data):
            if not data:
                return
            name, content, read = readers[data[0] % len(readers)]
            path = place / name
            path.write_bytes(data[1:])
            message, begin = "", time.process_time()
            try:
                read(path)
            except (InputError, ValueError) as error:
                # A checkpoint is refused by a ValueError, which the command makes a line of.
                if not isinstance(error, InputError) and name not in ("c.npz", "state.npz"):
                    raise
                message = str(getattr(error, "message", error))
            finally:
                if path.parent == place / "idx":
                    path.unlink(missing_ok=True)
                else:
                    path.write_bytes(content)
            if (seconds := time.process_time() - begin) > CPU_SECONDS:
                raise AssertionError(f"{name}: took {seconds:.0f} CPU seconds")
            # The command line escapes what is not printable, such as a line's end in a name.
            if len(message) > 1000:
                raise AssertionError(f"{name}: longer than a line: {message!r}")

        atheris.Setup([sys.argv[0], *OPTIONS, *sys.argv[1:], str(corpus)], feed)
        atheris.Fuzz()


main()
