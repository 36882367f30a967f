"""Write text.txt: 600 sentences of a ferry log, made by a small grammar and a fixed sequence of numbers.

Run it again and the file is the same, byte for byte.
"""

from __future__ import annotations

import re
from pathlib import Path

SENTENCES = 600

GRAMMAR = {
    "sentence": (
        "{time} {who} {act}, {because}.",
        "{who} {act} while {scene}.",
        "{scene}, so {who} {act}.",
        "{time} {scene}, and {who} {act}.",
        "If {scene}, {who} {rule}.",
        "{who} {said} that {scene}.",
        "Nobody {knew} why {who} {act} {time}.",
        "The {thing} {fate} {time}, {because}.",
        "{count} {goods} came aboard at {place}, and {who} {act}.",
        "Between {place} and {place}, {scene}; {who} {rule}.",
    ),
    "time": (
        "before dawn",
        "at noon",
        "after the second bell",
        "in the last week of {month}",
        "on the {ordinal} crossing",
        "long past midnight",
        "at the turn of the tide",
        "an hour before the fog",
    ),
    "month": ("March", "April", "June", "September", "October", "November"),
    "ordinal": ("first", "third", "fourth", "ninth", "eleventh"),
    "who": (
        "the {adjective} ferryman",
        "the toll keeper",
        "a {adjective} passenger",
        "Marta",
        "old Jonas",
        "the {adjective} apprentice",
        "the woman from {place}",
        "the surveyor's clerk",
        "Ilse's brother",
    ),
    "adjective": ("patient", "grey", "sunburnt", "careful", "nameless", "left-handed", "sleepless", "cheerful"),
    "place": ("Alder Ford", "the mill", "Saltmouth", "the upper landing", "Crane Island", "the customs house"),
    "act": (
        "counted the {goods} again",
        "tied the {thing} to the nearest post",
        "wrote the hour into the log",
        "let the {thing} drift as far as {place}",
        "paid in {metal} and waited for change",
        "measured the river with a {thing}",
        "sang to keep the oars together",
        "refused to cross",
        "changed {count} {goods} for a {thing}",
    ),
    "rule": (
        "waits for the lantern at {place}",
        "takes the northern channel",
        "leaves the {goods} under the {thing}",
        "rows on the left, never on the right",
        "writes nothing and remembers everything",
        "rings twice, and {who} answers",
    ),
    "because": (
        "because {scene}",
        "for {scene}",
        "although {scene}",
        "since no one at {place} had asked for more",
        "as the {thing} had been promised to {who}",
    ),
    "scene": (
        "the water stood {count} hands above the mark",
        "the {thing} had lost its colour",
        "rain fell on one bank only",
        "the current ran quicker than the clock",
        "a heron watched the {goods}",
        "the fog smelt of {metal}",
        "the bell at {place} had not been heard since {month}",
        "the {adjective} moon lay in the mud",
        "two barges met beside {place}",
        "the wind turned and brought {goods}",
    ),
    "said": ("swore", "heard", "wrote", "had always held", "told {who}"),
    "knew": ("asked", "could say", "remembered", "wrote down"),
    "thing": ("rope", "lantern", "tarpaulin", "ledger", "rudder", "plank", "sounding pole", "blue coat"),
    "fate": (
        "was found near {place}",
        "went under",
        "was sold for {count} {goods}",
        "came back by itself",
        "was painted over",
        "burned quietly",
    ),
    "goods": ("baskets", "herrings", "letters", "beehives", "sacks of rye", "spare oars", "chairs", "sheep"),
    "count": ("two", "seven", "eleven", "some forty", "a dozen", "too many", "nineteen"),
    "metal": ("copper", "tin", "silver", "iron"),
}


class Dice:
    """A linear congruential sequence: the same on every machine and Python."""

    def __init__(self, state: int) -> None:
        self._state = state

    def choose(self, options: tuple[str, ...]) -> str:
        self._state = (self._state * 6364136223846793005 + 1442695040888963407) % 2**64
        return options[(self._state >> 33) % len(options)]


def expand(symbol: str, dice: Dice) -> str:
    return re.sub(r"\{(\w+)\}", lambda match: expand(match[1], dice), dice.choose(GRAMMAR[symbol]))


def text() -> str:
    dice = Dice(1121)
    lines = (expand("sentence", dice) for _ in range(SENTENCES))
    return "".join(line[0].upper() + line[1:] + "\n" for line in lines)


if __name__ == "__main__":
    Path(__file__).with_name("text.txt").write_text(text(), encoding="utf-8")
