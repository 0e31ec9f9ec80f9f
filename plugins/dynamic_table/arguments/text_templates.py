"""Templates of operators' arguments: a parameter that is text stays text, whatever it spells.

A DAG renders to native objects so that a form's list is a list and an empty field None. But Jinja also evaluates text
as a Python literal: table ``2024.10`` would become the number 2024.1, day ``2013_01`` the number 201301. Here an
expression such as ``{{ params.table }}`` renders to its value as it is. Text around expressions makes text, except if
the whole is a list or a mapping as in ``[{'day': '{{ ds }}'}]``.
"""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import MutableMapping

    import jinja2

__all__ = ["TextTemplates"]


class TextTemplates:
    """Mixin for operators, before Airflow's class; changes nothing in a DAG that renders to text."""

    def render_template(
        self, content: Any, context: Any, jinja_env: jinja2.Environment | None = None, seen_oids: set[int] | None = None
    ) -> Any:
        """Render text as described above, and everything in a collection."""
        from jinja2.nativetypes import NativeEnvironment

        operator: Any = self
        environment = jinja_env or operator.get_template_env()
        is_seen = seen_oids is not None and id(content) in seen_oids
        is_file = isinstance(content, str) and content.endswith(tuple(operator.template_ext))
        if isinstance(content, str) and isinstance(environment, NativeEnvironment) and not is_seen and not is_file:
            return _rendered(environment, content, context)
        above: Any = super()
        return above.render_template(content, context, environment, seen_oids)


def _rendered(environment: jinja2.Environment, source: str, context: MutableMapping[str, Any]) -> Any:
    parts = _parts(environment, environment.from_string(source), context)
    if len(parts) == 1 and (not isinstance(parts[0], str) or _is_expression(environment, source)):
        return parts[0]
    return _list_or_mapping("".join(map(str, parts)))


def _parts(environment: jinja2.Environment, template: jinja2.Template, context: MutableMapping[str, Any]) -> list[Any]:
    """Return the values of the template's parts, as Airflow does, which keeps the context's values lazy."""
    given = copy.copy(context)
    given.update((key, value) for key, value in template.globals.items() if key not in given)
    try:
        return list(
            template.root_render_func(environment.context_class(environment, given, template.name, template.blocks))  # type: ignore[arg-type]
        )
    except Exception:  # noqa: BLE001  raises the error with the template's lines in its traceback
        environment.handle_exception()


def _is_expression(environment: jinja2.Environment, source: str) -> bool:
    """Return whether the template is one expression whose value is not part of its text."""
    from jinja2 import nodes

    found = [part for output in environment.parse(source).body for part in getattr(output, "nodes", [output])]
    if len(found) != 1 or isinstance(found[0], nodes.TemplateData) or not isinstance(found[0], nodes.Expr):
        return False
    try:
        found[0].as_const()
    except nodes.Impossible:
        return True
    return False


def _list_or_mapping(text: str) -> Any:
    try:
        value = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return text
    return value if isinstance(value, list | tuple | dict | set) else text
