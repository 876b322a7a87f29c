"""What authors wrote: their modules as they are found, and code that changed under runs that are under way."""
