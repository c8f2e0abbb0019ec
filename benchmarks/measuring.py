"""Side-by-side timing: two ways alternate, A B A B ..., with a ratio for each pair, because machine speeds change."""

import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from skimage import data

import metfa

__all__ = [
    "bare_forwards",
    "compare",
    "networks",
    "peak_during",
    "photograph",
    "raise_thresholds",
    "seconds",
    "synchronised",
    "ways",
]


def ways(model: Any, pixels: torch.Tensor, **settings: Any) -> dict[str, metfa.Called]:
    """The ways of asking a model that are timed: as users get them, and faster copies that know how to fold."""
    found = {"out of the box": metfa.Called(model, **settings), "exact": metfa.Called(model, fast="exact", **settings)}
    if torch.ops.mkldnn._is_mkldnn_bf16_supported():
        found["bfloat16"] = metfa.Called(model, fast="bfloat16", **settings)
    else:
        print("this processor has no bfloat16, which is not timed")
    for called in found.values():
        called.scores(pixels)
    return found


def bare_forwards(called: metfa.Called, pixels: torch.Tensor, n: int, batch: int = 16) -> None:
    """Only the forward passes of n images, in the layout and precision in which a model is asked."""
    images = called.laid_out(pixels.repeat(batch, 1, 1, 1))
    with torch.no_grad(), called.precision(images):
        for start in range(0, n, batch):
            called.model(images[: min(batch, n - start)])


def compare(
    names: tuple[str, str], first: Callable[[], Any], second: Callable[[], Any], *, rounds: int, target: float | None
) -> float:
    """Time `first` against `second`, print both medians and the median ratio, and return the ratio.

    The ratio of the processor's time is printed, too: it says more where other work runs on the machine.
    """
    first(), second()
    clocks = [(_clocked(first), _clocked(second)) for _ in range(rounds)]
    times = [(a, b) for (a, _), (b, _) in clocks]
    ratios = sorted(a / b for a, b in times)
    ratio = statistics.median(ratios)
    of_processor = statistics.median(a / b for (_, a), (_, b) in clocks)
    aim = "" if target is None else f", target at most {target:g}"
    print(
        f"{names[0]}: {statistics.median(a for a, _ in times):.3f} s; "
        f"{names[1]}: {statistics.median(b for _, b in times):.3f} s; "
        f"ratio {ratio:.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f} in {rounds} pairs{aim}); "
        f"of the processor's time {of_processor:.3f}",
        flush=True,
    )
    return ratio


def photograph(device: str = "cpu") -> tuple[Any, torch.Tensor]:
    """EfficientNet-Lite0 in evaluation mode and one real picture, (1, 3, 224, 224) in [0, 1]."""
    loaded = metfa.models.load("efficientnet-lite0")
    pixels = loaded.preprocess(Image.fromarray(data.coffee()))[None]
    return loaded.module.to(device), pixels.to(device)


def networks() -> tuple[torch.Tensor, dict[str, tuple[torch.nn.Module, int]]]:
    """One real picture, and two networks with their predicted classes: EfficientNet-Lite0 and a random ResNet-18."""
    import torchvision

    lite, pixels = photograph()
    with torch.random.fork_rng():
        torch.manual_seed(0)
        residual = torchvision.models.resnet18().eval()
    models = {"EfficientNet-Lite0": lite, "ResNet-18, random weights": residual}
    with torch.no_grad():
        return pixels, {name: (model, int(model(pixels).argmax())) for name, model in models.items()}


def raise_thresholds(*, raised: bool) -> None:
    """Print the thresholds of glibc's malloc, after raising them if asked: they decide the cost of freed memory."""
    took_effect = raised and metfa.allocator.keep_freed_memory()
    print("raised thresholds:" if took_effect else "no glibc to raise:" if raised else "default thresholds:")


def _anonymous_bytes() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) * 1024
    raise OSError("this kernel does not report RssAnon")


def peak_during(work: Callable[[], Any]) -> float:
    """Peak of the resident anonymous memory while `work` runs, in MiB above the start, read every two milliseconds."""
    peak = before = _anonymous_bytes()
    running = True

    def watch() -> None:
        nonlocal peak
        while running:
            peak = max(peak, _anonymous_bytes())
            time.sleep(0.002)

    watcher = threading.Thread(target=watch)
    watcher.start()
    work()
    running = False
    watcher.join()
    return (peak - before) / 2**20


def synchronised(function: Callable[[], Any]) -> Callable[[], Any]:
    """`function`, followed by a wait for the GPU if one is used."""

    def run() -> Any:
        result = function()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return result

    return run


def _clocked(function: Callable[[], Any]) -> tuple[float, float]:
    """How long one call takes, and how long all threads of this process work meanwhile."""
    before = time.process_time()
    passed = seconds(function)
    return passed, time.process_time() - before


def seconds(function: Callable[[], Any]) -> float:
    """How long one call takes."""
    start = time.perf_counter()
    function()
    return time.perf_counter() - start
