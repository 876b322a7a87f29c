"""The audit: what seals say about events, how that is checked, and how it is carried elsewhere.

A *leaf* is the digest of one event over all its columns. A seal covers a range of events by the Merkle root of their
leaves (RFC 6962), and the seal before it, so that the seals form one chain. Beside the seal stand its *marks*: for
each event its place, its leaf, and two bytes for each column. They are what lets an altered, removed or slipped-in row
be named, where the root alone only says that something is wrong somewhere. The seal's digest covers them too.

Arithmetic (leaves, merkle, seals, compare, chain) is pure and on plain data, so that an export is verified elsewhere
by the same code that verifies the database. `walk` reads the database, `proof` an export, `anchors` the file of
exported seals, without which a cut tail would not show.
"""
