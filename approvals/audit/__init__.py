"""The audit for people: access, the list of events, verification, export, and erasing of texts."""
