"""The law of batches: random searches over each decoder kind, of which none depends on its batch.

Models, weights, sources, limits, constraints and all options of the search are random.
"""

import pytest

from regard.nn.fast import fast

from .searches import KINDS, Case

CASES, TIMES = 60, 2


@pytest.mark.parametrize("part", range(TIMES))
@pytest.mark.parametrize("kind", KINDS)
def test_no_search_depends_on_its_batch(kind: str, part: int) -> None:
    """All sentences (up to 64) in their order; then in batches of 1, 7 and all, in any order, with
    more padding: the same outputs with the same scores, by the model and by its fast twin."""
    for seed in range(part, max(CASES, len(KINDS[kind])), TIMES):
        case = Case(kind, seed)
        whole = case.run(case.model, list(range(len(case.sources))))
        twins = {id(one): one for one in (case.model, fast(case.model))}.values()
        for rows, padding in case.parts():
            for stepper in twins:
                for row, found in zip(rows, case.run(stepper, rows, padding), strict=True):
                    where = f"{case}, sentence {row} in {rows}: {case.search}"
                    true = whole[row]
                    assert [h.tokens for h in found] == [h.tokens for h in true], where
                    for one, other in zip(found, true, strict=True):
                        assert one.score == pytest.approx(other.score, abs=1e-4), where
                        assert one.token_logprobs == pytest.approx(other.token_logprobs, abs=1e-4)
                        assert one.truncated == other.truncated, where
