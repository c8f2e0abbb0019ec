"""`metfa explain-answer`: which sources raise the score of an answer, sentence by sentence."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import typer

from metfa._base.provenance import printable
from metfa.cli.asked import TEMPLATE, Asked, Beside, Deeper, Score, beside_of, check_asked, prompts_of
from metfa.cli.folders import begin_folder, check_folder, note, read_about
from metfa.cli.language_models import ChatTemplate, loaded_language_model
from metfa.cli.options import (
    Alpha,
    Colours,
    Confidence,
    Correction,
    Device,
    Out,
    Overwrite,
    RandomWeights,
    Seed,
)
from metfa.cli.reported import resumable
from metfa.cli.run import RANDOM, Analysis
from metfa.cli.sources import Split, groups_of, read_sources
from metfa.cli.views import print_views, views_of_call
from metfa.results.corrections import check_correction
from metfa.results.files import write_manifest
from metfa.results.until import Until
from metfa.sampling.run import Run
from metfa.sampling.streams import content_digest
from metfa.segmentation.kept import SAMPLE
from metfa.stats.validation import as_level
from metfa.text import AnswerScorer, explain_answer, explain_answer_tree, generate_answer, put_beside
from metfa.text.answers.source_effects import PILOT

__all__ = ["explain_answer_of_sources"]


def explain_answer_of_sources(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCES", help="Folders of texts, text files, or .jsonl files of named parts.", show_default=False
        ),
    ],
    model: Annotated[
        str,
        typer.Option(
            help="A causal language model of Hugging Face by its folder or name, or package.module:callable (-> model, "
            "tokenizer).",
            show_default=False,
        ),
    ],
    question: Annotated[str, typer.Option(help="What the model is asked.")] = "",
    answer: Annotated[
        str | None,
        typer.Option(
            help="The answer, with the blank in front that the model would write; by default it generates one."
        ),
    ] = None,
    split: Annotated[
        Split | None, typer.Option(help="What a source is. By default files, or the paragraphs of a single text file.")
    ] = None,
    template: Annotated[
        str, typer.Option(help="The prompt, with {sources} and {question} in it; \\n is a line break.")
    ] = TEMPLATE,
    chat: Annotated[
        bool, typer.Option("--chat", help="The prompt is a message of a user in the model's chat template.")
    ] = False,
    separator: Annotated[str, typer.Option(help="What stands between two sources; \\n is a line break.")] = "\\n",
    group: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=SOURCE|SOURCE", help="Sources that say the same, dropped together; may be repeated."
        ),
    ] = None,
    deeper: Annotated[
        list[Deeper] | None,
        typer.Option(
            help="Then also ask about the parts of sources that matter; may be repeated, from coarse to fine."
        ),
    ] = None,
    beside: Annotated[
        list[Beside] | None, typer.Option(help="Also these numbers, without error bars; may be repeated.")
    ] = None,
    whole: Annotated[bool, typer.Option("--whole", help="Score the answer as a whole, not each sentence.")] = False,
    score: Annotated[Score, typer.Option(help="Of the answer's probability.")] = Score.logit,
    contrast: Annotated[
        str | None,
        typer.Option(help="Another answer: explained is how much more log-probability the answer has."),
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="Smallest rise of the score that matters; by default the odds double.")
    ] = None,
    max_tokens: Annotated[int, typer.Option(min=1, help="Longest answer that is generated.")] = 100,
    samples: Annotated[
        int | None, typer.Option("--samples", "-n", help="Prompts with random sources, the paper's N; by default 100.")
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="undecided=SHARE", help="Instead of --samples: until at most this share of sources is undecided."
        ),
    ] = None,
    max_samples: Annotated[int | None, typer.Option(min=1, help="Most samples with --until; by default 500.")] = None,
    pilot: Annotated[int, typer.Option(min=2, help="Further prompts that make the samples less wild.")] = PILOT,
    alpha: Alpha = None,
    confidence: Confidence = 0.95,
    correction: Annotated[
        Correction | None,
        typer.Option(help="Correction for testing many sources. By default closed-e-bh with --until, else holm."),
    ] = None,
    seed: Seed = 0,
    batch_size: Annotated[
        int, typer.Option("--batch-size", min=1, help="Prompts in one pass; changes speed only.")
    ] = 10,
    device: Device = "auto",
    bfloat16: Annotated[
        bool, typer.Option("--bfloat16", help="Hold the model's weights in bfloat16, which takes half of the memory.")
    ] = False,
    random_weights: RandomWeights = False,
    allow_download: Annotated[
        bool, typer.Option("--allow-download", help="Download a model that is not here.")
    ] = False,
    folder: Out = Path("metfa-out"),
    overwrite: Overwrite = False,
) -> None:
    """Explain an answer of a language model: which of its sources raise the score of each sentence, with error bars."""
    if until is not None and samples is not None:
        raise ValueError(f"`--samples` {samples} and `--until` contradict each other: write --max-samples {samples}")
    if until is None and max_samples is not None:
        raise ValueError(f"`--max-samples` {max_samples} is only for --until: write --samples {max_samples}")
    given, usual = (samples, 100) if until is None else (max_samples, 500)
    listed = ", ".join(map(str, sources))
    asked = Asked(
        listed, None if split is None else split.value, question, model, template, chat, separator, answer, max_tokens,
        whole or contrast is not None, score.value, contrast, delta,
        tuple(group or ()), tuple(one.value for one in deeper or ()),
        tuple(one.value for one in beside or ()), usual if given is None else given, until,
        pilot, seed, "bfloat16" if bfloat16 else None, random_weights,
    )  # fmt: skip
    as_level(confidence, "--confidence")
    given_correction = None if correction is None else correction.value
    analysis = Analysis(alpha, confidence, given_correction, None, Colours.colourblind.value)
    number = asked.number(analysis)
    check_correction(analysis.correction, any_time=isinstance(number, Until))
    prompts = prompts_of(asked)
    texts = read_sources(sources, split)
    groups = groups_of(asked.groups, list(texts))
    check_asked(asked, analysis, len(texts))
    call = {
        **asdict(asked),
        "groups": list(asked.groups),
        "deeper": list(asked.deeper),
        "beside": list(asked.beside),
        "content": content_digest(list(texts.values())),
        "names": list(texts),
    }
    check_folder(folder, call, overwrite=overwrite)
    with resumable("samples"):
        network, tokenizer = loaded_language_model(
            model, device=device, bfloat16=bfloat16, random_weights=random_weights, download=allow_download, seed=seed
        )
        shared: dict[str, Any] = {"template": ChatTemplate(tokenizer, prompts)} if chat else asdict(prompts)
        begin_folder(folder, call, overwrite=overwrite)
        said = answer if answer is not None else read_about(folder).get("answer")
        if said is None:
            said = generate_answer(network, tokenizer, texts, max_tokens=max_tokens, **shared)
            typer.echo(f"the model answers: {printable(said)}", err=True)
        about = {**call, "answer": said, **({"weights": RANDOM} if random_weights else {})}
        note(folder, about)
        scorer = AnswerScorer(
            network, tokenizer, answers=said, score=asked.score, contrast=contrast,
            spans=None if asked.whole else "sentences", batch_size=batch_size, **shared,
        )  # fmt: skip
        settings: dict[str, Any] = {
            "delta": delta, "n_samples": number, "pilot": pilot, "batch_size": batch_size, "rng": seed,
            "run": Run(store=folder / SAMPLE, progress=True),
        }  # fmt: skip
        if asked.deeper:
            levels = {"levels": asked.deeper, **({} if alpha is None else {"alpha": alpha})}
            sample: Any = explain_answer_tree(scorer, texts, **levels, **settings)
        else:
            sample = explain_answer(scorer, texts, groups=groups, **settings)
            if asked.beside and not sample.provenance["answer"].get("beside"):
                sample = put_beside(sample, beside_of(asked, scorer, texts, groups))
                write_manifest(folder / SAMPLE, sample)
        decided = bool(asked.deeper) or (sample.stopping is not None and sample.stopping.tested)
        read = replace(analysis, alpha=None, correction=None) if decided else analysis
        print_views(*views_of_call(sample, about, read, folder, overwrite=overwrite))
