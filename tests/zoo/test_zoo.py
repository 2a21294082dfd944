"""Three hundred and fifty odd servers, each beside a healthy one: what they cost, they cost themselves.

One scenario alone, with all that happened:  python -m tests.zoo NAME
"""

import anyio
import pytest

from tests.manifest import requirement
from tests.zoo.running import Verdict, run_many
from tests.zoo.scenarios import Scenario, all_scenarios, driven

SCENARIOS = driven()


@pytest.fixture(scope="module")
def verdicts(request: pytest.FixtureRequest) -> dict[str, Verdict]:
    """The verdicts of all scenarios that this run of the tests asks for, played side by side."""
    wanted = {item.callspec.params.get("name") for item in request.session.items if hasattr(item, "callspec")}
    return anyio.run(run_many, [scenario for name, scenario in SCENARIOS.items() if name in wanted])


@requirement(
    "CON-1",
    "CON-4",
    "CON-5",
    "CON-6",
    "CON-7",
    "CON-8",
    "CON-9",
    "CON-10",
    "CON-11",
    "CON-12",
    "CON-14",
    "CAT-1",
    "QST-1",
    "QST-5",
    "QST-8",
)
@pytest.mark.timeout(1800)  # the first one plays them all
@pytest.mark.parametrize("name", SCENARIOS)
def test_an_odd_server_costs_only_itself(name: str, verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts[name]
    assert verdict.word == "right", "\n".join([SCENARIOS[name].words, *verdict.problems])


@pytest.mark.parametrize("scenario", all_scenarios().values(), ids=lambda scenario: str(scenario.name))
def test_a_scenario_is_well_formed(scenario: Scenario) -> None:
    from tests.zoo import animal_server

    assert animal_server.problems_of(scenario.script) == []
    assert scenario.script["name"] == scenario.name
