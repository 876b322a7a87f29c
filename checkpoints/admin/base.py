"""Base classes, filters and columns of the administration's pages of history.

A table of history shows the rows of every team, so viewing it takes the permission to see all events, which no team
gives by itself: staff who may view their own team's runs do not see others' here.

Admin pages of versioned rows: a save writes the next version, the newest is in force, older ones are read only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.auth.models import Group
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.db import models
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.functional import cached_property
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.views.decorators.http import require_POST

from checkpoints.access.permissions import VIEW_EVENT, may_everywhere
from checkpoints.models import Run

if TYPE_CHECKING:
    ModelAdmin = admin.ModelAdmin
    ModelForm = forms.ModelForm
    AnyPaginator = Paginator[Any]
    Mixed = admin.ModelAdmin[Any]
else:  # at run time Django's classes take no parameter

    class ModelAdmin(admin.ModelAdmin):
        __class_getitem__ = classmethod(lambda cls, model: cls)

    class ModelForm(forms.ModelForm):
        __class_getitem__ = classmethod(lambda cls, model: cls)

    AnyPaginator = Paginator
    Mixed = object

MOST = 5_000  # rows that a list counts and pages through; a filter or a search goes further back


class CappedPaginator(AnyPaginator):
    """Counts rows only as far as a list pages, up to MOST."""

    @cached_property
    def count(self) -> int:
        """Count the rows."""
        found = self.object_list
        return found.order_by()[:MOST].count() if isinstance(found, QuerySet) else len(found)


class OfAllTeams(Mixed):
    """Rows of every team: visible to those who may see everything; each page has its own rules for changes."""

    def has_view_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Allow those who may see everything."""
        return may_everywhere(request.user, VIEW_EVENT)

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Allow those who may see everything."""
        return may_everywhere(request.user, VIEW_EVENT)


class NothingByHand(Mixed):
    """Rows that no form adds, changes or deletes: they are history, or change only by orders."""

    actions = None
    list_per_page = 50
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: models.Model | None = None) -> bool:
        """Refuse."""
        return False


class TakesOrders(Mixed):
    """Accepts orders by POST, each at its own address."""

    def orders(self) -> Mapping[str, Callable[..., HttpResponse]]:
        """Map addresses under the list's own to views: "dry-runs", or "<int:prune>/stops" for an order about a row."""
        raise NotImplementedError

    def may_order(self, request: HttpRequest) -> bool:
        """Tell whether a user may order anything here. Permissions by row are up to the views."""
        return True

    def get_urls(self) -> list[URLPattern]:
        """Add the addresses to which orders are sent."""
        table = f"{self.opts.app_label}_{self.opts.model_name}"
        own = [
            path(f"{address}/", self._guarded(view), name=f"{table}_{address.rpartition('/')[2].replace('-', '_')}")
            for address, view in self.orders().items()
        ]
        return [*own, *super().get_urls()]

    def _guarded(self, view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
        @require_POST
        def ordered(request: HttpRequest, **row: int) -> HttpResponse:
            if not self.may_order(request):
                raise PermissionDenied
            return view(request, **row)

        return self.admin_site.admin_view(ordered)


class ReadOnlyAdmin(OfAllTeams, NothingByHand, ModelAdmin[Any]):
    """History, read only. Binary columns are left out; the pages of the site show their content."""

    list_max_show_all = 50
    sortable_by = ()  # newest first, by the key: any other order would sort the whole table
    ordering = ("-pk",)
    paginator = CappedPaginator
    by_program: Mapping[str, str] = {}  # column with words that a program may have supplied -> the `words_of` it

    @admin.display(description="run")
    def in_run(self, obj: Any) -> SafeString | str:
        """Link to the run that a row belongs to, without reading the run."""
        page = reverse("admin:checkpoints_run_change", args=[obj.run_id]) if obj.run_id else ""
        return format_html('<a href="{}">R-{}</a>', page, obj.run_id) if page else "-"

    def get_fields(self, request: HttpRequest, obj: models.Model | None = None) -> list[Any]:
        """List every column that is no binary, and the links."""
        columns = [f.name for f in self.opts.fields if not isinstance(f, models.BinaryField)]
        columns = [self.by_program.get(name, name) for name in columns]
        return list(dict.fromkeys([*columns, *self.get_readonly_fields(request, obj)]))


class ColumnFilter(admin.SimpleListFilter):
    """Filters rows by a value of the column that `parameter_name` names."""

    values: Callable[[], Iterable[Any]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the choices."""
        return [(str(value), str(getattr(value, "label", value))) for value in self.values()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows with the value that was chosen."""
        return queryset.filter(**{str(self.parameter_name): self.value()}) if self.value() else queryset


class SinceFilter(admin.SimpleListFilter):
    """Filters rows to the last hours or days, by the time in `column`."""

    title = "when"
    parameter_name = "since"
    column = "created_at"
    SPANS = (
        ("1h", "the last hour", 1),
        ("1d", "the last day", 24),
        ("7d", "the last 7 days", 168),
        ("30d", "the last 30 days", 720),
    )

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the choices."""
        return [(name, str(label)) for name, label, _ in self.SPANS]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the rows since the time that was chosen."""
        hours = {name: span for name, _, span in self.SPANS}.get(self.value() or "")
        since = timezone.now() - timedelta(hours=hours) if hours else None
        return queryset.filter(**{f"{self.column}__gte": since}) if since else queryset


def make_value_filter(column: str, title: str, values: Callable[[], Iterable[Any]]) -> type[ColumnFilter]:
    """Make a filter by a column's value, which offers texts or members of an enumeration."""
    body = {"parameter_name": column, "title": title, "values": staticmethod(values)}
    return type("Having", (ColumnFilter,), body)


def make_since_filter(column: str) -> type[SinceFilter]:
    """Make a SinceFilter on another column."""
    return type("Since", (SinceFilter,), {"column": column})


def make_column(name: str, label: str, *, boolean: bool = False) -> Callable[[Any, Any], Any]:
    """Make a column that shows a row's attribute under a label of its own."""

    @admin.display(description=label, boolean=boolean)
    def value(self: Any, obj: Any) -> Any:
        return getattr(obj, name)

    return value


def words_of(name: str) -> Callable[[Any, Any], SafeString]:
    """Make a column with a row's words, quoted where the external program of its run supplied them."""

    @admin.display(description=name.replace("_", " "))
    def words(self: Any, obj: Any) -> SafeString:
        run, text = obj if isinstance(obj, Run) else obj.run, getattr(obj, name)
        return format_html("<q><bdi>{}</bdi></q>" if text and run.plan.external else "<bdi>{}</bdi>", text)

    return words


def make_list_link(model: str, label: str, **filters: str) -> Callable[[Any, Any], SafeString]:
    """Make a column with a link to another list: `make_list_link("approvals_gate", "gates", run__id__exact="pk")`."""

    @admin.display(description=label)
    def link(self: Any, obj: Any) -> SafeString:
        query = "&".join(f"{name}={getattr(obj, column)}" for name, column in filters.items())
        return format_html('<a href="{}?{}">{}</a>', reverse(f"admin:{model}_changelist"), query, label)

    return link


def make_page_link(page: str, label: str, column: str = "pk") -> Callable[[Any, Any], SafeString | str]:
    """Make a column with a link to a page of the site: `make_page_link("run", "page")`."""

    @admin.display(description=label)
    def link(self: Any, obj: Any) -> SafeString | str:
        value = getattr(obj, column)
        return format_html('<a href="{}">{} {}</a>', reverse(page, args=[value]), page, value) if value else "-"

    return link


def number_of(term: str, *prefixes: str) -> int | None:
    """Return the number in "7", "R-7" or "gate:7"; None in anything else."""
    for prefix in prefixes:
        term = term.removeprefix(prefix)
    return int(term) if term.isascii() and term.isdigit() and len(term) < 19 else None


Row = TypeVar("Row", bound=Model)


class VersionedForm(ModelForm[Row]):
    """The form of one version, which refuses to overwrite a version that the user has not seen."""

    OF: tuple[str, ...] = ("team", "name")  # rows with equal values in these columns are versions of one thing

    @classmethod
    def newest_of(cls, row: Row) -> Row:
        """Return the version in force of what `row` is a version of."""
        same = {name: row.serializable_value(name) for name in cls.OF}
        return type(row)._default_manager.filter(**same).order_by("-version")[0]

    def lock(self) -> None:
        """Take the lock that writers take: of two concurrent saves, the second is based on an outdated version."""
        Group.objects.select_for_update(no_key=True).get(pk=self.instance.serializable_value("team"))

    def clean(self) -> dict[str, Any]:
        """Refuse to overwrite a version that the user has not seen."""
        values: dict[str, Any] = super().clean() or {}
        if self.instance.pk:
            self.lock()
            newest: Any = self.newest_of(self.instance)
            if newest.pk != self.instance.pk:
                words = "Nothing was saved. Version {} was written since you opened this page: change {} instead."
                raise forms.ValidationError(format_html(words, newest.version, link_to(newest)))
        return values


class VersionedAdmin(ModelAdmin[Row]):
    """Pages on which saving the form stores the next version.

    That is a new row: whatever was read along with the old one (its groups, its cached properties) does not belong to
    it, and would hide from a many-to-many field that the new row has nothing yet.
    """

    ANEW = ("version", "created_at")  # columns that a version does not copy from the one before
    COUNTS = "The version in force is {}."
    form: type[VersionedForm[Row]]
    sortable_by = ()
    actions = None

    def get_readonly_fields(self, request: HttpRequest, obj: Row | None = None) -> tuple[str, ...]:
        """Fix the columns that say what a row is a version of."""
        return self.form.OF if obj else ()

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """Replace the form's row by a new, unsaved one with the same columns."""
        row = super().save_form(request, form, change)
        form.instance = type(row)(
            **{
                field.attname: getattr(row, field.attname)
                for field in self.opts.concrete_fields
                if not field.primary_key and field.name not in self.ANEW
            }
        )
        return form.instance

    def response_change(self, request: HttpRequest, obj: Any) -> HttpResponse:
        """Redirect "Save and continue editing" to the version that was just written."""
        answer = super().response_change(request, obj)
        return redirect(address_of(obj)) if "_continue" in request.POST else answer

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Allow changing only the newest version. The form refuses what is posted to an older one."""
        old = obj is not None and request.method != "POST" and self.form.newest_of(obj).pk != obj.pk
        return not old and bool(super().has_change_permission(request, obj))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: records of what was done under a version refer to it."""
        return False

    def change_view(self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None) -> Any:
        """Show an older version with a message that links to the newest."""
        row: Any = self.get_object(request, object_id)
        if row is not None and request.method != "POST" and (newest := self.form.newest_of(row)).pk != row.pk:
            words = format_html("This is version {}, which is only kept for the record. ", row.version)
            messages.info(request, words + format_html(str(self.COUNTS), link_to(newest)))
        return super().change_view(request, object_id, form_url, extra_context)


class NewestVersionsFilter(admin.SimpleListFilter):
    """Filters to the newest versions, or shows all."""

    title = "versions"
    parameter_name = "versions"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """List the choices besides the default, the newest versions."""
        return [("all", "All")]

    def choices(self, changelist: Any) -> Any:
        """Label the default choice "Newest"."""
        first, *rest = super().choices(changelist)
        return [{**first, "display": "Newest"}, *rest]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        """Return the versions of the choice."""
        newest = queryset.model._default_manager.current().values("pk")
        return queryset if self.value() == "all" else queryset.filter(pk__in=newest)


def link_to(row: Any) -> SafeString:
    """Link to a version's page."""
    return format_html('<a href="{}">version {}</a>', address_of(row), row.version)


def address_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])
