"""Telling the outside how gates go, by Standard Webhooks (https://www.standardwebhooks.com).

When a gate opens or ends, a delivery is written for each webhook that wants to hear of it, in the same transaction: the
outbox. After the commit a worker is rung with the delivery's number alone. It takes the delivery under a lease, sends
it outside of any transaction, and records what came of it; what failed is due again later, and the sweeper rings for
what is due. So a message may arrive more than once, always under the same id, and none is lost: not with Redis, not
with a worker that dies in the middle.

A message holds numbers and names, never what is asked or said: a receiver that wants to know reads it over the API, by
a token of its own. Addresses are written by people and resolve to whatever their owners like, so what is sent goes to
the public internet alone, to the very address that was looked at, and follows no redirect.
"""
