"""Options of `regard predict` that become settings of a search, in the groups of its help."""

from typing import Annotated

import typer

SEARCH = "Beam search"
SAMPLING = "Sampling: language models, and others with --sample"
WISHES = "Wishes"

Normalise = Annotated[
    str | None,
    typer.Option(help="Length: average, gnmt or none.", rich_help_panel=SEARCH),
]
Width = Annotated[
    int | None, typer.Option(min=1, help="Outputs that go on; 1: greedy.", rich_help_panel=SEARCH)
]
Nbest = Annotated[
    int,
    typer.Option(
        min=1,
        help="Answers for each text; the beam is at least as wide.",
        rich_help_panel=SEARCH,
    ),
]
Alpha = Annotated[
    float | None, typer.Option(help="Favours longer answers.", rich_help_panel=SEARCH)
]
Coverage = Annotated[
    float | None,
    typer.Option(help="What source that is not looked at costs.", rich_help_panel=SEARCH),
]
Stop = Annotated[
    str | None,
    typer.Option(help="likely, full, exact or first: when to end.", rich_help_panel=SEARCH),
]
Groups = Annotated[
    int | None,
    typer.Option(help="Groups of beams that differ from each other.", rich_help_panel=SEARCH),
]
Diversity = Annotated[
    float | None, typer.Option(help="How much groups differ.", rich_help_panel=SEARCH)
]
MinLength = Annotated[
    int | None, typer.Option(help="Symbols of an answer, at least.", rich_help_panel=SEARCH)
]
MaxLength = Annotated[
    int | None, typer.Option(help="Symbols of an answer, at most.", rich_help_panel=SEARCH)
]
NoRepeat = Annotated[
    int | None,
    typer.Option(metavar="N", help="No run of N symbols comes twice.", rich_help_panel=SEARCH),
]
SearchSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="search.KEY=VALUE",
        help="Any setting of the search.",
        rich_help_panel=SEARCH,
    ),
]

Sampled = Annotated[
    bool,
    typer.Option("--sample", help="Draw answers, no beam.", rich_help_panel=SAMPLING),
]
Temperature = Annotated[float | None, typer.Option(help="0 is greedy.", rich_help_panel=SAMPLING)]
TopK = Annotated[
    int | None, typer.Option(help="Only the k best symbols.", rich_help_panel=SAMPLING)
]
TopP = Annotated[
    float | None, typer.Option(help="The best up to this share.", rich_help_panel=SAMPLING)
]
MinP = Annotated[
    float | None,
    typer.Option(help="Those with this share of the best one's.", rich_help_panel=SAMPLING),
]
Length = Annotated[int | None, typer.Option(help="Symbols, at most.", rich_help_panel=SAMPLING)]
Seed = Annotated[
    int | None, typer.Option(help="Another seed, another answer.", rich_help_panel=SAMPLING)
]

Prefix = Annotated[
    str, typer.Option(metavar="TEXT", help="How answers begin.", rich_help_panel=WISHES)
]
Must = Annotated[
    list[str] | None,
    typer.Option(metavar="WORD", help="Must be in answers; repeat it.", rich_help_panel=WISHES),
]
Ban = Annotated[
    list[str] | None,
    typer.Option(metavar="WORD", help="Is in no answer; repeat it.", rich_help_panel=WISHES),
]
InputJson = Annotated[
    bool,
    typer.Option(
        "--input-json",
        help='Each line {"source": ..., "prefix": ..., "must": [...], "ban": [...]}.',
        rich_help_panel=WISHES,
    ),
]
Alternatives = Annotated[
    int,
    typer.Option(
        min=0,
        metavar="N",
        help="N ways to go on behind --prefix, and where each leads.",
        rich_help_panel=WISHES,
    ),
]
