from __future__ import annotations

from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, User
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import transaction

from approvals.admin.policy_form import PolicyForm
from approvals.models import Policy, PolicyChange, versions
from approvals.models.policy import SETTINGS
from approvals.policy import required
from approvals.policy.rules.written import Directory
from approvals.policy_changes import changes, policy_file
from approvals.policy_changes.changes import in_force, opens_gates, policies_in_force
from approvals.policy_changes.policy_file import WrongFile
from approvals.policy_changes.simulation import simulate
from checkpoints.access.permissions import may_everywhere


class Command(BaseCommand):
    help = "Check, apply and export policies as a TOML file."

    def add_arguments(self, parser: CommandParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        check = verbs.add_parser("check", help="say what a file would change, and what that asks of the last gates")
        check.add_argument("file", type=Path)
        apply = verbs.add_parser("apply", help="write what a file changes; what is milder waits for a second person")
        apply.add_argument("file", type=Path)
        apply.add_argument("--by", required=True, metavar="USER", help="the username of who writes them")
        export = verbs.add_parser("export", help="print the policies in force")
        export.add_argument("--team", default="", help="of this team alone")

    def handle(self, *, verb: str, **options: Any) -> None:
        if verb == "export":
            self._export(options["team"])
            return
        try:
            text = options["file"].read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            raise CommandError(f"{options['file']}: {getattr(fault, 'strerror', None) or fault}") from None
        by = self._author(options["by"]) if verb == "apply" else None
        with transaction.atomic():  # all of a file, or nothing
            drafts = self._drafts(text)
            for draft, groups, people in drafts:
                self._print_policy(draft, groups, people)
                if by:
                    self._write(draft, groups, people, by)

    def _author(self, name: str) -> User:
        user = User.objects.filter(username=name).first()
        if user is None or not may_everywhere(user, changes.MAY):
            raise CommandError(f"{name} may not write policies: name somebody who may in the administration.")
        return user

    def _drafts(self, text: str) -> list[tuple[Policy, list[Group], list[User]]]:
        """Read the file's policies, checked as the administration checks them. Raises CommandError with every fault."""
        directory, made, faults = Directory.now(), [], list[str]()
        try:
            for table in policy_file.tables(text):
                data = policy_file.form_data(table, directory)
                stored = in_force(Policy(team_id=data["team"], name=data["name"]))
                form = PolicyForm(data, instance=stored)
                if form.is_valid():
                    result = form.cleaned_data
                    settings = {name: getattr(form.instance, name) for name in SETTINGS}
                    draft = Policy(team=result["team"], name=result["name"], **settings)
                    made.append((draft, list(result["groups"]), list(result["people"])))
                for field, entry in form.errors.items():
                    faults += [f"Policy “{table['name']}”, {field}: {item}" for item in entry]
        except WrongFile as wrong:
            faults.append(str(wrong))
        if faults:
            raise CommandError("\n".join(faults))
        return made

    def _print_policy(self, draft: Policy, groups: list[Group], people: list[User]) -> None:
        """Print what becomes of one policy of the file."""
        named = f"{draft.team.name}: {draft.name}"
        stored = in_force(draft)
        if stored is None:
            self.stdout.write(f"{named}: new")
            self._print_terms(draft, groups, people)
            return
        if self._unchanged(stored, draft, groups, people):
            self.stdout.write(f"{named}: unchanged")
            return
        self.stdout.write(f"{named}: changed, would be version {versions.newest(stored).version + 1}")
        for sentence in changes.doubts(stored):
            self.stdout.write(f"  {sentence}")
        self._print_terms(draft, groups, people)

    def _unchanged(self, stored: Policy, draft: Policy, groups: list[Group], people: list[User]) -> bool:
        return opens_gates(stored) and changes.terms_of(stored) == changes.terms(draft, groups, people)

    def _print_terms(self, draft: Policy, groups: list[Group], people: list[User]) -> None:
        for reason in changes.compared(draft, groups, people):
            self.stdout.write(f"  milder, a second person has to confirm: {reason}")
        for rule in required.rules_of(draft.rules):
            if rule.require.get("auto"):
                self.stdout.write(f"  “{rule.name}” approves by itself, and no number below zero whose size it refuses")
        found = simulate(draft, groups=groups, people=people)
        for sentence in found.sentences if found.gates else found.warnings:
            self.stdout.write(f"  {sentence}")

    def _write(self, draft: Policy, groups: list[Group], people: list[User], by: User) -> None:
        stored = in_force(draft)
        if stored and self._unchanged(stored, draft, groups, people):
            return
        written = changes.save(draft, groups=groups, people=people, by=by)
        if isinstance(written, PolicyChange):
            words = "waits in the administration as change {} for somebody other than {}"
            self.stdout.write(f"  {words.format(written.pk, by.username)}")
        else:
            self.stdout.write(f"  written as version {written.version}")

    def _export(self, team: str) -> None:
        if team and not Group.objects.filter(name=team).exists():
            raise CommandError(f"There is no team “{team}”.")
        teams = Group.objects.filter(policies__isnull=False, **({"name": team} if team else {})).distinct()
        policies = [policy for group in teams.order_by("pk") for policy in policies_in_force(group.pk)]
        self.stdout.write(policy_file.text_of(policies, Directory.now()), ending="")
