"""A payment provider to practise on: a real HTTP server with a ledger on disk, and faults when asked for them.

`python -m agents.examples.sandbox --port 8001 --data DIR`

- `POST /charges` {amount, currency, card, id?}, `POST /refunds` {charge, amount, currency, reason?, reference?}: both
  want an `Idempotency-Key`. The same key with the same body gives the same answer (`Idempotent-Replayed: true`), with
  another body 409. Amounts are text with two decimals; a refund in another currency is exchanged at fixed rates. A
  refusal (4xx) did nothing and is not remembered.
- `GET /charges/<id>` returns the amount paid, the amount `refunded` of it, and its `refunds`, each with the `reference`
  that its request gave.
- `POST /refunds/<id>/cancel` takes a refund back, and may be repeated. `GET /refunds/<id>`,
  `GET /refunds/by-key/<key>` read one, 404 where there is none.
- `GET /ledger` lists every entry: JSON, or a page for a person's browser.
- `POST /faults` {on: charges|refunds|cancel|reads, kind, times?, match?, seconds?} makes the next `times` requests
  (whose key or amount is `match`, if given) fail; `GET` lists them, `DELETE` ends them. Kinds: `500`, `timeout`
  (silence, then a cut line) and `cut_before` do nothing; `slow`, `500_after` and `cut_after` do the work first or
  late: it is done, but its answer comes late, wrong or never.

A charge `ch_<order>` exists for each order of the shop's file: it is entered at start, or when it is first asked
for if the file has changed since.
"""
