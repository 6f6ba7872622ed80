"""The published score of a typed diagnosis, version 1: entities, mechanisms, how near a miss is, and the chain. Pure.

Called by the `diagnosis` check and its metric card; `docs/diagnosis.md` has the formula with its properties. With predictions P
and true causes T, after what stands for the same entity is taken together:

    score = 2 (H + N) / (|P| + |T|)

H is the best one-to-one matching of predictions that name a true entity (or one accepted in its place): 1 with its mechanism, 1/2
without. Predictions that name none are misses. N is what they are worth while a true cause is not found, once and for the
*least* near of them, so that guessing around never helps:

    near(p) = 2^-(1 + d) with the mechanism, half of it without; d = steps to the nearest cause not found, at most 2, else 0
    N = min of near over all misses; at most H / (predictions that are no misses + |T|) where something was found
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from itbench.core.documents.scenario import RootCause
from itbench.core.documents.vocabulary import canonical_entity, canonical_mechanism
from itbench.evaluate.credit import Scheme, partial_credit
from itbench.evaluate.topology import Topology

VERSION = 1
NONE = "none"
"""The mechanism that says that nothing is wrong."""

Named = tuple[str, str]
"""(entity, mechanism)."""
Path = Sequence[str]


@dataclass(frozen=True)
class Levels:
    """One diagnosis at every level.

    Args:
        score: the formula above, 0 to 1. localisation_score: the same with every mechanism taken as right.
        detected: whether something is said to be wrong exactly when something is.
        localised: every true entity named, and nothing else.
        identified: localised, with every mechanism: what passes.
        precision: share of predictions that are right; 0 when a true cause is missed (the rule of ITBench-AA).
        chain: F1 of the edges of the named paths against the true ones; None where no chain is known.
        chance: expected score of one entity of the estate drawn at random, named with the right mechanism.
    """

    score: float
    localisation_score: float
    detected: bool
    localised: bool
    identified: bool
    precision: float
    chain: float | None
    chance: float


def levels(
    predicted: Sequence[Named],
    truth: Sequence[RootCause],
    estate: Topology,
    paths: Sequence[Path] = (),
    chain: Sequence[Path] = (),
) -> Levels:
    """Grade a diagnosis at every level.

    Args:
        predicted: what was named, canonical.
        truth: the true causes; none where nothing is wrong.
        estate: how near its entities are.
        paths: named paths of propagation. chain: the true ones.
    """
    whole, places = (score(predicted, truth, estate, mechanisms=each) for each in (True, False))
    return Levels(
        score=whole,
        localisation_score=places,
        detected=bool(_claims(predicted)) == bool(_causes(truth)),
        localised=places == 1.0,
        identified=whole == 1.0,
        precision=precision(predicted, truth, estate),
        chain=chain_score(paths, chain, estate) if chain else None,
        chance=chance(truth, estate),
    )


def score(
    predicted: Sequence[Named], truth: Sequence[RootCause], estate: Topology, *, mechanisms: bool = True
) -> float:
    """The score of a diagnosis, 0 to 1; with no true cause 1 for an answer that names none, else 0.

    Args:
        predicted: (entity, mechanism), canonical, in any order.
        truth: the true causes.
        estate: how near its entities are.
        mechanisms: False takes every mechanism as right.
    """
    causes, claims = _causes(truth), _claims(predicted)
    if not causes:
        return float(not claims)
    if not mechanisms:
        causes = list({canonical_entity(cause.entity): cause for cause in causes}.values())
    named = _distinct(claims, causes, estate, mechanisms)
    hits = [each for each in named if any(_meets(each, cause, estate) for cause in causes)]
    scheme: Scheme[Named, RootCause] = Scheme(lambda one, cause: _points(one, cause, estate, mechanisms))
    found = partial_credit(hits, causes, scheme)
    left = [cause for index, cause in enumerate(causes) if index not in {truth for _, truth in found.pairs}]
    misses = [each for each in named if each not in hits]
    near = min((_nearest(each, left, estate, mechanisms) for each in misses), default=0.0)
    if found.points:
        near = min(near, found.points / (len(hits) + len(causes)))
    return 2 * (found.points + near) / (len(named) + len(causes))


def _causes(truth: Sequence[RootCause]) -> list[RootCause]:
    """What is wrong: nothing where every entry says `none`."""
    return [] if all(cause.mechanism == NONE for cause in truth) else list(truth)


def _claims(predicted: Sequence[Named]) -> list[Named]:
    """What is claimed to be wrong: nothing where every entry says `none`."""
    return [] if all(mechanism == NONE for _, mechanism in predicted) else list(predicted)


def _distinct(claims: Sequence[Named], causes: Sequence[RootCause], estate: Topology, mechanisms: bool) -> list[Named]:
    """The claims with aliases taken together; an entity that is a true cause by itself stands for itself."""
    true = {canonical_entity(each.entity) for cause in causes for each in (cause, *cause.alternatives)}
    resolved = [(entity if entity in true else estate.resolve(entity), mechanism) for entity, mechanism in claims]
    return list(dict.fromkeys(resolved if mechanisms else [(entity, "") for entity, _ in resolved]))


def _accepted(cause: RootCause) -> list[Named]:
    return [
        (canonical_entity(each.entity), canonical_mechanism(each.mechanism)) for each in (cause, *cause.alternatives)
    ]


def _meets(named: Named, cause: RootCause, estate: Topology) -> bool:
    """Whether a prediction names the entity of a cause."""
    return any(named[0] in (entity, estate.resolve(entity)) for entity, _ in _accepted(cause))


def _points(named: Named, cause: RootCause, estate: Topology, mechanisms: bool) -> float:
    """1 for entity and mechanism, 1/2 for the entity alone, else 0."""
    met = [mechanism for entity, mechanism in _accepted(cause) if named[0] in (entity, estate.resolve(entity))]
    if not met:
        return 0.0
    return 1.0 if not mechanisms or named[1] in met else 0.5


def _nearest(named: Named, causes: Sequence[RootCause], estate: Topology, mechanisms: bool) -> float:
    """What a miss is worth: 2^-(1 + steps) of the nearest cause, half without its mechanism."""
    best = 0.0
    for entity, mechanism in (each for cause in causes for each in _accepted(cause)):
        steps = estate.distance(named[0], entity)
        if steps:
            best = max(best, 2.0 ** -(1 + steps) * (1.0 if not mechanisms or named[1] == mechanism else 0.5))
    return best


def precision(predicted: Sequence[Named], truth: Sequence[RootCause], estate: Topology) -> float:
    """Share of named entities that are true ones; 0 as soon as a true one is missed. Source: ITBench-AA."""
    causes, claims = list({canonical_entity(each.entity): each for each in _causes(truth)}.values()), _claims(predicted)
    if not causes or not claims:
        return float(not causes and not claims)
    named = _distinct(claims, causes, estate, False)
    scheme: Scheme[Named, RootCause] = Scheme(lambda one, cause: float(_meets(one, cause, estate)))
    found = partial_credit(named, causes, scheme)
    return len(found.pairs) / len(named) if len(found.pairs) == len(causes) else 0.0


def chain_score(paths: Sequence[Path], true: Sequence[Path], estate: Topology) -> float:
    """F1 of directed edges of propagation: 2 * common / (named + true); 1 where neither has one."""

    def edges(listed: Sequence[Path]) -> set[tuple[str, str]]:
        known = [[estate.resolve(canonical_entity(entity)) for entity in path] for path in listed]
        return {edge for path in known for edge in pairwise(path) if edge[0] != edge[1]}

    named, wanted = edges(paths), edges(true)
    return 2 * len(named & wanted) / (len(named) + len(wanted)) if named or wanted else 1.0


def chance(truth: Sequence[RootCause], estate: Topology) -> float:
    """Expected score of one entity of the estate at random, with the mechanism of a true cause; 0 where nothing is wrong."""
    causes, entities = _causes(truth), estate.entities
    if not causes or not entities:
        return 0.0
    mechanism = canonical_mechanism(causes[0].mechanism)
    return sum(score([(entity, mechanism)], truth, estate) for entity in entities) / len(entities)
