"""Builds the sdist and the wheel, and tries them in clean environments: what ``make release-check`` runs.

``python scripts/release_check.py [--only NAME ...] [--keep FOLDER]`` needs the standard library alone. It builds what
git tracks, and checks the metadata and the files. It installs the wheel into a new environment of each Python from 3.10
to 3.14 that is there, and names the others as untried; then into one for each extra. The README's first commands run
from the wheel.
"""

from __future__ import annotations

import argparse
import email
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
SLOWEST_IMPORT = 0.25  # seconds of a processor
PROBES = {  # what a user of the extra does first
    "core": """
import numpy as np
sample = metfa.explain(lambda x, target: x * np.array([3.0, 0.0, -2.0]), np.ones((1, 3)), 0,
                       noise=metfa.noise.Gaussian(0.1), n_samples=20, rng=0)
assert sample.significance_map().tolist() == [[1, 0, -1]], sample.significance_map()
assert metfa.load(sample.save("kept")).n_samples == 20
""",
    "plot": "sample.plot().savefig('why.png')",
    "report": "sample.report('why.html')",
    "study": "assert len(sample.to_dataframe()) == 3; metfa.Study",
    "table": "assert sample.to_shap().values.shape == (1, 3)",
    "notebook": "assert sample.explore().threshold.tolist() == [0.0]",
    "image": "metfa.models.load('efficientnet-lite0')",
    "text": "assert metfa.text.load_model('sentiment')(['a charming film']).shape == (1, 2)",
    "demo": "import skimage.data; metfa.models.load('efficientnet-lite0')",
    "lime": "import skimage.segmentation",
    "lrp": "import zennit; metfa.explainers.LRP",
    "captum": "import captum.attr; metfa.explainers.from_captum",
    "gradcam": "import pytorch_grad_cam; metfa.explainers.from_gradcam",
    "ray": "import ray; metfa.evaluate",
    "all": "metfa.text.load_model('sentiment'); metfa.explainers.LRP; metfa.Study",
}
MISSING = """
import types, metfa
said = 0
rooms = [getattr(metfa, name) for name in ("explainers", "metrics", "noise", "segmentation", "stats", "tables", "text")]
for room in (metfa, *rooms):
    for name in room.__all__:
        try:
            getattr(room, name)
        except ModuleNotFoundError as error:
            assert "pip install 'metfa[" in str(error), (room.__name__, name, error)
            said += 1
assert said, "everything works without torch"
"""
IMPORT = """
import sys, time
before = time.process_time()
import metfa
print(time.process_time() - before, *{"torch", "matplotlib", "pandas"} & sys.modules.keys())
"""
IN_WHEEL = (
    "metfa/py.typed",
    "metfa/__init__.pyi",
    "metfa/report/page.html.jinja",
    "metfa/explore/cell.js",
    "metfa/text/data/WORDNET-LICENSE.txt",
    "licenses/LICENSE",
)
IN_SDIST = (
    "README.md",
    "CHANGELOG.md",
    "LICENSE",
    "CITATION.cff",
    "pyproject.toml",
    "tests/conftest.py",
    "conda/meta.yaml",
)


def main() -> int:
    """Run all checks; the exit code is the number of failures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", metavar="NAME", help=f"of these alone: {', '.join(PROBES)}, readme")
    parser.add_argument("--keep", metavar="FOLDER", help="where to leave the sdist and the wheel")
    given = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        found = check(Path(folder), given.only, None if given.keep is None else Path(given.keep))
        for name, outcome in found:
            failures += outcome.startswith("FAILED")
            print(f"{name:28} {outcome}", flush=True)
    return min(failures, 1)


def check(folder: Path, only: list[str] | None, keep: Path | None) -> Iterator[tuple[str, str]]:
    """Names of checks and their outcomes, one by one."""
    wheel, sdist = built(folder)
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        for file in (wheel, sdist):
            shutil.copy(file, keep)
    yield "built", f"{sdist.name} ({sdist.stat().st_size:,} bytes), {wheel.name} ({wheel.stat().st_size:,} bytes)"
    yield "metadata and files", said(wrong_of(wheel, sdist))
    for version in PYTHONS:
        if only is not None and "core" not in only:
            break
        python = python_of(version)
        if python is None:
            yield f"core, Python {version}", "untried: not on this machine"
            continue
        yield f"core, Python {version}", tried(folder / f"core-{version}", python, f"{wheel}", "core")
    for extra in PROBES:
        if extra != "core" and (only is None or extra in only):
            yield f"extra {extra}", tried(folder / extra, sys.executable, f"{wheel}[{extra}]", extra)
    if only is None or "readme" in only:
        yield "README: metfa demo", demo(folder / "readme", wheel)


def built(folder: Path) -> tuple[Path, Path]:
    """The wheel and the sdist of what git tracks, the wheel made of the sdist as `build` does."""
    tracked = run("git", "ls-files", "-z", cwd=ROOT).split("\0")
    for name in filter(None, tracked):
        if (ROOT / name).is_file():
            target = folder / "source" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, target)
    python = environment(folder / "build", sys.executable, "build")
    run(str(python), "-m", "build", "--outdir", str(folder / "dist"), str(folder / "source"))
    (wheel,), (sdist,) = (folder / "dist").glob("*.whl"), (folder / "dist").glob("*.tar.gz")
    return wheel, sdist


def wrong_of(wheel: Path, sdist: Path) -> list[str]:
    """What is missing in the metadata and the files."""
    wrong = []
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        about = email.message_from_bytes(archive.read(next(name for name in names if name.endswith("/METADATA"))))
    wrong += [f"the wheel lacks {name}" for name in IN_WHEEL if not any(one.endswith(name) for one in names)]
    wrong += [f"the wheel holds {name}" for name in names if not name.startswith("metfa")]
    with tarfile.open(sdist) as archive:
        there = [name.partition("/")[2] for name in archive.getnames()]
    wrong += [f"the sdist lacks {name}" for name in IN_SDIST if name not in there]
    version = str(about["Version"])
    for file, pattern in (("CITATION.cff", r'version: "(.*)"'), ("CHANGELOG.md", r"## \[(.*)\]"),
                          ("conda/meta.yaml", r'set version = "(.*)"')):  # fmt: skip
        said = re.search(pattern, (ROOT / file).read_text(encoding="utf-8"))
        if said is None or said[1] != version:
            wrong.append(f"{file} is not of {version}")
    wrong += [f"no {field}" for field in ("Summary", "License-Expression", "Requires-Python", "Keywords", "Author",
                                          "Description-Content-Type", "Project-URL") if not about[field]]  # fmt: skip
    wrong += [f"no licence file {name}" for name in ("LICENSE", "src/metfa/text/data/WORDNET-LICENSE.txt")
              if name not in (about.get_all("License-File") or ())]  # fmt: skip
    classifiers = about.get_all("Classifier") or []
    wrong += [f"no classifier for {version}" for version in PYTHONS[:-1]
              if f"Programming Language :: Python :: {version}" not in classifiers]  # fmt: skip
    needed = [one for one in about.get_all("Requires-Dist") or [] if "extra ==" not in one]
    if sorted(re.split(r"[^\w-]", one)[0] for one in needed) != ["array-api-compat", "numpy"]:
        wrong.append(f"the core needs {needed}")
    return wrong


def python_of(version: str) -> str | None:
    """An interpreter of this version: on the path, or of pyenv or uv."""
    name = f"python{version}"
    places = [shutil.which(name), *sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}"))]
    places += sorted(Path.home().glob(f".local/share/uv/python/cpython-{version}.*/bin/{name}"))
    for place in filter(None, places):
        asked = subprocess.run([place, "-c", "import sys, venv; print('%d.%d' % sys.version_info[:2])"],
                               capture_output=True, text=True, check=False)  # fmt: skip
        if asked.stdout.strip() == version:
            return str(place)
    return None


def environment(folder: Path, python: str, *requirements: str) -> Path:
    """The interpreter of a new environment with these packages."""
    run(python, "-m", "venv", str(folder))
    own = folder / "bin" / "python"
    run(str(own), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *requirements)
    return own


def tried(folder: Path, python: str, requirement: str, extra: str) -> str:
    """What came out when a user installed the wheel with an extra and tried it."""
    pins = ["-c", str(ROOT / "constraints-demo.txt")] if extra != "core" else []
    try:
        began = time.monotonic()
        own = environment(folder, python, *pins, requirement)
        took = time.monotonic() - began
        made = PROBES["core"] if extra != "core" and "sample" in PROBES[extra] else ""
        run(str(own), "-c", f"import metfa\n{made}\n{PROBES[extra]}", cwd=folder)
        if extra == "core":
            run(str(own), "-c", MISSING, cwd=folder)
        times = [run(str(own), "-c", IMPORT, cwd=folder).split() for _ in range(5)]
    except subprocess.CalledProcessError as error:
        return f"FAILED: {(error.stderr or error.stdout).strip()[-600:]}"
    quickest = min(float(one[0]) for one in times)
    wrong = [f"import metfa took {quickest:.2f} s"] * (quickest > SLOWEST_IMPORT)
    wrong += [f"import metfa imports {' '.join(times[0][1:])}"] * (len(times[0]) > 1)
    return said(wrong, f"installed in {took:.0f} s, import metfa {quickest:.3f} s")


def demo(folder: Path, wheel: Path) -> str:
    """What came out of the README's first commands."""
    try:
        own = environment(folder, sys.executable, "-c", str(ROOT / "constraints-demo.txt"), f"{wheel}[demo]")
        began = time.monotonic()
        run(str(own.with_name("metfa")), "demo", cwd=folder)
        took = time.monotonic() - began
    except subprocess.CalledProcessError as error:
        return f"FAILED: {(error.stderr or error.stdout).strip()[-600:]}"
    made = {file.name for file in folder.glob("metfa-demo*/*")}
    return said([f"no {name}" for name in ("maps.png", "report.html") if name not in made], f"{took:.0f} s")


def said(wrong: list[str], fine: str = "") -> str:
    """An outcome in words."""
    return f"FAILED: {'; '.join(wrong)}" if wrong else f"ok{': ' * bool(fine)}{fine}"


def run(*command: str, cwd: Path | None = None) -> str:
    """What a command printed; raises if it fails."""
    return subprocess.run(command, cwd=cwd, check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    sys.exit(main())
