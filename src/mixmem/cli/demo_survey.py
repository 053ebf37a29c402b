"""The survey of the demonstration, whose truth is known.

Four profiles of how people spend a weekend answer thirty questions; every respondent is a mixture of the profiles, and
answers some questions at random.
"""

from __future__ import annotations

import numpy as np

from mixmem.data.coding import Coding
from mixmem.data.schema import Schema, Variable
from mixmem.results.simulate import Simulation, draw_codes

ROWS = 2_000
ALPHA = np.array([0.34, 0.28, 0.22, 0.16])
WIDTH = 0.24
"""How far answers scatter around a profile's favourite, as a share of the scale."""
ROUGHNESS = 0.3
"""Profiles are no perfect bells."""
NOISE = 0.05
"""Share of answers given at random."""

# Answers begin with their rank, as coded surveys have it, so that the order of the texts is that of the scale.
OFTEN = ("1 never", "2 rarely", "3 sometimes", "4 often", "5 always")
HOW_MUCH = ("1 not at all", "2 a little", "3 quite", "4 very much")
TIMES = ("0", "1-2", "3-5", "6 or more")
YES = ("1 no", "2 maybe", "3 yes")

PROFILES = ("outdoors", "at home", "in town", "at the screen")
# For each question, where on its scale each profile answers: 0 is the first answer, 1 the last.
QUESTIONS: dict[str, tuple[tuple[str, ...], tuple[float, float, float, float]]] = {
    "walks_or_hikes": (OFTEN, (1.0, 0.4, 0.3, 0.0)),
    "rides_a_bicycle": (OFTEN, (0.9, 0.2, 0.5, 0.1)),
    "swims": (TIMES, (0.9, 0.2, 0.3, 0.0)),
    "gets_up_early": (OFTEN, (1.0, 0.8, 0.2, 0.0)),
    "owns_a_tent": (YES, (1.0, 0.1, 0.0, 0.2)),
    "checks_the_weather": (OFTEN, (1.0, 0.5, 0.3, 0.1)),
    "likes_rain": (HOW_MUCH, (0.7, 0.6, 0.0, 0.9)),
    "cooks_from_scratch": (OFTEN, (0.5, 1.0, 0.3, 0.0)),
    "bakes": (OFTEN, (0.2, 1.0, 0.1, 0.1)),
    "gardens": (TIMES, (0.6, 0.9, 0.0, 0.0)),
    "mends_things": (HOW_MUCH, (0.6, 1.0, 0.0, 0.4)),
    "reads_books": (TIMES, (0.3, 0.9, 0.6, 0.1)),
    "board_games": (OFTEN, (0.2, 0.8, 0.3, 0.6)),
    "invites_friends": (OFTEN, (0.4, 0.9, 0.6, 0.2)),
    "naps": (OFTEN, (0.1, 0.7, 0.2, 0.8)),
    "goes_to_concerts": (TIMES, (0.1, 0.1, 1.0, 0.2)),
    "goes_to_the_cinema": (TIMES, (0.1, 0.3, 0.9, 0.5)),
    "visits_museums": (OFTEN, (0.3, 0.4, 1.0, 0.0)),
    "eats_out": (OFTEN, (0.2, 0.0, 1.0, 0.4)),
    "dresses_up": (HOW_MUCH, (0.0, 0.3, 1.0, 0.1)),
    "dances": (OFTEN, (0.3, 0.2, 0.9, 0.0)),
    "takes_the_train": (OFTEN, (0.6, 0.0, 0.9, 0.3)),
    "enjoys_crowds": (HOW_MUCH, (0.0, 0.2, 1.0, 0.3)),
    "video_games": (OFTEN, (0.0, 0.2, 0.2, 1.0)),
    "watches_series": (OFTEN, (0.1, 0.5, 0.3, 1.0)),
    "orders_food": (TIMES, (0.1, 0.0, 0.6, 1.0)),
    "chats_online": (OFTEN, (0.2, 0.1, 0.6, 1.0)),
    "stays_up_late": (OFTEN, (0.0, 0.2, 0.8, 1.0)),
    "writes_software": (YES, (0.2, 0.0, 0.2, 0.9)),
    "plans_ahead": (HOW_MUCH, (0.8, 0.9, 0.5, 0.0)),
}


def survey() -> tuple[Schema, np.ndarray]:
    """The questions, and the truth theta (answers of all questions, profiles)."""
    schema = Schema(tuple(Variable(name, answers) for name, (answers, _) in QUESTIONS.items()))
    rng = np.random.default_rng(1234)  # the profiles are part of the design: the same for every seed of the survey
    blocks = []
    for answers, favourites in QUESTIONS.values():
        place = np.linspace(0.0, 1.0, len(answers))[:, None]
        bump = np.exp(-0.5 * ((place - np.array(favourites)) / WIDTH) ** 2)
        bump *= np.exp(ROUGHNESS * rng.standard_normal(bump.shape))
        blocks.append(bump / bump.sum(axis=0))
    return schema, np.concatenate(blocks)


def draw_survey(seed: int) -> Simulation:
    """Respondents drawn from the model, with the truth."""
    schema, theta = survey()
    rng = np.random.default_rng(seed)
    memberships = rng.dirichlet(ALPHA, size=ROWS)
    coding = Coding.of(schema)
    return Simulation(draw_codes(coding, theta, memberships, NOISE, rng), coding, theta, ALPHA, memberships, NOISE)
