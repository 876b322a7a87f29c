"""Each insert writes an entry into each index of a table, so none may do what another does as well."""

from django.apps import apps
from django.db import connection

OURS = ("checkpoints", "approvals", "agents")
# Pairs of whole indexes of one table, of which the second begins with the first's columns; a unique one stands.
_TWICE = """
SELECT one.indexrelid::regclass::text, other.indexrelid::regclass::text
FROM pg_index one JOIN pg_index other ON other.indrelid = one.indrelid AND other.indexrelid <> one.indexrelid
WHERE one.indrelid = ANY(%s::regclass[]) AND NOT one.indisunique
AND one.indpred IS NULL AND other.indpred IS NULL AND one.indexprs IS NULL AND other.indexprs IS NULL
AND (other.indkey::int2[])[0:one.indnkeyatts - 1] = (one.indkey::int2[])[0:one.indnkeyatts - 1]
ORDER BY 1
"""
# Of tables that hold a row for each process, page or session that is there now.
SMALL = {
    "agents_worker_name_0d191f26_like",
    "approvals_channelstate_channel_a342822a_like",
    "approvals_looking_socket_547b6049_like",
    "approvals_signedin_session_key_b655a85f_like",
}


def test_no_index_begins_another_index_of_its_table() -> None:
    models = [model for app in OURS for model in apps.get_app_config(app).get_models() if model._meta.managed]
    with connection.cursor() as cursor:
        cursor.execute(_TWICE, [[f'"{model._meta.db_table}"' for model in models]])
        found = dict(cursor.fetchall())
    assert {index: other for index, other in found.items() if index not in SMALL} == {}
