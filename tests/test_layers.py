"""The design as rules: layers, no circles, privacy.

A room is what lies directly in the package: a folder, or a file on its own.
"""

import ast
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import metfa

ROOT = Path(metfa.__file__).parent

LAYERS = [
    {"_base", "allocator"},
    {"_arrays", "_frames", "stats"},
    {"noise"},
    {"results"},
    {"calls"},
    {"sampling"},
    {"models"},
    {"explainers"},
    {"metrics"},
    {"attacks"},
    {"text", "segmentation", "tables"},
    {"regions"},
    {"by_name"},
    {"evaluation"},
    {"plot"},
    {"report"},
    {"explore"},
    {"cli", "__main__"},
]
LAYER_OF = {room: level for level, rooms in enumerate(LAYERS) for room in rooms}
FOR_ALL = {"_base", "_arrays", "_frames"}  # private to metfa, not to a room

# Methods that open a later file when they are called, so that `result.plot()` and `result.save()` read well.
SHIMS = {
    *(
        ("results", "plot"),
        ("results", "report"),
        ("results", "explore"),
        ("segmentation", "plot"),
        ("segmentation", "report"),
    ),
    ("text", "report"),
    *(("attacks", "plot"), ("results.sample", "results.files"), ("results.sample", "results.summary")),
    ("attacks.result", "attacks.saving"),
}

ALLOWED_LIBRARIES = {0: {"numpy"}, 1: {"numpy", "array_api_compat"}, 2: {"numpy"}, 3: {"numpy"}, 5: {"numpy"}}

# Names with an underscore that other libraries hand out: Python's, NumPy's, and those of torch's modules.
FOREIGN = {"_asdict", "_current_frames", "_getframe", "_mmap"} | {
    *("_BatchNorm", "_DropoutNd", "_ConstantPadNd", "_ReflectionPadNd", "_ReplicationPadNd"),
    *("_parameters", "_modules", "_is_full_backward_hook"),
}


@dataclass(frozen=True)
class Import:
    """What one line of `module` takes: `name` out of `source`, or `source` itself (name None)."""

    module: str
    source: str
    name: str | None
    at_top: bool  # outside functions and classes
    for_types: bool  # under TYPE_CHECKING


def module_name(path):
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def tree(path):
    return ast.parse(path.read_text(encoding="utf-8"))


def room_of(module):
    """`metfa.stats.counts` -> `stats`; `metfa` itself -> an empty name."""
    return module.partition(".")[2].partition(".")[0]


def rooms():
    return sorted({room_of(module) for module in MODULES} - {""})


def files_of(room):
    return [path for module, path in MODULES.items() if room_of(module) == room]


def is_private(name):
    return name is not None and name.startswith("_") and not name.startswith("__")


@cache
def imports(module):
    found = []

    def walk(nodes, at_top, for_types):
        for node in nodes:
            if isinstance(node, ast.Import):
                found.extend(Import(module, alias.name, None, at_top, for_types) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module}: absolute imports only"
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    source, name = (whole, None) if whole in MODULES else (node.module, alias.name)
                    found.append(Import(module, source, name, at_top, for_types))
            elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
                walk(node.body, at_top, for_types=True)
                walk(node.orelse, at_top, for_types)
            else:
                inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
                walk(ast.iter_child_nodes(node), at_top and not inside, for_types)

    walk(tree(MODULES[module]).body, at_top=True, for_types=False)
    return found


def of_ours(module):
    """Imports of our own modules by `module`, those of names by the package itself left out, as it is lazy."""
    return [one for one in imports(module) if one.source in MODULES and one.source != "metfa"]


def is_shim(one):
    return any(
        (one.module + ".").startswith(f"metfa.{opener}.") and (one.source + ".").startswith(f"metfa.{opened}.")
        for opener, opened in SHIMS
    )


class TestLayers:
    def test_every_room_has_one(self):
        assert set(rooms()) == set(LAYER_OF), "LAYERS must name each room, and no others"

    @pytest.mark.parametrize("room", rooms())
    def test_imports_point_to_earlier_ones(self, room):
        for module in MODULES:
            for one in of_ours(module) if room_of(module) == room else ():
                earlier = LAYER_OF[room_of(one.source)] <= LAYER_OF[room]
                assert earlier or is_shim(one), f"{module} imports {one.source}"

    @pytest.mark.parametrize("room", [room for room in rooms() if LAYER_OF[room] in ALLOWED_LIBRARIES])
    def test_the_core_needs_only_numpy_and_array_api_compat(self, room):
        allowed = {"metfa", *ALLOWED_LIBRARIES[LAYER_OF[room]], *sys.stdlib_module_names}
        for module in map(module_name, files_of(room)):
            for one in imports(module):
                library = one.source.partition(".")[0]
                assert library in allowed or not one.at_top or one.for_types, f"{module} imports {library} at its top"

    def test_only_arrays_knows_array_libraries(self):
        for module in MODULES.keys() - {"metfa._arrays"}:
            libraries = {one.source.partition(".")[0] for one in imports(module)}
            assert not libraries & {"array_api_compat", "jax", "cupy"}, f"{module} imports an array library"

    def test_nothing_of_ours_imports_torchvision_at_its_top(self):
        for module in MODULES:
            libraries = {one.source.partition(".")[0] for one in imports(module) if one.at_top}
            assert not libraries & {"torchvision", "timm", "captum"}, module


class TestCircles:
    def test_there_are_none(self):
        """Imports inside functions count: who reads one file of a circle has to read them all."""
        graph = {module: {one.source for one in of_ours(module) if counts(one)} - {module} for module in MODULES}
        try:
            TopologicalSorter(graph).prepare()
        except CycleError as error:
            pytest.fail(" imports ".join(reversed(error.args[1])))

    def test_shims_are_used_and_lie_inside_functions(self):
        taken = [one for module in MODULES for one in of_ours(module) if is_shim(one) and not one.for_types]
        assert not [f"{one.module} imports {one.source} at its top" for one in taken if one.at_top]
        for opener, opened in SHIMS:
            assert any((one.source + ".").startswith(f"metfa.{opened}.") for one in taken), f"{opener} → {opened}"


def counts(one):
    return not one.for_types and not is_shim(one)


class TestPrivacy:
    def test_nobody_imports_what_is_private_to_another_room(self):
        found = [f"{one.module} takes {private} of {one.source}" for one, private in private_imports()]
        assert not found

    def test_nobody_reaches_for_what_is_private_to_another_room(self):
        """An attribute with an underscore is defined in the room that uses it, be it a base class's or a friend's."""
        found = defaultdict(list)
        for room in rooms():
            own = set().union(*(defined(tree(path)) for path in files_of(room)))
            for path in files_of(room):
                foreign = [reach for name, reach in reaches(tree(path)) if name not in own | FOREIGN]
                if foreign:
                    found[path.relative_to(ROOT).as_posix()] = foreign
        assert not found


def private_imports():
    """Each import of a private module, or of a private name, that does not belong to the importer or a parent of it."""
    for module, path in MODULES.items():
        package = module if path.name == "__init__.py" else module.rpartition(".")[0]
        for one in imports(module):
            parts = [*one.source.split("."), *([one.name] if one.name else [])]
            for level, part in enumerate(parts):
                owner = ".".join(parts[:level])
                ours = f"{package}.".startswith(f"{owner}.") or module == owner
                if parts[0] == "metfa" and is_private(part) and not ours and part not in FOR_ALL:
                    yield one, part


def defined(syntax):
    """Names that a file gives to functions, classes, variables, and attributes of `self`."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and ast.unparse(node.value) == "self":
            yield node.attr


def reaches(syntax):
    """Private attributes that a file asks for: x._name, and getattr(x, "_name")."""
    for node in ast.walk(syntax):
        if isinstance(node, ast.Attribute) and is_private(node.attr):
            yield node.attr, f"line {node.lineno}: {ast.unparse(node)}"
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in {"getattr", "hasattr", "setattr", "delattr"}:
            name = node.args[1].value if isinstance(node.args[1], ast.Constant) else None
            if is_private(name):
                yield name, f"line {node.lineno}: {ast.unparse(node)}"
