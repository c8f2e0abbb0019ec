"""WordNet for single words, sense by sense: the table in this package, a WordNet folder, or nltk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["FILES", "PARTS", "WordNet", "look_up_in", "packed", "read_wordnet", "unpacked", "wordnet_of"]

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}  # parts of speech, and their letters in nltk
KINDS = {"1": "noun", "2": "verb", "3": "adj", "4": "adv", "5": "adj"}  # in the keys of senses
IRREGULAR = ("noun", "verb")  # parts of speech of which irregular forms are kept
FILES = [f"{kind}.{part}" for kind in ("index", "data") for part in PARTS]
COUNTS = "cntlist.rev"  # how often each sense was met in texts that people tagged
LARGEST = 1 << 23  # most bytes of an unpacked table; the one here has 2.7 million, a damaged one could have any number


class Sense(NamedTuple):
    """A sense of a word: how often it was met in tagged texts, and the other members of its synset."""

    uses: int
    synonyms: tuple[str, ...]


@dataclass(frozen=True)
class WordNet:
    """What is kept of WordNet.

    Attributes
    ----------
    senses : dict of part of speech -> word -> senses
        As text: senses in WordNet's order, the most frequent first, separated by "|", each its count and synonyms.
    forms : dict of part of speech -> irregular form -> words
        As text: the words, such as "leaf leave", of which it is a form, separated by blanks.
    """

    senses: dict[str, dict[str, str]]
    forms: dict[str, dict[str, str]]

    def of(self, word: str, part: str) -> list[Sense]:
        """Senses of a lower-case word."""
        content = self.senses[part].get(word)
        if content is None:
            return []
        parted = (sense.split(" ") for sense in content.split("|"))
        return [Sense(int(count or 0), tuple(synonyms)) for count, *synonyms in parted]

    def roots(self, form: str, part: str) -> list[str]:
        """Words of which this is an irregular form."""
        return self.forms.get(part, {}).get(form, "").split()

    def irregular(self, word: str, part: str) -> list[str]:
        """Irregular forms of a word."""
        return self._by_word.get((word, part), [])

    @cached_property
    def _by_word(self) -> dict[tuple[str, str], list[str]]:
        found: dict[tuple[str, str], list[str]] = {}
        for part, forms in self.forms.items():
            for form, words in forms.items():
                for word in words.split():
                    found.setdefault((word, part), []).append(form)
        return found


def look_up_in(wordnet: Any) -> Callable[[str, str], Sequence[str]]:
    """Function from a lower-case word and a part of speech to its synonyms, in the order of the senses.

    The words of a synonym of several words are joined by underscores. `wordnet` is None for the table in this package,
    the path of a WordNet folder, or the corpus that nltk has loaded.
    """
    if wordnet is None or isinstance(wordnet, str):
        return partial(_synonyms_of, wordnet)
    return lambda word, part: _others(word, (synset.lemma_names() for synset in wordnet.synsets(word, PARTS[part])))


@lru_cache(2**14)  # texts repeat their words
def _synonyms_of(wordnet: str | None, word: str, part: str) -> tuple[str, ...]:
    senses = wordnet_of(wordnet).of(word, part)
    return tuple(dict.fromkeys(synonym for sense in senses for synonym in sense.synonyms))


def wordnet_of(wordnet: str | None) -> WordNet:
    """The table in this package, or that of a folder; read once."""
    return _shipped_table() if wordnet is None else _table_of_folder(wordnet)


def read_wordnet(folder: str | Path) -> WordNet:
    """Senses of all single lower-case words in a WordNet folder; the manual page wndb(5WN) describes its files.

    Where the folder lacks the counts, or the irregular forms, there are none.
    """
    try:
        folder = Path(folder)
        counts = _read_counts(folder / COUNTS)
        senses = {part: _read_part(folder, part, counts) for part in PARTS}
        if not any(any(" " in line for line in table.values()) for table in senses.values()):
            raise ValueError("they hold no synonyms")
        return WordNet(senses, {part: _read_forms(folder / f"{part}.exc") for part in IRREGULAR})
    except (IndexError, KeyError, ValueError) as error:
        files = ", ".join(FILES)
        raise ValueError(f"the files {files} in {folder} are damaged, or not WordNet's: {error!r}") from error


def _read_counts(path: Path) -> dict[tuple[str, str, int], int]:
    """How often a word was met in a sense: (word, part of speech, number of the sense) -> count."""
    counts = {}
    for line in _lines(path) if path.is_file() else ():
        key, number, count = line.split()
        word, _, kind = key.partition("%")
        counts[word, KINDS[kind[0]], int(number)] = int(count)
    return counts


def _read_forms(path: Path) -> dict[str, str]:
    """Irregular forms: form -> words."""
    forms = {}
    for line in _lines(path) if path.is_file() else ():
        form, *words = line.split()
        usable = [word for word in words if "_" not in word and _usable(word) and word != form]
        if "_" not in form and _usable(form) and usable:
            forms[form] = " ".join(usable)
    return forms


def _read_part(folder: Path, part: str, counts: dict[tuple[str, str, int], int]) -> dict[str, str]:
    synsets = {}
    for line in _lines(folder / f"data.{part}"):
        offset, _, _, n_words, rest = line.split(" ", 4)
        count = int(n_words, 16)
        synsets[offset] = [_unmarked(word) for word in rest.split(" ", 2 * count)[: 2 * count : 2]]
    table = {}
    for line in _lines(folder / f"index.{part}"):
        word, _, n_synsets, *_ = fields = line.split()
        if "_" in word or not _usable(word):
            continue
        senses = [
            " ".join([str(counts.get((word, part, number), "")), *_others(word, [synsets[offset]])])
            for number, offset in enumerate(fields[-int(n_synsets) :], start=1)
        ]
        if any(senses):
            table[word] = "|".join(senses)
    return table


def packed(table: WordNet) -> bytes:
    """The compressed text of a table: lines of word, part of speech and senses, separated by tabs, in order.

    An irregular form is a line of form, part of speech with a "+", and words.
    """
    import lzma  # some builds of Python lack it, and other noises do not need it

    lines = [f"{word}\t{part}\t{senses}\n" for part, of in table.senses.items() for word, senses in of.items()]
    lines += [f"{form}\t{part}+\t{words}\n" for part, of in table.forms.items() for form, words in of.items()]
    # The whole text fits into a dictionary of 4 MiB; with the highest preset, readers would need 64 MiB.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 22}]
    return lzma.compress("".join(sorted(lines)).encode(), check=lzma.CHECK_CRC32, filters=filters)


def unpacked(content: bytes) -> WordNet:
    """The table in `content`, its compressed text."""
    import lzma

    unpacker = lzma.LZMADecompressor()
    text = unpacker.decompress(content, max_length=LARGEST)
    if not unpacker.eof:
        raise ValueError(f"the table of synonyms is damaged: it ends early, or has more than {LARGEST} bytes")
    table = WordNet({part: {} for part in PARTS}, {part: {} for part in IRREGULAR})
    for line in text.decode().split("\n")[:-1]:
        word, part, found = line.split("\t")
        (table.forms[part[:-1]] if part.endswith("+") else table.senses[part])[word] = found
    return table


@lru_cache(1)
def _shipped_table() -> WordNet:
    return unpacked((resources.files("metfa.text") / "data" / "synonyms.tsv.xz").read_bytes())


_table_of_folder = lru_cache(2)(read_wordnet)


def _lines(path: Path) -> Iterable[str]:
    with path.open(encoding="utf-8") as file:
        yield from (line for line in file if not line.startswith(" "))  # lines of the licence begin with a blank


def _unmarked(word: str) -> str:
    """A member of a synset without the mark for the position of an adjective, as in ``galore(ip)``."""
    return word.partition("(")[0] if word.endswith(")") else word


def _usable(word: str) -> bool:
    """Whether it is in lower case, longer than a letter, and begins and ends so that `metfa.text` reads it as one word.

    In WordNet single letters are symbols of units and numbers: "I" would be the number one, and the s of "it 's" a
    second.
    """
    return len(word) > 1 and word.islower() and word[0].isalnum() and word[-1].isalnum()


def _others(word: str, synsets: Iterable[Sequence[str]]) -> list[str]:
    """The other usable members of the synsets of a single word; synsets with only a name spelt like it do not count."""
    if "_" in word or not _usable(word):
        return []
    members = dict.fromkeys(member for synset in synsets if word in synset for member in synset if _usable(member))
    members.pop(word, None)
    return list(members)
