"""Who is on a gate, who else may decide it, who decides for somebody who is away, and when it goes to the next team."""
