"""Table on attacks: distance of maps from the target map, with and without MeTFA, for unaware and aware attackers.

The paper gives the distances d(m1, m2), d(m1, m3) and d(m1, m4) for CAM, LRP and MASK: m1 is the target map, m2 the
explanation after an attack on the explainer alone, m3 the smoothed explanation of the same image, and m4 the smoothed
explanation after an attack that knows the defence. It does not publish the weights, budgets and networks. Here we take
EfficientNet-Lite0, or a small network of ReLUs that this script trains on digits (scikit-learn):

    python -m paper.attack_table --data FOLDER --images 6 --explainers cam lrp
    python -m paper.attack_table --network digits --images 40 --explainers cam lrp mask

For CAM and MASK the attack is ADV²: the prediction becomes another class, and m1 is the map of the clean image for its
class. For LRP the prediction stays, and m1 is the map of the next image (Dombrowski et al. 2019). All attackers have
the same budget and the same number of steps. Two know the defence and take the loss through it, with new noise at each
step: one draws on both maps with equal weights, the other on the smoothed map alone. A fourth, who is asked for by
``--attackers``, knows the noise too. ``--restarts`` and ``--draws`` make attackers stronger, ``--budget`` weaker, to
see where the defence breaks. Images are attacked one by one. Each attacker's figures are kept in a table of his own.
"""

import argparse
import csv
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from time import monotonic, process_time
from typing import Any

import numpy as np
import torch
from torch import nn

import metfa
from metfa import attacks, explainers
from metfa._base.pictures import open_image
from metfa.attacks.detection import SIGNS
from metfa.sampling.streams import content_digest
from paper.cells import Found, cell, found
from paper.kept import Kept
from paper.setting import described, digest, weights, with_results

PAPER = {"cam": (0.0934, 0.2785, 0.1705), "lrp": (0.0340, 0.0657, 0.0635), "mask": (0.1453, 0.1667, 0.1648)}
NOISE = metfa.noise.Uniform(0.1, bounds=(0, 1))
ATTACKERS = ("nothing", "defence", "defence alone", "seed")  # what they know; "alone" draws on the smoothed map only
# The blurs, jitter and grid of ADV² are for 224 pixels. The digits have a seventh of that, and so have these settings.
SMALL = {"grid": 8, "jitter": 0, "mask_blur": explainers.Blur(1.0), "baseline": explainers.Blur(2.0)}


def digits_network(seed: int = 0) -> tuple[nn.Module, torch.Tensor, str]:
    """A network of ReLUs that classifies digits (32 x 32 pixels), pictures that it has not seen, and their digest."""
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures = torch.tensor(data.images[:, None] / 16, dtype=torch.float32)
    pictures = nn.functional.interpolate(pictures, (32, 32), mode="bilinear").clamp(0, 1)
    classes = torch.tensor(data.target)
    order = torch.randperm(len(pictures), generator=torch.Generator().manual_seed(seed))
    learnt, kept = order[:1400], order[1400:]
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        layers: list[nn.Module] = []
        for before, after, stride in ((1, 16, 1), (16, 32, 2), (32, 64, 2)):
            layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.BatchNorm2d(after), nn.ReLU()]
        network = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
        optimiser = torch.optim.Adam(network.parameters(), lr=3e-3)
        for _ in range(15):
            for rows in learnt[torch.randperm(len(learnt))].split(64):
                noisy = (pictures[rows] + 0.2 * (torch.rand_like(pictures[rows]) - 0.5)).clamp(0, 1)
                optimiser.zero_grad()
                nn.functional.cross_entropy(network(noisy), classes[rows]).backward()
                optimiser.step()
    optimiser.zero_grad(set_to_none=True)
    network.eval()
    with torch.no_grad():
        right = (network(pictures[kept]).argmax(1) == classes[kept]).float().mean()
    print(f"digits: {right:.3f} of the pictures not seen are right")
    return network, pictures[kept], digest([pictures[kept].numpy().tobytes()])


def photographs(folder: Path, n: int) -> tuple[nn.Module, torch.Tensor, str]:
    """EfficientNet-Lite0, photographs in an order drawn once, and the digest of all that there are."""
    loaded = metfa.models.load("efficientnet-lite0")
    with (folder / "index.csv").open(encoding="utf-8") as file:
        names = [row["file"] for row in csv.DictReader(file)]
    order = np.random.default_rng(0).permutation(len(names))
    pictures = [loaded.preprocess(open_image(folder / names[k]).convert("RGB")) for k in order[: n + 1]]
    return loaded.module, torch.stack(pictures), digest((folder / names[k]).read_bytes() for k in order)


def arguments(name: str, options: argparse.Namespace) -> dict:
    """The settings of all attackers: sign steps that shrink from a quarter of the budget to nothing."""
    epsilon = options.budget / 255
    return {
        "n_steps": options.steps,
        "epsilon": epsilon,
        "step": "sign",
        "step_size": epsilon / 4,
        "schedule": "linear",
        "check_every": 50 if name == "mask" else 10,  # a look optimises eleven masks in full
        "n_restarts": options.restarts,
        "n_draws": options.draws,
        "batch_size": 1,
        "rng": 0,
    }


def made(name: str, network: str) -> partial:
    """The explainer of that name, without its model."""
    if name == "mask":
        small = SMALL if network == "digits" else {}
        return partial(explainers.MASK.adv2_v2, n_iterations=100, rng=0, **small)
    return partial({"cam": explainers.CAM, "lrp": explainers.LRP}[name])


def loss(name: str, options: argparse.Namespace) -> dict[str, Any]:
    """The preset of the attack on an explainer, and what differs from it."""
    if name == "lrp":
        return {"settings": "dombrowski", "map_scale": "given", "map_weight": 1000.0, "prediction_weight": 1.0,
                "softening": None}  # fmt: skip
    first = {"n_first_steps": min(50, options.steps)}
    if name == "cam":
        return {"settings": "adv2-cam", "map_weight": 10.0, **first}
    # The network of the digits cannot reach a margin of 10 logits; with 1 the attack can work on the map.
    margin = {"margin": 1.0} if options.network == "digits" else {}
    return {"settings": "adv2-mask", "map_weight": 100.0, **first, **margin}


def attacked(
    name: str, model: nn.Module, pictures: torch.Tensor, place: int, knows: str, options: argparse.Namespace
) -> attacks.AttackResult:
    """Result of one attacker on the picture at this place."""
    explainer, images = made(name, options.network)(model), pictures[place : place + 1]
    defence = metfa.Smoothed(explainer, noise=NOISE, n_samples=10, batch_size=5, rng=0)
    settings = {**arguments(name, options), **loss(name, options), "defence": defence, "knows": knows}
    if knows == "defence alone":
        settings |= {"knows": "defence", "map_weight": 0.0, "defence_weight": settings["map_weight"]}
    if name == "lrp":
        maps, _ = explainer(pictures[place + 1 : place + 2])
        return attacks.manipulate(model, explainer, images, target_map=maps, **settings)
    with torch.no_grad():
        scores = model(images)
    step = np.random.default_rng([0, place]).integers(1, scores.shape[1])
    goal = int((scores.argmax(1)[0] + step) % scores.shape[1])
    return attacks.targeted(model, explainer, images, [goal], **settings)


def named(network: str, name: str, knows: str, strength: Iterable[float]) -> str:
    """The table of one attacker: steps, restarts, draws and levels are its last words."""
    return "-".join(["attack", network, name, knows.replace(" ", "-"), *(f"{value:g}" for value in strength)])


def opened(name: str, knows: str, model: nn.Module, among: str, options: argparse.Namespace) -> Kept:
    """Figures of one attacker that are kept."""
    strength = {"steps": options.steps, "restarts": options.restarts, "draws": options.draws, "levels": options.budget}
    setting = {
        "inputs": among, "model": weights(model), "explainer": described(made(name, options.network)),
        "attack": described({**arguments(name, options), **loss(name, options)}), "P": described(NOISE),
        "attacker": knows, "n_samples": 10, "seed": 0, **strength,
    }  # fmt: skip
    return Kept.opened(options.results / f"{named(options.network, name, knows, strength.values())}.csv", setting)


def measure(
    name: str,
    model: nn.Module,
    pictures: torch.Tensor,
    tables: dict[str, Kept],
    options: argparse.Namespace,
    until: float,
) -> None:
    """Attack one picture after the other, by each of these attackers; no attack is begun after `until`."""
    for place in range(len(pictures) - 1):
        unit = content_digest(pictures[place].numpy())[:16]
        for knows, kept in tables.items():
            if unit in kept.lines or monotonic() > until:
                continue
            clock = process_time()
            result = attacked(name, model, pictures, place, knows, options)
            kept.add(unit, figures(name, model, result, options), process_time() - clock)
            print(f"{kept.path.name}: {len(kept.lines)} images", flush=True)


def figures(name: str, model: nn.Module, result: attacks.AttackResult, options: argparse.Namespace) -> dict[str, float]:
    """Distances from the target map, whether it succeeded, and the signs by which an attack might be noticed."""
    wanted = result.target_map
    mixed = np.random.default_rng(0).permutation(wanted.ravel()).reshape(wanted.shape)
    found = {part: float(far[0]) for part, far in result.distances.items()}
    found |= {"m1's pixels mixed": float(np.abs(wanted - mixed).mean()), "succeeded": float(result.success[0])}
    sampled = partial(metfa.explain, made(name, options.network)(model), noise=NOISE, n_samples=10, rng=0, batch_size=5)
    clean, adversarial = (
        sampled(torch.as_tensor(one.inputs), target=one.predictions.tolist())
        for one in (result.clean, result.adversarial)
    )
    signs = attacks.detect(clean, adversarial)
    found |= {f"{sign}, clean": float(value[0]) for sign, value in signs.clean.items()}
    return found | {f"{sign}, attacked": float(value[0]) for sign, value in signs.attacked.items()}


def line(name: str, knows: str, one: Found) -> str:
    """A row of the table: one attacker."""
    distances = (cell(one[what]) for what in ("clean", "clean defended", "adversarial", "adversarial defended"))
    cells = [name, knows, str(len(one)), f"{one['succeeded'].sum():.0f}", *distances, cell(one["m1's pixels mixed"])]
    return f"| {' | '.join([*cells, ', '.join(f'{value:.4f}' for value in PAPER[name])])} |"


def detected(one: Found) -> dict[str, tuple[float, float, float]]:
    """Area under the ROC curve of each sign of one attacker, with its limits."""
    detection = attacks.Detection(*({sign: one[f"{sign}, {kind}"] for sign in SIGNS} for kind in ("clean", "attacked")))
    return {sign: (detection.auc(sign), *detection.auc_interval(sign)) for sign in SIGNS}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", choices=["lite0", "digits"], default="lite0")
    parser.add_argument("--data", type=Path, help="folder of photographs and index.csv, for lite0")
    parser.add_argument("--images", type=int, default=6)
    parser.add_argument("--explainers", nargs="+", choices=list(PAPER), default=list(PAPER))
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--restarts", type=int, default=1)
    parser.add_argument("--draws", type=int, default=1, help="smoothed maps in a step of the aware attacker")
    parser.add_argument("--budget", type=float, default=8, help="most that a pixel may change, in levels of 255")
    parser.add_argument("--attackers", nargs="+", choices=ATTACKERS, default=ATTACKERS[:3], help="what they know")
    with_results(parser)
    options = parser.parse_args()
    torch.set_num_threads(1)
    metfa.allocator.keep_freed_memory()
    if options.network == "digits":
        model, pictures, among = digits_network()
        pictures = pictures[: options.images + 1]
    else:
        model, pictures, among = photographs(options.data, options.images)
    until = monotonic() + 3600 * options.hours
    tables = {
        name: {knows: opened(name, knows, model, among, options) for knows in options.attackers}
        for name in options.explainers
    }
    if not options.finished:
        for name, kept in tables.items():
            measure(name, model, pictures, kept, options, until)
    print(
        "| explainer | the attacker knows | images | succeeded | clean | clean, smoothed | map | smoothed map |", end=""
    )
    print(" m1's pixels mixed | paper: m2, m3, m4 |\n|" + 10 * "---|")
    done = [
        (name, knows, one)
        for name, of_name in tables.items()
        for knows, kept in of_name.items()
        if (one := found(kept.path.stem, options.results)) is not None
    ]
    for name, knows, one in done:
        print(line(name, knows, one))
    for name, knows, one in done:
        areas = [f"{sign} {area:.3f} ({low:.2f} to {high:.2f})" for sign, (area, low, high) in detected(one).items()]
        print(f"{name}, the attacker knows {knows}, AUC (95 % limits): {', '.join(areas)}")
