"""What a release says of itself agrees, and nothing in the repository is of one machine."""

import re
from pathlib import Path

import pytest

import metfa

ROOT = Path(__file__).parent.parent
WORDS = {"matplotlib-base": "matplotlib", "pytorch": "torch"}  # of conda, and of PyPI
TEXTS = {".py", ".md", ".rst", ".toml", ".txt", ".yaml", ".cff", ".json", ".bib", ""}
pytestmark = pytest.mark.skipif(not (ROOT / "pyproject.toml").exists(), reason="no source here")


@pytest.fixture(scope="module")
def project():
    try:
        import tomllib
    except ModuleNotFoundError:
        import tomli as tomllib
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


@pytest.fixture(scope="module")
def recipe():
    """The recipe as conda reads it: its names filled in, then YAML."""
    yaml = pytest.importorskip("yaml")
    text = (ROOT / "conda" / "meta.yaml").read_text("utf-8")
    names = dict(re.findall(r'{% set (\w+) = "(.*)" %}', text)) | {"PYTHON": "python"}
    lines = [line for line in text.splitlines() if not line.startswith("{%")]
    return yaml.safe_load(re.sub(r"{{ (\w+) }}", lambda found: names[found[1]], "\n".join(lines)))


def needs(requirements):
    """{name: lowest version} of lines such as "numpy>=1.26" and "numpy >=1.26"."""
    pairs = [re.match(r"([\w-]+) ?>=([\d.]+)", one).groups() for one in requirements]
    return {WORDS.get(name.lower(), name.lower()): least for name, least in pairs}


def test_one_version(project, recipe):
    version = project["version"]
    assert f'version: "{version}"' in (ROOT / "CITATION.cff").read_text("utf-8")
    assert re.search(r"## \[(.*)\]", (ROOT / "CHANGELOG.md").read_text("utf-8"))[1] == version
    assert recipe["package"] == {"name": "metfa", "version": version}
    assert recipe["source"]["path"].endswith(f"metfa-{version}.tar.gz")


def test_the_recipe_is_of_the_project(project, recipe):
    run = [one for one in recipe["requirements"]["run"] if not one.startswith("python ")]
    assert needs(run) == needs(project["dependencies"])
    assert f"python {project['requires-python']}" in recipe["requirements"]["run"]
    optional = {}
    for extra in ("plot", "image", "study", "report"):
        found = [one for one in project["optional-dependencies"][extra] if not one.startswith(("metfa[", "tomli"))]
        optional |= needs(found)
    for name, least in needs(recipe["requirements"]["run_constrained"]).items():
        assert optional[name] == least
    assert recipe["about"]["license"] == project["license"]
    assert recipe["about"]["license_file"] == project["license-files"]
    assert recipe["about"]["summary"] == project["description"]
    assert recipe["build"]["entry_points"] == [f"metfa = {project['scripts']['metfa']}"]
    for name in recipe["about"]["license_file"]:
        assert (ROOT / name).is_file()
    for module in recipe["test"]["imports"]:
        assert module == "metfa" or hasattr(metfa, module.partition(".")[2])


def test_nothing_is_of_one_machine():
    homes = re.compile(r"/(?:root|home/(?!ann/)\w+|Users/\w+|work|opt/pypi[\w-]*)/|/simple/|index-url|registry=")
    folders = ("src", "tests", "scripts", "examples", "benchmarks", "paper", "conda", "page/src", ".ci", "docs/howto",
               "docs/background", "docs/reference", "docs/_ext")  # fmt: skip
    places = [*((ROOT / folder).rglob("*") for folder in folders), ROOT.glob("[!.]*"), (ROOT / "docs").glob("*")]
    files = {file for place in places for file in place if file.suffix in TEXTS and file.is_file()} - {Path(__file__)}
    found = {file: homes.search(file.read_text("utf-8", errors="ignore")) for file in files}
    assert len(files) > 300
    assert not {file.relative_to(ROOT): said[0] for file, said in found.items() if said}


class TestPaper:
    """What the Journal of Open Source Software asks of a paper's form."""

    def test_sections_words_and_citations(self):
        text = (ROOT / "paper" / "joss" / "paper.md").read_text("utf-8")
        _, front, body = text.split("---\n", 2)
        for field in ("title:", "tags:", "authors:", "affiliations:", "date:", "bibliography: paper.bib"):
            assert field in front
        headings = re.findall(r"^# (.*)$", body, re.MULTILINE)
        assert headings[:3] == ["Summary", "Statement of need", "State of the field"]
        assert headings[-2:] == ["Acknowledgements", "References"]
        assert 250 <= len(re.sub(r"!\[[\s\S]*?\}", "", body).split()) <= 1000
        cited = {key for group in re.findall(r"\[(@[^]]*)\]", body) for key in re.findall(r"@(\w+)", group)}
        known = re.findall(r"^@\w+\{(\w+),", (ROOT / "paper" / "joss" / "paper.bib").read_text("utf-8"), re.MULTILINE)
        assert cited == set(known)
        assert len(known) == len(set(known))

    def test_each_figure_has_a_script_that_writes_it(self):
        folder = ROOT / "paper" / "joss"
        for name in re.findall(r"\]\((\S+)\)", (folder / "paper.md").read_text("utf-8")):
            assert (folder / name).is_file()
            script = folder / name.replace(".png", ".py")
            assert f'with_name("{name}")' in script.read_text("utf-8")
