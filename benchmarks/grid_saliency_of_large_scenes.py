"""Peak anonymous memory of GridSaliency for scenes of 2048 x 1024 pixels: it does not grow with the number of copies.

With the default settings, a pass holds one row at this size. Each figure comes from its own process with two steps,
which need as much memory as a hundred. The memory before the work (imports, network) is subtracted. The networks are
those of ``grid_saliency_batched``.
"""

import argparse
import subprocess
import sys
from pathlib import Path

from benchmarks.grid_saliency_batched import centre, networks, scene
from benchmarks.igos_and_mask_batched import noisy_copies
from benchmarks.measuring import peak_during
from metfa.segmentation import GridSaliency

SIZE = (1024, 2048)

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--weights", type=Path, help="of an ESPNet, see paper/espnet.py")
    parser.add_argument("--measure", nargs=2, metavar=("NETWORK", "COPIES"), help="one figure, in this process")
    options = parser.parse_args()
    if options.measure:
        name, n = options.measure[0], int(options.measure[1])
        copies = noisy_copies(scene(SIZE), n)
        explainer = GridSaliency(networks(options.weights)[name], 1, region=centre(SIZE), n_iterations=2)
        print(f"{name}, copies: {n}: {peak_during(lambda: explainer(copies)):.0f} MiB", flush=True)
    else:
        weights = [] if options.weights is None else ["--weights", str(options.weights)]
        for name in networks(options.weights):
            for n in ("1", "4"):
                command = [sys.executable, "-m", "benchmarks.grid_saliency_of_large_scenes", *weights]
                subprocess.run([*command, "--measure", name, n], check=True)
