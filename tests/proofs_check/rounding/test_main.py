import pytest
from click.testing import CliRunner

from canaryproof.proofs_check.rounding import __main__ as command
from canaryproof.proofs_check.rounding import budgets, canary_quantile, gappa, pins, primitives


@pytest.fixture
def found(monkeypatch):
    """A proof that ends at once with what the certificate says."""
    certificate = canary_quantile.read()
    monkeypatch.setattr(canary_quantile, "prove", lambda: certificate)


@pytest.fixture
def proven(monkeypatch, tables):
    """Proofs of tables that end at once with what was proven."""
    for module, text in zip((primitives, budgets), tables, strict=True):
        monkeypatch.setattr(module, "written", lambda text=text: text)


@pytest.fixture
def only(monkeypatch):
    """Leave one of the proofs, as all of them take seconds."""
    return lambda name: monkeypatch.setattr(command, "PROOFS", {name: command.PROOFS[name]})


@pytest.mark.deep
@pytest.mark.usefixtures("found", "proven")
def test_all_proofs_hold():
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 0, run.output
    assert run.output.count("proven;") == len(command.PROOFS)
    assert "4,294,967,296 words: relative error 4.556e-07" in run.output


def test_without_gappa_its_scripts_are_skipped_with_a_word(monkeypatch, only):
    only("straight-line code")
    monkeypatch.setattr(gappa, "installed", lambda: False)
    assert "not run: gappa is not installed" in CliRunner().invoke(command.main).output


# Proves all primitives, of which test_primitives.py has each that may break.
@pytest.mark.deep
def test_a_bound_that_is_broken_fails(monkeypatch, only):
    only("primitives")
    monkeypatch.setattr(primitives._pair_balls, "MILLS", 1e-21)
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 1
    assert "primitives: FAILED" in run.output


def test_a_quantile_that_errs_too_much_fails(monkeypatch, only):
    only("canary quantile")

    def fails():
        raise RuntimeError("the stream's quantile errs by more than is stated")

    monkeypatch.setattr(canary_quantile, "prove", fails)
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 1
    assert "canary quantile: FAILED; the stream's quantile errs by more than is stated" in run.output


def test_code_that_is_not_that_of_the_proof_is_named(monkeypatch, only):
    only("code of the proofs")
    recorded = pins.read()
    monkeypatch.setattr(pins, "read", lambda: recorded | {"logarithm": "another"})
    run = CliRunner().invoke(command.main)
    assert run.exit_code == 1
    assert "code of the proofs: FAILED; of other code than the proofs: logarithm (" in run.output


@pytest.mark.usefixtures("found", "proven")
def test_what_is_written_is_what_the_package_has(tmp_path):
    assert CliRunner().invoke(command.main, ["--write", str(tmp_path)]).exit_code == 0
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {canary_quantile.CERTIFICATE, primitives.TABLE, budgets.TABLE, pins.TABLE, *gappa.scripts()}
    for path in tmp_path.iterdir():
        assert path.read_text() == (command.files(command.__package__) / path.name).read_text()
