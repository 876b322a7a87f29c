"""Sends messages about gates to external addresses, by Standard Webhooks (https://www.standardwebhooks.com).

When a gate opens or ends, a delivery is written for each webhook that wants to hear of it, in the same transaction: the
outbox. After the commit a worker gets the delivery's number alone. It takes the delivery under a lease, sends it
outside of any transaction, and records the result; a failed one is due again later, and the sweeper wakes workers for
whatever is due. So a message may arrive more than once, always under the same id, and none is lost: not with Redis, not
with a worker that dies in the middle.

A message holds numbers and names, never what is asked or said: a receiver reads that over the API, with a token of its
own. Addresses are written by people and resolve to whatever their owners like, so messages go only to the public
internet, to the very address that was checked, and follow no redirect.
"""
