"""What the pages say, held to the tables beside it: direction, factor and sizes.

In a section with a table, every item of a list and every paragraph is a claim of this file, except paragraphs that
begin with *Setting* or *Aside*. A claim is known by how it begins. It holds if its function says so, which is given the
section's tables that were written by hand and the numbers in the claim. A paragraph without a function is a fault, and
so is a function without its paragraph. Words that no number stands behind are for the reader of this file to compare.
"""
# ruff: noqa: ARG001 - each function is given both, and some claims have no numbers

from __future__ import annotations

import re
from collections.abc import Callable

from paper.read_pages import Section, Table, numbers, plain, sections

__all__ = ["CLAIMS", "faults"]

Tables = list[Table]
Check = Callable[[Tables, list[float]], bool]


def faults(page: str, text: str) -> list[str]:
    """What is wrong with a page: sentences that its tables do not bear out, or that nobody checks."""
    found, left = [], {heading: dict(claims) for heading, claims in CLAIMS[page].items()}
    for section in sections(text):
        if not section.has_table:
            continue
        if not re.search(r"\d|\b(one|two|three|four|five)\b", section.heading):
            found.append(f"the heading {section.heading!r} does not say how much its table is made from")
        found += _faults_of(section, left)
    missing = [start for claims in left.values() for start in claims]
    return found + [f"no sentence begins with {start!r}" for start in missing]


def _faults_of(section: Section, left: dict[str, dict[str, Check]]) -> list[str]:
    found = []
    claims = next((left[heading] for heading in left if section.heading.startswith(heading)), {})
    for sentence in section.sentences:
        start = next((start for start in claims if plain(sentence).startswith(start)), None)
        if start is None:
            found.append(f"nothing checks the sentence {sentence[:70]!r} ({section.heading[:40]})")
            continue
        if not _holds(claims.pop(start), section.tables, numbers(sentence)):
            found.append(f"the table does not bear out {sentence[:70]!r} ({section.heading[:40]})")
    return found


def _holds(check: Check, tables: Tables, said: list[float]) -> bool:
    try:
        return check(tables, said)
    except (IndexError, ValueError, StopIteration):  # a number, a row or a column that it needs is not there
        return False


def near(value: float, said: float, digits: int = 2) -> bool:
    """Whether a number was said as it is, up to rounding."""
    return abs(value - said) <= 0.5001 * 10**-digits


def beyond(table: Table, row: str | int, column: str, errors: float = 2) -> float:
    """Sign of a difference that exceeds so many of its errors; 0 if it does not."""
    value, error = table.at(row, column), table.at(row, column, 1)
    return (value > 0) - (value < 0) if abs(value) > errors * error + 1e-9 else 0


# -- RESULTS.md


def thirds(t: Tables, n: list[float]) -> bool:
    shares = [t[0].at("smoothed, P = normal", noise) / t[0].at("vanilla", noise) for noise in
              ("normal", "uniform", "brightness")]  # fmt: skip
    paper = t[0].at("smoothed, P = normal", "paper") / t[0].at("vanilla", "paper")
    said = near(t[0].at("vanilla", "brightness"), n[0], 4), near(t[0].at("smoothed, P = normal", "brightness"), n[1], 4)
    return all(0.28 < one < 0.36 for one in shares[:2]) and 0.65 < shares[2] < 0.75 and all(said) and near(paper, n[2])


def brightness(t: Tables, n: list[float]) -> bool:
    best = min(t[0].at(f"smoothed, P = {noise}", "brightness") for noise in ("normal", "uniform", "brightness"))
    little = all(t[0].at("smoothed, P = brightness", noise) > 0.85 * t[0].at("vanilla", noise) for noise in
                 ("normal", "uniform"))  # fmt: skip
    return best == t[0].at("smoothed, P = brightness", "brightness") and little


def mean_under_brightness(t: Tables, n: list[float]) -> bool:
    pairs = [(t[0].at("mean, P = brightness", k), t[0].at("smoothed, P = brightness", k)) for k in range(1, 5)]
    return all(0.9 * smoothed < mean < smoothed for mean, smoothed in pairs)


def all_four(t: Tables, n: list[float]) -> bool:
    falls = all(now < before for now, before in zip(t[0].column("smoothed"), t[0].column("vanilla"), strict=True))
    return falls and len(t[0].rows) == 4 and all(one > two for one, two in zip(
        t[0].column(5), t[0].column(5, 1), strict=True))  # fmt: skip


def least_stable(t: Tables, n: list[float]) -> bool:
    levels, gains = t[0].column("vanilla"), [v - s for v, s in zip(
        t[0].column("vanilla"), t[0].column("smoothed"), strict=True)]  # fmt: skip
    return min(levels[:2]) > max(levels[2:]) and min(gains[:2]) > max(gains[2:])


def rise_and_lime(t: Tables, n: list[float]) -> bool:
    rise = abs(t[0].at("RISE", "mean") - t[0].at("RISE", "smoothed"))
    return rise < t[0].at("RISE", "smoothed", 1) and t[0].at("LIME", "smoothed") < t[0].at("LIME", "mean")


def falls_with_n(t: Tables, n: list[float]) -> bool:
    rows = [k for k, row in enumerate(t[0].rows) if row[1] != "none"]
    return len(rows) == 2 and all(
        1 > t[0].at(k, few) > t[0].at(k, many) for k in rows for few, many in
        (("N = 10", "N = 30"), ("paper, N = 10", "paper, N = 30"))
    )  # fmt: skip


def without_outer(t: Tables, n: list[float]) -> bool:
    rows = [k for k, row in enumerate(t[0].rows) if row[1] == "none"]
    return len(rows) == 2 and all(
        t[0].at(k, "N = 10") > t[0].at(k, "N = 30") and t[0].at(k, "paper, N = 10") < t[0].at(k, "paper, N = 30")
        for k in rows
    )


def hardly(t: Tables, n: list[float]) -> bool:
    return all(max(t[0].column(k)) / min(t[0].column(k)) < 1.02 for k in range(1, 5))


def robust_rise(t: Tables, n: list[float]) -> bool:
    ours, paper = [(t[0].at("RISE", what), t[0].at("RISE", what, 2)) for what in ("overall", "RO")], t[0]
    of_paper = paper.at("paper, RISE", "overall") < paper.at("paper, RISE", "overall", 1)
    return all(smoothed > vanilla for smoothed, vanilla in ours) and of_paper


def heavy(t: Tables, n: list[float]) -> bool:
    tails = ("Laplace", "Student", "exponential", "nine in ten")
    ratios = {law: [t[0].at(law, k) for k in range(1, 5)] for law in ("normal", "uniform", *tails)}
    return all(max(ratios[law]) < 1 for law in tails) and all(min(ratios[law]) > 1 for law in ("normal", "uniform"))


# -- TEXT_RESULTS.md


def half_as_much(t: Tables, n: list[float]) -> bool:
    return all(0.45 < ratio < 0.65 for ratio in t[0].column("smoothed / vanilla"))


def mean_is_better(t: Tables, n: list[float]) -> bool:
    return len(t[0].rows) == 4 and all(
        mean < smoothed for mean, smoothed in zip(t[0].column("mean"), t[0].column("smoothed"), strict=True)
    )


def best_words(t: Tables, n: list[float]) -> bool:
    gains = all(beyond(t[1], k, "smoothed minus vanilla") > 0 for k in range(4))
    equal = all(abs(m - s) < 0.015 for m, s in zip(t[1].column("mean"), t[1].column(4), strict=True))
    return gains and equal


BOTH = ("smoothed - vanilla", "the same, 500 copies")


def rows_at(table: Table, p: str) -> list[tuple[int, int]]:
    """Places of the rows of one p, and the sign of what is better."""
    return [(k, -1 if "FDT" in row[0] else 1) for k, row in enumerate(table.rows) if row[1] == p]


def strong(t: Tables, n: list[float]) -> bool:
    rows = [(table, k, sign) for table in t for k, sign in rows_at(table, f"{n[0]:g}")]
    return len(rows) == 6 and all(sign * table.at(k, what) > 0 for table, k, sign in rows for what in BOTH)


def by_two_errors(t: Tables, n: list[float]) -> bool:
    shown = {(place, table.rows[k][0]): all(sign * beyond(table, k, what) > 0 for what in BOTH)
             for place, table in enumerate(t) for k, sign in rows_at(table, "0.7")}  # fmt: skip
    return [name for name, one in shown.items() if not one] == [(1, "RFDT"), (1, "RFAT")]


def clean(t: Tables, n: list[float]) -> bool:
    rows = [(table, k, sign) for table in t for k, sign in rows_at(table, f"{n[0]:g}")]
    worse = all(sign * table.at(k, what) < 0 for table, k, sign in rows for what in BOTH)
    return len(rows) == 6 and worse and all(sign * beyond(table, k, BOTH[0]) < 0 for table, k, sign in rows)


def weak(t: Tables, n: list[float]) -> bool:
    rows = [(place, k, sign) for place, table in enumerate(t) for k, sign in rows_at(table, f"{n[0]:g}")]
    shown = [(place, k, sign) for place, k, sign in rows if beyond(t[place], k, BOTH[0])]
    ((place, k, sign),) = shown
    said = [t[place].at(k, BOTH[0], part) for part in (0, 1)]
    return place == 1 and t[place].rows[k][0] == "RFDT" and sign * said[0] < 0 and said == n[2:4]


def mean_as_well(t: Tables, n: list[float]) -> bool:
    return all(abs(table.at(k, "mean") - table.at(k, 4)) <= n[-1] + 1e-9 for table in t for k in range(len(table.rows)))


def over_chance(t: Tables, n: list[float]) -> bool:
    ratios = [t[0].at(k, "precision: MeTFA") / t[0].at(k, "chance") for k in range(5)]
    return all(2.7 < ratio < 4.1 for ratio in ratios)


def less_often(t: Tables, n: list[float]) -> bool:
    gaps = [beyond(t[0], k, "MeTFA - vanilla") for k in range(4)]
    return all(t[0].at(k, "MeTFA - vanilla") < 0 for k in range(4)) and gaps == [-1, -1, 0, -1]


def without_words(t: Tables, n: list[float]) -> bool:
    return n[0] == 10 and all(0.3 < 1 - t[0].at(k, 1) / t[0].at(k, 1, 1) < 0.4 for k in (0, 1))


def at_thirty(t: Tables, n: list[float]) -> bool:
    gap = t[0].at(2, "MeTFA - vanilla") / t[0].at(0, "MeTFA - vanilla")
    return n[0] == 30 and t[0].at(2, 1) / t[0].at(2, 1, 1) > 0.9 and 0.4 < gap < 0.6


def a_third_of_the_gap(t: Tables, n: list[float]) -> bool:
    gap = t[0].at(f"P({n[0]:g})", "MeTFA - vanilla") / t[0].at(f"P({n[1]:g}), 500 |", "MeTFA - vanilla")
    return 0.28 < gap < 0.38 and t[0].at(4, "precision: MeTFA") == t[0].at(4, "vanilla")


# -- ATTACK_RESULTS.md


def undone(t: Tables, n: list[float]) -> bool:
    m2, m3, clean = (t[0].at("CAM", what) for what in ("m2", "m3", "clean"))
    return m2 < 0.05 * clean and 0.8 < (m3 - m2) / (clean - m2) < 0.87 and near(m3, n[0], 4) and near(clean, n[1], 4)


def a_seventh(t: Tables, n: list[float]) -> bool:
    ours, paper = t[0].at("CAM", "m4") / t[0].at("CAM", "m3"), n[0] / n[1]
    said = [t[0].at("CAM", "paper", k) for k in (2, 1)] == n[:2] and [t[0].at("CAM", what) for what in ("m4", "m3")]
    return 0.57 < paper < 0.64 and 1 / 8 < ours < 1 / 6 and said == n[2:4]


def lrp(t: Tables, n: list[float]) -> bool:
    m3, clean, m4 = (t[0].at("LRP", what) for what in ("m3", "clean", "m4"))
    return m3 > clean and 0.45 < m4 / m3 < 0.55 and [m3, clean, m4] == n


def mask(t: Tables, n: list[float]) -> bool:
    own, m2, m3, m4 = (t[0].at("MASK", what) for what in ("the aware", "m2", "m3", "m4"))
    return own < m2 and abs(m4 - m3) < 0.001 and [own, m4] == n


def two_levels(t: Tables, n: list[float]) -> bool:
    shares = {level: t[0].at(level, "m4") / t[0].at(level, "m3") for level in ("2", "4")}
    said = [t[0].at("2", "m4"), t[0].at("2", "m3")] == n[:2]
    return said and 0.42 < shares["2"] < 0.55 and 0.17 < shares["4"] < 0.23


def noise_too(t: Tables, n: list[float]) -> bool:
    return t[0].at("2", "m4, the noise") < 0.1 * t[0].at("2", "m3")


def digits_mask(t: Tables, n: list[float]) -> bool:
    clean, m2, m3, m4 = (t[0].at("MASK", what) for what in ("clean", "m2", "m3", "m4"))
    little = abs(m3 - m4) < t[0].at("MASK", "m3", 1)
    return [clean, m2, m3, m4] == n and 0.25 < (m3 - m2) / (clean - m2) < 0.33 and little


def digits_cam(t: Tables, n: list[float]) -> bool:
    found = [t[0].at("CAM", what) for what in ("m3", "m4", "clean", "m2")]
    return found == n and abs(found[0] - found[1]) < 2 * t[0].at("CAM", "m3", 1)


def reversed_sign(t: Tables, n: list[float]) -> bool:
    values = t[0].column("difference")
    return values[:3] == [1, 0, 1]


def of_six(t: Tables, n: list[float]) -> bool:
    three = t[0].at(2, "difference", 1) < 0.5
    return near(t[0].at(0, "difference", 1), n[0]) and near(t[0].at(1, "difference", 2), n[1]) and three


# -- SEGMENTATION_RESULTS.md


def averaging(t: Tables, n: list[float]) -> bool:
    better = all(t[0].at(k, mean) > t[0].at(k, vanilla) for k in range(3) for vanilla, mean in ((1, 2), (5, 6)))
    alike = all(abs(t[0].at(k, mean) - t[0].at(k, smoothed)) < 0.01 for k in range(3) for mean, smoothed in
                ((2, 3), (6, 7)))  # fmt: skip
    return better and alike


def fewer_wrong(t: Tables, n: list[float]) -> bool:
    def shares(vanilla: int) -> list[float]:
        return [t[1].at(k, vanilla + 1) / t[1].at(k, vanilla) for k in range(3)]

    low3, high3, _, low, high = n  # beside a 3, and beside other digits
    said = [near(found, one, 1) for found, one in zip(
        [edge(shares(k)) for k in (3, 5) for edge in (min, max)], (low3, high3, low, high), strict=True)]  # fmt: skip
    return all(said) and all(0.1 < 1 - share < 0.34 for share in shares(1))


def unbiased(t: Tables, n: list[float]) -> bool:
    return all(t[1].at(3, k) < 0.04 for k in range(1, 5))


def coarse(t: Tables, n: list[float]) -> bool:
    sums = [t[0].at(k, 1) + t[0].at(k, 2) for k in range(len(t[0].rows))]
    return t[0].rows[0][0].startswith("4 x 4, 0.32") and max(sums) == sums[0] and n[0] == 0.32


def context_rows(t: Tables, name: str, radius: str) -> list[int]:
    return [k for k, row in enumerate(t[0].rows) if row[0] == name and row[2].startswith(radius)]


def less_context(t: Tables, n: list[float]) -> bool:
    rows = [k for name in ("tree", "bicyclist", "car") for k in context_rows(t, name, f"U({n[0]:g})")]
    rows += [k for name in ("bicyclist", "car") for k in context_rows(t, name, f"U({n[1]:g})")]
    return len(rows) == 7 and all(t[0].at(k, "significant") < t[0].at(k, "context marked") for k in rows)


def the_same_m(t: Tables, n: list[float]) -> bool:
    rows = [k for name in ("tree", "bicyclist", "car") for k in context_rows(t, name, f"U({n[0]:g})")]
    return len(rows) == 3 and near(max(abs(t[0].at(k, "m ratio") - n[2]) for k in rows), n[1])


def trees(t: Tables, n: list[float]) -> bool:
    rows = context_rows(t, "tree", f"U({n[0]:g})")
    return len(rows) == 2 and all(t[0].at(k, "significant") > t[0].at(k, "context marked") for k in rows)


def near_one(t: Tables, n: list[float]) -> bool:
    (row, *_) = context_rows(t, "bicyclist", f"U({n[1]:g})")
    return [t[0].at(row, "robust m_f: nothing"), t[0].at(row, 8)] == n[-2:]


CLAIMS: dict[str, dict[str, dict[str, Check]]] = {  # page -> heading -> how a sentence begins
    "RESULTS.md": {
        "Stability of the gradient (earlier run": {
            "With normal noise as P, mstd falls to a third": thirds,
            "Brightness is the best P": brightness,
            "With brightness as P, the mean": mean_under_brightness,
        },
        "Stability of the others": {
            "All four fall": all_four,
            "RISE and LIME are the least stable": least_stable,
            "For RISE the mean is as good": rise_and_lime,
        },
        "Smoothed maps against SmoothGrad (earlier": {
            "With outer noise the direction": falls_with_n,
            "Without outer noise the paper's": without_outer,
        },
        "The level alpha (earlier": {"The result is the paper's: alpha hardly matters": hardly},
        "Faithfulness (earlier": {"For RISE the smoothed map is better": robust_rise},
        "Theorem 5": {"The claim that smoothing the median": heavy},
    },
    "TEXT_RESULTS.md": {
        "Stability of LEMNA (earlier": {
            "The direction is that of the paper": half_as_much,
            "Not the same: here the mean": mean_is_better,
            "Smoothing keeps more of the best words": best_words,
        },
        "Faithfulness of words (earlier": {
            "Under strong noise the direction": strong,
            "The difference exceeds two standard errors": by_two_errors,
            "For clean texts it is not": clean,
            "At p = 0.3 there is no difference": weak,
            "The mean of the samples does": mean_as_well,
        },
        "Toxic spans (earlier": {
            "Significant words hit the marked spans about three to four": over_chance,
            "Significant words hit them less often": less_often,
            "At N = 10, P(0.5) leaves a third": without_words,
            "At N = 30 nearly all posts": at_thirty,
            "With P(0.1) the gap is a third": a_third_of_the_gap,
        },
    },
    "ATTACK_RESULTS.md": {
        "EfficientNet-Lite0 (earlier": {
            "CAM, same direction": undone,
            "CAM, not the same": a_seventh,
            "LRP: against the unaware": lrp,
            "MASK: the aware attacker": mask,
        },
        "Budgets of CAM's": {
            "With two levels, the smoothing keeps": two_levels,
            "If the attacker knows the noise too": noise_too,
        },
        "A small network": {"MASK: the direction": digits_mask, "CAM: the smoothed maps": digits_cam},
        "Can an attack be noticed": {
            "With an attacker who does not know": reversed_sign,
            "Of six images such an area": of_six,
        },
    },
    "SEGMENTATION_RESULTS.md": {
        "A context that is known": {
            "Averaging helps the scores": averaging,
            "On every seed, MeTFA marks fewer": fewer_wrong,
            "On a network trained without the bias": unbiased,
        },
        "How GridSaliency's settings": {"Coarse grids and": coarse},
        "The paper's table (earlier": {
            "The direction is the same under U(0.05)": less_context,
            "m_f stays about the same": the_same_m,
            "Trees under U(0.1) are different": trees,
            "A ratio near 1 does not prove": near_one,
        },
    },
}
