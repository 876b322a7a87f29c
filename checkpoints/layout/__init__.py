"""The storage format of a state: drafts rows and chunks, packs payloads, and reassembles states from them."""
