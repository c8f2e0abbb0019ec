"""The words of a report about rows of a data set, or about models, as samples."""

from __future__ import annotations

from metfa.results.sample import AttributionSample

__all__ = ["closing_of_population", "heading_of_population", "opening_of_population"]


def heading_of_population(sample: AttributionSample, method: str) -> str:
    """Heading of a population: its method and how many rows or models there are."""
    return f"{method}: {sample.n_samples:,} {sample.sample_noun}s"


def opening_of_population(sample: AttributionSample, method: str, noun: str, about_a_score: str) -> str:
    """What was explained and which number is taken of it; `about_a_score` says what one score is."""
    population, row = sample.population, sample.sample_noun
    assert population is not None
    n = f"{sample.n_samples:,} {row}s"
    how = f"{method} explained {n}" if row == "row" else f"{n} were explained by the same method"
    number = population.number
    if sample.pairs_of is not None:
        each, a_score = "pair of features one number: the first score less the second", f"A score is {number}, and says"
    elif sample.default_terms is not None and sample.default_terms.of_differences:
        each, a_score, about_a_score = f"{noun} one number: {number}", "These scores are differences.", ""
    else:
        each, a_score = f"{noun} one number: {number}", "A score says"
    told = f"{how}. Each {row} gives every {each}. {a_score} {about_a_score}".rstrip()
    return f"{told} Every statement is about {population.about}."


def closing_of_population(sample: AttributionSample) -> str:
    """What the findings are, and what they are not."""
    found = "in this model" if sample.sample_noun == "row" else "in such models"
    right = "that the model is right" if sample.sample_noun == "row" else "that one of them is right"
    return f"This is what the method finds {found}. It does not say {right}."
