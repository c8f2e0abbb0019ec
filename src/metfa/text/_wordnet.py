"""Synonyms of single words from WordNet: the table in this package, a WordNet folder, or nltk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from importlib import resources
from pathlib import Path
from typing import Any

__all__ = ["FILES", "PARTS", "look_up_in", "packed", "read_wordnet", "unpacked"]

PARTS = {"noun": "n", "verb": "v", "adj": "a", "adv": "r"}  # parts of speech, and their letters in nltk
FILES = [f"{kind}.{part}" for kind in ("index", "data") for part in PARTS]
LARGEST = 1 << 23  # most bytes of an unpacked table; the one here has 2.4 million, a damaged one could have any number

Table = dict[str, dict[str, str]]  # part of speech -> word -> synonyms, separated by blanks


def look_up_in(wordnet: Any) -> Callable[[str, str], Sequence[str]]:
    """Function from a lower-case word and a part of speech to its synonyms, in the order of the senses.

    The words of a synonym of several words are joined by underscores. `wordnet` is None for the table in this package,
    the path of a WordNet folder, or the corpus that nltk has loaded.
    """
    if wordnet is None or isinstance(wordnet, str):
        table = _shipped_table() if wordnet is None else _table_of_folder(wordnet)
        return lambda word, part: table[part].get(word, "").split()
    return lambda word, part: _others(word, (synset.lemma_names() for synset in wordnet.synsets(word, PARTS[part])))


def read_wordnet(folder: str | Path) -> Table:
    """Synonyms of all single lower-case words in a WordNet folder; the manual page wndb(5WN) describes its files."""
    try:
        table = {part: _read_part(Path(folder), part) for part in PARTS}
        if not any(table.values()):
            raise ValueError("they hold no synonyms")
        return table
    except (IndexError, KeyError, ValueError) as error:
        files = ", ".join(FILES)
        raise ValueError(f"the files {files} in {folder} are damaged, or not WordNet's: {error!r}") from error


def _read_part(folder: Path, part: str) -> dict[str, str]:
    synsets = {}
    for line in _lines(folder / f"data.{part}"):
        offset, _, _, n_words, rest = line.split(" ", 4)
        count = int(n_words, 16)
        synsets[offset] = [_unmarked(word) for word in rest.split(" ", 2 * count)[: 2 * count : 2]]
    table = {}
    for line in _lines(folder / f"index.{part}"):
        word, _, n_synsets, *_ = fields = line.split()
        synonyms = _others(word, (synsets[offset] for offset in fields[-int(n_synsets) :]))
        if synonyms:
            table[word] = " ".join(synonyms)
    return table


def packed(table: Table) -> bytes:
    """The compressed text of a table: lines of word, part of speech and synonyms, separated by tabs, in order."""
    import lzma  # some builds of Python lack it, and other noises do not need it

    lines = sorted(f"{word}\t{part}\t{synonyms}\n" for part in PARTS for word, synonyms in table[part].items())
    # The whole text fits into a dictionary of 4 MiB; with the highest preset, readers would need 64 MiB.
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 22}]
    return lzma.compress("".join(lines).encode(), check=lzma.CHECK_CRC32, filters=filters)


def unpacked(content: bytes) -> Table:
    """The table in `content`, its compressed text."""
    import lzma

    unpacker = lzma.LZMADecompressor()
    text = unpacker.decompress(content, max_length=LARGEST)
    if not unpacker.eof:
        raise ValueError(f"the table of synonyms is damaged: it ends early, or has more than {LARGEST} bytes")
    table: Table = {part: {} for part in PARTS}
    for line in text.decode().splitlines():
        word, part, synonyms = line.split("\t")
        table[part][word] = synonyms
    return table


@lru_cache(1)
def _shipped_table() -> Table:
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
