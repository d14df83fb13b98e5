"""Settings: types, choices, environment, overriding, and the part that generated code depends on."""

import warnings

import pytest

from brickwork.config import Config, from_environment, settings


def test_every_setting_has_a_variable_of_its_own_and_an_explanation():
    variables = [setting.variable for setting in settings().values()]
    assert len(set(variables)) == len(variables)
    assert all(variable.startswith("BRICKWORK_") for variable in variables)
    assert all(setting.explanation.endswith(".") for setting in settings().values())


def test_the_environment_sets_fields():
    config = from_environment({"BRICKWORK_VECTOR_BYTES": "32", "BRICKWORK_CACHE_DIR": "/x", "OTHER": "1"})
    assert (config.vector_bytes, config.cache_dir, config.check) == (32, "/x", "")


@pytest.mark.parametrize("text", ["7", "wide"])
def test_a_wrong_variable_warns_and_changes_nothing(text):
    with pytest.warns(RuntimeWarning, match="BRICKWORK_VECTOR_BYTES"):
        assert from_environment({"BRICKWORK_VECTOR_BYTES": text}) == Config()


def test_unset_variables_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert from_environment({"BRICKWORK_CHECK": ""}) == Config()


def test_unknown_names_and_wrong_values_are_refused():
    config = Config()
    with pytest.raises(AttributeError, match="vector_bytes"):
        config.vector_width = 32
    with pytest.raises(TypeError, match="takes int, not str"):
        config.vector_bytes = "32"
    with pytest.raises(ValueError, match="one of"):
        config.check = "sometimes"


def test_override_restores_even_after_an_error():
    config = Config()
    seen: list[int] = []

    def failing() -> None:
        with config.override(vector_bytes=16, check="interpret"):
            seen.append(config.vector_bytes)
            raise KeyError

    with pytest.raises(KeyError):
        failing()
    assert seen == [16]
    assert config == Config()


def test_only_settings_that_affect_code_are_in_its_key():
    config = Config()
    before = config.code_key()
    config.cache_dir = "elsewhere"
    assert config.code_key() == before
    config.vector_bytes = 16
    assert config.code_key() != before
