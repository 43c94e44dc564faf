import warnings

import numpy as np
import pytest

from canaryproof import OpacusInspection

torch = pytest.importorskip("torch", reason="needs torch")
pytest.importorskip("opacus", reason="needs opacus")

from opacus import PrivacyEngine  # noqa: E402
from opacus.utils.batch_memory_manager import BatchMemoryManager  # noqa: E402
from torch import nn  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

MEMBERS, RATE = 190, 0.1


def private(seed=0, batch=20, norm=1.0, **options):
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(20, 30), nn.ReLU(), nn.Linear(30, 3))
    x, y = torch.randn(MEMBERS + 10, 20), torch.randint(3, (MEMBERS + 10,))
    data = TensorDataset(x, y, torch.arange(MEMBERS + 10))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivacyEngine().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9),
            data_loader=DataLoader(data, batch_size=batch, shuffle=True),
            noise_multiplier=1.0,
            max_grad_norm=norm,
            criterion=nn.CrossEntropyLoss(),
            **options,
        )


def train(model, optimizer, loader, inspection, enter=True):
    for x, y, numbers in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        if enter:
            inspection.enter(numbers)
        optimizer.step()


@pytest.mark.filterwarnings("ignore")
def test_an_honest_training_is_not_refuted_and_its_canaries_are_clipped():
    model, optimizer, loader = private()
    inspection = OpacusInspection(optimizer, members=MEMBERS, rate=RATE)
    for _ in range(6):
        train(model, optimizer, loader, inspection)
    assert inspection.rounds == 60
    assert not inspection.has_failed
    clipping = next(test for test in inspection.tests() if test.name == "clipping")
    assert float(clipping.observed.split()[-3]) == pytest.approx(1.0, abs=0.6)
    # The accountant counts the steps as before.
    assert optimizer.step_hook is not None


@pytest.mark.filterwarnings("ignore")
def test_virtual_steps_are_one_round_with_all_its_batches():
    model, optimizer, loader = private()
    inspection = OpacusInspection(optimizer, members=MEMBERS, rate=RATE)
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=4, optimizer=optimizer) as small:
        train(model, optimizer, small, inspection)
    assert inspection.rounds == 10
    assert not inspection.has_failed
    sizes = inspection.tests()[-4]
    assert sizes.name == "batch size"
    assert 10.0 < float(sizes.observed.split()[3]) < 30.0


@pytest.mark.filterwarnings("ignore")
def test_empty_batches_are_rounds_of_noise_alone():
    model, optimizer, loader = private(batch=1)
    inspection = OpacusInspection(optimizer, members=MEMBERS, rate=1 / len(loader))
    sizes = []
    for x, y, numbers in loader:
        sizes.append(len(numbers))
        optimizer.zero_grad()
        # The mean over no example has no value.
        nn.functional.cross_entropy(model(x), y, reduction="sum").backward()
        inspection.enter(numbers)
        optimizer.step()
    assert 0 in sizes
    assert inspection.rounds == len(sizes)
    assert not inspection.has_failed


@pytest.mark.filterwarnings("ignore")
def test_a_clipping_that_does_nothing_is_seen():
    model, optimizer, loader = private()
    optimizer.max_grad_norm = 1.0
    inspection = OpacusInspection(optimizer, members=MEMBERS, rate=RATE)
    optimizer.max_grad_norm = 50.0
    optimizer.noise_multiplier = 1.0 / 50.0
    for _ in range(3):
        train(model, optimizer, loader, inspection)
    assert "clipping" in {test.name for test in inspection.tests() if test.has_failed}


@pytest.mark.filterwarnings("ignore")
def test_wrong_use_is_refused():
    model, optimizer, loader = private()
    with pytest.raises(ValueError, match="optimizer: must be Opacus' DPOptimizer, as make_private returns it, not SGD"):
        OpacusInspection(torch.optim.SGD(model.parameters(), lr=0.1), members=MEMBERS)
    inspection = OpacusInspection(optimizer, members=MEMBERS, rate=RATE)
    with pytest.raises(ValueError, match="enter: must be called for each batch"):
        train(model, optimizer, loader, inspection, enter=False)
    x, y, numbers = next(iter(loader))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    with pytest.raises(ValueError, match="numbers: must be of the batch's"):
        inspection.enter(np.append(numbers, 3))
    layers = private(clipping="per_layer", norm=[1.0] * 4)[1]
    with pytest.raises(ValueError, match="DPPerLayerOptimizer is not served: an inspection clips to one norm"):
        OpacusInspection(layers, members=MEMBERS, rate=RATE)
    ghost = private(grad_sample_mode="ghost")[1]
    with pytest.raises(ValueError, match="optimizer: ghost clipping makes no gradients of examples"):
        OpacusInspection(ghost, members=MEMBERS, rate=RATE)
