"""What the commands print as JSON, beside the schemas that the package says it has."""

import json
from functools import cache
from pathlib import Path

import jsonschema

from d2lmgpu import watch

ROOM = Path(watch.__file__).parent


@cache
def validator(command):
    schema = json.loads((ROOM / command / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def stated(answer) -> bool:
    """Whether an answer of a command is as its schema has it, and has no name that it has not."""
    schema = validator(answer["command"])
    schema.validate(answer)
    return not set(answer) - set(schema.schema["properties"])
