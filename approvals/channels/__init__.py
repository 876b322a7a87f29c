"""The channels beside e-mail: Slack, Teams-compatible webhooks, and Web Push to browsers.

Each renders the one message of approvals.notifications for its own protocol, and escapes all of it: titles and facts
are an agent's words. Everything is sent by approvals.outbound, to the very address that was checked, so that an address
that somebody entered reaches nothing inside. A message leads to a page by a link, and decides nothing.
"""
