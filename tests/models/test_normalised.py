"""`Normalised` against the arithmetic written out."""

import pytest
import torch
from torch import nn

from metfa.models import Normalised

MEAN, STD = [0.1, 0.5, 0.9], [0.2, 0.25, 0.5]


@pytest.fixture
def model():
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, 4, 3), nn.Flatten())


def pixels(dtype=torch.float32):
    return torch.rand(2, 3, 5, 6, generator=torch.Generator().manual_seed(1)).to(dtype)


def test_equals_normalising_by_hand(model):
    x = pixels()
    by_hand = torch.stack([(x[:, c] - MEAN[c]) / STD[c] for c in range(3)], dim=1)
    torch.testing.assert_close(Normalised(model, MEAN, STD)(x), model(by_hand))


def test_other_statistics_give_another_answer(model):
    assert not torch.allclose(Normalised(model, MEAN, STD)(pixels()), Normalised(model, STD, MEAN)(pixels()))


def test_wraps_without_changing_the_model(model):
    model.train()
    wrapped = Normalised(model, MEAN, STD)
    assert wrapped.model is model
    assert model.training
    assert set(wrapped.state_dict()) == {"mean", "std", "model.0.weight", "model.0.bias"}
    assert wrapped.mean.shape == wrapped.std.shape == (3, 1, 1)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("input_dtype", [torch.bfloat16, torch.float32, torch.float64])
def test_every_dtype_of_model_takes_every_dtype_of_pixels(model, dtype, input_dtype):
    exact = Normalised(model, MEAN, STD)(pixels()).detach()
    wrapped = Normalised(model, MEAN, STD).to(dtype)
    x = pixels(input_dtype).requires_grad_()
    answer = wrapped(x)
    assert answer.dtype == dtype
    torch.testing.assert_close(answer.float(), exact, rtol=0.05, atol=0.05)
    answer.sum().backward()
    assert x.grad.dtype == input_dtype


def test_buffers_take_the_dtype_of_the_model(model):
    assert Normalised(model.double(), MEAN, STD).mean.dtype == torch.float64
    assert Normalised(nn.Flatten(), MEAN, STD).std.dtype == torch.float32


def test_statistics_may_be_arrays_and_are_copied():
    mean = torch.tensor(MEAN)
    wrapped = Normalised(nn.Identity(), mean, torch.tensor(STD))
    mean.zero_()
    assert wrapped.mean.flatten().tolist() == pytest.approx(MEAN)


@pytest.mark.parametrize(
    ("mean", "std", "message"),
    [
        (0.5, STD, r"`mean` must be one finite number per channel, got 0\.5"),
        (MEAN, [[1.0] * 3], r"`std` must be one finite number per channel, got \[\[1\.0, 1\.0, 1\.0\]\]"),
        ([0.1, float("nan"), 0.2], STD, r"`mean` must be one finite number per channel, got \[0\.1, nan, 0\.2\]"),
        ([0.5], STD, r"`mean` and `std` must have one length, got 1 and 3"),
        (MEAN, [0.2, 0.0, 0.2], r"`std` must be positive, got \[0\.2, 0\.0, 0\.2\]"),
    ],
)
def test_bad_statistics(mean, std, message):
    with pytest.raises(ValueError, match=message):
        Normalised(nn.Identity(), mean, std)


def test_bad_model():
    with pytest.raises(TypeError, match=r"`model` must be a torch\.nn\.Module, got function"):
        Normalised(lambda x: x, MEAN, STD)


def test_8_bit_pixels_are_refused():
    with pytest.raises(TypeError, match=r"got torch\.uint8; divide 8-bit pixels by 255"):
        Normalised(nn.Identity(), MEAN, STD)(torch.zeros(1, 3, 2, 2, dtype=torch.uint8))


@pytest.mark.parametrize("shape", [(3, 4, 4), (2, 1, 4, 4), (2, 4, 4, 3)])
def test_wrong_shape_is_refused_and_not_broadcast(shape):
    with pytest.raises(ValueError, match=rf"shape \(batch, 3, height, width\), got \({', '.join(map(str, shape))}\)"):
        Normalised(nn.Identity(), MEAN, STD)(torch.zeros(shape))
