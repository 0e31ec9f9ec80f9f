"""Views of Great Expectations' pages that show every text as text.

Its own views escape some texts and not others: values and names of tables would become markup. Here all texts of a page
are escaped before its templates see them, and no template interprets Markdown. Imported only by Great Expectations,
which finds the views by the configuration of a project (``docs_views``).
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from great_expectations.render.view.view import DefaultJinjaIndexPageView, DefaultJinjaPageView

if TYPE_CHECKING:
    from great_expectations.render.components import RenderedDocumentContent

__all__ = ["EscapedIndexView", "EscapedPageView"]

ICON = "html_success_icon"
ICONS = frozenset(
    f'<i class="fas fa-{shape}" aria-hidden="true"></i>' for shape in ("check-circle text-success", "times text-danger")
)
"""Markup that Great Expectations' renderer itself makes, under the key ``ICON``."""
# The renderer's own texts with markup, and what is shown instead.
AS_TEXT = {
    'Failed expectations <span class="mr-3 triangle"></span>': "Failed expectations",
    'Expectation types <span class="mr-3 triangle"></span>': "Expectation types",
}


class _EscapedView:
    """Mixin of views: escapes a document before the templates see it."""

    def render(self: Any, document: RenderedDocumentContent, template: str | None = None, **given: Any) -> str:
        """Return the page as HTML."""
        self._validate_document(document)
        page = self._get_template(template or self._template)
        return str(page.render(escaped(document.to_json_dict()), **given))

    def render_markdown(self, markdown: str) -> str:
        """Return Markdown as it is: a link of it would be an element."""
        return markdown

    @staticmethod
    def _escape_template_param_value(value: Any) -> Any:
        return value  # it has been escaped already


class EscapedPageView(_EscapedView, DefaultJinjaPageView):
    """View of the page of a suite or a validation."""


class EscapedIndexView(_EscapedView, DefaultJinjaIndexPageView):
    """View of the list of pages."""


def escaped(part: Any, key: str | None = None) -> Any:
    """Return a part of a page with all its texts escaped, keys included; numbers and the like stay as they are."""
    if isinstance(part, dict):
        return {_text(name): escaped(each, name) for name, each in part.items()}
    if isinstance(part, list | tuple):
        return [escaped(each) for each in part]
    if isinstance(part, str) and key == ICON and part in ICONS:
        return part
    return _text(part)


def _text(part: Any) -> Any:
    return escape(AS_TEXT.get(part, part), quote=True) if isinstance(part, str) else part
