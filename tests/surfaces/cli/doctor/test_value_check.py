"""Values that were meant to be variables."""

import pytest

from interlock.surfaces.cli.doctor.value_check import examine_values
from interlock.vocabulary.secret import Secret
from interlock.vocabulary.server import HttpTransport, ServerConfig, StdioTransport


@pytest.mark.parametrize("value", ["$TOKEN", "${TOKEN}", "token $TOKEN"])
def test_the_name_of_a_variable_in_place_of_its_value_is_pointed_out(value: str) -> None:
    transport = StdioTransport(command="x", env={"KEY": Secret(value)})
    (found,) = examine_values(ServerConfig(name="a", transport=transport))
    assert (found.level, found.kind) == ("warning", "shell_syntax")
    assert found.message.startswith("`env.KEY` is passed on as it is")
    assert found.fix == 'write a reference: env = { KEY = { env = "TOKEN" } }'


def test_a_bearer_token_has_a_setting_of_its_own() -> None:
    transport = HttpTransport(url="http://127.0.0.1:1/", headers={"Authorization": Secret("Bearer $TOKEN")})
    (found,) = examine_values(ServerConfig(name="a", transport=transport))
    assert found.fix == 'write bearer_token_env_var = "TOKEN"'


@pytest.mark.parametrize("secret", [Secret("pa$word"), Secret("$"), Secret("$1"), Secret("$TOKEN", source="env KEY")])
def test_a_value_that_only_holds_the_sign_is_left_alone(secret: Secret) -> None:
    transport = StdioTransport(command="x", env={"KEY": secret})
    assert list(examine_values(ServerConfig(name="a", transport=transport))) == []
