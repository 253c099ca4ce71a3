"""Rust calls Python: a validator of pydantic-core (PyO3) calls a function, which has orjson call another."""
import sys

import orjson
from nested import last
from pydantic_core import SchemaValidator, core_schema


def checked(one):
    orjson.dumps({"key": {1}}, default=written)
    return one


def written(one):
    last()


sys.dont_write_bytecode = True
SchemaValidator(core_schema.list_schema(core_schema.no_info_after_validator_function(checked, core_schema.int_schema()))).validate_python([1])
