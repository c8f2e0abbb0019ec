"""`metfa explain-answer`: sources from files, a small decoder from a folder, and what is written and kept."""

import json
import re
import sys
import warnings
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import metfa
from metfa._base.own_files import foreign_in
from metfa.cli.language_models import ChatTemplate, loaded_language_model
from metfa.cli.report import report
from metfa.cli.run import Analysis
from metfa.cli.sources import Split, groups_of, read_sources
from metfa.results.cautions import cautions
from metfa.text import AnswerScorer, PromptNoise, explain_answer, generate_answer
from metfa.text.answers.prompts import Prompts

transformers = pytest.importorskip("transformers")
tokenizers = pytest.importorskip("tokenizers")

WORDS = ["<bos>", "<eos>", "the", "sky", "is", "blue", ".", "red", "grass", "green", "why", "<script>", "b"]
FACTS = {"grass.txt": "grass is green .", "sky.txt": "the sky is blue ."}


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    """Folder of a random decoder with one token a word."""
    folder = tmp_path_factory.mktemp("decoder")
    words = tokenizers.Tokenizer(tokenizers.models.WordLevel({word: i for i, word in enumerate(WORDS)}, "<bos>"))
    words.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    kept = transformers.PreTrainedTokenizerFast(
        tokenizer_object=words, bos_token="<bos>", eos_token="<eos>",
        chat_template="<bos> {% for one in messages %}{{ one.content }}{% endfor %} why",
    )  # fmt: skip
    config = transformers.LlamaConfig(
        vocab_size=len(WORDS), hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2,
        max_position_embeddings=60, initializer_range=0.5, bos_token_id=0, eos_token_id=1,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(2)
        transformers.LlamaForCausalLM(config).save_pretrained(folder)
    kept.save_pretrained(folder)
    return folder


@pytest.fixture
def documents(tmp_path):
    folder = tmp_path / "documents"
    folder.mkdir()
    for name, text in FACTS.items():
        (folder / name).write_text(f"{text}\n")
    (folder / ".hidden.txt").write_text("red")
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    return folder


@pytest.fixture
def command(metfa_command, model):
    def run(*arguments, samples=20):
        few = () if samples is None else ("--samples", samples)
        return metfa_command("explain-answer", "--model", model, "--separator", " ", *few, *arguments)

    return run


@pytest.mark.slow
def test_the_folder_holds_page_report_and_result(command, documents, model, tmp_path, metfa_command):
    asked = ("documents", "--question", "why is", "--answer", "the sky . grass is", "--out", "out")
    done = command(*asked)
    assert done.code == 0, done.err
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == ["about.json", "report.html", "report.txt", "sample"]
    assert foreign_in(folder) is None
    network = transformers.AutoModelForCausalLM.from_pretrained(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    scorer = AnswerScorer(
        network, tokenizer, question="why is", answers="the sky . grass is", spans="sentences", separator=" "
    )
    sample = explain_answer(scorer, FACTS, n_samples=20, rng=0)
    kept = metfa.load(folder / "sample")
    assert (kept.values == sample.values).all()
    report = (folder / "report.txt").read_text()
    assert done.out == f"{report}\npage: out/report.html\n"
    for line in (r"^the sky \. \[", r"^grass is \[", r"^question: +why is$", r"^answer: +the sky \. grass is$"):
        assert re.search(line, report, re.MULTILINE)
    page = (folder / "report.html").read_text()
    assert "Which sources raise the score of the answer to “why is”?" in page
    assert '<section class="result answer"' in page
    again = command(*asked)
    assert "nothing is written" in again.err
    assert again.out == done.out
    assert metfa_command("show", "out").out == report
    assert metfa_command("show", "out", "--alpha", 0.01, "--out", "views").code == 0
    assert sorted(path.name for path in (tmp_path / "views").iterdir()) == ["report.html", "report.txt"]
    series = ("--kind", "series", "--out", "other")
    assert "`--kind` is for maps of arrays" in metfa_command("show", "out", *series).error
    assert "`--regions` is not for sources" in metfa_command("show", "out", "--regions", "sentences").error
    assert metfa_command("report", "out", "--out", "page.html").code == 0
    assert "out holds results with question=why is, not red" in command(*asked, "--question", "red").error
    assert command(*asked, "--question", "red", "--overwrite").code == 0


@pytest.mark.slow
def test_an_answer_is_generated_once_and_an_interrupted_run_goes_on(command, documents, tmp_path, model):
    asked = ("documents", "--question", "why is <script>", "--max-tokens", 4, "--whole", "--out", "out")
    done = command(*asked)
    assert done.code == 0, done.err
    network = transformers.AutoModelForCausalLM.from_pretrained(model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    said = generate_answer(network, tokenizer, FACTS, question="why is <script>", separator=" ", max_tokens=4)
    about = json.loads((tmp_path / "out/about.json").read_text())
    assert about["answer"] == said
    assert about["given"] is None
    before = (tmp_path / "out/sample/values.npy").read_bytes()
    (tmp_path / "out/report.txt").unlink()
    (tmp_path / "out/report.html").unlink()
    assert command(*asked).code == 0
    assert (tmp_path / "out/sample/values.npy").read_bytes() == before
    assert "why is <script>" not in (tmp_path / "out/report.html").read_text()


def test_chat_groups_random_weights_and_until(command, documents, tmp_path):
    numbers = ("--beside", "attnlrp", "--beside", "leave-one-out")
    both = (
        *numbers,
        "--group",
        "facts=grass.txt|sky.txt",
        "--random-weights",
        "--until",
        "undecided=0.5",
        "--max-samples",
        20,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = command(
            "documents", "--chat", "--answer", "red", "--out", "out", *both, "--max-samples", 20, samples=None
        )
    assert done.code == 0, done.err
    assert "warning: `--random-weights`" in done.err
    assert re.search(r"attnlrp -?[0-9.e-]+  leave-one-out -?[0-9.]+", done.out)
    assert metfa.load(tmp_path / "out/sample").provenance["answer"]["beside"].keys() == {"attnlrp", "leave-one-out"}
    assert "facts: kept or dropped together: grass.txt, sky.txt" in done.out
    assert "THE NETWORK IS UNTRAINED" in done.out
    made = metfa.load(tmp_path / "out/sample").provenance["explainer"]
    assert "ChatTemplate(message=" in made
    assert metfa.load(tmp_path / "out/sample").stopping is not None


@pytest.mark.slow
def test_deeper_levels_are_written_shown_and_reported(command, documents, metfa_command, tmp_path):
    (documents / "sky.txt").write_text("red . the sky is blue .")
    asked = ("documents", "--question", "why", "--answer", "blue", "--deeper", "sentences", "--out", "out")
    done = command(*asked, samples=40)
    assert done.code == 0, done.err
    assert done.out.count("Level 1: 2 documents") == 2
    assert foreign_in(tmp_path / "out") is None
    report = (tmp_path / "out/report.txt").read_text()
    assert "With probability at least 95%, no part of any level" in report
    assert "at alpha 0.025 of 0.05 for all levels" in report
    assert metfa_command("show", "out").out == report
    assert "of levels are those at which they were opened" in metfa_command("show", "out", "--alpha", 0.01).error
    assert metfa_command("report", "out", "--out", "page.html").code == 0
    assert "nothing is written" in command(*asked, samples=40).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "no such file or folder: nowhere"),
        (["documents", "--template", "none"], "`template` must hold {sources} once, got 'none'"),
        (["documents", "--template", "{sources}", "--chat"], "`question` is given, and `template` has no {question}"),
        (["documents", "--contrast", "blue", "--score", "mean"], "`--contrast` compares .*: leave `--score mean` out"),
        (["documents", "--alpha", 0], "`alpha` must lie between 0 and 0.5, got 0.0"),
        (["documents", "--confidence", 2], "`--confidence` must lie strictly between 0 and 1, got 2.0"),
        (["latin.txt"], "latin.txt is no text in UTF-8: .*; save its text as UTF-8"),
        (["documents", "--group", "a"], "`--group` must be NAME=SOURCE|SOURCE"),
        (["documents", "--group", "a=sky.txt|b"], "there is no source named 'b'; there are 'grass.txt', 'sky.txt'"),
        (["documents", "--until", "undecided=0.2"], "`--samples` 20 and `--until` contradict each other"),
        (["documents", "--samples", 4], "`--samples` 4 are too few for 2 sources at alpha 0.05: .* at least 6"),
        (["documents", "--group", "a=sky.txt", "--deeper", "sentences"], "`--group` and `--deeper` cannot be joined"),
        (["documents", "--correction", "bh", "--deeper", "sentences"], "`--correction` with `--deeper` is holm"),
        (["documents", "--max-samples", 5], "`--max-samples` 5 is only for --until"),
        (["documents", "--delta", 0], "`delta` must be above 0"),
        (["documents", "--model", "nobody/nothing"], "cannot be loaded.*--allow-download"),
        (["documents", "--model", "tiny:model"], "must be a function that returns a model and its tokeniser"),
        (["documents", "--answer", " "], "`answers`: ' ' is blank, and nobody would see what is explained"),
        (["documents", "--answer", ""], "has no tokens"),
        (["documents", "--answer", "red", "--contrast", "red"], "`contrast` is an answer itself, 'red': the scores"),
    ],
)
def test_bad_settings_are_one_line(arguments, message, command, documents, tiny):
    given = ["--question", "why", *([] if "--answer" in arguments else ["--answer", "red"])]
    assert re.search(message, command(*arguments, *given).error)


def test_a_chat_needs_a_template(model):
    tokenizer = transformers.AutoTokenizer.from_pretrained(model)
    tokenizer.chat_template = None
    with pytest.raises(ValueError, match="the tokeniser of this model has no chat template: leave --chat out"):
        ChatTemplate(tokenizer, Prompts("{sources}", "", " "))


def test_weights_are_held_in_bfloat16_wherever_the_model_comes_from(model, monkeypatch):
    settings = {"device": "cpu", "random_weights": False, "download": False, "seed": 0}
    own, tokenizer = loaded_language_model(str(model), bfloat16=False, **settings)
    assert own.dtype == torch.float32
    monkeypatch.setitem(sys.modules, "mine", SimpleNamespace(make=lambda: (own, tokenizer)))
    for name in (str(model), "mine:make"):
        assert loaded_language_model(name, bfloat16=True, **settings)[0].dtype == torch.bfloat16


def test_what_noise_changed_stands_once_in_a_report(tmp_path):
    def score(rows):  # of two answers, of which the first is likelier where "a" stands first
        return np.array([[1.0 * (row[:1] == ["a"]), 0.5] for row in rows])

    found = explain_answer(PromptNoise(score, order=True), ["a", "b", "c"], delta=0.4, n_samples=10, pilot=4, rng=0)
    (said,) = cautions(found, 0)
    analysis = Analysis(None, 0.95, None, None, "colourblind")
    assert f"CAUTION: {said}\n" in report(found, {}, analysis, None)
    assert report(found, {}, analysis, None).count(said) == 1
    assert said not in report(found, {}, replace(analysis, flips_from=1.0), None)


def test_sources_are_read_from_folders_files_and_lines(tmp_path, documents):
    assert read_sources([documents], None) == FACTS
    text = tmp_path / "text.md"
    text.write_text("One is here. Two is Dr. No.\n\nThree.\n")
    assert read_sources([text], None) == {"paragraph 1": "One is here. Two is Dr. No.", "paragraph 2": "Three."}
    assert list(read_sources([text], Split.sentences).values()) == ["One is here.", "Two is Dr. No.", "Three."]
    assert list(read_sources([text, documents], None)) == ["text.md", *FACTS]
    assert "text.md, paragraph 2" in read_sources([text, documents], Split.paragraphs)
    lines = tmp_path / "parts.jsonl"
    lines.write_text('{"name": "atlas", "text": "Paris"}\n\n"a turn"\n')
    assert read_sources([lines], None) == {"atlas": "Paris", "line 3": "a turn"}
    assert groups_of(["a=atlas|line 3"], ["atlas", "line 3"]) == {"a": ["atlas", "line 3"]}


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.txt", b"\xff\xfe\x00", "is no text in UTF-8"),
        ("a.txt", b" \n", "is empty"),
        ("a.jsonl", b'{"text": 3}', "line 1: must be"),
        ("a.jsonl", b'"a"\n{', "line 2: no JSON"),
        ("a.jsonl", b'{"name": "b", "text": "c"}\n{"name": "b", "text": "d"}', "two sources are called 'b'"),
        ("a.jsonl", b'""', "line 1: the text is empty"),
    ],
)
def test_bad_sources(name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        read_sources([tmp_path / name], None)


def test_a_folder_without_texts(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no texts"):
        read_sources([tmp_path], None)
