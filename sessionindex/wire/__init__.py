"""The contracts' JSON <-> frozen values: names, shapes, spelling.

Everything a caller sends is checked here, once, before anything is opened: unknown names first,
then shapes, then what a value means, each with a fixed message. Nothing is coerced, but for a
whole number written with a fraction of zero. Inside, no function doubts its arguments.

Python is snake_case, JSON camelCase: this is the only place that turns one into the other. One
module for each contract; `shapes` is what they check with, `output` writes JSON. `schemas` says the
same to clients, as JSON schemas (`answer_schemas` those of answers).
"""
