"""Sends messages about gates to external addresses, by Standard Webhooks (https://www.standardwebhooks.com).

When a gate opens or ends, a message is written for each webhook that wants to hear of it, in the same transaction: the
outbox. After the commit a worker gets the webhook's number alone. It takes what is due under a lease, sends it outside
of any transaction, and records the result; what failed is due again later, and the sweeper wakes workers for whatever
is due. So a message may arrive more than once, always under the same id, and none is lost: not with Redis, not with a
worker that dies in the middle. Sending is the same as for people's messages: approvals.notifications.delivering, by a
channel of its own, approvals.channels.webhook.

A message holds numbers and names, never what is asked or said: a receiver reads that over the API, with a token of its
own. Addresses are written by people and resolve to whatever their owners like, so messages go only to the public
internet, to the very address that was checked, and follow no redirect.
"""
