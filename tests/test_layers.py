"""The layers of the design: a module imports only from layers before its own (or within it)."""

import ast
from pathlib import Path

import pytest

import metfa

ROOT = Path(metfa.__file__).parent

LAYERS = [
    {"_base"},
    {"_arrays", "stats"},
    {"noise"},
    {"results"},
    {"calls"},
    {"sampling"},
    {"models", "allocator"},
    {"explainers"},
    {"metrics"},
    {"attacks"},
    {"text", "segmentation"},
    {"by_name"},
    {"evaluation"},
    {"plot"},
    {"report"},
    {"cli", "__main__"},
]
LAYER_OF = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}

# Methods of a result that open a later room when they are called, so that `result.plot()` reads well.
SHIMS = {
    *(("results", "plot"), ("results", "report"), ("segmentation", "plot"), ("segmentation", "report")),
    ("attacks", "plot"),
}

ALLOWED_LIBRARIES = {0: {"numpy"}, 1: {"numpy", "array_api_compat"}, 2: {"numpy"}, 3: {"numpy"}, 5: {"numpy"}}


def rooms():
    return sorted({path.relative_to(ROOT).with_suffix("").parts[0] for path in ROOT.rglob("*.py")} - {"__init__"})


def imported(tree, *, top_level_only):
    nodes = tree.body if top_level_only else ast.walk(tree)
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "absolute imports only"
            if node.module == "metfa":
                yield from (f"metfa.{alias.name}" for alias in node.names)
            else:
                yield node.module


def files_of(room):
    path = ROOT / room
    return sorted(path.rglob("*.py")) if path.is_dir() else [path.with_suffix(".py")]


def test_every_room_has_a_layer():
    assert set(rooms()) <= set(LAYER_OF), "put the new module into LAYERS"


@pytest.mark.parametrize("room", rooms())
def test_imports_point_to_earlier_layers(room):
    for path in files_of(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in imported(tree, top_level_only=False):
            first, _, rest = name.partition(".")
            if first != "metfa" or not rest:
                continue
            other = rest.partition(".")[0]
            assert LAYER_OF[other] <= LAYER_OF[room] or (room, other) in SHIMS, f"{path.name} imports {name}"


@pytest.mark.parametrize("room", [room for room in rooms() if LAYER_OF[room] in ALLOWED_LIBRARIES])
def test_core_needs_only_numpy_and_array_api_compat(room):
    standard = __import__("sys").stdlib_module_names
    for path in files_of(room):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for name in imported(tree, top_level_only=True):
            library = name.partition(".")[0]
            allowed = {"metfa", *ALLOWED_LIBRARIES[LAYER_OF[room]], *standard}
            assert library in allowed, f"{path.name} imports {library} at its top"


def test_only_arrays_knows_array_libraries():
    for path in ROOT.rglob("*.py"):
        if path.stem != "_arrays":
            tree = ast.parse(path.read_text(encoding="utf-8"))
            names = {name.partition(".")[0] for name in imported(tree, top_level_only=False)}
            assert not names & {"array_api_compat", "jax", "cupy"}, f"{path.name} imports an array library"


def test_nothing_of_ours_imports_torchvision_at_its_top():
    for path in ROOT.rglob("*.py"):
        names = set(imported(ast.parse(path.read_text(encoding="utf-8")), top_level_only=True))
        assert not {name for name in names if name.partition(".")[0] in {"torchvision", "timm", "captum"}}, path.name
